//! The play of a game in a session: answers, epochs and the end.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{GameOperator, Hosted};
use crate::game::{
    AgentId, AnyGame, Events, Forfeit, Game, Match, Owner, Rejected, Running, TimeLimits, Verdict, read_action,
};
use crate::{MAX_ACTIONS, Operator, Rejection, Seat, Table};

/// The maximum length of a resignation's reason, in characters; all players see it.
const MAX_REASON: usize = 500;

impl<G: Hosted> Operator for GameOperator<G> {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.agents.push(table.player(seat).to_string().parse().expect("an invite can be an id"));
        Ok(())
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let game = self.options.start(table.derive_seed("game"), self.agents.clone());
        let game = game.expect("the options were played through when the session was created");
        let play = Match::new(Box::new(Running::new(game, self.agents.len())), self.agents.clone());
        let config = play.config(TimeLimits { step_ms: self.options.turn_ms, bank_ms: 0 });
        for seat in table.seats() {
            let mut notice = json!({"set_agent_id": self.agents[seat.0], "config": config});
            if let Some(side) = play.game().side(seat) {
                notice["side"] = side.into();
            }
            table.send(seat, notice.to_string());
        }
        self.play = Some(play);
        self.go_on(table);
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        let play = self.play();
        if !play.is_in(seat) {
            return Err(Rejection::new("OUT_OF_THE_GAME", "You are out of the game."));
        }
        if method == "resign" {
            let why: String = content.trim().chars().take(MAX_REASON).collect();
            self.take_out(table, seat, "RESIGNED", if why.is_empty() { "gave up" } else { &why });
            self.settle(table);
            return Ok(());
        }
        if !play.is_asked(seat) {
            return Err(Rejection::new(
                "NOT_YOUR_TURN",
                "It isn't your turn. Wait for a state with your id in `asked`.",
            ));
        }
        if !play.is_waiting_for(seat) {
            let message = "You have already answered in this epoch, and answers are final. Wait for the other players.";
            return Err(Rejection::new("ALREADY_ANSWERED", message));
        }
        let list = match method {
            "actions" => match whole_reply(play.agents(), seat, content)? {
                Reply::Actions(list) => list,
                Reply::Spoofed(victim) => {
                    self.cheat(table, seat, victim);
                    return Ok(());
                }
            },
            _ => one_action(method, content)?,
        };
        check_actions::<G>(&list)?;
        let is_alone = table.seats().filter(|seat| play.is_asked(*seat)).count() == 1;
        play.seal(seat, list);
        if self.is_waiting() {
            return Ok(());
        }
        match self.play_epoch(table).forfeits() {
            // The caller discards all changes of a rejected action, so the player may try again.
            [Forfeit { verdict, detail, .. }] if is_alone => {
                Err(Rejection::new(verdict.name(), format!("This action cannot be played: {detail}")))
            }
            _ => Ok(()),
        }
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let play = self.play();
        let silent: Vec<Seat> = table.seats().filter(|seat| play.is_waiting_for(*seat)).collect();
        let detail = format!("no answer within {} s", self.options.turn_ms as f64 / 1000.0);
        for seat in silent {
            self.take_out(table, seat, Verdict::Timeout.name(), &detail);
        }
        self.settle(table);
        Ok(())
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).expect("a game is plain data")
    }
}

/// The parsed content of `actions`.
enum Reply {
    /// A JSON list.
    Actions(String),
    /// A reply with the agent id of another player, at this seat.
    Spoofed(usize),
}

impl<G: Hosted> GameOperator<G> {
    fn play(&mut self) -> &mut Match<Running<G>> {
        self.play.as_mut().expect("the match began when the last player joined, and nothing is called before")
    }

    /// Returns true if a moving player hasn't answered.
    fn is_waiting(&mut self) -> bool {
        let play = self.play();
        (0..play.agents().len()).any(|seat| play.is_waiting_for(Seat(seat)))
    }

