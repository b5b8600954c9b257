//! Tokens of service accounts: the claims, and the only issuer that makes and reads tokens.
//!
//! Whether the account and the bound object of a token still exist is not decided here: this module
//! knows no store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use parking_lot::RwLock;
use serde_json::{Map, Value, json};

use super::User;
use super::jwt::{self, SigningKey};

/// Issuer, and audience, of servers that were given none.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Seconds by which clocks may differ: a token counts that much longer than stated, as upstream.
const LEEWAY: i64 = 60;

/// Name and uid of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectId {
    /// Name.
    pub(crate) name: String,
    /// Uid; empty for a node that is not known.
    pub(crate) uid: String,
}

/// The claims of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Namespace of the account.
    pub(crate) namespace: String,
    /// The account.
    pub(crate) account: ObjectId,
    /// The Pod that the token is bound to.
    pub(crate) pod: Option<ObjectId>,
    /// The Secret that the token is bound to.
    pub(crate) secret: Option<ObjectId>,
    /// The node that the token is bound to, or that its Pod is on.
    pub(crate) node: Option<ObjectId>,
    /// Intended receivers of the token.
    pub(crate) audiences: Vec<String>,
    /// Time from which the token counts, in seconds since 1970.
    pub(crate) issued: i64,
    /// Time until which the token counts.
    pub(crate) expires: i64,
    /// Unique id of the token.
    pub(crate) id: String,
}

/// Makes and reads the tokens of a server.
pub(crate) struct Issuer {
    /// Name of the issuer, a URL; the server's only audience as well.
    url: RwLock<String>,
    /// Made with the first token; `None` if the operating system gives no randomness.
    key: OnceLock<Option<SigningKey>>,
}

impl Default for Issuer {
    fn default() -> Self {
        Self { url: RwLock::new(ISSUER.to_owned()), key: OnceLock::new() }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Issuer {
    /// Sets the name of the issuer; tokens of the earlier name count no more.
    pub(crate) fn rename(&self, url: &str) {
        url.clone_into(&mut self.url.write());
    }

    /// Signs with a key from [`Issuer::new_key`]; false if the bytes are no such key, or if another
    /// key is already in use.
    pub(crate) fn use_key(&self, bytes: &[u8]) -> bool {
        SigningKey::read(bytes).is_some_and(|key| self.key.set(Some(key)).is_ok())
    }

    /// Returns a new key in PKCS #8 form; `None` if the operating system gives no randomness.
    pub(crate) fn new_key() -> Option<Vec<u8>> {
        jwt::generate()
    }

    /// Returns the name of the issuer.
    pub(crate) fn url(&self) -> String {
        self.url.read().clone()
    }

    /// Returns the audiences of the server.
    pub(crate) fn audiences(&self) -> Vec<String> {
        vec![self.url()]
    }

    fn key(&self) -> Option<&SigningKey> {
        self.key.get_or_init(SigningKey::generate).as_ref()
    }

    /// Returns a signed token; `None` if the operating system gives no randomness.
    pub(crate) fn issue(&self, claims: &Claims) -> Option<String> {
        self.key()?.sign(&claims.value(&self.url()))
    }

    /// Reads a token that is meant for one of the audiences. `None` for a text that is no token of
    /// this issuer.
    ///
    /// Refused before any cryptography: tokens of another shape, another issuer or another header.
    ///
    /// # Errors
    /// The reason why a token of this issuer does not count, without any part of the signature.
    pub(crate) fn read(
        &self,
        token: &str,
        audiences: &[String],
        now: i64,
    ) -> Result<Option<Claims>, String> {
        let Some(token) = jwt::parse(token) else { return Ok(None) };
        if token.claims["iss"] != self.url().as_str() {
            return Ok(None);
        }
        let key = self.key().filter(|key| key.is_named(&token));
        let key = key.ok_or("invalid signature, no keys found")?;
        if !key.verifies(&token) {
            return Err("go-jose/go-jose: error in cryptographic primitive".to_owned());
        }
        let claims = Claims::read(&token.claims);
        claims.check(audiences, now)?;
        Ok(Some(claims))
    }

    /// Returns the public keys of the issuer as a JSON Web Key Set.
    pub(crate) fn public_keys(&self) -> Value {
        json!({"keys": self.key().map(SigningKey::public).into_iter().collect::<Vec<_>>()})
    }
}

impl ObjectId {
    /// Returns the reference as a claim; an empty uid is left out.
    fn value(&self) -> Value {
        let fields = [("name", &self.name), ("uid", &self.uid)];
        let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
        fields.map(|(key, text)| (key.to_owned(), json!(text))).collect::<Map<_, _>>().into()
    }

    /// Reads a claim.
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        value.is_object().then(|| Self { name: text("name"), uid: text("uid") })
    }
}

impl Claims {
    /// Returns the claims as a token carries them.
    fn value(&self, issuer: &str) -> Value {
        let mut own = json!({"namespace": self.namespace, "serviceaccount": self.account.value()});
        for (key, bound) in [("pod", &self.pod), ("secret", &self.secret), ("node", &self.node)] {
            if let Some(bound) = bound {
                own[key] = bound.value();
            }
        }
        json!({
            "iss": issuer, "sub": self.user_name(), "aud": self.audiences, "jti": self.id,
            "iat": self.issued, "nbf": self.issued, "exp": self.expires, "kubernetes.io": own,
        })
    }

