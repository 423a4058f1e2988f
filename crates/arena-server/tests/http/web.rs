//! The pages: they respond, load only resources of this server, show users' text as text, hide private data, and are
//! small.

use arena_server::Settings;
use arena_testkit::{Answer, Client, Host, Player, TestEnvironment, WithSecret, eventually, known_admin_token};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a page, in bytes.
const MOST_BYTES: usize = 100_000;

/// Fetches a page and checks the properties of all pages.
#[track_caller]
fn page(client: &Client, path: &str) -> String {
    let answer = client.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    keeps_the_rules(&answer, path)
}

#[track_caller]
fn keeps_the_rules(answer: &Answer, path: &str) -> String {
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
    let policy = answer.header("content-security-policy").expect("a policy");
    for part in
        ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "form-action 'self'"]
    {
        assert!(policy.contains(part), "{path}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{path}: {policy}");
    assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{path}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    let text = answer.text();
    assert!(text.len() <= MOST_BYTES, "{path} is {} bytes long", text.len());
    for inline in ["<style", " style=", "<script>", " onclick=", "javascript:"] {
        assert!(!text.contains(inline), "{path} has {inline}");
    }
    for outside in ["src=\"http", "href=\"http", "src=\"//", "href=\"//"] {
        assert!(!text.contains(outside), "{path} has {outside}");
    }
    for part in ["<!DOCTYPE html>", "lang=\"en\"", "<main", "<nav aria-label=", "<h1", "<title>"] {
        assert!(text.contains(part), "{path} has no {part}");
    }
    text.to_owned()
}

fn send(client: &Client, path: &str, form: &str) -> Answer {
    client.request("POST", path, &[("content-type", "application/x-www-form-urlencoded")], form.as_bytes())
}

/// Plays a session of psi with users of these names.
fn play(client: &Client, users: [&str; 2]) -> (String, Vec<String>) {
    let (session, invites) = client.seated_as("psi", users);
    for invite in &invites {
        client.act(&session, invite, "guess", "101").ok();
    }
    (session, invites)
}

