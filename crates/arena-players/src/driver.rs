//! One game in lock step: in each round the driver asks the seats that have something to do, and applies their answers
//! in seat order. The game's clock stands still meanwhile. So a game depends on the answers only, not on their times, and
//! an interrupted game is played again from its start with the stored answers.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use arena_house::Step;
use arena_model::{ActError, ChallengeType, Channel, MemorySession, Seat, is_public_state};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{Answer, Answering, Cause, Halt, Heard, Measured, PlayPolicy, Player, SeatEnd, StepResult};

/// The method that takes a player out of a game.
const RESIGN: &str = "resign";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GameEnd {
    /// The rules ended the game.
    Completed,
    /// No player acted any more. The scores are those at this time.
    Stalled,
}

/// The round and the call that cause a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The round, from 0 for messages before the first answer.
    pub round: u32,
    /// The number of the call, from 1, if an answer caused the message.
    pub call: Option<u32>,
}

/// A game after its end.
pub struct PlayedGame {
    pub session: MemorySession,
    pub end: GameEnd,
    pub rounds: u32,
    pub seats: Vec<PlayedSeat>,
    /// The origins of the session's messages.
    pub origins: Vec<Origin>,
}

pub struct PlayedSeat {
    /// The end of the seat, if it was before the end of the game.
    pub end: Option<SeatEnd>,
    pub measured: Measured,
}

/// Plays a session to its end. All its seats are taken; `players` are in their order.
///
/// # Errors
/// [`Halt`] if the game can't go on.
pub async fn play(
    session: MemorySession,
    players: Vec<Box<dyn Player>>,
    policy: &PlayPolicy,
) -> Result<PlayedGame, Halt> {
    let seats = players.into_iter().map(|player| DrivenSeat { player, heard: 0, waits: false, end: None }).collect();
    let mut game =
        DrivenGame { session, policy: *policy, seats, origins: Vec::new(), round: 0, quiet: Quiet::default() };
    game.note_origin(None);
    let end = game.run().await?;
    Ok(game.finish(end))
}

/// Calls the rules of a challenge. While slow rules run, the other tasks of this thread continue on another one.
pub fn run_rules<T>(challenge: &dyn ChallengeType, call: impl FnOnce() -> T) -> T {
    let has_threads = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if challenge.is_slow() && has_threads { tokio::task::block_in_place(call) } else { call() }
}

/// A player and its place in the game.
struct DrivenSeat {
    player: Box<dyn Player>,
    /// The number of messages at the player's last answer.
    heard: usize,
    /// True if the player has nothing to do before there is news.
    waits: bool,
    end: Option<SeatEnd>,
}

/// The counters since the last action.
#[derive(Default)]
struct Quiet {
    rounds: u32,
    reminders: u32,
    deadlines: u32,
    /// True if the bots were asked to act without waiting for others.
    is_late: bool,
}

/// The seats to ask in a round.
struct RoundSeats {
    seats: Vec<Seat>,
    is_reminded: bool,
}

struct DrivenGame {
    session: MemorySession,
    policy: PlayPolicy,
    seats: Vec<DrivenSeat>,
    /// The origins of the session's messages.
    origins: Vec<Origin>,
    round: u32,
    quiet: Quiet,
}

impl DrivenGame {
    async fn run(&mut self) -> Result<GameEnd, Halt> {
        loop {
            // A game whose answers are all stored never waits otherwise, and would keep the other games from going on.
            tokio::task::yield_now().await;
            if self.session.is_over() {
                return Ok(GameEnd::Completed);
            }
            match self.choose()? {
                Some(asked) if asked.seats.is_empty() => {}
                Some(asked) => self.play_round(&asked).await?,
                None => return Ok(GameEnd::Stalled),
            }
        }
    }

