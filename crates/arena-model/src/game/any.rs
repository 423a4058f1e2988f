//! Games of any type, as the runner uses them: replies and accepted actions are JSON text.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::machine::first_seat;
use super::{Actions, Events, Game, IndexedAction, Rejected, Setup, TimeLimits, UpdateMode, agent_ids};
use crate::challenge::{ChallengeMetadata, ChallengeType, OptionsError, Rules, parse_options};
use crate::operator_game::{self, ChallengeGame};
use crate::{Score, Script, ScriptVersion, Seat, Seed, hex};

/// The maximum number of actions of one agent in an epoch. Further actions are rejected without being parsed.
pub const MAX_ACTIONS: usize = 4096;

/// The maximum length of the reason of a rejection, in bytes. Reasons need a limit because a parser's message quotes
/// the agent's input.
const MAX_REASON: usize = 160;

/// A running game of any type. Methods without a comment are those of [`Game`], apart from `game_type`.
pub trait AnyGame: Send {
    fn game_type(&self) -> &'static GameType;

    /// Returns the game's constants, as agents receive them: a JSON object.
    fn config(&self) -> Map<String, Value>;

    fn is_asked(&self, seat: Seat) -> bool;

    fn write_state(&self, seat: Seat, out: &mut Vec<u8>);

    /// Plays one epoch.
    ///
    /// `replies` contains, by seat, the text of the agent's `actions`, or `None` without a valid reply. A
    /// JSON list is appended to `taken`: for each seat, `null` or the list of its accepted actions, with known keys
    /// only. Playing the accepted actions again from the same state gives the same new state. `events` is cleared
    /// first.
    fn play(&mut self, replies: &[Option<&str>], taken: &mut Vec<u8>, events: &mut Events);

    fn disqualify(&mut self, seat: Seat);

    /// See [`Game::on_time_over`]. Returns the reply's actions as JSON.
    fn on_time_over(&self, _seat: Seat) -> Option<String> {
        None
    }

    fn termination(&self) -> Option<&'static str>;

    fn scores(&self) -> Vec<f64>;

    fn is_void(&self) -> bool;

    fn challenge_scores(&self) -> Option<Vec<Score>>;

    fn side(&self, seat: Seat) -> Option<&'static str>;

    /// Returns the description of the challenge, which is part of the states, or `None` for other games.
    fn metadata(&self) -> Option<&ChallengeMetadata> {
        None
    }
}

