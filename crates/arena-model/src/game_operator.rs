//! Games as challenges: an operator that plays a [`Game`] with the players of a session.
//!
//! The operator's messages are JSON in the shapes of the Colosseum protocol:
//!
//! | message | to | when |
//! |---|---|---|
//! | `{"set_agent_id": ID, "config": {…}, "side"?}` | each seat | at the start; the id is the seat's public name |
//! | `{"world_state": {…}, "asked": [ID…], "deadline": ms}` | all if all see the same, else the moving seats | each epoch |
//! | `{"public_state": {…}, "asked": [ID…], "deadline": ms}` | all, if the moving seats see more | each epoch |
//! | `{"epoch": n, "rejected": [{"index", "reason"}…]}` | the sender of the actions | after the epoch |
//! | `{"disqualified": ID, "reason": "TIMEOUT", "detail": "…"}` | all | when a player is out |
//! | `{"result": {"termination", "epochs", "scores": {ID: n}, "winners": [ID…]}, "public_state"?}` | all | at the end |
//!
//! Players answer with the method `actions`. Its content is the list of actions, or a whole reply as agents write
//! it. Each action of the game is also a method of its own. An answer stays sealed until all moving players have
//! answered, so the order of the answers gives no advantage. A player without an answer at the deadline is out, and the
//! rules decide if the game goes on.
//!
//! If only one seat moves, an action that would lose at once, such as an illegal move, is refused instead: the
//! player may try again until the deadline.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::challenge::{OptionsError, Setting, SettingRange};
use crate::game::{
    AgentId, AnyGame, Events, Forfeit, Game, Match, Owner, Rejected, Running, SeatState, Setup, TimeLimits, Verdict,
    read_action,
};
use crate::telling::in_short;
use crate::{ChallengeMetadata, EndedGame, MAX_ACTIONS, Method, Operator, Rejection, Rules, Scene, Seat, Seed, Table};

/// A game that a session can play, because its state can be stored between two epochs.
pub trait Hosted: Game + Serialize + DeserializeOwned {
    /// The identifier of the challenge, such as `food-catcher`.
    const CHALLENGE: &'static str;
    /// The display name.
    const TITLE: &'static str;
    /// The instructions for players: the rules, the members of `world_state` and the keys of each action.
    const PROMPT: &'static str;
    /// The game's actions: the name and effect of each.
    const ACTIONS: &'static [(&'static str, &'static str)];
    /// The constants that the creator of a session may choose.
    const OVERRIDABLE: &'static [Setting];
    /// The color and icon of the challenge's card.
    const CARD: (&'static str, &'static str);

    /// Appends the spectators' state, in the form of [`Game::write_state`], if it differs from the players' state.
    fn write_public(&self, _out: &mut Vec<u8>) {}

    /// Returns the cause of the end in words that follow "Ada won" or "Ada and Bob drew", such as `by checkmate`.
    /// `None` if the scores say it.
    fn ending(&self) -> Option<String> {
        None
    }

    /// Draws the game as SVG from the state that all see. After the end of a game in which each agent has a world of
    /// its own, `states` has the states of all seats.
    fn draw(_scene: &Scene<'_>, _states: &[Value]) -> Option<String> {
        None
    }
}

/// The options of a session that plays a game: the number of players, the time for an answer, and the game's config.
pub struct GameOptions<G: Game> {
    players: usize,
    turn_ms: u64,
    config: Map<String, Value>,
    game: std::marker::PhantomData<fn() -> G>,
}

/// The maximum length of a resignation's reason, in characters; all players see it.
const MAX_REASON: usize = 500;

/// The default time for an answer, in milliseconds. The default is long because language models answer slowly.
const TURN_MS: u64 = 120_000;

/// The bounds of the time for an answer, in milliseconds: one second to one week.
const TURNS_MS: std::ops::RangeInclusive<u64> = 1_000..=7 * 24 * 3_600_000;

