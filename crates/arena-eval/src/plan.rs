//! The plan of a run: agents, challenges, and all games in the order of play.
//!
//! Ids and identities don't depend on the order of the run file, so a file with one more model gives the same games
//! and new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_house::{Style, house_bot};
use arena_model::{ChallengeType, Seed};
use arena_players::BotKind;
use serde_json::{Value, json};

use crate::challenges::{ChallengeLoader, LoadedChallenge, StoredFile};
use crate::harness::Harness;
use crate::hash::{hash_of, sha256};
use crate::program;
use crate::run_file::{
    BaselineSpec, DEFAULT_HARNESS, HarnessSpec, Lineups, ModelSpec, RANDOM, RunFile, RunFileError, ToolUseSpec,
    name_again,
};

const MOST_GAMES: u128 = 1_000_000;

const ID_DIGITS: usize = 12;

const PROMPTS: &str = "prompts";

#[derive(Debug, Clone)]
pub struct EvalPlan {
    /// The run file. The paths of prompts and scripts are those of [`EvalPlan::files`].
    pub file: RunFile,
    /// The agents: models, then the null variant, then baselines.
    pub agents: Vec<EvalAgent>,
    /// The challenges, in the order of the file.
    pub challenges: Vec<PlannedChallenge>,
    /// The games in the order of play: all games of the first seed come first.
    pub games: Vec<PlannedGame>,
    pub harnesses: BTreeMap<String, Harness>,
    /// The prompts and scripts, which the folder of a run keeps.
    pub files: Vec<StoredFile>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EvalAgent {
    /// The name in tables, different for each agent.
    pub name: String,
    pub kind: EvalAgentKind,
    /// The SHA-256 over all values that determine its play, in hexadecimal. A null variant has its model's identity.
    pub identity: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EvalAgentKind {
    /// The model with this index in [`RunFile::models`].
    Model(usize),
    Bot(BotKind),
    /// The program or URL of the baseline with this index in [`RunFile::baselines`].
    Program(usize),
}

#[derive(Clone)]
pub struct PlannedChallenge {
    /// The name in tables, different for each challenge.
    pub label: String,
    pub challenge: Arc<dyn ChallengeType>,
    /// All options, with the defaults.
    pub options: Value,
    pub seats: usize,
    /// The SHA-256 over the challenge's id, the version of its rules or script, and the options, in hexadecimal.
    pub identity: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGame {
    /// The id: 12 hexadecimal digits, from the challenge, the seed and the agents by seat.
    pub id: String,
    /// The index in [`EvalPlan::challenges`].
    pub challenge: usize,
    /// The number of the seed, from 0.
    pub seed_number: usize,
    /// The seed of the deal. All lineups of a challenge share it.
    pub seed: Seed,
    /// The agents by seat, as indexes in [`EvalPlan::agents`].
    pub seats: Vec<usize>,
}

/// The error of a plan. The text names the key and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl From<RunFileError> for PlanError {
    fn from(RunFileError(mistake): RunFileError) -> PlanError {
        PlanError(mistake)
    }
}

impl EvalPlan {
    /// Makes the plan of a run file. `base` is the folder for relative paths of prompts and scripts.
    ///
    /// # Errors
    /// If a prompt or challenge is missing or invalid, or there are too many games.
    pub fn of(file: RunFile, base: &Path) -> Result<EvalPlan, PlanError> {
        EvalPlan::build(file, base, None)
    }

    /// Makes the plan of a recorded run. The recorded `identities` replace those of this program, so that a newer
    /// program finds the games of older rules and prompts.
    pub(crate) fn recorded(
        file: RunFile,
        base: &Path,
        identities: &BTreeMap<String, String>,
    ) -> Result<EvalPlan, PlanError> {
        EvalPlan::build(file, base, Some(identities))
    }

    fn build(
        mut file: RunFile,
        base: &Path,
        recorded: Option<&BTreeMap<String, String>>,
    ) -> Result<EvalPlan, PlanError> {
        file.check()?;
        let mut files = Vec::new();
        let harnesses = load_harnesses(&mut file, base, &mut files)?;
        let mut challenges = load_challenges(&mut file, base, recorded.is_none(), &mut files)?;
        let programs = load_programs(&mut file, base, recorded.is_none())?;
        let mut agents = agents(&file, &harnesses, &programs);
        if let Some(recorded) = recorded {
            for challenge in &mut challenges {
                if let Some(identity) = recorded.get(&challenge_key(&challenge.label)) {
                    challenge.identity.clone_from(identity);
                }
            }
            for agent in &mut agents {
                if let Some(identity) = recorded.get(&agent_key(agent, &file)) {
                    agent.identity.clone_from(identity);
                }
            }
        }
        check_challenges(&challenges)?;
        check_baselines(&agents, &challenges)?;
        let games = games(&file, &agents, &challenges)?;
        Ok(EvalPlan { file, agents, challenges, games, harnesses, files })
    }

    /// Returns the model of an agent; `None` for a baseline.
    pub fn model(&self, agent: usize) -> Option<&ModelSpec> {
        match self.agents.get(agent)?.kind {
            EvalAgentKind::Model(model) => self.file.models.get(model),
            EvalAgentKind::Bot(_) | EvalAgentKind::Program(_) => None,
        }
    }

    /// Returns the harness of an agent; `None` for a baseline.
    pub fn harness(&self, agent: usize) -> Option<&Harness> {
        self.harnesses.get(&self.model(agent)?.harness)
    }

    pub fn game(&self, id: &str) -> Option<&PlannedGame> {
        self.games.iter().find(|game| game.id == id)
    }

    /// Returns the identities of the seed, the agents and the challenges, by kind and name, such as `model small`.
    pub fn identities(&self) -> Vec<(String, String)> {
        let mut identities = vec![(SEED_KEY.to_owned(), self.file.seed.to_string())];
        let own = self.agents.iter().filter(|agent| !self.is_null_variant(agent));
        identities.extend(own.map(|agent| (agent_key(agent, &self.file), agent.identity.clone())));
        identities.extend(self.challenges.iter().map(|at| (challenge_key(&at.label), at.identity.clone())));
        identities
    }

    fn is_null_variant(&self, agent: &EvalAgent) -> bool {
        matches!(agent.kind, EvalAgentKind::Model(model) if self.file.models[model].name != agent.name)
    }
}

impl fmt::Debug for PlannedChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlannedChallenge { label, challenge, options, seats, identity } = self;
        f.debug_struct("PlannedChallenge")
            .field("label", label)
            .field("challenge", &challenge.id())
            .field("options", options)
            .field("seats", seats)
            .field("identity", identity)
            .finish()
    }
}

