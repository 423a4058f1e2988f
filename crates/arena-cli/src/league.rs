//! `arena league`: open-ended leagues, in which the most uncertain pairing plays next. `arena-runner` schedules and
//! stores the games.

mod add;
mod run;
mod tables;

use std::path::PathBuf;

use arena_engine::Environment;
use arena_model::{TimeLimits, Timestamp};
use arena_report::season;
use arena_runner::league::{RulesError, Sandbox, Season, check_rules, report};
use arena_server::Settings;
use arena_store::{CommitError, League, LeagueRules, Leagues, NewLeague, Store, StoreError, StorePlace};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::args::{CreateArgs, DataArgs, LeagueVerb, ShowLeagueArgs};
use crate::exit::{Exit, Failure};
use crate::matches::settings::{self, confinement, find_builtin};
use crate::output::{Style, Table, counted, print, printable, utc};
use crate::serve;
use crate::tournament::entrants::check_name;

pub fn run(verb: LeagueVerb, data: &DataArgs, style: Style) -> Result<(), Failure> {
    let folder = data.data.clone().unwrap_or_else(|| Settings::default().data);
    // An empty environment variable counts as unset.
    let place = match data.database_url.as_ref().filter(|url| !url.is_empty()) {
        Some(url) => {
            let refuse = |error| {
                Failure::new(Exit::Usage, format_args!("invalid --database-url (LEAGUE_DATABASE_URL): {error}"))
            };
            StorePlace::Database(Box::new(url.parse().map_err(refuse)?))
        }
        None => StorePlace::Folder(folder.clone()),
    };
    let context = LeagueContext { data: folder, place, runtime: serve::runtime()? };
    match verb {
        LeagueVerb::Create(args) => create(&context, args, style),
        LeagueVerb::Add(args) => add::add(&context, &args, style),
        LeagueVerb::Rm { name, agents } => remove(&context, &name, &agents, style),
        LeagueVerb::Run(args) => run::run(&context, &args, style),
        LeagueVerb::Show(args) => show(&context, &args, style),
        LeagueVerb::Season { name } => next_season(&context, &name, style),
        LeagueVerb::List => list(&context, style),
    }
}

/// The place of the leagues' store, and the runtime for the store.
struct LeagueContext {
    /// The data folder. Fingerprints of agents leave it out, even if the store is in a database.
    data: PathBuf,
    place: StorePlace,
    runtime: Runtime,
}

impl LeagueContext {
    /// Opens the store and finds the league `name`. Fails if another process has the store open.
    fn open(&self, name: &str) -> Result<(Store, League), Failure> {
        // Opening the store would create it, so a missing folder is refused first.
        if matches!(&self.place, StorePlace::Folder(folder) if !folder.exists()) {
            return Err(self.unknown(name));
        }
        let store = self.open_store()?;
        let league = self.wait(store.leagues().find(name)).map_err(unavailable)?;
        match league {
            Some(league) => Ok((store, league)),
            None => Err(self.unknown(name)),
        }
    }

    /// Opens the store, and creates it if there is none.
    fn open_store(&self) -> Result<Store, Failure> {
        self.wait(Store::open_as_counted(&self.place)).map_err(|error| match error {
            // The other process may run for days, so the error also names the command that can read the leagues.
            StoreError::InUse { .. } | StoreError::Taken { .. } => {
                let sentence = format!(
                    "{error}; end that process first (Ctrl-C ends `arena league run` after the games in progress); \
                     `arena league show` works meanwhile"
                );
                Failure::new(Exit::StoreUnavailable, sentence)
            }
            StoreError::TakenByNodes { database, holder } => {
                let sentence = format!(
                    "nodes of an arena share the database {database} ({holder}); use another database, or another \
                     schema of this one, for leagues"
                );
                Failure::new(Exit::StoreUnavailable, sentence)
            }
            error => unavailable(error),
        })
    }

