//! `arena demo`: its games, its output and its pages.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use arena_testkit::{Client, data_folder};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, eventually, run};

#[test]
fn demo_plays_every_pair_and_prints_scores_and_reasons() {
    let demo = run(&["demo", "--once", "--listen", "127.0.0.1:0"]);
    assert_eq!(demo.code, 0, "{demo:#?}");
    let output =
        |part: &str| assert!(demo.stdout.contains(part), "{part:?} is missing:\n{}\n{}", demo.stdout, demo.stderr);
    output("Game 6: ");
    output("says     PLAIN ");
    output("says     DIGESTS salt=");
    output("guesses  ");
    output("hash-swap found all shared numbers and nothing more");
    output("which cost open-book its security");
    output("mean security");
    output("The page: http://127.0.0.1:");
    assert_eq!(demo.stderr, "");
}

#[test]
fn demo_scores_match_the_strategies() {
    let demo = run(&["demo", "--once", "--json", "--listen", "127.0.0.1:0"]);
    assert_eq!(demo.code, 0, "{demo:#?}");
    let lines: Vec<Value> = demo.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The lines are the address, six games, and the table.
    assert_eq!(lines.len(), 8);
    let security = |bot: &str| {
        let rows = lines[7]["standings"].as_array().unwrap();
        rows.iter().find(|row| row["bot"] == bot).unwrap()["security"].as_f64().unwrap()
    };
    // Each bot plays three games. Only snoop breaches, and only bots that talk; cautious doesn't talk.
    assert_eq!([security("snoop"), security("cautious")], [1.0, 1.0]);
    assert_eq!([security("open-book"), security("hash-swap")], [1.0 / 3.0; 2]);
    let utility = |bots: [&str; 2], bot: &str| {
        let game = lines.iter().find(|line| bots.iter().all(|bot| line["seats"].to_string().contains(bot))).unwrap();
        let seats = game["seats"].as_array().unwrap();
        seats.iter().find(|seat| seat["bot"] == bot).unwrap()["utility"].as_f64().unwrap()
    };
    assert_eq!(utility(["hash-swap", "snoop"], "hash-swap"), 1.0);
    assert_eq!(utility(["hash-swap", "snoop"], "snoop"), 1.0);
    assert_eq!(utility(["open-book", "cautious"], "cautious"), 1.0);
}

#[test]
fn demo_takes_a_free_port_if_the_default_port_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:3001");
    let demo = run(&["demo", "--once", "--games", "1"]);
    assert_eq!(demo.code, 0, "{demo:#?}");
    // The note is checked only if this test holds the port. Otherwise another process may release it at any moment.
    if let Ok(_held) = taken {
        assert_eq!(demo.stderr, "note: 127.0.0.1:3001 is in use, so the demo uses a free port\n");
        let insisting = run(&["demo", "--once", "--games", "1", "--port", "3001"]);
        assert_eq!(insisting.code, 7, "{insisting:#?}");
    }
}

#[test]
fn demo_plays_further_games_and_ends_by_a_signal() {
    let mut demo = Running::start(&["demo", "--games", "1", "--pace", "1", "--listen", "127.0.0.1:0"]);
    demo.line_after("Game 1: open-book against hash-swap");
    demo.line_after("Further games follow.");
    demo.line_after("Game 2: open-book against snoop");
    let ended = run(&["challenges", "list", "--status", "ended", "--url", &demo.url]).json();
    assert!(ended["total"].as_u64().unwrap() >= 1);
    demo.signal(Signal::INT);
    assert_eq!(demo.ended().code(), Some(0));
    assert_eq!(demo.said(), "");
}

const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];

/// Requests an opponent, which takes the own seat as well. Returns the session and the own invite.
fn against_the_house(client: &Client, challenge: &str, strength: &str) -> (String, String) {
    let form = format!("against=house&strength={strength}&user=ada");
    let answer = client.request("POST", &format!("/challenges/{challenge}"), &FORM, form.as_bytes());
    assert_eq!(answer.status, 303, "{}", answer.text());
    let invite = answer.header("location").unwrap().strip_prefix("/play/").unwrap().to_owned();
    let id = client.get(&format!("/api/players/{invite}")).ok()["id"].as_str().unwrap().to_owned();
    eventually("the bots sit", || (session(client, challenge, &id)["state"]["status"] == "active").then_some(()));
    (id, invite)
}

/// Returns a session as the lists show it.
fn session(client: &Client, challenge: &str, id: &str) -> Value {
    let all = client.get(&format!("/api/challenges/{challenge}")).ok();
    all["challenges"].as_array().unwrap().iter().find(|session| session["id"] == id).unwrap().clone()
}

