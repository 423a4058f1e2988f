//! Session keys. A server issues them to joined players as proof of their seats.

use std::fmt;
use std::str::FromStr;

use arena_model::{Seat, SessionId, hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::statement::{owner_text, session_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a session key s_SEAT.HMAC, with 64 lower-case hexadecimal digits after the dot")]
pub struct SessionKeyError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("the secret has {bytes} bytes, but needs at least {}", ServerSecret::MIN_BYTES)]
    TooShort { bytes: usize },
}

/// The key to one seat of one session: `s_{seat}.{64 hexadecimal digits}`. It doesn't contain the session's id.
///
/// The key authenticates the seat's player, so `Debug` doesn't print it and there is no `Display`.
/// [`ServerSecret::issued`] compares keys, so there is no `==`.
#[derive(Clone)]
pub struct SessionKey {
    seat: Seat,
    mac: [u8; 32],
}

impl SessionKey {
    pub fn seat(&self) -> Seat {
        self.seat
    }

    pub fn reveal(&self) -> String {
        format!("s_{}.{}", self.seat.0, hex::encode(&self.mac))
    }
}

impl FromStr for SessionKey {
    type Err = SessionKeyError;

    /// Parses a key. Each key has only one valid text: the seat has no sign and no leading zeros, and the text has no
    /// capitals and no white space.
    fn from_str(text: &str) -> Result<Self, SessionKeyError> {
        let (seat, mac) = text.strip_prefix("s_").and_then(|rest| rest.split_once('.')).ok_or(SessionKeyError)?;
        let seat = Seat(seat.parse().map_err(|_| SessionKeyError)?);
        let mac = hex::decode(mac).ok_or(SessionKeyError)?;
        let key = SessionKey { seat, mac };
        // The parsing above is lenient. The comparison with the canonical text rejects all other forms.
        if key.reveal() == text { Ok(key) } else { Err(SessionKeyError) }
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s_{}.…", self.seat.0)
    }
}

/// The secret from which one server computes its session keys and owner keys.
#[derive(Clone)]
pub struct ServerSecret(Hmac<Sha256>);

impl ServerSecret {
    /// In bytes. Sixteen random bytes can't be guessed; shorter secrets are usually words.
    pub const MIN_BYTES: usize = 16;

    /// Creates the secret from these bytes unchanged: `AUTH_SECRET`, or the content of a file.
    ///
    /// # Errors
    /// If there are fewer bytes than [`ServerSecret::MIN_BYTES`].
    pub fn new(secret: &[u8]) -> Result<ServerSecret, SecretError> {
        if secret.len() < ServerSecret::MIN_BYTES {
            return Err(SecretError::TooShort { bytes: secret.len() });
        }
        Ok(ServerSecret(Hmac::new_from_slice(secret).expect("HMAC takes keys of every length")))
    }

    /// Returns a new secret as text, made from 32 random bytes: 64 hexadecimal digits.
    pub fn text_from_random(bytes: [u8; 32]) -> String {
        hex::encode(&bytes)
    }

    pub fn session_key(&self, session: SessionId, seat: Seat) -> SessionKey {
        let mac = self.over(&session_text(session, seat)).finalize().into_bytes().into();
        SessionKey { seat, mac }
    }

    /// The comparison takes the same time for every wrong key.
    pub fn issued(&self, key: &SessionKey, session: SessionId) -> bool {
        self.over(&session_text(session, key.seat)).verify_slice(&key.mac).is_ok()
    }

    /// Returns the owner's key for an object on this server, such as `agent/ID`. The key has the form `o_{64
    /// hexadecimal digits}`. It is computed and never stored, so no stored data reveals it.
    pub fn owner_key(&self, thing: &str) -> String {
        let mac: [u8; 32] = self.over(&owner_text(thing)).finalize().into_bytes().into();
        format!("o_{}", hex::encode(&mac))
    }

    /// Returns true if `key` is the owner's key for `thing`. The comparison takes the same time for every wrong key.
    pub fn owns(&self, key: &str, thing: &str) -> bool {
        let mac = key.strip_prefix("o_").and_then(hex::decode::<32>);
        mac.is_some_and(|mac| self.over(&owner_text(thing)).verify_slice(&mac).is_ok())
    }

    /// Returns a digest of the secret, as 64 hexadecimal digits. Servers with the same secret have the same digest, and
    /// the digest reveals nothing else.
    pub fn fingerprint(&self) -> String {
        let mac: [u8; 32] = self.over("arena:v1:fingerprint").finalize().into_bytes().into();
        hex::encode(&mac)
    }

    fn over(&self, text: &str) -> Hmac<Sha256> {
        self.0.clone().chain_update(text)
    }
}

/// Secrets are equal if the same keys are computed from them.
impl PartialEq for ServerSecret {
    fn eq(&self, other: &ServerSecret) -> bool {
        self.0.clone().finalize() == other.0.clone().finalize()
    }
}

