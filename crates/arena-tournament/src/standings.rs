//! Standings and cross table: the points of each agent so far, in all and against each opponent.

use std::cmp::{Ordering, Reverse};

use serde::Serialize;

use crate::schedule::{Schedule, halves};

/// One agent's line in the standings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TournamentStanding {
    /// The rank, from 1; equal agents share a rank.
    pub rank: usize,
    /// The agent's number, from 0.
    pub agent: usize,
    pub games: u64,
    /// The number of games in which the agent was the only one with rank 1.
    pub wins: u64,
    /// The number of games in which the agent shared rank 1.
    pub draws: u64,
    /// The number of all other games.
    pub losses: u64,
    /// A bye is a round without an opponent, which counts as a meeting (the games of one pairing) won.
    pub byes: u64,
    /// The points. For each game, an agent gets the share of opponents that it beat, plus half of the share that it
    /// drew with. A bye gives one point for each game of a meeting.
    pub points: f64,
    /// The points divided by the largest possible points, 0 to 1.
    pub share: f64,
    /// The number of rounds survived, in a knockout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survived: Option<usize>,
}

/// One agent's score against another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadToHead {
    /// The number of games with both agents.
    pub games: u64,
    /// The half points of the first agent: two for each game in which it ranked above the other agent, one for each
    /// game in which they ranked equal.
    pub half_points: u64,
}

/// Returns the standings, the best agent first. The sort keys are: rounds survived (in a knockout), share of the
/// possible points, number of games, and agent number.
pub fn standings(schedule: &Schedule) -> Vec<TournamentStanding> {
    let shape = schedule.shape();
    let a_game = 2 * (shape.seats as u64 - 1);
    // Points are counted in integers, so that comparisons are exact.
    let mut got = vec![0u64; shape.agents];
    let mut lines: Vec<TournamentStanding> = (0..shape.agents)
        .map(|agent| TournamentStanding {
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
    let better = |a: &TournamentStanding, b: &TournamentStanding| -> Ordering {
        // Compares a/b with c/d by cross-multiplication.
        let share = |x: &TournamentStanding, y: &TournamentStanding| {
            u128::from(got[x.agent]) * u128::from(could[y.agent].max(1))
        };
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

/// Returns the score of each agent against each other agent: `table[a][b]` is the score of agent number `a` against
/// `b`.
pub fn cross_table(schedule: &Schedule) -> Vec<Vec<HeadToHead>> {
    let agents = schedule.shape().agents;
    let mut table = vec![vec![HeadToHead::default(); agents]; agents];
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
