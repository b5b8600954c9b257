//! Cells of kinds of the network: Services, Ingresses, endpoints.

use serde_json::{Value, json};

use super::builtin::{joined, list, or};

/// Joins at most three items, followed by the number of the others.
fn some(items: Vec<String>, none: &str) -> String {
    match items.len() {
        0 => none.to_owned(),
        n if n > 3 => format!("{} + {} more...", items[..3].join(","), n - 3),
        _ => items.join(","),
    }
}

/// Returns the IP or host name of every ingress point of a load balancer.
fn load_balancer(o: &Value) -> Vec<String> {
    let points = list(&o["status"]["loadBalancer"]["ingress"]);
    points.iter().map(|p| or(&p["ip"], or(&p["hostname"], "")).to_owned()).collect()
}

/// Returns the cells of a Service: type, cluster IP, external IP, ports.
pub(super) fn service(o: &Value) -> Vec<Value> {
    let spec = &o["spec"];
    let kind = or(&spec["type"], "ClusterIP");
    // The older field, if the list is missing.
    let ip = or(&spec["clusterIPs"][0], or(&spec["clusterIP"], "<none>"));
    let own = list(&spec["externalIPs"]).iter().filter_map(Value::as_str).map(str::to_owned);
    let external = match kind {
        "ExternalName" => or(&spec["externalName"], "").to_owned(),
        "LoadBalancer" => {
            joined(load_balancer(o).into_iter().chain(own).collect(), ",", "<pending>")
        }
        _ => joined(own.collect(), ",", "<none>"),
    };
    let ports = list(&spec["ports"]).iter().map(|p| {
        let node = p["nodePort"].as_i64().filter(|n| *n > 0);
        let node = node.map(|n| format!(":{n}")).unwrap_or_default();
        format!("{}{node}/{}", p["port"], or(&p["protocol"], "TCP"))
    });
    let ports = joined(ports.collect(), ",", "<none>");
    vec![json!(kind), json!(ip), json!(external), json!(ports)]
}

/// Returns the cells of an Ingress.
pub(super) fn ingress(o: &Value) -> Vec<Value> {
    let rules = list(&o["spec"]["rules"]);
    let hosts = rules.iter().map(|r| or(&r["host"], "")).filter(|h| !h.is_empty());
    let hosts = some(hosts.map(str::to_owned).collect(), "*");
    // An Ingress has no ports: the shown ports follow from TLS.
    let ports = if list(&o["spec"]["tls"]).is_empty() { "80" } else { "80, 443" };
    vec![
        json!(or(&o["spec"]["ingressClassName"], "<none>")),
        json!(hosts),
        json!(load_balancer(o).join(",")),
        json!(ports),
    ]
}

/// Returns the addresses of Endpoints with their ports.
pub(super) fn endpoints(o: &Value) -> String {
    let mut all = Vec::new();
    for subset in list(&o["subsets"]) {
        let addresses = || list(&subset["addresses"]).iter().map(|a| or(&a["ip"], ""));
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            all.extend(addresses().map(|ip| format!("{ip}:{}", port["port"])));
        }
    }
    // A subset of addresses that are not ready shows nothing.
    some(all, if list(&o["subsets"]).is_empty() { "<none>" } else { "" })
}

/// Returns the cells of an `EndpointSlice`.
pub(super) fn endpoint_slice(o: &Value) -> Vec<Value> {
    let ports = list(&o["ports"]).iter().map(|p| match (&p["port"], &p["name"]) {
        (Value::Null, Value::String(name)) => name.clone(),
        (Value::Null, _) => "*".to_owned(),
        (port, _) => port.to_string(),
    });
    let ports: Vec<String> = ports.collect();
    let ports = if ports.iter().all(String::is_empty) { Vec::new() } else { ports };
    let addresses = list(&o["endpoints"]).iter().flat_map(|e| list(&e["addresses"]));
    vec![
        json!(or(&o["addressType"], "")),
        json!(some(ports, "<unset>")),
        json!(some(addresses.filter_map(Value::as_str).map(str::to_owned).collect(), "<unset>")),
    ]
}
