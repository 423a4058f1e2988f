//! Metrics for Prometheus: requests by route with durations, sessions by status, streams, connections, memory, disk,
//! nodes and the process.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arena_engine::{Engine, EventCounts, NodeMetrics};
use arena_model::Status;
use arena_store::SessionFilter;
use parking_lot::{Mutex, RwLock};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use crate::connection::tls::Certificates;
use crate::error::RefusalCode;
use crate::limits::{Connections, Ledger, LedgerUse, free_bytes};

/// Upper bounds of the buckets of request durations, in seconds: from a fast read to a long poll.
const BUCKETS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 5.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StrategyLabels {
    strategy: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StrategyErrorLabels {
    strategy: &'static str,
    error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: String,
}

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter<u64, AtomicU64>>,
    seconds: Family<RouteLabels, Histogram>,
    /// The metrics of each route that has had a response.
    routes: RwLock<HashMap<String, Arc<RouteMetrics>>>,
    /// Number of open event streams.
    pub(crate) subscribers: Gauge,
    pub(crate) connections: Gauge,
    /// Number of connections refused because a limit of connections was reached.
    pub(crate) refused_connections: Counter<u64, AtomicU64>,
    /// Number of requests refused because of a limit, by the error's code.
    refusals: Family<CodeLabels, Counter<u64, AtomicU64>>,
    /// Number of requests in progress, including long polls.
    pub(crate) in_flight: Gauge,
    /// Number of the log's leaves that the checkpoint covers.
    pub(crate) log_leaves: Gauge,
    /// Number of sessions that this node has archived.
    pub(crate) archived_sessions: Counter<u64, AtomicU64>,
    /// Number of endings that a scripted strategy has still to process.
    strategies_behind: Family<StrategyLabels, Gauge>,
    /// 1 for the error of each scripted strategy that can't count its next game.
    strategy_errors: Family<StrategyErrorLabels, Gauge>,
    /// The errors in `strategy_errors`.
    failing_strategies: Mutex<HashMap<&'static str, String>>,
}

/// The metrics of one route. A response finds them without making labels.
struct RouteMetrics {
    seconds: Histogram,
    counters: RwLock<Vec<ResponseCounter>>,
}

/// The number of a route's responses with a method and a status.
struct ResponseCounter {
    method: &'static str,
    status: u16,
    count: Counter<u64, AtomicU64>,
}