/// The time option of all hosted games.
pub const TURN_MS_SETTING: Setting = Setting::new(
    "turnMs",
    SettingRange::Whole(*TURNS_MS.start() as i64, *TURNS_MS.end() as i64),
    "Time limit for an answer, in milliseconds; a player without an answer is out.",
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
        /// Removes an integer from the options and returns it.
        fn take<E: serde::de::Error>(options: &mut Map<String, Value>, key: &str, usual: u64) -> Result<u64, E> {
            match options.remove(key) {
                None => Ok(usual),
                Some(value) => value
                    .as_u64()
                    .ok_or_else(|| E::custom(format!("expected a whole number of at least 0, not {value}"))),
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
    /// Starts the game with these options. The agents' ids are the players' names.
    fn start(&self, seed: Seed, agents: Vec<AgentId>) -> Result<G, OptionsError> {
        G::new(crate::game::config::<G>(&self.config)?, Setup { seed, agents })
    }
}

#[derive(Deserialize)]
#[serde(bound = "", from = "Stored<GameOptions<G>, G, Vec<AgentId>, Vec<SeatState>>")]
pub struct GameOperator<G: Hosted> {
    options: GameOptions<G>,
    /// The agent ids of the joined players, by seat.
    agents: Vec<AgentId>,
    /// The match, or `None` until all players have joined.
    play: Option<Match<Running<G>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<O, G, A, S> {
    options: O,
    game: Option<G>,
    epochs: u64,
    agents: A,
    seats: S,
}

impl<G: Hosted> From<Stored<GameOptions<G>, G, Vec<AgentId>, Vec<SeatState>>> for GameOperator<G> {
    fn from(stored: Stored<GameOptions<G>, G, Vec<AgentId>, Vec<SeatState>>) -> GameOperator<G> {
        let Stored { options, game, epochs, agents, seats } = stored;
        let game = game.map(|game| Box::new(Running::new(game, seats.len())));
        let play = game.map(|game| Match::resume(game, agents.clone(), seats, epochs));
        GameOperator { options, agents, play }
    }
}

impl<G: Hosted> Serialize for GameOperator<G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (options, agents) = (&self.options, &self.agents);
        match &self.play {
            Some(play) => {
                let (game, epochs, seats) = (Some(&play.game().game), play.epochs(), &play.seats[..]);
                Stored { options, game, epochs, agents, seats }.serialize(serializer)
            }
            None => {
                let (game, seats) = (None::<&G>, vec![SeatState::In; options.players]);
                Stored { options, game, epochs: 0, agents, seats }.serialize(serializer)
            }
        }
    }
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
             How the game works:\n\
             1. When all players have joined ({players}, unless the session was created for another number), the operator sends each \
             player in private its id, which is also its name for the other players, and the constants of the game: \
             `{{\"set_agent_id\": …, \"config\": {{…}}}}`.\n\
             2. In each epoch the operator sends the state: `{{\"world_state\": {{…}}, \"asked\": [ids], \"deadline\": …}}`. If your id \
             is in `asked`, answer once, before the `deadline`, which is in milliseconds since 1970. The constant `step_time_limit` \
             is your time in milliseconds: {seconds} s, unless the session was created with another `turnMs`.\n\
             3. Answer with the method `actions` and a JSON list of your actions, or, for a single action, with the action's own \
             method. Your answer stays secret until all players in `asked` have answered. A refused answer changes nothing; try \
             again.\n\
             4. A player that doesn't answer in time, or calls `resign`, is out of the game.\n\n\
             The actions:\n{actions}\n\
             Scores:\n\
             - utility: 1 for the winner, -1 for all others, and 0 for players that share the first place, as in a draw. A player \
             that is out of the game before its end has lost.\n\
             - security: 0; -1 for a player that is disqualified for cheating, which is to answer with another player's `agent_id`.",
            G::PROMPT
        );
        let own = G::ACTIONS.iter().map(|(name, does)| Method {
            name: (*name).to_owned(),
            description: format!("Answer this epoch with this action only. {does}"),
        });
        let methods = own.chain([
            Method {
                name: "actions".to_owned(),
                description:
                    "Your answer in this epoch: a JSON list of actions, each an object with a key `action`, such as \
                              `[{\"action\": \"move\", …}]`. It may be empty if the game allows an epoch without an action."
                        .to_owned(),
            },
            Method {
                name: "resign".to_owned(),
                description: "Leave the game, which loses it. The content may be a reason."
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
        let mut values = Running::new(game, options.players).config();
        values.insert("players".to_owned(), options.players.into());
        values.insert("turnMs".to_owned(), options.turn_ms.into());
        values
    }

    fn deal(options: &GameOptions<G>, _seed: &Seed) -> GameOperator<G> {
        let GameOptions { players, turn_ms, ref config, game } = *options;
        let options = GameOptions { players, turn_ms, config: config.clone(), game };
        GameOperator { options, agents: Vec::new(), play: None }
    }

    fn tell(ended: &EndedGame<'_>, rules: Option<&GameOperator<G>>) -> String {
        let Some(play) = rules.and_then(|rules| rules.play.as_ref()) else { return ended.tell_scores() };
        let game = &play.game().game;
        let scores = game.scores();
        let (stayed, left): (Vec<Seat>, Vec<Seat>) = ended.seats().partition(|seat| play.is_in(*seat));
        let best = ended.seats().map(|seat| ended.utility(seat)).fold(f64::NEG_INFINITY, f64::max);
        let first: Vec<Seat> = ended.seats().filter(|seat| best >= 0.0 && ended.utility(*seat) >= best).collect();
        // The scores of the first, and then of the others, such as `7 to 5`.
        let numbers = |first: &[Seat]| {
            let others = ended.seats().filter(|seat| !first.contains(seat));
            let order = first.iter().copied().take(1).chain(others);
            let texts: Vec<String> =
                order.filter_map(|seat| scores.get(seat.0).map(|score| in_short(*score))).collect();
            format!("by {}", texts.join(" to "))
        };
        match first[..] {
            [] => "All players left the game.".to_owned(),
            [winner] if stayed == [winner] && !left.is_empty() => {
                format!("{} won, because {} dropped out.", ended.name(winner), ended.name_list(&left))
            }
            [winner] => {
                let side = game.side(winner).map(|side| format!(" with {}", capitalized(side))).unwrap_or_default();
                let how = game.ending().unwrap_or_else(|| numbers(&first));
                format!("{} won{side} {how}.", ended.name(winner))
            }
            _ => {
                let score = first.first().and_then(|seat| scores.get(seat.0)).copied().unwrap_or(0.0);
                let how = game.ending().unwrap_or_else(|| format!("with {} each", in_short(score)));
                let verb = if first.len() == ended.names.len() { "drew" } else { "shared the first place" };
                format!("{} {verb} {how}.", ended.name_list(&first))
            }
        }
    }

    fn draw(scene: &Scene<'_>, rules: Option<&GameOperator<G>>) -> Option<String> {
        let Some(play) = rules.and_then(|rules| rules.play.as_ref()) else {
            return G::draw(scene, &[scene.latest_state()?]);
        };
        let game = &play.game().game;
        let public = members(|out| game.write_public(out));
        let states = match public.is_empty() {
            false => vec![public],
            true => {
                let worlds = if G::IS_SHARED { 1 } else { play.agents().len() };
                (0..worlds).map(|seat| members(|out| game.write_state(Seat(seat), out))).collect()
            }
        };
        let states: Result<Vec<Value>, _> =
            states.iter().map(|members| serde_json::from_str(&format!("{{{members}}}"))).collect();
        G::draw(scene, &states.ok()?)
    }
}

/// Returns a word in upper case with only its first letter in upper case: `WHITE` becomes `White`.
fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| format!("{first}{}", chars.as_str().to_lowercase()))
}