/// The name of the seed in [`EvalPlan::identities`].
pub(crate) const SEED_KEY: &str = "seed";

fn challenge_key(label: &str) -> String {
    format!("challenge {label}")
}

/// Returns the name of an agent in [`EvalPlan::identities`]. A null variant has its model's name.
fn agent_key(agent: &EvalAgent, file: &RunFile) -> String {
    match agent.kind {
        EvalAgentKind::Model(model) => format!("model {}", file.models[model].name),
        EvalAgentKind::Bot(_) | EvalAgentKind::Program(_) => {
            format!("baseline {}", agent.name)
        }
    }
}

fn load_harnesses(
    file: &mut RunFile,
    base: &Path,
    files: &mut Vec<StoredFile>,
) -> Result<BTreeMap<String, Harness>, PlanError> {
    let mut harnesses = BTreeMap::new();
    for (name, spec) in &mut file.harness {
        let wrong = |mistake: String| PlanError(format!("harness.{name}.prompt: {mistake}"));
        let text = spec.prompt.as_ref().map(|path| read_prompt(base, path)).transpose().map_err(wrong)?;
        let harness = Harness::of(spec, text.as_deref()).map_err(wrong)?;
        if let (Some(path), Some(text)) = (&mut spec.prompt, text) {
            keep_prompt(path, text, files);
        }
        harnesses.insert(name.clone(), harness);
    }
    if !harnesses.contains_key(DEFAULT_HARNESS) {
        let harness = Harness::of(&HarnessSpec::default(), None).map_err(PlanError)?;
        harnesses.insert(DEFAULT_HARNESS.to_owned(), harness);
    }
    Ok(harnesses)
}

