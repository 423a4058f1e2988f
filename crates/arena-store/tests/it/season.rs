//! The effects of ended games: histories, standings, leaderboards and totals. Each game counts once, and a recount
//! gives the same result.

use std::collections::BTreeMap;

use arena_model::{
    Attribution, Board, BoardId, BoardTerms, Channel, Ending, GLOBAL_AVERAGE, GameCategory, Occupant, Phase,
    ProfileChange, Score, Scoring, Seat, Session, Timestamp, UserId,
};
use arena_store::{Commit, CommitError, EndingNo, ProfileWrite, Recount, SessionChange, SessionNo, Store};
use proptest::prelude::*;

use crate::storage::{TestStorage, stories, with_each_storage};
use crate::{audit, create, said, session, terms, update};

stories!(
    a_season_is_counted_in_the_commits_that_end_its_games,
    a_damaged_session_keeps_no_other_from_counting,
    games_count_with_those_of_the_same_options_rules_and_prompt_only,
    what_was_changed_by_hand_is_found_and_mended,
    profiles_are_merged_and_a_key_is_good_once,
    many_writers_count_each_game_once,
);

pub(super) fn scoring(own: &[&str]) -> Scoring {
    let own: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
    Scoring::new(&["average".to_owned()], [("psi", &own[..]), ("chess", &[])], Some(GLOBAL_AVERAGE), None)
        .expect("these exist")
}

pub(super) const ALL: &[&str] = &["win-rate", "red-team", "consecutive"];

pub(super) async fn open(storage: &TestStorage) -> Store {
    storage.open(scoring(ALL)).await
}

pub(super) fn user(name: &str) -> UserId {
    name.parse().expect("an id")
}

