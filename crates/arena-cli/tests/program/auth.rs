//! Authentication through the program: keys of users, session keys, and the server's secret.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use arena_testkit::data_folder;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::players::{list, numbers};
use crate::program::{Run, Running, file, run, run_with};

/// A user with a home folder.
struct Person {
    home: tempfile::TempDir,
}

impl Person {
    fn new() -> Person {
        Person { home: data_folder() }
    }

    fn run(&self, args: &[&str]) -> Run {
        run_with(args, &[("HOME", self.home.path().to_str().unwrap())])
    }

    fn keys(&self) -> std::path::PathBuf {
        self.home.path().join(".arena/keys")
    }

    /// Creates a key, and returns its user id.
    fn new_identity(&self) -> String {
        text(&self.run(&["identity", "new"]).json()["userId"])
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

fn serve(data: &Path, environment: &[(&str, &str)]) -> Running {
    let args = ["serve", "--auth", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    Running::start_with(&args, environment)
}

/// Returns the operator's messages to the holder of a key.
fn operator_texts(url: &str, session: &str, key: &str) -> Vec<String> {
    let read = run(&["challenges", "sync", session, "--auth", key, "--url", url, "--wait", "20"]).json();
    let messages = read["messages"].as_array().unwrap();
    messages.iter().map(|message| text(&message["content"])).collect()
}

fn set(url: &str, session: &str, key: &str) -> BTreeSet<u32> {
    let operator_texts = operator_texts(url, session, key);
    numbers(operator_texts.iter().find_map(|content| content.strip_prefix("Your private set is: ")).unwrap())
}

#[test]
fn two_people_play_psi_with_keys_on_a_server_with_authentication() {
    let data = data_folder();
    let server = serve(data.path(), &[]);
    let url = server.url.as_str();
    let people = [Person::new(), Person::new()];
    let users = people.each_ref().map(Person::new_identity);
    let created = run(&["challenges", "create", "psi", "--url", url]).json();
    let session = text(&created["id"]);
    let invites = [0, 1].map(|seat| text(&created["invites"][seat]));

    // The first user signs with its only key. The second user chooses a key.
    let first = people[0].run(&["challenges", "join", &invites[0], "--sign", "--url", url]).json();
    let second = people[1].run(&["challenges", "join", &invites[1], "--sign", &users[1], "--url", url]).json();
    assert_eq!(first["ChallengeID"], session.as_str());
    assert_eq!(first["ChallengeInfo"]["players"], 2);
    let keys = [first, second].map(|joined| text(&joined["sessionKey"]));
    assert!(keys[0].starts_with("s_0.") && keys[1].starts_with("s_1."), "{keys:?}");

    let sets = keys.each_ref().map(|key| set(url, &session, key));
    let common: BTreeSet<u32> = &sets[0] & &sets[1];
    assert_eq!((sets[0].len(), sets[1].len(), common.len()), (13, 13, 3));

    // The key may be before the verb, after it, or in the environment; the command line takes precedence.
    let say = ["chat", "send", session.as_str(), "hello", "--url", url];
    let wrong = [("ARENA_AUTH", keys[1].as_str())];
    let before = run_with(&[&["--auth", &keys[0]], &say[..]].concat(), &wrong).json();
    let behind = run_with(&[&say[..], &["--auth", &keys[0]]].concat(), &wrong).json();
    let around = run_with(&say, &[("ARENA_AUTH", &keys[0])]).json();
    for (index, sent) in (1..).zip([before, behind, around]) {
        assert_eq!((&sent["index"], &sent["from"]), (&json!(index), &json!(invites[0])));
    }
    // `--from` doesn't replace the session key.
    let refused = run(&[&say[..], &["--from", &invites[0]]].concat());
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("give --auth KEY with the session key from your join"), "{refused:?}");
    let refused = run(&[&say[..], &["--auth", "s_0.00"]].concat());
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (
            3,
            "error: the server refused the request: Authentication required; the key given with --auth doesn't belong to this session \
             (AUTHENTICATION_REQUIRED, HTTP 401)\n"
        )
    );

    for key in &keys {
        run(&["challenges", "send", &session, "guess", &list(&common), "--auth", key, "--url", url]).json();
    }
    let ended = run(&["challenges", "list", "psi", "--status", "ended", "--url", url]).json();
    let state = &ended["challenges"][0]["state"];
    assert_eq!(state["scores"], json!([{ "security": 1, "utility": 1 }, { "security": 1, "utility": 1 }]));
    let identities = invites.iter().zip(&users).map(|(invite, user)| (invite.clone(), json!(user))).collect();
    assert_eq!(state["playerIdentities"], Value::Object(identities));
}

#[test]
fn an_identity_is_two_private_files_and_is_listed() {
    let person = Person::new();
    assert_eq!(person.run(&["identity", "list"]).json(), json!([]));
    let made = person.run(&["identity", "new"]).json();
    let user = text(&made["userId"]);
    let [public, private] = ["publicKey", "privateKey"].map(|name| text(&made[name]));
    assert_eq!(public, person.keys().join(format!("{user}.pub")).to_str().unwrap());
    assert_eq!(private, person.keys().join(format!("{user}.key")).to_str().unwrap());
    assert_eq!(fs::read_to_string(&public).unwrap(), format!("{}\n", text(&made["publicKeyHex"])));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&person.keys()), mode(public.as_ref()), mode(private.as_ref())), (0o700, 0o600, 0o600));
    assert_eq!(person.run(&["identity", "list"]).json(), json!([made]));

    let elsewhere = data_folder();
    let out = elsewhere.path().join("keys");
    let other = person.run(&["identity", "new", "--out", out.to_str().unwrap()]).json();
    assert_ne!(other["userId"], made["userId"]);
    assert!(text(&other["privateKey"]).starts_with(out.to_str().unwrap()));
    assert_eq!(fs::read_dir(person.keys()).unwrap().count(), 2);
    assert!(
        !format!("{made}{other}").contains(fs::read_to_string(private).unwrap().trim()),
        "the private key was printed"
    );
}

