//! Tests of leaderboards from records.

use arena_model::{GLOBAL_AVERAGE, Score, strategies};
use serde_json::json;

use super::*;

fn id(number: u64) -> SessionId {
    format!("018f6b2e-0000-7000-8000-{number:012x}").parse().unwrap()
}

fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

fn terms() -> BoardTerms {
    BoardTerms { rules: "1".to_owned(), prompt: Some("a".repeat(64)) }
}

/// A game of two players with these utilities. An empty name is an unidentified player, `?` a withheld one.
fn game(number: u64, players: [&str; 2], utilities: [f64; 2]) -> RecordedGame {
    let player = |name: &str| match name {
        "" => RecordedPlayer::Unidentified,
        "?" => RecordedPlayer::Withheld,
        name => RecordedPlayer::User(user(name)),
    };
    let score = |utility| Score { security: 1.0, utility };
    RecordedGame {
        session: id(number),
        challenge: "psi".to_owned(),
        options: json!({"setSize": 5}),
        terms: terms(),
        players: players.map(player).to_vec(),
        end: Some(RecordedEnd {
            is_completed: true,
            at: number as i64 * 100,
            scores: utilities.map(score).to_vec(),
            attributions: Vec::new(),
        }),
        is_fork: false,
        hash: format!("{number:064x}"),
    }
}

fn policy() -> LeaderboardPolicy {
    let names = ["average".to_owned(), "win-rate".to_owned()];
    LeaderboardPolicy {
        scoring: Scoring::new(&names, [], Some(GLOBAL_AVERAGE), None).unwrap(),
        main: BTreeMap::from([("psi".to_owned(), BoardId::of("psi", &json!({"setSize": 5}), &terms()))]),
        ..LeaderboardPolicy::default()
    }
}

