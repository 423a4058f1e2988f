//! Chess by the laws of FIDE, as far as they apply to programs.
//!
//! Agents alternate. The agent to move sends `{"action": "move", "move": "e2e4"}` in UCI notation. Castling is the
//! king's move, `e1g1`, and a promotion ends with a lower-case letter, `e7e8q`. The first move in a list is played. A
//! missing, unreadable or illegal move loses at once.
//!
//! `{"action": "claim_draw"}` claims a draw for the current position, before a move: the position has occurred for the
//! third time (`THREEFOLD_REPETITION`), or each side has made fifty moves without a capture or a pawn's move
//! (`FIFTY_MOVES`). A valid claim ends the game without a move. An invalid one is rejected, and the move beside it is
//! played. A claim that depends on the next move must wait for the next turn.
//!
//! With the option `agreements`, the move `resign` gives up (`RESIGNATION`). The move `draw` beside another move offers a
//! draw, or accepts the offer beside the opponent's last move (`AGREEMENT`). Matches with adjudication set this option.
//!
//! If the time of the agent to move is over, and the opponent has too few pieces to mate, the match plays the move
//! `time_over` for it. This is a draw (`DRAW_ON_TIME`). Otherwise this move is illegal like any other text.
//!
//! After each move the game ends automatically on `CHECKMATE`, `INSUFFICIENT_MATERIAL`, `STALEMATE`,
//! `SEVENTYFIVE_MOVES`, `FIVEFOLD_REPETITION` or, with `n_epochs` set, as a draw by `MAX_PLIES`; the first one that
//! applies is the result. Positions are equal if pieces, side to move, castling rights and legal en passant captures
//! are equal.
//!
//! `position.rs` holds positions, their moves and their notation.

mod bots;
mod picture;
mod position;
mod terminal;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::time::Duration;

use arena_model::SettingRange::{Text, Whole};
use arena_model::{
    Actions, Events, Game, Hosted, IndexedAction, OptionsError, Scene, Seat, Setting, Setup, TURN_MS_SETTING,
    TimeLimits, UpdateMode, Verdict,
};
use cozy_chess::Color;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::digits::write_string;
use crate::playable::example;
use crate::{Exhibit, Kit, Module, Playable, SeatControls};
use position::{Play, Position};

/// The catalogue entry, listed in `games.rs`.
pub const PLAYABLE: Playable = Playable::game::<Chess>(Kit {
    rules: Some(
        "Drag a piece, or choose it and then its square. Checkmate wins. The clock shows the time for each \
         move; who lets it run out is out of the game.",
    ),
    picture: Some(include_str!("picture.svg")),
    terminal: Some(terminal::draw),
    module: Some(Module { name: "chess", script: include_str!("board.js"), style: include_str!("board.css") }),
    controls: Some(SeatControls { name: "chess", script: include_str!("seat.js") }),
    bots: Some([&bots::PLANNER, &bots::GRABBER]),
    exhibit: Some(Exhibit { options: || json!({}), pace: Duration::from_millis(900) }),
    samples: &[&[("agent.py", example!("python/chess.py"))], &[("agent.js", example!("javascript/chess.js"))]],
    ..Kit::USUAL
});

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChessConfig {
    /// The number of plies (moves of either side) after which the game is a draw, at least 1; -1 for no limit.
    n_epochs: i64,
    /// The initial position: a FEN of six fields. Chess960 isn't supported.
    fen: String,
    /// True if players may resign, and agree on a draw.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    agreements: bool,
}

