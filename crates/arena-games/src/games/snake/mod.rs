//! Snake: eat, grow, and don't run into anything. All snakes step at once.
//!
//! The rules, in the order of an epoch:
//!
//! 1. Every live snake takes a step in the direction of its agent's action. Without an action it continues in its last
//!    direction, at the start away from its tail. Tails leave their cells as heads enter theirs, but the tail of a
//!    snake that has just eaten stays for this step.
//! 2. A snake whose head has left the grid dies and is removed from the board.
//! 3. A snake dies if its head is in a cell with any other part of a snake, its own included. So two heads that meet or
//!    swap cells both die, a body that is hit is unharmed, and a cell that a tail has just left is safe. All snakes are
//!    judged at once. A snake of length two may turn back into its tail's cell, because the tail leaves it; a longer
//!    one, or one that has just eaten, may not.
//! 4. A live snake on food eats it: it scores one point, and grows by one cell at its next step.
//! 5. If fewer than `min_food_sources` are left, new ones appear on free cells, until there are `food_sources_to_spawn`
//!    or no cell is free.
//!
//! Each food is a point; a dead snake loses one point. So of two snakes with equal food the live one wins, and a snake
//! that has eaten more is ahead, dead or alive. The board, as text and as counts, is in `board.rs`; the start positions
//! are in `start.rs`.

mod board;
mod bots;
mod picture;
mod start;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use arena_model::SettingRange::Whole;
use arena_model::{
    Actions, Events, Game, Hosted, IndexedAction, OptionsError, Scene, Seat, SeedRng, Setting, Setup, TURN_MS_SETTING,
    TimeLimits, UpdateMode,
};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::digits::{write_number, write_string};
use super::{EPOCHS, PLAYERS, check_bounds};
use crate::playable::example;
use crate::{Exhibit, Kit, Module, Playable, SeatControls};
use board::SnakeBoard;

/// The catalogue entry, listed in `games.rs`.
pub const PLAYABLE: Playable = Playable::game::<Snake>(Kit {
    rules: Some(
        "Steer your snake with the arrow keys, WASD, the buttons or a swipe. Each food makes it longer and \
         counts a point. Your snake dies at a wall or another snake, itself included, and that costs a point; \
         the most points win.",
    ),
    picture: Some(include_str!("picture.svg")),
    terminal: Some(terminal::draw),
    module: Some(Module { name: "snake", script: include_str!("board.js"), style: include_str!("board.css") }),
    controls: Some(SeatControls { name: "snake", script: include_str!("seat.js") }),
    scores: Some(read_scores),
    bots: Some([&bots::CAREFUL, &bots::HUNGRY]),
    short: Some(|| json!({"n_epochs": 200})),
    exhibit: Some(Exhibit {
        options: || json!({"grid_width": 16, "grid_height": 16, "n_epochs": 400}),
        pace: Duration::from_millis(260),
    }),
    samples: &[&[("agent.py", example!("python/snake.py"))], &[("agent.js", example!("javascript/snake.js"))]],
    ..Kit::USUAL
});

