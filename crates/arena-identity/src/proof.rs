//! Proofs of identity in requests: signatures by the holder of a key.

use arena_model::{InviteCode, Timestamp, hex};
use ed25519_dalek::Signature;
use sha2::{Digest, Sha256};

use crate::key::{KeyError, PublicKey};
use crate::statement::{ProfileUpdate, bound_update_text, join_text, update_text};

/// The maximum difference between a proof's time and the server's time, in milliseconds: five minutes.
pub const WINDOW_MS: u64 = 5 * 60 * 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error(transparent)]
    MalformedKey(#[from] KeyError),
    #[error("expected a signature of 128 hexadecimal digits")]
    MalformedSignature,
    #[error("the timestamp is more than 5 minutes from the server's time; check the client's clock")]
    Expired,
    #[error("the signature doesn't match the public key and the text")]
    Invalid,
}

/// A key, a time and a signature, not yet verified.
///
/// [`Proof::parse`] checks the formats and the time. The verification of the signature takes about 0.1 ms, so it is a
/// separate step, which can run on another thread.
#[derive(Debug, Clone)]
pub struct Proof {
    public_key: PublicKey,
    signature: Signature,
    at: Timestamp,
}

impl Proof {
    /// Parses a proof: `publicKey`, `signature` and `timestamp` as on the wire.
    ///
    /// # Errors
    /// Every [`ProofError`] except [`ProofError::Invalid`], in the order of the arguments.
    pub fn parse(public_key: &str, signature: &str, at: Timestamp, now: Timestamp) -> Result<Proof, ProofError> {
        let public_key = public_key.parse()?;
        let signature = hex::decode(signature).ok_or(ProofError::MalformedSignature)?;
        if at.0.abs_diff(now.0) > WINDOW_MS {
            return Err(ProofError::Expired);
        }
        Ok(Proof { public_key, signature: Signature::from_bytes(&signature), at })
    }

