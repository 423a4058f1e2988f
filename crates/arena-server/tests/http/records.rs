//! Records of sessions and the public log: access, contents, proofs and files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use arena_record::{EventKind, Parsed, ReadLimits};
use arena_server::Settings;
use arena_testkit::{Answer, Client, Host, eventually, known_admin_token};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn start(change: impl FnOnce(&mut Settings)) -> Host {
    Host::start_with(|settings| {
        settings.admin_token = Some(known_admin_token());
        change(settings);
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits")).collect()
}

/// Creates a game of PSI with two users and private chat. Returns its id and invites.
fn begin(client: &Client) -> (String, Vec<String>) {
    let (session, invites) = client.seated_as("psi", ["ada", "bob"]);
    client.chat(&session, &invites[0], "good luck").ok();
    let private = json!({ "channel": session, "from": invites[1], "to": invites[0], "content": "between us" });
    client.post("/api/chat/send", &private).ok();
    (session, invites)
}

fn end(client: &Client, session: &str, invites: &[String]) {
    for invite in invites {
        client.act(session, invite, "guess", "1").ok();
    }
}

fn record_path(session: &str) -> String {
    format!("/api/sessions/{session}/record")
}

fn proof(client: &Client, session: &str, kind: &str) -> Value {
    eventually(kind, || {
        let answer = client.get(&format!("/log/proof/{session}?kind={kind}"));
        (answer.status == 200).then(|| answer.json())
    })
}

/// Returns the lines of a record. Checks the chain and the openings without the code of the program.
fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut lines: Vec<Value> = Vec::new();
    let (mut previous, mut commitments) = (String::new(), BTreeMap::new());
    for text in answer.text().lines() {
        let line: Value = serde_json::from_str(text).expect("JSON");
        if let Some(hash) = line.get("previous") {
            assert_eq!(*hash, previous, "{text}");
        }
        for message in line["messages"].as_array().into_iter().flatten() {
            let name = format!("{}/{}", message["channel"].as_str().expect("a channel"), message["index"]);
            commitments.insert(name, message["content"].clone());
        }
        if line["user"].is_string() {
            commitments.insert(format!("user/{}", line["seat"]), line["user"].clone());
        }
        if let Some(name) = line.get("open").and_then(Value::as_str) {
            let salt = bytes_of(line["salt"].as_str().expect("a salt"));
            let content = line["content"].as_str().expect("a content");
            let committed = Sha256::new().chain_update(salt).chain_update(content).finalize();
            assert_eq!(commitments[name], hex(&committed), "{name}");
        }
        previous = hex(&Sha256::digest(text));
        lines.push(line);
    }
    lines
}

/// Checks a record with the program's own reader.
fn parse(answer: &Answer) -> Parsed {
    let limits = ReadLimits::default();
    arena_record::read(answer.text().as_bytes(), limits).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
}

/// Returns the contents of the record's openings by name.
fn openings(answer: &Answer) -> BTreeMap<String, String> {
    let opened = lines(answer).into_iter().filter(|line| line.get("open").is_some());
    let text = |line: &Value, field: &str| line[field].as_str().expect("a text").to_owned();
    opened.map(|line| (text(&line, "open"), text(&line, "content"))).collect()
}

#[test]
fn strangers_get_a_record_after_the_end_and_players_their_own_view_before() {
    let host = start(|_| {});
    let client = host.client();
    let (session, invites) = begin(&client);
    let (other, others) = begin(&client);
    let path = record_path(&session);
    let refused = (403, "SESSION_NOT_ENDED".to_owned());
    for who in ["", "?from=viewer", "?from=operator", "?from=ada", &format!("?from={}", others[0])] {
        assert_eq!(client.get(&format!("{path}{who}")).refusal(), refused, "{who}");
    }
    assert_eq!(client.get_with("x".repeat(64).as_str(), &path).refusal(), refused);
    let missing = (404, "CHALLENGE_NOT_FOUND".to_owned());
    for unknown in ["00000000-0000-7000-8000-000000000000", "x", "%20"] {
        assert_eq!(client.get(&record_path(unknown)).refusal(), missing, "{unknown}");
    }

    let seen = |seat: usize| openings(&client.get(&format!("{path}?from={}", invites[seat])));
    let views = [seen(0), seen(1)];
    for (seat, view) in views.iter().enumerate() {
        let sets = view.values().filter(|text| text.starts_with("Your private set")).count();
        assert_eq!(sets, 1, "seat {seat} sees its own set: {view:?}");
        assert!(view.values().any(|text| text == "good luck") && view.values().any(|text| text == "between us"));
        assert!(!view.keys().any(|name| name.starts_with("user/")), "users are secret until the end");
    }
    let administrator = || client.get_with(known_admin_token().reveal(), &path);
    let all = openings(&administrator());
    assert!(views.iter().all(|view| view.iter().all(|(name, text)| all.get(name) == Some(text))));
    // All players get the same chain, without the events of others that the API doesn't show them.
    let [own, others_own] = [0, 1].map(|seat: usize| parse(&client.get(&format!("{path}?from={}", invites[seat]))));
    assert!(own.events.iter().all(|event| event.user.is_none()), "it is secret that a player has a user id");
    assert_eq!(own.hash, others_own.hash);
    assert!(own.end.is_none());

    end(&client, &session, &invites);
    let public = client.get(&path);
    assert_eq!(public.header("content-type"), Some("application/x-ndjson"));
    let seen = openings(&public);
    assert!(seen.values().filter(|text| text.starts_with("Your private set")).count() == 2);
    assert!(seen.values().any(|text| text == "good luck") && !seen.values().any(|text| text == "between us"));
    assert_eq!((&*seen["user/0"], &*seen["user/1"]), ("ada", "bob"));
    let parsed = parse(&public);
    assert!(parsed.end.is_some() && parsed.seal.is_some());
    let key = client.get("/.well-known/arena.json").ok()["recordKey"].clone();
    assert_eq!(lines(&public)[0]["recordKey"], key);
    assert_eq!(client.get(&record_path(&other)).refusal(), refused);

    let audit = client.get_with(known_admin_token().reveal(), "/api/admin/audit").ok();
    assert_eq!(audit["entries"][0]["action"], "record");
    assert_eq!(audit["entries"][0]["detail"], json!({ "session": session }));

    // Players don't see the event of an offered invite.
    let (offered, seats) = client.create("psi");
    client.post("/api/arena/join", &json!({ "invite": seats[0], "userId": "ada" })).ok();
    client.post("/api/invites", &json!({ "inviteId": seats[1] })).ok();
    let offers = |record: &Answer| parse(record).events.iter().any(|event| event.kind == EventKind::Announce);
    let path_of_offered = record_path(&offered);
    assert!(!offers(&client.get(&format!("{path_of_offered}?from={}", seats[0]))));
    assert!(offers(&client.get_with(known_admin_token().reveal(), &path_of_offered)));
}

#[test]
fn readers_at_the_same_time_share_no_more_than_their_rights() {
    let host = start(|_| {});
    let client = host.client();
    let (session, invites) = begin(&client);
    for _ in 0..20 {
        client.chat(&session, &invites[0], &"long ".repeat(2000)).ok();
    }
    end(&client, &session, &invites);
    let path = record_path(&session);
    let of_player = format!("{path}?from={}", invites[0]);
    let read = |reader: usize| match reader % 3 {
        0 => client.get(&path),
        1 => client.get(&of_player),
        _ => client.get_with(known_admin_token().reveal(), &path),
    };
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..24).map(|reader| scope.spawn(move || read(reader))).collect();
        readers.into_iter().map(|reader| reader.join().expect("an answer")).collect()
    });
    for (reader, answer) in answers.iter().enumerate() {
        let has_private_chat = openings(answer).values().any(|text| text == "between us");
        assert_eq!(has_private_chat, reader % 3 != 0, "reader {reader}");
        assert_eq!(parse(answer).hash, parse(&answers[0]).hash);
    }
}

