//! Forms that a browser sends without a script.

use std::net::IpAddr;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};

use super::{PageError, PageResult};
use crate::arena::Arena;
use crate::connections::Line;
use crate::error::ApiError;
use crate::request::{BodyLimit, Query, admit, read_body};

/// A form, parsed and limited. What is wrong with it is told on a page.
pub(super) struct Form {
    /// What was filled in.
    pub(super) fields: Query,
    pub(super) headers: HeaderMap,
    /// Where it came from; unknown only in tests that call the router without a socket.
    pub(super) address: Option<IpAddr>,
    params: Vec<(String, String)>,
}

impl FromRequest<Arena> for Form {
    type Rejection = PageError;

    async fn from_request(request: Request, arena: &Arena) -> PageResult<Form> {
        let (mut parts, body) = request.into_parts();
        let address = admit(&parts.extensions, arena)?;
        let params = crate::request::path_params(&mut parts).await?;
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().is_none_or(|kind| kind.trim() != "application/x-www-form-urlencoded") {
            let text = "a page takes what its forms send (application/x-www-form-urlencoded); programs use /api";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NOT_A_FORM", text).into());
        }
        let limits = &arena.settings.limits;
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: 4 };
        let body = read_body(body, limit, limits, Line::of(&parts.extensions).as_ref()).await?;
        arena.rates.admit_body(address, body.len())?;
        let text = std::str::from_utf8(&body);
        let text = text.map_err(|_| ApiError::bad_request("INVALID_FORM", "the form isn't valid UTF-8"))?;
        Ok(Form { fields: Query::read(text)?, headers: parts.headers, address, params })
    }
}

impl Form {
    pub(super) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}
