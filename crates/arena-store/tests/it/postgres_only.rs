//! Tests for Postgres only: a database that becomes unavailable, returns, belongs to another arena, or has a newer
//! schema.

use std::time::{Duration, Instant};

use arena_model::{Channel, Scoring};
use arena_store::{CommitError, SessionFilter, Store, StoreError};
use arena_testkit::Postgres;
use expect_test::{Expect, expect};

use crate::season::{GAME, play};
use crate::storage::TestStorage;
use crate::{create, said, session, update};

async fn connect(url: &str) -> Result<Store, StoreError> {
    Store::connect(url.parse().expect("a URL"), Scoring::default()).await
}

/// Checks the reason why a database is refused, without the parts that vary between runs.
async fn check(url: &str, expected: Expect) {
    let Err(error) = connect(url).await.map(drop) else { panic!("{url} was accepted") };
    let port = Postgres::shared().port().to_string();
    let said = error.to_string().replace(&port, "PORT");
    expected.assert_eq(&said);
}

#[tokio::test]
async fn a_database_is_reached_by_its_socket() {
    let postgres = Postgres::shared();
    let url = postgres.by_socket(&postgres.schema());
    for sslmode in ["", "&sslmode=disable"] {
        let store = connect(&format!("{url}{sslmode}")).await.expect("the socket accepts connections");
        store.find_next_due().await.expect("the socket accepts further connections");
    }
}

#[tokio::test]
async fn boards_are_made_again_for_another_scoring_however_long_it_takes() {
    let postgres = Postgres::shared();
    let url = postgres.schema();
    let store = connect(&url).await.expect("the database is free");
    play(&store, 1, &GAME).await;
    drop(store);
    postgres.run_sql(
        &url,
        "UPDATE notes SET value = 'as it was' WHERE name = 'scoring';
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(4); RETURN NULL; END';
         CREATE TRIGGER wait BEFORE DELETE ON boards FOR EACH STATEMENT EXECUTE FUNCTION wait()",
    );
    let store = connect(&format!("{url}&options=-cstatement_timeout%3D3s")).await.expect("no statement is canceled");
    assert_eq!(store.list_boards("psi").await.expect("readable").len(), 1);
}