impl Default for ChessConfig {
    fn default() -> ChessConfig {
        let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1".to_owned();
        ChessConfig { n_epochs: -1, fen, agreements: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ChessAction {
    Move {
        #[serde(rename = "move")]
        uci: String,
    },
    ClaimDraw,
}

/// One of [`TERMINATIONS`].
type Termination = &'static str;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ChessEnd {
    #[serde(deserialize_with = "known_termination")]
    termination: Termination,
    /// The winner, or `None` for a draw.
    winner: Option<Seat>,
}

#[derive(Serialize, Deserialize)]
pub struct Chess {
    config: ChessConfig,
    white: Seat,
    position: Position,
    /// The last move in UCI notation.
    last_move: Option<String>,
    plies: u64,
    end: Option<ChessEnd>,
    /// The seat whose last move came with an offer of a draw.
    #[serde(default)]
    offer: Option<Seat>,
    is_disqualified: [bool; 2],
}

impl Game for Chess {
    const NAME: &'static str = "chess";
    const DESCRIPTION: &'static str = "Chess, by the laws of FIDE.";
    const MODE: UpdateMode = UpdateMode::Alternating;
    const SEATS: RangeInclusive<usize> = 2..=2;
    const LIMITS: TimeLimits = TimeLimits { step_ms: 2000, bank_ms: 20_000 };
    type Config = ChessConfig;
    type Action = ChessAction;

    fn new(mut config: ChessConfig, setup: Setup) -> Result<Chess, OptionsError> {
        if config.n_epochs != -1 && config.n_epochs < 1 {
            return Err(OptionsError(format!(
                "n_epochs must be at least 1, or -1 for no limit; not {}",
                config.n_epochs
            )));
        }
        let position = Position::from_fen(&config.fen).map_err(|reason| OptionsError(format!("fen: {reason}")))?;
        // Agents receive the normalized FEN.
        config.fen = position.fen();
        let mut game = Chess {
            config,
            white: Seat(setup.seed.rng("chess/colours").below(2) as usize),
            position,
            last_move: None,
            plies: 0,
            end: None,
            offer: None,
            is_disqualified: [false; 2],
        };
        game.end = game.find_end();
        match game.end {
            Some(ChessEnd { termination, .. }) => {
                Err(OptionsError(format!("fen: the game has already ended in this position: {termination}")))
            }
            None => Ok(game),
        }
    }

    fn config(&self) -> &ChessConfig {
        &self.config
    }

    fn is_asked(&self, seat: Seat) -> bool {
        self.end.is_none() && seat == self.mover()
    }

    fn write_state(&self, seat: Seat, out: &mut Vec<u8>) {
        self.write_board(out);
        out.extend_from_slice(b",\"color\":");
        write_string(out, color_name(self.color(seat)));
    }

    fn step(&mut self, actions: &Actions<ChessAction>, events: &mut Events) {
        if self.end.is_some() {
            return;
        }
        let mover = self.mover();
        for IndexedAction { index, .. } in actions.of(self.opponent(mover)) {
            events.reject(self.opponent(mover), *index, "it is the other agent's turn");
        }
        let offers = actions.of(mover);
        let claim = offers.iter().find(|offer| offer.action == ChessAction::ClaimDraw);
        if let (Some(claim), Some(termination)) = (claim, self.claimable()) {
            for IndexedAction { index, .. } in offers.iter().filter(|offer| offer.index != claim.index) {
                events.reject(mover, *index, "the draw that was claimed has ended the game");
            }
            self.end = Some(ChessEnd { termination, winner: None });
            return;
        }
        if let Some(end) = self.end_without_move(mover, offers) {
            self.end = Some(end);
            return;
        }
        let mut first = None;
        self.offer = None;
        for IndexedAction { index, action } in offers {
            match action {
                ChessAction::ClaimDraw => {
                    events.reject(mover, *index, "no draw to claim: neither a third repetition nor fifty quiet moves");
                }
                ChessAction::Move { uci } if self.config.agreements && uci == DRAW => self.offer = Some(mover),
                ChessAction::Move { uci } if first.is_none() => first = Some((*index, uci)),
                ChessAction::Move { .. } => events.reject(mover, *index, "a second move, and the first one counts"),
            }
        }
        match first {
            Some((index, uci)) => match self.position.find(uci) {
                Some(play) => self.play(play),
                None => {
                    let detail = format!("{} is no legal move in {}", quoted(uci), self.position.fen());
                    events.reject(mover, index, detail.clone());
                    self.forfeit(mover, detail, events);
                }
            },
            None => {
                let rejected = events.rejections().iter().filter(|rejected| rejected.seat == mover.0).min();
                let detail = match rejected {
                    Some(rejected) => format!("gave no move: {}", rejected.reason),
                    None => "gave no move".to_owned(),
                };
                self.forfeit(mover, detail, events);
            }
        }
    }

    fn disqualify(&mut self, seat: Seat) {
        let Some(is_disqualified) = self.is_disqualified.get_mut(seat.0) else { return };
        *is_disqualified = true;
        // A result by the rules of chess stays valid if an agent is disqualified afterwards.
        if self.end.is_none_or(|end| end.termination == TAINTED) {
            let winner = Some(self.opponent(seat)).filter(|winner| !self.is_disqualified[winner.0]);
            self.end = Some(ChessEnd { termination: TAINTED, winner });
        }
    }

    fn on_time_over(&self, seat: Seat) -> Option<ChessAction> {
        self.is_drawn_on_time(seat).then(|| ChessAction::Move { uci: TIME_OVER.to_owned() })
    }

    fn termination(&self) -> Option<&'static str> {
        self.end.map(|end| end.termination)
    }

    fn scores(&self) -> Vec<f64> {
        let score = |seat: usize| match self.end {
            None => 0.0,
            Some(ChessEnd { winner: None, .. }) => 0.5,
            Some(ChessEnd { winner: Some(winner), .. }) if winner == Seat(seat) => 1.0,
            Some(ChessEnd { .. }) => 0.0,
        };
        (0..2).map(score).collect()
    }

    fn side(&self, seat: Seat) -> Option<&'static str> {
        Some(color_name(self.color(seat)))
    }
}