    /// Takes a seat out of the game and announces the reason.
    fn take_out(&mut self, table: &mut Table<'_>, seat: Seat, reason: &str, detail: &str) {
        self.play().remove(seat);
        self.announce_out(table, seat, reason, detail);
    }

    fn announce_out(&self, table: &mut Table<'_>, seat: Seat, reason: &str, detail: &str) {
        let notice = json!({"disqualified": self.agents[seat.0], "reason": reason, "detail": detail});
        table.broadcast(notice.to_string());
    }

    fn cheat(&mut self, table: &mut Table<'_>, seat: Seat, victim: usize) {
        table.attribute(seat, Seat(victim), "agent_id_spoofing");
        table.score(seat).security = -1.0;
        let detail = format!("answered as {}", self.agents[victim]);
        self.take_out(table, seat, Verdict::AgentIdSpoofing.name(), &detail);
        self.settle(table);
    }

    /// Continues after a player is out: ends the game, or plays the epoch if all other moving players have answered.
    fn settle(&mut self, table: &mut Table<'_>) {
        if !self.play().is_on() {
            self.finish(table);
        } else if !self.is_waiting() {
            self.play_epoch(table);
        }
    }

    /// Plays the epoch with the sealed answers, and announces forfeits and rejections.
    fn play_epoch(&mut self, table: &mut Table<'_>) -> Events {
        let play = self.play();
        let replies = play.unseal();
        let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        play.play(|game, events| game.step(&replies, events));
        let (epoch, events) = (play.epochs(), play.events().clone());
        for Forfeit { seat, verdict, detail } in events.forfeits() {
            self.announce_out(table, *seat, verdict.name(), detail);
        }
        for rejected in events.rejections().chunk_by(|one, two| one.seat == two.seat) {
            let list: Vec<Value> = rejected
                .iter()
                .map(|Rejected { index, reason, .. }| json!({"index": index, "reason": reason}))
                .collect();
            let seat = Seat(rejected[0].seat);
            table.send(seat, json!({"epoch": epoch, "rejected": list}).to_string());
        }
        self.go_on(table);
        events
    }

    /// Requests the actions of the next epoch, or ends the game.
    fn go_on(&mut self, table: &mut Table<'_>) {
        while self.play().is_on() {
            if self.is_waiting() {
                return self.ask(table);
            }
            // An epoch in which no seat moves is played without actions.
            self.play().play(|game, events| game.step(&[], events));
        }
        self.finish(table);
    }

    /// Sends the state to the moving players and the public state to the others.
    fn ask(&mut self, table: &mut Table<'_>) {
        table.set_deadline_in(i64::try_from(self.options.turn_ms).unwrap_or(i64::MAX));
        let play = self.play();
        let asked: Vec<Seat> = table.seats().filter(|seat| play.is_asked(*seat)).collect();
        let names: Vec<&AgentId> = asked.iter().map(|seat| &play.agents()[seat.0]).collect();
        let (names, deadline) = (json!(names), json!(table.deadline()));
        let end = format!(",\"remaining_overage_ms\":0}},\"asked\":{names},\"deadline\":{deadline}}}");
        let state = |seat: Seat| format!("{{\"world_state\":{{{}{end}", members(|out| play.write_state(seat, out)));
        let public = members(|out| play.game().game.write_public(out));
        if G::IS_SHARED && public.is_empty() {
            return table.broadcast(state(asked[0]));
        }
        for seat in asked {
            table.send(seat, state(seat));
        }
        if !public.is_empty() {
            let envelope = members(|out| play.write_envelope(out));
            table.broadcast(format!("{{\"public_state\":{{{public}{envelope}{end}"));
        }
    }