fn read_prompt(base: &Path, path: &Path) -> Result<String, String> {
    let path = base.join(path);
    let text = fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    if text.trim().is_empty() { Err(format!("{} is empty", path.display())) } else { Ok(text) }
}

/// Adds a prompt to the files of the run, and replaces its path by the one in the run's folder.
fn keep_prompt(path: &mut PathBuf, text: String, files: &mut Vec<StoredFile>) {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let extension = path.extension().map_or_else(|| "txt".into(), |extension| extension.to_string_lossy().into_owned());
    let hash = &sha256(&text)[..ID_DIGITS];
    // A path in the folder of a run has the hash already.
    let stem = stem.strip_suffix(hash).and_then(|stem| stem.strip_suffix('-')).unwrap_or(&stem);
    let kept = format!("{PROMPTS}/{stem}-{hash}.{extension}");
    *path = PathBuf::from(&kept);
    keep(StoredFile { path: kept, text }, files);
}

fn keep(file: StoredFile, files: &mut Vec<StoredFile>) {
    if files.iter().all(|at| at.path != file.path) {
        files.push(file);
    }
}

fn load_challenges(
    file: &mut RunFile,
    base: &Path,
    is_testing: bool,
    files: &mut Vec<StoredFile>,
) -> Result<Vec<PlannedChallenge>, PlanError> {
    let mut loader = ChallengeLoader::new(base, is_testing);
    let mut challenges = Vec::new();
    for spec in &mut file.challenges {
        let loaded = loader.load(&spec.name, &spec.options);
        let LoadedChallenge { challenge, options, file } =
            loaded.map_err(|mistake| PlanError(format!("challenge `{}`: {mistake}", spec.name)))?;
        if let Some(file) = file {
            spec.name.clone_from(&file.path);
            keep(file, files);
        }
        let label = spec.label.clone().unwrap_or_else(|| challenge.id().to_owned());
        let seats = challenge.seats(&options);
        let identity = hash_of(&json!({
            "challenge": challenge.id(),
            "rules": challenge.rules_version(),
            "script": challenge.script().map(|script| script.version().to_string()),
            "options": options,
        }));
        challenges.push(PlannedChallenge { label, challenge, options, seats, identity });
    }
    Ok(challenges)
}

fn check_challenges(challenges: &[PlannedChallenge]) -> Result<(), PlanError> {
    for (at, challenge) in challenges.iter().enumerate() {
        let label = &challenge.label;
        if challenges[..at].iter().any(|other| other.label == *label) {
            return Err(PlanError(format!(
                "two challenges are named `{label}`; give them different values of `label`"
            )));
        }
        if let Some(other) = challenges[..at].iter().find(|other| other.identity == challenge.identity) {
            return Err(PlanError(format!(
                "the challenges `{}` and `{label}` have equal rules and options; leave one of them out",
                other.label
            )));
        }
    }
    Ok(())
}

/// Checks that all bots among the baselines can play all challenges. Programs receive the messages of any challenge.
fn check_baselines(agents: &[EvalAgent], challenges: &[PlannedChallenge]) -> Result<(), PlanError> {
    for EvalAgent { name, kind, .. } in agents {
        let style = match kind {
            EvalAgentKind::Bot(BotKind::House(style)) => *style,
            EvalAgentKind::Bot(BotKind::Random) => Style::default(),
            EvalAgentKind::Model(_) | EvalAgentKind::Program(_) => continue,
        };
        let can_play = |at: &&PlannedChallenge| house_bot(&*at.challenge, &at.options, style, 0).is_some();
        let Some(PlannedChallenge { label, .. }) = challenges.iter().find(|at| !can_play(at)) else { continue };
        let why = match style {
            Style::Character(_) => "which has no house bot of this name; leave one of them out",
            Style::Strength(_) => {
                "whose script has no forms; leave one of them out, or add `forms` to its challenge.json"
            }
        };
        return Err(PlanError(format!("baseline `{name}` cannot play challenge `{label}`, {why}")));
    }
    Ok(())
}

