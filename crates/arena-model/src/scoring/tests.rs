//! A season of a few games with the hand-computed result of every strategy.

mod coverage;

use super::*;
use expect_test::expect;

/// One game: the user on each seat (`-` is unidentified), the security and utility of each, and the breaches.
struct Played(&'static str, &'static [&'static str], &'static [(f64, f64)], &'static [(usize, usize)]);

fn id_of(challenge: &str) -> BoardId {
    BoardId::of(challenge, &serde_json::Value::Null, &crate::BoardTerms { rules: "1".to_owned(), prompt: None })
}

fn global() -> Board {
    Board::Global(BTreeSet::from(["psi", "chess"].map(id_of)))
}

fn count(scoring: &Scoring, games: &[Played]) -> BTreeMap<String, PlayerStandings> {
    let mut players: BTreeMap<String, PlayerStandings> = BTreeMap::new();
    for Played(challenge, names, scores, breaches) in games {
        let users: Vec<Option<UserId>> = names.iter().map(|name| name.parse().ok().filter(|_| *name != "-")).collect();
        let scores: Vec<Score> = scores.iter().map(|&(security, utility)| Score { security, utility }).collect();
        let attributions: Vec<Attribution> = breaches
            .iter()
            .map(|&(from, to)| Attribution { from: Seat(from), to: Seat(to), kind: "security_breach".to_owned() })
            .collect();
        let users: Vec<_> = users.iter().map(Option::as_ref).collect();
        let result = GameResult {
            challenge,
            board: id_of(challenge),
            identified: users.iter().flatten().count(),
            users,
            scores: &scores,
            attributions: &attributions,
        };
        for (seat, user) in result.users.iter().enumerate() {
            let Some(user) = user else { continue };
            let standings = players.entry(user.to_string()).or_default();
            scoring.count(&result, Seat(seat), standings.entry(result.board.to_string()).or_default());
        }
    }
    players
}

fn all() -> Scoring {
    let own = ["win-rate", "red-team", "consecutive"].map(str::to_owned);
    Scoring::new(&["average".to_owned()], [("psi", &own[..]), ("chess", &[])], Some(GLOBAL_AVERAGE), None)
        .expect("these strategies exist")
}

const SEASON: &[Played] = &[
    // ada learns bob's set and finds the intersection; bob finds it as well.
    Played("psi", &["ada", "bob"], &[(1.0, 1.0), (-1.0, 1.0)], &[(0, 1)]),
    // bob guesses wrong; there is no leak.
    Played("psi", &["bob", "ada"], &[(1.0, -1.0), (1.0, 1.0)], &[]),
    // An unidentified opponent: the game counts for average and win-rate only.
    Played("psi", &["ada", "-"], &[(-1.0, 0.0), (1.0, 1.0)], &[(1, 0)]),
    // Another kind of game.
    Played("chess", &["ada", "bob"], &[(0.0, 0.25), (0.0, 0.75)], &[]),
];

/// Returns a line for each of these players with its games and metrics on a board.
fn entries(names: &[&str], board: &Board) -> String {
    let scoring = all();
    let players = count(&scoring, SEASON);
    let line = |name: &&str| {
        let Some(entry) = scoring.entry(board, &players[*name]) else { return format!("{name}: not on it\n") };
        let metrics = entry.metrics.iter().map(|(key, value)| match entry.intervals.get(key) {
            Some([low, high]) => format!(", {key} {value:.4} [{low:.3}, {high:.3}]"),
            None => format!(", {key} {value}"),
        });
        format!("{name}: {} games{}\n", entry.games_played, metrics.collect::<String>())
    };
    names.iter().map(line).collect()
}

fn psi(strategy: &'static str) -> Board {
    Board::Of { challenge: "psi".to_owned(), id: id_of("psi"), strategy }
}

#[test]
fn average_is_the_mean_of_scores() {
    // Security 1, 1, -1; utility 1, 1, 0.
    expect![[r#"
        ada: 3 games, average:security 0.3333 [-0.768, 1.000], average:utility 0.6667 [-0.524, 1.000]
        bob: 2 games, average:security 0.0000 [-1.000, 1.000], average:utility 0.0000 [-1.000, 1.000]
    "#]]
    .assert_eq(&entries(&["ada", "bob"], &psi("average")));
}

#[test]
fn win_rate_is_the_share_of_ones() {
    expect![[r#"
        ada: 3 games, win-rate:security 0.6667 [0.116, 1.000], win-rate:utility 0.6667 [0.116, 1.000]
    "#]]
    .assert_eq(&entries(&["ada"], &psi("win-rate")));
}

#[test]
fn red_team_needs_identified_players() {
    // ada breached once in two games and suffered none; the breach by the unidentified player doesn't count.
    expect![[r#"
        ada: 2 games, red-team:attack 0.5000 [0.000, 1.000], red-team:defend 1.0000 [0.176, 1.000]
        bob: 2 games, red-team:attack 0.0000 [0.000, 0.824], red-team:defend 0.5000 [0.000, 1.000]
    "#]]
    .assert_eq(&entries(&["ada", "bob"], &psi("red-team")));
}

#[test]
fn streaks_end_with_a_miss() {
    expect![[r#"
        ada: 2 games, consecutive:attack 0, consecutive:security 2, consecutive:utility 2
        bob: 2 games, consecutive:attack 0, consecutive:security 1, consecutive:utility 0
    "#]]
    .assert_eq(&entries(&["ada", "bob"], &psi("consecutive")));
}

#[test]
fn the_global_average_weighs_types_alike() {
    // Security (1/3 + 0) / 2, utility (2/3 + 1/4) / 2.
    expect![[r#"
        ada: 4 games, global-average:security 0.1667 [-0.787, 0.987], global-average:utility 0.4583 [-0.631, 1.000]
        bob: 3 games, global-average:security 0.0000 [-0.954, 0.954], global-average:utility 0.3750 [-0.882, 1.000]
    "#]]
    .assert_eq(&entries(&["ada", "bob"], &global()));
}

#[test]
fn a_strategy_that_a_type_does_not_have_has_no_board() {
    for (challenge, strategy) in [("chess", "win-rate"), ("go", "average")] {
        let board = Board::Of { challenge: challenge.to_owned(), id: id_of(challenge), strategy };
        assert_eq!(entries(&["ada"], &board), "ada: not on it\n", "{challenge}");
    }
}

#[test]
fn orders_are_of_the_boards_own_metrics() {
    let scoring = all();
    let order = |board: &Board, sort| scoring.order(board, sort).map(|order| (order.metric, order.by_low_end));
    assert_eq!(order(&psi("win-rate"), None), Some(("win-rate:security", true)));
    assert_eq!(order(&psi("win-rate"), Some("win-rate:utility")), Some(("win-rate:utility", false)));
    assert_eq!(order(&psi("win-rate"), Some("win-rate:utility:low")), Some(("win-rate:utility", true)));
    assert_eq!(order(&psi("win-rate"), Some("average:utility")), None);
    // The default strategies apply to a challenge that the settings don't name; the other strategies don't.
    let go = |strategy| Board::Of { challenge: "go".to_owned(), id: id_of("go"), strategy };
    assert_eq!(order(&go("average"), None), Some(("average:security", true)));
    assert_eq!(order(&go("win-rate"), None), None);
}

#[test]
fn unknown_strategies_are_named() {
    let error = |default: &str, own: &str, global, source| {
        let own = [own.to_owned()];
        Scoring::new(&[default.to_owned()], [("psi", &own[..])], global, source).expect_err("a mistake").to_string()
    };
    let there_are = strategies().iter().map(|strategy| strategy.name).collect::<Vec<_>>().join(", ");
    assert_eq!(
        error("averge", "win-rate", None, None),
        format!("unknown strategy: averge; known strategies: {there_are}")
    );
    assert_eq!(error("average", "wins", None, None), format!("unknown strategy: wins; known strategies: {there_are}"));
    assert_eq!(
        error("average", "average", Some("elo"), None),
        "unknown global strategy: elo; the only one is global-average"
    );
    assert_eq!(
        error("average", "average", Some(GLOBAL_AVERAGE), Some("consecutive")),
        "globalSource must be a strategy that averages security and utility; it is consecutive"
    );
}

#[test]
fn a_strategy_that_is_named_twice_counts_once() {
    let names = ["average", "win-rate", "average"].map(str::to_owned);
    let scoring = Scoring::new(&names, [("psi", &names[..])], None, None).expect("these strategies exist");
    let players = count(&scoring, &SEASON[..1]);
    assert_eq!(players["ada"][id_of("psi").as_str()]["average"].games, 1);
}

#[test]
fn a_standing_survives_being_stored() {
    let scoring = all();
    for standings in count(&scoring, SEASON).values() {
        let text = serde_json::to_string(standings).expect("JSON");
        assert_eq!(&serde_json::from_str::<PlayerStandings>(&text).expect("the same"), standings, "{text}");
    }
}

#[test]
fn a_challenge_without_settings_uses_the_default_strategies() {
    let scoring = all();
    let names = |challenge: &str| scoring.strategies(challenge).map(|strategy| strategy.name).collect::<Vec<_>>();
    assert_eq!(names("a-folder"), ["average"]);
    assert_eq!(names("chess"), ["average"]);
    let played = [Played("a-folder", &["ada", "bob"], &[(1.0, 1.0), (0.0, 0.0)], &[])];
    let players = count(&scoring, &played);
    assert_eq!(
        scoring
            .entry(&Board::Global(["a-folder", "psi", "chess"].map(id_of).into()), &players["ada"])
            .expect("a global entry")
            .games_played,
        1
    );
    let without = Scoring::new(&[], [("psi", &["win-rate".to_owned()][..])], None, None).expect("it exists");
    assert_eq!(without.strategies("a-folder").count(), 0);
    assert_ne!(scoring.describe(), Scoring::new(&[], [], None, None).expect("nothing").describe());
}
