//! The export of spans by OTLP over HTTP. Spans wait in a queue of bounded length, and a full queue drops them, so a
//! collector that fails or is slow disturbs nothing.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use arena_server::TraceContext;
use axum::http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry::{Array, Context, Value};
use opentelemetry_http::{Bytes, HeaderInjector, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use parking_lot::Mutex;
use tracing::{Span, warn};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use ureq::Agent;

use super::{BoxedLayer, value};
use crate::exit::{Exit, Failure};

/// The time for the last spans when the program ends.
const FLUSH_WITHIN: Duration = Duration::from_secs(3);

/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const SEND_WITHIN: Duration = Duration::from_secs(10);

/// The time between two warnings about a collector.
const WARN_AFTER: Duration = Duration::from_secs(600);

/// The attribute whose value is a list, which a span of `tracing` can't have.
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// The running export. Its drop sends the last spans.
pub struct Export(SdkTracerProvider);

impl Export {
    /// Starts the export as the environment variables configure it.
    ///
    /// # Errors
    /// If a variable is invalid.
    pub fn start() -> Result<Option<Export>, Failure> {
        let refuse = |error: &dyn Display| Failure::new(Exit::Usage, format_args!("cannot export traces: {error}"));
        let of_traces = |name: &str| {
            value(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| value(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        if let Some(protocol) = of_traces("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            return Err(refuse(&format_args!("OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}; it must be http/protobuf")));
        }
        let timeout = match of_traces("TIMEOUT").map(|ms| ms.parse()) {
            None => SEND_WITHIN,
            Some(Ok(ms)) => Duration::from_millis(ms),
            Some(Err(error)) => return Err(refuse(&format_args!("OTEL_EXPORTER_OTLP_TIMEOUT: {error}"))),
        };
        let agent = Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false).max_redirects(0);
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_timeout(timeout)
            .with_http_client(Sender(agent.build().new_agent()))
            .build()
            .map_err(|error| refuse(&error))?;
        let mut resource = Resource::builder();
        let has_name = value("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|list| list.contains("service.name="));
        if value("OTEL_SERVICE_NAME").is_none() && !has_name {
            resource = resource.with_service_name("arena");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Exporter { inner: exporter, warned: Mutex::default() })
            .with_resource(resource.build())
            .build();
        Ok(Some(Export(provider)))
    }

    /// Returns the layer that takes the spans of this program's crates. It takes no events of the log.
    pub fn layer(&self) -> BoxedLayer {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("arena"))
            .with_location(false)
            .with_threads(false)
            .with_level(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let ours = filter_fn(|metadata| metadata.is_span() && metadata.target().starts_with("arena_"));
        layer.with_filter(ours).boxed()
    }

    /// Returns the way between spans and W3C Trace Context.
    pub fn context(&self) -> TraceContext {
        TraceContext { adopt, inject }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // The exporter has reported a failure.
        let _ = self.0.shutdown_with_timeout(FLUSH_WITHIN);
    }
}

fn adopt(span: &Span, parent: &str, state: &str) {
    let headers = [("traceparent", parent), ("tracestate", state)];
    let headers: HashMap<String, String> = headers.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let sender = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    if sender.has_active_span() {
        // It fails for a span that isn't exported.
        let _ = span.set_parent(sender);
    }
}

fn inject(span: &Span, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(headers));
}

/// The exporter, which reports its failures in the log now and then.
#[derive(Debug)]
struct Exporter {
    inner: opentelemetry_otlp::SpanExporter,
    warned: Mutex<Option<Instant>>,
}

impl SpanExporter for Exporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        for attribute in batch.iter_mut().flat_map(|span| &mut span.attributes) {
            if let Value::String(reason) = &attribute.value
                && attribute.key.as_str() == FINISH_REASONS
            {
                attribute.value = Value::Array(Array::String(vec![reason.clone()]));
            }
        }
        let exported = self.inner.export(batch).await;
        if let Err(error) = &exported {
            let mut warned = self.warned.lock();
            if warned.is_none_or(|at| at.elapsed() >= WARN_AFTER) {
                *warned = Some(Instant::now());
                warn!(%error, "traces are lost, because the collector doesn't take them: {error}");
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// The HTTP client of the exporter. It blocks, since it runs on the thread of the queue.
#[derive(Debug)]
struct Sender(Agent);

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, mut body) = self.0.run(request.map(|body| body.to_vec()))?.into_parts();
        Ok(Response::from_parts(parts, body.read_to_vec()?.into()))
    }
}
