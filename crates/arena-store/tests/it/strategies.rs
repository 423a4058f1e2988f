//! Counts of games by scripted strategies: a place and its rows change together, and boards show whole counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arena_model::{
    ContentHash, Metric, MetricFormat, MetricKind, ScriptedStrategy, Seat, SessionId, Strategy, StrategyEntry,
    StrategyRow, StrategyRows,
};
use arena_store::{CommitError, EndingNo, NodeTerms, RunStep, Store, StrategyRun, UserDeletion};
use arena_testkit::Postgres;

use crate::audit;
use crate::season::{ALL, GAME, Game, begin, board, end, id_of, open, psi, scoring, user};
use crate::storage::{TestStorage, stories};

stories!(
    a_place_and_its_rows_change_together_or_not_at_all,
    boards_show_the_old_count_until_the_new_one_is_whole,
    a_removed_game_and_a_deleted_user_make_counts_stale,
);

static METRICS: [Metric; 1] =
    [Metric { key: "points:all", label: "Points", kind: MetricKind::Given, format: MetricFormat::Number }];
static POINTS: Strategy = Strategy::scripted("points", "Points", "Points.", &METRICS);

async fn open_scripted(storage: &TestStorage) -> Store {
    let store = open(storage).await;
    store.set_scripted(vec![ScriptedStrategy { strategy: &POINTS, challenges: None }]);
    store
}

fn rows(points: &[(&str, u64, f64)]) -> StrategyRows {
    let row = |(player, games, points): &(&str, u64, f64)| {
        let metrics = BTreeMap::from([("points:all".to_owned(), *points)]);
        let entry = (!player.is_empty()).then_some(StrategyEntry { games: *games, metrics });
        let state = Some(format!("[{games},\"\\u0000\"]"));
        ((id_of("psi").to_string(), (*player).to_owned()), StrategyRow { entry, state })
    };
    points.iter().map(row).collect()
}

async fn newest(store: &Store) -> StrategyRun {
    store.find_strategy("points").await.expect("readable").newest().cloned().expect("a count")
}

/// Returns the positions of all endings.
async fn endings(store: &Store) -> Vec<EndingNo> {
    let ended = store.list_ended(EndingNo::default(), 100).await.expect("readable");
    ended.into_iter().map(|(n, _, _)| n).collect()
}

async fn points(store: &Store) -> String {
    board(store, &psi("points"), None, 0, 9).await
}

fn step(rows: StrategyRows, place: EndingNo, is_whole: bool) -> RunStep {
    RunStep { rows, place, error: None, is_whole }
}

/// Plays two games and counts them.
async fn counted(store: &Store) -> Vec<EndingNo> {
    for n in 1..=2 {
        end(store, begin(store, n, &GAME).await, &GAME).await;
    }
    let ends = endings(store).await;
    store.begin_run("points", "v1").await.expect("writable");
    let all = rows(&[("ada", 2, 2.5), ("bob", 2, -1.0), ("", 2, 0.0)]);
    store.advance_run("points", newest(store).await, step(all, ends[1], true)).await.expect("it is stored");
    ends
}

async fn a_place_and_its_rows_change_together_or_not_at_all(storage: TestStorage) {
    let store = open_scripted(&storage).await;
    assert_eq!(points(&store).await, " of 0");
    let ends = counted(&store).await;
    assert_eq!(points(&store).await, "ada 2 2.50, bob 2 -1.00 of 2");
    end(&store, begin(&store, 3, &GAME).await, &GAME).await;
    let state = store.find_strategy("points").await.expect("readable");
    assert_eq!((state.behind(), state.percent()), (1, None));

    let run = newest(&store).await;
    assert_eq!((run.place, run.is_shown, run.is_stale), (ends[1], true, false));
    let third = endings(&store).await[2];
    let error = Some("index.ts:1: \u{0} no".to_owned());
    let next = RunStep { error: error.clone(), ..step(rows(&[("ada", 3, -3.0)]), third, false) };
    store.advance_run("points", run.clone(), next).await.expect("it is stored");
    // The board in memory moves with the commit.
    assert_eq!(points(&store).await, "bob 2 -1.00, ada 3 -3.00 of 2");
    assert_eq!(newest(&store).await.error, error);
    // The same games don't count again from the old place.
    let again = store.advance_run("points", run, step(rows(&[("bob", 9, 9.0)]), third, false)).await;
    assert!(matches!(again, Err(CommitError::Conflict)), "{again:?}");
    drop(store);
    let store = open_scripted(&storage).await;
    assert_eq!(points(&store).await, "bob 2 -1.00, ada 3 -3.00 of 2");
    let id = newest(&store).await.id;
    let keys: BTreeSet<_> = rows(&[("", 0, 0.0), ("ada", 0, 0.0), ("eve", 0, 0.0)]).into_keys().collect();
    let expected = rows(&[("", 2, 0.0), ("ada", 3, -3.0)]);
    assert_eq!(store.find_rows(id, &keys).await.expect("readable"), expected);
    let standings = store.find_standings(&user("ada")).await.expect("readable").expect("a user");
    let entry = store.scoring().entry(&psi("points"), &standings).expect("an entry");
    assert_eq!((entry.games_played, entry.metrics["points:all"]), (3, -3.0));
}

