//! The sample of a cluster in `examples/deploy/cluster`, without containers: the arguments, environments and settings of
//! its services, with folders and addresses of the test.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use arena_testkit::{Balancer, BalancerKind, Client, NatsServer, Postgres, free_port, python};
use serde_json::Value;

use crate::program::{Running, arena, eventually, file, folder};

/// The value of each secret. It is part of URLs.
const SECRET: &str = "everybody-knows-this-24-characters";

/// The names of the nodes. The balancer's configuration has the same names.
const NODES: [&str; 3] = ["node1", "node2", "node3"];

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy").join(name)
}

/// Parses a file in YAML, with anchors and merged maps.
fn parsed(name: &str) -> Value {
    let code = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
    let text = fs::File::open(sample(name)).unwrap();
    let run = Command::new(python(env!("CARGO_TARGET_TMPDIR"))).args(["-c", code]).stdin(text).output().unwrap();
    assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

/// Replaces each `${NAME}`, `${NAME:?message}` by the secret.
fn with_secrets(text: &str) -> String {
    let mut parts = text.split("${");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| all + SECRET + part.split_once('}').unwrap().1)
}

/// Replaces a text that must be there.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old} in {text}");
    text.replace(old, new)
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn environment(service: &Value) -> BTreeMap<String, String> {
    let all = service["environment"].as_object().unwrap();
    all.iter().map(|(name, value)| (name.clone(), with_secrets(value.as_str().unwrap()))).collect()
}

/// Runs the health check of the image, with this server's port.
fn is_healthy(check: &[String], port: u16) -> bool {
    assert_eq!(check[..2], ["CMD", "arena-health"], "{check:?}");
    let run = Command::new("bash").arg(sample("health.sh")).args(&check[2..]).arg(port.to_string()).output().unwrap();
    run.status.success()
}

/// The data of nodes, and the addresses of the services that they use.
struct Surroundings<'test> {
    folder: &'test Path,
    /// The database's address, and the parameters of its URL.
    database: (String, String),
    nats: String,
}

impl Surroundings<'_> {
    /// Starts a node as the compose file does.
    fn start_node(&self, node: &str, service: &Value) -> Running {
        let mut environment = environment(service);
        let (address, parameters) = &self.database;
        let url = &environment["DATABASE_URL"];
        let url = replaced(url, "@db1,db2/arena?", &format!("@{address}?{parameters}&"));
        let url = replaced(&url, SECRET, "open%20sesame");
        let nats = replaced(&environment["NATS_URL"], "@nats", &format!("@{}", self.nats));
        environment.extend([("DATABASE_URL".to_owned(), url), ("NATS_URL".to_owned(), nats)]);
        let mut settings = fs::read_to_string(sample("cluster/arena.toml")).unwrap();
        for (old, new) in [
            ("0.0.0.0:3001", "127.0.0.1:0"),
            ("0.0.0.0:3002", &format!("127.0.0.1:{}", free_port())),
            ("10.0.0.2", "127.0.0.1"),
            ("/srv/arena/", &format!("{}/shared/", self.folder.display())),
        ] {
            settings = replaced(&settings, old, new);
        }
        let settings = file(self.folder, &format!("{node}.toml"), &settings);
        let data = self.folder.join(node);
        let args = words(&service["command"]).into_iter().map(|word| match &*word {
            "/etc/arena/arena.toml" => settings.clone(),
            "/var/lib/arena" => data.to_str().unwrap().to_owned(),
            _ => word,
        });
        let mut command = arena(&[]);
        command.args(args).envs(environment);
        Running::start_command("arena listens on ", command)
    }
}

fn address(node: &Running) -> SocketAddr {
    node.url.strip_prefix("http://").unwrap().parse().unwrap()
}

