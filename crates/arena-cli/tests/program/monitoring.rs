//! Monitoring of an arena as a host does it: Prometheus accepts the metrics, each alert fires for its cause, the
//! dashboard shows data, and systemd's check of the unit passes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use arena_testkit::{Client, free_port};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, eventually, file, folder};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy").join(name)
}

fn read_example(name: &str) -> String {
    fs::read_to_string(example(name)).unwrap()
}

fn promtool(args: &[&str], input: &str) -> Output {
    let mut tool = Command::new("promtool")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed by `cargo xtask setup monitoring`");
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    tool.wait_with_output().unwrap()
}

/// Values of a series, one a minute, as `promtool test rules` writes them.
type Values = (&'static str, &'static str);

/// The name of an alert, series without its cause, and series with it. After 1,500 minutes only the latter fire it.
const CAUSES: [(&str, &[Values], &[Values]); 14] = [
    ("ArenaDown", &[(r#"up{job="arena"}"#, "1x1500")], &[(r#"up{job="arena"}"#, "1x1470 0x30")]),
    (
        "ArenaStoreRefuses",
        &[(r#"arena_http_requests_total{status="503"}"#, "5x1500")],
        &[(r#"arena_http_requests_total{status="503"}"#, "0+1x1500")],
    ),
    (
        "ArenaRefusals",
        &[(r#"arena_refusals_total{code="RATE_LIMITED"}"#, "0+50x1500")],
        &[(r#"arena_refusals_total{code="RATE_LIMITED"}"#, "0+70x1500")],
    ),
    (
        "ArenaFaults",
        &[(r#"arena_http_requests_total{status="200"}"#, "0+9x1500")],
        &[(r#"arena_http_requests_total{status="500"}"#, "0x1498 1x2")],
    ),
    (
        "ArenaSlowWrites",
        &[
            (r#"arena_http_request_seconds_bucket{route="/api/arena/message",le="0.1"}"#, "0+100x1500"),
            (r#"arena_http_request_seconds_bucket{route="/api/arena/message",le="+Inf"}"#, "0+100x1500"),
            (r#"arena_http_request_seconds_bucket{route="/api/arena/sync",le="0.1"}"#, "0x1500"),
            (r#"arena_http_request_seconds_bucket{route="/api/arena/sync",le="5"}"#, "0+100x1500"),
            (r#"arena_http_request_seconds_bucket{route="/api/arena/sync",le="+Inf"}"#, "0+100x1500"),
        ],
        &[
            (r#"arena_http_request_seconds_bucket{route="/api/arena/message",le="0.1"}"#, "0+90x1500"),
            (r#"arena_http_request_seconds_bucket{route="/api/arena/message",le="5"}"#, "0+100x1500"),
            (r#"arena_http_request_seconds_bucket{route="/api/arena/message",le="+Inf"}"#, "0+100x1500"),
        ],
    ),
    ("ArenaDiskLow", &[("arena_disk_free_bytes", "2e9x1500")], &[("arena_disk_free_bytes", "9e8x1500")]),
    (
        "ArenaDiskFull",
        &[("arena_disk_free_bytes", "1e11x1500"), ("arena_store_bytes", "0+1000000x1500")],
        &[("arena_disk_free_bytes", "1e10x1500"), ("arena_store_bytes", "0+1000000x1500")],
    ),
    ("ArenaNodesApart", &[("arena_nats_connected", "1x1500")], &[("arena_nats_connected", "0x1500")]),
    (
        "ArenaCertificate",
        &[("arena_tls_certificate_expiry_seconds", "800000x1500")],
        &[("arena_tls_certificate_expiry_seconds", "600000x1500")],
    ),
    ("ArenaClock", &[("arena_clock_behind_seconds", "0.5x1500")], &[("arena_clock_behind_seconds", "-2x1500")]),
    ("ArenaOverload", &[("arena_http_in_flight", "900x1500")], &[("arena_http_in_flight", "0+100x1500")]),
    ("ArenaConflicts", &[("arena_conflicts_total", "0+60x1500")], &[("arena_conflicts_total", "0+6000x1500")]),
    (
        "ArenaStuckGames",
        &[(r#"arena_sessions{status="active",type="psi"}"#, "5000x1500")],
        &[(r#"arena_sessions{status="active",type="psi"}"#, "0+1x1500")],
    ),
    (
        "ArenaFiles",
        &[(r#"process_open_fds{job="arena"}"#, "100x1500"), (r#"process_max_fds{job="arena"}"#, "1000x1500")],
        &[(r#"process_open_fds{job="arena"}"#, "950x1500"), (r#"process_max_fds{job="arena"}"#, "1000x1500")],
    ),
];

#[test]
fn each_alert_fires_for_its_cause_only() {
    let alerts = read_example("alerts.yaml");
    let named: BTreeSet<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert_eq!(named, CAUSES.iter().map(|(alert, ..)| *alert).collect());
    // JSON is YAML.
    let test = |alert: &str, series: &[Values], fires: bool| {
        let series: Vec<Value> =
            series.iter().map(|(series, values)| json!({ "series": series, "values": values })).collect();
        let expr = format!("count(ALERTS{{alertname={alert:?}, alertstate=\"firing\"}})");
        let samples = if fires { json!([{ "labels": "{}", "value": 1 }]) } else { json!([]) };
        json!({
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [{ "expr": expr, "eval_time": "1500m", "exp_samples": samples }],
        })
    };
    let both =
        |(alert, without, with): &(&str, &[Values], &[Values])| [test(alert, without, false), test(alert, with, true)];
    let tests: Vec<Value> = CAUSES.iter().flat_map(both).collect();
    // Each evaluation takes time, and the alerts need two in their longest wait, an hour.
    let text = json!({ "rule_files": [example("alerts.yaml")], "evaluation_interval": "10m", "tests": tests });
    let folder = folder();
    let path = file(folder.path(), "tests.yaml", &text.to_string());
    let run = promtool(&["test", "rules", &path], "");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn prometheus_accepts_the_metrics_and_the_configuration() {
    let folder = folder();
    let server = Running::serve(folder.path());
    server.client().get("/api/metadata").ok();
    let metrics = server.client().request("GET", "/metrics", &[("Accept", "text/plain")], b"");
    let run = promtool(&["check", "metrics"], metrics.text());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for name in ["prometheus.yaml", "cluster/prometheus.yaml"] {
        let configuration = example(name);
        let run = promtool(&["check", "config", configuration.to_str().unwrap()], "");
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    }
    for name in ["process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes"] {
        let value =
            metrics.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{name}: {}", metrics.text());
    }
}

/// A Prometheus server. It ends with this value.
struct Prometheus {
    child: Child,
    client: Client,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts a server that reads the metrics of `targets` each second. Its alerts don't wait before they fire.
    fn start(folder: &Path, targets: &[SocketAddr]) -> Prometheus {
        let mut alerts = String::new();
        for line in read_example("alerts.yaml").lines().filter(|line| !line.trim_start().starts_with("for: ")) {
            alerts += &line.replace("[5m]", "[10s]");
            alerts.push('\n');
        }
        file(folder, "alerts.yaml", &alerts);
        let configuration = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": ["alerts.yaml"],
            "scrape_configs": [{ "job_name": "arena", "static_configs": [{ "targets": targets }] }],
        });
        let configuration = file(folder, "prometheus.yaml", &configuration.to_string());
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let child = Command::new("prometheus")
            .arg(format!("--config.file={configuration}"))
            .arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed by `cargo xtask setup monitoring`");
        let prometheus = Prometheus { child, client: Client::new(address) };
        eventually("Prometheus answers", || {
            let ready = prometheus.client.try_request("GET", "/-/ready", &[], b"");
            ready.is_ok_and(|answer| answer.status == 200).then_some(())
        });
        prometheus
    }

    /// Returns the names of the alerts that fire.
    fn firing(&self) -> BTreeSet<String> {
        let found = self.client.get("/api/v1/alerts").ok();
        let alerts = found["data"]["alerts"].as_array().unwrap();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.map(|alert| alert["labels"]["alertname"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the number of series that a query finds.
    fn count(&self, query: &str) -> usize {
        let mut path = "/api/v1/query?query=".to_owned();
        query.bytes().for_each(|byte| write!(path, "%{byte:02X}").unwrap());
        let found = self.client.get(&path).ok();
        found["data"]["result"].as_array().unwrap().len()
    }
}

#[test]
fn prometheus_shows_a_healthy_arena_and_tells_when_it_stops() {
    let folder = folder();
    let data = folder.path().join("data");
    let server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let client = server.client();
    client.create("psi");
    let prometheus = Prometheus::start(folder.path(), &[client.address()]);
    eventually("the metrics are there", || {
        (prometheus.count("rate(arena_http_requests_total[10s])") > 0).then_some(())
    });
    let dashboard: Value = serde_json::from_str(&read_example("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 8);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            // Grafana fills in the variables. A healthy server has refused nothing.
            let query =
                query.replace("$__rate_interval", "10s").replace("$node", ".*").replace("413|429|503|507", "200");
            eventually(&query, || (prometheus.count(&query) > 0).then_some(()));
        }
    }
    // A slow scrape of a busy machine may look like an alert for a moment.
    eventually("no alert fires", || prometheus.firing().is_empty().then_some(()));

    let too_large = json!({ "options": "x".repeat(1_100_000) });
    eventually("refused clients are noticed", || {
        assert_eq!(client.post("/api/challenges/psi", &too_large).refusal(), (413, "BODY_TOO_LARGE".to_owned()));
        prometheus.firing().contains("ArenaRefusals").then_some(())
    });

    // A server with a report of lost commits isn't ready.
    fs::write(data.join("arena.lost"), "a damaged log").unwrap();
    eventually("refusals are noticed", || {
        assert_eq!(client.get("/ready").status, 503);
        prometheus.firing().contains("ArenaStoreRefuses").then_some(())
    });
    server.signal(Signal::KILL);
    eventually("the end is noticed", || prometheus.firing().contains("ArenaDown").then_some(()));
}

#[test]
fn the_units_for_systemd_are_valid_and_confined() {
    let analyze = |args: &[&str], unit: &str| {
        let run = Command::new("systemd-analyze").args(args).arg(unit).output();
        let run = run.expect("systemd-analyze is installed by `cargo xtask setup monitoring`");
        let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{unit}: {said}");
    };
    for (name, addition) in
        [("arena.service", None), ("arena.service", Some("cluster/shared.conf")), ("arena-worker.service", None)]
    {
        let folder = folder();
        let program = env!("CARGO_BIN_EXE_arena");
        let unit = file(folder.path(), name, &read_example(name).replace("/usr/local/bin/arena", program));
        if let Some(addition) = addition {
            let additions = folder.path().join(format!("{name}.d"));
            fs::create_dir(&additions).unwrap();
            file(&additions, "shared.conf", &read_example(addition));
        }
        analyze(&["--offline=true", "security", "--threshold=30"], &unit);
        analyze(&["verify"], &unit);
    }
}
