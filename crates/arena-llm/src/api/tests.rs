//! Requests and answers of all APIs, with bodies as the providers write them.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::conversation::{CallResult, Finish, Params, Tool, ToolCall, Turn};

fn tool() -> Tool {
    let parameters = json!({"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]});
    Tool { name: "act_guess".to_owned(), description: "Act: guess.".to_owned(), parameters }
}

/// Reads an answer, puts it into a conversation with the result of its calls, and returns the request for the next
/// answer.
fn next_request(api: Api, tool_use: ToolUse, body: &Value, params: &Params) -> Value {
    let reply = read_reply(api, tool_use, body).unwrap();
    let result = |call: &ToolCall| CallResult { id: call.id.clone(), text: "done".to_owned(), is_error: false };
    let results = Turn::Results(reply.calls.iter().map(result).collect());
    let turns = [Turn::Told("Begin.".to_owned()), Turn::Answered(reply), results, Turn::Told("Your turn.".to_owned())];
    let tools = [tool()];
    let question = Question { model: "m", system: "The rules.", tools: &tools, turns: &turns, params };
    let request = request_body(api, tool_use, &question);
    // The fast way gives the same bytes.
    assert_eq!(request_bytes(api, tool_use, &question), request.to_string().into_bytes());
    request
}

/// Compares an answer: text, calls, usage (input, cached, output, reasoning) and finish.
fn check(api: Api, tool_use: ToolUse, body: &Value, expected: Expect) {
    let shown = match read_reply(api, tool_use, body) {
        Err(why) => format!("error: {why}"),
        Ok(reply) => {
            let calls = reply.calls.iter().map(|call| match &call.arguments {
                Ok(arguments) => format!("{} {} {}", call.id, call.name, json!(arguments)),
                Err(why) => format!("{} {}: {why}", call.id, call.name),
            });
            let (calls, usage) = (calls.collect::<Vec<_>>().join("; "), reply.usage);
            let counts = [usage.input, usage.cached, usage.output, usage.reasoning];
            format!("{:?} [{calls}] {counts:?} {:?}", reply.text, reply.finish)
        }
    };
    expected.assert_eq(&shown);
}

fn chat(message: Value, finish: &str) -> Value {
    json!({
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1741569952,
        "model": "gpt-x-2025-04-14", "service_tier": "default",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 1200, "completion_tokens": 90, "total_tokens": 1290,
            "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 64, "audio_tokens": 0},
        },
    })
}

fn chat_calls() -> Value {
    let function = json!({"name": "act_guess", "arguments": "{\"content\":\"7\"}"});
    let calls = json!([{"id": "call_abc", "type": "function", "function": function}]);
    let message =
        json!({"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": calls});
    chat(message, "tool_calls")
}

fn responses(output: Value) -> Value {
    json!({
        "id": "resp_67ccd2bed1ec8190b14f964abc054267", "object": "response", "created_at": 1741476542,
        "status": "completed", "error": null, "incomplete_details": null, "model": "gpt-x", "output": output,
        "usage": {
            "input_tokens": 1200, "input_tokens_details": {"cached_tokens": 1024}, "output_tokens": 90,
            "output_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 1290,
        },
    })
}

fn responses_calls() -> Value {
    responses(json!([
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA", "status": null},
        {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
         "content": [{"type": "output_text", "text": "I guess.", "annotations": [], "logprobs": []}]},
        {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_abc", "name": "act_guess",
         "arguments": "{\"content\":\"7\"}"},
    ]))
}

fn anthropic(content: Value, stop: &str) -> Value {
    json!({
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": "claude-x",
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": {
            "input_tokens": 100, "cache_creation_input_tokens": 76, "cache_read_input_tokens": 1024,
            "output_tokens": 90,
        },
    })
}

fn anthropic_calls() -> Value {
    let content = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
        {"type": "text", "text": "I guess."},
        {"type": "tool_use", "id": "toolu_1", "name": "act_guess", "input": {"content": "7"}},
    ]);
    anthropic(content, "tool_use")
}

