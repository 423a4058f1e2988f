//! Settings, commands, options and routes of earlier versions, each with its replacement. The server, the
//! command line and their clients answer with these sentences. A row is never needed again after some versions.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A key of the settings or of a run file, or a whole section: `retention.bucket`.
    Setting,
    /// A command: `admin witness`.
    Command,
    /// An option of a command: `rate --glicko`. An option of all commands has no command.
    Option,
    /// The path of a route, with `*` for a segment of any text. It covers the paths below it.
    Route,
}

/// Kind, name, and the sentence that says what to use instead.
const REMOVED: &[(Kind, &str, &str)] = &[
    (Kind::Setting, "node_listen", NO_NODE),
    (Kind::Setting, "node_name", NO_NODE),
    (Kind::Option, "serve --node-listen", NO_NODE),
    (Kind::Option, "serve --node-name", NO_NODE),
    (Kind::Setting, "retention.bucket", COPY_BUCKET),
    (Kind::Setting, "retention.endpoint", COPY_BUCKET),
    (Kind::Setting, "retention.region", COPY_BUCKET),
    (
        Kind::Route,
        "/api/arena/usage",
        "The arena measures usage itself: see the results of `arena eval` and of model seats.",
    ),
    (Kind::Option, "play --no-usage-report", "Remove it: `arena play` doesn't report usage any more."),
    (
        Kind::Route,
        "/api/sessions/*/fork",
        "Save the record of the ended session and continue it with `arena session fork FILE`.",
    ),
    (
        Kind::Option,
        "session fork --creator-key",
        "Save the record with `arena record get ID --out FILE` and fork the file.",
    ),
    (Kind::Option, "session fork --admin", "Save the record with `arena record get ID --out FILE` and fork the file."),
    (Kind::Route, "/api/reports", "Write to the contact in the footer of the pages."),
    (Kind::Route, "/sessions/*/report", "Write to the contact in the footer of the pages."),
    (Kind::Route, "/api/admin/reports", "Readers write to the contact in the footer: set `contact` in [site]."),
    (Kind::Command, "admin reports", "Readers write to the contact in the footer: set `contact` in [site]."),
    (Kind::Command, "admin dismiss", "Readers write to the contact in the footer: set `contact` in [site]."),
    (Kind::Route, "/embed", "Link to `/sessions/ID`, or show `/sessions/ID/picture.svg`."),
    (Kind::Setting, "records.sign_with", "Keep the keys in the data folder, or compute them from RECORD_SECRET."),
    (Kind::Command, "admin rotate-key", "Stop the server and rename record-key to record-key.1: it makes a new key."),
    (
        Kind::Option,
        "--witness",
        "Keep an older checkpoint, and compare the log with it: `arena log check --since FILE`.",
    ),
    (
        Kind::Command,
        "admin benchmark",
        "Use `arena admin api POST /admin/users/USER/benchmark --body '{\"isBenchmark\": true}'`.",
    ),
    (Kind::Command, "admin delete-user", "Use `arena admin api POST /admin/users/USER/delete`."),
    (
        Kind::Command,
        "admin hide",
        "Use `arena admin api POST /admin/messages/hide --body '{\"channel\": \"ID\", \"index\": 3}'`.",
    ),
    (
        Kind::Command,
        "admin ban",
        "Use `arena admin api POST /admin/bans --body '{\"userId\": \"USER\", \"reason\": \"…\"}'`.",
    ),
    (Kind::Command, "admin unban", "Use `arena admin api POST /admin/bans/lift --body '{\"userId\": \"USER\"}'`."),
    (Kind::Command, "admin bans", "Use `arena admin api GET /admin/bans`."),
    (Kind::Command, "admin remove", "Use `arena admin api POST /admin/sessions/ID/remove`."),
    (Kind::Command, "admin archive", "Use `arena admin api POST /admin/archive --body '{\"olderThanDays\": 90}'`."),
    (Kind::Command, "admin restore", "Use `arena admin api POST /admin/restore --body '{\"session\": \"ID\"}'`."),
    (Kind::Command, "admin audit", "Use `arena admin api GET /admin/audit`."),
    (Kind::Command, "admin budgets", "Use `arena admin api GET /admin/budgets`."),
    (Kind::Command, "match fork", "Fork the record of a session with `arena session fork`."),
    (Kind::Command, "eval show", REPORT_PAGES),
    (Kind::Route, "/evals/runs", REPORT_PAGES),
    (Kind::Command, "eval rescore", SCORE_WITH_INSPECT),
    (Kind::Setting, "judges", SCORE_WITH_INSPECT),
    (Kind::Command, "eval stand-in", USE_BOTS),
    (Kind::Setting, "stand_in", USE_BOTS),
    (Kind::Option, "eval --url", "Remove it: evaluations play in memory on this machine."),
    (
        Kind::Command,
        "league",
        "A league is a tournament with `--format league`: use `arena tournament run`, `add`, `remove`, `resume`, `season` \
         and `standings`. Leagues in a store stay there but can't be continued; the version before shows them \
         (`arena league show --json`).",
    ),
    (Kind::Command, "uci", "Play against a chess program with `arena match run chess --agent uci:PATH --agent ...`."),
];

const NO_NODE: &str = "Remove it: every node answers every request, behind any load balancer (`--shared` suffices). For a private address, \
    set network.private_listen.";

const COPY_BUCKET: &str = "The archive is a folder. Copy the objects of the bucket to a folder, with their names, or restore all games \
    with the version before (`arena admin restore --all`); then set retention.folder.";

const REPORT_PAGES: &str =
    "`arena eval report DIR` writes pages to DIR/report; open index.html there, or at /evals/RUN/index.html.";

const SCORE_WITH_INSPECT: &str =
    "Export the log with `python -m arena_agents.evals DIR --format inspect --out LOGS`, and score it with Inspect.";

const USE_BOTS: &str = "For a run without a model, use house bots such as `house:leaky` as [[baselines]]; examples/eval/quick.toml has prices for \
    them.";

/// Returns the sentence about a removed thing; `None` for others. `found` is compared by words, keys or segments of a
/// path.
pub fn sentence(kind: Kind, found: &str) -> Option<String> {
    let (separator, thing) = match kind {
        Kind::Setting => ('.', format!("the setting {found}")),
        Kind::Command | Kind::Option => (' ', format!("`arena {found}`")),
        Kind::Route => ('/', found.to_owned()),
    };
    let covers = |name: &str| {
        let mut found = found.split(separator);
        name.split(separator).all(|part| found.next().is_some_and(|other| part == "*" || part == other))
    };
    let (.., instead) = REMOVED.iter().find(|(of, name, _)| *of == kind && covers(name))?;
    Some(format!("{thing} was removed: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_parts() {
        let cases = [
            (Kind::Setting, "retention.bucket", true),
            (Kind::Setting, "retention.bucket.name", true),
            (Kind::Setting, "retention.buckets", false),
            (Kind::Setting, "retention", false),
            (Kind::Command, "retention.bucket", false),
        ];
        for (kind, name, is_removed) in cases {
            assert_eq!(sentence(kind, name).is_some(), is_removed, "{name}");
        }
    }

    #[test]
    fn no_row_is_there_twice() {
        for (at, (kind, name, _)) in REMOVED.iter().enumerate() {
            let first = REMOVED.iter().position(|(of, other, _)| of == kind && other == name);
            assert_eq!(first, Some(at), "{name}");
        }
    }
}
