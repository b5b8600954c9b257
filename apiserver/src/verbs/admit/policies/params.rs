//! The parameters of policies: the objects that a binding names.

use std::sync::Arc;

use serde_json::Value;

use crate::core::ServerCore;
use crate::kinds::Kind;
use crate::policies::PolicyRequest;
use crate::selectors;
use crate::storage;

/// The kind of a policy's parameters; `None` for a policy without them.
#[derive(Debug)]
pub(super) struct Kinds(Option<Arc<Kind>>);

impl Kinds {
    /// Finds the kind that `paramKind` of a policy names.
    pub(super) fn of(subject: &PolicyRequest<'_>, spec: &Value) -> Result<Self, String> {
        let wanted = &spec["paramKind"];
        if wanted.is_null() {
            return Ok(Self(None));
        }
        let text = |field: &str| wanted[field].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let found = subject.table.of_type(group, version, kind);
        let found = found.filter(|kind| !kind.facts.review);
        found.map(|kind| Self(Some(kind))).ok_or_else(|| {
            let kind = format!("{group}/{version}, Kind={kind}");
            format!("failed to find resource referenced by paramKind: '{kind}'")
        })
    }

    /// Returns the parameters that a binding names: `None` stands for a judgement without
    /// parameters, and an empty list for no judgement at all.
    pub(super) fn collect(
        &self,
        core: &ServerCore,
        reference: &Value,
        namespace: &str,
    ) -> Result<Vec<Option<Value>>, String> {
        let Some(kind) = self.0.as_ref().filter(|_| !reference.is_null()) else {
            return Ok(vec![None]);
        };
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let namespace = match (kind.served.namespaced, text("namespace")) {
            (true, "") if namespace.is_empty() => {
                let why = "cannot use namespaced paramRef in policy binding that matches \
                           cluster-scoped resources";
                return Err(why.to_owned());
            }
            (true, "") => namespace,
            (true, given) => given,
            (false, "") => "",
            (false, _) => {
                let why =
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
                return Err(why.to_owned());
            }
        };
        let found = match text("name") {
            "" => selected(core, kind, namespace, &reference["selector"]),
            name => {
                let held = core.store.get(&kind.storage, &storage::key(namespace, name));
                held.map(|held| Some(kind.present(&held.value))).into_iter().collect()
            }
        };
        if found.is_empty() && text("parameterNotFoundAction") == "Deny" {
            let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Err(why.to_owned());
        }
        Ok(found)
    }
}

/// Returns the objects that a selector selects, in the order of names.
fn selected(
    core: &ServerCore,
    kind: &Kind,
    namespace: &str,
    selector: &Value,
) -> Vec<Option<Value>> {
    let (snapshot, _) = core.store.snapshot(&kind.storage);
    storage::in_namespace(&snapshot, namespace)
        .filter(|(_, held)| selectors::selects(selector, &held.value))
        .map(|(_, held)| Some(kind.present(&held.value)))
        .collect()
}
