//! The pages' style sheet and scripts, embedded in the binary.

use std::io::Write;
use std::sync::LazyLock;

use arena_model::hex;
use arena_web::{ASSETS, BOARDS_STYLE, SEAT_ASSETS};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::{GUARDS, PageResult, Visit};
use crate::error::ApiError;

/// A file, plain and compressed, with the entity tags of both.
struct Asset {
    name: &'static str,
    kind: HeaderValue,
    plain: (HeaderValue, &'static [u8]),
    gzip: (HeaderValue, &'static [u8]),
}

/// The content security policy of pictures as files.
const PICTURE_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");

const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");

/// The files. All are served side by side in `/web/`, and scripts import each other by these names.
static FILES: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    // Any page may contain pictures of reports or boards of games, so the common style sheet includes theirs.
    let style = format!("{}{}{}", *BOARDS_STYLE, include_str!("style.css"), arena_report::picture_style());
    let own = [
        Asset::new("style.css", CSS, style.leak()),
        Asset::new("icon.svg", SVG, include_str!("icon.svg")),
        Asset::new("tables.css", CSS, include_str!("tables.css")),
        Asset::new("page.js", SCRIPT, include_str!("page.js")),
        Asset::new("session.js", SCRIPT, include_str!("session/session.js")),
        Asset::new("play.js", SCRIPT, include_str!("play/play.js")),
        Asset::new("queue.js", SCRIPT, include_str!("challenges/queue.js")),
        Asset::new("keys.js", SCRIPT, include_str!("play/keys.js")),
        Asset::new("tournament.js", SCRIPT, include_str!("tournaments/tournament.js")),
        Asset::new("admin.js", SCRIPT, include_str!("admin/admin.js")),
        Asset::new("moderate.js", SCRIPT, include_str!("session/moderate.js")),
        Asset::new("events.js", SCRIPT, include_str!("session/events.js")),
        Asset::new("transcript.js", SCRIPT, include_str!("session/transcript.js")),
        Asset::new("session.css", CSS, include_str!("session/session.css")),
        Asset::new("record.js", SCRIPT, include_str!("session/record.js")),
        Asset::new("record-check.js", SCRIPT, include_str!("session/record-check.js")),
        Asset::new("log-files.js", SCRIPT, include_str!("log/log-files.js")),
        Asset::new("log.js", SCRIPT, include_str!("log/log.js")),
        Asset::new("message.js", SCRIPT, include_str!("session/message.js")),
        Asset::new("home.js", SCRIPT, include_str!("home/home.js")),
        Asset::new("live.js", SCRIPT, include_str!("session/live.js")),
        Asset::new("play.css", CSS, include_str!("play/play.css")),
        Asset::new("icon-turn.svg", SVG, include_str!("play/icon-turn.svg")),
    ];
    // Live pages and replays draw games with the same modules.
    let shared = ASSETS
        .iter()
        .chain(&*SEAT_ASSETS)
        .map(|asset| Asset::new(asset.path, HeaderValue::from_static(asset.media_type), asset.text));
    own.into_iter().chain(shared).collect()
});

/// A hash of all files. Pages and scripts of different versions don't work together, so they have different addresses.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    FILES.iter().for_each(|file| hash.update(file.plain.1));
    hex::encode(&hash.finalize()[..8])
});

/// Returns the address of a file, or of the folder of all files if `name` is empty. Browsers may keep it for a year.
pub(super) fn address_of(name: &str) -> String {
    format!("/web/{}/{name}", *VERSION)
}

impl Asset {
    fn new(name: &'static str, kind: HeaderValue, text: &'static str) -> Asset {
        let packed = gzip(text.as_bytes(), Compression::best());
        Asset { name, kind, plain: (tag_of(text), text.as_bytes()), gzip: (tag_of(&packed), &*packed.leak()) }
    }

    /// Returns the file, compressed if the client accepts that, or 304 if the client's copy is current.
    fn answer(&self, headers: &HeaderMap, caching: HeaderValue) -> Response {
        let is_packed = accepts_gzip(headers);
        let (tag, bytes) = if is_packed { &self.gzip } else { &self.plain };
        let mut response = tagged(headers, tag.clone(), *bytes);
        let headers = response.headers_mut();
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CONTENT_TYPE, self.kind.clone());
        headers.insert(header::CACHE_CONTROL, caching);
        response
    }
}

pub(super) fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), level);
    packed.write_all(bytes).expect("memory takes all bytes");
    packed.finish().expect("memory takes all bytes")
}

pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        // A weight of 0 means that the client refuses the coding.
        parts.next() == Some("gzip") && parts.all(|weight| !matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn tag_of(text: impl AsRef<[u8]>) -> HeaderValue {
    let hex = hex::encode(&Sha256::digest(text)[..8]);
    HeaderValue::from_str(&format!("\"{hex}\"")).expect("hexadecimal digits in quotes")
}

/// Returns 304 if the client's copy has this tag. The caller adds the content type and the caching policy.
fn tagged(headers: &HeaderMap, tag: HeaderValue, text: impl Into<Body>) -> Response {
    let has_it = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag);
    let mut response = match has_it {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Response::new(text.into()),
    };
    response.headers_mut().insert(header::ETAG, tag);
    response.headers_mut().extend(GUARDS);
    response
}

/// Returns a picture that contains its own style and loads nothing, or 304 if the client's copy is current.
pub(super) fn svg(headers: &HeaderMap, text: String, caching: HeaderValue) -> Response {
    let mut response = tagged(headers, tag_of(&text), text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    headers.insert(header::CONTENT_SECURITY_POLICY, PICTURE_POLICY);
    headers.insert(header::CACHE_CONTROL, caching);
    response
}

/// Returns a PNG file, or 304 if the client's copy is current.
pub(super) fn png(headers: &HeaderMap, file: Bytes) -> Response {
    let mut response = tagged(headers, tag_of(&file), file);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
    // The players' names may change.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// `GET /web/{*file}`: scripts, style sheets and pictures. Only the address with the version is kept by browsers.
pub(super) async fn file(visit: Visit) -> PageResult {
    let path = visit.param("file");
    let (version, name) = path.split_once('/').unwrap_or(("", path));
    let caching = match version == *VERSION {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let found = FILES.iter().find(|file| file.name == name);
    let found = found.map(|file| file.answer(&visit.headers, HeaderValue::from_static(caching)));
    Ok(found.ok_or_else(|| ApiError::not_found("NOT_FOUND", "file not found"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_accept_gzip_get_it() {
        let of =
            |value: &'static str| HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
        assert!(accepts_gzip(&of("gzip, deflate, br, zstd")) && accepts_gzip(&of("br;q=1.0, gzip;q=0.8")));
        assert!(!accepts_gzip(&of("gzip;q=0")) && !accepts_gzip(&of("br")) && !accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_compressed_file_has_a_tag_of_its_own() {
        let style = FILES.iter().find(|file| file.name == "style.css").expect("a file");
        assert_ne!(style.plain.0, style.gzip.0);
        assert!(style.gzip.1.len() * 3 < style.plain.1.len());
    }
}