impl<G: Hosted> Operator for GameOperator<G> {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.agents.push(table.player(seat).to_string().parse().expect("an invite can be an id"));
        Ok(())
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let game = self.options.start(table.derive_seed("game"), self.agents.clone());
        let game = game.expect("the options were played through when the session was created");
        let play = Match::new(Box::new(Running::new(game, self.agents.len())), self.agents.clone());
        let config = play.config(TimeLimits { step_ms: self.options.turn_ms, bank_ms: 0 });
        for seat in table.seats() {
            let mut notice = json!({"set_agent_id": self.agents[seat.0], "config": config});
            if let Some(side) = play.game().side(seat) {
                notice["side"] = side.into();
            }
            table.send(seat, notice.to_string());
        }
        self.play = Some(play);
        self.go_on(table);
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        let play = self.play();
        if !play.is_in(seat) {
            return Err(Rejection::new("OUT_OF_THE_GAME", "You are out of the game."));
        }
        if method == "resign" {
            let why: String = content.trim().chars().take(MAX_REASON).collect();
            self.take_out(table, seat, "RESIGNED", if why.is_empty() { "gave up" } else { &why });
            self.settle(table);
            return Ok(());
        }
        if !play.is_asked(seat) {
            return Err(Rejection::new(
                "NOT_YOUR_TURN",
                "It isn't your turn. Wait for a state with your id in `asked`.",
            ));
        }
        if !play.is_waiting_for(seat) {
            let message = "You have already answered in this epoch, and answers are final. Wait for the other players.";
            return Err(Rejection::new("ALREADY_ANSWERED", message));
        }
        let list = match method {
            "actions" => match whole_reply(play.agents(), seat, content)? {
                Reply::Actions(list) => list,
                Reply::Spoofed(victim) => {
                    self.cheat(table, seat, victim);
                    return Ok(());
                }
            },
            _ => one_action(method, content)?,
        };
        check_actions::<G>(&list)?;
        let is_alone = table.seats().filter(|seat| play.is_asked(*seat)).count() == 1;
        play.seal(seat, list);
        if self.is_waiting() {
            return Ok(());
        }
        match self.play_epoch(table).forfeits() {
            // The caller discards all changes of a rejected action, so the player may try again.
            [Forfeit { verdict, detail, .. }] if is_alone => {
                Err(Rejection::new(verdict.name(), format!("This action cannot be played: {detail}")))
            }
            _ => Ok(()),
        }
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let play = self.play();
        let silent: Vec<Seat> = table.seats().filter(|seat| play.is_waiting_for(*seat)).collect();
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

/// The parsed content of `actions`.
enum Reply {
    /// A JSON list.
    Actions(String),
    /// A reply with the agent id of another player, at this seat.
    Spoofed(usize),
}

impl<G: Hosted> GameOperator<G> {
    fn play(&mut self) -> &mut Match<Running<G>> {
        self.play.as_mut().expect("the match began when the last player joined, and nothing is called before")
    }

