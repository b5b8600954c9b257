//! Use of the resources that quotas limit, by object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::clock;
use crate::kinds::quantity::Quantity;
use crate::verbs::VerbCall;

/// Plurals that quotas also count by this name alone.
const BARE: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];
/// Suffix of resources of a storage class.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Amounts by the names of resources.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Returns the amounts of a map of quantities.
pub(super) fn amounts(map: &Value) -> Amounts {
    let fields = map.as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), Quantity::parse(value)?))).collect()
}

/// Whether objects of the call's kind count for a resource.
pub(super) fn covers(call: &VerbCall, name: &str) -> bool {
    if counted(call).iter().any(|own| own == name) {
        return true;
    }
    if call.kind.is("", "pods") {
        let own = ["cpu", "memory", "ephemeral-storage"];
        let bare = name.strip_prefix("requests.").unwrap_or(name);
        let limited = name.strip_prefix("limits.").is_some_and(|rest| own.contains(&rest));
        return limited
            || own.contains(&bare)
            || bare.starts_with("hugepages-")
            || name.starts_with("requests.") && is_extended(bare);
    }
    if call.kind.is("", "persistentvolumeclaims") {
        let rest = name.split_once(OF_CLASS).map_or(name, |(_, rest)| rest);
        return matches!(rest, "persistentvolumeclaims" | "requests.storage");
    }
    call.kind.is("", "services") && matches!(name, "services.nodeports" | "services.loadbalancers")
}

/// Returns the resources that count objects of the call's kind.
fn counted(call: &VerbCall) -> Vec<String> {
    let served = &call.kind.served;
    let plural = &served.plural;
    if !served.group.is_empty() {
        return vec![format!("count/{plural}.{}", served.group)];
    }
    let mut names = vec![format!("count/{plural}")];
    names.extend(BARE.contains(&plural.as_str()).then(|| plural.clone()));
    names
}

/// Returns the resources that an object uses at a time.
pub(super) fn of(call: &VerbCall, object: &Value, now: i64) -> Amounts {
    let mut out: Amounts =
        counted(call).into_iter().map(|name| (name, Quantity::whole(1))).collect();
    if call.kind.is("", "persistentvolumeclaims") {
        claim(object, &mut out);
    }
    if call.kind.is("", "services") {
        service(&object["spec"], &mut out);
    }
    if call.kind.is("", "pods") {
        if ended(object, now) {
            // The object stays; its resources are free.
            out.remove("pods");
        } else {
            pod(&object["spec"], &mut out);
        }
    }
    out
}

/// Adds the storage of a claim, also under the name of the storage class.
fn claim(object: &Value, out: &mut Amounts) {
    let size = Quantity::parse(&object["spec"]["resources"]["requests"]["storage"]);
    let annotated = &object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    let class = annotated.as_str().or(object["spec"]["storageClassName"].as_str());
    let class = class.filter(|class| !class.is_empty());
    if let Some(class) = class {
        out.insert(format!("{class}{OF_CLASS}persistentvolumeclaims"), Quantity::whole(1));
    }
    if let Some(size) = size {
        out.insert("requests.storage".to_owned(), size);
        out.extend(class.map(|class| (format!("{class}{OF_CLASS}requests.storage"), size)));
    }
}

/// Adds the node ports and the load balancer of a Service.
fn service(spec: &Value, out: &mut Amounts) {
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let named = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let balanced = spec["type"] == "LoadBalancer";
    let number = match spec["type"].as_str() {
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => named,
        Some("NodePort" | "LoadBalancer") => ports.len(),
        _ => 0,
    };
    let number = Quantity::whole(i64::try_from(number).unwrap_or(i64::MAX));
    out.insert("services.nodeports".to_owned(), number);
    out.insert("services.loadbalancers".to_owned(), Quantity::whole(i64::from(balanced)));
}

