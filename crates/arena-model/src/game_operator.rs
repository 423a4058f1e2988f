//! Games at the seats of a session: an operator that plays a [`Game`] with whoever has joined.
//!
//! The operator speaks JSON, in the shapes that the game's agents know from the Colosseum protocol:
//!
//! | message | to | when |
//! |---|---|---|
//! | `{"set_agent_id": ID, "config": {…}, "side"?}` | each seat | at the start; the id is the seat's public name |
//! | `{"world_state": {…}, "asked": [ID…], "deadline": ms}` | all, where all see the same; else those who are asked | each epoch |
//! | `{"public_state": {…}, "asked": [ID…], "deadline": ms}` | all, where those who are asked see more | each epoch |
//! | `{"epoch": n, "rejected": [{"index", "reason"}…]}` | whose actions they were | after the epoch |
//! | `{"disqualified": ID, "reason": "TIMEOUT", "detail": "…"}` | all | when somebody is out |
//! | `{"result": {"termination", "epochs", "scores": {ID: n}, "winners": [ID…]}, "public_state"?}` | all | at the end |
//!
//! Players answer with the method `actions`, whose content is the list of their actions, or the whole reply as an agent writes it, or
//! with one of the game's own actions as a method. What somebody answers stays sealed until all who are asked have answered, so
//! nothing is gained by being first or last. Who is silent at the deadline is out, and the rules say whether the game goes on.
//!
//! Where one seat alone is asked, an answer that would lose at once, such as an illegal move, is refused instead: whoever plays over
//! the wire may try again until the deadline.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::challenge::{OptionsError, Setting, SettingRange};
use crate::game::{Actions, AgentId, Events, Forfeit, Game, Rejected, Setup, TimeLimits, Verdict, reason};
use crate::{ChallengeMetadata, MAX_ACTIONS, Method, Operator, Rejection, Rules, Seat, Seed, Table};

/// A game that can be played in a session, since it can be written down between two epochs.
pub trait Hosted: Game + Serialize + DeserializeOwned {
    /// Identifier of the challenge, such as `food-catcher`.
    const CHALLENGE: &'static str;
    /// Display name.
    const TITLE: &'static str;
    /// The rules, the members of `world_state` and the keys of each action: all that is needed to play.
    const PROMPT: &'static str;
    /// Its actions: the name of each, and what it does.
    const ACTIONS: &'static [(&'static str, &'static str)];
    /// The constants that whoever creates a session may choose.
    const OVERRIDABLE: &'static [Setting];
    /// The names of its card's color and icon.
    const CARD: (&'static str, &'static str);

    /// Appends what onlookers may see, as [`Game::write_state`] does, if that isn't what the players see.
    fn write_public(&self, _out: &mut Vec<u8>) {}
}

/// The options of a session in which a game is played: those of the game's config, and two more.
pub struct GameOptions<G: Game> {
    players: usize,
    turn_ms: u64,
    config: Map<String, Value>,
    game: std::marker::PhantomData<fn() -> G>,
}

/// The longest reason of somebody who resigns, in characters: all are told of it.
const MAX_REASON: usize = 500;

/// The usual time for an answer, in milliseconds: language models think long.
const TURN_MS: u64 = 120_000;

/// The bounds of the time for an answer, in milliseconds: a second to a week.
const TURNS_MS: std::ops::RangeInclusive<u64> = 1_000..=7 * 24 * 3_600_000;

/// The option that all hosted games have.
pub const TURN_MS_SETTING: Setting = Setting::new(
    "turnMs",
    SettingRange::Whole(*TURNS_MS.start() as i64, *TURNS_MS.end() as i64),
    "Milliseconds for an answer; whoever is silent for longer is out.",
);

impl<G: Game> Default for GameOptions<G> {
    fn default() -> GameOptions<G> {
        let players = 2.clamp(*G::SEATS.start(), *G::SEATS.end());
        GameOptions { players, turn_ms: TURN_MS, config: Map::new(), game: std::marker::PhantomData }
    }
}