#[tokio::test]
async fn settings_of_the_url_hold_from_the_start_of_a_connection_or_after_it() {
    let postgres = Postgres::shared();
    let url = postgres.schema();
    let store = connect(&format!("{url}&options=-cignore_system_indexes%3Don%20-cwork_mem%3D5MB")).await;
    store.expect("both settings are accepted").find_next_due().await.expect("connections that read accept them, too");
    // The server's error about the value shows that the setting was sent.
    check(
        &postgres.url("?options=-cignore_system_indexes%3Dperhaps"),
        expect![[r#"the database postgres at 127.0.0.1:PORT cannot be used: parameter "ignore_system_indexes" requires a Boolean value"#]],
    )
    .await;
    check(
        &postgres.url("?options=-cno_such_setting%3D1"),
        expect![[r#"the database postgres at 127.0.0.1:PORT cannot be used: a setting is refused: unrecognized configuration parameter "no_such_setting""#]],
    )
    .await;
    check(
        &postgres.url("?options=-cmax_connections%3D5"),
        expect![[r#"the database postgres at 127.0.0.1:PORT cannot be used: a setting is refused: parameter "max_connections" cannot be changed without restarting the server"#]],
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_a_store_is_refused_in_a_sentence() {
    let postgres = Postgres::shared();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = closed.local_addr().expect("an address");
    drop(closed);
    let unreachable =
        connect(&format!("postgres://ada@{nobody}/arena")).await.map(drop).expect_err("nothing listens at the address");
    assert_eq!(
        unreachable.to_string(),
        format!("the database arena at {nobody} cannot be reached: Connection refused (os error 111)")
    );
    let right = postgres.url("");
    let wrong = right.replace("open%20sesame", "wrong").replace('@', &format!("@{nobody},"));
    let none = connect(&wrong).await.map(drop).expect_err("no host can be used").to_string();
    let own = format!("127.0.0.1:{}", postgres.port());
    assert_eq!(
        none,
        format!(
            "the database postgres at {nobody},{own} cannot be reached: {nobody}: Connection refused (os error 111); \
             {own}: password authentication failed for user \"arena\""
        )
    );
    check(
        &right.replace("open%20sesame", "wrong"),
        expect![[
            r#"the database postgres at 127.0.0.1:PORT cannot be used: password authentication failed for user "arena""#
        ]],
    )
    .await;
    check(
        &right.replace("/postgres", "/nowhere"),
        expect![[r#"the database nowhere at 127.0.0.1:PORT cannot be used: database "nowhere" does not exist"#]],
    )
    .await;
    check(
        &postgres.url("?options=-csearch_path%3Dnowhere"),
        expect!["the database postgres at 127.0.0.1:PORT cannot be used: the schema in its search_path doesn't exist; create the schema first"],
    )
    .await;
    check(
        &postgres.url("?sslmode=require"),
        expect!["the database postgres at 127.0.0.1:PORT cannot be reached: server does not support TLS"],
    )
    .await;
    let url = postgres.schema();
    drop(connect(&url).await.expect("the database is free"));
    postgres.run_sql(&url, "UPDATE arena_schema SET version = 99");
    check(&url, expect!["the store has schema version 99, and this program supports versions up to 17; use the newer arena that created the store"]).await;
}

#[tokio::test]
async fn a_database_is_reached_through_a_pooler_that_keeps_sessions() {
    let postgres = Postgres::shared();
    let pooler = postgres.pooler("session");
    // The pooler refuses all settings in the startup packet, such as the schema in the URL.
    let url = pooler.through(postgres, &postgres.schema());
    let store = connect(&url).await.expect("the pooler keeps sessions");
    create(&store, &session(1)).await;
    assert_eq!(store.count_sessions(&SessionFilter::default()), 1);
    store.find_next_due().await.expect("the pooler allows more connections");
    store.check_writing().await.expect("the store can write");
    let taken = connect(&url).await.map(drop);
    assert!(matches!(taken, Err(StoreError::Taken { .. })), "{taken:?}");
}

#[tokio::test]
async fn a_pooler_that_keeps_no_sessions_is_refused() {
    let postgres = Postgres::shared();
    let pooler = postgres.pooler("transaction");
    let refused =
        connect(&pooler.through(postgres, &postgres.url(""))).await.map(drop).expect_err("locks need sessions");
    let said = refused.to_string();
    assert!(said.contains("has to keep sessions (PgBouncer: pool_mode = session)"), "{said}");
}

#[tokio::test]
async fn a_server_that_is_no_postgres_is_refused() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let web = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("the response is sent");
        stream
    });
    let refused =
        connect(&format!("postgres://ada@{address}/arena")).await.map(drop).expect_err("the server isn't Postgres");
    drop(web);
    assert!(
        refused.to_string().starts_with(&format!("the database arena at {address} cannot be reached: ")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_passed_over() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("an address");
    let url = Postgres::shared().schema().replace('@', &format!("@{address},"));
    let began = Instant::now();
    let store = connect(&url).await.expect("the second host answers");
    assert!(began.elapsed() < Duration::from_secs(15), "after {:?}", began.elapsed());
    create(&store, &session(1)).await;
    // Readers connect to the host of the writer at once.
    let began = Instant::now();
    assert!(store.find_session(session(1).facts.id).await.expect("readable").is_some());
    assert!(began.elapsed() < Duration::from_secs(5), "after {:?}", began.elapsed());
    drop(silent);
}

#[tokio::test]
async fn a_database_belongs_to_one_arena_at_a_time() {
    let url = Postgres::shared().schema();
    let first = connect(&url).await.expect("the database is free");
    match connect(&url).await.map(drop) {
        Err(error @ StoreError::Taken { .. }) => {
            assert!(error.to_string().contains("in use by another arena (connected from 127.0.0.1"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // Another schema of the same database is a separate store.
    drop(connect(&Postgres::shared().schema()).await.expect("the database is free"));
    drop(first);
    connect(&url).await.expect("the database is free again");
}

/// Repeats an attempt while the store is unavailable, and returns its result otherwise.
async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T, CommitError>) -> Result<T, CommitError> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match attempt().await {
            Err(CommitError::Unavailable(error)) if Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                drop(error);
            }
            other => return other,
        }
    }
}

#[tokio::test]
async fn a_database_may_crash_and_come_back_and_nothing_acknowledged_is_lost() {
    let mut postgres = Postgres::start();
    let url = postgres.schema();
    let store = connect(&url).await.expect("the database is free");
    let base = session(1);
    let no = create(&store, &base).await;
    let chat = Channel::Chat(base.facts.id);
    // A player sends messages continually and remembers the last one that was acknowledged.
    let talk = async {
        let mut acknowledged = 0;
        for version in 2..=400 {
            let mut next = base.clone();
            next.version = version;
            let said = || vec![said(chat, version - 1, "on and on")];
            match insist(async || update(&store, no, &next, said()).await).await {
                // A conflict means that the commit was stored, but its result was lost.
                Ok(()) | Err(CommitError::Conflict) => acknowledged = version,
                Err(error) => panic!("{error:?}"),
            }
        }
        acknowledged
    };
    let crash = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let crash = tokio::task::spawn_blocking(move || {
                postgres.crash();
                postgres
            });
            postgres = crash.await.expect("the database stops");
            let away = create_now(&store).await;
            assert!(matches!(away, Err(CommitError::Unavailable(_))), "{away:?}");
            let start = tokio::task::spawn_blocking(move || {
                postgres.start_again();
                postgres
            });
            postgres = start.await.expect("the database starts");
        }
        postgres
    };
    let (acknowledged, _postgres) = tokio::join!(talk, crash);
    let stored =
        insist(async || Ok(store.find_session(base.facts.id).await?)).await.expect("readable").expect("it exists");
    assert_eq!((stored.session.version, stored.chat_len), (acknowledged, acknowledged - 1));
    let messages = store.list_messages(Some(no), chat, 1, 1000).await.expect("readable");
    assert!(messages.iter().map(|message| message.index).eq(1..acknowledged));
    assert_eq!(store.count_sessions(&SessionFilter::default()), 1);
}

/// Attempts a commit that must not be stored: it creates a session that exists already.
async fn create_now(store: &Store) -> Result<(), CommitError> {
    let change = arena_store::SessionChange::Create(Box::new(session(1)));
    store.commit(arena_store::Commit { change, messages: Vec::new(), answers: Vec::new() }).await.map(drop)
}

#[tokio::test]
async fn an_arena_whose_database_another_one_has_used_stops_using_it() {
    let url = Postgres::shared().schema();
    let store = connect(&url).await.expect("the database is free");
    create(&store, &session(1)).await;
    // The store's connections are cut, and another arena uses the database before the store reconnects.
    let cut = "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.pid IN
         (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = (hashtext(current_schema())::bigint & 4294967295)::oid);
         UPDATE notes SET value = 'another' WHERE name = 'holder'";
    Postgres::shared().run_sql(&url, cut);
    let mut second = session(1);
    second.version = 2;
    let refused = insist_on_reason(&store).await;
    assert!(refused.to_string().contains("another arena has used the database"), "{refused}");
    // Reads fail as well, because the data in memory is outdated.
    let read = store.find_session(second.facts.id).await.expect_err("the store has ended");
    assert!(matches!(read, StoreError::Superseded { .. }), "{read}");
}

/// Returns the reason why a store refuses commits. The first attempt may fail because of a lost connection.
async fn insist_on_reason(store: &Store) -> StoreError {
    for _ in 0..2 {
        match create_now(store).await {
            Err(CommitError::Unavailable(error @ StoreError::Superseded { .. })) => return error,
            Err(CommitError::Unavailable(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("the store keeps retrying");
}

#[tokio::test]
async fn texts_hold_any_character() {
    let storage = TestStorage::schema();
    let store = storage.open(Scoring::default()).await;
    let base = session(1);
    let no = create(&store, &base).await;
    let chat = Channel::Chat(base.facts.id);
    let odd = "\0 null, \u{10FFFF} last, \u{10FFFF}0, ☃, \u{202e}";
    let mut next = base.clone();
    next.version = 2;
    update(&store, no, &next, vec![said(chat, 1, odd)]).await.expect("the commit is stored");
    let messages = store.list_messages(Some(no), chat, 1, 9).await.expect("readable");
    assert_eq!(messages[0].content, odd);
}

#[tokio::test]
async fn a_page_of_messages_is_as_long_as_fits() {
    let storage = TestStorage::schema();
    let store = storage.open(Scoring::default()).await;
    let mut base = session(1);
    let no = create(&store, &base).await;
    let chat = Channel::Chat(base.facts.id);
    base.version = 2;
    let long = "long ".repeat(130_000);
    let messages = (1..=5).map(|index| said(chat, index, &long)).collect();
    update(&store, no, &base, messages).await.expect("the commit is stored");
    let read = async |from| {
        let page = store.list_messages(Some(no), chat, from, 9).await.expect("readable");
        page.iter().map(|message| message.index).collect::<Vec<_>>()
    };
    assert_eq!((read(1).await, read(5).await, read(6).await), (vec![1, 2], vec![5], vec![]));
}
