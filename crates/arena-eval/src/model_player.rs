//! A language model at a seat: the conversation, the calls and their classes of faults.
//!
//! A fault of the endpoint is never the model's: the game is suspended. The answers of the model decide all others:
//! truncated, refused, invalid and slow answers, and the limits of the harness.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arena_llm::prompt::Fence;
use arena_llm::{
    Api, Bound, Budget, Client, Endpoint, Exceeded, Fault, FaultClass, Pacer, Params, Prices, Received, Reservation,
    Retry, SeatModel, SeatRules, Spent, Usage, ask, request_bytes,
};
use arena_model::{MemorySession, Seed, hex};
use arena_players::{Called, Calling, Cause, Halt, Measured, ModelCalls, ModelPlayer, SeatEnd};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::calls::CallStore;
use crate::harness::Harness;
use crate::hash::sha256;
use crate::recorded::{Calls, RecordedCalls};
use crate::{CallLine, CallRecord, now};

/// The number of output tokens that a call without a limit reserves.
const USUAL_OUTPUT: u64 = 4096;

/// The number of consecutive rejected requests after which a model is paused. One game alone may have a request that an
/// endpoint rejects, such as a conversation that is too long for the model.
const MOST_REJECTED: u64 = 3;

/// The remedy of a request that is too long for the model.
const TOO_LONG: &str = "; lower history_tokens in the model's harness and resume with --accept-changed; without a change, \
                        the request isn't sent again";

/// The parts of a run that all players share.
pub(crate) struct RunContext {
    pub(crate) client: Client,
    pub(crate) calls: Calls,
    pub(crate) budget: Arc<Budget>,
    /// The time for which a failing endpoint is asked again.
    pub(crate) patience: Duration,
    /// The maximum cost of a seat, in US dollars.
    pub(crate) usd_per_seat: Option<f64>,
    /// True if no more calls may be sent.
    pub(crate) is_stopping: AtomicBool,
    pub(crate) counts: CallCounts,
}

/// The numbers of calls of this invocation.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
    /// The calls that were sent and answered.
    pub(crate) sent: AtomicU64,
    /// The calls that the store answered.
    pub(crate) cached: AtomicU64,
    /// The failed attempts.
    pub(crate) retries: AtomicU64,
}

/// A model of the run file.
pub(crate) struct SharedModel {
    /// The index in the run file.
    pub(crate) index: usize,
    /// The name in tables.
    pub(crate) name: String,
    /// The name at the endpoint.
    pub(crate) model: String,
    pub(crate) endpoint: Endpoint,
    /// The endpoint in the keys of calls. It is the base URL.
    pub(crate) address: String,
    pub(crate) params: Params,
    pub(crate) prices: Option<Prices>,
    pub(crate) pacer: Arc<Pacer>,
    /// One permit per open call.
    pub(crate) slots: Semaphore,
    pub(crate) paused: Mutex<Option<Pause>>,
    /// The last fault since the last answer, as a sentence with the address.
    pub(crate) failing: Mutex<Option<String>>,
    /// The number of answered calls of this invocation.
    pub(crate) sent: AtomicU64,
    /// The number of rejected requests since the last answer.
    pub(crate) rejected: AtomicU64,
}

/// The reason why a model isn't called any more in this invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pause {
    /// The name of the fault's class; `None` if the model's cap is reached.
    pub(crate) class: Option<String>,
    pub(crate) why: String,
}

impl SharedModel {
    /// Pauses the model. The first reason stays.
    fn pause(&self, pause: Pause) {
        self.paused.lock().get_or_insert(pause);
    }

    /// Pauses the model after a fault that ended a request. A rejected request pauses it only if the requests before
    /// were rejected too.
    fn note_fault(&self, class: FaultClass, why: &str) {
        if class != FaultClass::Rejected || self.rejected.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_REJECTED {
            self.pause(Pause { class: Some(class.name().to_owned()), why: why.to_owned() });
        }
    }

    /// Returns the error of a game that needs this model while it is paused.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        match self.paused.lock().as_ref() {
            None => Ok(()),
            Some(Pause { class: None, .. }) => Err(Halt::Stopped),
            Some(Pause { class: Some(class), why }) => {
                Err(Halt::Suspended { agent: self.name.clone(), class: class.clone(), why: why.clone() })
            }
        }
    }
}

pub(crate) struct ModelSeat {
    pub(crate) agent: String,
    /// The id of the game.
    pub(crate) game: String,
    pub(crate) seat: usize,
    pub(crate) seed: Seed,
}

/// The calls of a model at a seat, which are stored before their use.
pub(crate) struct StoredCalls {
    context: Arc<RunContext>,
    model: Arc<SharedModel>,
    harness: Arc<Harness>,
    agent: String,
    game: String,
    seat: usize,
    measured: Measured,
}