/// A guard that increments a gauge until it is dropped.
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    pub(crate) fn by(gauge: &Gauge) -> GaugeGuard {
        gauge.inc();
        GaugeGuard(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new(
        engine: Engine,
        open: Arc<Connections>,
        ledger: Arc<Ledger>,
        data: &Path,
        certificates: Option<Arc<Certificates>>,
    ) -> Metrics {
        let mut all = Registry::default();
        // The names of these metrics are the same for all programs.
        collect(&mut all, write_process);
        let registry = all.sub_registry_with_prefix("arena");
        let requests = register(registry, "http_requests", "Responses by route, method and status");
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let help = "Time to the first byte of the response, in seconds";
        registry.register("http_request_seconds", help, seconds.clone());
        let subscribers = register(registry, "stream_subscribers", "Open event streams");
        let connections = register(registry, "connections", "Open connections");
        let in_flight = register(registry, "http_in_flight", "Requests in progress");
        let refused_connections = register(registry, "refused_connections", "Connections refused because of the limit");
        let log_leaves = register(registry, "log_leaves", "Entries of the log that its checkpoint covers");
        let archived_sessions = register(registry, "archived_sessions", "Sessions archived by this node");
        let help = "Endings that a scripted strategy has still to process";
        let strategies_behind = register(registry, "strategy_behind", help);
        let help = "1, with the error of a scripted strategy that cannot count its next game";
        let strategy_errors = register(registry, "strategy_error", help);
        // Prometheus's own format has no type for information.
        let build: Family<VersionLabels, Gauge> =
            register(registry, "build_info", "1, with the version of the program");
        build.get_or_create(&VersionLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        let refusals = register(registry, "refusals", "Requests refused because of a limit, by the error's code");
        register_writers(registry, engine, open, ledger, data, certificates);
        Metrics {
            registry: all,
            requests,
            seconds,
            routes: RwLock::default(),
            subscribers,
            connections,
            refused_connections,
            refusals,
            in_flight,
            log_leaves,
            archived_sessions,
            strategies_behind,
            strategy_errors,
            failing_strategies: Mutex::default(),
        }
    }

    /// Shows the state of a scripted strategy.
    pub(crate) fn show_strategy(&self, strategy: &'static str, behind: u64, error: Option<&str>) {
        let behind = i64::try_from(behind).unwrap_or(i64::MAX);
        self.strategies_behind.get_or_create(&StrategyLabels { strategy }).set(behind);
        let mut failing = self.failing_strategies.lock();
        if failing.get(strategy).map(String::as_str) == error {
            return;
        }
        if let Some(error) = failing.remove(strategy) {
            self.strategy_errors.remove(&StrategyErrorLabels { strategy, error });
        }
        if let Some(error) = error.map(str::to_owned) {
            self.strategy_errors.get_or_create(&StrategyErrorLabels { strategy, error: error.clone() }).set(1);
            failing.insert(strategy, error);
        }
    }

    /// Removes the metrics of a strategy that this node doesn't count.
    pub(crate) fn forget_strategy(&self, strategy: &'static str) {
        self.strategies_behind.remove(&StrategyLabels { strategy });
        if let Some(error) = self.failing_strategies.lock().remove(strategy) {
            self.strategy_errors.remove(&StrategyErrorLabels { strategy, error });
        }
    }

    /// Counts a response. `method` is one of a fixed list, so that clients can't create any number of counters.
    pub(crate) fn answered(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let known = self.routes.read().get(route).cloned();
        let metrics = known.unwrap_or_else(|| {
            let seconds = self.seconds.get_or_create(&RouteLabels { route: route.to_owned() }).clone();
            let metrics = RouteMetrics { seconds, counters: RwLock::default() };
            Arc::clone(self.routes.write().entry(route.to_owned()).or_insert_with(|| Arc::new(metrics)))
        });
        metrics.seconds.observe(took.as_secs_f64());
        let is_counted = {
            let counters = metrics.counters.read();
            let counter = counters.iter().find(|counter| counter.method == method && counter.status == status);
            counter.map(|counter| counter.count.inc()).is_some()
        };
        if !is_counted {
            let labels = RequestLabels { route: route.to_owned(), method: method.to_owned(), status };
            let count = self.requests.get_or_create(&labels).clone();
            count.inc();
            metrics.counters.write().push(ResponseCounter { method, status, count });
        }
    }

    /// Counts a request that was refused because of a limit. The error has no code if the server is stopping.
    pub(crate) fn refused(&self, code: Option<&RefusalCode>) {
        if let Some(RefusalCode(code)) = code {
            self.refusals.get_or_create(&CodeLabels { code: code.clone() }).inc();
        }
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Converts OpenMetrics to Prometheus's older format, in which descriptions of counters have the suffix `_total` too.
pub(crate) fn to_plain(text: &str) -> String {
    let describes = |line: &str| {
        ["# HELP ", "# TYPE "]
            .iter()
            .find_map(|start| line.strip_prefix(start)?.split_once(' '))
            .map(|(name, _)| name.to_owned())
    };
    let is_counter = |line: &&str| line.starts_with("# TYPE ") && line.ends_with(" counter");
    let counters: HashSet<String> = text.lines().filter(is_counter).filter_map(describes).collect();
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF") {
        match describes(line).filter(|name| counters.contains(name)) {
            Some(name) => plain.push_str(&line.replacen(&name, &format!("{name}_total"), 1)),
            None => plain.push_str(line),
        }
        plain.push('\n');
    }
    plain
}

/// Registers a metric, and returns it.
fn register<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// A function that writes metrics at each request for them.
struct MetricWriter<F>(F);

impl<F> fmt::Debug for MetricWriter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricWriter")
    }
}

impl<F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static> Collector for MetricWriter<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut encoder)
    }
}

/// Registers the metrics that are read at each request for them.
fn register_writers(
    registry: &mut Registry,
    engine: Engine,
    open: Arc<Connections>,
    ledger: Arc<Ledger>,
    data: &Path,
    certificates: Option<Arc<Certificates>>,
) {
    collect(registry, move |encoder| {
        let help = "Memory held by large responses and requests of slow clients, in bytes";
        write(encoder, "waiting_bytes", help, &ConstGauge::new(open.memory().held()))
    });
    collect(registry, move |encoder| write_budgets(encoder, &ledger));
    let data = data.to_owned();
    collect(registry, move |encoder| {
        let Some(free) = free_bytes(&data) else { return Ok(()) };
        let help = "Free space on the disk of the data folder, in bytes";
        write(encoder, "disk_free_bytes", help, &ConstGauge::new(free))
    });
    collect(registry, move |encoder| write_sessions(encoder, &engine));
    if let Some(certificates) = certificates {
        collect(registry, move |encoder| {
            let help = "End of the validity of the public address's certificate, in seconds of Unix time";
            write(encoder, "tls_certificate_expiry_seconds", help, &ConstGauge::new(certificates.expires()))
        });
    }
}

