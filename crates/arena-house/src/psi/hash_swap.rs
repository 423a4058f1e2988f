//! `hash-swap` exchanges salted digests. It assumes that each side learns only the shared numbers from them. It guesses
//! exactly the shared numbers.

use super::{Action, ChatLine, PsiBot, View};

pub const BOT: PsiBot =
    PsiBot { name: "hash-swap", motto: "exchanges salted digests and guesses the shared numbers", next };

fn next(view: &View) -> Action {
    if !view.said {
        return Action::Say(ChatLine::digests(&view.set, &view.salt));
    }
    match &view.heard {
        None => Action::Listen,
        Some(line) => Action::Guess(view.or_a_shot_in_the_dark(view.shared(line), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psi::story;
    use expect_test::expect;

    #[test]
    fn hash_swap_guesses_exactly_what_is_shared() {
        expect![[r#"
            Say(Digests { salt: "5f0c", digests: {"b12721c8e2649d38", "bdf2f034201da7aa", "dd8972c2919f5469"} })
            Listen
            PLAIN -> Guess({205, 880})
            DIGESTS -> Guess({205, 880})
            PASS -> Guess({101})
        "#]]
        .assert_eq(&story(&BOT, [205, 333, 880].into()));
    }
}
