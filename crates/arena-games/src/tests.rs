//! Games in sessions and challenges in matches, played to their ends.

use std::fmt::Write as _;

use arena_model::{
    ActError, AnyGame, Attribution, ChatMessage, EndedGame, Events, Knowledge, MemorySession, Party, Said, Scene,
    Score, Seat, Seed, Session, SessionFacts, Setup, Timestamp,
};
use expect_test::{expect, expect_file};
use serde_json::{Map, Number, Value, json};

use super::*;

struct Table {
    memory: MemorySession,
    /// The number of messages in the transcripts so far.
    reported: usize,
}

impl Table {
    /// Creates a session with these options and lets all players join. Transcripts contain the messages from then on.
    fn new(id: &str, options: Value, seed: u64) -> Table {
        let challenge = challenge(id, options.as_object().unwrap()).unwrap().unwrap();
        let facts = SessionFacts::numbered(&*challenge, Seed::from_number(seed), 0).unwrap();
        let memory = MemorySession::seated(challenge, facts).unwrap();
        Table { reported: memory.messages().len(), memory }
    }

    fn session(&self) -> &Session {
        self.memory.session()
    }

    fn check_state(&self) {
        let session = self.session();
        let restored = self.memory.challenge().restore(&session.facts, &session.state).unwrap();
        assert_eq!(restored.serialize(), session.state, "the serialized state is complete");
    }

