//! Leaderboards, profiles and statistics over HTTP, after scripted games with scores computed by hand.

use std::collections::BTreeSet;

use arena_server::Settings;
use arena_testkit::{Client, Host};
use expect_test::expect_file;
use serde_json::{Value, json};

/// Creates a session and joins both seats as these users. An empty name means an anonymous player.
fn join(client: &Client, users: [&str; 2]) -> (String, Vec<String>) {
    let (session, invites) = client.create("psi");
    for (invite, user) in invites.iter().zip(users) {
        let body =
            if user.is_empty() { json!({ "invite": invite }) } else { json!({ "invite": invite, "userId": user }) };
        client.post("/api/arena/join", &body).ok();
    }
    (session, invites)
}

fn set(client: &Client, session: &str, player: &str) -> Vec<u64> {
    let sync = client.get(&format!("/api/arena/sync?channel={session}&from={player}")).ok();
    let mut texts =
        sync["messages"].as_array().expect("a list").iter().filter_map(|message| message["content"].as_str());
    let text = texts.find(|text| text.starts_with("Your private set")).expect("a player knows its set");
    let numbers = text.split(|char: char| !char.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// A player's guess: the intersection, the intersection with one more number of the opponent, or a wrong number.
#[derive(Clone, Copy)]
enum Play {
    Finds,
    Steals,
    Misses,
}

fn play(client: &Client, users: [&str; 2], plays: [Play; 2]) -> String {
    let (session, invites) = join(client, users);
    let sets = [set(client, &session, &invites[0]), set(client, &session, &invites[1])];
    for (seat, play) in plays.into_iter().enumerate() {
        let (own, other) = (&sets[seat], &sets[1 - seat]);
        let mut guess: Vec<u64> = own.iter().copied().filter(|number| other.contains(number)).collect();
        match play {
            Play::Finds => {}
            Play::Steals => guess.extend(other.iter().find(|number| !own.contains(number))),
            Play::Misses => guess = vec![1],
        }
        let guess: Vec<String> = guess.iter().map(u64::to_string).collect();
        client.act(&session, &invites[seat], "guess", &guess.join(", ")).ok();
    }
    session
}

/// Returns a board's players with games and metrics, in order.
fn board(client: &Client, path: &str, strategy: Option<&str>) -> Vec<String> {
    let mut answer = client.get(path).ok();
    if let Some(strategy) = strategy {
        answer = answer[strategy].take();
    }
    let entries = answer.as_array().expect("a list");
    let line = |entry: &Value| {
        let metrics = entry["metrics"].as_object().expect("metrics");
        let values: Vec<String> =
            metrics.values().map(|value| format!("{:.3}", value.as_f64().expect("a number"))).collect();
        format!("{} {}: {}", entry["playerId"].as_str().expect("a name"), entry["gamesPlayed"], values.join(" "))
    };
    entries.iter().map(line).collect()
}

#[test]
fn strategies_are_listed_with_their_metrics() {
    let host = Host::start();
    let client = host.client();
    let listed = client.get("/api/scoring/strategies").ok();
    assert_eq!(client.get("/api/v1/scoring/strategies").ok(), listed);
    // A strategy scores all challenges, or those whose default settings contain it.
    let scored_by = |name: &str| {
        let asks = |playable: &&arena_games::Playable| playable.kit.scoring.contains(&name);
        let ids: BTreeSet<&str> = arena_games::all().filter(asks).map(|playable| playable.id).collect();
        json!(ids)
    };
    let all = json!(arena_games::challenges().collect::<BTreeSet<_>>());
    let mut output = String::new();
    for strategy in listed.as_array().expect("a list") {
        let [name, challenges] = [&strategy["name"], &strategy["challenges"]];
        let own = name.as_str().map(scored_by);
        let which = if *challenges == all {
            "all"
        } else if Some(challenges) == own.as_ref() {
            "those that ask for it"
        } else {
            "others"
        };
        output += &format!("{name} {} [{which}]\n", strategy["scope"]);
        for metric in strategy["metrics"].as_array().expect("a list") {
            let [key, label, format, direction] = ["key", "label", "format", "direction"].map(|key| &metric[key]);
            output += &format!("  {key} {label} {format} {direction}\n");
        }
    }
    expect_file!["scoring/strategies_are_listed_with_their_metrics.txt"].assert_eq(&output);
    assert_eq!(listed[4]["source"], "average");
    // Every metric of a board's entries is described.
    play(&client, ["ada", "bob"], [Play::Steals, Play::Finds]);
    let keys: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|strategy| strategy["metrics"].as_array().expect("a list"))
        .filter_map(|metric| metric["key"].as_str())
        .collect();
    let boards = client.get("/api/scoring/psi").ok();
    for rows in boards.as_object().expect("boards").values() {
        for key in rows[0]["metrics"].as_object().expect("metrics").keys() {
            assert!(keys.contains(&key.as_str()), "{key}");
        }
    }
}

#[test]
fn a_game_with_options_of_its_own_counts_on_no_board() {
    let host = Host::start();
    let client = host.client();
    // One user plays both seats of a game without a loser.
    let easy = json!({ "options": { "range": [1, 8], "setSize": 1, "intersectionSize": 1 } });
    let created = client.post("/api/challenges/psi", &easy).ok();
    assert_eq!((&created["rated"], &created["board"]), (&json!(false), &Value::Null));
    let session = created["id"].as_str().expect("an id").to_owned();
    let invites: Vec<String> = serde_json::from_value(created["invites"].clone()).expect("invites");
    for (invite, user) in invites.iter().zip(["mallory", "friend"]) {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    for invite in &invites {
        let own = set(&client, &session, invite);
        client.act(&session, invite, "guess", &own[0].to_string()).ok();
    }
    let ended = client.get(&format!("/api/challenges?id={session}")).ok();
    assert!(ended["challenges"].as_array().is_some_and(|list| !list.is_empty()), "{ended}");
    for path in ["/api/scoring", "/api/scoring/psi?strategy=average"] {
        let answer = client.get(path).ok();
        assert!(!answer.to_string().contains("mallory"), "{path}: {answer}");
    }
    assert_eq!(client.get("/api/users/mallory/scores").ok(), json!({ "global": null, "challenges": {} }));
    // The main board exists before its first game.
    let before = client.get("/api/scoring/psi/boards").ok();
    assert_eq!((before.as_array().map(Vec::len), &before[0]["main"]), (Some(1), &json!(true)), "{before}");
    let path = format!("/api/scoring/psi?strategy=average&board={}", before[0]["id"].as_str().expect("an id"));
    assert_eq!(client.get(&path).ok(), json!({ "average": [] }));
    let page = client.get(&format!("/sessions/{session}"));
    assert!(page.text().contains("Unrated"), "the page says so");

    // Games with the arena's options count on the main board, even if the request contains these options.
    play(&client, ["ada", "bob"], [Play::Finds, Play::Misses]);
    let spelled = client.post("/api/challenges/psi", &json!({ "options": created_options(&client) })).ok();
    assert_eq!(spelled["rated"], json!(true));
    let boards = client.get("/api/scoring/psi/boards").ok();
    assert_eq!(boards, before);
    let board = &boards[0];
    assert_eq!((boards.as_array().map(Vec::len), &board["main"]), (Some(1), &json!(true)), "{boards}");
    assert_eq!((&board["id"], &board["rulesVersion"]), (&spelled["board"], &spelled["rulesVersion"]));
    assert_eq!(board["promptSha256"].as_str().map(str::len), Some(64));
    let path = format!("/api/scoring/psi?strategy=average&board={}", board["id"].as_str().expect("an id"));
    assert_eq!(client.get(&path).ok(), client.get("/api/scoring/psi?strategy=average").ok());
    assert_eq!(client.get("/api/scoring/psi?board=0123456789abcdef").status, 404);
    assert_eq!(client.get("/api/scoring/nothing/boards").status, 404);
}

/// Returns the options of a session of PSI that is created without options.
fn created_options(client: &Client) -> Value {
    let (session, _) = client.create("psi");
    let listed = client.get("/api/challenges/psi").ok();
    let all = listed["challenges"].as_array().expect("a list");
    let own = all.iter().find(|one| one["id"] == session.as_str()).expect("it is listed");
    let chosen = ["range", "setSize", "intersectionSize"].map(|name| (name.to_owned(), own["options"][name].clone()));
    Value::Object(chosen.into_iter().collect())
}

#[test]
fn a_scripted_season_gives_the_numbers_computed_by_hand() {
    let host = Host::start();
    let client = host.client();
    for path in ["/api/scoring", "/api/users"] {
        assert_eq!(client.get(path).ok(), json!([]));
    }
    assert_eq!(client.get("/api/stats").ok()["global"], json!({ "participants": 0, "gamesPlayed": 0 }));

    // ada breaches bob's security, and bob finds the intersection: security 1 and -1, utility 1 and 1.
    play(&client, ["ada", "bob"], [Play::Steals, Play::Finds]);
    // Both find the intersection: 1, 1, 1, 1.
    play(&client, ["bob", "ada"], [Play::Finds, Play::Finds]);
    // bob misses: utility -1.
    let third = play(&client, ["ada", "bob"], [Play::Finds, Play::Misses]);
    // These games count less or not at all: one with an anonymous opponent, one of self-play, and an unfinished one.
    play(&client, ["", "ada"], [Play::Steals, Play::Finds]);
    play(&client, ["bob", "bob"], [Play::Misses, Play::Misses]);
    join(&client, ["ada", "eve"]);

    // Security: ada 1, 1, 1, -1; bob -1, 1, 1. Utility: ada 1, 1, 1, 1; bob 1, 1, -1.
    let average = board(&client, "/api/scoring/psi?sort=average:utility", Some("average"));
    assert_eq!(average, ["ada 4: 0.500 1.000", "bob 3: 0.333 0.333"]);
    let wins = board(&client, "/api/scoring/psi?sort=win-rate:security", Some("win-rate"));
    assert_eq!(wins, ["ada 4: 0.750 1.000", "bob 3: 0.667 0.667"]);
    // In games without anonymous players: ada caused one breach in three games and suffered none, bob the reverse.
    let red = board(&client, "/api/scoring/psi?sort=red-team:attack", Some("red-team"));
    assert_eq!(red, ["ada 3: 0.333 1.000", "bob 3: 0.000 0.667"]);
    // The metrics of this strategy are attack, security and utility.
    let streaks = board(&client, "/api/scoring/psi?sort=consecutive:security", Some("consecutive"));
    assert_eq!(streaks, ["ada 3: 0.000 3.000 3.000", "bob 3: 0.000 2.000 0.000"]);
    assert_eq!(board(&client, "/api/scoring", None), ["ada 4: 0.500 1.000", "bob 3: 0.333 0.333"]);
    assert_eq!(board(&client, "/api/scoring?offset=1&limit=1", None), ["bob 3: 0.333 0.333"]);
    assert_eq!(client.get("/api/scoring?limit=1").header("x-total-count"), Some("2"));
    assert_eq!(client.get("/api/scoring/psi?strategy=red-team").ok().as_object().expect("boards").len(), 1);

    let entry = &client.get("/api/scoring").ok()[0];
    let interval = entry["intervals"]["global-average:security"].as_array().expect("an interval");
    let [low, high] = [&interval[0], &interval[1]].map(|end| end.as_f64().expect("a number"));
    assert!((-1.0..0.5).contains(&low) && (0.5..=1.0).contains(&high), "{low} {high}");

    let stats = client.get("/api/stats").ok();
    assert_eq!(stats["global"], json!({ "participants": 2, "gamesPlayed": 5 }));
    assert_eq!(stats["challenges"]["psi"], json!({ "gamesPlayed": 5 }));

    let scores = client.get("/api/users/bob/scores").ok();
    assert_eq!(scores["global"]["gamesPlayed"], 3);
    assert_eq!(scores["challenges"]["psi"]["win-rate"]["playerId"], "bob");
    assert_eq!(client.get("/api/users/nobody/scores").ok(), json!({ "global": null, "challenges": {} }));

    let history = client.get("/api/users/bob/challenges?limit=2&offset=1").ok();
    assert_eq!((&history["total"], &history["limit"], &history["offset"]), (&json!(4), &json!(2), &json!(1)));
    assert_eq!(history["challenges"][0]["id"], third);
    assert_eq!(history["profiles"]["ada"], json!({ "userId": "ada" }));
    let empty = json!({ "challenges": [], "total": 0, "limit": 50, "offset": 0, "profiles": {} });
    assert_eq!(client.get("/api/users/nobody/challenges").ok(), empty);
    // eve's game is active, so eve is not a known user yet.
    assert_eq!(client.get("/api/users/eve").refusal(), (404, "USER_NOT_FOUND".to_owned()));
    assert_eq!(client.get("/api/users").ok(), json!([{ "userId": "ada" }, { "userId": "bob" }]));
}

#[test]
fn profiles_are_merged_and_shown_wherever_an_identity_is() {
    let host = Host::start();
    let client = host.client();
    let change = |body: Value| client.post("/api/users", &body);
    let ada = json!({ "userId": "ada", "username": "Ada" });
    assert_eq!(change(ada.clone()).ok(), ada);
    let ada = json!({ "userId": "ada", "username": "Ada", "model": "engine-1" });
    assert_eq!(change(json!({ "userId": "ada", "model": "engine-1" })).ok(), ada);
    assert_eq!(change(json!({ "from": "bob", "username": "__proto__" })).ok()["userId"], "bob");
    assert_eq!(client.get("/api/users/ada").ok(), ada);
    let batch = client.get("/api/users/batch?ids=ada,nobody,bob").ok();
    assert_eq!(batch, json!({ "ada": ada, "bob": { "userId": "bob", "username": "__proto__" } }));
    assert_eq!(client.get("/api/users?limit=1&offset=1").ok()[0]["userId"], "bob");
    assert_eq!(client.get("/api/users").header("x-total-count"), Some("2"));

    let (session, invites) = join(&client, ["ada", "eve"]);
    let mut stream = client.stream(&format!("/api/chat/ws/{session}"), None);
    for invite in &invites {
        client.act(&session, invite, "guess", "1").ok();
    }
    let ended = std::iter::from_fn(|| stream.next_event()).find(|(_, event)| event["type"] == "game_ended");
    let profiles = json!({ "ada": ada, "eve": { "userId": "eve" } });
    assert_eq!(ended.expect("the game has ended").1["data"]["profiles"], profiles);
    assert_eq!(client.get("/api/challenges").ok()["profiles"], profiles);
    assert_eq!(client.get("/api/scoring").ok()[0]["username"], "Ada");

    let long = "x".repeat(201);
    for (body, code) in [
        (json!({ "username": "x" }), "MISSING_FIELD"),
        (json!({ "userId": "", "username": "x" }), "INVALID_FIELD"),
        (json!({ "userId": 7 }), "INVALID_FIELD"),
        (json!({ "userId": "ada", "username": null }), "INVALID_FIELD"),
        (json!({ "userId": "ada", "username": ["x"] }), "INVALID_FIELD"),
        (json!({ "userId": "ada", "model": long }), "INVALID_FIELD"),
        (json!({ "userId": "ada", "model": "a\nb" }), "INVALID_FIELD"),
        (json!({ "userId": "y".repeat(256) }), "INVALID_FIELD"),
    ] {
        assert_eq!(change(body.clone()).refusal(), (400, code.to_owned()), "{body}");
    }
    assert_eq!(client.get("/api/users/ada").ok(), ada);
    let many: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    for (path, status, code) in [
        ("/api/users/batch".to_owned(), 400, "MISSING_FIELD"),
        (format!("/api/users/batch?ids={}", many.join(",")), 400, "TOO_MANY_IDS"),
        ("/api/users/nobody".to_owned(), 404, "USER_NOT_FOUND"),
        ("/api/scoring/checkers".to_owned(), 404, "CHALLENGE_NOT_FOUND"),
        ("/api/scoring/psi?sort=luck".to_owned(), 400, "INVALID_SORT"),
        ("/api/scoring?sort=average:utility".to_owned(), 400, "INVALID_SORT"),
        ("/api/scoring/psi?strategy=elo".to_owned(), 400, "UNKNOWN_STRATEGY"),
    ] {
        assert_eq!(client.get(&path).refusal(), (status, code.to_owned()), "{path}");
    }
}

#[test]
fn a_repeated_profile_change_happens_once() {
    let host = Host::start();
    let client = host.client();
    let body = json!({ "userId": "ada", "username": "Ada" });
    let first = client.post_once("/api/users", "k", &body).ok();
    client.post("/api/users", &json!({ "userId": "ada", "username": "Lovelace" })).ok();
    assert_eq!(client.post_once("/api/users", "k", &body).ok(), first);
    assert_eq!(client.get("/api/users/ada").ok()["username"], "Lovelace");
    let other = client.post_once("/api/users", "k", &json!({ "userId": "ada", "username": "Eve" }));
    assert_eq!(other.refusal(), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
}

#[test]
fn an_arena_without_scoring_has_empty_boards() {
    let host = Host::start_with(|settings: &mut Settings| {
        settings.scoring = arena_server::ScoringSettings { default: Vec::new(), global: None, ..Default::default() };
        for challenge in &mut settings.challenges {
            challenge.scoring.clear();
        }
    });
    let client = host.client();
    play(&client, ["ada", "bob"], [Play::Finds, Play::Finds]);
    assert_eq!(client.get("/api/scoring").ok(), json!([]));
    assert_eq!(client.get("/api/scoring/psi").ok(), json!({}));
    assert_eq!(client.get("/api/stats").ok()["global"]["participants"], 2);
}