/// True if a page contains a private set of psi. The rules of psi contain the same words without numbers.
fn tells_a_set(page: &str) -> bool {
    page.split("private set is: {").skip(1).any(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

/// Returns the paths of this server that a page links to.
fn links(page: &str) -> Vec<String> {
    let parts = page.split("href=\"").skip(1).chain(page.split("src=\"").skip(1));
    let paths = parts.filter_map(|part| part.split('"').next());
    let paths = paths.map(|path| path.split('#').next().unwrap_or(path).replace("&amp;", "&"));
    paths.filter(|path| path.starts_with('/')).collect()
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let host = Host::start();
    let client = host.client();
    let (session, _) = play(&client, ["ada", "bob"]);
    let (_, invites) = client.create("chess");
    let mut open = vec!["/".to_owned(), format!("/play/{}", invites[0])];
    let mut seen = Vec::new();
    while let Some(path) = open.pop() {
        if seen.contains(&path) {
            continue;
        }
        let answer = client.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let is_page = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if is_page && path != "/docs/api" {
            open.extend(links(&keeps_the_rules(&answer, &path)));
        }
        seen.push(path);
    }
    // Files of pages have the version in their addresses.
    let seen: Vec<String> = seen
        .into_iter()
        .map(|path| match path.strip_prefix("/web/").and_then(|rest| rest.split_once('/')) {
            Some((_, name)) => format!("/web/{name}"),
            None => path,
        })
        .collect();
    let linked = "/challenges/chess /users/ada /users/ada/rating.svg /leaderboard.svg?challenge=psi /leaderboards \
        /leaderboards/psi /leaderboards/psi?strategy=win-rate /leaderboard.svg?challenge=psi&strategy=win-rate \
        /leaderboards?players=humans /admin /web/style.css /web/page.js /log /tournaments /docs /docs/api /docs/first-win";
    for expected in linked.split(' ') {
        assert!(seen.iter().any(|path| path == expected), "nothing leads to {expected}: {seen:?}");
    }
    assert!(seen.contains(&format!("/sessions/{session}")) && seen.contains(&format!("/sessions/{session}/replay")));
}

#[test]
fn errors_are_pages() {
    let host = Host::start();
    let client = host.client();
    let stranger = "/sessions/00000000-0000-7000-8000-000000000000";
    for (path, status, text) in [
        ("/challenges/golf", 404, "Challenge not found"),
        ("/sessions/x", 404, "session not found"),
        (stranger, 404, "session not found"),
        ("/users/nobody", 404, "User not found"),
        ("/leaderboards/golf", 404, "Challenge not found"),
        ("/leaderboards/psi?strategy=luck", 400, "this challenge has no leaderboard of that strategy"),
        ("/leaderboards?players=ghosts", 400, "players must be one of: humans, models, benchmark"),
        ("/leaderboards?compare=ada,ada", 400, "compare must be two different players"),
        ("/leaderboards?compare=ada,bob,eve", 400, "compare must be two user ids, such as ada,bob"),
        ("/leaderboards?compare=ada,bob", 404, "User not found"),
        ("/leaderboards?sort=luck", 400, "sort must be one of"),
        ("/sessions/x/replay", 404, "session not found"),
        ("/sessions/x/events", 404, "session not found"),
        ("/sessions/x/picture.svg", 404, "session not found"),
        ("/sessions/x/picture.png", 404, "session not found"),
        ("/sessions/x/game.pgn", 404, "session not found"),
        ("/users/nobody/rating.svg", 404, "User not found"),
        ("/leaderboard.svg", 404, "no data to plot yet"),
        ("/leaderboard.svg?challenge=golf", 404, "Challenge not found"),
        ("/agents/x", 404, "agent x not found"),
        ("/tournaments/x/matches/1/replay", 404, "tournament x not found"),
        ("/ladders/golf", 404, "unknown game"),
        ("/web/none.js", 404, "file not found"),
        ("/queue/golf/x", 404, "Challenge not found"),
        ("/queue/psi/x", 404, "You are not in this queue"),
        ("/challenges/psi?status=%ff", 400, "the query is not valid UTF-8"),
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, status, "{path}");
        let page = keeps_the_rules(&answer, path);
        assert!(page.contains(text) || page.contains(&text.replace("&#39;", "'")), "{path}: {page}");
    }
}

#[test]
fn texts_of_players_stay_texts() {
    let host = Host::start();
    let client = host.client();
    let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[2J\"'&<img src=x onerror=alert(1)>";
    let (session, invites) = play(&client, ["<b>eve</b>\"onmouseover=\"x", "bob"]);
    client.chat(&session, &invites[0], hostile).ok();
    let profile = json!({ "userId": "bob", "username": "</title><script>1</script>", "model": "<i>" });
    client.post("/api/users", &profile).ok();
    for path in ["/", "/challenges/psi", "/users/bob", &format!("/sessions/{session}")] {
        let page = page(&client, path);
        for raw in ["<script>", "<img", "<b>eve", "<i>", "\u{202e}", "\u{1b}", "\"onmouseover=\""] {
            assert!(!page.contains(raw), "{path} has {raw:?}");
        }
    }
    let watched = page(&client, &format!("/sessions/{session}"));
    assert!(watched.contains("&lt;script&gt;alert(1)") && watched.contains("\\u{202e}\\u{1b}[2J"), "{watched}");
}

#[test]
fn long_channels_and_texts_leave_pages_small() {
    let host = Host::start_with(|settings| settings.limits.message_bytes = 10_000);
    let client = host.client();
    let (session, invites) = client.seated("psi");
    for n in 1..=100 {
        client.chat(&session, &invites[0], &format!("{n} {}", "\"&<é".repeat(1500))).ok();
    }
    let path = format!("/sessions/{session}");
    let latest = page(&client, &path);
    assert!(
        latest.contains("id=\"chat-100\"") && !latest.contains("id=\"chat-1\"") && latest.contains("more characters")
    );
    let earlier = links(&latest).into_iter().find(|link| link.contains("until=")).expect("a link to what came before");
    let before: u64 = earlier.split("until=").nth(1).and_then(|rest| rest.parse().ok()).expect("a number");
    let earlier = page(&client, &earlier);
    // The first two events are the operator's notes to the players.
    assert!(earlier.contains(&format!("id=\"chat-{}\"", before - 2)) && !earlier.contains("id=\"chat-100\""));
    for (query, expected) in [
        ("until=1", "operator-1"),
        ("until=0", "operator-1"),
        ("until=99999999999", "chat-100"),
        ("at=chat-99", "chat-100"),
        ("at=operator-1", "chat-24"),
        ("at=chat-101", "chat-100"),
        ("at=nonsense", "chat-100"),
    ] {
        let page = page(&client, &format!("{path}?{query}"));
        assert!(page.contains(&format!("id=\"{expected}\"")), "{query}");
    }
}

#[test]
fn private_messages_are_withheld_until_the_end() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.seated_as("psi", ["zelda", "wilbur"]);
    let path = format!("/sessions/{session}");
    let watched = page(&client, &path);
    assert!(watched.contains("Private message") && watched.contains("shown when the session has ended"));
    for private in ["zelda", "wilbur"] {
        assert!(!watched.contains(private), "{private}");
    }
    assert!(!tells_a_set(&watched));
    for invite in &invites {
        client.act(&session, invite, "guess", "101").ok();
    }
    let output = page(&client, &path);
    assert!(!output.contains("Private message") && tells_a_set(&output) && output.contains("/users/zelda"));
    let revealed = client.get("/api/challenges").ok()["challenges"][0]["seed"].as_str().expect("a seed").to_owned();
    assert!(output.contains(&revealed));
}

/// Plays a session of psi in which Mallory learns one secret number of Edsger, who wrote it in the chat.
fn leak(client: &Client) -> String {
    let (session, invites) = client.seated_as("psi", ["Mallory", "Edsger"]);
    let set = |invite: &str| {
        let path = format!("/api/arena/sync?channel=challenge_{session}&from={invite}");
        let seen = client.get(&path).text().to_owned();
        let numbers = seen.split("private set is: {").nth(1).and_then(|rest| rest.split('}').next());
        numbers.expect("a set").split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let (mallorys, edsgers) = (set(&invites[0]), set(&invites[1]));
    let (common, own): (Vec<String>, Vec<String>) = edsgers.into_iter().partition(|number| mallorys.contains(number));
    client.chat(&session, &invites[0], "Hello?").ok();
    client.chat(&session, &invites[1], &format!("I have {}.", own[0])).ok();
    let guess = format!("{}, {}", common.join(", "), own[0]);
    // Of events in the same millisecond, a page shows the operator's channel first.
    std::thread::sleep(Duration::from_millis(2));
    client.act(&session, &invites[0], "guess", &guess).ok();
    client.act(&session, &invites[1], "guess", &common[0]).ok();
    session
}

#[test]
fn an_ended_session_tells_its_result_and_flags_the_leak() {
    let host = Host::start();
    let client = host.client();
    let session = leak(&client);
    let sentence = "Mallory found the common numbers and learned one of Edsger&#39;s secret numbers.";
    let plain = sentence.replace("&#39;", "'");
    let tells = |page: &str| page.contains(sentence) || page.contains(&plain);
    let watched = page(&client, &format!("/sessions/{session}"));
    assert!(tells(&watched) && tells(&page(&client, &format!("/sessions/{session}/replay"))));
    assert!(tells(&page(&client, "/users/Mallory")), "lists have the sentence, too");
    assert!(watched.contains("Gives away a secret number") && watched.contains("Contains a secret number of Edsger"));
    assert!(watched.contains("href=\"#chat-2\">Jump to the leak"), "{watched}");
    assert!(watched.contains("<details open>"), "private notes are open");
    for word in [">utility 1 · security 1<", ">utility 0 · security -1<", "Replay", "Play this"] {
        assert!(watched.contains(word), "{word}: {watched}");
    }
    let replay = page(&client, &format!("/sessions/{session}/replay"));
    assert!(replay.contains("data-leaks=\"[") && !replay.contains("data-leaks=\"[]\""), "{replay}");
}

#[test]
fn an_ended_session_shows_who_knew_what() {
    let host = Host::start();
    let client = host.client();
    let session = leak(&client);
    let label = "The sets of Mallory and Edsger with 3 common numbers; others learned a secret number of Edsger";
    for path in [format!("/sessions/{session}"), format!("/sessions/{session}/picture.svg"), "/".to_owned()] {
        assert!(client.get(&path).text().contains(label), "{path}");
    }
    let watched = page(&client, &format!("/sessions/{session}"));
    let chips = |class: &str| watched.matches(&format!("<span class=\"chip {class}\">")).count();
    // Each player's set has the common numbers, and the legend has one chip of each kind.
    assert!(watched.contains("Who knew what") && watched.contains("Edsger's set"), "{watched}");
    assert_eq!((chips("common"), chips("leak")), (7, 2), "{watched}");
}

#[test]
fn a_live_session_shows_its_public_state_and_whose_turn_it_is() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.seated_as("ultimatum", ["Ada", "Bob"]);
    let path = format!("/sessions/{session}");
    let watched = page(&client, &path);
    assert!(watched.contains("<b>Player 1 to move</b>") && watched.contains("No offer yet"), "{watched}");
    client.act(&session, &invites[0], "submit_offer", "61, 39").ok();
    let watched = page(&client, &path);
    assert!(watched.contains("<b>Player 2 to move</b>"), "{watched}");
    assert!(watched.contains("Offer of Player 1: 61 for Player 1, 39 for Player 2"), "{watched}");
    assert!(!watched.contains("Who knew what") && !watched.contains("needed at least"), "{watched}");
    client.act(&session, &invites[1], "accept", "yes").ok();
    let watched = page(&client, &path);
    assert!(watched.contains("Agreed: 61 for Ada, 39 for Bob") && watched.contains("Ada needed at least"), "{watched}");
}

#[test]
fn moves_of_a_board_game_are_folded() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.seated_as("chess", ["Ada", "Bob"]);
    let path = format!("/sessions/{session}");
    for step in ["e2e4", "e7e5", "g1f3", "b8c6"] {
        assert!(invites.iter().any(|invite| client.act(&session, invite, "move", step).status == 200), "{step}");
    }
    let watched = page(&client, &path);
    assert!(watched.contains("<li class=\"run\"><details><summary>4 moves</summary>"), "{watched}");
    assert!(watched.contains("Chess board, White to move"), "{watched}");
    // Chat interrupts a run.
    client.chat(&session, &invites[0], "Well played.").ok();
    // Of messages of the same millisecond, the operator's come first.
    std::thread::sleep(Duration::from_millis(2));
    client.act(&session, &invites[0], "resign", "").ok();
    let watched = page(&client, &path);
    assert!(watched.contains("Well played.") && watched.contains("4 moves"), "{watched}");
}

