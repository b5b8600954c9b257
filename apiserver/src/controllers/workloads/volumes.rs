//! Claims and volumes: a claim gets a volume that fits, or a volume made for the claim.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::WorkResult;
use super::objects::{self, CLAIMS, PODS, VOLUMES};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::kinds::quantity::Quantity;
use crate::status::ApiError;

/// Finalizers that keep claims and volumes in use.
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
/// Annotations of upstream.
const BOUND_BY: &str = "pv.kubernetes.io/bound-by-controller";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Name of the provisioner.
const PROVISIONER: &str = "windlass.dev/provisioner";

/// Binds a claim, or releases it and its volume.
pub(super) fn sync(core: &ServerCore, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(core, CLAIMS, namespace, name) else {
        return release(core, namespace, name).map(|()| None);
    };
    let claim = &stored.value;
    if meta::terminating(claim) {
        return unprotect(core, claim).map(|()| None);
    }
    let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default();
    let found = if volume.is_empty() {
        find(core, claim)
    } else {
        objects::get(core, VOLUMES, "", volume).map(|stored| stored.value.clone())
    };
    let volume = match found {
        Some(volume) => volume,
        // The empty class stands for volumes that an administrator makes.
        None if !volume.is_empty() || claim["spec"]["storageClassName"] == "" => return Ok(None),
        None => provision(core, claim)?,
    };
    bind(core, claim, &volume).map(|()| None)
}

/// Whether a volume is kept for a claim.
fn is_for(volume: &Value, claim: &Value) -> bool {
    let reference = &volume["spec"]["claimRef"];
    let uid = &reference["uid"];
    reference["name"] == claim["metadata"]["name"]
        && reference["namespace"] == claim["metadata"]["namespace"]
        && (uid.is_null() || *uid == claim["metadata"]["uid"])
}

/// Returns the size of a claim or volume.
fn size(text: &Value) -> Option<Quantity> {
    Quantity::parse(text)
}

/// Finds the smallest volume that fits a claim.
fn find(core: &ServerCore, claim: &Value) -> Option<Value> {
    let all = objects::list(core, VOLUMES, "");
    if let Some(own) = all.iter().find(|volume| is_for(&volume.value, claim)) {
        return Some(own.value.clone());
    }
    let spec = &claim["spec"];
    let wanted = size(&spec["resources"]["requests"]["storage"])?;
    let class = |spec: &Value| spec["storageClassName"].as_str().unwrap_or_default().to_owned();
    let fits = all.iter().filter(|volume| {
        let offered = &volume.value["spec"];
        let modes = objects::items(offered, "accessModes");
        offered["claimRef"].is_null()
            && !meta::terminating(&volume.value)
            && class(offered) == class(spec)
            && offered["volumeMode"] == spec["volumeMode"]
            && objects::items(spec, "accessModes").iter().all(|mode| modes.contains(mode))
            && size(&offered["capacity"]["storage"]).is_some_and(|size| size >= wanted)
    });
    let capacity = |volume: &Value| size(&volume["spec"]["capacity"]["storage"]);
    let smallest = fits.min_by(|a, b| {
        capacity(&a.value).partial_cmp(&capacity(&b.value)).unwrap_or(Ordering::Equal)
    });
    smallest.map(|volume| volume.value.clone())
}

/// Makes a volume for a claim.
fn provision(core: &ServerCore, claim: &Value) -> Result<Value, ApiError> {
    let spec = &claim["spec"];
    let uid = meta::text(claim, "uid");
    let name = format!("pvc-{uid}");
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": reference(claim),
            "hostPath": {"path": format!("/var/lib/windlass/{name}"), "type": ""},
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": spec["volumeMode"],
        },
    });
    if let Some(class) = spec["storageClassName"].as_str() {
        volume["spec"]["storageClassName"] = json!(class);
    }
    objects::create(core, VOLUMES, "", volume)
}

/// Returns the reference of a volume to the claim.
fn reference(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": metadata["name"],
        "namespace": metadata["namespace"], "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    })
}

