//! The groups of commands in `arena --help`. clap has no headings for subcommands, so the help template contains the
//! list.

use clap::builder::{StyledStr, Styles};
use clap::{Command, CommandFactory};

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

/// The column of the descriptions.
const COLUMN: usize = 14;

/// Returns the parser of the command line, with grouped help.
pub fn command() -> Command {
    let command = Cli::command();
    let groups = grouped(&command);
    let header = Styles::default().get_header().to_owned();
    command.help_template(StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    )))
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
    fn help_lists_the_groups_before_the_options() {
        let help = command().render_help().to_string();
        let places: Vec<usize> = GROUPS.iter().filter_map(|(heading, _)| help.find(&format!("{heading}:\n"))).collect();
        assert_eq!(places.len(), GROUPS.len(), "{help}");
        assert!(places.is_sorted() && help.find("\nOptions:\n  ") > places.last().copied(), "{help}");
    }
}
