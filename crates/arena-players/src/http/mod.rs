//! A seat of a session on a server, over HTTP.
//!
//! A player takes a seat ([`HttpSeat`]) and acts on it. It receives the messages of both channels from an [`Inbox`],
//! which follows them as streams, or from [`play_bot`], the loop that plays a house bot. [`Arena`] has the requests.

mod bot;
mod client;
mod follow;
mod inbox;
mod seat;

use std::time::Duration;

use serde::Serialize;

pub use bot::{BotPolicy, play_bot, wait_for_start};
pub use client::{
    Arena, CallError, ExportError, HttpAnswer, Identity, Read, Stream, StreamEvent, is_loopback, random_bytes,
    random_hex,
};
pub use inbox::{Inbox, InboxEvent, InboxMessage, Next, SeatError};
pub use seat::{HttpSeat, Refusal, way_back};

/// The time for which a server may be unreachable before a player gives up the seat.
pub const OUTAGE: Duration = Duration::from_secs(300);

/// One of a session's two channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelKind {
    Operator,
    Chat,
}
