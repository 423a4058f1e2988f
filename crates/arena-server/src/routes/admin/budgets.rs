//! `GET /api/admin/budgets`: the resources that clients use, in total and by address.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::limits::LedgerUse;
use crate::openapi::Paging;
use crate::request::Get;

/// The budgets of a node, and the addresses that use most of them.
#[derive(Serialize, ToSchema)]
struct Budgets {
    budgets: Vec<Budget>,
    addresses: Vec<AddressUse>,
    /// The number of addresses that use anything, including those that aren't listed.
    total: u64,
}

/// A resource of a node, and its limits.
///
/// `storedBytes` are those of the last day. `computingMs` is the time that rules and matches have computed, less the
/// time that the limit has granted since.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Budget {
    name: String,
    used: u64,
    /// The limit for all addresses together, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// The setting of the limit.
    setting: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_address: Option<AddressLimit>,
}

/// The limit of a budget for each address.
#[derive(Serialize, ToSchema)]
struct AddressLimit {
    limit: u64,
    /// The setting of the limit.
    setting: String,
}

/// The resources that one address uses. An IPv6 address stands for its /64 network.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AddressUse {
    address: String,
    /// The amounts that the address uses, by the name of their budget. Of `waitingBytes`, addresses without a limit, such
    /// as this machine, have none.
    used: BTreeMap<String, u64>,
    /// The requests and connections of the address that were refused within a day because of a limit.
    refusals: u64,
}

/// Lists the budgets of this node with their limits, and the addresses that use most of them.
#[utoipa::path(get, path = "/api/admin/budgets", tag = "administration", security(("administratorToken" = [])), params(Paging),
    responses((status = 200, body = Budgets, description = "A page of addresses, of 20 by default.")))]
pub(super) async fn list_budgets(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(20);
    arena.forget_ended_sessions().await?;
    let ledger = arena.ledger.uses();
    let resources = list_resources(&arena, &ledger).await?;

    let mut uses: HashMap<IpAddr, AddressUses> = HashMap::new();
    for Resource { budget, addresses } in &resources {
        // The order of addresses is by the greatest share of a budget.
        let most = budget.of_address.as_ref().map(|of_address| of_address.limit).or(budget.limit).unwrap_or(u64::MAX);
        for (address, used) in addresses {
            let entry = uses.entry(*address).or_default();
            entry.used.insert(budget.name.clone(), *used);
            entry.share = entry.share.max(u128::from(*used) * 1_000_000_000 / u128::from(most.max(1)));
        }
    }
    for (address, LedgerUse { refusals, .. }) in ledger {
        uses.entry(address).or_default().refusals = refusals;
    }
    uses.retain(|_, entry| entry.refusals > 0 || !entry.used.is_empty());
    let total = uses.len() as u64;
    let mut uses: Vec<(IpAddr, AddressUses)> = uses.into_iter().collect();
    uses.sort_by_key(|(address, entry)| (Reverse(entry.share), Reverse(entry.refusals), *address));
    let page = uses.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit);
    let to_wire = |(address, AddressUses { used, refusals, .. }): (IpAddr, AddressUses)| AddressUse {
        address: address.to_string(),
        used,
        refusals,
    };
    let budgets = resources.into_iter().map(|resource| resource.budget).collect();
    Ok(json(to_text(&Budgets { budgets, addresses: page.map(to_wire).collect(), total })))
}

#[derive(Default)]
struct AddressUses {
    used: BTreeMap<String, u64>,
    refusals: u64,
    /// The greatest share of a budget that the address uses, in billionths.
    share: u128,
}

/// A budget, and its use by each address that uses some of it.
struct Resource {
    budget: Budget,
    addresses: Vec<(IpAddr, u64)>,
}

impl Resource {
    /// Creates a budget without limits. `addresses` has the use of each address.
    fn new(name: &str, setting: &str, used: u64, addresses: Vec<(IpAddr, u64)>) -> Resource {
        let budget = Budget { name: name.to_owned(), used, limit: None, setting: setting.to_owned(), of_address: None };
        Resource { budget, addresses: addresses.into_iter().filter(|(_, used)| *used > 0).collect() }
    }

