//! The faults of endpoints, by class. Pure.

use std::time::Duration;

use hyper::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{self, Api};
use crate::conversation::{Finish, Reply, Usage};
use crate::lenient;

/// The maximum length of a quotation from an endpoint's answer, in characters.
const WORDS: usize = 500;

/// The parts of errors about a conversation that is too long for the model.
const TOO_LONG: [&str; 8] = [
    "context length",
    "context limit",
    "context size",
    "context window",
    "prompt is too long",
    "input is too long",
    "maximum number of tokens",
    "too many input tokens",
];

/// The fault of a request to an endpoint. The model isn't at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Fault {
    pub class: FaultClass,
    /// The cause in a sentence, without the key.
    pub sentence: String,
    /// The pause that the endpoint requests.
    pub retry_after: Option<Duration>,
    /// The provider's id of the request, if the provider gave one.
    pub request_id: Option<String>,
    /// True if the conversation is too long for the model.
    pub is_too_long: bool,
    /// The tokens that the endpoint counts nevertheless. They are paid.
    pub usage: Option<Usage>,
    /// True if the endpoint has the request and neither answered nor reported an error. It may be paid.
    pub may_be_paid: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultClass {
    /// The key is missing or rejected: status 401 or 403.
    Unauthorized,
    /// The account has no credit: status 402, or the provider's word for it.
    Unpaid,
    /// The endpoint rejects the request: other statuses of 4xx and 3xx. Also a bad certificate.
    Rejected,
    /// The endpoint asks for fewer requests: status 429.
    Busy,
    /// The endpoint fails: status 5xx, 408, 409 or 425.
    Failing,
    /// No connection, or a broken one.
    Unreachable,
    /// No first byte in time.
    Silent,
    /// A part of an answer, but not the whole in time.
    Slow,
    /// An answer that doesn't fit the API.
    Malformed,
}

impl FaultClass {
    pub const ALL: [FaultClass; 9] = [
        FaultClass::Unauthorized,
        FaultClass::Unpaid,
        FaultClass::Rejected,
        FaultClass::Busy,
        FaultClass::Failing,
        FaultClass::Unreachable,
        FaultClass::Silent,
        FaultClass::Slow,
        FaultClass::Malformed,
    ];

    /// Returns true if retries don't help: the user must repair the cause.
    pub fn is_lasting(self) -> bool {
        matches!(self, FaultClass::Unauthorized | FaultClass::Unpaid | FaultClass::Rejected)
    }

    /// Returns the name in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            FaultClass::Unauthorized => "unauthorized",
            FaultClass::Unpaid => "unpaid",
            FaultClass::Rejected => "rejected",
            FaultClass::Busy => "busy",
            FaultClass::Failing => "failing",
            FaultClass::Unreachable => "unreachable",
            FaultClass::Silent => "silent",
            FaultClass::Slow => "slow",
            FaultClass::Malformed => "malformed",
        }
    }

    fn of_status(status: u16, error: &ErrorAnswer) -> FaultClass {
        match status {
            401 | 403 => FaultClass::Unauthorized,
            402 => FaultClass::Unpaid,
            // Two large providers report an empty account with another status than 402.
            400 | 429 if error.is_unpaid() => FaultClass::Unpaid,
            429 => FaultClass::Busy,
            _ if error.is_too_long() => FaultClass::Rejected,
            408 | 409 | 425 | 500.. => FaultClass::Failing,
            _ => FaultClass::Rejected,
        }
    }
}

impl Fault {
    /// Creates a fault without a pause and a request id.
    pub(crate) fn new(class: FaultClass, sentence: impl Into<String>) -> Fault {
        let (sentence, may_be_paid) = (sentence.into(), false);
        Fault { class, sentence, retry_after: None, request_id: None, is_too_long: false, usage: None, may_be_paid }
    }

    /// Creates the fault of a request that the endpoint has received, and that may be paid.
    pub(crate) fn of_sent(class: FaultClass, sentence: impl Into<String>) -> Fault {
        Fault { may_be_paid: true, ..Fault::new(class, sentence) }
    }

