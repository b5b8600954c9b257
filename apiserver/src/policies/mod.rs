//! Admission policies, validating and mutating: compiled once per stored state, matched against
//! requests.
//!
//! The form of a policy and the run of expressions are in `windlass-cel`; this module decides which
//! policies and bindings a request concerns. `verbs::admit::policies` enforces these policies.

mod subject;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use windlass_cel::admission::{MutatingPolicy, Policy};

use crate::storage::{Store, StoredObject};

pub(crate) use subject::PolicyRequest;

/// A kind of compiled policies, with the resources that hold them.
pub(crate) trait PolicyKind: Sized {
    /// Resource of policies in the store.
    const POLICIES: &str;
    /// Resource of bindings in the store.
    const BINDINGS: &str;

    /// Compiles the `spec` of a policy.
    fn compile(spec: &Value) -> Self;
}

impl PolicyKind for Policy {
    const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
    const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";

    fn compile(spec: &Value) -> Self {
        Self::new(spec)
    }
}

impl PolicyKind for MutatingPolicy {
    const POLICIES: &str = "mutatingadmissionpolicies.admissionregistration.k8s.io";
    const BINDINGS: &str = "mutatingadmissionpolicybindings.admissionregistration.k8s.io";

    fn compile(spec: &Value) -> Self {
        Self::new(spec)
    }
}

/// A stored policy with compiled expressions.
#[derive(Debug)]
pub(crate) struct Compiled<P = Policy> {
    /// The stored policy.
    object: Arc<StoredObject>,
    /// The compiled policy; filled when the first request matches it.
    policy: OnceLock<P>,
}

impl<P: PolicyKind> Compiled<P> {
    /// Returns the name of the policy.
    pub(crate) fn name(&self) -> &str {
        crate::kinds::meta::text(&self.object.value, "name")
    }

    /// Returns the `spec` of the policy.
    pub(crate) fn spec(&self) -> &Value {
        &self.object.value["spec"]
    }

    /// Returns the compiled policy.
    pub(crate) fn policy(&self) -> &P {
        // Outside of the lock of all policies: others are not held up by a large policy.
        self.policy.get_or_init(|| P::compile(self.spec()))
    }

    /// Whether errors of the configuration refuse a request.
    pub(crate) fn fails(&self) -> bool {
        self.spec()["failurePolicy"] != "Ignore"
    }
}

/// A policy with all bindings, in the order of names.
pub(crate) type BoundPolicy<P = Policy> = (Arc<Compiled<P>>, Vec<Arc<StoredObject>>);

/// The compiled policies of a server.
#[derive(Debug)]
pub(crate) struct Policies<P = Policy> {
    held: Mutex<HashMap<Arc<str>, Arc<Compiled<P>>>>,
}

impl<P> Default for Policies<P> {
    fn default() -> Self {
        Self { held: Mutex::default() }
    }
}

impl<P: PolicyKind> Policies<P> {
    /// Whether there are bindings at all.
    pub(crate) fn has_any(store: &Store) -> bool {
        !store.snapshot(P::BINDINGS).0.is_empty()
    }

    /// Returns the policies that have bindings, in the order of names. Without bindings this is a
    /// single look into the store.
    pub(crate) fn bound(&self, store: &Store) -> Vec<BoundPolicy<P>> {
        let (bindings, _) = store.snapshot(P::BINDINGS);
        if bindings.is_empty() {
            return Vec::new();
        }
        let (policies, _) = store.snapshot(P::POLICIES);
        let mut by_policy: BTreeMap<&str, Vec<Arc<StoredObject>>> = BTreeMap::new();
        for (_, binding) in &bindings {
            let name = binding.value["spec"]["policyName"].as_str().unwrap_or_default();
            by_policy.entry(name).or_default().push(binding.clone());
        }
        let mut held = self.held.lock();
        // Policies that are gone stay until the next compilation.
        if held.len() > policies.size() {
            held.retain(|name, _| policies.contains_key(name));
        }
        let mut out = Vec::new();
        for (name, bindings) in by_policy {
            if let Some((key, object)) = policies.get_key_value(name) {
                out.push((compiled(&mut held, key, object), bindings));
            }
        }
        out
    }
}

/// Returns the compiled form of a stored policy; the held form if of the same state.
fn compiled<P>(
    held: &mut HashMap<Arc<str>, Arc<Compiled<P>>>,
    key: &Arc<str>,
    object: &Arc<StoredObject>,
) -> Arc<Compiled<P>> {
    if let Some(known) = held.get(key).filter(|known| Arc::ptr_eq(&known.object, object)) {
        return known.clone();
    }
    let fresh = Arc::new(Compiled { object: object.clone(), policy: OnceLock::new() });
    held.insert(key.clone(), fresh.clone());
    fresh
}
