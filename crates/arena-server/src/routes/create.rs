//! `POST /api/challenges/{name}`: a new session. The answer shows all invites, this once.

use arena_engine::Create;
use arena_model::{Viewer, view};
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Post;

pub(crate) async fn create_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let options = match request.find_fields() {
        Some(fields) => fields.find_object("options")?.cloned().unwrap_or_default(),
        None => Default::default(),
    };
    let create = Create { challenge: request.param("name").to_owned(), options };
    let respond = Box::new(|written: &arena_engine::Written<'_>| to_text(&view(written.session, Viewer::Creator)));
    Ok(json(arena.engine.create(create, request.once_for_anybody(&arena)?, respond).await?))
}
