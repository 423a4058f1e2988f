//! Unlisted sessions: they have a page and are played as others, and no list, history, board or count shows them.

use std::sync::Arc;

use arena_testkit::{Answer, Client, Host, TestEnvironment, WithSecret};
use serde_json::{Value, json};

/// The pages and routes with lists, histories and counts.
const LISTS: &str = "/ /challenges /challenges/psi /leaderboards /leaderboards/psi \
    /leaderboard.svg?challenge=psi /users/ada /users/ada/rating.svg /users/zoe /api/challenges \
    /api/challenges?status=open /api/challenges?status=active /api/challenges?status=ended /api/challenges/psi \
    /api/chat/sync?channel=invites /api/users /api/users/ada/challenges /api/users/zoe/challenges /api/scoring \
    /api/scoring/psi/boards /api/stats";

fn lists(client: &Client) -> Vec<String> {
    let show = |path: &str| {
        let answer = client.get(path);
        // The log gets games after a while, and this part of a page shows its hash.
        let text = match answer.text().split_once("<div id=\"logged\">") {
            Some((before, rest)) => format!("{before}{}", rest.split_once("</div>").expect("the end of the part").1),
            None => answer.text().to_owned(),
        };
        format!("{path}: {} {text}", answer.status)
    };
    LISTS.split(' ').map(show).collect()
}

#[track_caller]
fn check(client: &Client, before: &[String], when: &str) {
    for (now, before) in lists(client).iter().zip(before) {
        assert_eq!(now, before, "{when}");
    }
}

fn start() -> Host {
    let psi = Arc::new(WithSecret::new("psi", |_| {}));
    Host::start_in(TestEnvironment::new(7).for_engine(), vec![psi], |_| {})
}

fn join(client: &Client, session: &Value, users: [&str; 2]) -> Vec<String> {
    let invites: Vec<String> = serde_json::from_value(session["invites"].clone()).expect("invites");
    for (invite, user) in invites.iter().zip(users) {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    invites
}

fn end(client: &Client, session: &Value, invites: &[String]) {
    for invite in invites {
        client.act(session["id"].as_str().expect("an id"), invite, "guess", "101").ok();
    }
}

#[test]
fn an_unlisted_session_is_played_and_nothing_lists_it() {
    let host = start();
    let client = host.client();
    let listed = client.post("/api/challenges/psi", &json!({ "unlisted": false })).ok();
    assert_eq!((listed.get("unlisted"), &listed["rated"]), (None, &json!(true)));
    let invites = join(&client, &listed, ["ada", "bob"]);
    end(&client, &listed, &invites);
    let before = lists(&client);

    let session = client.post("/api/challenges/psi", &json!({ "unlisted": true })).ok();
    assert_eq!((&session["unlisted"], &session["rated"]), (&json!(true), &json!(false)));
    check(&client, &before, "open");
    let open = client.get(&format!("/api/invites/{}", session["invites"][0].as_str().expect("an invite"))).ok();
    assert_eq!((&open["id"], &open["unlisted"]), (&session["id"], &json!(true)));
    let player = |invite: &str| client.get(&format!("/api/players/{invite}"));
    let unknown = (404, "PLAYER_NOT_FOUND".to_owned());
    for nobody in [session["invites"][0].as_str().expect("an invite"), "inv_x", "ada"] {
        assert_eq!(player(nobody).refusal(), unknown, "{nobody}");
    }
    let invites = join(&client, &session, ["ada", "zoe"]);
    check(&client, &before, "active");
    // A player finds the session again without a list.
    let found = player(&invites[1]).ok();
    assert_eq!((&found["id"], &found["state"]["players"]), (&session["id"], &json!(invites)));
    end(&client, &session, &invites);
    check(&client, &before, "ended");

    let id = session["id"].as_str().expect("an id");
    let page = client.get(&format!("/sessions/{id}"));
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Unlisted: no list and no history shows this game"), "{}", page.text());
    let output = client.get(&format!("/api/arena/sync?channel={id}")).ok();
    assert!(output["messages"].as_array().is_some_and(|messages| !messages.is_empty()), "{output}");
    // The rematch is unlisted, too.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let seat = client.request("POST", &format!("/play/{}", invites[0]), &form, b"do=rematch");
    let seat = seat.header("location").and_then(|path| path.strip_prefix("/play/")).expect("a seat");
    assert_eq!(player(seat).ok()["unlisted"], true);
}

#[test]
fn the_form_for_a_new_session_has_a_box_for_unlisted_ones() {
    let host = start();
    let client = host.client();
    assert!(client.get("/challenges/psi").text().contains(r#"type="checkbox" name="unlisted" value="true""#));
    let send = |form: &str| -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        client.request("POST", "/challenges/psi", &[kind], form.as_bytes())
    };
    for (form, status, total) in [("unlisted=true", 200, 0), ("unlisted=no", 400, 0), ("", 200, 1)] {
        assert_eq!(send(form).status, status, "{form:?}");
        assert_eq!(client.get("/api/challenges").ok()["total"], total, "{form:?}");
    }
}
