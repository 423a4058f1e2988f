//! Parameters that many routes have.

use utoipa::IntoParams;
use utoipa::PartialSchema;
use utoipa::openapi::Required;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::Mode;
use super::refine::MODE;
use crate::request::UNGUESSABLE;

/// `limit` and `offset` of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "`Query::page` reads them; this is their description")]
pub(crate) struct Paging {
    /// Most items in the answer. More than 100 is 100; what isn't a whole number from 1 on is the route's default.
    #[param(minimum = 1, example = 10)]
    limit: Option<u64>,
    /// Items to pass over. What isn't a whole number from 0 on is 0; what is more than the most is the most.
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64, example = 0)]
    offset: Option<u64>,
}

/// `limit` and `offset` of a list that is whole unless a limit is given.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "`Query::window` reads them; this is their description")]
pub(crate) struct Part {
    /// Most items in the answer. All, if it isn't there or isn't a whole number from 1 on.
    #[param(minimum = 1, example = 10)]
    limit: Option<u64>,
    /// Items to pass over. What isn't a whole number from 0 on is 0; what is more than the most is the most.
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64, example = 0)]
    offset: Option<u64>,
}

/// `from`, which says who asks, where a name will do.
pub(crate) struct Sender;

impl IntoParams for Sender {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "Who asks: the invite of a player. `viewer`, or nothing, is nobody in particular.";
        let from = ParameterBuilder::new().name("from").parameter_in(ParameterIn::Query).required(Required::False);
        let mode = ExtensionsBuilder::new().add(MODE, Mode::Standalone.name()).build();
        vec![from.description(Some(about)).schema(Some(String::schema())).extensions(Some(mode)).build()]
    }
}

/// The header that makes a request happen once.
pub(crate) struct OnceKey;

/// Name of the header.
pub(super) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// [`OnceKey`] of requests whose answer holds something secret.
pub(crate) struct CreationKey;

impl IntoParams for OnceKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "Any text, new for each request that is meant to happen. A request that is repeated with its key is given \
                     the answer of the first time and does nothing.";
        vec![idempotency_key(about, 1, "3f1c")]
    }
}

impl IntoParams for CreationKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "A text that others can't guess, such as a UUID; new for each request that is meant to happen. A request that is \
                     repeated with its key from the same address is given the answer of the first time and does nothing.";
        vec![idempotency_key(about, UNGUESSABLE, "9f8b6c1e-52d7-4e0a-b3a4-7c9d20e6f115")]
    }
}

fn idempotency_key(about: &str, shortest: usize, example: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[ -~]*[!-~][ -~]*$"));
    let text = text.min_length(Some(shortest)).max_length(Some(255)).examples([example]).build();
    let key = ParameterBuilder::new().name(IDEMPOTENCY_KEY).parameter_in(ParameterIn::Header);
    key.required(Required::False).description(Some(about)).schema(Some(text)).build()
}
