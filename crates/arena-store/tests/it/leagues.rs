//! Leagues in the store: stored games exist once and survive a restart, and versions of agents have separate results.

use std::fmt::Write;

use arena_model::{MatchOutcome, MatchResult, SeatResult, Seed, TimeLimits, Timestamp, Verdict};
use arena_store::{
    CommitError, LeagueAgent, LeagueAgentNo, LeagueGame, LeagueNo, LeagueRules, Leagues, NewLeague, NewLeagueAgent,
    Store, StoreError,
};
use expect_test::expect;
use serde_json::json;

use crate::open;
use crate::storage::{TestStorage, stories};

stories!(
    a_league_is_there_after_a_restart_with_all_that_was_played,
    another_version_is_another_agent_and_one_that_returns_goes_on,
    seasons_follow_each_other_and_games_stay_with_theirs,
    leagues_are_read_beside_the_process_that_has_the_store,
);

fn new_league(name: &str) -> NewLeague {
    let rules = LeagueRules {
        game: "snake".to_owned(),
        options: json!({"n_epochs": 12}).as_object().expect("an object").clone(),
        seats: 2,
        paired: true,
        limits: TimeLimits { step_ms: 50, bank_ms: 1000 },
        sandbox: json!({"mode": "on"}),
    };
    NewLeague { name: name.to_owned(), rules, rules_version: 2, seed: Seed::from_number(7), at: Timestamp(1000) }
}

fn facts(name: &str, sha256: &str) -> NewLeagueAgent {
    NewLeagueAgent {
        name: name.to_owned(),
        version: None,
        path: format!("/bots/{name}"),
        dialect: "both".to_owned(),
        reach: json!({"command": {"program": format!("/bots/{name}"), "args": ["'; --"], "folder": "/bots"}}),
        files: vec![format!("/bots/{name}")],
        sha256: Some(sha256.to_owned()),
    }
}

fn game(meeting: u64, leg: usize, agents: [LeagueAgentNo; 2]) -> LeagueGame {
    let seat = |(storage, agent)| SeatResult {
        agent,
        rank: storage + 1,
        score: 0.1 + 0.2 - storage as f64,
        challenge_score: None,
        verdict: (storage == 1).then_some(Verdict::Timeout),
        detail: (storage == 1).then(|| "took \"long\" \u{10ffff}0".to_owned()),
        faults: 3,
        refused: 0,
        waited_ms: 1.5,
        longest_step_ms: 0.75,
    };
    LeagueGame {
        number: 0,
        season: 1,
        meeting,
        leg,
        ended_at: Timestamp(5000),
        result: MatchResult {
            seats: agents.into_iter().enumerate().map(seat).collect(),
            outcome: MatchOutcome {
                termination: "TAINTED".into(),
                winner: "somebody \u{10ffff}".to_owned(),
                result: None,
                tainted_reason: Some(Verdict::Timeout),
            },
            seed: Seed::from_number(meeting),
            epochs: 12,
            moves: None,
            took_ms: 123.456,
        },
    }
}

async fn found(store: &Store, name: &str) -> LeagueNo {
    store.create_league(new_league(name)).await.expect("the store can write").expect("the name is free")
}

async fn enter(store: &Store, league: LeagueNo, facts: NewLeagueAgent, at: i64) -> LeagueAgent {
    store.enter_league_agent(league, facts, Timestamp(at)).await.expect("the store can write")
}

/// Adds a league with a game.
pub(crate) async fn fill(store: &Store) {
    let league = found(store, "ladder \u{10ffff}").await;
    let (a, b) = (enter(store, league, facts("a", "1"), 10).await, enter(store, league, facts("b", "2"), 20).await);
    assert!(store.remove_league_agent(league, "b".to_owned(), Timestamp(60)).await.expect("the store can write"));
    store.add_league_game(league, game(1, 1, [a.no, b.no])).await.expect("the store can write");
}