    /// Returns the seats to ask; no seats after an advance of the clock, and `None` if the game has stalled.
    fn choose(&mut self) -> Result<Option<RoundSeats>, Halt> {
        if self.quiet.rounds < self.policy.idle_rounds {
            let seats: Vec<Seat> =
                (0..self.seats.len()).map(Seat).filter(|seat| self.has_something_to_do(*seat)).collect();
            if !seats.is_empty() {
                return Ok(Some(RoundSeats { seats, is_reminded: false }));
            }
        }
        if !std::mem::replace(&mut self.quiet.is_late, true) {
            let seats: Vec<Seat> = self.silent().filter(|seat| self.seats[seat.0].player.is_free()).collect();
            if !seats.is_empty() {
                return Ok(Some(RoundSeats { seats, is_reminded: true }));
            }
        }
        // At a deadline of a game with turns, the players that didn't move are out.
        let late: Vec<Seat> = self.running().filter(|seat| self.session.awaits(*seat)).collect();
        if self.quiet.deadlines < self.policy.deadlines && self.advance()? {
            self.quiet.deadlines += 1;
            self.quiet.is_late = false;
            if self.session.announces_turns() {
                let out: Vec<Seat> = late.into_iter().filter(|seat| !self.session.awaits(*seat)).collect();
                for seat in out {
                    let detail = "the player didn't act before the deadline of the rules";
                    self.mark_end(seat, SeatEnd::new(Cause::Idle, detail));
                }
            }
            return Ok(Some(RoundSeats { seats: Vec::new(), is_reminded: false }));
        }
        let seats: Vec<Seat> = self.silent().collect();
        if self.quiet.reminders == self.policy.reminders || seats.is_empty() {
            return Ok(None);
        }
        self.quiet.reminders += 1;
        Ok(Some(RoundSeats { seats, is_reminded: true }))
    }

    /// Returns the seats that haven't ended.
    fn running(&self) -> impl Iterator<Item = Seat> {
        (0..self.seats.len()).map(Seat).filter(move |seat| self.seats[seat.0].end.is_none())
    }

    /// Returns the seats that the game waits for; all of them if it waits for none.
    fn silent(&self) -> impl Iterator<Item = Seat> {
        let is_awaited = self.running().any(|seat| self.session.awaits(seat));
        self.running().filter(move |seat| !is_awaited || self.session.awaits(*seat))
    }

    fn has_something_to_do(&self, seat: Seat) -> bool {
        let DrivenSeat { player, heard, waits, end } = &self.seats[seat.0];
        if end.is_some() {
            return false;
        }
        let (mut has_news, mut has_chat) = (false, false);
        for message in &self.session.messages()[*heard..] {
            let is_own = self.session.seat_of(&message.from) == Some(seat);
            if !is_own && self.session.is_readable(message, seat) && !is_public_state(&message.content) {
                has_news = true;
                has_chat |= matches!(message.channel, Channel::Chat(_));
            }
        }
        let is_ready = has_news || !waits;
        match player.is_free() {
            true => is_ready,
            false => has_chat || (is_ready && self.session.awaits(seat)),
        }
    }

    /// Asks these seats, and applies their answers in seat order.
    async fn play_round(&mut self, asked: &RoundSeats) -> Result<(), Halt> {
        self.round += 1;
        self.quiet.rounds += 1;
        let together = if self.policy.is_at_once { asked.seats.len() } else { 1 };
        for seats in asked.seats.chunks(together) {
            if self.session.is_over() {
                break;
            }
            let answers = self.ask(seats, asked.is_reminded).await?;
            for (seat, answer) in seats.iter().zip(answers) {
                match answer {
                    Answer::Steps { steps, waits, call } => {
                        let is_clean = self.take_steps(*seat, &steps, call)?;
                        self.seats[seat.0].waits = waits && is_clean;
                    }
                    Answer::Ended(end) => self.end_seat(*seat, end)?,
                }
            }
        }
        Ok(())
    }

    /// Asks these seats at the same time. They are in order.
    async fn ask(&mut self, asked: &[Seat], is_reminded: bool) -> Result<Vec<Answer>, Halt> {
        let (session, policy) = (&self.session, &self.policy);
        let mut answering = Vec::with_capacity(asked.len());
        for (seat, driven) in self.seats.iter_mut().enumerate().map(|(seat, driven)| (Seat(seat), driven)) {
            if asked.contains(&seat) {
                driven.heard = session.messages().len();
                answering.push(driven.player.answer(Heard { session, seat, is_reminded, policy }));
            }
        }
        // All answers arrive before a fault of one of them ends the game, so that none is paid in vain.
        join_all(answering).await.into_iter().collect()
    }

    /// Takes the steps of a player. Returns true if none was refused.
    fn take_steps(&mut self, seat: Seat, steps: &[Step], call: Option<u32>) -> Result<bool, Halt> {
        let mut results: Vec<StepResult> = Vec::with_capacity(steps.len());
        for step in steps {
            if self.session.is_over() {
                return Ok(true);
            }
            results.push(match step {
                Step::Act { method, content } => self.act(seat, method, content)?,
                Step::Say { content, to } => {
                    self.session.say(seat, content, to.as_deref()).map_err(|error| error.to_string())
                }
            });
            self.note_origin(call);
        }
        if let Some(end) = self.seats[seat.0].player.learn(steps, &results) {
            self.end_seat(seat, end)?;
        }
        Ok(results.iter().all(Result::is_ok))
    }