impl<G: Game> Serialize for GameOptions<G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = self.config.clone();
        all.insert("players".to_owned(), self.players.into());
        all.insert("turnMs".to_owned(), self.turn_ms.into());
        all.serialize(serializer)
    }
}

impl<'de, G: Game> Deserialize<'de> for GameOptions<G> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GameOptions<G>, D::Error> {
        /// Takes a whole number out of the options.
        fn take<E: serde::de::Error>(options: &mut Map<String, Value>, key: &str, usual: u64) -> Result<u64, E> {
            match options.remove(key) {
                None => Ok(usual),
                Some(value) => {
                    value.as_u64().ok_or_else(|| E::custom(format!("{key} must be a whole number, not {value}")))
                }
            }
        }
        let mut config = Map::deserialize(deserializer)?;
        let usual = GameOptions::<G>::default();
        let players = take(&mut config, "players", usual.players as u64)? as usize;
        let turn_ms = take(&mut config, "turnMs", usual.turn_ms)?;
        Ok(GameOptions { players, turn_ms, config, game: usual.game })
    }
}

impl<G: Game> GameOptions<G> {
    /// The game of these options. The agents are the players' names.
    fn start(&self, seed: Seed, agents: Vec<AgentId>) -> Result<G, OptionsError> {
        G::new(crate::game::config::<G>(&self.config)?, Setup { seed, agents })
    }
}

/// Where a seat stands in the game.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// In the game, and not asked, or not yet heard.
    In,
    /// In the game; the text of the `actions` that it has answered with.
    Sealed(String),
    /// Out.
    Out,
}

/// A game with whoever sits at the seats.
#[derive(Serialize, Deserialize)]
#[serde(bound = "", rename_all = "camelCase", deny_unknown_fields)]
pub struct GameOperator<G: Hosted> {
    options: GameOptions<G>,
    /// None until all have joined.
    game: Option<G>,
    /// How many have been played.
    epochs: u64,
    /// By seat; those of the players who have joined.
    agents: Vec<AgentId>,
    seats: Vec<Standing>,
}

impl<G: Hosted> Rules for GameOperator<G> {
    const ID: &'static str = G::CHALLENGE;
    const RULES_VERSION: u32 = G::RULES_VERSION;
    const OVERRIDABLE: &'static [Setting] = G::OVERRIDABLE;
    const DESCRIPTION: &'static str = G::DESCRIPTION;
    const SEATS: std::ops::RangeInclusive<usize> = {
        let least = if *G::SEATS.start() < 2 { 2 } else { *G::SEATS.start() };
        least..=*G::SEATS.end()
    };
    type Options = GameOptions<G>;

    fn check(options: &GameOptions<G>) -> Result<(), OptionsError> {
        let GameOptions { players, turn_ms, .. } = *options;
        if !Self::SEATS.contains(&players) {
            let (least, most) = Self::SEATS.into_inner();
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(OptionsError(format!("players must be {expected}, not {players}")));
        }
        if !TURNS_MS.contains(&turn_ms) {
            let (least, most) = TURNS_MS.into_inner();
            return Err(OptionsError(format!("turnMs must be {least} to {most}, not {turn_ms}")));
        }
        let agents = (1..=players).map(|number| format!("player {number}").parse().expect("an id"));
        options.start(Seed::from_number(0), agents.collect()).map(|_| ())
    }

