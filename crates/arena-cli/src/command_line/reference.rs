//! Generated pages of `docs/reference`: the command line and the exit codes. `UPDATE_EXPECT=1 cargo test -p arena-cli
//! reference` updates them.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};
use expect_test::expect_file;

use super::command;
use crate::exit::EXITS;

#[test]
fn the_page_of_the_command_line_is_made_from_the_arguments() {
    let mut command = command();
    command.build();
    let mut page = "\
# Command line

Every command of `arena` with its arguments. `arena COMMAND --help` prints the same with examples, and `arena man DIR`
writes man pages. [Exit codes](exit-codes.md) are listed separately.

This page is generated from the program's arguments.

Some options apply to a group of commands, and the tables omit them:

- Commands that call a server: `--auth <KEY>`, the session key, for servers with authentication. Variable: `ARENA_AUTH`.
- `arena admin`: `--token <TOKEN>`, the administrator token (variable: `ARENA_ADMIN_TOKEN`), or `--data <DIR>`, the
  server's data folder, which contains the token.
- `arena tournament add`: `--version <V>`, the version of the agent. Default: from its manifest.
"
    .to_owned();
    let global: Vec<&Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).collect();
    page += "\n## Options of every command\n";
    arguments(&mut page, &global);
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        describe(&mut page, subcommand, 2);
    }
    expect_file!["../../../../docs/reference/command-line.md"].assert_eq(&page);
}

/// Adds a command and its subcommands, with a heading of `level`.
fn describe(page: &mut String, command: &Command, level: usize) {
    let about = command.get_long_about().or(command.get_about()).map(text).unwrap_or_default();
    let name = command.get_bin_name().unwrap_or_default();
    writeln!(page, "\n{} {name}\n\n{about}", "#".repeat(level)).unwrap();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim).collect::<Vec<_>>().join("\n    ");
    writeln!(page, "\n    {}", usage.trim()).unwrap();
    let own = command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
    arguments(page, &own.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version")).collect::<Vec<_>>());
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        describe(page, subcommand, level + 1);
    }
}

/// Adds a table of arguments.
fn arguments(page: &mut String, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    page.push_str("\n| argument | meaning |\n|---|---|\n");
    for arg in arguments {
        let mut notes = vec![arg.get_help().map(text).unwrap_or_default()];
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        if !values.is_empty() && arg.get_action().takes_values() {
            notes.push(format!("One of {}.", values.join(", ")));
        }
        let defaults: Vec<&str> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        if !defaults.is_empty() && arg.get_action().takes_values() {
            notes.push(format!("Default: `{}`.", defaults.join(" ")));
        }
        if let Some(variable) = arg.get_env().and_then(|name| name.to_str()) {
            notes.push(format!("Variable: `{variable}`."));
        }
        let notes: Vec<&str> = notes.iter().map(|note| note.trim_end_matches('.')).collect();
        let meaning = notes.join(". ").replace('|', "\\|");
        writeln!(page, "| `{}` | {meaning} |", synopsis(arg)).unwrap();
    }
}

/// Returns the form of an argument: `-n, --rounds <N>`.
fn synopsis(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values = match arg.get_action() {
        ArgAction::Set | ArgAction::Append => {
            names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    format!("{flags} {values}").trim().to_owned()
}

fn text(styled: &StyledStr) -> String {
    styled.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_of_exit_codes_is_made_from_the_program() {
    let mut page = "\
# Exit codes

`arena` exits with 0 on success, and with one of these codes otherwise. Scripts may rely on the codes. The error message
on stderr contains the details.

This page is generated from the program.

| code | label | meaning |
|---|---|---|
"
    .to_owned();
    for (exit, label, meaning) in EXITS {
        writeln!(page, "| {} | {label} | {meaning} |", exit as u8).unwrap();
    }
    expect_file!["../../../../docs/reference/exit-codes.md"].assert_eq(&page);
}
