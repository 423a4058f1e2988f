//! Frames of matches in a terminal: a title, the agents, and the game's board. Shared by the live view of matches,
//! `arena replay show` and `arena play`.

#[cfg(test)]
mod tests;

use std::io::IsTerminal;

use arena_games::board::row::{self, Ink, Row};
use arena_games::board::{Note, Stage, TerminalSize};
use serde_json::Value;

use super::has_colors;
use crate::output::one_line;

/// Draws a frame of this size: a title, the agents, the board.
pub fn frame(stage: &Stage, title: Row, states: &[Value], entries: &[AgentEntry], size: TerminalSize) -> Vec<Row> {
    // One line below the frame stays free for the cursor.
    let taken = 1 + entries.len() + 1;
    let board = stage.draw(states, TerminalSize { rows: size.rows.saturating_sub(taken), ..size });
    let mut rows = vec![title];
    rows.extend(list(entries, &board.notes));
    rows.extend(board.rows);
    rows
}

/// A line of the list of agents.
#[derive(Debug, Default)]
pub struct AgentEntry {
    pub name: String,
    /// Details about the agent that the board doesn't show.
    pub details: String,
    /// The reason for the agent's disqualification, if the agent is disqualified.
    pub verdict: Option<String>,
}

fn list(entries: &[AgentEntry], notes: &[Note]) -> Vec<Row> {
    let nothing = Note::default();
    let note = |seat: usize| notes.get(seat).unwrap_or(&nothing);
    let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(row::width).max().unwrap_or(0);
    let scores: Vec<String> =
        (0..entries.len()).map(|seat| note(seat).score.map(row::number).unwrap_or_default()).collect();
    let marks = widest(&mut notes.iter().map(|note| note.mark.as_str()));
    let names: Vec<String> = entries.iter().map(|entry| one_line(&entry.name)).collect();
    let names_width = widest(&mut names.iter().map(String::as_str));
    let scores_width = widest(&mut scores.iter().map(String::as_str));
    let words_width = widest(&mut notes.iter().map(|note| note.words.as_str()));
    let line = |(seat, entry): (usize, &AgentEntry)| {
        let mut row = Row::default();
        row.text(Ink::Seat(seat), &note(seat).mark).pad(marks + usize::from(marks > 0));
        let start = row.width();
        row.text(Ink::Seat(seat), &names[seat]).pad(start + names_width + 2);
        if scores_width > 0 {
            let start = row.width();
            row.pad(start + scores_width - row::width(&scores[seat]))
                .text(Ink::Strong, &scores[seat])
                .text(Ink::Plain, "  ");
        }
        if words_width > 0 {
            let start = row.width();
            row.text(Ink::Plain, &note(seat).words).pad(start + words_width + 2);
        }
        row.text(Ink::Faint, &entry.details);
        if let Some(verdict) = &entry.verdict {
            row.text(Ink::Plain, if entry.details.is_empty() { "" } else { "  " }).text(Ink::Alarm, verdict);
        }
        row
    };
    entries.iter().enumerate().map(line).collect()
}

/// Formats rows as lines of text, cropped to `columns`. Only output to a terminal has colors.
pub fn text_of(rows: &[Row], columns: usize) -> String {
    let has_colors = std::io::stdout().is_terminal() && has_colors();
    let mut text = String::new();
    for row in rows {
        row.write(columns, has_colors, &mut text);
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}
