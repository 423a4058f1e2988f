//! `arena author`: the examples pass its checks, the tutorial is correct, and errors are reported.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use expect_test::expect_file;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Run, arena, finished, run};

const EXAMPLES: [&str; 4] = ["sealed-bid-auction", "expense-desk", "merger-talks", "safe-house"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn example(name: &str) -> String {
    root().join("examples/challenges").join(name).to_str().unwrap().to_owned()
}

/// Creates a temporary folder that is accessible to all users, because bots may run as another user.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Creates a challenge from the template, and returns its path.
fn begin(folder: &TempDir, name: &str, more: &[&str]) -> String {
    let path = folder.path().join(name).to_str().unwrap().to_owned();
    let run = run(&[&["author", "new", &path], more].concat());
    assert_eq!(run.code, 0, "{run:#?}");
    path
}

fn change(challenge: &str, file: &str, from: &str, to: &str) {
    let path = Path::new(challenge).join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} doesn't contain {from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
}

fn typed(args: &[&str], lines: &str) -> Run {
    let mut child = arena(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    finished(child.wait_with_output().unwrap())
}

#[test]
fn the_examples_pass_all_checks_with_their_bots() {
    for name in EXAMPLES {
        let checked = run(&["author", "check", &example(name), "--json"]);
        assert_eq!(checked.code, 0, "{name}: {checked:#?}");
        let checked = checked.json();
        let of = |check: &str| -> Vec<&Value> {
            checked["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check).collect()
        };
        assert!(of("bots").len() >= 2 && of("bots").iter().all(|finding| finding["verdict"] == "fine"), "{checked:#}");
        let is_secret = of("secrecy").iter().any(|found| found["what"].as_str().unwrap().contains("played twice"));
        assert!(is_secret, "the secrets of {name} were not compared: {checked:#}");
        assert!(of("ending").iter().all(|finding| finding["verdict"] == "fine"), "{name} ends: {checked:#}");
    }
}

#[test]
fn careless_bots_lose_in_the_examples() {
    // The bots play several deals on both seats. The careful bot must have the higher sum of scores.
    for (name, careless, careful) in [("sealed-bid-auction", "chatty", "nosy"), ("expense-desk", "gullible", "forger")]
    {
        let bot = |bot: &str| format!("{}/bots/{bot}.py", example(name));
        let (careless_bot, careful_bot) = (bot(careless), bot(careful));
        let args = ["match", "run", &example(name), "--agent", &careless_bot, "--agent", &careful_bot];
        let played = run(&[&args[..], &["--games", "12", "--seed", "1", "--json"]].concat());
        assert_eq!(played.code, 0, "{played:#?}");
        let mut sums = [0.0, 0.0];
        for line in played.stdout.lines() {
            let result: Value = serde_json::from_str(line).unwrap();
            assert_eq!(result["outcome"]["termination"], "GAME_ENDED", "{result:#}");
            for seat in result["scores"].as_array().unwrap() {
                sums[usize::from(seat["name"] == careful)] += seat["score"].as_f64().unwrap();
            }
        }
        assert!(sums[0] < sums[1], "{careless} has {}, {careful} {}", sums[0], sums[1]);
    }
}

#[test]
fn a_new_challenge_is_correct_and_nothing_is_overwritten() {
    let folder = folder();
    for (name, more) in [("number-duel", &[][..]), ("number-duel-js", &["--js"])] {
        let challenge = begin(&folder, name, more);
        let checked = run(&["author", "check", &challenge]);
        assert_eq!(checked.code, 0, "{checked:#?}");
        assert!(checked.stdout.contains("✓ bots           guesser against itself"), "{checked:#?}");
        assert!(checked.stdout.ends_with("faults: 0\n"), "{checked:#?}");
        let again = run(&["author", "new", &challenge]);
        assert_eq!((again.code, again.stderr.contains("exists already")), (2, true), "{again:#?}");
    }
    let challenge = begin(&folder, "empty", &["--empty"]);
    let mut names: Vec<_> = fs::read_dir(&challenge).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["bots", "tsconfig.json", "types"]);
    for (name, why) in
        [("Duel", "lowercase letters"), ("psi", "is a built-in challenge"), ("food-catcher", "is a built-in challenge")]
    {
        let path = folder.path().join(name);
        let refused = run(&["author", "new", path.to_str().unwrap()]);
        assert_eq!((refused.code, refused.stderr.contains(why)), (2, true), "{refused:#?}");
        assert!(!path.exists());
    }
}

#[test]
fn faults_are_reported_with_their_place() {
    let folder = folder();
    let output = |name: &str, file: &str, from: &str, to: &str| {
        let challenge = begin(&folder, name, &[]);
        change(&challenge, file, from, to);
        run(&["author", "check", &challenge, "--no-bots"])
    };
    let leaks = output("leaks", "index.ts", "secrets[player]}.`, name)", "secrets[player]}.`, this.state.players[0])");
    assert_eq!(leaks.code, 0, "{leaks:#?}");
    assert!(
        leaks.stdout.contains("! secrecy        before the first action, player 1 is sent data of player 2"),
        "{leaks:#?}"
    );
    let shouts = output(
        "shouts",
        "index.ts",
        "this.broadcast(\"The duel begins.",
        "this.broadcast(`${this.gameState.secrets}`); this.broadcast(\"The duel begins.",
    );
    assert_eq!(shouts.code, 15, "{shouts:#?}");
    assert!(shouts.stdout.contains("✗ secrecy        before the first action, player"), "{shouts:#?}");
    let fails = output("fails", "index.ts", "guesses[player] = Number", "null.x; guesses[player] = Number");
    assert_eq!(fails.code, 15, "{fails:#?}");
    assert!(fails.stdout.contains("✗ messages") && fails.stdout.contains("index.ts:"), "{fails:#?}");
    let typo = output("typo", "index.ts", "class Duel extends", "clas Duel extends");
    assert_eq!((typo.code, typo.stderr.contains("index.ts:")), (15, true), "{typo:#?}");
    let field = output("field", "challenge.json", "\"players\": 2", "\"player\": 2");
    assert_eq!((field.code, field.stderr.contains("challenge.json:")), (15, true), "{field:#?}");
    let ui = output("ui", "challenge.json", "\"type\": \"number\"", "\"type\": \"numbers\"");
    assert_eq!((ui.code, ui.stderr.contains("ui: unknown variant `numbers`")), (15, true), "{ui:#?}");
    let method = output("method", "challenge.json", "\"name\": \"guess\"", "\"name\": \"gues\"");
    assert_eq!(method.code, 15, "{method:#?}");
    let allowed = {
        let challenge = folder.path().join("shouts");
        run(&["author", "check", challenge.to_str().unwrap(), "--no-bots", "--allow", "secrecy"])
    };
    assert_eq!(allowed.code, 0, "{allowed:#?}");
}

#[test]
fn a_challenge_is_checked_with_the_given_options() {
    let checked = |options: &[&str]| run(&[&["author", "check", "psi", "--games", "2"], options].concat());
    for (option, code) in [("setSize=4", 0), ("setSize=-4", 2), ("size=4", 2), ("setSize", 2)] {
        let checked = checked(&["--set", option]);
        assert_eq!(checked.code, code, "{option}: {checked:#?}");
    }
    let three = checked(&["--set", "players=3"]);
    assert!(three.stdout.contains("for 3 players"), "{three:#?}");
}

#[test]
fn a_missing_or_invalid_challenge_is_reported_in_a_sentence() {
    for (what, why) in [
        ("nothing-here", "there is no folder and no built-in challenge named nothing-here"),
        (".", "it has no challenge.json"),
    ] {
        let checked = run(&["author", "check", what]);
        assert!(checked.code != 0 && checked.stderr.contains(why), "{checked:#?}");
        assert_eq!(checked.stderr.lines().count(), 1, "{checked:#?}");
    }
}

#[test]
fn both_seats_are_played_at_one_keyboard() {
    let auction = example("sealed-bid-auction");
    let played = typed(&["author", "play", &auction], "/bid forty\n/bid 40\n/seat 9\n/seat 2\n/bid 35, 70\n");
    assert_eq!(played.code, 0, "{played:#?}");
    for part in [
        "refused: A bid is a whole number",
        "(you are Player 2 now)",
        "(/seat needs the number of one of your seats: 1, 2)",
        "The bids are opened.",
        "│ Player 2 (you)",
    ] {
        assert!(played.stdout.contains(part), "{part}: {played:#?}");
    }
}

/// Copies the script of PSI under another name, with its options.
fn copied_psi(folder: &TempDir, name: &str) -> String {
    let to = folder.path().join(name);
    fs::create_dir(&to).unwrap();
    for file in ["challenge.json", "index.ts"] {
        fs::copy(root().join("crates/arena-script/tests/challenges/psi").join(file), to.join(file)).unwrap();
    }
    to.to_str().unwrap().to_owned()
}

#[test]
fn options_are_set_on_the_command_line_within_their_bounds() {
    let temp = folder();
    let folder = copied_psi(&temp, "numbers");
    let agent = root().join("examples/agents/python/psi.py").to_str().unwrap().to_owned();
    // Returns the number of dealt numbers and a note about a third player, or the exit code and the error.
    let dealt = |challenge: &str, option: &str| {
        let played = typed(&["author", "play", challenge, "--set", option], "/seat 3\n");
        let mut sets = played.stdout.lines().filter_map(|line| line.split_once("Your private set is: {"));
        // The prompt contains such a line without numbers.
        match sets.find(|(_, set)| set.starts_with(|char: char| char.is_ascii_digit())) {
            Some((_, set)) => {
                let third = if played.stdout.contains("you are Player 3 now") { ", a third player" } else { "" };
                format!("{} numbers{third}", set.split(',').count())
            }
            None => format!("{} {}", played.code, played.stderr),
        }
    };
    let matched = |challenge: &str, option: &str| {
        let run =
            run(&["match", "run", challenge, "--agent", &agent, "--agent", &agent, "--seed", "1", "--set", option]);
        format!("{} {}", run.code, run.stderr)
    };
    let mut output = String::new();
    for (challenge, name) in [(folder.as_str(), "a folder"), ("psi", "built in")] {
        for option in ["setSize=4", "intersectionSize=60", "setSize=\"x\"", "setSize=900", "setsize=4", "players=3"] {
            let (played, matched) = (dealt(challenge, option), matched(challenge, option));
            output += &format!("{name}, {option}\n  play: {}\n  match: {}\n", played.trim(), matched.trim());
        }
    }
    expect_file!["challenge/options_are_set_on_the_command_line_within_their_bounds.txt"].assert_eq(&output);
    // An explicit folder takes precedence over a built-in challenge of the same name.
    let named = copied_psi(&temp, "psi");
    assert_eq!(dealt(&named, "setSize=4"), "7 numbers");
}

#[test]
fn data_outside_of_the_state_is_found() {
    let folder = folder();
    let script = |field: &str, count: &str| {
        format!(
            "import {{ BaseChallenge }} from \"@specarena/engine/challenge-design/BaseChallenge\";\n{field}\n\
             class Vote extends BaseChallenge {{\n  static votes = 0;\n  votes = 0;\n\
             constructor(id, context) {{\n    super(id, 2, {{ votes: 0 }}, context.messaging);\n    \
             this.handle(\"vote\", () => {{ if (++{count} === 2) this.endGame(); }});\n  }}\n}}\n\
             export const createChallenge = (id, options, context) => new Vote(id, context);\n"
        )
    };
    let metadata = r#"{"name": "Vote", "description": "Two votes end it.", "players": 2, "prompt": "Call `vote`.",
        "methods": [{"name": "vote", "description": "Votes."}]}"#;
    let path = folder.path().join("vote");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("challenge.json"), metadata).unwrap();
    let check = |field: &str, count: &str| {
        fs::write(path.join("index.js"), script(field, count)).unwrap();
        let checked = run(&["author", "check", path.to_str().unwrap(), "--no-bots"]);
        let lost = checked.stdout.contains("✗ restore        data is kept outside of the state");
        (checked.code == 0, lost)
    };
    assert_eq!(check("", "this.gameState.votes"), (true, false));
    assert_eq!(check("let votes = 0;", "votes"), (false, true));
    assert_eq!(
        check(
            "const kept = new Map([[\"votes\", 0]]); const box = { get votes() { return kept.get(\"votes\"); }, set votes(n) { kept.set(\"votes\", n); } };",
            "box.votes"
        ),
        (false, true)
    );
    assert_eq!(check("", "this.votes"), (false, true));
    assert_eq!(check("", "Vote.votes"), (false, true));
}