/// A request without an answer.
struct ModelRequest {
    key: String,
    /// The number of the answer in the game, from 1.
    number: u32,
    body: Vec<u8>,
    bound: Bound,
    /// True if the request limits its output. An endpoint's numbers above the bound aren't believed then.
    is_bounded: bool,
}

/// Seats a model in a game.
pub(crate) fn seat_model(
    context: &Arc<RunContext>,
    model: &Arc<SharedModel>,
    harness: &Arc<Harness>,
    rules: &Arc<SeatRules>,
    session: &MemorySession,
    at: ModelSeat,
) -> ModelPlayer<StoredCalls> {
    let ModelSeat { agent, game, seat, seed } = at;
    let fence = Fence::of_random(&hex::encode(&seed.derive(&format!("eval/fence/{seat}")).0));
    let names = session.names();
    let seated = SeatModel::new(Arc::clone(rules), names, &names[seat], fence, harness.policy())
        .with_system(|seating, fence| harness.system(seating, fence));
    let calls = StoredCalls {
        context: Arc::clone(context),
        model: Arc::clone(model),
        harness: Arc::clone(harness),
        agent,
        game,
        seat,
        measured: Measured::default(),
    };
    ModelPlayer::new(seated, calls)
}

impl ModelCalls for StoredCalls {
    fn call<'a>(&'a mut self, seat: &'a mut SeatModel) -> Calling<'a> {
        Box::pin(self.answer(seat))
    }

    fn measured(&self) -> Measured {
        self.measured
    }
}

impl StoredCalls {
    /// Returns the answer to the conversation so far, from the store or from the endpoint.
    async fn answer(&mut self, seat: &mut SeatModel) -> Result<Called, Halt> {
        let number = self.measured.calls + 1;
        let most_turns = self.harness.max_turns;
        if number > most_turns {
            let detail = format!("the model gave {most_turns} answers, the most that the harness allows");
            return Ok(Called::Ended(SeatEnd::new(Cause::Limit, detail)));
        }
        seat.prepare();
        let mut params = Cow::Borrowed(&self.model.params);
        if let Some(limit) = self.harness.truncated_retry.filter(|_| seat.is_truncated()) {
            params.to_mut().set_output_limit(limit);
        }
        let endpoint = &self.model.endpoint;
        let question = seat.question(&self.model.model, &params);
        let body = request_bytes(endpoint.api(), endpoint.tool_use(), &question);
        let limit = params.output_limit();
        let bound = Bound::of(&body, limit.unwrap_or(USUAL_OUTPUT), self.model.prices.as_ref());
        let sample = format!("{}/{}/{number}", self.game, self.seat);
        let key = call_key(&self.model.address, endpoint.api(), &body, &sample);
        let record = match self.context.calls.find(&key).map_err(broken)? {
            Some(CallLine::Call(record)) => {
                self.context.counts.cached.fetch_add(1, Ordering::Relaxed);
                if let Calls::Recorded(calls) = &self.context.calls {
                    self.note(calls, seat, number, &record);
                }
                record
            }
            Some(CallLine::Text { .. }) | None => {
                let request = ModelRequest { key, number, body, bound, is_bounded: limit.is_some() };
                let sent = match &self.context.calls {
                    Calls::Store(store) => self.send(store, seat, request).await?,
                    Calls::Recorded(calls) => Err(self.exceeded_cap(&request).ok_or_else(|| {
                        calls.miss(self.seat, number);
                        Halt::Stopped
                    })?),
                };
                match sent {
                    Ok(record) => record,
                    Err(cap) => {
                        let detail = format!("the seat's cap of {cap} US dollars is reached");
                        return Ok(Called::Ended(SeatEnd::new(Cause::Limit, detail)));
                    }
                }
            }
        };
        let paid = self.context.calls.paid(&record.key);
        let measured = &mut self.measured;
        measured.calls = number;
        measured.retries += record.retries.len() as u32;
        measured.has_lost |= paid.usage.is_estimated;
        measured.usage += record.reply.usage + Usage { is_estimated: false, ..paid.usage };
        measured.ms += record.ms;
        if let Some(usd) = record.usd {
            *measured.usd.get_or_insert(0.0) += usd + paid.usd;
        }
        let ms = record.ms.saturating_sub(record.first_byte_ms);
        if let Some(most) = self.harness.turn_seconds.filter(|most| ms > most.saturating_mul(1000)) {
            let detail = format!("an answer took longer than {most} s");
            return Ok(Called::Ended(SeatEnd::new(Cause::Timeout, detail)));
        }
        let counted = record.reported.is_none().then_some(record.request_bytes);
        Ok(Called::Answered { reply: record.reply, counted })
    }

