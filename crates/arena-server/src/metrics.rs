//! Metrics for Prometheus: requests by route with durations, sessions by status, streams, connections, memory, disk,
//! nodes and the process.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arena_engine::{Engine, EventCounts, NodeMetrics};
use arena_model::Status;
use arena_store::SessionFilter;
use parking_lot::{Mutex, RwLock};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use crate::connections::Connections;
use crate::disk::free_bytes;
use crate::error::RefusalCode;
use crate::ledger::{Ledger, LedgerUse};
use crate::tls::Certificates;

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
        all.register_collector(Box::new(ProcessCollector));
        let registry = all.sub_registry_with_prefix("arena");
        let requests = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let subscribers = Gauge::default();
        let (connections, in_flight) = (Gauge::default(), Gauge::default());
        let refused_connections = Counter::default();
        registry.register("http_requests", "Responses by route, method and status", requests.clone());
        registry.register(
            "http_request_seconds",
            "Time to the first byte of the response, in seconds",
            seconds.clone(),
        );
        registry.register("stream_subscribers", "Open event streams", subscribers.clone());
        registry.register("connections", "Open connections", connections.clone());
        registry.register("http_in_flight", "Requests in progress", in_flight.clone());
        let refused = "Connections refused because of the limit";
        registry.register("refused_connections", refused, refused_connections.clone());
        let log_leaves = Gauge::default();
        registry.register("log_leaves", "Entries of the log that its checkpoint covers", log_leaves.clone());
        let archived_sessions = Counter::default();
        registry.register("archived_sessions", "Sessions archived by this node", archived_sessions.clone());
        let strategies_behind = Family::<StrategyLabels, Gauge>::default();
        let behind = "Endings that a scripted strategy has still to process";
        registry.register("strategy_behind", behind, strategies_behind.clone());
        let strategy_errors = Family::<StrategyErrorLabels, Gauge>::default();
        let failing = "1, with the error of a scripted strategy that cannot count its next game";
        registry.register("strategy_error", failing, strategy_errors.clone());
        // Prometheus's own format has no type for information.
        let build = Family::<VersionLabels, Gauge>::default();
        build.get_or_create(&VersionLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "1, with the version of the program", build);
        let refusals = Family::default();
        registry.register("refusals", "Requests refused because of a limit, by the error's code", refusals.clone());
        registry.register_collector(Box::new(Waiting(open)));
        registry.register_collector(Box::new(BudgetCollector(ledger)));
        registry.register_collector(Box::new(DiskCollector(data.to_owned())));
        registry.register_collector(Box::new(SessionCollector(engine)));
        if let Some(certificates) = certificates {
            registry.register_collector(Box::new(CertificateCollector(certificates)));
        }
        let routes = RwLock::default();
        Metrics {
            registry: all,
            requests,
            seconds,
            routes,
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

    /// Removes a scripted strategy, which another node counts.
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
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
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

/// A collector of the memory that the server holds for slow clients.
#[derive(Debug)]
struct Waiting(Arc<Connections>);

impl Collector for Waiting {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bytes = ConstGauge::new(i64::try_from(self.0.memory().held()).unwrap_or(i64::MAX));
        let help = "Memory held by large responses and requests of slow clients, in bytes";
        bytes.encode(encoder.encode_descriptor("waiting_bytes", help, None, bytes.metric_type())?)
    }
}

#[derive(Debug)]
struct BudgetCollector(Arc<Ledger>);

impl Collector for BudgetCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let used = self.0.uses().into_iter().fold(LedgerUse::default(), |all, (_, used)| all.plus(used));
        let gauge = ConstGauge::<i64>::new(0);
        let help =
            "Use of a budget by all addresses: bytes stored in a day, milliseconds of computing, streams and sessions";
        let mut family = encoder.encode_descriptor("budget_used", help, None, EncodeMetric::metric_type(&gauge))?;
        for (budget, amount) in used.by_budget() {
            let gauge = ConstGauge::new(i64::try_from(amount).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&[("budget", budget)])?)?;
        }
        Ok(())
    }
}

