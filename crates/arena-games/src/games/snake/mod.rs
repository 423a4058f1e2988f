//! Snake: eat, grow, and don't run into anything. All snakes step at once.
//!
//! The rules, in the order of an epoch:
//!
//! 1. Every live snake takes a step in the direction that its agent gives. An agent that gives none goes on in its last
//!    direction, at the start away from its tail. Tails leave their cells as heads enter theirs, but the tail of a
//!    snake that has just eaten stays where it is for this step.
//! 2. A snake whose head has left the grid dies and is off the board from here on.
//! 3. A snake whose head is in a cell with any other part of a snake, its own included, dies. So heads that meet or
//!    swap cells both die, a body that is run into is unharmed, and the cell that a tail has just left is safe. All
//!    this is judged at once. A snake of two may turn back into its tail's cell, since the tail leaves it; a longer
//!    one, or one that has just eaten, may not.
//! 4. A live snake on food eats it: one point, and one cell longer after its next step.
//! 5. Where fewer than `min_food_sources` are left, new ones appear on free cells, until there are
//!    `food_sources_to_spawn` or no cell is free.
//!
//! Each food is a point; a snake that is dead has one point less. So of two snakes with equal food the one that lives
//! wins, and a snake that has eaten more is ahead of it, dead or alive. The board itself, as text and as counts, is
//! `board.rs`; where snakes start is `start.rs`.

mod board;
mod bots;
mod start;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use arena_model::SettingRange::Whole;
use arena_model::{
    Actions, Events, Game, Hosted, Offer, OptionsError, Seat, SeedRng, Setting, Setup, TURN_MS_SETTING, TimeLimits,
    UpdateMode,
};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::digits::{write_number, write_string};
use super::{EPOCHS, PLAYERS, check_bounds};
use crate::playable::example;
use crate::{Exhibit, Kit, Module, Playable};
use board::Board;

/// Registered in `games.rs`.
pub const PLAYABLE: Playable = Playable::game::<Snake>(Kit {
    terminal: Some(terminal::draw),
    module: Some(Module { name: "snake", script: include_str!("board.js"), style: "" }),
    scores: Some(read_scores),
    bots: Some([&bots::CAREFUL, &bots::HUNGRY]),
    exhibit: Some(Exhibit {
        options: || json!({"grid_width": 16, "grid_height": 16, "n_epochs": 400}),
        pace: Duration::from_millis(260),
    }),
    samples: &[&[("agent.py", example!("python/snake.py"))], &[("agent.js", example!("javascript/snake.js"))]],
    ..Kit::USUAL
});

/// The scores that a state contains.
fn read_scores(state: &str, ids: &[String]) -> Option<Vec<Option<f64>>> {
    #[derive(Deserialize)]
    struct State {
        #[serde(default)]
        score: BTreeMap<String, f64>,
    }
    let State { score } = serde_json::from_str(state).ok()?;
    Some(ids.iter().map(|id| score.get(id).copied()).collect())
}

/// The constants of a game of snake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnakeConfig {
    /// Cells in a row, 2 to [`MAX_SIDE`].
    grid_width: u64,
    /// Rows, 2 to [`MAX_SIDE`].
    grid_height: u64,
    /// How many foods there are after new ones have appeared, 1 to [`MAX_FOODS`], as far as cells are free.
    food_sources_to_spawn: u64,
    /// New foods appear when fewer than these are left, 1 to `food_sources_to_spawn`.
    min_food_sources: u64,
    /// How long the game goes on, 1 to [`MAX_EPOCHS`].
    n_epochs: u64,
}

impl Default for SnakeConfig {
    fn default() -> SnakeConfig {
        SnakeConfig { grid_width: 10, grid_height: 10, food_sources_to_spawn: 5, min_food_sources: 1, n_epochs: 1000 }
    }
}

/// The longest side of a grid, in cells. A full grid of this size makes a state of less than 64 KB, which agents that
/// read their input by the piece still take for one message.
const MAX_SIDE: i64 = 64;