    /// Sends a request, and stores its answer before the game uses it. Returns the seat's cap if the highest possible
    /// price exceeds it.
    async fn send(
        &self,
        store: &CallStore,
        seat: &SeatModel,
        request: ModelRequest,
    ) -> Result<Result<Box<CallRecord>, f64>, Halt> {
        let (context, model) = (&*self.context, &*self.model);
        self.check()?;
        let _slot = model.slots.acquire().await.map_err(|_| Halt::Stopped)?;
        if let Some(why) = store.refused(&request.key) {
            return Err(self.suspend(FaultClass::Rejected, why));
        }
        let mut retries: Vec<Retry> = Vec::new();
        let (mut received, reservation) = loop {
            self.check()?;
            if let Some(cap) = self.exceeded_cap(&request) {
                return Ok(Err(cap));
            }
            let reservation = self.reserve(&request.bound).await?;
            self.check()?;
            // Without an answer, another attempt needs a new reservation, which may have to wait for other calls.
            if let Some(received) = self.attempt(store, &request, &reservation, &mut retries).await? {
                break (received, reservation);
            }
        };
        model.rejected.store(0, Ordering::Relaxed);
        *model.failing.lock() = None;
        let counted = received.reply.usage;
        let usage = self.believe(&request, counted);
        received.reply.usage = usage;
        let record = Box::new(CallRecord {
            key: request.key,
            game: self.game.clone(),
            seat: Some(self.seat),
            number: request.number,
            agent: self.agent.clone(),
            model: model.model.clone(),
            harness: self.harness.sha256.clone(),
            system: store.add_text(seat.system()).map_err(broken)?,
            tools: store.add_text(seat.rules().tools_text()).map_err(broken)?,
            new: seat.new_turns().to_vec(),
            reply: received.reply,
            reported: (usage != counted).then_some(counted),
            usd: model.prices.as_ref().map(|prices| prices.cost(&usage)),
            first_byte_ms: received.first_byte_ms,
            ms: received.ms,
            request_bytes: received.request_bytes,
            retries,
            time: now(),
        });
        let line = CallLine::Call(record);
        let added = store.add(&line).map_err(broken);
        reservation.settle(Spent::of_call(usage, model.prices.as_ref()));
        added?;
        context.counts.sent.fetch_add(1, Ordering::Relaxed);
        model.sent.fetch_add(1, Ordering::Relaxed);
        match line {
            CallLine::Call(record) => Ok(Ok(record)),
            CallLine::Text { .. } => Err(Halt::Stopped),
        }
    }

    /// Compares a recorded call with the values that follow from the game.
    fn note(&self, calls: &RecordedCalls, seat: &SeatModel, number: u32, record: &CallRecord) {
        let expected = CallRecord {
            game: self.game.clone(),
            seat: Some(self.seat),
            number,
            agent: self.agent.clone(),
            model: self.model.model.clone(),
            harness: self.harness.sha256.clone(),
            system: sha256(seat.system()),
            tools: sha256(seat.rules().tools_text()),
            new: seat.new_turns().to_vec(),
            ..record.clone()
        };
        calls.note(record, &expected);
    }

    /// Reserves the highest possible price of a request.
    async fn reserve(&self, bound: &Bound) -> Result<Reservation, Halt> {
        self.context.budget.reserve(self.model.index, bound.amount()).await.map_err(|exceeded| match exceeded {
            Exceeded::Run(cap) => Halt::Budget(cap),
            Exceeded::Model(cap) => {
                self.model.pause(Pause { class: None, why: format!("its cap of {cap} US dollars is reached") });
                Halt::Stopped
            }
        })
    }

    /// Asks the endpoint until it answers. Returns `None` if the costs of failed attempts use up the reservation or the
    /// seat's cap.
    async fn attempt(
        &self,
        store: &CallStore,
        request: &ModelRequest,
        reservation: &Reservation,
        retries: &mut Vec<Retry>,
    ) -> Result<Option<Received>, Halt> {
        let (context, model, key) = (&*self.context, &*self.model, request.key.as_str());
        let is_capped = context.budget.is_capped(model.index);
        store.begin(key, &self.agent, &request.bound, is_capped).await.map_err(broken)?;
        let (mut paid, mut is_over) = (Ok(()), false);
        let mut note_retry = |retry: &Retry| {
            context.counts.retries.fetch_add(1, Ordering::Relaxed);
            retries.push(retry.clone());
            *model.failing.lock() = Some(format!("{}: {}", model.address, retry.sentence));
            if let Some(spent) = self.cost_of_failure(request, retry.usage, retry.may_be_paid) {
                paid = store.pay(key, &self.agent, &spent);
                is_over = !reservation.pay(spent) || self.exceeded_cap(request).is_some();
            }
            !is_over && paid.is_ok()
        };
        let (client, patience) = (&context.client, context.patience);
        let asked = ask(client, &model.endpoint, &model.pacer, &request.body, patience, &mut note_retry).await;
        paid.map_err(broken)?;
        let fault = match asked {
            Ok(received) => return Ok(Some(received)),
            Err(fault) => fault,
        };
        if let Some(spent) = self.cost_of_failure(request, fault.usage, fault.may_be_paid) {
            reservation.pay(spent);
            store.pay(key, &self.agent, &spent).map_err(broken)?;
        }
        if is_over {
            store.end(key, None).map_err(broken)?;
            return Ok(None);
        }
        let Fault { class, sentence: mut why, is_too_long, .. } = fault;
        if is_too_long {
            why += TOO_LONG;
        } else {
            model.note_fault(class, &why);
        }
        store.end(key, is_too_long.then_some(why.as_str())).map_err(broken)?;
        Err(self.suspend(class, why))
    }

