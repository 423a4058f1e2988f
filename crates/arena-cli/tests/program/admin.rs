//! Administration through the program: the token of a first start, and all `arena admin` commands.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use arena_testkit::{Client, data_folder};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Run, Running, arena, file, run, run_with};

/// A server and its data folder. Commands read the administrator's token from the folder.
struct AdminCommandFixture {
    server: Running,
    data: tempfile::TempDir,
}

impl AdminCommandFixture {
    fn open() -> AdminCommandFixture {
        let data = data_folder();
        AdminCommandFixture { server: Running::serve(data.path()), data }
    }

    fn run(&self, args: &[&str]) -> Run {
        let data = self.data.path().to_str().unwrap();
        run(&[&["admin"], args, &["--url", &self.server.url, "--data", data]].concat())
    }

    #[track_caller]
    fn stdout_of(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
        run.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    /// Plays a game that both users lose. Returns the session's id.
    fn play(&self, users: [&str; 2]) -> String {
        let client = self.client();
        let (session, invites) = client.seated_as("psi", users);
        client.chat(&session, &invites[0], "good luck").ok();
        for invite in &invites {
            client.act(&session, invite, "guess", "1").ok();
        }
        session
    }
}

#[test]
fn the_token_is_printed_at_the_first_start_and_stored() {
    let data = data_folder();
    let mut first = Running::serve(data.path());
    let token = first.line_after("administrator's token: ");
    let advice = first.line_after("(shown this once and kept in ");
    let kept = data.path().join("admin.token");
    assert!(advice.starts_with(kept.to_str().unwrap()), "{advice}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), format!("{token}\n"));
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let shown =
        run_with(&["admin", "api", "GET", "/admin/bans", "--url", &first.url], &[("ARENA_ADMIN_TOKEN", &token)]);
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "{\"bans\":[]}\n"), "{}", shown.stderr);
    first.signal(Signal::TERM);
    assert!(first.ended().success());
    assert!(!first.said().contains(&token), "the log contains the token");

    let mut second = Running::serve(data.path());
    assert_eq!(run(&["admin", "api", "GET", "/admin/bans", "--token", &token, "--url", &second.url]).code, 0);
    second.signal(Signal::TERM);
    assert!(second.ended().success());
    let house = "Open this address in a browser to play. House bots are on.";
    assert_eq!(second.rest(), [house], "the token is printed once");
}

