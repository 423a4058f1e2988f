//! Pages of reference: error codes and metrics, which are generated, and settings. To update them, run
//! `UPDATE_EXPECT=1 cargo test -p arena-server --test http pages_of_reference`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use arena_match::Launcher;
use arena_server::Settings;
use arena_testkit::{Host, known_secret};
use expect_test::expect_file;

/// The repair of each error: codes, and what to do.
const REPAIRS: [(&str, &str); 49] = [
    ("AGENT_IN_USE", "Wait for the end of its tournaments, or stop them"),
    ("ALREADY_MATCHED", "Read the ticket: it has your invite"),
    ("ARCHIVE_UNAVAILABLE", "Host: check the archive's folder; restore a changed file from a backup"),
    ("AUTHENTICATION_REQUIRED", "Send the key that the route needs as `Authorization: Bearer KEY`"),
    ("BANNED", "Ask the contact in the footer of the pages"),
    ("BODY_INCOMPLETE REQUEST_TIMEOUT", "Send again; check the connection"),
    ("BODY_TOO_LARGE MESSAGE_TOO_LARGE", "Send less; the limits are in `/api/metadata` and the settings"),
    ("CHALLENGE_FAILED", "Report it to the challenge's author; the server's log has the line of the script"),
    ("CHANNEL_FULL CHAT_FULL", "End the game by its actions; chat is over"),
    ("COMPUTING_BUDGET_USED RATE_LIMITED STORAGE_BUDGET_USED", "Wait for the seconds in `Retry-After`"),
    (
        "CONTENDED LOG_NOT_READY RESTARTING SERVER_BUSY SIGNATURES_BUSY UPLOADS_BUSY TOURNAMENT_RUNNING",
        "Repeat after a second",
    ),
    ("DISK_ALMOST_FULL", "Host: free space, or lower `disk_reserve_bytes`"),
    ("FORBIDDEN_SENDER", "Send as your own seat"),
    ("IDEMPOTENCY_KEY_REUSED", "Use a new key for each new request"),
    ("INTERNAL", "Repeat once; then report it with the `X-Request-Id` of the answer"),
    ("INVALID_AGENT", "Run `arena agent check` with the agent, and repair what it names"),
    ("INVALID_HOST", "Send one `Host` header; in a proxy, pass it on"),
    ("INVALID_IDEMPOTENCY_KEY", "Use a random UUID"),
    (
        "INVALID_FIELD MISSING_FIELD INVALID_JSON INVALID_LIMIT INVALID_QUERY INVALID_PATH INVALID_SORT INVALID_WAIT INVALID_LAST_EVENT_ID TOO_MANY_IDS SESSION_MISMATCH",
        "Correct the request; `error` names the part, `/docs/api` all fields",
    ),
    ("INVALID_MCP_REQUEST NOT_ACCEPTABLE", "Use a client of MCP with Streamable HTTP"),
    ("INVALID_OPTIONS", "Compare with `arena challenges metadata NAME`"),
    ("INVALID_SIGNATURE", "Check the signed text and the key; `arena identity new` makes one"),
    ("SIGNATURE_USED TIMESTAMP_EXPIRED", "Sign again with the present time; check the clock"),
    ("INVALID_TOURNAMENT", "Compare with the limits in `/api/games`"),
    ("INVALID_URL", "Give a public `https://` address"),
    ("INVITE_ALREADY_USED", "Take another invite, or continue with `arena play --from INVITE`"),
    ("LADDERS_OFF UPLOADS_OFF URLS_OFF", "Host: change `[tournaments]` in the settings"),
    (
        "AGENT_NOT_FOUND STRATEGY_NOT_FOUND BAN_NOT_FOUND BOARD_NOT_FOUND CHALLENGE_NOT_FOUND CHANNEL_NOT_FOUND INVALID_CHANNEL INVITE_NOT_FOUND LADDER_NOT_FOUND LEAF_NOT_FOUND MATCH_NOT_FOUND MESSAGE_NOT_FOUND PLAYER_NOT_FOUND RECIPIENT_NOT_FOUND SEASON_NOT_FOUND TILE_NOT_FOUND TOURNAMENT_NOT_FOUND USER_NOT_FOUND",
        "Check the id and the server's address; the thing may have been removed",
    ),
    ("LOG_NOT_FOUND REPLAY_NOT_FOUND", "Wait for the end of the tournament; `keep_replays` must be on"),
    ("NO_ARCHIVE", "Host: set `folder` in `[retention]`"),
    ("NO_SANDBOX", "Host: allow user namespaces, or play on workers"),
    ("ORIGIN_NOT_ALLOWED", "Host: name the page in `allowed_origins`"),
    ("QUEUE_FULL TOO_MANY_AGENTS TOO_MANY_TOURNAMENTS", "Try later; hosts can raise the limit"),
    ("RATED_GAME", "Finish the game, or ask the host"),
    ("RECORD_TOO_LONG", "The game has no record"),
    ("SCRIPT_MISSING", "Host: give the server the folder of the challenge again"),
    ("SELF_PLAY", "Play with another key"),
    ("SESSION_DAMAGED TOURNAMENT_DAMAGED", "Host: read the log, restore a backup"),
    ("SESSION_ENDED", "Read the scores; create another session"),
    ("SESSION_NOT_ENDED TOURNAMENT_NOT_OVER", "Wait for the end"),
    ("STOPPING", "Connect to another node, or wait for the start"),
    ("STORE_UNAVAILABLE", "Repeat with the same `Idempotency-Key`; host: check the database"),
    ("TICKET_NOT_FOUND", "Join the queue again, and poll within 15 seconds"),
    (
        "TOO_MANY_OWN_AGENTS TOO_MANY_OWN_TOURNAMENTS TOO_MANY_SESSIONS TOO_MANY_STREAMS TOO_MANY_TICKETS",
        "End or close one of yours first",
    ),
    ("UNKNOWN_CHALLENGE UNKNOWN_GAME", "Choose one of `arena challenges metadata`, or of `/api/games`"),
    ("UNKNOWN_METHOD", "Choose a method of `arena challenges metadata NAME`"),
    ("UNKNOWN_STRATEGY", "Choose a strategy of `/api/scoring/NAME`"),
    ("UNSUPPORTED_MEDIA_TYPE", "Send `Content-Type: application/json`"),
    ("USER_PLAYS", "Wait for the end of its sessions, or remove them"),
];

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
        // Challenges have codes of their own.
        if code == "…" {
            continue;
        }
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
may change. The code is for programs and doesn't change. Challenges add codes of their own, which their
descriptions list.

This page is generated from `/openapi.json`.

| code | status | meaning | what to do | sent by |
|---|---|---|---|---|
"
    .to_owned();
    let mut repairs = BTreeMap::new();
    for (names, repair) in REPAIRS {
        for name in names.split(' ') {
            assert!(codes.contains_key(name), "{name} isn't an error code");
            assert!(repairs.insert(name, repair).is_none(), "{name} has two repairs");
        }
    }
    for (name, code) in codes {
        let repair = repairs.get(&*name).unwrap_or_else(|| panic!("{name} has no repair in `REPAIRS`"));
        let statuses: Vec<String> = code.statuses.into_iter().collect();
        let operations = match code.operations.len() {
            many @ 4.. => format!("{many} operations"),
            _ => code.operations.iter().map(|operation| format!("`{operation}`")).collect::<Vec<_>>().join(", "),
        };
        let meaning = code.meanings.join(" ").replace('|', "\\|");
        writeln!(page, "| `{name}` | {} | {meaning} | {repair}. | {operations} |", statuses.join(", ")).unwrap();
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