/// Binds a volume and a claim to each other.
fn bind(core: &ServerCore, claim: &Value, volume: &Value) -> Result<(), ApiError> {
    if !volume["spec"]["claimRef"].is_null() && !is_for(volume, claim) {
        return Ok(());
    }
    if volume["spec"]["claimRef"]["uid"].is_null() {
        let is_chosen = volume["spec"]["claimRef"].is_null();
        objects::change(core, VOLUMES, volume, "", |next| {
            next["spec"]["claimRef"] = reference(claim);
            if is_chosen {
                annotate(next, BOUND_BY);
            }
        })?;
    }
    set_phase(core, volume, "Bound")?;
    if claim["spec"]["volumeName"].as_str().is_none_or(str::is_empty) {
        objects::change(core, CLAIMS, claim, "", |next| {
            next["spec"]["volumeName"] = volume["metadata"]["name"].clone();
            annotate(next, COMPLETED);
            annotate(next, BOUND_BY);
        })?;
    }
    let mut status = claim["status"].clone();
    status["phase"] = json!("Bound");
    status["accessModes"] = volume["spec"]["accessModes"].clone();
    status["capacity"] = volume["spec"]["capacity"].clone();
    objects::set_status(core, CLAIMS, claim, &status)
}

/// Sets an annotation to `yes`.
fn annotate(object: &mut Value, name: &str) {
    meta::of(object).entry("annotations").or_insert_with(|| json!({}))[name] = json!("yes");
}

/// Writes the phase of a volume.
fn set_phase(core: &ServerCore, volume: &Value, phase: &str) -> Result<(), ApiError> {
    let name = meta::text(volume, "name");
    let Some(stored) = objects::get(core, VOLUMES, "", name) else { return Ok(()) };
    if stored.value["status"]["phase"] == phase {
        return Ok(());
    }
    let mut status = stored.value["status"].clone();
    status["phase"] = json!(phase);
    status["lastPhaseTransitionTime"] = json!(core.clock.rfc3339());
    objects::set_status(core, VOLUMES, &stored.value, &status)
}

/// Lets the volumes of a claim go that no longer exists.
fn release(core: &ServerCore, namespace: &str, name: &str) -> Result<(), ApiError> {
    let gone = json!({"metadata": {"namespace": namespace, "name": name}});
    for stored in objects::list(core, VOLUMES, "") {
        let volume = &stored.value;
        let reference = &volume["spec"]["claimRef"];
        let is_its = reference["name"] == gone["metadata"]["name"]
            && reference["namespace"] == gone["metadata"]["namespace"];
        // Without a uid the volume waits for a claim that is to come.
        if !is_its || reference["uid"].is_null() {
            continue;
        }
        if volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete" {
            drop_finalizer(core, VOLUMES, volume, VOLUME_PROTECTION)?;
            objects::remove(core, VOLUMES, volume, None)?;
        } else {
            set_phase(core, volume, "Released")?;
        }
    }
    Ok(())
}

/// Lets a claim go that no Pod uses.
fn unprotect(core: &ServerCore, claim: &Value) -> Result<(), ApiError> {
    let name = meta::text(claim, "name");
    let uses = |pod: &Value| {
        !super::pods::is_finished(pod)
            && objects::items(&pod["spec"], "volumes")
                .iter()
                .any(|volume| volume["persistentVolumeClaim"]["claimName"] == name)
    };
    let namespace = meta::text(claim, "namespace");
    if objects::list(core, PODS, namespace).iter().any(|pod| uses(&pod.value)) {
        return Ok(());
    }
    drop_finalizer(core, CLAIMS, claim, CLAIM_PROTECTION)
}

/// Removes a finalizer from an object, if present.
fn drop_finalizer(
    core: &ServerCore,
    resource: objects::Resource,
    object: &Value,
    finalizer: &str,
) -> Result<(), ApiError> {
    if !meta::finalizers(object).iter().any(|one| one == finalizer) {
        return Ok(());
    }
    objects::change(core, resource, object, "", |next| {
        let mut finalizers = meta::finalizers(next);
        finalizers.retain(|one| one != finalizer);
        meta::set(next, "finalizers", json!(finalizers));
        meta::clean(next);
    })
}
