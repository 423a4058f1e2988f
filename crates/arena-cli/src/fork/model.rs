//! A language model on a seat of a fork. It reads the whole past of its seat first, then plays as in `arena play`.

use std::sync::Arc;
use std::time::Duration;

use arena_house::Step;
use arena_llm::prompt::{self, Fence, Heard, Seating, Want};
use arena_llm::{
    CallResult, Client, Endpoint, EndpointError, Finish, History, ModelAddress, Pacer, Params, Question, Reply, Tool,
    Turn, around, ask, request_bytes,
};
use arena_model::{ChallengeMetadata, ChatMessage, MemorySession, Seat};
use arena_players::{Answer, Answering, Halt, Player, SeatEnd, StepResult};

use crate::client::random_hex;
use crate::exit::{Exit, Failure};

/// The maximum number of tokens of a request.
const CONTEXT_TOKENS: u64 = 100_000;

/// The time to retry a failing endpoint.
const PATIENCE: Duration = Duration::from_secs(600);

/// The number of characters in the mark of a fence.
const MARK: usize = 12;

/// The number of consecutive answers without a valid tool call after which the model isn't asked any more.
const IDLE_ANSWERS: u32 = 5;

/// The remark for a model that waits although nothing happens.
const REMINDER: &str = "There are no new messages, and the game ends soon if no player acts. Act now by calling a tool \
                        of the rules, or wait again.";

pub struct ForkModel {
    model: String,
    endpoint: Endpoint,
    client: Client,
    pacer: Arc<Pacer>,
    metadata: ChallengeMetadata,
    names: Vec<String>,
    you: String,
    fence: Fence,
    system: String,
    tools: Vec<Tool>,
    params: Params,
    history: History,
    /// The number of messages that the model has received.
    read: usize,
    /// The last answer, and the fate of each tool call.
    pending: Option<(Reply, Vec<CallFate>)>,
    idle: u32,
}

/// The result of a tool call before its step is taken.
enum CallFate {
    Step,
    Done,
    Wrong(String),
}

impl ForkModel {
    /// Prepares the requests of a model. No request is sent yet.
    ///
    /// # Errors
    /// If the model's key is missing.
    pub fn connect(address: &ModelAddress, session: &MemorySession, seat: Seat) -> Result<ForkModel, Failure> {
        let usage = |why: String| Failure::new(Exit::Usage, why);
        let key = address.key().map_err(|error| match error {
            EndpointError::NoKey(name, _) => usage(format!("{name} isn't set; set it to the key of {}", address.base)),
            error => usage(error.to_string()),
        })?;
        let endpoint = Endpoint::new(address.api, &address.base, key).map_err(|error| usage(error.to_string()))?;
        let metadata = session.challenge().metadata_with(&session.session().facts.options).into_owned();
        let fence = Fence::of(&random_hex()?[..MARK]);
        let mut model = ForkModel {
            model: address.model.clone(),
            endpoint,
            client: Client::new(),
            pacer: Pacer::new(1),
            tools: prompt::tools(&metadata.methods),
            metadata,
            names: session.names().to_vec(),
            you: session.names()[seat.0].clone(),
            fence,
            system: String::new(),
            params: Params::default(),
            history: History::of(CONTEXT_TOKENS),
            read: 0,
            pending: None,
            idle: 0,
        };
        model.system = prompt::system(&model.seating(), &model.fence);
        Ok(model)
    }

