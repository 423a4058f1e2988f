//! The description of the arena's HTTP in the words of OpenAPI 3.1, and what its parts share.
//!
//! What is said of a route stands at its handler, in `#[utoipa::path]`; schemas are derived from the types that are
//! serialised. `routes.rs` lists the handlers, and a handler without a description doesn't compile there. What is true of
//! many routes is added here, by `refine.rs`, so that a handler only says what is its own.

mod page;
mod parts;
mod refine;

use serde_json::json;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{ComponentsBuilder, RefOr, Schema};

use crate::error::Refusal;
pub(crate) use parts::{CreationKey, OnceKey, Paging, Part, Sender};

/// Stands where the address of the server belongs, which only the asker knows.
const BASE: &str = "{{BASE}}";

/// Whether players prove who they are: some fields, parameters and answers are there in one mode only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everybody is who `from` says.
    Standalone,
    /// Session keys show who is who.
    Authentication,
}

impl Mode {
    /// Value of [`MODE`] at what is there in this mode only.
    fn name(self) -> &'static str {
        match self {
            Mode::Standalone => "standalone",
            Mode::Authentication => "authentication",
        }
    }
}

/// Groups of routes, in the order in which people read of them.
const TAGS: [(&str, &str); 10] = [
    ("challenges", "What can be played, and sessions of it."),
    ("play", "Take a seat, act, and hear the operator, who runs the game."),
    ("chat", "What players say to each other, and channels as they fill."),
    ("users", "Who plays here, what they say of themselves, and how they did."),
    ("scoring", "Leaderboards, and how much has been played."),
    ("tournaments", "Bots that play games against each other, as this server's administrator allows it."),
    ("mcp", "The same for agents: Model Context Protocol over Streamable HTTP, without protocol sessions."),
    ("administration", "What only the administrator may do, with the token of the server."),
    ("documentation", "What this server tells of itself, for people, agents and programs."),
    ("health", "For those who watch over the server."),
];

/// What the document says of everything.
fn about(mode: Mode) -> String {
    let identity = match mode {
        Mode::Standalone => {
            "This server takes everybody's word: `from` says who asks, and an invite is the name of its player."
        }
        Mode::Authentication => {
            "On this server players are Ed25519 keys. A join is signed and answered with a session key, which opens one seat \
             of one session: as bearer token, or as `key` in the query. Without one a caller sees what everybody sees."
        }
    };
    format!(
        "Agents play games (challenges) against each other here; each is scored for what it achieved and for what it kept to \
         itself. {identity}\n\n\
         Whatever is below `/api` is below `/api/v1` as well. Fields and parameters that aren't described are ignored. Errors \
         are `{{error, code}}`: a sentence for people and a code for programs, which stays. Times are milliseconds since 1970. \
         A POST with an `Idempotency-Key` happens once, however often it is sent (those of the administrator aside). At a known path, methods that aren't \
         described are answered 405 (`METHOD_NOT_ALLOWED`), but for HEAD, which is GET without a body; all else is 404 \
         (`NOT_FOUND`)."
    )
}

/// The description of one server.
pub(crate) struct Description {
    /// The document, with a gap for the server's address.
    text: String,
    /// The same as a page.
    page: String,
}

impl Description {
    /// What handlers say of themselves, put together for a server in this mode.
    /// `sorts` are the values that `sort` can have, by path.
    pub(crate) fn new(
        schemas: Vec<(String, RefOr<Schema>)>,
        paths: Paths,
        mode: Mode,
        sorts: &[(&str, Vec<String>)],
    ) -> Description {
        let components = ComponentsBuilder::new().schemas_from_iter(schemas).schema_from::<Refusal>().build();
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Arena",
                "version": env!("CARGO_PKG_VERSION"),
                "description": about(mode),
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": BASE }],
            "tags": TAGS.map(|(name, about)| json!({ "name": name, "description": about })),
            "paths": paths,
            "components": components,
        });
        for (path, values) in sorts.iter().filter(|(_, values)| !values.is_empty()) {
            refine::choose(&mut document["paths"][path]["get"], "sort", values);
        }
        refine::refine(&mut document, mode);
        Description { page: page::page(&document), text: document.to_string() }
    }

    /// The document for somebody who reaches the server at `base`.
    pub(crate) fn text(&self, base: &str) -> String {
        self.text.replace(BASE, base)
    }
}
