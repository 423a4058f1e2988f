//! Bans of users and of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use arena_model::{Timestamp, UserId};

use super::audit::record;
use crate::sql::{Columns, Value};
use crate::tables::ADMINISTRATION;
use crate::{AuditEntry, CommitError, Store, StoreError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    pub subject: BanSubject,
    /// The reason for the ban, as a sentence that the banned user sees.
    pub reason: String,
    pub at: Timestamp,
}

impl Ban {
    pub(crate) fn read(subject: &str, reason: String, at: Timestamp) -> Result<Ban, StoreError> {
        let subject = BanSubject::parse(subject).ok_or_else(|| StoreError::Damaged {
            what: format!("the ban of {subject}"),
            reason: "the subject is neither a user nor a range of addresses".to_owned(),
        })?;
        Ok(Ban { subject, reason, at })
    }
}

/// The subject of a ban. The table's key is the subject's text: `user:` and an id, or `address:` and a range.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BanSubject {
    User(UserId),
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

/// An IP address, or all addresses with a common prefix. A range that is parsed by [`FromStr`] never includes a loopback
/// address, so that administrators can't ban themselves.
///
/// An IPv4 address in IPv6 notation (`::ffff:10.0.0.1`) is treated as the IPv4 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    first: IpAddr,
    /// The length of the common prefix in bits.
    prefix: u8,
}

/// The error for a text that isn't a range of addresses, or that is a range that can't be banned. In a message, the
/// error's text follows the word "is".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRangeError {
    #[error("not an IP address or a range such as 192.0.2.0/24 or 2001:db8::/32")]
    Malformed,
    #[error("a range that includes loopback addresses, which cannot be banned")]
    Loopback,
}

impl AddressRange {
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && first_of(address, self.prefix) == self.first
    }

    /// Parses a range that may include loopback addresses.
    ///
    /// # Errors
    /// [`AddressRangeError::Malformed`] if the text isn't an address or a range.
    pub fn parse_any(text: &str) -> Result<AddressRange, AddressRangeError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let written: IpAddr = address.parse().map_err(|_| AddressRangeError::Malformed)?;
        let bits = if written.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            // `u8::from_str` would accept a plus sign.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => prefix.parse().ok(),
            Some(_) => None,
            None => Some(bits),
        };
        let mut prefix: u8 = prefix.filter(|prefix| *prefix <= bits).ok_or(AddressRangeError::Malformed)?;
        let mut address = written;
        // IPv4 addresses in IPv6 notation share their first 96 bits.
        if written.is_ipv6() && written.to_canonical().is_ipv4() && prefix >= 96 {
            (address, prefix) = (written.to_canonical(), prefix - 96);
        }
        Ok(AddressRange { first: first_of(address, prefix), prefix })
    }

    fn has_loopback(&self) -> bool {
        self.first.is_loopback()
            || self.contains(IpAddr::V4(Ipv4Addr::LOCALHOST))
            || self.contains(IpAddr::V6(Ipv6Addr::LOCALHOST))
    }
}

/// Returns the first of the addresses that share their first `prefix` bits with `address`.
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
        let range = AddressRange::parse_any(text)?;
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

impl Store {
    /// Adds a ban. An existing ban of the same subject gets the new reason and time.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn ban(&self, ban: Ban, audit: AuditEntry) -> Result<(), CommitError> {
        self.write((ban, audit), |(Ban { subject, reason, at }, audit), writing| {
            Box::pin(async move {
                let sql = "INSERT INTO bans (subject, reason, at) VALUES ($1, $2, $3)
                     ON CONFLICT (subject) DO UPDATE SET reason = excluded.reason, at = excluded.at";
                let subject = subject.to_string();
                writing.db.execute(sql, &[Value::prose(subject), Value::prose(&**reason), at.0.into()]).await?;
                writing.changed.insert(ADMINISTRATION);
                record(writing, audit).await.map(drop)
            })
        })
        .await
    }

    /// Lifts a ban and returns true if there was one. If there was none, the audit log gets no entry.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn lift_ban(&self, subject: BanSubject, audit: AuditEntry) -> Result<bool, CommitError> {
        self.write((subject, audit), |(subject, audit), writing| {
            Box::pin(async move {
                let sql = "DELETE FROM bans WHERE subject = $1";
                let lifted = writing.db.execute(sql, &[Value::prose(subject.to_string())]).await? > 0;
                if lifted {
                    writing.changed.insert(ADMINISTRATION);
                    record(writing, audit).await?;
                }
                Ok(lifted)
            })
        })
        .await
    }

    /// Returns all bans, in the order of their subjects' texts.
    ///
    /// # Errors
    /// If the store can't be read, or a ban is damaged.
    pub async fn list_bans(&self) -> Result<Vec<Ban>, StoreError> {
        let read = |row: &dyn Columns| {
            let subject = row.prose(0)?.into_owned();
            let ban = Ban::read(&subject, row.prose(1)?.into_owned(), Timestamp(row.integer(2)?))?;
            Ok((subject, ban))
        };
        let mut bans = self.list("SELECT subject, reason, at FROM bans", &[], read).await?;
        // The bans are sorted here because Postgres orders texts by its locale.
        bans.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(bans.into_iter().map(|(_, ban)| ban).collect())
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
        let all = "127.0.0.1 127.1.2.3/32 0.0.0.0/0 126.0.0.0/7 ::1 ::/0 ::/64 ::ffff:127.0.0.1 ::ffff:0:0/96";
        for loopback in all.split(' ') {
            check(loopback, "Loopback");
        }
        let all = " ada 192.0.2 192.0.2.0/33 192.0.2.0/ 192.0.2.0/+8 192.0.2.0/8/8 ::/129 10.0.0.1:80";
        for malformed in all.split(' ') {
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
            // Random addresses rarely share a prefix, so `other` has the first bits of `bits`.
            let other = bits ^ (other >> keep);
            let range = AddressRange { first: first_of(Ipv6Addr::from_bits(bits).into(), prefix), prefix };
            let address = IpAddr::V6(Ipv6Addr::from_bits(other));
            prop_assume!(address.to_canonical().is_ipv6());
            prop_assert_eq!(range.contains(address), (bits ^ other).leading_zeros() >= u32::from(prefix));
        }
    }
}
