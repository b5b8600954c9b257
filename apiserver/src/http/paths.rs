//! Paths that name no resource: discovery, OpenAPI, version, health.

mod pages;

use http::HeaderMap;
use http::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::pages::ServerPage;
use super::codec::{self, Format};
use super::exchange::{DecodedRequest, Reply};
use crate::core::ServerCore;
use crate::status::ApiError;
use crate::verbs::apiservices;
use crate::verbs::options::Query;
use crate::{discovery, go, metrics, openapi};

/// Parameters of the media types of aggregated discovery.
const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Names of the health checks that all three paths have, behind the checks of [`checks`]. Most
/// stand for a part of the real server that the embedded one does not have, or that cannot fail
/// alone.
const CHECKS: &[&str] = &[
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// Returns the names of the checks of a path, in their order.
fn checks(path: &str) -> Vec<&'static str> {
    let first: &[&str] = match path {
        "readyz" => &["ping", "log", "etcd", "etcd-readiness", "informer-sync"],
        _ => &["ping", "log", "loopback-serving-certificate", "etcd"],
    };
    let last = (path == "readyz").then_some("shutdown");
    first.iter().chain(CHECKS).copied().chain(last).collect()
}

/// Answers a path.
pub(crate) fn serve(core: &ServerCore, asked: &DecodedRequest) -> Result<Reply, ApiError> {
    // `/apis` and `/apis/` are the same document.
    let path = asked.route.path.trim_end_matches('/');
    let is_open = path.len() < asked.route.path.len();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let table = core.registry.table();
    let served = &table.served;
    check_method(asked, &parts)?;
    // Routers take no path with an empty part, and answer by the part before it.
    if path.contains("//") {
        return Err(no_route(core, path));
    }
    check_accepted(core, asked, &parts)?;
    match parts.as_slice() {
        [] => Ok(json_reply(&index(core))),
        ["version"] => Ok(json_reply(&version())),
        ["metrics"] => Ok(metrics(core)),
        ["flagz"] if !is_open => pages::serve(core, asked, ServerPage::Flags),
        ["statusz"] if !is_open => pages::serve(core, asked, ServerPage::State),
        ["debug", part, ..] => pages::debug(asked, part).ok_or_else(ApiError::no_path),
        ["healthz" | "livez" | "readyz", ..] => health(&parts, &asked.query),
        ["api"] => {
            let address = asked.parts.headers.get(http::header::HOST);
            let address = address.and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:443");
            let versions = || discovery::api_versions(address);
            discover(asked, versions, || discovery::aggregated(served, true))
        }
        ["apis"] => discover(
            asked,
            || discovery::group_list(served),
            || discovery::aggregated(served, false),
        ),
        ["api", version] => resources(core, asked, "", version),
        // A single group has no aggregated form.
        ["apis", group] => {
            let (format, _) = discovery_form(asked, false)?;
            let own = discovery::group(served, group);
            let remote =
                || discovery::remote_group(group, &apiservices::remote_versions(core, group));
            let group = own.or_else(remote).ok_or_else(ApiError::no_path)?;
            Ok(encoded(format, &group))
        }
        ["apis", group, version] => resources(core, asked, group, version),
        [".well-known", "openid-configuration"] => Ok(issuer(core)),
        ["openid", "v1", "jwks"] => {
            let keys = core.issuer.public_keys().to_string();
            Ok(cached(Reply::bytes(200, "application/jwk-set+json", keys)))
        }
        ["openapi", "v2"] => Ok(single_document(core, asked)),
        ["openapi", "v3"] => {
            let index = openapi::v3_index(served).to_string();
            Ok(Reply::bytes(200, "text/plain; charset=utf-8", index))
        }
        ["openapi", "v3", "api", version] => Ok(document(core, asked, "", version)),
        ["openapi", "v3", "apis", group, version] => Ok(document(core, asked, group, version)),
        _ => Err(no_route(core, path)),
    }
}

