//! One game in lock step: in each round the driver asks all seats that have something to do, on the same state, waits
//! for all answers, and applies them in seat order. The game's clock stands still meanwhile. So a game depends on the
//! answers only, not on their times, and an interrupted game is played again from its start with the stored answers.

use std::future::poll_fn;
use std::task::Poll;

use arena_house::Step;

use crate::player::{Answer, Answering, Halt, Heard, Player, SeatEnd, StepResult};
use crate::table::{Origin, PostedMessage, Table, TableError, is_public_state};
use crate::{Cause, GameEnd, GameRecord, SeatRecord, Transcript, TranscriptMessage};

/// The number of consecutive reminders without an action after which a game has stalled.
const MAX_REMINDERS: u32 = 3;

/// The number of consecutive rounds without an action after which no more chat is awaited.
const MAX_CHAT_ROUNDS: u32 = 200;

/// The number of consecutive deadlines without an action after which a game has stalled.
const MAX_DEADLINES: u32 = 1000;

/// The method that takes a player out of a game.
const RESIGN: &str = "resign";

/// The identity of a game in the records.
#[derive(Debug, Clone)]
pub(crate) struct GameLabel {
    pub(crate) game: String,
    /// The label of the challenge.
    pub(crate) challenge: String,
    /// The number of the seed, from 0.
    pub(crate) seed: usize,
    /// The names of the agents by seat.
    pub(crate) agents: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct FinishedGame {
    pub(crate) record: GameRecord,
    pub(crate) transcript: Transcript,
}

/// Plays a game to its end.
///
/// # Errors
/// [`Halt`] if the game can't go on in this invocation.
pub(crate) async fn play(label: &GameLabel, table: Table, players: Vec<Box<dyn Player>>) -> Result<FinishedGame, Halt> {
    let seats = players.into_iter().map(DrivenSeat::new).collect();
    let mut game = Game { table, seats, round: 0, quiet: Quiet::default() };
    let end = game.run().await?;
    Ok(game.finish(label, end))
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

impl DrivenSeat {
    fn new(player: Box<dyn Player>) -> DrivenSeat {
        DrivenSeat { player, heard: 0, waits: false, end: None }
    }
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
    seats: Vec<usize>,
    is_reminded: bool,
}

struct Game {
    table: Table,
    seats: Vec<DrivenSeat>,
    round: u32,
    quiet: Quiet,
}

impl Game {
    async fn run(&mut self) -> Result<GameEnd, Halt> {
        loop {
            // A game whose answers are all stored never waits otherwise, and would keep the other games from going on.
            tokio::task::yield_now().await;
            if self.table.is_over() {
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
        if self.quiet.rounds < MAX_CHAT_ROUNDS {
            let seats: Vec<usize> = (0..self.seats.len()).filter(|seat| self.has_something_to_do(*seat)).collect();
            if !seats.is_empty() {
                return Ok(Some(RoundSeats { seats, is_reminded: false }));
            }
        }
        if !std::mem::replace(&mut self.quiet.is_late, true) {
            let seats: Vec<usize> = self.silent().filter(|seat| self.seats[*seat].player.is_free()).collect();
            if !seats.is_empty() {
                return Ok(Some(RoundSeats { seats, is_reminded: true }));
            }
        }
        // At a deadline of a game with turns, the players that didn't move are out.
        let late: Vec<usize> = self.running().filter(|seat| self.table.awaits(*seat)).collect();
        if self.quiet.deadlines < MAX_DEADLINES && self.table.advance(Origin::none(self.round)).map_err(failed)? {
            self.quiet.deadlines += 1;
            self.quiet.is_late = false;
            if self.table.announces_turns() {
                let out: Vec<usize> = late.into_iter().filter(|seat| !self.table.awaits(*seat)).collect();
                for seat in out {
                    let detail = "the player didn't act before the deadline of the rules";
                    self.mark_end(seat, SeatEnd::new(Cause::Idle, detail));
                }
            }
            return Ok(Some(RoundSeats { seats: Vec::new(), is_reminded: false }));
        }
        let seats: Vec<usize> = self.silent().collect();
        if self.quiet.reminders == MAX_REMINDERS || seats.is_empty() {
            return Ok(None);
        }
        self.quiet.reminders += 1;
        Ok(Some(RoundSeats { seats, is_reminded: true }))
    }

    /// Returns the seats that haven't ended.
    fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.seats.len()).filter(move |seat| self.seats[*seat].end.is_none())
    }

    /// Returns the seats that the game waits for; all of them if it waits for none.
    fn silent(&self) -> impl Iterator<Item = usize> {
        let is_awaited = self.running().any(|seat| self.table.awaits(seat));
        self.running().filter(move |seat| !is_awaited || self.table.awaits(*seat))
    }

    fn has_something_to_do(&self, seat: usize) -> bool {
        let DrivenSeat { player, heard, waits, end } = &self.seats[seat];
        if end.is_some() {
            return false;
        }
        let (mut has_news, mut has_chat) = (false, false);
        for posted in &self.table.messages()[*heard..] {
            let is_own = self.table.seat_of(&posted.message.from) == Some(seat);
            if !is_own && self.table.is_readable(posted, seat) && !is_public_state(&posted.message.content) {
                has_news = true;
                has_chat |= posted.is_chat();
            }
        }
        let is_ready = has_news || !waits;
        match player.is_free() {
            true => is_ready,
            false => has_chat || (is_ready && self.table.awaits(seat)),
        }
    }

    /// Asks these seats at the same time, and applies their answers in seat order.
    async fn play_round(&mut self, asked: &RoundSeats) -> Result<(), Halt> {
        let count = self.table.messages().len();
        let (table, seats) = (&self.table, &mut self.seats);
        let mut places = Vec::new();
        let mut answering = Vec::new();
        for (seat, driven) in seats.iter_mut().enumerate().filter(|(seat, _)| asked.seats.contains(seat)) {
            driven.heard = count;
            places.push(seat);
            answering.push(driven.player.answer(Heard { table, seat, is_reminded: asked.is_reminded }));
        }
        // All answers arrive before a fault of one of them ends the game, so that none is paid in vain.
        let answers = join_all(answering).await;
        self.round += 1;
        self.quiet.rounds += 1;
        let answers = answers.into_iter().collect::<Result<Vec<Answer>, Halt>>()?;
        for (seat, answer) in places.into_iter().zip(answers) {
            match answer {
                Answer::Steps { steps, waits, call } => {
                    let is_clean = self.take_steps(seat, &steps, call)?;
                    self.seats[seat].waits = waits && is_clean;
                }
                Answer::Ended(end) => self.end_seat(seat, end)?,
            }
        }
        Ok(())
    }

    /// Takes the steps of a player. Returns true if none was refused.
    fn take_steps(&mut self, seat: usize, steps: &[Step], call: Option<u32>) -> Result<bool, Halt> {
        let origin = Origin { round: self.round, call };
        let mut results: Vec<StepResult> = Vec::with_capacity(steps.len());
        for step in steps {
            if self.table.is_over() {
                return Ok(true);
            }
            let done = match step {
                Step::Act { method, content } => {
                    let done = self.table.act(seat, method, content, origin).map_err(failed)?;
                    if done.is_ok() {
                        self.quiet = Quiet::default();
                    }
                    done
                }
                Step::Say { content, to } => self.table.say(seat, content, to.as_deref(), origin),
            };
            results.push(done);
        }
        if let Some(end) = self.seats[seat].player.learn(steps, &results) {
            self.end_seat(seat, end)?;
        }
        Ok(results.iter().all(Result::is_ok))
    }

    /// Ends a seat. The player resigns if the rules have a method for it, and stays silent otherwise.
    fn end_seat(&mut self, seat: usize, end: SeatEnd) -> Result<(), Halt> {
        if self.table.has_method(RESIGN) && !self.table.is_over() {
            let origin = Origin::none(self.round);
            // The rules refuse the resignation of a player that is out already.
            if self.table.act(seat, RESIGN, "", origin).map_err(failed)?.is_ok() {
                self.quiet = Quiet::default();
            }
        }
        self.mark_end(seat, end);
        Ok(())
    }

    /// Records the end of a seat, unless the seat has ended already.
    fn mark_end(&mut self, seat: usize, end: SeatEnd) {
        let first = &mut self.seats[seat].end;
        if first.is_none() {
            *first = Some(end);
        }
    }

    fn finish(mut self, label: &GameLabel, end: GameEnd) -> FinishedGame {
        if end == GameEnd::Stalled {
            let awaited: Vec<usize> = self.running().filter(|seat| self.table.awaits(*seat)).collect();
            for seat in awaited {
                self.mark_end(seat, SeatEnd::new(Cause::Idle, "the game waited for an action that never came"));
            }
        }
        let told = self.table.tell(&distinct_names(&label.agents));
        let outcome = self.table.session();
        let seats =
            self.seats.iter().zip(&label.agents).zip(&outcome.scores).map(|((seat, agent), score)| SeatRecord {
                agent: agent.clone(),
                cause: seat.end.as_ref().map_or(Cause::Completed, |end| end.cause),
                detail: seat.end.as_ref().map(|end| end.detail.clone()),
                security: score.security,
                utility: score.utility,
                measured: seat.player.measured(),
            });
        let attributions = outcome.attributions.iter();
        let record = GameRecord {
            game: label.game.clone(),
            challenge: label.challenge.clone(),
            seed: label.seed,
            seats: seats.collect(),
            end,
            attributions: attributions.map(|each| (each.from.0, each.to.0, each.kind.clone())).collect(),
            told,
            rounds: self.round,
        };
        let message = |posted: &PostedMessage| TranscriptMessage {
            round: posted.round,
            chat: posted.is_chat(),
            from: self.table.seat_of(&posted.message.from),
            to: posted.message.to.as_ref().and_then(|to| self.table.seat_of(to)),
            content: posted.message.content.clone(),
            method: posted.message.method.clone(),
            call: posted.call,
        };
        let transcript = Transcript {
            game: label.game.clone(),
            players: self.table.names().to_vec(),
            messages: self.table.messages().iter().map(message).collect(),
            state: outcome.state.clone(),
        };
        FinishedGame { record, transcript }
    }
}

fn failed(error: TableError) -> Halt {
    Halt::Failed(error.0)
}

/// Returns the agents' names by seat. Copies of an agent have their number of the seat after the name.
fn distinct_names(agents: &[String]) -> Vec<String> {
    let name = |(seat, agent): (usize, &String)| {
        let is_single = agents.iter().filter(|other| *other == agent).count() == 1;
        if is_single { agent.clone() } else { format!("{agent} (player {})", seat + 1) }
    };
    agents.iter().enumerate().map(name).collect()
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
    use arena_model::Seed;
    use serde_json::Map;

    use super::*;
    use crate::EvalAgentKind;
    use crate::player::HousePlayer;

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
        bot: HousePlayer,
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

    fn table_of(challenge: &str, seed: u64) -> Table {
        let challenge =
            arena_games::challenge(challenge, &Map::new()).expect("built in").expect("the defaults are valid");
        let options = challenge.resolve(&Map::new()).expect("the defaults are valid");
        let seats = challenge.seats(&options);
        Table::open(challenge, &options, seats, &Seed::from_number(seed)).expect("the rules start")
    }

    fn label(seats: usize) -> GameLabel {
        GameLabel {
            game: "0123456789ab".to_owned(),
            challenge: "a challenge".to_owned(),
            seed: 0,
            agents: (0..seats).map(|seat| format!("agent {seat}")).collect(),
        }
    }

    async fn play_scripts(challenge: &str, players: Vec<Box<dyn Player>>) -> Result<FinishedGame, Halt> {
        play(&label(players.len()), table_of(challenge, 7), players).await
    }

    async fn play_slow_bots(challenge: &str, seed: u64, delays: u64) -> String {
        let table = table_of(challenge, seed);
        let seed = Seed::from_number(seed);
        let kind = arena_games::challenge(challenge, &Map::new()).expect("built in").expect("valid");
        let options = kind.resolve(&Map::new()).expect("valid");
        let mut pauses = Seed::from_number(delays).rng("pauses");
        let players = (0..table.names().len()).map(|seat| {
            let house = EvalAgentKind::House { style: Style::default() };
            let bot = HousePlayer::new(&house, &*kind, &options, seat, &seed).expect("a bot");
            let pauses = (0..50).map(|_| Duration::from_micros(pauses.below(2000))).collect();
            Box::new(Slow { bot, pauses }) as Box<dyn Player>
        });
        let players = players.collect();
        let game = play(&label(table.names().len()), table, players).await.expect("nothing fails");
        serde_json::to_string(&(game.record, game.transcript)).expect("JSON")
    }

    #[tokio::test]
    async fn the_times_of_answers_change_nothing() {
        for challenge in ["psi", "ultimatum", "millionaire", "dining-cryptographers"] {
            if arena_games::challenge(challenge, &Map::new()).is_none() {
                continue;
            }
            let first = play_slow_bots(challenge, 3, 1).await;
            assert!(first.contains("\"end\":\"completed\""), "{challenge}: {first}");
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
        let said: Vec<&str> = game
            .transcript
            .messages
            .iter()
            .filter(|each| each.from.is_some())
            .map(|each| each.content.as_str())
            .collect();
        assert_eq!(said, ["first", "(guess) 1", "second", "(guess) 2"]);
        assert_eq!((game.record.end, game.record.rounds), (GameEnd::Completed, 1));
    }

    #[tokio::test]
    async fn a_game_without_actions_stalls_after_three_reminders() {
        let game = play_scripts("psi", vec![Scripted::of([]), Scripted::of([])]).await.expect("it stalls");
        let FinishedGame { record, .. } = game;
        let causes: Vec<Cause> = record.seats.iter().map(|seat| seat.cause).collect();
        // The first round, and a round for each reminder.
        assert_eq!((record.end, record.rounds), (GameEnd::Stalled, 1 + MAX_REMINDERS));
        assert_eq!(causes, [Cause::Idle, Cause::Idle]);
        let game =
            play_scripts("psi", vec![Scripted::of([steps([guess("1")])]), Scripted::of([])]).await.expect("it stalls");
        let causes: Vec<Cause> = game.record.seats.iter().map(|seat| seat.cause).collect();
        assert_eq!((game.record.end, causes), (GameEnd::Stalled, vec![Cause::Completed, Cause::Idle]));
    }

    /// Returns the end, and the causes with the utilities of the seats, the lowest utility first.
    fn endings(game: &FinishedGame) -> (GameEnd, Vec<(f64, Cause)>) {
        let mut seats: Vec<(f64, Cause)> = game.record.seats.iter().map(|seat| (seat.utility, seat.cause)).collect();
        seats.sort_by(|one, two| one.0.total_cmp(&two.0));
        (game.record.end, seats)
    }

    #[tokio::test]
    async fn an_ended_seat_resigns_or_stays_silent() {
        // Only one player of chess moves, and its resignation ends the game.
        let both = || vec![Scripted::of([ended(Cause::Refused)]), Scripted::of([ended(Cause::Refused)])];
        let game = play_scripts("chess", both()).await.expect("it ends");
        assert_eq!(endings(&game), (GameEnd::Completed, vec![(-1.0, Cause::Refused), (1.0, Cause::Completed)]));
        let game = play_scripts("psi", both()).await.expect("it stalls");
        assert_eq!(endings(&game), (GameEnd::Stalled, vec![(0.0, Cause::Refused), (0.0, Cause::Refused)]));
        assert_eq!(game.record.seats[0].detail.as_deref(), Some("the test ends it"));
    }

    #[tokio::test]
    async fn the_clock_advances_to_the_deadline_when_all_wait() {
        let game = play_scripts("chess", vec![Scripted::of([]), Scripted::of([])]).await.expect("it ends");
        assert_eq!(endings(&game), (GameEnd::Completed, vec![(-1.0, Cause::Idle), (1.0, Cause::Completed)]));
    }

    #[tokio::test]
    async fn a_fault_suspends_the_game_after_all_answers() {
        let fault =
            Halt::Suspended { agent: "agent 0".to_owned(), class: "unpaid".to_owned(), why: "no credit".to_owned() };
        let players = vec![Scripted::of([Err(fault.clone())]), Scripted::of([steps([say("hello")])])];
        assert_eq!(play_scripts("psi", players).await.map(|_| ()), Err(fault));
    }

    #[test]
    fn copies_of_an_agent_have_different_names() {
        let names = |agents: &[&str]| {
            distinct_names(&agents.iter().map(|agent| (*agent).to_owned()).collect::<Vec<_>>()).join(", ")
        };
        assert_eq!(names(&["a", "b"]), "a, b");
        assert_eq!(names(&["a", "b", "a"]), "a (player 1), b, a (player 3)");
    }
}