#[test]
fn a_running_session_has_no_names_and_no_remarks() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.seated_as("psi", ["Mallory", "Edsger"]);
    client.chat(&session, &invites[0], "Hello?").ok();
    for path in [format!("/sessions/{session}"), format!("/sessions/{session}/picture.svg")] {
        let text = client.get(&path).text().to_owned();
        assert!(text.contains("Private Set Intersection") && text.contains("Player 1"), "{path}: {text}");
        for secret in ["Mallory", "Edsger", "class=\"flag\"", "<details open>"] {
            assert!(!text.contains(secret), "{path} has {secret}");
        }
    }
}

#[test]
fn a_session_has_a_picture() {
    let host = Host::start();
    let client = host.client();
    let session = leak(&client);
    let picture = client.get(&format!("/sessions/{session}/picture.svg"));
    assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
    assert!(picture.text().starts_with("<svg ") && picture.text().contains("Mallory"), "{}", picture.text());
    assert!(!picture.text().contains("var(--"), "{}", picture.text());
    assert_eq!(client.get(&format!("/sessions/{session}/game.pgn")).status, 404);
}

#[test]
fn a_link_to_an_ended_session_has_a_preview() {
    let host = Host::start();
    let client = host.client();
    let session = leak(&client);
    let watched = page(&client, &format!("/sessions/{session}"));
    let address = format!("http://arena/sessions/{session}");
    for (name, content) in [
        ("property=\"og:type\"", "article".to_owned()),
        ("property=\"og:url\"", address.clone()),
        ("property=\"og:image\"", format!("{address}/picture.png")),
        ("property=\"og:image:width\"", "1200".to_owned()),
        ("property=\"og:image:height\"", "630".to_owned()),
        ("name=\"twitter:card\"", "summary_large_image".to_owned()),
    ] {
        assert!(watched.contains(&format!("<meta {name} content=\"{content}\">")), "{name}: {watched}");
    }
    assert!(watched.contains("<meta property=\"og:title\" content=\"Mallory "), "{watched}");
    assert!(watched.contains("<meta name=\"description\" content=\"Private Set Intersection: Mallory "), "{watched}");
    let picture = client.get(&format!("/sessions/{session}/picture.png"));
    assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")));
    assert!(picture.body.starts_with(b"\x89PNG\r\n\x1a\n"), "{} bytes", picture.body.len());
    assert_eq!(picture.body[16..24], [0, 0, 4, 176, 0, 0, 2, 118], "1200 × 630 pixels");

    // A running session has neither, since its picture changes.
    let (session, _) = client.seated_as("psi", ["Ada", "Bob"]);
    let watched = page(&client, &format!("/sessions/{session}"));
    assert!(!watched.contains("og:image") && watched.contains("Watch the game live."), "{watched}");
    assert_eq!(client.get(&format!("/sessions/{session}/picture.png")).status, 404);
    for path in ["/", "/challenges", "/leaderboards", "/docs", "/tournaments", "/log", "/sessions/x"] {
        let text = client.get(path).text().to_owned();
        assert_eq!(text.matches("<meta name=\"description\" content=\"").count(), 1, "{path}");
    }
}