    /// Creates the fault of an error status with this body. `key` describes the key of the request, if it has one.
    pub(crate) fn of_status(status: u16, body: &[u8], location: Option<&str>, key: Option<&str>) -> Fault {
        let error = ErrorAnswer::of_body(body);
        let class = FaultClass::of_status(status, &error);
        let why = match location {
            Some(to) if (300..400).contains(&status) => format!("HTTP {status}: it redirects to {to}; give that URL"),
            _ => format!("HTTP {status}: {}", error.message),
        };
        let (retry_after, is_too_long) = (error.retry_after, class == FaultClass::Rejected && error.is_too_long());
        let sentence = match (class, key) {
            (FaultClass::Unauthorized, Some(key)) => format!("it rejects {key} ({why})"),
            (FaultClass::Unauthorized, None) => format!("it requires a key, but none is given ({why})"),
            _ => why,
        };
        Fault { retry_after, is_too_long, ..Fault::new(class, sentence) }
    }

    /// Returns the fault in the body of an answer with a success status. Gateways report errors of providers in this way.
    pub(crate) fn in_answer(body: &Value) -> Option<Fault> {
        let Some(found) = error_in(body) else {
            let word = api::failed_finish(body)?;
            return Some(Fault::new(FaultClass::Failing, format!("its answer ended with the reason `{word}`")));
        };
        let error = ErrorAnswer::of_error(found);
        let class = match error.code.as_str() {
            "rate_limit_exceeded" | "rate_limit_error" if !error.is_unpaid() => FaultClass::Busy,
            "server_error" | "api_error" | "overloaded_error" | "timeout_error" => FaultClass::Failing,
            "authentication_error" | "permission_error" => FaultClass::Unauthorized,
            "invalid_request_error" | "not_found_error" | "model_not_found" => FaultClass::Rejected,
            _ if error.is_unpaid() => FaultClass::Unpaid,
            _ if error.is_too_long() => FaultClass::Rejected,
            code => match code.parse().ok().or(error.status) {
                Some(status @ 400..600) => FaultClass::of_status(status, &error),
                _ => FaultClass::Failing,
            },
        };
        let sentence = format!("its answer is an error: {}", error.message);
        let (retry_after, is_too_long) = (error.retry_after, class == FaultClass::Rejected && error.is_too_long());
        Some(Fault { retry_after, is_too_long, ..Fault::new(class, sentence) })
    }
}

/// Returns the error in a body. Some servers put it into a list, and some send it alone.
fn error_in(body: &Value) -> Option<&Value> {
    let body = body.get(0).unwrap_or(body);
    if body["object"] == "error" {
        return Some(body);
    }
    let is_error = |error: &&Value| {
        error.as_object().is_some_and(|error| !error.is_empty()) || error.as_str().is_some_and(|text| !text.is_empty())
    };
    [&body["error"], &body["choices"][0]["error"]].into_iter().find(is_error)
}

/// Returns the model's answer in the error of a body. Some providers report with an error that a filter refused the
/// conversation.
pub(crate) fn refusal(api: Api, status: u16, body: &Value) -> Option<Reply> {
    if !matches!(status, 200 | 400 | 403) {
        return None;
    }
    let found = error_in(body)?;
    let error = ErrorAnswer::of_error(found);
    let is_filter = matches!(error.code.as_str(), "content_filter" | "content_policy_violation" | "invalid_prompt")
        || error.message.contains("content filtering policy");
    let is_flagged = found["metadata"]["flagged_input"].is_string();
    (is_filter || is_flagged).then(|| Reply {
        text: error.message,
        raw: api.plain_answer(""),
        finish: Finish::Refused,
        ..Reply::default()
    })
}

/// The error that a body contains.
struct ErrorAnswer {
    /// The message, or the beginning of a body without one. On one line.
    message: String,
    /// The code or type, as text.
    code: String,
    /// The code, if it is a number beside a type.
    status: Option<u16>,
    /// The pause that Google's servers request.
    retry_after: Option<Duration>,
}

impl ErrorAnswer {
    fn of_body(body: &[u8]) -> ErrorAnswer {
        let parsed: Option<Value> = lenient::parse(body).ok();
        let known = parsed.as_ref().and_then(|body| {
            let detail = || Some(&body["detail"]).filter(|part| part.is_object() || part.is_string());
            Some(ErrorAnswer::of_error(error_in(body).or_else(detail).unwrap_or(body)))
                .filter(|error| !error.message.is_empty())
        });
        known.unwrap_or_else(|| ErrorAnswer {
            message: short(&String::from_utf8_lossy(body)),
            code: String::new(),
            status: None,
            retry_after: None,
        })
    }

