//! Ed25519 keys in the form of the wire protocol: DER in hexadecimal digits, as SPKI for public keys and PKCS#8 for
//! private keys.

use std::fmt;
use std::str::FromStr;

use arena_model::{InviteCode, Timestamp, UserId, hex};
use ed25519_dalek::pkcs8::spki::der::SecretDocument;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, KeypairBytes, PublicKeyBytes};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::statement::{ProfileUpdate, bound_update_text, join_text};

/// The length of an Ed25519 public key as SPKI DER (RFC 8410), in bytes.
const SPKI_BYTES: usize = 44;

/// The maximum length of a private key, in bytes of DER. A key of version 2, which includes the public key, has 83
/// bytes. Attributes are rare and short.
const MAX_PKCS8_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("expected an Ed25519 public key (SPKI DER, 88 hexadecimal digits)")]
    Public,
    #[error("the public key is not a point of Ed25519 in canonical form")]
    Point,
    /// A point of small order. Signatures of such a key match almost any text, so they prove nothing.
    #[error("the public key is weak (a point of small order); use another key")]
    Weak,
    #[error("expected an Ed25519 private key (PKCS#8 DER, in hexadecimal digits)")]
    Private,
}

/// An Ed25519 public key. Only one encoding of each key is accepted.
///
/// The key is a canonical point that isn't of small order. A point may still have a component of small order. Such a
/// key gives its creator no advantage over a second ordinary key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    point: VerifyingKey,
    hex: String,
}

impl PublicKey {
    fn new(point: VerifyingKey) -> PublicKey {
        let der = PublicKeyBytes(point.to_bytes()).to_public_key_der().expect("44 bytes are short enough for DER");
        PublicKey { point, hex: hex::encode(der.as_bytes()) }
    }

    /// Returns the SPKI DER as 88 lower-case hexadecimal digits: `publicKey` on the wire.
    pub fn as_hex(&self) -> &str {
        &self.hex
    }

    /// Returns the user id of the key's holder: SHA-256 of [`PublicKey::as_hex`], in 64 lower-case digits.
    pub fn user_id(&self) -> UserId {
        hex::encode(&Sha256::digest(&self.hex)).parse().expect("64 digits are a user id")
    }

    pub(crate) fn signed(&self, text: &str, signature: &Signature) -> bool {
        // Strict verification rejects signatures that match several keys or texts.
        self.point.verify_strict(text.as_bytes(), signature).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    /// Parses the `publicKey` of the wire. Digits of either case give the same key.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let der: [u8; SPKI_BYTES] = hex::decode(text).ok_or(KeyError::Public)?;
        let bytes = PublicKeyBytes::try_from(&der[..]).map_err(|_| KeyError::Public)?.to_bytes();
        let point = VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::Point)?;
        // A coordinate that is increased by the field's prime would be a second encoding of the same key.
        if point.to_edwards().compress().to_bytes() != bytes {
            return Err(KeyError::Point);
        }
        if point.is_weak() {
            return Err(KeyError::Weak);
        }
        Ok(PublicKey::new(point))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.hex)
    }
}

/// A player's private key, for signatures. The key's memory is wiped on drop.
pub struct KeyPair(pub(crate) SigningKey);

impl KeyPair {
    /// Creates a key from 32 random bytes, which are as secret as the key.
    pub fn from_random(bytes: [u8; 32]) -> KeyPair {
        KeyPair(SigningKey::from_bytes(&bytes))
    }