impl EvalAgentKind {
    pub fn is_model(&self) -> bool {
        matches!(self, EvalAgentKind::Model(_))
    }
}

/// Makes the paths of programs absolute, and returns the programs' identities by baseline; empty for bots. With
/// `is_needed`, all programs must exist.
fn load_programs(file: &mut RunFile, base: &Path, is_needed: bool) -> Result<Vec<String>, PlanError> {
    let mut identities = Vec::new();
    for baseline in &mut file.baselines {
        if !baseline.is_program() {
            identities.push(String::new());
            continue;
        }
        // The name stays that of the path in the run file.
        baseline.name = Some(baseline.name().to_owned());
        program::resolve(baseline, base);
        let identity = match program::identity(baseline) {
            Ok(identity) => identity,
            Err(_) if !is_needed => String::new(),
            Err(mistake) => return Err(PlanError(format!("baseline `{}`: {mistake}", baseline.name()))),
        };
        identities.push(identity);
    }
    Ok(identities)
}

fn agents(file: &RunFile, harnesses: &BTreeMap<String, Harness>, programs: &[String]) -> Vec<EvalAgent> {
    let model = |(at, spec): (usize, &ModelSpec)| EvalAgent {
        name: spec.name.clone(),
        kind: EvalAgentKind::Model(at),
        identity: identity_of_model(spec, harnesses),
    };
    let mut agents: Vec<EvalAgent> = file.models.iter().enumerate().map(model).collect();
    let again = agents.iter().find(|agent| Some(&agent.name) == file.null_variant.as_ref());
    if let Some(again) = again.map(|agent| EvalAgent { name: name_again(&agent.name), ..agent.clone() }) {
        agents.push(again);
    }
    agents.extend(file.baselines.iter().zip(programs).enumerate().map(|(at, (baseline, program))| {
        let identity = match baseline.is_program() {
            true => program.clone(),
            false => hash_of(&json!({ "kind": "baseline", "agent": baseline.agent })),
        };
        EvalAgent { name: baseline.name().to_owned(), kind: kind_of(at, baseline), identity }
    }));
    agents
}

fn kind_of(at: usize, baseline: &BaselineSpec) -> EvalAgentKind {
    match baseline.agent.as_str() {
        _ if baseline.is_program() => EvalAgentKind::Program(at),
        RANDOM => EvalAgentKind::Bot(BotKind::Random),
        agent => EvalAgentKind::Bot(BotKind::House(Style::of_agent(agent).unwrap_or_default())),
    }
}

fn identity_of_model(model: &ModelSpec, harnesses: &BTreeMap<String, Harness>) -> String {
    // The file has been checked, so the endpoint has an address and the harness exists.
    let address = model.address().ok();
    hash_of(&json!({
        "kind": "model",
        "model": model.model,
        "base": address.as_ref().map(|address| &address.base),
        "api": address.as_ref().map(|address| address.api.to_string()),
        "params": serde_json::to_value(&model.params).unwrap_or_default(),
        "harness": harnesses.get(&model.harness).map(|harness| &harness.sha256),
        "tools": match model.tools {
            ToolUseSpec::Native => "native",
            ToolUseSpec::Text => "text",
        },
    }))
}