    /// Returns the usage that counts for a request.
    fn believe(&self, request: &ModelRequest, usage: Usage) -> Usage {
        if request.is_bounded { request.bound.believe(usage, self.model.prices.as_ref()) } else { usage }
    }

    /// Returns the cost of a failed attempt: the tokens that the endpoint counted, or the reservation if it may be paid.
    fn cost_of_failure(&self, request: &ModelRequest, usage: Option<Usage>, may_be_paid: bool) -> Option<Spent> {
        let cost = |usage| Spent { calls: 0, ..Spent::of_call(usage, self.model.prices.as_ref()) };
        let counted = usage.map(|usage| cost(self.believe(request, usage)));
        counted.or(may_be_paid.then(|| request.bound.spent()))
    }

    /// Returns the seat's cap if the highest possible price of the request exceeds it.
    fn exceeded_cap(&self, request: &ModelRequest) -> Option<f64> {
        let spent = self.measured.usd.unwrap_or(0.0) + self.context.calls.paid(&request.key).usd;
        self.context.usd_per_seat.filter(|cap| spent + request.bound.usd > *cap)
    }

    fn suspend(&self, class: FaultClass, why: String) -> Halt {
        Halt::Suspended { agent: self.agent.clone(), class: class.name().to_owned(), why }
    }

