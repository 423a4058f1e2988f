//! Tests of the checker: a small correct history, and one variation for each kind of fault, which the checker must
//! find.

use std::collections::BTreeMap;
use std::time::Duration;

use expect_test::expect;
use serde_json::json;

use super::{
    Attempt, Delivery, FinalSession, FinalStanding, FinalState, History, ObservedMessage, Read, RequestOutcome,
    Subscription, Write, WriteOperation, check,
};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn attempt(ms: u64, node: usize, outcome: RequestOutcome) -> Attempt {
    Attempt { node, sent: at(ms), done: at(ms + 5), outcome }
}

fn accepted(body: &str) -> RequestOutcome {
    RequestOutcome::Accepted(body.to_owned())
}

fn refused() -> RequestOutcome {
    RequestOutcome::Refused("DUPLICATE_GUESS".to_owned())
}

fn write(key: &str, operation: WriteOperation, attempts: Vec<Attempt>) -> Write {
    Write { key: key.to_owned(), operation, attempts }
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn message(index: u64, from: &str, to: Option<&str>, content: &str) -> ObservedMessage {
    let at_ms = 1_000 + i64::try_from(index).expect("few");
    ObservedMessage { index, from: text(from), to: to.map(text), content: Some(text(content)), at_ms }
}

fn say(content: &str) -> WriteOperation {
    WriteOperation::Say { session: text("s"), from: text("inv_a"), to: None, content: text(content) }
}

fn guess(player: &str) -> WriteOperation {
    WriteOperation::Act { session: text("s"), from: text(player), method: text("guess"), content: text("1, 2") }
}

fn join(player: &str, user: &str) -> WriteOperation {
    WriteOperation::Join { invite: text(player), user: Some(text(user)) }
}

/// Returns a correct history of a session with two players, who chat, guess and get scores. One answer was lost, and
/// the client repeated the request on another node.
fn right() -> (History, FinalState) {
    let options = json!({ "range": [100, 1000] });
    let create = WriteOperation::create("psi", options.as_object().expect("an object"));
    let done = |ms: u64, body: &str| vec![attempt(ms, 0, accepted(body))];
    let writes = vec![
        write("create", create, done(0, r#"{"id":"s"}"#)),
        write("announce", WriteOperation::Announce { invite: text("inv_b") }, done(10, "{}")),
        write("join a", join("inv_a", "ada"), done(20, "{}")),
        write("join b", join("inv_b", "bob"), done(30, "{}")),
        write("join b again", join("inv_b", "eve"), vec![attempt(31, 1, refused())]),
        write(
            "hello",
            say("hello"),
            vec![attempt(40, 0, RequestOutcome::Unknown), attempt(50, 1, accepted(r#"{"index":1}"#))],
        ),
        write("lost", say("lost"), vec![attempt(40, 0, RequestOutcome::Unknown)]),
        write("unsent", say("unsent"), vec![attempt(40, 0, RequestOutcome::Unsent)]),
        write("world", say("world"), done(60, r#"{"index":2}"#)),
        write("guess a", guess("inv_a"), done(70, "{}")),
        write("guess b", guess("inv_b"), done(80, "{}")),
        write("guess b at another node", guess("inv_b"), vec![attempt(80, 1, refused())]),
        write(
            "late",
            WriteOperation::Act { session: text("s"), from: text("inv_a"), method: text("guess"), content: text("3") },
            done(90, "{}"),
        ),
    ];
    let chat = vec![message(1, "inv_a", None, "hello"), message(2, "inv_a", None, "world")];
    let log = vec![
        message(1, "operator", Some("inv_a"), "Your private set is: {1}."),
        message(2, "operator", Some("inv_b"), "Your private set is: {1}."),
        message(3, "inv_a", Some("operator"), "(guess) 1, 2"),
        message(4, "inv_b", Some("operator"), "(guess) 1, 2"),
        message(5, "operator", Some("inv_a"), "ERR_GAME_NOT_RUNNING: Game not running."),
    ];
    let read = |node: usize, ms: u64, from: u64, last: u64| Read {
        node,
        channel: text("s"),
        sent: at(ms),
        done: at(ms + 3),
        from,
        last,
    };
    let delivery = |message: &ObservedMessage| Delivery { node: 1, at: at(70), message: message.clone() };
    let subscription =
        Subscription { channel: text("s"), deliveries: chat.iter().map(delivery).collect(), ends: 1, whole: true };
    let history = History {
        writes,
        reads: vec![read(1, 52, 1, 0), read(1, 56, 1, 1), read(0, 70, 3, 2), read(2, 70, 1, 2)],
        subscriptions: vec![subscription],
        races: vec![[text("join b"), text("join b again")], [text("guess b"), text("guess b at another node")]],
    };
    let seen = FinalSession {
        challenge: text("psi"),
        options: BTreeMap::from([(text("range"), text("[100,1000]")), (text("setSize"), text("10"))]),
        status: text("ended"),
        abandoned: false,
        rated: true,
        invites: vec![text("inv_a"), text("inv_b")],
        players: vec![text("inv_a"), text("inv_b")],
        users: BTreeMap::from([(text("inv_a"), text("ada")), (text("inv_b"), text("bob"))]),
        scores: vec![[1.0, -1.0], [-1.0, 0.0]],
    };
    let board = [("ada", [1.0, -1.0]), ("bob", [-1.0, 0.0])]
        .map(|(user, means)| (text(user), FinalStanding { games: 1, means }));
    let final_state = FinalState {
        sessions: BTreeMap::from([(text("s"), seen)]),
        channels: BTreeMap::from([
            (text("s"), chat),
            (text("challenge_s"), log),
            (text("invites"), vec![message(1, "operator", None, "inv_b")]),
        ]),
        boards: BTreeMap::from([(text("psi"), BTreeMap::from(board))]),
        games: BTreeMap::from([(text("psi"), 1)]),
        listed: BTreeMap::from([(text("open"), 0), (text("active"), 0), (text("ended"), 1)]),
        histories: BTreeMap::from([(text("ada"), 1), (text("bob"), 1)]),
        mended: Vec::new(),
    };
    (history, final_state)
}

/// Checks the kinds of the faults found after a change to the correct history.
#[track_caller]
fn planted(expected: &str, plant: impl FnOnce(&mut History, &mut FinalState)) {
    let (mut history, mut final_state) = right();
    plant(&mut history, &mut final_state);
    let mut kinds: Vec<String> =
        check(&history, &final_state).iter().map(|fault| format!("{:?}", fault.kind)).collect();
    kinds.sort_unstable();
    assert_eq!(kinds.join(" "), expected);
}

fn write_of<'h>(history: &'h mut History, key: &str) -> &'h mut Write {
    history.writes.iter_mut().find(|write| write.key == key).expect("a write with this key")
}

fn channel<'p>(final_state: &'p mut FinalState, name: &str) -> &'p mut Vec<ObservedMessage> {
    final_state.channels.get_mut(name).expect("a channel with this name")
}

fn session(final_state: &mut FinalState) -> &mut FinalSession {
    final_state.sessions.get_mut("s").expect("the session s")
}

/// Appends a copy of a message as the next message.
fn repeat(messages: &mut Vec<ObservedMessage>, at: usize) {
    let index = messages.len() as u64 + 1;
    messages.push(ObservedMessage { index, at_ms: 2_000, ..messages[at].clone() });
}

#[test]
fn a_correct_history_has_no_faults() {
    planted("", |_, _| {});
    // A write with an unknown outcome may have happened.
    planted("Stream", |_, final_state| channel(final_state, "s").push(message(3, "inv_a", None, "lost")));
    planted("", |history, final_state| {
        channel(final_state, "s").push(message(3, "inv_a", None, "lost"));
        history.subscriptions[0].whole = false;
    });
}

#[test]
fn missing_effects_of_acknowledged_writes_are_found() {
    planted("Lost Misplaced Stream", |_, final_state| drop(channel(final_state, "s").pop()));
    planted("Lost", |_, final_state| drop(channel(final_state, "invites").pop()));
    planted("Lost", |_, final_state| drop(channel(final_state, "challenge_s").pop()));
    planted("Invented Lost", |_, final_state| {
        channel(final_state, "challenge_s")[2].content = Some(text("(guess) 3, 4"))
    });
    planted("Invented Lost", |_, final_state| {
        let other = BTreeMap::from([(text("range"), text("[100,1001]"))]);
        session(final_state).options = other;
    });
    planted("Lost Miscounted Miscounted RaceUndecided", |_, final_state| {
        drop(session(final_state).users.remove("inv_b"))
    });
}

#[test]
fn doubled_writes_are_found() {
    planted("Doubled", |history, final_state| {
        repeat(channel(final_state, "s"), 0);
        history.subscriptions[0].whole = false;
    });
    planted("Doubled", |_, final_state| repeat(channel(final_state, "invites"), 0));
    planted("Doubled", |_, final_state| repeat(channel(final_state, "challenge_s"), 2));
    planted("Doubled", |_, final_state| repeat(channel(final_state, "challenge_s"), 4));
    planted("Doubled Miscounted", |_, final_state| {
        let again = FinalSession { players: Vec::new(), status: text("open"), ..session(final_state).clone() };
        final_state.sessions.insert(text("t"), again);
    });
    // A write with an unknown outcome happens at most once.
    planted("Doubled", |history, final_state| {
        channel(final_state, "s").extend([message(3, "inv_a", None, "lost"), message(4, "inv_a", None, "lost")]);
        history.subscriptions[0].whole = false;
    });
}

#[test]
fn effects_of_refused_or_unsent_writes_are_found() {
    planted("RefusedButThere Stream", |_, final_state| {
        channel(final_state, "s").push(message(3, "inv_a", None, "unsent"))
    });
    planted("Invented Stream", |_, final_state| channel(final_state, "s").push(message(3, "inv_b", None, "hello")));
    planted("Invented", |_, final_state| channel(final_state, "invites").push(message(2, "operator", None, "inv_a")));
    planted("Invented", |history, _| history.writes.retain(|write| !write.key.starts_with("join a")));
    planted("RefusedButThere", |history, _| write_of(history, "guess a").attempts[0].outcome = refused());
}

#[test]
fn a_repetition_that_is_answered_otherwise_is_found() {
    planted("AnsweredOtherwise", |history, _| {
        write_of(history, "create").attempts.push(attempt(90, 2, accepted(r#"{"id":"t"}"#)))
    });
    planted("AnsweredOtherwise", |history, _| write_of(history, "join b").attempts.push(attempt(90, 2, refused())));
}

#[test]
fn a_wrong_index_in_an_answer_is_found() {
    planted("Misplaced", |history, _| write_of(history, "world").attempts[0].outcome = accepted(r#"{"index":1}"#));
}

#[test]
fn a_race_without_exactly_one_winner_is_found() {
    // Both joins were acknowledged.
    planted("Lost RaceUndecided Seats", |history, _| {
        write_of(history, "join b again").attempts[0].outcome = accepted("{}")
    });
    // Both guesses were accepted.
    planted("RaceUndecided", |history, final_state| {
        write_of(history, "guess b at another node").attempts[0].outcome = accepted("{}");
        repeat(channel(final_state, "challenge_s"), 3);
    });
    // Both guesses were refused.
    planted("Gap RaceUndecided", |history, final_state| {
        write_of(history, "guess b").attempts[0].outcome = refused();
        drop(channel(final_state, "challenge_s").remove(3));
    });
    // The same move in two races, each with one winner; then one race has both, and the other none.
    let twice = |history: &mut History, final_state: &mut FinalState, outcomes: [RequestOutcome; 4]| {
        repeat(channel(final_state, "challenge_s"), 3);
        let keys = ["guess b", "guess b at another node", "again", "again at another node"];
        for (key, outcome) in keys.into_iter().zip(outcomes) {
            history.writes.retain(|write| write.key != key);
            history.writes.push(write(key, guess("inv_b"), vec![attempt(80, 1, outcome)]));
        }
        history.races.push([text(keys[2]), text(keys[3])]);
    };
    planted("", |history, final_state| {
        twice(history, final_state, [accepted("{}"), refused(), refused(), accepted("{}")])
    });
    planted("RaceUndecided", |history, final_state| {
        twice(history, final_state, [accepted("{}"), accepted("{}"), refused(), refused()])
    });
    // Both guesses were acknowledged, and one was accepted.
    planted("Lost", |history, _| write_of(history, "guess b at another node").attempts[0].outcome = accepted("{}"));
}

#[test]
fn seats_that_contradict_each_other_are_found() {
    planted("Miscounted Miscounted Miscounted Miscounted Miscounted Seats Stream", |_, final_state| {
        session(final_state).status = text("open")
    });
    planted("Seats", |_, final_state| session(final_state).invites[1] = text("inv_c"));
    planted("Doubled Lost Miscounted Miscounted RaceUndecided Seats", |_, final_state| {
        session(final_state).players[1] = text("inv_a")
    });
}

#[test]
fn gaps_and_disorder_of_indexes_or_times_are_found() {
    planted("Gap", |_, final_state| channel(final_state, "challenge_s")[4].index = 6);
    planted("Gap TimeWentBack", |_, final_state| channel(final_state, "challenge_s").swap(0, 1));
    planted("TimeWentBack", |_, final_state| channel(final_state, "challenge_s")[1].at_ms = 7);
}

#[test]
fn a_read_of_the_past_is_found() {
    // The read shows less than another node acknowledged to another client.
    planted("ReadWentBack", |history, _| history.reads[1].last = 0);
    // The read shows less than another reader has seen.
    planted("ReadWentBack", |history, _| {
        let later = Read { sent: at(90), done: at(91), last: 1, ..history.reads[1].clone() };
        history.reads.push(later);
    });
    // The read lacks the message of an acknowledged action.
    planted("ReadWentBack", |history, _| {
        let log =
            Read { channel: text("challenge_s"), sent: at(90), done: at(91), last: 2, ..history.reads[0].clone() };
        history.reads.push(log);
    });
    // The read was sent before the acknowledgment came.
    planted("", |history, _| history.reads[1].sent = at(54));
}

#[test]
fn a_stream_that_skips_repeats_disorders_or_changes_is_found() {
    planted("Stream", |history, _| drop(history.subscriptions[0].deliveries.remove(0)));
    planted("Stream", |history, _| drop(history.subscriptions[0].deliveries.pop()));
    planted("Stream", |history, _| history.subscriptions[0].deliveries.swap(0, 1));
    planted("Stream", |history, _| {
        let again = history.subscriptions[0].deliveries[1].clone();
        history.subscriptions[0].deliveries.push(again);
    });
    planted("Stream", |history, _| history.subscriptions[0].deliveries[1].message.content = Some(text("word")));
    planted("Stream", |history, _| history.subscriptions[0].ends = 0);
    planted("Stream", |history, _| history.subscriptions[0].ends = 2);
    // The checker can't compare the text of a redacted message.
    planted("", |history, _| history.subscriptions[0].deliveries[1].message.content = None);
}

#[test]
fn a_game_that_counts_twice_or_never_is_found() {
    let board = |final_state: &mut FinalState, games: u64| {
        let board = final_state.boards.get_mut("psi").expect("the board of psi");
        board.get_mut("ada").expect("the row of ada").games = games;
    };
    planted("Miscounted", |_, final_state| board(final_state, 2));
    planted("Miscounted", |_, final_state| {
        final_state.boards.get_mut("psi").expect("the board of psi").retain(|user, _| user == "ada")
    });
    planted("Miscounted", |_, final_state| final_state.games = BTreeMap::from([(text("psi"), 2)]));
    planted("Miscounted", |_, final_state| final_state.games.clear());
    planted("Miscounted", |_, final_state| session(final_state).scores[1] = [1.0, 1.0]);
    planted("Miscounted", |_, final_state| final_state.listed.extend([(text("ended"), 2)]));
    planted("Miscounted", |_, final_state| final_state.histories.extend([(text("ada"), 2)]));
    planted("Mended", |_, final_state| final_state.mended.push(text("ada")));
    // A session that ended because of inactivity isn't counted.
    planted("", |_, final_state| {
        session(final_state).abandoned = true;
        final_state.boards.clear();
        final_state.games.clear();
    });
}

#[test]
fn the_final_state_is_parsed_from_answers() {
    let export = concat!(
        r#"{"kind":"user","userId":"ada"}"#,
        "\n",
        r#"{"kind":"session","id":"s","challengeType":"psi","options":{"setSize":10},"rated":true,"invites":["inv_a","inv_b"],"state":{"status":"ended","scores":[{"security":1.0,"utility":-1.0},{"security":0.0,"utility":0.0}],"players":["inv_b","inv_a"],"playerIdentities":{"inv_a":"ada"}}}"#,
        "\n",
        r#"{"kind":"message","channel":"challenge_s","from":"inv_a","to":"operator","content":"(guess) 1","index":1,"timestamp":7,"type":"guess"}"#,
        "\n",
    );
    let mut final_state = FinalState::of_export(export);
    final_state.take_boards(
        "psi",
        &json!({ "average": [{ "playerId": "ada", "gamesPlayed": 1,
        "metrics": { "average:security": 0.0, "average:utility": 0.0 }, "intervals": {} }] }),
    );
    final_state.take_stats(&json!({ "challenges": { "psi": { "gamesPlayed": 1 }, "chess": { "gamesPlayed": 0 } } }));
    assert_eq!(final_state.right_board("psi"), final_state.boards["psi"]);
    assert_eq!(final_state.right_games(), final_state.games);
    expect![[r#"{"challenge_s": [ObservedMessage { index: 1, from: "inv_a", to: Some("operator"), content: Some("(guess) 1"), at_ms: 7 }], "s": []}"#]]
        .assert_eq(&format!("{:?}", final_state.channels));
}