fn games(file: &RunFile, agents: &[EvalAgent], challenges: &[PlannedChallenge]) -> Result<Vec<PlannedGame>, PlanError> {
    let are_models: Vec<bool> = agents.iter().map(|agent| agent.kind.is_model()).collect();
    let mut all = Vec::new();
    let mut total = 0;
    for PlannedChallenge { label, seats, .. } in challenges {
        let count = count_lineups(*seats, agents.len(), file.lineups).saturating_mul(file.seeds as u128);
        total += count.min(MOST_GAMES + 1);
        if total > MOST_GAMES {
            return Err(PlanError(format!(
                "challenge `{label}` brings the run to more than {MOST_GAMES} games; lower `seeds`, or leave out \
                 agents or `lineups = \"all\"`"
            )));
        }
        all.push(lineups(*seats, &are_models, file.self_play, file.lineups));
    }
    let seed = Seed::from_number(file.seed);
    let mut games = Vec::new();
    let mut ids = BTreeSet::new();
    for seed_number in 0..file.seeds {
        for (challenge, lineups) in all.iter().enumerate() {
            let planned = &challenges[challenge];
            let seed = seed.derive(&format!("eval {} {seed_number}", planned.challenge.id()));
            for seats in lineups {
                let id = game_id(planned, &seed, seats.iter().map(|seat| &agents[*seat]));
                if !ids.insert(id.clone()) {
                    return Err(PlanError(format!("two games have the id {id}; use another `seed`")));
                }
                games.push(PlannedGame { id, challenge, seed_number, seed: seed.clone(), seats: seats.clone() });
            }
        }
    }
    Ok(games)
}

fn game_id<'a>(challenge: &PlannedChallenge, seed: &Seed, seats: impl Iterator<Item = &'a EvalAgent>) -> String {
    let seats: Vec<[&str; 2]> = seats.map(|agent| [agent.name.as_str(), agent.identity.as_str()]).collect();
    let mut id = hash_of(&json!({ "challenge": challenge.identity, "seed": seed.reveal(), "seats": seats }));
    id.truncate(ID_DIGITS);
    id
}

/// Returns an upper bound of the number of lineups.
fn count_lineups(seats: usize, agents: usize, kind: Lineups) -> u128 {
    let (seats, agents) = (seats as u128, agents as u128);
    match (seats, kind) {
        (0 | 1, _) => agents,
        (2, _) => agents * agents,
        (_, Lineups::OneAgainstOthers) => agents + agents * (agents - 1) * seats,
        (_, Lineups::All) => {
            // The number of combinations with repetition, of which each has `seats` rotations.
            let mut combinations: u128 = 1;
            for at in 1..=seats {
                combinations = combinations.saturating_mul(agents + at - 1) / at;
                if combinations > MOST_GAMES {
                    return combinations;
                }
            }
            combinations * seats
        }
    }
}

/// Returns the agents by seat of all games of one seed. `are_models` has an entry for each agent. Baselines play without
/// a model only if there are no models.
fn lineups(seats: usize, are_models: &[bool], self_play: bool, kind: Lineups) -> Vec<Vec<usize>> {
    let agents = are_models.len();
    if seats <= 1 {
        return (0..agents).map(|agent| vec![agent; seats]).collect();
    }
    let needs_model = are_models.contains(&true);
    let mut lineups = Vec::new();
    let mut add = |lineup: Vec<usize>| {
        let is_self_play = lineup.iter().all(|agent| *agent == lineup[0]);
        let has_model = lineup.iter().any(|agent| are_models[*agent]);
        if (has_model || !needs_model) && (self_play || !is_self_play) {
            lineups.push(lineup);
        }
    };
    if kind == Lineups::All && seats > 2 {
        for combination in combinations(agents, seats) {
            let mut rotations: Vec<Vec<usize>> = Vec::new();
            for by in 0..seats {
                let mut rotated = combination.clone();
                rotated.rotate_left(by);
                if !rotations.contains(&rotated) {
                    rotations.push(rotated);
                }
            }
            rotations.into_iter().for_each(&mut add);
        }
        return lineups;
    }
    for first in 0..agents {
        add(vec![first; seats]);
        for second in first + 1..agents {
            let one_against = |one: usize, others: usize| {
                let lineup = move |seat| (0..seats).map(|at| if at == seat { one } else { others }).collect::<Vec<_>>();
                (0..seats).map(lineup)
            };
            one_against(first, second).for_each(&mut add);
            // With two seats, the reverse is the same.
            if seats > 2 {
                one_against(second, first).for_each(&mut add);
            }
        }
    }
    lineups
}