    fn act(&mut self, seat: Seat, method: &str, content: &str) -> Result<StepResult, Halt> {
        let challenge = Arc::clone(self.session.challenge());
        match run_rules(&*challenge, || self.session.act(seat, method, content)) {
            Ok(()) => {
                self.quiet = Quiet::default();
                Ok(Ok(()))
            }
            Err(ActError::Rejected(rejection)) if rejection.is_failure() => {
                Err(Halt::Failed(format!("the rules of the challenge failed: {}", rejection.message)))
            }
            Err(ActError::Rejected(rejection)) => Ok(Err(format!("{} ({})", rejection.message, rejection.code))),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Advances the clock to the deadline of the rules. Returns false if there is none.
    fn advance(&mut self) -> Result<bool, Halt> {
        let challenge = Arc::clone(self.session.challenge());
        let is_advanced = run_rules(&*challenge, || self.session.advance()).map_err(|error| failed(&error))?;
        self.note_origin(None);
        Ok(is_advanced)
    }

    /// Notes the origin of the new messages. `call` is the number of the call that caused them.
    fn note_origin(&mut self, call: Option<u32>) {
        let origin = Origin { round: self.round, call };
        self.origins.resize(self.session.messages().len(), origin);
    }

    /// Ends a seat. The player resigns if the rules have a method for it, and stays silent otherwise.
    fn end_seat(&mut self, seat: Seat, end: SeatEnd) -> Result<(), Halt> {
        if self.session.has_method(RESIGN) && !self.session.is_over() {
            // The rules refuse the resignation of a player that is out already.
            let _ = self.act(seat, RESIGN, "")?;
            self.note_origin(None);
        }
        self.mark_end(seat, end);
        Ok(())
    }

    /// Records the end of a seat, unless the seat has ended already.
    fn mark_end(&mut self, seat: Seat, end: SeatEnd) {
        let first = &mut self.seats[seat.0].end;
        if first.is_none() {
            *first = Some(end);
        }
    }

    fn finish(mut self, end: GameEnd) -> PlayedGame {
        if end == GameEnd::Stalled {
            let awaited: Vec<Seat> = self.running().filter(|seat| self.session.awaits(*seat)).collect();
            for seat in awaited {
                self.mark_end(seat, SeatEnd::new(Cause::Idle, "the game waited for an action that never came"));
            }
        }
        let DrivenGame { session, seats, origins, round, .. } = self;
        let seats =
            seats.into_iter().map(|seat| PlayedSeat { measured: seat.player.measured(), end: seat.end }).collect();
        PlayedGame { session, end, rounds: round, seats, origins }
    }
}

fn failed(error: &dyn std::error::Error) -> Halt {
    Halt::Failed(format!("the session failed: {error}"))
}

/// Waits for all futures at the same time.
async fn join_all(mut futures: Vec<Answering<'_>>) -> Vec<Result<Answer, Halt>> {
    let mut results: Vec<Option<Result<Answer, Halt>>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *result = Some(ready);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use arena_house::Style;
    use arena_model::{Party, Seed};

    use super::*;
    use crate::tests::seated;
    use crate::{BotKind, BotPlayer};

    /// A player that takes steps by a script and then waits.
    struct Scripted {
        answers: VecDeque<Result<Answer, Halt>>,
        /// The pause before each answer.
        pauses: VecDeque<Duration>,
    }

    impl Scripted {
        fn of(answers: impl IntoIterator<Item = Result<Answer, Halt>>) -> Box<dyn Player> {
            Box::new(Scripted { answers: answers.into_iter().collect(), pauses: VecDeque::new() })
        }
    }

    impl Player for Scripted {
        fn answer<'a>(&'a mut self, _heard: Heard<'a>) -> Answering<'a> {
            let wait = Answer::Steps { steps: Vec::new(), waits: true, call: None };
            let answer = self.answers.pop_front().unwrap_or(Ok(wait));
            let pause = self.pauses.pop_front();
            Box::pin(async move {
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
                answer
            })
        }

        fn learn(&mut self, _steps: &[Step], _results: &[StepResult]) -> Option<SeatEnd> {
            None
        }
    }

    /// A bot whose answers take time.
    struct Slow {
        bot: BotPlayer,
        pauses: VecDeque<Duration>,
    }

    impl Player for Slow {
        fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
            let pause = self.pauses.pop_front().unwrap_or_default();
            let answer = self.bot.answer(heard);
            Box::pin(async move {
                tokio::time::sleep(pause).await;
                answer.await
            })
        }

        fn learn(&mut self, steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
            self.bot.learn(steps, results)
        }

        fn is_free(&self) -> bool {
            true
        }
    }

    fn say(content: &str) -> Step {
        Step::Say { content: content.to_owned(), to: None }
    }

    fn guess(content: &str) -> Step {
        Step::Act { method: "guess".to_owned(), content: content.to_owned() }
    }

    fn steps(steps: impl IntoIterator<Item = Step>) -> Result<Answer, Halt> {
        Ok(Answer::Steps { steps: steps.into_iter().collect(), waits: false, call: Some(1) })
    }

    fn ended(cause: Cause) -> Result<Answer, Halt> {
        Ok(Answer::Ended(SeatEnd::new(cause, "the test ends it")))
    }

    async fn play_scripts(challenge: &str, players: Vec<Box<dyn Player>>) -> Result<PlayedGame, Halt> {
        play(seated(challenge, 7), players, &PlayPolicy::AT_ONCE).await
    }

    async fn play_slow_bots(challenge: &str, seed: u64, delays: u64) -> (GameEnd, String) {
        let session = seated(challenge, seed);
        let seed = Seed::from_number(seed);
        let options = session.session().facts.options.clone();
        let mut pauses = Seed::from_number(delays).rng("pauses");
        let players = (0..session.names().len()).map(|seat| {
            let seed = seed.derive(&seat.to_string());
            let house = BotKind::House(Style::default());
            let bot = BotPlayer::new(house, &**session.challenge(), &options, &seed).expect("a bot");
            let pauses = (0..50).map(|_| Duration::from_micros(pauses.below(2000))).collect();
            Box::new(Slow { bot, pauses }) as Box<dyn Player>
        });
        let players = players.collect();
        let game = play(session, players, &PlayPolicy::AT_ONCE).await.expect("nothing fails");
        let ends: Vec<Option<SeatEnd>> = game.seats.into_iter().map(|seat| seat.end).collect();
        (game.end, format!("{ends:?} {:?} {} {:?}", game.origins, game.rounds, game.session.into_parts()))
    }

    #[tokio::test]
    async fn the_times_of_answers_change_nothing() {
        for challenge in ["psi", "ultimatum", "millionaire", "dining-cryptographers"] {
            let first = play_slow_bots(challenge, 3, 1).await;
            assert_eq!(first.0, GameEnd::Completed, "{challenge}");
            for delays in 2..5 {
                assert_eq!(play_slow_bots(challenge, 3, delays).await, first, "{challenge}");
            }
            assert_ne!(play_slow_bots(challenge, 4, 1).await, first, "{challenge}");
        }
    }

    #[tokio::test]
    async fn steps_apply_in_the_order_of_seats() {
        let slow = Box::new(Scripted {
            answers: [steps([say("first"), guess("1")])].into(),
            pauses: [Duration::from_millis(30)].into(),
        });
        let game =
            play_scripts("psi", vec![slow, Scripted::of([steps([say("second"), guess("2")])])]).await.expect("it ends");
        let messages = game.session.messages().iter().zip(&game.origins);
        let said: Vec<(&str, Option<u32>)> = messages
            .filter(|(message, _)| matches!(message.from, Party::Player(_)) && !message.channel.is_inputs())
            .map(|(message, origin)| (message.content.as_str(), origin.call))
            .collect();
        assert_eq!(said, ["first", "(guess) 1", "second", "(guess) 2"].map(|text| (text, Some(1))));
        assert_eq!((game.end, game.rounds), (GameEnd::Completed, 1));
    }

    #[tokio::test]
    async fn a_game_without_actions_stalls_after_three_reminders() {
        let game = play_scripts("psi", vec![Scripted::of([]), Scripted::of([])]).await.expect("it stalls");
        // The first round, and a round for each reminder.
        assert_eq!((game.end, game.rounds), (GameEnd::Stalled, 1 + PlayPolicy::AT_ONCE.reminders));
        assert_eq!(causes(&game), [Some(Cause::Idle), Some(Cause::Idle)]);
        let game =
            play_scripts("psi", vec![Scripted::of([steps([guess("1")])]), Scripted::of([])]).await.expect("it stalls");
        assert_eq!((game.end, causes(&game)), (GameEnd::Stalled, vec![None, Some(Cause::Idle)]));
    }

    fn causes(game: &PlayedGame) -> Vec<Option<Cause>> {
        game.seats.iter().map(|seat| seat.end.as_ref().map(|end| end.cause)).collect()
    }

    /// Returns the end, and the causes with the utilities of the seats, the lowest utility first.
    fn endings(game: &PlayedGame) -> (GameEnd, Vec<(f64, Option<Cause>)>) {
        let scores = game.session.session().scores.iter().map(|score| score.utility);
        let mut seats: Vec<(f64, Option<Cause>)> = scores.zip(causes(game)).collect();
        seats.sort_by(|one, two| one.0.total_cmp(&two.0));
        (game.end, seats)
    }

    #[tokio::test]
    async fn an_ended_seat_resigns_or_stays_silent() {
        // Only one player of chess moves, and its resignation ends the game.
        let both = || vec![Scripted::of([ended(Cause::Refused)]), Scripted::of([ended(Cause::Refused)])];
        let game = play_scripts("chess", both()).await.expect("it ends");
        assert_eq!(endings(&game), (GameEnd::Completed, vec![(-1.0, Some(Cause::Refused)), (1.0, None)]));
        let game = play_scripts("psi", both()).await.expect("it stalls");
        assert_eq!(endings(&game), (GameEnd::Stalled, vec![(0.0, Some(Cause::Refused)); 2]));
        assert_eq!(game.seats[0].end.as_ref().map(|end| end.detail.as_str()), Some("the test ends it"));
    }

    #[tokio::test]
    async fn the_clock_advances_to_the_deadline_when_all_wait() {
        let game = play_scripts("chess", vec![Scripted::of([]), Scripted::of([])]).await.expect("it ends");
        assert_eq!(endings(&game), (GameEnd::Completed, vec![(-1.0, Some(Cause::Idle)), (1.0, None)]));
    }

    #[tokio::test]
    async fn a_fault_suspends_the_game_after_all_answers() {
        let fault =
            Halt::Suspended { agent: "agent 0".to_owned(), class: "unpaid".to_owned(), why: "no credit".to_owned() };
        let players = vec![Scripted::of([Err(fault.clone())]), Scripted::of([steps([say("hello")])])];
        assert_eq!(play_scripts("psi", players).await.map(|_| ()), Err(fault));
    }

    #[tokio::test]
    async fn players_that_only_chat_are_not_asked_forever() {
        let chatter = || Scripted::of((0..1000).map(|_| steps([say("And you?")])));
        let game = play_scripts("psi", vec![chatter(), chatter()]).await.expect("it stalls");
        let PlayPolicy { idle_rounds, reminders, .. } = PlayPolicy::AT_ONCE;
        assert_eq!((game.end, game.rounds), (GameEnd::Stalled, idle_rounds + reminders));
        assert_eq!(causes(&game), [Some(Cause::Idle), Some(Cause::Idle)]);
    }

    fn chat_of(session: &MemorySession) -> impl Iterator<Item = &str> {
        let messages = session.messages().iter();
        messages.filter(|message| matches!(message.channel, Channel::Chat(_))).map(|message| message.content.as_str())
    }

    #[tokio::test]
    async fn players_in_turn_see_the_steps_before_theirs() {
        /// A player that says the number of chat messages.
        struct Counter;
        impl Player for Counter {
            fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
                let count = chat_of(heard.session).count();
                Box::pin(async move { steps([say(&count.to_string()), guess("1")]) })
            }

            fn learn(&mut self, _steps: &[Step], _results: &[StepResult]) -> Option<SeatEnd> {
                None
            }
        }
        for (policy, counts) in [(PlayPolicy::AT_ONCE, ["0", "0"]), (PlayPolicy::IN_TURN, ["0", "1"])] {
            let players: Vec<Box<dyn Player>> = vec![Box::new(Counter), Box::new(Counter)];
            let game = play(seated("psi", 7), players, &policy).await.expect("it ends");
            assert_eq!(chat_of(&game.session).collect::<Vec<_>>(), counts);
        }
    }
}
