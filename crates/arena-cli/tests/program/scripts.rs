//! Challenge folders that are added, changed, broken and removed while a server hosts them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::Client;
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Running, folder, run};

const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../arena-script/tests/challenges/coin");

/// Copies the example to `folder`, with `from` replaced by `to` in all of its files.
fn write(folder: &Path, from: &str, to: &str) {
    fs::create_dir_all(folder).unwrap();
    for name in ["challenge.json", "index.js"] {
        let text = fs::read_to_string(Path::new(EXAMPLE).join(name)).unwrap();
        fs::write(folder.join(name), text.replace(from, to)).unwrap();
    }
}

fn serve(data: &Path, challenges: Option<&Path>) -> (Running, Client) {
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    if let Some(folder) = challenges {
        args.extend(["--challenges", folder.to_str().unwrap()]);
    }
    let server = Running::start(&args);
    let client = server.client();
    (server, client)
}

/// Polls until the answer meets the condition.
fn wait_for(client: &Client, path: &str, wanted: impl Fn(&Value) -> bool) {
    let start = Instant::now();
    while !wanted(&client.get(path).json()) {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "timeout while waiting for {path}: {}",
            client.get(path).text()
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the operator's messages to player 1 so far.
fn operator_texts(client: &Client, session: &str, invite: &str) -> Vec<String> {
    let answer = client.get(&format!("/api/arena/sync?channel={session}&from={invite}")).ok();
    let messages = answer["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sessions_keep_their_version_after_changes_restarts_and_removal() {
    let (data, challenges) = (folder(), folder());
    let pennies = challenges.path().join("pennies");
    write(&pennies, "", "");
    let (mut server, client) = serve(data.path(), Some(challenges.path()));
    assert_eq!(client.get("/api/metadata/pennies").ok()["players"], 2);
    let (first, invites) = client.create("pennies");
    client.join(&invites[0]).ok();
    let version = |session: &str| {
        let page = client.get("/api/challenges/pennies").ok();
        let sessions = page["challenges"].as_array().unwrap();
        let found = sessions.iter().find(|each| each["id"] == session).unwrap();
        found["scriptVersion"].as_str().unwrap().to_owned()
    };
    let old = version(&first);
    assert_eq!(old.len(), 64);

    // If a folder is broken, the earlier version stays hosted.
    fs::write(pennies.join("index.js"), "export const createChallenge = (;").unwrap();
    // The server reads folders in alphabetical order. When it hosts the new folder, it has also read the broken one.
    write(&challenges.path().join("quarters"), "Matching Pennies", "Quarters");
    wait_for(&client, "/api/metadata", |all| all["quarters"]["name"] == "Quarters");
    client.create("pennies");

    write(&pennies, "You are player", "You sit at");
    write(&pennies, "Matching Pennies", "Pennies");
    write(&challenges.path().join("clash"), "", "");
    fs::rename(challenges.path().join("clash"), challenges.path().join("psi")).unwrap();
    wait_for(&client, "/api/metadata/pennies", |metadata| metadata["name"] == "Pennies");
    let (second, _) = client.create("pennies");
    assert_ne!(version(&second), old);
    assert_eq!(client.get("/api/metadata/psi").ok()["name"], "Private Set Intersection");
    fs::remove_dir_all(&pennies).unwrap();
    wait_for(&client, "/api/metadata", |all| all.get("pennies").is_none());
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = server.said();
    assert!(log.contains("pennies/index.js:1: "), "{log}");
    assert!(log.contains("`psi` is the name of a hosted built-in challenge"), "{log}");

    let (mut server, client) = serve(data.path(), None);
    client.join(&invites[1]).ok();
    client.act(&first, &invites[0], "show", "heads").ok();
    client.act(&first, &invites[1], "show", "heads").ok();
    let operator_texts = operator_texts(&client, &first, &invites[0]);
    assert_eq!(operator_texts.first().map(String::as_str), Some("You are player 1."));
    assert!(operator_texts.last().unwrap().starts_with("Game ended."), "{operator_texts:?}");
    server.signal(Signal::TERM);
    assert!(server.ended().success());
}

#[test]
fn a_failed_call_refuses_the_action_and_is_logged() {
    let (data, challenges) = (folder(), folder());
    let pennies = challenges.path().join("pennies");
    write(
        &pennies,
        "const { shown } = this.gameState;",
        "if (content === \"heads\") null.x;\nconst { shown } = this.gameState;",
    );
    let (mut server, client) = serve(data.path(), Some(&pennies));
    let (session, invites) = client.create("pennies");
    invites.iter().for_each(|invite| drop(client.join(invite).ok()));
    let (status, refusal) = client.act(&session, &invites[0], "show", "heads").refusal();
    assert_eq!((status, refusal.as_str()), (400, "CHALLENGE_FAILED"));
    client.act(&session, &invites[0], "show", "tails").ok();
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = server.said();
    assert!(
        log.contains("challenge pennies failed on message show: TypeError: cannot read property 'x' of null"),
        "{log}"
    );
    assert!(log.contains("at message (index.js:31)"), "{log}");
}

#[test]
fn other_games_continue_while_a_script_takes_long() {
    let (data, challenges) = (folder(), folder());
    let pennies = challenges.path().join("pennies");
    // The engine doesn't count the work on large numbers, so the call takes until the limit on time.
    let slow = "let n = 3n; for (let i = 0; i < 16; i++) n *= n; for (;;) n % 7n;";
    write(&pennies, "const { shown } = this.gameState;", &format!("{slow}\nconst {{ shown }} = this.gameState;"));
    let (_server, client) = serve(data.path(), Some(&pennies));
    let (session, invites) = client.create("pennies");
    invites.iter().for_each(|invite| drop(client.join(invite).ok()));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // One call for each thread of a small machine.
        for invite in &invites {
            scope.spawn(|| {
                client.act(&session, invite, "show", "heads").refusal();
                is_over.store(true, Ordering::SeqCst);
            });
        }
        // The calls have begun when the players' connections are busy, which nothing shows, so the test waits.
        thread::sleep(Duration::from_millis(300));
        for _ in 0..8 {
            let (session, invites) = client.create("psi");
            client.join(&invites[0]).ok();
            client.chat(&session, &invites[0], "hello").ok();
        }
        assert!(!is_over.load(Ordering::SeqCst), "the other games waited for the script");
    });
}

#[test]
fn a_folder_can_be_played_in_matches() {
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents/python/psi.py");
    let psi = concat!(env!("CARGO_MANIFEST_DIR"), "/../arena-script/tests/challenges/psi");
    let result = run(&["match", "run", psi, "--agent", agent, "--agent", agent, "--json", "--seed", "4"]).json();
    assert_eq!(result["game"], "psi", "{result}");
    let refused = run(&["match", "run", "./nowhere", "--agent", agent, "--agent", agent]);
    assert!(refused.stderr.starts_with("error: there is no game `./nowhere`"), "{}", refused.stderr);
}

#[test]
fn a_missing_folder_prevents_the_start() {
    let data = folder();
    let [store, nothing] = ["store", "nothing"].map(|name| data.path().join(name).to_str().unwrap().to_owned());
    let refused = run(&["serve", "--listen", "127.0.0.1:0", "--data", &store, "--challenges", &nothing]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    let sentence = format!("error: cannot read the challenges in {nothing}: No such file or directory (os error 2)\n");
    assert_eq!(refused.stderr, sentence);
    assert!(!Path::new(&store).exists(), "a store was created");
}

#[test]
fn a_person_plays_by_the_declared_form_of_a_challenge() {
    let data = folder();
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/challenges"));
    let (_server, client) = serve(data.path(), Some(examples));
    let (session, invites) = client.seated("sealed-bid-auction");
    let path = format!("/play/{}", invites[0]);
    let page = client.get(&path).text().to_owned();
    for part in ["Place the bid", "type=\"number\"", "name=\"field-amount\"", "(optional)"] {
        assert!(page.contains(part), "no {part}: {page}");
    }
    let post = |form: &str| client.request("POST", &path, &FORM, form.as_bytes());
    let refused = post("do=act&method=bid&field-guess=63");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("Your bid, 0 to 100 is required"), "{}", refused.text());
    assert_eq!(post("do=act&method=bid&field-amount=40&field-guess=").status, 303);
    client.act(&session, &invites[1], "bid", "35").ok();
    let page = client.get(&path).text().to_owned();
    assert!(page.contains("did best, with a utility of") || page.contains("Both bidders did equally well."), "{page}");
}

#[test]
fn a_house_bot_plays_all_challenges_with_forms_also_later_ones() {
    let (data, challenges) = (folder(), folder());
    write(&challenges.path().join("pennies"), "", "");
    let (_server, client) = serve(data.path(), Some(challenges.path()));
    let request = |name: &str| client.request("POST", &format!("/challenges/{name}"), &FORM, b"against=house");
    assert_eq!(request("pennies").status, 404, "without forms there is no bot");

    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/challenges"));
    for name in ["sealed-bid-auction", "expense-desk", "merger-talks", "safe-house"] {
        copy(&examples.join(name), &challenges.path().join(name));
        wait_for(&client, "/api/metadata", |all| all.get(name).is_some());
        let page = client.get(&format!("/challenges/{name}")).text().to_owned();
        assert!(page.contains("Play against a house bot") && !page.contains("Easy opponent"), "{page}");
        let answer = request(name);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let invite = answer.header("location").unwrap().strip_prefix("/play/").unwrap().to_owned();
        let seat = client.get(&format!("/api/players/{invite}")).ok();
        let id = seat["id"].as_str().unwrap();
        let list = format!("/api/challenges/{name}");
        let session = |all: &Value| {
            let all = all["challenges"].as_array().unwrap();
            all.iter().find(|session| session["id"] == id).unwrap().clone()
        };
        let has_status = |status: &str| wait_for(&client, &list, |all| session(all)["state"]["status"] == status);
        has_status("active");
        assert_eq!(session(&client.get(&list).ok())["rated"], false);

        // An action may have to wait for the bot's.
        let act = |method: &str, content: &str| {
            let start = Instant::now();
            while client.act(id, &invite, method, content).status != 200 {
                assert!(start.elapsed() < Duration::from_secs(30), "{name} refuses {method} {content}");
                thread::sleep(Duration::from_millis(100));
            }
        };
        match name {
            "sealed-bid-auction" => act("bid", "40"),
            "expense-desk" => {
                let texts = operator_texts(&client, id, &invite).join("\n");
                let is_invoice = |line: &&str| line.starts_with(['K', 'L']) && line.contains(": ");
                act("submit", &texts.lines().filter(is_invoice).collect::<Vec<_>>().join("\n"));
                act("approve", "none");
            }
            "merger-talks" => {
                act("walk", "none");
                act("guess", "none");
            }
            _ => act("go", "harbour"),
        }
        has_status("ended");
        let user = client.get(&format!("/api/users/house-{name}")).ok();
        assert!(user["model"].as_str().unwrap().starts_with("a house bot that fills the forms"), "{user}");
        let page = client.get(&format!("/users/house-{name}"));
        assert!(page.text().contains("Play against this house bot"), "{}", page.text());
    }
}

/// Copies the files of a folder, and then its `challenge.json`, so that the server never reads a part of them.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|file| file.path().is_file()) {
        if file.file_name() != "challenge.json" {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    fs::copy(from.join("challenge.json"), to.join("challenge.json")).unwrap();
}
