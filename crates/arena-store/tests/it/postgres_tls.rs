//! Encrypted connections to a database, and connections that fail the check of the certificate.

use arena_model::Scoring;
use arena_store::{Store, StoreError};
use arena_testkit::Postgres;
use expect_test::{Expect, expect};

use crate::{create, session};

async fn connect(url: &str) -> Result<Store, StoreError> {
    Store::connect(url.parse().expect("a URL"), Scoring::default()).await
}

async fn check_refusal(postgres: &Postgres, url: &str, expected: Expect) {
    let Err(error) = connect(url).await.map(drop) else { panic!("{url} was accepted") };
    expected.assert_eq(&error.to_string().replace(&postgres.port().to_string(), "PORT"));
}

#[tokio::test]
async fn what_is_encrypted_is_so_on_all_connections_and_to_the_right_server() {
    let (postgres, other) = (Postgres::start_with_certificate(), Postgres::start_with_certificate());
    let [own, others] = [&postgres, &other].map(|postgres| postgres.certificate().display().to_string());
    let by_name = |parameters: &str| postgres.url(parameters).replace("127.0.0.1", "localhost");

    let store = connect(&by_name(&format!("?sslmode=verify-full&sslrootcert={own}")))
        .await
        .expect("the certificate is trusted");
    create(&store, &session(1)).await;
    assert!(store.find_session(session(1).facts.id).await.expect("readable").is_some());
    let connections = postgres.run_sql(
        &postgres.url(""),
        "SELECT ssl, count(*) > 1 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE application_name = 'arena' GROUP BY ssl",
    );
    assert_eq!(connections, "t|t\n");
    drop(store);
    // Of several hosts, each must have a certificate for its own name.
    let hosts = format!("127.0.0.1:{0},localhost:{0}", postgres.port());
    let both = postgres
        .url(&format!("?sslmode=verify-full&sslrootcert={own}"))
        .replace(&format!("127.0.0.1:{}", postgres.port()), &hosts);
    drop(connect(&both).await.expect("the second host has the name in the certificate"));

    check_refusal(
        &postgres,
        &by_name(&format!("?sslmode=require&sslrootcert={others}")),
        expect!["the database postgres at localhost:PORT cannot be reached: invalid peer certificate: BadSignature"],
    )
    .await;
    check_refusal(
        &postgres,
        &by_name("?sslmode=require"),
        expect!["the database postgres at localhost:PORT cannot be reached: invalid peer certificate: UnknownIssuer"],
    )
    .await;
    let why = r#"certificate not valid for name "127.0.0.1"; certificate is only valid for DnsName("localhost")"#;
    let refused = connect(&postgres.url(&format!("?sslmode=require&sslrootcert={own}"))).await.map(drop);
    let said = refused.expect_err("the certificate is for a name").to_string();
    assert!(said.ends_with(&format!("cannot be reached: invalid peer certificate: {why}")), "{said}");
}