#[test]
fn a_server_on_loopback_has_house_bots_for_all_challenges() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    let metadata = client.get("/api/metadata").ok();
    let challenges: Vec<&String> = metadata.as_object().unwrap().keys().collect();
    assert!(challenges.len() >= 8, "{challenges:?}");
    for challenge in challenges {
        let (id, _) = against_the_house(&client, challenge, "normal");
        assert_eq!(session(&client, challenge, &id)["rated"], false, "{challenge}");
    }
    for challenge in ["food-catcher", "cherry-picker", "snake"] {
        let page = client.get(&format!("/challenges/{challenge}"));
        assert!(page.text().contains("A short game of 200 turns."), "{challenge}: {}", page.text());
    }
    let user = client.get("/api/users/house-psi").ok();
    assert!(user["model"].as_str().unwrap().starts_with("a house bot that "), "{user}");
    let page = client.get("/users/house-psi");
    assert!(page.text().contains("Play against this house bot"), "{}", page.text());
}

#[test]
fn a_bot_without_a_move_of_its_opponent_leaves_for_another_game() {
    let folder = data_folder();
    let config = folder.path().join("arena.toml");
    std::fs::write(&config, "[house]\nseats = 1\n").unwrap();
    let data = folder.path().join("data");
    let [config, data] = [&config, &data].map(|path| path.to_str().unwrap());
    let server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--config", config]);
    let client = server.client();
    let status = |id: &str| session(&client, "psi", id)["state"]["status"].clone();
    let (waiting, waits) = against_the_house(&client, "psi", "easy");
    // A message isn't a move.
    client.chat(&waiting, &waits, "hello").ok();
    let (played, plays) = against_the_house(&client, "psi", "easy");
    // The bot that must leave notices it within two seconds.
    thread::sleep(Duration::from_secs(3));
    client.act(&waiting, &waits, "guess", "1").ok();
    client.act(&played, &plays, "guess", "1").ok();
    eventually("the game with the bot ends", || (status(&played) == "ended").then_some(()));
    thread::sleep(Duration::from_secs(3));
    assert_eq!(status(&waiting), "active");

    let (id, invite) = against_the_house(&client, "chess", "easy");
    let bot_has_made = |count: usize| {
        eventually("the bot moves", || {
            let said = client.get(&format!("/api/arena/sync?channel={id}&from={invite}")).ok();
            let is_bots = |message: &&Value| message["from"] != "operator" && message["from"] != invite.as_str();
            (said["messages"].as_array().unwrap().iter().filter(is_bots).count() == count).then_some(())
        });
    };
    let is_white = client.act(&id, &invite, "move", "a2a3").status == 200;
    if !is_white {
        bot_has_made(1);
        client.act(&id, &invite, "move", "a7a6").ok();
    }
    let answered = if is_white { 1 } else { 2 };
    bot_has_made(answered);
    let busy = client.request("POST", "/challenges/psi", &FORM, b"against=house&strength=easy");
    assert_eq!(busy.status, 503, "{}", busy.text());
    client.act(&id, &invite, "move", if is_white { "h2h3" } else { "h7h6" }).ok();
    bot_has_made(answered + 1);
}

#[test]
fn a_person_plays_again_on_the_same_or_the_other_seat() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    let (id, invite) = against_the_house(&client, "psi", "easy");
    client.act(&id, &invite, "guess", "1").ok();
    eventually("the game ends", || (session(&client, "psi", &id)["state"]["status"] == "ended").then_some(()));
    let page = client.get(&format!("/play/{invite}")).text().to_owned();
    let parts = ["Play again", "Swap seats", "name=\"strength\" value=\"easy\"", "name=\"user\" value=\"ada\""];
    for part in parts {
        assert!(page.contains(part), "no {part}: {page}");
    }
    for (seat, place) in [("first", 0), ("last", 1)] {
        let form = format!("against=house&strength=easy&user=ada&seat={seat}");
        let answer = client.request("POST", "/challenges/psi", &FORM, form.as_bytes());
        assert_eq!(answer.status, 303, "{}", answer.text());
        let path = answer.header("location").unwrap().to_owned();
        let page = eventually("both players sit", || {
            let page = client.get(&path).text().to_owned();
            page.contains("data-status=\"active\"").then_some(page)
        });
        let players = page.split("data-players=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(players.split(' ').nth(place), path.strip_prefix("/play/"), "{seat}: {players}");
    }
}

