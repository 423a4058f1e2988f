//! Lists that are complete without `limit`: users and leaderboards. Their rows are read while the response is sent, so
//! that memory is bounded for lists of any length.

use std::collections::VecDeque;

use arena_engine::EngineError;
use arena_model::{Board, Order};
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use bytes::Bytes;
use futures_util::stream;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::scoring::Row;
use crate::answer::json;
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::Part;
use crate::request::{Get, Query};

/// Number of rows per read.
const PAGE: usize = 100;

/// The header with the number of rows on all pages.
pub(crate) const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

pub(super) enum RowSource {
    Users,
    Board(Board, Order),
}

struct Rows {
    /// JSON of the rows, separated by commas.
    text: Vec<u8>,
    count: u64,
    /// Number of rows in the whole list.
    total: u64,
}

impl RowSource {
    async fn read(&self, arena: &Arena, offset: u64, limit: usize) -> Result<Rows, EngineError> {
        match self {
            RowSource::Users => {
                let page = arena.engine.list_users(offset, limit).await?;
                Ok(write(&page.items, page.total))
            }
            RowSource::Board(board, order) => {
                let page = arena.engine.list_board(board, *order, offset, limit).await?;
                let rows: Vec<Row> = page.items.into_iter().map(Row::from).collect();
                Ok(write(&rows, page.total))
            }
        }
    }
}

fn write(rows: &[impl Serialize], total: u64) -> Rows {
    let mut text = Vec::with_capacity(rows.len() * 160);
    for (i, row) in rows.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, row).expect("rows are texts and numbers");
    }
    Rows { text, count: rows.len() as u64, total }
}

/// Builds a response with one list; `None` means an empty list.
pub(super) async fn list(arena: Arena, request: &Get, source: Option<RowSource>) -> ApiResult {
    let lists = source.map(|source| ("[".to_owned(), source)).into_iter().collect();
    answer(arena, request, lists, "[]", "").await
}

/// Builds a response with an object of lists.
pub(super) async fn lists(arena: Arena, request: &Get, named: Vec<(&str, RowSource)>) -> ApiResult {
    let lists = named.into_iter().enumerate().map(|(i, (name, source))| {
        let name = serde_json::Value::from(name);
        (format!("{}{name}:[", if i == 0 { '{' } else { ',' }), source)
    });
    answer(arena, request, lists.collect(), "{}", "}").await
}

struct Unfinished {
    source: RowSource,
    /// JSON of the rows that are read but not yet written.
    text: Vec<u8>,
    /// True if a row has been written, so the next row needs a comma.
    begun: bool,
    /// Position of the first unread row.
    next: u64,
    /// Position after the last row.
    until: u64,
}

/// A response that reads its rows while it is written.
struct RowsResponse {
    arena: Arena,
    lists: VecDeque<Unfinished>,
    end: &'static str,
}

/// Each list follows its prefix. `end` is the text after all lists. Without lists the response is `empty`.
async fn answer(
    arena: Arena,
    request: &Get,
    lists: Vec<(String, RowSource)>,
    empty: &'static str,
    end: &'static str,
) -> ApiResult {
    let (offset, limit) = request.query::<Part>()?.window();
    let mut answer = RowsResponse { arena, lists: VecDeque::new(), end };
    let mut longest = 0;
    // The first rows of each list are read before the response begins. Its headers contain the lists' lengths, and a
    // failed read can still become an error response.
    for (begin, source) in lists {
        let first = limit.unwrap_or(u64::MAX).min(PAGE as u64) as usize;
        let Rows { text, count, total } = source.read(&answer.arena, offset, first).await?;
        longest = longest.max(total);
        let until = limit.map_or(total, |limit| total.min(offset.saturating_add(limit)));
        let text = [begin.as_bytes(), text.as_slice()].concat();
        // The next read continues after `first` positions, not after `count` rows: a player may have left the board
        // since it was sorted, so a page may have fewer rows than positions.
        let next = offset.saturating_add(first as u64);
        answer.lists.push_back(Unfinished { source, text, begun: count > 0, next, until });
    }
    let is_whole = answer.lists.iter().all(|list| list.next >= list.until);
    let mut response = match (answer.lists.is_empty(), is_whole) {
        (true, _) => json(empty),
        (false, true) => {
            let mut text = Vec::new();
            while let Some(piece) = answer.piece().await? {
                text.extend_from_slice(&piece);
            }
            json(text)
        }
        (false, false) => {
            let pieces = stream::try_unfold(answer, |mut answer| async move {
                let piece = answer.piece().await.inspect_err(|error| {
                    tracing::error!(%error, "a response was cut off because the store cannot be read: {error}");
                })?;
                Ok::<_, EngineError>(piece.map(|piece| (Bytes::from(piece), answer)))
            });
            json(Body::from_stream(pieces))
        }
    };
    let headers = response.headers_mut();
    headers.insert(TOTAL, HeaderValue::from(longest));
    if let Some(links) = limit.and_then(|limit| links(&request.uri, &request.query, offset, limit, longest)) {
        headers.insert(header::LINK, links);
    }
    Ok(response)
}

impl RowsResponse {
    /// Returns the next piece of the response; `None` after the last.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(list) = self.lists.front_mut() else { return Ok(None) };
        let mut text = std::mem::take(&mut list.text);
        if text.is_empty() {
            let wanted = (list.until - list.next).min(PAGE as u64);
            let rows = list.source.read(&self.arena, list.next, wanted as usize).await?;
            list.next += wanted;
            if rows.count > 0 {
                if std::mem::replace(&mut list.begun, true) {
                    text.push(b',');
                }
                text.extend_from_slice(&rows.text);
            }
        }
        if list.next >= list.until {
            text.push(b']');
            self.lists.pop_front();
            if self.lists.is_empty() {
                text.extend_from_slice(self.end.as_bytes());
            }
        }
        Ok(Some(text))
    }
}

/// Returns the `Link` header with the next, previous, first and last page (RFC 8288); `None` if there is only one page.
fn links(uri: &Uri, query: &Query, offset: u64, limit: u64, total: u64) -> Option<HeaderValue> {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let others: String = query
        .pairs()
        .filter(|(name, _)| !["limit", "offset"].contains(name))
        .map(|(name, value)| format!("{}={}&", encode(name), encode(value)))
        .collect();
    let last = total.saturating_sub(1) / limit * limit;
    let pages = [
        ("next", offset.checked_add(limit).filter(|next| *next < total)),
        ("prev", (offset > 0).then(|| offset.saturating_sub(limit))),
        ("first", (total > limit).then_some(0)),
        ("last", (total > limit).then_some(last)),
    ];
    let links: Vec<String> = pages
        .into_iter()
        .filter_map(|(name, offset)| {
            Some(format!("<{}?{others}limit={limit}&offset={}>; rel=\"{name}\"", uri.path(), offset?))
        })
        .collect();
    if links.is_empty() { None } else { HeaderValue::from_str(&links.join(", ")).ok() }
}