fn collect(registry: &mut Registry, write: impl Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static) {
    registry.register_collector(Box::new(MetricWriter(write)));
}

/// Writes a metric without labels.
fn write(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn write_budgets(encoder: &mut DescriptorEncoder<'_>, ledger: &Ledger) -> fmt::Result {
    let used = ledger.uses().into_iter().fold(LedgerUse::default(), |all, (_, used)| all.plus(used));
    let help =
        "Use of a budget by all addresses: bytes stored in a day, milliseconds of computing, streams and sessions";
    let mut family = encoder.encode_descriptor("budget_used", help, None, MetricType::Gauge)?;
    for (budget, amount) in used.by_budget() {
        ConstGauge::new(amount).encode(family.encode_family(&[("budget", budget)])?)?;
    }
    Ok(())
}

/// Writes the process's CPU time, memory and open files.
fn write_process(encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    // Without `/proc`, the metrics are missing.
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return Ok(()) };
    // The fields after the program's name, which may contain spaces: the first is field 3 of proc(5).
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    let ticks = clock_ticks_per_second() as f64;
    let cpu = ConstCounter::new((field(14) + field(15)) / ticks);
    write(encoder, "process_cpu_seconds", "CPU time of the process, in seconds", &cpu)?;
    let mut gauge = |name: &str, help: &str, value: f64| write(encoder, name, help, &ConstGauge::new(value));
    let resident = field(24) * page_size() as f64;
    gauge("process_resident_memory_bytes", "Memory of the process, in bytes", resident)?;
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        gauge("process_open_fds", "Open files of the process", files.count() as f64)?;
    }
    if let Some(files) = getrlimit(Resource::Nofile).current {
        gauge("process_max_fds", "Maximum number of open files of the process", files as f64)?;
    }
    let system = fs::read_to_string("/proc/stat").unwrap_or_default();
    let boot = system.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok());
    if let Some(boot) = boot {
        let start = boot + field(22) / ticks;
        gauge("process_start_time_seconds", "Start of the process, in seconds of Unix time", start)?;
    }
    Ok(())
}

/// Writes metrics about sessions, the store's size and nodes.
fn write_sessions(encoder: &mut DescriptorEncoder<'_>, engine: &Engine) -> fmt::Result {
    let mut family = encoder.encode_descriptor("sessions", "Listed sessions in the store", None, MetricType::Gauge)?;
    for challenge in engine.challenges().keys() {
        for status in Status::ALL {
            let filter = SessionFilter { challenge: Some(challenge.clone()), status: Some(status) };
            let labels = [("type", challenge.as_str()), ("status", status.as_str())];
            ConstGauge::new(engine.count_sessions(&filter)).encode(family.encode_family(&labels)?)?;
        }
    }
    let bytes = ConstGauge::new(engine.store_bytes());
    write(encoder, "store_bytes", "Size of the store on disk, in bytes", &bytes)?;
    let Some(node_metrics) = engine.node_metrics() else { return Ok(()) };
    let NodeMetrics { checks, conflicts, clock_behind_ms, events } = node_metrics;
    let behind = ConstGauge::new(clock_behind_ms as f64 / 1000.0);
    let help = "Delay of this machine's clock behind the database's, in seconds";
    write(encoder, "clock_behind_seconds", help, &behind)?;
    let mut counts = vec![
        ("row_checks", "Queries for rows that other nodes may have changed", checks),
        ("conflicts", "Transitions retried because another node committed first", conflicts),
    ];
    if let Some(EventCounts { connected, sent, received }) = events {
        let connected = ConstGauge::new(i64::from(connected));
        write(encoder, "nats_connected", "1 if connected to NATS, 0 if not", &connected)?;
        counts.push(("events_sent", "Events sent to other nodes", sent));
        counts.push(("events_received", "Events received from other nodes", received));
    }
    for (name, help, count) in counts {
        write(encoder, name, help, &ConstCounter::new(count))?;
    }
    Ok(())
}
