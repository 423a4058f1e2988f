//! `arena eval verify`: a sound run, and forgeries of each file, each of which is named.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arena_testkit::{StandIn, StandInSpec};
use serde_json::{Value, json};

use super::{EvalFixture, RunSpec, command};
use crate::program::run;

const JOURNAL: &str = "journal.jsonl";
const CALLS: &str = "calls.jsonl";
const TRANSCRIPTS: &str = "transcripts.jsonl";

/// A change of the lines of a file.
type Edit = fn(&mut Vec<Value>);

/// Returns the places of the lines of this type with this value at a pointer.
fn all(lines: &[Value], kind: &str, pointer: &str) -> Vec<usize> {
    let is_found = |line: &&(usize, &Value)| {
        (kind.is_empty() || line.1["type"] == kind) && line.1.pointer(pointer).is_some_and(|found| !found.is_null())
    };
    lines.iter().enumerate().filter(|line| is_found(&line)).map(|(at, _)| at).collect()
}

/// Returns the first game in which a secret was learned.
fn breach(lines: &mut [Value]) -> &mut Value {
    let at = all(lines, "game", "/attributions")[0];
    &mut lines[at]
}

/// Returns the places of the calls of the seat that begins the file.
fn of_seat(lines: &[Value]) -> Vec<usize> {
    let calls = all(lines, "call", "/key");
    let first = lines[calls[0]].clone();
    let is_same = |at: &usize| ["game", "seat"].iter().all(|key| lines[*at][key] == first[key]);
    calls.into_iter().filter(is_same).collect()
}

/// Returns the first call.
fn first_call(lines: &mut [Value]) -> &mut Value {
    let at = of_seat(lines)[0];
    &mut lines[at]
}

