//! Ladders over HTTP: bots join, play, are replaced and removed; seasons end. The bots are HTTP servers in the test process.

use std::sync::atomic::Ordering;

use arena_testkit::{Answer, eventually, known_admin_token, until};
use serde_json::{Value, json};

use crate::tournaments::{Bot, TournamentFixture, made};

const LADDER: &str = "/api/ladders/snake";

fn open() -> TournamentFixture {
    TournamentFixture::with(|settings| settings.tournaments.ladder_share = 1.0)
}

fn upload(fixture: &TournamentFixture, name: &str, bot: &Bot) -> Answer {
    fixture.client.post("/api/agents?game=snake", &json!({ "url": bot.url, "name": name }))
}

/// Uploads the next version of an agent with this key.
fn replace(fixture: &TournamentFixture, (id, key): (&str, &str), bot: &Bot) -> Answer {
    let (path, bearer) = (format!("/api/agents?replaces={id}"), format!("Bearer {key}"));
    let body = json!({ "url": bot.url }).to_string();
    fixture.client.request("POST", &path, &[("Authorization", &bearer)], body.as_bytes())
}

/// Waits until a row of the standings satisfies `is_such`. Returns the row.
#[track_caller]
fn wait(fixture: &TournamentFixture, is_such: impl Fn(&Value) -> bool) -> Value {
    eventually("the standings have such a row", || {
        let answer = fixture.client.get(LADDER);
        let rows = if answer.status == 200 { answer.json()["standings"].take() } else { Value::Null };
        rows.as_array().into_iter().flatten().find(|row| is_such(row)).cloned()
    })
}

/// Matches an uploaded bot's version with at least this number of games.
fn has_played<'t>(name: &'t str, generation: u64, games: u64) -> impl Fn(&Value) -> bool + 't {
    move |row| row["name"] == name && row["generation"] == generation && row["games"].as_u64() >= Some(games)
}