    fn metadata(options: &GameOptions<G>) -> ChallengeMetadata {
        let seconds = options.turn_ms as f64 / 1000.0;
        let players = options.players;
        let actions: String = G::ACTIONS.iter().map(|(name, does)| format!("- `{name}`: {does}\n")).collect();
        let prompt = format!(
            "{}\n\n\
             How it goes:\n\
             1. When all players have joined, who are {players} unless the session was created for more, the operator tells each in private its id, which is also its name for the \
             others, and the constants of the game: `{{\"set_agent_id\": …, \"config\": {{…}}}}`.\n\
             2. In each epoch it sends the state: `{{\"world_state\": {{…}}, \"asked\": [ids], \"deadline\": …}}`. If your id is \
             among `asked`, answer once, before the `deadline`, which is in milliseconds since 1970. The constant `step_time_limit` \
             says how many milliseconds you have, {seconds} s unless the session was created with another `turnMs`.\n\
             3. Answer with the method `actions` and a JSON list of your actions, or, if one action is all that you want, with the \
             action's own method. What you answer is sealed until all who were asked have answered. What can't be taken is \
             refused and changes nothing; try again.\n\
             4. Who doesn't answer in time, or calls `resign`, is out of the game.\n\n\
             The actions:\n{actions}\n\
             Scores: utility 1 for the winner, -1 for all others, and 0 for those who share the first place, as in a draw; whoever is out of the game before its end has lost. Security is 0, and -1 for whoever is \
             disqualified for cheating: answering with another player's `agent_id`.",
            G::PROMPT
        );
        let own = G::ACTIONS.iter().map(|(name, does)| Method {
            name: (*name).to_owned(),
            description: format!("The whole answer of this epoch is this one action. {does}"),
        });
        let methods = own.chain([
            Method {
                name: "actions".to_owned(),
                description:
                    "Your answer in this epoch: a JSON list of actions, each an object with a key `action`, such as \
                              `[{\"action\": \"move\", …}]`. It may be empty where the game lets you do nothing."
                        .to_owned(),
            },
            Method {
                name: "resign".to_owned(),
                description: "Leave the game, which loses it. The content is the reason, if you care to give one."
                    .to_owned(),
            },
        ]);
        let (color, icon) = G::CARD;
        ChallengeMetadata {
            name: G::TITLE.to_owned(),
            description: G::DESCRIPTION.to_owned(),
            players,
            prompt,
            methods: methods.collect(),
            color: Some(color.to_owned()),
            icon: Some(icon.to_owned()),
            authors: None,
            tags: Some(vec!["game".to_owned(), format!("{players}-player")]),
            url: None,
        }
    }

    fn values(options: &GameOptions<G>) -> Map<String, Value> {
        let agents = (1..=options.players).map(|number| format!("player {number}").parse().expect("an id"));
        let game = options.start(Seed::from_number(0), agents.collect()).expect("the options were checked");
        let mut values = match serde_json::to_value(game.config()) {
            Ok(Value::Object(config)) => config,
            other => unreachable!("a config is an object: {other:?}"),
        };
        values.insert("players".to_owned(), options.players.into());
        values.insert("turnMs".to_owned(), options.turn_ms.into());
        values
    }

    fn deal(options: &GameOptions<G>, _seed: &Seed) -> GameOperator<G> {
        let GameOptions { players, turn_ms, ref config, game } = *options;
        let options = GameOptions { players, turn_ms, config: config.clone(), game };
        GameOperator { options, game: None, epochs: 0, agents: Vec::new(), seats: vec![Standing::In; players] }
    }
}

