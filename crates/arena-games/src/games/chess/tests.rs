//! Tests of chess: counts of legal moves, single positions, and properties that hold in every game.

use arena_model::{AnyGame, Forfeit, Seed};
use expect_test::{Expect, expect, expect_file};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::games::golden;

/// A seed with which seat 0 has the white pieces.
const SEED: u64 = 1;

fn start(options: Value) -> Box<dyn AnyGame> {
    golden::start(crate::game("chess").unwrap(), 2, SEED, options)
}

fn state(game: &dyn AnyGame, seat: usize) -> Value {
    serde_json::from_str(&golden::state(game, Seat(seat))).unwrap()
}

/// Plays this reply for the agent to move, and returns the accepted actions.
fn reply(game: &mut dyn AnyGame, text: Option<&str>, events: &mut Events) -> String {
    let replies = [0, 1].map(|seat| text.filter(|_| game.is_asked(Seat(seat))));
    let mut taken = Vec::new();
    game.play(&replies, &mut taken, events);
    String::from_utf8(taken).unwrap()
}

/// Plays these moves, each of which is legal.
#[track_caller]
fn play(game: &mut dyn AnyGame, moves: &str) {
    for uci in moves.split_whitespace() {
        let mut events = Events::default();
        reply(game, Some(&json!([{"action": "move", "move": uci}]).to_string()), &mut events);
        assert_eq!((events.rejections(), events.forfeits()), (&[][..], &[][..]), "{uci}");
    }
}

fn fen(game: &dyn AnyGame) -> String {
    state(game, 0)["fen"].as_str().unwrap().to_owned()
}

/// Returns the number of sequences of `depth` legal moves from a position.
fn perft(position: &str, depth: usize) -> u64 {
    fn count(position: &Position, depth: usize) -> u64 {
        if depth == 1 {
            return position.plays().len() as u64;
        }
        let after = |play: &Play| {
            let mut next = position.clone();
            next.play(play);
            count(&next, depth - 1)
        };
        position.plays().iter().map(after).sum()
    }
    count(&Position::from_fen(position).unwrap(), depth)
}

const KIWIPETE: &str = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";

// Source: the Chess Programming Wiki, "Perft Results", positions 1 to 6.
#[test]
fn there_are_as_many_lines_as_is_known() {
    for (position, counts) in [
        (ChessConfig::default().fen.as_str(), &[20, 400, 8_902, 197_281][..]),
        (KIWIPETE, &[48, 2_039, 97_862]),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", &[14, 191, 2_812, 43_238, 674_624]),
        ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", &[6, 264, 9_467, 422_333]),
        ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", &[44, 1_486, 62_379]),
        ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", &[46, 2_079, 89_890]),
    ] {
        for (depth, expected) in (1..).zip(counts) {
            assert_eq!(perft(position, depth), *expected, "{position} to depth {depth}");
        }
    }
}

/// Compares the legal moves in the agents' order.
#[track_caller]
fn check_moves(position: &str, expected: Expect) {
    let position = Position::from_fen(position).unwrap();
    let moves: Vec<&str> = position.plays().iter().map(Play::uci).collect();
    expected.assert_eq(&moves.join(" "));
}

