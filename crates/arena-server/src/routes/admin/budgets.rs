//! `GET /api/admin/budgets`: the resources that clients use, in total and by address.

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
    let limit_of = |name: &str, setting: &str, used: u64, limit: u64, of_address: Option<u64>| Budget {
        name: name.to_owned(),
        used,
        limit,
        setting: format!("limits.{setting}"),
        of_address: of_address.map(|limit| AddressLimit { limit, setting: format!("limits.{setting}_per_address") }),
    };
    let of_address = connections.most_of_address.map(|most| most as u64);
    let budgets = vec![
        limit_of("connections", "connections", connections.open as u64, connections.most as u64, of_address),
        limit_of("waitingBytes", "waiting_bytes", memory.held(), waiting_bytes, waiting_bytes_of_address),
    ];

    let mut used: HashMap<IpAddr, (u64, u64)> = HashMap::new();
    for (address, open) in connections.addresses {
        used.entry(address).or_default().0 = open as u64;
    }
    for (address, bytes) in memory.held_by_address() {
        used.entry(address).or_default().1 = bytes;
    }
    let total = used.len() as u64;
    let mut used: Vec<_> = used.into_iter().collect();
    // The order is by the greater share of the two budgets.
    let share = |(open, bytes): (u64, u64)| {
        let share = |used: u64, limit: u64| u128::from(used) * 1_000_000_000 / u128::from(limit.max(1));
        share(open, connections.most as u64).max(share(bytes, waiting_bytes))
    };
    used.sort_by_key(|(address, used)| (std::cmp::Reverse(share(*used)), *address));
    let page = used.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
    let to_wire = |(address, (connections, waiting_bytes)): (IpAddr, (u64, u64))| AddressUse {
        address: address.to_string(),
        connections,
        waiting_bytes,
    };
    Ok(json(to_text(&Budgets { budgets, addresses: page.map(to_wire).collect(), total })))
}