    fn of_error(error: &Value) -> ErrorAnswer {
        let message = error.as_str().or(error["message"].as_str()).unwrap_or_default();
        let code = match (&error["code"], &error["type"]) {
            (Value::String(code), _) | (_, Value::String(code)) => code.clone(),
            (Value::Number(code), _) => code.to_string(),
            _ => String::new(),
        };
        let status = error["code"].as_u64().or(error["status"].as_u64()).and_then(|status| status.try_into().ok());
        let mut details = error["details"].as_array().into_iter().flatten();
        let retry_after = details.find_map(|detail| seconds(detail["retryDelay"].as_str()?.strip_suffix('s')?));
        ErrorAnswer { message: short(message), code, status, retry_after }
    }

    fn is_unpaid(&self) -> bool {
        matches!(self.code.as_str(), "insufficient_quota" | "billing_error" | "billing_hard_limit_reached")
            || self.message.contains("credit balance is too low")
    }

    fn is_too_long(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        matches!(self.code.as_str(), "context_length_exceeded" | "exceed_context_size_error")
            || TOO_LONG.iter().any(|part| message.contains(part))
    }
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// Returns the pause that an answer's headers request. `now` is the time of this machine in seconds since 1970.
pub(crate) fn retry_after(headers: &HeaderMap, now: u64) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = header("retry-after-ms").and_then(|text| text.parse::<u32>().ok()) {
        return Some(Duration::from_millis(ms.into()));
    }
    let wanted = header("retry-after")?;
    // A date is compared with the answer's own date, if it has one, so that the clocks needn't agree.
    seconds(wanted).or_else(|| {
        let now = header("date").and_then(seconds_of_date).unwrap_or(now);
        Some(Duration::from_secs(seconds_of_date(wanted)?.saturating_sub(now)))
    })
}

/// Returns the seconds since 1970 of a date of HTTP, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of_date(date: &str) -> Option<u64> {
    let (_, date) = date.split_once(", ")?;
    let mut words = date.strip_suffix(" GMT")?.split(' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == month)?;
    let mut parts = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let is_date = (1970..=9999).contains(&year) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before_month = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month] + u64::from(is_leap && month > 1);
    let past = year - 1;
    // 719,162 days lie between the years 1 and 1970.
    let days = past * 365 + past / 4 - past / 100 + past / 400 - 719_162 + before_month + day - 1;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns the beginning of an endpoint's answer, on one line.
