//! The export of a build without the feature `otel`: there is none.

use arena_server::TraceContext;

use super::BoxedLayer;
use crate::exit::Failure;

/// An export that can't exist.
pub enum NoExport {}

impl NoExport {
    pub fn start() -> Result<Option<NoExport>, Failure> {
        Ok(None)
    }

    pub fn layer(&self) -> BoxedLayer {
        match *self {}
    }

    pub fn context(&self) -> TraceContext {
        match *self {}
    }
}
