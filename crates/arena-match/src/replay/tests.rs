//! Replays from end to end: they are written, read, verified and exported, and every change in one is
//! detected.

use arena_model::{Disqualified, Match, Seat as SeatNumber, Seed, Setup, TimeLimits, UpdateMode, Verdict, agent_ids};
use arena_record::RecordKey;
use expect_test::{Expect, expect, expect_file};
use serde_json::{Map, Value, json};

use super::{
    EpochRecord, Header, Recorder, Replay, ReplayLine, ResultPart, SeatRecord, chain, export_pgn, export_reference,
    index, replay_hash, seal_line, verified_result, verify,
};
use crate::play::states;

const LIMITS: TimeLimits = TimeLimits { step_ms: 100, bank_ms: 1000 };

/// Returns a replay of a game in which the agents answer with `reply`, given the epoch, the seat, and the
/// seat's state. After `out_at` epochs the agent on seat 0 is disqualified.
fn record(
    game: &str,
    options: Value,
    seed: u64,
    out_at: u64,
    reply: impl Fn(u64, usize, &Value) -> Option<Value>,
) -> String {
    let Value::Object(options) = options else { panic!("options are an object") };
    let seed = Seed::from_number(seed);
    let ids = agent_ids(&seed, 2);
    let setup = Setup { seed: seed.clone(), agents: ids.clone() };
    let mut play = Match::new(arena_games::game(game).unwrap().start(&options, setup).unwrap(), ids.clone());
    let config = play.config(LIMITS);
    let (game_type, mut out) = (play.game().game_type(), Vec::new());
    let mut recorder = Recorder::new(&mut out);
    let names = ["ada", "bob"];
    let agents = ids
        .iter()
        .zip(names)
        .map(|(id, name)| SeatRecord { agent_id: id, name, version: None, time_control: None })
        .collect();
    recorder.header(&Header::new(game_type, seed.reveal(), &options, &config, agents)).unwrap();
    let see = |play: &Match, is_asked: &dyn Fn(SeatNumber) -> bool| {
        [SeatNumber(0), SeatNumber(1)].map(|seat| {
            let mut state = Vec::new();
            if is_asked(seat) {
                play.write_state(seat, &mut state);
            }
            state
        })
    };
    while play.is_on() {
        let epoch = play.epochs() + 1;
        let seen = see(&play, &|seat| play.is_asked(seat));
        let was_out = play.out().to_vec();
        if epoch == out_at {
            play.disqualify(Disqualified::new(0, Verdict::Timeout, "too late"));
        }
        let replies = [0, 1].map(|seat| {
            let state = serde_json::from_slice(&[b"{", &seen[seat][..], b"}"].concat()).unwrap();
            let is_heard = !seen[seat].is_empty() && play.is_in(SeatNumber(seat));
            if is_heard { reply(epoch, seat, &state).map(|actions| actions.to_string()) } else { None }
        });
        let mut taken = Vec::new();
        let replies = replies.each_ref().map(Option::as_deref);
        let is_played = play.play(|game, events| game.play(&replies, &mut taken, events));
        let is_new = |out: &&Disqualified| was_out[out.seat].is_none();
        let disqualified: Vec<Disqualified> = play.out().iter().flatten().filter(is_new).cloned().collect();
        recorder
            .epoch(&EpochRecord {
                epoch,
                states: states(game_type, &seen),
                banks_ms: &[1000, 1000],
                disqualified: &disqualified,
                taken: is_played.then_some(&taken[..]),
                rejected: play.events().rejections(),
                faults: &[],
                infos: &[],
                used_ms: &[],
            })
            .unwrap();
    }
    let seen = see(&play, &|_| true);
    recorder.result(&ResultPart::of(&play.result(seed)), states(game_type, &seen)).unwrap();
    String::from_utf8(out).unwrap()
}

fn snakes() -> String {
    record("snake", json!({"n_epochs": 8}), 7, 0, |epoch, seat, _| {
        // The second snake dies at once, and the first eats nothing, so the match continues to its last
        // epoch.
        let turns = [["UP", "RIGHT", "DOWN", "LEFT"], ["LEFT", "DOWN", "RIGHT", "UP"]][seat];
        Some(json!([{"action": "move", "move": turns[(epoch as usize / 2) % 4]}]))
    })
}

