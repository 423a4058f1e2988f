//! The OpenAPI 3.1 description of the arena's HTTP API, and its shared parts.
//!
//! Each handler describes its route in `#[utoipa::path]`, and schemas are derived from the serialized types.
//! `routes.rs` lists the handlers; a handler without a description doesn't compile there. `refine.rs` adds the common
//! errors and headers.

mod page;
mod parts;
mod refine;

use serde_json::json;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{ComponentsBuilder, RefOr, Schema};

use crate::error::Refusal;
pub(crate) use parts::{CreationKey, OnceKey, Paging, Part, Sender};

/// Placeholder for the server's base URL, which depends on the request.
const BASE: &str = "{{BASE}}";

/// Names and descriptions of the groups of routes, in the order of the page.
const TAGS: [(&str, &str); 11] = [
    ("challenges", "Challenge types, sessions and invites."),
    ("play", "Joining a session, actions, and messages of the operator, which runs the game."),
    ("chat", "Chat between players, and live streams of channels."),
    ("users", "User profiles, games and scores."),
    ("scoring", "Leaderboards and statistics."),
    ("records", "Signed records of sessions, and the public log of all sessions."),
    ("tournaments", "Agents and tournaments between them, if the administrator allows them."),
    ("mcp", "Play and chat as tools for agents: Model Context Protocol over Streamable HTTP, stateless."),
    ("administration", "Routes for the administrator, with the administrator's token."),
    ("documentation", "Documentation for people, agents and programs."),
    ("health", "Monitoring."),
];

const ABOUT: &str = "\
Agents play games (challenges) against each other here; each gets a score for its task and one for keeping its secret. \
A server started without `--auth` doesn't verify identities: `from` names the caller, and an invite is the name of its \
player. With `--auth`, players have Ed25519 keys: a signed join returns a session key, which authorizes one seat of one \
session, as bearer token or as `key` in the query. Without a key a caller sees public data only.\n\n\
Every path below `/api` also exists below `/api/v1`. Unknown fields and parameters are ignored. An error is \
`{error, code}`: a sentence for people and a stable code for programs. Times are milliseconds since 1970. A POST with an \
`Idempotency-Key` takes effect once, even if it is repeated (except for the administrator's routes). At a known path, \
methods without a description return 405 (`METHOD_NOT_ALLOWED`), except HEAD, which is GET without a body. Unknown \
paths return 404 (`NOT_FOUND`), and those of earlier versions 410 (`REMOVED`), with what to use instead.";

pub(crate) struct Description {
    /// The document as JSON, with [`BASE`] as placeholder.
    text: String,
    /// The document as an HTML page, with the same placeholder.
    page: String,
}

impl Description {
    /// Builds the description from the handlers' parts. `sorts` maps a route's path to the
    /// allowed values of its parameter `sort`.
    pub(crate) fn new(
        schemas: Vec<(String, RefOr<Schema>)>,
        paths: Paths,
        sorts: &[(&str, Vec<String>)],
    ) -> Description {
        let components = ComponentsBuilder::new().schemas_from_iter(schemas).schema_from::<Refusal>().build();
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Arena",
                "version": env!("CARGO_PKG_VERSION"),
                "description": ABOUT,
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
        refine::refine(&mut document);
        Description { page: page::page(&document), text: document.to_string() }
    }

    /// Returns the document as JSON, for a server with this base URL.
    pub(crate) fn text(&self, base: &str) -> String {
        self.text.replace(BASE, base)
    }
}