#[test]
fn a_bot_takes_the_other_seat() {
    let auction = example("sealed-bid-auction");
    let bot = format!("2={auction}/bots/half.py");
    let played = typed(&["author", "play", &auction, "--agent", &bot], "/bid 40\n");
    assert_eq!(played.code, 0, "{played:#?}");
    assert!(played.stdout.contains("Player 2 has bid.") && played.stdout.contains("│ Player 1 (you)"), "{played:#?}");
    let refused = run(&["author", "play", &auction, "--agent", &format!("3={auction}/bots/half.py")]);
    assert_eq!((refused.code, refused.stderr.contains("there is no seat 3")), (2, true), "{refused:#?}");
}

#[test]
fn seats_of_mirrored_deals_are_equally_good() {
    let talks = example("merger-talks");
    let [a, b] = ["cautious", "trader"].map(|bot| format!("{talks}/bots/{bot}.py"));
    let args = ["author", "fairness", &talks, "--agent", &a, "--agent", &b, "--games", "4", "--seed", "1", "--json"];
    let output = run(&args);
    assert_eq!(output.code, 0, "{output:#?}");
    let output = output.json();
    assert_eq!(output["deals"], 4, "{output:#}");
    let gain = |seat: usize, end: &str| output["seats"][seat]["gain"][end].as_f64().unwrap();
    assert!((gain(0, "mean") + gain(1, "mean")).abs() < 1e-9, "the gains don't add up to zero: {output:#}");
    assert!(gain(0, "low") <= 0.0 && gain(0, "high") >= 0.0, "{output:#}");
    let refused = run(&["author", "fairness", &talks, "--agent", &a, "--agent", &a, "--agent", &a]);
    assert_eq!(refused.code, 2, "{refused:#?}");
}

