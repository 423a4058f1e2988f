//! The input of a report: the names of the plan, and the finished games with numbers instead of names.

use std::collections::{BTreeMap, BTreeSet};

use super::{AcceptedChange, AgentInfo};
use crate::EvalRun;
use arena_players::BotKind;

use crate::plan::{EvalAgent, EvalAgentKind};
use crate::record::{ChangeRecord, GameRecord, VoidRecord};
use crate::run_file::AGAIN;
use crate::run_file::RunFile;

pub(super) struct InputAgent<'r> {
    pub(super) name: &'r str,
    pub(super) kind: &'static str,
    pub(super) identity: &'r str,
    /// The index of the model that plays under this second name.
    pub(super) null_variant_of: Option<usize>,
}

pub(super) struct InputChallenge<'r> {
    pub(super) label: &'r str,
    pub(super) identity: &'r str,
    pub(super) seats: usize,
    /// The number of planned games, and of the planned games of each agent.
    pub(super) planned: usize,
    pub(super) planned_by_agent: BTreeMap<usize, usize>,
    /// The agents with planned self-play.
    pub(super) self_play: BTreeSet<usize>,
}

pub(super) struct Input<'r> {
    pub(super) file: &'r RunFile,
    pub(super) agents: Vec<InputAgent<'r>>,
    pub(super) challenges: Vec<InputChallenge<'r>>,
    pub(super) games: &'r [GameRecord],
    pub(super) voids: &'r [VoidRecord],
    pub(super) changed: &'r [ChangeRecord],
    pub(super) started: &'r [i64],
}

/// A finished game.
pub(super) struct Played<'r> {
    pub(super) record: &'r GameRecord,
    /// The agents by seat.
    pub(super) agents: Vec<usize>,
    /// True if all seats ended by causes that count.
    pub(super) counts: bool,
}

impl<'r> Input<'r> {
    pub(super) fn of(run: &'r EvalRun) -> Input<'r> {
        let plan = &run.plan;
        let number = |name: &str| plan.agents.iter().position(|agent| agent.name == name);
        let agent = |agent: &'r EvalAgent| InputAgent {
            name: &agent.name,
            kind: match agent.kind {
                EvalAgentKind::Model(_) => "model",
                EvalAgentKind::Bot(BotKind::House(_)) => "house",
                EvalAgentKind::Bot(BotKind::Random) => "random",
                EvalAgentKind::Program(_) => "program",
            },
            identity: &agent.identity,
            null_variant_of: agent
                .name
                .strip_suffix(AGAIN)
                .filter(|name| plan.file.null_variant.as_deref() == Some(*name))
                .and_then(number),
        };
        let mut challenges: Vec<InputChallenge<'r>> = plan
            .challenges
            .iter()
            .map(|challenge| InputChallenge::new(&challenge.label, &challenge.identity, challenge.seats))
            .collect();
        for game in &plan.games {
            challenges[game.challenge].plan(&game.seats);
        }
        Input {
            file: &plan.file,
            agents: plan.agents.iter().map(agent).collect(),
            challenges,
            games: &run.games,
            voids: &run.voids,
            changed: &run.changes,
            started: &run.started,
        }
    }

    /// Returns the finished games of each challenge, in the order of the plan. Games of agents or challenges that
    /// aren't in the plan are left out.
    pub(super) fn played(&self) -> Vec<Vec<Played<'r>>> {
        let challenges: BTreeMap<&str, usize> = (0..).zip(&self.challenges).map(|(at, one)| (one.label, at)).collect();
        let agents: BTreeMap<&str, usize> = (0..).zip(&self.agents).map(|(at, one)| (one.name, at)).collect();
        let mut played: Vec<Vec<Played<'r>>> = self.challenges.iter().map(|_| Vec::new()).collect();
        for record in self.games {
            let Some(challenge) = challenges.get(record.challenge.as_str()) else { continue };
            let seats: Option<Vec<usize>> =
                record.seats.iter().map(|seat| agents.get(seat.agent.as_str()).copied()).collect();
            if let Some(seats) = seats {
                let counts = record.seats.iter().all(|seat| self.file.counts.counts(seat.cause));
                played[*challenge].push(Played { record, agents: seats, counts });
            }
        }
        played
    }

    /// Returns the agents that differences and ranks compare: all but null variants.
    pub(super) fn compared(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.agents.len()).filter(|agent| self.agents[*agent].null_variant_of.is_none())
    }

    pub(super) fn agent_infos(&self) -> Vec<AgentInfo> {
        let info = |agent: &InputAgent<'_>| AgentInfo {
            name: agent.name.to_owned(),
            kind: agent.kind,
            identity: agent.identity.to_owned(),
            null_variant_of: agent.null_variant_of.map(|model| self.agents[model].name.to_owned()),
        };
        self.agents.iter().map(info).collect()
    }

    pub(super) fn changes(&self) -> Vec<AcceptedChange> {
        let change = |change: &ChangeRecord| AcceptedChange {
            name: change.name.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
        };
        self.changed.iter().map(change).collect()
    }
}

impl<'r> InputChallenge<'r> {
    pub(super) fn new(label: &'r str, identity: &'r str, seats: usize) -> InputChallenge<'r> {
        InputChallenge {
            label,
            identity,
            seats,
            planned: 0,
            planned_by_agent: BTreeMap::new(),
            self_play: BTreeSet::new(),
        }
    }

    /// Counts a planned game with these agents by seat.
    pub(super) fn plan(&mut self, seats: &[usize]) {
        self.planned += 1;
        for agent in seats.iter().copied().collect::<BTreeSet<usize>>() {
            *self.planned_by_agent.entry(agent).or_default() += 1;
        }
        if let [first, others @ ..] = seats
            && !others.is_empty()
            && others.iter().all(|other| other == first)
        {
            self.self_play.insert(*first);
        }
    }
}