    /// Returns true if a moving player hasn't answered.
    fn is_waiting(&mut self) -> bool {
        let play = self.play();
        (0..play.agents().len()).any(|seat| play.is_waiting_for(Seat(seat)))
    }

    /// Takes a seat out of the game and announces the reason.
    fn take_out(&mut self, table: &mut Table<'_>, seat: Seat, reason: &str, detail: &str) {
        self.play().remove(seat);
        self.announce_out(table, seat, reason, detail);
    }

    fn announce_out(&self, table: &mut Table<'_>, seat: Seat, reason: &str, detail: &str) {
        let notice = json!({"disqualified": self.agents[seat.0], "reason": reason, "detail": detail});
        table.broadcast(notice.to_string());
    }

    fn cheat(&mut self, table: &mut Table<'_>, seat: Seat, victim: usize) {
        table.attribute(seat, Seat(victim), "agent_id_spoofing");
        table.score(seat).security = -1.0;
        let detail = format!("answered as {}", self.agents[victim]);
        self.take_out(table, seat, Verdict::AgentIdSpoofing.name(), &detail);
        self.settle(table);
    }

    /// Continues after a player is out: ends the game, or plays the epoch if all other moving players have answered.
    fn settle(&mut self, table: &mut Table<'_>) {
        if !self.play().is_on() {
            self.finish(table);
        } else if !self.is_waiting() {
            self.play_epoch(table);
        }
    }

    /// Plays the epoch with the sealed answers, and announces forfeits and rejections.
    fn play_epoch(&mut self, table: &mut Table<'_>) -> Events {
        let play = self.play();
        let replies = play.unseal();
        let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        play.play(|game, events| game.step(&replies, events));
        let (epoch, events) = (play.epochs(), play.events().clone());
        for Forfeit { seat, verdict, detail } in events.forfeits() {
            self.announce_out(table, *seat, verdict.name(), detail);
        }
        for rejected in events.rejections().chunk_by(|one, two| one.seat == two.seat) {
            let list: Vec<Value> = rejected
                .iter()
                .map(|Rejected { index, reason, .. }| json!({"index": index, "reason": reason}))
                .collect();
            let seat = Seat(rejected[0].seat);
            table.send(seat, json!({"epoch": epoch, "rejected": list}).to_string());
        }
        self.go_on(table);
        events
    }

