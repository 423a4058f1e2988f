//! The report of a demo game from the perspective of an observer. The report shows the chat as it happens, and after
//! the end of the game the guesses, the scores and the reasons for the scores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_house::psi::PsiBot;
use arena_model::Score;
use arena_players::http::{
    Arena, BotPolicy, CallError, ChannelKind, HttpSeat, Identity, Inbox, Next, Read, play_bot, random_bytes,
};
use arena_wire::{Message, Messages, Session, SessionState};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, print, printable};

/// Time limit of a game between house bots, which takes a fraction of a second.
const GAME_TIMEOUT: Duration = Duration::from_secs(60);

/// The time without news after which a bot stops waiting for the opponent's line.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval at which bots read both channels. Polling is faster here than waiting on one channel.
const POLL: Duration = Duration::from_millis(20);

/// The interval at which the observer checks whether the bots are done.
const LOOK: Duration = Duration::from_millis(100);

/// After the bots are done: the time to wait for the last messages.
const LAST_NEWS: Duration = Duration::from_secs(5);

/// The longest printed text of a chat line: enough for a set of 13 numbers.
const LINE_CHARS: usize = 72;

/// Plays games between house bots and prints the reports.
#[derive(Debug)]
pub struct Account<'a> {
    /// The client of an anonymous observer.
    pub arena: &'a Arena,
    /// The style: text for people, or a JSON object for each game.
    pub style: Style,
}

/// A finished game.
#[derive(Debug)]
pub struct DemoGame {
    pub session: String,
    /// The game's seats, in the order of joining.
    pub seats: Vec<SeatAccount>,
}

#[derive(Debug)]
pub struct SeatAccount {
    pub bot: &'static str,
    /// Its security is 1 if the opponent guessed no number of this bot's set except the shared numbers; its utility is 1
    /// if this bot guessed the shared numbers.
    pub score: Score,
    guess: String,
    outcome: GuessOutcome,
}

