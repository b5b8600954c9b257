//! Media types: the only place that decides in which format bodies are read and answers written.
//!
//! JSON and YAML are read and written for all kinds, protobuf for built-in kinds. CBOR is refused,
//! as by upstream, where CBOR is behind a feature gate that is off.

mod emit;
mod gzip;
mod yaml;

pub(super) use gzip::compress;

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use super::json::parse as parse_json;
use super::verb::Verb;
use crate::go;
use crate::kinds::Kind;
use crate::protobuf;
use crate::status::ApiError;
use crate::verbs::decode::{Body, excerpt};
use crate::verbs::patch::PatchType;

/// Media type of JSON.
const JSON: &str = "application/json";
/// Media type of YAML.
const YAML: &str = "application/yaml";
/// Media type of protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// Media type of a watch.
const STREAM: &str = "application/json;stream=watch";
/// Media type of a watch in protobuf.
const PROTOBUF_STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
    /// Protobuf.
    Protobuf,
}

impl Format {
    /// Returns the media type of a watch.
    pub(crate) fn stream(self) -> &'static str {
        // A watch is never YAML.
        if self == Self::Protobuf { PROTOBUF_STREAM } else { JSON }
    }
}

/// Bounds of the events of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A single stream of bytes: a length precedes each event in protobuf.
    Chunks,
    /// Messages of a WebSocket, which have lengths of their own.
    Messages,
}

/// Shape in which objects are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResponseShape {
    /// The whole object.
    #[default]
    Whole,
    /// A `Table`.
    Table,
    /// A `PartialObjectMetadata`.
    Partial,
    /// A `PartialObjectMetadataList`.
    PartialList,
}

/// Format and shape that the client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Format of the answer.
    pub(crate) format: Format,
    /// Shape of the objects.
    pub(crate) shape: ResponseShape,
    /// Whether the shape is that of `meta.k8s.io/v1beta1`, which has the same fields.
    pub(crate) is_older: bool,
}

/// An entry of an `Accept` header.
#[derive(Debug)]
pub(crate) struct AcceptEntry {
    media: String,
    parameters: Vec<(String, String)>,
    weight: f32,
}

impl AcceptEntry {
    /// Returns a parameter, or the empty text.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the media type, in lower case.
    pub(crate) fn media(&self) -> &str {
        &self.media
    }

    /// Whether the entry accepts JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.format() == Some(Format::Json)
    }

    /// Returns the format that the entry names; `None` if unknown.
    pub(crate) fn format(&self) -> Option<Format> {
        match self.media.as_str() {
            JSON | "*/*" | "application/*" => Some(Format::Json),
            YAML => Some(Format::Yaml),
            PROTOBUF => Some(Format::Protobuf),
            _ => None,
        }
    }

    /// Returns the shape that the entry names; `None` if unknown.
    fn shape(&self) -> Option<ResponseShape> {
        match (self.parameter("as"), self.parameter("g"), self.parameter("v")) {
            ("", ..) => Some(ResponseShape::Whole),
            ("Table", "meta.k8s.io", "v1" | "v1beta1") => Some(ResponseShape::Table),
            ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => {
                Some(ResponseShape::Partial)
            }
            ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => {
                Some(ResponseShape::PartialList)
            }
            _ => None,
        }
    }
}

/// Returns the entries of the `Accept` header, best first; no entry means that any format is
/// accepted.
pub(crate) fn entries(headers: &HeaderMap) -> Vec<AcceptEntry> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut entries: Vec<AcceptEntry> =
        values.flat_map(|value| value.split(',')).filter_map(entry).collect();
    // A stable sort: entries of equal weight keep the client's order.
    entries.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    entries
}

/// Parses an entry; `None` if empty. Weight 0 is the least, and refuses nothing.
fn entry(text: &str) -> Option<AcceptEntry> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().filter(|media| !media.is_empty())?.to_lowercase();
    let parameters: Vec<(String, String)> = parts
        .filter_map(|part| part.split_once('='))
        .map(|(key, value)| (key.trim().to_lowercase(), value.trim().trim_matches('"').to_owned()))
        .collect();
    let weight = parameters.iter().find(|(key, _)| key == "q");
    let weight = weight.and_then(|(_, value)| value.parse::<f32>().ok()).unwrap_or(1.0);
    Some(AcceptEntry { media, parameters, weight })
}

/// Returns the format for failures: the first known format that the client accepts, else JSON.
pub(crate) fn preferred(headers: &HeaderMap) -> Format {
    let entries = entries(headers);
    // A failure is always shown whole.
    let whole = entries.iter().filter(|entry| entry.parameter("as").is_empty());
    whole.filter_map(AcceptEntry::format).next().unwrap_or_default()
}

