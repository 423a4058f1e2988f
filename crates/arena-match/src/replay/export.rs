//! The export of replays in the format of the reference engine, for tools that read it.

use std::io::{BufRead, Write};

use serde_json::{Map, Value, json};

use super::read::{EpochLine, Replay, ReplayError, ReplayLine};

/// Writes a record for each epoch: `game_config`, `epoch`, `max_epoch`, `world_state`, `agent_actions`,
/// `agent_ids`. If each agent has its own world, `world_state` contains them by id. Returns the number of
/// records.
///
/// # Errors
/// If the replay can't be read, or the records can't be written.
pub fn export_reference(from: impl BufRead, to: &mut dyn Write) -> Result<u64, ReplayError> {
    let mut replay = Replay::open(from)?;
    let ids: Vec<String> = replay.header.agents.iter().map(|agent| agent.agent_id.clone()).collect();
    let max_epoch = replay.header.config.get("n_epochs").cloned().unwrap_or(json!(-1));
    let config = replay.header.config.clone();
    let mut records: u64 = 0;
    while let Some(line) = replay.next_line()? {
        let ReplayLine::Epoch(epoch) = line else { continue };
        if epoch.epoch == 0 {
            continue;
        }
        let wrong = |error: serde_json::Error| ReplayError::Line { line: replay.line(), what: error.to_string() };
        let record = json!({
            "game_config": config,
            "epoch": epoch.epoch,
            "max_epoch": max_epoch,
            "world_state": world_state(&epoch, &ids).map_err(wrong)?,
            "agent_actions": agent_actions(&epoch, &ids).map_err(wrong)?,
            "agent_ids": ids,
        });
        writeln!(to, "{record}").map_err(ReplayError::Write)?;
        records += 1;
    }
    to.flush().map_err(ReplayError::Write)?;
    Ok(records)
}

fn world_state(epoch: &EpochLine, ids: &[String]) -> Result<Value, serde_json::Error> {
    if let Some(state) = &epoch.world_state {
        return serde_json::from_str(state.get());
    }
    let Some(worlds) = &epoch.worlds else { return Ok(json!({})) };
    let worlds: Vec<Value> = serde_json::from_str(worlds.get())?;
    let mut state: Map<String, Value> = ids.iter().cloned().zip(worlds).collect();
    state.insert("epoch".to_owned(), json!(epoch.epoch));
    state.insert("agent_ids".to_owned(), json!(ids));
    Ok(Value::Object(state))
}

/// Returns each agent's reply in the reference's format. A reply that is a single move also has its `move` at
/// the top level.
fn agent_actions(epoch: &EpochLine, ids: &[String]) -> Result<Vec<Value>, serde_json::Error> {
    let lists: Vec<Option<Vec<Value>>> = match &epoch.actions {
        Some(actions) => serde_json::from_str(actions.get())?,
        None => vec![None; ids.len()],
    };
    let reply = |(list, id): (Option<Vec<Value>>, &String)| match list {
        None => json!({}),
        Some(list) => {
            let mut reply = json!({"agent_id": id, "actions": list});
            if let [only] = &list[..]
                && let Some(word) = only.get("move").and_then(Value::as_str)
            {
                reply["move"] = json!(word);
            }
            reply
        }
    };
    Ok(lists.into_iter().zip(ids).map(reply).collect())
}