fn chess(options: Value, moves: &[&str]) -> String {
    record("chess", options, 7, 0, |epoch, _, _| {
        moves.get(epoch as usize - 1).map(|uci| json!([{"action": "move", "move": uci}]))
    })
}

/// Returns actions that move each actor of a player to the right, and one impossible action.
fn forager(_: u64, _: usize, state: &Value) -> Option<Value> {
    let ids = state["agent_ids"].as_array().unwrap();
    let moves = state["actors"].as_array().unwrap().iter().map(|actor| {
        let to = [actor["position"][0].as_f64().unwrap() + 1.0, actor["position"][1].as_f64().unwrap()];
        json!({"action": "move", "actor_id": actor["id"], "target": to})
    });
    Some(moves.chain([json!({"action": "spawn", "base_id": ids[0]})]).collect())
}

#[track_caller]
fn found(replay: &str) -> String {
    match verify(replay.as_bytes()) {
        Ok(verified) => format!("{verified:?}"),
        Err(error) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{source}")
        }
    }
}

/// Returns a replay with correct hashes of lines, whatever lines it has. Replays of format 1 have no hashes.
fn rechained(replay: &str) -> String {
    let mut lines = replay.lines();
    let mut chained = lines.next().unwrap_or_default().to_owned() + "\n";
    for line in lines {
        let rest = chain::split(line).map_or_else(|| line.strip_prefix('{').unwrap(), |(_, rest)| rest);
        let link = chain::link(replay_hash(chained.as_bytes()));
        chained += &format!("{link}{rest}\n");
    }
    chained
}

/// Returns the replay as the program before format 2 wrote it.
fn first_format(replay: &str) -> String {
    let lines = replay.lines().map(|line| match chain::split(line) {
        Some((_, rest)) => format!("{{{}\n", without_causes(rest)),
        None => line.replacen("\"arena_replay\":2", "\"arena_replay\":1", 1) + "\n",
    });
    lines.collect()
}

fn without_causes(line: &str) -> String {
    let Some((before, after)) = line.split_once(",\"causes\":[") else { return line.to_owned() };
    before.to_owned() + after.split_once(']').unwrap().1
}

/// Returns the replay with one line changed; the header is line 1.
fn with_line(replay: &str, line: usize, change: impl Fn(&str) -> String) -> String {
    let mut number = 0;
    let changed = |text: &str| {
        number += 1;
        if number == line { change(text) } else { text.to_owned() + "\n" }
    };
    replay.lines().map(changed).collect()
}

/// Returns the errors of replays in which a text of one line is replaced by another, each after the two texts.
#[track_caller]
fn changed(replay: &str, changes: &[(usize, &str, &str)]) -> String {
    let mut transcript = String::new();
    for &(line, from, to) in changes {
        let changed = with_line(replay, line, |text| text.replacen(from, to, 1) + "\n");
        assert_ne!(changed, replay, "line {line} has no {from}: {:?}", replay.lines().nth(line - 1));
        // A forger would compute the hashes again.
        transcript += &format!("{from} => {to}: {}\n", found(&rechained(&changed)));
    }
    transcript
}

