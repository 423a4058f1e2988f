//! The kinds of storage: each test runs with both.

use arena_model::Scoring;
use arena_store::{Store, StorePlace};
use arena_testkit::{Postgres, data_folder};
use tempfile::TempDir;

/// An empty storage for a store.
pub(crate) enum TestStorage {
    Folder(TempDir),
    Schema(String),
}

impl TestStorage {
    pub(crate) fn folder() -> TestStorage {
        TestStorage::Folder(data_folder())
    }

    pub(crate) fn schema() -> TestStorage {
        TestStorage::Schema(Postgres::shared().schema())
    }

    pub(crate) fn place(&self) -> StorePlace {
        match self {
            TestStorage::Folder(folder) => StorePlace::Folder(folder.path().to_owned()),
            TestStorage::Schema(url) => StorePlace::Database(Box::new(url.parse().expect("a URL"))),
        }
    }

    pub(crate) fn another(&self) -> TestStorage {
        match self {
            TestStorage::Folder(_) => TestStorage::folder(),
            TestStorage::Schema(_) => TestStorage::schema(),
        }
    }

    pub(crate) async fn open(&self, scoring: Scoring) -> Store {
        match self {
            TestStorage::Folder(folder) => Store::open(folder.path(), scoring).expect("the store opens"),
            TestStorage::Schema(url) => {
                Store::connect(url.parse().expect("a URL"), scoring).await.expect("the store opens")
            }
        }
    }

    /// Changes the database by hand, bypassing the store.
    #[track_caller]
    pub(crate) fn change(&self, sql: &str) {
        match self {
            TestStorage::Folder(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("arena.sqlite3")).expect("a database");
                connection.execute_batch(sql).expect("the statements are valid");
            }
            TestStorage::Schema(url) => drop(Postgres::shared().run_sql(url, sql)),
        }
    }

    /// Returns the number of rows in a table.
    #[track_caller]
    pub(crate) fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        match self {
            TestStorage::Folder(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("arena.sqlite3")).expect("a database");
                connection.query_row(&sql, [], |row| row.get(0)).expect("a number")
            }
            TestStorage::Schema(url) => Postgres::shared().run_sql(url, &sql).trim().parse().expect("a number"),
        }
    }
}

/// Runs a test with each kind of storage, on a runtime of its own.
pub(crate) fn with_each_storage(story: impl AsyncFn(TestStorage)) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        story(TestStorage::folder()).await;
        story(TestStorage::schema()).await;
    });
}

/// Defines a test for each of these functions, with both kinds of storage.
macro_rules! stories {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(crate::storage::TestStorage::folder()).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(crate::storage::TestStorage::schema()).await;
                }
            )*
        }
    };
}

pub(crate) use stories;
