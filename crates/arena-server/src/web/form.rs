//! HTML forms, as browsers submit them without scripts.

use std::ops::Deref;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;

use super::{PageError, PageResult};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::{BodyLimit, Get, Input, Query, read_body};

/// A submitted form, parsed and within the limits. An invalid or excess form gets an error page.
pub(super) struct Form {
    pub(super) fields: Query,
    head: Get,
}

impl Deref for Form {
    type Target = Get;

    fn deref(&self) -> &Get {
        &self.head
    }
}

impl FromRequest<Arena> for Form {
    type Rejection = PageError;

    async fn from_request(request: Request, arena: &Arena) -> PageResult<Form> {
        let (mut parts, body) = request.into_parts();
        let head = Get::from_request_parts(&mut parts, arena).await?;
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().is_none_or(|kind| kind.trim() != "application/x-www-form-urlencoded") {
            let text = "pages accept application/x-www-form-urlencoded only; programs can send JSON to /api";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NOT_A_FORM", text).into());
        }
        let limits = &arena.settings.limits;
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: 4 };
        let body = read_body(body, limit, limits, head.request_connection.as_ref()).await?;
        arena.rates.admit_body(head.address, body.len())?;
        let text = std::str::from_utf8(&body);
        let text = text.map_err(|_| ApiError::bad_request("INVALID_FORM", "the form is not valid UTF-8"))?;
        Ok(Form { fields: Query::read(text)?, head })
    }
}

impl Form {
    /// Deserializes the fields as `T`.
    ///
    /// # Errors
    /// If a field is missing or invalid.
    pub(super) fn read<T: DeserializeOwned>(&self) -> ApiResult<T> {
        Input::Form(&self.fields).read(self.field_settings)
    }
}