#[test]
fn chat_completions_repeats_calls_with_their_results() {
    let (api, params) = (Api::ChatCompletions, Params { seed: Some(7), ..Params::default() });
    check(
        api,
        ToolUse::Native,
        &chat_calls(),
        expect![[r#""" [call_abc act_guess {"content":"7"}] [1200, 1024, 90, 64] Done"#]],
    );
    let request = next_request(api, ToolUse::Native, &chat_calls(), &params);
    let function = json!({"name": "act_guess", "description": "Act: guess.", "parameters": tool().parameters});
    let call = json!({"id": "call_abc", "type": "function", "function": {"name": "act_guess", "arguments": "{\"content\":\"7\"}"}});
    assert_eq!(
        request,
        json!({
            "model": "m", "seed": 7, "stream": false, "tools": [{"type": "function", "function": function}],
            "messages": [
                {"role": "system", "content": "The rules."},
                {"role": "user", "content": "Begin."},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_abc", "content": "done"},
                {"role": "user", "content": "Your turn."},
            ],
        })
    );
}

#[test]
fn responses_repeats_reasoning_and_calls_without_ids_of_the_provider() {
    let api = Api::Responses;
    check(
        api,
        ToolUse::Native,
        &responses_calls(),
        expect![[r#""I guess." [call_abc act_guess {"content":"7"}] [1200, 1024, 90, 64] Done"#]],
    );
    let params = Params { reasoning_effort: Some("low".to_owned()), max_tokens: Some(500), ..Params::default() };
    let request = next_request(api, ToolUse::Native, &responses_calls(), &params);
    assert_eq!(
        request,
        json!({
            "model": "m", "instructions": "The rules.", "store": false, "stream": false, "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 500, "reasoning": {"effort": "low"},
            "tools": [{
                "type": "function", "name": "act_guess", "description": "Act: guess.",
                "parameters": tool().parameters, "strict": false,
            }],
            "input": [
                {"role": "user", "content": "Begin."},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
                {"role": "assistant", "content": "I guess."},
                {"type": "function_call", "call_id": "call_abc", "name": "act_guess", "arguments": "{\"content\":\"7\"}"},
                {"type": "function_call_output", "call_id": "call_abc", "output": "done"},
                {"role": "user", "content": "Your turn."},
            ],
        })
    );
}

/// Returns the entry of an answer in the next request.
fn returned(api: Api, body: &Value) -> Value {
    let request = next_request(api, ToolUse::Native, body, &Params::default());
    let entries = ["messages", "input"].into_iter().find_map(|key| request[key].as_array()).unwrap();
    let own = entries.iter().filter(|entry| entry["role"] == "assistant" || entry["type"] == "function_call");
    Value::Array(own.cloned().collect())
}

#[test]
fn state_of_the_provider_goes_back_as_it_came() {
    let function = json!({"name": "act_guess", "arguments": "{\"content\":\"7\"}"});
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let call = json!({"id": "c1", "type": "function", "function": function, "extra_content": signature, "index": 0});
    let parts =
        json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]);
    for (came, goes) in [
        (
            json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call]}),
            json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call]}),
        ),
        (
            json!({"content": parts, "reasoning": "hm", "reasoning_details": [{"data": "g"}], "extra_content": signature}),
            json!({"role": "assistant", "content": parts, "reasoning": "hm", "reasoning_details": [{"data": "g"}],
                "extra_content": signature}),
        ),
        // Empty values mean nothing, and servers reject them.
        (
            json!({"role": "assistant", "content": null, "tool_calls": [], "annotations": [], "refusal": null, "audio": null}),
            json!({"role": "assistant", "content": ""}),
        ),
        // A call without a name has no result, so it can't go back.
        (
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c0"}, call]}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        ),
    ] {
        assert_eq!(returned(Api::ChatCompletions, &chat(came, "stop")), json!([goes]));
    }
    let item = json!({"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "c1", "name": "act_guess",
        "arguments": "{\"content\":\"7\"}", "extra_content": signature});
    let goes = json!({"type": "function_call", "call_id": "c1", "name": "act_guess",
        "arguments": "{\"content\":\"7\"}", "extra_content": signature});
    assert_eq!(returned(Api::Responses, &responses(json!([item]))), json!([goes]));
    // The Messages API rejects reasoning that nothing follows, and calls without a name.
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "EqQB"});
    let text = json!({"type": "text", "text": "Well."});
    for (came, goes) in [
        (json!([thinking, text]), json!([{"role": "assistant", "content": [thinking, text]}])),
        (json!([text, {"type": "tool_use", "id": "t"}, thinking]), json!([{"role": "assistant", "content": [text]}])),
        (json!([thinking]), json!([])),
    ] {
        assert_eq!(returned(Api::AnthropicMessages, &anthropic(came, "end_turn")), goes);
    }
}

