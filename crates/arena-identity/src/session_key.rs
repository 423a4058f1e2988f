//! Session keys: what a server gives whoever has joined, and takes as proof of the seat from then on.

use std::fmt;
use std::str::FromStr;

use arena_model::{Seat, SessionId, hex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::statement::{owner_text, session_text};

/// A text that can't be a session key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session key is s_SEAT.HMAC, with 64 lower-case hexadecimal digits behind the point")]
pub struct SessionKeyError;

/// A secret that can't be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// It could be guessed.
    #[error("a secret needs at least {} bytes, and this one has {bytes}", ServerSecret::MIN_BYTES)]
    TooShort {
        /// How long it is.
        bytes: usize,
    },
}

/// The key to one seat of one session: `s_{seat}.{64 hexadecimal digits}`. Which session isn't written in it.
///
/// Whoever has it speaks for the seat, so `Debug` doesn't print it and there is no `Display`; and comparing it with another
/// is [`ServerSecret::issued`]'s, so there is no `==` either.
#[derive(Clone)]
pub struct SessionKey {
    seat: Seat,
    mac: [u8; 32],
}

impl SessionKey {
    /// The seat that it claims to be for.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// The key as its holder is told it.
    pub fn reveal(&self) -> String {
        format!("s_{}.{}", self.seat.0, hex::encode(&self.mac))
    }
}

impl FromStr for SessionKey {
    type Err = SessionKeyError;

    /// Reads a key. Each has one spelling: no sign or zeros before the seat, no capitals, nothing around it.
    fn from_str(text: &str) -> Result<Self, SessionKeyError> {
        let (seat, mac) = text.strip_prefix("s_").and_then(|rest| rest.split_once('.')).ok_or(SessionKeyError)?;
        let seat = Seat(seat.parse().map_err(|_| SessionKeyError)?);
        let mac = hex::decode(mac).ok_or(SessionKeyError)?;
        let key = SessionKey { seat, mac };
        // What is read leniently above is written otherwise here.
        if key.reveal() == text { Ok(key) } else { Err(SessionKeyError) }
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s_{}.…", self.seat.0)
    }
}

/// What makes session keys, and nobody else can: the secret of one server.
#[derive(Clone)]
pub struct ServerSecret(Hmac<Sha256>);

impl ServerSecret {
    /// Fewest bytes of a secret. Sixteen random bytes can't be guessed; shorter ones are words, mostly.
    pub const MIN_BYTES: usize = 16;

    /// The secret that these bytes are, as they stand: `AUTH_SECRET`, or the content of a file.
    ///
    /// # Errors
    /// If they are fewer than [`ServerSecret::MIN_BYTES`].
    pub fn new(secret: &[u8]) -> Result<ServerSecret, SecretError> {
        if secret.len() < ServerSecret::MIN_BYTES {
            return Err(SecretError::TooShort { bytes: secret.len() });
        }
        Ok(ServerSecret(Hmac::new_from_slice(secret).expect("HMAC takes keys of every length")))
    }

    /// A new secret as text, for it to be kept, out of 32 random bytes: 64 hexadecimal digits.
    pub fn text_from_random(bytes: [u8; 32]) -> String {
        hex::encode(&bytes)
    }

    /// The key to a seat of a session.
    pub fn session_key(&self, session: SessionId, seat: Seat) -> SessionKey {
        let mac = self.over(&session_text(session, seat)).finalize().into_bytes().into();
        SessionKey { seat, mac }
    }

    /// Whether this server gave out `key` for its seat of this session. Takes the same time whatever is wrong with it.
    pub fn issued(&self, key: &SessionKey, session: SessionId) -> bool {
        self.over(&session_text(session, key.seat)).verify_slice(&key.mac).is_ok()
    }

    /// The key that its owner shows for something that this server keeps, such as `agent/ID`: `o_{64 hexadecimal digits}`. It can be
    /// told again, and nothing that is stored opens anything.
    pub fn owner_key(&self, thing: &str) -> String {
        let mac: [u8; 32] = self.over(&owner_text(thing)).finalize().into_bytes().into();
        format!("o_{}", hex::encode(&mac))
    }

    /// Whether `key` is the one of this thing's owner. Takes the same time whatever is wrong with it.
    pub fn owns(&self, key: &str, thing: &str) -> bool {
        let mac = key.strip_prefix("o_").and_then(hex::decode::<32>);
        mac.is_some_and(|mac| self.over(&owner_text(thing)).verify_slice(&mac).is_ok())
    }

    /// What shows whether two servers have the same secret, and nothing else of it: 64 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        let mac: [u8; 32] = self.over("arena:v1:fingerprint").finalize().into_bytes().into();
        hex::encode(&mac)
    }

    fn over(&self, text: &str) -> Hmac<Sha256> {
        self.0.clone().chain_update(text)
    }
}

/// Two secrets are the same if they make the same keys.
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
        assert_eq!(
            ServerSecret::new(b"").unwrap_err().to_string(),
            "a secret needs at least 16 bytes, and this one has 0"
        );
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
