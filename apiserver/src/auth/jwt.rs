//! Signed tokens: JSON Web Tokens with the only algorithm ES256 and the only key of a server.
//!
//! The header of a token is never read. It must equal, byte for byte, the header that the key
//! writes, so a token cannot choose another algorithm or another key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Longest token that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// Bytes before the point of a public P-256 key in DER form (`SubjectPublicKeyInfo`).
const DER_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A key that signs and verifies tokens. `Debug` shows only the id.
pub(super) struct SigningKey {
    pair: EcdsaKeyPair,
    /// Digest of the public key, in base64.
    id: String,
    /// First part of each token, in base64.
    header: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A token of the right shape whose signature is not verified yet. Has no `Debug`.
pub(super) struct Unverified<'a> {
    header: &'a str,
    /// Header and claims: the signed part.
    signed: &'a str,
    signature: &'a str,
    /// The claims; not to be trusted.
    pub(super) claims: Value,
}

/// Splits a token into parts and decodes the claims; `None` without the shape of a token.
pub(super) fn parse(token: &str) -> Option<Unverified<'_>> {
    if token.len() > LONGEST {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some(Unverified { header, signed, signature, claims })
}

/// Returns a new key in PKCS #8 form; `None` if the operating system gives no randomness.
pub(super) fn generate() -> Option<Vec<u8>> {
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let bytes = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
    Some(bytes.as_ref().to_vec())
}

impl SigningKey {
    /// Returns a new key; `None` if the operating system gives no randomness.
    pub(super) fn generate() -> Option<Self> {
        Self::read(&generate()?)
    }

    /// Reads a key from PKCS #8 form; `None` if the bytes are no key.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, bytes, &random).ok()?;
        let der = [&DER_HEAD[..], pair.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        let header = json!({"alg": "ES256", "kid": id}).to_string();
        Some(Self { header: URL_SAFE_NO_PAD.encode(header), pair, id })
    }

    /// Returns a token with claims; `None` if the operating system gives no randomness.
    pub(super) fn sign(&self, claims: &Value) -> Option<String> {
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let signed = format!("{}.{claims}", self.header);
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Whether a token names this key and its algorithm.
    pub(super) fn is_named(&self, token: &Unverified<'_>) -> bool {
        token.header == self.header
    }

    /// Whether this key has signed a token.
    pub(super) fn verifies(&self, token: &Unverified<'_>) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(token.signature) else { return false };
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        self.is_named(token) && public.verify(token.signed.as_bytes(), &signature).is_ok()
    }

    /// Returns the public key as a JSON Web Key.
    pub(super) fn public(&self) -> Value {
        // An uncompressed point: a byte of form, then both coordinates.
        let point = self.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        json!({
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a key accepts a token.
    fn accepts(key: &SigningKey, token: &str) -> bool {
        parse(token).is_some_and(|token| key.verifies(&token))
    }

    #[test]
    fn a_token_is_accepted_by_its_own_key_and_unchanged() {
        let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let token = key.sign(&json!({"sub": "a"})).unwrap();
        assert!(accepts(&key, &token));
        assert!(!accepts(&other, &token));
        let parts: Vec<&str> = token.split('.').collect();
        let claims = URL_SAFE_NO_PAD.encode(json!({"sub": "b"}).to_string());
        assert!(!accepts(&key, &format!("{}.{claims}.{}", parts[0], parts[2])));
        let stranger = other.sign(&json!({"sub": "a"})).unwrap();
        let signature = stranger.rsplit('.').next().unwrap();
        assert!(!accepts(&key, &format!("{}.{}.{signature}", parts[0], parts[1])));
    }

    #[test]
    fn no_token_chooses_its_algorithm() {
        let key = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"sub": "a"})).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        for algorithm in ["none", "HS256", "RS256", "ES384"] {
            let header = json!({"alg": algorithm, "kid": key.id}).to_string();
            let header = URL_SAFE_NO_PAD.encode(header);
            assert!(!accepts(&key, &format!("{header}.{}.{}", parts[1], parts[2])), "{algorithm}");
            assert!(!accepts(&key, &format!("{header}.{}.", parts[1])), "{algorithm}");
        }
    }

    #[test]
    fn what_has_not_the_shape_of_a_token_is_not_decoded() {
        for text in ["", ".", "..", "a.b", "a.b.c", "{}", "a.e30", "a.e30.b.c"] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse("a.e30.b").is_some());
        assert!(parse(&format!("a.e30.{}", "b".repeat(LONGEST))).is_none());
    }

    #[test]
    fn debug_shows_no_key() {
        let key = SigningKey::generate().unwrap();
        assert_eq!(format!("{key:?}"), format!("SigningKey {{ id: {:?}, .. }}", key.id));
    }
}
