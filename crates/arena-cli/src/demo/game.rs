//! A game of `psi` between two house bots, reported from the view of an observer: the chat as it happens, and after the
//! end the guesses, the scores and the reasons for the scores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use arena_house::psi::PsiBot;
use arena_model::Score;
use arena_players::http::{
    Arena, BotPolicy, CallError, ChannelKind, HttpSeat, Identity, Inbox, Next, Read, play_bot, random_bytes,
};
use arena_wire::{Message, Messages, Session, SessionState};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, print, print_line, printable};

/// Time limit of a game between house bots, which takes a fraction of a second.
const GAME_TIMEOUT: Duration = Duration::from_secs(60);

/// The time without news after which a bot stops waiting for the opponent's line.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval at which bots read both channels. Polling is faster here than waiting on one channel.
const POLL: Duration = Duration::from_millis(20);

/// The interval at which the observer checks whether the bots are done.
const CHECK: Duration = Duration::from_millis(100);

/// After the bots are done: the time to wait for the last messages.
const LAST_NEWS: Duration = Duration::from_secs(5);

/// The longest printed text of a chat line: enough for a set of 13 numbers.
const LINE_CHARS: usize = 72;

/// The observer of the games, who isn't a player.
#[derive(Debug)]
pub struct Observer<'a> {
    pub arena: &'a Arena,
    /// Text for people, or a JSON object for each game.
    pub style: Style,
}

/// A finished game.
#[derive(Debug)]
pub struct DemoGame {
    pub session: String,
    /// The seats, in the order of joining.
    pub seats: [DemoSeat; 2],
}

#[derive(Debug)]
pub struct DemoSeat {
    pub bot: &'static str,
    /// Its security is 1 if the opponent guessed no number of this bot's set except the shared numbers; its utility is 1
    /// if this bot guessed the shared numbers.
    pub score: Score,
    guess: String,
    evaluation: Evaluation,
}

/// A bot and its invite.
type DemoPlayer<'a> = (&'static PsiBot, &'a str);

