//! The files of the pages, which are part of the binary: a style sheet, and scripts without which everything can be read.

use std::sync::LazyLock;

use arena_model::hex;
use arena_web::{ASSETS, BOARDS_STYLE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::{GUARDS, PageResult, Visit};
use crate::error::ApiError;

/// A file, and a tag that changes with it.
struct Asset {
    name: &'static str,
    kind: HeaderValue,
    tag: HeaderValue,
    text: &'static str,
}

const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    // The pictures of reports and boards of games stand on the pages, so that their style belongs to all of them.
    let text = format!("{}{}{}", *BOARDS_STYLE, include_str!("style.css"), arena_report::picture_style());
    Asset::new("style.css", CSS, text.leak())
});

static OTHERS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let own = [
        Asset::new("icon.svg", SVG, include_str!("icon.svg")),
        Asset::new("page.js", SCRIPT, include_str!("page.js")),
        Asset::new("session.js", SCRIPT, include_str!("session.js")),
        Asset::new("play.js", SCRIPT, include_str!("play.js")),
        Asset::new("keys.js", SCRIPT, include_str!("keys.js")),
        Asset::new("tournament.js", SCRIPT, include_str!("tournament.js")),
        Asset::new("admin.js", SCRIPT, include_str!("admin.js")),
        Asset::new("events.js", SCRIPT, include_str!("events.js")),
        Asset::new("said.js", SCRIPT, include_str!("said.js")),
        Asset::new("home.js", SCRIPT, include_str!("home.js")),
        Asset::new("live.js", SCRIPT, include_str!("live.js")),
        Asset::new("moves.js", SCRIPT, include_str!("moves.js")),
    ];
    // Games are drawn by the same modules here and in replays.
    let shared =
        ASSETS.iter().map(|asset| Asset::new(asset.path, HeaderValue::from_static(asset.media_type), asset.text));
    own.into_iter().chain(shared).collect()
});

impl Asset {
    fn new(name: &'static str, kind: HeaderValue, text: &'static str) -> Asset {
        let hash = Sha256::digest(text);
        let hex = hex::encode(&hash[..8]);
        let tag = HeaderValue::from_str(&format!("\"{hex}\"")).expect("hexadecimal digits in quotes");
        Asset { name, kind, tag, text }
    }

    /// The file, unless the asker has it.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let has_it = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == self.tag);
        let mut response = match has_it {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => Response::new(self.text.into()),
        };
        let told = response.headers_mut();
        told.insert(header::CONTENT_TYPE, self.kind.clone());
        told.insert(header::ETAG, self.tag.clone());
        // Pages and scripts of different versions don't fit together: ask each time, and be told that it is the same.
        told.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        told.extend(GUARDS);
        response
    }
}

/// `GET /style.css`: how pages look.
pub(super) async fn style(visit: Visit) -> Response {
    STYLE.answer(&visit.headers)
}

/// `GET /web/{*file}`: what pages load besides.
pub(super) async fn file(visit: Visit) -> PageResult {
    let name = visit.param("file");
    let found = OTHERS.iter().find(|asset| asset.name == name);
    let asset = found.ok_or_else(|| ApiError::not_found("NOT_FOUND", "there is no such file"))?;
    Ok(asset.answer(&visit.headers))
}
