//! The texts of private key files. Keys of OpenSSL, of OpenSSH and of older programs are read; PKCS#8 in PEM form is
//! written.

use arena_model::hex;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use ed25519_dalek::{SigningKey, VerifyingKey};

use crate::KeyPair;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const PKCS8: &str = "PRIVATE KEY";

const SSH_KIND: &[u8] = b"ssh-ed25519";

/// The error for a text that isn't a readable private key. It doesn't repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    #[error(
        "expected an Ed25519 private key, as from `arena identity new`, `openssl genpkey -algorithm ed25519` or \
         `ssh-keygen -t ed25519`"
    )]
    NoKey,
    #[error("this is a public key; give the file of the private key")]
    Public,
    #[error("the key has a passphrase; write a copy without it: openssl pkey -in FILE -out NEW")]
    EncryptedPem,
    #[error("the key has a passphrase; remove it from a copy of the file: ssh-keygen -p -N '' -f COPY")]
    EncryptedSsh,
    #[error("the key isn't of the kind Ed25519; create one: openssl genpkey -algorithm ed25519 -out FILE")]
    OtherKind,
}

impl KeyPair {
    /// Parses the text of a private key file: PKCS#8 in PEM form, OpenSSH's format without a passphrase, PKCS#8 DER in
    /// hexadecimal digits, or the 64 hexadecimal digits of the secret key.
    ///
    /// # Errors
    /// If the text is something else.
    pub fn from_file_text(text: &str) -> Result<KeyPair, KeyFileError> {
        let text = text.trim();
        if let Some((label, content)) = read_pem(text) {
            return match label {
                PKCS8 => SigningKey::from_pkcs8_der(&content).map(KeyPair).map_err(|_| KeyFileError::OtherKind),
                "OPENSSH PRIVATE KEY" => read_openssh(&content),
                "ENCRYPTED PRIVATE KEY" => Err(KeyFileError::EncryptedPem),
                "PUBLIC KEY" => Err(KeyFileError::Public),
                label if label.ends_with(PKCS8) => Err(KeyFileError::OtherKind),
                _ => Err(KeyFileError::NoKey),
            };
        }
        if let Some(secret) = hex::decode(text) {
            return Ok(KeyPair::from_random(secret));
        }
        if text.starts_with("ssh-") || text.parse::<crate::PublicKey>().is_ok() {
            return Err(KeyFileError::Public);
        }
        KeyPair::from_pkcs8_hex(text).map_err(|_| KeyFileError::NoKey)
    }

    /// Returns the text of a private key file: PKCS#8 in PEM form, as OpenSSL writes it. The result is secret.
    pub fn to_pem(&self) -> String {
        let bare = KeypairBytes { secret_key: self.to_secret(), public_key: None };
        let der = bare.to_pkcs8_der().expect("48 bytes are short enough for DER");
        // The length is a multiple of three, so there is no padding.
        let mut digits = String::new();
        for part in der.as_bytes().chunks(3) {
            let bits = part.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
            digits.extend([18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63])));
        }
        format!("-----BEGIN {PKCS8}-----\n{digits}\n-----END {PKCS8}-----\n")
    }
}

/// Reads the first block of a PEM text: its label and content.
fn read_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (content, _) = rest.split_once("-----END ")?;
    Some((label, decode_base64(content)?))
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        (bits, count) = (bits << 6 | value as u32, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// Reads OpenSSH's format, `openssh-key-v1` (PROTOCOL.key in OpenSSH's source).
fn read_openssh(content: &[u8]) -> Result<KeyPair, KeyFileError> {
    let mut fields = SshFields(content.strip_prefix(b"openssh-key-v1\0").ok_or(KeyFileError::NoKey)?);
    let cipher = fields.text()?;
    if cipher != b"none" {
        return Err(KeyFileError::EncryptedSsh);
    }
    // The key derivation and its options, the number of keys, and the public key.
    let (_, _, count, _) = (fields.text()?, fields.text()?, fields.number()?, fields.text()?);
    let mut fields = SshFields(fields.text()?);
    // Two equal random numbers, which show that a decryption was right.
    let _ = (fields.number()?, fields.number()?);
    if count != 1 || fields.text()? != SSH_KIND {
        return Err(KeyFileError::OtherKind);
    }
    let (public, secret) = (fields.text()?, fields.text()?);
    let pair: &[u8; 64] = secret.try_into().map_err(|_| KeyFileError::NoKey)?;
    let key = SigningKey::from_keypair_bytes(pair).map_err(|_| KeyFileError::NoKey)?;
    match VerifyingKey::try_from(public) {
        Ok(public) if public == key.verifying_key() => Ok(KeyPair(key)),
        _ => Err(KeyFileError::NoKey),
    }
}

/// The rest of a binary OpenSSH text.
struct SshFields<'k>(&'k [u8]);