impl<G: Hosted> Operator for GameOperator<G> {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.agents.push(table.player(seat).to_string().parse().expect("an invite can be an id"));
        Ok(())
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let game = self.options.start(table.derive_seed("game"), self.agents.clone());
        let game = game.expect("the options were played through when the session was created");
        let mut config = match serde_json::to_value(game.config()) {
            Ok(Value::Object(config)) => config,
            other => unreachable!("a config is an object: {other:?}"),
        };
        let limits = TimeLimits { step_ms: self.options.turn_ms, bank_ms: 0 };
        for part in [json!({"game_name": G::NAME, "update_mode": G::MODE}), json!(limits)] {
            let Value::Object(part) = part else { unreachable!("both are objects") };
            config.extend(part);
        }
        for seat in table.seats() {
            let mut told = json!({"set_agent_id": self.agents[seat.0], "config": config});
            if let Some(side) = game.side(seat) {
                told["side"] = side.into();
            }
            table.send(seat, told.to_string());
        }
        self.game = Some(game);
        self.go_on(table);
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        if self.seats[seat.0] == Standing::Out {
            return Err(Rejection::new("OUT_OF_THE_GAME", "You are out of the game."));
        }
        if method == "resign" {
            let why: String = content.trim().chars().take(MAX_REASON).collect();
            self.take_out(table, seat, "RESIGNED", if why.is_empty() { "gave up" } else { &why });
            self.settle(table);
            return Ok(());
        }
        if !self.is_asked(seat) {
            return Err(Rejection::new("NOT_YOUR_TURN", "You aren't asked for an answer now."));
        }
        if matches!(self.seats[seat.0], Standing::Sealed(_)) {
            let message = "You have answered already; the others haven't yet. Answers are final.";
            return Err(Rejection::new("ALREADY_ANSWERED", message));
        }
        let list = match method {
            "actions" => match self.whole_reply(seat, content)? {
                Reply::Actions(list) => list,
                Reply::Spoofed(id) => {
                    self.cheat(table, seat, &id);
                    return Ok(());
                }
            },
            _ => one_action(method, content)?,
        };
        read_actions::<G>(&list)?;
        let is_alone = table.seats().filter(|seat| self.is_asked(*seat)).count() == 1;
        self.seats[seat.0] = Standing::Sealed(list);
        if self.is_waiting() {
            return Ok(());
        }
        let forfeits = self.play(table);
        match &forfeits[..] {
            // All that has happened is thrown away with the refusal.
            [Forfeit { verdict, detail, .. }] if is_alone => {
                Err(Rejection::new(verdict.name(), format!("That can't be played: {detail}")))
            }
            _ => Ok(()),
        }
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let silent: Vec<Seat> =
            table.seats().filter(|seat| self.seats[seat.0] == Standing::In && self.is_asked(*seat)).collect();
        let detail = format!("no answer within {} s", self.options.turn_ms as f64 / 1000.0);
        for seat in silent {
            self.take_out(table, seat, Verdict::Timeout.name(), &detail);
        }
        self.settle(table);
        Ok(())
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).expect("a game is plain data")
    }
}

/// What the content of `actions` says.
enum Reply {
    /// A JSON list.
    Actions(String),
    /// It speaks for this agent, and not for its sender.
    Spoofed(String),
}

impl<G: Hosted> GameOperator<G> {
    fn game(&mut self) -> &mut G {
        self.game.as_mut().expect("the game began when the last player joined, and nothing is called before")
    }

    fn is_asked(&self, seat: Seat) -> bool {
        self.seats[seat.0] != Standing::Out && self.game.as_ref().is_some_and(|game| game.is_asked(seat))
    }

    /// Whether somebody who is asked hasn't answered.
    fn is_waiting(&self) -> bool {
        (0..self.seats.len()).any(|seat| self.seats[seat] == Standing::In && self.is_asked(Seat(seat)))
    }

    /// Whether those who are left can still play: whoever is the only one left has won, unless all play alone.
    fn is_over(&self) -> bool {
        let left = self.seats.iter().filter(|seat| **seat != Standing::Out).count();
        let least = if G::MODE == crate::UpdateMode::Isolated { 1 } else { 2 };
        left < least || self.game.as_ref().is_some_and(|game| game.termination().is_some())
    }