#[test]
fn private_chat_is_in_the_record_if_the_arena_reveals_it() {
    let host = start(|settings| settings.sessions.reveal_chat = true);
    let client = host.client();
    let (session, invites) = begin(&client);
    end(&client, &session, &invites);
    assert!(openings(&client.get(&record_path(&session))).values().any(|text| text == "between us"));
}

#[test]
fn a_record_keeps_its_hash_after_late_messages_and_after_moderation() {
    let host = start(|_| {});
    let client = host.client();
    let (session, invites) = begin(&client);
    end(&client, &session, &invites);
    let path = record_path(&session);
    let before = client.get(&path);
    client.chat(&session, &invites[0], "good game").ok();
    client.act(&session, &invites[0], "guess", "1");
    assert_eq!(parse(&client.get(&path)).hash, parse(&before).hash);

    let hide = json!({ "channel": session, "index": 1 });
    client.post_with(known_admin_token().reveal(), "/api/admin/messages/hide", &hide).ok();
    let after = client.get(&path);
    assert_eq!(parse(&after).hash, parse(&before).hash);
    assert!(openings(&before).contains_key("chat/1") && !openings(&after).contains_key("chat/1"));
    assert!(!after.text().contains("good luck"));
}

/// Returns the root of a tree from the path of a leaf, as RFC 9162 verifies it.
fn root_from(leaf: &[u8], n: u64, size: u64, path: &[Value]) -> Vec<u8> {
    let mut root = Sha256::new().chain_update([0]).chain_update(leaf).finalize().to_vec();
    let (mut number, mut last) = (n, size - 1);
    for sibling in path {
        let sibling = bytes_of(sibling.as_str().expect("a hash"));
        let join = |left: &[u8], right: &[u8]| {
            Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().to_vec()
        };
        assert!(last > 0, "the path is too long");
        if number % 2 == 1 || number == last {
            root = join(&sibling, &root);
            while number % 2 == 0 && number > 0 {
                (number, last) = (number >> 1, last >> 1);
            }
        } else {
            root = join(&root, &sibling);
        }
        (number, last) = (number >> 1, last >> 1);
    }
    assert_eq!(last, 0, "the path is too short");
    root
}

