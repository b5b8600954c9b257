//! Node ports of Services.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::AllocationError;
use crate::kinds::defaults;
use crate::status::{ApiError, invalid_value};
use crate::verbs::VerbCall;

/// First and last node port.
const FIRST: i64 = 30_000;
const LAST: i64 = 32_767;
/// Text of a port that is in use.
const TAKEN: &str = "provided port is already allocated";

/// Returns the node ports of a Service, including the health check's.
pub(super) fn of(spec: &Value) -> Vec<i64> {
    let health = spec["healthCheckNodePort"].as_i64().filter(|port| *port != 0);
    of_ports(spec).into_iter().chain(health).collect()
}

/// Returns the node ports of a Service's ports.
fn of_ports(spec: &Value) -> Vec<i64> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports.map(number).filter(|port| *port != 0).collect()
}

/// Returns the node port of a port, 0 if unset.
fn number(port: &Value) -> i64 {
    port["nodePort"].as_i64().unwrap_or(0)
}

/// Whether a Service is reachable by ports of the nodes.
pub(super) fn has(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

/// Whether the ports get node ports that are not named.
pub(super) fn needs(spec: &Value) -> bool {
    has(spec) && (spec["type"] == "NodePort" || spec["allocateLoadBalancerNodePorts"] != false)
}

/// Whether a load balancer asks the nodes for their health.
pub(super) fn needs_health(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// A request's allocation of ports.
#[derive(Debug)]
struct Allocation {
    /// Ports of all Services, with those of this request.
    taken: BTreeSet<i64>,
    /// Ports that this request got.
    own: BTreeSet<i64>,
    dry_run: bool,
}

impl Allocation {
    /// Allocates a port, or says why not. A dry run does not look at the range, as in
    /// kube-apiserver.
    fn take(&mut self, port: i64) -> Result<(), String> {
        if !self.dry_run && !(FIRST..=LAST).contains(&port) {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}"
            ));
        }
        if !self.taken.insert(port) {
            return Err(TAKEN.to_owned());
        }
        self.own.insert(port);
        Ok(())
    }

    /// Allocates a free port.
    fn next(&mut self) -> Result<i64, AllocationError> {
        let free = (FIRST..=LAST).find(|port| !self.taken.contains(port)).ok_or_else(|| {
            AllocationError::Other(ApiError::internal(
                "failed to allocate a nodePort: range is full",
            ))
        })?;
        self.taken.insert(free);
        self.own.insert(free);
        Ok(free)
    }
}

/// Allocates the node ports of a Service; `taken` are those of others.
pub(super) fn assign(
    call: &VerbCall,
    taken: BTreeSet<i64>,
    before: Option<&Value>,
    spec: &mut Value,
) -> Result<(), AllocationError> {
    let mut allocation = Allocation { taken, own: BTreeSet::new(), dry_run: call.options.dry_run };
    let held = before.map(of).unwrap_or_default();
    if has(spec) {
        match before {
            None => create(&mut allocation, spec)?,
            Some(before) => update(&mut allocation, &of_ports(before), &held, spec)?,
        }
    }
    if needs_health(spec) && !before.is_some_and(needs_health) {
        allocation.taken.extend(held);
        health(&mut allocation, spec)?;
    }
    Ok(())
}

/// Returns the refusal of the node port of a port.
fn refused(index: usize, port: i64, why: &str) -> AllocationError {
    AllocationError::Invalid(invalid_value(
        &format!("spec.ports[{index}].nodePort"),
        &json!(port),
        why,
    ))
}

/// Allocates the ports of a new Service: ports of equal number, which differ in protocol, share a
/// node port.
fn create(allocation: &mut Allocation, spec: &mut Value) -> Result<(), AllocationError> {
    let allocates = needs(spec);
    let mut asked: BTreeMap<i64, i64> = BTreeMap::new();
    for port in defaults::items(spec, "ports").filter(|port| number(port) != 0) {
        asked.entry(port["port"].as_i64().unwrap_or(0)).or_insert(number(port));
    }
    let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
    for (index, port) in defaults::items(spec, "ports").enumerate() {
        let (own, wanted) = (port["port"].as_i64().unwrap_or(0), number(port));
        if wanted == 0 && !allocates {
            continue;
        }
        let Some(node) = shared.get(&own).copied() else {
            let node = match asked.get(&own) {
                Some(node) => {
                    allocation.take(*node).map_err(|why| refused(index, *node, &why))?;
                    *node
                }
                None => allocation.next()?,
            };
            port["nodePort"] = json!(node);
            shared.insert(own, node);
            continue;
        };
        if wanted == 0 {
            port["nodePort"] = json!(node);
        } else if wanted != node {
            allocation.take(wanted).map_err(|why| refused(index, wanted, &why))?;
        }
    }
    Ok(())
}

/// Allocates the ports of a changed Service, which keeps those of before.
fn update(
    allocation: &mut Allocation,
    before: &[i64],
    held: &[i64],
    spec: &mut Value,
) -> Result<(), AllocationError> {
    let allocates = needs(spec);
    let mut seen: BTreeSet<(String, i64)> = BTreeSet::new();
    for (index, port) in defaults::items(spec, "ports").enumerate() {
        let mut node = number(port);
        if node == 0 && !allocates {
            continue;
        }
        if node == 0 {
            // Those that the Service has given up are free only after this change.
            allocation.taken.extend(held);
            node = allocation.next()?;
            port["nodePort"] = json!(node);
        } else if !before.contains(&node) && !allocation.own.contains(&node) {
            allocation.take(node).map_err(|why| refused(index, node, &why))?;
        }
        let protocol = port["protocol"].as_str().unwrap_or_default().to_owned();
        if !seen.insert((protocol.clone(), node)) {
            let text = format!("duplicate nodePort: {{{protocol} {node}}}");
            return Err(AllocationError::Other(ApiError::unclassified(text)));
        }
    }
    Ok(())
}

/// Allocates the port of the health check.
fn health(allocation: &mut Allocation, spec: &mut Value) -> Result<(), AllocationError> {
    let asked = spec["healthCheckNodePort"].as_i64().unwrap_or(0);
    if asked == 0 {
        spec["healthCheckNodePort"] = json!(allocation.next()?);
        return Ok(());
    }
    allocation.take(asked).map_err(|why| {
        let text = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
        AllocationError::Other(ApiError::internal(&text))
    })
}
