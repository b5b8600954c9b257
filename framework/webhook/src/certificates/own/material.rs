//! The contents of the Secret, and the step that is due.

// DESIGN.md, 243: No clock of a node ends the trust in an authority at once

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass_core::Error;
use zeroize::Zeroizing;

use super::after;
use super::issue::{CertificateNames, SKEW, authority, serving};
use super::pair::CertificatePair;
use super::verifier::Verifier;
use crate::certificates::OVERLAP;
use crate::certificates::bundle::{MOST_TRUSTED, certificates, has, validity};

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
    authority: CertificatePair,
    /// The authority that is trusted, and does not sign yet.
    next: Option<CertificatePair>,
    /// `None` when the Secret has none that API servers accept.
    serving: Option<CertificatePair>,
    /// Earlier authorities, newest first.
    earlier: Vec<String>,
}

/// A change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RenewalStep {
    /// Nothing is due.
    Keep,
    /// The serving certificate is replaced.
    Serving,
    /// The next authority is made, and trusted.
    NextAuthority,
    /// The next authority signs from now on.
    SwitchAuthority,
    /// Everything is issued again.
    IssueAll,
}

impl Material {
    /// Makes everything anew. Authorities of the bundles before, PEM, stay trusted until a later
    /// step: other replicas show what they signed. Those that have ended come last, and stay, too:
    /// the clock of this node may be wrong, and to API servers they are worth nothing.
    pub(super) fn issue(
        names: &CertificateNames,
        now: Timestamp,
        before: &[String],
    ) -> Result<Self, Error> {
        let authority = authority(names, now)?;
        let serving = Some(serving(names, &authority, now)?);
        let before = || before.iter().flat_map(|bundle| certificates(bundle));
        let is_valid = |one: &String| validity(one).is_some_and(|one| one.not_after > now);
        let mut earlier: Vec<String> = Vec::new();
        for one in before().filter(is_valid).chain(before()) {
            if earlier.len() < MOST_TRUSTED && !earlier.contains(&one) {
                earlier.push(one);
            }
        }
        Ok(Self { authority, next: None, serving, earlier })
    }

