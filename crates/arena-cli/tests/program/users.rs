//! Profiles and leaderboards on the command line.

use arena_testkit::data_folder;
use serde_json::json;

use crate::program::{Running, run, run_with};

#[test]
fn users_and_leaderboards_are_read_and_profiles_changed() {
    let data = data_folder();
    let server = Running::serve(data.path());
    let url = server.url.as_str();
    let client = server.client();
    let (session, invites) = client.seated_as("psi", ["ada", "bob"]);
    for invite in &invites {
        client.act(&session, invite, "guess", "1").ok();
    }
    let updated = run(&["users", "update", "--username", "Ada", "--user-id", "ada", "--url", url]).json();
    assert_eq!(updated, json!({ "userId": "ada", "username": "Ada" }));
    run(&["users", "update", "--model", "engine-1", "--user-id", "ada", "--url", url]).json();
    let ada = json!({ "userId": "ada", "username": "Ada", "model": "engine-1" });
    assert_eq!(run(&["users", "get", "ada", "--url", url]).json(), ada);
    assert_eq!(run(&["users", "get", "--url", url]).json(), json!([ada, { "userId": "bob" }]));
    assert_eq!(run(&["users", "get", "eve", "--url", url]).code, 3);
    assert_eq!(run(&["users", "update", "--user-id", "ada", "--url", url]).code, 2);
    assert_eq!(run(&["users", "update", "--username", "Ada", "--url", url]).code, 3);

    let global = run(&["scoring", "--url", url, "--limit", "1"]).json();
    assert_eq!((global.as_array().unwrap().len(), &global[0]["gamesPlayed"]), (1, &json!(1)));
    let psi = run(&["scoring", "psi", "--sort", "win-rate:utility", "--offset", "1", "--url", url]).json();
    assert_eq!(psi["win-rate"].as_array().unwrap().len(), 1);
    assert_eq!(run(&["scoring", "go-fish", "--url", url]).code, 3);
    assert!(run(&["scoring", "psi", "--sort", "luck", "--url", url]).stderr.contains("INVALID_SORT"));
}

#[test]
fn the_holder_of_a_key_changes_its_profile() {
    let (home, data) = (data_folder(), data_folder());
    let server =
        Running::start(&["serve", "--auth", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()]);
    let person =
        |args: &[&str]| run_with(&[args, &["--url", &server.url]].concat(), &[("HOME", home.path().to_str().unwrap())]);
    let user = person(&["identity", "new"]).json()["userId"].as_str().unwrap().to_owned();
    let updated = person(&["users", "update", "--username", "Ada", "--sign"]).json();
    assert_eq!(updated, json!({ "userId": user, "username": "Ada" }));
    let unsigned = person(&["users", "update", "--username", "Eve", "--user-id", &user]);
    assert_eq!(unsigned.code, 3);
    assert!(unsigned.stderr.contains("--sign"), "{}", unsigned.stderr);
}