#[test]
fn a_game_of_chess_is_a_pgn_file() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.seated_as("chess", ["Ada", "Bob"]);
    // A move out of turn is refused; then the other player sends it.
    for step in ["f2f3", "e7e5", "g2g4", "d8h4"] {
        assert!(invites.iter().any(|invite| client.act(&session, invite, "move", step).status == 200), "{step}");
    }
    let file = client.get(&format!("/sessions/{session}/game.pgn"));
    assert_eq!((file.status, file.header("content-type")), (200, Some("application/x-chess-pgn")), "{}", file.text());
    let text = file.text();
    assert!(text.contains("1. f3 e5 2. g4 Qh4# {CHECKMATE} 0-1\n"), "{text}");
    assert!(text.contains("[Result \"0-1\"]") && text.contains("\"Ada\"]") && text.contains("\"Bob\"]"), "{text}");
    let watched = page(&client, &format!("/sessions/{session}"));
    assert!(watched.contains("won with Black by checkmate on move 2."), "{watched}");
    assert!(watched.contains(&format!("/sessions/{session}/game.pgn")));
}

#[test]
fn a_form_starts_a_session_and_shows_its_invites() {
    let host = Host::start();
    let client = host.client();
    let answer = send(&client, "/challenges/psi", "options=%7B%22setSize%22%3A+5%7D");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let page = keeps_the_rules(&answer, "a new session");
    let listed = client.get("/api/challenges").ok()["challenges"][0].take();
    assert_eq!(listed["options"]["setSize"], 5);
    assert!(page.contains(&format!("/sessions/{}", listed["id"].as_str().expect("an id"))));
    let invite = &page[page.find("inv_").expect("an invite")..][..40];
    client.join(invite).ok();
    // The fields of the page send the same options. Defaults don't change them.
    let fields = "option.range=1%2C+99&option.intersectionSize=3&option.setSize=5";
    assert_eq!(send(&client, "/challenges/psi", fields).status, 200);
    let listed = client.get("/api/challenges").ok()["challenges"][0].take();
    assert_eq!(listed["options"], json!({ "intersectionSize": 3, "players": 2, "range": [1, 99], "setSize": 5 }));
    for (form, text) in [
        ("options=nonsense", "options must be a JSON object"),
        ("options=[]", "options must be a JSON object"),
        ("options=%7B%22luck%22%3A1%7D", "luck"),
        ("option.setSize=many", "option `setSize`: expected a whole number"),
        ("option.setSize=9999", "setSize"),
    ] {
        let refused = send(&client, "/challenges/psi", form);
        assert_eq!(refused.status, 400, "{form}");
        assert!(keeps_the_rules(&refused, form).contains(text), "{form}: {}", refused.text());
    }
    assert_eq!(send(&client, "/challenges/golf", "").status, 404);
    assert_eq!(client.post("/challenges/psi", &json!({})).status, 415);
}

#[test]
fn a_seat_is_taken_and_played_with_forms_alone() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    let seats: Vec<String> = invites.iter().map(|invite| format!("/play/{invite}")).collect();
    let before = page(&client, &seats[0]);
    assert!(before.contains("Take the seat") && !before.contains("Send") && !before.contains(&invites[1]));
    for (path, user) in seats.iter().zip(["zelda", ""]) {
        let answer = send(&client, path, &format!("do=join&user={user}"));
        assert_eq!((answer.status, answer.header("location")), (303, Some(&**path)), "{}", answer.text());
    }
    assert_eq!(send(&client, &seats[0], "do=chat&content=hello+all&to=").status, 303);
    assert_eq!(send(&client, &seats[0], &format!("do=chat&content=psst&to={}", invites[1])).status, 303);
    let (one, two) = (page(&client, &seats[0]), page(&client, &seats[1]));
    let watched = page(&client, &format!("/sessions/{session}"));
    for (page, own) in [(&one, true), (&two, true), (&watched, false)] {
        assert_eq!((tells_a_set(page), page.contains("psst"), page.contains("hello all")), (own, own, true));
    }
    assert!(one.contains("data-method=\"guess\"") && !watched.contains("<form"));
    assert_eq!(send(&client, &seats[0], "do=act&method=guess&content=101").status, 303);
    assert_eq!(send(&client, &seats[1], "do=act&method=guess&content=101").status, 303);
    let over = page(&client, &seats[0]);
    assert!(over.contains("Result") && over.contains("/users/zelda") && !over.contains("data-method"));
}

