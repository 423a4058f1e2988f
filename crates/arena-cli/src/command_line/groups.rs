//! The groups of commands in `arena --help`. clap has no headings for subcommands, so the help template contains the
//! list.

use clap::builder::{StyledStr, Styles};
use clap::{Arg, ArgMatches, Command, CommandFactory};

use super::Cli;

/// Headings, and the commands of each group in the order of the help.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Play", &["demo", "play"]),
    ("Agents and matches", &["agent", "match", "replay"]),
    ("Tournaments and ratings", &["tournament", "eval", "worker", "rate"]),
    ("Sessions on a server", &["challenges", "chat", "scoring", "users", "identity"]),
    ("Records", &["verify", "record", "log", "board", "session"]),
    ("Your own challenges", &["author"]),
    ("Run a server", &["serve", "admin"]),
    ("Shell", &["completions", "man"]),
];

/// The commands that call a server, or prepare calls to one. All others refuse the options of such calls.
const CALLING: [&str; 14] = [
    "play",
    "challenges",
    "chat",
    "scoring",
    "users",
    "admin",
    "log",
    "identity",
    "completions",
    "agent upload",
    "record get",
    "session cancel",
    "session unlist",
    "session invites",
];

/// The commands that call no server, but may read a log on one, which `--log` names.
const READING: [&str; 2] = ["verify", "board"];

/// The column of the descriptions.
const COLUMN: usize = 14;

/// Returns the parser of the command line, with grouped help. The help of a command hides the options that it refuses.
pub fn command() -> Command {
    let mut command = Cli::command();
    let groups = grouped(&command);
    let header = Styles::default().get_header().to_owned();
    let global: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    command = hide_refused(command, "", &global);
    command.help_template(StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    )))
}

/// Returns true if the command at `path`, such as `agent upload`, uses the option of calls to a server.
pub fn is_used(option: &str, path: &str) -> bool {
    let is_below = |names: &[&str]| names.iter().any(|name| format!("{path} ").starts_with(&format!("{name} ")));
    is_below(&CALLING) || option == "cacert" && is_below(&READING)
}

/// Returns the path of the command that was given, such as `agent upload`.
pub fn path(matches: &ArgMatches) -> String {
    match matches.subcommand() {
        Some((name, matches)) => format!("{name} {}", path(matches)).trim_end().to_owned(),
        None => String::new(),
    }
}

/// Hides the options of calls from the help of all commands below `path` that refuse them.
fn hide_refused(mut command: Command, path: &str, global: &[Arg]) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let path = format!("{path} {name}").trim_start().to_owned();
        command = command.mut_subcommand(name, |sub| {
            // A command with commands below it refuses an option if all of them do.
            let is_kept = |option: &str| {
                let mut below = sub.get_subcommands().map(|below| format!("{path} {}", below.get_name()));
                is_used(option, &path) || below.any(|path| is_used(option, &path))
            };
            let refused = |arg: &&Arg| {
                let option = arg.get_id().as_str();
                let is_own = sub.get_arguments().any(|own| own.get_id() == option);
                ["url", "from", "cacert"].contains(&option) && !is_own && !is_kept(option)
            };
            let hidden: Vec<Arg> = global.iter().filter(refused).map(|arg| arg.clone().hide(true)).collect();
            hide_refused(sub.args(hidden), &path, global)
        });
    }
    command
}

/// Lists the commands in groups.
fn grouped(command: &Command) -> String {
    let styles = Styles::default();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("{header}{heading}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_default();
            text += &format!("  {literal}{name:<width$}{literal:#}{about}\n", width = COLUMN - 2);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest description of a command in the grouped help, in words.
    const WORDS: usize = 8;

    #[test]
    fn every_command_is_in_one_group_and_briefly_described() {
        let command = Cli::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let mut visible: Vec<&str> =
            command.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
        for subcommand in command.get_subcommands() {
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            let words = about.split_whitespace().count();
            assert!((1..=WORDS).contains(&words), "{}: {about}", subcommand.get_name());
            assert!(subcommand.get_name().len() < COLUMN - 2, "{}", subcommand.get_name());
        }
    }

    #[test]
    fn the_help_of_a_command_hides_the_options_that_it_refuses() {
        let shown = |words: &str| {
            let mut command = command();
            command.build();
            let found = words.split(' ').try_fold(&mut command, |command, word| command.find_subcommand_mut(word));
            let help = found.expect("the command exists").render_long_help().to_string();
            ["--url <", "--from <", "--cacert <", "--json"].map(|option| help.contains(option))
        };
        let (all, none) = ([true; 4], [false, false, false, true]);
        for (words, expected) in [
            ("play", all),
            ("agent", all),
            ("agent upload", all),
            ("agent new", none),
            ("match run", none),
            ("record get", all),
            ("record show", none),
            ("session fork", none),
            ("verify", [false, false, true, true]),
            ("serve", none),
        ] {
            assert_eq!(shown(words), expected, "{words}");
        }
        for name in CALLING.iter().chain(&READING) {
            let words = name.split(' ');
            let mut command = &Cli::command();
            for word in words {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("{name} doesn't exist"));
            }
        }
    }

    #[test]
    fn hidden_options_still_reach_the_command_for_its_refusal() {
        for line in ["arena match run snake --url http://a", "arena --url http://a match run snake"] {
            let matches = command().try_get_matches_from(line.split(' ')).unwrap();
            assert!(Cli::refuse_unused(&matches).is_err(), "{line}");
        }
    }

    #[test]
    fn help_lists_the_groups_before_the_options() {
        let help = command().render_help().to_string();
        let places: Vec<usize> = GROUPS.iter().filter_map(|(heading, _)| help.find(&format!("{heading}:\n"))).collect();
        assert_eq!(places.len(), GROUPS.len(), "{help}");
        assert!(places.is_sorted() && help.find("\nOptions:\n  ") > places.last().copied(), "{help}");
    }
}
