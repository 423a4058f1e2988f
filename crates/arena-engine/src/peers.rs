//! The other nodes of a shared store, and the preferred node of each session (docs/decisions/0086).
//!
//! Nodes pass requests on to the session's preferred node, which then has the session in memory. This only saves work:
//! each node can answer each request, and nodes may disagree about the preferred node for a while.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arena_model::{InviteCode, SessionId, Timestamp};
use tokio::sync::watch;
use uuid::Uuid;

use crate::engine::{Engine, Inner};

/// The interval between signs of life. A node without one for five seconds counts as lost.
const ANNOUNCE_EACH: Duration = Duration::from_secs(1);

/// The maximum number of draws of an id. With many nodes, a few ids then prefer another node.
const MAX_DRAWS: usize = 64;

pub(crate) struct Peers {
    /// This node's address; unset if it takes no requests from other nodes.
    own: OnceLock<SocketAddr>,
    others: watch::Sender<Arc<[SocketAddr]>>,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers { own: OnceLock::new(), others: watch::Sender::new(Arc::default()) }
    }
}

impl Peers {
    /// Returns the preferred node of an id, unless it is this node.
    fn find(&self, id: Uuid) -> Option<SocketAddr> {
        let own = *self.own.get()?;
        let others = self.others.borrow();
        others.iter().copied().chain([own]).max_by_key(|node| weight(*node, id)).filter(|node| *node != own)
    }

    /// Draws ids until this node is the preferred one.
    fn draw(&self, draw: impl Fn() -> Uuid) -> Uuid {
        let mut id = draw();
        for _ in 1..MAX_DRAWS {
            if self.find(id).is_none() {
                break;
            }
            id = draw();
        }
        id
    }
}

/// Returns the weight of a node for an id. The node with the greatest weight is the preferred one, so that a node that
/// comes or goes changes the preference of its own ids only (rendezvous hashing).
fn weight(node: SocketAddr, id: Uuid) -> (u64, SocketAddr) {
    // Nodes of all versions must compute the same weights, which the hashers of the standard library don't promise.
    let text = node.to_string();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The first digits of an id are random.
    let mut mixed = hash ^ id.as_u64_pair().0;
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(factor);
    }
    (mixed ^ (mixed >> 31), node)
}

impl Inner {
    pub(crate) fn draw_session_id(&self, now: Timestamp) -> SessionId {
        SessionId(self.peers.draw(|| self.environment.uuid(now)))
    }

    pub(crate) fn draw_invite(&self, now: Timestamp) -> InviteCode {
        InviteCode(self.peers.draw(|| self.environment.uuid(now)))
    }
}

impl Engine {
    /// Makes this node known to the others at `own`, and learns their addresses, until the returned future is dropped.
    pub async fn keep_peers(&self, own: SocketAddr) {
        let Inner { peers, store, .. } = &*self.inner;
        // An error means that the address is set already, by a call before.
        let _ = peers.own.set(own);
        let mut is_logged = false;
        loop {
            match store.announce(own).await {
                Ok(others) => {
                    is_logged = false;
                    peers.others.send_if_modified(|known| {
                        let has_changed = **known != *others;
                        if has_changed {
                            tracing::info!("requests are shared with the nodes at {others:?}");
                            *known = others.into();
                        }
                        has_changed
                    });
                }
                Err(error) if !is_logged => {
                    is_logged = true;
                    tracing::warn!(%error, "cannot announce this node to the others: {error}");
                }
                Err(_) => {}
            }
            tokio::time::sleep(ANNOUNCE_EACH).await;
        }
    }

    pub async fn leave_peers(&self) {
        if let Some(own) = self.inner.peers.own.get()
            && let Err(error) = self.inner.store.withdraw(*own).await
        {
            tracing::warn!(%error, "cannot tell the other nodes that this one stops: {error}");
        }
    }

    /// Returns the address of the node that a request for a session or an invite should be passed on to; `None` if this
    /// node should answer it. `id` is the id of the session, or the invite.
    pub fn find_peer(&self, id: Uuid) -> Option<SocketAddr> {
        self.inner.peers.find(id)
    }

    /// Passes no requests on to a node until its next sign of life.
    pub fn suspect_peer(&self, address: SocketAddr) {
        self.inner.peers.others.send_if_modified(|known| {
            let others: Arc<[SocketAddr]> = known.iter().copied().filter(|other| *other != address).collect();
            let has_changed = others.len() < known.len();
            *known = others;
            has_changed
        });
    }

    /// Waits until a node is no longer among those that requests are passed on to.
    pub async fn peer_is_lost(&self, address: SocketAddr) {
        let mut others = self.inner.peers.others.subscribe();
        // An error can't happen, because the engine holds the sender.
        let _ = others.wait_for(|others| !others.contains(&address)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    /// Returns 3,000 ids as the engine draws them.
    fn ids() -> Vec<Uuid> {
        let id = |n: u64| {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).expect("random bytes");
            bytes[10..].copy_from_slice(&n.to_be_bytes()[2..]);
            uuid::Builder::from_random_bytes(bytes).into_uuid()
        };
        (0..3_000).map(id).collect()
    }

    fn peers(own: u16, others: &[u16]) -> Peers {
        let peers = Peers::default();
        peers.own.set(node(own)).expect("it is unset");
        peers.others.send_replace(others.iter().map(|port| node(*port)).collect());
        peers
    }

    #[test]
    fn nodes_agree_on_the_preferred_node_and_have_equal_shares() {
        let views = [peers(1, &[2, 3]), peers(2, &[1, 3]), peers(3, &[2, 1])];
        let mut shares = [0; 3];
        for id in ids() {
            let preferred: Vec<SocketAddr> =
                views.iter().zip(1..).map(|(view, own)| view.find(id).unwrap_or(node(own))).collect();
            assert!(preferred.iter().all(|node| *node == preferred[0]), "{id}: {preferred:?}");
            shares[usize::from(preferred[0].port()) - 1] += 1;
        }
        // The standard deviation is 26.
        assert!(shares.iter().all(|share| (850..1_150).contains(share)), "{shares:?}");
    }

    #[test]
    fn a_lost_node_moves_only_its_own_ids() {
        let (three, two) = (peers(1, &[2, 3]), peers(1, &[2]));
        for id in ids() {
            if three.find(id) != Some(node(3)) {
                assert_eq!(three.find(id), two.find(id), "{id}");
            }
        }
    }

    #[test]
    fn drawn_ids_prefer_this_node() {
        let ids = std::cell::RefCell::new(ids());
        let view = peers(1, &[2, 3]);
        for _ in 0..300 {
            let id = view.draw(|| ids.borrow_mut().pop().expect("enough ids"));
            assert_eq!(view.find(id), None);
        }
        assert!(Peers::default().find(Uuid::nil()).is_none(), "without an address, a node passes nothing on");
    }
}