impl Account<'_> {
    /// Lets two bots play a game of `psi` and prints the report.
    pub fn of_game(&self, number: u32, bots: [&'static PsiBot; 2]) -> Result<DemoGame, Failure> {
        let session: Session = self.arena.create("psi", None)?.read()?;
        let [Some(first), Some(second)] = [session.invites.first(), session.invites.get(1)] else {
            return Err(Failure::new(Exit::Internal, "this server's psi has fewer than two players"));
        };
        let players = [(bots[0], first.as_str()), (bots[1], second.as_str())];
        self.print_line(&format!(
            "\nGame {number}: {} against {}   session {}",
            bots[0].name, bots[1].name, session.id
        ))?;
        let is_over = &AtomicBool::new(false);
        let ending = thread::scope(|scope| {
            let seats = players.map(|(bot, invite)| scope.spawn(move || self.seat(bot, invite, is_over)));
            let watched = self.watch(&session.id, &players, || seats.iter().all(thread::ScopedJoinHandle::is_finished));
            // After the failure of one bot, the other one would wait for it.
            is_over.store(true, Ordering::Relaxed);
            for seat in seats {
                // The failure of a bot explains an incomplete report.
                seat.join().map_err(|_| Failure::new(Exit::Internal, "a house bot panicked"))??;
            }
            watched
        })?;
        let game = self.result(&session.id, ending, &players)?;
        self.print_result(number, &game)?;
        Ok(game)
    }

    /// Plays a bot's seat to the end of the game; the end of the demo doesn't interrupt the game.
    fn seat(&self, bot: &'static PsiBot, invite: &str, is_over: &AtomicBool) -> Result<(), CallError> {
        let seat = HttpSeat::take(&self.arena.own_connection(), invite, Identity::Name(Some(bot.name)))?;
        let policy = BotPolicy { pace: Duration::ZERO, patience: PATIENCE, poll: Some(POLL), stop: &[is_over] };
        let random = u64::from_be_bytes(random_bytes()?);
        play_bot(&seat, bot.player_with_bots(random).as_mut(), policy).map(drop)
    }

    /// Prints the chat of a session until its end, and returns the result.
    fn watch(
        &self,
        session: &str,
        players: &[(&PsiBot, &str)],
        bots_are_done: impl Fn() -> bool,
    ) -> Result<SessionState, Failure> {
        let mut inbox = Inbox::open(self.arena, session, Arc::new(AtomicBool::new(false)))?;
        let mut until = Instant::now() + GAME_TIMEOUT;
        loop {
            if bots_are_done() {
                until = until.min(Instant::now() + LAST_NEWS);
            }
            match inbox.next(Some(Instant::now() + LOOK))? {
                Next::Message(message) if message.channel == ChannelKind::Chat => {
                    let name = name_of(players, &message.from);
                    self.print_line(&format!("   {name:<9}  says     {}", cropped(&message.content)))?;
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
    fn result(
        &self,
        session: &str,
        ending: SessionState,
        players: &[(&'static PsiBot, &str)],
    ) -> Result<DemoGame, Failure> {
        let log: Messages = self.arena.messages(ChannelKind::Operator, session, Read::default())?.read()?;
        let seat = |(invite, score): (&String, Value)| {
            let (bot, _) = players.iter().find(|(_, player)| player == invite)?;
            Some(SeatAccount {
                bot: bot.name,
                score: serde_json::from_value(score).ok()?,
                guess: log.messages.iter().find_map(|message| guess_of(message, invite))?,
                outcome: log.messages.iter().find_map(|message| GuessOutcome::of(message, invite))?,
            })
        };
        match ending.players.iter().zip(ending.scores).map(seat).collect::<Option<Vec<_>>>() {
            Some(seats) if !seats.is_empty() => Ok(DemoGame { session: session.to_owned(), seats }),
            _ => {
                let sentence = format!("the log of session {session} lacks a guess or its evaluation");
                Err(Failure::new(Exit::Internal, sentence))
            }
        }
    }

    fn print_result(&self, number: u32, game: &DemoGame) -> Result<(), Failure> {
        if self.style == Style::Json {
            let seats: Vec<_> = game
                .seats
                .iter()
                .map(|seat| json!({ "bot": seat.bot, "guess": seat.guess, "security": seat.score.security, "utility": seat.score.utility }))
                .collect();
            return print(
                &json!({ "game": number, "session": game.session, "seats": seats, "why": why(game) }).to_string(),
            );
        }
        for seat in &game.seats {
            print(&format!("   {:<9}  guesses  {}", seat.bot, cropped(&seat.guess)))?;
        }
        for SeatAccount { bot, score, .. } in &game.seats {
            print(&format!("   {bot:<9}  scores   security {:+}, utility {:+}", score.security, score.utility))?;
        }
        print(&format!("   {}", why(game)))
    }

    /// Prints a line of text; prints nothing with `--json`.
    fn print_line(&self, line: &str) -> Result<(), Failure> {
        if self.style == Style::Json { Ok(()) } else { print(line) }
    }
}

/// Explains the scores in one sentence.
fn why(game: &DemoGame) -> String {
    let [first, second] = game.seats.as_slice() else { return String::new() };
    format!("{}; {}.", first.found(second.bot), second.found(first.bot))
}

impl SeatAccount {
    fn found(&self, other: &str) -> String {
        let SeatAccount { bot, outcome: GuessOutcome { found, wrong, extra }, .. } = self;
        let breach = format!("{extra} more of {other}'s numbers, which cost {other} its security");
        let wrong_numbers = counted(u64::from(*wrong), "number", "numbers");
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
struct GuessOutcome {
    found: bool,
    wrong: u32,
    extra: u32,
}

impl GuessOutcome {
    /// Parses the evaluation in a message to `invite`, if there is one.
    fn of(message: &Message, invite: &str) -> Option<GuessOutcome> {
        if message.from != "operator" || message.to.as_deref() != Some(invite) {
            return None;
        }
        let value = |name: &str| {
            let mut lines = message.content.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        Some(GuessOutcome {
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

fn name_of<'a>(players: &[(&'a PsiBot, &str)], invite: &'a str) -> &'a str {
    players.iter().find(|(_, player)| *player == invite).map_or(invite, |(bot, _)| bot.name)
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
    fn outcome_is_read_from_the_operators_text() {
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
        let outcome = GuessOutcome { found: true, wrong: 0, extra: 10 };
        assert_eq!(GuessOutcome::of(&message, "inv_1"), Some(outcome));
        assert_eq!(GuessOutcome::of(&message, "inv_2"), None);
    }

    #[test]
    fn why_says_who_lost_what() {
        let seat = |bot, found, wrong, extra| SeatAccount {
            bot,
            score: Score { security: 1.0, utility: 1.0 },
            guess: String::new(),
            outcome: GuessOutcome { found, wrong, extra },
        };
        let game = |first, second| DemoGame { session: String::new(), seats: vec![first, second] };
        let games = [
            game(seat("hash-swap", true, 0, 0), seat("snoop", true, 0, 10)),
            game(seat("cautious", false, 2, 0), seat("open-book", false, 0, 0)),
        ];
        expect![[r#"
            hash-swap found all shared numbers and nothing more; snoop found all shared numbers and 10 more of hash-swap's numbers, which cost hash-swap its security.
            cautious guessed at random and named 2 numbers that open-book doesn't have; open-book found only some shared numbers."#]]
        .assert_eq(&games.iter().map(why).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(cropped("short\nlines"), "short / lines");
        assert_eq!(cropped(&"ä".repeat(LINE_CHARS + 3)), format!("{}… (3 more characters)", "ä".repeat(LINE_CHARS)));
    }
}