// The expected orders are those of python-chess 1.11.
#[test]
fn moves_are_in_the_order_that_agents_know() {
    check_moves(
        &ChessConfig::default().fen,
        expect!["g1h3 g1f3 b1c3 b1a3 h2h3 g2g3 f2f3 e2e3 d2d3 c2c3 b2b3 a2a3 h2h4 g2g4 f2f4 e2e4 d2d4 c2c4 b2b4 a2a4"],
    );
    check_moves(
        KIWIPETE,
        expect![
            "e5f7 e5d7 e5g6 e5c6 e5g4 e5c4 e5d3 f3f6 f3h5 f3f5 f3g4 f3f4 f3h3 f3g3 f3e3 f3d3 c3b5 c3a4 c3d1 c3b1 e2a6 e2b5 e2c4 e2d3 e2f1 e2d1 d2h6 d2g5 d2f4 d2e3 d2c1 h1g1 h1f1 e1f1 e1d1 a1d1 a1c1 a1b1 e1g1 e1c1 d5e6 g2h3 d5d6 g2g3 b2b3 a2a3 g2g4 a2a4"
        ],
    );
    // In check the king's moves come first.
    check_moves("4k3/P7/8/1b6/8/8/4r3/4K2R w K - 0 1", expect!["e1f1 e1d1"]);
    check_moves("8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1", expect!["c5d6 c5c6 c5b6 c5d5 c5b5 c5d4 c5c4 c5b4 e4d3"]);
    check_moves(
        "4k3/1P6/8/8/8/8/8/R3K2R w KQ - 0 1",
        expect![
            "h1h8 h1h7 h1h6 h1h5 h1h4 h1h3 h1h2 h1g1 h1f1 e1f2 e1e2 e1d2 e1f1 e1d1 a1a8 a1a7 a1a6 a1a5 a1a4 a1a3 a1a2 a1d1 a1c1 a1b1 e1g1 e1c1 b7b8q b7b8r b7b8b b7b8n"
        ],
    );
    check_moves("8/8/8/2kpP3/8/8/8/4K2B w - d6 0 1", expect!["h1d5 h1e4 h1f3 h1g2 e1f2 e1e2 e1d2 e1f1 e1d1 e5e6 e5d6"]);
}

#[track_caller]
fn check_fen(position: &str, moves: &str, expected: &str) {
    let mut game = start(json!({ "fen": position }));
    play(&mut *game, moves);
    assert_eq!(fen(&*game), expected);
}

