//! Subresources of Pods that reach a kubelet or the Pod itself: logs, commands, ports, the proxy.
//!
//! This server has neither. It answers like a cluster whose kubelets cannot be reached: with the
//! faults of the request first, and then with the failure to connect.

use serde_json::Value;

use crate::auth::{self, Attributes};
use crate::core::Core;
use crate::status::{About, ApiError, forbidden_field, invalid_value};
use crate::verbs::Call;
use crate::verbs::options::Query;

/// Port of a kubelet that reports none.
const PORT: i64 = 10250;

/// Whether a subresource of a kind connects to something outside of the server.
pub(crate) fn is_connection(call: &Call) -> bool {
    let names = ["attach", "exec", "log", "portforward", "proxy"];
    let others = call.kind.is("", "nodes") || call.kind.is("", "services");
    call.kind.is("", "pods") && names.contains(&call.subresource.as_str())
        || others && call.subresource == "proxy"
}

/// Answers a connection: `Ok` is the empty log of a Pod that is on no node.
pub(crate) fn connect(core: &Core, call: &Call, query: &Query) -> Result<(), ApiError> {
    let name = call.subresource.as_str();
    if matches!(name, "attach" | "exec" | "portforward") {
        may_create(core, call)?;
    }
    if name == "proxy" {
        return proxy(core, call);
    }
    if name == "log" {
        check_log(call, query)?;
    }
    let held = call.find(core)?;
    let pod = &held.value;
    let chosen = if name == "portforward" {
        String::new()
    } else {
        container(call, pod, query.get("container").unwrap_or_default())?
    };
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        if name == "log" {
            return Ok(());
        }
        let text = format!("pod {} does not have a host assigned", call.name);
        return Err(ApiError::bad_request(text));
    }
    let address = address(core, node)?;
    let refused = format!("dial tcp {address}: connect: connection refused");
    Err(ApiError::unclassified(if name == "log" {
        let path = format!("{}/{}/{chosen}", call.namespace, call.name);
        format!("Get \"https://{address}/containerLogs/{path}\": {refused}")
    } else {
        format!("error dialing backend: {refused}")
    }))
}

/// Checks the right to create, which a connection needs whatever its method is.
fn may_create(core: &Core, call: &Call) -> Result<(), ApiError> {
    let wanted = Attributes {
        verb: "create".to_owned(),
        version: "v1".to_owned(),
        resource: "pods".to_owned(),
        subresource: call.subresource.clone(),
        namespace: call.namespace.clone(),
        name: call.name.clone(),
        ..Attributes::default()
    };
    let allowed = core.authorizer().authorize(&call.user, &wanted);
    allowed.map_err(|why| auth::refusal(&call.user, &wanted, &why))
}

/// Checks the options of a request for a log.
fn check_log(call: &Call, query: &Query) -> Result<(), ApiError> {
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<i64>().ok());
    let mut causes = Vec::new();
    for (field, least, why) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
    ] {
        if let Some(value) = number(field).filter(|value| *value < least) {
            causes.push(invalid_value(field, &value.into(), why));
        }
    }
    if query.has("sinceTime") && query.has("sinceSeconds") {
        let text = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        causes.push(forbidden_field("[]", text));
    } else if let Some(value) = number("sinceSeconds").filter(|value| *value < 1) {
        causes.push(invalid_value("sinceSeconds", &value.into(), "must be greater than 0"));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(About { group: "", kind: "PodLogOptions", name: &call.name }, causes))
}

/// Returns the container that is named, or the only one.
fn container(call: &Call, pod: &Value, wanted: &str) -> Result<String, ApiError> {
    let name = &call.name;
    let names = |lists: &[&str]| -> Vec<String> {
        let all = lists.iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
        all.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect()
    };
    let all = names(&["initContainers", "containers", "ephemeralContainers"]);
    if !wanted.is_empty() {
        let known = all.iter().any(|one| one == wanted);
        let text = format!("container {wanted} is not valid for pod {name}");
        return known.then(|| wanted.to_owned()).ok_or_else(|| ApiError::bad_request(text));
    }
    let text = format!("a container name must be specified for pod {name}");
    match names(&["containers"]).as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(ApiError::bad_request(text)),
        _ => Err(ApiError::bad_request(format!("{text}, choose one of: [{}]", all.join(" ")))),
    }
}

/// Returns the address of a node's kubelet.
fn address(core: &Core, name: &str) -> Result<String, ApiError> {
    // Upstream names the resource of the request, and not that of the missing object.
    let unknown = || ApiError::not_found(About { group: "", kind: "pods", name });
    let node = core.store.get("nodes", name).ok_or_else(unknown)?;
    let status = &node.value["status"];
    let held = status["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let preferred = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
    let host = preferred.iter().find_map(|kind| held.iter().find(|one| one["type"] == *kind));
    let Some(host) = host.and_then(|one| one["address"].as_str()) else {
        let text = "no preferred addresses found; known addresses: []";
        return Err(ApiError::unclassified(text));
    };
    let port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_i64();
    let port = port.filter(|port| *port > 0).unwrap_or(PORT);
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// Refuses the proxy: no Pod of this server has an address that the server would connect to.
fn proxy(core: &Core, call: &Call) -> Result<(), ApiError> {
    // The name may carry a scheme and a port: `https:name:8080`.
    let parts: Vec<&str> = call.name.split(':').collect();
    let name = match parts.as_slice() {
        [name] | [name, _] | [_, name, _] if !name.is_empty() => *name,
        _ => {
            let kind = call.kind.name().to_lowercase();
            let text = format!("invalid {kind} request {:?}", call.name);
            return Err(ApiError::bad_request(text));
        }
    };
    let held = Call { name: name.to_owned(), ..call.clone() }.find(core)?;
    let unreachable = |text: String| Err(ApiError::custom(503, "ServiceUnavailable", text));
    if call.kind.is("", "services") {
        return unreachable(format!("no endpoints available for service {name:?}"));
    }
    if call.kind.is("", "nodes") {
        let at = address(core, name)?;
        return unreachable(format!(
            "error trying to reach service: dial tcp {at}: connect: connection refused"
        ));
    }
    let ip = held.value["status"]["podIPs"][0]["ip"].as_str().unwrap_or_default();
    let Some(ip) = ip.parse::<std::net::IpAddr>().ok().filter(is_global) else {
        return Err(ApiError::bad_request("address not allowed"));
    };
    unreachable(format!(
        "error trying to reach service: dial tcp {ip}: connect: connection refused"
    ))
}

/// Whether an address is one of a single host that is not this one.
fn is_global(ip: &std::net::IpAddr) -> bool {
    let link_local = match ip {
        std::net::IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        std::net::IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || link_local)
}
