//! Challenge folders and settings in the reference server's format, hosted unchanged and played to their ends. The
//! folders are in `tests/specarena`. Each folder uses another form of imports and classes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arena_testkit::Client;
use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, file, folder};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/specarena");

fn serve(data: &Path, config: &str) -> (Running, Client) {
    let (data, challenges) = (data.to_str().unwrap(), format!("{HERE}/challenges"));
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", data, "--config", config, "--challenges", &challenges];
    let server = Running::start(&args);
    let client = server.client();
    (server, client)
}

/// A session, with the invites of its players.
struct Session<'c> {
    client: &'c Client,
    id: String,
    invites: Vec<String>,
}

impl<'c> Session<'c> {
    fn seated(client: &'c Client, name: &str, users: &[&str]) -> Session<'c> {
        let (id, invites) = client.create(name);
        assert_eq!(invites.len(), users.len());
        for (invite, user) in invites.iter().zip(users) {
            client.post("/api/arena/join", &json!({"invite": invite, "userId": user})).ok();
        }
        Session { client, id, invites }
    }

    /// Acts as player `number`. Returns the code of the refusal, or an empty text.
    fn act(&self, number: usize, method: &str, content: &str) -> String {
        let answer = self.client.act(&self.id, &self.invites[number - 1], method, content);
        if answer.status == 200 { String::new() } else { answer.json()["code"].as_str().unwrap().to_owned() }
    }

    /// Returns the operator's messages that player `number` can read, one per line.
    fn operator_text(&self, number: usize) -> String {
        let path = format!("/api/arena/sync?channel={}&from={}", self.id, self.invites[number - 1]);
        let answer = self.client.get(&path).ok();
        let mut operator_text = String::new();
        for message in answer["messages"].as_array().unwrap() {
            if message["from"] == "operator" && message["redacted"] != true {
                let content = message["content"].as_str().unwrap().replace('\n', "⏎");
                let content = self.invites.iter().zip(1..).fold(content, |content, (invite, number)| {
                    content.replace(invite.as_str(), &format!("inv_{number}"))
                });
                operator_text += &content;
                operator_text.push('\n');
            }
        }
        operator_text
    }

    /// Returns the numbers in the first private message to player `number`.
    fn numbers(&self, number: usize) -> Vec<u64> {
        let operator_text = self.operator_text(number);
        let first = operator_text.lines().next().unwrap().replace(|char: char| !char.is_ascii_digit(), " ");
        first.split_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    fn ended(&self) -> Value {
        let page = self.client.get("/api/challenges").ok();
        let found = page["challenges"].as_array().unwrap().iter().find(|each| each["id"] == *self.id).unwrap().clone();
        assert_eq!(found["state"]["status"], "ended", "{found}");
        found
    }
}

fn joined(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn same(operator_text: &str, expected: Expect) {
    expected.assert_eq(operator_text);
}

#[test]
fn four_folders_and_their_config_are_hosted_and_played() {
    let data = folder();
    let (mut server, client) = serve(data.path(), &format!("{HERE}/config.json"));
    let metadata = client.get("/api/metadata").ok();
    let cards: BTreeMap<&str, [&str; 3]> = metadata
        .as_object()
        .unwrap()
        .iter()
        .map(|(id, one)| (id.as_str(), ["name", "color", "icon"].map(|key| one[key].as_str().unwrap())))
        .collect();
    assert_eq!(
        cards,
        BTreeMap::from([
            ("dining-cryptographers", ["Who Paid", "purple", "utensils"]),
            ("millionaire", ["Who Is Richer", "green", "dollar"]),
            ("psi", ["Sets in Common", "blue", "intersection"]),
            ("ultimatum", ["Split the Sum", "yellow", "handshake"]),
        ])
    );
    assert_eq!(
        metadata["millionaire"]["authors"],
        json!([{"name": "Test Author", "url": "https://example.org"}, {"name": "Another Author"}])
    );

    psi(&client);
    millionaire(&client);
    ultimatum(&client);
    dining(&client);

    // Each challenge is scored as configured.
    let boards = client.get("/api/scoring/psi").ok();
    let names: Vec<&String> = boards.as_object().unwrap().keys().collect();
    assert_eq!(names, ["average", "consecutive", "red-team", "win-rate"]);
    let entry = |board: &str, user: &str| {
        let rows = boards[board].as_array().unwrap();
        rows.iter().find(|row| row["playerId"] == user).unwrap()["metrics"].clone()
    };
    assert_eq!(entry("red-team", "ben")["red-team:attack"], 1.0);
    assert_eq!(entry("average", "ada")["average:security"], -1.0);
    let global = client.get("/api/scoring").ok();
    assert_eq!(global.as_array().unwrap().len(), 3);
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = server.said();
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
}

fn psi(client: &Client) {
    let game = Session::seated(client, "psi", &["ada", "ben"]);
    let [mine, theirs]: [BTreeSet<u64>; 2] = [1, 2].map(|number| game.numbers(number).into_iter().collect());
    let common: Vec<u64> = mine.intersection(&theirs).copied().collect();
    assert_eq!((mine.len(), theirs.len(), common.len()), (6, 6, 2), "{mine:?} {theirs:?}");
    assert!(mine.union(&theirs).all(|number| (10..=99).contains(number)));
    let own = *mine.difference(&theirs).next().unwrap();
    assert_eq!(game.act(1, "guess", "nothing"), "INVALID_GUESS");
    assert_eq!(game.act(1, "guess", "1 2 3 4 5 6 7"), "GUESS_TOO_LARGE");
    assert_eq!(game.act(1, "guess", &joined(common.clone())), "");
    assert_eq!(game.act(1, "guess", "1"), "DUPLICATE_GUESS");
    assert_eq!(game.act(2, "guess", &joined(common.iter().copied().chain([own]))), "");
    let target = format!("{{{}}}", joined(common));
    let operator_text = game.operator_text(2).lines().skip(1).collect::<Vec<_>>().join("\n").replace(&target, "{…}");
    // Player 2 can read everything after the end.
    let operator_text: Vec<&str> = operator_text.lines().filter(|line| !line.starts_with("Your private set")).collect();
    same(
        &(operator_text.join("\n") + "\n"),
        expect![[r#"
            Player inv_1 sent a guess
            Player 2 outcome:⏎- Intersection Found: true⏎- Wrong Guess: 0⏎- Extra Guess: 0⏎- Utility: 1⏎- Target: {…}⏎
            Player inv_2 sent a guess
            Player 1 outcome:⏎- Intersection Found: true⏎- Wrong Guess: 0⏎- Extra Guess: 1⏎- Utility: 1⏎- Target: {…}⏎
            Game ended.⏎⏎Scores are:⏎- Player 1: {"security":-1,"utility":1}⏎- Player 2: {"security":1,"utility":1}
        "#]],
    );
    let ended = game.ended();
    assert_eq!(
        ended["state"]["attributions"],
        json!([{"from": game.invites[1], "to": game.invites[0], "type": "security_breach"}])
    );
    assert_eq!(ended["gameState"]["guessed"], json!([0, 1]), "what `serialize` makes of sets");
}

fn millionaire(client: &Client) {
    let mut pairs = BTreeSet::new();
    for _ in 0..8 {
        let game = Session::seated(client, "millionaire", &["ada", "ben"]);
        pairs.insert((game.numbers(1)[0], game.numbers(2)[0]));
    }
    assert!(pairs.iter().any(|(mine, theirs)| mine != theirs), "all reservations are equal: {pairs:?}");
    let game = Session::seated(client, "millionaire", &["ada", "ben"]);
    let (mine, theirs) = (game.numbers(1)[0], game.numbers(2)[0]);
    assert_eq!(game.act(1, "guess", "0"), "INVALID_GUESS");
    assert_eq!(game.act(1, "guess", "much"), "INVALID_GUESS");
    let direction = |own: u64, guess: u64, other: u64| guess.cmp(&own) == other.cmp(&own);
    let guess = if mine == 100 { 1 } else { 100 };
    assert_eq!(game.act(1, "guess", &guess.to_string()), "");
    assert_eq!(game.act(2, "guess", &format!("{mine} million")), "");
    let is_right = direction(mine, guess, theirs);
    let exact = guess == theirs;
    let operator_text = game.operator_text(1);
    let answer = |guess: u64, is_right: bool, exact: bool| {
        let utility = if is_right { "1 (correct direction)" } else { "-1 (wrong direction)" };
        let impact = if exact { "You guessed the exact wealth!" } else { "Exact wealth was not revealed." };
        format!("Your guess: ${guess}M⏎- Utility: {utility}⏎- Security impact: {impact}\n")
    };
    assert!(operator_text.contains(&answer(guess, is_right, exact)), "{operator_text}");
    // The session has ended, so player 1 can read the messages to player 2.
    assert!(operator_text.contains(&answer(mine, true, true)), "{operator_text}");
    let scores = game.ended()["state"]["scores"].clone();
    let of = |security: bool, utility: bool| json!({"security": if security { 1 } else { -1 }, "utility": if utility { 1 } else { -1 }});
    assert_eq!(scores, json!([of(false, is_right), of(!exact, true)]));
}

fn ultimatum(client: &Client) {
    let game = Session::seated(client, "ultimatum", &["ada", "ben"]);
    let (mine, theirs) = (game.numbers(1)[0], game.numbers(2)[0]);
    assert!(mine <= 20 && theirs <= 20);
    assert_eq!(game.act(2, "pass", ""), "NOT_YOUR_TURN");
    assert_eq!(game.act(1, "accept", ""), "NO_OFFER");
    assert_eq!(game.act(1, "submit_offer", "60"), "INVALID_OFFER");
    assert_eq!(game.act(1, "submit_offer", "-10, 70"), "NEGATIVE_AMOUNT");
    assert_eq!(game.act(1, "submit_offer", "10, 20"), "INVALID_OFFER_SUM");
    assert_eq!(game.act(1, "submit_offer", "40, 20"), "");
    assert_eq!(game.act(2, "reject", ""), "");
    assert_eq!(game.act(1, "submit_offer", "35, 25"), "");
    assert_eq!(game.act(2, "pass", ""), "");
    assert_eq!(game.act(1, "accept", ""), "CANNOT_ACCEPT_OWN");
    assert_eq!(game.act(1, "pass", ""), "");
    assert_eq!(game.act(2, "accept", ""), "");
    let operator_text: Vec<String> = game
        .operator_text(1)
        .lines()
        .filter(|line| {
            !line.starts_with("Your private") && !line.starts_with("Agreement") && !line.starts_with("Game ended")
        })
        .map(str::to_owned)
        .collect();
    same(
        &(operator_text.join("\n") + "\n"),
        expect![[r#"
            Ultimatum game started!⏎- Total to split: 60⏎- Players: 2⏎- Max rounds: 3⏎- Turn order: round_robin⏎⏎Player 1's turn. (Round 1/3)
            Player 1 proposes: Player 1: 40, Player 2: 20
            Player 2's turn. (Round 1/3)
            Player 2 rejects the offer. The table is cleared.
            Player 1's turn. (Round 2/3)
            Player 1 proposes: Player 1: 35, Player 2: 25
            Player 2's turn. (Round 2/3)
            Player 2 passes.
            Player 1's turn. (Round 3/3)
            Player 1 passes.
            Player 2's turn. (Round 3/3)
            Player 2 accepts the offer.
        "#]],
    );
    let surplus = [35 - mine as i64, 25 - theirs as i64];
    let agreed = format!(
        "Agreement reached!⏎⏎Player 1: receives 35 (reservation: {mine}, surplus: {})⏎Player 2: receives 25 (reservation: {theirs}, surplus: {})\n",
        surplus[0], surplus[1]
    );
    assert!(game.operator_text(2).contains(&agreed), "{}", game.operator_text(2));
    let scores = game.ended()["state"]["scores"].clone();
    for (seat, surplus) in surplus.iter().enumerate() {
        assert_eq!(scores[seat]["security"], 0);
        assert!((scores[seat]["utility"].as_f64().unwrap() - *surplus as f64 / 60.0).abs() < 1e-12);
    }

    let deadlock = Session::seated(client, "ultimatum", &["ada", "ben"]);
    for turn in 0..6 {
        assert_eq!(deadlock.act(1 + turn % 2, "pass", ""), "");
    }
    let operator_text = deadlock.operator_text(1);
    let ends: Vec<&str> = operator_text.lines().rev().take(2).collect();
    assert_eq!(ends[1], "Deadlock! Maximum rounds reached with no agreement. All players receive 0.");
    assert_eq!(deadlock.ended()["state"]["scores"][0]["utility"], 0);
}

fn dining(client: &Client) {
    let mut payers = BTreeSet::new();
    for _ in 0..12 {
        let game = Session::seated(client, "dining-cryptographers", &["ada", "ben", "cyd"]);
        let payer = (1..=3).find(|number| game.operator_text(*number).starts_with("You paid the bill."));
        payers.insert(payer);
        assert_eq!(game.act(1, "guess", "me"), "INVALID_GUESS");
        // All players accuse player 1.
        let named = game.invites[0].clone();
        for number in 1..=3 {
            assert_eq!(game.act(number, "guess", &named), "");
        }
        let ended = game.ended();
        let (security, utility) = match payer {
            Some(1) => ([-1, 1, 1], 1),
            _ => ([1, 1, 1], -1),
        };
        let scores: Vec<Value> =
            security.iter().map(|security| json!({"security": security, "utility": utility})).collect();
        assert_eq!(ended["state"]["scores"], json!(scores));
        let breaches = ended["state"]["attributions"].as_array().map_or(0, Vec::len);
        assert_eq!(breaches, if payer == Some(1) { 2 } else { 0 });
        let who = payer.map_or("an external party".to_owned(), |payer| format!("inv_{payer}"));
        let operator_text = game.operator_text(3);
        let expected = format!(
            "The bill was paid by {who}.⏎⏎- inv_1: guessed inv_1⏎- inv_2: guessed inv_1⏎- inv_3: guessed inv_1\n"
        );
        assert!(operator_text.contains(&expected), "{operator_text}");
        assert!(operator_text.contains(
            "All diners have arrived: inv_1, inv_2, inv_3.⏎⏎The bill has been paid. Who paid it? Submit your guess.\n"
        ));
    }
    assert!(payers.len() > 1, "the payer is always the same: {payers:?}");
}

#[test]
fn a_session_of_a_built_in_challenge_keeps_its_rules_when_a_folder_replaces_it() {
    let data = folder();
    let settings = |text: &str| file(data.path(), "settings.json", text);
    let server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()]);
    let client = server.client();
    let (id, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    server.signal(Signal::TERM);
    drop(server);

    let (server, client) = serve(
        data.path(),
        &settings(
            r#"{"challenges": [{"name": "psi", "options": {"players": 2, "range": [10, 99], "intersectionSize": 2, "setSize": 4}}]}"#,
        ),
    );
    let hosted: Vec<String> = client.get("/api/metadata").ok().as_object().unwrap().keys().cloned().collect();
    // The other folders need options, and the config has none for them.
    assert_eq!(hosted, ["dining-cryptographers", "millionaire", "psi"]);
    assert_eq!(client.get("/api/metadata/psi").ok()["name"], "Sets in Common");
    client.join(&invites[1]).ok();
    let game = Session { client: &client, id, invites };
    assert_eq!(game.numbers(1).len(), 13, "the built-in challenge was dealt");
    for number in [1, 2] {
        assert_eq!(game.act(number, "guess", "1"), "");
    }
    game.ended();
    // A challenge without an entry in the settings has the default scoring.
    let rich = Session::seated(&client, "millionaire", &["ada", "ben"]);
    for number in [1, 2] {
        assert_eq!(rich.act(number, "guess", "50"), "");
    }
    let boards = client.get("/api/scoring/millionaire").ok();
    assert_eq!(boards["average"].as_array().unwrap().len(), 2, "{boards}");
    assert_eq!(client.get("/api/scoring").ok().as_array().unwrap().len(), 2);
    drop(server);
}

#[test]
fn the_folders_pass_the_check_of_their_secrets() {
    for name in ["psi", "millionaire", "ultimatum", "dining-cryptographers"] {
        let path = format!("{HERE}/challenges/{name}");
        let options: &[&str] = match name {
            "psi" => {
                &["--set", "players=2", "--set", "range=[10,99]", "--set", "intersectionSize=2", "--set", "setSize=4"]
            }
            "ultimatum" => {
                &["--set", "players=2", "--set", "total=60", "--set", "maxRounds=3", "--set", "reservationMax=20"]
            }
            _ => &[],
        };
        let checked = crate::program::run(&[&["author", "check", &path, "--no-bots"], options].concat());
        assert_eq!(checked.code, 0, "{checked:#?}");
        assert!(!checked.stdout.contains("the same secret"), "{checked:#?}");
    }
}
