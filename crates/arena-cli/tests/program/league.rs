//! Leagues (`arena tournament run --format league`): agents join and leave, and results are kept. If the program is
//! killed, no game is lost or counted twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use arena_runner::LeagueFolder;
use arena_testkit::until;
use arena_tournament::GameLine;
use expect_test::{expect, expect_file};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Run, arena, run};
use crate::tournament::{AgentFolder, signal};

/// A folder with agents, and a league `ladder` with short games of snake.
struct LeagueFixture {
    agents: AgentFolder,
    folder: String,
}

impl LeagueFixture {
    fn new() -> LeagueFixture {
        let agents = AgentFolder::new();
        LeagueFixture { folder: agents.text("ladder"), agents }
    }

    /// Creates agents `bot1`, `bot2` and so on, and returns their paths.
    fn bots(&self, count: u32, pause: f64) -> Vec<String> {
        (1..=count).map(|salt| self.agents.bot(&format!("bot{salt}"), salt, pause)).collect()
    }

    fn first_run(&self, agents: &[String], more: &[&str]) -> Vec<String> {
        self.agents.begin(agents, "ladder", &[&["--format", "league"], more].concat())
    }

    /// Creates the league and plays.
    #[track_caller]
    fn begin(&self, agents: &[String], more: &[&str]) -> Run {
        let args = self.first_run(agents, more);
        run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn ask(&self, verb: &str, args: &[&str]) -> Run {
        run(&[&["tournament", verb, &self.folder], args].concat())
    }

    /// Runs a command, and compares exit code, stdout and stderr.
    #[track_caller]
    fn check(&self, verb: &str, args: &[&str], expected: &str) {
        assert_eq!(self.text(verb, args), expected);
    }

    /// Runs a command, and returns exit code, stdout and stderr.
    fn text(&self, verb: &str, args: &[&str]) -> String {
        let output = self.ask(verb, args);
        let root = self.agents.0.path().to_str().unwrap();
        format!("{}\n{}{}", output.code, output.stdout, output.stderr).replace(root, "ROOT").trim_end().to_owned()
    }

    fn start(&self, args: &[&str]) -> Child {
        let args = [&["tournament", "resume", &self.folder], args].concat();
        arena(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the games of a season, from the journal.
    fn games(&self, season: usize) -> Vec<GameLine> {
        LeagueFolder::load(self.agents.path("ladder").as_path(), Some(season)).unwrap().games().to_vec()
    }

    fn show(&self, season: &str) -> Value {
        self.ask("standings", &["--season", season, "--json"]).json()
    }

    /// Waits until this number of games has been played in season 1.
    fn wait_for(&self, games: usize) {
        until(&format!("{games} games are played"), || self.games(1).len() >= games);
    }
}

/// Returns the result of a game without its times.
fn outcome(game: &GameLine) -> String {
    let result = &game.result;
    let seats: Vec<_> = result.seats.iter().map(|seat| (&seat.agent, seat.rank, seat.score, seat.verdict)).collect();
    format!("{} {:?} {} {} {seats:?}", game.number, game.generations, result.seed.reveal(), result.epochs)
}

#[test]
fn a_league_from_its_first_game_to_its_second_season() {
    let fixture = LeagueFixture::new();
    let [a, b, c] = [("a", 1), ("b", 2), ("c", 3)].map(|(name, salt)| fixture.agents.bot(name, salt, 0.0));
    let agents = [a, b, format!("late={c}")];
    let played = fixture.begin(&agents, &["--games", "7", "--table-every", "0"]);
    assert_eq!((played.code, played.stderr.as_str()), (0, ""), "{played:#?}");
    let lines: Vec<&str> = played.stdout.lines().filter(|line| line.starts_with("Finished")).collect();
    assert_eq!(lines.len(), 8, "the last pairing is finished: {lines:#?}");
    fixture.check("remove", &["b"], "0\nremoved b; its results stay");
    expect_file!["league/a_league_from_its_first_game_to_its_second_season.txt"]
        .assert_eq(&fixture.text("standings", &[]));
    expect![[r#"
        0
        rank,name,Elo,±,rank may be,games,wins,losses,draws,points,score %,state
        1=,a,63,257,1-3,6,3,2,1,3.5,58.3,
        1=,late,63,257,1-3,6,3,2,1,3.5,58.3,
        1=,b,-127,190,1-3,4,0,2,2,1,25.0,gone"#]]
    .assert_eq(&fixture.text("standings", &["--csv"]));
    expect_file!["league/a_league_from_its_first_game_to_its_second_season_2.txt"]
        .assert_eq(&fixture.text("standings", &["--markdown"]));
    fixture.check("season", &[], "0\nseason 1 is closed after 8 games; season 2 begins");
    fixture.check("season", &[], "13\nerror: season 2 has no games yet, so there is nothing to close");
    let second = fixture.ask("resume", &["--games", "2", "--json"]);
    assert_eq!(second.code, 0, "{second:#?}");
    let output: Vec<Value> = second.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&output[0]["fixture"], &output[1]["fixture"], output.len()), (&9.into(), &10.into(), 3));
    assert_eq!((&output[0]["round"], &output[0]["generations"]), (&2.into(), &serde_json::json!([1, 1])));
    let names = |output: &Value| -> BTreeSet<String> {
        output["standings"].as_array().unwrap().iter().map(|line| line["label"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&output[2]), BTreeSet::from(["a".to_owned(), "late".to_owned()]));
    assert_eq!(names(&fixture.show("1")).len(), 3, "the first season hasn't changed");
    assert_eq!(fixture.show("1")["closed"], true);
    assert!(!fixture.agents.path("ladder/replays").exists());
}

#[test]
fn a_league_that_was_killed_at_random_loses_no_game_and_doubles_none() {
    let fixture = LeagueFixture::new();
    assert_eq!(fixture.begin(&fixture.bots(4, 0.0), &["--games", "1", "--replays"]).code, 0);
    // The random numbers are derived from the folder's name, which is random.
    let mut random = fixture.folder.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut output = BTreeMap::new();
    for round in 0..8 {
        let concurrency = if round % 2 == 0 { "1" } else { "3" };
        let mut child = fixture.start(&["--concurrency", concurrency, "--table-every", "0"]);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis(100 + (random >> 33) % 900));
        signal(&child, Signal::KILL);
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        for line in said.lines().filter_map(|line| line.strip_prefix("Finished game ")) {
            let (number, rest) = line.split_once(' ').unwrap();
            assert_eq!(output.insert(number.parse::<usize>().unwrap(), rest.to_owned()), None, "twice: {line}");
        }
        if round == 3 {
            assert_eq!(fixture.ask("add", &[&fixture.agents.bot("bot5", 5, 0.0)]).code, 0);
        }
    }
    let end = fixture.ask("resume", &["--games", "1"]);
    assert_eq!(end.code, 0, "{end:#?}");
    let games = fixture.games(1);
    let numbers: BTreeSet<usize> = games.iter().map(|game| game.number).collect();
    assert_eq!(numbers.len(), games.len());
    assert!(output.keys().all(|number| numbers.contains(number)), "printed games are kept");
    // A pairing is two games with one seed, in which the agents have swapped seats.
    let mut pairings: BTreeMap<usize, Vec<&GameLine>> = BTreeMap::new();
    for game in &games {
        pairings.entry((game.number - 1) / 2).or_default().push(game);
    }
    for (number, legs) in &pairings {
        let [one, two] = legs[..] else { panic!("pairing {number} has {} games", legs.len()) };
        let mut swapped = two.result.names();
        swapped.reverse();
        assert_eq!((one.result.names(), one.result.seed.reveal()), (swapped, two.result.seed.reveal()));
    }
    assert_eq!(fixture.show("1")["games_played"], games.len());
    for number in &numbers {
        let replay = fixture.agents.text(&format!("ladder/replays/{number}.jsonl"));
        assert_eq!(run(&["replay", "verify", &replay]).code, 0, "game {number}");
    }
}

#[test]
fn an_interrupted_run_plays_the_same_games() {
    let (whole, broken) = (LeagueFixture::new(), LeagueFixture::new());
    assert_eq!(whole.begin(&whole.bots(3, 0.0), &["--games", "10"]).code, 0);
    let args = broken.first_run(&broken.bots(3, 0.0), &[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let child = arena(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the journal exists", || broken.agents.path("ladder/tournament.jsonl").exists());
    broken.wait_for(3);
    signal(&child, Signal::INT);
    let stopped = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(stopped.stderr).unwrap();
    assert_eq!(stopped.status.code(), Some(130), "{stderr}");
    let so_far = broken.games(1).len();
    let line = format!("error: stopped after {so_far} games; to resume: arena tournament resume {}\n", broken.folder);
    assert_eq!(stderr, format!("note: finishing the games in progress; press Ctrl-C again to stop at once\n{line}"));
    let left = 10_usize.saturating_sub(so_far).max(1).to_string();
    assert_eq!(broken.ask("resume", &["--games", &left]).code, 0);
    let outcomes = |fixture: &LeagueFixture| -> Vec<String> { fixture.games(1).iter().take(10).map(outcome).collect() };
    assert_eq!(outcomes(&whole), outcomes(&broken));
}

#[test]
fn changed_files_are_another_version_and_missing_agents_wait() {
    let fixture = LeagueFixture::new();
    let [a, b, c] = [("a", 1), ("b", 2), ("c", 3)].map(|(name, salt)| fixture.agents.bot(name, salt, 0.0));
    assert_eq!(fixture.begin(&[a.clone(), b, c.clone()], &["--games", "6"]).code, 0);
    let first = fixture.show("1");
    let elsewhere = fixture.agents.bot("d", 4, 0.0);
    // Another file with the name of an agent is refused, because it could be a mistake.
    fixture.check(
        "add",
        &[&format!("a={elsewhere}")],
        "13\nerror: the league already has an agent a, at ROOT/a.py; add the next version of a with --version V, or rename the new agent with NAME=PATH",
    );
    fixture.agents.bot("a", 7, 0.0);
    fs::rename(&c, fixture.agents.path("c.away")).unwrap();
    let notes = fixture.ask("resume", &["--games", "4"]);
    let root = fixture.agents.0.path().to_str().unwrap();
    assert_eq!(notes.code, 0, "{notes:#?}");
    expect![[r#"
        note: the files of a have changed: its version #2 begins; #1 keeps its results
        note: c cannot play for now: ROOT/c.py cannot be read: No such file or directory (os error 2)
    "#]]
    .assert_eq(&notes.stderr.replace(root, "ROOT"));
    fixture.check(
        "add",
        &[&format!("b={elsewhere}"), "--version", "2.0"],
        "0\nadded version 2.0 (#2) of b, without games",
    );
    fs::rename(fixture.agents.path("c.away"), &c).unwrap();
    fixture.agents.bot("a", 1, 0.0);
    let back = fixture.ask("resume", &["--games", "2"]);
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
    // `arena rate` rates them apart, too.
    let rated = run(&["rate", &fixture.folder, "--json"]).json();
    let names: BTreeSet<&str> =
        rated["standings"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["a", "a (version 2)", "b", "b (version 2)", "c"]));
    assert_eq!(rated["games"], last["games_played"]);
    assert_eq!(fixture.ask("remove", &["c"]).code, 0);
    fixture.check("add", &[&c], "0\nc is back as version #1, with its results");
}

#[test]
fn files_that_change_while_an_agent_plays_end_its_run() {
    let fixture = LeagueFixture::new();
    let agents = [("a", 1), ("b", 2), ("c", 3)].map(|(name, salt)| fixture.agents.bot(name, salt, 0.05));
    assert_eq!(fixture.begin(&agents, &["--games", "1"]).code, 0);
    let before = fixture.games(1).len();
    let child = fixture.start(&["--games", "9"]);
    fixture.wait_for(before + 2);
    fixture.agents.bot("a", 5, 0.0);
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    expect![[r#"
        note: the files of a changed during play; this run continues without a, the next one with the new files
    "#]]
    .assert_eq(&stderr);
    // After the next change, too few agents are left.
    let child = fixture.start(&[]);
    let before = fixture.games(1).len();
    fixture.wait_for(before + 1);
    fixture.agents.bot("a", 6, 0.0);
    fixture.agents.bot("b", 6, 0.0);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(13), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn games_of_four_agents_have_no_pairs() {
    let fixture = LeagueFixture::new();
    let more = ["--seats", "4", "--no-pairs", "--games", "3", "--concurrency", "2"];
    assert_eq!(fixture.begin(&fixture.bots(5, 0.0), &more).code, 0);
    let games = fixture.games(1);
    assert_eq!(games.len(), 3);
    assert!(games.iter().all(|game| game.result.seats.len() == 4), "{games:?}");
    assert_eq!(fixture.show("1")["standings"].as_array().unwrap().len(), 5);
}

#[test]
fn a_margin_or_a_time_ends_a_run() {
    let fixture = LeagueFixture::new();
    let agents = [fixture.agents.bot("a", 1, 0.0), fixture.agents.bot("b", 1, 0.0)];
    // The agents are equal, so they draw or win in turn.
    let wide = fixture.begin(&agents, &["--until-margin", "400", "--games", "60"]);
    assert_eq!(wide.code, 0, "{wide:#?}");
    let played = fixture.games(1).len();
    assert!((2..60).contains(&played), "{played}");
    assert_eq!(fixture.ask("resume", &["--until-margin", "400"]).code, 0, "the condition is met already");
    assert_eq!(fixture.games(1).len(), played);
    assert_eq!(fixture.ask("resume", &["--for", "4s", "--until-margin", "0.001"]).code, 0);
    assert!(fixture.games(1).len() > played);
}

#[test]
fn one_process_writes_and_others_may_read() {
    let fixture = LeagueFixture::new();
    assert_eq!(fixture.begin(&fixture.bots(2, 0.02), &["--games", "1"]).code, 0);
    let mut child = fixture.start(&[]);
    fixture.wait_for(3);
    for (verb, args) in [("remove", &["bot1"][..]), ("add", &["bot1.py"]), ("season", &[]), ("resume", &[])] {
        let args: Vec<String> =
            args.iter().map(|arg| arg.replace("bot1.py", &fixture.agents.text("bot1.py"))).collect();
        let refused = fixture.ask(verb, &args.iter().map(String::as_str).collect::<Vec<_>>());
        let is_locked = refused.stderr.contains("another process is running the tournament in");
        assert_eq!((refused.code, is_locked), (13, true), "{refused:#?}");
    }
    assert_eq!(fixture.ask("standings", &[]).code, 0);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
}

#[test]
fn invalid_commands_on_leagues_are_refused() {
    let fixture = LeagueFixture::new();
    let (a, b) = (fixture.agents.bot("a", 1, 0.0), fixture.agents.bot("b", 2, 0.0));
    let refused = |agents: &[&String], more: &[&str], expected: &str| {
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).clone()).collect();
        let output = fixture.begin(&agents, more);
        assert_eq!(output.code, 2, "{output:#?}");
        assert_eq!(output.stderr.trim_end(), expected);
        assert!(!fixture.agents.path("ladder").exists());
    };
    refused(&[&a], &[], "error: games of 2 seats need at least 2 agents, but there are 1");
    refused(
        &[&a, &b],
        &["--rounds", "2"],
        "error: a league has neither --rounds nor --sprt; limit a run with --games, --for or --until-margin",
    );
    refused(&[&a, &b], &["--until-margin", "0"], "error: the rating margin must be a positive number of Elo, not 0");
    assert_eq!(fixture.begin(&[a.clone(), b.clone()], &["--games", "1"]).code, 0);
    fixture.check("add", &[], "2\nerror: no agents given; give a file, a folder, a URL or a command line");
    fixture.check("add", &["nowhere"], "8\nerror: there is no agent at nowhere");
    fixture.check(
        "add",
        &[&format!("c={a}"), &format!("c={b}")],
        "2\nerror: two agents are named c; rename one with NAME=PATH",
    );
    fixture.check(
        "add",
        &[&a, &b, "--version", "2"],
        "2\nerror: --version applies to a single agent; add the others separately",
    );
    fixture.check("add", &[&a], "13\nerror: a is already in the league, unchanged");
    fixture.check("remove", &["a", "x"], "13\nerror: there is no agent x in the league");
    fixture.check(
        "standings",
        &["--season", "2"],
        "2\nerror: there is no season 2 of the league: the current season is 1",
    );
    fixture.check(
        "standings",
        &["--html"],
        "2\nerror: --html is for tournaments with an end; a league has --csv, --markdown and --json",
    );
    fixture.check(
        "resume",
        &["--accept-changed"],
        "2\nerror: --accept-changed is for tournaments with an end; in a league, changed files are another version",
    );
    fixture.check("add", &["third=", "--", "python3", &b, "--level", "3"], "0\nadded third");
    assert_eq!(fixture.ask("remove", &["a", "third"]).code, 0);
    fixture.check("resume", &[], "13\nerror: the league has 1 agent that can play, but a game needs 2; add agents with `arena tournament add ROOT/ladder PATH…`");
    for wrong in [["--games", "0"], ["--for", "soon"], ["--until-margin", "-3"], ["--concurrency", "0"]] {
        let output = fixture.ask("resume", &[wrong[0], wrong[1]]);
        assert_eq!(output.code, 2, "{output:#?}");
    }
}

#[test]
fn commands_of_leagues_refuse_other_tournaments_and_absent_folders() {
    let fixture = LeagueFixture::new();
    let agents = fixture.bots(2, 0.0);
    let args = fixture.agents.begin(&agents, "cup", &["--rounds", "1"]);
    assert_eq!(run(&args.iter().map(String::as_str).collect::<Vec<_>>()).code, 0);
    let cup = fixture.agents.text("cup");
    for args in [&["add", &cup, &agents[0]][..], &["remove", &cup, "bot1"], &["season", &cup]] {
        let output = run(&[&["tournament"], args].concat());
        assert_eq!(output.code, 13, "{output:#?}");
        assert!(output.stderr.contains("a league has no end"), "{output:#?}");
    }
    for args in [&["resume", &cup, "--for", "1s"][..], &["standings", &cup, "--season", "1"]] {
        let output = run(&[&["tournament"], args].concat());
        assert_eq!((output.code, output.stderr.contains("for leagues")), (2, true), "{output:#?}");
    }
    for (verb, args) in [("add", &[agents[0].as_str()][..]), ("remove", &["a"]), ("season", &[]), ("resume", &[])] {
        let output = fixture.ask(verb, args);
        assert_eq!((output.code, output.stderr.contains("there is no tournament in")), (13, true), "{output:#?}");
    }
    assert!(!fixture.agents.path("ladder").exists());
    // Leagues of earlier versions had commands of their own.
    let removed = run(&["league", "run", "snakes"]);
    assert_eq!((removed.code, removed.stderr.contains("`arena tournament run`")), (2, true), "{removed:#?}");
}

#[test]
fn a_game_is_printed_once_its_pairing_has_ended() {
    let fixture = LeagueFixture::new();
    let played = fixture.begin(&fixture.bots(2, 0.0), &["--games", "4", "--json"]);
    let lines: Vec<Value> = played.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let output: Vec<u64> = lines[..4].iter().map(|line| line["fixture"].as_u64().unwrap()).collect();
    assert_eq!(output, [1, 2, 3, 4], "{played:#?}");
}
