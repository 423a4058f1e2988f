//! Formats the answers of a server about sessions as tables and lines for people. A function returns `None` for an
//! answer of unexpected structure, which is then printed as JSON. The functions are pure.

use serde_json::Value;

use crate::output::{Table, counted, one_line, printable, utc};

/// Formats all challenge types, the answer to `GET /api/metadata`.
pub fn challenge_types(answer: &Value) -> Option<String> {
    let mut table = Table::new(&["challenge", "players", "name", "description"]);
    for (id, metadata) in answer.as_object()? {
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        table.row([id.clone(), metadata["players"].as_u64()?.to_string(), text("name"), text("description")]);
    }
    Some(table.right([1]).to_string())
}

pub fn challenge_type(answer: &Value) -> Option<String> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let (name, players) = (answer["name"].as_str()?, answer["players"].as_u64()?);
    let mut output = format!("{name}, for {players} players\n\n{}\n", answer["prompt"].as_str()?.trim());
    let mut methods = Table::new(&["method", "description"]);
    for method in answer["methods"].as_array()? {
        methods.row([text(method, "name"), text(method, "description")]);
    }
    output = format!("{}\n{methods}\n", printable(&output));
    let options = answer["options"].as_array().map_or(&[][..], Vec::as_slice);
    if !options.is_empty() {
        let mut table = Table::new(&["option", "type", "default", "least", "most", "description"]);
        for option in options {
            let value = |name: &str| option.get(name).map(Value::to_string).unwrap_or_default();
            table.row([
                text(option, "name"),
                text(option, "type"),
                value("default"),
                value("minimum"),
                value("maximum"),
                text(option, "description"),
            ]);
        }
        output += &format!("\n{table}\n");
    }
    Some(output)
}

pub fn sessions(answer: &Value) -> Option<String> {
    let listed = answer["challenges"].as_array()?;
    let mut table = Table::new(&["session", "challenge", "status", "players", "created", "security", "utility"]);
    for session in listed {
        let state = &session["state"];
        let abandoned = if state["abandoned"] == true { ", abandoned" } else { "" };
        let (joined, seats) = (state["players"].as_array()?.len(), session["invites"].as_array()?.len());
        let scores = |name: &str| {
            let scores = state["scores"].as_array().map_or(&[][..], Vec::as_slice);
            scores.iter().map(|score| score[name].to_string()).collect::<Vec<_>>().join(", ")
        };
        table.row([
            session["id"].as_str()?.to_owned(),
            session["challengeType"].as_str()?.to_owned(),
            format!("{}{abandoned}", state["status"].as_str()?),
            format!("{joined} of {seats}"),
            session["createdAt"].as_i64().map(utc).unwrap_or_default(),
            scores("security"),
            scores("utility"),
        ]);
    }
    let (total, offset) = (answer["total"].as_u64()?, answer["offset"].as_u64()?);
    if listed.is_empty() {
        return Some(format!("no sessions on this page ({total} in total)"));
    }
    let last = offset + listed.len() as u64;
    Some(format!("{table}\n{} to {last} of {}", offset + 1, counted(total, "session")))
}

pub fn created(answer: &Value) -> Option<String> {
    let id = answer["id"].as_str()?;
    let mut text = format!("session {id} of {}", answer["challengeType"].as_str()?);
    for invite in answer["invites"].as_array()? {
        text += &format!("\narena play {}", invite.as_str()?);
    }
    text += "\nEach command takes one seat; give each player one of the invites.";
    // Other arenas may have no keys of creators.
    if let Some(key) = answer["creatorKey"].as_str() {
        text += &format!(
            "\n\ncreator's key {key}\nThe key is printed only here. Keep it secret: it cancels and unlists the session, and \
             lists its free invites.\narena session invites {id} --creator-key {key}"
        );
    }
    Some(printable(&text).into_owned())
}

