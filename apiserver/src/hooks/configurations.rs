//! Stored webhook configurations: parsed and compiled once per stored state.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_cel::admission::{FailurePolicy, MatchConditions};

use crate::storage::{Store, StoredObject};

/// Phase of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AdmissionPhase {
    /// Webhooks that change objects, in sequence.
    Mutating,
    /// Webhooks that judge objects, all at once.
    Validating,
}

impl AdmissionPhase {
    /// Returns the resource of the phase's configurations in the store.
    fn storage(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations.admissionregistration.k8s.io",
            Self::Validating => "validatingwebhookconfigurations.admissionregistration.k8s.io",
        }
    }
}

/// A webhook of a stored configuration.
#[derive(Debug)]
pub(crate) struct Hook {
    /// Stored form of the webhook.
    pub(crate) spec: Value,
    /// Rules and selectors, under the names that policies have for them.
    pub(crate) criteria: Value,
    /// Match conditions; compiled when the first request matches the rules.
    conditions: OnceLock<MatchConditions>,
}

impl Hook {
    fn new(spec: &Value) -> Self {
        let criteria = json!({
            "resourceRules": spec["rules"], "matchPolicy": spec["matchPolicy"],
            "namespaceSelector": spec["namespaceSelector"],
            "objectSelector": spec["objectSelector"],
        });
        Self { spec: spec.clone(), criteria, conditions: OnceLock::new() }
    }

    /// Returns the name of the webhook.
    pub(crate) fn name(&self) -> &str {
        self.spec["name"].as_str().unwrap_or_default()
    }

    /// Whether the webhook has rules, without which it is never called.
    pub(crate) fn has_rules(&self) -> bool {
        self.spec["rules"].as_array().is_some_and(|rules| !rules.is_empty())
    }

    /// Whether a failed call is ignored.
    pub(crate) fn ignores_failures(&self) -> bool {
        self.spec["failurePolicy"] == "Ignore"
    }

    /// Whether a change by a later webhook calls this one again.
    pub(crate) fn is_reinvoked(&self) -> bool {
        self.spec["reinvocationPolicy"] == "IfNeeded"
    }

    /// Whether the webhook may be called for a dry run.
    pub(crate) fn allows_dry_run(&self) -> bool {
        let effects = &self.spec["sideEffects"];
        effects == "None" || effects == "NoneOnDryRun"
    }

    /// Returns the time limit for the webhook's answer.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.spec["timeoutSeconds"].as_u64().unwrap_or(10))
    }

    /// Returns the compiled match conditions; `None` without any.
    pub(crate) fn conditions(&self) -> Option<&MatchConditions> {
        let conditions = self.spec["matchConditions"].as_array()?;
        if conditions.is_empty() {
            return None;
        }
        let policy =
            if self.ignores_failures() { FailurePolicy::Ignore } else { FailurePolicy::Fail };
        Some(self.conditions.get_or_init(|| MatchConditions::new(conditions, policy)))
    }
}

/// A configuration with all webhooks.
type Configuration = (Arc<StoredObject>, Vec<Arc<Hook>>);

/// The webhooks of a server's configurations.
#[derive(Debug, Default)]
pub(crate) struct Configurations {
    held: Mutex<HashMap<(AdmissionPhase, Arc<str>), Configuration>>,
}

impl Configurations {
    /// Whether there are configurations of a phase.
    pub(crate) fn has_any(store: &Store, phase: AdmissionPhase) -> bool {
        !store.snapshot(phase.storage()).0.is_empty()
    }

    /// Returns the webhooks of a phase: configurations by name, webhooks in order. Without
    /// configurations this is a single look into the store.
    pub(crate) fn hooks(&self, store: &Store, phase: AdmissionPhase) -> Vec<Arc<Hook>> {
        let (stored, _) = store.snapshot(phase.storage());
        if stored.is_empty() {
            return Vec::new();
        }
        let mut held = self.held.lock();
        // Configurations that are gone stay until others have been read.
        held.retain(|(of, name), _| *of != phase || stored.contains_key(name));
        let mut hooks = Vec::new();
        // The keys of the store are the names, in their order.
        for (name, object) in &stored {
            let key = (phase, name.clone());
            let known = held.get(&key).filter(|(of, _)| Arc::ptr_eq(of, object));
            let own = match known {
                Some((_, own)) => own.clone(),
                None => {
                    let list = object.value["webhooks"].as_array().into_iter().flatten();
                    let own: Vec<_> = list.map(|spec| Arc::new(Hook::new(spec))).collect();
                    held.insert(key, (object.clone(), own.clone()));
                    own
                }
            };
            hooks.extend(own);
        }
        hooks
    }
}
