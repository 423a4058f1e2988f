//! Built-in agents on seats: house bots and random ones.

use arena_testkit::data_folder;

use super::{play, psi, result};
use crate::program::{Running, run};

/// Creates a session and returns its invites.
fn create(server: &Running, challenge: &str) -> [String; 2] {
    let created = run(&["challenges", "create", challenge, "--url", &server.url]).json();
    [0, 1].map(|seat| created["invites"][seat].as_str().unwrap().to_owned())
}

#[test]
fn built_in_agents_play_to_the_end() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let games =
        [("psi", "house", "house:psi:easy"), ("chess", "random", "house:chess"), ("millionaire", "random", "random")];
    for (challenge, first, second) in games {
        let [one, two] = create(&server, challenge);
        let first_seat = play(&server.url, &[&one, "--agent", first, "--json"]);
        let second_seat = play(&server.url, &[&two, "--agent", second, "--json"]);
        for run in [first_seat.ends(), second_seat.ends()] {
            let result = result(&run);
            assert_eq!(result["abandoned"], false, "{challenge}: {result}");
            assert_eq!(result["scores"].as_array().unwrap().len(), 2, "{challenge}: {result}");
            let own = result["seat"].as_u64().unwrap() as usize;
            match challenge {
                // The easy bot sends its numbers, and the other one guesses the common numbers.
                "psi" if result["you"] == one => assert_eq!(result["scores"][own]["utility"], 1, "{result}"),
                "chess" => {
                    let sum = (0..2).filter_map(|seat| result["scores"][seat]["utility"].as_f64()).sum::<f64>();
                    assert!(sum.abs() < 1e-9, "{result}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_built_in_agent_takes_no_seat_of_another_game() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let [one, two] = psi(&server.url);
    let refused = play(&server.url, &[&one, "--agent", "house:chess"]).ends();
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (8, "error: house:chess plays chess, but the game is psi\n"),
        "{refused:#?}"
    );
    // The invite is still unused.
    let first = play(&server.url, &[&one, "--agent", "random", "--json"]);
    let second = play(&server.url, &[&two, "--agent", "random", "--json"]);
    result(&first.ends());
    result(&second.ends());
}

#[test]
fn a_built_in_agent_returns_to_a_seat() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let [one, two] = psi(&server.url);
    run(&["challenges", "join", &one, "--url", &server.url]).json();
    let other = play(&server.url, &[&two, "--agent", "house", "--json"]);
    let back = play(&server.url, &["--from", &one, "--agent", "house", "--json"]);
    let result = [back.ends(), other.ends()].map(|run| result(&run));
    assert_eq!((&result[0]["you"], &result[1]["you"]), (&one.into(), &two.into()));
}
