//! `arena league`: agents join and leave, and results are kept. If the program is killed, no game is lost or counted
//! twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use arena_store::{LeagueGame, Leagues, StorePlace};
use arena_testkit::Postgres;
use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Run, Running, arena, run};
use crate::tournament::{AgentFolder, signal};

/// A folder with agents, and a league in which they play.
struct LeagueFixture {
    agent_folder: AgentFolder,
    data: String,
    /// The URL of the league's database; `None` if the store is in the data folder.
    url: Option<String>,
}

impl LeagueFixture {
    /// Creates a league `ladder` with short games of snake.
    fn founded(more: &[&str]) -> LeagueFixture {
        LeagueFixture::founded_in(None, more)
    }

    fn founded_in(url: Option<String>, more: &[&str]) -> LeagueFixture {
        let agent_folder = AgentFolder::new();
        let fixture = LeagueFixture { data: agent_folder.text("data"), agent_folder, url };
        let create = ["create", "ladder", "--game", "snake", "--seed", "3", "--set", "n_epochs=12"];
        let output = fixture.ask(&[&create, more].concat());
        assert_eq!(output.code, 0, "{output:#?}");
        fixture
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let url: Vec<&str> = self.url.iter().flat_map(|url| ["--database-url", url]).collect();
        [&["league"], args, &["--data", &self.data], &url].concat()
    }

    fn ask(&self, args: &[&str]) -> Run {
        // Arguments after `--` belong to the agent.
        match args.iter().position(|arg| *arg == "--") {
            Some(at) => run(&[&self.args(&args[..at])[..], &args[at..]].concat()),
            None => run(&self.args(args)),
        }
    }

    /// Runs a command, and compares exit code, stdout and stderr.
    #[track_caller]
    fn check(&self, args: &[&str], expected: Expect) {
        let output = self.ask(args);
        let root = self.agent_folder.0.path().to_str().unwrap();
        let text = format!("{}\n{}{}", output.code, output.stdout, output.stderr).replace(root, "ROOT");
        expected.assert_eq(text.trim_end());
    }