/// Refuses clients that accept none of the media types of a route, as the router in front of the
/// route does.
pub(crate) fn check_route(headers: &HeaderMap, available: &[&str]) -> Result<(), ApiError> {
    let entries = entries(headers);
    let is_known =
        |entry: &AcceptEntry| entry.media == "*/*" || available.contains(&entry.media.as_str());
    if entries.is_empty() || entries.iter().any(is_known) {
        return Ok(());
    }
    Err(ApiError::not_acceptable_by_router(available))
}

/// Chooses format and shape of the answer to a verb on a kind.
pub(crate) fn accept(headers: &HeaderMap, kind: &Kind, verb: &Verb) -> Result<Accepted, ApiError> {
    let entries = entries(headers);
    if entries.is_empty() {
        return Ok(Accepted::default());
    }

    let custom = kind.served.custom;
    let mut unknown_shape = false;
    for entry in &entries {
        // The router in front of built-in kinds does not know this wildcard.
        if entry.media == "application/*" && !custom {
            continue;
        }
        let Some(format) = entry.format() else { continue };
        if format == Format::Yaml && *verb == Verb::Watch {
            return Err(ApiError::not_acceptable(&[STREAM, PROTOBUF_STREAM]));
        }
        let Some(shape) = entry.shape().filter(|shape| shows(format, *shape, kind)) else {
            unknown_shape = true;
            continue;
        };
        let is_older = shape != ResponseShape::Whole && entry.parameter("v") == "v1beta1";
        return Ok(Accepted { format, shape, is_older });
    }
    if custom || unknown_shape {
        return Err(ApiError::not_acceptable(&[JSON, YAML, PROTOBUF]));
    }
    let mut available = vec![JSON, YAML, PROTOBUF];
    if matches!(verb, Verb::List | Verb::Watch) {
        available.extend([STREAM, PROTOBUF_STREAM]);
    }
    Err(ApiError::not_acceptable_by_router(&available))
}

/// Whether a format can show a shape of a kind: tables and custom resources have no messages, but
/// the metadata of custom resources has one.
fn shows(format: Format, shape: ResponseShape, kind: &Kind) -> bool {
    match (format, shape) {
        (Format::Json | Format::Yaml, _) => true,
        (Format::Protobuf, ResponseShape::Partial | ResponseShape::PartialList) => true,
        (Format::Protobuf, ResponseShape::Table) => false,
        (Format::Protobuf, ResponseShape::Whole) => !kind.served.custom,
    }
}

/// Returns an object as bytes, with their media type.
pub(crate) fn encode(format: Format, value: &Value) -> (Bytes, &'static str) {
    match format {
        Format::Json => (json(value), JSON),
        Format::Yaml => (Bytes::from(emit::print(value)), YAML),
        Format::Protobuf => match protobuf::encode(value) {
            Some(bytes) => (Bytes::from(bytes), PROTOBUF),
            None => (json(value), JSON),
        },
    }
}

/// Returns an event of a watch, in the framing of the format.
pub(crate) fn encode_event(format: Format, framing: Framing, name: &str, object: &Value) -> Bytes {
    if format == Format::Protobuf
        && let Some(frame) = protobuf::encode_event(name, object)
    {
        let mut frame = Bytes::from(frame);
        if framing == Framing::Messages {
            frame.advance(protobuf::LENGTH);
        }
        return frame;
    }
    let object = json(object);
    let mut out = BytesMut::with_capacity(object.len() + 40);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(&object);
    out.extend_from_slice(b"}\n");
    out.freeze()
}

/// Returns a value as JSON.
fn json(value: &Value) -> Bytes {
    // A `Value` has only text keys, so serialization cannot fail.
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

/// Returns the media type of the body in lower case, without parameters.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// Reads the body of a POST or PUT, to a subresource unless that is empty.
pub(crate) fn decode(
    headers: &HeaderMap,
    kind: &Kind,
    subresource: &str,
    bytes: &[u8],
) -> Result<Body, ApiError> {
    let name = kind.subresource(subresource).map_or(kind.name(), |sub| sub.kind.as_str());
    match media_type(headers).as_str() {
        // A header that names no type.
        "" if headers.get(CONTENT_TYPE).is_some_and(|value| !value.is_empty()) => {
            Err(ApiError::unsupported_body(&[JSON, YAML, PROTOBUF]))
        }
        // A body without a media type is read as JSON, as upstream does.
        "" | JSON => parse_json(bytes).map_err(|why| unreadable(name, &why, bytes)),
        YAML => yaml::parse(bytes).map_err(|why| {
            let start = excerpt(bytes);
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {name}): yaml: {why} ({start})"
            ))
        }),
        // For a custom resource upstream's handler panics and cuts the connection; the scale is
        // readable.
        PROTOBUF if !kind.served.custom || subresource == "scale" => {
            parse_protobuf(kind, subresource, bytes)
        }
        _ => Err(ApiError::unsupported_body(&[JSON, YAML, PROTOBUF])),
    }
}