    /// Returns an error if no more calls of the model may be sent.
    fn check(&self) -> Result<(), Halt> {
        if self.context.is_stopping.load(Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        self.model.check()
    }
}

/// Returns the key of a call: the SHA-256 over the endpoint, the API, the request and the text of the sample, in
/// hexadecimal. `address` is the base URL.
fn call_key(address: &str, api: Api, body: &[u8], sample: &str) -> String {
    let mut hash = Sha256::new();
    for part in [address.as_bytes(), api.name().as_bytes(), sample.as_bytes(), body] {
        // The lengths keep different parts with the same concatenation apart.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize())
}

/// Converts an error of the run's files.
fn broken(error: impl std::fmt::Display) -> Halt {
    Halt::Broken(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::path::Path;

    use arena_house::Style;
    use arena_llm::Timeouts;
    use arena_players::{BotKind, BotPlayer, Player};
    use serde_json::{Map, Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::game::{FinishedGame, GameLabel, open, play};
    use crate::{BudgetSpec, GameEnd, HarnessSpec};

    /// A scripted endpoint: the statuses and bodies of its answers, and the requests that it received.
    #[derive(Clone, Default)]
    struct Script {
        answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
        requests: Arc<Mutex<Vec<Value>>>,
        /// The times before the answers in milliseconds.
        delays: Arc<Mutex<VecDeque<u64>>>,
    }

    impl Script {
        fn of(answers: impl IntoIterator<Item = (u16, Value)>) -> Script {
            Script { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Script::default() }
        }

        /// Serves the script on a free port. After its end, all requests are unpaid.
        async fn serve(&self) -> String {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let base = format!("http://{}/v1", listener.local_addr().unwrap());
            let script = self.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream, script.clone()));
                }
            });
            base
        }
    }

    async fn answer(mut stream: TcpStream, script: Script) {
        let mut request = Vec::new();
        let body = loop {
            let mut part = [0; 8192];
            let read = stream.read(&mut part).await.unwrap_or(0);
            if read == 0 {
                return;
            }
            request.extend_from_slice(&part[..read]);
            let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let header = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
            let length = header.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let length: usize = length.unwrap();
            if request.len() >= head + 4 + length {
                break request[head + 4..].to_vec();
            }
        };
        script.requests.lock().push(serde_json::from_slice(&body).unwrap());
        let unpaid = (402, json!({"error": {"message": "no credit"}}));
        let (status, body) = script.answers.lock().pop_front().unwrap_or(unpaid);
        let delay = script.delays.lock().pop_front().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(delay)).await;
        if status == 0 {
            return;
        }
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all((head + &body).as_bytes()).await;
        let _ = stream.shutdown().await;
    }

    fn completion(message: Value, finish: &str) -> (u16, Value) {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100});
        (200, json!({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}))
    }

    fn call(name: &str, arguments: Value) -> (u16, Value) {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let calls = json!([{"id": "call_1", "type": "function", "function": function}]);
        completion(json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    }

    fn text(content: &str, finish: &str) -> (u16, Value) {
        completion(json!({"role": "assistant", "content": content}), finish)
    }

    fn guess() -> (u16, Value) {
        call("act_guess", json!({"content": "1"}))
    }

    #[derive(Default)]
    struct Setting {
        harness: HarnessSpec,
        budget: BudgetSpec,
        usd: Option<f64>,
    }

    fn shared_model(base: &str) -> Arc<SharedModel> {
        Arc::new(SharedModel {
            index: 0,
            name: "small".to_owned(),
            model: "small-1".to_owned(),
            endpoint: Endpoint::new(Api::ChatCompletions, base, None)
                .unwrap()
                .with_timeouts(Timeouts::of_answer(Duration::from_secs(1))),
            address: "stand-in".to_owned(),
            params: Params { max_tokens: Some(500), ..Params::default() },
            prices: Some(Prices { input: 1.0, cached: None, output: 10.0 }),
            pacer: Pacer::new(4),
            slots: Semaphore::new(4),
            paused: Mutex::new(None),
            failing: Mutex::new(None),
            sent: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        })
    }

    #[test]
    fn a_single_rejected_request_pauses_no_model() {
        use FaultClass::{Rejected, Unauthorized, Unpaid};
        let cases: [(&[FaultClass], bool); 5] = [
            (&[Rejected], false),
            (&[Rejected; 2], false),
            (&[Rejected; 3], true),
            (&[Unpaid], true),
            (&[Rejected, Unauthorized], true),
        ];
        for (classes, is_paused) in cases {
            let model = shared_model("http://127.0.0.1:9/v1");
            for class in classes {
                model.note_fault(*class, "HTTP 400");
            }
            assert_eq!(model.check().is_err(), is_paused, "{classes:?}");
        }
    }

    /// Plays the model at seat 0 against a house bot, with the calls in a folder.
    async fn play_model(dir: &Path, script: &Script, setting: &Setting) -> (Result<FinishedGame, Halt>, Spent) {
        let base = script.serve().await;
        let calls = Arc::new(CallStore::open(dir).unwrap());
        let budget =
            Budget::new(setting.budget.caps(), calls.totals(), [(setting.usd, calls.totals().usd)].into_iter());
        let context = Arc::new(RunContext {
            client: Client::new(),
            calls: Calls::Store(calls),
            budget: Arc::clone(&budget),
            patience: Duration::from_secs(5),
            usd_per_seat: setting.budget.usd_per_seat,
            is_stopping: AtomicBool::new(false),
            counts: CallCounts::default(),
        });
        let model = shared_model(&base);
        let challenge = arena_games::challenge("psi", &Map::new()).unwrap().unwrap();
        let options = challenge.resolve(&Map::new()).unwrap();
        let harness = Arc::new(Harness::of(&setting.harness, None).unwrap());
        let rules = Arc::new(SeatRules::of(challenge.metadata()));
        let seed = Seed::from_number(7);
        let at = ModelSeat { agent: "small".to_owned(), game: "0123456789ab".to_owned(), seat: 0, seed: seed.clone() };
        let house = BotKind::House(Style::default());
        let bot = BotPlayer::new(house, &*challenge, &options, &seed.derive("eval/bot/1")).unwrap();
        let session = open(&challenge, &options, 2, &seed).unwrap();
        let player = seat_model(&context, &model, &harness, &rules, &session, at);
        let players: Vec<Box<dyn Player>> = vec![Box::new(player), Box::new(bot)];
        let label = GameLabel {
            game: "0123456789ab".to_owned(),
            challenge: "psi".to_owned(),
            seed: 0,
            agents: vec!["small".to_owned(), "house".to_owned()],
        };
        (play(&label, session, players).await, budget.spent())
    }

    async fn ending(answers: Vec<(u16, Value)>, setting: Setting) -> (Cause, String, Measured) {
        let dir = tempfile::tempdir().unwrap();
        let (game, _) = play_model(dir.path(), &Script::of(answers), &setting).await;
        let seat = game.expect("the game ends").record.seats.swap_remove(0);
        (seat.cause, seat.detail.unwrap_or_default(), seat.measured)
    }

    fn harness(change: impl FnOnce(&mut HarnessSpec)) -> Setting {
        let mut setting = Setting::default();
        change(&mut setting.harness);
        setting
    }

    #[tokio::test]
    async fn each_ending_has_its_cause() {
        let unknown = || call("teleport", json!({}));
        let broken = || text("I think about it.", "stop");
        let refused = || text("I can't help with that.", "content_filter");
        let cut = || text("", "length");
        let retry = || harness(|harness| harness.truncated_retry = Some(4000));
        let twice = || harness(|harness| harness.max_turns = Some(2));
        let cheap = || Setting {
            budget: BudgetSpec { usd_per_seat: Some(1e-6), ..BudgetSpec::default() },
            ..Setting::default()
        };
        let wait = || call("wait", json!({}));
        for (name, answers, setting, cause, detail) in [
            ("plays", vec![guess(), wait()], Setting::default(), Cause::Completed, ""),
            ("errs twice", vec![unknown(), broken(), guess(), wait()], Setting::default(), Cause::Completed, ""),
            ("errs", vec![broken(), unknown(), broken()], Setting::default(), Cause::Invalid, "called no tool"),
            (
                "breaks rules",
                vec![call("act_guess", json!({"content": "x"})); 3],
                Setting::default(),
                Cause::Invalid,
                "INVALID_GUESS",
            ),
            ("refuses once", vec![refused(), guess(), wait()], Setting::default(), Cause::Completed, ""),
            ("refuses", vec![refused(), refused()], Setting::default(), Cause::Refused, "2 times"),
            ("cut", vec![cut()], Setting::default(), Cause::Truncated, "cut off"),
            ("refuses in other words", vec![text("", "SAFETY"); 2], Setting::default(), Cause::Refused, "2 times"),
            ("cut in other words", vec![text("", "MAX_TOKENS")], Setting::default(), Cause::Truncated, "cut off"),
            ("the provider fails", vec![text("", "error"), guess(), wait()], Setting::default(), Cause::Completed, ""),
            ("cut once", vec![cut(), guess(), wait()], retry(), Cause::Completed, ""),
            ("cut twice", vec![cut(), cut()], retry(), Cause::Truncated, "cut off"),
            ("turns", vec![wait(), wait()], twice(), Cause::Limit, "2 answers"),
            ("seat cap", vec![], cheap(), Cause::Limit, "the seat's cap"),
        ] {
            let (ended, told, _) = ending(answers, setting).await;
            assert_eq!(ended, cause, "{name}: {told}");
            assert!(told.contains(detail), "{name}: {told}");
        }
    }

    #[tokio::test]
    async fn endpoints_get_what_they_demand() {
        let with = |key: &str, value: Value| {
            let (status, mut body) = call("chat", json!({"text": "hi"}));
            body["choices"][0]["message"][key] = value;
            (status, body)
        };
        let mut signed = call("chat", json!({"text": "hi"}));
        let signature = json!({"google": {"thought_signature": "c2ln"}});
        signed.1["choices"][0]["message"]["tool_calls"][0]["extra_content"] = signature.clone();
        let reject = |text: &str| (400, json!({"error": {"message": text}}));
        let details = json!([{"type": "reasoning.encrypted", "data": "g"}]);
        let cases = [
            ("stream", guess(), "/stream", json!(false)),
            ("signatures", signed, "/messages/2/tool_calls/0/extra_content", signature),
            ("reasoning", with("reasoning_content", json!("hm")), "/messages/2/reasoning_content", json!("hm")),
            ("details", with("reasoning_details", details.clone()), "/messages/2/reasoning_details", details),
            ("a new limit", reject("Use 'max_completion_tokens' instead."), "/max_completion_tokens", json!(500)),
        ];
        for (name, first, pointer, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            let script = Script::of([first, guess(), call("wait", json!({}))]);
            let (game, _) = play_model(dir.path(), &script, &Setting::default()).await;
            assert_eq!(game.expect(name).record.seats[0].cause, Cause::Completed, "{name}");
            let last = script.requests.lock().last().cloned().unwrap();
            assert_eq!(last.pointer(pointer), Some(&expected), "{name}: {last}");
        }
    }

    #[tokio::test]
    async fn a_larger_limit_is_sent_after_a_truncated_answer() {
        let dir = tempfile::tempdir().unwrap();
        let script = Script::of([text("", "length"), guess(), call("wait", json!({}))]);
        let setting = harness(|harness| harness.truncated_retry = Some(4000));
        let (game, _) = play_model(dir.path(), &script, &setting).await;
        assert_eq!(game.expect("it ends").record.seats[0].measured.truncated, 1);
        let limits = |request: &Value| {
            let keys = ["max_completion_tokens", "max_tokens"];
            keys.iter().find_map(|key| request.get(*key)?.as_u64())
        };
        let sent: Vec<Option<u64>> = script.requests.lock().iter().map(limits).collect();
        assert_eq!(sent, [Some(500), Some(4000), Some(500)]);
    }

    #[tokio::test]
    async fn a_fault_suspends_the_game_and_stored_answers_are_not_paid_again() {
        let dir = tempfile::tempdir().unwrap();
        let chat = || call("chat", json!({"text": "Hello."}));
        // The endpoint is unpaid after the first answer.
        let (game, spent) = play_model(dir.path(), &Script::of([chat()]), &Setting::default()).await;
        let halt = game.map(|_| ()).unwrap_err();
        let Halt::Suspended { agent, class, .. } = halt else { panic!("{halt:?}") };
        assert_eq!((agent.as_str(), class.as_str()), ("small", FaultClass::Unpaid.name()));
        assert_eq!((spent.calls, spent.usage.input), (1, 1000));

        // The bot's text of the same round is answered with one more call.
        let script = Script::of([guess(), chat()]);
        let (game, spent) = play_model(dir.path(), &script, &Setting::default()).await;
        let resumed = game.expect("it ends");
        assert_eq!(resumed.record.end, GameEnd::Completed);
        assert_eq!((script.requests.lock().len(), spent.calls), (2, 3), "the first answer is stored");

        // A third time, all answers are stored.
        let idle = Script::of([]);
        let (game, spent) = play_model(dir.path(), &idle, &Setting::default()).await;
        assert_eq!(game.expect("it ends"), resumed);
        assert_eq!((idle.requests.lock().len(), spent.calls), (0, 3));

        // Without a fault, the game is the same.
        let other = tempfile::tempdir().unwrap();
        let (game, _) = play_model(other.path(), &Script::of([chat(), guess(), chat()]), &Setting::default()).await;
        let mut direct = game.expect("it ends");
        direct.record.seats[0].measured = resumed.record.seats[0].measured;
        assert_eq!(direct, resumed);
    }

    #[tokio::test]
    async fn a_cap_ends_the_run_or_pauses_the_model() {
        let run = Setting { budget: BudgetSpec { usd: Some(1e-6), ..BudgetSpec::default() }, ..Setting::default() };
        let tokens = Setting { budget: BudgetSpec { tokens: Some(10), ..BudgetSpec::default() }, ..Setting::default() };
        let model = Setting { usd: Some(1e-6), ..Setting::default() };
        for (setting, expected) in
            [(run, Halt::Budget("usd")), (tokens, Halt::Budget("tokens")), (model, Halt::Stopped)]
        {
            let dir = tempfile::tempdir().unwrap();
            let script = Script::of([guess()]);
            let (game, spent) = play_model(dir.path(), &script, &setting).await;
            assert_eq!(game.map(|_| ()), Err(expected));
            assert_eq!((script.requests.lock().len(), spent), (0, Spent::default()));
        }
    }

    /// Returns an answer with this usage and no choices.
    fn billed(input: u64, output: u64) -> (u16, Value) {
        (200, json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}}))
    }

    #[tokio::test]
    async fn answers_without_content_are_paid() {
        let dir = tempfile::tempdir().unwrap();
        let script = Script::of([billed(1000, 50), guess(), call("wait", json!({}))]);
        let (game, spent) = play_model(dir.path(), &script, &Setting::default()).await;
        let seat = game.expect("it ends").record.seats.swap_remove(0);
        assert_eq!((seat.measured.calls, seat.measured.retries), (2, 1));
        // Three times 1000 input tokens for a dollar, and 250 output tokens for ten dollars a million.
        assert_eq!((spent.calls, spent.usage.input, spent.usage.output), (2, 3000, 250));
        assert!((spent.usd - 0.0055).abs() < 1e-9, "{spent:?}");
        assert_eq!(CallStore::open(dir.path()).unwrap().totals(), spent, "a later invocation knows it");

        // The last fault is paid, too.
        let dir = tempfile::tempdir().unwrap();
        let unpaid = (402, json!({"error": "no credit", "usage": {"prompt_tokens": 10, "completion_tokens": 0}}));
        let (game, spent) = play_model(dir.path(), &Script::of([unpaid]), &Setting::default()).await;
        assert!(game.is_err());
        assert_eq!((spent.calls, spent.usage.input), (0, 10));
        assert_eq!(CallStore::open(dir.path()).unwrap().totals(), spent);
    }

    /// Returns the requests that were sent, with their highest possible costs in US dollars.
    fn bounds(dir: &Path) -> Vec<f64> {
        let text = std::fs::read_to_string(dir.join("requests.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["type"] == "sent").map(|line| line["usd"].as_f64().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_counts_at_its_reservation() {
        let wait = || call("wait", json!({}));
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        // The endpoint answers after the time for an answer, closes the connection, or answers in no known way.
        let cases = [
            ("late", vec![guess(), guess(), wait()], vec![1300, 300], 1),
            ("in time", vec![guess(), wait()], vec![600, 0], 0),
            ("broken", vec![(0, json!({})), guess(), (0, json!({})), wait()], vec![], 2),
            ("odd", vec![(200, json!("odd")), guess(), wait()], vec![], 1),
            ("an error", vec![(500, json!("odd")), guess(), wait()], vec![], 0),
            ("an error in an answer", vec![(200, json!({"error": "odd"})), guess(), wait()], vec![], 0),
        ];
        for (name, answers, delays, given_up) in cases {
            let dir = tempfile::tempdir().unwrap();
            let script = Script { delays: Arc::new(Mutex::new(delays.into())), ..Script::of(answers) };
            let (game, spent) = play_model(dir.path(), &script, &Setting::default()).await;
            let seat = game.expect(name).record.seats.swap_remove(0);
            assert_eq!((seat.cause, spent.calls), (Cause::Completed, 2), "{name}");
            let reserved: f64 = bounds(dir.path()).iter().take(given_up).sum();
            // Two answers of 1000 input tokens and 100 output tokens cost 0.004 dollars.
            assert!(is_near(spent.usd, 0.004 + reserved), "{name}: {spent:?}, {reserved}");
            assert_eq!(seat.measured.usd.map(|usd| is_near(usd, spent.usd)), Some(true), "{name}: {:?}", seat.measured);
            // A lost answer isn't an estimate of one that came.
            assert_eq!((seat.measured.has_lost, seat.measured.usage.is_estimated), (given_up > 0, false), "{name}");
            assert_eq!(seat.measured.usage, Usage { is_estimated: false, ..spent.usage }, "{name}");
            assert_eq!(CallStore::open(dir.path()).unwrap().totals().usd, spent.usd, "{name}");
        }
        // The cap holds: an attempt that may exceed it isn't sent.
        let dir = tempfile::tempdir().unwrap();
        let script = Script::of(vec![(0, json!({})); 20]);
        let budget = BudgetSpec { usd: Some(0.03), ..BudgetSpec::default() };
        let (game, spent) = play_model(dir.path(), &script, &Setting { budget, ..Setting::default() }).await;
        assert_eq!(game.map(|_| ()), Err(Halt::Budget("usd")));
        let sent = script.requests.lock().len();
        assert!(is_near(spent.usd, bounds(dir.path())[0] * sent as f64) && spent.usd <= 0.03, "{sent}: {spent:?}");
    }

    #[tokio::test]
    async fn failed_attempts_count_for_the_cap_of_a_seat() {
        let budget = || BudgetSpec { usd_per_seat: Some(0.02), ..BudgetSpec::default() };
        let setting = Setting { budget: budget(), ..Setting::default() };
        let dir = tempfile::tempdir().unwrap();
        let script = Script::of(vec![billed(1000, 500); 20]);
        let (game, spent) = play_model(dir.path(), &script, &setting).await;
        let seat = game.expect("it ends").record.seats.swap_remove(0);
        assert_eq!(seat.cause, Cause::Limit);
        assert!(spent.usd > 0.0 && spent.usd <= 0.02, "{spent:?}");
        // A later invocation knows the attempts.
        let again = Script::of(vec![guess()]);
        let (game, _) = play_model(dir.path(), &again, &setting).await;
        assert_eq!((game.expect("it ends").record.seats[0].cause, again.requests.lock().len()), (Cause::Limit, 0));
    }

    #[tokio::test]
    async fn answers_without_content_end_at_the_cap() {
        let dir = tempfile::tempdir().unwrap();
        let script = Script::of(vec![billed(1000, 500); 20]);
        // An attempt costs 0.006 dollars, and the reservation is higher.
        let budget = BudgetSpec { usd: Some(0.02), ..BudgetSpec::default() };
        let (game, spent) = play_model(dir.path(), &script, &Setting { budget, ..Setting::default() }).await;
        assert_eq!(game.map(|_| ()), Err(Halt::Budget("usd")));
        assert!(spent.usd > 0.0 && spent.usd <= 0.02, "{spent:?}");
        assert_eq!(CallStore::open(dir.path()).unwrap().totals(), spent);
    }

    #[tokio::test]
    async fn impossible_usage_counts_as_the_reservation() {
        let dir = tempfile::tempdir().unwrap();
        let mut absurd = guess();
        absurd.1["usage"] = json!({"prompt_tokens": 1e15, "completion_tokens": 7});
        let (game, spent) =
            play_model(dir.path(), &Script::of([absurd, call("wait", json!({}))]), &Setting::default()).await;
        assert!(game.is_ok());
        assert!(spent.usage.is_estimated && spent.usage.input < 100_000, "{spent:?}");
        assert_eq!(spent.usage.output, 500 + 100);
        let text = std::fs::read_to_string(dir.path().join("calls.jsonl")).unwrap();
        assert!(text.contains(r#""reported":{"input":1000000000000000,"#), "{text}");
        assert_eq!(CallStore::open(dir.path()).unwrap().totals(), spent);
    }

    #[tokio::test]
    async fn a_request_that_is_too_long_is_sent_once() {
        let dir = tempfile::tempdir().unwrap();
        let too_long = || (400, json!({"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}));
        for expected in [1, 0] {
            let script = Script::of([too_long()]);
            let (game, spent) = play_model(dir.path(), &script, &Setting::default()).await;
            let Err(Halt::Suspended { class, why, .. }) = game else { panic!("{game:?}") };
            assert_eq!((class.as_str(), script.requests.lock().len(), spent), ("rejected", expected, Spent::default()));
            assert!(why.contains("prompt is too long") && why.contains("history_tokens"), "{why}");
        }
    }

    #[test]
    fn the_parts_of_a_key_are_kept_apart() {
        let key = |address: &str, sample: &str| call_key(address, Api::Responses, b"{}", sample);
        let keys = [key("a", "bc"), key("ab", "c"), call_key("a", Api::ChatCompletions, b"{}", "bc")];
        assert_eq!(keys[0], key("a", "bc"));
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2], "{keys:?}");
    }
}