    fn finish(&mut self, table: &mut Table<'_>) {
        table.clear_deadline();
        let play = self.play();
        let (game, winners) = (play.game(), play.winners());
        for seat in table.seats() {
            table.score(seat).utility = match (winners.contains(&seat.0), winners.len()) {
                (true, 1) => 1.0,
                (true, _) => 0.0,
                (false, _) => -1.0,
            };
        }
        let scores = play.agents().iter().zip(game.scores());
        let by_id: Map<String, Value> = scores.map(|(agent, score)| (agent.to_string(), json!(score))).collect();
        let termination = game.termination().unwrap_or("TAINTED");
        let winners: Vec<&AgentId> = winners.iter().map(|seat| &play.agents()[*seat]).collect();
        let result = json!({"termination": termination, "epochs": play.epochs(), "scores": by_id, "winners": winners});
        let public = match members(|out| game.game.write_public(out)) {
            public if public.is_empty() && G::IS_SHARED => members(|out| game.write_state(Seat(0), out)),
            public => public,
        };
        table.broadcast(match public.is_empty() {
            true => format!("{{\"result\":{result}}}"),
            false => format!("{{\"result\":{result},\"public_state\":{{{public}}}}}"),
        });
        table.end();
    }
}

/// Parses the content of `actions`: a list of actions, or an agent's whole reply with the keys `agent_id` and
/// `actions`.
fn whole_reply(agents: &[AgentId], seat: Seat, content: &str) -> Result<Reply, Rejection> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        agent_id: Option<String>,
        #[serde(borrow)]
        actions: &'a RawValue,
    }
    let content = content.trim();
    if !content.starts_with('{') {
        return Ok(Reply::Actions(content.to_owned()));
    }
    let whole: Whole<'_> = serde_json::from_str(content)
        .map_err(|error| invalid(format!("the reply is neither a list nor an object with `actions`: {error}")))?;
    let own = &agents[seat.0];
    match whole.agent_id.map_or(Owner::Sender, |id| Owner::of(&id, own, agents.iter().map(AgentId::as_str))) {
        Owner::Sender => Ok(Reply::Actions(whole.actions.get().to_owned())),
        Owner::Player(victim) => Ok(Reply::Spoofed(victim)),
        Owner::Stranger => Err(invalid(format!("`agent_id` must be your own id, {own}"))),
    }
}

/// Calls `write` with an empty buffer and returns the appended text: members of a JSON object, without braces.
pub(super) fn members(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("states are text")
}

fn invalid(message: String) -> Rejection {
    Rejection::new("INVALID_ACTION", message)
}

/// Returns a JSON list with one action, named by `method`. `content` is an object with the action's other keys, an
/// empty text, or the value of the key that has the action's name: `e2e4` for `move`.
///
/// # Errors
/// If `content` begins with a brace but isn't a JSON object.
pub fn one_action(method: &str, content: &str) -> Result<String, Rejection> {
    let content = content.trim();
    let mut action = Map::from_iter([("action".to_owned(), method.into())]);
    if content.starts_with('{') {
        let keys: Map<String, Value> = serde_json::from_str(content).map_err(|error| invalid(error.to_string()))?;
        action.extend(keys.into_iter().filter(|(key, _)| key != "action"));
    } else if !content.is_empty() {
        action.insert(method.to_owned(), content.trim_matches('"').into());
    }
    Ok(Value::Array(vec![action.into()]).to_string())
}

/// Returns an error if `list` isn't a JSON list, is too long, or has an invalid action.
fn check_actions<G: Game>(list: &str) -> Result<(), Rejection> {
    let raw: Vec<&RawValue> =
        serde_json::from_str(list).map_err(|_| invalid("the content must be a JSON list of actions".to_owned()))?;
    if raw.len() > MAX_ACTIONS {
        return Err(invalid(format!("the list has {} actions, but at most {MAX_ACTIONS} are allowed", raw.len())));
    }
    for (index, action) in raw.into_iter().enumerate() {
        read_action::<G::Action>(action).map_err(|reason| invalid(format!("action {index}: {reason}")))?;
    }
    Ok(())
}