#[test]
fn an_uploaded_bot_plays_soon_and_is_ranked() {
    let fixture = open();
    assert_eq!(fixture.client.get(LADDER).refusal(), (404, "LADDER_NOT_FOUND".to_owned()));
    assert_eq!(fixture.client.get("/api/ladders/nope").refusal(), (404, "LADDER_NOT_FOUND".to_owned()));
    let page = fixture.client.get("/ladders/snake");
    assert!(page.status == 200 && page.text().contains("No agents yet"), "{}", page.text());
    let bot = Bot::start(usize::MAX);
    let answer = upload(&fixture, "ada", &bot);
    assert_eq!(answer.json()["ladder"], "snake", "{}", answer.text());
    let (id, key) = made(&answer);
    // A bot whose name is taken gets another name.
    let (_, other_key) = made(&upload(&fixture, "ada", &bot));
    let row = wait(&fixture, has_played("ada", 1, 4));
    wait(&fixture, has_played("ada #2", 1, 2));
    assert_eq!((&row["agent_id"], &row["state"]), (&json!(id), &json!("playing")));
    assert!(row["elo"]["rating"].is_number() && row["rank_may_be"]["best"].is_number(), "{row}");

    let view = fixture.client.get(LADDER).ok();
    let names: Vec<&str> =
        view["standings"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    for name in ["house", "house:easy", "random"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let listed = fixture.client.get("/api/ladders").ok();
    let snake = listed["ladders"].as_array().unwrap().iter().find(|ladder| ladder["game"] == "snake").unwrap();
    assert_eq!((&snake["agents"], &snake["season"]), (&json!(5), &json!(1)));

    let games = fixture.client.get(&format!("{LADDER}/games?limit=100")).ok();
    let matches = games["matches"].as_array().unwrap();
    let is_own =
        |game: &&Value| game["replay"].is_string() && game["agents"].as_array().unwrap().contains(&json!("ada"));
    let game = matches.iter().find(is_own).unwrap_or_else(|| panic!("no replay in {games}"));
    let number = &game["number"];
    let replay = fixture.client.get(game["replay"].as_str().unwrap());
    assert_eq!((replay.status, replay.header("content-type")), (200, Some("application/x-ndjson")));
    let seat = game["agents"].as_array().unwrap().iter().position(|name| name == "ada").unwrap();
    let log = format!("{LADDER}/games/{number}/logs/{seat}");
    assert_eq!(fixture.ask("GET", &log, &key).status, 200);
    assert_eq!(fixture.ask("GET", &log, &other_key).status, 401);
    assert_eq!(fixture.client.get(&log).status, 401);

    let path = format!("/ladders/snake/games/{number}/replay");
    let page = fixture.client.get("/ladders/snake");
    for part in ["ada", "house:easy", "<svg", "Head to head", "/replay\"", "arena --url"] {
        assert!(page.text().contains(part), "no {part}: {}", page.text());
    }
    assert!(!page.text().contains("secret-path") && !view.to_string().contains("secret-path"));
    assert!(fixture.client.get(&path).text().contains("viewer.js"));
    assert_eq!(fixture.client.get(&format!("{path}.json")).status, 200);
    assert!(fixture.client.get("/ladders").text().contains("/ladders/snake"));
    assert!(fixture.client.get(&format!("/agents/{id}")).text().contains("Ladder of snake"));
}

#[test]
fn what_cannot_join_is_refused_with_a_sentence() {
    let fixture = open();
    let bot = Bot::start(usize::MAX);
    bot.is_broken.store(true, Ordering::Relaxed);
    let refused = upload(&fixture, "ada", &bot);
    assert_eq!(refused.refusal(), (400, "INVALID_AGENT".to_owned()));
    assert!(
        refused.text().contains("the agent cannot join the ladder of snake: its check found a fault: "),
        "{}",
        refused.text()
    );
    assert_eq!(fixture.client.get("/api/agents").ok()["total"], 0);
    bot.is_broken.store(false, Ordering::Relaxed);
    let post = |query: &str| fixture.client.post(&format!("/api/agents?{query}"), &json!({ "url": bot.url })).refusal();
    assert_eq!(post("game=nope"), (400, "UNKNOWN_GAME".to_owned()));
    assert_eq!(post("replaces=x"), (400, "AGENT_NOT_FOUND".to_owned()));
    let (plain, key) = made(&fixture.client.post("/api/agents", &json!({ "url": bot.url })));
    assert_eq!(post(&format!("replaces={plain}")), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    assert_eq!(replace(&fixture, (&plain, &key), &bot).refusal(), (400, "INVALID_FIELD".to_owned()));

    let off = TournamentFixture::with(|settings| settings.tournaments.ladder_share = 0.0);
    assert_eq!(upload(&off, "ada", &bot).refusal(), (403, "LADDERS_OFF".to_owned()));
}

#[test]
fn an_owner_replaces_and_removes_a_bot() {
    let fixture = open();
    let bot = Bot::start(usize::MAX);
    let (id, key) = made(&upload(&fixture, "ada", &bot));
    let (_, stranger) = made(&upload(&fixture, "eve", &bot));
    wait(&fixture, has_played("ada", 1, 2));
    assert_eq!(replace(&fixture, (&id, &stranger), &bot).status, 401);
    let replaced = replace(&fixture, (&id, &key), &bot);
    assert_eq!(replaced.json()["name"], "ada");
    let (next, next_key) = made(&replaced);
    let row = wait(&fixture, has_played("ada", 2, 2));
    assert_eq!((&row["agent_id"], &row["state"]), (&json!(next), &json!("playing")));
    let before = wait(&fixture, has_played("ada", 1, 2));
    assert_eq!((&before["agent_id"], &before["state"]), (&json!(id), &json!("gone")));

    assert_eq!(fixture.ask("DELETE", &format!("/api/agents/{next}"), &next_key).status, 200);
    wait(&fixture, |row| row["name"] == "ada" && row["generation"] == 2 && row["state"] == "gone");
    wait(&fixture, |row| row["name"] == "eve" && row["state"] == "playing");
}

#[test]
fn earlier_versions_of_a_bot_do_not_count() {
    let fixture = TournamentFixture::with(|settings| {
        settings.limits.limit_loopback = true;
        settings.tournaments.ladder_share = 1.0;
        settings.tournaments.agents = 2;
        settings.tournaments.agents_per_address = 1;
    });
    let bot = Bot::start(usize::MAX);
    let (mut id, mut key) = made(&upload(&fixture, "ada", &bot));
    assert_eq!(upload(&fixture, "eve", &bot).refusal(), (429, "TOO_MANY_OWN_AGENTS".to_owned()));
    // The standings have no version that was replaced before its first game.
    wait(&fixture, has_played("ada", 1, 1));
    for _ in 0..3 {
        (id, key) = made(&replace(&fixture, (&id, &key), &bot));
    }
    wait(&fixture, has_played("ada", 4, 1));
    assert_eq!(upload(&fixture, "eve", &bot).refusal(), (429, "TOO_MANY_OWN_AGENTS".to_owned()));
    until("the earlier versions are gone", || fixture.client.get("/api/agents").ok()["total"] == 1);
    assert_eq!(fixture.client.get(&format!("/api/agents/{id}")).status, 200);
    wait(&fixture, |row| row["name"] == "ada" && row["generation"] == 1 && row["state"] == "gone");
}

#[test]
fn a_bot_that_fails_ten_times_in_a_row_is_suspended() {
    let fixture = open();
    let bot = Bot::start(usize::MAX);
    let (id, key) = made(&upload(&fixture, "ada", &bot));
    wait(&fixture, has_played("ada", 1, 1));
    bot.is_broken.store(true, Ordering::Relaxed);
    let row = wait(&fixture, |row| row["name"] == "ada" && row["state"] == "suspended");
    assert!(row["suspended"].as_str().is_some_and(|reason| reason.contains("10 games in a row")), "{row}");
    assert!(fixture.client.get("/ladders/snake").text().contains("10 games in a row"));
    bot.is_broken.store(false, Ordering::Relaxed);
    made(&replace(&fixture, (&id, &key), &bot));
    wait(&fixture, has_played("ada", 2, 1));
}

#[test]
fn the_administrator_ends_a_season() {
    let fixture = open();
    let bot = Bot::start(usize::MAX);
    made(&upload(&fixture, "ada", &bot));
    wait(&fixture, has_played("ada", 1, 2));
    let path = format!("{LADDER}/season");
    assert_eq!(fixture.client.post(&path, &json!({})).status, 401);
    let token = known_admin_token();
    assert_eq!(fixture.ask("POST", "/api/ladders/chess/season", token.reveal()).refusal().0, 404);
    assert_eq!(fixture.ask("POST", &path, token.reveal()).ok(), json!({ "season": 1, "closed": true }));
    wait(&fixture, |row| row["name"] == "ada");
    assert_eq!(fixture.client.get(LADDER).ok()["season"], 2);
    let closed = fixture.client.get(&format!("{LADDER}?season=1")).ok();
    assert_eq!((&closed["season"], &closed["closed"]), (&json!(1), &json!(true)));
    assert!(closed["games_played"].as_u64() >= Some(2), "{closed}");
    let games = fixture.client.get(&format!("{LADDER}/games?season=1&limit=1")).ok();
    assert!(games["matches"][0]["replay"].is_string(), "{games}");
    assert_eq!(fixture.client.get(&format!("{LADDER}?season=9")).refusal(), (404, "SEASON_NOT_FOUND".to_owned()));
    let refused = fixture.client.get(&format!("{LADDER}?season=last"));
    assert_eq!(refused.refusal(), (400, "INVALID_FIELD".to_owned()));
    assert!(refused.text().contains("season must be a whole number from 1 to 1000000"), "{}", refused.text());
    assert!(fixture.client.get("/ladders/snake?season=1").text().contains("Season 1, ended"));
}