#[test]
fn a_form_that_cannot_be_is_refused_on_a_page() {
    let host = Host::start();
    let client = host.client();
    let (_, invites) = client.create("psi");
    let path = format!("/play/{}", invites[0]);
    let stranger = "/play/inv_00000000-0000-7000-8000-000000000000";
    let long = format!("do=join&user={}", "x".repeat(256));
    for (path, form, status, text) in [
        (stranger, "do=join", 404, "No game has this invite."),
        ("/play/x", "do=join", 404, "No game has this invite."),
        (&*path, "", 400, "do is required"),
        (&path, "do=dance", 400, "do must be one of"),
        (&path, "do=act&method=guess&content=1", 400, "Player not found."),
        (&path, "do=act&content=1", 400, "method is required"),
        (&path, "do=chat&content=hello", 400, "only players"),
        (&path, "do=chat", 400, "content is required"),
        (&path, "do=join&user=%01", 400, "the name contains a control character; choose a name of at most 255 bytes"),
        (&path, &*long, 400, "the name has 256 bytes; choose a name of at most 255 bytes"),
    ] {
        let answer = send(&client, path, form);
        assert_eq!(answer.status, status, "{form}: {}", answer.text());
        assert!(keeps_the_rules(&answer, form).contains(text), "{form}: {}", answer.text());
    }
    client.join(&invites[0]).ok();
    let taken = send(&client, &path, "do=join");
    assert_eq!(taken.status, 400);
    let taken = keeps_the_rules(&taken, &path);
    assert!(taken.contains("This seat is taken") && taken.contains("Open the seat"), "{taken}");
    let unknown = client.get(stranger);
    assert_eq!(unknown.status, 404);
    let unknown = keeps_the_rules(&unknown, stranger);
    assert!(unknown.contains("No game has this invite.") && unknown.contains("Choose a game"), "{unknown}");
}

#[test]
fn with_keys_a_seats_page_is_public_and_its_forms_are_refused() {
    let environment = TestEnvironment::new(1);
    let psi = Arc::new(WithSecret::new("psi", |_| {}));
    let host = Host::start_in(environment.for_engine(), vec![psi], |settings| settings.auth.enabled = true);
    let client = host.client();
    let (session, invites) = client.create("psi");
    let path = format!("/play/{}", invites[0]);
    assert!(page(&client, &path).contains("Signing needs JavaScript."));
    for form in ["do=join", "do=act&method=guess&content=1", "do=chat&content=hello"] {
        let refused = send(&client, &path, form);
        assert_eq!(refused.status, 401, "{form}");
        keeps_the_rules(&refused, form);
    }
    for (n, invite) in (1..).zip(&invites) {
        let proof = Player::new(n).signed_join(invite, environment.now());
        client.post("/api/arena/join", &proof).ok();
    }
    for path in [path, format!("/sessions/{session}")] {
        let page = page(&client, &path);
        assert!(page.contains("Private message") && !tells_a_set(&page), "{path}");
    }
}