/// Returns the third line of a checkpoint: the root, in Base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let number = bytes.iter().chain([&0; 2]).take(3).fold(0usize, |number, byte| number << 8 | usize::from(*byte));
        let digits = [18, 12, 6, 0].map(|shift| char::from(DIGITS[number >> shift & 63]));
        let text: String = digits[..=bytes.len()].iter().collect();
        format!("{text:=<4}")
    };
    bytes.chunks(3).map(group).collect()
}

/// Returns the leaves of the log, from its tiles of entries.
fn leaves(client: &Client, size: u64) -> Vec<Vec<u8>> {
    assert!(size < 256, "the tests have few leaves");
    let bundle = client.get(&format!("/log/tile/entries/000.p/{size}"));
    assert_eq!((bundle.status, bundle.header("cache-control")), (200, Some("public, max-age=31536000, immutable")));
    let mut rest = &bundle.body[..];
    let mut leaves = Vec::new();
    while let [high, low, more @ ..] = rest {
        let (leaf, more) = more.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        leaves.push(leaf.to_vec());
        rest = more;
    }
    leaves
}

#[test]
fn the_log_has_each_game_and_proves_it() {
    let host = start(|_| {});
    let client = host.client();
    let (session, invites) = begin(&client);
    let created = proof(&client, &session, "created");
    assert_eq!(client.get(&format!("/log/proof/{session}")).refusal(), (404, "LEAF_NOT_FOUND".to_owned()));
    end(&client, &session, &invites);
    let ended = proof(&client, &session, "ended");
    let removed = client.create("psi").0;
    proof(&client, &removed, "created");
    client.post_with(known_admin_token().reveal(), &format!("/api/admin/sessions/{removed}/remove"), &json!({})).ok();
    proof(&client, &removed, "removed");

    let checkpoint = client.get("/log/checkpoint");
    assert_eq!(checkpoint.header("cache-control"), Some("public, max-age=1"));
    let head: Vec<&str> = checkpoint.text().lines().collect();
    let keys = client.get("/.well-known/arena.json").ok();
    assert_eq!((keys["log"]["origin"].as_str(), head[3]), (Some(head[0]), ""));
    let size: u64 = head[1].parse().expect("a number");
    let leaves = leaves(&client, size);
    let kinds: Vec<Value> =
        leaves.iter().map(|leaf| serde_json::from_slice::<Value>(leaf).expect("JSON")["leaf"].clone()).collect();
    assert_eq!(kinds, ["key", "created", "ended", "created", "removed"]);
    for proof in [created, ended] {
        let (n, of) = (proof["leaf"].as_u64().expect("a number"), proof["size"].as_u64().expect("a number"));
        let path = proof["path"].as_array().expect("a list");
        let root = root_from(&leaves[usize::try_from(n).expect("small")], n, of, path);
        let signed: Vec<&str> = proof["checkpoint"].as_str().expect("a text").lines().collect();
        assert_eq!((signed[1], signed[2]), (&*of.to_string(), &*base64(&root)));
    }
    let hashes = client.get(&format!("/log/tile/0/000.p/{size}")).body;
    let expected: Vec<u8> =
        leaves.iter().flat_map(|leaf| Sha256::new().chain_update([0]).chain_update(leaf).finalize()).collect();
    assert_eq!(hashes, expected);

    // The record contains its own proof, and the leaf has the hash of the record.
    let answer = client.get(&record_path(&session));
    let parsed = parse(&answer);
    let leaf: Value = serde_json::from_slice(&leaves[2]).expect("JSON");
    assert_eq!((&leaf["record"], &leaf["session"]), (&json!(parsed.hash.to_string()), &json!(session)));
    assert_eq!(parsed.proof.expect("a proof").leaf, 2);
    let metrics = client.get("/metrics");
    assert!(metrics.text().contains(&format!("arena_log_leaves {size}\n")), "{}", metrics.text());
}