    /// Returns the 32 bytes of the secret key.
    pub fn to_secret(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Parses a private key: PKCS#8 DER in hexadecimal digits, of version 1 (as Node's `crypto` exports it) or 2 (with
    /// the public key, which must match).
    ///
    /// # Errors
    /// [`KeyError::Private`] for every other text.
    pub fn from_pkcs8_hex(text: &str) -> Result<KeyPair, KeyError> {
        let der = decode_secret(text).ok_or(KeyError::Private)?;
        SigningKey::from_pkcs8_der(der.as_bytes()).map(KeyPair).map_err(|_| KeyError::Private)
    }

    /// Returns the private key as PKCS#8 DER of version 1: 48 bytes as 96 hexadecimal digits. The result is secret.
    pub fn to_pkcs8_hex(&self) -> String {
        let bare = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        hex::encode(bare.to_pkcs8_der().expect("48 bytes are short enough for DER").as_bytes())
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey::new(self.0.verifying_key())
    }

    /// Signs a join with `invite`. Returns the `signature` of the request: 128 hexadecimal digits.
    pub fn sign_join(&self, invite: InviteCode, at: Timestamp) -> String {
        self.sign(&join_text(invite, at))
    }

    /// Signs a change of the holder's profile. The signed text includes the change. Returns 128 hexadecimal digits.
    pub fn sign_profile_update(&self, update: &ProfileUpdate<'_>, at: Timestamp) -> String {
        self.sign(&bound_update_text(update, at))
    }

    pub(crate) fn sign(&self, text: &str) -> String {
        hex::encode(&self.0.sign(text.as_bytes()).to_bytes())
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({:?}, …)", self.public_key())
    }
}

/// Decodes DER from hexadecimal digits, into memory that is wiped on drop.
fn decode_secret(text: &str) -> Option<SecretDocument> {
    let mut der = vec![0; (text.len() / 2).min(MAX_PKCS8_BYTES)];
    hex::decode_into(text, &mut der)?;
    SecretDocument::try_from(der).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    /// The bytes before the 32 bytes of an Ed25519 key in SPKI DER, and in PKCS#8 DER of version 1.
    const SPKI: &str = "302a300506032b6570032100";
    const PKCS8: &str = "302e020100300506032b657004220420";

    fn bytes(text: &str) -> [u8; 32] {
        hex::decode(text).expect("32 bytes")
    }

    // RFC 8032, section 7.1: secret key, public key, and signature of the text in ASCII. (Its third text isn't
    // UTF-8.)
    #[test]
    fn keys_and_signatures_are_those_of_rfc_8032() {
        for (secret, public, text, signature) in [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "r",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
        ] {
            let pair = KeyPair::from_random(bytes(secret));
            assert_eq!(pair.public_key().as_hex(), format!("{SPKI}{public}"));
            assert_eq!(pair.to_pkcs8_hex(), format!("{PKCS8}{secret}"));
            assert_eq!(pair.sign(text), signature);
        }
    }

    #[track_caller]
    fn check(what: &str, key: &str, expected: KeyError) {
        assert_eq!(key.parse::<PublicKey>().map(|key| key.hex), Err(expected), "{what}: {key:?}");
    }

    #[test]
    fn other_texts_are_no_ed25519_keys() {
        let good = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert!(format!("{SPKI}{good}").parse::<PublicKey>().is_ok());
        for (what, key) in [
            ("nothing", String::new()),
            ("bare", good.to_owned()),
            ("white space", format!(" {SPKI}{good}")),
            ("a line end", format!("{SPKI}{good}\n")),
            ("a prefix", format!("0x{SPKI}{good}")),
            ("no digits", format!("{SPKI}{}zz", &good[2..])),
            ("half a byte less", format!("{SPKI}{}", &good[1..])),
            ("a byte less", format!("{SPKI}{}", &good[2..])),
            ("a byte more", format!("{SPKI}{good}00")),
            ("trailing junk", format!("{SPKI}{good}deadbeef")),
            ("twice", format!("{SPKI}{good}{SPKI}{good}")),
            ("wrong outer length", format!("302b{}{good}", &SPKI[4..])),
            ("long form of a length", format!("30812a{}{}", &SPKI[4..], &good[2..])),
            ("another tag", format!("312a{}{good}", &SPKI[4..])),
            ("unused bits", format!("{}01{good}", &SPKI[..22])),
            ("parameters", format!("302c300706032b65700500032100{}", &good[4..])),
            ("X25519", format!("302a300506032b656e032100{good}")),
            ("X448", format!("302a300506032b656f032100{good}")),
            ("Ed448", format!("302a300506032b6571032100{good}")),
            ("Ed448 in full", format!("3043300506032b6571033a00{good}{}", &good[..50])),
            ("P-256", format!("3059301306072a8648ce3d020106082a8648ce3d03010703420004{good}{good}")),
            ("a private key", format!("{PKCS8}{good}")),
            (
                "PEM",
                "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n".to_owned(),
            ),
            ("other digits", format!("{SPKI}{}", "é".repeat(32))),
        ] {
            check(what, &key, KeyError::Public);
        }
    }

    #[test]
    fn points_that_prove_nothing_are_refused() {
        // All points of small order in canonical form.
        for point in [
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000080",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        ] {
            check("small order", &format!("{SPKI}{point}"), KeyError::Weak);
        }
        // x = 0 has no sign.
        for point in [
            "0100000000000000000000000000000000000000000000000000000000000080",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        ] {
            check("negative zero", &format!("{SPKI}{point}"), KeyError::Point);
        }
        // y plus the prime 2^255 - 19: all values that fit into 255 bits, points or not, with either sign.
        for low in 0xed..=0xff_u8 {
            for high in [0x7f, 0xff] {
                let mut point = [0xff; 32];
                (point[0], point[31]) = (low, high);
                check("not canonical", &format!("{SPKI}{}", hex::encode(&point)), KeyError::Point);
            }
        }
        let no_point = "0200000000000000000000000000000000000000000000000000000000000000";
        check("not on the curve", &format!("{SPKI}{no_point}"), KeyError::Point);
    }

    #[test]
    fn private_keys_of_both_versions_are_read() {
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let other = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        let v1 = format!("{PKCS8}{secret}");
        let v2 = |public: &str| format!("3051020101300506032b657004220420{secret}812100{public}");
        let check = |text: &str, expected: Expect| {
            let text = match KeyPair::from_pkcs8_hex(text) {
                Ok(pair) => pair.public_key().as_hex().to_owned(),
                Err(error) => error.to_string(),
            };
            expected.assert_eq(&text);
        };
        check(&v1, expect!["302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]);
        check(
            &v1.to_uppercase(),
            expect!["302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
        );
        check(
            &v2(public),
            expect!["302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"],
        );
        for bad in [
            String::new(),
            secret.to_owned(),
            format!("{v1}00"),
            v1[..94].to_owned(),
            v1[..95].to_owned(),
            v2(other),
            v2(&public[2..]),
            v1.replace("2b6570", "2b656e"),
            format!("{SPKI}{public}"),
            "00".repeat(100_000),
            "zz".repeat(48),
        ] {
            check(&bad, expect!["expected an Ed25519 private key (PKCS#8 DER, in hexadecimal digits)"]);
        }
    }

    #[test]
    fn a_private_key_does_not_leak_through_debug() {
        let pair = KeyPair::from_random([7; 32]);
        assert!(!format!("{pair:?}").contains(&pair.to_pkcs8_hex()[32..]));
    }

    proptest! {
        #[test]
        fn a_key_is_the_same_however_it_is_written(random: [u8; 32]) {
            let pair = KeyPair::from_random(random);
            let key = pair.public_key();
            let upper: PublicKey = key.as_hex().to_uppercase().parse().expect("a key");
            prop_assert_eq!(&upper, &key);
            prop_assert_eq!(upper.user_id(), key.user_id());
            prop_assert_eq!(&key.as_hex().parse::<PublicKey>().expect("a key"), &key);
            let again = KeyPair::from_pkcs8_hex(&pair.to_pkcs8_hex()).expect("a key");
            prop_assert_eq!(again.public_key(), key);
        }

        #[test]
        fn a_key_that_is_read_has_one_name(point: [u8; 32]) {
            let text = format!("{SPKI}{}", hex::encode(&point));
            if let Ok(key) = text.parse::<PublicKey>() {
                prop_assert_eq!(key.as_hex(), text);
            }
        }
    }
}