/// The move of a match for an agent whose time is over.
const TIME_OVER: &str = "time_over";

/// The moves of a game with agreements that are no moves on the board.
const RESIGN: &str = "resign";
const DRAW: &str = "draw";

/// The termination of a game in which an agent was disqualified, including for an illegal move.
const TAINTED: &str = "TAINTED";

/// The termination of a game in which an agent's time was over, but the opponent had no pieces to mate with.
const DRAW_ON_TIME: &str = "DRAW_ON_TIME";

const TERMINATIONS: [&str; 12] = [
    TAINTED,
    "CHECKMATE",
    "INSUFFICIENT_MATERIAL",
    "STALEMATE",
    "SEVENTYFIVE_MOVES",
    "FIVEFOLD_REPETITION",
    "MAX_PLIES",
    "THREEFOLD_REPETITION",
    "FIFTY_MOVES",
    "RESIGNATION",
    "AGREEMENT",
    DRAW_ON_TIME,
];

fn known_termination<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Termination, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = TERMINATIONS.into_iter().find(|termination| *termination == text);
    known.ok_or_else(|| D::Error::custom(format!("unknown cause of a game's end: {text}")))
}

impl Hosted for Chess {
    const CHALLENGE: &'static str = "chess";
    const TITLE: &'static str = "Chess";
    const PROMPT: &'static str = "\
Chess, by the laws of FIDE. The players' colors are drawn at random.

The state:
- `fen`: the position; `epd`: the same without the counters.
- `turn`: true if White is to move. `color`: your color, `WHITE` or `BLACK`.
- `legal_moves`: all legal moves in UCI notation: `e2e4`, castling `e1g1`, promotion `e7e8q`.
- `last_move`: the previous move, or null.

Checkmate, stalemate, insufficient material, 75 moves of each side without a capture or a pawn move, and a fivefold repetition end \
the game automatically. A threefold repetition, or 50 moves of each side without a capture or a pawn move, is a draw if the player \
to move claims it.";
    const ACTIONS: &'static [(&'static str, &'static str)] = &[
        ("move", "One of the legal moves, such as `e2e4`: `{\"action\": \"move\", \"move\": \"e2e4\"}`."),
        ("claim_draw", "Claim a draw in the current position. Add a move to the list in case the claim is invalid."),
    ];
    const OVERRIDABLE: &'static [Setting] = &[
        TURN_MS_SETTING,
        Setting::new("fen", Text, "Initial position: a FEN of six fields."),
        Setting::new(
            "n_epochs",
            // The largest integer that all JSON readers represent exactly.
            Whole(-1, (1 << 53) - 1),
            "Number of plies after which the game is a draw; -1 for no limit, 0 is refused.",
        ),
    ];
    const CARD: (&'static str, &'static str) = ("gray", "chess");

    fn write_public(&self, out: &mut Vec<u8>) {
        self.write_board(out);
    }

    fn draw(_scene: &Scene<'_>, states: &[Value]) -> Option<String> {
        picture::draw(states)
    }

    fn ending(&self) -> Option<String> {
        let cause = match self.end?.termination {
            "CHECKMATE" => "by checkmate",
            "STALEMATE" => "by stalemate",
            "INSUFFICIENT_MATERIAL" => "with too few pieces left",
            "SEVENTYFIVE_MOVES" => "after 75 moves without progress",
            "FIFTY_MOVES" => "after 50 moves without progress",
            "FIVEFOLD_REPETITION" => "by fivefold repetition",
            "THREEFOLD_REPETITION" => "by threefold repetition",
            "MAX_PLIES" => "at the limit of moves",
            "RESIGNATION" => "by resignation",
            "AGREEMENT" => "by agreement",
            DRAW_ON_TIME => "on time, against too few pieces to mate,",
            _ => return None,
        };
        Some(format!("{cause} on move {}", self.plies.div_ceil(2)))
    }
}