impl fmt::Debug for ServerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_owners_key_opens_one_thing_of_one_server() {
        let [secret, other] =
            [b"sixteen bytes..1", b"sixteen bytes..2"].map(|text| ServerSecret::new(text).expect("a secret"));
        let key = secret.owner_key("agent/1");
        assert!(secret.owns(&key, "agent/1"));
        assert!(!secret.owns(&key, "agent/2") && !secret.owns(&key, "tournament/1") && !other.owns(&key, "agent/1"));
        for wrong in ["", "o_", &key[2..], &key.to_uppercase(), &format!("{key}0"), &secret.owner_key("agent/2")] {
            assert!(!secret.owns(wrong, "agent/1"), "{wrong}");
        }
    }

    fn session(last: u64) -> SessionId {
        SessionId(uuid::Uuid::from_u64_pair(0x018f_6b2e_0000_7000, 0x8000_0000_0000_0000 | last))
    }

    fn secret(text: &str) -> ServerSecret {
        ServerSecret::new(text.as_bytes()).expect("long enough")
    }

    // Computed by Node 20: createHmac('sha256', 'a secret of 16 b').update('arena:v1:session:…:1').
    #[test]
    fn a_key_is_the_hmac_of_session_and_seat() {
        let key = secret("a secret of 16 b").session_key(session(0xabcd), Seat(1));
        assert_eq!(key.reveal(), "s_1.dec42cc0fa65fb41867aae64bf5af39fdaf8182b698726577336c49bbcd4de7e");
    }

    #[test]
    fn a_key_has_one_spelling() {
        let mac = "dec42cc0fa65fb41867aae64bf5af39fdaf8182b698726577336c49bbcd4de7e";
        for good in [format!("s_1.{mac}"), format!("s_0.{mac}"), format!("s_10.{mac}")] {
            assert_eq!(good.parse::<SessionKey>().expect("a key").reveal(), good);
        }
        for bad in [
            "".to_owned(),
            "s_".to_owned(),
            "s_1".to_owned(),
            "s_1.".to_owned(),
            mac.to_owned(),
            format!("1.{mac}"),
            format!("s_.{mac}"),
            format!("S_1.{mac}"),
            format!("s_01.{mac}"),
            format!("s_00.{mac}"),
            format!("s_+1.{mac}"),
            format!("s_-1.{mac}"),
            format!("s_-0.{mac}"),
            format!("s_ 1.{mac}"),
            format!("s_1 .{mac}"),
            format!("s_1x.{mac}"),
            format!("s_x1.{mac}"),
            format!("s_0x1.{mac}"),
            format!("s_1e0.{mac}"),
            format!("s_1.0.{mac}"),
            format!("s_1,0.{mac}"),
            format!("s_\u{661}.{mac}"),
            format!("s_99999999999999999999.{mac}"),
            format!("s_1.{}", mac.to_uppercase()),
            format!("s_1.{}", &mac[1..]),
            format!("s_1.{mac}0"),
            format!("s_1.{mac} "),
            format!(" s_1.{mac}"),
            format!("s_1.{mac}\n"),
            format!("s_1..{mac}"),
            format!("s_1.{}g", &mac[1..]),
            format!("s_1.{}é", &mac[2..]),
            format!("Bearer s_1.{mac}"),
        ] {
            assert!(bad.parse::<SessionKey>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        assert_eq!(ServerSecret::new(b"fifteen bytes .").unwrap_err(), SecretError::TooShort { bytes: 15 });
        assert_eq!(ServerSecret::new(b"").unwrap_err().to_string(), "the secret has 0 bytes, but needs at least 16");
        assert!(ServerSecret::new(ServerSecret::text_from_random([7; 32]).as_bytes()).is_ok());
    }

    #[test]
    fn nothing_secret_shows_in_debug() {
        let secret = secret("a secret of 16 b");
        let key = secret.session_key(session(1), Seat(3));
        assert_eq!(format!("{secret:?} {key:?}"), "ServerSecret(…) s_3.…");
    }

    proptest! {
        #[test]
        fn a_key_opens_its_own_seat_and_no_other(
            ours: [u8; 32], theirs: [u8; 32], here: u32, there: u32, seat in 0usize..12, other in 0usize..12, flip in 0usize..256,
        ) {
            prop_assume!(ours != theirs && here != there && seat != other);
            let secret = |bytes: [u8; 32]| ServerSecret::new(&bytes).expect("long enough");
            let (ours, theirs) = (secret(ours), secret(theirs));
            let (here, there) = (session(here.into()), session(there.into()));
            let key: SessionKey = ours.session_key(here, Seat(seat)).reveal().parse().expect("a key");
            prop_assert!(ours.issued(&key, here));
            prop_assert!(!ours.issued(&key, there));
            prop_assert!(!theirs.issued(&key, here));
            let elsewhere = SessionKey { seat: Seat(other), mac: key.mac };
            prop_assert!(!ours.issued(&elsewhere, here));
            let mut forged = key.clone();
            forged.mac[flip / 8] ^= 1 << (flip % 8);
            prop_assert!(!ours.issued(&forged, here));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(s_)?[0-9+. x]{0,6}[.]?[0-9a-fA-Fé]{0,66}") {
            if let Ok(key) = text.parse::<SessionKey>() {
                prop_assert_eq!(key.reveal(), text);
            }
        }
    }
}
