//! Addresses of Services: cluster IPs from 10.0.0.0/24 and node ports from 30000.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Call;
use crate::core::{Core, ReservedAddresses};
use crate::kinds::meta;
use crate::names;
use crate::status::{About, ApiError, invalid_value};

/// Address of the Service `kubernetes`.
pub(crate) const FIRST: &str = "10.0.0.1";

/// The reservation of a Service's addresses, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'c> {
    core: &'c Core,
    number: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.core.addresses.lock().remove(&self.number);
    }
}

/// Gives a Service the addresses that its type needs; those that it has are kept.
///
/// The caller keeps the reservation until the Service is stored: otherwise a second Service could
/// take the same free address. No lock is held meanwhile, since admission may take long.
pub(crate) fn assign<'c>(
    core: &'c Core,
    call: &Call,
    old: Option<&Value>,
    service: &mut Value,
) -> Result<Option<Reservation<'c>>, ApiError> {
    if !call.kind.is("", "services") {
        return Ok(None);
    }
    let mut reserved = core.addresses.lock();
    let uid = meta::text(service, "uid").to_owned();
    let mut taken = AllocatedAddresses::of(core, &uid);
    for other in reserved.values().filter(|other| other.uid != uid) {
        taken.add(&other.address, &other.ports);
    }
    choose(call, taken, old, service)?;
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().into_iter().flatten();
    let own = ReservedAddresses {
        uid,
        address: spec["clusterIP"].as_str().unwrap_or_default().to_owned(),
        ports: ports.filter_map(|port| port["nodePort"].as_i64()).collect(),
    };
    let number = reserved.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
    reserved.insert(number, own);
    Ok(Some(Reservation { core, number }))
}

/// Chooses the addresses of a Service among those that are not taken.
fn choose(
    call: &Call,
    taken: AllocatedAddresses,
    old: Option<&Value>,
    service: &mut Value,
) -> Result<(), ApiError> {
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    // A name in DNS: the Service has no address of its own.
    if kind == "ExternalName" {
        return Ok(());
    }
    let name = meta::text(service, "name").to_owned();
    let spec = crate::kinds::defaults::child(service, "spec");
    let kept = old.map(|old| old["spec"]["clusterIP"].clone()).filter(Value::is_string);
    if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        if let Some(why) = unallocatable(&name).filter(|_| kept.is_none() && !call.options.dry_run)
        {
            // Upstream makes an object for each address, which refers to the Service by its name.
            let free = taken.free_address()?;
            let why = format!(
                "failed to allocate IP: IPAddress.networking.k8s.io {free:?} is invalid: spec.parentRef.name: {why}"
            );
            let cause = invalid_value("spec.clusterIPs", &json!([""]), &why);
            return Err(ApiError::invalid(About::kind(&call.kind.served, &name), vec![cause]));
        }
        spec["clusterIP"] = match kept {
            Some(address) => address,
            None => taken.free_address()?.into(),
        };
    }
    let address = spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    if taken.addresses.contains(&address) {
        let why =
            "failed to allocate IP ".to_owned() + &address + ": provided IP is already allocated";
        let cause = invalid_value("spec.clusterIPs", &json!([address]), &why);
        return Err(ApiError::invalid(About::kind(&call.kind.served, &name), vec![cause]));
    }
    spec["clusterIPs"] = json!([address]);
    // For a headless Service without a selector its endpoints decide the families.
    let open =
        address == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    let families = if open { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    let policy = if open { "RequireDualStack" } else { "SingleStack" };
    crate::kinds::defaults::default(spec, "ipFamilies", families);
    crate::kinds::defaults::default(spec, "ipFamilyPolicy", json!(policy));
    if kind == "NodePort" || kind == "LoadBalancer" {
        node_ports(spec, old, taken.ports);
    }
    Ok(())
}

/// Returns why no address can be allocated for a Service of this name.
fn unallocatable(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("Required value".to_owned());
    }
    let why = names::path(name).into_iter().next()?;
    Some(format!("Invalid value: {name:?}: {why}"))
}

/// Gives each port of a Service a node port; those of unchanged ports are kept.
fn node_ports(spec: &mut Value, old: Option<&Value>, mut taken: BTreeSet<i64>) {
    let before = old.and_then(|old| old["spec"]["ports"].as_array().cloned()).unwrap_or_default();
    for port in crate::kinds::defaults::items(spec, "ports") {
        if port["nodePort"].as_i64().unwrap_or(0) == 0 {
            let same = before
                .iter()
                .find(|held| held["port"] == port["port"] && held["protocol"] == port["protocol"]);
            let kept = same.and_then(|held| held["nodePort"].as_i64());
            let free = kept.or_else(|| (30_000..32_768).find(|number| !taken.contains(number)));
            port["nodePort"] = json!(free.unwrap_or(0));
        }
        // Two ports of one Service must not get the same number.
        taken.extend(port["nodePort"].as_i64());
    }
}

/// Addresses and node ports in use.
#[derive(Debug, Default)]
struct AllocatedAddresses {
    /// Cluster IPs.
    addresses: BTreeSet<String>,
    /// Node ports.
    ports: BTreeSet<i64>,
}

impl AllocatedAddresses {
    /// Returns the addresses of all Services except the one with this uid.
    fn of(core: &Core, uid: &str) -> Self {
        let mut taken = Self::default();
        let (services, _) = core.store.snapshot("services");
        for (_, service) in &services {
            // An update does not compete with the Service's own addresses.
            if meta::text(&service.value, "uid") == uid {
                continue;
            }
            let spec = &service.value["spec"];
            let ports = spec["ports"].as_array().into_iter().flatten();
            let ports: Vec<i64> = ports.filter_map(|port| port["nodePort"].as_i64()).collect();
            taken.add(spec["clusterIP"].as_str().unwrap_or_default(), &ports);
        }
        taken
    }

    /// Adds the address and the node ports of a Service.
    fn add(&mut self, address: &str, ports: &[i64]) {
        if !address.is_empty() && address != "None" {
            self.addresses.insert(address.to_owned());
        }
        self.ports.extend(ports.iter().filter(|port| **port != 0));
    }

    /// Returns the first free address; 10.0.0.1 belongs to the Service `kubernetes`.
    fn free_address(&self) -> Result<String, ApiError> {
        let mut all = (2..255).map(|last| format!("10.0.0.{last}"));
        all.find(|address| !self.addresses.contains(address))
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))
    }
}