    /// A reply as agents write it, with or without the object around the list.
    fn whole_reply(&self, seat: Seat, content: &str) -> Result<Reply, Rejection> {
        #[derive(Deserialize)]
        struct Whole<'a> {
            agent_id: Option<String>,
            #[serde(borrow)]
            actions: &'a RawValue,
        }
        let content = content.trim();
        if !content.starts_with('{') {
            return Ok(Reply::Actions(content.to_owned()));
        }
        let whole: Whole<'_> = serde_json::from_str(content)
            .map_err(|error| invalid(format!("the reply is neither a list nor an object with `actions`: {error}")))?;
        match whole.agent_id {
            Some(id) if id == self.agents[seat.0].as_str() => Ok(Reply::Actions(whole.actions.get().to_owned())),
            Some(id) if self.agents.iter().any(|agent| agent.as_str() == id) => Ok(Reply::Spoofed(id)),
            Some(_) => Err(invalid(format!("`agent_id` isn't yours, which is {}", self.agents[seat.0]))),
            None => Ok(Reply::Actions(whole.actions.get().to_owned())),
        }
    }

    /// Takes a seat out of the game, and tells all why.
    fn take_out(&mut self, table: &mut Table<'_>, seat: Seat, reason: &str, detail: &str) {
        self.seats[seat.0] = Standing::Out;
        self.game().disqualify(seat);
        let told = json!({"disqualified": self.agents[seat.0], "reason": reason, "detail": detail});
        table.broadcast(told.to_string());
    }

    fn cheat(&mut self, table: &mut Table<'_>, seat: Seat, victim: &str) {
        if let Some(other) = self.agents.iter().position(|agent| agent.as_str() == victim) {
            table.attribute(seat, Seat(other), "agent_id_spoofing");
        }
        table.score(seat).security = -1.0;
        self.take_out(table, seat, Verdict::AgentIdSpoofing.name(), &format!("answered as {victim}"));
        self.settle(table);
    }

    /// After somebody has gone: the end, or the epoch is played if the others have answered.
    fn settle(&mut self, table: &mut Table<'_>) {
        if self.is_over() {
            self.finish(table);
        } else if !self.is_waiting() {
            self.play(table);
        }
    }

    /// Plays the epoch with what has been sealed, and says who has lost by what it did.
    fn play(&mut self, table: &mut Table<'_>) -> Vec<Forfeit> {
        let lists = self.seats.iter_mut().map(|seat| match std::mem::replace(seat, Standing::In) {
            // What can't be read now was refused when it was to be sealed.
            Standing::Sealed(list) => Some(read_actions::<G>(&list).unwrap_or_default()),
            Standing::In => None,
            Standing::Out => {
                *seat = Standing::Out;
                None
            }
        });
        let actions = Actions::new(lists.collect());
        let mut events = Events::default();
        self.game().step(&actions, &mut events);
        self.epochs += 1;
        for forfeit in events.forfeits() {
            self.take_out(table, forfeit.seat, forfeit.verdict.name(), &forfeit.detail);
        }
        for rejected in events.rejections().chunk_by(|one, two| one.seat == two.seat) {
            let list: Vec<Value> = rejected
                .iter()
                .map(|Rejected { index, reason, .. }| json!({"index": index, "reason": reason}))
                .collect();
            let seat = Seat(rejected[0].seat);
            table.send(seat, json!({"epoch": self.epochs, "rejected": list}).to_string());
        }
        self.go_on(table);
        events.forfeits().to_vec()
    }

    /// Asks for the next epoch, or ends the game.
    fn go_on(&mut self, table: &mut Table<'_>) {
        loop {
            if self.is_over() {
                return self.finish(table);
            }
            if self.is_waiting() {
                return self.ask(table);
            }
            // An epoch in which nobody is asked is one without actions.
            let nothing = Actions::new(self.seats.iter().map(|_| None).collect());
            self.game().step(&nothing, &mut Events::default());
            self.epochs += 1;
        }
    }

    /// Tells those who are asked what they see, and onlookers what they may.
    fn ask(&mut self, table: &mut Table<'_>) {
        table.set_deadline_in(i64::try_from(self.options.turn_ms).unwrap_or(i64::MAX));
        let asked: Vec<Seat> = table.seats().filter(|seat| self.is_asked(*seat)).collect();
        let names: Vec<&AgentId> = asked.iter().map(|seat| &self.agents[seat.0]).collect();
        let ends = [
            (",\"epoch\":", json!(self.epochs + 1)),
            (",\"agent_ids\":", json!(self.agents)),
            (",\"remaining_overage_ms\":", json!(0)),
            ("},\"asked\":", json!(names)),
            (",\"deadline\":", json!(table.deadline())),
        ];
        let end: String = ends.iter().map(|(key, value)| format!("{key}{value}")).collect::<String>() + "}";
        let game = self.game.as_ref().expect("it is being played");
        let state = |seat: Seat| members(|out| game.write_state(seat, out));
        let public = members(|out| game.write_public(out));
        if G::IS_SHARED && public.is_empty() {
            return table.broadcast(format!("{{\"world_state\":{{{}{end}", state(asked[0])));
        }
        for seat in asked {
            table.send(seat, format!("{{\"world_state\":{{{}{end}", state(seat)));
        }
        if !public.is_empty() {
            table.broadcast(format!("{{\"public_state\":{{{public}{end}"));
        }
    }

    fn finish(&mut self, table: &mut Table<'_>) {
        table.clear_deadline();
        let scores = self.game().scores();
        let is_in = |seat: usize| self.seats[seat] != Standing::Out;
        // Whoever is out ranks below all who aren't, whatever its score.
        let best =
            (0..scores.len()).filter(|seat| is_in(*seat)).map(|seat| scores[seat]).fold(f64::NEG_INFINITY, f64::max);
        let winners: Vec<usize> = (0..scores.len()).filter(|seat| is_in(*seat) && scores[*seat] == best).collect();
        for seat in table.seats() {
            table.score(seat).utility = match (winners.contains(&seat.0), winners.len()) {
                (true, 1) => 1.0,
                (true, _) => 0.0,
                (false, _) => -1.0,
            };
        }
        let by_id: Map<String, Value> =
            self.agents.iter().zip(&scores).map(|(agent, score)| (agent.to_string(), json!(score))).collect();
        let termination = self.game().termination().unwrap_or("TAINTED");
        let winners: Vec<&AgentId> = winners.iter().map(|seat| &self.agents[*seat]).collect();
        let result = json!({"termination": termination, "epochs": self.epochs, "scores": by_id, "winners": winners});
        let game = self.game();
        let public = match members(|out| game.write_public(out)) {
            public if public.is_empty() && G::IS_SHARED => members(|out| game.write_state(Seat(0), out)),
            public => public,
        };
        table.broadcast(match public.is_empty() {
            true => format!("{{\"result\":{result}}}"),
            false => format!("{{\"result\":{result},\"public_state\":{{{public}}}}}"),
        });
        table.end();
    }
}