#[test]
fn each_call_of_an_answer_has_its_own_id() {
    let function = json!({"name": "wait", "arguments": "{}"});
    let chat_call = |id: Value| json!({"id": id, "function": function});
    let item = |id: Value| json!({"type": "function_call", "call_id": id, "name": "wait", "arguments": "{}"});
    let block = |id: Value| json!({"type": "tool_use", "id": id, "name": "wait", "input": {}});
    let ids = [json!("a"), json!("a"), json!("call_1"), json!(""), json!(7), json!("b")];
    let list = |call: &dyn Fn(Value) -> Value| Value::Array(ids.iter().cloned().map(call).collect());
    for (api, body) in [
        (Api::ChatCompletions, chat(json!({"tool_calls": list(&chat_call)}), "tool_calls")),
        (Api::Responses, responses(list(&item))),
        (Api::AnthropicMessages, anthropic(list(&block), "tool_use")),
    ] {
        let reply = read_reply(api, ToolUse::Native, &body).unwrap();
        let read: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(read, ["a", "call_1", "call_2", "call_3", "call_4", "b"], "{api}");
        // The history has the same ids.
        let request = next_request(api, ToolUse::Native, &body, &Params::default()).to_string();
        for id in read {
            assert_eq!(request.matches(&format!("\"{id}\"")).count(), 2, "{api} {id}: {request}");
        }
    }
}

