//! Frames of matches in a terminal: a title, the agents, and the game's board. Shared by the live view of matches and
//! `arena replay show`.

#[cfg(test)]
mod tests;

use arena_games::board::row::{self, Ink, Row};
use arena_games::board::{Note, Stage, TerminalSize};
use arena_match::HeaderLine;
use arena_model::{AgentId, AnyGame, Seat};
use serde_json::Value;

use crate::output::printable;

/// Returns the constant data of a match that the board needs: game, constants, agent ids and sides.
pub fn stage_of_game(game: &dyn AnyGame, agents: &[AgentId]) -> Stage {
    Stage {
        game: game.game_type().name.to_owned(),
        config: game.config(),
        ids: agents.iter().map(ToString::to_string).collect(),
        sides: (0..agents.len()).map(|seat| game.side(Seat(seat))).collect(),
    }
}

/// Returns the constant data of a replay that the board needs. The sides follow from the replay's seed; they stay
/// unknown if this program's rules can't start a game with that seed.
pub fn stage_of_replay(header: &HeaderLine) -> Stage {
    let ids: Vec<String> = header.agents.iter().map(|agent| agent.agent_id.clone()).collect();
    Stage { game: header.game.clone(), config: header.config.clone(), ids, sides: header.sides() }
}

/// Draws a frame of this size: a title, the agents, the board.
pub fn picture(stage: &Stage, title: Row, states: &[Value], entries: &[AgentEntry], room: TerminalSize) -> Vec<Row> {
    // One line below the frame stays free for the cursor.
    let taken = 1 + entries.len() + 1;
    let board = stage.draw(states, TerminalSize { rows: room.rows.saturating_sub(taken), ..room });
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
    pub words: String,
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
    let names: Vec<String> = entries.iter().map(|entry| printable(&entry.name).replace('\n', " ")).collect();
    let (names_width, scores_width) =
        (widest(&mut names.iter().map(String::as_str)), widest(&mut scores.iter().map(String::as_str)));
    let words_width = widest(&mut notes.iter().map(|note| note.words.as_str()));
    let list = |(seat, entry): (usize, &AgentEntry)| {
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
        row.text(Ink::Faint, &entry.words);
        if let Some(verdict) = &entry.verdict {
            row.text(Ink::Plain, if entry.words.is_empty() { "" } else { "  " }).text(Ink::Alarm, verdict);
        }
        row
    };
    entries.iter().enumerate().map(list).collect()
}

/// Parses the states of a snapshot or a replay line: a list of worlds, or one state.
pub fn read_states(one: Option<&str>, each: Option<&str>) -> Vec<Value> {
    let each = each.and_then(|worlds| serde_json::from_str(worlds).ok());
    each.or_else(|| Some(vec![serde_json::from_str(one?).ok()?])).unwrap_or_default()
}
