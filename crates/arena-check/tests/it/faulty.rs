//! The checks on a challenge with one fault at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use arena_check::Severity;
use arena_model::{
    ChallengeMetadata, ChallengeType, Method, Operator, OptionsError, Rejection, RestoreError, Seat, SessionFacts,
    Table,
};
use expect_test::expect_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{findings_text, report};

/// The fault of the challenge under test, a duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Fault {
    None,
    /// The rules send every secret to all players.
    TellsAll,
    /// The rules send the user id of each player to all.
    TellsUsers,
    /// A refusal depends on the other player's secret.
    Oracle,
    /// Messages contain a counter that all sessions of the program share.
    Counts,
    /// The state changes each time it is restored.
    Ages,
    /// The rules fail on some texts.
    Fails,
    /// The rules accept every text and store its length.
    Takes,
    /// The metadata has a method that the rules don't know.
    Boasts,
    /// Each deadline sets another one.
    Waits,
    /// The scores are huge.
    Boundless,
    /// Players can't join.
    Closed,
    /// Both players are dealt the same number.
    Alike,
    /// One player's number follows from the other's.
    Follows,
    /// The numbers are the same in each game.
    Fixed,
    /// The numbers are derived from the session's id.
    Public,
    /// The rules keep data outside of the serialized state.
    Remembers,
}

struct Duel {
    fault: Fault,
    metadata: ChallengeMetadata,
}

impl Duel {
    fn new(fault: Fault) -> Duel {
        let method = |name: &str| Method { name: name.to_owned(), description: "A number, such as `7`.".to_owned() };
        let mut methods = vec![method("guess")];
        methods.extend((fault == Fault::Boasts).then(|| method("fly")));
        let metadata = ChallengeMetadata {
            name: "Duel".to_owned(),
            description: "Guess the other's number.".to_owned(),
            players: 2,
            prompt: "Call `guess`, or `fly`.".to_owned(),
            methods,
            color: None,
            icon: None,
            authors: None,
            tags: None,
            url: None,
        };
        Duel { fault, metadata }
    }
}

impl ChallengeType for Duel {
    fn id(&self) -> &str {
        "duel"
    }

    fn metadata(&self) -> &ChallengeMetadata {
        &self.metadata
    }

    fn resolve(&self, _overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        Ok(json!({}))
    }

    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        let mut rng = facts.dealt_from().rng("secrets");
        let [mine, theirs] = [(); 2].map(|()| 1 + rng.below(10));
        let secrets = match self.fault {
            Fault::Alike => [mine, mine],
            Fault::Follows => [mine, 11 - mine],
            Fault::Fixed => [3, 8],
            Fault::Public => {
                [3, 8].map(|add| 1 + (facts.id.to_string().bytes().map(u64::from).sum::<u64>() + add) % 10)
            }
            _ => [mine, theirs],
        };
        Ok(Box::new(Game { fault: self.fault, secrets, guesses: [None; 2], age: 0, tried: 0 }))
    }

    fn restore(&self, _facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        let mut game: Game =
            serde_json::from_str(state).map_err(|source| RestoreError { challenge: "duel".to_owned(), source })?;
        game.age += u32::from(self.fault == Fault::Ages);
        Ok(Box::new(game))
    }
}

#[derive(Serialize, Deserialize)]
struct Game {
    fault: Fault,
    secrets: [u64; 2],
    guesses: [Option<u64>; 2],
    age: u32,
    /// The number of accepted actions since the rules were restored.
    #[serde(skip)]
    tried: u32,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

impl Operator for Game {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        if self.fault == Fault::Closed {
            return Err(Rejection::new("CHALLENGE_FAILED", "the door is stuck"));
        }
        let text = format!("Your number is {}.", self.secrets[seat.0]);
        table.send(seat, text.clone());
        if self.fault == Fault::TellsAll {
            table.broadcast(format!("To player {}: {text}", seat.number()));
        }
        if self.fault == Fault::TellsUsers {
            table.broadcast(format!("Welcome, {}!", table.user(seat).map_or("player", |user| user.as_str())));
        }
        Ok(())
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        table.set_deadline_in(60_000);
        Ok(())
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        match self.fault {
            Fault::Waits => table.set_deadline_in(60_000),
            _ => table.end(),
        }
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        let other = 1 - seat.0;
        if method != "guess" {
            return Err(Rejection::unknown_method(method));
        }
        if self.fault == Fault::Fails && content.contains("__proto__") {
            return Err(Rejection::new("CHALLENGE_FAILED", "TypeError: not a function"));
        }
        let length = (self.fault == Fault::Takes).then_some(content.len() as u64);
        let guess: u64 = content.parse().ok().or(length).ok_or_else(|| match self.fault {
            Fault::Oracle => {
                Rejection::new("INVALID_GUESS", format!("No number from 1 to {}.", 10 + self.secrets[other]))
            }
            _ => Rejection::new("INVALID_GUESS", "Not a number."),
        })?;
        if self.guesses[seat.0].is_some() {
            return Err(Rejection::new("DUPLICATE_GUESS", "You have guessed."));
        }
        self.guesses[seat.0] = Some(guess);
        let calls = match self.fault {
            Fault::Counts => CALLS.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        self.tried += 1;
        if self.fault == Fault::Remembers && self.tried == 2 {
            table.broadcast("That was the second guess.");
        }
        table.broadcast(format!("Player {} has guessed, {calls}.", seat.number()));
        let is_right = guess == self.secrets[other];
        table.score(seat).utility = match (is_right, self.fault) {
            (_, Fault::Boundless) => 1e9,
            (true, _) => 1.0,
            (false, _) => -1.0,
        };
        if self.guesses.iter().all(Option::is_some) {
            table.end();
        }
        Ok(())
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).unwrap()
    }
}

fn duel(fault: Fault) -> Arc<dyn ChallengeType> {
    Arc::new(Duel::new(fault))
}

/// Returns the findings with a severity other than `fine`, as text.
fn found(fault: Fault) -> String {
    let mut findings = report(&duel(fault));
    findings.retain(|finding| finding.severity != Severity::Fine);
    findings_text(&findings)
}

#[test]
fn each_fault_alone_is_found() {
    let names = "None TellsAll TellsUsers Oracle Ages Fails Takes Boasts Waits Boundless Closed Alike Follows Fixed Public \
                 Remembers";
    let check = |name: &str| {
        let fault: Fault = serde_json::from_value(json!(name)).unwrap();
        thread::spawn(move || format!("{fault:?}:\n{}", found(fault)))
    };
    let threads: Vec<_> = names.split(' ').map(check).collect();
    let findings: String = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    expect_file!["faulty/each_fault_alone_is_found.txt"].assert_eq(&findings);
}

#[test]
fn what_depends_on_more_than_seed_and_actions_is_found() {
    // The counter continues across games, so its numbers differ each time.
    let findings = report(&duel(Fault::Counts));
    let finding = findings.iter().find(|finding| finding.severity == Severity::Wrong).unwrap();
    assert_eq!(finding.check, "determinism");
    assert!(finding.what.starts_with("equal seeds and equal actions give different games"));
}