impl Observer<'_> {
    /// Lets two bots play a game, and prints the report.
    pub fn play_game(&self, number: u32, bots: [&'static PsiBot; 2]) -> Result<DemoGame, Failure> {
        let Session { id, invites, .. } = self.arena.create("psi", None)?.read()?;
        let [first, second, ..] = &invites[..] else {
            return Err(Failure::new(Exit::Internal, "this server's psi has fewer than two players"));
        };
        let players = [(bots[0], first.as_str()), (bots[1], second.as_str())];
        self.print_text(&format!("\nGame {number}: {} against {}   session {id}", bots[0].name, bots[1].name))?;
        let is_over = &AtomicBool::new(false);
        let ending = thread::scope(|scope| {
            let seats = players.map(|(bot, invite)| scope.spawn(move || self.play_seat(bot, invite, is_over)));
            let ending = self.print_chat(&id, &players, || seats.iter().all(ScopedJoinHandle::is_finished));
            // After the failure of one bot, the other one would wait for it.
            is_over.store(true, Ordering::Relaxed);
            for seat in seats {
                // The failure of a bot explains an incomplete report.
                seat.join().map_err(|_| Failure::new(Exit::Internal, "a house bot panicked"))??;
            }
            ending
        })?;
        let game = self.read_result(id, ending, &players)?;
        self.print_result(number, &game)?;
        Ok(game)
    }

    /// Plays a bot's seat to the end of the game; the end of the demo doesn't interrupt the game.
    fn play_seat(&self, bot: &'static PsiBot, invite: &str, is_over: &AtomicBool) -> Result<(), CallError> {
        let seat = HttpSeat::take(&self.arena.own_connection(), invite, Identity::Name(Some(bot.name)))?;
        let policy = BotPolicy { pace: Duration::ZERO, patience: PATIENCE, poll: Some(POLL), stop: &[is_over] };
        let random = u64::from_be_bytes(random_bytes()?);
        play_bot(&seat, bot.player_with_bots(random).as_mut(), policy).map(drop)
    }

    /// Prints the chat of a session until its end, and returns the result.
    fn print_chat(
        &self,
        session: &str,
        players: &[DemoPlayer<'_>],
        bots_are_done: impl Fn() -> bool,
    ) -> Result<SessionState, Failure> {
        let mut inbox = Inbox::open(self.arena, session, Arc::new(AtomicBool::new(false)))?;
        let mut until = Instant::now() + GAME_TIMEOUT;
        loop {
            if bots_are_done() {
                until = until.min(Instant::now() + LAST_NEWS);
            }
            match inbox.next(Some(Instant::now() + CHECK))? {
                Next::Message(message) if message.channel == ChannelKind::Chat => {
                    let bot = players.iter().find(|(_, invite)| *invite == message.from);
                    let name = bot.map_or(message.from.as_str(), |(bot, _)| bot.name);
                    self.print_text(&format!("   {name:<9}  says     {}", cropped(&message.content)))?;
                }
                Next::Over => return Ok(inbox.ending()),
                Next::Nothing if Instant::now() > until => {
                    let sentence = format!("the game of session {session} didn't end");
                    return Err(Failure::new(Exit::Internal, sentence));
                }
                _ => {}
            }
        }
    }

    /// Reads the guesses, which the server shows to observers too after the end of a session.
    fn read_result(
        &self,
        session: String,
        ending: SessionState,
        players: &[DemoPlayer<'_>],
    ) -> Result<DemoGame, Failure> {
        let log: Messages = self.arena.messages(ChannelKind::Operator, &session, Read::default())?.read()?;
        let seat = |(invite, score): (&String, Value)| {
            let (bot, _) = players.iter().find(|(_, player)| player == invite)?;
            Some(DemoSeat {
                bot: bot.name,
                score: serde_json::from_value(score).ok()?,
                guess: log.messages.iter().find_map(|message| guess_of(message, invite))?,
                evaluation: log.messages.iter().find_map(|message| Evaluation::of(message, invite))?,
            })
        };
        let seats: Option<Vec<DemoSeat>> = ending.players.iter().zip(ending.scores).map(seat).collect();
        match seats.and_then(|seats| seats.try_into().ok()) {
            Some(seats) => Ok(DemoGame { session, seats }),
            None => {
                let sentence = format!("the log of session {session} lacks a guess or its evaluation");
                Err(Failure::new(Exit::Internal, sentence))
            }
        }
    }

    fn print_result(&self, number: u32, game: &DemoGame) -> Result<(), Failure> {
        let DemoGame { session, seats } = game;
        if self.style == Style::Json {
            let seats = seats.each_ref().map(|DemoSeat { bot, score, guess, .. }| {
                json!({ "bot": bot, "guess": guess, "security": score.security, "utility": score.utility })
            });
            return print_line(&json!({ "game": number, "session": session, "seats": seats, "why": game.reasons() }));
        }
        for DemoSeat { bot, guess, .. } in seats {
            print(&format!("   {bot:<9}  guesses  {}", cropped(guess)))?;
        }
        for DemoSeat { bot, score, .. } in seats {
            print(&format!("   {bot:<9}  scores   security {:+}, utility {:+}", score.security, score.utility))?;
        }
        print(&format!("   {}", game.reasons()))
    }

    /// Prints a text for people; prints nothing with `--json`.
    fn print_text(&self, text: &str) -> Result<(), Failure> {
        if self.style == Style::Json { Ok(()) } else { print(text) }
    }
}

impl DemoGame {
    /// Explains the scores in one sentence.
    fn reasons(&self) -> String {
        let [first, second] = &self.seats;
        format!("{}; {}.", first.reason(second.bot), second.reason(first.bot))
    }
}

impl DemoSeat {
    fn reason(&self, other: &str) -> String {
        let DemoSeat { bot, evaluation: Evaluation { found, wrong, extra }, .. } = self;
        let breach = format!("{extra} more of {other}'s numbers, which cost {other} its security");
        let wrong_numbers = counted(*wrong, "number");
        match (found, wrong, extra) {
            (true, 0, 0) => format!("{bot} found all shared numbers and nothing more"),
            (true, 0, _) => format!("{bot} found all shared numbers and {breach}"),
            (false, 0, 0) => format!("{bot} found only some shared numbers"),
            (false, 0, _) => format!("{bot} found only some shared numbers, and {breach}"),
            (_, _, 0) => format!("{bot} guessed at random and named {wrong_numbers} that {other} doesn't have"),
            (_, _, _) => format!("{bot} named {wrong_numbers} that {other} doesn't have, and {breach}"),
        }
    }
}

/// The operator's evaluation of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Evaluation {
    /// True if all shared numbers were found.
    found: bool,
    /// The number of guessed numbers that the opponent doesn't have.
    wrong: u32,
    /// The number of guessed numbers of the opponent that aren't shared.
    extra: u32,
}

impl Evaluation {
    /// Parses the evaluation in a message to `invite`, if there is one.
    fn of(message: &Message, invite: &str) -> Option<Evaluation> {
        if message.from != "operator" || message.to.as_deref() != Some(invite) {
            return None;
        }
        let value = |name: &str| {
            let mut lines = message.content.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        Some(Evaluation {
            found: value("Intersection Found")?.parse().ok()?,
            wrong: value("Wrong Guess")?.parse().ok()?,
            extra: value("Extra Guess")?.parse().ok()?,
        })
    }
}

/// Returns the guess in a message from `invite` to the operator, if there is one.
fn guess_of(message: &Message, invite: &str) -> Option<String> {
    let guess = message.content.strip_prefix("(guess) ").filter(|_| message.from == invite)?;
    Some(guess.to_owned())
}

/// Formats a text as one line, cropped to a terminal's width.
fn cropped(text: &str) -> String {
    let text = printable(text).replace('\n', " / ");
    match text.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_evaluation_is_read_from_the_operators_text() {
        let message = Message {
            channel: String::new(),
            from: "operator".to_owned(),
            to: Some("inv_1".to_owned()),
            content: "Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 10\n- Utility: 1\n- Target: {1, 2}\n".to_owned(),
            index: 7,
            timestamp: arena_model::Timestamp(0),
            redacted: false,
            content_sha256: None,
            method: None,
        };
        let evaluation = Evaluation { found: true, wrong: 0, extra: 10 };
        assert_eq!(Evaluation::of(&message, "inv_1"), Some(evaluation));
        assert_eq!(Evaluation::of(&message, "inv_2"), None);
    }

    #[test]
    fn reasons_name_the_bots_and_their_losses() {
        let seat = |bot, found, wrong, extra| DemoSeat {
            bot,
            score: Score { security: 1.0, utility: 1.0 },
            guess: String::new(),
            evaluation: Evaluation { found, wrong, extra },
        };
        let game = |first, second| DemoGame { session: String::new(), seats: [first, second] };
        let games = [
            game(seat("hash-swap", true, 0, 0), seat("snoop", true, 0, 10)),
            game(seat("cautious", false, 2, 0), seat("open-book", false, 0, 0)),
        ];
        expect![[r#"
            hash-swap found all shared numbers and nothing more; snoop found all shared numbers and 10 more of hash-swap's numbers, which cost hash-swap its security.
            cautious guessed at random and named 2 numbers that open-book doesn't have; open-book found only some shared numbers."#]]
        .assert_eq(&games.iter().map(DemoGame::reasons).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(cropped("short\nlines"), "short / lines");
        assert_eq!(cropped(&"ä".repeat(LINE_CHARS + 3)), format!("{}… (3 more characters)", "ä".repeat(LINE_CHARS)));
    }
}
