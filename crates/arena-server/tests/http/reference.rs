//! Compatibility with clients of other arenas. They rely on the order of an object's keys, on complete lists, and on
//! the first digits of ids.

use std::collections::BTreeSet;

use arena_testkit::{Client, Host};
use serde_json::{Value, json};

/// Returns the keys of the first object with this name in a text, in the order of the text.
#[track_caller]
fn keys(text: &str, name: &str) -> Vec<String> {
    let (_, rest) = text.split_once(&format!("\"{name}\":{{")).unwrap_or_else(|| panic!("no {name} in {text}"));
    let (mut keys, mut depth) = (Vec::new(), 0);
    let mut strings = rest.split('"');
    while let (Some(between), Some(string)) = (strings.next(), strings.next()) {
        depth += between.matches('{').count() as i32 - between.matches('}').count() as i32;
        if depth < 0 {
            break;
        }
        if depth == 0 && !between.contains(':') {
            keys.push(string.to_owned());
        }
    }
    keys
}

#[test]
fn keys_are_read_in_their_order() {
    assert_eq!(keys(r#"{"b":{"z":"y","a":{"x":"w"},"c":1},"d":2}"#, "b"), ["z", "a", "c"]);
    assert!(keys(r#"{"b":{},"d":2}"#, "b").is_empty());
}

/// Plays a game of these users, who join in this order. If `backwards` is true, the invites are used in reverse order.
/// Returns the session's id.
fn play(client: &Client, users: [&str; 2], backwards: bool) -> String {
    let (session, mut invites) = client.create("psi");
    if backwards {
        invites.reverse();
    }
    for (invite, user) in invites.iter().zip(users) {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    for invite in &invites {
        client.act(&session, invite, "guess", "1").ok();
    }
    session
}

#[test]
fn players_are_named_in_the_order_in_which_they_joined() {
    let host = Host::start_with(|settings| settings.admin_token = Some(arena_testkit::known_admin_token()));
    let client = host.client();
    for (users, backwards) in [(["zoe", "ada"], false), (["ada", "zoe"], false), (["zoe", "ada"], true)] {
        let session = play(&client, users, backwards);
        let listed = client.get("/api/challenges?limit=1");
        assert_eq!(listed.json()["challenges"][0]["id"], session);
        let players: Vec<String> =
            serde_json::from_value(listed.json()["challenges"][0]["state"]["players"].take()).expect("names");
        assert_eq!(keys(listed.text(), "playerIdentities"), players);
        assert_eq!(listed.json()["challenges"][0]["state"]["playerIdentities"][&players[0]], users[0]);
        let played = client.get("/api/users/ada/challenges?limit=1");
        assert_eq!(keys(played.text(), "playerIdentities"), players);
        let mut stream = client.stream(&format!("/api/chat/ws/{session}"), None);
        let ended = std::iter::from_fn(|| stream.next_text()).find(|(_, text)| text.contains("\"game_ended\""));
        let (_, ended) = ended.expect("the game has ended");
        assert_eq!(keys(&ended, "playerIdentities"), players);
        assert_eq!(keys(&ended, "profiles"), users);
        let token = format!("Bearer {}", arena_testkit::known_admin_token().reveal());
        let export = client.request("GET", "/api/admin/export", &[("Authorization", &token)], b"");
        let line = export.text().lines().find(|line| line.contains(&session)).expect("its line");
        assert_eq!(keys(line, "playerIdentities"), players);
    }
}

/// Returns the URLs of a `Link` header with their relations.
fn links(header: Option<&str>) -> Vec<(String, String)> {
    let links = header.unwrap_or_default().split(", ").filter(|link| !link.is_empty());
    links
        .map(|link| {
            let (path, relation) = link.split_once(">; rel=").expect("a link");
            (relation.trim_matches('"').to_owned(), path.trim_start_matches('<').to_owned())
        })
        .collect()
}

#[test]
fn lists_without_a_limit_hold_everything_and_with_one_as_much_as_was_asked_for() {
    let host = Host::start();
    let client = host.client();
    let name = |n: usize| format!("user-{n:03}");
    for n in 0..176 {
        play(&client, [&name(2 * n), &name(2 * n + 1)], false);
    }
    let everybody: BTreeSet<String> = (0..352).map(name).collect();
    let rows = |path: &str| -> Vec<String> {
        let answer = client.get(path);
        let mut list = answer.ok();
        if let Some(boards) = list.as_object_mut() {
            list = boards.get_mut("win-rate").expect("a board").take();
        }
        let id = |row: &Value| ["userId", "playerId"].iter().find_map(|key| Some(row[key].as_str()?.to_owned()));
        list.as_array().expect("a list").iter().map(|row| id(row).expect("an id")).collect()
    };
    for path in
        ["/api/users", "/api/v1/users", "/api/scoring", "/api/scoring/psi", "/api/scoring/psi?sort=win-rate:utility"]
    {
        let mark = if path.contains('?') { '&' } else { '?' };
        let all = rows(path);
        assert_eq!(all.len(), 352, "{path}");
        assert_eq!(all.iter().cloned().collect::<BTreeSet<_>>(), everybody, "{path}");
        for whole in ["limit=1000", "limit=352", "limit=0", "limit=many", "limit=-1", "limit=18446744073709551615"] {
            assert_eq!(rows(&format!("{path}{mark}{whole}")), all, "{path} {whole}");
        }
        assert_eq!(rows(&format!("{path}{mark}limit=250")), all[..250], "{path}");
        assert_eq!(rows(&format!("{path}{mark}offset=100")), all[100..], "{path}");
        assert_eq!(rows(&format!("{path}{mark}limit=200&offset=101")), all[101..301], "{path}");
        assert_eq!(rows(&format!("{path}{mark}offset=352")), [""; 0], "{path}");
        assert_eq!(rows(&format!("{path}{mark}offset=18446744073709551615&limit=18446744073709551615")), [""; 0]);
        assert_eq!(client.get(path).header("x-total-count"), Some("352"), "{path}");
        assert_eq!(client.get(path).header("link"), None, "{path}");

        let (mut next, mut read) = (Some(format!("{path}{mark}limit=101")), Vec::new());
        while let Some(page) = next.take() {
            read.extend(rows(&page));
            let answer = client.get(&page);
            assert_eq!(answer.header("x-total-count"), Some("352"));
            next = links(answer.header("link")).into_iter().find(|(name, _)| name == "next").map(|(_, path)| path);
        }
        assert_eq!(read, all, "{path}");
    }
    let names = |path: &str| links(client.get(path).header("link"));
    let link = |name: &str, path: &str| (name.to_owned(), path.to_owned());
    assert_eq!(
        names("/api/scoring/psi?limit=100&strategy=average&offset=150"),
        [
            link("next", "/api/scoring/psi?strategy=average&limit=100&offset=250"),
            link("prev", "/api/scoring/psi?strategy=average&limit=100&offset=50"),
            link("first", "/api/scoring/psi?strategy=average&limit=100&offset=0"),
            link("last", "/api/scoring/psi?strategy=average&limit=100&offset=300"),
        ]
    );
    assert_eq!(names("/api/users?limit=352"), []);
    // CORS exposes these headers to pages of other origins.
    let answer = client.request("GET", "/api/users", &[("Origin", "http://page.example")], b"");
    let exposed = answer.header("access-control-expose-headers").expect("exposed headers");
    assert!(exposed.contains("x-total-count") && exposed.contains("link"), "{exposed}");
    // The boards are in the order of the settings.
    let boards = client.get("/api/scoring/psi?limit=1");
    let at = |name: &str| boards.text().find(&format!("\"{name}\":[")).expect("a board");
    assert!(at("average") < at("win-rate") && at("win-rate") < at("red-team") && at("red-team") < at("consecutive"));
}

#[test]
fn ids_differ_in_their_first_digits() {
    let host = Host::start();
    let client = host.client();
    let created: Vec<(String, Vec<String>)> = (0..50).map(|_| client.create("psi")).collect();
    let sessions: BTreeSet<&str> = created.iter().map(|(session, _)| &session[..8]).collect();
    let invites: BTreeSet<&str> =
        created.iter().flat_map(|(_, invites)| invites).map(|invite| &invite["inv_".len()..][..8]).collect();
    assert_eq!((sessions.len(), invites.len()), (50, 100));
    for (session, invites) in &created {
        for id in [session.as_str()].into_iter().chain(invites.iter().map(|invite| &invite["inv_".len()..])) {
            let parsed = id.parse::<arena_model::SessionId>().expect("a UUID");
            assert_eq!((parsed.0.get_version_num(), parsed.0.get_variant()), (4, uuid::Variant::RFC4122), "{id}");
        }
    }
    let page = client.get("/challenges/psi");
    for session in created.iter().rev().take(5).map(|(session, _)| session) {
        assert!(page.text().contains(&format!("/sessions/{session}")), "{session} can't be distinguished");
    }
}

#[test]
fn a_session_is_described_with_its_own_options() {
    let host = Host::start();
    let client = host.client();
    let options = json!({ "range": [1, 30], "intersectionSize": 2, "setSize": 4 });
    let created = client.post("/api/challenges/psi", &json!({ "options": options })).ok();
    let invite = created["invites"][0].as_str().expect("an invite");
    let own = "6 different whole numbers between 1 and 30";
    let usual = "13 different whole numbers between 100 and 900";
    for path in [format!("/play/{invite}"), format!("/sessions/{}", created["id"].as_str().expect("an id"))] {
        let page = client.get(&path);
        assert!(page.text().contains(own) && !page.text().contains(usual), "{path}");
    }
    let joined = client.join(invite).ok();
    let info = &joined["ChallengeInfo"];
    let prompt = info["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains(own) && prompt.contains("2 of your numbers are in every player's set"), "{prompt}");
    let value = |info: &Value, name: &str| -> Value {
        let mut options = info["options"].as_array().expect("options").iter();
        options.find(|option| option["name"] == name).expect("an option")["default"].clone()
    };
    for (name, chosen) in options.as_object().expect("an object") {
        assert_eq!(&value(info, name), chosen);
    }
    let metadata = client.get("/api/metadata/psi").ok();
    assert!(metadata["prompt"].as_str().expect("a prompt").contains(usual));
    assert_eq!(value(&metadata, "setSize"), 10);

    // Without options, a player gets the same description as the public.
    let (_, invites) = client.create("psi");
    assert_eq!(client.join(&invites[0]).ok()["ChallengeInfo"], metadata);
    let (_, invites) = client.create("ultimatum");
    assert_eq!(client.join(&invites[0]).ok()["ChallengeInfo"], client.get("/api/metadata/ultimatum").ok());
}

#[test]
fn an_empty_name_is_a_missing_one() {
    let host = Host::start();
    let client = host.client();
    for (path, field, rest) in [
        ("/api/invites", "inviteId", json!({})),
        ("/api/arena/join", "invite", json!({})),
        ("/api/arena/message", "challengeId", json!({ "from": "x", "messageType": "guess", "content": "1" })),
        ("/api/chat/send", "channel", json!({ "from": "x", "content": "hello" })),
    ] {
        let mut body = rest;
        body[field] = json!("");
        let empty = client.post(path, &body);
        assert_eq!(empty.refusal(), (400, "MISSING_FIELD".to_owned()), "{path}");
        assert_eq!(empty.json()["error"], format!("{field} is required"), "{path}");
        body.as_object_mut().expect("an object").remove(field);
        assert_eq!(client.post(path, &body).json(), empty.json(), "{path}");
    }
    for path in ["/api/arena/sync?channel=", "/api/chat/sync?channel=", "/api/users/batch?ids="] {
        assert_eq!(client.get(path).refusal(), (400, "MISSING_FIELD".to_owned()), "{path}");
    }
}

#[test]
fn a_session_has_the_name_and_the_type_of_its_challenge() {
    let host = Host::start();
    let client = host.client();
    let created = client.post("/api/challenges/psi", &json!({})).ok();
    let invites = [0, 1].map(|seat| created["invites"][seat].as_str().expect("an invite").to_owned());
    let held = client.get(&format!("/api/invites/{}", invites[1])).ok();
    client.join(&invites[0]).ok();
    let listed = client.get("/api/challenges/psi").ok()["challenges"][0].clone();
    let found = client.get(&format!("/api/players/{}", invites[0])).ok();
    for session in [created, held, listed, found] {
        let names = (&session["name"], &session["challengeType"]);
        assert_eq!(names, (&json!("Private Set Intersection"), &json!("psi")), "{session}");
    }
}
