//! The export of traces to an OpenTelemetry collector, in builds with the feature `otel`. The environment variables of
//! OpenTelemetry configure it (docs/operations.md).

#[cfg(not(feature = "otel"))]
mod absent;
#[cfg(feature = "otel")]
mod export;

use tracing::warn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::exit::Failure;
use crate::output;
#[cfg(not(feature = "otel"))]
pub use absent::NoExport as Export;
#[cfg(feature = "otel")]
pub use export::Export;

/// A part of the program that receives events or spans.
pub type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The variables with the collector's address.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Starts the log, which may be absent, and the export of traces if the environment asks for it. The export ends when
/// the result is dropped.
///
/// # Errors
/// If a variable of the export is invalid.
pub fn start(log: Vec<BoxedLayer>) -> Result<Option<Export>, Failure> {
    let mut layers = log;
    let has_log = !layers.is_empty();
    let wanted = wanted();
    let export = wanted.map_or(Ok(None), |_| Export::start())?;
    layers.extend(export.as_ref().map(Export::layer));
    if !layers.is_empty() {
        tracing_subscriber::registry().with(layers).init();
    }
    if let (Some(name), None) = (wanted, &export) {
        let text = format!("{name} is set, but this build of the program exports no traces (feature `otel`)");
        if has_log { warn!("{text}") } else { output::note(&text) }
    }
    Ok(export)
}

/// Returns the variable that asks for traces.
fn wanted() -> Option<&'static str> {
    let is_off = value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || value("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    ENDPOINTS.into_iter().find(|name| !is_off && value(name).is_some())
}

/// Returns the value of an environment variable. An empty value counts as unset.
fn value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
