//! Approved certificate requests: the authority of the server signs those for clients and kubelets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::objects::{self, Resource};
use super::{RETRY, WorkResult};
use crate::auth::signer::{Grant, SigningRequest};
use crate::core::ServerCore;

const REQUESTS: Resource = ("certificates.k8s.io", "certificatesigningrequests");

/// Signers of kube-controller-manager that issue certificates here.
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

/// Seconds for which a certificate counts at most, and at least: those of upstream.
const LONGEST: i64 = 365 * 24 * 3600;
const SHORTEST: i64 = 600;
/// Seconds by which a certificate counts before its issue, for clients whose clocks are late.
const BACKDATE: i64 = 300;
/// Seconds below which this time is not taken off the end.
const SHORT: i64 = 8 * 3600;

/// Signs a request, or gives the reason of a refusal in a condition.
pub(super) fn sync(core: &ServerCore, name: &str) -> WorkResult {
    let Some(stored) = objects::get(core, REQUESTS, "", name) else { return Ok(None) };
    let request = &stored.value;
    let signer = request["spec"]["signerName"].as_str().unwrap_or_default();
    let has =
        |kind: &str| objects::condition(request, kind).is_some_and(|it| it["status"] == "True");
    let is_ours = [CLIENT, KUBELET_CLIENT, KUBELET_SERVING].contains(&signer);
    let is_open = request["status"]["certificate"].as_str().is_none_or(str::is_empty);
    if !is_ours || !is_open || !has("Approved") || has("Denied") || has("Failed") {
        return Ok(None);
    }
    match issue(core, request, signer) {
        // Only a server that listens has an authority.
        None => Ok(Some(core.clock.seconds() + RETRY)),
        Some(Ok(certificate)) => {
            objects::change(core, REQUESTS, request, "status", |next| {
                next["status"]["certificate"] = json!(STANDARD.encode(&certificate));
            })?;
            Ok(None)
        }
        Some(Err(why)) => {
            let now = core.clock.rfc3339();
            let failed = json!({"type": "Failed", "status": "True", "message": why,
                "reason": "SignerValidationFailure", "lastUpdateTime": now});
            let mut conditions = objects::items(&request["status"], "conditions").to_vec();
            conditions.push(failed);
            objects::change(core, REQUESTS, request, "status", |next| {
                next["status"]["conditions"] = json!(conditions);
            })?;
            Ok(None)
        }
    }
}

/// Issues the certificate of a request; `None` without an authority.
fn issue(core: &ServerCore, object: &Value, signer: &str) -> Option<Result<String, String>> {
    let authority = core.signer.lock().clone()?;
    let spec = &object["spec"];
    let usages: Vec<&str> =
        objects::items(spec, "usages").iter().filter_map(Value::as_str).collect();
    let pem = STANDARD.decode(spec["request"].as_str().unwrap_or_default()).unwrap_or_default();
    let request = match SigningRequest::read(&pem) {
        Ok(request) => request,
        Err(why) => return Some(Err(why)),
    };
    if let Err(why) = check(&request, &usages, signer) {
        return Some(Err(why));
    }
    let asked = spec["expirationSeconds"].as_i64().unwrap_or(LONGEST).clamp(SHORTEST, LONGEST);
    let end = if asked < SHORT { asked } else { asked - BACKDATE };
    let mut serial = [0; 16];
    serial.copy_from_slice(&core.rng.bytes()[..16]);
    let grant = Grant {
        usages: &usages,
        begin: &core.clock.rfc3339_after(-BACKDATE),
        end: &core.clock.rfc3339_after(end),
        serial,
    };
    Some(authority.sign(&request, grant))
}

/// Fails if a signer does not issue such a certificate.
fn check(request: &SigningRequest, usages: &[&str], signer: &str) -> Result<(), String> {
    if signer == CLIENT {
        let known = ["digital signature", "key encipherment", "client auth"];
        if let Some(usage) = usages.iter().find(|usage| !known.contains(usage)) {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
        let has = usages.contains(&"client auth");
        let why = "missing required usage for client certificate: client auth";
        return if has { Ok(()) } else { Err(why.to_owned()) };
    }
    let user = request.user();
    if user.as_ref().is_none_or(|user| user.groups != ["system:nodes"]) {
        return Err("subject organization is not system:nodes".to_owned());
    }
    let (purpose, wants_names) = match signer {
        KUBELET_SERVING => ("server auth", true),
        _ => ("client auth", false),
    };
    match (wants_names, request.has_names()) {
        (true, false) => return Err("DNS or IP subjectAltName is required".to_owned()),
        (false, true) => return Err("DNS subjectAltNames are not allowed".to_owned()),
        _ => {}
    }
    let wanted = ["digital signature", "key encipherment", purpose];
    let fits = usages.iter().all(|usage| wanted.contains(usage))
        && ["digital signature", purpose].iter().all(|usage| usages.contains(usage));
    if !fits {
        let mut sorted = wanted;
        sorted.sort_unstable();
        return Err(format!("usages did not match [{}]", sorted.join(" ")));
    }
    if user.is_none_or(|user| !user.name.starts_with("system:node:")) {
        return Err("subject common name does not begin with system:node:".to_owned());
    }
    Ok(())
}
