//! Tests of snake: one position for each rule, then properties that hold in every game.

use arena_model::{AnyGame, Seed};
use expect_test::{expect, expect_file};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::games::golden;

/// Returns a grid with these snakes, head first, and foods, before its first epoch.
fn scene(width: i16, height: i16, snakes: &[&[(i16, i16)]], foods: &[(i16, i16)]) -> Snake {
    let agents = (0..snakes.len()).map(|number| format!("a{number}").parse().unwrap()).collect();
    let cell = |(x, y): (i16, i16)| Cell { x, y };
    let config = SnakeConfig { food_sources_to_spawn: 1, ..SnakeConfig::default() };
    let mut game = Snake::new(config, Setup { seed: Seed([1; 32]), agents }).unwrap();
    game.board = SnakeBoard::new(width, height);
    for (snake, cells) in game.snakes.iter_mut().zip(snakes) {
        snake.cells = cells.iter().copied().map(cell).collect();
        snake.direction = board::entered(snake.cells[1], snake.cells[0]);
        snake.eaten = snake.cells.len() as u64 - 2;
    }
    game.foods = foods.iter().copied().map(cell).collect();
    game.redraw();
    game
}

/// Returns the actions of one epoch: a letter for each seat, `.` for none.
fn actions(letters: &str) -> Actions<SnakeAction> {
    let action = |letter: char| {
        let (_, direction) = Direction::WORDS.into_iter().find(|(word, _)| word.starts_with(letter))?;
        Some(vec![SnakeAction { action: MoveWord::Move, direction }])
    };
    Actions::new(letters.chars().map(action).collect())
}

/// Returns the grid between bars, then each snake's score and cells.
fn show(game: &Snake) -> String {
    let rows: Vec<String> = serde_json::from_slice(game.board.text()).unwrap();
    let mut actual: String = rows.iter().map(|row| format!("|{row}|\n")).collect();
    for snake in &game.snakes {
        let mut cells = Vec::new();
        write_cells(snake.cells.iter(), &mut cells);
        actual += &format!("{} {}\n", snake.score(), String::from_utf8(cells).unwrap());
    }
    actual
}

/// Plays these epochs and shows the result.
fn after(mut game: Snake, epochs: &[&str]) -> String {
    let mut events = Events::default();
    for letters in epochs {
        game.step(&actions(letters), &mut events);
        assert_holds(&mut game);
    }
    show(&game)
}

/// Asserts the properties that hold in every game after every epoch.
fn assert_holds(game: &mut Snake) {
    let live: Vec<Cell> =
        game.snakes.iter().filter(|snake| snake.is_alive).flat_map(|snake| snake.cells.iter().copied()).collect();
    let mut in_use = [live, game.foods.clone()].concat();
    assert!(in_use.iter().all(|cell| game.board.holds(*cell)), "live snakes and foods are in the grid");
    in_use.sort_unstable();
    let taken = in_use.len();
    in_use.dedup();
    assert_eq!(in_use.len(), taken, "no two entities share a cell");
    let cells = game.board.width() as usize * game.board.height() as usize;
    let wanted = game.config.min_food_sources as usize;
    assert!(game.foods.len() >= wanted || in_use.len() == cells, "there is food while a cell is free");
    for snake in &game.snakes {
        assert!(snake.cells.len() as u64 + u64::from(snake.is_growing) == 2 + snake.eaten, "each food is one cell");
        let pairs = snake.cells.iter().zip(snake.cells.iter().skip(1));
        assert!(pairs.clone().all(|(one, next)| (one.x - next.x).abs() + (one.y - next.y).abs() == 1));
    }
    let kept = game.board.clone();
    game.redraw();
    assert_eq!(kept, game.board, "the updated board equals the redrawn board");
}

/// Plays each position of `positions.txt`. The lines below `---` are the grid, and each snake's score and cells.
#[test]
fn positions_have_their_outcomes() {
    let file = expect_file!["positions.txt"];
    let mut played = Vec::new();
    for block in file.data().split("\n\n") {
        let (given, _) = block.split_once("---\n").unwrap();
        let lines = |key: &str| -> Vec<Vec<(i16, i16)>> {
            let cell = |cell: &str| cell.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()));
            let lines = given.lines().filter_map(|line| line.strip_prefix(key));
            lines.map(|line| line.split_whitespace().map(|text| cell(text).unwrap()).collect()).collect()
        };
        let (size, snakes, foods) = (lines("grid ")[0][0], lines("snake "), lines("food ").concat());
        let snakes: Vec<&[(i16, i16)]> = snakes.iter().map(Vec::as_slice).collect();
        let epochs: Vec<&str> =
            given.lines().find_map(|line| line.strip_prefix("moves ")).unwrap().split(' ').collect();
        played.push(format!("{given}---\n{}", after(scene(size.0, size.1, &snakes, &foods), &epochs)));
    }
    file.assert_eq(&played.join("\n"));
}

