//! The tokens in an answer that passes the gateway: a JSON object, or a stream of events. Pure.

use hyper::body::Bytes;
use serde_json::{Map, Value};

use crate::client::BYTES_A_TOKEN;
use crate::{Api, Usage, lenient};

/// The maximum size of an event, and of an answer without events, that is read. Larger ones pass unread, and their
/// tokens are estimated.
const READ_BYTES: usize = 16 << 20;

/// The reader of one answer.
#[derive(Debug)]
pub struct UsageReader {
    api: Api,
    pub is_stream: bool,
    request_bytes: usize,
    answer_bytes: usize,
    /// The unread end of a stream, or the whole object.
    rest: Vec<u8>,
    is_skipping: bool,
    /// The latest numbers. Later events of a stream replace single numbers.
    counted: Map<String, Value>,
}

impl UsageReader {
    pub fn new(api: Api, request_bytes: usize) -> UsageReader {
        UsageReader {
            api,
            is_stream: false,
            request_bytes,
            answer_bytes: 0,
            rest: Vec::new(),
            is_skipping: false,
            counted: Map::new(),
        }
    }

    pub fn read(&mut self, part: &Bytes) {
        self.answer_bytes += part.len();
        if !self.is_stream {
            if self.rest.len() + part.len() <= READ_BYTES {
                self.rest.extend_from_slice(part);
            }
            return;
        }
        let mut lines = part.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = lines.next() {
            if self.rest.len() + piece.len() > READ_BYTES {
                self.rest.clear();
                self.is_skipping = true;
            }
            if !self.is_skipping {
                self.rest.extend_from_slice(piece);
            }
            if lines.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                self.read_line(&line);
                self.is_skipping = false;
            }
        }
    }

    /// Returns the tokens. Numbers that the provider didn't report are estimated.
    pub fn usage(&mut self, is_complete: bool) -> Usage {
        let rest = std::mem::take(&mut self.rest);
        match self.is_stream {
            true => self.read_line(&rest),
            false => {
                if let Ok(Value::Object(mut body)) = lenient::parse(&rest) {
                    self.count(body.remove("usage").as_ref());
                }
            }
        }
        let counted = (self.api.format().read_usage)(&Value::Object(std::mem::take(&mut self.counted)));
        if counted == Usage::default() || !is_complete {
            let tokens = |bytes: usize| bytes.div_ceil(BYTES_A_TOKEN) as u64;
            let (input, output) = (tokens(self.request_bytes), tokens(self.answer_bytes));
            return Usage {
                input: if counted.input > 0 { counted.input } else { input },
                output: counted.output.max(output),
                is_estimated: true,
                ..counted
            };
        }
        counted
    }

    fn read_line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:") else { return };
        // Most events have no usage, and a search costs less than their parsing.
        if !data.windows(7).any(|word| word == b"\"usage\"") {
            return;
        }
        let Ok(event) = lenient::parse::<Value>(data) else { return };
        let places = match self.api {
            Api::ChatCompletions => [event.get("usage"), None],
            Api::Responses => [event.pointer("/response/usage"), None],
            Api::AnthropicMessages => [event.pointer("/message/usage"), event.get("usage")],
        };
        for usage in places {
            self.count(usage);
        }
    }

    fn count(&mut self, usage: Option<&Value>) {
        let Some(Value::Object(usage)) = usage else { return };
        for (key, value) in usage.iter().filter(|(_, value)| !value.is_null()) {
            self.counted.insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a stream in parts of every size.
    #[track_caller]
    fn check(api: Api, stream: &str, expected: (u64, u64, u64)) {
        for size in 1..=stream.len() {
            let mut reader = UsageReader::new(api, 100);
            reader.is_stream = true;
            for part in stream.as_bytes().chunks(size) {
                reader.read(&Bytes::copy_from_slice(part));
            }
            let usage = reader.usage(true);
            assert!(!usage.is_estimated);
            assert_eq!((usage.input, usage.cached, usage.output), expected, "{size}");
        }
    }

    #[test]
    fn tokens_are_read_from_streams_in_any_parts() {
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\"\"}}],\"usage\":null}\r\n\r\n\
                    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\r\n\r\ndata: [DONE]\r\n\r\n";
        check(Api::ChatCompletions, chat, (9, 0, 3));
        let responses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":\
                         {\"input_tokens\":8,\"input_tokens_details\":{\"cached_tokens\":2},\"output_tokens\":4}}}\n\n";
        check(Api::Responses, responses, (8, 2, 4));
        let anthropic = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\
                         \"cache_read_input_tokens\":6,\"output_tokens\":1}}}\n\n\
                         data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}";
        check(Api::AnthropicMessages, anthropic, (11, 6, 7));
    }

    #[test]
    fn missing_numbers_are_estimated() {
        let read = |text: &str, is_stream, is_complete| {
            let mut reader = UsageReader::new(Api::AnthropicMessages, 40);
            reader.is_stream = is_stream;
            reader.read(&Bytes::copy_from_slice(text.as_bytes()));
            let usage = reader.usage(is_complete);
            (usage.input, usage.output, usage.is_estimated)
        };
        assert_eq!(read("{}", false, true), (10, 1, true));
        assert_eq!(read("not JSON", false, true), (10, 2, true));
        assert_eq!(read(r#"{"usage":{"input_tokens":3,"output_tokens":2}}"#, false, true), (3, 2, false));
        assert_eq!(read(r#"{"a":"\ud83d","usage":{"input_tokens":3,"output_tokens":2}}"#, false, true), (3, 2, false));
        let begun = "data: {\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n";
        assert_eq!(read(begun, true, false), (5, 17, true));
    }
}