/// The most foods at a time.
const MAX_FOODS: i64 = 1000;

/// The longest game, in epochs.
const MAX_EPOCHS: i64 = 1_000_000;

impl SnakeConfig {
    fn check(&self, seats: usize) -> Result<(), OptionsError> {
        let SnakeConfig { grid_width, grid_height, food_sources_to_spawn, min_food_sources, .. } = *self;
        check_bounds(self, Snake::OVERRIDABLE.iter().filter(|setting| setting.name != "min_food_sources"))?;
        if !(1..=food_sources_to_spawn).contains(&min_food_sources) {
            return Err(OptionsError(format!(
                "min_food_sources must be 1 to food_sources_to_spawn, {food_sources_to_spawn}; not {min_food_sources}"
            )));
        }
        let most = start::capacity(grid_width as i16, grid_height as i16);
        if seats > most {
            return Err(OptionsError(format!(
                "a grid of {grid_width} by {grid_height} has room for {most} snakes that don't touch, not for {seats}"
            )));
        }
        Ok(())
    }
}

/// The one action: `{"action": "move", "move": "UP"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnakeAction {
    action: MoveWord,
    #[serde(rename = "move")]
    direction: Direction,
}

/// What `action` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MoveWord {
    Move,
}

/// Where a step leads. `y` grows downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Direction {
    Up,
    Right,
    Down,
    Left,
}

impl Direction {
    const WORDS: [(&'static str, Direction); 4] =
        [("UP", Direction::Up), ("RIGHT", Direction::Right), ("DOWN", Direction::Down), ("LEFT", Direction::Left)];

    /// How the grid shows a cell that a snake has entered in this direction.
    fn arrow(self) -> u8 {
        match self {
            Direction::Up => b'^',
            Direction::Right => b'>',
            Direction::Down => b'V',
            Direction::Left => b'<',
        }
    }
}

impl<'de> Deserialize<'de> for Direction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Direction, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = Direction;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("UP, RIGHT, DOWN or LEFT")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Direction, E> {
                let found = Direction::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
                found.map(|(_, direction)| *direction).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Words)
    }
}

/// A cell of the grid, or one step outside of it: where a dead snake's head may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Cell {
    x: i16,
    y: i16,
}

impl Cell {
    fn step(self, direction: Direction) -> Cell {
        let Cell { x, y } = self;
        match direction {
            Direction::Up => Cell { x, y: y - 1 },
            Direction::Right => Cell { x: x + 1, y },
            Direction::Down => Cell { x, y: y + 1 },
            Direction::Left => Cell { x: x - 1, y },
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.push(b'[');
        write_number(out, self.x.into());
        out.push(b',');
        write_number(out, self.y.into());
        out.push(b']');
    }
}

/// One agent's snake.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    /// Head first; two or more. A dead snake's are where it died.
    cells: VecDeque<Cell>,
    /// Of its last step.
    direction: Direction,
    /// Foods.
    eaten: u64,
    /// Whether its tail stays where it is in the next step.
    is_growing: bool,
    is_alive: bool,
    /// Whether its agent is out of the game, whatever became of the snake.
    is_disqualified: bool,
}

impl Body {
    fn head(&self) -> Cell {
        self.cells[0]
    }

    fn tail(&self) -> Cell {
        self.cells[self.cells.len() - 1]
    }

    /// The points as they stand.
    fn score(&self) -> i64 {
        self.eaten as i64 - i64::from(!self.is_alive)
    }

    /// The lowest and the highest score with which the snake can still end the game. It eats at most one food in an
    /// epoch, and may die in any.
    fn final_scores(&self, epochs_left: u64) -> (i64, i64) {
        match self.is_alive {
            true => (self.eaten as i64 - 1, (self.eaten + epochs_left) as i64),
            false => (self.score(), self.score()),
        }
    }
}