type StartGame = fn(&'static GameType, &Map<String, Value>, Setup) -> Result<Box<dyn AnyGame>, OptionsError>;

enum Start {
    /// The function that starts a game whose Rust type is known at compile time.
    Game(StartGame),
    /// A challenge that is known only at run time, such as a script.
    Challenge(Arc<dyn ChallengeType>),
}

/// A type of game: an entry in the list of playable games. Public fields without a comment: constants of [`Game`].
pub struct GameType {
    pub name: &'static str,
    pub description: &'static str,
    pub mode: UpdateMode,
    pub is_shared: bool,
    pub seats: RangeInclusive<usize>,
    pub limits: TimeLimits,
    /// [`Game::RULES_VERSION`], or the version of a challenge in matches: [`Rules::MATCH_VERSION`] and that of the adapter.
    pub rules_version: u32,
    start: Start,
}

impl GameType {
    /// Returns the seat that a result such as `1-0` lists first: White's seat, or seat 0 in a game without White. The
    /// seed may determine White's seat.
    pub fn first_seat(&'static self, options: &Map<String, Value>, seed: &Seed, seats: usize) -> usize {
        let setup = Setup { agents: agent_ids(seed, seats), seed: seed.clone() };
        self.start(options, setup).map_or(0, |game| first_seat(&*game, seats))
    }

    /// Returns the SHA-256, in hexadecimal, of the texts in the states of a challenge: its prompt and methods. Returns
    /// `None` for other games, and for options with which the game can't be started.
    pub fn texts_sha256(&'static self, options: &Map<String, Value>, seats: usize) -> Option<String> {
        let seed = Seed::from_number(0);
        let game = self.start(options, Setup { agents: agent_ids(&seed, seats), seed }).ok()?;
        let ChallengeMetadata { prompt, methods, .. } = game.metadata()?;
        Some(hex::encode(&Sha256::digest(json!([prompt, methods]).to_string())))
    }

    pub const fn of<G: Game>() -> GameType {
        GameType {
            name: G::NAME,
            description: G::DESCRIPTION,
            mode: G::MODE,
            is_shared: G::IS_SHARED,
            seats: G::SEATS,
            limits: G::LIMITS,
            rules_version: G::RULES_VERSION,
            start: Start::Game(Running::<G>::start),
        }
    }

    /// Returns the entry of a built-in challenge, which is played through an adapter.
    pub const fn of_rules<R: Rules>() -> GameType {
        GameType {
            name: R::ID,
            description: R::DESCRIPTION,
            mode: operator_game::MODE,
            is_shared: false,
            seats: R::SEATS,
            limits: operator_game::LIMITS,
            rules_version: R::MATCH_VERSION + operator_game::MATCH_RULES,
            start: Start::Game(operator_game::start::<R>),
        }
    }

    /// Creates a game before its first epoch. `options` contains the keys of the game's config that differ from the
    /// defaults.
    ///
    /// # Errors
    /// If the number of agents is out of range, or an option is unknown or invalid.
    pub fn start(&'static self, options: &Map<String, Value>, setup: Setup) -> Result<Box<dyn AnyGame>, OptionsError> {
        let (least, most, given) = (*self.seats.start(), *self.seats.end(), setup.agents.len());
        if !self.seats.contains(&given) {
            let expected = match least == most {
                true => format!("{least}"),
                false => format!("{least} to {most}"),
            };
            return Err(OptionsError(format!("{} is played by {expected} agents, not by {given}", self.name)));
        }
        match &self.start {
            Start::Game(start) => start(self, options, setup),
            Start::Challenge(challenge) => {
                let options = challenge.arrange(options)?;
                Ok(Box::new(ChallengeGame::new(self, Arc::clone(challenge), options, setup)?))
            }
        }
    }

    pub fn script(&self) -> Option<ScriptVersion> {
        match &self.start {
            Start::Game(_) => None,
            Start::Challenge(challenge) => challenge.script().map(Script::version),
        }
    }

    /// Returns the game type of a challenge that isn't built in. This function leaks the returned entry, which
    /// therefore lives as long as the program.
    pub fn of_challenge(challenge: Arc<dyn ChallengeType>) -> &'static GameType {
        let name = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let players = challenge.metadata().players;
        Box::leak(Box::new(GameType {
            name: name(challenge.id()),
            description: name(&challenge.metadata().description),
            mode: operator_game::MODE,
            is_shared: false,
            seats: players..=players,
            limits: operator_game::LIMITS,
            rules_version: challenge.rules_version() + operator_game::MATCH_RULES,
            start: Start::Challenge(challenge),
        }))
    }
}

/// A running game with its types and buffers.
pub(crate) struct Running<G: Game> {
    game_type: &'static GameType,
    pub(crate) game: G,
    actions: Actions<G::Action>,
}

impl<G: Game> Running<G> {
    const TYPE: &'static GameType = &GameType::of::<G>();

    pub(crate) fn new(game: G, seats: usize) -> Running<G> {
        Running { game_type: Self::TYPE, game, actions: Actions::none(seats) }
    }

    fn start(
        game_type: &'static GameType,
        options: &Map<String, Value>,
        setup: Setup,
    ) -> Result<Box<dyn AnyGame>, OptionsError> {
        let config = config::<G>(options)?;
        let seats = setup.agents.len();
        Ok(Box::new(Running { game_type, ..Running::new(G::new(config, setup)?, seats) }))
    }

