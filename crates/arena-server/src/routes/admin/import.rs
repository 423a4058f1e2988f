//! `POST /api/admin/import`: imports JSON lines of an export or of the reference server's responses. This file splits
//! the body into lines as it arrives. The engine validates and stores them.

use std::time::Duration;

use arena_engine::Skipped;
use arena_wire::{ImportReport, SkippedLine};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::BodyExt;

use super::ByAdministrator;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};

fn to_wire(report: arena_engine::ImportReport) -> ImportReport {
    let arena_engine::ImportReport { users, sessions, messages, skipped, skipped_total } = report;
    let skipped = skipped.into_iter().map(|Skipped { line, reason }| SkippedLine { line, reason }).collect();
    ImportReport { users, sessions, messages, skipped, skipped_total }
}

/// Imports JSON lines of an export or of the reference server's responses.
#[utoipa::path(post, path = "/api/admin/import", tag = "administration", security(("administratorToken" = [])),
    request_body(content = inline(Option<Vec<u8>>), content_type = "application/octet-stream",
        description = "JSON lines as an export writes them, with any content type. Existing data is kept."),
        responses((status = 200, body = ImportReport, description = "The numbers of imported and skipped items."),
        (status = 400, description = "`BODY_INCOMPLETE`: the body ended early. Its complete lines were imported."),
        (status = 408, description = "`REQUEST_TIMEOUT`: no data arrived for too long.")))]
pub(super) async fn import(State(arena): State<Arena>, by: ByAdministrator, request: Request) -> ApiResult {
    let limits = &arena.settings.limits;
    let patience = Duration::from_millis(limits.request_ms);
    let mut import = arena.engine.import(by.0, limits.import_bytes).await?;
    let mut lines = Lines::new(limits.import_bytes);
    let mut body = request.into_body();
    loop {
        let piece = next_piece(&mut body, patience).await?;
        let ended = piece.is_none();
        lines.push(&piece.unwrap_or_default(), ended);
        while let Some((line, text)) = lines.next_line() {
            match text.map(String::from_utf8) {
                Ok(Ok(text)) if text.trim().is_empty() => {}
                Ok(Ok(text)) => import.take(line, &text).await?,
                Ok(Err(_)) => import.skip(line, "the line is not valid UTF-8"),
                Err(TooLong) => {
                    import.skip(
                        line,
                        &format!("the line is longer than {} bytes (limits.import_bytes)", limits.import_bytes),
                    );
                }
            }
        }
        if ended {
            return Ok(json(to_text(&to_wire(import.finish().await?))));
        }
    }
}

/// Reads the next piece of a body; `None` after the last.
///
/// # Errors
/// 400 if the body ends early; 408 if no piece arrives within `patience`.
async fn next_piece(body: &mut Body, patience: Duration) -> ApiResult<Option<Bytes>> {
    loop {
        match tokio::time::timeout(patience, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(_))) => {
                let text =
                    "the request body ended early; its complete lines were imported, and it is safe to send them again";
                return Err(ApiError::bad_request("BODY_INCOMPLETE", text));
            }
            Err(_) => {
                let text = format!("no data arrived for {} ms (limits.request_ms)", patience.as_millis());
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", text));
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct TooLong;

/// Splits the pieces of a text into lines.
struct Lines {
    /// Maximum length of a line, in bytes.
    limit: usize,
    /// Received bytes that are not yet returned as lines.
    rest: Vec<u8>,
    /// Number of bytes at the beginning of `rest` that contain no line end.
    searched: usize,
    /// Number of returned lines.
    taken: u64,
    /// True if the current line is too long. The bytes received before were dropped.
    too_long: bool,
    ended: bool,
}

impl Lines {
    fn new(limit: usize) -> Lines {
        Lines { limit, rest: Vec::new(), searched: 0, taken: 0, too_long: false, ended: false }
    }

    /// Adds a piece of the text; `ended` is true for the last one.
    fn push(&mut self, piece: &[u8], ended: bool) {
        self.rest.extend_from_slice(piece);
        self.ended = ended;
    }

    /// Returns the next complete line without its line end, and the line's number from 1.
    fn next_line(&mut self) -> Option<(u64, Result<Vec<u8>, TooLong>)> {
        let end = self.rest[self.searched..].iter().position(|byte| *byte == b'\n').map(|end| self.searched + end);
        let line: Vec<u8> = match end {
            Some(end) => {
                let mut line: Vec<u8> = self.rest.drain(..=end).collect();
                line.pop();
                line
            }
            None if self.ended && (self.too_long || !self.rest.is_empty()) => std::mem::take(&mut self.rest),
            None => {
                if self.rest.len() > self.limit {
                    self.too_long = true;
                    self.rest.clear();
                }
                self.searched = self.rest.len();
                return None;
            }
        };
        self.searched = 0;
        self.taken += 1;
        let too_long = std::mem::take(&mut self.too_long) || line.len() > self.limit;
        Some((self.taken, if too_long { Err(TooLong) } else { Ok(line) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]], limit: usize) -> Vec<(u64, Result<Vec<u8>, TooLong>)> {
        let mut lines = Lines::new(limit);
        let mut read = Vec::new();
        for piece in pieces {
            lines.push(piece, false);
            read.extend(std::iter::from_fn(|| lines.next_line()));
            assert!(lines.rest.len() <= limit, "the buffer is bounded");
        }
        lines.push(b"", true);
        read.extend(std::iter::from_fn(|| lines.next_line()));
        read
    }

    #[test]
    fn lines_are_numbered_and_bounded() {
        let line = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(
            read(&[b"one\n", b"\ntw", b"o\nlast"], 9),
            [(1, line("one")), (2, line("")), (3, line("two")), (4, line("last"))]
        );
        assert_eq!(
            read(&[b"1234\n12345\n", b"123", b"456", b"789\n1"], 4),
            [(1, line("1234")), (2, Err(TooLong)), (3, Err(TooLong)), (4, line("1"))]
        );
        assert_eq!(read(&[b"12345"], 4), [(1, Err(TooLong))]);
        assert_eq!(read(&[], 4), []);
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_lines_are_the_same(text in "[a\n]{0,40}", cuts in prop::collection::vec(0usize..40, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            let expected: Vec<String> = text.lines().map(str::to_owned).collect();
            let lines = read(&pieces, 5).into_iter().map(|(_, line)| line);
            for (line, expected) in lines.zip(&expected) {
                match line {
                    Ok(line) => prop_assert_eq!(String::from_utf8(line).expect("UTF-8"), expected.clone()),
                    Err(TooLong) => prop_assert!(expected.len() > 5),
                }
            }
            prop_assert_eq!(read(&pieces, 5).len(), expected.len());
        }
    }
}