/// Returns the 404 for a path without a route: below the paths of built-in groups the answer is a
/// Status.
pub(crate) fn no_route(core: &ServerCore, path: &str) -> ApiError {
    let parts: Vec<&str> = path.split('/').collect();
    let is_routed = match parts.as_slice() {
        ["", "api" | "version", _, ..] => true,
        ["", "apis", group, version, ..] => {
            !version.is_empty() && core.registry.table().is_builtin_group(group)
        }
        _ => false,
    };
    if is_routed { ApiError::no_resource() } else { ApiError::no_path() }
}

/// Answers a path that ends where the old form of watches names a resource, as upstream does, whose
/// reader of paths fails.
pub(crate) fn bare_watch(uri: &http::Uri) -> Reply {
    let url = uri.path_and_query().map_or("", |url| url.as_str());
    Reply::text(
        500,
        format!(
            "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, {url}\n",
            go::quote(url)
        ),
    )
}

/// Refuses to write documents that upstream's router only reads. Other documents are read by any
/// method.
fn check_method(asked: &DecodedRequest, parts: &[&str]) -> Result<(), ApiError> {
    let is_read = asked.parts.method == http::Method::GET;
    let is_routed = matches!(parts, ["version" | "api"] | ["api", _] | ["apis", _, _]);
    if is_routed && !is_read { Err(ApiError::method()) } else { Ok(()) }
}

/// Refuses clients that accept no form of a document that upstream's router serves; other documents
/// choose their form themselves.
fn check_accepted(
    core: &ServerCore,
    asked: &DecodedRequest,
    parts: &[&str],
) -> Result<(), ApiError> {
    let available: &[&str] = match parts {
        ["version"] | [".well-known", "openid-configuration"] => &[JSON],
        ["openid", "v1", "jwks"] => &["application/jwk-set+json"],
        ["api"] | ["api", _] => &FORMS,
        ["apis", group, _] if core.registry.table().is_builtin_group(group) => &FORMS,
        _ => return Ok(()),
    };
    codec::check_route(&asked.parts.headers, available)
}

/// Media types of discovery documents.
const FORMS: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Returns a reply with a JSON document.
fn json_reply(value: &Value) -> Reply {
    Reply::bytes(200, "application/json", value.to_string())
}

/// Lets a reply be cached for an hour.
fn cached(mut reply: Reply) -> Reply {
    reply.headers.push(("cache-control", "public, max-age=3600".to_owned()));
    reply
}

/// Returns the data about the issuer that verifiers of tokens need.
fn issuer(core: &ServerCore) -> Reply {
    let url = core.issuer.url();
    cached(json_reply(&json!({
        "issuer": url, "jwks_uri": format!("{url}/openid/v1/jwks"),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })))
}

/// Returns all paths of the server, as `/` shows them.
fn index(core: &ServerCore) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for served in &core.registry.table().served {
        if !served.group.is_empty() {
            paths.push(format!("/apis/{}", served.group));
            paths.push(format!("/apis/{}/{}", served.group, served.version));
        }
    }
    for path in [
        "/.well-known/openid-configuration",
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    paths.sort();
    // A group and version has many resources.
    paths.dedup();
    json!({"paths": paths})
}

/// Returns counters of requests, objects and the process, in the text format of Prometheus. A real
/// server has many more.
fn metrics(core: &ServerCore) -> Reply {
    let mut text = core.metrics.text();
    let table = core.registry.table();
    for (name, is_qualified) in
        [("apiserver_resource_objects", false), ("apiserver_storage_objects", true)]
    {
        text.push_str(&format!(
            "# HELP {name} Number of stored objects by resource.\n# TYPE {name} gauge\n"
        ));
        for kind in table.stored() {
            let (group, plural) = (&kind.served.group, &kind.served.plural);
            let count = core.store.snapshot(&kind.storage).0.size();
            let labels = match (is_qualified, group.is_empty()) {
                (false, _) => format!("group=\"{group}\",resource=\"{plural}\""),
                (true, true) => format!("resource=\"{plural}\""),
                (true, false) => format!("resource=\"{plural}.{group}\""),
            };
            text.push_str(&format!("{name}{{{labels}}} {count}\n"));
        }
    }
    let elapsed = i64::try_from(core.clock.elapsed().as_secs()).unwrap_or(i64::MAX);
    text.push_str(&metrics::process(core.clock.seconds().saturating_sub(elapsed)));
    Reply::bytes(200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", text)
}

/// Returns the version of the server that is imitated.
fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3",
        "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitCommit": "windlass", "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26", "compiler": "rustc", "platform": "linux/amd64",
    })
}

