//! The board of snake: the occupied cells, and the text of the board in the agents' states. Both are updated in each
//! epoch.

use std::collections::VecDeque;

use super::{Cell, Direction};

/// A grid of cells.
///
/// The text is JSON, a list with a string for each row: space for empty, `@` food, `C` head, `S` tail, and between them
/// `^ > V <`, the direction in which the snake entered the cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SnakeBoard {
    width: i16,
    height: i16,
    text: Vec<u8>,
    /// The content of each cell, row by row.
    contents: Vec<Content>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Content {
    /// The number of parts of live snakes.
    parts: u8,
    has_food: bool,
}

impl SnakeBoard {
    pub fn new(width: i16, height: i16) -> SnakeBoard {
        let row = format!("\"{}\"", " ".repeat(width as usize));
        let rows = vec![row; height as usize];
        let contents = vec![Content::default(); width as usize * height as usize];
        SnakeBoard { width, height, text: format!("[{}]", rows.join(",")).into_bytes(), contents }
    }

    pub fn width(&self) -> i16 {
        self.width
    }

    pub fn height(&self) -> i16 {
        self.height
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns true if the cell is in the grid.
    pub fn holds(&self, cell: Cell) -> bool {
        (0..self.width).contains(&cell.x) && (0..self.height).contains(&cell.y)
    }

    /// Returns the number of parts of live snakes in a cell of the grid.
    pub fn count(&self, cell: Cell) -> u8 {
        self.contents[self.index(cell)].parts
    }

    pub fn has_food(&self, cell: Cell) -> bool {
        self.contents[self.index(cell)].has_food
    }

    /// Returns the empty cells, row by row.
    pub fn free(&self) -> impl Iterator<Item = Cell> {
        let cells = (0..self.height).flat_map(|y| (0..self.width).map(move |x| Cell { x, y }));
        cells.zip(&self.contents).filter(|(_, content)| **content == Content::default()).map(|(cell, _)| cell)
    }

    pub fn clear(&mut self) {
        for y in 0..self.height {
            for x in 0..self.width {
                self.mark(Cell { x, y }, b' ');
            }
        }
        self.contents.fill(Content::default());
    }

    /// Draws a live snake, head first.
    pub fn draw(&mut self, cells: &VecDeque<Cell>) {
        for (index, cell) in cells.iter().enumerate() {
            match (index, cells.get(index + 1)) {
                (0, _) => self.enter(*cell),
                (_, Some(behind)) => self.put(*cell, entered(*behind, *cell).arrow()),
                (_, None) => self.put(*cell, b'S'),
            }
        }
    }

    /// Puts a head into a cell if it is in the grid.
    pub fn enter(&mut self, cell: Cell) {
        if self.holds(cell) {
            self.put(cell, b'C');
        }
    }

    /// Removes a tail from its cell.
    pub fn leave(&mut self, cell: Cell) {
        self.lift(cell);
        self.mark(cell, b' ');
    }

    /// Removes a part of a snake from the cell's count, but not from the text, which the caller updates. Cells
    /// outside of the grid are ignored.
    pub fn lift(&mut self, cell: Cell) {
        if self.holds(cell) {
            let index = self.index(cell);
            self.contents[index].parts -= 1;
        }
    }

    /// Sets the character of a cell of the grid.
    pub fn mark(&mut self, cell: Cell, mark: u8) {
        // A bracket and a quotation mark precede the first cell. Three characters (`","`) separate two rows.
        let index = 2 + cell.y as usize * (self.width as usize + 3) + cell.x as usize;
        self.text[index] = mark;
    }

    /// Puts food into a free cell.
    pub fn put_food(&mut self, cell: Cell) {
        let index = self.index(cell);
        self.contents[index].has_food = true;
        self.mark(cell, b'@');
    }

    /// Removes the food from a cell with a snake's head.
    pub fn take_food(&mut self, cell: Cell) {
        let index = self.index(cell);
        self.contents[index].has_food = false;
    }

    fn put(&mut self, cell: Cell, mark: u8) {
        let index = self.index(cell);
        self.contents[index].parts += 1;
        self.mark(cell, mark);
    }

    fn index(&self, cell: Cell) -> usize {
        cell.y as usize * self.width as usize + cell.x as usize
    }
}

/// Returns the direction of the step from a cell to a neighbor.
pub(super) fn entered(from: Cell, to: Cell) -> Direction {
    match (to.x - from.x, to.y - from.y) {
        (1, _) => Direction::Right,
        (-1, _) => Direction::Left,
        (_, 1) => Direction::Down,
        _ => Direction::Up,
    }
}
