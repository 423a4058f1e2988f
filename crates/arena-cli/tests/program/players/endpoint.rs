//! A small endpoint of language models, which supports three APIs and checks requests as strictly as the real ones.
//! Requests of Chat Completions without tools are answered with calls in the text. Each model follows a script. The endpoint uses plain HTTP on loopback, with one thread per connection.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A function that returns a model's next answer from the whole conversation.
pub type Script = dyn Fn(&ModelConversation) -> Answer + Send + Sync;

/// The conversation that a request contains.
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

/// The reaction to a request.
pub enum Answer {
    /// Tool calls: names, and arguments as text.
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

/// An endpoint that listens while the test runs.
pub struct Endpoint {
    /// The endpoint's address, without a path.
    pub url: String,
    /// The faults of all requests.
    pub complaints: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    /// Starts the endpoint. Requests must contain this key.
    pub fn listen(
        key: &'static str,
        script: impl Fn(&ModelConversation) -> Answer + Send + Sync + 'static,
    ) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (script, asked): (Arc<Script>, _) = (Arc::new(script), Arc::new(Mutex::new(0)));
        let noted = complaints.clone();
        // The thread ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, asked, noted) = (script.clone(), asked.clone(), noted.clone());
                thread::spawn(move || {
                    let mut stream = BufReader::new(stream);
                    while let Some(request) = Request::read(&mut stream) {
                        let number = {
                            let mut asked = asked.lock().unwrap();
                            *asked += 1;
                            *asked - 1
                        };
                        let (status, header, body) = match request.judge(key, number) {
                            Ok((api, seen)) => match script(&seen) {
                                Answer::Nothing => {
                                    let _ = stream.read(&mut [0]);
                                    return;
                                }
                                Answer::Raw(body) => (200, String::new(), body.to_owned()),
                                answer => api.spell(number, answer),
                            },
                            Err(complaint) => {
                                noted.lock().unwrap().push(complaint.clone());
                                (400, String::new(), json!({"error": {"message": complaint}}).to_string())
                            }
                        };
                        let head = format!(
                            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{header}content-length: {}\r\n\r\n",
                            body.len()
                        );
                        // The client may have disconnected.
                        if stream.get_mut().write_all((head + &body).as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Endpoint { url, complaints }
    }

    /// Checks that all requests were correct.
    #[track_caller]
    pub fn is_content(&self) {
        assert_eq!(*self.complaints.lock().unwrap(), Vec::<String>::new());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    OpenAi,
    /// Chat Completions without tools.
    Plain,
    Responses,
    Anthropic,
}

struct Request {
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Request {
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::new();
        loop {
            line.clear();
            stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        Some(Request { path, headers, body: serde_json::from_slice(&body).ok()? })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns the API and the conversation of a request, or its fault.
    fn judge(&self, key: &str, asked: usize) -> Result<(Api, ModelConversation), String> {
        let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {}", self.body)) };
        demand(self.body["stream"] == false, "stream")?;
        demand(self.body["model"].as_str().is_some_and(|model| !model.is_empty()), "model")?;
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let list = if self.path == "/v1/responses" { "input" } else { "messages" };
        let messages = self.body[list].as_array().ok_or(list)?;
        let mut seen = ModelConversation { answers: 0, system: String::new(), user_texts: Vec::new(), asked };
        let mut open = BTreeSet::new();
        match self.path.as_str() {
            "/v1/chat/completions" => {
                demand(self.header("authorization") == format!("Bearer {key}"), "authorization")?;
                for tool in tools {
                    demand(tool["type"] == "function" && is_name(&tool["function"]["name"]), "tool")?;
                    demand(tool["function"]["parameters"]["type"] == "object", "parameters")?;
                }
                for (number, message) in messages.iter().enumerate() {
                    // An answer goes back as it came.
                    let is_call = message["content"].is_null() && message["tool_calls"].is_array();
                    let content = message["content"].as_str().or(is_call.then_some("")).ok_or("content")?.to_owned();
                    match message["role"].as_str() {
                        Some("system") if number == 0 => seen.system = content,
                        Some("user") if open.is_empty() && !content.is_empty() => seen.user_texts.push(content),
                        Some("assistant") if open.is_empty() => {
                            seen.answers += 1;
                            for call in message["tool_calls"].as_array().unwrap_or(&Vec::new()) {
                                let arguments = call["function"]["arguments"].as_str().ok_or("arguments")?;
                                demand(serde_json::from_str::<Value>(arguments).is_ok(), "arguments")?;
                                open.insert(call["id"].as_str().ok_or("id")?.to_owned());
                            }
                        }
                        Some("tool") => {
                            demand(
                                open.remove(message["tool_call_id"].as_str().ok_or("tool_call_id")?),
                                "no such call",
                            )?;
                            seen.user_texts.push(content);
                        }
                        _ => return Err(format!("message {number}: {message}")),
                    }
                }
                demand(open.is_empty() && messages.last().is_some_and(|last| last["role"] != "assistant"), "the end")?;
                if !tools.is_empty() {
                    return Ok((Api::OpenAi, seen));
                }
                let is_described = ["act_guess: ", "chat: ", "wait: "].iter().all(|tool| seen.system.contains(tool));
                demand(is_described, "tools in the system prompt")?;
                demand(messages.iter().all(|message| message["role"] != "tool"), "results as text")?;
                Ok((Api::Plain, seen))
            }
            "/v1/responses" => {
                demand(self.header("authorization") == format!("Bearer {key}"), "authorization")?;
                demand(self.body["store"] == false, "store")?;
                demand(!tools.is_empty(), "tools")?;
                for tool in tools {
                    demand(tool["type"] == "function" && is_name(&tool["name"]), "tool")?;
                    demand(tool["parameters"]["type"] == "object" && tool["strict"] == false, "parameters")?;
                }
                seen.system = self.body["instructions"].as_str().ok_or("instructions")?.to_owned();
                let mut was_answer = false;
                for (number, item) in messages.iter().enumerate() {
                    let is_answer = item["type"] == "function_call" || item["role"] == "assistant";
                    seen.answers += usize::from(is_answer && !was_answer);
                    was_answer = is_answer;
                    match (item["type"].as_str(), item["role"].as_str()) {
                        (Some("function_call"), _) => {
                            let arguments = item["arguments"].as_str().ok_or("arguments")?;
                            demand(serde_json::from_str::<Value>(arguments).is_ok(), "arguments")?;
                            demand(is_name(&item["name"]), "name")?;
                            open.insert(item["call_id"].as_str().ok_or("call_id")?.to_owned());
                        }
                        (Some("function_call_output"), _) => {
                            demand(open.remove(item["call_id"].as_str().ok_or("call_id")?), "no such call")?;
                            seen.user_texts.push(item["output"].as_str().ok_or("output")?.to_owned());
                        }
                        (None, Some("user")) => {
                            demand(open.is_empty(), "results come first")?;
                            seen.user_texts.push(item["content"].as_str().ok_or("content")?.to_owned());
                        }
                        (None, Some("assistant")) => demand(item["content"].is_string(), "content")?,
                        _ => return Err(format!("item {number}: {item}")),
                    }
                }
                demand(open.is_empty() && !was_answer, "the end")?;
                Ok((Api::Responses, seen))
            }
            "/v1/messages" => {
                demand(self.header("x-api-key") == key && self.header("anthropic-version") == "2023-06-01", "headers")?;
                demand(self.body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "max_tokens")?;
                for tool in tools {
                    demand(is_name(&tool["name"]) && tool["input_schema"]["type"] == "object", "tool")?;
                }
                seen.system = self.body["system"].as_str().ok_or("system")?.to_owned();
                for (number, message) in messages.iter().enumerate() {
                    let blocks = message["content"].as_array().ok_or("content")?;
                    demand(!blocks.is_empty(), "content")?;
                    let role = if number % 2 == 0 { "user" } else { "assistant" };
                    demand(message["role"] == role, "roles take turns")?;
                    seen.answers += number % 2;
                    for block in blocks {
                        match (role, block["type"].as_str()) {
                            ("user", Some("tool_result")) => {
                                let id = block["tool_use_id"].as_str().ok_or("tool_use_id")?;
                                demand(open.remove(id), "no such call")?;
                                seen.user_texts.push(block["content"].as_str().ok_or("content")?.to_owned());
                            }
                            ("user", Some("text")) => {
                                demand(open.is_empty(), "results come first")?;
                                seen.user_texts.push(block["text"].as_str().ok_or("text")?.to_owned());
                            }
                            ("assistant", Some("tool_use")) => {
                                open.insert(block["id"].as_str().ok_or("id")?.to_owned());
                            }
                            ("assistant", Some("text")) => {}
                            _ => return Err(format!("block: {block}")),
                        }
                    }
                }
                demand(open.is_empty() && messages.len() % 2 == 1, "the end")?;
                Ok((Api::Anthropic, seen))
            }
            other => Err(format!("unknown path {other}")),
        }
    }
}

fn is_name(name: &Value) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
    name.as_str().is_some_and(|name| (1..=64).contains(&name.len()) && name.chars().all(fits))
}

impl Api {
    /// Returns the status, header and body of an answer.
    fn spell(&self, number: usize, answer: Answer) -> (u16, String, String) {
        let (status, header, body) = self.answer(number, answer);
        (status, header, body.to_string())
    }

    fn answer(&self, number: usize, answer: Answer) -> (u16, String, Value) {
        let id = |place: usize| format!("call-{number}-{place}");
        match (self, answer) {
            (_, Answer::Status(status, header, message)) => {
                let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
                (status, header, json!({"error": {"message": message}}))
            }
            (Api::Responses, answer) => {
                let output: Vec<Value> = match answer {
                    Answer::Words(words) => {
                        let content = json!([{"type": "output_text", "text": words, "annotations": []}]);
                        vec![json!({"type": "message", "role": "assistant", "content": content})]
                    }
                    Answer::Calls(calls) => {
                        let spell = |(place, (name, arguments)): (usize, (&str, String))| {
                            let item = format!("item-{number}-{place}");
                            json!({
                                "type": "function_call", "id": item, "call_id": id(place), "name": name,
                                "arguments": arguments,
                            })
                        };
                        calls.into_iter().enumerate().map(spell).collect()
                    }
                    Answer::Status(..) | Answer::Raw(_) | Answer::Nothing => unreachable!("an earlier arm matches it"),
                };
                let cached = json!({"cached_tokens": 100});
                let usage = json!({"input_tokens": 1000, "input_tokens_details": cached, "output_tokens": 10});
                (
                    200,
                    String::new(),
                    json!({"object": "response", "status": "completed", "output": output, "usage": usage}),
                )
            }
            (Api::OpenAi | Api::Plain, answer) => {
                let message = match answer {
                    Answer::Words(words) => json!({"role": "assistant", "content": words}),
                    // A model without tools makes one call in an answer, often with words around it.
                    Answer::Calls(mut calls) if *self == Api::Plain => {
                        assert_eq!(calls.len(), 1);
                        let (name, arguments) = calls.remove(0);
                        let mut call = json!({"tool": name});
                        let arguments: Value = serde_json::from_str(&arguments).unwrap();
                        call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
                        json!({"role": "assistant", "content": format!("I call:\n```json\n{call}\n```")})
                    }
                    Answer::Calls(calls) => {
                        let spell = |(place, (name, arguments)): (usize, (&str, String))| json!({"id": id(place), "type": "function", "function": {"name": name, "arguments": arguments}});
                        let calls: Vec<Value> = calls.into_iter().enumerate().map(spell).collect();
                        json!({"role": "assistant", "content": null, "tool_calls": calls})
                    }
                    Answer::Status(..) | Answer::Raw(_) | Answer::Nothing => unreachable!("an earlier arm matches it"),
                };
                let usage = json!({"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010});
                let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
                (200, String::new(), json!({"object": "chat.completion", "choices": [choice], "usage": usage}))
            }
            (Api::Anthropic, answer) => {
                let content = match answer {
                    Answer::Words(words) => json!([{"type": "text", "text": words}]),
                    Answer::Calls(calls) => {
                        let spell = |(place, (name, arguments)): (usize, (&str, String))| {
                            let input: Value = serde_json::from_str(&arguments).unwrap_or(Value::Null);
                            json!({"type": "tool_use", "id": id(place), "name": name, "input": input})
                        };
                        calls.into_iter().enumerate().map(spell).collect()
                    }
                    Answer::Status(..) | Answer::Raw(_) | Answer::Nothing => unreachable!("an earlier arm matches it"),
                };
                let usage = json!({"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 10});
                (
                    200,
                    String::new(),
                    json!({"type": "message", "role": "assistant", "content": content, "usage": usage}),
                )
            }
        }
    }
}