#[test]
fn the_sample_of_a_cluster_runs() {
    let compose = parsed("cluster/compose.yaml");
    let services = NODES.map(|name| (name, &compose["services"][name]));
    let (postgres, folder) = (Postgres::start(), folder());
    let accounts = fs::read_to_string(sample("cluster/nats.conf")).unwrap();
    let accounts = &accounts[accounts.find("accounts {").unwrap()..];
    let quoted = format!("\"{SECRET}\"");
    let accounts = replaced(&replaced(accounts, "$NODE_PASSWORD", &quoted), "$TOURNAMENT_PASSWORD", &quoted);
    let nats = NatsServer::start_with(&accounts);
    let url = postgres.schema();
    let (_, database) = url.split_once('@').unwrap();
    let (address_of_database, parameters) = database.split_once('?').unwrap();
    let surroundings = Surroundings {
        folder: folder.path(),
        database: (address_of_database.to_owned(), parameters.to_owned()),
        nats: nats.url().strip_prefix("nats://").unwrap().to_owned(),
    };
    fs::create_dir(folder.path().join("shared")).unwrap();
    let surroundings = &surroundings;
    let nodes = thread::scope(|scope| {
        services
            .map(|(name, service)| scope.spawn(move || surroundings.start_node(name, service)))
            .map(|starting| starting.join().expect("a node starts"))
    });
    for (node, (_, service)) in nodes.iter().zip(services) {
        let check = words(&service["healthcheck"]["test"]);
        eventually("the node is healthy", || is_healthy(&check, address(node).port()).then_some(()));
        assert_eq!(node.client().get("/metrics").status, 404, "metrics at the public address");
    }

    let balancer = Balancer::start(BalancerKind::Haproxy, [&nodes[0], &nodes[1], &nodes[2]].map(address));
    let client = Client::new(balancer.address());
    let session = eventually("the balancer has a node", || {
        let answer = client.request("POST", "/api/challenges/psi", &[], b"{}");
        (answer.status == 200).then(|| answer.ok()["id"].as_str().unwrap().to_owned())
    });
    let path = format!("/api/chat/sync?channel={session}");
    for node in &nodes {
        assert_eq!(node.client().get(&path).status, 200);
    }

    let worker = &compose["services"]["worker"];
    let mut url = environment(worker)["ARENA_NATS_URL"].clone();
    url = replaced(&url, "@nats", &format!("@{}", surroundings.nats));
    let args = words(&worker["command"]);
    let mut command = arena(&[]);
    // Containers have a user; tests may run as root.
    command.args(args).arg("--allow-root").env("ARENA_NATS_URL", url).env("TMPDIR", folder.path()).stdin(Stdio::null());
    Running::start_command("worker ", command).stop();
    nodes.into_iter().for_each(drop);
}

#[test]
fn the_files_of_the_sample_agree() {
    let compose = parsed("cluster/compose.yaml");
    let settings = fs::read_to_string(sample("cluster/arena.toml")).unwrap();
    let addresses = NODES.map(|name| {
        let address = &compose["services"][name]["networks"]["default"]["ipv4_address"];
        address.as_str().unwrap().to_owned()
    });
    let balancer = compose["services"]["balancer"]["networks"]["default"]["ipv4_address"].as_str().unwrap();
    assert!(settings.contains(&format!("trusted_proxies = [\"{balancer}\"]")), "{settings}");
    let haproxy = fs::read_to_string(sample("haproxy.cfg")).unwrap();
    for (name, address) in NODES.iter().zip(&addresses) {
        assert!(haproxy.contains(&format!("server {name} {address}:3001")), "{name}");
    }
    let targets = &parsed("cluster/prometheus.yaml")["scrape_configs"][0]["static_configs"][0]["targets"];
    assert_eq!(words(targets), addresses.map(|address| format!("{address}:3002")));
    let hosts = fs::read_to_string(sample("cluster/initdb.sh")).unwrap();
    for name in ["db1", "db2"] {
        let address = compose["services"][name]["networks"]["default"]["ipv4_address"].as_str().unwrap();
        assert!(hosts.contains(address), "{name}");
    }
    // The default of shutdown_ms is 10 s.
    let drain_ms = settings.lines().find_map(|line| line.strip_prefix("drain_ms = ")).unwrap();
    let drain_ms: u64 = drain_ms.split_whitespace().next().unwrap().parse().unwrap();
    for name in NODES {
        let grace = compose["services"][name]["stop_grace_period"].as_str().unwrap();
        let grace_s: u64 = grace.strip_suffix('s').unwrap().parse().unwrap();
        assert!(grace_s * 1000 > drain_ms + 10_000, "{name}: {grace}");
    }
    for (name, service) in compose["services"].as_object().unwrap() {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{name}");
        assert!(service["mem_limit"].is_string() && service["restart"] == "unless-stopped", "{name}");
    }
}