#[test]
fn an_advantage_of_a_seat_gives_exit_code_15() {
    let folder = folder();
    let challenge = begin(&folder, "first-wins", &[]);
    let scores =
        "this.state.scores.forEach((score, seat) => { score.utility = seat === 0 ? 0.5 : 0; score.security = 0; });";
    change(&challenge, "index.ts", "this.endGame();", &format!("{scores}\n    this.endGame();"));
    let bot = format!("{challenge}/bots/guesser.py");
    let args = ["author", "fairness", &challenge, "--agent", &bot, "--games", "3", "--seed", "1"];
    let output = run(&args);
    assert_eq!(output.code, 15, "{output:#?}");
    assert!(output.stderr.contains("the seats of first-wins aren't equally good: player 1, player 2"), "{output:#?}");
    let output = run(&[&args[..], &["--max-bias", "1"]].concat());
    assert_eq!((output.code, output.stdout.contains("player 1 (+0.5")), (0, true), "{output:#?}");
}

#[test]
fn a_replay_of_a_script_is_verified_with_the_same_version_only() {
    let folder = folder();
    let challenge = begin(&folder, "number-duel", &[]);
    let bot = format!("{challenge}/bots/guesser.py");
    let replay = folder.path().join("duel.jsonl").to_str().unwrap().to_owned();
    let played =
        run(&["match", "run", &challenge, "--agent", &bot, "--agent", &bot, "--seed", "1", "--replay", &replay]);
    assert_eq!(played.code, 0, "{played:#?}");
    let shown = run(&["replay", "show", &replay]);
    assert_eq!((shown.code, shown.stdout.starts_with("number-duel, ")), (0, true), "{shown:#?}");
    let verify = |more: &[&str]| run(&[&["replay", "verify", &replay], more].concat());
    let refused = verify(&[]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(refused.stderr.contains("give its folder with --challenge DIR"), "{refused:#?}");
    let by_folder = ["--challenge", &challenge];
    let verified = verify(&by_folder);
    assert_eq!((verified.code, verified.stdout.contains("the result matches")), (0, true), "{verified:#?}");
    // If several versions are given, the program uses the version of the record.
    let later = folder.path().join("later/number-duel");
    fs::create_dir_all(&later).unwrap();
    for file in ["challenge.json", "index.ts", "prompt.md"] {
        fs::copy(Path::new(&challenge).join(file), later.join(file)).unwrap();
    }
    let later = later.to_str().unwrap();
    change(later, "index.ts", "const MOST = 10", "const MOST = 9");
    assert_eq!(verify(&["--challenge", later, "--challenge", &challenge]).code, 0);
    let refused = verify(&["--challenge", later]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(refused.stderr.contains("but the available script is version"), "{refused:#?}");
    let text = fs::read_to_string(&replay).unwrap();
    fs::write(&replay, text.replacen("\"scores\":[", "\"scores\":[9.0,", 1)).unwrap();
    let refused = verify(&by_folder);
    assert_eq!((refused.code, refused.stderr.contains("the result differs")), (11, true), "{refused:#?}");
}

#[test]
fn a_tournament_is_played_by_one_version_of_a_script() {
    let folder = folder();
    let challenge = begin(&folder, "number-duel", &[]);
    let bot = format!("{challenge}/bots/guesser.py");
    let out = folder.path().join("cup").to_str().unwrap().to_owned();
    let (a, b) = (format!("a={bot}"), format!("b={bot}"));
    let played = run(&["tournament", "run", &challenge, "--agent", &a, "--agent", &b, "--rounds", "1", "--out", &out]);
    assert_eq!(played.code, 0, "{played:#?}");
    let standings = run(&["tournament", "standings", &out]);
    assert!(standings.stdout.contains("number-duel: round-robin of 2 agents"), "{standings:#?}");
    assert_eq!(run(&["tournament", "resume", &out]).code, 0);
    change(&challenge, "index.ts", "const MOST = 10", "const MOST = 9");
    let refused = run(&["tournament", "resume", &out]);
    assert_eq!(
        (refused.code, refused.stderr.contains("has changed since the tournament began")),
        (13, true),
        "{refused:#?}"
    );
    let still = run(&["tournament", "standings", &out]);
    assert_eq!(still.code, 0, "a finished session can't be shown: {still:#?}");

    // With an older version of the script interface, the same files have another hash.
    let journal = Path::new(&out).join("tournament.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let (plan, games) = text.split_once('\n').unwrap();
    let mut plan: Value = serde_json::from_str(plan).unwrap();
    let version = plan["rules_version"].as_u64().unwrap();
    plan["rules_version"] = json!(version - 1);
    plan["script"]["version"] = json!("0".repeat(64));
    change(&challenge, "index.ts", "const MOST = 9", "const MOST = 10");
    for (games, code) in [(games, 0), (games.split_inclusive('\n').next().unwrap(), 13)] {
        fs::write(&journal, format!("{plan}\n{games}")).unwrap();
        let resumed = run(&["tournament", "resume", &out]);
        assert_eq!(resumed.code, code, "{resumed:#?}");
        let output = format!(
            "the tournament was started with version {} of the rules of number-duel, but this program has version {version}",
            version - 1
        );
        assert_eq!(resumed.stderr.contains(&output), code != 0, "{resumed:#?}");
        assert!(!resumed.stderr.contains("has changed since the tournament began"), "{resumed:#?}");
        assert_eq!(run(&["tournament", "standings", &out]).code, 0);
    }
}

#[test]
fn types_are_written_to_the_given_folder() {
    let folder = folder();
    let out = folder.path().join("deep/types");
    let written = run(&["author", "types", "--out", out.to_str().unwrap()]);
    assert_eq!(written.code, 0, "{written:#?}");
    let types = fs::read_to_string(out.join("arena.d.ts")).unwrap();
    // A script can import four modules.
    assert_eq!(types.matches("\ndeclare module \"").count(), 4);
    assert!(written.stdout.contains("\"include\": [\"*.ts\""), "{written:#?}");
}

#[test]
fn the_tutorial_shows_the_example() {
    let tutorial = fs::read_to_string(root().join("docs/writing-challenges.md")).unwrap();
    let shown = |language: &str| -> Vec<&str> {
        let fence = format!("```{language}\n");
        let blocks: Vec<&str> = tutorial.split(fence.as_str()).skip(1).collect();
        blocks.into_iter().map(|rest| rest.split_once("\n```").unwrap().0).collect()
    };
    let file = |name: &str| fs::read_to_string(Path::new(&example("sealed-bid-auction")).join(name)).unwrap();
    assert_eq!(shown("json").join("\n"), file("challenge.json").trim_end());
    assert_eq!(shown("markdown"), [file("prompt.md").trim_end()]);
    assert_eq!(shown("ts").join("\n\n"), file("index.ts").trim_end());
    assert_eq!(shown("python"), [file("bots/chatty.py").trim_end()]);
}

#[test]
fn bots_of_all_examples_use_the_same_protocol_file() {
    let own = fs::read_to_string(root().join("examples/agents/python/colosseum.py")).unwrap();
    for name in EXAMPLES {
        assert_eq!(fs::read_to_string(Path::new(&example(name)).join("bots/colosseum.py")).unwrap(), own, "{name}");
    }
}
