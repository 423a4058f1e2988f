//! What earlier versions had: settings, commands, options and routes, each with what replaces it. The server, the
//! command line and their clients answer with these sentences. A row is never needed again after some versions.

/// What was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A key of the settings, or a whole section: `retention.bucket`.
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
    (Kind::Command, "match fork", "Fork the record of a session with `arena session fork`."),
    (Kind::Command, "uci", "Play against a chess program with `arena match run chess --agent uci:PATH --agent ...`."),
];

/// Returns what replaces something, if it was removed. `found` is compared by words, keys or segments of a path.
pub fn replacement(kind: Kind, found: &str) -> Option<&'static str> {
    let separator = match kind {
        Kind::Setting => '.',
        Kind::Command | Kind::Option => ' ',
        Kind::Route => '/',
    };
    let covers = |name: &str| {
        let mut found = found.split(separator);
        name.split(separator).all(|part| found.next().is_some_and(|other| part == "*" || part == other))
    };
    REMOVED.iter().find(|(of, name, _)| *of == kind && covers(name)).map(|(_, _, instead)| *instead)
}