    /// Plays one epoch. The events stay in the order in which they happened.
    pub(crate) fn step(&mut self, replies: &[Option<&str>], events: &mut Events) {
        self.actions.read(replies, events);
        self.game.step(&self.actions, events);
    }
}

/// Returns a game's config with these options, and the default for every other key.
pub(crate) fn config<G: Game>(options: &Map<String, Value>) -> Result<G::Config, OptionsError> {
    parse_named(G::NAME, options)
}

/// Parses options. The error names the game and the option that can't be parsed.
pub(crate) fn parse_named<O: serde::de::DeserializeOwned>(
    name: &str,
    options: &Map<String, Value>,
) -> Result<O, OptionsError> {
    let options = Value::Object(options.clone());
    parse_options(&options).map_err(|error| OptionsError(format!("{name}, {error}")))
}

impl<G: Game> AnyGame for Running<G> {
    fn game_type(&self) -> &'static GameType {
        self.game_type
    }

    fn config(&self) -> Map<String, Value> {
        match serde_json::to_value(self.game.config()) {
            Ok(Value::Object(config)) => config,
            other => unreachable!("the config of {} is an object: {other:?}", G::NAME),
        }
    }

    fn is_asked(&self, seat: Seat) -> bool {
        self.game.is_asked(seat)
    }

    fn write_state(&self, seat: Seat, out: &mut Vec<u8>) {
        self.game.write_state(seat, out);
    }

    fn play(&mut self, replies: &[Option<&str>], taken: &mut Vec<u8>, events: &mut Events) {
        let Running { game, actions, .. } = self;
        actions.play(replies, taken, events, |actions, events| game.step(actions, events));
    }

    fn disqualify(&mut self, seat: Seat) {
        self.game.disqualify(seat);
    }

    fn on_time_over(&self, seat: Seat) -> Option<String> {
        Some(json!([self.game.on_time_over(seat)?]).to_string())
    }

    fn termination(&self) -> Option<&'static str> {
        self.game.termination()
    }

    fn scores(&self) -> Vec<f64> {
        self.game.scores()
    }

    fn is_void(&self) -> bool {
        self.game.is_void()
    }

    fn challenge_scores(&self) -> Option<Vec<Score>> {
        self.game.challenge_scores()
    }

    fn side(&self, seat: Seat) -> Option<&'static str> {
        self.game.side(seat)
    }
}

impl<A: serde::Serialize + serde::de::DeserializeOwned> Actions<A> {
    pub(crate) fn none(seats: usize) -> Actions<A> {
        Actions { seats: (0..seats).map(|_| None).collect() }
    }

    /// Parses the agents' replies, plays them with `step`, and appends the accepted actions to `taken`. See
    /// [`AnyGame::play`].
    pub(crate) fn play(
        &mut self,
        replies: &[Option<&str>],
        taken: &mut Vec<u8>,
        events: &mut Events,
        step: impl FnOnce(&Actions<A>, &mut Events),
    ) {
        self.read(replies, events);
        step(self, events);
        events.rejections.sort_unstable();
        write_taken(self, events, taken);
    }

    /// Parses the agents' replies; invalid actions are rejected.
    fn read(&mut self, replies: &[Option<&str>], events: &mut Events) {
        events.clear();
        for (seat, list) in self.seats.iter_mut().enumerate() {
            *list = match replies.get(seat) {
                Some(Some(text)) => Some(read(text, seat, events)),
                _ => None,
            };
        }
    }
}

/// Parses the actions of a list. Each invalid action is rejected separately.
fn read<A: serde::de::DeserializeOwned>(text: &str, seat: usize, events: &mut Events) -> Vec<IndexedAction<A>> {
    let mut reject = |index: Option<usize>, reason: String| {
        events.rejections.push(Rejected { seat, index, reason: reason.into() });
    };
    let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(text) else {
        reject(None, "`actions` is not a list".to_owned());
        return Vec::new();
    };
    if list.len() > MAX_ACTIONS {
        reject(None, format!("{} actions, of which only the first {MAX_ACTIONS} are used", list.len()));
    }
    let mut offers = Vec::with_capacity(list.len().min(MAX_ACTIONS));
    for (index, raw) in list.into_iter().take(MAX_ACTIONS).enumerate() {
        match read_action(raw) {
            Ok(action) => offers.push(IndexedAction { index, action }),
            Err(reason) => reject(Some(index), reason),
        }
    }
    offers
}

