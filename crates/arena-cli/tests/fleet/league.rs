//! Leagues with workers. Each game must have the result that the same match has on this machine.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use arena_runner::LeagueFolder;
use arena_testkit::{NatsServer, until};
use arena_tournament::League;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fixture::{FleetFixture, finish};
use crate::left_behind;
use crate::program::{arena, run};

/// A league `ladder` with short games of snake.
struct LeagueFixture<'a> {
    fleet: &'a FleetFixture,
    nats: &'a NatsServer,
    folder: String,
}

impl<'a> LeagueFixture<'a> {
    /// Creates a league of these agents, with one pairing that this machine has played.
    fn new(fleet: &'a FleetFixture, nats: &'a NatsServer, agents: &[String]) -> LeagueFixture<'a> {
        let folder = fleet.path("ladder").display().to_string();
        let mut args = vec!["tournament", "run", "snake", "--seed", "3", "--set", "n_epochs=12", "--format", "league"];
        args.extend(agents.iter().flat_map(|agent| ["--agent", agent.as_str()]));
        args.extend(["--out", &folder, "--games", "1"]);
        let output = run(&args);
        assert_eq!(output.code, 0, "{output:#?}");
        LeagueFixture { fleet, nats, folder }
    }

    /// Starts a run with workers.
    fn start(&self, more: &[&str]) -> Child {
        let url = self.nats.url();
        let args = [&["tournament", "resume", &self.folder, "--nats-url", &url], more].concat();
        arena(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn read(&self) -> League {
        LeagueFolder::load(&self.fleet.path("ladder"), None).unwrap()
    }

    fn wait_for(&self, games: usize) {
        until(&format!("{games} games are played"), || self.read().games().len() >= games);
    }

    /// Plays each game on this machine and compares the scores. Also checks that each pairing has both of its games, and
    /// each of them once. Returns the number of games.
    #[track_caller]
    fn check_games(&self) -> usize {
        let league = self.read();
        let mut pairings: BTreeMap<usize, usize> = BTreeMap::new();
        for game in league.games() {
            *pairings.entry((game.number - 1) / 2).or_default() += 1;
            let seed = game.result.seed.reveal();
            let mut args = vec!["match", "run", "snake", "--json", "--set", "n_epochs=12", "--seed", &seed];
            for name in game.result.names() {
                args.extend(["--agent", league.find(name).unwrap().1.entrant.path.as_str()]);
            }
            let here = run(&args).json();
            let mut scores: Vec<&Value> = here["scores"].as_array().unwrap().iter().collect();
            scores.sort_by_key(|score| score["seat"].as_u64());
            let scores: Vec<f64> = scores.iter().map(|score| score["score"].as_f64().unwrap()).collect();
            assert_eq!(game.result.scores(), scores, "game {}", game.number);
        }
        assert!(pairings.values().all(|games| *games == 2), "{pairings:?}");
        league.games().len()
    }
}

#[test]
fn workers_play_a_league_with_the_results_of_one_machine() {
    let (fleet, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fleet.bot("a", 1, 0.0), fleet.bot("b", 2, 0.0), fleet.bot("c", 3, 0.0)];
    let league = LeagueFixture::new(&fleet, &nats, &agents);
    let refused = finish(league.start(&["--concurrency", "2"]));
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(refused.stderr.contains("--concurrency is an option of each worker"), "{}", refused.stderr);
    let _workers = fleet.workers(&nats, &["one", "two"]);
    let output = finish(league.start(&["--games", "10", "--cross-check", "0.5", "--table-every", "0"]));
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stdout.contains("Finished game 12 "), "{}", output.stdout);
    assert!(output.stderr.contains("worker one has joined") && !output.stderr.contains("differently"), "{output:#?}");
    assert_eq!(league.check_games(), 12);
    let read = league.read();
    assert!(read.games()[2..].iter().all(|game| game.worker.is_some()) && !read.checked.is_empty());
    assert_eq!(left_behind(&nats.url()), ["arena_jobs 0", "arena_results 0"]);
}

#[test]
fn a_league_whose_run_and_worker_are_killed_continues_with_workers_and_without() {
    let (fleet, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fleet.bot("a", 1, 0.02), fleet.bot("b", 2, 0.0), fleet.bot("c", 3, 0.0)];
    let league = LeagueFixture::new(&fleet, &nats, &agents);
    let first = fleet.worker(&nats, &["--name", "first"]);
    let _second = fleet.worker(&nats, &["--name", "second", "--concurrency", "2"]);
    let mut killed = league.start(&["--table-every", "0"]);
    league.wait_for(4);
    first.signal(Signal::KILL);
    league.wait_for(7);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // This run also collects the games that the workers have finished meanwhile.
    let stopped = league.start(&["--table-every", "0"]);
    league.wait_for(11);
    kill_process(Pid::from_child(&stopped), Signal::INT).unwrap();
    let stopped = finish(stopped);
    assert_eq!(stopped.code, 130, "{stopped:#?}");
    let before = league.read().games().len();
    let here = run(&["tournament", "resume", &league.folder, "--games", "1", "--table-every", "0"]);
    assert_eq!(here.code, 0, "{here:#?}");
    assert!(league.check_games() > before);
}