/// Answers a health check: the server is healthy whenever able to answer.
fn health(parts: &[&str], query: &Query) -> Result<Reply, ApiError> {
    let name = parts.first().copied().unwrap_or_default();
    let check = parts.get(1..).unwrap_or_default().join("/");
    let checks = checks(name);
    if !check.is_empty() {
        let known = checks.contains(&check.as_str());
        // Upstream writes this text itself, without the header that forbids guesses.
        let ok = || Reply::bytes(200, "text/plain; charset=utf-8", "ok");
        return if known { Ok(ok()) } else { Err(ApiError::no_path()) };
    }
    if !query.has("verbose") {
        return Ok(Reply::text(200, "ok"));
    }
    let excluded = query.get("exclude").unwrap_or_default();
    let mut text = String::new();
    for check in &checks {
        let state = if *check == excluded { "excluded: ok" } else { "ok" };
        text.push_str(&format!("[+]{check} {state}\n"));
    }
    // Upstream only warns of an unknown check that is to be excluded.
    if !excluded.is_empty() && !checks.contains(&excluded) {
        text.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {excluded:?}\n"
        ));
    }
    text.push_str(&format!("{name} check passed\n"));
    Ok(Reply::text(200, text))
}

/// Returns a reply with a document in a format.
fn encoded(format: Format, value: &Value) -> Reply {
    let (bytes, media) = codec::encode(format, value);
    Reply::bytes(200, media, bytes)
}

/// Returns the format of a discovery document, and whether the client wants the aggregated form,
/// which not all documents have.
fn discovery_form(asked: &DecodedRequest, aggregates: bool) -> Result<(Format, bool), ApiError> {
    let entries = codec::entries(&asked.parts.headers);
    if entries.is_empty() {
        return Ok((Format::Json, false));
    }
    let found = entries.iter().find_map(|entry| {
        let format = entry.format()?;
        match (entry.parameter("as"), entry.parameter("g"), entry.parameter("v")) {
            ("", ..) => Some((format, false)),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") if aggregates => {
                Some((format, true))
            }
            _ => None,
        }
    });
    found.ok_or_else(|| ApiError::not_acceptable(&FORMS))
}

/// Answers a discovery document in the form that the client wants.
fn discover(
    asked: &DecodedRequest,
    legacy: impl Fn() -> Value,
    aggregated: impl Fn() -> Value,
) -> Result<Reply, ApiError> {
    let (format, aggregate) = discovery_form(asked, true)?;
    if !aggregate {
        return Ok(encoded(format, &legacy()));
    }
    let (body, media) = codec::encode(format, &aggregated());
    let media = format!("{media}{AGGREGATED}");
    let tag = tag(&body);
    let known = asked.parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut reply = if known == Some(tag.as_str()) {
        // The client has this document already.
        Reply::bytes(304, &media, "")
    } else {
        Reply::bytes(200, &media, body)
    };
    reply.headers.push(("etag", tag));
    reply.headers.push(("vary", "Accept".to_owned()));
    reply.headers.push(("cache-control", "public".to_owned()));
    Ok(reply)
}

/// Returns the tag of a document: a digest, which changes exactly when the document does.
fn tag(document: &[u8]) -> String {
    let digest: String =
        Sha256::digest(document).iter().map(|byte| format!("{byte:02X}")).collect();
    format!("\"{digest}\"")
}