/// Adds another agent and game to the league, and another league.
pub(crate) async fn play_on(store: &Store) {
    let league = store.leagues().find("ladder \u{10ffff}").await.expect("readable").expect("it exists").no;
    let before = store.leagues().list_agents(league).await.expect("readable");
    let c = enter(store, league, facts("c", "3"), 30).await;
    let played = game(2, 1, [before[0].no, c.no]);
    assert_eq!(store.add_league_game(league, played).await.expect("the store can write").number, 2);
    let seats =
        store.leagues().list_games(league, 1).await.expect("readable").into_iter().map(|game| game.result.seats.len());
    assert_eq!(seats.collect::<Vec<_>>(), [2, 2]);
    assert_ne!(found(store, "another").await, league);
}

/// Describes all versions of all agents, one per line.
async fn listing(store: &Store, league: LeagueNo) -> String {
    let mut listing = String::new();
    for agent in store.leagues().list_agents(league).await.expect("readable") {
        let NewLeagueAgent { name, version, sha256, .. } = &agent.facts;
        let (from, to) = (agent.added_at.0, agent.removed_at.map(|at| at.0));
        writeln!(listing, "{name} #{} {version:?} {sha256:?} from {from} to {to:?}", agent.generation).expect("a text");
    }
    listing
}

async fn a_league_is_there_after_a_restart_with_all_that_was_played(storage: TestStorage) {
    let (league, kept) = {
        let store = open(&storage).await;
        let league = found(&store, "ladder").await;
        assert_eq!(
            store.create_league(new_league("ladder")).await.expect("the store can write"),
            None,
            "the name is taken"
        );
        let (a, b) =
            (enter(&store, league, facts("a", "1"), 10).await, enter(&store, league, facts("b", "2"), 20).await);
        let mut kept = Vec::new();
        for (meeting, leg, agents) in [(1, 1, [a.no, b.no]), (2, 1, [b.no, a.no]), (1, 2, [b.no, a.no])] {
            kept.push(store.add_league_game(league, game(meeting, leg, agents)).await.expect("the store can write"));
        }
        (league, kept)
    };
    assert_eq!(kept.iter().map(|game| game.number).collect::<Vec<_>>(), [1, 2, 3]);
    let store = open(&storage).await;
    let leagues = store.leagues();
    let known = leagues.find("ladder").await.expect("readable").expect("it exists");
    let NewLeague { name, rules, rules_version, seed, at } = new_league("ladder");
    assert_eq!((known.no, known.name, known.rules, known.seed, known.created_at), (league, name, rules, seed, at));
    assert_eq!((known.season, known.rules_version), (1, rules_version));
    assert_eq!(leagues.list_games(league, 1).await.expect("readable"), kept);
    assert_eq!(leagues.find_last_meeting(league).await.expect("readable"), 2);
    assert_eq!(leagues.find("other").await.expect("readable"), None);
    // The same game can't be stored twice.
    let a = kept[0].result.seats[0].agent;
    let again = store.add_league_game(league, game(1, 2, [a, a])).await;
    assert!(matches!(again, Err(CommitError::Conflict)), "{again:?}");
    assert_eq!(leagues.list_games(league, 1).await.expect("readable"), kept);
    // Another league has its own numbers.
    let other = found(&store, "other").await;
    assert_eq!(leagues.list_games(other, 1).await.expect("readable"), []);
    let names: Vec<String> =
        leagues.list_leagues().await.expect("readable").into_iter().map(|league| league.name).collect();
    assert_eq!(names, ["ladder", "other"]);
}