/// Reads the optional body of a DELETE; null without one.
pub(crate) fn decode_options(
    headers: &HeaderMap,
    kind: &Kind,
    bytes: &[u8],
) -> Result<Value, ApiError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    match media_type(headers).as_str() {
        "" | JSON => parse_json(bytes).map(|body| body.value).map_err(|why| {
            ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        }),
        PROTOBUF => parse_protobuf_options(bytes),
        _ => decode(headers, kind, "", bytes).map(|body| body.value),
    }
}

/// Parses an object in protobuf; the kind is that of the path, unless the object names another.
fn parse_protobuf(kind: &Kind, subresource: &str, bytes: &[u8]) -> Result<Body, ApiError> {
    let served = &kind.served;
    let (version, name) = match kind.subresource(subresource) {
        Some(sub) if sub.group.is_empty() => (served.api_version(), sub.kind.as_str()),
        Some(sub) => (format!("{}/{}", sub.group, sub.version), sub.kind.as_str()),
        None => (served.api_version(), served.kind.as_str()),
    };
    let parsed = protobuf::decode(bytes, &version, name);
    parsed.map(Body::from).map_err(|fault| {
        let why = fault.why;
        ApiError::bad_request(match fault.kind {
            Some((version, kind)) => {
                format!("{kind} in version {version:?} cannot be handled as a {name}: {why}")
            }
            None => {
                let start = excerpt(bytes);
                format!(
                    "the object provided is unrecognized (must be of type {name}): {why} ({start})"
                )
            }
        })
    })
}

/// Parses the options of a DELETE in protobuf.
fn parse_protobuf_options(bytes: &[u8]) -> Result<Value, ApiError> {
    const KIND: &str = "DeleteOptions";
    let options =
        protobuf::decode(bytes, "v1", KIND).map_err(|fault| ApiError::bad_request(fault.why))?;
    if options["kind"] == KIND {
        return Ok(options);
    }
    Err(ApiError::bad_request(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go::quote(options["kind"].as_str().unwrap_or_default()),
        go::quote(options["apiVersion"].as_str().unwrap_or_default()),
    )))
}

/// Returns the 400 for a body that cannot be parsed.
fn unreadable(name: &str, why: &str, bytes: &[u8]) -> ApiError {
    let start = excerpt(bytes);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {name}): couldn't get version/kind; json parse error: {why} ({start})"
    ))
}

/// Media types of patches of built-in kinds.
const ROUTED: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// Whether the router lets a PATCH of a built-in kind through: it reads a list of media types.
fn is_routed(sent: &str) -> bool {
    let mut medias = sent.split(',').map(|one| one.split(';').next().unwrap_or_default().trim());
    medias.any(|media| ROUTED.contains(&media))
}

/// Reads the form of a PATCH, and the body, whose fault is judged after the object was found.
pub(crate) fn decode_patch(
    headers: &HeaderMap,
    kind: &Kind,
    bytes: &[u8],
) -> Result<(PatchType, Result<Body, ApiError>), ApiError> {
    const ACCEPTED: &[&str] = &[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];
    // Letters of both cases differ here, unlike in other headers.
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = match sent.split_once(';').map_or(sent, |(media, _)| media) {
        "application/json-patch+json" => PatchType::Json,
        "application/merge-patch+json" => PatchType::Merge,
        "application/strategic-merge-patch+json" if !kind.served.custom => PatchType::Strategic,
        "application/apply-patch+yaml" => PatchType::Apply,
        // For custom kinds the handler refuses, for built-in kinds the router in front of the
        // handler, with other texts.
        _ if kind.served.custom => return Err(ApiError::unsupported_body(ACCEPTED)),
        _ if is_routed(sent) => return Err(ApiError::unsupported_body(ROUTED)),
        _ => return Err(ApiError::unsupported_by_router()),
    };
    let parsed = if form == PatchType::Apply {
        yaml::parse(bytes).map_err(|why| format!("error converting YAML to JSON: yaml: {why}"))
    } else {
        parse_json(bytes)
    };
    let body = parsed.map_err(|why| match form {
        PatchType::Apply => ApiError::bad_request(format!("error decoding YAML: {why}")),
        PatchType::Strategic => ApiError::bad_request(why),
        _ => ApiError::bad_request(format!("error decoding patch: {why}")),
    });
    Ok((form, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_entries_are_ordered_by_weight() {
        let mut headers = HeaderMap::new();
        headers.insert(
            ACCEPT,
            "text/plain;q=0.1, application/json;as=Table;v=v1;g=meta.k8s.io, */*;q=0"
                .parse()
                .unwrap(),
        );
        let entries = entries(&headers);
        assert_eq!(entries[0].parameter("as"), "Table");
        // Weight 0 is the least, as in upstream's negotiation.
        let media: Vec<&str> = entries.iter().map(AcceptEntry::media).collect();
        assert_eq!(media, [JSON, "text/plain", "*/*"]);
    }
}
