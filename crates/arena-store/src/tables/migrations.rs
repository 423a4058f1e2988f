//! The migrations, which create and change the tables.

/// The migrations of SQLite, in order. The schema version of a store is the number of migrations that were applied to
/// it. Downgrades aren't supported.
pub(crate) const SQLITE: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_sessions.sql"),
    include_str!("../../migrations/sqlite/0002_users.sql"),
    include_str!("../../migrations/sqlite/0003_leagues.sql"),
    include_str!("../../migrations/sqlite/0004_usage.sql"),
    include_str!("../../migrations/sqlite/0005_scripts.sql"),
    include_str!("../../migrations/sqlite/0006_unattended.sql"),
    include_str!("../../migrations/sqlite/0007_ids.sql"),
    include_str!("../../migrations/sqlite/0008_rules.sql"),
    include_str!("../../migrations/sqlite/0009_boards.sql"),
    include_str!("../../migrations/0010_queue.sql"),
    include_str!("../../migrations/0011_unlisted.sql"),
    include_str!("../../migrations/sqlite/0012_records.sql"),
    include_str!("../../migrations/0014_reports.sql"),
    include_str!("../../migrations/0015_archives.sql"),
    include_str!("../../migrations/0017_archive_files.sql"),
    include_str!("../../migrations/0019_strategies.sql"),
    include_str!("../../migrations/0020_deals.sql"),
];

/// The migrations of Postgres, in order. A file that both databases understand can be in both lists.
pub(crate) const POSTGRES: &[&str] = &[
    include_str!("../../migrations/postgres/0001_arena.sql"),
    include_str!("../../migrations/postgres/0002_nodes.sql"),
    include_str!("../../migrations/postgres/0003_unattended.sql"),
    include_str!("../../migrations/postgres/0004_ids.sql"),
    include_str!("../../migrations/postgres/0005_boards.sql"),
    include_str!("../../migrations/postgres/0006_journal_marks.sql"),
    include_str!("../../migrations/0010_queue.sql"),
    include_str!("../../migrations/0011_unlisted.sql"),
    include_str!("../../migrations/postgres/0012_records.sql"),
    include_str!("../../migrations/postgres/0013_peers.sql"),
    include_str!("../../migrations/0014_reports.sql"),
    include_str!("../../migrations/0015_archives.sql"),
    include_str!("../../migrations/postgres/0016_leagues.sql"),
    include_str!("../../migrations/0017_archive_files.sql"),
    include_str!("../../migrations/postgres/0018_versions.sql"),
    include_str!("../../migrations/0019_strategies.sql"),
    include_str!("../../migrations/0020_deals.sql"),
];

/// The schema version of Postgres after which migrations only add tables and columns that older programs don't need.
/// While nodes of an older program run, a newer node may apply these.
pub(crate) const COMPATIBLE: i64 = 15;