#[test]
fn a_configured_token_is_the_only_valid_one() {
    let data = data_folder();
    let made = Running::serve(data.path()).line_after("administrator's token: ");
    let own = "a-token-of-the-owners-choice";
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()];
    let server = Running::start_with(&args, &[("ADMIN_TOKEN", own)]);
    let bans = |token: &str| run(&["admin", "api", "GET", "/admin/bans", "--token", token, "--url", &server.url]);
    assert_eq!(bans(own).code, 0);
    let refused = bans(&made);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("isn't this server's administrator token"), "{}", refused.stderr);
    drop(server);
    for (silly, why) in [
        ("", "at least 24 characters"),
        ("admin", "at least 24 characters"),
        ("with spaces in it, and long", "without spaces"),
    ] {
        let refused = run_with(&args, &[("ADMIN_TOKEN", silly)]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
        assert!(refused.stderr.contains("invalid ADMIN_TOKEN") && refused.stderr.contains(why), "{}", refused.stderr);
    }
    // A token in a file that others can read is refused.
    fs::set_permissions(data.path().join("admin.token"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&args);
    assert_eq!((refused.code, refused.stdout.as_str()), (6, ""));
    assert!(refused.stderr.contains("accessible to other users"), "{}", refused.stderr);
}

#[test]
fn a_remote_arena_does_not_receive_this_machines_token() {
    let here = data_folder();
    fs::create_dir(here.path().join("arena-data")).unwrap();
    let mut server = Running::serve(&here.path().join("arena-data"));
    let asked = |url: &str| {
        let output =
            arena(&["admin", "api", "GET", "/admin/bans", "--url", url]).current_dir(here.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(asked(&server.url), (Some(0), String::new()));
    // No server answers at this address, so a command that sent a request would end with another exit code.
    let (code, said) = asked("http://192.0.2.1:9");
    assert_eq!(code, Some(2));
    assert!(said.contains("ARENA_ADMIN_TOKEN") && said.contains("--data"), "{said}");
    let elsewhere = data_folder();
    let output = arena(&["admin", "api", "GET", "/admin/bans", "--url", &server.url])
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let missing = run(&[
        "admin",
        "api",
        "GET",
        "/admin/bans",
        "--data",
        elsewhere.path().to_str().unwrap(),
        "--url",
        &server.url,
    ]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("admin.token"), "{}", missing.stderr);
    server.signal(Signal::TERM);
    server.ended();
}

#[test]
fn any_route_is_called_from_the_command_line() {
    let fixture = AdminCommandFixture::open();
    let second = fixture.play(["ada", "\u{e9}ve"]);
    let get = |path: &str| fixture.json(&["api", "GET", path]);
    let post = |path: &str, body: &Value| fixture.json(&["api", "POST", path, "--body", &body.to_string()]);

    let benchmark = json!({ "userId": "bob", "isBenchmark": true });
    assert_eq!(post("/admin/users/bob/benchmark", &json!({ "isBenchmark": true })), benchmark);
    // The path may begin with /api, and the body come from a pipe.
    let body = file(fixture.data.path(), "body", "{ \"isBenchmark\": false }");
    let data = fixture.data.path().to_str().unwrap();
    let piped = ["admin", "api", "post", "api/admin/users/bob/benchmark", "--body", "-", "--data", data];
    let output = arena(&[&piped[..], &["--url", &fixture.server.url]].concat())
        .stdin(fs::File::open(body).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"userId\":\"bob\"}\n");
    let refused = fixture.run(&["api", "POST", "/admin/bans/lift", "--body", "{\"userId\": \"ada\"}"]);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("BAN_NOT_FOUND"), "{}", refused.stderr);
    let remove = ["api", "POST", &format!("/admin/sessions/{second}/remove")];
    assert_eq!(fixture.json(&remove), json!({ "removed": true }));
    let refused = fixture.run(&remove);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("no session has this id"), "{}", refused.stderr);
    assert_eq!(get("/admin/audit?limit=2")["total"], 3);

    for (args, expected) in [
        (&["api", "GET", "/admin/bans", "--body", "{}"][..], "only a POST has a body"),
        (&["api", "POST", "/admin/bans", "--body", "[1]"], "expected a JSON object"),
    ] {
        let refused = fixture.run(args);
        assert!(refused.code == 2 && refused.stderr.contains(expected), "{refused:#?}");
    }
}

#[test]
fn an_export_is_a_private_file_that_another_arena_imports() {
    let there = AdminCommandFixture::open();
    let session = there.play(["ada", "bob"]);
    let out = data_folder();
    let path = out.path().join("arena.jsonl");
    let path = path.to_str().unwrap();
    assert_eq!(there.stdout_of(&["export", "--out", path]), format!("wrote 13 lines to {path}\n"));
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = fs::read_to_string(path).unwrap();
    assert_eq!(there.stdout_of(&["export"]), lines);
    assert_eq!(there.json(&["export", "--out", path]), json!({ "lines": 13, "file": path }));
    // Output to a special file doesn't replace it.
    for descriptor in ["/dev/stdout", "/dev/fd/1"] {
        assert_eq!(there.stdout_of(&["export", "--out", descriptor]), lines);
    }
    let pipe = out.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let piped = std::thread::scope(|scope| {
        let reader = scope.spawn(|| fs::read_to_string(&pipe).unwrap());
        assert_eq!(there.stdout_of(&["export", "--out", pipe.to_str().unwrap()]), "");
        reader.join().unwrap()
    });
    assert_eq!(piped, lines);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    let link = out.path().join("link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    there.stdout_of(&["export", "--out", link.to_str().unwrap()]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(path).unwrap(), lines);

    let here = AdminCommandFixture::open();
    let taken = "imported: 2 users, 1 session, 10 messages; skipped: 0 lines\n";
    assert_eq!(here.stdout_of(&["import", path]), taken);
    assert_eq!(here.stdout_of(&["export"]), lines);
    let again = here.stdout_of(&["import", path]);
    assert!(again.starts_with("imported: 0 users, 0 sessions, 0 messages; skipped: 13 lines\n  line 1: "), "{again}");
    assert!(again.contains(&format!("line 3: session {session} exists already")), "{again}");
    let broken = file(out.path(), "broken.jsonl", "not JSON\n");
    let report = here.json(&["import", &broken]);
    assert_eq!((&report["skippedTotal"], &report["skipped"][0]["line"]), (&json!(1), &json!(1)));

    let missing = here.run(&["import", "no-such-file"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (2, ""));
    let nowhere = there.run(&["export", "--out", "no-such-folder/arena.jsonl"]);
    assert_eq!(nowhere.code, 2);
    // The command reports a wrong token, even if the server refuses the request before it has read the whole file.
    let long = file(out.path(), "long.jsonl", &lines.repeat(2000));
    let refused = run(&["admin", "import", &long, "--token", "x", "--url", &here.server.url]);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("AUTHENTICATION_REQUIRED"), "{}", refused.stderr);
    let refused = run(&["admin", "export", "--token", "x", "--url", &here.server.url]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""));
}

#[test]
fn an_import_comes_from_a_pipe_too() {
    let there = AdminCommandFixture::open();
    there.play(["ada", "bob"]);
    let here = AdminCommandFixture::open();
    let lines = file(here.data.path(), "lines", &there.stdout_of(&["export"]));
    let data = here.data.path().to_str().unwrap();
    let output = arena(&["admin", "import", "-", "--data", data, "--url", &here.server.url])
        .stdin(fs::File::open(lines).unwrap())
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("imported: 2 users, 1 session,"));
}

