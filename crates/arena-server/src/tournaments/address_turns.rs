//! The order in which addresses have turns: the tournament of the address whose last turn is the longest ago is next.

use std::collections::HashMap;
use std::net::IpAddr;

/// The turns of addresses. Tournaments without an address, such as the administrator's, have turns together.
#[derive(Debug, Default)]
pub(super) struct AddressTurns {
    last: HashMap<Option<IpAddr>, u64>,
    given: u64,
}

impl AddressTurns {
    /// Gives the next turn to one of the waiting addresses, and returns its first place among them. `None` if none waits.
    pub(super) fn give(&mut self, waiting: &[Option<IpAddr>]) -> Option<usize> {
        let last = |place: &usize| self.last.get(&waiting[*place]).copied();
        let place = (0..waiting.len()).min_by_key(last)?;
        if waiting.len() == 1 {
            // Nothing waits for the turn after this one, so earlier turns don't matter.
            self.last.clear();
        }
        self.given += 1;
        self.last.insert(waiting[place], self.given);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_turns_however_many_tournaments_each_has() {
        let [ada, bob] = ["192.0.2.1", "192.0.2.2"].map(|address| Some(address.parse().expect("an address")));
        let mut turns = AddressTurns::default();
        assert_eq!(turns.give(&[]), None);
        // The first address has many tournaments in the queue. The administrator's are as those of one address.
        let mut waiting = vec![ada, ada, ada, bob, None, None];
        let mut order = Vec::new();
        while let Some(place) = turns.give(&waiting) {
            order.push(waiting.remove(place));
        }
        assert_eq!(order, [ada, bob, None, ada, None, ada]);
        // A tournament that goes on and a new one of the same address don't come before the one that waits.
        let mut turns = AddressTurns::default();
        assert_eq!(turns.give(&[bob, ada]), Some(0));
        assert_eq!(turns.give(&[bob, ada]), Some(1));
        assert_eq!(turns.give(&[ada, bob, ada]), Some(1));
    }
}