#[test]
fn tiles_that_the_log_does_not_have_are_not_found() {
    let host = start(|_| {});
    let client = host.client();
    let (session, _) = begin(&client);
    proof(&client, &session, "created");
    for path in ["0/000", "0/000.p/200", "1/000.p/1", "0/001.p/1", "entries/000", "x/000", "0", "../checkpoint"] {
        let (status, code) = client.get(&format!("/log/tile/{path}")).refusal();
        assert_eq!((status, &*code), (404, "TILE_NOT_FOUND"), "{path}");
    }
    assert_eq!(client.get("/log/tile/0%2F000.p%2F1").status, 200, "clients may encode the slashes");
    assert_eq!(client.get(&format!("/log/proof/{session}?kind=key")).refusal(), (400, "INVALID_FIELD".to_owned()));
}

#[test]
fn an_unlisted_game_has_a_record_and_is_not_in_the_log() {
    let host = start(|_| {});
    let client = host.client();
    let unlisted = client.post("/api/challenges/psi", &json!({ "unlisted": true })).ok();
    let invites: Vec<String> = serde_json::from_value(unlisted["invites"].clone()).expect("invites");
    let session = unlisted["id"].as_str().expect("an id");
    for invite in &invites {
        client.join(invite).ok();
    }
    end(&client, session, &invites);
    assert!(parse(&client.get(&record_path(session))).end.is_some());
    client.post_with(known_admin_token().reveal(), &format!("/api/admin/sessions/{session}/remove"), &json!({})).ok();
    // A later game is in the log, so the sequencer has passed over the unlisted one.
    let (later, _) = begin(&client);
    let size = proof(&client, &later, "created")["size"].as_u64().expect("a number");
    let all = leaves(&client, size).concat();
    assert!(!String::from_utf8_lossy(&all).contains(session), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn without_a_log_records_are_sealed_and_there_are_no_files_of_a_log() {
    let host = start(|settings| settings.records.log = false);
    let client = host.client();
    let (session, invites) = begin(&client);
    end(&client, &session, &invites);
    let parsed = parse(&client.get(&record_path(&session)));
    assert!(parsed.seal.is_some() && parsed.proof.is_none());
    for path in ["/log/checkpoint", "/log/tile/0/000.p/1", "/log/proof/x"] {
        assert_eq!(client.get(path).refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
    assert_eq!(client.get("/.well-known/arena.json").ok().get("log"), None);
}

#[test]
fn keys_are_files_of_their_owner_only() {
    let host = start(|_| {});
    for file in ["record-key", "log-key", "record-salts"] {
        let mode = host.folder().join(file).metadata().expect("the file is there").mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}