    /// Reads claims. Absent claims are empty and match no object.
    fn read(value: &Value) -> Self {
        let own = &value["kubernetes.io"];
        let audiences = value["aud"].as_array().into_iter().flatten();
        Self {
            namespace: own["namespace"].as_str().unwrap_or_default().to_owned(),
            account: ObjectId::read(&own["serviceaccount"]).unwrap_or_default(),
            pod: ObjectId::read(&own["pod"]),
            secret: ObjectId::read(&own["secret"]),
            node: ObjectId::read(&own["node"]),
            audiences: audiences.filter_map(Value::as_str).map(str::to_owned).collect(),
            issued: value["iat"].as_i64().unwrap_or(i64::MAX),
            expires: value["exp"].as_i64().unwrap_or(i64::MIN),
            id: value["jti"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Checks audience and times.
    fn check(&self, audiences: &[String], now: i64) -> Result<(), String> {
        if !self.audiences.iter().any(|own| audiences.contains(own)) {
            let list = |names: &[String]| {
                let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                format!("[{}]", names.join(" "))
            };
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                list(&self.audiences),
                list(audiences)
            ));
        }
        if now.saturating_add(LEEWAY) < self.issued {
            return Err("service account token is not valid yet".to_owned());
        }
        if now.saturating_sub(LEEWAY) > self.expires {
            return Err("service account token has expired".to_owned());
        }
        Ok(())
    }

    /// Returns the name of the account's user.
    pub(crate) fn user_name(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.account.name)
    }

    /// Returns the account's user, with the token's id and bound objects as extra attributes.
    pub(crate) fn user(&self) -> User {
        let mut extra = BTreeMap::new();
        let mut add = |key: &str, value: &str| {
            if !value.is_empty() {
                extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
            }
        };
        if !self.id.is_empty() {
            add("credential-id", &format!("JTI={}", self.id));
        }
        for (kind, bound) in [("pod", &self.pod), ("node", &self.node)] {
            if let Some(bound) = bound {
                add(&format!("{kind}-name"), &bound.name);
                add(&format!("{kind}-uid"), &bound.uid);
            }
        }
        let own = format!("system:serviceaccounts:{}", self.namespace);
        let user = User::new(self.user_name(), &["system:serviceaccounts", &own]);
        User { uid: self.account.uid.clone(), extra, ..user }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            namespace: "n".into(),
            account: ObjectId { name: "a".into(), uid: "1".into() },
            pod: Some(ObjectId { name: "p".into(), uid: "2".into() }),
            node: Some(ObjectId { name: "m".into(), uid: String::new() }),
            audiences: vec!["x".into(), ISSUER.into()],
            issued: 1000,
            expires: 2000,
            id: "i".into(),
            ..Claims::default()
        }
    }

    #[test]
    fn claims_come_back_from_the_token_and_make_the_user() {
        let issuer = Issuer::default();
        let token = issuer.issue(&claims()).unwrap();
        let read = issuer.read(&token, &issuer.audiences(), 1500).unwrap();
        assert_eq!(read, Some(claims()));
        let user = claims().user();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:a", "1"));
        assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:n"]);
        let extra: Vec<&str> = user.extra.keys().map(String::as_str).collect();
        assert_eq!(
            extra,
            [
                "authentication.kubernetes.io/credential-id",
                "authentication.kubernetes.io/node-name",
                "authentication.kubernetes.io/pod-name",
                "authentication.kubernetes.io/pod-uid",
            ]
        );
    }

    #[test]
    fn a_token_counts_between_its_times_and_for_its_audiences() {
        let issuer = Issuer::default();
        let token = issuer.issue(&claims()).unwrap();
        let read = |audience: &str, now: i64| {
            issuer.read(&token, &[audience.to_owned()], now).map(|claims| claims.is_some())
        };
        assert_eq!(read("x", 1000), Ok(true));
        assert_eq!(read("x", 2060), Ok(true));
        assert_eq!(read("x", 2061), Err("service account token has expired".to_owned()));
        assert_eq!(read("x", 939), Err("service account token is not valid yet".to_owned()));
        let fault = read("y", 1500).unwrap_err();
        assert!(fault.ends_with("is invalid for the target audiences [\"y\"]"), "{fault}");
    }

    #[test]
    fn tokens_of_another_issuer_or_key_are_not_read() {
        let (issuer, other) = (Issuer::default(), Issuer::default());
        let token = other.issue(&claims()).unwrap();
        let fault = issuer.read(&token, &issuer.audiences(), 1500).unwrap_err();
        assert_eq!(fault, "invalid signature, no keys found");
        issuer.rename("https://elsewhere");
        assert_eq!(issuer.read(&token, &issuer.audiences(), 1500), Ok(None));
        assert_eq!(issuer.read("junk", &issuer.audiences(), 1500), Ok(None));
    }
}
