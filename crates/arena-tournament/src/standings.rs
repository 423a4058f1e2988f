//! Standings: who stands where after the games that have been played, and how each did against each.

use std::cmp::{Ordering, Reverse};

use serde::Serialize;

use crate::schedule::{Schedule, halves};

/// How one agent stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// From 1; who can't be told apart shares a rank.
    pub rank: usize,
    /// Its number, from 0.
    pub agent: usize,
    /// How many it has played.
    pub games: u64,
    /// Those in which it was first alone.
    pub wins: u64,
    /// Those in which it was first with others.
    pub draws: u64,
    /// All others.
    pub losses: u64,
    /// Meetings that counted as won since there was no opponent.
    pub byes: u64,
    /// Of each game the share of opponents that it beat, half of those that it drew with, and one for each game that a bye stands for.
    pub points: f64,
    /// Of the points that it could have, from 0 to 1.
    pub share: f64,
    /// In a knockout: how many rounds it survived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survived: Option<usize>,
}

/// What one agent made of its games with another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versus {
    /// In which both played.
    pub games: u64,
    /// Two for each in which it was better, one for each in which it was equal.
    pub half_points: u64,
}

/// The standings, the best first. Agents stand in the order of their rounds survived (in a knockout), and then of the share of points;
/// those whom nothing tells apart, in the order of their numbers.
pub fn standings(schedule: &Schedule) -> Vec<Standing> {
    let shape = schedule.shape();
    let a_game = 2 * (shape.seats as u64 - 1);
    // Half points of the whole game, so that nothing is rounded while standings are compared.
    let mut got = vec![0u64; shape.agents];
    let mut lines: Vec<Standing> = (0..shape.agents)
        .map(|agent| Standing {
            rank: 0,
            agent,
            games: 0,
            wins: 0,
            draws: 0,
            losses: 0,
            byes: 0,
            points: 0.0,
            share: 0.0,
            survived: schedule.survived().map(|survived| survived[agent]),
        })
        .collect();
    for (pairing, ranks) in schedule.played() {
        let first = ranks.iter().filter(|rank| **rank == 1).count();
        for (seat, agent) in pairing.agents.iter().enumerate() {
            let line = &mut lines[*agent];
            line.games += 1;
            got[*agent] += halves(ranks, seat);
            match (ranks[seat], first) {
                (1, 1) => line.wins += 1,
                (1, _) => line.draws += 1,
                _ => line.losses += 1,
            }
        }
    }
    let mut could = vec![0u64; shape.agents];
    for (agent, byes) in schedule.byes().into_iter().enumerate() {
        let line = &mut lines[agent];
        line.byes = byes as u64;
        let bye_games = line.byes * shape.games_a_meeting() as u64;
        got[agent] += bye_games * a_game;
        could[agent] = (line.games + bye_games) * a_game;
        line.points = got[agent] as f64 / a_game as f64;
        line.share = got[agent] as f64 / could[agent].max(1) as f64;
    }
    let better = |a: &Standing, b: &Standing| -> Ordering {
        // a/b against c/d, without a division.
        let share = |x: &Standing, y: &Standing| u128::from(got[x.agent]) * u128::from(could[y.agent].max(1));
        b.survived.cmp(&a.survived).then(share(b, a).cmp(&share(a, b)))
    };
    lines
        .sort_by(|a, b| better(a, b).then_with(|| Reverse(a.games).cmp(&Reverse(b.games))).then(a.agent.cmp(&b.agent)));
    for at in 0..lines.len() {
        lines[at].rank = match at {
            0 => 1,
            _ if better(&lines[at - 1], &lines[at]) == Ordering::Equal => lines[at - 1].rank,
            _ => at + 1,
        };
    }
    lines
}

/// How each agent did against each, by number: `table[a][b]` is a's.
pub fn cross_table(schedule: &Schedule) -> Vec<Vec<Versus>> {
    let agents = schedule.shape().agents;
    let mut table = vec![vec![Versus::default(); agents]; agents];
    for (pairing, ranks) in schedule.played() {
        for (seat, agent) in pairing.agents.iter().enumerate() {
            for (other_seat, other) in pairing.agents.iter().enumerate().filter(|(other, _)| *other != seat) {
                let versus = &mut table[*agent][*other];
                versus.games += 1;
                versus.half_points += halves(&[ranks[seat], ranks[other_seat]], 0);
            }
        }
    }
    table
}