/// A collector of the free space on the disk of the data folder.
#[derive(Debug)]
struct DiskCollector(PathBuf);

impl Collector for DiskCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(free) = free_bytes(&self.0) else { return Ok(()) };
        let bytes = ConstGauge::new(i64::try_from(free).unwrap_or(i64::MAX));
        let help = "Free space on the disk of the data folder, in bytes";
        bytes.encode(encoder.encode_descriptor("disk_free_bytes", help, None, bytes.metric_type())?)
    }
}

/// A collector of the end of the certificate's validity.
#[derive(Debug)]
struct CertificateCollector(Arc<Certificates>);

impl Collector for CertificateCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let end = ConstGauge::new(i64::try_from(self.0.expires()).unwrap_or(i64::MAX));
        let help = "End of the validity of the public address's certificate, in seconds of Unix time";
        end.encode(encoder.encode_descriptor("tls_certificate_expiry_seconds", help, None, end.metric_type())?)
    }
}

/// A collector of the process's CPU time, memory and open files.
#[derive(Debug)]
struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        // Without `/proc`, the metrics are missing.
        let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return Ok(()) };
        // The fields after the program's name, which may contain spaces: the first is field 3 of proc(5).
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let field =
            |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        let ticks = clock_ticks_per_second() as f64;
        let cpu = ConstCounter::new((field(14) + field(15)) / ticks);
        let help = "CPU time of the process, in seconds";
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, cpu.metric_type())?)?;
        let mut gauge = |name: &str, help: &str, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
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
}

/// A collector of metrics about sessions, the store's size and nodes.
struct SessionCollector(Engine);

impl std::fmt::Debug for SessionCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionCollector")
    }
}

impl Collector for SessionCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::<i64>::new(0);
        let mut family = encoder.encode_descriptor(
            "sessions",
            "Listed sessions in the store",
            None,
            EncodeMetric::metric_type(&gauge),
        )?;
        for challenge in self.0.challenges().keys() {
            for status in Status::ALL {
                let filter = SessionFilter { challenge: Some(challenge.clone()), status: Some(status) };
                let count = i64::try_from(self.0.count_sessions(&filter)).unwrap_or(i64::MAX);
                let labels = [("type", challenge.as_str()), ("status", status.as_str())];
                ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let bytes = ConstGauge::new(i64::try_from(self.0.store_bytes()).unwrap_or(i64::MAX));
        let described = encoder.encode_descriptor(
            "store_bytes",
            "Size of the store on disk, in bytes",
            None,
            bytes.metric_type(),
        )?;
        bytes.encode(described)?;
        let Some(node_metrics) = self.0.node_metrics() else { return Ok(()) };
        let NodeMetrics { checks, conflicts, clock_behind_ms, events } = node_metrics;
        let behind = ConstGauge::new(clock_behind_ms as f64 / 1000.0);
        let help = "Delay of this machine's clock behind the database's, in seconds";
        let described = encoder.encode_descriptor("clock_behind_seconds", help, None, behind.metric_type())?;
        behind.encode(described)?;
        let mut counts = vec![
            ("row_checks", "Queries for rows that other nodes may have changed", checks),
            ("conflicts", "Transitions retried because another node committed first", conflicts),
        ];
        if let Some(EventCounts { connected, sent, received }) = events {
            let connected = ConstGauge::new(i64::from(connected));
            let help = "1 if connected to NATS, 0 if not";
            let described = encoder.encode_descriptor("nats_connected", help, None, connected.metric_type())?;
            connected.encode(described)?;
            counts.push(("events_sent", "Events sent to other nodes", sent));
            counts.push(("events_received", "Events received from other nodes", received));
        }
        for (name, help, count) in counts {
            let count = ConstCounter::new(count);
            let described = encoder.encode_descriptor(name, help, None, count.metric_type())?;
            count.encode(described)?;
        }
        Ok(())
    }
}
