//! `open-book` sends its whole set. If the opponent also sends its whole set, `open-book` guesses the shared numbers.
//! It ignores digests.

use super::{Action, ChatLine, PsiBot, View};

pub const BOT: PsiBot =
    PsiBot { name: "open-book", motto: "reveals its whole set and expects the opponent to do so too", next };

fn next(view: &View) -> Action {
    if !view.said {
        return Action::Say(ChatLine::Plain(view.set.clone()));
    }
    match &view.heard {
        None => Action::Listen,
        Some(line @ ChatLine::Plain(_)) => Action::Guess(view.or_a_shot_in_the_dark(view.shared(line), 1)),
        Some(ChatLine::Digests { .. } | ChatLine::Pass) => {
            Action::Guess(view.or_a_shot_in_the_dark(Default::default(), 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psi::story;
    use expect_test::expect;

    #[test]
    fn open_book_guesses_what_it_was_told_in_the_open_and_no_more() {
        expect![[r#"
            Say(Plain({101, 205, 880}))
            Listen
            PLAIN -> Guess({205, 880})
            DIGESTS -> Guess({101})
            PASS -> Guess({101})
        "#]]
        .assert_eq(&story(&BOT, [205, 333, 880].into()));
    }
}