pub fn joined(answer: &Value, invite: &str) -> Option<String> {
    let (session, challenge) = (answer["ChallengeID"].as_str()?, &answer["ChallengeInfo"]);
    let (line, option) = match answer["sessionKey"].as_str() {
        Some(key) => (format!("session key {key}\n"), format!(" --auth {key}")),
        None => (String::new(), String::new()),
    };
    let text = format!(
        "you have joined session {session}\n{line}\
         arena challenges sync {session} --from {invite}{option}\n\
         arena play --from {invite}{option}\n\n"
    );
    Some(printable(&text).into_owned() + &challenge_type(challenge)?)
}

/// Formats messages of a channel; each begins on a new line.
pub fn messages(answer: &Value) -> Option<String> {
    let mut log = String::new();
    for message in answer["messages"].as_array()? {
        let to = message["to"].as_str().map(|to| format!(" to {to}")).unwrap_or_default();
        let time = message["timestamp"].as_f64().map(|ms| utc(ms as i64)).unwrap_or_default();
        let head = format!("{}  {time}  {}{to}", message["index"].as_u64()?, message["from"].as_str()?);
        log += &one_line(&head);
        if message["redacted"] == true {
            log += "  (private)\n";
            continue;
        }
        // Continuation lines are indented, so that no message can imitate the beginning of another one.
        let content = printable(message["content"].as_str()?).into_owned();
        log += &format!(": {}\n", content.trim_end().replace('\n', "\n    "));
    }
    Some(if log.is_empty() { "no messages".to_owned() } else { log })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn no_message_passes_for_another() {
        let page = json!({"messages": [
            {"index": 1, "timestamp": 0, "from": "operator", "to": "inv_1", "content": "", "redacted": true},
            {"index": 2, "timestamp": 1000, "from": "inv_1", "content": "hello\n3  1970-01-01 00:00:02Z  operator: you win\u{1b}[2J\u{9b}"},
        ], "count": 2});
        expect![[r#"
            1  1970-01-01 00:00:00Z  operator to inv_1  (private)
            2  1970-01-01 00:00:01Z  inv_1: hello
                3  1970-01-01 00:00:02Z  operator: you win\u{1b}[2J\u{9b}
        "#]]
        .assert_eq(&messages(&page).unwrap());
        assert_eq!(messages(&json!({"messages": [], "count": 0})).unwrap(), "no messages");
        assert_eq!(messages(&json!([])), None);
    }

    #[test]
    fn a_creator_gets_the_key_with_its_purpose() {
        let session = json!({"id": "a", "challengeType": "psi", "invites": ["inv_1", "inv_2"], "creatorKey": "o_1"});
        expect![[r#"
            session a of psi
            arena play inv_1
            arena play inv_2
            Each command takes one seat; give each player one of the invites.

            creator's key o_1
            The key is printed only here. Keep it secret: it cancels and unlists the session, and lists its free invites.
            arena session invites a --creator-key o_1"#]]
        .assert_eq(&created(&session).unwrap());
        let other = json!({"id": "a", "challengeType": "psi", "invites": ["inv_1"]});
        assert!(!created(&other).unwrap().contains("key"));
    }

    #[test]
    fn sessions_are_listed_with_their_scores() {
        let page = json!({"challenges": [
            {"id": "a", "challengeType": "psi", "createdAt": 0, "invites": ["inv_1", "inv_2"],
             "state": {"status": "ended", "players": ["inv_1", "inv_2"], "abandoned": true, "scores": [{"security": 1, "utility": -1}, {"security": 0, "utility": 1}]}},
            {"id": "b", "challengeType": "psi", "createdAt": 0, "invites": ["inv_hidden", "inv_3"], "state": {"status": "open", "players": ["inv_3"], "scores": []}},
        ], "total": 9, "limit": 2, "offset": 4});
        expect![[r#"
            ┌──────────────────────────────────────────────────────────────────────────────────────────────┐
            │ session   challenge   status             players   created                security   utility │
            ╞══════════════════════════════════════════════════════════════════════════════════════════════╡
            │ a         psi         ended, abandoned   2 of 2    1970-01-01 00:00:00Z   1, 0       -1, 1   │
            │ b         psi         open               1 of 2    1970-01-01 00:00:00Z                      │
            └──────────────────────────────────────────────────────────────────────────────────────────────┘
            5 to 6 of 9 sessions"#]]
        .assert_eq(&sessions(&page).unwrap());
    }
}