impl Chess {
    /// Appends the visible state of the board.
    pub(crate) fn write_board(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"fen\":\"");
        self.position.write_fen(out);
        out.extend_from_slice(b"\",\"epd\":\"");
        self.position.write_epd(out);
        out.extend_from_slice(match self.position.turn() {
            Color::White => b"\",\"turn\":true,\"legal_moves\":[",
            Color::Black => b"\",\"turn\":false,\"legal_moves\":[",
        });
        for (index, play) in self.position.plays().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(play.uci().as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(b"],\"last_move\":");
        match &self.last_move {
            Some(uci) => write_string(out, uci),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn mover(&self) -> Seat {
        match self.position.turn() {
            Color::White => self.white,
            Color::Black => self.opponent(self.white),
        }
    }

    fn opponent(&self, seat: Seat) -> Seat {
        Seat(1 - seat.0.min(1))
    }

    fn color(&self, seat: Seat) -> Color {
        match seat == self.white {
            true => Color::White,
            false => Color::Black,
        }
    }

    fn play(&mut self, play: Play) {
        self.position.play(&play);
        self.last_move = Some(play.uci().to_owned());
        self.plies += 1;
        self.end = self.find_end();
    }

    fn forfeit(&mut self, seat: Seat, detail: String, events: &mut Events) {
        events.forfeit(seat, Verdict::IllegalMove, detail);
        self.disqualify(seat);
    }

    /// Returns the automatic end of the game in this position.
    fn find_end(&self) -> Option<ChessEnd> {
        let position = &self.position;
        let draw = |termination| Some(ChessEnd { termination, winner: None });
        if position.plays().is_empty() && position.is_check() {
            return Some(ChessEnd { termination: "CHECKMATE", winner: Some(self.opponent(self.mover())) });
        }
        if position.is_material_insufficient() {
            return draw("INSUFFICIENT_MATERIAL");
        }
        if position.plays().is_empty() {
            return draw("STALEMATE");
        }
        if position.quiet_plies() >= 150 {
            return draw("SEVENTYFIVE_MOVES");
        }
        if position.occurrences() >= 5 {
            return draw("FIVEFOLD_REPETITION");
        }
        match u64::try_from(self.config.n_epochs) {
            Ok(most) if self.plies >= most => draw("MAX_PLIES"),
            _ => None,
        }
    }

    /// Returns true if the end of a seat's time is a draw.
    fn is_drawn_on_time(&self, seat: Seat) -> bool {
        !self.position.can_mate(self.color(self.opponent(seat)))
    }

    /// Returns the end without a move on the board: the mover resigns, accepts the opponent's offer of a draw, or has no
    /// time left.
    fn end_without_move(&self, mover: Seat, offers: &[IndexedAction<ChessAction>]) -> Option<ChessEnd> {
        let has = |word: &str| {
            let is_word = |action: &ChessAction| matches!(action, ChessAction::Move { uci } if uci == word);
            offers.iter().any(|offer| is_word(&offer.action))
        };
        if has(TIME_OVER) && self.is_drawn_on_time(mover) {
            return Some(ChessEnd { termination: DRAW_ON_TIME, winner: None });
        }
        let wants = |word: &str| self.config.agreements && has(word);
        if wants(RESIGN) {
            return Some(ChessEnd { termination: "RESIGNATION", winner: Some(self.opponent(mover)) });
        }
        let is_accepted = self.offer == Some(self.opponent(mover)) && wants(DRAW);
        is_accepted.then_some(ChessEnd { termination: "AGREEMENT", winner: None })
    }

    /// Returns the draw that the agent to move may claim.
    fn claimable(&self) -> Option<&'static str> {
        match (self.position.occurrences(), self.position.quiet_plies()) {
            (3.., _) => Some("THREEFOLD_REPETITION"),
            (_, 100..) => Some("FIFTY_MOVES"),
            _ => None,
        }
    }
}

fn color_name(color: Color) -> &'static str {
    match color {
        Color::White => "WHITE",
        Color::Black => "BLACK",
    }
}

/// Returns an agent's text, cut to a maximum length.
fn quoted(text: &str) -> String {
    const MOST: usize = 32;
    let start: String = text.chars().take(MOST).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}
