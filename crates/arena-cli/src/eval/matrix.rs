//! The matrix of a plan: agents and challenges with their numbers of games. An agent on several seats of a game counts
//! once.

use std::collections::BTreeSet;

use arena_eval::{EvalPlan, PlannedGame};

use crate::output::Table;

/// The largest number of challenges that are columns of a table; more are rows.
const MOST_COLUMNS: usize = 6;

/// Numbers of games by agent, then by challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix(Vec<Vec<usize>>);

impl Matrix {
    /// Counts the games of a plan for which `counts` is true.
    pub fn of(plan: &EvalPlan, counts: impl Fn(&PlannedGame) -> bool) -> Matrix {
        let mut cells = vec![vec![0; plan.challenges.len()]; plan.agents.len()];
        for game in plan.games.iter().filter(|game| counts(game)) {
            for agent in game.seats.iter().copied().collect::<BTreeSet<usize>>() {
                cells[agent][game.challenge] += 1;
            }
        }
        Matrix(cells)
    }
}

/// Draws a table of agents and challenges. `cell` returns the text of an agent and a challenge.
pub fn table(agents: &[&str], challenges: &[&str], cell: impl Fn(usize, usize) -> String) -> String {
    let by_agent = challenges.len() <= MOST_COLUMNS || agents.len() > challenges.len();
    let (corner, rows, columns) =
        if by_agent { ("agent", agents, challenges) } else { ("challenge", challenges, agents) };
    let header: Vec<&str> = std::iter::once(corner).chain(columns.iter().copied()).collect();
    let mut table = Table::new(&header);
    for (row, name) in rows.iter().enumerate() {
        let cells = (0..columns.len()).map(|column| if by_agent { cell(row, column) } else { cell(column, row) });
        table.row(std::iter::once((*name).to_owned()).chain(cells));
    }
    table.right(1..header.len()).to_string()
}

pub fn games(plan: &EvalPlan) -> String {
    let Matrix(all) = Matrix::of(plan, |_| true);
    table(&agents(plan), &challenges(plan), |agent, challenge| all[agent][challenge].to_string())
}

/// Draws the finished games of a plan against all of them.
pub fn finished(plan: &EvalPlan, is_finished: impl Fn(&PlannedGame) -> bool) -> String {
    let (Matrix(all), Matrix(done)) = (Matrix::of(plan, |_| true), Matrix::of(plan, is_finished));
    let cell = |agent: usize, challenge: usize| match all[agent][challenge] {
        0 => String::new(),
        games => format!("{}/{games}", done[agent][challenge]),
    };
    table(&agents(plan), &challenges(plan), cell)
}

fn agents(plan: &EvalPlan) -> Vec<&str> {
    plan.agents.iter().map(|agent| agent.name.as_str()).collect()
}

fn challenges(plan: &EvalPlan) -> Vec<&str> {
    plan.challenges.iter().map(|challenge| challenge.label.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_longer_side_is_in_rows() {
        let cell = |agent: usize, challenge: usize| format!("{}", agent * 10 + challenge);
        expect![[r#"
            ┌───────────────────────┐
            │ agent   psi   auction │
            ╞═══════════════════════╡
            │ small     0         1 │
            │ large    10        11 │
            └───────────────────────┘"#]]
        .assert_eq(&table(&["small", "large"], &["psi", "auction"], cell));
        let many: Vec<String> = (0..7).map(|number| format!("c{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let drawn = table(&["small", "large"], &many, cell);
        assert!(drawn.contains("challenge") && drawn.contains("c6") && drawn.lines().count() == 7 + 4, "{drawn}");
    }
}