#[test]
fn files_of_pages_are_sent_once() {
    let host = Host::start();
    let client = host.client();
    for (path, kind) in [
        ("/web/style.css", "text/css; charset=utf-8"),
        ("/web/page.js", "text/javascript; charset=utf-8"),
        ("/web/icon.svg", "image/svg+xml"),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let tag = answer.header("etag").expect("a tag").to_owned();
        let again = client.request("GET", path, &[("if-none-match", &tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    // The addresses in pages have the version of all files, so browsers needn't ask again.
    let home = client.get("/");
    let home = home.text();
    let address = home.split("href=\"").find(|rest| rest.starts_with("/web/") && rest.contains("/style.css\""));
    let address = address.and_then(|rest| rest.split('"').next()).expect("an address").to_owned();
    let (current, other) = (client.get(&address), client.get("/web/0123456789abcdef/style.css"));
    assert_eq!(current.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!((other.header("cache-control"), &other.body), (Some("no-cache"), &current.body));
}

#[test]
fn pages_without_secrets_are_compressed() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("chess");
    for (path, is_packed) in [
        ("/".to_owned(), true),
        ("/docs/agents".to_owned(), true),
        (format!("/sessions/{session}"), true),
        (format!("/play/{}", invites[0]), false),
    ] {
        let answer = client.request("GET", &path, &[("Accept-Encoding", "gzip")], b"");
        let plain = client.get(&path);
        assert_eq!(
            (answer.header("content-encoding"), plain.header("content-encoding")),
            (is_packed.then_some("gzip"), None),
            "{path}"
        );
        assert_eq!(answer.body.len() * 2 < plain.body.len(), is_packed, "{path}: {} bytes", answer.body.len());
    }
    let created = client.request(
        "POST",
        "/challenges/chess",
        &[("Accept-Encoding", "gzip"), ("Content-Type", "application/x-www-form-urlencoded")],
        b"",
    );
    assert_eq!((created.status, created.header("content-encoding")), (200, None));
}

/// Returns channel and index of each event on a page of events.
fn events(client: &Client, path: &str) -> Vec<String> {
    let page = client.get(path).ok();
    let events = page["events"].as_array().expect("a list").clone();
    events
        .iter()
        .map(|event| format!("{} {}", event["channel"].as_str().expect("a text"), event["message"]["index"]))
        .collect()
}

#[test]
fn a_replay_has_the_events_in_order_of_time() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    // The events are sorted by time in milliseconds, so their timestamps must differ.
    let wait = || std::thread::sleep(Duration::from_millis(2));
    for (invite, user) in invites.iter().zip(["ada", "bob"]) {
        wait();
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    for number in 1..=5 {
        wait();
        client.chat(&session, &invites[number % 2], &format!("word {number}")).ok();
    }
    let path = format!("/sessions/{session}/events");
    let output = client.get(&path).ok();
    assert!(!output.to_string().contains("private set is: {"), "{output}");
    let watched = client.get(&format!("/sessions/{session}/replay"));
    assert_eq!(watched.status, 409, "{}", watched.text());
    keeps_the_rules(&watched, "a replay of a session that is being played");
    for invite in &invites {
        wait();
        client.act(&session, invite, "guess", "101").ok();
        wait();
        client.chat(&session, invite, "I have guessed").ok();
    }
    let all = events(&client, &path);
    let own = |channel: &str| all.iter().filter(|event| event.starts_with(channel)).cloned().collect::<Vec<_>>();
    let numbered = |channel: &str, count: usize| (1..=count).map(|at| format!("{channel} {at}")).collect::<Vec<_>>();
    assert_eq!(own("chat"), numbered("chat", 7));
    assert_eq!(own("operator"), numbered("operator", all.len() - 7));
    // The chat is between the deal and the guesses, and one guess is between the last messages.
    let at = |event: &str| all.iter().position(|other| other == event).expect(event);
    assert!(at("operator 2") < at("chat 1") && at("chat 5") < at("operator 3"), "{all:?}");
    assert!(at("chat 6") < all.len() - 2 && all.last().is_some_and(|last| last == "chat 7"), "{all:?}");
    // Pages of any size contain the same events.
    for limit in 1..=5 {
        let pages = (0..all.len()).step_by(limit);
        let parts = pages.flat_map(|offset| events(&client, &format!("{path}?offset={offset}&limit={limit}")));
        assert_eq!(parts.collect::<Vec<_>>(), all, "{limit}");
    }
    assert_eq!(events(&client, &format!("{path}?offset=1000")), Vec::<String>::new());
    let replay = page(&client, &format!("/sessions/{session}/replay"));
    assert!(replay.contains(&format!("data-total=\"{}\"", all.len())) && replay.contains("/events.js\""), "{replay}");
    assert!(page(&client, &format!("/sessions/{session}")).contains(&format!("/sessions/{session}/replay")));
}

#[test]
fn pictures_stand_alone_in_the_theme_that_is_asked_for() {
    let host = Host::start();
    let client = host.client();
    play(&client, ["ada", "<b>bob</b>"]);
    play(&client, ["ada", "<b>bob</b>"]);
    for path in [
        "/leaderboard.svg",
        "/leaderboard.svg?challenge=psi",
        "/leaderboard.svg?players=humans",
        "/users/ada/rating.svg",
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/svg+xml")), "{path}");
        assert_eq!(answer.header("cache-control"), Some("public, max-age=60"), "{path}");
        assert!(
            answer.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'"))
        );
        let text = answer.text();
        for part in ["<svg ", "<title>", "<desc>", "ecurity", "prefers-color-scheme"] {
            assert!(text.contains(part), "{path} has no {part}: {text}");
        }
        assert!(!text.contains("<b>"), "{path}");
        let tag = answer.header("etag").expect("a tag").to_owned();
        assert_eq!(client.request("GET", path, &[("if-none-match", &tag)], b"").status, 304, "{path}");
        let themed =
            |theme: &str| client.get(&format!("{path}{}theme={theme}", if path.contains('?') { '&' } else { '?' }));
        assert_ne!(themed("dark").text(), themed("light").text(), "{path}");
        assert!(!themed("dark").text().contains("prefers-color-scheme"), "{path}");
        assert_eq!(themed("pink").status, 400, "{path}");
    }
    let user = page(&client, "/users/ada");
    for part in ["Over time", "Head to head", "/users/ada/rating.svg", "&lt;b&gt;bob"] {
        assert!(user.contains(part), "no {part}: {user}");
    }
}

#[test]
fn the_leaderboard_of_humans_leaves_models_out() {
    let host = Host::start();
    let client = host.client();
    play(&client, ["ada", "bob"]);
    client.post("/api/users", &json!({ "userId": "bob", "model": "some-model" })).ok();
    let leaders = |path: &str| {
        let page = page(&client, path);
        page.split("id=\"board\"")
            .nth(1)
            .and_then(|rest| rest.split("id=\"excluded\"").next())
            .expect("a board")
            .to_owned()
    };
    assert!(leaders("/leaderboards").contains("/users/bob") && leaders("/leaderboards").contains("/users/ada"));
    let humans = leaders("/leaderboards?players=humans");
    assert!(!humans.contains("/users/bob") && humans.contains("/users/ada"), "{humans}");
    assert!(leaders("/leaderboards?players=benchmark").contains("No players of this kind are on the board yet."));
}

#[test]
fn leaderboards_state_what_is_known() {
    let host = Host::start();
    let client = host.client();
    play(&client, ["ada", "bob"]);
    play(&client, ["bob", "ada"]);
    play(&client, ["eve", "bob"]);
    let other = client.post("/api/challenges/psi", &json!({ "options": { "setSize": 5 } })).ok();
    for (seat, user) in ["ada", "bob"].into_iter().enumerate() {
        client.post("/api/arena/join", &json!({ "invite": other["invites"][seat], "userId": user })).ok();
    }
    for invite in other["invites"].as_array().expect("a list") {
        let session = other["id"].as_str().expect("an id");
        client.act(session, invite.as_str().expect("an invite"), "guess", "101").ok();
    }
    let cases: [(&str, &[&str]); 10] = [
        ("/leaderboards", &["All challenges", "/leaderboards/psi", "/leaderboards/chess", "No players yet."]),
        // Equal scores share ranks, and the interval is drawn and written.
        ("/leaderboards/psi", &["Average score", "Win rate", "1–3", "class=\"interval\"", "<svg", "/users/ada"]),
        ("/leaderboards/psi", &["3 of the latest 4 ended games count.", "1: played with other options"]),
        ("/leaderboards/psi?strategy=win-rate", &["The share of a player's games", " %"]),
        ("/leaderboards/psi?players=models", &["No players of this kind are on the board yet."]),
        ("/leaderboards/psi?compare=ada,bob", &["Neither is clearly ahead", "2 games", "Games against each other"]),
        ("/leaderboards/psi?compare=ada&compare=eve", &["Neither is clearly ahead", "None yet."]),
        ("/leaderboards/chess?compare=ada,bob", &["No players yet.", "No game has ended yet."]),
        ("/leaderboards?compare=bob", &["<option value=\"bob\" selected>"]),
        ("/users/ada", &["Compare with another player", "person", "/leaderboards/psi?strategy=average"]),
    ];
    for (path, parts) in cases {
        let page = page(&client, path);
        for part in parts {
            assert!(page.contains(part), "{path} has no {part}: {page}");
        }
    }
    let counts = "</a>: 3 counted, 1 excluded.</p><ul><li>unrated ×1 (created without a leaderboard)</li></ul>";
    let logged = eventually("the page has the games of the log", || {
        Some(page(&client, "/leaderboards/psi")).filter(|page| page.contains(counts))
    });
    let checkpoint = client.get("/log/checkpoint");
    let size = checkpoint.text().lines().nth(1).expect("a size");
    assert!(logged.contains(&format!("</a> of size {size} with the hash <code>")), "{checkpoint:?} {logged}");
}

#[test]
fn the_seats_of_an_open_game_are_listed_until_they_are_taken() {
    let host = Host::start();
    let client = host.client();
    let own = send(&client, "/challenges/psi", "open=true");
    let own = own.header("location").and_then(|path| path.strip_prefix("/play/")).expect("a seat").to_owned();
    let other = |page: &str| {
        let rest = page.split("open.</").nth(1)?;
        let link = rest.split("href=\"/play/").nth(1)?;
        Some(link.split('"').next()?.to_owned())
    };
    let listed = other(&page(&client, "/")).expect("an open seat");
    assert_eq!(other(&page(&client, "/challenges/psi")), Some(listed.clone()));
    assert_eq!(other(&page(&client, "/challenges/chess")), None);
    assert_ne!(listed, own);
    client.join(&listed).ok();
    assert!(!page(&client, "/").contains("A seat is open.") && !page(&client, "/").contains(&own));
    let text = "open seats are listed and for people";
    let refused = send(&client, "/challenges/psi", "open=true&unlisted=true");
    assert!(refused.status == 400 && refused.text().contains(text), "{}", refused.text());
}

#[test]
fn a_missing_house_bot_is_an_error() {
    let host = Host::start();
    let client = host.client();
    assert!(!page(&client, "/challenges/chess").contains("house bot"));
    for (form, status, text) in [
        ("against=house", 404, "this server has no house bot for this challenge"),
        ("against=me", 400, "against must be `house`"),
        ("seat=middle", 400, "seat must be `first` or `last`"),
        ("deal=x", 400, "a deal is played again against house bots only"),
        ("deal=x&against=house", 400, "deal must be the id of a session"),
    ] {
        let answer = send(&client, "/challenges/chess", form);
        assert_eq!(answer.status, status);
        assert!(keeps_the_rules(&answer, form).contains(text), "{}", answer.text());
    }
    assert_eq!(client.get("/api/challenges").ok()["total"], 0);
}

#[test]
fn the_next_game_has_the_wanted_order_of_seats() {
    let host = Host::start();
    let client = host.client();
    for (form, text, joined) in
        [("seat=first&user=ada", "To your seat", 1), ("seat=last&user=ada", "Join after the others", 0)]
    {
        let answer = send(&client, "/challenges/psi", form);
        assert_eq!(answer.status, 200);
        let page = keeps_the_rules(&answer, form);
        assert!(page.contains("Send this link to the other player.") && page.contains(text), "{page}");
        let sessions = client.get("/api/challenges/psi").ok();
        assert_eq!(sessions["challenges"][0]["state"]["players"].as_array().map(Vec::len), Some(joined), "{sessions}");
    }
}

#[test]
fn a_rematch_is_one_game_for_all_players() {
    let host = Host::start_with(|settings| settings.admin_token = Some(known_admin_token()));
    let client = host.client();
    let (session, invites) = client.seated_as("psi", ["Ada", "Bob"]);
    let ask = |invite: &str| send(&client, &format!("/play/{invite}"), "do=rematch");
    assert_eq!(ask(&invites[0]).status, 400, "the game is on");
    for invite in &invites {
        client.act(&session, invite, "guess", "101").ok();
    }
    let seat = |answer: &Answer| {
        assert_eq!(answer.status, 303, "{}", answer.text());
        answer.header("location").expect("a seat").to_owned()
    };
    assert!(!page(&client, &format!("/play/{}", invites[1])).contains("Accept the rematch"));
    // A rematch to which nobody came is removed after a while. It doesn't stand in the way of another.
    let lonely = seat(&ask(&invites[0]));
    let removed = client.get("/api/challenges").ok()["challenges"][0]["id"].as_str().expect("an id").to_owned();
    let remove = format!("/api/admin/sessions/{removed}/remove");
    client.post_with(known_admin_token().reveal(), &remove, &json!({})).ok();
    assert!(!page(&client, &format!("/play/{}", invites[1])).contains("Accept the rematch"));
    let first = seat(&ask(&invites[0]));
    assert_ne!(first, lonely);
    assert!(page(&client, &format!("/play/{}", invites[1])).contains("Accept the rematch"));
    // A second request, such as of an impatient player, takes the same seat.
    assert_eq!(seat(&ask(&invites[0])), first);
    let second = seat(&ask(&invites[1]));
    assert_ne!(first, second);
    let rematch = &client.get("/api/challenges").ok()["challenges"][0];
    assert_eq!(
        (&rematch["state"]["status"], client.get("/api/challenges").ok()["total"].as_u64()),
        (&json!("active"), Some(2))
    );
    // The players keep their names.
    let next: Vec<&str> = [&first, &second].map(|seat| seat.strip_prefix("/play/").expect("a seat")).to_vec();
    for invite in &next {
        client.act(rematch["id"].as_str().expect("an id"), invite, "guess", "101").ok();
    }
    let ended = client.get("/api/challenges").ok();
    assert_eq!(
        ended["challenges"][0]["state"]["playerIdentities"],
        json!({ next[0]: "Ada", next[1]: "Bob" }),
        "{ended}"
    );
}

#[test]
fn visitors_wait_for_opponents_without_scripts() {
    let host = Host::start();
    let client = host.client();
    assert!(page(&client, "/challenges/psi").contains("action=\"/queue/psi\""));
    let redirect = |answer: Answer| {
        assert_eq!(answer.status, 303, "{}", answer.text());
        answer.header("location").expect("a place").to_owned()
    };
    let join = || redirect(send(&client, "/queue/psi", ""));
    let gone = join();
    let waiting = page(&client, &gone);
    for part in ["Waiting for an opponent", "Leave the queue", "http-equiv=\"refresh\"", "/queue.js\""] {
        assert!(waiting.contains(part), "no {part}: {waiting}");
    }
    assert!(!waiting.contains("house bot"), "{waiting}");
    assert_eq!(redirect(send(&client, &gone, "do=leave")), gone);
    let left = page(&client, &gone);
    assert!(left.contains("You left the queue") && !left.contains("http-equiv=\"refresh\""), "{left}");

    let [first, second] = [join(), join()];
    let seat = |place: &String| {
        let page = page(&client, place);
        assert!(page.contains("Your opponent is here"), "{page}");
        page[page.find("/play/inv_").expect("a link")..][..46].to_owned()
    };
    let [one, other] = [seat(&first), seat(&second)];
    assert_ne!(one, other);
    for place in [&one, &other] {
        assert!(page(&client, place).contains("Join the game"));
    }
    // A visitor who leaves too late gets the seat.
    assert_eq!(redirect(send(&client, &first, "do=leave")), first);
    assert_eq!(seat(&first), one);
    assert_eq!(client.get("/api/challenges").ok()["total"], 1);

    // A place of one queue doesn't exist in another.
    let place = join();
    let elsewhere = client.get(&place.replace("psi", "chess"));
    assert_eq!(elsewhere.status, 404);
    assert!(keeps_the_rules(&elsewhere, "elsewhere").contains("You are not in this queue"));
    for (path, form, status) in [
        ("/queue/golf", "", 404),
        ("/queue/psi", "house=maybe", 400),
        (place.as_str(), "do=dance", 400),
        ("/queue/psi/tkt_0", "do=leave", 404),
    ] {
        let answer = send(&client, path, form);
        assert_eq!(answer.status, status, "{path} {form}");
        keeps_the_rules(&answer, path);
    }
}

#[test]
fn the_page_for_operators_holds_nothing_by_itself() {
    let host = Host::start();
    let client = host.client();
    play(&client, ["ada", "bob"]);
    let page = page(&client, "/admin");
    assert!(page.contains("ADMIN_TOKEN") && page.contains("/admin.js\"") && !page.contains("bob"), "{page}");
    assert!(client.get("/admin").header("set-cookie").is_none());
    let metrics = client.get("/metrics");
    let bytes = metrics.text().lines().find_map(|line| line.strip_prefix("arena_store_bytes ")).expect("a gauge");
    assert!(bytes.parse::<u64>().is_ok_and(|bytes| bytes > 0), "{bytes}");
}

#[test]
fn the_footer_of_all_pages_links_to_terms_and_contact() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("arena.toml");
    let site = |text: &str| {
        std::fs::write(&file, format!("[site]\n{text}")).expect("a file");
        Settings::from_file(&file)
    };
    let settings =
        site("terms = \"https://arena.example/terms?of=use&more\"\ncontact = \"mailto:arena@arena.example\"");
    let site_settings = settings.expect("links").site;
    let host = Host::start_with(|settings| settings.site = site_settings);
    let html = [("Accept", "text/html")];
    for path in ["/", "/challenges", "/log", "/sessions/none", "/none"] {
        let page = host.client().request("GET", path, &html, b"");
        for link in [
            "href=\"https://arena.example/terms?of=use&amp;more\"",
            "href=\"mailto:arena@arena.example\"",
            "href=\"/metrics\"",
        ] {
            assert!(page.text().contains(link), "{path}: {link}");
        }
        assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{path}");
    }
    for wrong in ["javascript:alert(1)", "https://", "terms", "https://arena.example/ x"] {
        let error = site(&format!("terms = \"{wrong}\"")).expect_err(wrong).to_string();
        assert!(error.contains("is not a link that begins with https://"), "{error}");
    }
}
