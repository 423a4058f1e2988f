//! Pages of reference: error codes and metrics, which are generated, and settings. To update them, run
//! `UPDATE_EXPECT=1 cargo test -p arena-server --test http pages_of_reference`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use arena_match::Launcher;
use arena_server::Settings;
use arena_testkit::{Host, known_secret};
use expect_test::expect_file;

/// Statuses, meanings and operations of one error code.
#[derive(Default)]
struct Code {
    statuses: BTreeSet<String>,
    meanings: Vec<String>,
    operations: BTreeSet<String>,
}

/// Adds the codes in a response's description, one per line: "- `CODE`: meaning."
fn add_codes(codes: &mut BTreeMap<String, Code>, operation: &str, status: &str, description: &str) {
    for line in description.lines() {
        let Some((code, meaning)) = line.trim().strip_prefix("- `").and_then(|line| line.split_once("`: ")) else {
            continue;
        };
        let entry = codes.entry(code.to_owned()).or_default();
        entry.statuses.insert(status.to_owned());
        entry.operations.insert(operation.to_owned());
        let mut letters = meaning.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        let sentence: String = first.into_iter().chain(letters).collect();
        if !entry.meanings.contains(&sentence) {
            entry.meanings.push(sentence);
        }
    }
}

#[test]
fn error_codes_are_those_of_the_description() {
    let host = Host::start_with(|settings| {
        settings.auth.enabled = true;
        settings.auth.secret = Some(known_secret());
        settings.tournaments.enabled = true;
        settings.tournaments.launcher = Some(Launcher { program: "/no/such/launcher".into(), args: Vec::new() });
    });
    let document = host.client().get("/openapi.json").ok();
    let mut codes = BTreeMap::new();
    for (path, item) in document["paths"].as_object().expect("paths are an object") {
        for (method, operation) in item.as_object().expect("an item is an object") {
            let Some(responses) = operation["responses"].as_object() else { continue };
            for (status, response) in responses {
                let name = response["$ref"].as_str().and_then(|path| path.rsplit('/').next());
                let response = name.map_or(response, |name| &document["components"]["responses"][name]);
                let description = response["description"].as_str().unwrap_or_default();
                add_codes(&mut codes, &format!("{} {path}", method.to_uppercase()), status, description);
            }
        }
    }
    assert!(codes.len() > 50, "{} codes", codes.len());
    let mut page = "\
# Error codes

A refused request gets a status of 4xx or 5xx and `{\"error\": …, \"code\": …}`. The sentence in `error` is for people and
may change. The code is for programs and doesn't change. Operators of challenges add codes of their own, which the
challenge's description lists.

This page is generated from `/openapi.json`.

| code | status | meaning | sent by |
|---|---|---|---|
"
    .to_owned();
    for (name, code) in codes {
        let statuses: Vec<String> = code.statuses.into_iter().collect();
        let operations = match code.operations.len() {
            many @ 4.. => format!("{many} operations"),
            _ => code.operations.iter().map(|operation| format!("`{operation}`")).collect::<Vec<_>>().join(", "),
        };
        let meaning = code.meanings.join(" ").replace('|', "\\|");
        writeln!(page, "| `{name}` | {} | {meaning} | {operations} |", statuses.join(", ")).unwrap();
    }
    expect_file!["../../../../docs/reference/error-codes.md"].assert_eq(&page);
}

#[test]
fn metrics_are_those_of_the_server() {
    let host = Host::start_with(|_| {});
    // Metrics of requests exist only after the first response.
    host.client().get("/health");
    // Refusals have no entry before the first.
    let too_large = "x".repeat(2_000_000);
    assert_eq!(host.client().request("POST", "/api/challenges/psi", &[], too_large.as_bytes()).status, 413);
    let answer = host.client().get("/metrics");
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let mut page = "\
# Metrics

`GET /metrics` answers in the text format of Prometheus. Counters carry the suffix `_total`; histograms have `_bucket`,
`_sum` and `_count`. A server on a shared database also has `arena_clock_behind_seconds`,
`arena_row_checks` and `arena_conflicts`, and with NATS `arena_nats_connected`, `arena_events_sent` and
`arena_events_received`. A server with TLS has `arena_tls_certificate_expiry_seconds`, and one
with scripted strategies `arena_strategy_behind` and `arena_strategy_error`.

This page is generated from the server's answer.

| metric | type | meaning |
|---|---|---|
"
    .to_owned();
    let mut help = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(text)) => {
                help.insert(name, text.trim_end_matches('.'));
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                writeln!(page, "| `{name}` | {kind} | {} |", help.get(name).copied().unwrap_or_default()).unwrap();
            }
            _ => {}
        }
    }
    expect_file!["../../../../docs/reference/metrics.md"].assert_eq(&page);
}

#[test]
fn settings_page_shows_all_keys_with_their_defaults() {
    let page = include_str!("../../../../docs/settings.md");
    let (_, block) = page.split_once("```toml\n").expect("the page has a block of settings");
    let (block, _) = block.split_once("\n```").expect("the block ends");
    // This section is an example. Without it, all built-in challenges are hosted.
    let (before, example) = block.split_once("[[challenges]]").expect("the block has an example of a challenge");
    let after = &example[example.find("\n[").expect("more sections follow")..];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arena.toml");
    std::fs::write(&file, format!("{before}{after}")).unwrap();
    let (settings, defaults) = (Settings::from_file(&file).unwrap(), Settings::default());
    assert_eq!(settings, defaults);

    // Every field is on the page, or on the page of its section.
    let tournaments = include_str!("../../../../docs/server-tournaments.md");
    let is_named = |key: &str| {
        [block, tournaments].iter().flat_map(|text| text.lines()).any(|line| {
            let line = line.trim_start_matches("# ").trim_start_matches('[');
            line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', ']', '.', '=']))
        })
    };
    let shown = format!("{defaults:#?}");
    let fields = shown.lines().filter_map(|line| line.trim().split_once(": ").map(|(field, _)| field));
    let missing: BTreeSet<&str> = fields
        .filter(|field| field.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .filter(|field| !is_named(field))
        .collect();
    // These fields have other names in the file, or no key at all.
    assert_eq!(missing, BTreeSet::from(["admin_token", "database", "launcher", "nats", "nodes", "secret", "worker"]));
}
