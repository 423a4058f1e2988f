//! Parameters that many routes share.

use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;
use utoipa::PartialSchema;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::request::{Lenient, UNGUESSABLE, Whole};

/// `limit` and `offset` of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Maximum number of items, at most 100. An invalid value means the route's default.
    #[param(value_type = Option<u64>, minimum = 1, example = 10)]
    limit: Lenient<Whole<1>>,
    /// Number of items to skip. An invalid value means 0.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_007_199_254_740_991_u64, example = 0)]
    offset: Offset,
}

impl Paging {
    pub(crate) fn page(self, default_limit: usize) -> (u64, usize) {
        (self.offset.0, self.limit.known().map_or(default_limit, |Whole(limit)| limit.min(100) as usize))
    }
}

/// `limit` and `offset` of a list that is complete by default.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Maximum number of items. If it is missing or invalid, the list is complete.
    #[param(value_type = Option<u64>, minimum = 1, example = 10)]
    limit: Lenient<Whole<1>>,
    /// Number of items to skip. An invalid value means 0.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9_007_199_254_740_991_u64, example = 0)]
    offset: Offset,
}

impl Part {
    /// Returns `offset`, and `limit` if it has a valid value.
    pub(crate) fn window(self) -> (u64, Option<u64>) {
        (self.offset.0, self.limit.known().map(|Whole(limit)| limit))
    }
}

/// Maximum offset: the largest integer that programs in every language represent exactly.
const MOST_OFFSET: u64 = (1 << 53) - 1;

/// A number of items to skip. Larger numbers are clamped to [`MOST_OFFSET`].
struct Offset(u64);

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Offset, D::Error> {
        let text: Option<String> = Option::deserialize(field)?;
        let is_number = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let most = |digits: String| digits.parse().map_or(MOST_OFFSET, |offset: u64| offset.min(MOST_OFFSET));
        Ok(Offset(text.filter(is_number).map_or(0, most)))
    }
}

/// The parameter `from`, which identifies the caller on a server without `--auth`.
pub(crate) struct Sender;

impl IntoParams for Sender {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "Without `--auth`: the caller, by the invite of its player. If it is missing or `viewer`, the caller is anonymous.";
        let from = ParameterBuilder::new().name("from").parameter_in(ParameterIn::Query).required(Required::False);
        vec![from.description(Some(about)).schema(Some(String::schema())).build()]
    }
}

/// The header `Idempotency-Key`. Repeated requests with the same key take effect once.
pub(crate) struct OnceKey;

pub(super) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The header `Idempotency-Key` of requests whose response contains secrets. The key must be hard to guess.
pub(crate) struct CreationKey;

impl IntoParams for OnceKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "Any text, new for each request. A repeated request with the same key has no effect and returns the first \
                     response.";
        vec![idempotency_key(about, 1, "3f1c")]
    }
}

impl IntoParams for CreationKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "A text that is hard to guess, such as a UUID; new for each request. A repeated request with the same key from \
                     the same address has no effect and returns the first response.";
        vec![idempotency_key(about, UNGUESSABLE, "9f8b6c1e-52d7-4e0a-b3a4-7c9d20e6f115")]
    }
}

fn idempotency_key(about: &str, shortest: usize, example: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[ -~]*[!-~][ -~]*$"));
    let text = text.min_length(Some(shortest)).max_length(Some(255)).examples([example]).build();
    let key = ParameterBuilder::new().name(IDEMPOTENCY_KEY).parameter_in(ParameterIn::Header);
    key.required(Required::False).description(Some(about)).schema(Some(text)).build()
}
