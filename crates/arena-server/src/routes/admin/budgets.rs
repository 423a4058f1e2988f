//! `GET /api/admin/budgets`: the resources that clients use, in total and by address.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;

use arena_wire::{AddressLimit, AddressUse, Budget, Budgets};
use axum::extract::State;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::openapi::Paging;
use crate::request::Get;

/// Lists the budgets of this node with their limits, and the addresses that use most of them.
#[utoipa::path(get, path = "/api/admin/budgets", tag = "administration", security(("administratorToken" = [])), params(Paging),
    responses((status = 200, body = Budgets, description = "A page of addresses, of 20 by default.")))]
pub(super) async fn list_budgets(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(20);
    let (connections, memory) = (arena.connections.in_use(), arena.connections.memory());
    let (waiting_bytes, waiting_bytes_of_address) = memory.limits();
    let setting = |name: &str| format!("limits.{name}");
    let per_address = |limit: u64, name: &str| AddressLimit { limit, setting: setting(&format!("{name}_per_address")) };
    let entries = arena.ledger.entries();
    let budgets = vec![
        Budget {
            name: "connections".to_owned(),
            used: connections.open as u64,
            limit: Some(connections.most as u64),
            setting: setting("connections"),
            of_address: connections.most_of_address.map(|most| per_address(most as u64, "connections")),
        },
        Budget {
            name: "waitingBytes".to_owned(),
            used: memory.held(),
            limit: Some(waiting_bytes),
            setting: setting("waiting_bytes"),
            of_address: waiting_bytes_of_address.map(|limit| per_address(limit, "waiting_bytes")),
        },
        // The limit of all addresses together is the free disk space.
        Budget {
            name: "storedBytes".to_owned(),
            used: entries.iter().map(|(_, entry)| entry.stored).sum(),
            limit: None,
            setting: setting("stored_bytes_per_address"),
            of_address: arena.ledger.limit().map(|limit| per_address(limit, "stored_bytes")),
        },
    ];

    let mut used: HashMap<IpAddr, Used> = HashMap::new();
    for (address, open) in connections.addresses {
        used.entry(address).or_default().connections = open as u64;
    }
    for (address, bytes) in memory.held_by_address() {
        used.entry(address).or_default().waiting = bytes;
    }
    for (address, entry) in entries {
        let used = used.entry(address).or_default();
        (used.stored, used.refusals) = (entry.stored, entry.refusals);
    }
    let total = used.len() as u64;
    let mut used: Vec<_> = used.into_iter().collect();
    // The order is by the greatest share of a budget. The whole ledger has no limit, so the shares are of what an address
    // may store.
    let stored_limit = arena.ledger.limit().unwrap_or(u64::MAX);
    let share = |Used { connections: open, waiting, stored, .. }: Used| {
        let share = |used: u64, limit: u64| u128::from(used) * 1_000_000_000 / u128::from(limit.max(1));
        let shares = [(open, connections.most as u64), (waiting, waiting_bytes), (stored, stored_limit)];
        shares.map(|(used, limit)| share(used, limit)).into_iter().max()
    };
    used.sort_by_key(|(address, used)| (Reverse(share(*used)), Reverse(used.refusals), *address));
    let page = used.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
    let to_wire = |(address, used): (IpAddr, Used)| AddressUse {
        address: address.to_string(),
        connections: used.connections,
        waiting_bytes: used.waiting,
        stored_bytes: used.stored,
        refusals: used.refusals,
    };
    Ok(json(to_text(&Budgets { budgets, addresses: page.map(to_wire).collect(), total })))
}

/// The resources that an address uses.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    connections: u64,
    waiting: u64,
    /// The bytes that it has stored within a day.
    stored: u64,
    /// The refusals that it got within a day.
    refusals: u64,
}