/// Whether a Pod uses nothing any more: the Pod has ended, or should be gone already.
fn ended(pod: &Value, now: i64) -> bool {
    let phase = &pod["status"]["phase"];
    let metadata = &pod["metadata"];
    let deleted = metadata["deletionTimestamp"].as_str().and_then(clock::parse);
    let grace = metadata["deletionGracePeriodSeconds"].as_i64();
    let is_late = deleted.zip(grace).is_some_and(|(at, grace)| now > at.saturating_add(grace));
    phase == "Succeeded" || phase == "Failed" || is_late
}

/// Adds the resources of a Pod under the names that quotas have for them.
fn pod(spec: &Value, out: &mut Amounts) {
    for (name, amount) in total(spec, "requests") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || name.starts_with("hugepages-")
        {
            out.insert(format!("requests.{name}"), amount);
            out.insert(name, amount);
        } else if is_extended(&name) {
            out.insert(format!("requests.{name}"), amount);
        }
    }
    for (name, amount) in total(spec, "limits") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            out.insert(format!("limits.{name}"), amount);
        }
    }
}

/// Whether a resource is none of Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
        || name.starts_with("deviceclass.resource.kubernetes.io/")
}

/// Returns the requests or limits of a Pod: the containers with those that run beside them, or an
/// initialization that needs more than these.
pub(super) fn total(spec: &Value, part: &str) -> Amounts {
    let add = |sums: &mut Amounts, more: &Amounts| {
        for (name, amount) in more {
            let sum = sums.entry(name.clone()).or_default();
            *sum = *sum + *amount;
        }
    };
    let raise = |peaks: &mut Amounts, seen: &Amounts| {
        for (name, amount) in seen {
            let peak = peaks.entry(name.clone()).or_insert(*amount);
            if *amount > *peak {
                *peak = *amount;
            }
        }
    };
    let list = |name: &str| spec[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut sums = Amounts::new();
    for container in list("containers") {
        add(&mut sums, &amounts(&container["resources"][part]));
    }
    let (mut beside, mut peaks) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut own = amounts(&container["resources"][part]);
        if container["restartPolicy"] == "Always" {
            // Such a container keeps running beside all containers that start later.
            add(&mut sums, &own);
            add(&mut beside, &own);
            own = beside.clone();
        } else {
            add(&mut own, &beside);
        }
        raise(&mut peaks, &own);
    }
    raise(&mut sums, &peaks);
    for (name, amount) in amounts(&spec["resources"][part]) {
        if is_of_pod(&name) {
            sums.insert(name, amount);
        }
    }
    for (name, amount) in amounts(&spec["overhead"]) {
        // Nothing limits a Pod of which no container is limited.
        if part == "requests" || sums.get(&name).is_some_and(|sum| !sum.is_zero()) {
            add(&mut sums, &Amounts::from([(name, amount)]));
        }
    }
    sums
}

/// Whether the resource can be given for a whole Pod.
fn is_of_pod(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Returns the limited resources that containers of a Pod do not name, with the containers.
pub(super) fn unspecified(call: &VerbCall, object: &Value, limits: &Amounts) -> Option<String> {
    let spec = &object["spec"];
    let of_pod = ["requests", "limits"]
        .into_iter()
        .any(|part| amounts(&spec["resources"][part]).keys().any(|name| is_of_pod(name)));
    if !call.kind.is("", "pods") || of_pod {
        return None;
    }
    let mut missing = Vec::new();
    for name in limits.keys() {
        let (part, resource) = name.split_once('.').unwrap_or(("requests", name));
        if !["cpu", "memory"].contains(&resource) || !["requests", "limits"].contains(&part) {
            continue;
        }
        let containers = ["containers", "initContainers"].into_iter();
        let lacking: BTreeSet<&str> = containers
            .flat_map(|list| spec[list].as_array().into_iter().flatten())
            .filter(|container| container["resources"][part].get(resource).is_none())
            .filter_map(|container| container["name"].as_str())
            .collect();
        if !lacking.is_empty() {
            let lacking: Vec<&str> = lacking.into_iter().collect();
            missing.push(format!("{name} for: {}", lacking.join(",")));
        }
    }
    (!missing.is_empty()).then(|| missing.join("; "))
}