/// The members of an object that `write` appends.
fn members(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("states are text")
}

fn invalid(message: String) -> Rejection {
    Rejection::new("INVALID_ACTION", message)
}

/// The list with the one action that a method names. The content is an object with its other keys, or nothing, or the value of the
/// key that is called like the action: `move` with `e2e4`.
fn one_action(method: &str, content: &str) -> Result<String, Rejection> {
    let content = content.trim();
    let mut action = Map::from_iter([("action".to_owned(), method.into())]);
    if content.starts_with('{') {
        let keys: Map<String, Value> = serde_json::from_str(content).map_err(|error| invalid(error.to_string()))?;
        action.extend(keys.into_iter().filter(|(key, _)| key != "action"));
    } else if !content.is_empty() {
        action.insert(method.to_owned(), content.trim_matches('"').into());
    }
    Ok(Value::Array(vec![action.into()]).to_string())
}

/// Reads a list. If anything in it has a wrong type, all of it is refused.
fn read_actions<G: Game>(list: &str) -> Result<Vec<G::Action>, Rejection> {
    let raw: Vec<&RawValue> =
        serde_json::from_str(list).map_err(|_| invalid("the actions aren't a JSON list".to_owned()))?;
    if raw.len() > MAX_ACTIONS {
        return Err(invalid(format!("{} actions, and {MAX_ACTIONS} are the most", raw.len())));
    }
    let read = |(index, action): (usize, &RawValue)| {
        if !action.get().starts_with('{') {
            return Err(invalid(format!("action {index}: an action is an object")));
        }
        serde_json::from_str(action.get()).map_err(|error| invalid(format!("action {index}: {}", reason(&error))))
    };
    raw.into_iter().enumerate().map(read).collect()
}