/// Returns all ascending lists of `length` agents, in lexicographic order.
fn combinations(agents: usize, length: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..length {
        all = all
            .iter()
            .flat_map(|begin| {
                (begin.last().copied().unwrap_or(0)..agents).map(|next| {
                    let mut longer = begin.clone();
                    longer.push(next);
                    longer
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const FILE: &str = r#"
        name = "test"
        seeds = 2
        [[models]]
        name = "A"
        model = "a"
        endpoint = "http://127.0.0.1:2/v1"
        [[models]]
        name = "B"
        model = "b"
        endpoint = "http://127.0.0.1:1/v1"
        [[challenges]]
        name = "psi"
    "#;

    fn plan_of(text: &str) -> EvalPlan {
        let file = RunFile::parse(text, "test.toml").unwrap();
        EvalPlan::of(file, Path::new(".")).unwrap()
    }

    fn plan_error(text: &str) -> String {
        let file = RunFile::parse(text, "test.toml").unwrap();
        EvalPlan::of(file, Path::new("/nowhere")).err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Returns the games as lines of challenge, seed and agents.
    fn games(plan: &EvalPlan) -> BTreeMap<String, String> {
        let line = |game: &PlannedGame| {
            let names: Vec<&str> = game.seats.iter().map(|seat| plan.agents[*seat].name.as_str()).collect();
            format!("{} {} {}", plan.challenges[game.challenge].label, game.seed_number, names.join(" "))
        };
        plan.games.iter().map(|game| (line(game), game.id.clone())).collect()
    }

    fn check_lineups(seats: usize, are_models: &[bool], self_play: bool, kind: Lineups, expected: Expect) {
        let letter = |agent: &usize| char::from(b'A' + *agent as u8);
        let lineups: Vec<String> = lineups(seats, are_models, self_play, kind)
            .iter()
            .map(|lineup| lineup.iter().map(letter).collect())
            .collect();
        expected.assert_eq(&lineups.join(" "));
        assert!(lineups.len() as u128 <= count_lineups(seats, are_models.len(), kind), "the bound is too low");
        let different: BTreeSet<&String> = lineups.iter().collect();
        assert_eq!(different.len(), lineups.len(), "a lineup is listed twice");
    }

    #[test]
    fn lineups_of_each_number_of_seats() {
        let (models, mixed) = ([true, true], [true, true, false, false]);
        let one = Lineups::OneAgainstOthers;
        check_lineups(1, &mixed, true, one, expect!["A B C D"]);
        check_lineups(1, &models, false, Lineups::All, expect!["A B"]);
        check_lineups(2, &models, true, one, expect!["AA AB BA BB"]);
        check_lineups(2, &models, false, one, expect!["AB BA"]);
        check_lineups(2, &models, true, Lineups::All, expect!["AA AB BA BB"]);
        check_lineups(2, &mixed, true, one, expect!["AA AB BA AC CA AD DA BB BC CB BD DB"]);
        check_lineups(3, &models, true, one, expect!["AAA ABB BAB BBA BAA ABA AAB BBB"]);
        check_lineups(3, &[true, false], true, one, expect!["AAA ABB BAB BBA BAA ABA AAB"]);
        check_lineups(2, &[false, false], true, one, expect!["AA AB BA BB"]);
        check_lineups(3, &models, false, Lineups::All, expect!["AAB ABA BAA ABB BBA BAB"]);
        check_lineups(
            3,
            &[true, false, false],
            true,
            Lineups::All,
            expect!["AAA AAB ABA BAA AAC ACA CAA ABB BBA BAB ABC BCA CAB ACC CCA CAC"],
        );
    }

    #[test]
    fn each_agent_has_each_seat_equally_often() {
        for seats in 2..=5 {
            for kind in [Lineups::OneAgainstOthers, Lineups::All] {
                let are_models = [true, true, true, false];
                for agent in 0..are_models.len() {
                    let lineups = lineups(seats, &are_models, true, kind);
                    let count = |seat: usize| lineups.iter().filter(|lineup| lineup[seat] == agent).count();
                    let counts: Vec<usize> = (0..seats).map(count).collect();
                    assert!(counts.iter().all(|count| *count == counts[0] && *count > 0), "{seats} {agent} {counts:?}");
                }
            }
        }
    }

    #[test]
    fn a_plan_has_all_games_in_the_order_of_seeds() {
        let plan = plan_of(FILE);
        let seeds: Vec<usize> = plan.games.iter().map(|game| game.seed_number).collect();
        assert_eq!(seeds, [0, 0, 0, 0, 1, 1, 1, 1]);
        let lines: Vec<String> = games(&plan).into_keys().collect();
        expect!["psi 0 A A, psi 0 A B, psi 0 B A, psi 0 B B, psi 1 A A, psi 1 A B, psi 1 B A, psi 1 B B"]
            .assert_eq(&lines.join(", "));
        assert!(plan.games.iter().all(|game| game.id.len() == 12));
        let of_first = |game: &&PlannedGame| game.seed_number == 0;
        let first: Vec<&Seed> = plan.games.iter().filter(of_first).map(|game| &game.seed).collect();
        assert!(first.iter().all(|seed| *seed == first[0]), "lineups share the seed");
        assert!(plan.games[4].seed != *first[0], "each number has its own seed");
    }

    #[test]
    fn the_ids_of_games_are_stable() {
        let before = games(&plan_of(FILE));
        let third = "[[models]]\nname = \"C\"\nmodel = \"c\"\nendpoint = \"ollama\"\n";
        let more = [
            ("another model", format!("{FILE}\n{third}")),
            ("another first model", FILE.replacen("[[models]]", &format!("{third}[[models]]"), 1)),
            ("a baseline", format!("{FILE}\n[[baselines]]\nagent = \"random\"")),
            ("a null variant", format!("null_variant = \"A\"\n{FILE}")),
            ("a challenge before", FILE.replace("[[challenges]]", "[[challenges]]\nname = \"chess\"\n[[challenges]]")),
            ("more seeds", FILE.replace("seeds = 2", "seeds = 3")),
            ("a budget", format!("{FILE}\n[budget]\nwall_hours = 2")),
        ];
        for (change, text) in more {
            let after = games(&plan_of(&text));
            for (game, id) in &before {
                assert_eq!(after.get(game), Some(id), "{change}: {game}");
            }
            assert!(after.len() > before.len() || change == "a budget", "{change}");
        }
        let other = [
            ("a parameter", "A", FILE.replace("model = \"a\"", "model = \"a\"\nparams = { temperature = 0.5 }")),
            ("a harness", "A", format!("{FILE}\n[harness.default]\nmax_turns = 7")),
            ("tools as text", "B", FILE.replace("model = \"b\"", "model = \"b\"\ntools = \"text\"")),
            ("an option", "A", format!("{FILE}\noptions = {{ setSize = 7 }}")),
            ("the seed", "A", format!("seed = 1\n{FILE}")),
        ];
        for (change, agent, text) in other {
            let (after, game) = (games(&plan_of(&text)), format!("psi 0 {agent} {agent}"));
            assert!(after.contains_key(&game) && after[&game] != before[&game], "{change}");
        }
    }

    #[test]
    fn a_null_variant_is_the_same_player_in_other_games() {
        let plan = plan_of(&format!("null_variant = \"A\"\nself_play = false\n{FILE}"));
        let names: Vec<&str> = plan.agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "A (again)"]);
        assert_eq!(plan.agents[0].identity, plan.agents[2].identity);
        let games = games(&plan);
        assert!(games.contains_key("psi 0 A A (again)") && games.contains_key("psi 0 A (again) B"));
        assert!(games["psi 0 A B"] != games["psi 0 A (again) B"]);
        let keys: Vec<String> = plan.identities().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["seed", "model A", "model B", "challenge psi"]);
    }

    #[test]
    fn mistakes_name_the_remedy() {
        let named = |name: &str| FILE.replace("name = \"psi\"", name);
        let challenge = |more: &str| format!("{FILE}\n[[challenges]]\n{more}");
        let errors = [
            plan_error(&named("name = \"pis\"")),
            plan_error(&challenge("name = \"psi\"")),
            plan_error(&challenge("name = \"psi\"\nlabel = \"again\"")),
            plan_error(&format!("{FILE}\n[harness.default]\nprompt = \"prompt.md\"")),
            plan_error(&FILE.replace("seeds = 2", "seeds = 1000000")),
            plan_error(&format!("{FILE}\n[[challenges]]\nname = \"snake\"\n[[baselines]]\nagent = \"house:leaky\"")),
        ];
        expect![[r#"
            challenge `pis`: there is no built-in challenge and no folder of this name; the built-in challenges are psi, ultimatum, millionaire, dining-cryptographers, snake, chess, food-catcher, cherry-picker
            two challenges are named `psi`; give them different values of `label`
            the challenges `psi` and `again` have equal rules and options; leave one of them out
            harness.default.prompt: /nowhere/prompt.md cannot be read: No such file or directory (os error 2)
            challenge `psi` brings the run to more than 1000000 games; lower `seeds`, or leave out agents or `lineups = "all"`
            baseline `house:leaky` cannot play challenge `snake`, which has no house bot of this name; leave one of them out"#]]
        .assert_eq(&errors.join("\n"));
    }

    #[test]
    fn the_files_of_a_program_are_its_identity() {
        let folder = tempfile::tempdir().unwrap();
        let bot = folder.path().join("bot.py");
        let put = |text: &str| fs::write(&bot, text).unwrap();
        put("pass");
        // Any program may stand for the interpreter, which isn't a part of the agent.
        let text = format!("{FILE}\n[[baselines]]\ncommand = [\"sh\", \"bot.py\", \"3\"]");
        let plan_in = |base: &Path, text: &str| EvalPlan::of(RunFile::parse(text, "test.toml").unwrap(), base);
        let plan = plan_in(folder.path(), &text).unwrap();
        let agent = |plan: &EvalPlan| plan.agents[2].clone();
        assert_eq!((agent(&plan).name.as_str(), agent(&plan).kind), ("bot", EvalAgentKind::Program(0)));
        // The moved file has the same plan, wherever it is read.
        let again = EvalPlan::of(plan.file.clone(), Path::new("/nowhere")).unwrap();
        assert_eq!(
            (again.file, again.agents, again.games),
            (plan.file.clone(), plan.agents.clone(), plan.games.clone())
        );
        let other = plan_in(folder.path(), &text.replace("\"3\"", "\"4\"")).unwrap();
        assert_ne!(agent(&other).identity, agent(&plan).identity);
        put("print()");
        let changed = plan_in(folder.path(), &text).unwrap();
        assert_ne!(agent(&changed).identity, agent(&plan).identity);
        // Readers of a finished run don't need the files.
        fs::remove_file(&bot).unwrap();
        let identities = plan.identities().into_iter().collect();
        let recorded = EvalPlan::recorded(plan.file.clone(), Path::new("/nowhere"), &identities).unwrap();
        assert_eq!(recorded.agents, plan.agents);
        let text = format!("{FILE}\n[[baselines]]\nagent = \"absent.py\"");
        let error = plan_in(Path::new("/nowhere"), &text).unwrap_err();
        expect!["baseline `absent`: there is no agent at /nowhere/absent.py"].assert_eq(&error.to_string());
    }

    #[test]
    fn prompts_move_to_the_folder_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.md"), "{rules}").unwrap();
        let text = format!("{FILE}\n[harness.default]\nprompt = \"mine.md\"");
        let plan = EvalPlan::of(RunFile::parse(&text, "test.toml").unwrap(), folder.path()).unwrap();
        let [file] = &plan.files[..] else { panic!("{:?}", plan.files) };
        assert!(file.path.starts_with("prompts/mine-") && file.path.ends_with(".md"), "{}", file.path);
        assert_eq!(plan.file.harness["default"].prompt, Some(PathBuf::from(&file.path)));
        // The plan of the moved files is the same.
        fs::create_dir(folder.path().join("prompts")).unwrap();
        fs::write(folder.path().join(&file.path), &file.text).unwrap();
        let again = EvalPlan::of(plan.file.clone(), folder.path()).unwrap();
        assert_eq!((&again.file, &again.files), (&plan.file, &plan.files));
        assert_eq!(again.games, plan.games);
    }
}
