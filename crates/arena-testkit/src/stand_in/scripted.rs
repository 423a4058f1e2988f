//! An endpoint whose models follow a test's script. It checks requests as strictly as the real ones.

use std::future;
use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::apis::{AnswerEnd, ApiAnswer, ApiCall, ApiTurn, Conversation, Format, Tokens};
use super::{LARGEST, error, start, text_response};

/// The conversation that a request contains.
#[derive(Debug)]
pub struct ModelConversation {
    /// The number of the model's earlier answers.
    pub answers: usize,
    pub system: String,
    /// The user messages, and the results of the model's tool calls.
    pub user_texts: Vec<String>,
    /// The number of earlier requests to this endpoint.
    pub asked: usize,
}

impl ModelConversation {
    /// Returns all user messages as one text.
    pub fn text(&self) -> String {
        self.user_texts.join("\n")
    }
}

/// The reaction to a request. Each successful answer has 1000 input tokens and 10 output tokens. Except in Chat
/// Completions, 100 of the input tokens are cached.
#[derive(Debug)]
pub enum ModelAnswer {
    /// Tool calls: names, and arguments as text. If the arguments aren't JSON, other invalid arguments are sent.
    Calls(Vec<(&'static str, String)>),
    /// A text without a tool call.
    Words(&'static str),
    /// An error status with a header and a message.
    Status(u16, &'static str, &'static str),
    /// Success with this body.
    Raw(&'static str),
    /// No answer until the client disconnects.
    Nothing,
}

type Script = dyn Fn(&ModelConversation) -> ModelAnswer + Send + Sync;

/// An endpoint with one model. It stops when it is dropped.
#[derive(Debug)]
pub struct ModelEndpoint {
    /// The address without a path.
    pub url: String,
    complaints: Arc<Mutex<Vec<String>>>,
    _stop: oneshot::Sender<()>,
}

struct Endpoint {
    key: &'static str,
    script: Box<Script>,
    asked: Mutex<usize>,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl ModelEndpoint {
    /// Starts the endpoint. Requests must contain this key.
    pub fn listen(
        key: &'static str,
        script: impl Fn(&ModelConversation) -> ModelAnswer + Send + Sync + 'static,
    ) -> ModelEndpoint {
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let endpoint =
            Endpoint { key, script: Box::new(script), asked: Mutex::new(0), complaints: Arc::clone(&complaints) };
        let (url, stop) = start(Router::new().fallback(answer).with_state(Arc::new(endpoint)));
        ModelEndpoint { url, complaints, _stop: stop }
    }

    /// Returns the address for clients of the APIs of OpenAI.
    pub fn base(&self) -> String {
        format!("{}/v1", self.url)
    }

    /// Checks that all requests were correct.
    #[track_caller]
    pub fn is_content(&self) {
        assert_eq!(*self.complaints.lock(), Vec::<String>::new());
    }
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, LARGEST).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let asked = {
        let mut asked = endpoint.asked.lock();
        *asked += 1;
        *asked - 1
    };
    let read = Format::of(head.uri.path()).ok_or("an unknown path").and_then(|format| {
        check(format, &head.headers, &body, endpoint.key)?;
        Ok(format)
    });
    let read = read.map_err(str::to_owned).and_then(|format| Ok((format, format.read(&body)?)));
    let (format, conversation) = match read {
        Ok(read) => read,
        Err(complaint) => {
            endpoint.complaints.lock().push(format!("{complaint}: {body}"));
            return error(Format::Chat, StatusCode::BAD_REQUEST, "invalid_request_error", &complaint);
        }
    };
    let answer = match (endpoint.script)(&seen(&conversation, asked)) {
        ModelAnswer::Nothing => future::pending().await,
        ModelAnswer::Raw(body) => return text_response(StatusCode::OK, body.to_owned()),
        ModelAnswer::Status(status, header, message) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = error(format, status, "api_error", message);
            if let Some((name, value)) = header.split_once(": ") {
                response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            return response;
        }
        ModelAnswer::Words(words) => ApiAnswer { text: words.to_owned(), calls: Vec::new(), end: AnswerEnd::Done },
        ModelAnswer::Calls(calls) => answer_of(calls, asked, conversation.tools.is_empty()),
    };
    let tokens = Tokens { input: 1000, cached: if format == Format::Chat { 0 } else { 100 }, output: 10 };
    text_response(StatusCode::OK, format.write(&conversation, &answer, tokens, &asked.to_string()).to_string())
}

/// Returns an answer with these calls. A model without tools makes one call in a text, with words around it.
fn answer_of(calls: Vec<(&str, String)>, asked: usize, is_text: bool) -> ApiAnswer {
    assert!(!is_text || calls.len() == 1, "a model without tools makes one call");
    let mut answer = ApiAnswer { text: String::new(), calls: Vec::new(), end: AnswerEnd::Done };
    for (place, (name, arguments)) in calls.into_iter().enumerate() {
        let arguments: Option<Value> = serde_json::from_str(&arguments).ok();
        let is_broken = arguments.is_none();
        let mut arguments = arguments.unwrap_or_default();
        if is_text {
            arguments["tool"] = json!(name);
            answer.text = format!("I call:\n```json\n{arguments}\n```");
        } else {
            let id = format!("call-{asked}-{place}");
            answer.calls.push(ApiCall { id, name: name.to_owned(), arguments, is_broken });
        }
    }
    answer
}

fn seen(conversation: &Conversation, asked: usize) -> ModelConversation {
    let is_answer = |turn: &ApiTurn| matches!(turn, ApiTurn::Said(_) | ApiTurn::Called(_));
    // Consecutive turns of the model are one answer.
    let answers = conversation.turns.chunk_by(|one, next| is_answer(one) == is_answer(next));
    let texts = conversation.turns.iter().filter_map(|turn| match turn {
        ApiTurn::Told(text) | ApiTurn::Result { text, .. } => Some(text.clone()),
        ApiTurn::Said(_) | ApiTurn::Called(_) => None,
    });
    ModelConversation {
        answers: answers.filter(|turns| is_answer(&turns[0])).count(),
        system: conversation.system.clone(),
        user_texts: texts.collect(),
        asked,
    }
}

/// Checks the parts of a request that [`Format::read`] doesn't need.
fn check(format: Format, headers: &HeaderMap, body: &Value, key: &str) -> Result<(), &'static str> {
    let demand = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
    let has = |name: &str, value: &str| headers.get(name).is_some_and(|found| found.as_bytes() == value.as_bytes());
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    demand(body["stream"] == false, "stream")?;
    demand(body["model"].as_str().is_some_and(|model| !model.is_empty()), "model")?;
    let messages = &body[if format == Format::Responses { "input" } else { "messages" }];
    let messages = messages.as_array().ok_or("messages")?;
    let is_of_model = |message: &Value| message["role"] == "assistant" || message["type"] == "function_call";
    demand(messages.last().is_some_and(|last| !is_of_model(last)), "the end")?;
    if format == Format::Messages {
        demand(has("x-api-key", key) && has("anthropic-version", "2023-06-01"), "headers")?;
        demand(body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "max_tokens")?;
        demand(tools.iter().all(|tool| is_tool(&tool["name"], &tool["input_schema"])), "tools")?;
        demand(body["system"].is_string(), "system")?;
        let has_text = |block: &Value| match block["type"].as_str() {
            Some("text") => block["text"].is_string(),
            Some("tool_result") => block["content"].is_string(),
            _ => true,
        };
        let has_blocks = |blocks: &Vec<Value>| !blocks.is_empty() && blocks.iter().all(has_text);
        demand(messages.iter().all(|message| message["content"].as_array().is_some_and(has_blocks)), "content")?;
        let roles = ["user", "assistant"].iter().cycle();
        return demand(messages.iter().zip(roles).all(|(message, role)| message["role"] == *role), "roles take turns");
    }
    demand(has("authorization", &format!("Bearer {key}")), "authorization")?;
    demand(tools.iter().all(|tool| tool["type"] == "function"), "types of tools")?;
    if format == Format::Responses {
        demand(body["store"] == false, "store")?;
        demand(body["instructions"].is_string(), "instructions")?;
        let has_text = |item: &Value| match item["type"].as_str() {
            Some("function_call_output") => item["output"].is_string(),
            Some(_) => true,
            None => item["content"].is_string(),
        };
        demand(messages.iter().all(has_text), "content")?;
        demand(!tools.is_empty() && tools.iter().all(|tool| tool["strict"] == false), "strict")?;
        return demand(tools.iter().all(|tool| is_tool(&tool["name"], &tool["parameters"])), "tools");
    }
    let mut functions = tools.iter().map(|tool| &tool["function"]);
    demand(functions.all(|tool| is_tool(&tool["name"], &tool["parameters"])), "tools")?;
    demand(messages.iter().skip(1).all(|message| message["role"] != "system"), "the system prompt comes first")?;
    let has_text = |message: &Value| match &message["content"] {
        Value::String(text) => message["role"] != "user" || !text.is_empty(),
        // An answer with calls goes back as it came.
        content => content.is_null() && message["tool_calls"].is_array(),
    };
    demand(messages.iter().all(has_text), "content")?;
    let system = messages[0]["content"].as_str().unwrap_or_default();
    let is_described = ["act_guess: ", "chat: ", "wait: "].iter().all(|tool| system.contains(tool));
    let has_results = messages.iter().any(|message| message["role"] == "tool");
    demand(!tools.is_empty() || (is_described && !has_results), "tools in the text")
}

fn is_tool(name: &Value, schema: &Value) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
    let is_name = |name: &str| (1..=64).contains(&name.len()) && name.chars().all(fits);
    name.as_str().is_some_and(is_name) && schema["type"] == "object"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_of_a_request_is_named() {
        let object = json!({"type": "object"});
        let function = json!({"type": "function", "function": {"name": "wait", "parameters": object}});
        let flat = json!({"type": "function", "name": "wait", "parameters": object, "strict": false});
        let user = json!([{"role": "user", "content": "hello"}]);
        let good = |format| match format {
            Format::Chat => json!({"stream": false, "model": "m", "tools": [function], "messages": user}),
            Format::Responses => {
                json!({
                    "stream": false, "model": "m", "tools": [flat], "input": user, "store": false, "instructions": "s",
                })
            }
            Format::Messages => {
                let tools = json!([{"name": "wait", "input_schema": object}]);
                let user = json!([{"role": "user", "content": [{"type": "text", "text": "hello"}]}]);
                json!({
                    "stream": false, "model": "m", "tools": tools, "messages": user, "max_tokens": 9, "system": "s",
                })
            }
        };
        let headers = [("authorization", "Bearer k"), ("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
        let header = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let headers: HeaderMap = headers.map(header).into_iter().collect();
        for (format, pointer, value, fault) in [
            (Format::Chat, "/stream", json!(true), "stream"),
            (Format::Chat, "/model", json!(""), "model"),
            (Format::Chat, "/messages/0/role", json!("assistant"), "the end"),
            (Format::Chat, "/tools/0/type", json!("tool"), "types of tools"),
            (Format::Chat, "/tools/0/function/name", json!("a b"), "tools"),
            (Format::Chat, "/tools", json!([]), "tools in the text"),
            (Format::Chat, "/messages/0/content", json!(""), "content"),
            (Format::Chat, "/messages/0/content", json!(null), "content"),
            (Format::Responses, "/instructions", json!(null), "instructions"),
            (Format::Responses, "/input/0/content", json!(null), "content"),
            (Format::Messages, "/system", json!(null), "system"),
            (Format::Messages, "/messages/0/content", json!([]), "content"),
            (Format::Messages, "/messages/0/content/0/text", json!(null), "content"),
            (Format::Responses, "/store", json!(true), "store"),
            (Format::Responses, "/tools/0/strict", json!(true), "strict"),
            (Format::Responses, "/tools/0/parameters/type", json!("list"), "tools"),
            (Format::Messages, "/max_tokens", json!(0), "max_tokens"),
            (Format::Messages, "/tools/0/input_schema", json!({}), "tools"),
            (Format::Messages, "/messages/0/role", json!("system"), "roles take turns"),
        ] {
            let mut body = good(format);
            assert_eq!(check(format, &headers, &body, "k"), Ok(()));
            assert!(check(format, &headers, &body, "another key").is_err(), "{format:?}");
            *body.pointer_mut(pointer).expect("a part") = value;
            assert_eq!(check(format, &headers, &body, "k"), Err(fault), "{pointer}");
        }
    }
}
