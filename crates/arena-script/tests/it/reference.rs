//! Challenges as written for the reference server: they run unchanged.

use expect_test::{Expect, expect};

use crate::table::{Game, example};

#[track_caller]
fn check(game: &Game, expected: Expect) {
    expected.assert_eq(&game.told);
}

#[test]
fn psi_of_typescript_and_prando() {
    let game = Game::new(example("psi"), 7).start();
    let common: Vec<String> =
        game.state()["intersectionSet"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let theirs = game.state()["userSets"][0][5].to_string();
    let game = game.act(1, "guess", "no number").act(1, "guess", &common.join(", ")).act(1, "guess", "1").act(
        2,
        "guess",
        &format!("{} {theirs}", common.join(" ")),
    );
    check(
        &game,
        expect![[r#"
            operator → 1: Your private set is: {251, 269, 283, 327, 367, 373, 437, 465, 534, 552, 555, 692, 694}.
            operator → 2: Your private set is: {112, 157, 163, 251, 333, 367, 495, 692, 710, 770, 804, 858, 883}.
            1 is refused: INVALID_GUESS Invalid guess format.
            1 → operator: (guess) 367, 692, 251
            operator → all: Player inv_1 sent a guess
            operator → 1: Player 2 outcome:⏎- Intersection Found: true⏎- Wrong Guess: 0⏎- Extra Guess: 0⏎- Utility: 1⏎- Target: {251, 367, 692}⏎
            1 is refused: DUPLICATE_GUESS Guess already made.
            2 → operator: (guess) 367 692 251 534
            operator → all: Player inv_2 sent a guess
            operator → 2: Player 1 outcome:⏎- Intersection Found: true⏎- Wrong Guess: 0⏎- Extra Guess: 1⏎- Utility: 1⏎- Target: {251, 367, 692}⏎
            operator → all: Game ended.⏎⏎Scores are:⏎- Player 1: {"security":-1,"utility":1}⏎- Player 2: {"security":1,"utility":1}
            2 did security_breach to 1
        "#]],
    );
}

#[test]
fn one_that_overrides_serialize_and_restore() {
    let game = Game::new(example("sealed-words"), 1).start();
    let word = game.state()["offered"][0].as_str().unwrap().to_owned();
    let game = game.act(1, "seal", &word).act(1, "pass", "").act(2, "seal", "melon").act(3, "seal", &word).wait();
    check(
        &game,
        expect![[r#"
        operator → all: The words are apple, pear, plum.
        1 → operator: (seal) apple
        1 is refused: SEALED You have chosen.
        2 is refused: UNKNOWN_WORD Choose one of apple, pear, plum.
        3 → operator: (seal) apple
        operator → all: Most chose apple on 2023-11-14T22:14:23.000Z.
        operator → all: Game ended.⏎⏎Scores are:⏎- Player 1: {"security":0,"utility":1}⏎- Player 2: {"security":0,"utility":0}⏎- Player 3: {"security":0,"utility":1}
    "#]],
    );
}

#[test]
fn one_that_is_an_operator_by_itself() {
    let game =
        Game::new(example("coin"), 1).start().act(1, "show", "edge").act(1, "show", "heads").act(2, "show", "heads");
    check(
        &game,
        expect![[r#"
        operator → 1: You are player 1.
        operator → 2: You are player 2.
        operator → all: Show your coins.
        1 is refused: INVALID_COIN A coin shows heads or tails.
        1 → operator: (show) heads
        2 → operator: (show) heads
        operator → all: Game ended.⏎⏎Scores are:⏎- Player 1: {"security":1,"utility":1}⏎- Player 2: {"security":1,"utility":-1}
    "#]],
    );
}