/// A game of snake.
#[derive(Serialize, Deserialize)]
#[serde(from = "Kept")]
pub struct Snake {
    config: SnakeConfig,
    /// By seat: the agent's id as a JSON string with a colon behind it.
    keys: Vec<String>,
    /// By seat.
    snakes: Vec<Body>,
    /// In the order in which they appeared.
    foods: Vec<Cell>,
    /// Drawn from the others.
    #[serde(skip_serializing)]
    board: Board,
    food_rng: SeedRng,
    /// Those that have been played.
    epochs: u64,
    has_ended: bool,
}

/// A game as it is written down.
#[derive(Deserialize)]
struct Kept {
    config: SnakeConfig,
    keys: Vec<String>,
    snakes: Vec<Body>,
    foods: Vec<Cell>,
    food_rng: SeedRng,
    epochs: u64,
    has_ended: bool,
}

impl From<Kept> for Snake {
    fn from(kept: Kept) -> Snake {
        let Kept { config, keys, snakes, foods, food_rng, epochs, has_ended } = kept;
        let board = Board::new(config.grid_width as i16, config.grid_height as i16);
        let mut game = Snake { config, keys, snakes, foods, board, food_rng, epochs, has_ended };
        game.redraw();
        game
    }
}

impl Game for Snake {
    const NAME: &'static str = "snake";
    const DESCRIPTION: &'static str = "Snakes on one grid: eat, grow, and outlive the others.";
    const MODE: UpdateMode = UpdateMode::Simultaneous;
    const SEATS: RangeInclusive<usize> = 2..=8;
    // 1: a dead snake had -1, whatever it had eaten.
    const RULES_VERSION: u32 = 2;
    const LIMITS: TimeLimits = TimeLimits { step_ms: 2000, bank_ms: 20_000 };
    type Config = SnakeConfig;
    type Action = SnakeAction;

    fn new(config: SnakeConfig, setup: Setup) -> Result<Snake, OptionsError> {
        config.check(setup.agents.len())?;
        let (width, height) = (config.grid_width as i16, config.grid_height as i16);
        let heads = start::draw(width, height, setup.agents.len(), &mut setup.seed.rng("snake/start"));
        let body = |head: Cell| Body {
            cells: VecDeque::from([head, head.step(Direction::Left)]),
            direction: Direction::Right,
            eaten: 0,
            is_growing: false,
            is_alive: true,
            is_disqualified: false,
        };
        let keys = setup.agents.iter().map(|agent| {
            let mut key = Vec::new();
            write_string(&mut key, agent.as_str());
            key.push(b':');
            String::from_utf8(key).expect("an id is text")
        });
        let mut game = Snake {
            config,
            keys: keys.collect(),
            snakes: heads.into_iter().map(body).collect(),
            foods: Vec::new(),
            board: Board::new(width, height),
            food_rng: setup.seed.rng("snake/food"),
            epochs: 0,
            has_ended: false,
        };
        game.redraw();
        game.feed();
        Ok(game)
    }

    fn config(&self) -> &SnakeConfig {
        &self.config
    }

    fn is_asked(&self, seat: Seat) -> bool {
        !self.has_ended && self.snakes.get(seat.0).is_some_and(|snake| snake.is_alive)
    }