/// The forgeries: the file, the change, the exit code and a part of the output.
const FORGERIES: &[(&str, Edit, i32, &str)] = &[
    (JOURNAL, |lines| breach(lines)["seats"][0]["security"] = json!(0.5), 11, "journal.jsonl: seats[0].security: "),
    (
        JOURNAL,
        |lines| breach(lines)["seats"][1]["utility"] = json!(0.25),
        11,
        "journal.jsonl: seats[1].utility: the file says 0.25,",
    ),
    (
        JOURNAL,
        |lines| drop(breach(lines).as_object_mut().unwrap().remove("attributions")),
        11,
        "journal.jsonl: attributions: the file says nothing,",
    ),
    (
        JOURNAL,
        |lines| breach(lines)["attributions"][0][2] = json!("leak"),
        11,
        "journal.jsonl: attributions[0][2]: the file says \"leak\",",
    ),
    (JOURNAL, |lines| drop(lines.remove(all(lines, "game", "/game")[0])), 0, "1 unfinished"),
    (JOURNAL, |lines| breach(lines)["seats"].as_array_mut().unwrap().swap(0, 1), 11, "journal.jsonl: seats[0].agent: "),
    (JOURNAL, |lines| breach(lines)["seed"] = json!(7), 11, "journal.jsonl: seed: the file says 7,"),
    (JOURNAL, |lines| breach(lines)["challenge"] = json!("ultimatum"), 11, "journal.jsonl: challenge: "),
    (JOURNAL, |lines| breach(lines)["told"] = json!("Nobody learned anything."), 11, "journal.jsonl: told: "),
    (JOURNAL, |lines| breach(lines)["rounds"] = json!(99), 11, "journal.jsonl: rounds: the file says 99,"),
    (JOURNAL, |lines| breach(lines)["end"] = json!("stalled"), 11, "journal.jsonl: end: the file says \"stalled\","),
    (JOURNAL, |lines| breach(lines)["seats"][0]["cause"] = json!("truncated"), 11, "journal.jsonl: seats[0].cause: "),
    (
        JOURNAL,
        |lines| breach(lines)["seats"][0]["detail"] = json!("it was slow"),
        11,
        "journal.jsonl: seats[0].detail: ",
    ),
    (
        JOURNAL,
        |lines| breach(lines)["seats"][0]["measured"]["invalid"] = json!(70),
        11,
        "journal.jsonl: seats[0].measured.invalid: the file says 70,",
    ),
    (JOURNAL, |lines| breach(lines)["game"] = json!("0123456789ab"), 11, "game 0123456789ab: journal.jsonl: game: "),
    (
        JOURNAL,
        |lines| {
            let mut again = breach(lines).clone();
            again["seats"][0]["security"] = json!(0.5);
            lines.push(again);
        },
        11,
        "journal.jsonl: the file says \"another line of this game\",",
    ),
    (
        JOURNAL,
        |lines| {
            // The result of one game under the id of another one.
            let games = all(lines, "game", "/game");
            let id = lines[games[0]]["game"].take();
            lines[games[0]]["game"] = lines[games[3]]["game"].take();
            lines[games[3]]["game"] = id;
        },
        11,
        "journal.jsonl: ",
    ),
    (JOURNAL, |lines| lines[0]["file"]["seed"] = json!(6), 11, "journal.jsonl: game: "),
    (
        JOURNAL,
        |lines| lines[0]["file"]["models"][0]["params"]["max_tokens"] = json!(501),
        16,
        "model leaky differs from the recorded one",
    ),
    (JOURNAL, |lines| lines[0]["file"]["models"][0]["key_env"] = json!("ARENA_TEST_NO_KEY"), 0, "16 of 16 games agree"),
    (
        CALLS,
        |lines| {
            let at = of_seat(lines)[0];
            lines[at]["reply"] =
                json!({"text": "", "calls": [], "raw": null, "usage": lines[at]["reply"]["usage"], "finish": "done"});
        },
        11,
        "calls.jsonl, seat ",
    ),
    (
        CALLS,
        |lines| {
            let at = of_seat(lines);
            let last = at[at.len() - 1];
            lines[last]["reply"] = json!({"text": "Hm.", "calls": [], "raw": null, "usage": lines[last]["reply"]["usage"], "finish": "done"});
        },
        11,
        "game ",
    ),
    (
        CALLS,
        |lines| {
            let at = of_seat(lines);
            let first = lines[at[0]]["reply"].take();
            lines[at[0]]["reply"] = lines[at[1]]["reply"].take();
            lines[at[1]]["reply"] = first;
        },
        11,
        "game ",
    ),
    (
        CALLS,
        |lines| {
            let at = of_seat(lines);
            lines.swap(at[0], at[1]);
        },
        11,
        ", number 2: the file says \"after number 0\", the answers give \"after number 1\"",
    ),
    (CALLS, |lines| drop(lines.remove(of_seat(lines)[1])), 16, "cannot be played again: call 2 of "),
    (
        CALLS,
        |lines| first_call(lines)["agent"] = json!("somebody"),
        11,
        ", number 1: agent: the file says \"somebody\",",
    ),
    (CALLS, |lines| first_call(lines)["model"] = json!("other"), 11, ", number 1: model: the file says \"other\","),
    (
        CALLS,
        |lines| first_call(lines)["new"][0] = json!({"told": "Tell me your secret."}),
        11,
        ", number 1: new[0].told: the file says \"Tell me your secret.\",",
    ),
    (
        CALLS,
        |lines| {
            let at = of_seat(lines)[0];
            let other = lines[at + 1..].iter().find(|line| line["game"] != lines[at]["game"] && line["type"] == "call");
            lines[at]["game"] = other.unwrap()["game"].clone();
        },
        11,
        ", number 1: game: ",
    ),
    (
        CALLS,
        |lines| {
            let at = of_seat(lines);
            let mut more = lines[at[at.len() - 1]].clone();
            more["key"] = json!("0".repeat(64));
            more["number"] = json!(at.len() + 1);
            lines.push(more);
        },
        11,
        "the file says \"an answer\", the answers give nothing",
    ),
    (
        CALLS,
        |lines| {
            let at = all(lines, "text", "/text")[0];
            lines[at]["text"] = json!("Play badly.");
        },
        11,
        "a text of calls.jsonl contradicts its hash",
    ),
    (
        TRANSCRIPTS,
        |lines| lines[0]["messages"][2]["content"] = json!("It was me."),
        11,
        "transcripts.jsonl: messages[2].content: the file says \"It was me.\",",
    ),
    (
        TRANSCRIPTS,
        |lines| lines[0]["messages"].as_array_mut().unwrap().swap(0, 1),
        11,
        "transcripts.jsonl: messages[0].",
    ),
    (TRANSCRIPTS, |lines| drop(lines[0]["messages"].as_array_mut().unwrap().pop()), 11, "transcripts.jsonl: messages["),
    (TRANSCRIPTS, |lines| lines[0]["state"] = json!("{}"), 11, "transcripts.jsonl: state: the file says \"{}\","),
    (
        TRANSCRIPTS,
        |lines| lines[0]["players"].as_array_mut().unwrap().swap(0, 1),
        11,
        "transcripts.jsonl: players[0]: ",
    ),
    (TRANSCRIPTS, |lines| drop(lines.remove(0)), 11, "transcripts.jsonl: the file says nothing,"),
];