    fn start(&self, args: &[&str]) -> Child {
        arena(&self.args(args)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the games of a season from the store.
    fn games(&self, season: u32) -> Vec<LeagueGame> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let place = match &self.url {
                Some(url) => StorePlace::Database(Box::new(url.parse().unwrap())),
                None => StorePlace::Folder(self.agent_folder.path("data")),
            };
            let leagues = Leagues::beside_others(&place).await.unwrap().unwrap();
            let league = leagues.find("ladder").await.unwrap().unwrap();
            leagues.list_games(league.no, season).await.unwrap()
        })
    }

    fn show(&self, season: &str) -> Value {
        self.ask(&["show", "ladder", "--season", season, "--json"]).json()
    }

    /// Waits until this number of games has been played in season 1.
    fn wait_for(&self, games: usize) {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while self.games(1).len() < games {
            assert!(std::time::Instant::now() < until, "timeout while waiting for game {games}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the result of a game without its times.
fn outcome(game: &LeagueGame) -> String {
    let result = &game.result;
    let seats: Vec<_> = result.seats.iter().map(|seat| (seat.agent, seat.rank, seat.score, seat.verdict)).collect();
    format!("{} {} {} {} {seats:?}", game.meeting, game.leg, result.seed.reveal(), result.epochs)
}

#[test]
fn a_league_from_its_founding_to_its_second_season() {
    let fixture = LeagueFixture::founded(&[]);
    let (a, b, c) = (
        fixture.agent_folder.bot("a", 1, 0.0),
        fixture.agent_folder.bot("b", 2, 0.0),
        fixture.agent_folder.bot("c", 3, 0.0),
    );
    fixture.check(
        &["add", "ladder", &a, &b, &format!("late={c}")],
        expect![[r#"
        0
        added a to league ladder
        added b to league ladder
        added late to league ladder"#]],
    );
    let played = fixture.ask(&["run", "ladder", "--games", "7", "--table-every", "0"]);
    assert_eq!((played.code, played.stderr.as_str()), (0, ""), "{played:#?}");
    let lines: Vec<&str> = played.stdout.lines().filter(|line| line.starts_with("Finished")).collect();
    assert_eq!(lines.len(), 8, "the last pairing is finished: {lines:#?}");
    fixture.check(
        &["rm", "ladder", "b"],
        expect![[r#"
        0
        removed b from league ladder; its results stay"#]],
    );
    fixture.check(
        &["show"],
        expect![[r#"
        0
        ladder: snake, paired games, season 1
        8 games played, season open:
        ┌────────────────────────────────────────────────────────────────────────────────────────────────────────┐
        │ rank   name    Elo     ±   rank range (95 %)   games   wins   losses   draws   points   score %   gone │
        ╞════════════════════════════════════════════════════════════════════════════════════════════════════════╡
        │   1=   a        63   257                 1-3       6      3        2       1      3.5      58.3        │
        │   1=   late     63   257                 1-3       6      3        2       1      3.5      58.3        │
        │   1=   b      -127   190                 1-3       4      0        2       2        1      25.0   gone │
        └────────────────────────────────────────────────────────────────────────────────────────────────────────┘
        ┌──────────────────────────────┐
        │            a    late       b │
        ╞══════════════════════════════╡
        │ a          ·     2/4   1.5/2 │
        │ late     2/4       ·   1.5/2 │
        │ b      0.5/2   0.5/2       · │
        └──────────────────────────────┘
        no leader in Elo: a and late share first place"#]],
    );
    fixture.check(
        &["show", "ladder", "--csv"],
        expect![[r#"
        0
        rank,name,Elo,±,rank may be,games,wins,losses,draws,points,score %,gone
        1=,a,63,257,1-3,6,3,2,1,3.5,58.3,
        1=,late,63,257,1-3,6,3,2,1,3.5,58.3,
        1=,b,-127,190,1-3,4,0,2,2,1,25.0,gone"#]],
    );
    fixture.check(
        &["show", "ladder", "--markdown"],
        expect![[r#"
            0
            ladder: snake, paired games, season 1

            8 games played, season open.

            | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % | gone |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1= | a | 63 | 257 | 1-3 | 6 | 3 | 2 | 1 | 3.5 | 58.3 |  |
            | 1= | late | 63 | 257 | 1-3 | 6 | 3 | 2 | 1 | 3.5 | 58.3 |  |
            | 1= | b | -127 | 190 | 1-3 | 4 | 0 | 2 | 2 | 1 | 25.0 | gone |

            |  | a | late | b |
            |---|--:|--:|--:|
            | a | · | 2/4 | 1.5/2 |
            | late | 2/4 | · | 1.5/2 |
            | b | 0.5/2 | 0.5/2 | · |

            - no leader in Elo: a and late share first place"#]],
    );
    fixture.check(
        &["season", "ladder"],
        expect![[r#"
        0
        season 1 of league ladder is closed after 8 games; season 2 begins"#]],
    );
    fixture.check(
        &["season", "ladder"],
        expect![[r#"
        13
        error: season 2 of league ladder has no games yet, so there is nothing to close"#]],
    );
    let second = fixture.ask(&["run", "ladder", "--games", "2", "--json"]);
    assert_eq!(second.code, 0, "{second:#?}");
    let output: Vec<Value> = second.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&output[0]["number"], &output[1]["number"], output.len()), (&9.into(), &10.into(), 3));
    let names = |output: &Value| -> BTreeSet<String> {
        output["standings"].as_array().unwrap().iter().map(|line| line["label"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&output[2]), BTreeSet::from(["a".to_owned(), "late".to_owned()]));
    assert_eq!(names(&fixture.show("1")).len(), 3, "the first season hasn't changed");
    let list = fixture.ask(&["list"]);
    assert!(list.stdout.contains("ladder") && list.stdout.contains("snake"), "{list:#?}");
    let folder = fixture.agent_folder.path("data");
    assert!(!fs::read_dir(&folder).unwrap().any(|entry| entry.unwrap().file_name() == "replays"));
}

#[test]
fn a_league_that_was_killed_at_random_loses_no_game_and_doubles_none() {
    check_random_kills(&LeagueFixture::founded(&[]), 6);
    check_random_kills(&LeagueFixture::founded_in(Some(Postgres::shared().schema()), &[]), 4);
}

fn check_random_kills(fixture: &LeagueFixture, rounds: usize) {
    for salt in 1..=4 {
        let bot = fixture.agent_folder.bot(&format!("bot{salt}"), salt, 0.0);
        assert_eq!(fixture.ask(&["add", "ladder", &bot]).code, 0);
    }
    // The random numbers are derived from the folder's name, which is random.
    let mut random = fixture.data.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut output = BTreeMap::new();
    for round in 0..rounds {
        let concurrency = if round % 2 == 0 { "1" } else { "3" };
        let mut child = fixture.start(&["run", "ladder", "--concurrency", concurrency, "--table-every", "0"]);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis(100 + (random >> 33) % 900));
        signal(&child, Signal::KILL);
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        for line in said.lines().filter_map(|line| line.strip_prefix("Finished game ")) {
            let (number, rest) = line.split_once(' ').unwrap();
            assert_eq!(output.insert(number.parse::<u64>().unwrap(), rest.to_owned()), None, "twice: {line}");
        }
    }
    let end = fixture.ask(&["run", "ladder", "--games", "1"]);
    assert_eq!(end.code, 0, "{end:#?}");
    let games = fixture.games(1);
    let numbers: Vec<u64> = games.iter().map(|game| game.number).collect();
    assert_eq!(numbers, (1..=games.len() as u64).collect::<Vec<_>>());
    assert!(output.keys().all(|number| numbers.contains(number)), "printed games are kept");
    let mut meetings: BTreeMap<u64, Vec<&LeagueGame>> = BTreeMap::new();
    for game in &games {
        meetings.entry(game.meeting).or_default().push(game);
    }
    for (number, legs) in &meetings {
        let mut seen: Vec<usize> = legs.iter().map(|game| game.leg).collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2], "meeting {number}");
        let agents = |game: &LeagueGame| game.result.seats.iter().map(|seat| seat.agent).collect::<Vec<_>>();
        let (one, mut two) = (agents(legs[0]), agents(legs[1]));
        two.reverse();
        assert_eq!((one, legs[0].result.seed.reveal()), (two, legs[1].result.seed.reveal()), "meeting {number}");
    }
    assert_eq!(fixture.show("1")["games_played"], games.len());
}

#[test]
fn an_interrupted_run_plays_the_same_games() {
    let whole = LeagueFixture::founded(&[]);
    let broken = LeagueFixture::founded(&[]);
    for fixture in [&whole, &broken] {
        for salt in 1..=3 {
            let bot = fixture.agent_folder.bot(&format!("bot{salt}"), salt, 0.0);
            assert_eq!(fixture.ask(&["add", "ladder", &bot]).code, 0);
        }
    }
    assert_eq!(whole.ask(&["run", "ladder", "--games", "10"]).code, 0);
    let child = broken.start(&["run", "ladder"]);
    broken.wait_for(3);
    signal(&child, Signal::INT);
    let stopped = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(130), "{stderr}");
    let so_far = broken.games(1).len();
    let line =
        format!("error: stopped after {so_far} games; to resume: arena league run --data {} ladder\n", broken.data);
    assert_eq!(stderr, format!("note: finishing the games in progress; press Ctrl-C again to stop at once\n{line}"));
    let left = 10_usize.saturating_sub(so_far).max(1).to_string();
    assert_eq!(broken.ask(&["run", "ladder", "--games", &left]).code, 0);
    let outcomes = |fixture: &LeagueFixture| -> Vec<String> { fixture.games(1).iter().take(10).map(outcome).collect() };
    assert_eq!(outcomes(&whole), outcomes(&broken));
}

#[test]
fn changed_files_are_another_version_and_missing_agents_wait() {
    let fixture = LeagueFixture::founded(&[]);
    let (a, b, c) = (
        fixture.agent_folder.bot("a", 1, 0.0),
        fixture.agent_folder.bot("b", 2, 0.0),
        fixture.agent_folder.bot("c", 3, 0.0),
    );
    assert_eq!(fixture.ask(&["add", "ladder", &a, &b, &c]).code, 0);
    assert_eq!(fixture.ask(&["run", "ladder", "--games", "6"]).code, 0);
    let first = fixture.show("1");
    let elsewhere = fixture.agent_folder.bot("d", 4, 0.0);
    // Another file with the name of an agent is refused, because it could be a mistake.
    fixture.check(&["add", "ladder", &format!("a={elsewhere}")], expect![[r#"
        13
        error: league ladder already has an agent a, at ROOT/a.py; add the next version of a with --version V, or rename the new agent with NAME=PATH"#]]);
    fixture.agent_folder.bot("a", 7, 0.0);
    fs::rename(&c, fixture.agent_folder.path("c.away")).unwrap();
    let notes = fixture.ask(&["run", "ladder", "--games", "4"]);
    let root = fixture.agent_folder.0.path().to_str().unwrap();
    assert_eq!(notes.code, 0, "{notes:#?}");
    expect![[r#"
        note: the files of a have changed: its version #2 begins; #1 keeps its results
        note: c can't play for now: ROOT/c.py cannot be read: No such file or directory (os error 2)
    "#]]
    .assert_eq(&notes.stderr.replace(root, "ROOT"));
    fixture.check(
        &["add", "ladder", &format!("b={elsewhere}"), "--version", "2.0"],
        expect![[r#"
        0
        added version 2.0 (#2) of b to league ladder, without games"#]],
    );
    fs::rename(fixture.agent_folder.path("c.away"), &c).unwrap();
    fixture.agent_folder.bot("a", 1, 0.0);
    let back = fixture.ask(&["run", "ladder", "--games", "2"]);
    expect![[r#"
        note: the files of a have changed: its version #1 continues; #2 keeps its results
    "#]]
    .assert_eq(&back.stderr);
    // Each version of an agent has its own row.
    let line = |output: &Value, label: &str| -> Option<u64> {
        let lines = output["standings"].as_array().unwrap();
        lines.iter().find(|line| line["label"] == label).map(|line| line["games"].as_u64().unwrap())
    };
    let last = fixture.show("1");
    let labels: BTreeSet<&str> =
        last["standings"].as_array().unwrap().iter().map(|line| line["label"].as_str().unwrap()).collect();
    expect![[r#"{"a #1", "a #2", "b #1", "b 2.0", "c"}"#]].assert_eq(&format!("{labels:?}"));
    assert!(line(&last, "a #1") >= line(&first, "a"));
    assert!(line(&last, "a #2") >= Some(2));
}

#[test]
fn files_that_change_while_an_agent_plays_end_its_run() {
    let fixture = LeagueFixture::founded(&[]);
    let (a, b, c) = (
        fixture.agent_folder.bot("a", 1, 0.05),
        fixture.agent_folder.bot("b", 2, 0.05),
        fixture.agent_folder.bot("c", 3, 0.05),
    );
    assert_eq!(fixture.ask(&["add", "ladder", &a, &b, &c]).code, 0);
    let child = fixture.start(&["run", "ladder", "--games", "9"]);
    fixture.wait_for(2);
    fixture.agent_folder.bot("a", 5, 0.0);
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    expect![[r#"
        note: the files of a changed during play; this run continues without a, the next one with the new files
    "#]]
    .assert_eq(&stderr);
    // After the next change, too few agents are left.
    let child = fixture.start(&["run", "ladder"]);
    let before = fixture.games(1).len();
    fixture.wait_for(before + 1);
    fixture.agent_folder.bot("a", 6, 0.0);
    fixture.agent_folder.bot("b", 6, 0.0);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(13), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn games_of_four_agents_have_no_pairs() {
    let fixture = LeagueFixture::founded(&["--seats", "4", "--no-pairs"]);
    for salt in 1..=5 {
        assert_eq!(
            fixture.ask(&["add", "ladder", &fixture.agent_folder.bot(&format!("bot{salt}"), salt, 0.0)]).code,
            0
        );
    }
    assert_eq!(fixture.ask(&["run", "ladder", "--games", "3", "--concurrency", "2"]).code, 0);
    let games = fixture.games(1);
    assert_eq!(games.len(), 3);
    assert!(games.iter().all(|game| game.result.seats.len() == 4 && game.leg == 1), "{games:?}");
    assert_eq!(fixture.show("1")["standings"].as_array().unwrap().len(), 5);
}

#[test]
fn a_margin_or_a_time_ends_a_run() {
    let fixture = LeagueFixture::founded(&[]);
    let (a, b) = (fixture.agent_folder.bot("a", 1, 0.0), fixture.agent_folder.bot("b", 1, 0.0));
    assert_eq!(fixture.ask(&["add", "ladder", &a, &b]).code, 0);
    // The agents are equal, so they draw or win in turn.
    let wide = fixture.ask(&["run", "ladder", "--until-margin", "400", "--games", "60"]);
    assert_eq!(wide.code, 0, "{wide:#?}");
    let played = fixture.games(1).len();
    assert!((2..60).contains(&played), "{played}");
    assert_eq!(fixture.ask(&["run", "ladder", "--until-margin", "400"]).code, 0, "the condition is met already");
    assert_eq!(fixture.games(1).len(), played);
    assert_eq!(fixture.ask(&["run", "ladder", "--for", "4s", "--until-margin", "0.001"]).code, 0);
    assert!(fixture.games(1).len() > played);
}

#[test]
fn one_process_writes_and_others_may_read() {
    let fixture = LeagueFixture::founded(&[]);
    let (a, b) = (fixture.agent_folder.bot("a", 1, 0.02), fixture.agent_folder.bot("b", 2, 0.02));
    assert_eq!(fixture.ask(&["add", "ladder", &a, &b]).code, 0);
    let mut child = fixture.start(&["run", "ladder"]);
    fixture.wait_for(2);
    let refused = fixture.ask(&["rm", "ladder", "a"]);
    assert_eq!((refused.code, refused.stderr.contains("is in use by another arena")), (6, true), "{refused:#?}");
    assert_eq!(fixture.ask(&["show", "ladder"]).code, 0);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let server = Running::serve(&fixture.agent_folder.path("data"));
    let refused = fixture.ask(&["run", "ladder"]);
    assert_eq!((refused.code, refused.stderr.contains("is in use by another arena")), (6, true), "{refused:#?}");
    assert_eq!(fixture.ask(&["list"]).code, 0);
    drop(server);
}

#[test]
fn a_league_in_a_database_is_taken_over_from_a_killed_process() {
    let url = Postgres::shared().schema();
    let fixture = LeagueFixture::founded_in(Some(url), &[]);
    let (a, b) = (fixture.agent_folder.bot("a", 1, 0.02), fixture.agent_folder.bot("b", 2, 0.02));
    assert_eq!(fixture.ask(&["add", "ladder", &a, &b]).code, 0);
    let mut child = fixture.start(&["run", "ladder"]);
    fixture.wait_for(2);
    let refused = fixture.ask(&["run", "ladder", "--games", "1"]);
    assert_eq!((refused.code, refused.stderr.contains("is in use by another arena")), (6, true), "{refused:#?}");
    assert!(refused.stderr.contains("`arena league show` works meanwhile"), "{refused:#?}");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let before = fixture.games(1).len();
    let end = fixture.ask(&["run", "ladder", "--games", "4"]);
    assert_eq!(end.code, 0, "{end:#?}");
    assert!(fixture.games(1).len() >= before + 4);
    assert_eq!(fixture.show("1")["games_played"], fixture.games(1).len());
    assert!(!Path::new(&fixture.data).exists(), "the league uses no data folder");
    let data = fixture.agent_folder.text("server");
    let url = fixture.url.as_deref().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--shared", "--data", &data];
    let node = Running::start_with(&args, &[("DATABASE_URL", url), ("ADMIN_TOKEN", &"0".repeat(32))]);
    let refused = fixture.ask(&["rm", "ladder", "a"]);
    assert_eq!(
        (refused.code, refused.stderr.contains("or another schema of this one, for leagues")),
        (6, true),
        "{refused:#?}"
    );
    drop(node);
    let known = fixture.ask(&["list", "--json"]).json();
    assert_eq!((&known[0]["name"], &known[0]["agents"]), (&"ladder".into(), &2.into()), "{known}");
}

#[test]
fn invalid_leagues_are_refused() {
    let fixture = LeagueFixture::founded(&[]);
    let (a, b) = (fixture.agent_folder.bot("a", 1, 0.0), fixture.agent_folder.bot("b", 2, 0.0));
    fixture.check(
        &["create", "ladder", "--game", "snake"],
        expect![[r#"
        13
        error: league ladder already exists in ROOT/data"#]],
    );
    let output = fixture.ask(&["create", "x", "--game", "go"]);
    let games: Vec<&str> = arena_games::games().map(|game| game.name).collect();
    let unknown = format!("error: there is no game `go`; the games are {}\n", games.join(", "));
    assert_eq!((output.code, output.stderr), (2, unknown));
    fixture.check(
        &["create", " x", "--game", "snake"],
        expect![[r#"
        2
        error: a league's name must have 1 to 64 characters without surrounding spaces, not ` x`"#]],
    );
    fixture.check(
        &["create", "x", "--game", "chess", "--seats", "3"],
        expect![[r#"
        2
        error: chess is played by 2 agents, not by 3"#]],
    );
    fixture.check(
        &["create", "x", "--game", "food_catcher", "--seats", "1"],
        expect![[r#"
        2
        error: food_catcher is played by 2 to 4 agents, not by 1"#]],
    );
    fixture.check(
        &["create", "x", "--game", "snake", "--set", "n_epochs=-1"],
        expect![[r#"
        2
        error: snake, option `n_epochs`: invalid value: integer `-1`, expected a whole number of at least 0"#]],
    );
    for verb in [&["add", "x", a.as_str()][..], &["rm", "x", "a"], &["run", "x"], &["show", "x"], &["season", "x"]] {
        let output = fixture.ask(verb);
        assert_eq!(output.code, 13, "{output:#?}");
        assert!(output.stderr.starts_with("error: there is no league x in "), "{output:#?}");
    }
    fixture.check(&["run", "ladder"], expect![[r#"
        13
        error: league ladder has no agent that can play, but a game needs 2; add agents with `arena league add ladder PATH…`"#]]);
    fixture.check(
        &["add", "ladder"],
        expect![[r#"
        2
        error: no agents given; give a file, a folder, a URL or a command line"#]],
    );
    fixture.check(
        &["add", "ladder", "nowhere"],
        expect![[r#"
        8
        error: there is no agent at nowhere"#]],
    );
    fixture.check(
        &["add", "ladder", &a, &format!("a={b}")],
        expect![[r#"
        2
        error: two agents are named a; rename one with NAME=PATH"#]],
    );
    fixture.check(
        &["add", "ladder", &a, &b, "--version", "2"],
        expect![[r#"
        2
        error: --version applies to a single agent; add the others separately"#]],
    );
    assert_eq!(fixture.ask(&["add", "ladder", &a]).code, 0);
    fixture.check(
        &["add", "ladder", &a],
        expect![[r#"
        13
        error: a is already in league ladder, unchanged"#]],
    );
    fixture.check(&["run", "ladder"], expect![[r#"
        13
        error: league ladder has 1 agent that can play, but a game needs 2; add agents with `arena league add ladder PATH…`"#]]);
    fixture.check(
        &["rm", "ladder", "a", "b"],
        expect![[r#"
        13
        error: there is no agent b in league ladder"#]],
    );
    fixture.check(
        &["show", "ladder", "--season", "2"],
        expect![[r#"
        2
        error: there is no season 2 of league ladder: the current season is 1"#]],
    );
    fixture.check(
        &["add", "ladder", "third=", "--", "python3", &b, "--level", "3"],
        expect![[r#"
        0
        added third to league ladder"#]],
    );
    for wrong in [["--games", "0"], ["--for", "soon"], ["--until-margin", "-3"], ["--concurrency", "0"]] {
        let output = fixture.ask(&["run", "ladder", wrong[0], wrong[1]]);
        assert_eq!(output.code, 2, "{output:#?}");
    }
    // Reading commands create no files.
    let absent = fixture.agent_folder.text("absent");
    let output = run(&["league", "list", "--data", &absent]);
    assert_eq!((output.code, output.stdout), (0, format!("there is no league in {absent}\n")));
    assert_eq!(run(&["league", "run", "ladder", "--data", &absent]).code, 13);
    assert!(!fixture.agent_folder.path("absent").exists());
}

#[test]
fn a_game_is_printed_without_its_seed_until_its_pairing_has_ended() {
    let fixture = LeagueFixture::founded(&[]);
    let bots = [fixture.agent_folder.bot("a", 1, 0.0), fixture.agent_folder.bot("b", 2, 0.0)];
    assert_eq!(fixture.ask(&["add", "ladder", &bots[0], &bots[1]]).code, 0);
    let played = fixture.ask(&["run", "ladder", "--games", "4", "--json"]);
    let lines: Vec<Value> = played.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let output: Vec<_> =
        lines[..4].iter().map(|line| (line["leg"].as_u64().unwrap(), line["seed"].is_string())).collect();
    assert_eq!(output, [(1, false), (2, true), (1, false), (2, true)], "{played:#?}");
}
