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
