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

mod options;
mod play;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::challenge::{OptionsError, Setting};
use crate::game::{AgentId, AnyGame, Game, Match, Running, SeatState};
use crate::telling::in_short;
use crate::{ChallengeMetadata, EndedGame, Method, Rules, Scene, Seat, Seed};

use options::TURNS_MS;
pub use options::{GameOptions, TURN_MS_SETTING};
use play::members;
pub use play::one_action;

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
                format!("{} won, because {} left the game.", ended.name(winner), ended.name_list(&left))
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
