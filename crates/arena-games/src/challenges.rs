//! The built-in challenges, one file each. A new challenge is a file and two lines here.

mod dining_cryptographers;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod game;
mod millionaire;
mod numbers;
mod psi;
mod ultimatum;

use arena_model::Seat;

use crate::Playable;

/// All challenges, in the order in which lists show them.
pub static CHALLENGES: &[Playable] =
    &[psi::PLAYABLE, ultimatum::PLAYABLE, millionaire::PLAYABLE, dining_cryptographers::PLAYABLE];

/// The version of the rules of all challenges here. Version 2 sends private data to all players at the start. Version 1
/// sent them to each player at its join, which changes nothing in a match.
const RULES_VERSION: u32 = 2;

/// The oldest version of the rules, which sessions and records of earlier programs have.
const OLDEST_RULES: u32 = 1;

/// Returns the seats without a guess, for challenges in which each player guesses once.
fn without_guess<G>(guesses: &[Option<G>]) -> Vec<Seat> {
    guesses.iter().enumerate().filter(|(_, guess)| guess.is_none()).map(|(seat, _)| Seat(seat)).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use game::Game;
    use serde_json::Map;

    use super::*;

    /// The part of an invite before the number of its player.
    const INVITE: &str = "inv_00000000-0000-7000-8000-00000000000";

    /// Plays each game of `games.txt`. The lines below `---` are the messages and the result. `inv_1` means the invite
    /// of player 1.
    #[test]
    fn games_have_their_messages_and_results() {
        let file = expect_file!["challenges/games.txt"];
        let mut played = Vec::new();
        for block in file.data().split("\n\n") {
            let (given, _) = block.split_once("---\n").expect("a line between actions and messages");
            let mut game: Option<Game> = None;
            for line in given.lines().filter(|line| !line.starts_with('#')) {
                let mut words = line.splitn(3, ' ');
                let (first, second) = (words.next().expect("a word"), words.next().expect("two words"));
                let rest = words.next().unwrap_or_default();
                game = Some(match (first, game) {
                    ("game", _) => Game::new(second, &serde_json::from_str(rest).expect("options"), 1),
                    ("deal", Some(game)) => game.put(second, serde_json::from_str(rest).expect("a value")),
                    (_, game) => {
                        let content = rest.replace("inv_", INVITE).replace("INV_", &INVITE.to_uppercase());
                        let player = first.parse().expect("the number of a player");
                        game.expect("a game").start().act(player, second, &content.replace("\\n", "\n"))
                    }
                });
            }
            let transcript = game.expect("a game").start().transcript().replace(INVITE, "inv_");
            played.push(format!("{given}---\n{transcript}"));
        }
        file.assert_eq(&played.join("\n"));
    }

    #[test]
    fn cards_have_icons_that_pages_of_other_arenas_know() {
        for playable in CHALLENGES {
            let challenge = playable.challenge_type(&Map::new()).expect("the defaults are good");
            let icon = challenge.metadata().icon.as_deref().expect("an icon");
            assert!(["intersection", "crypto"].contains(&icon), "{}: {icon}", playable.id);
        }
    }

    #[test]
    fn private_data_are_sent_when_all_have_joined_and_by_older_rules_at_each_join() {
        for playable in CHALLENGES {
            let challenge = playable.challenge_type(&Map::new()).expect("the defaults are good");
            assert_eq!((challenge.rules_version(), playable.game.rules_version), (2, 2), "{}", playable.id);
            let seats = challenge.metadata().players;
            // Returns the players that have received a message, after each join.
            let told = |version| {
                let game = Game::of(challenge.with_rules(version).expect("the version is known"), 1);
                let joins = (0..seats).scan(game, |game, _| {
                    *game = game.clone().join();
                    Some((1..=seats).map(|player| game.has_mail(player)).collect())
                });
                (joins.collect::<Vec<Vec<bool>>>(), Game::of(challenge.with_rules(version).unwrap(), 1).start())
            };
            let ((old, old_game), (new, new_game)) = (told(1), told(2));
            for joined in 1..=seats {
                let expected =
                    |is_told: bool| (1..=seats).map(|player| is_told && player <= joined).collect::<Vec<_>>();
                assert_eq!(old[joined - 1], expected(true), "{} {joined}", playable.id);
                assert_eq!(new[joined - 1], expected(joined == seats), "{} {joined}", playable.id);
            }
            assert_eq!(old_game.transcript(), new_game.transcript(), "the messages are the same");
            assert!(challenge.with_rules(0).is_none() && challenge.with_rules(3).is_none());
        }
    }
}
