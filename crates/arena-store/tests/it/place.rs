//! Where a store may be: each part of the story is told in both places.

use arena_model::Scoring;
use arena_store::Store;
use arena_testkit::Postgres;
use tempfile::TempDir;

/// An empty place for a store.
pub(crate) enum Place {
    /// A data folder.
    Folder(TempDir),
    /// A schema of a database, by its URL.
    Schema(String),
}

impl Place {
    pub(crate) fn folder() -> Place {
        Place::Folder(tempfile::tempdir().expect("a temp folder"))
    }

    pub(crate) fn schema() -> Place {
        Place::Schema(Postgres::shared().schema())
    }

    /// Another place of the same sort.
    pub(crate) fn another(&self) -> Place {
        match self {
            Place::Folder(_) => Place::folder(),
            Place::Schema(_) => Place::schema(),
        }
    }

    pub(crate) async fn open(&self, scoring: Scoring) -> Store {
        match self {
            Place::Folder(folder) => Store::open(folder.path(), scoring).expect("the store opens"),
            Place::Schema(url) => Store::connect(url.parse().expect("a URL"), scoring).await.expect("the store opens"),
        }
    }

    /// Changes something by hand, while no store is open.
    #[track_caller]
    pub(crate) fn change(&self, sql: &str) {
        match self {
            Place::Folder(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("arena.sqlite3")).expect("a database");
                connection.execute_batch(sql).expect("it is changed");
            }
            Place::Schema(url) => drop(Postgres::shared().run_sql(url, sql)),
        }
    }
}

/// Tells a part of the story in each of the places, on a runtime of its own.
pub(crate) fn in_each_place(story: impl AsyncFn(Place)) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        story(Place::folder()).await;
        story(Place::schema()).await;
    });
}

/// Tells each of these parts of the story in both places.
macro_rules! stories {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(crate::place::Place::folder()).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(crate::place::Place::schema()).await;
                }
            )*
        }
    };
}

pub(crate) use stories;