/// Parses one action of a list. The error is the reason for its rejection.
pub(crate) fn read_action<A: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<A, String> {
    match raw.get().starts_with('{') {
        true => serde_json::from_str(raw.get()).map_err(|error| reason(&error)),
        false => Err("an action is an object".to_owned()),
    }
}

/// Returns the parser's message without the position. The rejection contains the action's index instead.
fn reason(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    if text.len() > MAX_REASON {
        let end = (0..=MAX_REASON).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn write_taken<A: serde::Serialize>(actions: &Actions<A>, events: &Events, taken: &mut Vec<u8>) {
    // The rejections are sorted by seat and index, so a binary search keeps many rejections cheap.
    let is_rejected = |seat: usize, index: usize| {
        events.rejections.binary_search_by(|event| (event.seat, event.index).cmp(&(seat, Some(index)))).is_ok()
    };
    taken.push(b'[');
    for (seat, list) in actions.seats.iter().enumerate() {
        if seat > 0 {
            taken.push(b',');
        }
        let Some(list) = list else {
            taken.extend_from_slice(b"null");
            continue;
        };
        taken.push(b'[');
        let mut is_first = true;
        for IndexedAction { index, action } in list {
            if !events.rejections.is_empty() && is_rejected(seat, *index) {
                continue;
            }
            if !is_first {
                taken.push(b',');
            }
            is_first = false;
            serde_json::to_writer(&mut *taken, action).expect("actions are plain data, and memory takes all");
        }
        taken.push(b']');
    }
    taken.push(b']');
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{AgentId, Seed};

    /// A game in which all agents add to one sum; the agent that exceeds 9 loses.
    struct Sum {
        config: SumConfig,
        sum: u64,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct SumConfig {
        most: u64,
    }

    impl Default for SumConfig {
        fn default() -> SumConfig {
            SumConfig { most: 9 }
        }
    }

    #[derive(Serialize, Deserialize)]
    #[serde(tag = "action", rename_all = "snake_case")]
    enum Add {
        Add { number: u64 },
    }

    impl Game for Sum {
        const NAME: &'static str = "sum";
        const DESCRIPTION: &'static str = "Adds.";
        const MODE: UpdateMode = UpdateMode::Simultaneous;
        const SEATS: RangeInclusive<usize> = 2..=3;
        const LIMITS: TimeLimits = TimeLimits { step_ms: 100, bank_ms: 0 };
        type Config = SumConfig;
        type Action = Add;

        fn new(config: SumConfig, _setup: Setup) -> Result<Sum, OptionsError> {
            Ok(Sum { config, sum: 0 })
        }
        fn config(&self) -> &SumConfig {
            &self.config
        }
        fn is_asked(&self, _seat: Seat) -> bool {
            true
        }
        fn write_state(&self, _seat: Seat, out: &mut Vec<u8>) {
            out.extend_from_slice(format!("\"sum\":{}", self.sum).as_bytes());
        }
        fn step(&mut self, actions: &Actions<Add>, events: &mut Events) {
            for seat in (0..3).map(Seat) {
                for IndexedAction { index, action: Add::Add { number } } in actions.of(seat) {
                    match number {
                        0 => events.reject(seat, *index, "0 adds nothing"),
                        number => self.sum = self.sum.saturating_add(*number),
                    }
                }
            }
        }
        fn disqualify(&mut self, _seat: Seat) {}
        fn termination(&self) -> Option<&'static str> {
            (self.sum > self.config.most).then_some("GAME_ENDED")
        }
        fn scores(&self) -> Vec<f64> {
            vec![0.0, 0.0]
        }
    }

    static SUM: GameType = GameType::of::<Sum>();

    fn start(agents: usize, options: Value) -> Result<Box<dyn AnyGame>, OptionsError> {
        let agents: Vec<AgentId> = (0..agents).map(|number| format!("a{number}").parse().unwrap()).collect();
        let Value::Object(options) = options else { unreachable!("options are an object") };
        SUM.start(&options, Setup { seed: Seed([1; 32]), agents })
    }

    /// Compares the accepted and rejected actions of one epoch with these replies, and the state after it.
    #[track_caller]
    fn check(replies: &[Option<&str>], expected: Expect) {
        let mut game = start(2, serde_json::json!({})).unwrap();
        let (mut taken, mut events) = (Vec::new(), Events::default());
        game.play(replies, &mut taken, &mut events);
        let mut actual = format!("{}\n", String::from_utf8(taken).unwrap());
        for Rejected { seat, index, reason } in events.rejections() {
            actual += &format!("{seat} {index:?} {reason}\n");
        }
        let mut state = Vec::new();
        game.write_state(Seat(0), &mut state);
        expected.assert_eq(&(actual + &String::from_utf8(state).unwrap()));
    }

    #[test]
    fn what_is_taken_is_told_without_unknown_keys() {
        check(
            &[Some(r#"[{"action":"add","number":2,"why":"?"},{"action":"add","number":0}]"#), None],
            expect![[r#"
                [[{"action":"add","number":2}],null]
                0 Some(1) 0 adds nothing
                "sum":2"#]],
        );
    }

    #[test]
    fn wrong_types_are_rejected_one_by_one() {
        check(
            &[
                Some(
                    r#"[null,7,{},{"action":"fly"},{"action":"add","number":-1},{"action":"add","number":1e999},{"action":"add","number":3}]"#,
                ),
                Some(r#"{"action":"add"}"#),
            ],
            expect![[r#"
                [[{"action":"add","number":3}],[]]
                0 Some(0) an action is an object
                0 Some(1) an action is an object
                0 Some(2) missing field `action`
                0 Some(3) unknown variant `fly`, expected `add`
                0 Some(4) invalid value: integer `-1`, expected u64
                0 Some(5) number out of range
                1 None `actions` is not a list
                "sum":3"#]],
        );
    }

    #[test]
    fn a_flood_of_actions_is_cut_off_and_long_reasons_too() {
        let list = vec![r#"{"action":"add","number":1}"#; MAX_ACTIONS + 1].join(",");
        let long = format!(r#"[{{"action":"{}"}}]"#, "é".repeat(500));
        let mut game = start(2, serde_json::json!({})).unwrap();
        let (mut taken, mut events) = (Vec::new(), Events::default());
        game.play(&[Some(&format!("[{list}]")), Some(&long)], &mut taken, &mut events);
        let mut state = Vec::new();
        game.write_state(Seat(0), &mut state);
        assert_eq!(String::from_utf8(state).unwrap(), format!("\"sum\":{MAX_ACTIONS}"));
        assert_eq!(events.rejections().len(), 2);
        assert!(events.rejections()[1].reason.len() < MAX_REASON + 8);
    }

    #[test]
    fn what_cannot_be_played_is_refused_with_the_reason() {
        let refused = |agents, options| start(agents, options).err().map(|error| error.to_string()).unwrap_or_default();
        expect!["sum is played by 2 to 3 agents, not by 4"].assert_eq(&refused(4, serde_json::json!({})));
        expect!["sum, option `least`: unknown field `least`, expected `most`"]
            .assert_eq(&refused(2, serde_json::json!({"least": 1})));
        expect![[r#"sum, option `most`: invalid type: string "many", expected a whole number of at least 0"#]]
            .assert_eq(&refused(2, serde_json::json!({"most": "many"})));
        assert_eq!(start(2, serde_json::json!({"most": 3})).unwrap().config()["most"], 3);
    }
}
