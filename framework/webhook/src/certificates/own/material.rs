//! The contents of the Secret, and the step that is due.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass_core::Error;
use zeroize::Zeroizing;

use super::after;
use super::issue::{Names, SKEW, authority, serving};
use super::pair::{Pair, validity};

/// Time for which a new authority is trusted before it signs.
pub(crate) const OVERLAP: Duration = Duration::from_secs(3600);
/// Most authorities that are trusted at once.
const MOST_TRUSTED: usize = 4;

/// Keys of the Secret.
const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";
const TRUSTED: &str = "ca.crt";
const AUTHORITY: &str = "signing-ca.crt";
const AUTHORITY_KEY: &str = "signing-ca.key";
const NEXT: &str = "next-ca.crt";
const NEXT_KEY: &str = "next-ca.key";

/// The certificates of an operator.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    authority: Pair,
    /// The authority that is trusted, and does not sign yet.
    next: Option<Pair>,
    serving: Pair,
    /// Earlier authorities, newest first.
    earlier: Vec<String>,
}

/// A change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is due.
    Keep,
    /// The serving certificate is replaced.
    Serving,
    /// The next authority is made, and trusted.
    NextAuthority,
    /// The next authority signs from now on.
    SwitchAuthority,
    /// Everything is made anew.
    Anew,
}

impl Material {
    /// Makes everything anew.
    pub(super) fn anew(names: &Names, now: Timestamp) -> Result<Self, Error> {
        let authority = authority(names, now)?;
        let serving = serving(names, &authority, now)?;
        Ok(Self { authority, next: None, serving, earlier: Vec::new() })
    }

    /// Reads a Secret; `None` when it has no certificates, or spoilt ones.
    pub(super) fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        let pair = |certificate: &str, key: &str| {
            let pair = Pair::new(text(certificate)?, Zeroizing::new(text(key)?))?;
            // A key that cannot be read could never sign.
            rcgen::KeyPair::from_pem(&pair.key).ok().map(|_| pair)
        };
        let (authority, serving) = (pair(AUTHORITY, AUTHORITY_KEY)?, pair(CHAIN, KEY)?);
        let next = pair(NEXT, NEXT_KEY);
        let known = [Some(&authority), next.as_ref()];
        let trusted = text(TRUSTED)?;
        let earlier = certificates(&trusted)
            .filter(|one| known.iter().flatten().all(|pair| pair.certificate.trim() != one.trim()))
            .take(MOST_TRUSTED)
            .collect();
        Some(Self { authority, next, serving, earlier })
    }

    /// Writes the certificates into a Secret, whose other keys stay.
    pub(super) fn write(&self, mut secret: Secret) -> Secret {
        let data: &mut BTreeMap<String, ByteString> = secret.data.get_or_insert_default();
        let mut put = |key: &str, text: &str| {
            data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        };
        put(CHAIN, &self.serving.certificate);
        put(KEY, &self.serving.key);
        put(TRUSTED, &self.bundle());
        put(AUTHORITY, &self.authority.certificate);
        put(AUTHORITY_KEY, &self.authority.key);
        match &self.next {
            Some(next) => {
                put(NEXT, &next.certificate);
                put(NEXT_KEY, &next.key);
            }
            None => {
                data.remove(NEXT);
                data.remove(NEXT_KEY);
            }
        }
        secret
    }

    /// Returns the step that is due.
    pub(super) fn step(&self, now: Timestamp) -> Step {
        let is_trusted = |next: &Pair| after(next.validity.not_before, SKEW + OVERLAP) <= now;
        match &self.next {
            Some(next) if next.is_over(now) => Step::Anew,
            // Nothing that the old authority signed is accepted any more.
            Some(_) if self.authority.is_over(now) => Step::SwitchAuthority,
            Some(next) if is_trusted(next) => Step::SwitchAuthority,
            None if self.authority.is_over(now) => Step::Anew,
            None if self.authority.is_due(now) => Step::NextAuthority,
            _ if self.serving.is_due(now) && !self.is_last() => Step::Serving,
            _ => Step::Keep,
        }
    }

    /// Whether the serving certificate ends with its authority: another one would not live longer.
    fn is_last(&self) -> bool {
        self.serving.validity.not_after >= self.authority.validity.not_after
    }

    /// Takes a step.
    pub(super) fn take(self, step: Step, names: &Names, now: Timestamp) -> Result<Self, Error> {
        let mut new = match step {
            Step::Keep => return Ok(self),
            Step::Serving => Self { serving: serving(names, &self.authority, now)?, ..self },
            Step::NextAuthority => Self { next: Some(authority(names, now)?), ..self },
            Step::SwitchAuthority => {
                let Some(next) = self.next else { return Self::anew(names, now) };
                let serving = serving(names, &next, now)?;
                let mut earlier = vec![self.authority.certificate];
                earlier.extend(self.earlier);
                Self { authority: next, next: None, serving, earlier }
            }
            Step::Anew => return Self::anew(names, now),
        };
        new.earlier.retain(|one| validity(one).is_some_and(|one| one.not_after > now));
        Ok(new)
    }

    /// Returns the serving certificate and its key, PEM.
    pub(super) fn serving(&self) -> (&str, &str) {
        (&self.serving.certificate, &self.serving.key)
    }

    /// Returns the authorities to trust, PEM.
    pub(super) fn bundle(&self) -> String {
        let own = [Some(&self.authority), self.next.as_ref()];
        let own = own.into_iter().flatten().map(|pair| pair.certificate.as_str());
        let all = own.chain(self.earlier.iter().map(String::as_str));
        all.map(|one| format!("{}\n", one.trim())).collect()
    }
}

/// Returns the certificates of a PEM bundle.
fn certificates(bundle: &str) -> impl Iterator<Item = String> + '_ {
    const END: &str = "-----END CERTIFICATE-----";
    bundle
        .split_inclusive(END)
        .filter(|one| one.ends_with(END))
        .map(|one| format!("{}\n", one.trim()))
}
