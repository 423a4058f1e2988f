//! Start positions: drawn so that all snakes are in the grid and none touches another, not even at a corner.

use arena_model::SeedRng;

use super::Cell;

/// The maximum number of random draws; if none fits, the snakes are placed in rows. Only a nearly full grid needs
/// more than a few draws.
const ATTEMPTS: usize = 100;

/// Returns the maximum number of snakes that fit into the grid without touching. Each snake has a head and a tail to
/// the left of the head.
///
/// A snake with the free cells to its right and below it is a block of three by two cells, in a grid that is one cell
/// wider and one cell higher. Blocks with the same orientation fit best in rows and columns.
pub(super) fn capacity(width: i16, height: i16) -> usize {
    ((width + 1) / 3) as usize * ((height + 1) / 2) as usize
}

/// Returns the cells of the heads of `count` snakes. `count` must be at most [`capacity`].
pub(super) fn draw(width: i16, height: i16, count: usize, rng: &mut SeedRng) -> Vec<Cell> {
    let draw_from = |cells: &mut Vec<Cell>, rng: &mut SeedRng| {
        (!cells.is_empty()).then(|| cells.swap_remove(rng.below(cells.len() as u64) as usize))
    };
    let grid: Vec<Cell> = (0..height).flat_map(|y| (1..width).map(move |x| Cell { x, y })).collect();
    for _ in 0..ATTEMPTS {
        let mut free = grid.clone();
        let mut heads = Vec::with_capacity(count);
        while heads.len() < count
            && let Some(head) = draw_from(&mut free, rng)
        {
            free.retain(|other| !do_touch(head, *other));
            heads.push(head);
        }
        if heads.len() == count {
            return heads;
        }
    }
    let mut slots: Vec<Cell> = grid.into_iter().filter(|cell| cell.x % 3 == 1 && cell.y % 2 == 0).collect();
    (0..count).map_while(|_| draw_from(&mut slots, rng)).collect()
}

/// Returns true if snakes with these heads overlap or touch, also at corners.
fn do_touch(one: Cell, other: Cell) -> bool {
    (one.x - other.x).abs() <= 2 && (one.y - other.y).abs() <= 1
}

#[cfg(test)]
mod tests {
    use arena_model::Seed;

    use super::*;

    #[test]
    fn snakes_start_in_the_grid_and_apart_even_when_the_grid_is_as_full_as_it_can_be() {
        for (width, height) in [(2, 3), (2, 15), (5, 2), (5, 3), (7, 4), (10, 10), (11, 5), (64, 64)] {
            for seed in 0..50 {
                let count = capacity(width, height).min(8);
                let heads = draw(width, height, count, &mut Seed::from_number(seed).rng("test"));
                assert_eq!(heads.len(), count, "{width} by {height}");
                for (index, head) in heads.iter().enumerate() {
                    assert!((1..width).contains(&head.x) && (0..height).contains(&head.y), "{head:?}");
                    assert!(heads[..index].iter().all(|other| !do_touch(*head, *other)), "{heads:?}");
                }
            }
        }
    }
}