    /// Returns the public key. The key proves nothing until the signature is verified.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Returns SHA-256 of a prefix and the signature. A server stores this hash so that the signature of a profile
    /// change is valid only once. The prefix separates the hash from other stored hashes.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::new().chain_update("signature:").chain_update(self.signature.to_bytes()).finalize().into()
    }

    /// Verifies that the key's holder signed a join with `invite`.
    ///
    /// # Errors
    /// [`ProofError::Invalid`] if the signature doesn't match the key and this join.
    pub fn verify_join(&self, invite: InviteCode) -> Result<(), ProofError> {
        self.verify(&join_text(invite, self.at))
    }

    /// Verifies that the key's holder signed a change of the profile. Two signed texts are valid: a text that includes
    /// the change, and the text of the reference server, which includes only the time. An eavesdropper could reuse a
    /// signature of the second text for another change, so a server must accept a signature only once: see
    /// [`Proof::fingerprint`].
    ///
    /// # Errors
    /// [`ProofError::Invalid`] if the signature matches neither text.
    pub fn verify_profile_update(&self, update: &ProfileUpdate<'_>) -> Result<(), ProofError> {
        self.verify(&bound_update_text(update, self.at)).or_else(|_| self.verify(&update_text(self.at)))
    }

    fn verify(&self, text: &str) -> Result<(), ProofError> {
        if self.public_key.signed(text, &self.signature) { Ok(()) } else { Err(ProofError::Invalid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyPair;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn invite(last: u64) -> InviteCode {
        InviteCode(uuid::Uuid::from_u64_pair(0x018f_6b2e_0000_7000, 0x8000_0000_0000_0000 | last))
    }

    /// Keys and signatures by Node 20: `generateKeyPairSync('ed25519')` exported as DER in hex, and `sign(null, text,
    /// privateKey)`.
    const NODE_PRIVATE: &str =
        "302e020100300506032b657004220420ab481f1b39e18527d9e10aa638305475420892f9edb54174edea02ac646cdb21";
    const NODE_PUBLIC: &str =
        "302a300506032b657003210083681505420a0b5aeec5a91dda65b5432d8b061a8b5697d1a90aa910b1971e2d";
    const NODE_JOIN: &str = "7d485f70818bb6635b272b4a9231b6235bb6440bb4913b79bf4d161e9420fe13d7c68015e1f614dcd8ce5b7ed4c175722906d6e6cc20e69cbfebed7eab6a790c";
    const NODE_UPDATE: &str = "f588ee1d49b8689c68466e20fff392edb7b40825709c2dbf192c7679f1892014527dc311c31980bdf1ecc9f306e108ccd75e736d7df0df7c09f0fba9f333bd0b";
    const NODE_BOUND_UPDATE: &str = "4e858102e31239f716012caea0f57b69797ece53f764060fc310f0b36e1d2ece8d9273fb254c02aecd4d2b9014c01a39a6ecac17e0f9940fee6cd70a86998a06";
    const NODE_EMPTY_UPDATE: &str = "6455cd1a66acff2072a985b08239326e7af6f1da2eaf51f60994e1b2e0b51beb55f6e0323df799a424ec11d8d43141bee20117dbb31bab80234b15b408f23606";

    /// The change that Node signed.
    const UPDATE: ProfileUpdate<'_> =
        ProfileUpdate { username: Some("Ada \"L\" é☃😀\n\u{1}\u{7f}\u{2028}"), model: Some("m/1") };

    fn node(signature: &str) -> Proof {
        Proof::parse(NODE_PUBLIC, signature, NOW, NOW).expect("well-formed and in time")
    }

    // Ed25519 signatures are deterministic, so equal signatures mean that each program accepts the other's.
    #[test]
    fn signatures_are_compatible_with_node() {
        let pair = KeyPair::from_pkcs8_hex(NODE_PRIVATE).expect("a key");
        assert_eq!(pair.to_pkcs8_hex(), NODE_PRIVATE);
        assert_eq!(pair.public_key().as_hex(), NODE_PUBLIC);
        let user = "9c814032a72c9f4279e0c41a0bfc7bae766a4142570c6f0998fb58f583f60b13";
        assert_eq!(pair.public_key().user_id().as_str(), user);

        assert_eq!(pair.sign_join(invite(0xabcd), NOW), NODE_JOIN);
        assert_eq!(node(NODE_JOIN).verify_join(invite(0xabcd)), Ok(()));
        assert_eq!(pair.sign_profile_update(&UPDATE, NOW), NODE_BOUND_UPDATE);
        assert_eq!(node(NODE_BOUND_UPDATE).verify_profile_update(&UPDATE), Ok(()));
        assert_eq!(node(NODE_EMPTY_UPDATE).verify_profile_update(&ProfileUpdate::default()), Ok(()));
        assert_eq!(node(NODE_UPDATE).verify_profile_update(&UPDATE), Ok(()));
    }

    #[test]
    fn a_signature_is_valid_for_its_text_only() {
        let other = ProfileUpdate { username: Some("Eve"), ..UPDATE };
        let less = ProfileUpdate { model: None, ..UPDATE };
        let more = ProfileUpdate { model: Some(""), username: None };
        assert_eq!(node(NODE_JOIN).verify_join(invite(0xabce)), Err(ProofError::Invalid));
        assert_eq!(node(NODE_JOIN).verify_profile_update(&UPDATE), Err(ProofError::Invalid));
        for signature in [NODE_UPDATE, NODE_BOUND_UPDATE, NODE_EMPTY_UPDATE] {
            assert_eq!(node(signature).verify_join(invite(0xabcd)), Err(ProofError::Invalid));
        }
        for update in [&other, &less, &more, &ProfileUpdate::default()] {
            assert_eq!(node(NODE_BOUND_UPDATE).verify_profile_update(update), Err(ProofError::Invalid));
        }
        let later = Proof::parse(NODE_PUBLIC, NODE_JOIN, Timestamp(NOW.0 + 1), NOW).expect("in time");
        assert_eq!(later.verify_join(invite(0xabcd)), Err(ProofError::Invalid));
    }

    #[test]
    fn the_window_is_five_minutes_either_way() {
        let at = |at: i64| Proof::parse(NODE_PUBLIC, NODE_JOIN, Timestamp(at), NOW).map(drop);
        for ok in [0, 1, -1, 300_000, -300_000] {
            assert_eq!(at(NOW.0 + ok), Ok(()), "{ok} ms");
        }
        for late in [300_001, -300_001] {
            assert_eq!(at(NOW.0 + late), Err(ProofError::Expired), "{late} ms");
        }
        for never in [i64::MIN, i64::MAX, 0, -NOW.0] {
            assert_eq!(at(never), Err(ProofError::Expired), "{never}");
        }
    }

    #[test]
    fn malformed_proofs_are_named() {
        let parse = |key: &str, signature: &str| Proof::parse(key, signature, NOW, NOW).map(drop);
        assert_eq!(parse("", NODE_JOIN), Err(ProofError::MalformedKey(KeyError::Public)));
        for signature in
            ["", "00", &NODE_JOIN[1..], &NODE_JOIN[2..], &format!("{NODE_JOIN}00"), &"zz".repeat(64), &"é".repeat(64)]
        {
            assert_eq!(parse(NODE_PUBLIC, signature), Err(ProofError::MalformedSignature), "{signature}");
        }
        assert_eq!(node(&NODE_JOIN.to_uppercase()).verify_join(invite(0xabcd)), Ok(()));
    }

    #[test]
    fn a_signature_has_one_form() {
        // The second half plus the group's order satisfies the same equation; accepting it gives a join two signatures.
        let order: [u8; 32] =
            hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").expect("32 bytes");
        let mut bytes: [u8; 64] = hex::decode(NODE_JOIN).expect("64 bytes");
        let mut carry = 0;
        for (byte, add) in bytes[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            *byte = sum.to_le_bytes()[0];
            carry = sum >> 8;
        }
        assert_eq!(node(&hex::encode(&bytes)).verify_join(invite(0xabcd)), Err(ProofError::Invalid));
        // A first half of small order fits many texts.
        let mut bytes: [u8; 64] = hex::decode(NODE_JOIN).expect("64 bytes");
        bytes[..32].fill(0);
        assert_eq!(node(&hex::encode(&bytes)).verify_join(invite(0xabcd)), Err(ProofError::Invalid));
        assert_eq!(node(&"00".repeat(64)).verify_join(invite(0xabcd)), Err(ProofError::Invalid));
        assert_eq!(node(&"ff".repeat(64)).verify_join(invite(0xabcd)), Err(ProofError::Invalid));
    }

    proptest! {
        #[test]
        fn a_join_signature_is_valid_for_its_key_only(mine: [u8; 32], theirs: [u8; 32], code: u32, ms in -300_000i64..300_000, flip in 0usize..512) {
            prop_assume!(mine != theirs);
            let (mine, theirs) = (KeyPair::from_random(mine), KeyPair::from_random(theirs));
            let at = NOW.plus_ms(ms);
            let signature = mine.sign_join(invite(code.into()), at);
            let proof = |pair: &KeyPair, signature: &str| {
                Proof::parse(pair.public_key().as_hex(), signature, at, NOW).expect("well-formed and in time")
            };
            prop_assert_eq!(proof(&mine, &signature).verify_join(invite(code.into())), Ok(()));
            prop_assert_eq!(proof(&theirs, &signature).verify_join(invite(code.into())), Err(ProofError::Invalid));
            let mut bytes: [u8; 64] = hex::decode(&signature).expect("64 bytes");
            bytes[flip / 8] ^= 1 << (flip % 8);
            let tampered = hex::encode(&bytes);
            prop_assert_eq!(proof(&mine, &tampered).verify_join(invite(code.into())), Err(ProofError::Invalid));
        }

        #[test]
        fn a_profile_signature_is_valid_for_its_key_only(
            key: [u8; 32],
            username in proptest::option::of(".{0,20}"),
            model in proptest::option::of(".{0,20}"),
            other in proptest::option::of(".{0,20}"),
        ) {
            let other = if other == username { Some(username.clone().unwrap_or_default() + "x") } else { other };
            let pair = KeyPair::from_random(key);
            let update = ProfileUpdate { username: username.as_deref(), model: model.as_deref() };
            let signature = pair.sign_profile_update(&update, NOW);
            let proof = Proof::parse(pair.public_key().as_hex(), &signature, NOW, NOW).expect("well-formed and in time");
            prop_assert_eq!(proof.verify_profile_update(&update), Ok(()));
            let changed = ProfileUpdate { username: other.as_deref(), ..update };
            prop_assert_eq!(proof.verify_profile_update(&changed), Err(ProofError::Invalid));
        }
    }
}