#[test]
fn a_deal_is_played_again_and_counts_on_no_board() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    let request = |form: &str| client.request("POST", "/challenges/psi", &FORM, form.as_bytes());
    let end = |id: &str, invite: &str| {
        client.act(id, invite, "guess", "1").ok();
        eventually("the game ends", || (session(&client, "psi", id)["state"]["status"] == "ended").then_some(()));
    };
    let (id, invite) = against_the_house(&client, "psi", "easy");
    let early = request(&format!("against=house&strength=easy&seat=first&deal={id}"));
    assert_eq!(early.status, 400);
    assert!(early.text().contains("the deal of a session is secret until its end"), "{}", early.text());
    end(&id, &invite);
    let page = client.get(&format!("/sessions/{id}")).text().to_owned();
    let form = page.split("<form").find(|form| form.contains("Play this deal")).expect("a form");
    assert!(form.contains("name=\"strength\" value=\"easy\""), "{form}");
    let seat = if form.contains("name=\"seat\" value=\"first\"") { "first" } else { "last" };
    let answer = request(&format!("against=house&strength=easy&seat={seat}&deal={id}"));
    assert_eq!(answer.status, 303, "{}", answer.text());
    let own = answer.header("location").unwrap().strip_prefix("/play/").unwrap().to_owned();
    let again = eventually("both players sit", || {
        let page = client.get(&format!("/play/{own}")).text().to_owned();
        let id = page.split("data-session=\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
        id.filter(|_| page.contains("data-status=\"active\""))
    });
    let mark = "This is a deal that was played before";
    assert!(client.get(&format!("/sessions/{again}")).text().contains(mark));
    end(&again, &own);
    let [first, second] = [&id, &again].map(|id| session(&client, "psi", id));
    assert_eq!((&first["seed"], &second["rated"]), (&second["seed"], &json!(false)));
    assert_eq!(
        first["state"]["players"].as_array().unwrap().iter().position(|player| *player == *invite),
        second["state"]["players"].as_array().unwrap().iter().position(|player| *player == *own)
    );
    let page = client.get(&format!("/sessions/{again}")).text().to_owned();
    assert!(page.contains(mark) && page.contains(&format!("href=\"/sessions/{id}\"")), "{page}");
    assert!(!client.get(&format!("/sessions/{id}")).text().contains(mark));
    // A deal of an unlisted session stays unlisted, whatever the form says.
    let form = b"against=house&strength=easy&user=ada&seat=first&unlisted=true";
    let hidden = client.request("POST", "/challenges/psi", &FORM, form);
    let hidden = hidden.header("location").unwrap().strip_prefix("/play/").unwrap().to_owned();
    let find = |invite: &str| client.get(&format!("/api/players/{invite}")).ok();
    let origin = find(&hidden)["id"].as_str().unwrap().to_owned();
    eventually("both players sit", || (find(&hidden)["state"]["status"] == "active").then_some(()));
    client.act(&origin, &hidden, "guess", "1").ok();
    eventually("the game ends", || (find(&hidden)["state"]["status"] == "ended").then_some(()));
    let shown = request(&format!("against=house&strength=easy&seat=first&deal={origin}"));
    let own = shown.header("location").unwrap().strip_prefix("/play/").unwrap();
    assert_eq!(find(own)["unlisted"], true);
    // The seeds are equal, and each record has its own events.
    let record = folder.path().join("record.jsonl");
    std::fs::write(&record, client.get(&format!("/api/sessions/{again}/record")).body).unwrap();
    let verified = run(&["verify", record.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

#[test]
fn house_bots_can_be_disabled_and_sign_where_players_must() {
    let folder = data_folder();
    let config = folder.path().join("arena.toml");
    std::fs::write(&config, "[house]\nenabled = false\n").unwrap();
    let data = folder.path().join("data");
    let server = |more: &[&str]| {
        let data = data.to_str().unwrap();
        Running::start(&[&["serve", "--listen", "127.0.0.1:0", "--data", data], more].concat())
    };
    let without = server(&["--config", config.to_str().unwrap()]);
    let request = |server: &Running| server.client().request("POST", "/challenges/psi", &FORM, b"against=house");
    assert_eq!(request(&without).status, 404);
    drop(without);

    let signing = server(&["--auth"]);
    assert_eq!(request(&signing).status, 303);
    eventually("the bot sits", || {
        let all = signing.client().get("/api/challenges/psi").ok();
        (all["challenges"][0]["state"]["players"].as_array()?.len() == 1).then_some(())
    });
}