#[test]
fn with_a_private_address_administration_and_metrics_are_there_only() {
    let folder = data_folder();
    let data = folder.path().to_str().unwrap();
    let serve = |network: &str| {
        let settings = file(folder.path(), "arena.toml", &format!("[network]\n{network}\n"));
        ["serve", "--listen", "127.0.0.1:0", "--data", data, "--config", &settings].map(str::to_owned)
    };
    let private_listen = serve("private_listen = \"127.0.0.1:0\"");
    let mut server = Running::start(&private_listen.each_ref().map(String::as_str));
    let private = server.line_after("Administration and metrics are at ");
    let client = |url: &str| Client::new(url.strip_prefix("http://").unwrap().parse().unwrap());
    let (public_client, private_client) = (client(&server.url), client(&private));

    for path in ["/metrics", "/admin", "/api/admin/bans", "/api/v1/admin/audit"] {
        let answer = public_client.request("GET", path, &[("Accept", "application/json")], b"");
        assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
        assert_ne!(private_client.get(path).status, 404, "{path}");
    }
    let links = |client: &Client| client.get("/").text().contains("href=\"/metrics\"");
    assert_eq!([links(&public_client), links(&private_client)], [false, true]);
    for path in ["/health", "/ready", "/api/metadata", "/"] {
        assert_eq!([public_client.get(path).status, private_client.get(path).status], [200, 200], "{path}");
    }
    let bans = |url: &str| run(&["admin", "api", "GET", "/admin/bans", "--url", url, "--data", data]).code;
    assert_eq!(bans(&private), 0);
    assert_ne!(bans(&server.url), 0);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));

    // A private address that other machines can reach needs authentication, as the public one does.
    let run = run(&serve("private_listen = \"0.0.0.0:0\"").each_ref().map(String::as_str));
    assert!(run.code != 0 && run.stderr.contains("refusing to listen on 0.0.0.0:0"), "{}", run.stderr);
}
