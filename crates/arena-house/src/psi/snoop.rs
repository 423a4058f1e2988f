//! `snoop` sends the same lines as `hash-swap`, and then hashes every possible number, since a digest of guessable data
//! hides nothing. Its guess is the opponent's whole set, which contains the shared numbers and breaches the opponent's
//! security.

use super::convention::{Numbers, RANGE, digest};
use super::{Action, ChatLine, PsiBot, View};

pub const BOT: PsiBot =
    PsiBot { name: "snoop", motto: "exchanges digests too, then cracks the opponent's by brute force", next };

fn next(view: &View) -> Action {
    if !view.said {
        return Action::Say(ChatLine::digests(&view.set, &view.salt));
    }
    let theirs = match &view.heard {
        None => return Action::Listen,
        Some(ChatLine::Plain(theirs)) => theirs.clone(),
        Some(ChatLine::Digests { salt, digests }) => {
            RANGE.filter(|number| digests.contains(&digest(salt, *number))).collect()
        }
        Some(ChatLine::Pass) => Numbers::new(),
    };
    Action::Guess(view.or_a_shot_in_the_dark(theirs, 1))
}
