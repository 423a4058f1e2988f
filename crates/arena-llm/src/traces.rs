//! Spans of calls to models, for programs that export traces. Names and attributes are those of OpenTelemetry's
//! conventions for generative AI. A span has neither prompts nor answers.

use serde::Deserialize;
use tracing::field::Empty;
use tracing::{Instrument, Span, trace_span};

use crate::{Api, Endpoint, Fault, Finish, Received};

/// Calls a model within a span. `body` is the body of the request. Without a program that exports traces, the span costs
/// next to nothing.
///
/// # Errors
/// Those of the call.
pub async fn trace_call(
    endpoint: &Endpoint,
    body: &[u8],
    call: impl Future<Output = Result<Received, Fault>>,
) -> Result<Received, Fault> {
    let span = span_of(endpoint, body);
    let answered = call.instrument(span.clone()).await;
    record(&span, answered.as_ref());
    answered
}

fn span_of(endpoint: &Endpoint, body: &[u8]) -> Span {
    #[derive(Deserialize)]
    struct Named {
        model: String,
    }
    let span = trace_span!(
        "chat",
        otel.name = Empty,
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider_of(endpoint.api()),
        gen_ai.request.model = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        server.address = endpoint.uri().host(),
        server.port = endpoint.uri().port_u16().map(i64::from),
        "error.type" = Empty,
    );
    if !span.is_disabled()
        && let Ok(Named { model }) = serde_json::from_slice(body)
    {
        span.record("otel.name", format!("chat {model}")).record("gen_ai.request.model", model);
    }
    span
}

/// Records the outcome of a call in its span.
fn record(span: &Span, answered: Result<&Received, &Fault>) {
    if span.is_disabled() {
        return;
    }
    match answered {
        Ok(Received { reply, body, .. }) => {
            for (field, key) in [("gen_ai.response.model", "model"), ("gen_ai.response.id", "id")] {
                span.record(field, body[key].as_str());
            }
            span.record("gen_ai.response.finish_reasons", reason_of(reply.finish));
            if !reply.usage.is_estimated {
                span.record("gen_ai.usage.input_tokens", reply.usage.input as i64);
                span.record("gen_ai.usage.output_tokens", reply.usage.output as i64);
            }
        }
        Err(fault) => {
            span.record("error.type", fault.class.name()).record("otel.status_code", "error");
        }
    }
}

/// Returns the provider whose conventions an API has. The address says which server it really is.
fn provider_of(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions | Api::Responses => "openai",
        Api::AnthropicMessages => "anthropic",
    }
}

fn reason_of(finish: Finish) -> &'static str {
    match finish {
        Finish::Done => "stop",
        Finish::Length => "length",
        Finish::Refused => "content_filter",
    }
}
