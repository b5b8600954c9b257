//! Subresources of Pods that reach a kubelet or the Pod: logs, commands, ports, the proxy.
//!
//! This server has neither. The server answers like a cluster whose kubelets cannot be reached:
//! with the faults of the request first, and then with the failure to connect. With the stand-in
//! for a kubelet there are logs and sessions.

use std::sync::atomic::Ordering;

use percent_encoding::AsciiSet;
use serde_json::{Value, json};

use super::kubelet::{self, Command};

use crate::auth::{self, Attributes};
use crate::core::ServerCore;
use crate::hooks;
use crate::status::{ApiError, FailureSubject, forbidden_field, invalid_value};
use crate::verbs::admit::policies::Operation;
use crate::verbs::options::Query;
use crate::verbs::{VerbCall, admit};

/// Port of a kubelet that reports none.
const PORT: i64 = 10250;

/// Bytes of a word that stand for themselves in a query.
const WORD: &AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Whether a subresource of a kind connects to something outside of the server.
pub(crate) fn is_connection(call: &VerbCall) -> bool {
    let names = ["attach", "exec", "log", "portforward", "proxy"];
    let others = call.kind.is("", "nodes") || call.kind.is("", "services");
    call.kind.is("", "pods") && names.contains(&call.subresource.as_str())
        || others && call.subresource == "proxy"
}

/// The answer to a connection.
#[derive(Debug)]
pub(crate) enum ConnectAnswer {
    /// The log of a Pod that is on no node.
    NoLog,
    /// A log.
    Log(String),
    /// A session, for a client that asks for an upgrade.
    Session(PodSession),
}

/// A session with a Pod.
#[derive(Debug)]
pub(crate) enum PodSession {
    /// A command, or the program of a container.
    Command(Command),
    /// Ports.
    Ports(Vec<u16>),
    /// A kubelet that cannot be reached.
    Unreachable {
        /// The failure over HTTP.
        error: ApiError,
        /// The same inside of a session of the newest protocol, which is begun before the kubelet
        /// is asked; `None` for sessions of ports.
        inside: Option<(Command, ApiError)>,
    },
}

/// Answers a connection.
pub(crate) fn connect(
    core: &ServerCore,
    call: &VerbCall,
    query: &Query,
) -> Result<ConnectAnswer, ApiError> {
    let name = call.subresource.as_str();
    let ports = if name == "portforward" { kubelet::ports(query)? } else { Vec::new() };
    if matches!(name, "attach" | "exec" | "portforward") {
        may_create(core, call)?;
    }
    if let Some(options) = options(call, query) {
        admit::observe(core, call, Operation::Connect(&options))?;
    }
    if name == "proxy" {
        return Err(proxy(core, call));
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
            return Ok(ConnectAnswer::NoLog);
        }
        let text = format!("pod {} does not have a host assigned", call.name);
        return Err(ApiError::bad_request(text));
    }
    let address = address(core, node)?;
    let is_served = core.has_kubelet.load(Ordering::Relaxed);
    match (name, is_served) {
        ("log", true) => {
            kubelet::log(pod, &chosen, query, core.clock.seconds()).map(ConnectAnswer::Log)
        }
        ("portforward", true) => Ok(ConnectAnswer::Session(PodSession::Ports(ports))),
        (_, true) => {
            let command = kubelet::command(call, pod, &chosen, query);
            Ok(ConnectAnswer::Session(PodSession::Command(command)))
        }
        (_, false) => unreachable(call, query, &address, &chosen),
    }
}

/// Returns the failure to reach the kubelet of an address.
fn unreachable(
    call: &VerbCall,
    query: &Query,
    address: &str,
    container: &str,
) -> Result<ConnectAnswer, ApiError> {
    let name = call.subresource.as_str();
    let refused = format!("dial tcp {address}: connect: connection refused");
    let path = format!("{}/{}/{container}", call.namespace, call.name);
    if name == "log" {
        let options = log_query(query);
        return Err(ApiError::unclassified(format!(
            "Get \"https://{address}/containerLogs/{path}{options}\": {refused}"
        )));
    }
    let error = ApiError::unclassified(format!("error dialing backend: {refused}"));
    let inside = (name != "portforward").then(|| {
        let options = command_query(call, query);
        let text = format!(
            "error sending request: Post \"https://{address}/{name}/{path}{options}\": {refused}"
        );
        (Command::of(query), ApiError::internal(&text))
    });
    Ok(ConnectAnswer::Session(PodSession::Unreachable { error, inside }))
}