/// A game between two players; an empty name is an unknown player.
#[derive(Debug, Clone)]
pub(super) struct Game {
    pub(super) challenge: &'static str,
    pub(super) users: [&'static str; 2],
    pub(super) scores: [(f64, f64); 2],
    pub(super) breach: bool,
    pub(super) abandoned: bool,
}

pub(super) const GAME: Game =
    Game { challenge: "psi", users: ["ada", "bob"], scores: [(1.0, 1.0), (-1.0, 0.0)], breach: true, abandoned: false };

/// Plays the `n`th game of a store to its end.
pub(super) async fn play(store: &Store, n: u64, game: &Game) {
    let begun = begin(store, n, game).await;
    end(store, begun, game).await;
}

/// Creates the session of the `n`th game.
pub(super) async fn begin(store: &Store, n: u64, game: &Game) -> (SessionNo, Session) {
    let mut session = session(n);
    let mut facts = (*session.facts).clone();
    game.challenge.clone_into(&mut facts.challenge);
    session.facts = facts.into();
    (create(store, &session).await, session)
}

/// Plays a game to its end. Returns the ended session.
pub(super) async fn end(store: &Store, (no, mut session): (SessionNo, Session), game: &Game) -> (SessionNo, Session) {
    session.version = 2;
    session.wake_at = None;
    session.phase = Phase::Ended {
        at: Timestamp(9000),
        ending: if game.abandoned { Ending::Abandoned } else { Ending::Completed },
        category: GameCategory::Train,
    };
    let seats = session.facts.invites.iter().zip(game.users);
    session.seats =
        seats.map(|(invite, name)| Occupant { invite: *invite, user: name.parse().ok(), deleted: None }).collect();
    session.scores = game.scores.map(|(security, utility)| Score { security, utility }).to_vec();
    if game.breach {
        session.attributions = vec![Attribution { from: Seat(0), to: Seat(1), kind: "security_breach".to_owned() }];
    }
    let id = session.facts.id;
    let said = vec![said(Channel::Chat(id), 1, "well played"), said(Channel::Operator(id), 1, "Game ended.")];
    update(store, no, &session, said).await.expect("the commit is stored");
    // The same transition is refused the second time and counts nothing.
    assert!(matches!(update(store, no, &session, Vec::new()).await, Err(CommitError::Conflict)));
    (no, session)
}

/// Returns the board of these tests' games of a challenge.
pub(super) fn id_of(challenge: &str) -> BoardId {
    BoardId::of(challenge, &session(1).facts.options, &terms("1"))
}

pub(super) fn psi(strategy: &'static str) -> Board {
    Board::Of { challenge: "psi".to_owned(), id: id_of("psi"), strategy }
}

pub(super) fn global() -> Board {
    Board::Global(["psi", "chess"].map(id_of).into())
}

/// Describes a board: each player's number of games and first metric.
pub(super) async fn board(store: &Store, board: &Board, sort: Option<&str>, offset: u64, limit: usize) -> String {
    let order = store.scoring().order(board, sort).expect("the board has an order");
    let page = store.list_board(board, order, offset, limit).await.expect("readable");
    let line = |(profile, entry): &(arena_model::UserProfile, arena_model::ScoringEntry)| {
        format!("{} {} {:.2}", profile.user_id, entry.games_played, entry.metrics[order.metric])
    };
    let lines: Vec<String> = page.items.iter().map(line).collect();
    format!("{} of {}", lines.join(", "), page.total)
}

async fn a_season_is_counted_in_the_commits_that_end_its_games(storage: TestStorage) {
    let store = open(&storage).await;
    assert_eq!(board(&store, &psi("average"), None, 0, 9).await, " of 0");
    play(&store, 1, &GAME).await;
    play(&store, 2, &Game { users: ["bob", "eve"], breach: false, ..GAME }).await;
    // None of these games counts: one with unknown players, one of a player against itself, and an abandoned one.
    play(&store, 3, &Game { users: ["", ""], ..GAME }).await;
    play(&store, 4, &Game { users: ["ada", "ada"], ..GAME }).await;
    play(&store, 5, &Game { abandoned: true, ..GAME }).await;
    // A game against an unknown player counts for strategies that rate each player separately.
    play(&store, 6, &Game { users: ["eve", ""], breach: false, ..GAME }).await;
    play(&store, 7, &Game { challenge: "chess", scores: [(0.0, 1.0), (0.0, 0.0)], breach: false, ..GAME }).await;

    let boards = async |store: &Store| {
        let mut text = Vec::new();
        for (name, sort) in
            [("average", "average:security"), ("win-rate", "win-rate:utility"), ("red-team", "red-team:attack")]
        {
            text.push(board(store, &psi(name), Some(sort), 0, 9).await);
        }
        text.push(board(store, &psi("consecutive"), None, 1, 1).await);
        text.push(board(store, &global(), Some("global-average:utility"), 0, 9).await);
        text
    };
    let expected = [
        "ada 1 1.00, bob 2 0.00, eve 2 0.00 of 3",
        "ada 1 1.00, bob 2 0.50, eve 2 0.50 of 3",
        "ada 1 1.00, bob 2 0.00, eve 1 0.00 of 3",
        "bob 2 1.00 of 3",
        "ada 2 1.00, eve 2 0.50, bob 3 0.25 of 3",
    ];
    assert_eq!(boards(&store).await, expected);
    let totals = store.read_totals().await.expect("totals");
    assert_eq!(totals.games, BTreeMap::from([("psi".to_owned(), 5), ("chess".to_owned(), 1)]));
    assert_eq!(totals.participants, 3);
    let played = store.list_played(&user("ada"), 1, 2).await.expect("readable").expect("ada is known");
    let ids: Vec<u64> = played.items.iter().map(|session| session.facts.created_at.0.unsigned_abs() - 1000).collect();
    assert_eq!((ids, played.total), (vec![5, 4], 4));
    assert!(store.list_played(&user("zoe"), 0, 9).await.expect("readable").is_none());
    assert_eq!(
        store.recount(|_| audit("mend")).await.expect("a recount"),
        Recount { users: 3, games: 10, wrong: vec![] }
    );

    drop(store);
    let store = open(&storage).await;
    assert_eq!(boards(&store).await, expected);
    // With other strategies, all games are recounted.
    drop(store);
    let store = storage.open(scoring(&["win-rate"])).await;
    let standings = store.find_standings(&user("ada")).await.expect("readable").expect("ada is known");
    assert_eq!(standings[id_of("psi").as_str()].keys().collect::<Vec<_>>(), ["average", "win-rate"]);
}

#[tokio::test]
async fn a_store_that_is_older_than_scoring_is_counted_when_it_is_opened() {
    let storage = TestStorage::folder();
    let store = open(&storage).await;
    for n in 1..=5 {
        let users = if n % 2 == 0 { ["bob", "eve"] } else { ["ada", "bob"] };
        play(&store, n, &Game { users, abandoned: n == 3, ..GAME }).await;
    }
    let snapshot = async |store: &Store| {
        let played = store.list_played(&user("bob"), 0, 9).await.expect("readable").expect("bob is known");
        let ids: Vec<_> = played.items.iter().map(|session| session.facts.id).collect();
        (board(store, &psi("average"), None, 0, 9).await, store.read_totals().await.expect("totals"), ids)
    };
    let before = snapshot(&store).await;
    drop(store);
    storage
        .change("DELETE FROM users; DELETE FROM careers; DELETE FROM totals; DELETE FROM endings; DELETE FROM notes");
    let store = open(&storage).await;
    assert_eq!(snapshot(&store).await, before);
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
}

async fn games_count_with_those_of_the_same_options_rules_and_prompt_only(storage: TestStorage) {
    let store = open(&storage).await;
    let play_on = async |n: u64, change: &dyn Fn(&mut arena_model::SessionFacts)| {
        let mut session = session(n);
        let mut facts = (*session.facts).clone();
        change(&mut facts);
        session.facts = facts.into();
        let no = create(&store, &session).await;
        end(&store, (no, session), &GAME).await;
    };
    play_on(1, &|_| {}).await;
    play_on(2, &|facts| facts.options = serde_json::json!({ "setSize": 1 })).await;
    play_on(3, &|facts| facts.rated = None).await;
    play_on(4, &|facts| facts.rated = Some(terms("2"))).await;
    play_on(5, &|facts| facts.rated = Some(BoardTerms::read("1", Some(&"b".repeat(64))).expect("terms"))).await;
    play_on(6, &|_| {}).await;
    assert_eq!(board(&store, &psi("average"), None, 0, 9).await, "ada 2 1.00, bob 2 -1.00 of 2");
    assert_eq!(board(&store, &global(), None, 0, 9).await, "ada 2 1.00, bob 2 -1.00 of 2");
    assert_eq!(store.read_totals().await.expect("totals").games["psi"], 6);
    let others = async |store: &Store| {
        let mut lines = Vec::new();
        for known in store.list_boards("psi").await.expect("readable") {
            let of = Board::Of { challenge: "psi".to_owned(), id: known.id, strategy: "average" };
            let prompt = known.terms.prompt.map_or_else(|| "none".to_owned(), |prompt| prompt[..1].to_owned());
            let players = board(store, &of, None, 0, 9).await;
            lines.push(format!("{} {} {prompt}: {players}", known.options, known.terms.rules));
        }
        lines.sort();
        lines
    };
    let one = |terms: &str| format!("{terms}: ada 1 1.00, bob 1 -1.00 of 2");
    let mut expected = vec![
        one(r#"{"setSize":1} 1 a"#),
        r#"{"setSize":3} 1 a: ada 2 1.00, bob 2 -1.00 of 2"#.to_owned(),
        one(r#"{"setSize":3} 1 b"#),
        one(r#"{"setSize":3} 2 a"#),
    ];
    assert_eq!(others(&store).await, expected);
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
    drop(store);
    // In a store from before boards, games keep their scores. Their boards depend on the options, and the prompt is
    // unknown.
    let names: (&str, &str) = if let TestStorage::Folder(_) = storage { ("user", "no") } else { ("user_no", "no") };
    storage.change(&format!(
        "UPDATE sessions SET rated = NULL WHERE {} IN (1, 2); DELETE FROM boards;
         UPDATE notes SET value = 'as it was' WHERE name = 'scoring';
         UPDATE careers SET standings = '{{\"psi\":{{}}}}' WHERE n = 0 AND {} > 0",
        names.1, names.0
    ));
    let store = open(&storage).await;
    expected = vec![
        one(r#"{"setSize":1} 1 none"#),
        one(r#"{"setSize":3} 1 a"#),
        one(r#"{"setSize":3} 1 b"#),
        one(r#"{"setSize":3} 1 none"#),
        one(r#"{"setSize":3} 2 a"#),
    ];
    assert_eq!(others(&store).await, expected);
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
}

async fn a_damaged_session_keeps_no_other_from_counting(storage: TestStorage) {
    let store = open(&storage).await;
    for n in 1..=3 {
        play(&store, n, &GAME).await;
    }
    drop(store);
    storage.change("UPDATE sessions SET scores = 'nothing' WHERE no = 2");
    let store = storage.open(scoring(&["win-rate"])).await;
    assert_eq!(board(&store, &psi("win-rate"), None, 0, 9).await, "ada 2 1.00, bob 2 0.00 of 2");
    assert_eq!(store.list_ended(EndingNo::default(), 2).await.expect("readable").len(), 2);
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
}

async fn what_was_changed_by_hand_is_found_and_mended(storage: TestStorage) {
    let store = open(&storage).await;
    play(&store, 1, &GAME).await;
    let before = store.find_standings(&user("bob")).await.expect("readable");
    drop(store);
    let column = if let TestStorage::Folder(_) = storage { "user" } else { "user_no" };
    storage.change(&format!(
        "UPDATE careers SET standings = replace(standings, '\"games\":1', '\"games\":7')
         WHERE n = 0 AND {column} = (SELECT no FROM users WHERE id = 'bob');
         UPDATE totals SET n = 9 WHERE name = 'games:psi';
         DELETE FROM totals WHERE name = 'participants'",
    ));
    let store = open(&storage).await;
    let totals = async || store.read_totals().await.expect("totals");
    assert_eq!((totals().await.games["psi"], totals().await.participants), (9, 0));
    assert_ne!(store.find_standings(&user("bob")).await.expect("readable"), before);
    assert_eq!(board(&store, &psi("average"), Some("average:security"), 1, 1).await, "bob 7 -0.14 of 2");
    let recount = store.recount(|_| audit("mend")).await.expect("a recount");
    assert_eq!(recount, Recount { users: 2, games: 2, wrong: vec![user("bob")] });
    assert_eq!(store.find_standings(&user("bob")).await.expect("readable"), before);
    assert_eq!(board(&store, &psi("average"), None, 1, 1).await, "bob 1 -1.00 of 2");
    assert_eq!(store.recount(|_| audit("mend")).await.expect("a recount").wrong, []);
    assert_eq!((totals().await.games["psi"], totals().await.participants), (1, 2));
}

async fn profiles_are_merged_and_a_key_is_good_once(storage: TestStorage) {
    let store = open(&storage).await;
    let change = async |username: Option<&str>, model: Option<&str>, key: u8| {
        let text = |text: &str| text.parse().expect("short");
        let write = ProfileWrite {
            user: user("ada"),
            change: ProfileChange { username: username.map(text), model: model.map(text) },
            respond: Box::new(|profile| serde_json::to_string(profile).expect("texts")),
            once: vec![([key; 32], [1; 32])],
            at: Timestamp(1),
        };
        store.change_profile(write).await
    };
    assert_eq!(change(Some("Ada"), None, 1).await.expect("new"), r#"{"userId":"ada","username":"Ada"}"#);
    let merged = r#"{"userId":"ada","username":"Ada","model":"opus"}"#;
    assert_eq!(change(None, Some("opus"), 2).await.expect("merged"), merged);
    assert!(matches!(change(Some("Eve"), None, 1).await, Err(CommitError::Answered(_))));
    store.set_benchmark(user("bot"), true, audit("benchmark")).await.expect("the commit is stored");
    let users = store.list_users(0, 9).await.expect("readable");
    assert_eq!(
        serde_json::to_string(&users.items).expect("texts"),
        format!(r#"[{merged},{{"userId":"bot","isBenchmark":true}}]"#)
    );
    assert_eq!(store.list_users(1, 9).await.expect("readable").items.len(), 1);
    assert_eq!(store.list_benchmarks().await.expect("readable").len(), 1);
    assert_eq!(store.find_profiles(&[user("bot"), user("zoe")]).await.expect("readable").len(), 1);
}

/// Describes everything in a store that depends on scoring.
pub(super) async fn boards(store: &Store) -> String {
    let mut text = board(store, &global(), None, 0, 9).await;
    for strategy in ["average", "win-rate", "red-team", "consecutive"] {
        text += &board(store, &psi(strategy), None, 0, 9).await;
    }
    text
}

pub(super) fn games() -> impl Strategy<Value = Vec<Game>> {
    let name = prop_oneof![Just(""), Just("ada"), Just("bob"), Just("eve"), Just("joe")];
    let score = (-10i8..=10, -10i8..=10).prop_map(|(a, b)| (f64::from(a) / 7.0, f64::from(b) / 10.0));
    let game = (
        prop_oneof![Just("psi"), Just("chess")],
        [name.clone(), name],
        [score.clone(), score],
        any::<bool>(),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(
        game.prop_map(|(challenge, users, scores, breach, abandoned)| Game {
            challenge,
            users,
            scores,
            breach,
            abandoned,
        }),
        1..40,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    // The boards are read from the middle of the season on, so that they are first loaded and then updated.
    #[test]
    fn any_season_is_recounted_the_same_and_sorted_on_sqlite_and_postgres(games in games(), look in 0usize..40) {
        with_each_storage(async |storage| {
            let store = open(&storage).await;
            for (i, game) in games.iter().enumerate() {
                if i >= look {
                    boards(&store).await;
                }
                play(&store, i as u64 + 1, game).await;
            }
            let played = boards(&store).await;
            assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
            drop(store);
            assert_eq!(boards(&open(&storage).await).await, played);
        });
    }
}

async fn many_writers_count_each_game_once(storage: TestStorage) {
    let store = std::sync::Arc::new(open(&storage).await);
    let tasks: Vec<_> = (1..=200)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                if n % 50 == 0 {
                    board(&store, &psi("average"), None, 0, 9).await;
                }
                play(&store, n, &GAME).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(board(&store, &psi("average"), None, 0, 9).await, "ada 200 1.00, bob 200 -1.00 of 2");
    assert_eq!(
        store.recount(|_| audit("mend")).await.expect("a recount"),
        Recount { users: 2, games: 400, wrong: vec![] }
    );
    let again =
        Commit { change: SessionChange::Create(Box::new(session(1))), messages: Vec::new(), answers: Vec::new() };
    assert!(matches!(store.commit(again).await, Err(CommitError::Conflict)));
}
