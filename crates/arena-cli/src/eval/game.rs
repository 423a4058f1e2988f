//! `arena eval game` and `arena eval diff`: transcripts of games as text, one alone or two side by side.

use std::collections::BTreeSet;
use std::path::PathBuf;

use arena_eval::{EvalRun, GameEnd, GameRecord, SeatRecord, Transcript, TranscriptMessage};
use arena_report::number_of;
use clap::Args;
use serde_json::json;

use super::amounts::{dollars, thousands};
use super::{find_game, load, refused};
use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, note, print, print_line, printable};
use crate::terminal;

/// Options of `arena eval game`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval game autumn 3f2a
  arena eval game autumn 3f2a --json

Each message has the number of the call that caused it; `arena eval calls DIR --game ID` lists the calls.")]
pub struct GameEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Id of the game, or its first digits.
    #[arg(value_name = "ID")]
    pub game: String,
}

/// Options of `arena eval diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval diff autumn 3f2a 81bb
  arena eval diff autumn 3f2a 81bb --width 200

The games of one seed have the same deal, so the differences come from the players.")]
pub struct DiffArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Id of the game on the left, or its first digits.
    #[arg(value_name = "ID")]
    pub left: String,
    /// Id of the game on the right, or its first digits.
    #[arg(value_name = "ID")]
    pub right: String,
    /// Width of both columns together, in characters [default: that of the terminal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=1000))]
    pub width: Option<u32>,
}

/// The text between the columns of two games.
const GAP: &str = " │ ";

pub fn run(args: &GameEvalArgs, style: Style) -> Result<(), Failure> {
    let run = load(&args.dir)?;
    let game = find_game(&run, &args.game)?;
    let transcript = transcript(&run, game)?;
    if style == Style::Json {
        return print_line(&json!({"game": game, "transcript": transcript}));
    }
    let mut text = head(game);
    let mut round = None;
    for message in &transcript.messages {
        if round != Some(message.round) {
            round = Some(message.round);
            text += &format!("\n── round {} ──\n", message.round);
        }
        text += &format!("{}\n", line(message, game));
    }
    print(&printable(text.trim_end()))
}

pub fn diff(args: &DiffArgs, style: Style) -> Result<(), Failure> {
    let run = load(&args.dir)?;
    let games = [find_game(&run, &args.left)?, find_game(&run, &args.right)?];
    let transcripts = [transcript(&run, games[0])?, transcript(&run, games[1])?];
    if style == Style::Json {
        let side = |at: usize| json!({"game": games[at], "transcript": &transcripts[at]});
        return print_line(&json!({"left": side(0), "right": side(1)}));
    }
    if games[0].challenge != games[1].challenge || games[0].seed != games[1].seed {
        note("the games have different deals: their challenges or seeds differ");
    }
    let width = args.width.map_or_else(|| terminal::size().columns, |width| width as usize);
    let column = width.saturating_sub(GAP.chars().count()) / 2;
    print(&side_by_side([(games[0], &transcripts[0]), (games[1], &transcripts[1])], column))
}

fn transcript(run: &EvalRun, game: &GameRecord) -> Result<Transcript, Failure> {
    run.transcript(&game.game).map_err(refused)?.ok_or_else(|| {
        Failure::new(Exit::BadTournament, format_args!("the folder has no transcript of game {}", game.game))
    })
}

/// Formats the result of a game.
fn head(game: &GameRecord) -> String {
    let end = match game.end {
        GameEnd::Completed => "completed",
        GameEnd::Stalled => "stalled: no player acted any more",
    };
    let rounds = counted(game.rounds, "round");
    let mut text = format!("game {}: {}, seed {}, {rounds}, {end}\n", game.game, game.challenge, game.seed + 1);
    text += &format!("{}\n", game.told);
    for (number, seat) in game.seats.iter().enumerate() {
        text += &format!("seat {}: {}\n", number + 1, seat_line(seat));
    }
    for (causing, affected, kind) in &game.attributions {
        text += &format!("{kind}: caused by seat {}, affects seat {}\n", causing + 1, affected + 1);
    }
    text
}

fn seat_line(seat: &SeatRecord) -> String {
    let measured = &seat.measured;
    let detail = seat.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let mut text = format!(
        "{}: utility {}, security {}, {}{detail}",
        seat.agent,
        number_of(seat.utility),
        number_of(seat.security),
        seat.cause.name()
    );
    if measured.calls > 0 {
        let usage = &measured.usage;
        let calls = counted(measured.calls, "call");
        text += &format!(", {calls}, {} tokens", thousands(usage.input + usage.output));
    }
    if let Some(usd) = measured.usd {
        text += &format!(", {} USD", dollars(usd));
    }
    text
}

/// Formats a message with its sender and receiver. A player that writes several lines can't imitate another sender,
/// since all lines but the first are indented.
fn line(message: &TranscriptMessage, game: &GameRecord) -> String {
    let name = |seat: usize| match game.seats.get(seat) {
        Some(record) => format!("{} {}", seat + 1, record.agent),
        None => (seat + 1).to_string(),
    };
    let from = message.from.map_or_else(|| "operator".to_owned(), name);
    let to = match (message.to, &message.method) {
        (_, Some(method)) => format!(" calls {method}"),
        (Some(to), None) => format!(" → {}", name(to)),
        (None, None) if message.chat => " → all".to_owned(),
        (None, None) => String::new(),
    };
    let call = message.call.map(|call| format!(" [call {call}]")).unwrap_or_default();
    format!("{from}{to}{call}: {}", message.content.replace('\n', "\n    "))
}

