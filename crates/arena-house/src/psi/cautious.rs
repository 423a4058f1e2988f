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