fn leaf(kind: &str, number: u64, more: &str) -> String {
    format!(r#"{{"leaf":"{kind}","session":"{}",{more},"at":1}}"#, id(number))
}

fn created(number: u64, rated: bool) -> String {
    leaf("created", number, &format!(r#""challenge":"psi","seedCommitment":null,"rated":{rated}"#))
}

fn ended(number: u64) -> String {
    leaf("ended", number, &format!(r#""ending":"completed","record":"{number:064x}""#))
}

fn logged(leaves: &[String]) -> LoggedSessions {
    LoggedSessions::read(leaves.iter().map(String::as_str)).unwrap()
}

/// Returns user, games and mean utility of each row of the board by averages.
fn rows(rebuilt: &RebuiltBoards, policy: &LeaderboardPolicy, sort: &str) -> Vec<(String, u64, f64)> {
    let board = &policy.boards_of("psi", &policy.main["psi"])[0];
    let order = policy.scoring.order(board, Some(sort)).unwrap();
    let rows = rebuilt.rows(&policy.scoring, board, &order, &[]);
    rows.into_iter().map(|row| (row.player_id, row.entry.games_played, row.entry.metrics["average:utility"])).collect()
}

#[test]
fn averages_are_the_means_of_the_games_that_count() {
    let games = [
        game(1, ["ada", "bob"], [1.0, 0.0]),
        game(2, ["bob", "ada"], [0.5, 0.0]),
        game(3, ["cyn", ""], [0.5, 1.0]),
        game(4, ["ada", "?"], [0.5, 1.0]),
    ];
    let policy = policy();
    let rebuilt = RebuiltBoards::of(games, &policy, None).unwrap();
    // Computed by hand. Equal values are in the order in which the first games ended.
    let expected = [("ada", 3, 0.5), ("cyn", 1, 0.5), ("bob", 2, 0.25)];
    let expected: Vec<(String, u64, f64)> = expected.map(|(name, games, mean)| (name.to_owned(), games, mean)).into();
    assert_eq!(rows(&rebuilt, &policy, "average:utility"), expected);
    assert_eq!((rebuilt.counted, rebuilt.participants, rebuilt.withheld), (4, 3, 1));
    assert_eq!(rebuilt.completed, BTreeMap::from([("psi".to_owned(), 4)]));
    assert!(rebuilt.excluded.is_empty() && rebuilt.missing.is_empty());
}

#[test]
fn the_order_of_the_records_makes_no_difference() {
    let games: Vec<RecordedGame> =
        (1..40).map(|number| game(number, ["ada", "bob"], [1.0 / number as f64, 0.1 * number as f64])).collect();
    let policy = policy();
    let expected = RebuiltBoards::of(games.clone(), &policy, None).unwrap();
    let reversed = RebuiltBoards::of(games.into_iter().rev(), &policy, None).unwrap();
    assert_eq!(expected, reversed);
}

#[test]
fn each_excluded_game_has_its_reason() {
    let mut policy = policy();
    policy.excluded_sessions.insert(id(1), "a broken provider".to_owned());
    policy.excluded_users.insert(user("eve"), "banned".to_owned());
    let log = logged(&[
        created(1, true),
        ended(1),
        created(2, true),
        ended(2),
        created(3, true),
        ended(3),
        leaf("removed", 3, r#""reason":"spam""#),
        created(4, true),
        ended(4),
        leaf("excluded", 4, r#""reason":"a host failed""#),
        created(5, false),
        ended(5),
        created(7, true),
        ended(7),
        created(8, true),
        leaf("ended", 8, &format!(r#""ending":"abandoned","record":"{:064x}""#, 8)),
        created(9, true),
        created(10, true),
        ended(10),
        created(11, true),
        ended(11),
        created(12, true),
        ended(12),
        format!(r#"{{"leaf":"key","recordKey":"{}","at":1}}"#, "ab".repeat(32)),
    ]);
    let ada_bob = |number| game(number, ["ada", "bob"], [1.0, 0.0]);
    let mut games: Vec<RecordedGame> = (1..=10).map(ada_bob).collect();
    games[1].players[0] = RecordedPlayer::User(user("eve"));
    games[6].players[1] = RecordedPlayer::User(user("ada"));
    games[7].end.as_mut().unwrap().is_completed = false;
    games[8].end = None;
    games[9].is_fork = true;
    games.push(ada_bob(11));
    let reasons = |log: Option<&LoggedSessions>| -> String {
        let rebuilt = RebuiltBoards::of(games.clone(), &policy, log).unwrap();
        let line = |excluded: &ExcludedGame| {
            let session = excluded.session.to_string();
            format!("{} {}\n", &session[session.len() - 2..], excluded.reason)
        };
        let lines: String = rebuilt.excluded.iter().map(line).collect();
        let games: u64 = rebuilt.reasons.values().sum();
        format!("{lines}{} counted, {games} excluded, {} missing", rebuilt.counted, rebuilt.missing.len())
    };
    expect_test::expect_file!["tests/each_excluded_game_has_its_reason.txt"].assert_eq(&reasons(Some(&log)));
    expect_test::expect![[r#"
        01 policy: a broken provider
        02 policy: banned
        07 self-play
        08 abandoned
        09 unfinished
        0a fork
        5 counted, 6 excluded, 0 missing"#]]
    .assert_eq(&reasons(None));
}

#[test]
fn contradicting_records_are_named() {
    let policy = policy();
    let one = game(1, ["ada", "bob"], [1.0, 0.0]);
    let other = RecordedGame { hash: "f".repeat(64), ..one.clone() };
    let two = RebuiltBoards::of([one.clone(), other.clone()], &policy, None).unwrap_err();
    assert_eq!(two, ContradictingRecords::Two { session: id(1) });
    let log = logged(&[created(1, true), ended(1)]);
    assert!(matches!(RebuiltBoards::of([other], &policy, Some(&log)), Err(ContradictingRecords::OtherHash { .. })));
    let mut abandoned = one.clone();
    abandoned.end.as_mut().unwrap().is_completed = false;
    let error = RebuiltBoards::of([abandoned], &policy, Some(&log)).unwrap_err();
    let expected = ContradictingRecords::OtherEnding { session: id(1), found: "abandoned", logged: "completed" };
    assert_eq!(error, expected);
    // A record from during the game has another hash, and isn't a second game.
    let during = |hash: &str| RecordedGame { hash: hash.repeat(64), end: None, ..one.clone() };
    for games in [[during("d"), one.clone(), during("e")], [during("e"), during("d"), one.clone()]] {
        for log in [None, Some(&log)] {
            let rebuilt = RebuiltBoards::of(games.clone(), &policy, log).unwrap();
            assert_eq!((rebuilt.counted, rebuilt.excluded.len(), rebuilt.missing.len()), (1, 0, 0));
        }
    }
    let rebuilt = RebuiltBoards::of([during("d")], &policy, Some(&log)).unwrap();
    assert_eq!((rebuilt.counted, rebuilt.missing), (0, vec![id(1)]));
    // An abandoned game has a record, which shows that it was abandoned.
    let ended = leaf("ended", 2, &format!(r#""ending":"abandoned","record":"{:064x}""#, 2));
    let rebuilt = RebuiltBoards::of([], &policy, Some(&logged(&[created(2, true), ended]))).unwrap();
    assert_eq!(rebuilt.missing, [id(2)]);
    // The same record with fewer openings isn't a second game.
    let hidden = RecordedGame { players: vec![RecordedPlayer::Withheld; 2], ..one.clone() };
    for copies in [[one.clone(), hidden.clone()], [hidden, one]] {
        let rebuilt = RebuiltBoards::of(copies, &policy, Some(&log)).unwrap();
        assert_eq!((rebuilt.counted, rebuilt.withheld, rebuilt.participants), (1, 0, 2));
    }
}

#[test]
fn equal_players_are_in_the_order_of_the_ends_of_their_first_games() {
    let policy = policy();
    // Game 1 was created first and ends last. By the log, game 3 ended before game 2.
    let mut games =
        [game(1, ["ada", "bob"], [0.5, 0.5]), game(2, ["cyn", "dan"], [0.5, 0.5]), game(3, ["eve", "dan"], [0.5, 0.5])];
    games[0].end.as_mut().unwrap().at = 1000;
    let names = |log: Option<&LoggedSessions>| -> Vec<String> {
        let rebuilt = RebuiltBoards::of(games.clone(), &policy, log).unwrap();
        rows(&rebuilt, &policy, "average:utility").into_iter().map(|(name, ..)| name).collect()
    };
    assert_eq!(names(None), ["cyn", "dan", "eve", "ada", "bob"]);
    let creations = (1..4).map(|number| created(number, true));
    let log = logged(&creations.chain([3, 2, 1].map(ended)).collect::<Vec<_>>());
    assert_eq!(names(Some(&log)), ["eve", "dan", "cyn", "ada", "bob"]);
}

#[test]
fn a_false_reason_of_an_exclusion_is_an_error() {
    let policy = policy();
    let (distinct, own) = (game(1, ["ada", "bob"], [1.0, 0.0]), game(1, ["ada", "ada"], [1.0, 0.0]));
    let hidden = game(1, ["ada", "?"], [1.0, 0.0]);
    let mut abandoned = distinct.clone();
    abandoned.end.as_mut().unwrap().is_completed = false;
    for (game, reason, is_false) in [
        (&distinct, "self-play", true),
        (&own, "self-play", false),
        (&hidden, "self-play", false),
        (&distinct, "ban", true),
        (&abandoned, "ban", false),
        (&distinct, "a host failed", false),
    ] {
        let end = kind_of_end(game.end.as_ref().unwrap().is_completed);
        let end = leaf("ended", 1, &format!(r#""ending":"{end}","record":"{:064x}""#, 1));
        let log = logged(&[created(1, true), end, leaf("excluded", 1, &format!(r#""reason":"{reason}""#))]);
        let without = RebuiltBoards::of([], &policy, Some(&log)).unwrap();
        assert_eq!(without.missing, [id(1)], "{reason}");
        let expected = ContradictingRecords::FalseExclusion { session: id(1), reason: reason.to_owned() };
        match RebuiltBoards::of([game.clone()], &policy, Some(&log)) {
            Ok(rebuilt) => {
                assert!(!is_false, "{reason}");
                assert_eq!(rebuilt.reasons, BTreeMap::from([(reason.to_owned(), 1)]));
            }
            Err(error) => assert_eq!((error, is_false), (expected, true)),
        }
    }
}

#[test]
fn games_that_count_in_part_are_counted_by_reason() {
    let mut games = [
        game(1, ["ada", "bob"], [1.0, 0.0]),
        game(2, ["ada", ""], [1.0, 0.0]),
        game(3, ["", ""], [1.0, 0.0]),
        game(4, ["ada", "?"], [1.0, 0.0]),
        game(5, ["", "ada"], [1.0, 0.0]),
    ];
    games[4].options = json!({"setSize": 6});
    let rebuilt = RebuiltBoards::of(games, &policy(), None).unwrap();
    let partial: Vec<String> = rebuilt.partial.iter().map(|(reason, games)| format!("{reason} ×{games}")).collect();
    let expected =
        ["no player with a user id ×1", "a player without a user id ×2", "another board than the main one ×1"];
    assert_eq!((rebuilt.counted, partial), (5, expected.map(str::to_owned).to_vec()));
    assert!(rebuilt.reasons.is_empty());
}

#[test]
fn a_session_that_was_imported_after_its_removal_counts_once() {
    let policy = policy();
    let former = game(1, ["ada", "bob"], [1.0, 0.0]);
    let imported = RecordedGame { hash: "f".repeat(64), ..former.clone() };
    let removed = leaf("removed", 1, r#""reason":"administrator""#);
    let again = leaf("ended", 1, &format!(r#""ending":"completed","record":"{}""#, imported.hash));
    let leaves = [created(1, true), ended(1), removed.clone(), created(1, true), again, removed];
    let counted = |leaves: &[String], games: &[&RecordedGame]| {
        let rebuilt = RebuiltBoards::of(games.iter().copied().cloned(), &policy, Some(&logged(leaves))).unwrap();
        (rebuilt.counted, rebuilt.excluded.len(), rebuilt.missing.len())
    };
    assert_eq!(counted(&leaves[..2], &[&former]), (1, 0, 0));
    assert_eq!(counted(&leaves[..3], &[&former]), (0, 1, 0));
    assert_eq!(counted(&leaves[..5], &[&former, &imported]), (1, 0, 0));
    assert_eq!(counted(&leaves[..5], &[&former]), (0, 0, 1));
    assert_eq!(counted(&leaves[..], &[&former, &imported]), (0, 1, 0));
}

#[test]
fn an_unlisted_game_is_in_no_total() {
    let policy = policy();
    let log = logged(&[created(1, true), leaf("excluded", 1, r#""reason":"unlisted""#)]);
    let rebuilt = RebuiltBoards::of([game(1, ["ada", "bob"], [1.0, 0.0])], &policy, Some(&log)).unwrap();
    let reasons: Vec<String> = rebuilt.excluded.iter().map(|game| game.reason.to_string()).collect();
    assert_eq!(reasons, ["unlisted"]);
    assert_eq!((rebuilt.counted, rebuilt.participants, rebuilt.completed.len()), (0, 0, 0));
    assert!(rebuilt.missing.is_empty());
    let open = [created(1, true), created(2, true), created(3, false), ended(2)];
    assert_eq!((log.unfinished(), logged(&open).unfinished()), (0, 1));
}

#[test]
fn empty_seats_have_no_players() {
    // A session from another arena may have ended with an empty seat. Its two players are known.
    let mut game = game(1, ["ada", "bob"], [1.0, 0.0]);
    game.end.as_mut().unwrap().scores.push(Score { security: 0.0, utility: 0.0 });
    let policy = policy();
    let rebuilt = RebuiltBoards::of([game], &policy, None).unwrap();
    let expected = [("ada".to_owned(), 1, 1.0), ("bob".to_owned(), 1, 0.0)];
    assert_eq!(rows(&rebuilt, &policy, "average:utility"), expected);
}

#[test]
fn unreadable_leaves_are_named() {
    for (leaves, part) in [
        (vec!["{}".to_owned()], "leaf 0"),
        (
            vec![created(1, true), r#"{"leaf":"ended","session":"x","ending":"completed","record":""}"#.to_owned()],
            "leaf 1",
        ),
        (vec![ended(1), ended(1)], "has ended before"),
    ] {
        let error = LoggedSessions::read(leaves.iter().map(String::as_str)).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn profiles_decide_the_order_of_equal_players_and_are_shown() {
    let games = [game(1, ["ada", "bob"], [0.5, 0.5])];
    let policy = policy();
    let rebuilt = RebuiltBoards::of(games, &policy, None).unwrap();
    let board = policy.global_board();
    let order = policy.scoring.order(&board, None).unwrap();
    let text = |profiles: &str| {
        let profiles: Vec<LeaderboardProfile> = serde_json::from_str(profiles).unwrap();
        let rows = rebuilt.rows(&policy.scoring, &board, &order, &profiles);
        let line = |row: &LeaderboardRow| {
            let json = serde_json::to_value(row).unwrap();
            format!("{} {} {} {}", json["playerId"], json["username"], json["model"], json["isBenchmark"])
        };
        rows.iter().map(line).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(text("[]"), r#""ada" null null null; "bob" null null null"#);
    let profiles = r#"[{"userId":"bob","username":"Bob","isBenchmark":true},{"userId":"ada","model":"m"}]"#;
    assert_eq!(text(profiles), r#""bob" "Bob" null true; "ada" null "m" null"#);
}

#[test]
fn every_strategy_can_be_rebuilt() {
    let names: Vec<String> = strategies().iter().map(|strategy| strategy.name.to_owned()).collect();
    let policy = LeaderboardPolicy { scoring: Scoring::new(&names, [], None, None).unwrap(), ..policy() };
    let rebuilt = RebuiltBoards::of([game(1, ["ada", "bob"], [1.0, 0.0])], &policy, None).unwrap();
    let boards = policy.boards_of("psi", &policy.main["psi"]);
    assert_eq!(boards.len(), names.len());
    for board in &boards {
        let order = policy.scoring.order(board, None).unwrap();
        assert_eq!(rebuilt.rows(&policy.scoring, board, &order, &[]).len(), 2, "{board:?}");
    }
    assert!(policy.scoring.order(&policy.global_board(), None).is_none());
}
