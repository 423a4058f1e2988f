//! Who isn't let in: users, and addresses from which nothing is answered.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use arena_model::{Timestamp, UserId};
use rusqlite::params;

use crate::audit::record;
use crate::{AuditEntry, CommitError, SqliteStore, StoreError};

/// A ban.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// Who is banned.
    pub subject: BanSubject,
    /// Why, in a sentence that whoever is banned is told.
    pub reason: String,
    /// Since when.
    pub at: Timestamp,
}

impl Ban {
    /// A ban as it is stored.
    pub(crate) fn read(subject: &str, reason: String, at: Timestamp) -> Result<Ban, StoreError> {
        let subject = BanSubject::parse(subject).ok_or_else(|| StoreError::Damaged {
            what: format!("the ban of {subject}"),
            reason: "nobody can be banned under such a name".to_owned(),
        })?;
        Ok(Ban { subject, reason, at })
    }
}

/// Who can be banned. Its text, `user:` and an id or `address:` and a range, is the key in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BanSubject {
    /// A user, by its id.
    User(UserId),
    /// Whoever asks from one of these addresses.
    Addresses(AddressRange),
}

impl fmt::Display for BanSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BanSubject::User(user) => write!(f, "user:{user}"),
            BanSubject::Addresses(range) => write!(f, "address:{range}"),
        }
    }
}

impl BanSubject {
    fn parse(text: &str) -> Option<BanSubject> {
        match text.split_once(':')? {
            ("user", id) => id.parse().ok().map(BanSubject::User),
            ("address", range) => range.parse().ok().map(BanSubject::Addresses),
            _ => None,
        }
    }
}

/// An IP address, or all addresses that begin with the same bits. Never one of this machine's own: nobody shall be able
/// to lock themselves out.
///
/// An IPv4 address that is written as an IPv6 one (`::ffff:10.0.0.1`) is the IPv4 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    /// The first address of the range.
    first: IpAddr,
    /// How many bits all of its addresses begin with.
    prefix: u8,
}

/// A text that is no range of addresses that can be banned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRangeError {
    /// It isn't an address.
    #[error("not an IP address, or a prefix such as 192.0.2.0/24 or 2001:db8::/32")]
    Malformed,
    /// It has loopback addresses in it.
    #[error("a range with addresses of this machine itself, which can't be banned")]
    Loopback,
}

impl AddressRange {
    /// Whether the address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && first_of(address, self.prefix) == self.first
    }

    fn has_loopback(&self) -> bool {
        self.first.is_loopback()
            || self.contains(IpAddr::V4(Ipv4Addr::LOCALHOST))
            || self.contains(IpAddr::V6(Ipv6Addr::LOCALHOST))
    }
}

/// The first of the addresses that begin with the same `prefix` bits as this one.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, AddressRangeError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let written: IpAddr = address.parse().map_err(|_| AddressRangeError::Malformed)?;
        let bits = if written.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            // `parse` would take a plus sign.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => prefix.parse().ok(),
            Some(_) => None,
            None => Some(bits),
        };
        let mut prefix: u8 = prefix.filter(|prefix| *prefix <= bits).ok_or(AddressRangeError::Malformed)?;
        let mut address = written;
        // The part of IPv6 that is IPv4 begins with 96 bits that are always the same.
        if written.is_ipv6() && written.to_canonical().is_ipv4() && prefix >= 96 {
            (address, prefix) = (written.to_canonical(), prefix - 96);
        }
        let range = AddressRange { first: first_of(address, prefix), prefix };
        if range.has_loopback() { Err(AddressRangeError::Loopback) } else { Ok(range) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.prefix) {
            (IpAddr::V4(address), 32) => address.fmt(f),
            (IpAddr::V6(address), 128) => address.fmt(f),
            (first, prefix) => write!(f, "{first}/{prefix}"),
        }
    }
}

impl SqliteStore {
    pub(crate) async fn ban(&self, ban: Ban, audit: AuditEntry) -> Result<(), CommitError> {
        self.writer
            .write(move |writing| {
                let Ban { subject, reason, at } = &ban;
                writing.connection.execute(
                    "INSERT INTO bans (subject, reason, at) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO UPDATE SET reason = excluded.reason, at = excluded.at",
                    params![subject.to_string(), reason, at.0],
                )?;
                record(writing.connection, &audit)?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn lift_ban(&self, subject: BanSubject, audit: AuditEntry) -> Result<bool, CommitError> {
        self.writer
            .write(move |writing| {
                let lifted =
                    writing.connection.execute("DELETE FROM bans WHERE subject = ?1", [subject.to_string()])? > 0;
                if lifted {
                    record(writing.connection, &audit)?;
                }
                Ok(lifted)
            })
            .await
    }

    pub(crate) async fn list_bans(&self) -> Result<Vec<Ban>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT subject, reason, at FROM bans ORDER BY subject")?;
            let mut rows = statement.query([])?;
            let mut bans = Vec::new();
            while let Some(row) = rows.next()? {
                let subject: String = row.get(0)?;
                bans.push(Ban::read(&subject, row.get(1)?, Timestamp(row.get(2)?))?);
            }
            Ok(bans)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<AddressRange>() {
            Ok(range) => range.to_string(),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_range_has_one_spelling_and_no_loopback() {
        check("192.0.2.7", "192.0.2.7");
        check("192.0.2.7/32", "192.0.2.7");
        check("192.0.2.7/24", "192.0.2.0/24");
        check("192.0.2.7/1", "128.0.0.0/1");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7/120", "192.0.2.0/24");
        check("2001:db8:0:0::7", "2001:db8::7");
        check("2001:db8:0:1:2::/64", "2001:db8:0:1::/64");
        for loopback in [
            "127.0.0.1",
            "127.1.2.3/32",
            "0.0.0.0/0",
            "126.0.0.0/7",
            "::1",
            "::/0",
            "::/64",
            "::ffff:127.0.0.1",
            "::ffff:0:0/96",
        ] {
            check(loopback, "Loopback");
        }
        for malformed in [
            "",
            "ada",
            "192.0.2",
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2.0/+8",
            "192.0.2.0/8/8",
            "::/129",
            "10.0.0.1:80",
        ] {
            check(malformed, "Malformed");
        }
    }

    proptest! {
        #[test]
        fn a_range_contains_what_begins_with_its_bits(bits in any::<u32>(), other in any::<u32>(), prefix in 1u8..=32) {
            let range = AddressRange { first: first_of(Ipv4Addr::from_bits(bits).into(), prefix), prefix };
            let same = (bits ^ other).leading_zeros() >= u32::from(prefix);
            let address = Ipv4Addr::from_bits(other);
            prop_assert_eq!(range.contains(address.into()), same);
            prop_assert_eq!(range.contains(address.to_ipv6_mapped().into()), same);
            prop_assert!(!range.contains(Ipv6Addr::from_bits(u128::from(other) << 64).into()));
        }

        #[test]
        fn a_longer_range_contains_what_begins_with_its_bits(bits: u128, other: u128, keep in 0u32..128, prefix in 1u8..=128) {
            // Random addresses have hardly a bit in common, so some of them are taken over.
            let other = bits ^ (other >> keep);
            let range = AddressRange { first: first_of(Ipv6Addr::from_bits(bits).into(), prefix), prefix };
            let address = IpAddr::V6(Ipv6Addr::from_bits(other));
            prop_assume!(address.to_canonical().is_ipv6());
            prop_assert_eq!(range.contains(address), (bits ^ other).leading_zeros() >= u32::from(prefix));
        }
    }
}