#[test]
fn a_join_that_cannot_be_signed_is_refused_with_the_reason() {
    let data = data_folder();
    let server = serve(data.path(), &[]);
    let created = run(&["challenges", "create", "psi", "--url", &server.url]).json();
    let invite = text(&created["invites"][0]);
    let person = Person::new();
    let refused = |code: i32, args: &[&str]| {
        let run = person.run(&[&["challenges", "join"], args, &["--url", &server.url]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{}", run.stderr);
        run.stderr
    };
    assert!(refused(2, &[&invite, "--sign"]).contains("create one with `arena identity new`"));
    let users = [person.new_identity(), person.new_identity()];
    let said = refused(2, &[&invite, "--sign"]);
    assert!(users.iter().all(|user| said.contains(&format!("\n  --sign {user}\n"))), "{said}");
    assert!(refused(2, &[&invite, "--sign", "no-such-file"]).contains("cannot read no-such-file"));
    let junk = file(data.path(), "junk.key", "junk");
    assert!(refused(2, &[&invite, "--sign", &junk]).contains("cannot use the key"));
    refused(2, &[&invite, "--sign", &users[0], "--user-id", "ada"]);
    assert!(refused(2, &["inv_x", "--sign", &users[0]]).contains("inv_x is not an invite"));
    let said = refused(3, &[&invite]);
    assert!(said.contains("sign the request with --sign; `arena identity new` creates a key"), "{said}");
    assert!(refused(3, &[&invite, "--user-id", "ada"]).contains("publicKey, signature, and timestamp are required"));

    let private = person.keys().join(format!("{}.key", users[1]));
    let join = ["challenges", "join", &invite, "--sign", private.to_str().unwrap(), "--url", &server.url];
    assert!(text(&person.run(&join).json()["sessionKey"]).starts_with("s_0."));
    assert!(refused(3, &[&invite, "--sign", &users[1]]).contains("INVITE_ALREADY_USED"));
}

/// Joins a new session. Returns its id and the session key.
fn joined(server: &Running) -> (String, String) {
    let person = Person::new();
    person.new_identity();
    let created = run(&["challenges", "create", "psi", "--url", &server.url]).json();
    let invite = text(&created["invites"][0]);
    let joined = person.run(&["challenges", "join", &invite, "--sign", "--url", &server.url]).json();
    (text(&created["id"]), text(&joined["sessionKey"]))
}

fn say(server: &Running, (session, key): &(String, String)) -> i32 {
    run(&["chat", "send", session, "hello", "--auth", key, "--url", &server.url]).code
}

/// Stops a server, and returns its log.
fn stop(mut server: Running) -> String {
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    server.said()
}

#[test]
fn session_keys_stay_valid_after_a_restart_with_the_same_secret() {
    let data = data_folder();
    let server = serve(data.path(), &[]);
    let seat = joined(&server);
    assert_eq!(say(&server, &seat), 0);
    stop(server);
    let server = serve(data.path(), &[]);
    assert_eq!(say(&server, &seat), 0);
    stop(server);
    let server = serve(data.path(), &[("AUTH_SECRET", "another secret, not the kept one")]);
    assert_eq!(say(&server, &seat), 3);
    stop(server);

    // The stored secret can also be passed in `AUTH_SECRET`, for example on another machine.
    let kept = fs::read_to_string(data.path().join("auth.secret")).unwrap();
    let server = serve(data.path(), &[("AUTH_SECRET", kept.trim())]);
    assert_eq!(say(&server, &seat), 0);
    stop(server);
    fs::remove_file(data.path().join("auth.secret")).unwrap();
    let server = serve(data.path(), &[]);
    assert_eq!(say(&server, &seat), 3);
}

#[test]
fn a_configured_secret_is_not_stored() {
    let data = data_folder();
    let server = serve(data.path(), &[("AUTH_SECRET", "given, and nobody's business")]);
    let seat = joined(&server);
    assert_eq!(say(&server, &seat), 0);
    assert!(!data.path().join("auth.secret").exists());
}

#[test]
fn a_weak_or_readable_secret_prevents_the_start() {
    let data = data_folder();
    let data = data.path().to_str().unwrap();
    let serve = ["serve", "--auth", "--listen", "127.0.0.1:0", "--data", data];
    for (secret, length) in [("", 0), ("hunter2", 7), ("fifteen bytes .", 15)] {
        let refused = run_with(&serve, &[("AUTH_SECRET", secret)]);
        let sentence = format!("error: invalid AUTH_SECRET: the secret has {length} bytes, but needs at least 16\n");
        assert_eq!((refused.code, refused.stderr), (2, sentence));
    }
    let kept = file(data.as_ref(), "auth.secret", "a secret that everybody could read\n");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&serve);
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("the secret file {kept} is accessible to other users")), "{refused:?}");
    // A server without authentication needs no secret, and ignores AUTH_SECRET.
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", data];
    stop(Running::start_with(&args, &[("AUTH_SECRET", "short")]));
}

#[test]
fn listening_on_other_addresses_requires_authentication() {
    let data = data_folder();
    let listen = ["serve", "--listen", "0.0.0.0:0", "--data", data.path().to_str().unwrap()];
    let refused = run(&listen);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("use --auth to authenticate players"), "{}", refused.stderr);
    let log = stop(Running::start(&[&listen[..], &["--auth"]].concat()));
    assert!(log.contains("the pages name no contact"), "{log}");
    let text = "[auth]\nenabled = true\n[site]\ncontact = \"mailto:ada@arena.example\"\n";
    let settings = file(data.path(), "arena.toml", text);
    let log = stop(Running::start(&[&listen[..], &["--config", &settings]].concat()));
    assert!(!log.contains("contact"), "{log}");
    let unknown = file(data.path(), "arena.toml", "[auth]\nenabled = true\nsecret = \"in the open, as it were\"\n");
    let refused = run(&[&listen[..], &["--config", &unknown]].concat());
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("unknown field `secret`"), "{}", refused.stderr);
}