/// A board in the memory of one node follows the count of another.
#[tokio::test]
async fn postgres_boards_follow_the_counts_of_other_nodes() {
    let url = Postgres::shared().schema();
    let join = async || {
        let url = url.parse().expect("a URL");
        let store = Store::join(url, scoring(ALL), &NodeTerms::new()).await.expect("the database is shared");
        store.set_scripted(vec![ScriptedStrategy { strategy: &POINTS, challenges: None }]);
        store
    };
    let (one, other) = (join().await, join().await);
    assert_eq!(points(&other).await, " of 0");
    let ends = counted(&one).await;
    assert_eq!(points(&other).await, "ada 2 2.50, bob 2 -1.00 of 2");
    one.advance_run("points", newest(&one).await, step(rows(&[("ada", 3, -3.0)]), ends[1], true))
        .await
        .expect("stored");
    assert_eq!([points(&one).await, points(&other).await], ["bob 2 -1.00, ada 3 -3.00 of 2"; 2]);
}

async fn boards_show_the_old_count_until_the_new_one_is_whole(storage: TestStorage) {
    let store = open_scripted(&storage).await;
    let ends = counted(&store).await;
    store.begin_run("points", "v2").await.expect("writable");
    let run = newest(&store).await;
    assert_eq!((&*run.version, run.place, run.is_shown), ("v2", EndingNo::default(), false));
    store.advance_run("points", run, step(rows(&[("ada", 1, 100.0)]), ends[0], false)).await.expect("it is stored");
    assert_eq!(points(&store).await, "ada 2 2.50, bob 2 -1.00 of 2");
    let state = store.find_strategy("points").await.expect("readable");
    assert_eq!((state.runs.len(), state.percent()), (2, Some(50)));
    let old = state.runs[0].id;
    store.advance_run("points", newest(&store).await, step(StrategyRows::new(), ends[1], true)).await.expect("stored");
    assert_eq!(points(&store).await, "ada 1 100.00 of 1");
    assert!(store.remove_run(old).await.expect("writable"), "it had rows");
    assert!(!store.remove_run(old).await.expect("writable"));
    assert_eq!(store.find_strategy("points").await.expect("readable").runs.len(), 1);
    assert_eq!(points(&store).await, "ada 1 100.00 of 1");
}

async fn a_removed_game_and_a_deleted_user_make_counts_stale(storage: TestStorage) {
    let store = open_scripted(&storage).await;
    counted(&store).await;
    let abandoned = Game { abandoned: true, ..GAME };
    let (no, session) = end(&store, begin(&store, 3, &abandoned).await, &abandoned).await;
    store.remove_session(no, Arc::new(session), audit("remove")).await.expect("removed");
    assert!(!newest(&store).await.is_stale, "an abandoned game counts nowhere");
    let (no, session) = end(&store, begin(&store, 4, &GAME).await, &GAME).await;
    store.remove_session(no, Arc::new(session), audit("remove")).await.expect("removed");
    let stale = newest(&store).await;
    assert!(stale.is_stale);
    // A count that began before the removal can't go on.
    let refused = store.advance_run("points", stale.clone(), step(StrategyRows::new(), stale.place, false)).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(points(&store).await, "ada 2 2.50, bob 2 -1.00 of 2");

    store.begin_run("points", "v1").await.expect("writable");
    let commit = Box::new(|id: SessionId, Seat(seat): Seat| ContentHash::of(&format!("{id} {seat}")));
    let deletion = UserDeletion { user: user("ada"), placeholder: user("deleted-1"), commit, audit: audit("delete") };
    store.delete_user(deletion).await.expect("deleted");
    assert!(newest(&store).await.is_stale);
    assert_eq!(points(&store).await, "bob 2 -1.00 of 1", "a deleted user is gone at once");
    store.begin_run("points", "v1").await.expect("writable");
    store.restart_strategy("points").await.expect("writable");
    assert!(newest(&store).await.is_stale);

    // Nothing is left of a player whose only counted game was removed before.
    store.begin_run("points", "v1").await.expect("writable");
    let other = Game { users: ["cy", "bob"], ..GAME };
    let (no, session) = end(&store, begin(&store, 5, &other).await, &other).await;
    let run = newest(&store).await;
    let key = (id_of("psi").to_string(), "cy".to_owned());
    store.advance_run("points", run.clone(), step(rows(&[("cy", 1, 1.0)]), run.place, false)).await.expect("stored");
    store.remove_session(no, Arc::new(session), audit("remove")).await.expect("removed");
    assert_eq!(store.find_rows(run.id, &[key.clone()].into()).await.expect("readable").len(), 1);
    let commit = Box::new(|id: SessionId, Seat(seat): Seat| ContentHash::of(&format!("{id} {seat}")));
    let deletion = UserDeletion { user: user("cy"), placeholder: user("deleted-2"), commit, audit: audit("delete") };
    store.delete_user(deletion).await.expect("deleted");
    assert_eq!(store.find_rows(run.id, &[key].into()).await.expect("readable").len(), 0);
}