/// Answers the resources of a group and version.
fn resources(
    core: &ServerCore,
    asked: &DecodedRequest,
    group: &str,
    version: &str,
) -> Result<Reply, ApiError> {
    let (format, _) = discovery_form(asked, false)?;
    let table = core.registry.table();
    match discovery::resource_list(&table.served, group, version) {
        Some(list) => Ok(encoded(format, &list)),
        // The router knows built-in groups also in versions that are not served.
        None if table.is_builtin_group(group) => Err(ApiError::no_resource()),
        None if apiservices::is_remote(core, group, version) => Err(ApiError::no_service()),
        None => Err(ApiError::no_path()),
    }
}

/// Answers the OpenAPI document of a group and version; failures have no body, as upstream.
fn document(core: &ServerCore, asked: &DecodedRequest, group: &str, version: &str) -> Reply {
    let table = core.registry.table();
    let Some(hash) = openapi::v3_hash(&table.served, group, version) else {
        return Reply::bytes(404, "", "");
    };
    let mut reply = match document_form(&asked.parts.headers, V3) {
        Some(media) => versioned(core, asked, group, version, (&hash, media)),
        None => Reply::bytes(406, "", ""),
    };
    reply.headers.push(("vary", "Accept".to_owned()));
    reply
}

/// Media type of OpenAPI documents in JSON.
const JSON: &str = "application/json";

/// Media type of documents of version 2 in protobuf, and the older name.
const V2: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// Media type of documents of version 3 in protobuf, and the older name.
const V3: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
];

/// Returns the media type in which a client wants an OpenAPI document: JSON or the first of
/// `binary`.
fn document_form(headers: &HeaderMap, binary: [&'static str; 2]) -> Option<&'static str> {
    let entries = codec::entries(headers);
    if entries.is_empty() {
        return Some(JSON);
    }
    entries.iter().find_map(|entry| match entry.media() {
        _ if entry.is_json() => Some(JSON),
        media if binary.contains(&media) => Some(binary[0]),
        _ => None,
    })
}

/// Answers the document of version 2.
fn single_document(core: &ServerCore, asked: &DecodedRequest) -> Reply {
    let Some(media) = document_form(&asked.parts.headers, V2) else {
        let mut reply = Reply::bytes(406, "", "");
        reply.headers.push(("vary", "Accept".to_owned()));
        return reply;
    };
    let document = openapi::v2_document(&core.registry.table().served);
    let text = document.to_string();
    let tag = tag(text.as_bytes());
    let known = asked.parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut reply = if known == Some(tag.as_str()) {
        Reply::bytes(304, media, "")
    } else if media == JSON {
        Reply::bytes(200, media, text)
    } else {
        Reply::bytes(200, media, openapi::v2_protobuf(&document))
    };
    reply.headers.push(("etag", tag));
    reply.headers.push(("vary", "Accept".to_owned()));
    reply
}

/// Answers a document under a hash: a document with the hash of the URL may be kept for ever, and a
/// URL with another hash redirects.
fn versioned(
    core: &ServerCore,
    asked: &DecodedRequest,
    group: &str,
    version: &str,
    (hash, media): (&str, &'static str),
) -> Reply {
    let tag = format!("\"{hash}\"");
    let named = asked.query.get("hash").filter(|named| !named.is_empty());
    let known = asked.parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut reply = if named.is_some_and(|named| named != hash) {
        let mut reply = Reply::bytes(301, media, "");
        reply.headers.push(("location", openapi::v3_url(group, version, hash)));
        reply
    } else if known == Some(tag.as_str()) {
        Reply::bytes(304, media, "")
    } else {
        let document = openapi::v3_document(&core.registry.table().served, group, version);
        let document = document.unwrap_or_default();
        if media == JSON {
            Reply::bytes(200, media, document.to_string())
        } else {
            Reply::bytes(200, media, openapi::v3_protobuf(&document))
        }
    };
    if named == Some(hash) {
        reply.headers.push(("cache-control", "public, immutable".to_owned()));
        reply.headers.push(("expires", core.clock.http_date(365 * 24 * 3600)));
    }
    reply.headers.push(("etag", tag));
    reply
}