#[test]
fn positions_follow_from_moves() {
    let first = ChessConfig::default().fen;
    // No capture en passant is possible here, so no square is named.
    check_fen(&first, "e2e4", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
    check_fen(&first, "e2e4 a7a6 e4e5 d7d5", "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3");
    check_fen(&first, "e2e4 a7a6 e4e5 d7d5 e5d6", "rnbqkbnr/1pp1pppp/p2P4/8/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 3");
    check_fen(&first, "e2e4 a7a6 e4e5 d7d5 g1f3", "rnbqkbnr/1pp1pppp/p7/3pP3/8/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 3");
    // The en passant capture would expose the king to the rook.
    check_fen("8/8/8/8/k3p2R/8/3P4/4K3 w - - 0 1", "d2d4", "8/8/8/8/k2Pp2R/8/8/4K3 b - - 0 1");
    let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 7";
    check_fen(castling, "e1g1", "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 4 7");
    check_fen(castling, "e1c1 e8g8", "r4rk1/8/8/8/8/8/8/2KR3R w - - 5 8");
    check_fen(castling, "a1a8", "R3k2r/8/8/8/8/8/8/4K2R b Kk - 0 7");
    check_fen(castling, "h1g1 e8e7", "r6r/4k3/8/8/8/8/8/R3K1R1 w Q - 5 8");
    check_fen("4k3/1P6/8/8/8/8/8/4K3 w - - 8 60", "b7b8n", "1N2k3/8/8/8/8/8/8/4K3 b - - 0 60");
}

// The expected values are those of python-chess 1.11: `not has_insufficient_material(color)`.
#[test]
fn a_side_can_mate_with_its_pieces_and_with_those_of_the_opponent() {
    for (pieces, white, black) in [
        ("8/8/3rk3/8/8/2K5/8/8", false, true),
        ("4k3/8/8/8/8/8/P7/4K3", true, false),
        ("4k3/8/8/8/8/8/N7/4K3", false, false),
        ("q3k3/8/8/8/8/8/N7/4K3", false, true),
        ("r3k3/8/8/8/8/8/N7/4K3", true, true),
        ("4k3/8/8/8/8/8/NN6/4K3", true, false),
        ("4k3/8/8/8/8/8/B1B5/4K3", false, false),
        ("4k3/8/8/8/8/8/BB6/4K3", true, false),
        ("r3k3/8/8/8/8/8/B7/4K3", false, true),
        ("n3k3/8/8/8/8/8/B7/4K3", true, true),
        ("b3k3/8/8/8/8/8/B7/4K3", false, false),
        ("4kb2/8/8/8/8/8/B7/4K3", true, true),
    ] {
        let position = Position::from_fen(&format!("{pieces} w - - 0 1")).unwrap();
        assert_eq!((position.can_mate(Color::White), position.can_mate(Color::Black)), (white, black), "{pieces}");
    }
}

#[test]
fn the_end_of_the_time_is_a_draw_if_the_opponent_cannot_mate() {
    let over = r#"[{"action":"move","move":"time_over"}]"#;
    let mut game = start(json!({"fen": "8/8/3rk3/8/8/2K5/8/8 b - - 0 1"}));
    assert_eq!((game.on_time_over(Seat(0)), game.on_time_over(Seat(1)).as_deref()), (None, Some(over)));
    let mut events = Events::default();
    assert_eq!(reply(&mut *game, Some(over), &mut events), format!("[null,{over}]"));
    assert_eq!((game.termination(), game.scores()), (Some("DRAW_ON_TIME"), vec![0.5, 0.5]));
    // An agent can't end a game by this move while the opponent can mate.
    let mut game = start(json!({}));
    reply(&mut *game, Some(over), &mut events);
    assert_eq!((game.termination(), game.scores()), (Some("TAINTED"), vec![0.0, 1.0]));
    assert!(events.forfeits()[0].detail.starts_with("\"time_over\" is no legal move in"));
}

#[test]
fn a_state_tells_all_that_agents_read() {
    let mut game = start(json!({}));
    play(&mut *game, "g1f3");
    let state = golden::state(&*game, Seat(1));
    expect![[r#"{"fen":"rnbqkbnr/pppppppp/8/8/8/5N2/PPPPPPPP/RNBQKB1R b KQkq - 1 1","epd":"rnbqkbnr/pppppppp/8/8/8/5N2/PPPPPPPP/RNBQKB1R b KQkq -","turn":false,"legal_moves":["g8h6","g8f6","b8c6","b8a6","h7h6","g7g6","f7f6","e7e6","d7d6","c7c6","b7b6","a7a6","h7h5","g7g5","f7f5","e7e5","d7d5","c7c5","b7b5","a7a5"],"last_move":"g1f3","color":"BLACK"}"#]]
    .assert_eq(&state);
}

/// Plays these moves and compares the end with the scores of White and Black.
#[track_caller]
fn check_end(options: Value, moves: &str, expected: Option<(&str, [f64; 2])>) {
    let mut game = start(options);
    play(&mut *game, moves);
    let scores = game.scores();
    assert_eq!(game.termination().map(|termination| (termination, [scores[0], scores[1]])), expected, "{moves}");
    assert_eq!(game.is_asked(Seat(0)) || game.is_asked(Seat(1)), expected.is_none());
}

#[test]
fn games_end_by_themselves() {
    let draw = [0.5, 0.5];
    let at = |fen: &str| json!({ "fen": fen });
    let knights = "g1f3 g8f6 f3g1 f6g8 ";
    check_end(json!({}), "", None);
    check_end(json!({}), "f2f3 e7e5 g2g4 d8h4", Some(("CHECKMATE", [0.0, 1.0])));
    check_end(at("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"), "d1d8", Some(("CHECKMATE", [1.0, 0.0])));
    check_end(at("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1"), "g5g6", Some(("STALEMATE", draw)));
    // The initial position counts as an occurrence, and the fifth occurrence ends the game without a claim.
    check_end(json!({}), &knights.repeat(3), None);
    check_end(json!({}), &knights.repeat(4), Some(("FIVEFOLD_REPETITION", draw)));
    check_end(at("4k3/8/8/8/8/8/8/R3K3 w Q - 148 100"), "a1a2", None);
    check_end(at("4k3/8/8/8/8/8/8/R3K3 w Q - 148 100"), "a1a2 e8e7", Some(("SEVENTYFIVE_MOVES", draw)));
    check_end(at("4k3/8/8/8/8/8/P7/R3K3 w Q - 149 100"), "a2a3", None);
    // Checkmate takes precedence over the count of moves.
    check_end(at("6k1/5ppp/8/8/8/8/8/K2R4 w - - 149 100"), "d1d8", Some(("CHECKMATE", [1.0, 0.0])));
    check_end(json!({"n_epochs": 3}), "e2e4 e7e5", None);
    check_end(json!({"n_epochs": 3}), "e2e4 e7e5 g1f3", Some(("MAX_PLIES", draw)));
    check_end(json!({"n_epochs": 4}), "f2f3 e7e5 g2g4 d8h4", Some(("CHECKMATE", [0.0, 1.0])));
}

#[test]
fn positions_with_other_rights_are_not_the_same() {
    // The first of these positions has castling rights that are lost when its pieces return.
    let rooks = "h1g1 h8g8 g1h1 g8h8 ";
    let castling = json!({"fen": "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"});
    check_end(castling.clone(), &rooks.repeat(4), None);
    check_end(castling, &rooks.repeat(5), Some(("FIVEFOLD_REPETITION", [0.5, 0.5])));
    // The right to capture en passant expires at once, so only four of these five positions are equal.
    let knights = "g1f3 g8f6 f3g1 f6g8 ".repeat(4);
    let fen = "rnbqkbnr/ppp1pppp/8/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3";
    check_end(json!({ "fen": fen }), &knights, None);
    // If no en passant capture is legal, the en passant square doesn't distinguish positions.
    let fen = "rnbqkbnr/ppp1pppp/8/3p4/8/4P3/PPPP1PPP/RNBQKBNR w KQkq d6 0 3";
    check_end(json!({ "fen": fen }), &knights, Some(("FIVEFOLD_REPETITION", [0.5, 0.5])));
}

#[test]
fn material_is_insufficient_where_no_side_could_ever_mate() {
    let insufficient = ["K1k5", "KN1k4", "K1k4n", "KB1k4", "KB1k3b", "KB1B1k1b"];
    let sufficient = ["KP1k4", "KR1k4", "KQ1k4", "KBB2k2", "KB1k2b1", "KN1k3n", "KNN2k2", "KN1k3b", "KB1B1kb1"];
    for (rows, expected) in [(&insufficient[..], true), (&sufficient, false)] {
        for row in rows {
            let fen = format!("8/8/8/{}/8/8/8/8 b - - 0 1", padded(row));
            assert_eq!(Position::from_fen(&fen).unwrap().is_material_insufficient(), expected, "{fen}");
        }
    }
}

/// Returns a rank of a FEN, filled up with empty squares.
fn padded(row: &str) -> String {
    let used: u32 = row.chars().map(|char| char.to_digit(10).unwrap_or(1)).sum();
    match 8 - used {
        0 => row.to_owned(),
        free => format!("{row}{free}"),
    }
}

/// Returns the effects of one reply after these moves: the accepted, rejected and forfeiting actions, and the end.
fn after_reply(options: &Value, moves: &str, text: Option<&str>) -> String {
    let mut game = start(options.clone());
    play(&mut *game, moves);
    let mut events = Events::default();
    let mut actual = format!("{options} {moves:?}: {}\n", reply(&mut *game, text, &mut events));
    for rejected in events.rejections() {
        actual += &format!("{:?} {}\n", rejected.index, rejected.reason);
    }
    for forfeit in events.forfeits() {
        actual += &format!("seat {} {}: {}\n", forfeit.seat.0, forfeit.verdict, forfeit.detail);
    }
    actual + &format!("{:?} {:?}\n", game.termination(), game.scores())
}

#[test]
fn a_reply_without_a_move_loses() {
    let actual = [
        None,
        Some("[]"),
        Some("null"),
        Some("[7]"),
        Some(r#"[{"action":"move","move":null}]"#),
        Some(r#"[{"action":"resign"}]"#),
    ]
    .map(|text| {
        let mut game = start(json!({}));
        play(&mut *game, "e2e4");
        let mut events = Events::default();
        reply(&mut *game, text, &mut events);
        assert_eq!((game.termination(), game.scores()), (Some("TAINTED"), vec![1.0, 0.0]));
        let [Forfeit { seat: Seat(1), verdict: Verdict::IllegalMove, detail }] = events.forfeits() else {
            panic!("{:?}", events.forfeits());
        };
        format!("{}: {detail}\n", text.unwrap_or("nothing"))
    });
    expect![[r#"
        nothing: gave no move
        []: gave no move
        null: gave no move: `actions` is not a list
        [7]: gave no move: an action is an object
        [{"action":"move","move":null}]: gave no move: invalid type: null, expected a string
        [{"action":"resign"}]: gave no move: unknown variant `resign`, expected `move` or `claim_draw`
    "#]]
    .assert_eq(&actual.concat());
}

#[test]
fn a_move_is_legal_as_it_is_listed_and_not_otherwise() {
    let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    let promotion = "4k3/1P6/8/8/8/8/8/4K3 w - - 0 1";
    for (fen, uci) in [
        (castling, "e1h1"),
        (castling, "O-O"),
        (castling, "E1G1"),
        (castling, "e1g1 "),
        (castling, ""),
        (castling, "e1e3"),
        (promotion, "b7b8"),
        (promotion, "b7b8Q"),
        (promotion, "b7b8k"),
        (promotion, "0000"),
    ] {
        let mut game = start(json!({ "fen": fen }));
        let mut events = Events::default();
        reply(&mut *game, Some(&json!([{"action": "move", "move": uci}]).to_string()), &mut events);
        assert_eq!(events.forfeits().len(), 1, "{uci}");
        assert_eq!(events.forfeits()[0].verdict, Verdict::IllegalMove);
        assert!(events.forfeits()[0].detail.starts_with(&format!("{uci:?}")), "{}", events.forfeits()[0].detail);
        assert_eq!((game.termination(), game.scores()), (Some("TAINTED"), vec![0.0, 1.0]));
    }
}

#[test]
fn quotations_are_short() {
    let long = json!([{"action": "move", "move": "\u{1b}é\n".repeat(100_000)}]).to_string();
    let effects = after_reply(&json!({}), "", Some(&long));
    expect![[r#"
        {} "": [[],null]
        Some(0) "\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é"… is no legal move in rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1
        seat 0 ILLEGAL_MOVE: "\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é\n\u{1b}é"… is no legal move in rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1
        Some("TAINTED") [0.0, 1.0]
    "#]].assert_eq(&effects);
}

#[test]
fn the_first_move_counts() {
    let effects = after_reply(
        &json!({}),
        "",
        Some(
            r#"[{"action":"move","move":"e2e4","why":"best"},{"action":"move","move":"e7e5"},{"action":"claim_draw"}]"#,
        ),
    );
    expect![[r#"
        {} "": [[{"action":"move","move":"e2e4"}],null]
        Some(1) a second move, and the first one counts
        Some(2) no draw to claim: neither a third repetition nor fifty quiet moves
        None [0.0, 0.0]
    "#]]
    .assert_eq(&effects);
}

#[test]
fn a_draw_is_claimed_or_the_claim_is_rejected_and_the_move_is_played() {
    let claim = Some(r#"[{"action":"claim_draw"}]"#);
    let both = Some(r#"[{"action":"move","move":"a2a3"},{"action":"claim_draw"},{"action":"claim_draw"}]"#);
    let knights = "g1f3 g8f6 f3g1 f6g8 ";
    let quiet = |plies| json!({"fen": format!("4k3/8/8/8/8/8/P7/R3K3 w - - {plies} 80")});
    let replies = [
        after_reply(&json!({}), &knights.repeat(2), claim),
        after_reply(&json!({}), &knights.repeat(2), both),
        after_reply(&json!({}), knights, both),
        after_reply(&json!({}), knights, claim),
        after_reply(&quiet(100), "", claim),
        after_reply(&quiet(99), "", both),
    ];
    expect_file!["tests/a_draw_is_claimed_or_the_claim_is_rejected_and_the_move_is_played.txt"]
        .assert_eq(&replies.concat());
}

#[test]
fn a_disqualified_agent_loses_unless_the_game_was_over() {
    let mut game = start(json!({}));
    game.disqualify(Seat(0));
    assert_eq!((game.termination(), game.scores()), (Some("TAINTED"), vec![0.0, 1.0]));
    game.disqualify(Seat(1));
    assert_eq!((game.termination(), game.scores()), (Some("TAINTED"), vec![0.5, 0.5]));
    let mut game = start(json!({}));
    play(&mut *game, "f2f3 e7e5 g2g4 d8h4");
    game.disqualify(Seat(1));
    assert_eq!((game.termination(), game.scores()), (Some("CHECKMATE"), vec![0.0, 1.0]));
}

#[test]
fn actions_of_the_other_agent_are_rejected() {
    let mut game = start(json!({}));
    let (mut taken, mut events) = (Vec::new(), Events::default());
    let text = Some(r#"[{"action":"move","move":"e2e4"}]"#);
    game.play(&[text, text], &mut taken, &mut events);
    assert_eq!(String::from_utf8(taken).unwrap(), r#"[[{"action":"move","move":"e2e4"}],[]]"#);
    assert_eq!(game.termination(), None);
}

#[test]
fn colors_come_from_the_seed() {
    let chess = crate::game("chess").unwrap();
    let sides: Vec<String> = (0..20)
        .map(|seed| {
            let game = golden::start(chess, 2, seed, json!({}));
            let sides = [0, 1].map(|seat| game.side(Seat(seat)).unwrap());
            assert_eq!([0, 1].map(|seat| state(&*game, seat)["color"].clone()), sides);
            assert_eq!([0, 1].map(|seat| game.is_asked(Seat(seat))), sides.map(|side| side == "WHITE"));
            sides.concat()
        })
        .collect();
    for expected in ["WHITEBLACK", "BLACKWHITE"] {
        assert!(sides.iter().filter(|sides| *sides == expected).count() > 4, "{sides:?}");
    }
}

#[test]
fn options_that_cannot_be_played_are_refused() {
    let chess = crate::game("chess").unwrap();
    let refused = |options: &Value| {
        let agents = ["a0", "a1"].map(|id| id.parse().unwrap()).to_vec();
        let started = chess.start(options.as_object().unwrap(), Setup { seed: Seed([1; 32]), agents });
        started.map(|game| Value::Object(game.config()).to_string()).unwrap_or_else(|error| error.to_string())
    };
    let actual: Vec<String> = [
        json!({}),
        json!({"n_epochs": 0}),
        json!({"n_epochs": -2}),
        json!({"n_epochs": 1.5}),
        json!({"variant": "atomic"}),
        json!({"fen": ""}),
        json!({"fen": "8/8/8/8/8/8/8/8 w - - 0 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w K - 0"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w K - 0 1 "}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w Q - 0 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/3K3R w K - 0 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w K e3 0 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w K - 150 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w K - +1 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K2R w K - 0 0"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4R1K1 w - - 0 1"}),
        json!({"fen": "4k3/8/8/8/8/8/8/4K3 w - - 0 1"}),
        json!({"fen": "9/☃/8/8/8/8/8/8 w - - 0 1"}),
        // No en passant capture is possible on e3.
        json!({"fen": "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"}),
    ]
    .iter()
    .map(|options| format!("{options}\n    {}\n", refused(options)))
    .collect();
    expect_file!["tests/options_that_cannot_be_played_are_refused.txt"].assert_eq(&actual.concat());
}

/// A simple agent: captures if it can, or else plays a legal move that depends on the position only; claims every draw.
fn greedy(_seat: Seat, state: &Value) -> Option<String> {
    let fen = state["fen"].as_str().unwrap();
    let moves: Vec<&str> = state["legal_moves"].as_array().unwrap().iter().map(|uci| uci.as_str().unwrap()).collect();
    let theirs = |char: char| char.is_ascii_lowercase() == (state["turn"] == true) && char.is_ascii_alphabetic();
    let squares: Vec<char> = (fen.split(' ').next().unwrap().split('/'))
        .flat_map(|row| {
            row.chars().flat_map(|char| match char.to_digit(10) {
                Some(empty) => vec![' '; empty as usize],
                None => vec![char],
            })
        })
        .collect();
    let taken = |uci: &str| {
        let (file, rank) = (uci.as_bytes()[2] - b'a', b'8' - uci.as_bytes()[3]);
        squares[rank as usize * 8 + file as usize]
    };
    let mix = fen.bytes().fold(7, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let uci = moves.iter().find(|uci| theirs(taken(uci))).unwrap_or(&moves[(mix >> 7) % moves.len()]);
    Some(json!([{"action": "claim_draw"}, {"action": "move", "move": uci}]).to_string())
}

#[test]
fn seeded_games_match_their_golden_transcripts() {
    let mut game = golden::start(crate::game("chess").unwrap(), 2, 2, json!({"n_epochs": 80}));
    expect_file!["../../../golden/chess-greedy.txt"].assert_eq(&golden::transcript(&mut *game, 2, 1000, greedy));
    let mut game = start(json!({"n_epochs": 80}));
    let policy = |_: Seat, state: &Value| {
        let uci = match &state["last_move"] {
            Value::Null => "f2f3",
            last if last == "f2f3" => "e7e5",
            last if last == "e7e5" => "g2g4",
            _ => "d8h8",
        };
        Some(json!([{"action": "move", "move": uci}]).to_string())
    };
    expect_file!["../../../golden/chess-illegal.txt"].assert_eq(&golden::transcript(&mut *game, 2, 1000, policy));
}

#[test]
fn equal_seeds_give_equal_bytes_and_games_come_to_an_end() {
    let chess = crate::game("chess").unwrap();
    for fen in [ChessConfig::default().fen.as_str(), KIWIPETE, "4k3/pppp4/8/8/8/8/PPPP4/4K3 w - - 0 1"] {
        let play = || {
            let mut game = golden::start(chess, 2, 3, json!({ "fen": fen }));
            golden::transcript(&mut *game, 2, 20_000, greedy)
        };
        let actual = play();
        assert_eq!(actual, play());
        let end = actual.lines().last().unwrap();
        assert!(end.starts_with("end Some(") && !end.contains("TAINTED"), "{end}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_listed_move_is_taken_and_every_position_is_read_again(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..120),
    ) {
        let mut game = start(json!({}));
        let mut again = start(json!({}));
        for choice in choices {
            if game.termination().is_some() {
                break;
            }
            let state = state(&*game, 0);
            let fen = state["fen"].as_str().unwrap();
            prop_assert_eq!(Position::from_fen(fen).unwrap().fen(), fen);
            prop_assert!(fen.starts_with(state["epd"].as_str().unwrap()));
            let uci = choice.get(state["legal_moves"].as_array().unwrap());
            let mut events = Events::default();
            let taken = reply(&mut *game, Some(&json!([{"action": "move", "move": uci}]).to_string()), &mut events);
            prop_assert!(events.forfeits().is_empty() && events.rejections().is_empty());
            // Replaying the accepted actions gives the same game.
            let lists: Vec<Option<Value>> = serde_json::from_str(&taken).unwrap();
            let lists: Vec<Option<String>> = lists.iter().map(|list| list.as_ref().map(Value::to_string)).collect();
            let lists: Vec<Option<&str>> = lists.iter().map(Option::as_deref).collect();
            again.play(&lists, &mut Vec::new(), &mut events);
            prop_assert_eq!(golden::state(&*game, Seat(0)), golden::state(&*again, Seat(0)));
        }
    }

    #[test]
    fn any_other_text_loses(text in prop_oneof![any::<String>(), "[a-h][1-8][a-h][1-8][qrbnk]?"]) {
        let mut game = start(json!({"fen": KIWIPETE}));
        let is_listed = state(&*game, 0)["legal_moves"].as_array().unwrap().iter().any(|uci| *uci == text);
        let mut events = Events::default();
        reply(&mut *game, Some(&json!([{"action": "move", "move": text}]).to_string()), &mut events);
        prop_assert_eq!(events.forfeits().len(), usize::from(!is_listed));
        prop_assert_eq!(game.termination().is_some(), !is_listed);
    }

    #[test]
    fn any_reply_loses_at_most_the_game(text in any::<String>(), number in any::<f64>(), turn: bool) {
        let action = json!({"action": text, "move": number});
        for value in [json!(text), json!(number), json!([text]), action, json!({ text.clone(): number })] {
            for sent in [value.to_string(), json!([value]).to_string(), text.clone()] {
                let mut game = start(json!({}));
                if turn {
                    play(&mut *game, "e2e4");
                }
                let mut events = Events::default();
                reply(&mut *game, Some(&sent), &mut events);
                prop_assert_eq!(events.forfeits().len(), 1);
                prop_assert_eq!(events.forfeits()[0].seat, Seat(usize::from(turn)));
                prop_assert!(events.forfeits()[0].detail.len() < 400);
            }
        }
    }

    #[test]
    fn no_text_makes_the_fen_parser_panic(
        text in prop_oneof![
            any::<String>(),
            "[1-8pnbrqkPNBRQK/]{0,40} [wb] [KQkq-]{1,4} (-|[a-h][1-8]) [0-9]{1,3} [0-9]{1,3}",
            "[pnrq1-8]{0,3}k[1-3]/8/([pPnNrR]{1,2}[1-8]|8)/8/3pP3/8/8/[1-4]K[1-4]R? [wb] (-|K|Q|kq) (-|[a-h][36]) 0 1",
        ],
    ) {
        if let Ok(position) = Position::from_fen(&text) {
            prop_assert_eq!(Position::from_fen(&position.fen()).unwrap().fen(), position.fen());
        }
    }
}

#[test]
fn players_may_resign_and_agree_on_a_draw_if_the_game_has_agreements() {
    let step = |game: &mut dyn AnyGame, moves: &[&str]| {
        let actions: Vec<Value> = moves.iter().map(|uci| json!({"action": "move", "move": uci})).collect();
        let mut events = Events::default();
        reply(game, Some(&json!(actions).to_string()), &mut events);
        (game.termination(), events.forfeits().len(), events.rejections().len())
    };
    let mut game = start(json!({"agreements": true}));
    assert_eq!(game.config()["agreements"], true);
    assert_eq!(step(&mut *game, &["e2e4"]), (None, 0, 0));
    assert_eq!(step(&mut *game, &["resign"]), (Some("RESIGNATION"), 0, 0));
    assert_eq!(game.scores(), [1.0, 0.0]);

    // An offer stands until the offering player's next move, and only the opponent can accept it.
    let mut game = start(json!({"agreements": true}));
    assert_eq!(step(&mut *game, &["draw", "e2e4"]), (None, 0, 0));
    assert_eq!(step(&mut *game, &["e7e5"]), (None, 0, 0));
    assert_eq!(step(&mut *game, &["g1f3"]), (None, 0, 0));
    assert_eq!(step(&mut *game, &["b8c6", "draw"]), (None, 0, 0));
    assert_eq!(step(&mut *game, &["draw", "f1b5"]), (Some("AGREEMENT"), 0, 0));
    assert_eq!(game.scores(), [0.5, 0.5]);

    // An offer is no move.
    let mut game = start(json!({"agreements": true}));
    assert_eq!(step(&mut *game, &["draw"]), (Some("TAINTED"), 1, 0));
    // Other games don't know these words.
    for word in ["resign", "draw"] {
        let mut game = start(json!({}));
        assert!(game.config().get("agreements").is_none());
        assert_eq!(step(&mut *game, &[word]), (Some("TAINTED"), 1, 1));
    }
}
