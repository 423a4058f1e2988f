//! Every response matches the OpenAPI description. schemathesis generates requests from `/openapi.json`. This file
//! starts a server with data, and passes the ids of the data to schemathesis. The test needs the packages that `cargo
//! xtask setup python` installs.
//!
//! `ARENA_FUZZ_EXAMPLES` is the number of cases per route and kind of data. The cases are deterministic;
//! `ARENA_FUZZ_SEED` selects others.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use arena_match::Launcher;
use arena_model::ChallengeType;
use arena_server::{Creators, Settings, Uploaders};
use arena_testkit::{Client, Host, Player, TestEnvironment, known_admin_token, known_secret, python};
use serde_json::{Map, Value, json};

/// Default number of cases per route and kind of data.
const EXAMPLES: &str = "50";

/// A server, and the values for parameters and fields, by dictionary.
struct FuzzFixture {
    host: Host,
    dictionaries: Vec<(&'static str, Vec<String>)>,
    /// Data for the hooks: keys by session, signed bodies by path, and fields of requests that the server ignores.
    seeds: Value,
}

impl FuzzFixture {
    /// Starts a server with an ended game, two active ones, and free seats. Its data is deterministic.
    fn new(keys: bool) -> FuzzFixture {
        let environment = TestEnvironment::new(7);
        let challenges = arena_games::challenges().map(builtin).collect();
        let host = Host::start_in(environment.for_engine(), challenges, |settings: &mut Settings| {
            settings.auth.enabled = keys;
            settings.auth.secret = keys.then(known_secret);
            settings.admin_token = Some(known_admin_token());
            let tournaments = &mut settings.tournaments;
            (tournaments.enabled, tournaments.urls, tournaments.private_urls) = (true, true, true);
            (tournaments.create, tournaments.upload) = (Creators::Anyone, Uploaders::Anyone);
            // Uploads are refused, since there is no launcher.
            tournaments.launcher = Some(Launcher { program: "/no/such/launcher".into(), args: Vec::new() });
        });
        let client = host.client();
        let crew = [1, 2].map(Player::new);
        let games: Vec<Game> =
            ["psi", "psi", "ultimatum"].map(|kind| Game::begin(&client, kind, keys, &crew, &environment)).into();
        for seat in [0, 1] {
            games[0].act(&client, seat, "guess", "1, 2");
            games[1].say(&client, seat, "hello");
        }
        let open: Vec<(String, Vec<String>)> = (0..4).map(|_| client.create("psi")).collect();
        let free: Vec<String> = open.iter().flat_map(|(_, invites)| invites.clone()).collect();
        let signed: Vec<Value> = free.iter().map(|invite| crew[0].signed_join(invite, environment.now())).collect();
        let seeds = json!({
            "keys": games.iter().map(|game| (game.id.clone(), json!(game.keys))).collect::<Map<_, _>>(),
            "ignored": if keys { json!(["from", "userId"]) } else { json!(["publicKey", "signature", "timestamp"]) },
            "signed": if keys { json!({ "/api/arena/join": signed }) } else { json!({}) },
        });
        let mut dictionaries = dictionaries(&games, open, free, &crew, keys);
        dictionaries.extend(contests(&client));
        FuzzFixture { host, dictionaries, seeds }
    }
}

fn builtin(id: &str) -> Arc<dyn ChallengeType> {
    arena_games::challenge(id, &Map::new()).expect("it is built in").expect("its defaults are good")
}

struct Game {
    id: String,
    players: Vec<String>,
    /// The players' session keys; empty in standalone mode.
    keys: Vec<String>,
}

impl Game {
    fn begin(client: &Client, kind: &str, keys: bool, crew: &[Player], environment: &TestEnvironment) -> Game {
        let (id, players) = client.create(kind);
        let mut game = Game { id, players, keys: Vec::new() };
        for (number, (player, invite)) in crew.iter().zip(&game.players).enumerate() {
            if keys {
                game.keys.push(player.join(client, invite, environment.now()));
            } else {
                let user = format!("user-{number}");
                client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
            }
        }
        game
    }

    fn act(&self, client: &Client, seat: usize, method: &str, content: &str) {
        let body = json!({ "challengeId": self.id, "messageType": method, "content": content });
        self.post(client, seat, "/api/arena/message", body);
    }

    fn say(&self, client: &Client, seat: usize, content: &str) {
        self.post(client, seat, "/api/chat/send", json!({ "channel": self.id, "content": content }));
    }