    fn seating(&self) -> Seating<'_> {
        Seating {
            challenge: &self.metadata.name,
            rules: &self.metadata.prompt,
            methods: &self.metadata.methods,
            players: self.metadata.players,
            names: &self.names,
            you: &self.you,
        }
    }

    /// Adds the new messages of other players and the operator to the conversation. Messages before the fork include
    /// the recorded ones of this seat, which the model takes over.
    fn hear(&mut self, session: &MemorySession, seat: Seat, is_reminded: bool) {
        let is_past = self.history.turns().is_empty();
        let is_own = |message: &ChatMessage| session.seat_of(&message.from) == Some(seat);
        let news: Vec<(String, Option<String>, String)> = session.messages()[self.read..]
            .iter()
            .filter(|message| session.is_readable(message, seat) && (is_past || !is_own(message)))
            .map(|message| {
                (message.from.to_string(), message.to.as_ref().map(ToString::to_string), message.content.clone())
            })
            .collect();
        self.read = session.messages().len();
        let heard: Vec<Heard<'_>> =
            news.iter().map(|(from, to, content)| Heard { from, to: to.as_deref(), content }).collect();
        let mut text = prompt::news(&self.seating(), &self.fence, &heard, self.history.turns());
        if is_reminded && heard.is_empty() {
            text += REMINDER;
        }
        if !text.is_empty() {
            self.history.push(Turn::Told(text), heard.iter().any(|message| message.from == "operator"));
        }
    }

    async fn ask(&mut self) -> Result<Reply, Halt> {
        self.history.shorten(around(&self.system, &self.tools));
        let question = Question {
            model: &self.model,
            system: &self.system,
            tools: &self.tools,
            turns: self.history.turns(),
            params: &self.params,
        };
        let body = request_bytes(self.endpoint.api(), self.endpoint.tool_use(), &question);
        let mut on_retry = |_: &arena_llm::Retry| true;
        match ask(&self.client, &self.endpoint, &self.pacer, &body, PATIENCE, &mut on_retry).await {
            Ok(received) => {
                let usage = received.reply.usage;
                if !usage.is_estimated {
                    self.history.learn(received.request_bytes, usage.input);
                }
                Ok(received.reply)
            }
            Err(fault) => Err(Halt::Suspended {
                agent: self.model.clone(),
                class: fault.class.name().to_owned(),
                why: fault.sentence,
            }),
        }
    }

    /// Adds the last answer and the results of its calls to the conversation.
    fn conclude(&mut self, results: &[StepResult]) {
        let Some((reply, fates)) = self.pending.take() else { return };
        let mut results = results.iter();
        let outcomes: Vec<CallResult> = reply
            .calls
            .iter()
            .zip(fates)
            .map(|(call, fate)| {
                let refusal = match fate {
                    CallFate::Done => None,
                    CallFate::Wrong(why) => Some(why),
                    CallFate::Step => match results.next() {
                        Some(Ok(())) => None,
                        Some(Err(why)) => Some(why.clone()),
                        None => Some("the game has ended".to_owned()),
                    },
                };
                let is_error = refusal.is_some();
                let text = refusal.map_or_else(|| "done".to_owned(), |why| format!("refused: {why}"));
                CallResult { id: call.id.clone(), text, is_error }
            })
            .collect();
        self.history.push(Turn::Answered(reply), false);
        if !outcomes.is_empty() {
            self.history.push(Turn::Results(outcomes), false);
        }
    }

    async fn next(&mut self, heard: arena_players::Heard<'_>) -> Result<Answer, Halt> {
        let silent = || Ok(Answer::Steps { steps: Vec::new(), waits: true, call: None });
        if self.idle >= IDLE_ANSWERS {
            return silent();
        }
        self.hear(heard.session, heard.seat, heard.is_reminded);
        let reply = self.ask().await?;
        if reply.calls.is_empty() && reply.finish != Finish::Done {
            // A refused or truncated answer may be empty, which the APIs don't accept as a part of the history.
            self.idle += 1;
            return silent();
        }
        let (mut steps, mut fates, mut waits) = (Vec::new(), Vec::new(), false);
        for call in &reply.calls {
            fates.push(match Want::read(&self.seating(), call) {
                Ok(Want::Wait) => {
                    waits = true;
                    CallFate::Done
                }
                Ok(Want::Act(method, content)) => {
                    steps.push(Step::Act { method, content });
                    CallFate::Step
                }
                Ok(Want::Say(content, to)) => {
                    steps.push(Step::Say { content, to });
                    CallFate::Step
                }
                Err(why) => CallFate::Wrong(why),
            });
        }
        self.idle = if steps.is_empty() && !waits { self.idle + 1 } else { 0 };
        self.pending = Some((reply, fates));
        Ok(Answer::Steps { steps, waits, call: None })
    }
}

impl Player for ForkModel {
    fn answer<'a>(&'a mut self, heard: arena_players::Heard<'a>) -> Answering<'a> {
        Box::pin(self.next(heard))
    }

    fn learn(&mut self, _steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
        self.conclude(results);
        None
    }
}
