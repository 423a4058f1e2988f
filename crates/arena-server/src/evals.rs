//! The pages of evaluations, for `arena eval show`. The pages are in `web/evals.rs`.

pub use crate::web::evals::router;