pub(crate) fn short(text: &str) -> String {
    let words: String = text.trim().chars().take(WORDS).collect();
    words.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn statuses_have_classes() {
        let openai = r#"{"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}"#;
        let anthropic = r#"{"type": "error", "error": {"type": "invalid_request_error",
            "message": "Your credit balance is too low to access the Anthropic API."}}"#;
        let cases = [
            (400, "", FaultClass::Rejected, true),
            (400, anthropic, FaultClass::Unpaid, true),
            (401, "", FaultClass::Unauthorized, true),
            (402, "", FaultClass::Unpaid, true),
            (403, "", FaultClass::Unauthorized, true),
            (404, "", FaultClass::Rejected, true),
            (408, "", FaultClass::Failing, false),
            (409, "", FaultClass::Failing, false),
            (413, "", FaultClass::Rejected, true),
            (422, "", FaultClass::Rejected, true),
            (425, "", FaultClass::Failing, false),
            (429, "", FaultClass::Busy, false),
            (429, openai, FaultClass::Unpaid, true),
            (302, "", FaultClass::Rejected, true),
            (500, openai, FaultClass::Failing, false),
            (502, "<html>", FaultClass::Failing, false),
            (503, "", FaultClass::Failing, false),
            (529, "", FaultClass::Failing, false),
        ];
        for (status, body, class, is_lasting) in cases {
            let fault = Fault::of_status(status, body.as_bytes(), None, None);
            assert_eq!((fault.class, fault.class.is_lasting()), (class, is_lasting), "{status} {body}");
        }
        for class in FaultClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
    }

    #[test]
    fn conversations_that_are_too_long_are_told_from_other_mistakes() {
        let error = |message: &str, code: &str| format!(r#"{{"error": {{"message": "{message}", "code": "{code}"}}}}"#);
        for (status, body, is_too_long) in [
            (400, error("This model's maximum context length is 4096 tokens.", "context_length_exceeded"), true),
            (400, error("prompt is too long: 210000 tokens > 200000 maximum", "x"), true),
            (400, error("The input token count (9) exceeds the maximum number of tokens allowed (8).", "x"), true),
            (413, error("input length and `max_tokens` exceed context limit", "x"), true),
            (500, error("the request exceeds the available context size", "x"), true),
            (400, error("max_tokens is too large", "x"), false),
            (429, error("too many tokens in the context window per minute", "rate_limit_exceeded"), false),
        ] {
            let fault = Fault::of_status(status, body.as_bytes(), None, None);
            assert_eq!(
                (fault.is_too_long, fault.class == FaultClass::Rejected),
                (is_too_long, status != 429),
                "{body}"
            );
        }
        let body = serde_json::from_str(&error("m", "context_length_exceeded")).unwrap();
        assert!(Fault::in_answer(&body).is_some_and(|fault| fault.is_too_long && fault.class.is_lasting()));
    }

    #[test]
    fn sentences_quote_the_endpoints_message() {
        let check = |status, body: &str, key, expected: Expect| {
            expected.assert_eq(&Fault::of_status(status, body.as_bytes(), None, key).sentence);
        };
        check(404, r#"{"error": {"message": "no model m"}}"#, None, expect!["HTTP 404: no model m"]);
        check(404, r#"{"error": "model not found"}"#, None, expect!["HTTP 404: model not found"]);
        check(404, r#"{"object": "error", "message": "no m"}"#, None, expect!["HTTP 404: no m"]);
        check(404, r#"[{"error": {"message": "no m"}}]"#, None, expect!["HTTP 404: no m"]);
        check(404, r#"{"detail": "Not Found"}"#, None, expect!["HTTP 404: Not Found"]);
        check(422, r#"{"detail": [{"loc": 1}]}"#, None, expect![[r#"HTTP 422: {"detail": [{"loc": 1}]}"#]]);
        check(502, "<html>\n<b>Bad\r\n", None, expect!["HTTP 502: <html> <b>Bad"]);
        check(401, "no", Some("the key in K"), expect!["it rejects the key in K (HTTP 401: no)"]);
        check(401, "no", None, expect!["it requires a key, but none is given (HTTP 401: no)"]);
        assert_eq!(Fault::of_status(500, "ж".repeat(9000).as_bytes(), None, None).sentence.chars().count(), 510);
    }

    #[test]
    fn errors_in_answers_have_classes() {
        let cases = [
            (r#"{"error": {"code": 429, "message": "m"}}"#, Some(FaultClass::Busy)),
            (r#"{"error": {"code": 402}}"#, Some(FaultClass::Unpaid)),
            (r#"{"error": {"code": "server_error"}, "status": "failed", "output": []}"#, Some(FaultClass::Failing)),
            (r#"{"error": {"code": "rate_limit_exceeded"}}"#, Some(FaultClass::Busy)),
            (r#"{"type": "error", "error": {"type": "overloaded_error"}}"#, Some(FaultClass::Failing)),
            (r#"{"choices": [{"error": {"code": 502}, "finish_reason": "error"}]}"#, Some(FaultClass::Failing)),
            (r#"{"error": "odd"}"#, Some(FaultClass::Failing)),
            (r#"{"object": "error", "message": "m"}"#, Some(FaultClass::Failing)),
            (
                r#"{"object": "error", "message": "m", "type": "NotFoundError", "code": 404}"#,
                Some(FaultClass::Rejected),
            ),
            (r#"{"object": "error", "message": "m", "status": 429}"#, Some(FaultClass::Busy)),
            (r#"{"error": null, "output": []}"#, None),
            (r#"{"error": "", "output": []}"#, None),
            (r#"[{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]"#, Some(FaultClass::Busy)),
            (r#"{"type": "error", "error": {"type": "invalid_request_error"}}"#, Some(FaultClass::Rejected)),
            (r#"{"choices": [{"message": {"content": "a"}, "finish_reason": "ERROR"}]}"#, Some(FaultClass::Failing)),
            (r#"{"choices": [{"finish_reason": "insufficient_system_resource"}]}"#, Some(FaultClass::Failing)),
            (r#"{"content": [], "stop_reason": "error"}"#, Some(FaultClass::Failing)),
            (r#"{"output": [], "status": "cancelled", "error": null}"#, Some(FaultClass::Failing)),
            (
                r#"{"output": [], "status": "incomplete", "incomplete_details": {"reason": "error"}}"#,
                Some(FaultClass::Failing),
            ),
            (r#"{"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}"#, None),
            (r#"{"choices": [{"finish_reason": "stop"}]}"#, None),
            (r#"[]"#, None),
        ];
        for (body, class) in cases {
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(Fault::in_answer(&body).map(|fault| fault.class), class, "{body}");
        }
    }

    #[test]
    fn refusals_of_filters_are_answers() {
        let azure = r#"{"error": {"code": "content_filter", "message": "filtered", "status": 400}}"#;
        let router = r#"{"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "a"}}}"#;
        let blocked = r#"{"type": "error", "error": {"type": "invalid_request_error",
            "message": "Output blocked by content filtering policy"}}"#;
        for (status, body, is_refusal) in [
            (400, azure, true),
            (400, blocked, true),
            (403, router, true),
            (200, azure, true),
            (500, azure, false),
            (400, "null", false),
            (200, r#"{"error": {"code": "server_error"}}"#, false),
        ] {
            let reply = refusal(Api::Responses, status, &serde_json::from_str(body).unwrap());
            assert_eq!(reply.map(|reply| reply.finish), is_refusal.then_some(Finish::Refused), "{status} {body}");
        }
    }

    #[test]
    fn a_pause_may_be_in_the_body() {
        let info = r#"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}"#;
        let error =
            format!(r#"{{"error": {{"code": 429, "message": "m", "details": [{{"@type": "other"}}, {info}]}}}}"#);
        let pause = Some(Duration::from_millis(34_500));
        for body in [error.clone(), format!("[{error}]")] {
            assert_eq!(Fault::of_status(429, body.as_bytes(), None, None).retry_after, pause, "{body}");
            let body = serde_json::from_str(&body).unwrap();
            assert_eq!(Fault::in_answer(&body).unwrap().retry_after, pause, "{body}");
        }
        let odd = error.replace("34.5s", "-1s");
        assert_eq!(Fault::of_status(429, odd.as_bytes(), None, None).retry_after, None);
    }

    #[test]
    fn pauses_are_numbers_or_dates() {
        let now = "Fri, 28 Feb 2025 23:59:30 GMT";
        type Case<'c> = (&'c [(&'static str, &'static str)], Option<u64>);
        let clock = seconds_of_date("Sat, 01 Mar 2025 00:00:00 GMT").unwrap();
        let cases: [Case<'_>; 11] = [
            (&[("retry-after", "2")], Some(2000)),
            (&[("retry-after", " 0.5 ")], Some(500)),
            (&[("retry-after", "0")], Some(0)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after-ms", "120"), ("retry-after", "2")], Some(120)),
            (&[("retry-after", "Sat, 01 Mar 2025 00:01:00 GMT"), ("date", now)], Some(90_000)),
            (&[("retry-after", now), ("date", now)], Some(0)),
            // Without a date of the answer, the clock of this machine counts.
            (&[("retry-after", "Sat, 01 Mar 2025 00:01:00 GMT")], Some(60_000)),
            (&[("retry-after", "Sat, 01 Mar 2025 00:01:00 GMT"), ("date", "today")], Some(60_000)),
            (&[("retry-after", "soon"), ("date", now)], None),
        ];
        for (pairs, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(retry_after(&headers, clock), expected.map(Duration::from_millis), "{pairs:?}");
        }
        // Computed with another program: date -ud '…' +%s.
        for (date, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Tue, 29 Feb 2000 12:00:00 GMT", Some(951_825_600)),
            ("Fri, 31 Dec 2027 23:59:60 GMT", Some(1_830_297_600)),
            ("Mon, 01 Mar 2100 00:00:00 GMT", Some(4_107_542_400)),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
        ] {
            assert_eq!(seconds_of_date(date), expected, "{date}");
        }
    }
}
