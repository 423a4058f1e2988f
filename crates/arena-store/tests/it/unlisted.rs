//! Unlisted sessions: the store keeps and exports them as others, and they are in no list, no history and no count.

use std::sync::Arc;

use arena_model::{Session, Status};
use arena_store::{AuditNo, EndingNo, ImportOutcome, ImportedSession, SessionFilter, SessionNo, Store};

use crate::season::{GAME, Game, begin, boards, end, open, play, user};
use crate::storage::{TestStorage, stories};
use crate::{audit, create, session};

stories!(an_unlisted_session_is_kept_and_nothing_lists_or_counts_it, an_imported_session_stays_unlisted);

/// The game of the unlisted sessions. One of the players has no other game.
const UNLISTED: Game = Game { users: ["ada", "zoe"], ..GAME };

async fn begin_unlisted(store: &Store, n: u64) -> (SessionNo, Session) {
    let mut session = session(n);
    let mut facts = (*session.facts).clone();
    facts.rated = None;
    facts.is_unlisted = true;
    session.facts = facts.into();
    (create(store, &session).await, session)
}

async fn listed(store: &Store) -> String {
    let mut text = boards(store).await;
    let totals = store.read_totals().await.expect("totals");
    text += &format!("\n{:?} {}", totals.games, totals.participants);
    for challenge in [None, Some("psi"), Some("")] {
        for status in [None, Some(Status::Open), Some(Status::Active), Some(Status::Ended)] {
            let filter = SessionFilter { challenge: challenge.map(str::to_owned), status };
            for offset in 0..3 {
                let page = store.list_sessions(&filter, offset, 2).await.expect("readable");
                let ids: Vec<_> = page.items.iter().map(|session| session.facts.id).collect();
                text += &format!("\n{challenge:?} {status:?} {offset}: {ids:?} of {}", page.total);
            }
            text += &format!(", {}", store.count_sessions(&filter));
        }
    }
    for name in ["ada", "bob", "zoe"] {
        let played = store.list_played(&user(name), 0, 99).await.expect("readable");
        let ids = played.map(|page| (page.total, page.items.iter().map(|s| s.facts.id).collect::<Vec<_>>()));
        text += &format!("\n{name} {ids:?}");
    }
    let users = store.list_users(0, 99).await.expect("readable");
    text + &format!("\n{:?} of {}", users.items, users.total)
}

async fn an_unlisted_session_is_kept_and_nothing_lists_or_counts_it(storage: TestStorage) {
    let other = storage.another();
    let (store, without) = (open(&storage).await, open(&other).await);
    play(&store, 1, &GAME).await;
    let (_, ended) = end(&store, begin_unlisted(&store, 2).await, &UNLISTED).await;
    let (_, running) = begin_unlisted(&store, 3).await;
    let (no, removed) = end(&store, begin_unlisted(&store, 4).await, &UNLISTED).await;
    play(&store, 5, &GAME).await;
    begin(&store, 6, &GAME).await;
    for n in [1, 5] {
        play(&without, n, &GAME).await;
    }
    begin(&without, 6, &GAME).await;
    let expected = listed(&without).await;
    assert_eq!(listed(&store).await, expected);

    for session in [&ended, &running] {
        let found = store.find_session(session.facts.id).await.expect("readable").expect("it exists");
        assert_eq!(&found.session, session);
        let invited = store.find_invite(session.facts.invites[0]).await.expect("readable");
        assert_eq!(invited, Some(session.facts.id));
    }
    assert_eq!(store.list_ended(EndingNo::default(), 99).await.expect("readable").len(), 4);
    let unended = store.list_running(None).await.expect("readable");
    assert!(unended.iter().any(|(_, session)| *session == running) && unended.len() == 2);

    store.remove_session(no, Arc::new(removed), audit("remove")).await.expect("the removal succeeds");
    assert_eq!(listed(&store).await, expected, "after a removal");
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
    store.check_derived().await.expect("the check succeeds");
    assert_eq!(listed(&store).await, expected, "after a check");
    drop(store);
    storage.change("DELETE FROM session_counts; DELETE FROM careers; DELETE FROM totals");
    let store = open(&storage).await;
    store.check_derived().await.expect("the check succeeds");
    assert_eq!(listed(&store).await, expected, "after a repair");
    drop(store);
    assert_eq!(listed(&open(&storage).await).await, expected, "after a restart");
}

async fn an_imported_session_stays_unlisted(storage: TestStorage) {
    let other = storage.another();
    let (there, here) = (open(&storage).await, open(&other).await);
    let (_, ended) = end(&there, begin_unlisted(&there, 1).await, &UNLISTED).await;
    let session = Session { version: 1, ..ended };
    let before = listed(&here).await;
    let imported = ImportedSession { session: session.clone(), messages: Vec::new(), import: AuditNo(1) };
    assert_eq!(here.import_session(imported).await.expect("the store can write"), ImportOutcome::New);
    assert_eq!(listed(&here).await, before);
    let found = here.find_session(session.facts.id).await.expect("readable").expect("it exists");
    assert_eq!(found.session, session);
}
