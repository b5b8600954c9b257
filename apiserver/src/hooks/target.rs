//! From `clientConfig` to a destination: the URL, or a Service with endpoints.

use serde_json::Value;

use super::connector::{Destination, join};
use crate::storage::{self, Store};

/// Port of HTTPS.
const HTTPS: u16 = 443;
/// Resource of endpoint slices in the store.
const SLICES: &str = "endpointslices.discovery.k8s.io";

impl Destination {
    /// Returns the destination of a webhook's `clientConfig`; the error is the reason why there is
    /// none.
    pub(super) fn of(client: &Value, store: &Store) -> Result<Self, String> {
        let service = &client["service"];
        if service.is_object() {
            return Ok(Self::of_service(service, store));
        }
        let Some(url) = client["url"].as_str() else {
            return Err("webhook configuration must have either service or URL".to_owned());
        };
        let rest = url.strip_prefix("https://").unwrap_or(url);
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split(authority)?;
        let address = Ok((host.clone(), port.unwrap_or(HTTPS)));
        Ok(Self { host, port: port.unwrap_or(HTTPS), path: clean(path), address })
    }

    fn of_service(service: &Value, store: &Store) -> Self {
        let text = |field: &str| service[field].as_str().unwrap_or_default();
        let (name, namespace) = (text("name"), text("namespace"));
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port != 0).unwrap_or(HTTPS);
        Self {
            host: format!("{name}.{namespace}.svc"),
            port,
            path: clean(text("path")),
            address: resolve(store, namespace, name, port),
        }
    }

    /// Returns host and port of the URL; a default port that the configuration leaves out stays
    /// out, as in upstream.
    pub(super) fn authority(&self, client: &Value) -> String {
        let is_given = client["service"].is_object() || {
            let url = client["url"].as_str().unwrap_or_default();
            let rest = url.strip_prefix("https://").unwrap_or(url);
            let authority = rest.split('/').next().unwrap_or_default();
            split(authority).is_ok_and(|(_, port)| port.is_some())
        };
        match (is_given, self.host.contains(':')) {
            (true, _) => join(&self.host, self.port),
            (false, true) => format!("[{}]", self.host),
            (false, false) => self.host.clone(),
        }
    }
}

/// Returns the path without empty and dotted segments, as Go's `path.Join` does.
fn clean(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Returns host and port of an authority; the host of an IPv6 address is without brackets.
fn split(authority: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').unwrap_or((rest, ""));
            (host, rest.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let number = |port: &str| port.parse().map_err(|_| format!("address {port}: invalid port"));
    let port = port.filter(|port| !port.is_empty()).map(number).transpose()?;
    Ok((host.to_owned(), port))
}

/// Returns the address behind a Service's port: the first ready endpoint, or else the cluster IP.
///
/// kube-apiserver connects to the cluster IP, which kube-proxy forwards. Here is no kube-proxy, so
/// the endpoints come first; the cluster IP is for a machine that can route that address.
fn resolve(store: &Store, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
    let Some(held) = store.get("services", &storage::key(namespace, name)) else {
        return Err(format!("service {name:?} not found"));
    };
    let spec = &held.value["spec"];
    let known = spec["ports"].as_array().into_iter().flatten();
    let is_external = spec["type"] == "ExternalName";
    if is_external {
        let host = spec["externalName"].as_str().unwrap_or_default();
        return Ok((host.to_owned(), port));
    }
    let Some(service_port) = known.into_iter().find(|one| one["port"] == port) else {
        return Err(format!("no service port {port} found for service {name:?}"));
    };
    let port_name = service_port["name"].as_str().unwrap_or_default();
    let found = in_slices(store, namespace, name, port_name)
        .or_else(|| in_endpoints(store, namespace, name, port_name));
    if let Some(found) = found {
        return Ok(found);
    }
    match spec["clusterIP"].as_str() {
        Some("None") => Err("cannot route to service with ClusterIP \"None\"".to_owned()),
        Some(address) if !address.is_empty() => Ok((address.to_owned(), port)),
        _ => Err(format!("no endpoints available for service {name:?}")),
    }
}

/// Returns the first ready address of a Service's slices, in the order of their names.
fn in_slices(store: &Store, namespace: &str, service: &str, port: &str) -> Option<(String, u16)> {
    let (slices, _) = store.snapshot(SLICES);
    let own = storage::in_namespace(&slices, namespace).map(|(_, slice)| &slice.value);
    let own =
        own.filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service);
    own.into_iter().find_map(|slice| {
        let number = numbered(&slice["ports"], port)?;
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let mut ready = endpoints.filter(|one| one["conditions"]["ready"] != false);
        let address = ready.find_map(|one| one["addresses"][0].as_str())?;
        Some((address.to_owned(), number))
    })
}

/// Returns the first ready address of a Service's Endpoints.
fn in_endpoints(
    store: &Store,
    namespace: &str,
    service: &str,
    port: &str,
) -> Option<(String, u16)> {
    let held = store.get("endpoints", &storage::key(namespace, service))?;
    let subsets = held.value["subsets"].as_array().into_iter().flatten();
    subsets.into_iter().find_map(|subset| {
        let number = numbered(&subset["ports"], port)?;
        let address = subset["addresses"][0]["ip"].as_str()?;
        Some((address.to_owned(), number))
    })
}

/// Returns the number of the port with a name; the only port of a Service may have none.
fn numbered(ports: &Value, name: &str) -> Option<u16> {
    let ports = ports.as_array().into_iter().flatten();
    let mut named = ports.filter(|one| one["name"].as_str().unwrap_or_default() == name);
    named.find_map(|one| u16::try_from(one["port"].as_u64()?).ok())
}