fn read_scores(state: &str, ids: &[String]) -> Option<Vec<Option<f64>>> {
    #[derive(Deserialize)]
    struct State {
        #[serde(default)]
        score: BTreeMap<String, f64>,
    }
    let State { score } = serde_json::from_str(state).ok()?;
    Some(ids.iter().map(|id| score.get(id).copied()).collect())
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnakeConfig {
    /// The number of cells in a row, 2 to [`MAX_SIDE`].
    grid_width: u64,
    /// The number of rows, 2 to [`MAX_SIDE`].
    grid_height: u64,
    /// The number of foods after new ones have appeared, 1 to [`MAX_FOODS`]; fewer if the grid has too few free
    /// cells.
    food_sources_to_spawn: u64,
    /// The number of foods below which new ones appear, 1 to `food_sources_to_spawn`.
    min_food_sources: u64,
    /// The number of epochs, 1 to [`MAX_EPOCHS`].
    n_epochs: u64,
}

impl Default for SnakeConfig {
    fn default() -> SnakeConfig {
        SnakeConfig { grid_width: 10, grid_height: 10, food_sources_to_spawn: 5, min_food_sources: 1, n_epochs: 1000 }
    }
}

/// The maximum side of a grid, in cells. A full grid of this size gives a state of less than 64 KB, which agents with
/// chunked input still read as one message.
const MAX_SIDE: i64 = 64;

/// The maximum number of foods at a time.
const MAX_FOODS: i64 = 1000;

const MAX_EPOCHS: i64 = 1_000_000;

impl SnakeConfig {
    fn check(&self, seats: usize) -> Result<(), OptionsError> {
        let SnakeConfig { grid_width, grid_height, food_sources_to_spawn, min_food_sources, .. } = *self;
        check_bounds(self, Snake::OVERRIDABLE.iter().filter(|setting| setting.name != "min_food_sources"))?;
        if !(1..=food_sources_to_spawn).contains(&min_food_sources) {
            return Err(OptionsError(format!(
                "min_food_sources must be 1 to food_sources_to_spawn ({food_sources_to_spawn}), not {min_food_sources}"
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

/// The value of `action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MoveWord {
    Move,
}

/// The direction of a step. `y` grows downwards.
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

    /// Returns the character of a cell that a snake has entered in this direction.
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

/// A cell of the grid, or one step outside of it, where a dead snake's head may be.
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
    /// The cells, head first; two or more. A dead snake's cells are those where it died.
    cells: VecDeque<Cell>,
    /// The direction of the snake's last step.
    direction: Direction,
    eaten: u64,
    /// True if the snake's tail stays in place in the next step.
    is_growing: bool,
    is_alive: bool,
    /// True if the snake's agent is disqualified. The snake may have died before.
    is_disqualified: bool,
}

impl Body {
    fn head(&self) -> Cell {
        self.cells[0]
    }

    fn tail(&self) -> Cell {
        self.cells[self.cells.len() - 1]
    }

    fn score(&self) -> i64 {
        self.eaten as i64 - i64::from(!self.is_alive)
    }

    /// Returns the lowest and the highest score with which the snake can still end the game. The snake eats at most
    /// one food in each epoch, and may die in each.
    fn final_scores(&self, epochs_left: u64) -> (i64, i64) {
        match self.is_alive {
            true => (self.eaten as i64 - 1, (self.eaten + epochs_left) as i64),
            false => (self.score(), self.score()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(from = "StoredGame")]
pub struct Snake {
    config: SnakeConfig,
    /// The agents' ids as JSON strings with a colon after them, by seat.
    keys: Vec<String>,
    /// The snakes by seat.
    snakes: Vec<Body>,
    /// The foods in the order in which they appeared.
    foods: Vec<Cell>,
    /// The board, derived from the other fields.
    #[serde(skip_serializing)]
    board: SnakeBoard,
    food_rng: SeedRng,
    epochs: u64,
    has_ended: bool,
}

#[derive(Deserialize)]
struct StoredGame {
    config: SnakeConfig,
    keys: Vec<String>,
    snakes: Vec<Body>,
    foods: Vec<Cell>,
    food_rng: SeedRng,
    epochs: u64,
    has_ended: bool,
}

impl From<StoredGame> for Snake {
    fn from(stored: StoredGame) -> Snake {
        let StoredGame { config, keys, snakes, foods, food_rng, epochs, has_ended } = stored;
        let board = SnakeBoard::new(config.grid_width as i16, config.grid_height as i16);
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
    // In version 1, the score of a dead snake was -1, regardless of the food that it had eaten.
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
            board: SnakeBoard::new(width, height),
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
            // The removed snake's cells may be the only free cells for new food.
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
Snakes share a grid. Eat, grow, and stay alive. x increases to the right, y increases downward, and [0, 0] is the upper left cell.

All snakes take a step at the same time, each in the direction that its player gives. Then a snake dies if its head has left the \
grid or is in a cell with any other part of a snake, its own included. So two heads that meet both die, and a snake whose body is \
hit doesn't. A cell that a tail has just left is safe. Food makes a snake one cell longer in its next step, in which its tail stays \
in place. When there are fewer than `min_food_sources` foods, new ones appear, up to `food_sources_to_spawn`. The game ends after \
`n_epochs` epochs, when no snake is alive, or as soon as the remaining epochs can't change the ranking. Your points are the number \
of foods that your snake has eaten, minus one if it is dead. The most points win.

The state:
- `snakes`: by player id, `alive`, `head_position` [x, y] and `positions`, head first. Dead snakes stay in it, but not on the grid.
- `foods`: a list of [x, y].
- `grid`: `width`, `height` and `grid_string`, a list with a string for each row: `@` food, `C` a head, `S` a tail, `^` `V` `<` `>` \
a part between them, with the direction in which the snake entered the cell.
- `score`: the points by player id.";
    const ACTIONS: &'static [(&'static str, &'static str)] =
        &[("move", "One step: `UP`, `RIGHT`, `DOWN` or `LEFT`, such as `{\"action\": \"move\", \"move\": \"UP\"}`.")];
    const OVERRIDABLE: &'static [Setting] = &[
        Setting::new("players", Whole(2, 8), PLAYERS),
        TURN_MS_SETTING,
        Setting::new("grid_width", Whole(2, MAX_SIDE), "Width of the grid, in cells."),
        Setting::new("grid_height", Whole(2, MAX_SIDE), "Height of the grid, in cells."),
        Setting::new("food_sources_to_spawn", Whole(1, MAX_FOODS), "Number of foods up to which new ones appear."),
        Setting::new(
            "min_food_sources",
            Whole(1, MAX_FOODS),
            "Number of foods below which new ones appear; at most `food_sources_to_spawn`.",
        ),
        Setting::new("n_epochs", Whole(1, MAX_EPOCHS), EPOCHS),
    ];
    const CARD: (&'static str, &'static str) = ("green", "snake");

    fn draw(scene: &Scene<'_>, states: &[Value]) -> Option<String> {
        picture::draw(scene, states)
    }
}

impl Snake {
    /// Applies rule 1. Afterwards the board's text is up to date, unless a snake dies in this epoch.
    fn turn(&mut self, actions: &Actions<SnakeAction>, events: &mut Events) {
        // All tails leave before any head enters, because a head may enter the cell that a tail leaves.
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive && !snake.is_growing) {
            let tail = snake.cells.pop_back().expect("a snake has two cells or more");
            self.board.leave(tail);
        }
        for (seat, snake) in self.snakes.iter_mut().enumerate() {
            let mut offers = actions.of(Seat(seat)).iter();
            let mut direction = snake.direction;
            if snake.is_alive
                && let Some(IndexedAction { action, .. }) = offers.next()
            {
                direction = action.direction;
            }
            for IndexedAction { index, .. } in offers {
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

    /// Applies rules 2 and 3.
    fn bury(&mut self) {
        let mut has_died = false;
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive) {
            if !self.board.holds(snake.head()) {
                snake.is_alive = false;
                has_died = true;
                snake.cells.iter().for_each(|cell| self.board.lift(*cell));
            }
        }
        // The counts don't change in this loop, so the death of one snake doesn't save another.
        for snake in self.snakes.iter_mut().filter(|snake| snake.is_alive && self.board.count(snake.head()) > 1) {
            snake.is_alive = false;
            has_died = true;
        }
        if has_died {
            self.redraw();
        }
    }

    /// Applies rule 4.
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

    /// Applies rule 5. Each free cell is equally likely.
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

    fn redraw(&mut self) {
        self.board.clear();
        for food in &self.foods {
            self.board.put_food(*food);
        }
        for snake in self.snakes.iter().filter(|snake| snake.is_alive) {
            self.board.draw(&snake.cells);
        }
    }

    /// Returns true if the ranking can't change any more.
    ///
    /// - After the last epoch, or with no snake alive, every score is final.
    /// - Otherwise each pair of seats must be decided: either both scores are final, or all scores that one of them can
    ///   still reach are higher than those of the other. A survivor that has eaten as much as a dead snake may still
    ///   draw, because it may die as well.
    /// - A disqualified agent ranks below all others, regardless of its snake's food.
    ///
    /// The result may be false although the ranking is settled, for example if a food is too far away to be reached in
    /// time. The game then continues longer than necessary.
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