    /// Requests the actions of the next epoch, or ends the game.
    fn go_on(&mut self, table: &mut Table<'_>) {
        while self.play().is_on() {
            if self.is_waiting() {
                return self.ask(table);
            }
            // An epoch in which no seat moves is played without actions.
            self.play().play(|game, events| game.step(&[], events));
        }
        self.finish(table);
    }

    /// Sends the state to the moving players and the public state to the others.
    fn ask(&mut self, table: &mut Table<'_>) {
        table.set_deadline_in(i64::try_from(self.options.turn_ms).unwrap_or(i64::MAX));
        let play = self.play();
        let asked: Vec<Seat> = table.seats().filter(|seat| play.is_asked(*seat)).collect();
        let names: Vec<&AgentId> = asked.iter().map(|seat| &play.agents()[seat.0]).collect();
        let (names, deadline) = (json!(names), json!(table.deadline()));
        let end = format!(",\"remaining_overage_ms\":0}},\"asked\":{names},\"deadline\":{deadline}}}");
        let state = |seat: Seat| format!("{{\"world_state\":{{{}{end}", members(|out| play.write_state(seat, out)));
        let public = members(|out| play.game().game.write_public(out));
        if G::IS_SHARED && public.is_empty() {
            return table.broadcast(state(asked[0]));
        }
        for seat in asked {
            table.send(seat, state(seat));
        }
        if !public.is_empty() {
            let envelope = members(|out| play.write_envelope(out));
            table.broadcast(format!("{{\"public_state\":{{{public}{envelope}{end}"));
        }
    }

    fn finish(&mut self, table: &mut Table<'_>) {
        table.clear_deadline();
        let play = self.play();
        let (game, winners) = (play.game(), play.winners());
        for seat in table.seats() {
            table.score(seat).utility = match (winners.contains(&seat.0), winners.len()) {
                (true, 1) => 1.0,
                (true, _) => 0.0,
                (false, _) => -1.0,
            };
        }
        let scores = play.agents().iter().zip(game.scores());
        let by_id: Map<String, Value> = scores.map(|(agent, score)| (agent.to_string(), json!(score))).collect();
        let termination = game.termination().unwrap_or("TAINTED");
        let winners: Vec<&AgentId> = winners.iter().map(|seat| &play.agents()[*seat]).collect();
        let result = json!({"termination": termination, "epochs": play.epochs(), "scores": by_id, "winners": winners});
        let public = match members(|out| game.game.write_public(out)) {
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

/// Parses the content of `actions`: a list of actions, or an agent's whole reply with the keys `agent_id` and
/// `actions`.
fn whole_reply(agents: &[AgentId], seat: Seat, content: &str) -> Result<Reply, Rejection> {
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
    let own = &agents[seat.0];
    match whole.agent_id.map_or(Owner::Sender, |id| Owner::of(&id, own, agents.iter().map(AgentId::as_str))) {
        Owner::Sender => Ok(Reply::Actions(whole.actions.get().to_owned())),
        Owner::Player(victim) => Ok(Reply::Spoofed(victim)),
        Owner::Stranger => Err(invalid(format!("`agent_id` must be your own id, {own}"))),
    }
}

/// Calls `write` with an empty buffer and returns the appended text: members of a JSON object, without braces.
fn members(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("states are text")
}

fn invalid(message: String) -> Rejection {
    Rejection::new("INVALID_ACTION", message)
}

/// Returns a JSON list with one action, named by `method`. `content` is an object with the action's other keys, an
/// empty text, or the value of the key that has the action's name: `e2e4` for `move`.
///
/// # Errors
/// If `content` begins with a brace but isn't a JSON object.
pub fn one_action(method: &str, content: &str) -> Result<String, Rejection> {
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

/// Returns an error if `list` isn't a JSON list, is too long, or has an invalid action.
fn check_actions<G: Game>(list: &str) -> Result<(), Rejection> {
    let raw: Vec<&RawValue> =
        serde_json::from_str(list).map_err(|_| invalid("the content must be a JSON list of actions".to_owned()))?;
    if raw.len() > MAX_ACTIONS {
        return Err(invalid(format!("the list has {} actions, but at most {MAX_ACTIONS} are allowed", raw.len())));
    }
    for (index, action) in raw.into_iter().enumerate() {
        read_action::<G::Action>(action).map_err(|reason| invalid(format!("action {index}: {reason}")))?;
    }
    Ok(())
}