    fn write_state(&self, _seat: Seat, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"score\":{");
        for (seat, (key, snake)) in self.keys.iter().zip(&self.snakes).enumerate() {
            if seat > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key.as_bytes());
            write_number(out, snake.score());
        }
        out.extend_from_slice(b"},\"snakes\":{");
        for (seat, (key, snake)) in self.keys.iter().zip(&self.snakes).enumerate() {
            if seat > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(match snake.is_alive {
                true => b"{\"alive\":true,\"head_position\":",
                false => b"{\"alive\":false,\"head_position\":",
            });
            snake.head().write(out);
            out.extend_from_slice(b",\"positions\":");
            write_cells(snake.cells.iter(), out);
            out.push(b'}');
        }
        out.extend_from_slice(b"},\"foods\":");
        write_cells(self.foods.iter(), out);
        out.extend_from_slice(b",\"grid\":{\"width\":");
        write_number(out, self.board.width().into());
        out.extend_from_slice(b",\"height\":");
        write_number(out, self.board.height().into());
        out.extend_from_slice(b",\"grid_string\":");
        out.extend_from_slice(self.board.text());
        out.push(b'}');
    }

    fn step(&mut self, actions: &Actions<SnakeAction>, events: &mut Events) {
        if self.has_ended {
            return;
        }
        self.turn(actions, events);
        self.bury();
        self.eat();
        self.feed();
        self.epochs += 1;
        self.has_ended = self.is_settled();
    }

    fn disqualify(&mut self, seat: Seat) {
        let Some(snake) = self.snakes.get_mut(seat.0) else { return };
        snake.is_disqualified = true;
        if snake.is_alive {
            snake.is_alive = false;
            self.redraw();
            // Its cells may be the only free ones.
            self.feed();
        }
        self.has_ended |= self.is_settled();
    }

    fn termination(&self) -> Option<&'static str> {
        self.has_ended.then_some("GAME_ENDED")
    }

    fn scores(&self) -> Vec<f64> {
        self.snakes.iter().map(|snake| snake.score() as f64).collect()
    }
}

impl Hosted for Snake {
    const CHALLENGE: &'static str = "snake";
    const TITLE: &'static str = "Snake";
    const PROMPT: &'static str = "\
Snakes share a grid. Eat, grow, and stay alive. x grows to the right, y grows downwards, and [0, 0] is the upper left cell.

All snakes step at once, in the direction that each player gives. Then a snake whose head has left the grid, or is in a cell with \
any part of a snake, is dead; so two heads that meet both die, and a body that is run into doesn't. A cell that a tail has just left \
is safe. Food makes a snake one cell longer after its next step, in which the tail stays where it is. New food comes when little is \
left. The game ends after `n_epochs` epochs, when no snake is alive, or as soon as no epoch to come can change the ranking. Your \
points are the food that you have eaten, less one once you are dead; most points win.

The state:
- `snakes`: by player id, `alive`, `head_position` [x, y] and `positions`, head first. The dead stay in the list, and off the grid.
- `foods`: a list of [x, y].
- `grid`: `width`, `height` and `grid_string`, a text for each row: `@` food, `C` a head, `S` a tail, `^` `V` `<` `>` a body, with the \
direction in which the snake went.
- `score`: by player id.";
    const ACTIONS: &'static [(&'static str, &'static str)] =
        &[("move", "One step: `UP`, `RIGHT`, `DOWN` or `LEFT`, such as `{\"action\": \"move\", \"move\": \"UP\"}`.")];
    const OVERRIDABLE: &'static [Setting] = &[
        Setting::new("players", Whole(2, 8), PLAYERS),
        TURN_MS_SETTING,
        Setting::new("grid_width", Whole(2, MAX_SIDE), "Width of the grid, in cells."),
        Setting::new("grid_height", Whole(2, MAX_SIDE), "Height of the grid, in cells."),
        Setting::new(
            "food_sources_to_spawn",
            Whole(1, MAX_FOODS),
            "How many foods there are after new ones have come.",
        ),
        Setting::new(
            "min_food_sources",
            Whole(1, MAX_FOODS),
            "New foods come when there are fewer; at most `food_sources_to_spawn`.",
        ),
        Setting::new("n_epochs", Whole(1, MAX_EPOCHS), EPOCHS),
    ];
    const CARD: (&'static str, &'static str) = ("green", "snake");
}