    fn within(mut self, limit: u64) -> Resource {
        self.budget.limit = Some(limit);
        self
    }

    /// Sets the limit per address with its setting. 0 means no limit.
    fn per_address(mut self, limit: u64, setting: &str) -> Resource {
        self.budget.of_address = Some(AddressLimit { limit, setting: setting.to_owned() }).filter(|_| limit > 0);
        self
    }
}

/// Returns all budgets. A new one is one more entry here.
async fn list_resources(arena: &Arena, ledger: &[(IpAddr, LedgerUse)]) -> ApiResult<Vec<Resource>> {
    let limits = &arena.settings.limits;
    let (connections, memory) = (arena.connections.in_use(), arena.connections.memory());
    let (waiting, waiting_of_address) = memory.limits();
    // Without a limit per second there is none at once.
    let computing_limit = if limits.computing_ms_per_second == 0 { 0 } else { limits.computing_burst_ms.max(1) }.into();
    let in_ledger = |name, setting: &str, of: fn(&LedgerUse) -> u64| {
        let addresses: Vec<_> = ledger.iter().map(|(address, used)| (*address, of(used))).collect();
        Resource::new(name, setting, addresses.iter().map(|(_, used)| used).sum(), addresses)
    };
    let queued = arena.engine.count_tickets().await?;
    let waiting_callers = queued.iter().map(|(_, tickets)| tickets).sum();
    // A ticket of a caller without a network belongs to no address.
    let callers = queued.into_iter().filter_map(|(network, tickets)| Some((network.parse().ok()?, tickets))).collect();
    let open = connections.addresses.into_iter().map(|(address, open)| (address, open as u64)).collect();
    let mut resources = vec![
        Resource::new("connections", "limits.connections", connections.open as u64, open)
            .within(connections.most as u64)
            .per_address(connections.most_of_address.unwrap_or(0) as u64, "limits.connections_per_address"),
        Resource::new("waitingBytes", "limits.waiting_bytes", memory.held(), memory.held_by_address())
            .within(waiting)
            .per_address(waiting_of_address.unwrap_or(0), "limits.waiting_bytes_per_address"),
        // The limit of all addresses together is the free disk space.
        in_ledger(LedgerUse::STORED, "limits.stored_bytes_per_address", |used| used.stored)
            .per_address(limits.stored_bytes_per_address, "limits.stored_bytes_per_address"),
        in_ledger(LedgerUse::COMPUTED, "limits.computing_ms_per_second", |used| used.computed_ms)
            .per_address(computing_limit, "limits.computing_burst_ms"),
        in_ledger(LedgerUse::STREAMS, "limits.streams_per_address", |used| used.streams)
            .per_address(limits.streams_per_address as u64, "limits.streams_per_address"),
        in_ledger(LedgerUse::SESSIONS, "limits.running_sessions_per_address", |used| used.sessions)
            .per_address(limits.running_sessions_per_address as u64, "limits.running_sessions_per_address"),
        Resource::new("tickets", "limits.tickets_per_address", waiting_callers, callers)
            .per_address(limits.tickets_per_address.into(), "limits.tickets_per_address"),
    ];
    if let Some(tournaments) = &arena.tournaments {
        let ([agents, unfinished], [agents_by, unfinished_by]) = (tournaments.totals(), tournaments.count_by_maker());
        let settings = tournaments.settings();
        resources.extend([
            Resource::new("agents", "tournaments.agents", agents, agents_by)
                .within(settings.agents as u64)
                .per_address(settings.agents_per_address as u64, "tournaments.agents_per_address"),
            Resource::new("tournaments", "tournaments.max_tournaments", unfinished, unfinished_by)
                .within(settings.max_tournaments as u64)
                .per_address(settings.max_tournaments_per_address as u64, "tournaments.max_tournaments_per_address"),
        ]);
    }
    Ok(resources)
}