#[test]
fn the_cell_that_a_tail_leaves_is_safe_unless_the_tail_stays_to_grow() {
    let board = after(scene(5, 3, &[&[(1, 2), (0, 2)], &[(2, 1), (2, 2)]], &[(4, 2)]), &["RU"]);
    expect![[r#"
            |  C  |
            |  S  |
            | SC @|
            0 [[2,2],[1,2]]
            0 [[2,0],[2,1]]
        "#]]
    .assert_eq(&board);
    let mut game = scene(5, 3, &[&[(1, 2), (0, 2)], &[(2, 1), (2, 2)]], &[(4, 2)]);
    (game.snakes[1].is_growing, game.snakes[1].eaten) = (true, 1);
    let board = after(game, &["RU"]);
    expect![[r#"
            |  C  |
            |  ^  |
            |  S @|
            -1 [[2,2],[1,2]]
            1 [[2,0],[2,1],[2,2]]
        "#]]
    .assert_eq(&board);
}

// Some agents read the first food without checking that there is one.
#[test]
fn food_comes_back_on_free_cells_only_until_none_is_left() {
    let snakes: [&[(i16, i16)]; 2] = [&[(1, 0), (0, 0)], &[(1, 2), (0, 2)]];
    let mut game = scene(3, 3, &snakes, &[(2, 0)]);
    game.config.food_sources_to_spawn = 9;
    let mut events = Events::default();
    game.step(&actions("RR"), &mut events);
    assert_holds(&mut game);
    // Two snakes have four of nine cells, and food has the rest.
    assert_eq!(game.foods.len(), 5);
}

#[test]
fn a_full_grid_is_played_on_and_gets_its_food_when_cells_are_free_again() {
    let snakes: [&[(i16, i16)]; 2] = [&[(0, 0), (0, 1), (1, 1), (1, 0)], &[(2, 0), (2, 1), (3, 1), (3, 0)]];
    let mut game = scene(4, 2, &snakes, &[]);
    let mut events = Events::default();
    game.step(&actions("RR"), &mut events);
    expect![[r#"
        |^C^C|
        |<S<S|
        2 [[1,0],[0,0],[0,1],[1,1]]
        2 [[3,0],[2,0],[2,1],[3,1]]
    "#]]
    .assert_eq(&show(&game));
    assert!(game.foods.is_empty());
    game.disqualify(Seat(0));
    assert_eq!(game.foods.len(), 1);
    assert_holds(&mut game);
}

#[test]
fn new_food_waits_until_fewer_than_the_least_are_left() {
    let snakes: [&[(i16, i16)]; 2] = [&[(1, 0), (0, 0)], &[(1, 2), (0, 2)]];
    let mut game = scene(8, 3, &snakes, &[(2, 0), (3, 0), (4, 0)]);
    (game.config.min_food_sources, game.config.food_sources_to_spawn) = (2, 4);
    let mut events = Events::default();
    let counts = [(); 2].map(|()| {
        game.step(&actions("RR"), &mut events);
        game.foods.len()
    });
    assert_eq!(counts, [2, 4]);
}

#[test]
fn a_disqualified_snake_dies_at_once_and_frees_its_cells() {
    let snakes: [&[(i16, i16)]; 3] = [&[(1, 0), (0, 0)], &[(1, 1), (0, 1)], &[(1, 2), (0, 2)]];
    let mut game = scene(4, 3, &snakes, &[(3, 0)]);
    game.disqualify(Seat(1));
    assert_eq!(game.termination(), None);
    assert!(!game.is_asked(Seat(1)) && game.is_asked(Seat(0)));
    let board = after(game, &["D.R"]);
    expect![[r#"
            | S @|
            | C  |
            | SC |
            0 [[1,1],[1,0]]
            -1 [[1,1],[0,1]]
            0 [[2,2],[1,2]]
        "#]]
    .assert_eq(&board);
}

/// Checks the end of a game with three snakes that can't reach each other at once. Each letter is a snake's fate: `.`
/// lives, `d` dies in the wall, `q` is disqualified.
#[track_caller]
fn check_end(fates: &str, expected: Option<&str>) {
    let all: [&[(i16, i16)]; 3] = [&[(1, 0), (0, 0)], &[(1, 3), (0, 3)], &[(1, 6), (0, 6)]];
    let mut game = scene(9, 9, &all[..fates.len()], &[(8, 8)]);
    let mut events = Events::default();
    for (seat, fate) in fates.chars().enumerate() {
        match fate {
            'd' => {
                game.snakes[seat].cells = VecDeque::from([Cell { x: 8, y: seat as i16 }, Cell { x: 7, y: seat as i16 }])
            }
            'q' => game.disqualify(Seat(seat)),
            _ => (),
        }
    }
    game.redraw();
    game.step(&actions(&fates.replace('d', "R").replace('q', ".")), &mut events);
    assert_eq!(game.termination(), expected, "{fates}");
}

#[test]
fn the_match_ends_when_nothing_can_change_the_ranking_any_more() {
    let ended = Some("GAME_ENDED");
    for (fates, expected) in [
        ("..", None),
        // Neither snake has eaten: the survivor wins if it stays alive and draws if it dies, so the game continues.
        (".d", None),
        ("dd", ended),
        (".q", ended),
        ("dq", ended),
        ("qq", ended),
        ("...", None),
        (".qd", None),
        (".dd", None),
        (".q.", None),
        (".qq", ended),
        ("ddq", ended),
        ("qqq", ended),
    ] {
        check_end(fates, expected);
    }
}

/// Returns true if the game ends with three snakes far from each other and from all food, given each snake's foods and
/// whether it is alive. `left` epochs remain after the played one, in which all live snakes go straight on.
fn has_ended_with(snakes: &[(u64, bool)], left: u64) -> bool {
    let all: [&[(i16, i16)]; 3] = [&[(1, 0), (0, 0)], &[(1, 3), (0, 3)], &[(1, 6), (0, 6)]];
    let mut game = scene(9, 9, &all[..snakes.len()], &[(8, 8)]);
    game.config.n_epochs = left + 1;
    for (body, (eaten, is_alive)) in game.snakes.iter_mut().zip(snakes) {
        (body.eaten, body.is_alive) = (*eaten, *is_alive);
    }
    game.redraw();
    game.step(&actions(&".".repeat(snakes.len())), &mut Events::default());
    game.termination().is_some()
}

#[test]
fn the_food_of_dead_snakes_counts_for_the_end() {
    let (live, dead) = (true, false);
    // The survivor has eaten more than the others: it wins in any case.
    assert!(has_ended_with(&[(5, live), (4, dead)], 100));
    // The survivor has eaten as much: it wins if it stays alive, and draws if it dies.
    assert!(!has_ended_with(&[(4, live), (4, dead)], 100));
    // The survivor has eaten less: it may still catch up and win.
    assert!(!has_ended_with(&[(0, live), (4, dead)], 3));
    assert!(has_ended_with(&[(0, live), (4, dead)], 2));
    // The first place is decided, the second isn't.
    assert!(!has_ended_with(&[(5, live), (4, dead), (5, dead)], 100));
    assert!(has_ended_with(&[(5, live), (4, dead), (3, dead)], 100));
    // Two snakes live: the first has won once the other can't catch up, even if the first dies in the next epoch.
    assert!(!has_ended_with(&[(9, live), (3, live)], 5));
    assert!(has_ended_with(&[(9, live), (3, live)], 4));
    assert!(has_ended_with(&[(0, dead), (0, dead)], 100));
}

#[test]
fn a_dead_snake_keeps_its_food_less_one_point() {
    let fed: &[(i16, i16)] = &[(7, 3), (6, 3), (5, 3), (4, 3), (3, 3), (2, 3), (1, 3)];
    let mut game = scene(9, 9, &[fed, &[(1, 0), (0, 0)]], &[(8, 8)]);
    for _ in 0..2 {
        game.step(&actions("R."), &mut Events::default());
    }
    assert_eq!((game.termination(), game.scores()), (None, vec![4.0, 0.0]));
    let mut state = vec![b'{'];
    game.write_state(Seat(1), &mut state);
    state.push(b'}');
    let state: Value = serde_json::from_slice(&state).unwrap();
    assert_eq!(state["score"], json!({"a0": 4, "a1": 0}));
}

#[test]
fn a_snake_that_died_and_whose_agent_is_disqualified_later_settles_the_ranking() {
    let snakes: [&[(i16, i16)]; 2] = [&[(1, 0), (0, 0)], &[(8, 3), (7, 3)]];
    let mut game = scene(9, 9, &snakes, &[(8, 8)]);
    game.step(&actions("RR"), &mut Events::default());
    assert_eq!((game.termination(), game.scores()), (None, vec![0.0, -1.0]));
    game.disqualify(Seat(1));
    assert_eq!(game.termination(), Some("GAME_ENDED"));
    assert!(!game.is_asked(Seat(0)));
}

#[test]
fn the_last_epoch_ends_the_match() {
    let mut game = golden::start(crate::game("snake").unwrap(), 2, 1, json!({"n_epochs": 2, "grid_width": 64}));
    let (mut taken, mut events) = (Vec::new(), Events::default());
    for ended in [false, true] {
        let circle = if ended { r#"[{"action":"move","move":"left"}]"# } else { "[]" };
        game.play(&[Some(circle), Some(circle)], &mut taken, &mut events);
        assert_eq!(game.termination().is_some(), ended);
    }
}

/// Returns the accepted and rejected actions of a reply of seat 0 in the first epoch.
fn reply(reply: &str) -> String {
    let mut game = golden::start(crate::game("snake").unwrap(), 2, 1, json!({}));
    let (mut taken, mut events) = (Vec::new(), Events::default());
    game.play(&[Some(reply), None], &mut taken, &mut events);
    let mut actual = String::from_utf8(taken).unwrap();
    for rejected in events.rejections() {
        actual += &format!("\n{:?} {}", rejected.index, rejected.reason);
    }
    actual
}

#[test]
fn the_first_valid_move_counts_in_any_case_and_all_others_are_rejected() {
    let accepted = reply(
        r#"[{"action":"move","move":7},{"action":"move","move":"sideways"},{"action":"jump","move":"UP"},
            {"action":"move"},{"move":"UP"},{"action":"move","move":"uP","why":[]},{"action":"move","move":"DOWN"},"UP"]"#,
    );
    expect![[r#"
            [[{"action":"move","move":"UP"}],null]
            Some(0) invalid type: integer `7`, expected UP, RIGHT, DOWN or LEFT
            Some(1) invalid value: string "sideways", expected UP, RIGHT, DOWN or LEFT
            Some(2) unknown variant `jump`, expected `move`
            Some(3) missing field `move`
            Some(4) missing field `action`
            Some(6) a snake takes one step in an epoch, and the first valid move counts
            Some(7) an action is an object"#]]
    .assert_eq(&accepted);
    assert_eq!(reply("[]"), "[[],null]");
}

#[test]
fn options_that_cannot_be_played_are_refused() {
    let refused = |agents: usize, options: Value| {
        let agents = (0..agents).map(|number| format!("a{number}").parse().unwrap()).collect();
        let game = crate::game("snake").unwrap();
        let started = game.start(options.as_object().unwrap(), Setup { seed: Seed([1; 32]), agents });
        started.err().map(|error| error.to_string()).unwrap_or("played".to_owned())
    };
    let actual: Vec<String> = [
        (2, json!({})),
        (8, json!({"grid_width": 5, "grid_height": 7})),
        (8, json!({"grid_width": 5, "grid_height": 6})),
        (2, json!({"grid_width": 1})),
        (2, json!({"grid_height": 65})),
        (2, json!({"grid_height": -1})),
        (2, json!({"grid_height": "10"})),
        (2, json!({"food_sources_to_spawn": 0})),
        (2, json!({"food_sources_to_spawn": 3, "min_food_sources": 4})),
        (2, json!({"min_food_sources": 0})),
        (2, json!({"n_epochs": 0})),
        (2, json!({"speed": 1})),
        (1, json!({})),
    ]
    .into_iter()
    .map(|(agents, options)| format!("{agents} {options}: {}\n", refused(agents, options.clone())))
    .collect();
    expect_file!["tests/options_that_cannot_be_played_are_refused.txt"].assert_eq(&actual.concat());
}

#[test]
fn games_start_with_snakes_apart_in_the_grid_and_food_on_free_cells() {
    for seed in 0..200 {
        let agents = (0..2 + seed as usize % 7).map(|number| format!("a{number}").parse().unwrap()).collect();
        let setup = Setup { seed: Seed::from_number(seed), agents };
        let mut game = Snake::new(SnakeConfig::default(), setup).unwrap();
        assert_holds(&mut game);
        assert_eq!(game.foods.len(), 5);
    }
}

/// A simple agent: a step to the nearest food into a free cell, or no action without food.
fn hungry(seat: Seat, state: &Value) -> Option<String> {
    let me = &state["snakes"][format!("a{}", seat.0)];
    let at = |cell: &Value| (cell[0].as_i64().unwrap(), cell[1].as_i64().unwrap());
    let (x, y) = at(&me["head_position"]);
    let away = |(x, y): (i64, i64)| {
        state["foods"].as_array().unwrap().iter().map(at).map(|(fx, fy)| (fx - x).abs() + (fy - y).abs()).min()
    };
    let rows: Vec<&[u8]> =
        state["grid"]["grid_string"].as_array().unwrap().iter().map(|row| row.as_str().unwrap().as_bytes()).collect();
    let steps = [("UP", x, y - 1), ("right", x + 1, y), ("Down", x, y + 1), ("LEFT", x - 1, y)];
    let is_free = |x: i64, y: i64| {
        let mark =
            usize::try_from(y).ok().and_then(|y| rows.get(y)).zip(usize::try_from(x).ok()).map(|(row, x)| row.get(x));
        matches!(mark.flatten(), Some(b' ' | b'@'))
    };
    let safe = steps.iter().filter(|(_, x, y)| is_free(*x, *y));
    let (word, ..) = safe.min_by_key(|(_, x, y)| away((*x, *y)))?;
    Some(format!(r#"[{{"action":"move","move":"{word}"}}]"#))
}

#[test]
fn seeded_games_match_their_golden_transcripts() {
    let mut duel = golden::start(crate::game("snake").unwrap(), 2, 1, json!({"n_epochs": 60}));
    expect_file!["../../../golden/snake-duel.txt"].assert_eq(&golden::transcript(&mut *duel, 2, 1000, hungry));
    // The third agent is silent, and the fourth one sends an invalid move.
    let options =
        json!({"n_epochs": 40, "grid_width": 12, "grid_height": 8, "food_sources_to_spawn": 3, "min_food_sources": 2});
    let mut crowd = golden::start(crate::game("snake").unwrap(), 4, 2, options);
    let policy = |seat: Seat, state: &Value| match seat.0 {
        2 => None,
        3 => Some(
            r#"[{"action":"move","move":null},{"action":"move","move":"Down"},{"action":"move","move":"up"}]"#
                .to_owned(),
        ),
        _ => hungry(seat, state),
    };
    expect_file!["../../../golden/snake-crowd.txt"].assert_eq(&golden::transcript(&mut *crowd, 4, 1000, policy));
}

#[test]
fn equal_seeds_give_equal_bytes_and_games_come_to_an_end() {
    let play = |seed| {
        let mut game = golden::start(crate::game("snake").unwrap(), 3, seed, json!({"n_epochs": 200}));
        golden::transcript(&mut *game, 3, 1000, hungry)
    };
    let actual = [1, 2, 3].map(play);
    assert_eq!(actual, [1, 2, 3].map(play));
    assert!(actual[0] != actual[1] && actual[1] != actual[2]);
    assert!(actual.iter().all(|actual| actual.contains("end Some(\"GAME_ENDED\")")));
}

#[test]
fn ids_of_any_letters_make_a_state_that_is_json() {
    let agents = ["a\"b\\", "é☃"].map(|id| id.parse().unwrap()).to_vec();
    let game = Snake::new(SnakeConfig::default(), Setup { seed: Seed([1; 32]), agents }).unwrap();
    let mut state = b"{".to_vec();
    game.write_state(Seat(0), &mut state);
    state.push(b'}');
    let state: Value = serde_json::from_slice(&state).unwrap();
    assert_eq!(state["score"], json!({"a\"b\\": 0, "é☃": 0}));
}

/// Any JSON, mixed with the words of actions.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("action".to_owned()),
        Just("move".to_owned()),
        Just("UP".to_owned()),
        Just("left".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        let action = inner.clone().prop_map(|value| json!({"action": "move", "move": value}));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            action,
        ]
    })
}

/// Returns each snake's cells, and true if the snake is alive, after an epoch with these moves. This is an
/// independent implementation of rules 1 to 3.
fn fates(game: &Snake, letters: &str) -> Vec<(Vec<Cell>, bool)> {
    let moved: Vec<Vec<Cell>> = (game.snakes.iter().zip(letters.chars()))
        .map(|(snake, letter)| {
            let said = Direction::WORDS.iter().find(|(word, _)| word.starts_with(letter));
            let head = snake.head().step(said.map_or(snake.direction, |(_, direction)| *direction));
            let kept = snake.cells.len() - usize::from(!snake.is_growing);
            std::iter::once(head).chain(snake.cells.iter().copied().take(kept)).collect()
        })
        .collect();
    let is_on_board = |seat: usize| game.snakes[seat].is_alive && game.board.holds(moved[seat][0]);
    let dies = |seat: usize| {
        let head = moved[seat][0];
        let others = (0..moved.len()).filter(|other| *other != seat && is_on_board(*other));
        !is_on_board(seat)
            || moved[seat][1..].contains(&head)
            || others.into_iter().any(|other| moved[other].contains(&head))
    };
    (0..moved.len())
        .map(|seat| match game.snakes[seat].is_alive {
            true => (moved[seat].clone(), !dies(seat)),
            false => (game.snakes[seat].cells.iter().copied().collect(), false),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_moves_on_any_grid_keep_the_invariants(
        seed: u64,
        (width, height) in (2u64..12, 3u64..9),
        foods in 1u64..6,
        epochs in prop::collection::vec("[URDL.]{4}", 1..60),
    ) {
        let config = SnakeConfig {
            grid_width: width,
            grid_height: height,
            food_sources_to_spawn: foods,
            min_food_sources: foods.min(2),
            n_epochs: 1000,
        };
        let seats = start::capacity(width as i16, height as i16).min(4);
        prop_assume!(seats >= 2);
        let agents = (0..seats).map(|number| format!("a{number}").parse().unwrap()).collect();
        let mut game = Snake::new(config, Setup { seed: Seed::from_number(seed), agents }).unwrap();
        assert_holds(&mut game);
        for letters in epochs {
            let fates = fates(&game, &letters);
            if game.termination().is_some() {
                break;
            }
            let foods = game.foods.clone();
            let before: Vec<(bool, i64)> = game.snakes.iter().map(|snake| (snake.is_alive, snake.score())).collect();
            game.step(&actions(&letters), &mut Events::default());
            assert_holds(&mut game);
            for ((snake, before), fate) in game.snakes.iter().zip(before).zip(fates) {
                prop_assert_eq!((snake.cells.iter().copied().collect::<Vec<_>>(), snake.is_alive), fate);
                let (was_alive, before) = before;
                let points = match (was_alive, snake.is_alive) {
                    (true, true) => i64::from(foods.contains(&snake.head())),
                    (true, false) => -1,
                    (false, _) => 0,
                };
                prop_assert_eq!(snake.score(), before + points);
            }
        }
    }

    #[test]
    fn any_action_moves_the_agents_own_snake_only(lists in prop::collection::vec(any_json(), 1..5), seed: u64) {
        let options = json!({"grid_width": 40, "grid_height": 40});
        let start = || golden::start(crate::game("snake").unwrap(), 2, seed, options.clone());
        let (mut game, mut again) = (start(), start());
        let body = |game: &dyn AnyGame, id: &str| {
            let state: Value = serde_json::from_str(&golden::state(game, Seat(0))).unwrap();
            state["snakes"][id].clone()
        };
        for list in lists {
            let before = body(&*game, "a0");
            let wrapped = format!("[{list}]");
            for text in [list.to_string(), wrapped] {
                let (mut taken, mut events) = (Vec::new(), Events::default());
                game.play(&[None, Some(&text)], &mut taken, &mut events);
                // Replaying the accepted actions gives the same game.
                let taken: Vec<Option<Value>> = serde_json::from_slice(&taken).unwrap();
                let taken: Vec<Option<String>> = taken.iter().map(|list| list.as_ref().map(Value::to_string)).collect();
                let replies: Vec<Option<&str>> = taken.iter().map(Option::as_deref).collect();
                again.play(&replies, &mut Vec::new(), &mut events);
                prop_assert_eq!(golden::state(&*game, Seat(0)), golden::state(&*again, Seat(0)));
            }
            let after = body(&*game, "a0");
            // A snake that took fewer than two steps to the right has died, or the other snake has died and the game
            // has ended.
            if after["alive"] == true && game.termination().is_none() {
                prop_assert_eq!(&after["positions"][1][0], &json!(before["head_position"][0].as_i64().unwrap() + 1));
                prop_assert_eq!(&after["head_position"][1], &before["head_position"][1]);
            }
        }
    }
}