/// Returns the query of a kubelet for a log.
fn log_query(query: &Query) -> String {
    let names = [
        "follow",
        "limitBytes",
        "previous",
        "sinceSeconds",
        "sinceTime",
        "tailLines",
        "timestamps",
    ];
    let mut parts = Vec::new();
    for name in names {
        match query.get(name) {
            Some(value)
                if ["limitBytes", "sinceSeconds", "sinceTime", "tailLines"].contains(&name) =>
            {
                let value = percent_encoding::utf8_percent_encode(value, WORD);
                parts.push(format!("{name}={value}"));
            }
            _ if query.flag(name).unwrap_or(false) => parts.push(format!("{name}=true")),
            _ => {}
        }
    }
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

/// Returns the query of a kubelet for a command.
fn command_query(call: &VerbCall, query: &Query) -> String {
    let mut parts = Vec::new();
    if call.subresource == "exec" {
        let encode = |word| percent_encoding::utf8_percent_encode(word, WORD);
        let words = query.all("command").map(encode);
        parts.extend(words.map(|word| format!("command={word}").replace("%20", "+")));
    }
    // In the order of the kubelet's names: error, input, output, tty.
    for (flag, name) in
        [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")]
    {
        if query.flag(flag).unwrap_or(false) {
            parts.push(format!("{name}=1"));
        }
    }
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

/// Returns the options of a connection as admission sees them; a log is read, and not connected to.
fn options(call: &VerbCall, query: &Query) -> Option<Value> {
    let kind = match call.subresource.as_str() {
        "attach" => "PodAttachOptions",
        "exec" => "PodExecOptions",
        "portforward" => "PodPortForwardOptions",
        "proxy" => "PodProxyOptions",
        _ => return None,
    };
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    if matches!(kind, "PodAttachOptions" | "PodExecOptions") {
        for field in ["stdin", "stdout", "stderr", "tty"] {
            if query.flag(field) == Some(true) {
                options[field] = json!(true);
            }
        }
    }
    let ports: Vec<u16> = query.all("ports").filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options["ports"] = json!(ports);
    }
    if let Some(container) = query.get("container") {
        options["container"] = json!(container);
    }
    let command: Vec<&str> = query.all("command").collect();
    if !command.is_empty() {
        options["command"] = json!(command);
    }
    Some(options)
}

/// Checks the right to create, which a connection needs with each method.
fn may_create(core: &ServerCore, call: &VerbCall) -> Result<(), ApiError> {
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
fn check_log(call: &VerbCall, query: &Query) -> Result<(), ApiError> {
    // Read before anything is judged: a request with a text in place of a number is invalid.
    for key in ["limitBytes", "sinceSeconds", "tailLines"] {
        query.integer(key)?;
    }
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<i64>().ok());
    let mut causes = Vec::new();
    // Behind a feature gate that is off.
    if query.has("stream") {
        causes.push(forbidden_field("stream", "may not be specified"));
    }
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
    Err(ApiError::invalid(
        FailureSubject { group: "", kind: "PodLogOptions", name: &call.name },
        causes,
    ))
}

/// Returns the container that is named, or the only container.
fn container(call: &VerbCall, pod: &Value, wanted: &str) -> Result<String, ApiError> {
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
fn address(core: &ServerCore, name: &str) -> Result<String, ApiError> {
    // Upstream names the resource of the request, and not that of the missing object.
    let unknown = || ApiError::not_found(FailureSubject { group: "", kind: "pods", name });
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

/// Returns the refusal of the proxy: no Pod of this server has an address for a connection.
fn proxy(core: &ServerCore, call: &VerbCall) -> ApiError {
    // The name may carry a scheme and a port: `https:name:8080`.
    let parts: Vec<&str> = call.name.split(':').collect();
    let name = match parts.as_slice() {
        [name] | [name, _] | [_, name, _] if !name.is_empty() => *name,
        _ => {
            let kind = call.kind.name().to_lowercase();
            return ApiError::bad_request(format!("invalid {kind} request {:?}", call.name));
        }
    };
    let held = match (VerbCall { name: name.to_owned(), ..call.clone() }).find(core) {
        Ok(held) => held,
        Err(error) => return error,
    };
    let unreachable = |text: String| ApiError::custom(503, "ServiceUnavailable", text);
    if call.kind.is("", "services") {
        return unreachable(format!("no endpoints available for service {name:?}"));
    }
    if call.kind.is("", "nodes") {
        return match address(core, name) {
            Ok(at) if !is_proxyable(&at) => ApiError::bad_request("address not allowed"),
            Ok(at) => unreachable(format!(
                "error trying to reach service: dial tcp {at}: connect: connection refused"
            )),
            Err(error) => error,
        };
    }
    let ip = held.value["status"]["podIPs"][0]["ip"].as_str().unwrap_or_default();
    let Some(ip) = ip.parse::<std::net::IpAddr>().ok().filter(|ip| hooks::is_allowed(*ip)) else {
        return ApiError::bad_request("address not allowed");
    };
    unreachable(format!(
        "error trying to reach service: dial tcp {ip}: connect: connection refused"
    ))
}

/// Whether a node's host is a possible destination of upstream's proxy: names are not resolved
/// here, so only the name of this machine is known.
fn is_proxyable(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ip = host.trim_matches(['[', ']']).parse();
    ip.map_or(host != "localhost", hooks::is_allowed)
}
