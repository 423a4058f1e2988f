//! `arena tournament`: a tournament has the same results after kills of the program, and each error is one sentence.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use arena_testkit::{snake_bot, transcript, until};
use expect_test::{expect, expect_file};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Run, arena, run};

pub struct AgentFolder(pub tempfile::TempDir);

impl AgentFolder {
    pub fn new() -> AgentFolder {
        AgentFolder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Creates a deterministic agent, and returns its path. The agent takes `pause` seconds for a step.
    pub fn bot(&self, name: &str, salt: u32, pause: f64) -> String {
        fs::write(self.path(&format!("{name}.py")), snake_bot("", salt, pause)).unwrap();
        self.text(&format!("{name}.py"))
    }

    /// Returns the arguments of a tournament of these agents in the folder `out`.
    pub fn begin(&self, agents: &[String], out: &str, more: &[&str]) -> Vec<String> {
        let mut args =
            ["tournament", "run", "snake", "--seed", "3", "--set", "n_epochs=12"].map(str::to_owned).to_vec();
        args.extend(agents.iter().flat_map(|agent| ["--agent".to_owned(), agent.clone()]));
        args.extend(["--out".to_owned(), self.text(out)]);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    }

    fn journal(&self, out: &str) -> PathBuf {
        self.path(out).join("tournament.jsonl")
    }

    /// Returns the results by number, without times.
    fn results(&self, out: &str) -> Vec<String> {
        let text = fs::read_to_string(self.journal(out)).unwrap();
        let lines = text.lines().skip(1);
        let mut results: Vec<(u64, String)> = lines
            .map(|line| {
                let mut value: Value = serde_json::from_str(line).unwrap();
                value.as_object_mut().unwrap().remove("time").unwrap();
                (value["fixture"].as_u64().unwrap(), value.to_string())
            })
            .collect();
        results.sort_unstable();
        results.into_iter().map(|(_, line)| line).collect()
    }

    fn standings(&self, out: &str, form: &[&str]) -> String {
        let folder = self.text(out);
        let output = run(&[&["tournament", "standings", &folder], form].concat());
        assert_eq!(output.code, 0, "{output:#?}");
        output.stdout
    }
}

fn run_all(args: &[String]) -> Run {
    run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

fn start(args: &[String]) -> Child {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    arena(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for_lines(journal: &Path, lines: usize) {
    until(&format!("the journal has {lines} lines"), || {
        fs::read_to_string(journal).map_or(0, |text| text.lines().count()) >= lines
    });
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_tournament_that_was_killed_has_the_same_results() {
    let agent_folder = AgentFolder::new();
    let agents: Vec<String> = (1..=4).map(|salt| agent_folder.bot(&format!("bot{salt}"), salt, 0.0)).collect();
    // The random numbers are derived from the folder's name, which is random.
    let chance = agent_folder
        .0
        .path()
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let mut random = chance;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    let cases: [(&str, &[String], &[&str]); 7] = [
        ("round-robin", &agents, &["--rounds", "1"]),
        ("gauntlet", &agents, &["--format", "gauntlet", "--rounds", "1"]),
        ("swiss", &agents, &["--format", "swiss", "--rounds", "2"]),
        ("knockout", &agents, &["--format", "knockout", "--rounds", "2"]),
        ("sprt", &agents[..2], &["--sprt", "elo0=0", "elo1=300", "alpha=0.1", "beta=0.1"]),
        ("adaptive", &agents, &["--format", "adaptive", "--games", "16"]),
        ("until-margin", &agents[..3], &["--format", "adaptive", "--until-margin", "250", "--games", "100"]),
    ];
    for (case, agents, more) in cases {
        let (whole, broken) = (format!("whole-{case}"), format!("broken-{case}"));
        let output = run_all(&agent_folder.begin(agents, &whole, more));
        assert_eq!(output.code, 0, "{output:#?}");
        let mut args = agent_folder.begin(agents, &broken, &[more, &["--concurrency", "2"]].concat());
        for _ in 0..6 {
            let mut child = start(&args);
            thread::sleep(Duration::from_millis(30 + below(250)));
            signal(&child, Signal::KILL);
            child.wait().unwrap();
            if agent_folder.journal(&broken).exists() {
                args = vec!["tournament".to_owned(), "resume".to_owned(), agent_folder.text(&broken)];
                // A power failure may also leave an incomplete line.
                let mut journal = OpenOptions::new().append(true).open(agent_folder.journal(&broken)).unwrap();
                journal.write_all(&br#"{"type":"game","fixture":1,"ro"#[..below(30) as usize]).unwrap();
            }
        }
        let end = run_all(&args);
        assert_eq!(end.code, 0, "{end:#?}");
        // The interrupted tournament may have more games, because concurrent games may be played beyond the end.
        let results = agent_folder.results(&whole);
        assert_eq!(results, agent_folder.results(&broken)[..results.len()], "{case}, {chance}");
        let forms = [&[][..], &["--json"], &["--csv"], &["--markdown"], &["--html"], &["--svg", "ratings"], &["--pgn"]];
        // The other forms have no fields that depend on the format.
        let forms = if case == "round-robin" { &forms[..] } else { &forms[..2] };
        for form in forms {
            assert_eq!(agent_folder.standings(&whole, form), agent_folder.standings(&broken, form), "{case}, {chance}");
        }
    }
}

#[test]
fn ctrl_c_finishes_running_games_and_a_second_one_drops_them() {
    let agent_folder = AgentFolder::new();
    // Starts a tournament whose agents take `pause` seconds for a step, and waits until it plays the game after `games`.
    let begin = |out: &str, pause: f64, games: usize| {
        let agents = [agent_folder.bot("slow", 1, pause), agent_folder.bot("slower", 2, pause)];
        // On a busy machine, an agent may start slowly. A game that fails at its start would end at once.
        let patient = ["--rounds", "20", "--startup-ms", "60000", "--step-ms", "20000", "--bank-ms", "60000"];
        let child = start(&agent_folder.begin(&agents, out, &patient));
        wait_for_lines(&agent_folder.journal(out), 1 + games);
        // The game has started when both agents run. A launcher has the agent's path in its arguments until it starts it.
        until("both agents run", || {
            let processes = crate::matches::processes_with(&agent_folder.text("slow"));
            processes.iter().filter(|line| !line.contains("launch-agent")).count() == 2
        });
        child
    };
    let once = begin("once", 0.3, 1);
    signal(&once, Signal::INT);
    let once = once.wait_with_output().unwrap();
    assert_eq!((once.status.code(), agent_folder.results("once").len()), (Some(130), 2), "{once:?}");
    let output = String::from_utf8(once.stderr).unwrap();
    let line = format!(
        "error: stopped after 2 of 40 games; to resume: arena tournament resume {}\n",
        agent_folder.text("once")
    );
    assert_eq!(output, format!("note: finishing the games in progress; press Ctrl-C again to stop at once\n{line}"));

    // A game would take 18 seconds.
    let twice = begin("twice", 1.5, 0);
    signal(&twice, Signal::INT);
    thread::sleep(Duration::from_millis(30));
    signal(&twice, Signal::TERM);
    let twice = twice.wait_with_output().unwrap();
    assert_eq!((twice.status.code(), agent_folder.results("twice").len()), (Some(130), 0), "{twice:?}");
}

#[test]
fn files_that_change_while_an_agent_plays_end_the_tournament() {
    let agent_folder = AgentFolder::new();
    let agents = [agent_folder.bot("a", 1, 0.02), agent_folder.bot("b", 2, 0.02), agent_folder.bot("c", 3, 0.02)];
    let whole = run_all(&agent_folder.begin(&agents, "whole", &["--rounds", "2"]));
    assert_eq!(whole.code, 0, "{whole:#?}");
    let output = |ended: std::process::Output, out: &str| {
        let stderr = String::from_utf8(ended.stderr).unwrap().replace(&agent_folder.text(out), "OUT");
        assert_eq!(ended.status.code(), Some(13), "{stderr}");
        stderr
    };
    let same = fs::read(agent_folder.path("b.py")).unwrap();
    let changed = || {
        agent_folder.bot("b", 4, 0.02);
    };
    let removed = || fs::remove_file(agent_folder.path("b.py")).unwrap();
    let changes: [(&str, &dyn Fn()); 2] = [("changed", &changed), ("removed", &removed)];
    for (out, change) in changes {
        let child = start(&agent_folder.begin(&agents, out, &["--rounds", "2", "--concurrency", "2"]));
        wait_for_lines(&agent_folder.journal(out), 3);
        change();
        let stderr = output(child.wait_with_output().unwrap(), out);
        expect![[r#"
            error: the files of b have changed or were removed since the tournament began; restore them, or continue with `arena tournament resume OUT --accept-changed`
        "#]]
        .assert_eq(&stderr);
        // Games with the changed files don't count, so the resumed tournament has the same results.
        let so_far = agent_folder.results(out);
        assert!(so_far.len() < agent_folder.results("whole").len());
        assert!(so_far.iter().all(|line| agent_folder.results("whole").contains(line)), "{so_far:#?}");
        fs::write(agent_folder.path("b.py"), &same).unwrap();
        let resumed = run(&["tournament", "resume", &agent_folder.text(out)]);
        assert_eq!((resumed.code, agent_folder.results(out)), (0, agent_folder.results("whole")), "{resumed:#?}");
    }
}

#[test]
fn a_folder_belongs_to_one_tournament_and_one_process() {
    let agent_folder = AgentFolder::new();
    let agents = [agent_folder.bot("a", 1, 0.01), agent_folder.bot("b", 2, 0.01)];
    let mut first = start(&agent_folder.begin(&agents, "out", &["--rounds", "8"]));
    wait_for_lines(&agent_folder.journal("out"), 2);
    let folder = agent_folder.text("out");
    let check = |args: &[String], code: i32, expected: &str| {
        let output = run_all(args);
        assert_eq!(output.code, code, "{output:#?}");
        assert_eq!(output.stderr.replace(&folder, "OUT").trim_end(), expected);
    };
    let resume = ["tournament", "resume", &folder].map(str::to_owned);
    check(&resume, 13, "error: another process is running the tournament in OUT");
    check(&agent_folder.begin(&agents, "out", &[]), 13, "error: another process is running the tournament in OUT");
    // The standings can be read while another process plays.
    assert!(agent_folder.standings("out", &[]).contains("Standings so far"));
    signal(&first, Signal::KILL);
    first.wait().unwrap();
    check(
        &agent_folder.begin(&agents, "out", &[]),
        13,
        "error: OUT already contains a tournament; resume it with `arena tournament resume OUT`, or begin a new one with another --out",
    );
    agent_folder.bot("b", 3, 0.0);
    agent_folder.bot("a", 1, 0.0);
    check(
        &resume,
        13,
        "error: the files of a and b have changed since their results were played; use --accept-changed to continue with the current files",
    );
    let accepted = run_all(&[&resume[..], &["--accept-changed".to_owned()]].concat());
    assert_eq!(accepted.code, 0, "{accepted:#?}");
    assert!(accepted.stdout.contains("the files of b were changed during the tournament"), "{accepted:#?}");
    assert!(!accepted.stdout.contains("Finished game 1 of"), "{accepted:#?}");
    // The accepted change is recorded, so the option isn't needed again.
    check(&resume, 0, "");
    fs::remove_file(agent_folder.path("a.py")).unwrap();
    let gone = run_all(&resume);
    assert_eq!((gone.code, gone.stderr.contains("agent a: ")), (8, true), "{gone:#?}");
}

#[test]
fn invalid_tournaments_are_refused() {
    let agent_folder = AgentFolder::new();
    for (name, salt) in [("a", 1), ("b", 2), ("c", 3)] {
        agent_folder.bot(name, salt, 0.0);
    }
    let root = agent_folder.0.path().to_str().unwrap().to_owned();
    // An input has the agents' names, then options.
    let cases = expect![[r#"
        $
        error: a tournament needs at least 2 agents, but there are none
        $ a
        error: a tournament needs at least 2 agents, but there is only 1
        $ a b --rounds 0
        error: a tournament needs at least 1 round, not 0
        $ a a
        error: ROOT/a.py is given twice; to let an agent play itself, name both: --agent one=PATH --agent two=PATH
        $ a ./a
        error: ROOT/./a.py is given twice, under two paths; to let an agent play itself, name both: --agent one=PATH --agent two=PATH
        $ a b=a
        error: ROOT/a.py is given twice; to let an agent play itself, name both: --agent one=PATH --agent two=PATH
        $ x=a x=b
        error: two agents are named x; rename one with --agent NAME=PATH
        $ =a b
        error: an agent's name must have 1 to 64 characters without surrounding spaces, not ``
        $ a b c --seats 1
        error: snake is played by 2 to 8 agents, not by 1
        $ a b c --seats 4
        error: games of 4 seats need at least 4 agents, but there are 3
        $ a b c --seats 3 --format swiss
        error: the format swiss needs games of 2 seats, not 3
        $ a b c --seats 3 --format knockout
        error: the format knockout needs games of 2 seats, not 3
        $ a b --rounds 600000
        error: the tournament would have more than 1000000 games; reduce agents, seats or rounds
        $ a b --sprt elo0=0
        error: --sprt needs both hypotheses, as in elo0=0 elo1=5
        $ a b --sprt elo0=5 elo1=0
        error: elo0 is 5 and elo1 is 0, but elo0 must be less than elo1
        $ a b --sprt elo0=0,elo1=5,elo1=6
        error: --sprt accepts each of elo0, elo1, alpha, beta and model once
        $ a b --sprt elo0=0 elo1=5 alpha=0.7
        error: alpha is 0.7 and beta is 0.05, but both must be more than 0 and less than 0.5
        $ a b --sprt elo0=0 elo1=5 model=bayesian
        error: invalid value 'model=bayesian' for '--sprt <KEY=VALUE>...': model must be normalized or logistic, not `bayesian`

        For more information, try '--help'.
        $ a b --sprt elo0=0 elo=5
        error: invalid value 'elo=5' for '--sprt <KEY=VALUE>...': unknown parameter `elo`; expected elo0, elo1, alpha, beta or model

        For more information, try '--help'.
        $ a b --sprt elo0=0 elo1=five
        error: invalid value 'elo1=five' for '--sprt <KEY=VALUE>...': elo1 must be a number, not `five`

        For more information, try '--help'.
        $ a b c --sprt elo0=0 elo1=5
        error: an SPRT needs a round-robin of 2 agents with 2 seats, not a round-robin of 3 agents with 2 seats
        $ a b --sprt elo0=0 elo1=5 --until-margin 5
        error: --sprt and --until-margin exclude each other: --sprt needs two agents, --until-margin needs --format adaptive
        $ a b --until-margin 5
        error: only the format adaptive can stop at a rating margin, not round-robin
        $ a b --games 5
        error: --games needs --format adaptive; for round-robin use --rounds
        $ a b c --format adaptive --games 5
        error: 3 agents need at least 6 games to be comparable, not 4
        $ a b c --format adaptive --rounds 5
        error: an adaptive tournament has no rounds; use --games N
        $ a b c --format adaptive --until-margin 0
        error: the rating margin must be a positive number of Elo, not 0
        $ a b c --format adaptive --until-margin inf
        error: the rating margin must be a positive number of Elo, not inf
        $ a b --format adaptive --games 1
        error: a pairing is 2 games, but --games is 1; use --no-pairs for single games
        $ a b --set n_epoch=1
        error: snake, option `n_epoch`: unknown field `n_epoch`, expected one of `grid_width`, `grid_height`, `food_sources_to_spawn`, `min_food_sources`, `n_epochs`
    "#]];
    transcript(&cases, |input| {
        let (agents, options) = input.split_at(input.find("--").unwrap_or(input.len()));
        let path = |agent: &str| match agent.split_once('=') {
            Some((name, agent)) => format!("{name}={root}/{agent}.py"),
            None => format!("{root}/{agent}.py"),
        };
        let agents: Vec<String> = agents.split_whitespace().map(path).collect();
        let options: Vec<&str> = options.split_whitespace().collect();
        let output = run_all(&agent_folder.begin(&agents, "out", &options));
        assert_eq!(output.code, 2, "{output:#?}");
        assert!(!agent_folder.path("out").exists());
        output.stderr.replace(&root, "ROOT")
    });
    let three = ["a", "b", "c"].map(|agent| format!("--agent={}", agent_folder.text(&format!("{agent}.py"))));
    let chess = run_all(&[&["tournament", "run", "chess", "--seats", "3"].map(str::to_owned)[..], &three].concat());
    expect![[r#"
        error: chess is played by 2 agents, not by 3
    "#]]
    .assert_eq(&chess.stderr);
}

#[test]
fn pgn_contains_a_custom_start_position() {
    let agent_folder = AgentFolder::new();
    let agents = ["a", "b"].map(|name| format!("--agent={}", agent_folder.bot(name, 1, 0.0)));
    let fen = "fen=4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
    let out = agent_folder.text("out");
    let args = ["tournament", "run", "chess", "--seed", "3", "--no-pairs", "--replays", "--set", fen, "--out", &out];
    let played = run_all(&[&args.map(str::to_owned)[..], &agents].concat());
    assert_eq!(played.code, 0, "{played:#?}");
    let pgn = agent_folder.standings("out", &["--pgn"]);
    let unknown = "[Date \"????.??.??\"]";
    let date = pgn.lines().find(|line| line.starts_with("[Date ")).unwrap();
    // The date is that of the replay's file.
    assert!(date.starts_with("[Date \"20") && date.len() == unknown.len(), "{date}");
    expect_file!["tournament/pgn_contains_a_custom_start_position.txt"].assert_eq(&pgn.replace(date, unknown));
}

#[test]
fn a_damaged_journal_is_refused_with_the_line() {
    let agent_folder = AgentFolder::new();
    let agents = [agent_folder.bot("a", 1, 0.0), agent_folder.bot("b", 2, 0.0), agent_folder.bot("c", 3, 0.0)];
    let whole = run_all(&agent_folder.begin(&agents, "whole", &["--format", "swiss", "--rounds", "2"]));
    assert_eq!(whole.code, 0, "{whole:#?}");
    let text = fs::read_to_string(agent_folder.journal("whole")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    fs::create_dir(agent_folder.path("out")).unwrap();
    let folder = agent_folder.text("out");
    let standings = |lines: &[&str]| {
        fs::write(agent_folder.journal("out"), lines.join("\n")).unwrap();
        run(&["tournament", "standings", &folder])
    };
    let check = |lines: &[&str], at: usize, what: &str| {
        let output = standings(lines);
        assert_eq!(output.code, 13, "{output:#?}");
        assert_eq!(output.stderr, format!("error: {folder}/tournament.jsonl, line {at}: {what}\n"));
        let resumed = run(&["tournament", "resume", &folder]);
        assert_eq!((resumed.code, resumed.stderr), (13, output.stderr));
        let left = fs::read_to_string(agent_folder.journal("out")).unwrap();
        assert_eq!(left, lines.join("\n"), "a damaged journal was changed");
    };
    let [plan, one, two, three, four] = lines[..] else { panic!("{lines:?}") };
    let other = one.replace(r#""epochs":"#, r#""epochs":1"#);
    check(&[plan, one, two, one, ""], 4, "game 1 is recorded twice; remove one of the lines");
    check(&[plan, one, &other, ""], 3, "game 1 has another result on an earlier line; remove one of the lines");
    check(&[plan, one, three, ""], 3, "there is no game 3; games scheduled so far: 2");
    check(
        &[plan, &one.replace(r#""fixture":1"#, r#""fixture":9"#), ""],
        2,
        "there is no game 9; games scheduled so far: 2",
    );
    check(&[plan, &one.replacen(r#"["#, r#"["z","#, 1), ""], 2, "game 1 is between a and c, not between z and a and c");
    check(
        &[plan, &one.replace(r#""seed":""#, r#""seed":"0"#), ""],
        2,
        "game 1 has another seed or round in the schedule",
    );
    check(
        &[plan, &one.replace(r#""ranks":["#, r#""ranks":[7,"#), ""],
        2,
        "game 1 has 2 seats, but one of its lists has another length",
    );
    check(
        &[plan, &one.replace(r#""scores":["#, r#""scores":[7,"#), ""],
        2,
        "game 1 has 2 seats, but one of its lists has another length",
    );
    check(
        &[plan, &one.replace(r#""epochs""#, r#""epoch""#), ""],
        2,
        "the line isn't the result of a match: unknown field `epoch`, expected one of `fixture`, `round`, `agents`, `generations`, `ranks`, `scores`, `verdicts`, `details`, `faults`, `refused`, `seed`, `epochs`, `outcome`, `challenge_scores`, `moves`, `time`, `worker`",
    );
    check(
        &[plan, &one[..40], two, ""],
        2,
        "the line isn't the result of a match: control character (\\u0000-\\u001F) found while parsing a string",
    );
    check(&[plan, "", one, ""], 2, "the line isn't the result of a match: EOF while parsing a value");
    check(
        &[&plan.replace(r#""arena_tournament":1"#, r#""arena_tournament":2"#), one, ""],
        1,
        "the journal has version 2, but this program reads version 1",
    );
    check(&[&plan.replace(r#""game":"snake""#, r#""game":"go""#), one, ""], 1, "there is no game `go`");
    check(
        &[one, ""],
        1,
        "the line isn't the plan of a tournament: unknown field `type`, expected one of `arena_tournament`, `game`, `rules_version`, `script`, `texts`, `options`, `limits`, `time_control`, `start_limits`, `openings`, `adjudication`, `agents`, `format`, `rounds`, `seats`, `paired`, `stop`, `seed`, `sandbox`, `sandbox_limits`, `expose`, `public_only`, `replays`, `concurrency`, `shares_core`",
    );
    check(&[""], 1, "the plan is missing");
    check(&[&plan[..99]], 1, "the plan is missing");
    // A truncated last line doesn't count; all other lines do.
    let cut = standings(&[plan, one, two, &three[..40]]);
    assert_eq!((cut.code, &*cut.stderr), (0, "note: ignored the incomplete last line (40 bytes)\n"));
    let resumed = run(&["tournament", "resume", &folder]);
    let dropped = "note: dropped the incomplete last line (40 bytes); its game is played again\n";
    assert_eq!((resumed.code, &*resumed.stderr), (0, dropped));
    assert_eq!(agent_folder.results("out"), agent_folder.results("whole"));
    let intact = standings(&[plan, one, two, three, four, ""]);
    assert_eq!((intact.code, &*intact.stderr), (0, ""));
}

#[test]
fn a_tournament_without_a_sandbox_can_be_resumed_outside_of_its_agents_folder() {
    let (agent_folder, elsewhere) = (AgentFolder::new(), tempfile::tempdir().unwrap());
    let bots = [agent_folder.bot("a", 1, 0.0), agent_folder.bot("b", 2, 0.0)];
    let outside = elsewhere.path().join("cup");
    let played = run_all(&agent_folder.begin(&bots, outside.to_str().unwrap(), &["--sandbox", "off", "--rounds", "1"]));
    assert_eq!(played.code, 0, "{played:#?}");
    // The journal is shortened and moved, as if the tournament had been stopped and moved.
    let text = fs::read_to_string(outside.join("tournament.jsonl")).unwrap();
    let first: String = text.split_inclusive('\n').take(2).collect();
    fs::write(outside.join("tournament.jsonl"), &first).unwrap();
    let inside = agent_folder.path("cup");
    fs::rename(&outside, &inside).unwrap();
    let refused = run(&["tournament", "resume", inside.to_str().unwrap()]);
    let output = format!(
        "error: {} is in the folder of the agent a, which can read this path without a sandbox; choose an output path outside of that folder; you can move the tournament's folder and resume it there\n",
        inside.display()
    );
    assert_eq!((refused.code, refused.stderr), (2, output));
    fs::rename(&inside, &outside).unwrap();
    let resumed = run(&["tournament", "resume", outside.to_str().unwrap()]);
    assert_eq!(resumed.code, 0, "{resumed:#?}");
    let again = fs::read_to_string(outside.join("tournament.jsonl")).unwrap();
    assert!(again.starts_with(&first) && again.lines().count() == 3, "{again}");
}

#[test]
fn a_tournament_with_workers_only_needs_a_folder_outside_of_its_agents() {
    let agent_folder = AgentFolder::new();
    let bots = [agent_folder.bot("a", 1, 0.0), agent_folder.bot("b", 2, 0.0)];
    let output = |out: &str, more: &[&str]| run_all(&agent_folder.begin(&bots, out, more)).stderr;
    let fleet = ["--nats-url", "nats://127.0.0.1:1"];
    assert!(output("/usr/cup", &[]).contains("is in a system folder"));
    let passed = output("/usr/cup", &fleet);
    assert!(passed.contains("127.0.0.1:1"), "{passed}");
    assert!(output(".", &fleet).contains("is the folder or a file of the agent a"));
}

#[test]
fn no_seed_is_printed_before_its_games_have_ended() {
    let agent_folder = AgentFolder::new();
    let bots = [agent_folder.bot("a", 1, 0.05), agent_folder.bot("b", 2, 0.05)];
    let args = agent_folder.begin(&bots, "cup", &["--rounds", "2", "--json"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut child = arena(&args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seeds: Vec<String> = Vec::new();
    for line in lines {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line.get("standings").is_some() {
            continue;
        }
        seeds.push(line["seed"].as_str().unwrap().to_owned());
        let journal = fs::read_to_string(agent_folder.journal("cup")).unwrap();
        let seed = format!("\"seed\":\"{}\"", seeds.last().unwrap());
        assert_eq!(journal.lines().skip(1).filter(|game| game.contains(&seed)).count(), 2, "{journal}");
    }
    assert!(child.wait().unwrap().success());
    assert!(seeds.len() == 4 && seeds[0] == seeds[1] && seeds[2] == seeds[3] && seeds[0] != seeds[2], "{seeds:?}");
    let args = agent_folder.begin(&bots, "pretty", &["--rounds", "1"]);
    let args: Vec<String> = args.into_iter().map(|arg| if arg == "3" { "7654321".to_owned() } else { arg }).collect();
    let shown = run_all(&args);
    let (before, after) = shown.stdout.split_once("Finished game 2 ").unwrap();
    assert!(!before.contains("7654321") && after.contains("seed 7654321"), "{shown:#?}");
}

#[test]
fn ids_of_agents_in_a_tournament_may_be_their_names() {
    let folder = AgentFolder::new();
    let out = folder.text("out");
    let fixed = ["tournament", "run", "chess", "--agent=a=random", "--agent=b=random", "--set", "n_epochs=3"];
    let played = run(&[&fixed[..], &["--agent-ids", "names", "--replays", "--out", &out]].concat());
    assert_eq!(played.code, 0, "{played:#?}");
    let replays: Vec<_> = fs::read_dir(folder.path("out/replays"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    assert_eq!(replays.len(), 2, "{replays:?}");
    for replay in replays {
        let header: Value = serde_json::from_str(fs::read_to_string(&replay).unwrap().lines().next().unwrap()).unwrap();
        let ids: BTreeSet<&str> = (0..2).map(|seat| header["agents"][seat]["agent_id"].as_str().unwrap()).collect();
        assert!(ids.iter().eq(["a", "b"].iter()), "{header}");
        assert_eq!(run(&["replay", "verify", replay.to_str().unwrap()]).code, 0, "{replay:?}");
    }
}
