//! `cautious` reveals nothing, so the opponent can't breach its security. If the opponent sends its numbers in plain
//! text, `cautious` uses them. Otherwise `cautious` guesses some of its own numbers.

use super::convention::Numbers;
use super::{Action, ChatLine, PsiBot, View};

pub const BOT: PsiBot = PsiBot { name: "cautious", motto: "reveals nothing and guesses some of its own numbers", next };

fn next(view: &View) -> Action {
    if !view.said {
        return Action::Say(ChatLine::Pass);
    }
    let shared = match &view.heard {
        None => return Action::Listen,
        Some(line @ ChatLine::Plain(_)) => view.shared(line),
        Some(ChatLine::Digests { .. } | ChatLine::Pass) => Numbers::new(),
    };
    Action::Guess(view.or_a_shot_in_the_dark(shared, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psi::story;
    use expect_test::expect;

    #[test]
    fn cautious_says_nothing_and_guesses_its_own_numbers() {
        expect![[r#"
            Say(Pass)
            Listen
            PLAIN -> Guess({205, 880})
            DIGESTS -> Guess({101, 205})
            PASS -> Guess({101, 205})
        "#]]
        .assert_eq(&story(&BOT, [205, 333, 880].into()));
    }
}
