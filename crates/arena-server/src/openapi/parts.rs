//! Parameters that many routes have.

use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;
use utoipa::PartialSchema;
use utoipa::openapi::Required;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::Mode;
use super::refine::MODE;
use crate::fields::{Lenient, Whole};
use crate::request::UNGUESSABLE;

/// `limit` and `offset` of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Most items in the answer. More than 100 is 100; what isn't a whole number from 1 on is the route's default.
    #[param(value_type = Option<u64>, minimum = 1, example = 10)]
    limit: Lenient<Whole<1>>,
    /// Items to pass over. What isn't a whole number from 0 on is 0; what is more than the most is the most.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_007_199_254_740_991_u64, example = 0)]
    offset: Offset,
}

impl Paging {
    /// `offset` and `limit` of a page.
    pub(crate) fn page(self, default_limit: usize) -> (u64, usize) {
        (self.offset.0, self.limit.known().map_or(default_limit, |Whole(limit)| limit.min(100) as usize))
    }
}

/// `limit` and `offset` of a list that is whole unless a limit is given.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Most items in the answer. All, if it isn't there or isn't a whole number from 1 on.
    #[param(value_type = Option<u64>, minimum = 1, example = 10)]
    limit: Lenient<Whole<1>>,
    /// Items to pass over. What isn't a whole number from 0 on is 0; what is more than the most is the most.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_007_199_254_740_991_u64, example = 0)]
    offset: Offset,
}

impl Part {
    /// `offset` and `limit`, if there is one.
    pub(crate) fn window(self) -> (u64, Option<u64>) {
        (self.offset.0, self.limit.known().map(|Whole(limit)| limit))
    }
}

/// Most items that are passed over: a number that programs in every language can hold.
const MOST_OFFSET: u64 = (1 << 53) - 1;

/// A number of items. One that is too large for a number is behind the end of every list, too.
struct Offset(u64);

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Offset, D::Error> {
        let text: Option<String> = Option::deserialize(field)?;
        let is_number = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let most = |digits: String| digits.parse().map_or(MOST_OFFSET, |offset: u64| offset.min(MOST_OFFSET));
        Ok(Offset(text.filter(is_number).map_or(0, most)))
    }
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
