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