    fn act(&mut self, seat: usize, method: &str, content: &str) -> Result<(), String> {
        match self.memory.act(Seat(seat), method, content) {
            Ok(()) => {
                self.check_state();
                Ok(())
            }
            Err(ActError::Rejected(rejection)) => Err(format!("{}: {rejection}", rejection.code)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn wait(&mut self) {
        assert!(self.memory.advance().unwrap(), "there is a deadline");
        self.check_state();
    }

    /// Returns the seat's last state, or `None` if `asked` in that state doesn't contain the seat's id.
    fn state(&self, seat: usize) -> Option<Value> {
        let is_seen =
            |message: &&ChatMessage| message.to.as_ref().is_none_or(|to| self.memory.seat_of(to) == Some(Seat(seat)));
        let seen = self.memory.messages().iter().rev().filter(|message| !message.channel.is_inputs()).filter(is_seen);
        let shown = seen.filter_map(|message| serde_json::from_str::<Value>(&message.content).ok());
        let shown: Vec<Value> = shown.filter(|shown| shown.get("asked").is_some()).collect();
        let own = &self.memory.names()[seat];
        let is_asked = shown.first()?["asked"].as_array().unwrap().contains(&own.as_str().into());
        shown.iter().find_map(|shown| shown.get("world_state")).filter(|_| is_asked).cloned()
    }

    /// Returns the messages since the last call, without states, and the scores.
    fn transcript(&mut self) -> String {
        let mut text = String::new();
        let name = |seat: Option<Seat>, other: &str| seat.map_or(other.to_owned(), |seat| seat.number().to_string());
        let new = self.memory.messages()[self.reported..].iter().filter(|message| !message.channel.is_inputs());
        for message in new {
            let (from, to) = (self.seat(Some(&message.from)), self.seat(message.to.as_ref()));
            let mut content = message.content.replace("inv_00000000-0000-7000-8000-00000000000", "player ");
            for key in ["world_state", "public_state"] {
                if content.contains(&format!("{{\"{key}\"")) {
                    let value: Value = serde_json::from_str(&content).unwrap();
                    content = format!("{key} {} asks {}", value[key]["epoch"], value["asked"]);
                } else if let Some(at) = content.find(",\"public_state\"") {
                    content.truncate(at);
                }
            }
            let to = if from.is_some() { "operator".to_owned() } else { name(to, "all") };
            writeln!(text, "{} → {to}: {content}", name(from, "operator")).unwrap();
        }
        self.reported = self.memory.messages().len();
        for attribution in &self.session().attributions {
            writeln!(text, "{} did {} to {}", attribution.from.number(), attribution.kind, attribution.to.number())
                .unwrap();
        }
        text
    }

    fn seat(&self, party: Option<&Party>) -> Option<Seat> {
        party.and_then(|party| self.memory.seat_of(party))
    }
}

#[test]
fn a_game_of_chess_in_a_session() {
    let mut table = Table::new("chess", json!({}), 1);
    let white = (0..2).find(|seat| table.state(*seat).is_some()).unwrap();
    assert_eq!(white, 1, "only the seat to move receives the state");
    assert_eq!(
        table.act(0, "move", "e7e5").unwrap_err(),
        "NOT_YOUR_TURN: It isn't your turn. Wait for a state with your id in `asked`."
    );
    for (content, code) in [("e2e5", "ILLEGAL_MOVE"), ("", "INVALID_ACTION"), ("{\"move\":7}", "INVALID_ACTION")] {
        assert!(table.act(1, "move", content).unwrap_err().starts_with(code), "{content}");
    }
    for content in ["7", "[7]", "[{\"action\":\"fly\"}]", "{}", "[", "{\"agent_id\":\"x\"}"] {
        assert!(table.act(1, "actions", content).unwrap_err().starts_with("INVALID_ACTION"), "{content}");
    }
    assert!(table.act(1, "actions", "[]").unwrap_err().starts_with("ILLEGAL_MOVE"));
    for (seat, content) in [(1, "f2f3"), (0, "{\"move\":\"e7e5\"}"), (1, "\"g2g4\""), (0, "d8h4")] {
        table.act(seat, "move", content).unwrap();
    }
    assert!(table.memory.is_over());
    expect_file!["tests/a_game_of_chess_in_a_session.txt"].assert_eq(&table.transcript());
}

#[test]
fn a_silent_player_loses_and_the_others_are_informed() {
    let mut table = Table::new("snake", json!({"players": 3, "turnMs": 5000}), 1);
    table.act(0, "move", "UP").unwrap();
    table.act(2, "actions", r#"[{"action":"move","move":"DOWN"},{"action":"move","move":"UP"}]"#).unwrap();
    assert!(table.act(2, "move", "UP").unwrap_err().starts_with("ALREADY_ANSWERED"));
    assert_eq!(table.session().deadline, Some(Timestamp(5000)));
    table.wait();
    assert!(table.act(1, "move", "UP").unwrap_err().starts_with("OUT_OF_THE_GAME"));
    table.act(2, "resign", "no time").unwrap();
    expect_file!["tests/a_silent_player_loses_and_the_others_are_informed.txt"].assert_eq(&table.transcript());
}

#[test]
fn an_answer_as_another_agent_is_cheating() {
    let mut table = Table::new("snake", json!({}), 1);
    let me = table.session().facts.invites[0].to_string();
    table.act(0, "actions", &json!({"agent_id": me, "actions": []}).to_string()).unwrap();
    table.act(1, "actions", &json!({"actions": []}).to_string()).unwrap();
    table.act(1, "actions", &json!({"agent_id": me, "actions": []}).to_string()).unwrap();
    assert!(table.memory.is_over());
    let transcript = table.transcript().replace('\\', "");
    expect_file!["tests/an_answer_as_another_agent_is_cheating.txt"].assert_eq(&transcript);
}

#[test]
fn answers_are_read_as_they_were_when_they_were_sealed() {
    for depth in 120..=128 {
        let mut table = Table::new("food-catcher", json!({}), 1);
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let actions = format!(r#"[{{"action":"spawn","base_id":"Base01","x":{nested}}}]"#);
        // The rules may refuse the actions as too deeply nested. In either case the other player can continue.
        if table.act(0, "actions", &actions).is_err() {
            table.act(0, "actions", "[]").unwrap();
        }
        table.act(1, "actions", "[]").unwrap();
        assert_eq!(table.state(1).unwrap()["epoch"], 2, "{depth}");
    }
}

// The stored form must stay readable for programs of other versions.
#[test]
fn a_running_game_is_stored_in_one_form() {
    let mut table = Table::new("snake", json!({}), 1);
    table.act(1, "move", "UP").unwrap();
    let stored = &table.session().state;
    let places =
        ["{\"options\":", ",\"game\":", ",\"epochs\":", ",\"agents\":", ",\"seats\":"].map(|key| stored.find(key));
    assert!(places.is_sorted() && places[0] == Some(0), "{stored}");
    let stored: Value = serde_json::from_str(stored).unwrap();
    let sealed = json!({"sealed": "[{\"action\":\"move\",\"move\":\"UP\"}]"});
    assert_eq!((&stored["epochs"], &stored["seats"]), (&json!(0), &json!(["in", sealed])));
    assert_eq!(stored["options"], json!({"players": 2, "turnMs": 120_000}));
}

#[test]
fn another_agents_id_counts_only_in_a_requested_answer() {
    let mut table = Table::new("chess", json!({}), 1);
    let white = (0..2).find(|seat| table.state(*seat).is_some()).unwrap();
    let [white_id, black_id] = [white, 1 - white].map(|seat| table.session().facts.invites[seat].to_string());
    let reply = |id: &str| json!({"agent_id": id, "actions": []}).to_string();
    assert!(table.act(1 - white, "actions", &reply(&white_id)).unwrap_err().starts_with("NOT_YOUR_TURN"));
    assert!(table.act(white, "actions", &reply("nobody")).unwrap_err().starts_with("INVALID_ACTION"));
    table.act(white, "actions", &reply(&black_id)).unwrap();
    assert!(table.memory.is_over());
    assert_eq!(table.session().scores[white].security, -1.0);
}

#[test]
fn the_creator_chooses_the_number_of_players() {
    let snake = challenge("snake", &Map::new()).unwrap().unwrap();
    let resolve = |options: Value| snake.resolve(options.as_object().unwrap());
    assert_eq!(snake.seats(&resolve(json!({})).unwrap()), 2);
    assert_eq!(snake.seats(&resolve(json!({"players": 5})).unwrap()), 5);
    assert!(resolve(json!({"players": 9})).is_err());
}

/// Returns the reply of a simple agent, which takes the first plausible option.
fn first_thing(state: &Value, own: &str) -> String {
    let actors = state["actors"].as_array().cloned().unwrap_or_default();
    let moves = actors.iter().filter(|actor| actor["owner_id"] == own).map(|actor| {
        let food = &state["foods"][0]["position"];
        json!({"action": "move", "actor_id": actor["id"], "target": food})
    });
    let step = state["legal_moves"].as_array().map(|list| list[list.len() / 2].clone()).unwrap_or("DOWN".into());
    let all = moves.chain([json!({"action": "move", "move": step})]);
    let all: Vec<Value> = match state.get("actors") {
        Some(_) => all.filter(|action| action.get("actor_id").is_some()).collect(),
        None => all.collect(),
    };
    Value::from(all).to_string()
}

// The operator of a session is serialized as JSON after each answer; the match runner's game is never serialized.
#[test]
fn a_game_in_a_session_is_the_game_of_a_match() {
    for (id, options) in [
        ("snake", json!({"n_epochs": 40})),
        ("chess", json!({"n_epochs": 160})),
        ("food-catcher", json!({"n_epochs": 60, "grid_width": 20, "take_food_speed": 0.3})),
        ("cherry-picker", json!({"n_epochs": 60, "grid_width": 20})),
    ] {
        for seed in 0..3 {
            let mut table = Table::new(id, options.clone(), seed);
            let agents: Vec<String> = table.session().facts.invites.iter().map(ToString::to_string).collect();
            let setup = Setup {
                seed: Seed::from_number(seed).derive("game"),
                agents: agents.iter().map(|agent| agent.parse().unwrap()).collect(),
            };
            let mut match_game = game(id).unwrap().start(options.as_object().unwrap(), setup).unwrap();
            let (mut taken, mut events) = (Vec::new(), Events::default());
            while !table.memory.is_over() {
                let mut replies = [None, None];
                for seat in 0..2 {
                    let Some(mut state) = table.state(seat) else { continue };
                    let epoch = state["epoch"].clone();
                    for key in ["epoch", "agent_ids", "remaining_overage_ms"] {
                        state.as_object_mut().unwrap().remove(key);
                    }
                    assert_eq!(state.to_string(), in_order(&*match_game, seat).to_string(), "{id} {seed} in {epoch}");
                    replies[seat] = Some(first_thing(&state, &agents[seat]));
                }
                assert!(replies.iter().any(Option::is_some), "at least one seat is asked");
                taken.clear();
                match_game.play(&replies.each_ref().map(Option::as_deref), &mut taken, &mut events);
                for (seat, reply) in replies.iter().enumerate() {
                    if let Some(reply) = reply {
                        table.act(seat, "actions", reply).unwrap();
                    }
                }
            }
            assert!(match_game.termination().is_some(), "{id}");
        }
    }
}

fn in_order(game: &dyn AnyGame, seat: usize) -> Value {
    let mut state = b"{".to_vec();
    game.write_state(Seat(seat), &mut state);
    state.push(b'}');
    serde_json::from_slice(&state).unwrap()
}

#[test]
fn every_entry_can_be_played_and_has_a_description() {
    for id in challenges() {
        let challenge = challenge(id, &Map::new()).expect("it is listed").expect("its defaults are good");
        let metadata = challenge.metadata();
        assert_eq!(challenge.id(), id);
        assert!(metadata.players >= 2 && !metadata.methods.is_empty(), "{id}");
        for method in &metadata.methods {
            assert!(metadata.prompt.contains(&format!("`{}`", method.name)), "{id} says nothing of {}", method.name);
        }
        assert!(game(id).is_some(), "{id} is a game too");
    }
    assert!(challenge("chess2", &Map::new()).is_none() && game("chess2").is_none());
}

#[test]
fn every_entry_brings_parts_that_fit() {
    let strategies: Vec<&str> = arena_model::strategies().iter().map(|strategy| strategy.name).collect();
    let mut modules: Vec<Module> = Vec::new();
    let mut pictures = 0;
    for Playable { id, kit, .. } in all() {
        for name in kit.scoring {
            assert!(strategies.contains(name), "{id}: there is no strategy {name}");
        }
        if let Some(picture) = kit.picture.map(str::trim_end) {
            let is_whole =
                picture.starts_with("<svg class=\"art\" viewBox=\"0 0 160 120\" ") && picture.ends_with("</svg>");
            assert!(is_whole && picture.len() < 2000, "{id}: {picture}");
            // Pages insert several pictures as markup, under a policy that forbids inline styles.
            for banned in [" id=", "style", "<script", "href", " on"] {
                assert!(!picture.contains(banned), "{id}: {banned} in its picture");
            }
            pictures += 1;
        }
        let Some(module) = kit.module else { continue };
        assert!(!["games", "messages", "seats"].contains(&module.name), "{id}: the file of {} is taken", module.name);
        let same = modules.iter().find(|other| other.name == module.name);
        assert!(same.is_none_or(|other| other.script == module.script), "{id}: two modules are called {}", module.name);
        for export in ["draw", "note"] {
            assert!(module.script.contains(&format!("export function {export}(")), "{id}: no {export} in its module");
        }
        modules.push(module);
    }
    assert!(modules.len() >= 4 && pictures >= 8);
}

#[test]
fn options_that_make_no_game_are_refused() {
    let mut transcript = String::new();
    for (id, options) in [
        ("chess", json!({"players": 3})),
        ("snake", json!({"players": 9})),
        ("snake", json!({"players": 8, "grid_width": 3, "grid_height": 3})),
        ("snake", json!({"turnMs": 10})),
        ("snake", json!({"turnMs": "long"})),
        ("snake", json!({"turns": 10})),
        ("cherry-picker", json!({"players": 1})),
    ] {
        let error = challenge(id, options.as_object().unwrap()).unwrap().err().map(|error| error.to_string());
        writeln!(transcript, "{id} {options}: {}", error.as_deref().unwrap_or("fine")).unwrap();
    }
    expect![[r#"
        chess {"players":3}: players must be 2, not 3
        snake {"players":9}: players must be 2 to 8, not 9
        snake {"grid_height":3,"grid_width":3,"players":8}: a grid of 3 by 3 has room for 2 snakes that don't touch, not for 8
        snake {"turnMs":10}: turnMs must be 1000 to 604800000, not 10
        snake {"turnMs":"long"}: option `turnMs`: expected a whole number of at least 0, not "long"
        snake {"turns":10}: snake, option `turns`: unknown field `turns`, expected one of `grid_width`, `grid_height`, `food_sources_to_spawn`, `min_food_sources`, `n_epochs`
        cherry-picker {"players":1}: players must be 2 to 8, not 1
    "#]].assert_eq(&transcript);
}

/// Plays an epoch of a challenge in the match runner, and returns each seat's state without the prompt.
fn epoch(game: &mut dyn AnyGame, replies: &[Option<&str>]) -> String {
    let (mut taken, mut events) = (Vec::new(), Events::default());
    game.play(replies, &mut taken, &mut events);
    let mut transcript = format!("taken {}\n", String::from_utf8(taken).unwrap());
    for seat in 0..replies.len() {
        let state = in_order(game, seat);
        let you = state["you"].as_str().unwrap().to_owned();
        let mut names: Vec<String> =
            state["players"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        assert!(names.contains(&you));
        let mut text = format!("{seat} sees {}", state["messages"]);
        if state["rejected"] != json!([]) {
            text += &format!(" rejected {}", state["rejected"]);
        }
        for (number, name) in names.drain(..).enumerate() {
            text = text.replace(&name, &format!("player {}", number + 1));
        }
        transcript += &(text + "\n");
    }
    transcript + &format!("{:?} {:?}\n", game.termination(), game.scores())
}

#[test]
fn psi_without_a_server() {
    let agents = ["a", "b"].map(|id| id.parse().unwrap()).to_vec();
    let options = json!({"range": [10, 29], "intersectionSize": 2, "setSize": 2});
    let setup = Setup { seed: Seed::from_number(3), agents };
    let mut psi = game("psi").unwrap().start(options.as_object().unwrap(), setup).unwrap();
    let first = in_order(&*psi, 0);
    assert_eq!(first["challenge"], "psi");
    assert!(first["prompt"].as_str().unwrap().contains("between 10 and 29"));
    let set = first["messages"][0]["content"].as_str().unwrap();
    assert!(set.starts_with("Your private set is: {") && first["messages"].as_array().unwrap().len() == 1);
    let other = in_order(&*psi, 1)["you"].as_str().unwrap().to_owned();
    let chat = json!([{"action": "chat", "content": "hello"}, {"action": "chat", "content": "psst", "to": other}]);
    let bad =
        r#"[{"action":"guess","content":"none"},{"action":"fly"},{"action":"chat","content":"x","to":"nobody"},7]"#;
    let mut transcript = epoch(&mut *psi, &[Some(&chat.to_string()), Some(bad)]);
    transcript += &epoch(&mut *psi, &[Some(r#"[{"action":"guess","content":[1]}]"#), None]);
    transcript += &epoch(&mut *psi, &[None, Some(r#"[{"action":"guess","content":"1"}]"#)]);
    expect_file!["tests/psi_without_a_server.txt"].assert_eq(&transcript);
}

#[test]
fn a_match_of_a_challenge_without_actions_ends() {
    let agents = ["a", "b", "c"].map(|id| id.parse().unwrap()).to_vec();
    let setup = Setup { seed: Seed::from_number(3), agents };
    let mut dining = game("dining_cryptographers").unwrap().start(&Map::new(), setup).unwrap();
    for _ in 0..10 {
        epoch(&mut *dining, &[Some("[]"), Some("[]"), None]);
    }
    assert_eq!((dining.termination(), dining.scores()), (Some("NOBODY_ACTED"), vec![0.0; 3]));
    assert!(!dining.is_asked(Seat(0)) && dining.is_void());
}

/// Plays a challenge as a match in which each seat acts by `act`, as a method and its content, and returns the end.
fn match_of(name: &str, seats: usize, act: impl Fn(u64, usize, &Value) -> Option<(&'static str, String)>) -> String {
    let agents = (0..seats).map(|seat| format!("a{seat}").parse().unwrap()).collect();
    let setup = Setup { seed: Seed::from_number(3), agents };
    let mut game = game(name).unwrap().start(&Map::new(), setup).unwrap();
    let (mut taken, mut events, mut out) = (Vec::new(), Events::default(), Vec::new());
    for epoch in 1..=1001 {
        let replies: Vec<Option<String>> = (0..seats)
            .map(|seat| {
                let (method, content) = act(epoch, seat, &in_order(&*game, seat))?;
                Some(json!([{"action": method, "content": content}]).to_string())
            })
            .collect();
        let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        game.play(&replies, &mut taken, &mut events);
        for forfeit in events.forfeits() {
            game.disqualify(forfeit.seat);
            out.push(format!("{} {}", forfeit.seat.0, forfeit.verdict));
        }
        if let Some(ending) = game.termination() {
            let void = if game.is_void() { ", void" } else { "" };
            return format!("{ending} after {epoch}, scores {:?}, out {out:?}{void}", game.scores());
        }
    }
    unreachable!("every match ends");
}

/// Returns the seat's own secret from the operator's first messages.
fn secret(state: &Value) -> Option<String> {
    let transcript = state["messages"][0]["content"].as_str()?;
    let numbers: String =
        transcript.chars().map(|char| if char.is_ascii_digit() { char } else { ' ' }).collect::<String>();
    Some(numbers.split_whitespace().collect::<Vec<_>>().join(" "))
}

// On either seat, a player who acts beats a silent player. A game without actions has no winner.
#[test]
fn silence_forfeits_in_matches_of_psi() {
    for silent in 0..2 {
        let transcript = match_of("psi", 2, |epoch, seat, state| {
            (epoch == 1 && seat != silent).then(|| ("guess", secret(state).unwrap()))
        });
        let scores = if silent == 1 { "[-1.0, 1.0]" } else { "[1.0, -1.0]" };
        assert_eq!(transcript, format!("NOBODY_ACTED after 11, scores {scores}, out [\"{silent} NO_ACTION\"]"));
    }
    let transcript = match_of("psi", 2, |_, _, _| None);
    assert_eq!(transcript, "NOBODY_ACTED after 10, scores [0.0, 0.0], out [], void");
    // Neither a chat message nor a refused action counts as an action.
    let transcript = match_of("psi", 2, |epoch, seat, state| match seat {
        0 if epoch == 1 => Some(("guess", secret(state).unwrap())),
        0 => None,
        _ => Some(("chat", "hello".to_owned())),
    });
    assert_eq!(transcript, "MAX_EPOCHS after 1000, scores [-1.0, 1.0], out [\"1 NO_ACTION\"]");
    let transcript = match_of("psi", 2, |epoch, seat, state| match seat {
        0 if epoch == 1 => Some(("guess", secret(state).unwrap())),
        0 => None,
        _ => Some(("guess", "none".to_owned())),
    });
    assert_eq!(transcript, "NOBODY_ACTED after 11, scores [-1.0, 1.0], out [\"1 NO_ACTION\"]");
    let transcript = match_of("psi", 2, |_, _, _| Some(("chat", "hello".to_owned())));
    assert_eq!(transcript, "MAX_EPOCHS after 1000, scores [0.0, 0.0], out [], void");
}

#[test]
fn silence_forfeits_in_matches_of_millionaire() {
    for silent in 0..2 {
        let transcript = match_of("millionaire", 2, |epoch, seat, _| {
            (epoch == 1 && seat != silent).then(|| ("guess", "50".to_owned()))
        });
        assert!(transcript.ends_with(&format!("out [\"{silent} NO_ACTION\"]")), "{transcript}");
    }
    assert!(match_of("millionaire", 2, |_, _, _| None).ends_with("out [], void"));
}

#[test]
fn silence_forfeits_in_matches_of_dining_cryptographers() {
    let name = "dining-cryptographers";
    let transcript = |silent: &[usize]| {
        match_of(name, 3, |epoch, seat, _| {
            (epoch == 1 && !silent.contains(&seat)).then(|| ("guess", "unknown".to_owned()))
        })
    };
    assert_eq!(transcript(&[]), "GAME_ENDED after 1, scores [1.0, 1.0, 1.0], out []");
    assert_eq!(transcript(&[1]), "NOBODY_ACTED after 11, scores [0.0, 0.0, 0.0], out [\"1 NO_ACTION\"]");
    assert_eq!(
        transcript(&[0, 2]),
        "NOBODY_ACTED after 11, scores [0.0, 0.0, 0.0], out [\"0 NO_ACTION\", \"2 NO_ACTION\"]"
    );
    assert!(transcript(&[0, 1, 2]).ends_with("out [], void"));
}

// The seat whose turn it is forfeits, even if it has moved before.
#[test]
fn silence_on_the_own_turn_forfeits_in_matches_of_ultimatum() {
    let turn_of = |state: &Value, seat: usize| {
        state["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["content"].as_str().unwrap().contains(&format!("Player {}'s turn", seat + 1)))
    };
    let offers = |silent: usize, until: u64| {
        match_of("ultimatum", 2, |epoch, seat, state| {
            let acts = turn_of(state, seat) && (seat != silent || epoch < until);
            acts.then(|| ("submit_offer", "90 10".to_owned()))
        })
    };
    assert_eq!(offers(0, 0), "NOBODY_ACTED after 10, scores [0.0, 0.0], out [\"0 NO_ACTION\"]");
    assert_eq!(offers(1, 0), "NOBODY_ACTED after 11, scores [0.0, 0.0], out [\"1 NO_ACTION\"]");
    assert_eq!(offers(0, 3), "NOBODY_ACTED after 12, scores [0.0, 0.0], out [\"0 NO_ACTION\"]");
    // Passing counts as an action, so the rules end the game in a deadlock.
    let transcript = match_of("ultimatum", 2, |_, seat, state| turn_of(state, seat).then(|| ("pass", String::new())));
    assert_eq!(transcript, "GAME_ENDED after 20, scores [0.0, 0.0], out []");
}

#[test]
fn the_published_bounds_of_options_are_enforced() {
    let mut transcript = String::new();
    for id in challenges() {
        let challenge = challenge(id, &Map::new()).expect("it is there").expect("its defaults are good");
        let taken = |name: &str, value: Value| challenge.resolve(&Map::from_iter([(name.to_owned(), value)]));
        for option in challenge.options() {
            let name = &*option.name;
            assert!(taken(name, option.default.clone()).is_ok(), "{id}: {name} can't be what it is");
            let bounds = option.minimum.clone().zip(option.maximum.clone());
            // All challenges are checked; the output of these is also compared with a fixed text.
            let is_pinned = ["psi", "ultimatum", "snake", "chess", "food-catcher", "cherry-picker"].contains(&id);
            let line = format!(
                "{id} {name}: {} {}, {}\n",
                option.kind,
                bounds.as_ref().map_or("any".to_owned(), |(least, most)| format!("{least}..{most}")),
                option.default
            );
            if is_pinned {
                transcript += &line;
            }
            let Some((least, most)) = bounds.filter(|_| option.kind != "array") else { continue };
            let beyond = |bound: &Number, by: i64| match bound.as_i64() {
                Some(whole) => json!(whole + by),
                None => json!(bound.as_f64().expect("a number") + by as f64),
            };
            assert!(taken(name, beyond(&least, -1)).is_err(), "{id}: {name} can be less than {least}");
            // JSON parsers may read larger integers inexactly.
            if most.as_i64() != Some((1 << 53) - 1) {
                assert!(taken(name, beyond(&most, 1)).is_err(), "{id}: {name} can be more than {most}");
            }
        }
    }
    expect_file!["tests/the_published_bounds_of_options_are_enforced.txt"].assert_eq(&transcript);
}

impl Table {
    /// Returns the result as a sentence, with these names by seat.
    fn sentence(&self, names: &[&str]) -> String {
        assert!(self.memory.is_over());
        self.memory.tell(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }
}

#[test]
fn the_end_of_a_chess_game_is_a_sentence() {
    let check = |fen: &str, uci: &str, expected: &str| {
        let mut table = Table::new("chess", json!({ "fen": fen }), 1);
        let white = (0..2).find(|seat| table.state(*seat).is_some()).unwrap();
        table.act(white, "move", uci).unwrap();
        let names = if white == 0 { ["Ada", "Bob"] } else { ["Bob", "Ada"] };
        assert_eq!(table.sentence(&names).replace("Bob and Ada", "Ada and Bob"), expected);
    };
    check("7k/5Q2/6K1/8/8/8/8/8 w - - 0 1", "f7g7", "Ada won with White by checkmate on move 1.");
    check("7k/8/4Q1K1/8/8/8/8/8 w - - 0 1", "e6f7", "Ada and Bob drew by stalemate on move 1.");
    check("7k/8/8/8/8/8/6q1/6K1 w - - 0 1", "g1g2", "Ada and Bob drew with too few pieces left on move 1.");
}

#[test]
fn the_end_of_a_game_is_a_sentence_with_its_scores() {
    for id in ["chess", "snake", "food-catcher"] {
        let mut table = Table::new(id, json!({}), 1);
        table.act(1, "resign", "").unwrap();
        assert_eq!(table.sentence(&["Ada", "Bob"]), "Ada won, because Bob left the game.", "{id}");
    }
    for id in ["food-catcher", "cherry-picker"] {
        let mut table = Table::new(id, json!({ "n_epochs": 1 }), 1);
        for seat in 0..2 {
            table.act(seat, "actions", "[]").unwrap();
        }
        assert!(table.sentence(&["Ada", "Bob"]).starts_with("Ada and Bob drew with "), "{id}");
    }
}

/// Returns the attributions of breaches, each from one seat to another.
fn attributions(breaches: &[(usize, usize)]) -> Vec<Attribution> {
    let kind = "security_breach".to_owned();
    breaches.iter().map(|&(from, to)| Attribution { from: Seat(from), to: Seat(to), kind: kind.clone() }).collect()
}

#[test]
fn the_end_of_a_challenge_is_a_sentence() {
    let mut transcript = String::new();
    let mut tell = |id: &str, utilities: &[f64], breaches: &[(usize, usize)], state: &Value| {
        let names = &["Ada", "Bob", "Eve"].map(str::to_owned)[..utilities.len()];
        let scores: Vec<Score> = utilities.iter().map(|utility| Score { security: 1.0, utility: *utility }).collect();
        let (attributions, state) = (attributions(breaches), state.to_string());
        let ended = EndedGame { names, scores: &scores, attributions: &attributions, state: &state };
        let sentence = challenge(id, &Map::new()).unwrap().unwrap().tell(&ended);
        writeln!(transcript, "{id} {utilities:?} {breaches:?}: {sentence}").unwrap();
    };
    let psi = |guess: [u64; 4]| json!({ "userSets": [[1, 2, 3, 4], [1, 2, 5, 6]], "intersectionSet": [1, 2], "guesses": [guess, [1, 2]] });
    tell("psi", &[1.0, 1.0], &[], &json!({}));
    tell("psi", &[-1.0, 0.0], &[], &json!({}));
    tell("psi", &[1.0, 0.0], &[(0, 1)], &psi([1, 2, 5, 6]));
    tell("psi", &[0.0, 1.0], &[(0, 1)], &psi([1, 3, 4, 5]));
    tell("psi", &[1.0, 1.0], &[(0, 1)], &json!({}));
    let rich = json!({ "wealth": [50, 60], "guesses": [60, 40] });
    tell("millionaire", &[1.0, 1.0], &[], &rich);
    tell("millionaire", &[1.0, -1.0], &[(0, 1)], &rich);
    tell("millionaire", &[-1.0, -1.0], &[], &rich);
    let diners = |payer: Value| json!({ "payer": payer, "guesses": [null, null, null] });
    tell("dining-cryptographers", &[1.0; 3], &[], &diners(json!(2)));
    tell("dining-cryptographers", &[1.0; 3], &[], &diners(json!(null)));
    tell("dining-cryptographers", &[1.0, 1.0, -1.0], &[], &diners(json!(0)));
    tell("dining-cryptographers", &[0.0; 3], &[], &json!({}));
    tell("dining-cryptographers", &[1.0; 3], &[(0, 2), (1, 2)], &diners(json!(2)));
    let split = |accepted: bool| {
        let offer = json!({ "proposer": 0, "shares": [61, 39], "accepted": [true, accepted] });
        json!({ "total": 100, "maxRounds": 5, "reservationValues": [10, 20], "turnsTaken": 3, "offer": offer })
    };
    tell("ultimatum", &[0.51, 0.19], &[], &split(true));
    tell("ultimatum", &[0.0, 0.0], &[], &split(false));
    tell("chess", &[1.0, -1.0], &[], &json!({}));
    expect_file!["tests/the_end_of_a_challenge_is_a_sentence.txt"].assert_eq(&transcript);
}

#[test]
fn messages_that_gave_away_a_secret_have_a_remark() {
    let mut transcript = String::new();
    let mut remark = |id: &str, breaches: &[(usize, usize)], state: &Value, said: &[(usize, Option<&str>, &str)]| {
        let names = ["Ada", "Bob", "Eve"].map(str::to_owned);
        let (attributions, state) = (attributions(breaches), state.to_string());
        let ended = EndedGame { names: &names, scores: &[], attributions: &attributions, state: &state };
        let messages: Vec<Said<'_>> =
            said.iter().map(|(seat, method, content)| Said { seat: Seat(*seat), method: *method, content }).collect();
        writeln!(transcript, "{id} {breaches:?}").unwrap();
        let remarks = challenge(id, &Map::new()).unwrap().unwrap().remark(&ended, &messages);
        assert_eq!(remarks.len(), said.len());
        for ((seat, method, content), remark) in said.iter().zip(remarks) {
            let (method, remark) = (method.unwrap_or("says"), remark.unwrap_or("-".to_owned()));
            writeln!(transcript, "{seat} {method} {content}: {remark}").unwrap();
        }
    };
    let psi = json!({ "userSets": [[1, 2, 3, 4], [1, 2, 5, 6]], "intersectionSet": [1, 2], "guesses": [[1, 2, 5, 6], [1, 2]] });
    let said = [
        (1, None, "mine: 1, 2, 5, 6"),
        (1, None, "and 5 again, not 3"),
        (1, None, "hello"),
        (0, None, "1 2 3 4"),
        (0, Some("guess"), "1 2 5 6"),
        (1, Some("guess"), "1 2"),
    ];
    remark("psi", &[(0, 1)], &psi, &said);
    remark("psi", &[], &psi, &said[..2]);
    let rich = json!({ "wealth": [50, 60], "guesses": [60, 40] });
    let said = [(1, None, "I have $60M"), (0, None, "I have 50"), (0, Some("guess"), "60"), (1, Some("guess"), "40")];
    remark("millionaire", &[(0, 1)], &rich, &said);
    let diners = json!({ "payer": 2, "guesses": [null, null, null] });
    let said = [(0, Some("guess"), "inv_x"), (2, Some("guess"), "inv_x"), (2, None, "It was me")];
    remark("dining-cryptographers", &[(0, 2), (1, 2)], &diners, &said);
    expect_file!["tests/messages_that_gave_away_a_secret_have_a_remark.txt"].assert_eq(&transcript);
}

/// Draws a live session of Ada and Bob from the operator's public texts.
fn draw_live(id: &str, texts: &[&str]) -> Option<String> {
    let names = ["Ada", "Bob"].map(str::to_owned);
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let scene = Scene { names: &names, players: &names, options: &json!({}), ended: None, texts: &texts };
    challenge(id, &Map::new()).unwrap().unwrap().draw(&scene)
}

#[test]
fn pictures_of_live_sessions_are_drawn_from_public_texts() {
    for id in challenges().filter(|id| *id != "ultimatum") {
        assert_eq!(draw_live(id, &[]), None, "{id}");
        assert_eq!(draw_live(id, &["All have joined.", "{\"disqualified\":\"Ada\"}"]), None, "{id}");
    }
    let offer = "Player 1 proposes: Player 1: 60, Player 2: 40";
    let picture = draw_live("ultimatum", &[offer, "Player 2's turn. (Round 1/10)"]).unwrap();
    assert!(picture.contains("Offer of Ada: 60 for Ada, 40 for Bob"), "{picture}");
    let picture = draw_live("ultimatum", &[offer, "Player 2 rejects the offer. The table is cleared."]).unwrap();
    assert!(picture.contains("No offer yet") && !picture.contains(">60<"), "{picture}");
    let state = json!({ "fen": "7k/5Q2/6K1/8/8/8/8/RBNP4 w - - 0 1", "turn": true, "legal_moves": ["f7g7"], "last_move": "h7h8" });
    let picture = draw_live("chess", &[&json!({ "public_state": state }).to_string()]).unwrap();
    assert!(
        picture.contains("Chess board, White to move") && picture.matches("<path transform").count() == 7,
        "{picture}"
    );
    let snakes = json!({
        "Ada": { "alive": true, "head_position": [1, 1], "positions": [[1, 1], [1, 2]] },
        "Bob": { "alive": false, "head_position": [3, 3], "positions": [] },
    });
    let state = json!({ "snakes": snakes, "foods": [[0, 0]], "grid": { "width": 4, "height": 4 } });
    let picture = draw_live("snake", &[&json!({ "world_state": state }).to_string()]).unwrap();
    assert!(picture.contains("Snake on a grid of 4 by 4: Ada with length 2, Bob dead"), "{picture}");
    let base = json!({ "position": [5.0, 5.0], "owner_id": "Bob" });
    let state = json!({ "foods": [], "actors": [base], "bases": [base] });
    let picture = draw_live("food-catcher", &[&json!({ "world_state": state }).to_string()]).unwrap();
    assert!(picture.matches(">B<").count() == 2, "{picture}");
}

#[test]
fn pictures_of_ended_sessions_show_the_secrets() {
    let names = ["Ada", "Bob", "Eve"].map(str::to_owned);
    let mut transcript = String::new();
    let mut draw = |id: &str, players: usize, breaches: &[(usize, usize)], state: Value| {
        let (names, attributions, state) = (&names[..players], attributions(breaches), state.to_string());
        let ended = EndedGame { names, scores: &[], attributions: &attributions, state: &state };
        let challenge = challenge(id, &Map::new()).unwrap().unwrap();
        let scene = Scene { names, players: names, options: &json!({}), ended: Some(ended), texts: &[] };
        let picture = challenge.draw(&scene).unwrap();
        let label = picture.split_once("aria-label=\"").unwrap().1.split('"').next().unwrap();
        writeln!(transcript, "{id}: {label}").unwrap();
        for secret in challenge.disclose(&ended) {
            let mark = |knowledge| match knowledge {
                Knowledge::Kept => "",
                Knowledge::Common => "=",
                Knowledge::Learned => "!",
            };
            let parts: String =
                secret.parts.iter().map(|part| format!(" {}{}", part.text, mark(part.knowledge))).collect();
            writeln!(transcript, "{}:{parts}", secret.title).unwrap();
        }
    };
    let sets =
        json!({ "userSets": [[1, 2, 3, 4], [1, 2, 5, 6]], "intersectionSet": [1, 2], "guesses": [[1, 2, 5], [1, 2]] });
    draw("psi", 2, &[(0, 1)], sets);
    let sets = json!({ "userSets": [[1, 2], [1, 3], [1, 4]], "intersectionSet": [1], "guesses": [[1], [1], [1]] });
    draw("psi", 3, &[], sets);
    draw("millionaire", 2, &[(0, 1)], json!({ "wealth": [50, 60], "guesses": [60, 40] }));
    let diners = json!({ "payer": 2, "guesses": ["internal", "internal", "internal"] });
    draw("dining-cryptographers", 3, &[], diners);
    let offer = json!({ "proposer": 0, "shares": [61, 39], "accepted": [true, true] });
    let split = json!({ "total": 100, "maxRounds": 5, "reservationValues": [10, 20], "turnsTaken": 3, "offer": offer });
    draw("ultimatum", 2, &[], split);
    expect_file!["tests/pictures_of_ended_sessions_show_the_secrets.txt"].assert_eq(&transcript);
}

#[test]
fn an_ended_game_is_drawn_from_its_final_state() {
    for id in ["chess", "snake", "food-catcher", "cherry-picker"] {
        let mut table = Table::new(id, json!({}), 1);
        table.act(1, "resign", "").unwrap();
        let names = ["Ada", "Bob"].map(str::to_owned);
        let ended = EndedGame {
            names: &names,
            scores: &table.session().scores,
            attributions: &table.session().attributions,
            state: &table.session().state,
        };
        let scene = Scene { names: &names, players: &names, options: &json!({}), ended: Some(ended), texts: &[] };
        assert!(table.memory.challenge().draw(&scene).is_some_and(|picture| picture.ends_with("</svg>")), "{id}");
    }
}