#[test]
fn arguments_are_an_object_or_its_text() {
    for (arguments, expected) in [
        (json!({"a": 1}), Ok(r#"{"a":1}"#)),
        (json!(r#"{"a":1}"#), Ok(r#"{"a":1}"#)),
        (json!(r#""{\"a\":1}""#), Ok(r#"{"a":1}"#)),
        (json!("null"), Ok("{}")),
        (json!(r#"{"a":"\ud83d"}"#), Ok("{\"a\":\"\u{fffd}\"}")),
        (json!(null), Ok("{}")),
        (json!([1]), Err("the arguments aren't a JSON object")),
        (json!("[1]"), Err("the arguments aren't a JSON object")),
    ] {
        let read = read_arguments(&arguments).map(|arguments| json!(arguments).to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected, "{arguments}");
    }
}

#[test]
fn anthropic_messages_puts_results_before_other_messages() {
    let api = Api::AnthropicMessages;
    check(
        api,
        ToolUse::Native,
        &anthropic_calls(),
        expect![[r#""I guess." [toolu_1 act_guess {"content":"7"}] [1200, 1024, 90, 0] Done"#]],
    );
    let request = next_request(api, ToolUse::Native, &anthropic_calls(), &Params::default());
    assert_eq!(
        request,
        json!({
            "model": "m", "system": "The rules.", "max_tokens": 4096, "stream": false,
            "tools": [{"name": "act_guess", "description": "Act: guess.", "input_schema": tool().parameters}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Begin."}]},
                {"role": "assistant", "content": anthropic_calls()["content"]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done", "is_error": false},
                    {"type": "text", "text": "Your turn."},
                ]},
            ],
        })
    );
    // An empty answer is left out, since the API rejects it.
    let request = next_request(api, ToolUse::Native, &anthropic(json!([]), "end_turn"), &Params::default());
    assert_eq!(request["messages"].as_array().map(Vec::len), Some(1));
}

#[test]
fn text_tools_need_only_messages_in_turn() {
    let text = "```json\n{\"tool\": \"act_guess\", \"content\": \"7\"}\n```";
    let bodies = [
        chat(json!({"role": "assistant", "content": text}), "stop"),
        responses(
            json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]),
        ),
        anthropic(json!([{"type": "text", "text": text}]), "end_turn"),
    ];
    for (api, body) in Api::ALL.into_iter().zip(bodies) {
        let reply = read_reply(api, ToolUse::Text, &body).unwrap();
        let call = &reply.calls[0];
        assert_eq!((call.name.as_str(), json!(call.arguments)), ("act_guess", json!({"Ok": {"content": "7"}})));
        assert!(read_reply(api, ToolUse::Native, &body).unwrap().calls.is_empty());
        let request = next_request(api, ToolUse::Text, &body, &Params::default());
        assert!(request.get("tools").is_none(), "{request}");
        let all = request.to_string();
        assert!(all.contains("Result of act_guess: done\\n\\nYour turn."), "{all}");
        assert!(all.contains("The rules.\\n\\nThe tools, with the JSON schemas"), "{all}");
        let messages = ["messages", "input"].into_iter().find_map(|key| request[key].as_array()).unwrap();
        let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        assert!(roles.ends_with(&["user", "assistant", "user"]), "{roles:?}");
    }
}

#[test]
fn native_calls_go_back_as_text_to_an_endpoint_with_text_tools() {
    for (api, body) in Api::ALL.into_iter().zip([chat_calls(), responses_calls(), anthropic_calls()]) {
        let call = read_reply(api, ToolUse::Text, &body).unwrap().calls.remove(0);
        assert_eq!(
            (call.name.as_str(), json!(call.arguments)),
            ("act_guess", json!({"Ok": {"content": "7"}})),
            "{api}"
        );
        let said = if api == Api::ChatCompletions { "" } else { "I guess.\n" };
        let text = format!("{said}{}", json!({"tool": "act_guess", "content": "7"}));
        let content = match api {
            Api::AnthropicMessages => json!([{"type": "text", "text": text}]),
            Api::ChatCompletions | Api::Responses => json!(text),
        };
        let request = next_request(api, ToolUse::Text, &body, &Params::default());
        let entries = ["messages", "input"].into_iter().find_map(|key| request[key].as_array()).unwrap();
        let answer = entries.iter().rposition(|entry| entry["role"] == "assistant").unwrap();
        assert_eq!(entries[answer], json!({"role": "assistant", "content": content}), "{api}");
        assert_eq!(entries[answer + 1]["role"], "user", "{api}");
        assert!(!request.to_string().contains("call_abc") && !request.to_string().contains("toolu_1"), "{request}");
        // A call without arguments is written, too.
        let calls = vec![ToolCall { arguments: Err("no JSON".to_owned()), ..call }];
        let reply = Reply { calls, ..Reply::default() };
        assert_eq!(text_tools::with_calls(&reply), r#"{"tool":"act_guess"}"#);
    }
}

#[test]
fn parameters_have_the_names_of_the_api() {
    let extra = json!({"top_k": 40, "temperature": 0.5}).as_object().unwrap().clone();
    let params = Params {
        temperature: Some(1.0),
        top_p: Some(0.9),
        max_tokens: Some(100),
        seed: Some(-1),
        reasoning_effort: Some("high".to_owned()),
        extra,
    };
    let shown = |api: Api, model: &str| {
        let turns = [Turn::Told("Hello.".to_owned())];
        let question = Question { model, system: "", tools: &[], turns: &turns, params: &params };
        assert_eq!(api == Api::ChatCompletions, api.takes_seed());
        request_body(api, ToolUse::Native, &question).to_string()
    };
    expect![[r#"{"max_tokens":100,"messages":[{"content":"Hello.","role":"user"}],"model":"org/m","reasoning_effort":"high","seed":-1,"stream":false,"temperature":0.5,"top_k":40,"top_p":0.9}"#]]
        .assert_eq(&shown(Api::ChatCompletions, "org/m"));
    expect![[r#"{"include":["reasoning.encrypted_content"],"input":[{"content":"Hello.","role":"user"}],"max_output_tokens":100,"model":"m","reasoning":{"effort":"high"},"store":false,"stream":false,"temperature":0.5,"top_k":40,"top_p":0.9}"#]]
        .assert_eq(&shown(Api::Responses, "m"));
    expect![[r#"{"max_tokens":100,"messages":[{"content":[{"text":"Hello.","type":"text"}],"role":"user"}],"model":"m","output_config":{"effort":"high"},"stream":false,"temperature":0.5,"top_k":40,"top_p":0.9}"#]]
        .assert_eq(&shown(Api::AnthropicMessages, "m"));
    for (model, is_new) in [("gpt-5", true), ("o3-mini", true), ("gpt-oss-120b", false), ("olmo", false), ("m", false)]
    {
        assert_eq!(shown(Api::ChatCompletions, model).contains("max_completion_tokens"), is_new, "{model}");
    }
}

#[test]
fn cut_and_refused_answers_are_answers() {
    let native = ToolUse::Native;
    let words = |text: &str| json!({"role": "assistant", "content": text});
    let cases = [
        (Api::ChatCompletions, chat(words(""), "length"), expect![[r#""" [] [1200, 1024, 90, 64] Length"#]]),
        (Api::ChatCompletions, chat(words("I"), "content_filter"), expect![[r#""I" [] [1200, 1024, 90, 64] Refused"#]]),
        (
            Api::ChatCompletions,
            chat(json!({"role": "assistant", "content": null, "refusal": "I can't help."}), "stop"),
            expect![[r#""I can't help." [] [1200, 1024, 90, 64] Refused"#]],
        ),
        (Api::AnthropicMessages, anthropic(json!([]), "refusal"), expect![[r#""" [] [1200, 1024, 90, 0] Refused"#]]),
        (
            Api::AnthropicMessages,
            anthropic(json!([{"type": "text", "text": "So"}]), "max_tokens"),
            expect![[r#""So" [] [1200, 1024, 90, 0] Length"#]],
        ),
        (
            Api::Responses,
            responses(json!([{"type": "message", "role": "assistant", "content": [
                {"type": "refusal", "refusal": "I can't help."},
            ]}])),
            expect![[r#""I can't help." [] [1200, 1024, 90, 64] Refused"#]],
        ),
    ];
    for (api, body, expected) in cases {
        check(api, native, &body, expected);
    }
    for (reason, finish) in [("max_output_tokens", Finish::Length), ("content_filter", Finish::Refused)] {
        let mut body = responses(json!([{"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"}]));
        body["status"] = json!("incomplete");
        body["incomplete_details"] = json!({"reason": reason});
        let reply = read_reply(Api::Responses, native, &body).unwrap();
        assert_eq!((reply.finish, reply.raw), (finish, json!([])), "reasoning without an answer isn't repeated");
    }
}

#[test]
fn ends_of_answers_are_read_in_the_words_of_any_provider() {
    let words = json!({"role": "assistant", "content": "So"});
    let incomplete = |reason: &str| {
        let mut body = responses(json!([]));
        body["status"] = json!("incomplete");
        body["incomplete_details"] = json!({"reason": reason});
        body
    };
    for (reason, finish) in [
        ("stop", Finish::Done),
        ("STOP", Finish::Done),
        ("tool_calls", Finish::Done),
        ("MALFORMED_FUNCTION_CALL", Finish::Done),
        ("SAFETY", Finish::Refused),
        ("Recitation", Finish::Refused),
        ("content_filter: PROHIBITED_CONTENT", Finish::Refused),
        ("FinishReason.SPII", Finish::Refused),
        ("sensitive", Finish::Refused),
        ("MAX_TOKENS", Finish::Length),
        ("Length", Finish::Length),
        ("model_length", Finish::Length),
    ] {
        let read = |api, body: &Value| read_reply(api, ToolUse::Native, body).unwrap().finish;
        assert_eq!(read(Api::ChatCompletions, &chat(words.clone(), reason)), finish, "{reason}");
        assert_eq!(read(Api::AnthropicMessages, &anthropic(json!([]), reason)), finish, "{reason}");
        // An incomplete answer isn't done.
        let expected = if finish == Finish::Done { Finish::Length } else { finish };
        assert_eq!(read(Api::Responses, &incomplete(reason)), expected, "{reason}");
        let without = json!({"choices": [{"finish_reason": reason}]});
        let read = read_reply(Api::ChatCompletions, ToolUse::Native, &without).map(|reply| reply.finish);
        assert_eq!(read.ok(), (finish != Finish::Done).then_some(finish), "{reason} without a message");
    }
}

#[test]
fn odd_answers_are_read_as_far_as_possible() {
    let (native, api) = (ToolUse::Native, Api::ChatCompletions);
    let call = |call: Value| chat(json!({"role": "assistant", "tool_calls": [call]}), "tool_calls");
    // No id, and arguments as an object.
    let odd = call(json!({"function": {"name": "wait", "arguments": {"for": 1}}}));
    check(api, native, &odd, expect![[r#""" [call_0 wait {"for":1}] [1200, 1024, 90, 64] Done"#]]);
    let odd = call(json!({"id": "", "function": {"name": "wait", "arguments": " "}}));
    check(api, native, &odd, expect![[r#""" [call_0 wait {}] [1200, 1024, 90, 64] Done"#]]);
    let odd = call(json!({"id": "c", "function": {"name": "wait", "arguments": "{not"}}));
    check(
        api,
        native,
        &odd,
        expect![[
            r#""" [c wait: the arguments aren't a JSON object: key must be a string at line 1 column 2] [1200, 1024, 90, 64] Done"#
        ]],
    );
    // The history has valid arguments all the same.
    let request = next_request(api, native, &odd, &Params::default());
    assert_eq!(request["messages"][2]["tool_calls"][0]["function"]["arguments"], "{}");
    let parts =
        json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let mut odd = chat(json!({"role": "assistant", "content": parts}), "stop");
    // Reasoning is in the total only.
    odd["usage"] = json!({"prompt_tokens": 10.0, "completion_tokens": 2, "total_tokens": 20.0,
        "prompt_cache_hit_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 8}});
    check(api, native, &odd, expect![[r#""a\nb" [] [10, 4, 10, 8] Done"#]]);
    let odd = anthropic(json!([{"type": "tool_use", "id": "t", "name": "wait", "input": "x"}]), "tool_use");
    check(
        Api::AnthropicMessages,
        native,
        &odd,
        expect![[
            r#""" [t wait: the arguments aren't a JSON object: expected value at line 1 column 1] [1200, 1024, 90, 0] Done"#
        ]],
    );
    for (api, body, expected) in [
        (api, json!({"choices": []}), expect!["error: it has no choices"]),
        (api, json!({"choices": [{"index": 0}]}), expect!["error: its choice has no message"]),
        (api, json!([]), expect!["error: it has no choices"]),
        (Api::Responses, json!({"choices": []}), expect!["error: it has no output"]),
        (Api::Responses, json!({"output": []}), expect!["error: its output is empty"]),
        (Api::AnthropicMessages, json!({"content": "text"}), expect!["error: it has no content"]),
    ] {
        check(api, native, &body, expected);
    }
}

#[test]
fn names_of_apis_are_parsed_and_shown() {
    for api in Api::ALL {
        assert_eq!(api.to_string().parse(), Ok(api));
        assert_eq!(json!(api), json!(api.name()));
    }
    let error = "openai".parse::<Api>().unwrap_err().to_string();
    expect!["there is no API `openai`; the APIs are chat-completions, responses and anthropic-messages"]
        .assert_eq(&error);
}