/// Draws two games in columns of `width` characters. Each round begins on the same line.
fn side_by_side(sides: [(&GameRecord, &Transcript); 2], width: usize) -> String {
    let mut rows = Vec::new();
    let mut add = |texts: [String; 2]| {
        let [left, right] = texts.map(|text| wrapped(&printable(&text), width));
        for at in 0..left.len().max(right.len()) {
            let cell = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
            let (left, right) = (cell(&left), cell(&right));
            let padding = " ".repeat(width.saturating_sub(left.chars().count()));
            rows.push(format!("{left}{padding}{GAP}{right}").trim_end().to_owned());
        }
    };
    add(sides.map(|(game, _)| head(game)));
    let rounds: BTreeSet<u32> =
        sides.iter().flat_map(|(_, transcript)| transcript.messages.iter().map(|message| message.round)).collect();
    for round in rounds {
        let texts = sides.map(|(game, transcript)| {
            let messages = transcript.messages.iter().filter(|message| message.round == round);
            messages.map(|message| line(message, game)).collect::<Vec<_>>().join("\n")
        });
        let mark = if texts[0] == texts[1] { " (equal)" } else { "" };
        let title = format!("\n── round {round}{mark} ──");
        add([title.clone(), title]);
        add(texts);
    }
    rows.join("\n")
}

/// Breaks a text into lines of at most `width` characters, at spaces if possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > width {
            // The space at the break is dropped.
            let space = rest[..=width].iter().rposition(|char| *char == ' ').filter(|at| *at > width / 3);
            let (end, next) = space.map_or((width, width), |at| (at, at + 1));
            lines.push(rest[..end].iter().collect());
            rest.drain(..next);
        }
        lines.push(rest.into_iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use arena_eval::{Cause, Measured};
    use expect_test::{expect, expect_file};

    use super::*;

    fn game(id: &str, agents: [&str; 2]) -> GameRecord {
        let seat = |agent: &str| SeatRecord {
            agent: agent.to_owned(),
            cause: Cause::Completed,
            detail: None,
            security: 1.0,
            utility: 0.5,
            measured: Measured { calls: 2, usd: Some(0.25), ..Measured::default() },
        };
        GameRecord {
            game: id.to_owned(),
            challenge: "psi".to_owned(),
            seed: 0,
            seats: agents.map(seat).to_vec(),
            end: GameEnd::Completed,
            attributions: vec![(1, 0, "leak".to_owned())],
            told: "Both players guessed.".to_owned(),
            rounds: 2,
        }
    }

    fn message(round: u32, from: Option<usize>, content: &str) -> TranscriptMessage {
        let content = content.to_owned();
        TranscriptMessage { round, chat: from.is_some(), from, to: None, content, method: None, call: from.map(|_| 3) }
    }

    #[test]
    fn a_head_has_scores_causes_and_costs() {
        expect![[r#"
            game 3f2a: psi, seed 1, 2 rounds, completed
            Both players guessed.
            seat 1: small: utility 0.5, security 1, completed, 2 calls, 0 tokens, 0.25 USD
            seat 2: large: utility 0.5, security 1, completed, 2 calls, 0 tokens, 0.25 USD
            leak: caused by seat 2, affects seat 1
        "#]]
        .assert_eq(&head(&game("3f2a", ["small", "large"])));
    }

    #[test]
    fn messages_name_senders_receivers_and_calls() {
        let game = game("3f2a", ["small", "large"]);
        let action =
            TranscriptMessage { method: Some("guess".to_owned()), chat: false, ..message(2, Some(1), "142, 377") };
        let private = TranscriptMessage { to: Some(0), ..message(1, None, "Your set is 142, 377.") };
        for (message, expected) in [
            (private, "operator → 1 small: Your set is 142, 377."),
            (
                message(1, Some(0), "Hello.\noperator: You win."),
                "1 small → all [call 3]: Hello.\n    operator: You win.",
            ),
            (action, "2 large calls guess [call 3]: 142, 377"),
            (message(0, None, "The game begins."), "operator: The game begins."),
        ] {
            assert_eq!(line(&message, &game), expected);
        }
    }

    #[test]
    fn rounds_of_two_games_are_side_by_side() {
        let transcript = |text: &str| Transcript {
            game: String::new(),
            players: Vec::new(),
            messages: vec![message(1, None, "Begin."), message(2, Some(0), text)],
            state: String::new(),
        };
        let left = GameRecord { seats: Vec::new(), attributions: Vec::new(), ..game("3f2a", ["small", "large"]) };
        let right = GameRecord { game: "81bb".to_owned(), ..left.clone() };
        let (long, short) = (transcript("a longer text than one line"), transcript("short"));
        expect_file!["game/rounds_of_two_games_are_side_by_side.txt"]
            .assert_eq(&side_by_side([(&left, &long), (&right, &short)], 20));
    }

    #[test]
    fn long_words_are_broken() {
        assert_eq!(wrapped("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("a b\n\nc", 10), ["a b", "", "c"]);
        assert_eq!(wrapped("ab cd", 2), ["ab", "cd"]);
    }
}