impl<'k> SshFields<'k> {
    fn take(&mut self, len: usize) -> Result<&'k [u8], KeyFileError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(KeyFileError::NoKey)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, KeyFileError> {
        Ok(self.take(4)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// Reads bytes with their length before them.
    fn text(&mut self) -> Result<&'k [u8], KeyFileError> {
        let len = self.number()?;
        self.take(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A key that OpenSSL has written, and the user id of its holder.
    const OPENSSL: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIOQJszi7PY1AH7N55RdzxC+56pwf03cK5AvhsLInBTS6\n-----END PRIVATE KEY-----\n";
    const OPENSSL_PUBLIC: &str =
        "302a300506032b6570032100228e3e151de82f5c85263db3e1efdd63aff22f8c1d93e4887fed8f502f230757";

    const OPENSSH: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
        b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n\
        QyNTUxOQAAACD+JYqjH6H5WqwAy6qD2KGG+a096ouasJIdhTUUEt9SCQAAAJBiR/pTYkf6\n\
        UwAAAAtzc2gtZWQyNTUxOQAAACD+JYqjH6H5WqwAy6qD2KGG+a096ouasJIdhTUUEt9SCQ\n\
        AAAED6L6kSmsc4me2wbv0wokBtxIFFHMBDnexis8uFqzYHTf4liqMfoflarADLqoPYoYb5\n\
        rT3qi5qwkh2FNRQS31IJAAAAC2FkYUBleGFtcGxlAQI=\n-----END OPENSSH PRIVATE KEY-----\n";
    const OPENSSH_PUBLIC: &str =
        "302a300506032b6570032100fe258aa31fa1f95aac00cbaa83d8a186f9ad3dea8b9ab0921d85351412df5209";

    /// The beginnings of a key with a passphrase and of one of another kind, as ssh-keygen writes them.
    const LOCKED: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
        b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCXwOD9oD\n-----END OPENSSH PRIVATE KEY-----";
    const OTHER: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
        b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS\n\
        1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQRNIF/XV1giP8fzpRYU+cZfAM+PqFvA\n\
        2mDuCp0d3NSg45Z9Qa9Si5xzK2zB7pRo3oLsOtkEAOCxH+s2XXHuHWu2AAAAoF4VfwdeFX\n\
        8HAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBE0gX9dXWCI/x/Ol\n\
        FhT5xl8Az4+oW8DaYO4KnR3c1KDjln1Br1KLnHMrbMHulGjeguw62QQA4LEf6zZdce4da7\n\
        YAAAAhAI9HC8YYbGnS84R6t4bNJ5nEX2UQCVgHj5Vlxjj5JHOCAAAAAXgBAgMEBQY=\n-----END OPENSSH PRIVATE KEY-----";

    fn public(text: &str) -> Result<String, KeyFileError> {
        KeyPair::from_file_text(text).map(|pair| pair.public_key().as_hex().to_owned())
    }

    #[test]
    fn keys_of_openssl_and_openssh_are_read_and_written_as_openssl_does() {
        assert_eq!(public(OPENSSL).as_deref(), Ok(OPENSSL_PUBLIC));
        assert_eq!(public(&OPENSSL.replace('\n', "\r\n")).as_deref(), Ok(OPENSSL_PUBLIC));
        assert_eq!(public(OPENSSH).as_deref(), Ok(OPENSSH_PUBLIC));
        let pair = KeyPair::from_file_text(OPENSSL).unwrap();
        assert_eq!(pair.to_pem(), OPENSSL);
        for older in [pair.to_pkcs8_hex() + "\n", hex::encode(&pair.to_secret())] {
            assert_eq!(public(&older).as_deref(), Ok(OPENSSL_PUBLIC));
        }
    }

    #[test]
    fn what_is_no_usable_key_is_named() {
        for (text, error) in [
            ("", KeyFileError::NoKey),
            ("secret", KeyFileError::NoKey),
            ("-----BEGIN PRIVATE KEY-----", KeyFileError::NoKey),
            ("-----BEGIN CERTIFICATE-----\nMC4C\n-----END CERTIFICATE-----", KeyFileError::NoKey),
            (OPENSSL_PUBLIC, KeyFileError::Public),
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP4l ada", KeyFileError::Public),
            ("-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----", KeyFileError::Public),
            (LOCKED, KeyFileError::EncryptedSsh),
            (OTHER, KeyFileError::OtherKind),
            ("-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----", KeyFileError::OtherKind),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----",
                KeyFileError::EncryptedPem,
            ),
            (
                "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIHCddVCf7nlz4cnXPEPhMtyIbOXI3G3G5fwJ6WmeALdg\n\
                 -----END PRIVATE KEY-----",
                KeyFileError::OtherKind,
            ),
        ] {
            assert_eq!(public(text), Err(error), "{text}");
        }
        // A damaged file is no other key.
        let cut: String =
            OPENSSH.lines().filter(|line| !line.starts_with("AAAED6")).map(|line| format!("{line}\n")).collect();
        assert_eq!(public(&cut), Err(KeyFileError::NoKey));
    }

    proptest! {
        #[test]
        fn a_written_key_is_the_same_when_it_is_read(random: [u8; 32]) {
            let pair = KeyPair::from_random(random);
            let again = KeyPair::from_file_text(&pair.to_pem()).expect("a key");
            prop_assert_eq!(again.to_secret(), random);
        }

        #[test]
        fn no_text_panics(text in "(-----BEGIN (OPENSSH )?PRIVATE KEY-----)?[A-Za-z0-9+/=]{0,200}(-----END )?") {
            let _ = KeyPair::from_file_text(&text);
        }
    }
}
