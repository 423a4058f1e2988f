//! The cost of MCP: the same read and the same write, in turn as REST call and as tool call.

use serde_json::json;

use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::latency::median;
use crate::player_pool::MeasuredCost;
use crate::psi::{self, Invited, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "games with mcp";

const CONNECTIONS: usize = 16;

/// A call in both forms.
#[derive(Clone)]
struct Call {
    what: &'static str,
    /// The REST call: its target, and the body if it is a POST request.
    rest: (String, Option<String>),
    /// The MCP tool call: its endpoint and body.
    mcp: (&'static str, String),
}

/// Measures both calls.
///
/// # Errors
/// If the server doesn't start or refuses.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let calls = arguments.size(None, 20_000, 2_000);
    for call in prepare(&arena)? {
        // Writes wait for the disk, so a quarter of the calls takes about as long.
        let calls = if call.rest.1.is_some() { calls / 4 } else { calls };
        measure(arguments, report, &arena, &call, calls)?;
    }
    arena.terminate()?;
    Ok(())
}

/// Creates a game with messages to read, and returns the calls of one of its players.
fn prepare(arena: &Server) -> anyhow::Result<[Call; 2]> {
    client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let Invited { id, invites } = psi::begin(&mut connection, ServerKind::Arena).await?;
        let from = &invites[0];
        let tool = |name: &str, arguments: serde_json::Value| {
            let params = json!({ "name": name, "arguments": arguments });
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
        };
        Ok([
            Call {
                what: "read: sync",
                rest: (format!("/api/v1/arena/sync?channel={id}&from={from}"), None),
                mcp: ("/api/v1/arena/mcp", tool("challenge_sync", json!({ "channel": id, "from": from, "index": 1 }))),
            },
            Call {
                what: "write: chat",
                rest: ("/api/v1/chat/send".to_owned(), Some(psi::chat_body(&id, "hello", from))),
                mcp: (
                    "/api/v1/chat/mcp",
                    tool("send_chat", json!({ "channel": id, "from": from, "content": "hello" })),
                ),
            },
        ])
    })
}

fn measure(arguments: &Arguments, report: &mut Report, arena: &Server, call: &Call, calls: u64) -> anyhow::Result<()> {
    let player_pool = arguments.player_pool(CONNECTIONS);
    let rest = || {
        let (target, body) = call.rest.clone();
        player_pool.repeat(arena, calls, async move |connection, _| {
            let answer = match &body {
                None => connection.get(&target).await?,
                Some(body) => connection.post(&target, body.clone()).await?,
            };
            answer.ok("a REST call").map(drop)
        })
    };
    let mcp = || {
        let (endpoint, body) = call.mcp.clone();
        player_pool.repeat(arena, calls, async move |connection, _| {
            let body = connection.post(endpoint, body.clone()).await?.ok("a tool call")?;
            anyhow::ensure!(memchr::memmem::find(&body, br#""isError":false"#).is_some(), "a tool call failed");
            Ok(())
        })
    };
    // The first calls are a warm-up.
    rest()?;
    mcp()?;
    let (mut by_rest, mut by_mcp): (Vec<MeasuredCost>, Vec<MeasuredCost>) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds() {
        by_rest.push(rest()?);
        by_mcp.push(mcp()?);
    }
    let what = call.what;
    let ratio = |value: fn(&MeasuredCost) -> f64| {
        median(by_mcp.iter().zip(&by_rest).map(|(mcp, rest)| value(mcp) / value(rest)))
    };
    let each = |spent: &[MeasuredCost], value: fn(&MeasuredCost) -> f64| median(spent.iter().map(value)) / calls as f64;
    report
        .row(NAME, format!("{what}: time, MCP / REST"), ratio(|spent| spent.seconds), "×")
        .goal(Goal::AtMost(3.0))
        .note(format!(
            "{:.1} and {:.1} µs a call, {CONNECTIONS} connections",
            each(&by_mcp, |spent| spent.seconds) * 1e6,
            each(&by_rest, |spent| spent.seconds) * 1e6
        ));
    report
        .row(NAME, format!("{what}: server CPU, MCP / REST"), ratio(|spent| spent.server_cpu_us), "×")
        .goal(Goal::AtMost(3.0))
        .note(format!(
            "{:.1} and {:.1} µs a call",
            each(&by_mcp, |spent| spent.server_cpu_us),
            each(&by_rest, |spent| spent.server_cpu_us)
        ));
    Ok(())
}
