//! Addresses of Services: cluster IPs from the `ServiceCIDRs` that are ready, at first 10.0.0.0/24,
//! and node ports from 30000 to 32767.
//!
//! Allocation comes before validation, as in kube-apiserver: a fault of the allocation is the only
//! fault of the answer.

mod change;
mod families;
pub(crate) mod objects;
mod ports;
mod ranges;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::VerbCall;
use crate::core::{ReservedAddresses, ServerCore};
use crate::kinds::{defaults, meta};
use crate::names;
use crate::served::Cause;
use crate::status::{ApiError, FailureSubject, invalid_value};

pub(crate) use change::check;
use ranges::Range;

/// Address of the Service `kubernetes`.
pub(crate) const FIRST: &str = "10.0.0.1";

/// The range of cluster IPs.
pub(crate) const RANGE: &str = "10.0.0.0/24";

/// The reservation of a Service's addresses, which ends on drop.
#[derive(Debug)]
pub(crate) struct Reservation<'c> {
    core: &'c ServerCore,
    number: u64,
    /// Addresses whose objects go again unless the Service is stored.
    made: Vec<String>,
}

impl Reservation<'_> {
    /// Creates the objects of the addresses that have none, just before the Service is stored.
    pub(crate) fn announce(&mut self, service: &Value) {
        self.made = objects::announce(self.core, service);
    }

    /// Ends the reservation of a Service that is stored.
    pub(crate) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        objects::withdraw(self.core, &self.made);
        self.core.addresses.lock().remove(&self.number);
    }
}

/// Gives a Service the addresses that the type needs; present addresses are kept.
///
/// The caller keeps the reservation until the Service is stored: otherwise a second Service could
/// take the same free address. No lock is held meanwhile, since admission may take long.
pub(crate) fn assign<'c>(
    core: &'c ServerCore,
    call: &VerbCall,
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
    let own = ReservedAddresses {
        uid,
        address: spec["clusterIP"].as_str().unwrap_or_default().to_owned(),
        ports: ports::of(spec),
    };
    let number = reserved.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
    reserved.insert(number, own);
    Ok(Some(Reservation { core, number, made: Vec::new() }))
}

/// Chooses the addresses of a Service among those that are not taken.
fn choose(
    call: &VerbCall,
    taken: AllocatedAddresses,
    old: Option<&Value>,
    service: &mut Value,
) -> Result<(), ApiError> {
    let name = meta::text(service, "name").to_owned();
    let invalid =
        |causes| Err(ApiError::invalid(FailureSubject::kind(&call.kind.served, &name), causes));
    let spec = defaults::child(service, "spec");
    let before = old.map(|old| &old["spec"]);
    change::carry_over(before, spec);
    // A name in DNS: the Service has no address.
    if spec["type"] != "ExternalName" {
        let causes = families::fill(before, spec);
        if !causes.is_empty() {
            return invalid(causes);
        }
        // Addresses stay until the Service becomes a name in DNS.
        let is_new = before.is_none_or(|before| before["type"] == "ExternalName");
        if is_new && spec["clusterIPs"][0] != "None" {
            cluster_ip(call, &taken, &name, spec)?;
        }
    }
    if let Err(fault) = ports::assign(call, taken.ports, before, spec) {
        return match fault {
            AllocationError::Invalid(cause) => invalid(vec![cause]),
            AllocationError::Other(error) => Err(error),
        };
    }
    if let Some(before) = before {
        change::drop_needless(before, spec);
        // The addresses of an old balancer are no longer valid.
        if spec["type"] != "LoadBalancer" && call.subresource.is_empty() {
            defaults::child(service, "status")["loadBalancer"] = json!({});
        }
    }
    Ok(())
}

/// A refused allocation.
#[derive(Debug)]
enum AllocationError {
    /// A field has a value that cannot be allocated.
    Invalid(Cause),
    /// The request failed otherwise.
    Other(ApiError),
}

/// Allocates the address that a Service asks for, or a free address.
fn cluster_ip(
    call: &VerbCall,
    taken: &AllocatedAddresses,
    name: &str,
    spec: &mut Value,
) -> Result<(), ApiError> {
    let asked = spec["clusterIPs"][0].as_str().unwrap_or_default().to_owned();
    let dry_run = call.options.dry_run;
    let why = if asked.is_empty() {
        unallocatable(name).filter(|_| !dry_run).map(|why| {
            // Upstream makes an object for each address, which refers to the Service by name.
            let free = taken.free_address(name).unwrap_or_default();
            format!("failed to allocate IP: IPAddress.networking.k8s.io {free:?} is invalid: spec.parentRef.name: {why}")
        })
    } else {
        taken.refusal(&asked, dry_run).map(|why| format!("failed to allocate IP {asked}: {why}"))
    };
    if let Some(why) = why {
        let cause = invalid_value("spec.clusterIPs", &json!([asked]), &why);
        return Err(ApiError::invalid(FailureSubject::kind(&call.kind.served, name), vec![cause]));
    }
    let address = if asked.is_empty() { taken.free_address(name)? } else { asked };
    spec["clusterIP"] = json!(address);
    spec["clusterIPs"] = json!([address]);
    Ok(())
}

/// Returns the reason why no address can be allocated for a Service of this name.
fn unallocatable(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("Required value".to_owned());
    }
    let why = names::path(name).into_iter().next()?;
    Some(format!("Invalid value: {name:?}: {why}"))
}

/// Addresses and node ports in use.
#[derive(Debug, Default)]
struct AllocatedAddresses {
    /// Cluster IPs.
    addresses: BTreeSet<String>,
    /// Node ports.
    ports: BTreeSet<i64>,
    /// Ranges of cluster IPs.
    ranges: Vec<Range>,
}

impl AllocatedAddresses {
    /// Returns the addresses of all Services except that with this uid.
    fn of(core: &ServerCore, uid: &str) -> Self {
        let mut taken =
            Self { addresses: objects::all(core), ranges: ranges::ready(core), ..Self::default() };
        let (services, _) = core.store.snapshot("services");
        for (_, service) in &services {
            // An update does not compete with the Service's own addresses.
            if meta::text(&service.value, "uid") == uid {
                continue;
            }
            let spec = &service.value["spec"];
            taken.add(spec["clusterIP"].as_str().unwrap_or_default(), &ports::of(spec));
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

    /// Returns the reason why an address cannot be allocated. A dry run does not see addresses in
    /// use, as in kube-apiserver.
    fn refusal(&self, address: &str, dry_run: bool) -> Option<String> {
        match (ranges::contain(&self.ranges, address), dry_run) {
            (false, true) => Some(format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {RANGE}"
            )),
            (false, false) => {
                Some("the provided network does not match the current range".to_owned())
            }
            (true, false) if self.addresses.contains(address) => {
                Some("provided IP is already allocated".to_owned())
            }
            (true, _) => None,
        }
    }

    /// Returns the first free address for a Service.
    fn free_address(&self, name: &str) -> Result<String, ApiError> {
        ranges::free(&self.ranges, &self.addresses).ok_or_else(|| {
            let why = format!("failed to allocate a serviceIP for Service {name:?}: range is full");
            ApiError::internal(&why)
        })
    }
}
