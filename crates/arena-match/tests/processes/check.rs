//! Checks of agents, each with a single error.

use std::sync::atomic::AtomicBool;

use arena_match::{Agent, CheckPlan, CheckReport, Confinement, Dialect, Finding, Severity, check};
use arena_model::{GameType, Seed};
use expect_test::{expect, expect_file};

use crate::agent::{self, CONFINED};

/// A correct agent; tests replace lines of it.
const GOOD: &str = r#"import json
def say(**answer):
    print(json.dumps(answer), flush=True)
def act(state):
    return [{"action": "move", "actor_id": actor["id"], "target": [9, 9]} for actor in state["actors"] if actor["owner_id"] == me]
me = None
for line in sys.stdin:
    message = json.loads(line)
    state = message.get("world_state")
    if "stop" in message:
        break
    pong = {"pong": "pong"} if "ping" in message else {}
    if "set_agent_id" in message:
        me = message["set_agent_id"]
        say(agent_id=me, agent_name="good", agent_version="1")
    elif state:
        say(agent_id=me, actions=act(state), **pong)
    elif pong:
        say(**pong)
"#;

/// Returns the findings about [`GOOD`] after the replacements.
fn checked(replacements: &[(&str, &str)], games: &[&'static GameType]) -> CheckReport {
    let mut text = GOOD.to_owned();
    for (part, instead) in replacements {
        assert!(text.contains(part), "{part}");
        text = text.replacen(part, instead, 1);
    }
    let kit = agent::Agent::python(CONFINED[0], &text);
    let agent = Agent::find(kit.spec.program.to_str().unwrap(), "/usr/bin:/bin").unwrap();
    checked_in(&agent, &kit, games)
}

fn checked_in(agent: &Agent, kit: &agent::Agent, games: &[&'static GameType]) -> CheckReport {
    let confinement = Confinement::new(agent::launcher(), kit.spec.sandbox);
    let plan = CheckPlan { agent, games, seed: &Seed::from_number(0), confinement: &confinement };
    check(plan, &AtomicBool::new(false)).unwrap()
}

/// The findings about the correct agent, and those on a busy machine.
pub const BESIDE_THE_POINT: [&str; 3] =
    ["receives each state twice", "sometimes takes too long", "is close to the limit"];

/// Returns the findings of checks in food_catcher after each of these replacements, with the last line of the log, without
/// those in [`BESIDE_THE_POINT`].
fn findings(replacements: &[(&str, &str)]) -> String {
    let game = arena_games::game("food_catcher").unwrap();
    let mut transcript = String::new();
    for &(part, instead) in replacements {
        let checked = checked(&[(part, instead)], &[game]);
        let is_noise = |what: &str| BESIDE_THE_POINT.iter().any(|known| what.starts_with(known));
        let findings = checked.findings.iter().filter(|finding| !is_noise(&finding.what)).map(|finding| {
            assert!(!finding.advice.is_empty());
            let line = finding.line.as_ref().map(|line| format!(" <- {line}")).unwrap_or_default();
            let last = finding.log.as_ref().and_then(|log| log.lines().next_back());
            let log = last.map(|line| format!(" # {line}")).unwrap_or_default();
            let times = if finding.times > 1 { " again and again" } else { "" };
            format!("{:?}: {}{times}{line}{log}", finding.severity, finding.what)
        });
        transcript += &format!("{instead:?} => {}\n", findings.collect::<Vec<_>>().join(" | "));
        assert_eq!(checked.is_fine, checked.findings.iter().all(|finding| finding.severity == Severity::Advice));
    }
    transcript
}

#[test]
fn a_good_agent_is_fine() {
    let games: Vec<&GameType> = arena_games::games().collect();
    let checked = checked(&[], &games);
    assert!(checked.is_fine, "{checked:#?}");
    let plays: Vec<&str> = checked.games.iter().filter(|(_, found)| found.plays).map(|(name, _)| *name).collect();
    assert_eq!(plays, ["cherry_picker", "food_catcher"]);
    assert_eq!((checked.name.as_str(), checked.version.as_deref()), ("good", Some("1")));
    let fine: Vec<&str> = checked.fine.iter().map(|line| line.split(['(', ':']).next().unwrap().trim_end()).collect();
    assert_eq!(
        fine[1..],
        [
            "plays cherry_picker",
            "plays food_catcher",
            "exits by itself after `stop`",
            "ignores keys that it doesn't know, and answers a `ping` that comes with a state",
            "exits by itself after the end of its input",
        ]
    );
    assert!(fine[0].starts_with("starts and answers the ping in"), "{fine:?}");
}

#[test]
fn faults_of_the_handshake() {
    let replacements = [
        ("    state =", "    if 'ping' in message and not me: print('ready', flush=True)\n    state ="),
        ("for line in sys.stdin:", "for line in sys.stdin.read().splitlines():"),
        (r#"{"pong": "pong"} if "ping" in message else {}"#, r"print('\n', flush=True) or {}"),
        (r#"{"pong": "pong"} if"#, r#"{"agent_id": "x"} if"#),
        ("me = None\n", "raise SystemExit(3)\n"),
        ("say(agent_id=me, agent_name", "say(agent_id='you', agent_name"),
        (r#"say(agent_id=me, agent_name="good", agent_version="1")"#, "say()"),
        (r#"say(agent_id=me, agent_name="good", agent_version="1")"#, "pass"),
        (r#"say(agent_id=me, agent_name="good", agent_version="1")"#, "print('thank you', flush=True)"),
        (r#"message["set_agent_id"]"#, r#"message["agent-id"]"#),
    ];
    expect_file!["check/faults_of_the_handshake.txt"].assert_eq(&findings(&replacements));
}

#[test]
fn faults_while_playing() {
    let replacements = [
        ("say(agent_id=me, actions", "say(actions"),
        ("say(agent_id=me, actions", "say(agent_id='you', actions"),
        ("say(agent_id=me, actions=act(state), **pong)", "print('thinking', flush=True)"),
        ("say(agent_id=me, actions=act(state), **pong)", "state['nothing']"),
        ("say(agent_id=me, actions=act(state), **pong)", "time.sleep(9)"),
        (
            "say(agent_id=me, actions=act(state), **pong)",
            "line = json.dumps({'agent_id': me, 'actions': act(state), **pong}); print(line + '\\n' + line, flush=True)",
        ),
        ("actions=act(state)", "actions=[{'action': 'fly'}]"),
        ("actions=act(state)", "actions=act(state) + [{'action': 'move', 'actor_id': 'x', 'target': [1, 2]}]"),
        ("actions=act(state)", "actions=[]"),
        ("actions=act(state), **pong", "moves=[], **pong"),
        ("actions=act(state), **pong", "action=act(state), **pong"),
        ("import json", "import json; sys.stdout.reconfigure(encoding='utf-8-sig')"),
        ("print(json.dumps(answer), flush=True)", "print(json.dumps(answer), end='\\r\\n', flush=True)"),
    ];
    expect_file!["check/faults_while_playing.txt"].assert_eq(&findings(&replacements));
}

#[test]
fn keys_that_come_later_and_heartbeats() {
    let replacements = [
        (
            "    state = message",
            "    assert not message.keys() - {'ping', 'set_agent_id', 'config', 'world_state', 'stop', 'actors', 'bases', 'foods', 'dead_entities', 'epoch', 'agent_ids', 'remaining_overage_ms'}\n    state = message",
        ),
        ("actions=act(state), **pong", "actions=act(state)"),
        ("elif state:", "elif state and not pong:"),
    ];
    expect![[r#"
        "    assert not message.keys() - {'ping', 'set_agent_id', 'config', 'world_state', 'stop', 'actors', 'bases', 'foods', 'dead_entities', 'epoch', 'agent_ids', 'remaining_overage_ms'}\n    state = message" => Wrong: fails when a message has a key that it doesn't know: it exited with code 1 # AssertionError
        "actions=act(state)" => Advice: doesn't answer a `ping` that comes with a state <- {"agent_id": "7641a2cd-dc5f-4740-a09b-2b9b543ef7fb", "actions": [{"action": "move", "actor_id": "4ocIv9", "target": [9, 9]}]}
        "elif state and not pong:" => Advice: answers a `ping` that comes with a state, but not the state in the same line <- {"pong": "pong"}
    "#]].assert_eq(&findings(&replacements));
}

#[test]
fn ends() {
    let replacements = [
        ("        break\n", "        time.sleep(9)\n"),
        ("        break\n", "        raise SystemExit(2)\n"),
        ("me = None\n", "me = None\nif not os.fork():\n    time.sleep(9)\n"),
        ("    state = message", "    print('x' * 100_000, file=sys.stderr)\n    state = message"),
    ];
    expect![[r#"
        "        time.sleep(9)\n" => Advice: doesn't exit within 500 ms after `stop`, and is killed
        "        raise SystemExit(2)\n" => Advice: exited with code 2 after `stop`
        "me = None\nif not os.fork():\n    time.sleep(9)\n" => Advice: leaves 1 process behind when it exits
        "    print('x' * 100_000, file=sys.stderr)\n    state = message" => Advice: wrote 3300033 bytes to stderr in 30 steps
    "#]]
    .assert_eq(&findings(&replacements));
}

#[test]
fn agents_that_read_the_top_level_are_told_of_the_dialect() {
    let game = arena_games::game("food_catcher").unwrap();
    let checked = checked(&[(r#"message.get("world_state")"#, r#"message if "epoch" in message else None"#)], &[game]);
    assert!(checked.is_fine, "{checked:#?}");
    let is_slow = |finding: &&Finding| BESIDE_THE_POINT[1..].iter().any(|known| finding.what.starts_with(known));
    let findings = checked.findings.iter().filter(|finding| !is_slow(finding));
    let advice: Vec<&str> = findings.map(|finding| finding.advice.as_str()).collect();
    assert_eq!(advice, [r#"{"dialect": "flat"} in its manifest.json halves its messages"#]);
}

#[test]
fn a_manifest_that_says_another_place_is_wrong() {
    let game = arena_games::game("food_catcher").unwrap();
    let kit = agent::Agent::python(CONFINED[0], GOOD);
    let mut agent = Agent::find(kit.spec.program.to_str().unwrap(), "/usr/bin:/bin").unwrap();
    agent.dialect = Dialect::Flat;
    let checked = checked_in(&agent, &kit, &[game]);
    let wrong: Vec<&str> = (checked.findings.iter())
        .filter(|finding| finding.severity == Severity::Wrong)
        .map(|finding| finding.what.as_str())
        .collect();
    expect![[r#"
        doesn't answer a state: no answer within 2200 ms, and the step limit is 200 ms
        reads the state under `world_state`, but its manifest asks for it at the top level"#]]
    .assert_eq(&wrong.join("\n"));
}

#[test]
fn slow_agents_are_told_of_the_limit() {
    let game = arena_games::game("food_catcher").unwrap();
    let checked = checked(&[("def act(state):\n", "def act(state):\n    time.sleep(0.12)\n")], &[game]);
    // On a busy machine the agent may be too slow.
    let slow = ["is close to the limit", "takes too long", "is too slow"];
    let is_told = |what: &String| slow.iter().any(|slow| what.starts_with(slow));
    assert!(checked.findings.iter().any(|finding| is_told(&finding.what)), "{checked:#?}");
}

#[test]
fn an_agent_that_cannot_start_is_told_why() {
    let kit = agent::Agent::with_text(CONFINED[0], "#!/nowhere/python\n");
    let agent = Agent::find(kit.spec.program.to_str().unwrap(), "/usr/bin:/bin").unwrap();
    let checked = checked_in(&agent, &kit, &[arena_games::game("snake").unwrap()]);
    assert_eq!(checked.findings.len(), 1, "{checked:#?}");
    assert!(checked.findings[0].what.contains("needs the interpreter /nowhere/python"), "{checked:#?}");
    assert!(!checked.is_fine);
}