    fn post(&self, client: &Client, seat: usize, path: &str, mut body: Value) {
        match self.keys.get(seat) {
            Some(key) => client.post_with(key, path, &body).ok(),
            None => {
                body["from"] = json!(self.players[seat]);
                client.post(path, &body).ok()
            }
        };
    }
}

fn dictionaries(
    games: &[Game],
    open: Vec<(String, Vec<String>)>,
    free: Vec<String>,
    crew: &[Player],
    keys: bool,
) -> Vec<(&'static str, Vec<String>)> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut sessions: Vec<String> = games.iter().map(|game| game.id.clone()).collect();
    sessions.push(open[0].0.clone());
    let spare: Vec<String> = open.into_iter().skip(2).map(|(id, _)| id).collect();
    let players: Vec<String> = games.iter().flat_map(|game| game.players.clone()).collect();
    let channels = sessions.iter().flat_map(|id| [id.clone(), format!("challenge_{id}")]);
    let channels = channels.chain(["invites".to_owned()]).collect();
    let users = if keys { crew.iter().map(Player::user_id).collect() } else { texts(&["user-0", "user-1"]) };
    vec![
        (
            "challenges",
            texts(&["psi", "ultimatum", "millionaire", "dining-cryptographers", "chess", "snake", "checkers"]),
        ),
        ("invites", free.into_iter().chain(players[..1].to_vec()).collect()),
        ("players", players.into_iter().chain(texts(&["viewer", "operator"])).collect()),
        ("sessions", sessions),
        ("spare", spare),
        ("strangers", texts(&["mallory", "trudy"])),
        ("addresses", texts(&["192.0.2.0/24", "2001:db8::1"])),
        ("channels", channels),
        ("users", users),
        ("methods", texts(&["guess", "submit_offer", "accept", "reject", "pass"])),
        ("contents", texts(&["101, 202, 303", "50, 50", "7", "0"])),
        ("metrics", texts(&["average:utility", "average:security:low", "win-rate:utility", "global-average:utility"])),
        ("strategies", arena_model::strategies().iter().map(|strategy| strategy.name.to_owned()).collect()),
        ("tiles", texts(&["0/000.p/1", "entries/000.p/1", "0/000", "1/000.p/1", "0/x001/000.p/1"])),
        ("mcp", texts(&["tools/list", "tools/call", "ping", "initialize", "server/discover"])),
    ]
}

/// Creates agents and tournaments, some of them for removal. The agents' URLs don't respond, so each game ends soon.
fn contests(client: &Client) -> Vec<(&'static str, Vec<String>)> {
    let made = |path: &str, body: Value| {
        let answer = client.post(path, &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().expect("an id").to_owned()
    };
    let agents: Vec<String> = (0..6).map(|_| made("/api/agents", json!({ "url": "http://127.0.0.1:9/" }))).collect();
    let tournaments: Vec<String> =
        (0..6).map(|_| made("/api/tournaments", json!({ "game": "snake", "agents": agents[..2] }))).collect();
    let [(agents, spare_agents), (tournaments, spare_tournaments)] = [agents, tournaments].map(|mut ids| {
        let spare = ids.split_off(3);
        (ids, spare)
    });
    let games = arena_games::games().map(|game| game.name.to_owned()).collect();
    vec![
        ("games", games),
        ("agents", agents),
        ("spare_agents", spare_agents),
        ("tournaments", tournaments),
        ("spare_tournaments", spare_tournaments),
        ("numbers", ["1", "2", "9"].map(str::to_owned).to_vec()),
        ("seats", ["0", "1", "2"].map(str::to_owned).to_vec()),
        ("forms", ["csv", "markdown", "pgn", "html", "json"].map(str::to_owned).to_vec()),
    ]
}

fn run(name: &str, fixture: &FuzzFixture) -> Output {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
    fs::create_dir_all(&folder).expect("a folder");
    let mut config = fs::read_to_string(sources.join("schemathesis.toml")).expect("the settings");
    for (name, values) in &fixture.dictionaries {
        // A JSON list of strings is valid TOML.
        let _ = write!(config, "\n[dictionaries.{name}]\nvalues = {}\n", json!(values));
    }
    fs::write(folder.join("schemathesis.toml"), config).expect("settings");
    fs::write(folder.join("seeds.json"), fixture.seeds.to_string()).expect("seeds");
    let examples = env::var("ARENA_FUZZ_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let choice = match env::var("ARENA_FUZZ_SEED") {
        Ok(seed) => format!("--seed={seed}"),
        Err(_) => "--generation-deterministic".to_owned(),
    };
    Command::new(python(env!("CARGO_TARGET_TMPDIR")))
        .current_dir(&folder)
        .env("ARENA_FUZZ_SEEDS", folder.join("seeds.json"))
        .env("ARENA_FUZZ_TOKEN", known_admin_token().reveal())
        .env("PYTHONPATH", &sources)
        // Prevents folders in the source tree and boxes in the output.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("COLUMNS", "120")
        .args(["-m", "schemathesis.cli", "--no-color", "--config-file", "schemathesis.toml", "run"])
        .arg(format!("http://{}/openapi.json", fixture.host.address()))
        .args(["--max-examples", &examples, &choice, "--suppress-health-check", "all"])
        .output()
        .expect("the interpreter starts")
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "what was checked is shown by `cargo xtask fuzz`, and where it fails")]
fn check(name: &str, keys: bool) {
    let begun = Instant::now();
    let fixture = FuzzFixture::new(keys);
    let output = run(name, &fixture);
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let took = begun.elapsed().as_secs_f64();
    println!(
        "not fuzzed: /api/chat/ws/{{channel}} and /api/sessions/{{id}}/stream, which don't end; stream.rs reads them"
    );
    println!("{printed}\n{said}\nfuzzed in {took:.0} s, {name} mode");
    assert!(output.status.success(), "an answer isn't as described, or the server is at fault: see above");
    assert_eq!(fixture.host.client().get("/health").status, 200);
}

#[test]
fn every_answer_is_as_described_in_standalone_mode() {
    check("standalone", false);
}

#[test]
fn every_answer_is_as_described_in_authentication_mode() {
    check("authentication", true);
}
