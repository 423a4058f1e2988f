//! What Prometheus is told: requests by route, how long they took, sessions by status, who is watching.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arena_engine::{Engine, EventCounts, Neighbours};
use arena_model::Status;
use arena_store::SessionFilter;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::connections::Connections;

/// Upper bounds of the buckets of request durations, in seconds: from what a read takes to what a long poll may.
const BUCKETS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 5.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// The counters of one server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter<u64, AtomicU64>>,
    seconds: Family<RouteLabels, Histogram>,
    /// Open event streams.
    pub(crate) subscribers: Gauge,
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Connections that were refused because there are too many.
    pub(crate) refused_connections: Counter<u64, AtomicU64>,
    /// Requests that have come and aren't answered yet, long polls among them.
    pub(crate) in_flight: Gauge,
}

/// Something that a gauge counts for as long as it is there.
pub(crate) struct Counted(Gauge);

impl Counted {
    pub(crate) fn by(gauge: &Gauge) -> Counted {
        gauge.inc();
        Counted(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new(engine: Engine, open: Arc<Connections>) -> Metrics {
        let mut registry = Registry::with_prefix("arena");
        let requests = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let subscribers = Gauge::default();
        let (connections, in_flight) = (Gauge::default(), Gauge::default());
        let refused_connections = Counter::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register("http_request_seconds", "Time to the first byte of the answer", seconds.clone());
        registry.register("stream_subscribers", "Open event streams", subscribers.clone());
        registry.register("connections", "Open connections", connections.clone());
        registry.register("http_in_flight", "Requests that aren't answered yet", in_flight.clone());
        let refused = "Connections refused because there were too many";
        registry.register("refused_connections", refused, refused_connections.clone());
        registry.register_collector(Box::new(Waiting(open)));
        registry.register_collector(Box::new(Sessions(engine)));
        Metrics { registry, requests, seconds, subscribers, connections, refused_connections, in_flight }
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, route: &str, method: &str, status: u16, took: Duration) {
        let labels = RequestLabels { route: route.to_owned(), method: method.to_owned(), status };
        self.requests.get_or_create(&labels).inc();
        self.seconds.get_or_create(&RouteLabels { route: route.to_owned() }).observe(took.as_secs_f64());
    }

    /// Everything in the text format of Prometheus.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Counts the bytes that wait for slow clients, when it is asked.
#[derive(Debug)]
struct Waiting(Arc<Connections>);

impl Collector for Waiting {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bytes = ConstGauge::new(i64::try_from(self.0.memory().held()).unwrap_or(i64::MAX));
        let help = "Bytes of large answers and requests that wait in memory for slow clients";
        bytes.encode(encoder.encode_descriptor("waiting_bytes", help, None, bytes.metric_type())?)
    }
}

/// Counts sessions, and bytes of the store, when it is asked.
struct Sessions(Engine);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

impl Collector for Sessions {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::<i64>::new(0);
        let mut family =
            encoder.encode_descriptor("sessions", "Sessions in the store", None, EncodeMetric::metric_type(&gauge))?;
        for challenge in self.0.challenges().keys() {
            for status in Status::ALL {
                let filter = SessionFilter { challenge: Some(challenge.clone()), status: Some(status) };
                let count = i64::try_from(self.0.count_sessions(&filter)).unwrap_or(i64::MAX);
                let labels = [("type", challenge.as_str()), ("status", status.as_str())];
                ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let bytes = ConstGauge::new(i64::try_from(self.0.store_bytes()).unwrap_or(i64::MAX));
        let described =
            encoder.encode_descriptor("store_bytes", "Bytes of the store on the disk", None, bytes.metric_type())?;
        bytes.encode(described)?;
        let Some(neighbours) = self.0.neighbours() else { return Ok(()) };
        let Neighbours { looks, conflicts, clock_behind_ms, events } = neighbours;
        let behind = ConstGauge::new(clock_behind_ms as f64 / 1000.0);
        let help = "How far this machine's clock is behind the database's, which counts";
        let described = encoder.encode_descriptor("clock_behind_seconds", help, None, behind.metric_type())?;
        behind.encode(described)?;
        let mut counts = vec![
            ("journal_looks", "Looks at what other nodes have committed", looks),
            ("conflicts", "Decisions that were taken anew because another node was faster", conflicts),
        ];
        if let Some(EventCounts { connected, sent, received }) = events {
            let connected = ConstGauge::new(i64::from(connected));
            let help = "1 while events are exchanged with other nodes, 0 while NATS is out of reach";
            let described = encoder.encode_descriptor("nats_connected", help, None, connected.metric_type())?;
            connected.encode(described)?;
            counts.push(("events_sent", "Events sent to other nodes", sent));
            counts.push(("events_received", "Events that came from other nodes", received));
        }
        for (name, help, count) in counts {
            let count = ConstCounter::new(count);
            let described = encoder.encode_descriptor(name, help, None, count.metric_type())?;
            count.encode(described)?;
        }
        Ok(())
    }
}
