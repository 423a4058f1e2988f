//! Leagues with workers. Each stored game must have the result that the same match has on this machine.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use arena_store::{LeagueAgent, LeagueGame, Leagues, StorePlace};
use arena_testkit::NatsServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fixture::{FleetFixture, finish, runtime};
use crate::left_behind;
use crate::program::{Run, arena, run};

/// The time limit for any number of games.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A league `ladder` with short games of snake between these agents, in the folder `data`.
struct LeagueFixture<'a> {
    fleet: &'a FleetFixture,
    nats: &'a NatsServer,
}

impl<'a> LeagueFixture<'a> {
    fn new(fleet: &'a FleetFixture, nats: &'a NatsServer, agents: &[String]) -> LeagueFixture<'a> {
        let league = LeagueFixture { fleet, nats };
        league.ask(&["create", "ladder", "--game", "snake", "--seed", "3", "--set", "n_epochs=12"]);
        let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
        league.ask(&[&["add", "ladder"], &agents[..]].concat());
        league
    }

    fn args(&self, args: &[&str]) -> Vec<String> {
        let data = self.fleet.path("data").display().to_string();
        [&["league"], args, &["--data", &data]].concat().iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[track_caller]
    fn ask(&self, args: &[&str]) -> Run {
        let args = self.args(args);
        let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.code, 0, "{output:#?}");
        output
    }

    /// Starts a run with workers.
    fn start(&self, more: &[&str]) -> Child {
        let url = self.nats.url();
        let args = self.args(&[&["run", "ladder", "--nats-url", &url], more].concat());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        arena(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the stored games and agents of the first season.
    fn read(&self) -> (Vec<LeagueGame>, Vec<LeagueAgent>) {
        runtime().block_on(async {
            let place = StorePlace::Folder(self.fleet.path("data"));
            let leagues = Leagues::beside_others(&place).await.unwrap().unwrap();
            let league = leagues.find("ladder").await.unwrap().unwrap();
            (leagues.list_games(league.no, 1).await.unwrap(), leagues.list_agents(league.no).await.unwrap())
        })
    }

    fn wait_for(&self, games: usize) {
        let until = Instant::now() + TIMEOUT;
        while self.read().0.len() < games {
            assert!(Instant::now() < until, "timeout while waiting for game {games}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Plays each stored game on this machine and compares the scores. Also checks that each pairing has both of its
    /// games, and each of them once. Returns the number of games.
    #[track_caller]
    fn check_games(&self) -> usize {
        let (games, agents) = self.read();
        let mut legs: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for game in &games {
            legs.entry(game.meeting).or_default().push(game.leg);
            let seed = game.result.seed.reveal();
            let mut args = vec!["match", "run", "snake", "--json", "--set", "n_epochs=12", "--seed", &seed];
            for seat in &game.result.seats {
                let agent = agents.iter().find(|agent| agent.no == seat.agent).unwrap();
                args.extend(["--agent", &agent.facts.path]);
            }
            let here = run(&args).json();
            let mut scores: Vec<&Value> = here["scores"].as_array().unwrap().iter().collect();
            scores.sort_by_key(|score| score["seat"].as_u64());
            let scores: Vec<f64> = scores.iter().map(|score| score["score"].as_f64().unwrap()).collect();
            let stored: Vec<f64> = game.result.seats.iter().map(|seat| seat.score).collect();
            assert_eq!(stored, scores, "game {}", game.number);
        }
        for (meeting, legs) in &mut legs {
            legs.sort_unstable();
            assert_eq!(legs, &[1, 2], "pairing {meeting}");
        }
        games.len()
    }
}

#[test]
fn workers_play_a_league_with_the_results_of_one_machine() {
    let (fleet, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fleet.bot("a", 1, 0.0), fleet.bot("b", 2, 0.0), fleet.bot("c", 3, 0.0)];
    let league = LeagueFixture::new(&fleet, &nats, &agents);
    for option in [["--concurrency", "2"], ["--affinity", "any"]] {
        let refused = finish(league.start(&option));
        assert_eq!(refused.code, 2, "{refused:#?}");
        assert!(refused.stderr.contains(&format!("{} is an option of each worker", option[0])), "{}", refused.stderr);
    }
    let _workers = fleet.workers(&nats, &["one", "two"]);
    let output = finish(league.start(&["--games", "12", "--cross-check", "0.5", "--table-every", "0"]));
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stdout.contains("Finished game 12 "), "{}", output.stdout);
    assert!(output.stderr.contains("worker one has joined") && !output.stderr.contains("differently"), "{output:#?}");
    assert_eq!(league.check_games(), 12);
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
    league.wait_for(2);
    first.signal(Signal::KILL);
    league.wait_for(5);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // This run also collects the games that the workers have finished meanwhile.
    let stopped = league.start(&["--table-every", "0"]);
    league.wait_for(9);
    kill_process(Pid::from_child(&stopped), Signal::INT).unwrap();
    let stopped = finish(stopped);
    assert_eq!(stopped.code, 130, "{stopped:#?}");
    let before = league.read().0.len();
    league.ask(&["run", "ladder", "--games", "1", "--table-every", "0"]);
    assert!(league.check_games() > before);
}