async fn another_version_is_another_agent_and_one_that_returns_goes_on(storage: TestStorage) {
    let store = open(&storage).await;
    let league = found(&store, "ladder").await;
    let first = enter(&store, league, facts("a", "1"), 10).await;
    assert_eq!(enter(&store, league, facts("a", "1"), 11).await, first, "the version is in the league already");
    enter(&store, league, facts("b", "1"), 20).await;
    let second = enter(&store, league, facts("a", "2"), 30).await;
    let named = NewLeagueAgent { version: Some("3.0".to_owned()), ..facts("a", "2") };
    enter(&store, league, named, 40).await;
    expect![[r#"
        a #1 None Some("1") from 10 to Some(30)
        b #1 None Some("1") from 20 to None
        a #2 None Some("2") from 30 to Some(40)
        a #3 Some("3.0") Some("2") from 40 to None
    "#]]
    .assert_eq(&listing(&store, league).await);
    assert_eq!(enter(&store, league, facts("a", "2"), 50).await, second, "the version returns with its results");
    assert!(store.remove_league_agent(league, "b".to_owned(), Timestamp(60)).await.expect("the store can write"));
    assert!(!store.remove_league_agent(league, "b".to_owned(), Timestamp(61)).await.expect("the store can write"));
    expect![[r#"
        a #1 None Some("1") from 10 to Some(30)
        b #1 None Some("1") from 20 to Some(60)
        a #2 None Some("2") from 30 to None
        a #3 Some("3.0") Some("2") from 40 to Some(50)
    "#]]
    .assert_eq(&listing(&store, league).await);
    assert_eq!(store.leagues().count_present(league).await.expect("readable"), 1);
}

async fn seasons_follow_each_other_and_games_stay_with_theirs(storage: TestStorage) {
    let store = open(&storage).await;
    let league = found(&store, "ladder").await;
    let (a, b) = (enter(&store, league, facts("a", "1"), 10).await, enter(&store, league, facts("b", "2"), 20).await);
    store.add_league_game(league, game(1, 1, [a.no, b.no])).await.expect("the store can write");
    assert_eq!(store.close_league_season(league, 3, Timestamp(100)).await.expect("the store can write"), 2);
    let second = LeagueGame { season: 2, ..game(2, 1, [a.no, b.no]) };
    let second = store.add_league_game(league, second).await.expect("the store can write");
    assert_eq!(second.number, 2, "numbers continue in the next season");
    let leagues = store.leagues();
    let seasons = leagues.list_seasons(league).await.expect("readable");
    let seasons: Vec<_> =
        seasons.iter().map(|s| (s.number, s.began_at.0, s.ended_at.map(|at| at.0), s.games)).collect();
    assert_eq!(seasons, [(1, 1000, Some(100), 1), (2, 100, None, 1)]);
    assert_eq!(leagues.find("ladder").await.expect("readable").expect("it exists").season, 2);
    assert_eq!(leagues.list_games(league, 2).await.expect("readable"), [second]);
}

async fn leagues_are_read_beside_the_process_that_has_the_store(storage: TestStorage) {
    let beside = async || Leagues::beside_others(&storage.place()).await;
    assert!(beside().await.expect("readable").is_none(), "there is no store");
    let store = open(&storage).await;
    let league = found(&store, "ladder").await;
    let refused = Store::open_as_counted(&storage.place()).await.err();
    assert!(matches!(refused, Some(StoreError::InUse { .. } | StoreError::Taken { .. })), "{refused:?}");
    let leagues = beside().await.expect("readable").expect("it exists");
    enter(&store, league, facts("a", "1"), 10).await;
    assert_eq!(leagues.count_present(league).await.expect("readable"), 1);
    drop(store);
    // Now no other process has the store open.
    let leagues = beside().await.expect("readable").expect("it exists");
    assert_eq!(leagues.list_leagues().await.expect("readable").len(), 1);
    drop(leagues);
    let set = |version: i64| {
        storage.change(&match storage {
            TestStorage::Folder(_) => format!("PRAGMA user_version = {version}"),
            TestStorage::Schema(_) => format!("UPDATE arena_schema SET version = {version}"),
        });
    };
    set(2);
    assert!(beside().await.expect("readable").is_none(), "an older program created the store");
    set(1000);
    assert!(matches!(beside().await, Err(StoreError::Newer { found: 1000, .. })));
}
