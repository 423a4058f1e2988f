//! The pages: that they are there, load nothing from elsewhere, show what people wrote as text and nothing private, and stay small.

use arena_testkit::{Answer, Client, Host};
use serde_json::json;

/// The largest page, in bytes.
const MOST_BYTES: usize = 100_000;

/// Asks for a page as a browser does, and checks what all pages keep.
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
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
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

/// Fills in a form.
fn send(client: &Client, path: &str, form: &str) -> Answer {
    client.request("POST", path, &[("content-type", "application/x-www-form-urlencoded")], form.as_bytes())
}

/// A session of psi that has been played to its end by users of these names.
fn play(client: &Client, users: [&str; 2]) -> (String, Vec<String>) {
    let (session, invites) = client.create("psi");
    for (invite, user) in invites.iter().zip(users) {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    for invite in &invites {
        client.act(&session, invite, "guess", "101").ok();
    }
    (session, invites)
}

/// The paths of this server that a page links to.
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
    client.create("chess");
    let mut open = vec!["/".to_owned()];
    let mut seen = Vec::new();
    while let Some(path) = open.pop() {
        if seen.contains(&path) {
            continue;
        }
        let answer = client.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let is_page = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if is_page && path != "/docs" {
            open.extend(links(&keeps_the_rules(&answer, &path)));
        }
        seen.push(path);
    }
    for expected in
        ["/challenges/chess", "/users/ada", "/style.css", "/web/page.js", "/web/session.js", "/?challenge=psi"]
    {
        assert!(seen.iter().any(|path| path == expected), "nothing leads to {expected}: {seen:?}");
    }
    assert!(seen.contains(&format!("/sessions/{session}")));
}

#[test]
fn what_is_not_there_is_told_on_a_page() {
    let host = Host::start();
    let client = host.client();
    let stranger = "/sessions/00000000-0000-7000-8000-000000000000";
    for (path, status, text) in [
        ("/challenges/golf", 404, "Challenge not found"),
        ("/?challenge=golf", 404, "Challenge not found"),
        ("/sessions/x", 404, "there is no such session"),
        (stranger, 404, "there is no such session"),
        ("/users/nobody", 404, "User not found"),
        ("/?sort=luck", 400, "sort must be one of"),
        ("/web/none.js", 404, "there is no such file"),
        ("/challenges/psi?status=%ff", 400, "the query isn&#39;t valid UTF-8"),
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
    let (session, invites) = play(&client, ["<b>eve</b>\u{202e}\"onmouseover=\"x", "bob"]);
    client.chat(&session, &invites[0], hostile).ok();
    let profile = json!({ "userId": "bob", "username": "</title><script>1</script>", "model": "<i>\u{202e}" });
    client.post("/api/users", &profile).ok();
    for path in ["/", "/challenges/psi", "/users/bob", "/?challenge=psi", &format!("/sessions/{session}")] {
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
    let (session, invites) = client.create("psi");
    for invite in &invites {
        client.join(invite).ok();
    }
    for n in 1..=100 {
        client.chat(&session, &invites[0], &format!("{n} {}", "\"&<é".repeat(1500))).ok();
    }
    let path = format!("/sessions/{session}");
    let latest = page(&client, &path);
    assert!(
        latest.contains("id=\"chat-100\"") && !latest.contains("id=\"chat-1\"") && latest.contains("characters more")
    );
    let earlier = links(&latest).into_iter().find(|link| link.contains("chat=")).expect("a link to what came before");
    let before: u64 = earlier.split("chat=").nth(1).and_then(|rest| rest.parse().ok()).expect("an index");
    let earlier = page(&client, &earlier);
    assert!(earlier.contains(&format!("id=\"chat-{before}\"")) && !earlier.contains("id=\"chat-100\""));
    assert!(page(&client, &format!("{path}?chat=1")).contains("id=\"chat-1\""));
    assert!(page(&client, &format!("{path}?chat=99999999999")).contains("id=\"chat-100\""));
}

#[test]
fn what_is_private_is_shown_as_withheld_until_the_end() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    for (invite, user) in invites.iter().zip(["zelda", "wilbur"]) {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    let path = format!("/sessions/{session}");
    let watched = page(&client, &path);
    assert!(watched.contains("Private: not to be read here.") && watched.contains("told at the end"));
    for private in ["private set", "zelda", "wilbur"] {
        assert!(!watched.contains(private), "{private}");
    }
    for invite in &invites {
        client.act(&session, invite, "guess", "101").ok();
    }
    let told = page(&client, &path);
    assert!(!told.contains("Private: not") && told.contains("private set") && told.contains("/users/zelda"));
    let revealed = client.get("/api/challenges").ok()["challenges"][0]["seed"].as_str().expect("a seed").to_owned();
    assert!(told.contains(&revealed));
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
    for (form, text) in [
        ("options=nonsense", "the options aren"),
        ("options=[]", "the options aren"),
        ("options=%7B%22luck%22%3A1%7D", "luck"),
    ] {
        let refused = send(&client, "/challenges/psi", form);
        assert_eq!(refused.status, 400, "{form}");
        assert!(keeps_the_rules(&refused, form).contains(text), "{form}: {}", refused.text());
    }
    assert_eq!(send(&client, "/challenges/golf", "").status, 404);
    assert_eq!(client.post("/challenges/psi", &json!({})).status, 415);
}

#[test]
fn files_of_pages_are_sent_once() {
    let host = Host::start();
    let client = host.client();
    for (path, kind) in [
        ("/style.css", "text/css; charset=utf-8"),
        ("/web/page.js", "text/javascript; charset=utf-8"),
        ("/web/icon.svg", "image/svg+xml"),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let tag = answer.header("etag").expect("a tag").to_owned();
        let again = client.request("GET", path, &[("if-none-match", &tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
}