#[test]
fn what_was_written_is_read_and_verified_in_all_games() {
    let mates = ["f2f3", "e7e5", "g2g4", "d8h4"];
    let actual = [
        snakes(),
        chess(json!({}), &mates),
        record("food_catcher", json!({"n_epochs": 5}), 1, 0, forager),
        record("cherry_picker", json!({"n_epochs": 5}), 1, 0, forager),
        // In the next replay the match disqualifies an agent. In the one after it the game's rules do.
        record("cherry_picker", json!({"n_epochs": 5}), 1, 3, forager),
        chess(json!({}), &["e2e5"]),
    ];
    let actual: Vec<String> = actual.iter().map(|replay| found(replay)).collect();
    expect![[r#"
        Verified { game: "snake", epochs: 8, states: 9, has_same_texts: true, is_chained: true, sealed_by: None }
        Verified { game: "chess", epochs: 4, states: 5, has_same_texts: true, is_chained: true, sealed_by: None }
        Verified { game: "food_catcher", epochs: 5, states: 6, has_same_texts: true, is_chained: true, sealed_by: None }
        Verified { game: "cherry_picker", epochs: 5, states: 6, has_same_texts: true, is_chained: true, sealed_by: None }
        Verified { game: "cherry_picker", epochs: 5, states: 6, has_same_texts: true, is_chained: true, sealed_by: None }
        Verified { game: "chess", epochs: 1, states: 2, has_same_texts: true, is_chained: true, sealed_by: None }"#]]
    .assert_eq(&actual.join("\n"));
}

#[test]
fn equal_matches_give_equal_bytes_and_other_seeds_others() {
    assert_eq!(snakes(), snakes());
    let of = |seed| record("food_catcher", json!({"n_epochs": 3}), seed, 0, forager);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn reading_gives_the_lines_and_then_nothing() {
    let text = snakes();
    let mut replay = Replay::open(text.as_bytes()).unwrap();
    assert_eq!((replay.header.game.as_str(), replay.header.update_mode), ("snake", UpdateMode::Simultaneous));
    for number in 1..=8 {
        let Ok(Some(ReplayLine::Epoch(epoch))) = replay.next_line() else { panic!("epoch {number}") };
        assert_eq!((epoch.epoch, epoch.remaining_overage_ms), (number, vec![1000, 1000]));
        assert_eq!(Some(replay.text()), text.lines().nth(number as usize));
    }
    assert!(matches!(replay.next_line(), Ok(Some(ReplayLine::Result(_)))));
    assert!(matches!(replay.next_line(), Ok(None)));
    assert!(matches!(replay.next_line(), Ok(None)));
}

#[test]
fn changed_states_are_found() {
    let changes = [
        (5, "\"alive\":true", "\"alive\":false"),
        (5, "\"foods\":", "\"food\":"),
        (5, "\"width\":10", "\"width\": 10"),
        (10, "\"alive\":true", "\"alive\":null"),
    ];
    expect![[r#"
        "alive":true => "alive":false: line 5: the state differs: snakes.848cf120-ea98-44fa-a299-931255ca1761.alive is false, but the rules give true
        "foods": => "food":: line 5: the state differs: foods is missing; food is unexpected
        "width":10 => "width": 10: line 5: the state differs: the values are equal, but their JSON text differs
        "alive":true => "alive":null: line 10: the state differs: snakes.848cf120-ea98-44fa-a299-931255ca1761.alive is null, but the rules give true
    "#]].assert_eq(&changed(&snakes(), &changes));
}

#[test]
fn changed_worlds_are_found() {
    let replay = record("cherry_picker", json!({"n_epochs": 3}), 1, 0, forager);
    let changes = [(3, "\"max_health\":50.0", "\"max_health\":51.0"), (3, "\"worlds\":[", "\"worlds\":[{},")];
    expect![[r#"
        "max_health":50.0 => "max_health":51.0: line 3: the state differs: worlds[0].actors[0].max_health is 51.0, but the rules give 50.0
        "worlds":[ => "worlds":[{},: line 3: the state differs: worlds is [{},{"actors":[{"food":0.0,"health":50.0,"id":"Pn2H9r","max_…, but the rules give [{"actors":[{"food":0.0,"health":50.0,"id":"Pn2H9r","max_hea…
    "#]].assert_eq(&changed(&replay, &changes));
}

#[test]
fn changed_actions_are_found() {
    let changes = [
        (4, "\"move\":\"RIGHT\"", "\"move\":\"DOWN\""),
        (4, "\"move\":\"RIGHT\"", "\"move\":\"AWAY\""),
        (4, "\"actions\":[", "\"actions\":[[],"),
        (4, ",\"actions\":", ",\"deeds\":"),
    ];
    expect![[r#"
        "move":"RIGHT" => "move":"DOWN": line 5: the state differs: grid.grid_string[6] is "   @  SC  ", but the rules give "   @  S   "; grid.grid_string[7] is "          ", but the rules give "      C   "; snakes.848cf120-ea98-44fa-a299-931255ca1761.head_position[0] is 7, but the rules give 6; and 3 more
        "move":"RIGHT" => "move":"AWAY": line 4: the rules accept only these of the actions: [[],null]
        "actions":[ => "actions":[[],: line 4: the rules accept only these of the actions: [[],[]]
        ,"actions": => ,"deeds":: line 4: the actions are missing
    "#]].assert_eq(&changed(&snakes(), &changes));
}

#[test]
fn changed_results_are_found() {
    let replay = snakes();
    let line = replay.lines().count();
    let changes = [
        (line, "\"scores\":[", "\"scores\":[9"),
        (line, "\"epochs\":8", "\"epochs\":7"),
        (line, "\"ranks\":[1", "\"ranks\":[2"),
        (line, "GAME_ENDED", "TAINTED"),
    ];
    expect![[r#"
        "scores":[ => "scores":[9: line 10: the result differs: scores[0] is 90.0, but the rules give 0.0
        "epochs":8 => "epochs":7: line 10: the result differs: epochs is 7, but the rules give 8
        "ranks":[1 => "ranks":[2: line 10: the result differs: ranks[0] is 2, but the rules give 1
        GAME_ENDED => TAINTED: line 10: the result differs: outcome.termination is "TAINTED", but the rules give "GAME_ENDED"
    "#]].assert_eq(&changed(&replay, &changes));
}

#[test]
fn changed_headers_are_found() {
    let replay = snakes();
    let changes = [
        (1, "07\"", "08\""),
        (1, "07\"", "0x\""),
        (1, "\"options\":{\"n_epochs\":8}", "\"options\":{\"n_epochs\":9}"),
        (1, "\"grid_width\":10", "\"grid_width\":11"),
        (1, "\"config\":{", "\"config\":{\"gravity\":9.81,"),
        (1, "\"step_time_limit\":100", "\"step_time_limit\":\"100\""),
        (1, ",\"update_mode\":\"SIMULTANEOUS\"}", "}"),
        (1, "\"game\":\"snake\"", "\"game\":\"ludo\""),
        (1, "\"SIMULTANEOUS\"", "\"ISOLATED\""),
        (1, "\"arena_replay\":2", "\"arena_replay\":3"),
    ];
    expect_file!["tests/changed_headers_are_found.txt"].assert_eq(&changed(&replay, &changes));
    let ids = agent_ids(&Seed::from_number(7), 2);
    let others = agent_ids(&Seed::from_number(8), 2);
    let renamed = replay.replace(ids[0].as_str(), others[0].as_str()).replace(ids[1].as_str(), "ben");
    let expected = format!("line 1: the agent on seat 0 is {}, but the seed gives {}", others[0], ids[0]);
    assert_eq!(found(&renamed), expected);
    expect!["line 1: two agents have the id ann"]
        .assert_eq(&found(&replay.replace(ids[0].as_str(), "ann").replace(ids[1].as_str(), "ann")));
}

#[test]
fn added_disqualifications_are_found() {
    let out = r#""remaining_overage_ms":[1000,1000],"disqualified":[{"seat":1,"verdict":"TIMEOUT","detail":"x"}]"#;
    let transcript = changed(&snakes(), &[(4, "\"remaining_overage_ms\":[1000,1000]", out)])
        + &changed(&chess(json!({}), &["e2e5"]), &[(2, "ILLEGAL_MOVE", "TIMEOUT")]);
    expect![[r#"
        "remaining_overage_ms":[1000,1000] => "remaining_overage_ms":[1000,1000],"disqualified":[{"seat":1,"verdict":"TIMEOUT","detail":"x"}]: line 4: there are actions, but by the rules the match was already over
        ILLEGAL_MOVE => TIMEOUT: line 2: there are actions, but by the rules the match was already over
    "#]].assert_eq(&transcript);
}

#[test]
fn lines_that_are_missing_swapped_or_too_many_are_found() {
    let replay = snakes();
    let lines: Vec<&str> = replay.lines().collect();
    let check = |lines: &[&str], expected: Expect| expected.assert_eq(&found(&(lines.join("\n") + "\n")));
    let broken = "the chain is broken: `previous` isn't the hash of line";
    let broken = |line: usize| format!("line {line}: {broken} {}, so one of the two lines was changed", line - 1);
    // The chain shows each change, and the rules do so if the chain was made again.
    let check_both = |lines: &[&str], line: usize, expected: Expect| {
        assert_eq!(found(&(lines.join("\n") + "\n")), broken(line));
        expected.assert_eq(&found(&rechained(&lines.join("\n"))));
    };
    check_both(&[&lines[..4], &lines[5..]].concat(), 5, expect!["line 5: epoch 5 follows epoch 3"]);
    check_both(
        &[&lines[..4], &[lines[5], lines[4]], &lines[6..]].concat(),
        5,
        expect!["line 5: epoch 5 follows epoch 3"],
    );
    check_both(&[&lines[..5], &lines[4..]].concat(), 6, expect!["line 6: epoch 4 follows epoch 4"]);
    check_both(&[&lines[..8], &lines[9..]].concat(), 9, expect!["line 9: the match isn't over yet"]);
    check(&[&lines[..], &[lines[8]]].concat(), expect!["line 11: there are more lines after the result"]);
    check(&[&lines[..], &lines[9..]].concat(), expect!["line 11: there are more lines after the result"]);
    check(&[&lines[..], &[""]].concat(), expect!["line 11: there are more lines after the result"]);
    check(&lines[..4], expect!["the replay breaks off after epoch 3, without a result"]);
    check(&lines[..1], expect!["the replay breaks off after epoch 0, without a result"]);
    check(
        &[&lines[..4], &[""], &lines[4..]].concat(),
        expect!["line 5: the line doesn't begin with `previous`, the hash of the line before"],
    );
}

#[test]
fn a_change_that_the_rules_allow_is_found_in_the_next_line() {
    let replay = snakes();
    for (from, to) in [("[1000,1000]", "[1000,999]"), ("\"actions\"", "\"faults\":[],\"actions\"")] {
        let changed = with_line(&replay, 4, |text| text.replacen(from, to, 1) + "\n");
        expect![
            "line 5: the chain is broken: `previous` isn't the hash of line 4, so one of the two lines was changed"
        ]
        .assert_eq(&found(&changed));
        assert!(found(&rechained(&changed)).starts_with("Verified"));
    }
    let renamed = with_line(&replay, 1, |text| text.replacen("\"ada\"", "\"eve\"", 1) + "\n");
    expect!["line 2: the chain is broken: `previous` isn't the hash of line 1, so one of the two lines was changed"]
        .assert_eq(&found(&renamed));
}

/// Checks that each change of one byte is found, from this offset on. Returns the number of changes.
#[track_caller]
fn check_each_byte(replay: &str, from: usize) -> usize {
    let is_fine = |bytes: &[u8]| verify(bytes).is_ok();
    let mut bytes = replay.as_bytes().to_vec();
    let mut changes = 0;
    for at in from..bytes.len() {
        let was = bytes[at];
        // A wrong bit, a digit, a letter, a space and a line break.
        for to in [was ^ 1, was ^ 0x20, b'0', b'e', b' ', b'\n'].into_iter().filter(|to| *to != was) {
            bytes[at] = to;
            assert!(!is_fine(&bytes), "byte {at}: {} may become {}", char::from(was), char::from(to));
            changes += 1;
        }
        bytes[at] = was;
    }
    assert!(is_fine(&bytes));
    changes
}

#[test]
fn each_changed_byte_is_found() {
    let short = record("snake", json!({"n_epochs": 2}), 7, 0, |_, _, _| Some(json!([])));
    let chess = chess(json!({}), &["e2e5"]);
    let key = RecordKey::from_random([7; 32]);
    for replay in [short, chess] {
        let sealed = replay.clone() + &seal_line(replay_hash(replay.as_bytes()), &key);
        assert!(check_each_byte(&sealed, 0) > 5 * sealed.len());
        // Without a seal, only the rules determine the last line.
        let last_line = replay.trim_end().rfind('\n').unwrap();
        check_each_byte(&replay, last_line);
    }
}

#[test]
fn seals_are_checked() {
    let (replay, key) = (snakes(), RecordKey::from_random([7; 32]));
    let seal = seal_line(replay_hash(replay.as_bytes()), &key);
    let sealed = replay.clone() + &seal;
    assert_eq!(verify(sealed.as_bytes()).unwrap().sealed_by, Some(key.public_key()));
    // Other readers accept the seal, too.
    let bytes = index(sealed.as_bytes(), &mut Vec::new()).unwrap().bytes;
    assert_eq!(usize::try_from(bytes).unwrap(), replay.len());
    assert_eq!(export_reference(sealed.as_bytes(), &mut Vec::new()).unwrap(), 8);
    let other = record("snake", json!({"n_epochs": 2}), 8, 0, |_, _, _| Some(json!([])));
    let of_another = found(&(other + &seal));
    assert!(of_another.ends_with("the seal is of another replay, or the result was changed"), "{of_another}");
    expect!["line 12: there are more lines after the result"].assert_eq(&found(&(sealed.clone() + &seal)));
    expect!["line 11: the seal is incomplete"].assert_eq(&found(sealed.trim_end()));
}

#[test]
fn replays_of_the_first_format_are_read_and_verified() {
    let replays = [
        snakes(),
        chess(json!({}), &["e2e5"]),
        record("cherry_picker", json!({"n_epochs": 5}), 1, 3, forager),
        record("psi", json!({}), 1, 0, |_, _, _| None),
    ];
    for replay in replays {
        let old = first_format(&replay);
        assert!(!old.contains("previous") && !old.contains("causes"), "{old}");
        let (before, now) = (verify(old.as_bytes()).unwrap(), verify(replay.as_bytes()).unwrap());
        assert_eq!((before.is_chained, before.epochs, before.states), (false, now.epochs, now.states));
        // Workers with different formats agree on what was played.
        let played = |replay: &str| verified_result(replay.as_bytes()).unwrap().played;
        assert_eq!(played(&old), played(&replay));
        let frames = |replay: &str| index(replay.as_bytes(), &mut Vec::new()).unwrap().frames;
        assert_eq!(frames(&old), frames(&replay));
        // A new replay can't pass for an old one, with which changes would be easier.
        let relabeled = replay.replacen("\"arena_replay\":2", "\"arena_replay\":1", 1);
        expect!["line 2: a replay of format 1 has no `previous`"].assert_eq(&found(&relabeled));
    }
}

#[test]
fn the_result_has_a_cause_for_each_seat() {
    let causes = |replay: &str| {
        let result = replay.lines().last().unwrap();
        let result: Value = serde_json::from_str(result).unwrap();
        result["result"]["causes"].to_string()
    };
    assert_eq!(causes(&snakes()), r#"["normal","normal"]"#);
    let late = record("cherry_picker", json!({"n_epochs": 5}), 1, 3, forager);
    assert_eq!(causes(&late), r#"["forfeited","normal"]"#);
    let illegal = causes(&chess(json!({}), &["e2e5"]));
    assert!([r#"["invalid","normal"]"#, r#"["normal","invalid"]"#].contains(&&*illegal), "{illegal}");
    let changed = late.replacen("\"forfeited\"", "\"normal\"", 1);
    expect![[r#"line 7: the result differs: causes[0] is "normal", but the rules give "forfeited""#]]
        .assert_eq(&found(&changed));
}

/// Returns the replay with the numbers of all epochs after `line` changed by `by`, also in their states.
fn renumbered(replay: &str, line: usize, by: i64) -> String {
    let mut lines: Vec<String> = replay.lines().map(str::to_owned).collect();
    for text in &mut lines[line..] {
        for key in ["\"epoch\":", "\"epochs\":"] {
            let parts: Vec<&str> = text.split(key).collect();
            let moved = parts[1..].iter().map(|part| {
                let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap();
                format!("{key}{}{}", part[..digits].parse::<i64>().unwrap() + by, &part[digits..])
            });
            *text = parts[0].to_owned() + &moved.collect::<String>();
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn epochs_beyond_the_end_are_found() {
    let replay = snakes();
    // A second copy of the last epoch, with the state that would have been sent.
    let (before, result) = replay.trim_end().rsplit_once('\n').unwrap();
    let state = &result[result.find("\"world_state\"").unwrap()..result.len() - 1];
    let line = format!("{{\"epoch\":9,{state},\"remaining_overage_ms\":[1000,1000],\"actions\":[[],[]]}}");
    let longer = renumbered(&format!("{before}\n{line}\n{result}\n"), 10, 1);
    expect!["line 10: by the rules the match was over before epoch 9"].assert_eq(&found(&rechained(&longer)));
    // A changed header with which the match would have ended earlier.
    let forage = |epochs: u64| record("food_catcher", json!({"n_epochs": epochs}), 1, 0, forager);
    let shorter = with_line(&forage(6), 1, |text| text.replace("\"n_epochs\":6", "\"n_epochs\":3") + "\n");
    expect!["line 5: by the rules the match was over before epoch 4"].assert_eq(&found(&rechained(&shorter)));
}

#[test]
fn epochs_without_actions_are_found() {
    let replay = snakes();
    let lines: Vec<&str> = replay.lines().collect();
    let empty = &lines[1][..lines[1].find(",\"actions\"").unwrap()];
    let with_empty = [&lines[..1], &[&*format!("{empty}}}")], &lines[1..]].concat().join("\n") + "\n";
    expect!["line 2: the actions are missing"].assert_eq(&found(&rechained(&renumbered(&with_empty, 2, 1))));
}

#[test]
fn other_lines_before_the_first_epoch_are_found() {
    let replay = snakes();
    let lines: Vec<&str> = replay.lines().collect();
    let with = |at: usize, added: &[&str]| found(&rechained(&[&lines[..at], added, &lines[at..]].concat().join("\n")));
    let handshake = r#"{"epoch":0,"remaining_overage_ms":[],"faults":[{"seat":0,"what":"late"}]}"#;
    expect![[
        r#"Verified { game: "snake", epochs: 8, states: 9, has_same_texts: true, is_chained: true, sealed_by: None }"#
    ]]
    .assert_eq(&with(1, &[handshake]));
    expect!["line 3: epoch 0 follows epoch 0"].assert_eq(&with(1, &[handshake, handshake]));
    expect!["line 3: epoch 0 follows epoch 1"].assert_eq(&with(2, &[handshake]));
    let played = r#"{"epoch":0,"actions":[[],[]]}"#;
    expect!["line 2: epoch 0 contains more than the handshake"].assert_eq(&with(1, &[played]));
    let forfeited = r#"{"epoch":0,"disqualified":[{"seat":0,"verdict":"ILLEGAL_MOVE","detail":"x"}]}"#;
    expect!["line 2: epoch 0 contains more than the handshake"].assert_eq(&with(1, &[forfeited]));
}

#[test]
fn other_reasons_of_a_forfeit_are_found() {
    let silent = chess(json!({}), &[]);
    let transcript = changed(&chess(json!({}), &["e2e5"]), &[(2, "\"detail\":\"\\\"e2e5", "\"detail\":\"\\\"e2e6")])
        + &changed(&silent, &[(2, "gave no move", "was rude")])
        + &found(&silent);
    expect![[r#"
        "detail":"\"e2e5 => "detail":"\"e2e6: line 2: seat 0 forfeits for another reason: "\"e2e6\" is no legal move in rnbqkbnr/pppppppp/8/8/8/8/PPPP…, but the rules give "\"e2e5\" is no legal move in rnbqkbnr/pppppppp/8/8/8/8/PPPP…
        gave no move => was rude: line 2: seat 0 forfeits for another reason: "was rude", but the rules give "gave no move"
        Verified { game: "chess", epochs: 1, states: 2, has_same_texts: true, is_chained: true, sealed_by: None }"#]].assert_eq(&transcript);
    // The accepted actions don't include the rejected action, although it is the reason for the forfeit.
    let reply = |of: Value| record("chess", json!({}), 7, 0, move |_, _, _| Some(of.clone()));
    let claims = vec![json!({"action": "claim_draw"}); 20];
    let wrong = json!([{"action": "claim_draw"}, {"action": "fly"}]);
    let actual = [reply(wrong), reply(json!(claims)), reply(json!(7)), reply(json!([]))].map(|replay| found(&replay));
    assert_eq!(
        actual,
        [r#"Verified { game: "chess", epochs: 1, states: 2, has_same_texts: true, is_chained: true, sealed_by: None }"#;
            4]
    );
}

#[test]
fn half_a_line_is_told_from_a_wrong_one() {
    let replay = snakes();
    expect!["the replay breaks off after epoch 4, without a result"].assert_eq(&found(&replay[..replay.len() / 2]));
    expect!["line 4: EOF while parsing a list, at column 411"]
        .assert_eq(&found(&with_line(&replay, 4, |text| text[..text.len() / 2].to_owned() + "\n")));
    // The replay is also incomplete if only the end of its last line is missing.
    expect!["the replay breaks off after epoch 8, without a result"].assert_eq(&found(&replay[..replay.len() - 1]));
}

#[test]
fn what_is_no_replay_is_told_so() {
    expect!["not an arena replay: the file is empty"].assert_eq(&found(""));
    expect!["not an arena replay: its first line lacks `arena_replay`"].assert_eq(&found("hello\n"));
    expect!["not an arena replay: its first line lacks `arena_replay`"].assert_eq(&found("{\"epoch\":1}\n"));
    expect!["not an arena replay: missing field `game`, at column 18"].assert_eq(&found("{\"arena_replay\":1}\n"));
    let endless = verify(std::io::BufReader::new(std::io::repeat(b' '))).unwrap_err();
    expect!["not an arena replay: the line is too long"].assert_eq(&endless.to_string());
    let error = verify(&b"\xff\xfe\n"[..]).unwrap_err();
    expect!["not an arena replay: the line isn't UTF-8 text"].assert_eq(&error.to_string());
}

#[test]
fn games_of_chess_are_exported_as_pgn() {
    let tags = r#"[Event "arena match"]
[Site "?"]
[Date "????.??.??"]
[Round "-"]
[White "ada"]
[Black "bob"]
"#;
    let pgn = |options: Value, moves: &str| {
        let mut pgn = Vec::new();
        let moves: Vec<&str> = moves.split(' ').collect();
        export_pgn(chess(options, &moves).as_bytes(), &mut pgn).unwrap();
        let pgn = String::from_utf8(pgn).unwrap();
        pgn.strip_prefix(tags).unwrap_or_else(|| panic!("other tags: {pgn}")).to_owned()
    };
    let games = [
        pgn(json!({}), "f2f3 e7e5 g2g4 d8h4"),
        // Castling, captures en passant, promotions, checks, and moves that need their file, their rank or both.
        pgn(
            json!({"fen": "r3k3/6pP/8/5P2/8/8/8/R3K2R b KQq - 0 1", "n_epochs": 8}),
            "g7g5 f5g6 e8c8 h7h8q c8b7 e1g1 d8h8 f1f7",
        ),
        pgn(json!({"fen": "8/k7/8/8/4Q2Q/8/P5K1/RN1R3Q w - - 0 1", "n_epochs": 5}), "h4e1 a7a6 b1d2 a6b6 a1c1"),
        pgn(json!({}), "e2e5"),
        // Games last up to 150 quiet plies, while other programs count to 100.
        pgn(json!({"fen": "8/1k6/8/8/8/8/6K1/R7 w - - 99 80", "n_epochs": 4}), "a1c1 b7b6 c1c2 b6b5"),
    ];
    expect_file!["tests/games_of_chess_are_exported_as_pgn.txt"].assert_eq(&games.concat());
    let error = export_pgn(snakes().as_bytes(), &mut Vec::new()).unwrap_err();
    expect!["this format doesn't support snake"].assert_eq(&error.to_string());
}

#[test]
fn the_reference_records_have_a_line_for_each_epoch() {
    let mut records = Vec::new();
    assert_eq!(export_reference(snakes().as_bytes(), &mut records).unwrap(), 8);
    let records: Vec<Map<String, Value>> =
        String::from_utf8(records).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<&str> = records[0].keys().map(String::as_str).collect();
    assert_eq!(keys, ["agent_actions", "agent_ids", "epoch", "game_config", "max_epoch", "world_state"]);
    assert_eq!((&records[0]["epoch"], &records[0]["max_epoch"]), (&json!(1), &json!(8)));
    let id = &records[0]["agent_ids"][0];
    let reply = json!({"agent_id": id, "actions": [{"action": "move", "move": "UP"}], "move": "UP"});
    assert_eq!(records[0]["agent_actions"][0], reply);
    assert_eq!(records[0]["world_state"]["grid"]["width"], json!(10));
}
