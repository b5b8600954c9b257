//! Default classes of claims and of Ingresses, and the growth of claims, which their class allows.

use serde_json::Value;

use crate::core::ServerCore;
use crate::kinds::meta;
use crate::kinds::quantity::Quantity;
use crate::status::{ApiError, FailureSubject};
use crate::verbs::VerbCall;

/// Resource of storage classes in the store.
const STORAGE: &str = "storageclasses.storage.k8s.io";
/// Resource of classes of Ingresses in the store.
const INGRESS: &str = "ingressclasses.networking.k8s.io";
/// Annotation that had the storage class of a claim.
const OLDER: &str = "volume.beta.kubernetes.io/storage-class";

/// Gives a new claim or Ingress without a class the default class, if there is one.
pub(crate) fn fill_in(core: &ServerCore, call: &VerbCall, object: &mut Value) {
    if !call.subresource.is_empty() {
        return;
    }
    let (field, annotation, classes, marks): (_, _, _, &[&str]) = if is_claim(call) {
        let marks = &[
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        ("storageClassName", OLDER, STORAGE, marks)
    } else if call.kind.is("networking.k8s.io", "ingresses") {
        let marks = &["ingressclass.kubernetes.io/is-default-class"];
        ("ingressClassName", "kubernetes.io/ingress.class", INGRESS, marks)
    } else {
        return;
    };
    let has_class = object["spec"][field].is_string()
        || object["metadata"]["annotations"][annotation].is_string();
    if has_class || !object["spec"].is_object() {
        return;
    }
    if let Some(name) = default_class(core, classes, marks) {
        object["spec"][field] = name.into();
    }
}

/// Returns the name of the default class: the newest, and of equally old the first by name.
fn default_class(core: &ServerCore, classes: &str, marks: &[&str]) -> Option<String> {
    let (snapshot, _) = core.store.snapshot(classes);
    let is_default =
        |class: &Value| marks.iter().any(|mark| class["metadata"]["annotations"][*mark] == "true");
    let all = snapshot.iter().map(|(_, class)| &class.value);
    let all: Vec<&Value> = all.filter(|class| is_default(class)).collect();
    let made = |class: &Value| meta::text(class, "creationTimestamp").to_owned();
    let newest = all.iter().map(|class| made(class)).max()?;
    let first = all.iter().filter(|class| made(class) == newest);
    let first = first.map(|class| meta::text(class, "name"));
    first.min().map(str::to_owned)
}

/// Whether a call is about claims.
fn is_claim(call: &VerbCall) -> bool {
    call.kind.is("", "persistentvolumeclaims")
}

/// Checks that a claim that grows is bound, and that its class lets claims grow.
pub(crate) fn check_growth(
    core: &ServerCore,
    call: &VerbCall,
    old: &Value,
    new: &Value,
) -> Result<(), ApiError> {
    if !is_claim(call) || !call.subresource.is_empty() {
        return Ok(());
    }
    let size = |claim: &Value| Quantity::parse(&claim["spec"]["resources"]["requests"]["storage"]);
    let grows = size(old).zip(size(new)).is_some_and(|(held, wanted)| wanted > held);
    if !grows {
        return Ok(());
    }
    let refused = |why: &str| {
        Err(ApiError::forbidden(FailureSubject::resource(&call.kind.served, &call.name), why))
    };
    if old["status"]["phase"] != "Bound" {
        return refused("Only bound persistent volume claims can be expanded");
    }
    let class = |claim: &Value| {
        let older = claim["metadata"]["annotations"][OLDER].as_str();
        older.or(claim["spec"]["storageClassName"].as_str()).unwrap_or_default().to_owned()
    };
    let name = class(new);
    let held = core.store.get(STORAGE, &name).filter(|_| !name.is_empty() && class(old) == name);
    if held.is_some_and(|class| class.value["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    refused(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    )
}