    /// Opens the store for reading, even if another process has it open; `None` if there is no store.
    fn find_leagues(&self) -> Result<Option<Leagues>, Failure> {
        self.wait(Leagues::beside_others(&self.place)).map_err(unavailable)
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    fn unknown(&self, name: &str) -> Failure {
        let sentence = format!(
            "there is no league {name} in {}; use `arena league list` to list leagues, or `arena league create` to create one",
            self.place
        );
        Failure::new(Exit::BadTournament, sentence)
    }

    fn empty(&self) -> Failure {
        let sentence = format!(
            "there is no league in {}; create one with `arena league create`, or give another place with --data or \
             --database-url",
            self.place
        );
        Failure::new(Exit::BadTournament, sentence)
    }

    /// Returns the command that resumes a league.
    fn run_line(&self, name: &str) -> String {
        let place = match &self.place {
            StorePlace::Folder(folder) if *folder == Settings::default().data => String::new(),
            StorePlace::Folder(folder) => format!(" --data {}", quoted(&folder.display().to_string())),
            // The URL may have a password.
            StorePlace::Database(_) => " --database-url URL".to_owned(),
        };
        let dashes = if name.starts_with('-') { "-- " } else { "" };
        format!("arena league run{place} {dashes}{}", quoted(name))
    }
}

fn create(context: &LeagueContext, args: CreateArgs, style: Style) -> Result<(), Failure> {
    check_name("a league's name", &args.name)?;
    let game = find_builtin(&args.game)?;
    let seats = args.seats.map_or_else(|| 2.clamp(*game.seats.start(), *game.seats.end()), |seats| seats as usize);
    let confinement = confinement(&args.sandbox)?;
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let sandbox = Sandbox {
        mode: confinement.mode,
        limits: confinement.limits,
        expose: confinement.expose.iter().map(absolute).collect(),
    };
    let rules = LeagueRules {
        game: game.name.to_owned(),
        options: args.options.into_iter().collect(),
        seats,
        paired: !args.no_pairs,
        limits: TimeLimits {
            step_ms: args.step_ms.unwrap_or(game.limits.step_ms),
            bank_ms: args.bank_ms.unwrap_or(game.limits.bank_ms),
        },
        sandbox: serde_json::to_value(&sandbox)
            .map_err(|error| Failure::new(Exit::Usage, format_args!("--expose: {error}")))?,
    };
    let rules_version = check_rules(&rules).map_err(|error| unplayable(&error))?.rules_version;
    settings::check_players(&rules.options, seats)?;
    let seed = match args.seed {
        Some(seed) => seed,
        None => settings::draw_seed()?,
    };
    let store = context.open_store()?;
    let new = NewLeague { name: args.name.clone(), rules, rules_version, seed, at: now() };
    if context.wait(store.create_league(new)).map_err(unwritten)?.is_none() {
        let sentence = format!("league {} already exists in {}", args.name, context.place);
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    let name = &args.name;
    match style {
        Style::Json => print(&json!({"league": name, "game": game.name, "seats": seats, "season": 1}).to_string()),
        Style::Pretty | Style::Compact => print(&printable(&format!(
            "created league {name}: {}, season 1; add agents with `arena league add {name} PATH…`",
            game.name
        ))),
    }
}

fn remove(context: &LeagueContext, name: &str, agents: &[String], style: Style) -> Result<(), Failure> {
    let (store, league) = context.open(name)?;
    let known = context.wait(store.leagues().list_agents(league.no)).map_err(unavailable)?;
    let is_in = |agent: &String| known.iter().any(|known| known.facts.name == *agent && known.removed_at.is_none());
    // All names are checked first, so that the command removes all agents or none.
    if let Some(stranger) = agents.iter().find(|agent| !is_in(agent)) {
        let sentence = format!("there is no agent {stranger} in league {name}");
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    for agent in agents {
        context.wait(store.remove_league_agent(league.no, agent.clone(), now())).map_err(unwritten)?;
    }
    match style {
        Style::Json => print(&json!({"league": name, "removed": agents}).to_string()),
        Style::Pretty | Style::Compact => {
            let lines: Vec<String> =
                agents.iter().map(|agent| format!("removed {agent} from league {name}; its results stay")).collect();
            print(&printable(&lines.join("\n")))
        }
    }
}

fn next_season(context: &LeagueContext, name: &str, style: Style) -> Result<(), Failure> {
    let (store, league) = context.open(name)?;
    let seasons = context.wait(store.leagues().list_seasons(league.no)).map_err(unavailable)?;
    let games = seasons.last().map_or(0, |season| season.games);
    let rules_version = check_rules(&league.rules).map_err(|error| unplayable(&error))?.rules_version;
    if games == 0 && rules_version == league.rules_version {
        let sentence =
            format!("season {} of league {name} has no games yet, so there is nothing to close", league.season);
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    let next = context.wait(store.close_league_season(league.no, rules_version, now())).map_err(unwritten)?;
    match style {
        Style::Json => {
            print(&json!({"league": name, "closed": league.season, "games_played": games, "season": next}).to_string())
        }
        Style::Pretty | Style::Compact => print(&printable(&format!(
            "season {} of league {name} is closed after {}; season {next} begins",
            league.season,
            counted(games, "game", "games")
        ))),
    }
}

fn show(context: &LeagueContext, args: &ShowLeagueArgs, style: Style) -> Result<(), Failure> {
    let (leagues, league) = find_to_show(context, args.name.as_deref())?;
    let number = args.season.unwrap_or(league.season);
    if number > league.season {
        let sentence =
            format!("there is no season {number} of league {}: the current season is {}", league.name, league.season);
        return Err(Failure::new(Exit::Usage, sentence));
    }
    let season = context.wait(Season::load(&leagues, league, number)).map_err(unavailable)?;
    let report = report(&season);
    match (args.csv, args.markdown, style) {
        (true, ..) => print(season::csv(&report).trim_end()),
        (_, true, _) => print(season::markdown(&report).trim_end()),
        (.., Style::Json) => print(&season::json(&report).to_string()),
        (.., Style::Pretty | Style::Compact) => {
            print(&printable(&season::title(&report)))?;
            print(tables::describe(&report).trim_end())
        }
    }
}

/// Finds the league of this name. Without a name, finds the only league.
fn find_to_show(context: &LeagueContext, name: Option<&str>) -> Result<(Leagues, League), Failure> {
    let Some(leagues) = context.find_leagues()? else {
        return Err(match name {
            Some(name) => context.unknown(name),
            None => context.empty(),
        });
    };
    let league = match name {
        Some(name) => context.wait(leagues.find(name)).map_err(unavailable)?.ok_or_else(|| context.unknown(name))?,
        None => {
            let mut all = context.wait(leagues.list_leagues()).map_err(unavailable)?;
            match (all.pop(), all.len()) {
                (Some(only), 0) => only,
                (None, _) => {
                    return Err(context.empty());
                }
                (Some(last), _) => {
                    let names: Vec<&str> = all.iter().chain([&last]).map(|league| league.name.as_str()).collect();
                    let sentence = format!("there are several leagues; give the name of one: {}", names.join(", "));
                    return Err(Failure::new(Exit::Usage, sentence));
                }
            }
        }
    };
    Ok((leagues, league))
}

fn list(context: &LeagueContext, style: Style) -> Result<(), Failure> {
    let mut table = Table::new(&["league", "game", "seats", "agents", "season", "games in season", "created"]);
    let mut entries = Vec::new();
    if let Some(leagues) = context.find_leagues()? {
        for league in context.wait(leagues.list_leagues()).map_err(unavailable)? {
            let agents = context.wait(leagues.count_present(league.no)).map_err(unavailable)?;
            let seasons = context.wait(leagues.list_seasons(league.no)).map_err(unavailable)?;
            let games = seasons.last().map_or(0, |season| season.games);
            let League { name, rules, season, created_at, .. } = league;
            entries.push(json!({
                "name": name, "game": rules.game, "options": rules.options, "seats": rules.seats, "paired": rules.paired,
                "agents": agents, "season": season, "games_played": games, "created_at": created_at.0,
            }));
            let counts = [rules.seats as u64, agents, u64::from(season), games].map(|count| count.to_string());
            table.row([vec![name, rules.game], counts.to_vec(), vec![utc(created_at.0)]].concat());
        }
    }
    match style {
        Style::Json => print(&json!(entries).to_string()),
        Style::Pretty | Style::Compact if entries.is_empty() => {
            print(&format!("there is no league in {}", context.place))
        }
        Style::Pretty | Style::Compact => print(&table.right(2..=5).to_string()),
    }
}

fn now() -> Timestamp {
    Environment::system().now()
}

fn unavailable(error: StoreError) -> Failure {
    Failure::caused(Exit::StoreUnavailable, &error)
}

fn unwritten(error: CommitError) -> Failure {
    Failure::caused(Exit::StoreUnavailable, &error)
}

fn unplayable(error: &RulesError) -> Failure {
    Failure::caused(Exit::Usage, error)
}

/// Quotes a text for a shell if necessary.
fn quoted(text: &str) -> String {
    let is_plain = text.chars().all(|char| char.is_alphanumeric() || "/._-+,:@".contains(char));
    match is_plain && !text.starts_with('-') {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