    /// Reads a Secret.
    ///
    /// # Errors
    /// The reason why everything is to be issued again. A serving certificate alone that cannot be
    /// used is left out, and logged.
    pub(super) fn read(
        secret: &Secret,
        names: &CertificateNames,
        verifier: Verifier<'_>,
    ) -> Result<Self, &'static str> {
        let pair = |certificate: &str, key: &str| {
            let key = Zeroizing::new(text(secret, key)?);
            let pair = CertificatePair::new(text(secret, certificate)?, key)?;
            // A key that cannot be read could never sign.
            rcgen::KeyPair::from_pem(&pair.key).ok().map(|_| pair)
        };
        let authority = pair(AUTHORITY, AUTHORITY_KEY)
            .ok_or("`signing-ca.crt` or `signing-ca.key` is absent, or cannot be read")?;
        if !verifier.is_pair(&authority) {
            return Err("`signing-ca.key` does not belong to `signing-ca.crt`");
        }
        let trusted = text(secret, TRUSTED).ok_or("`ca.crt` is absent, or cannot be read")?;
        let next = pair(NEXT, NEXT_KEY).filter(|next| verifier.is_pair(next));
        let serving = pair(CHAIN, KEY);
        let fault = match &serving {
            None => Some("`tls.crt` or `tls.key` is absent, or cannot be read"),
            Some(serving) => verifier.fault(serving, &authority, &names.hosts()),
        };
        if let Some(fault) = fault {
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            let (space, name) = (of(&secret.metadata.namespace), of(&secret.metadata.name));
            let secret = format!("{space}/{name}");
            tracing::warn!(secret, fault, "the serving certificate of webhooks is signed again");
        }
        let serving = serving.filter(|_| fault.is_none());
        let known = [Some(&authority), next.as_ref()];
        let earlier = certificates(&trusted)
            .filter(|one| known.iter().flatten().all(|pair| pair.certificate.trim() != one.trim()))
            .take(MOST_TRUSTED)
            .collect();
        Ok(Self { authority, next, serving, earlier })
    }

    /// Writes the certificates into a Secret, whose other keys stay.
    pub(super) fn write(&self, mut secret: Secret) -> Secret {
        let data: &mut BTreeMap<String, ByteString> = secret.data.get_or_insert_default();
        let mut put = |key: &str, text: &str| {
            data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
        };
        if let Some(serving) = &self.serving {
            put(CHAIN, &serving.certificate);
            put(KEY, &serving.key);
        }
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
    pub(super) fn step(&self, now: Timestamp) -> RenewalStep {
        let is_trusted =
            |next: &CertificatePair| after(next.validity.not_before, SKEW + OVERLAP) <= now;
        match &self.next {
            Some(next) if next.is_over(now) => RenewalStep::IssueAll,
            // Nothing that the old authority signed is accepted any more.
            Some(_) if self.authority.is_over(now) => RenewalStep::SwitchAuthority,
            Some(next) if is_trusted(next) => RenewalStep::SwitchAuthority,
            None if self.authority.is_over(now) => RenewalStep::IssueAll,
            _ if self.serving.is_none() => RenewalStep::Serving,
            None if self.authority.is_due(now) => RenewalStep::NextAuthority,
            _ if self.is_serving_due(now) => RenewalStep::Serving,
            _ => RenewalStep::Keep,
        }
    }

    /// Returns the step that is due while the next authority must not sign yet. That ends with the
    /// present one: see [`waiting_authority`](Self::waiting_authority).
    pub(super) fn step_of_serving(&self, now: Timestamp) -> RenewalStep {
        match self.is_serving_due(now) {
            true => RenewalStep::Serving,
            false => RenewalStep::Keep,
        }
    }

    /// Returns the next authority, PEM, if it can wait: the one that signs has not ended.
    pub(super) fn waiting_authority(&self, now: Timestamp) -> Option<&str> {
        let next = self.next.as_ref().filter(|_| !self.authority.is_over(now));
        next.map(|next| next.certificate.as_str())
    }

    /// Whether the serving certificate is to be replaced. One that ends with its authority is not:
    /// another one would not live longer.
    fn is_serving_due(&self, now: Timestamp) -> bool {
        let end = self.authority.validity.not_after;
        self.serving.as_ref().is_none_or(|it| it.is_due(now) && it.validity.not_after < end)
    }

    /// Takes a step.
    pub(super) fn take(
        self,
        step: RenewalStep,
        names: &CertificateNames,
        now: Timestamp,
    ) -> Result<Self, Error> {
        // Replicas show what it signed until they read the Secret, whatever the clock of this node.
        let replaced = self.authority.certificate.clone();
        let mut new = match step {
            RenewalStep::Keep => return Ok(self),
            RenewalStep::Serving => {
                Self { serving: Some(serving(names, &self.authority, now)?), ..self }
            }
            RenewalStep::NextAuthority => Self { next: Some(authority(names, now)?), ..self },
            RenewalStep::SwitchAuthority => {
                let Some(next) = self.next else { return Self::issue(names, now, &[]) };
                let serving = Some(serving(names, &next, now)?);
                let mut earlier = vec![self.authority.certificate];
                earlier.extend(self.earlier);
                Self { authority: next, next: None, serving, earlier }
            }
            RenewalStep::IssueAll => return Self::issue(names, now, &[self.bundle()]),
        };
        let is_valid = |one: &String| validity(one).is_some_and(|one| one.not_after > now);
        new.earlier.retain(|one| *one == replaced || is_valid(one));
        Ok(new)
    }

    /// Whether API servers accept the serving certificate.
    pub(super) fn is_accepted(&self, names: &CertificateNames, verifier: Verifier<'_>) -> bool {
        let fault = |serving| verifier.fault(serving, &self.authority, &names.hosts());
        self.serving.as_ref().is_some_and(|serving| fault(serving).is_none())
    }

    /// Whether the serving certificate has ended.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.serving.as_ref().is_none_or(|serving| serving.is_over(now))
    }

    /// Returns the start of the serving certificate's life, if it is in the future.
    pub(super) fn begins_later(&self, now: Timestamp) -> Option<Timestamp> {
        let begin = self.serving.as_ref().map(|serving| serving.validity.not_before);
        begin.filter(|begin| *begin > now)
    }

    /// Returns the authority that signs, PEM.
    pub(super) fn authority(&self) -> &str {
        &self.authority.certificate
    }

    /// Whether the authority that signs is one of those to trust of another material.
    pub(super) fn is_trusted_by(&self, other: &Self) -> bool {
        has(&other.bundle(), self.authority())
    }

    /// Returns the serving certificate and its key, PEM.
    pub(super) fn serving(&self) -> (&str, &str) {
        self.serving.as_ref().map_or(("", ""), |it| (&it.certificate, &it.key))
    }

    /// Returns the authorities to trust, PEM.
    pub(super) fn bundle(&self) -> String {
        let own = [Some(&self.authority), self.next.as_ref()];
        let own = own.into_iter().flatten().map(|pair| pair.certificate.as_str());
        let all = own.chain(self.earlier.iter().map(String::as_str));
        all.map(|one| format!("{}\n", one.trim())).collect()
    }
}

/// Returns the text of a key of a Secret.
fn text(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()
}

/// Returns the bundle of a Secret, PEM; empty without one.
pub(super) fn bundle(secret: &Secret) -> String {
    text(secret, TRUSTED).unwrap_or_default()
}