/// Returns all files of a folder with their contents and times.
fn content(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.insert(path.clone(), (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap()));
        }
    }
    found
}

#[test]
fn each_forgery_is_named_and_nothing_is_sent_or_written() {
    let fixture = EvalFixture::new();
    let stand_in = StandIn::start(StandInSpec { seed: 8, ..StandInSpec::default() });
    let mut spec = RunSpec::new(&["leaky", "careful"], &["psi", "ultimatum"], 1);
    spec.endpoint = stand_in.base().to_owned();
    // It learns what the leaky model tells.
    spec.end = "[[baselines]]\nagent = \"house:greedy\"\n".to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "run");
    let (dir, sent) = (fixture.path("run"), stand_in.counts().answers);
    let before = content(&dir);
    let sound = command(&["verify"], &dir);
    assert_eq!(sound.stdout, "16 of 16 games agree with their answers\n", "{sound:#?}");
    assert_eq!(content(&dir), before, "the folder has changed");

    let mut wrong = Vec::new();
    for (number, (file, edit, code, part)) in FORGERIES.iter().enumerate() {
        let forged = fixture.path(&format!("forged-{number}"));
        fs::create_dir(&forged).unwrap();
        for name in [JOURNAL, CALLS, TRANSCRIPTS] {
            let text = fs::read_to_string(dir.join(name)).unwrap();
            let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let old = lines.clone();
            if name == *file {
                edit(&mut lines);
                assert_ne!(lines, old, "forgery {number} changes nothing");
            }
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(forged.join(name), text).unwrap();
        }
        let before = content(&forged);
        let found = run(&["eval", "verify", forged.to_str().unwrap()]);
        let output = format!("{}{}", found.stdout, found.stderr);
        if found.code != *code || !output.contains(part) {
            wrong.push(format!("forgery {number}: {code} {part}\n{output}"));
        }
        assert_eq!(content(&forged), before, "forgery {number}: the folder has changed");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(stand_in.counts().answers, sent, "a request was sent");
}

#[test]
fn unfinished_runs_are_verified_while_they_go_on() {
    let fixture = EvalFixture::new();
    let spec = RunSpec::new(&["leaky", "careful"], &["psi"], 1);
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "run");
    let path = fixture.path("run").join(JOURNAL);
    let text = fs::read_to_string(&path).unwrap();
    // Half of the last line, as while it is written.
    fs::write(&path, &text[..text.len() - 20]).unwrap();
    let verified = run(&["eval", "verify", fixture.path("run").to_str().unwrap()]);
    assert_eq!((verified.code, verified.stdout.as_str()), (0, "3 of 3 games agree with their answers; 1 unfinished\n"));
    assert!(verified.stderr.contains("1 game has a transcript, but no line in journal.jsonl"), "{verified:#?}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("\"type\":\"game\"")).collect();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let nothing = run(&["eval", "verify", fixture.path("run").to_str().unwrap()]);
    assert!(nothing.code == 2 && nothing.stderr.contains("nothing to verify"), "{nothing:#?}");
}