impl Snake {
    /// Rule 1. The board's text is right afterwards unless somebody has to die.
    fn turn(&mut self, actions: &Actions<SnakeAction>, events: &mut Events) {
        // All tails go before any head comes, since a head may enter the cell that a tail leaves.
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive && !snake.is_growing) {
            let tail = snake.cells.pop_back().expect("a snake has two cells or more");
            self.board.leave(tail);
        }
        for (seat, snake) in self.snakes.iter_mut().enumerate() {
            let mut offers = actions.of(Seat(seat)).iter();
            let mut direction = snake.direction;
            if snake.is_alive
                && let Some(Offer { action, .. }) = offers.next()
            {
                direction = action.direction;
            }
            for Offer { index, .. } in offers {
                events.reject(
                    Seat(seat),
                    *index,
                    match snake.is_alive {
                        true => "a snake takes one step in an epoch, and the first valid move counts",
                        false => "this snake is dead",
                    },
                );
            }
            if !snake.is_alive {
                continue;
            }
            let (old, new) = (snake.head(), snake.head().step(direction));
            snake.cells.push_front(new);
            self.board.mark(old, snake.direction.arrow());
            self.board.mark(snake.tail(), b'S');
            self.board.enter(new);
            snake.direction = direction;
            snake.is_growing = false;
        }
    }

    /// Rules 2 and 3.
    fn bury(&mut self) {
        let mut has_died = false;
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive) {
            if !self.board.holds(snake.head()) {
                snake.is_alive = false;
                has_died = true;
                snake.cells.iter().for_each(|cell| self.board.lift(*cell));
            }
        }
        // The counts stay as they are while this is judged, so nobody's death saves another.
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive && self.board.count(snake.head()) > 1) {
            snake.is_alive = false;
            has_died = true;
        }
        if has_died {
            self.redraw();
        }
    }

    /// Rule 4.
    fn eat(&mut self) {
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive) {
            let head = snake.head();
            if self.board.has_food(head) {
                self.foods.retain(|food| *food != head);
                self.board.take_food(head);
                snake.eaten += 1;
                snake.is_growing = true;
            }
        }
    }

    /// Rule 5. Each free cell is equally likely.
    fn feed(&mut self) {
        if self.foods.len() as u64 >= self.config.min_food_sources {
            return;
        }
        let mut free: Vec<Cell> = self.board.free().collect();
        while (self.foods.len() as u64) < self.config.food_sources_to_spawn && !free.is_empty() {
            let food = free.swap_remove(self.food_rng.below(free.len() as u64) as usize);
            self.board.put_food(food);
            self.foods.push(food);
        }
    }

    /// Draws the board anew, from snakes and foods.
    fn redraw(&mut self) {
        self.board.clear();
        for food in &self.foods {
            self.board.put_food(*food);
        }
        for snake in self.snakes.iter().filter(|snake| snake.is_alive) {
            self.board.draw(&snake.cells);
        }
    }

    /// True if nothing that can still happen changes the ranking.
    ///
    /// - After the last epoch, or with no snake alive, every score is final.
    /// - Otherwise each pair of seats has to be decided: either both scores are final, or the scores that one of them can
    ///   still end with are all higher than those of the other. A survivor that has eaten as much as a dead snake isn't
    ///   ahead for sure, since the two draw if it dies as well.
    /// - A disqualified agent ranks below all others, whatever its snake has eaten.
    ///
    /// The board may show more than these bounds do: a food may be too far away to be reached in time. The answer "not
    /// settled" is safe then.
    fn is_settled(&self) -> bool {
        let left = self.config.n_epochs.saturating_sub(self.epochs);
        if left == 0 || !self.snakes.iter().any(|snake| snake.is_alive) {
            return true;
        }
        let snakes: Vec<&Body> = self.snakes.iter().filter(|snake| !snake.is_disqualified).collect();
        snakes.iter().enumerate().all(|(place, one)| {
            snakes[place + 1..].iter().all(|other| {
                let (one, other) = (one.final_scores(left), other.final_scores(left));
                let are_final = one.0 == one.1 && other.0 == other.1;
                are_final || one.0 > other.1 || other.0 > one.1
            })
        })
    }
}

fn write_cells<'c>(cells: impl Iterator<Item = &'c Cell>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        cell.write(out);
    }
    out.push(b']');
}
