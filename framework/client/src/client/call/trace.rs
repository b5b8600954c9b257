//! Output about requests: bodies at TRACE level, `curl` command lines for people.
//!
//! Bodies go to the target `windlass_client::body`, cut to 1 KiB unless the client is configured
//! otherwise. Credentials never appear, nor the contents of Secrets and tokens: bodies of such
//! kinds are omitted as a whole, and in all other bodies the members that usually hold secrets.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tracing::Level;

use super::ClientShared;
use super::uri::uri;
use crate::client::Client;
use crate::client::request::{ApiPath, Headers, Prepared, is_secret};
use windlass_core::error::Error;

/// Default number of bytes of a body that are shown.
pub(in crate::client) const SHOWN: usize = 1024;
/// Largest body that is parsed for output.
const LARGEST: usize = 1 << 20;
/// Text in place of a secret.
const LEFT_OUT: &str = "[redacted]";
/// Members whose values are omitted, in objects of any kind.
const SECRETS: &[&str] = &[
    "data",
    "stringData",
    "token",
    "password",
    "kubectl.kubernetes.io/last-applied-configuration",
];
/// Endings of other names of secrets, without case and separators.
const ENDINGS: &[&str] =
    &["password", "passwd", "secret", "token", "apikey", "privatekey", "secretkey", "accesskey"];
/// Kinds that are omitted as a whole.
const KINDS: &[&str] = &["Secret", "SecretList", "TokenRequest", "TokenReview", "ExecCredential"];
/// Resources of those kinds.
const RESOURCES: &[&str] = &["secrets", "tokenreviews"];

/// Logs a request that is about to be sent.
pub(in crate::client) fn request(shared: &ClientShared, request: &Prepared, attempt: u32) {
    if tracing::enabled!(target: "windlass_client::body", Level::TRACE) {
        let body = shown(
            &request.path,
            content_type(&request.headers),
            &request.body,
            shared.defaults.shown,
        );
        tracing::trace!(
            target: "windlass_client::body",
            method = %request.method,
            path = request.path,
            headers = ?Headers(&request.headers),
            attempt,
            body,
            "a request is sent"
        );
    }
}

/// Logs a response that was read.
pub(in crate::client) fn response(
    shared: &ClientShared,
    request: &Prepared,
    code: u16,
    headers: &HeaderMap,
    body: &Bytes,
) {
    if tracing::enabled!(target: "windlass_client::body", Level::TRACE) {
        let body = shown(&request.path, content_type(headers), body, shared.defaults.shown);
        tracing::trace!(
            target: "windlass_client::body",
            path = request.path,
            code,
            headers = ?Headers(headers),
            body,
            "a response was read"
        );
    }
}

/// Returns the header `Content-Type`; empty if there is none.
pub(in crate::client) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the text of a body without secrets, of at most `limit` bytes.
pub(in crate::client) fn shown(
    path: &str,
    content_type: &str,
    body: &[u8],
    limit: usize,
) -> String {
    let length = body.len();
    if body.is_empty() {
        return String::new();
    }
    if is_sensitive(path) {
        return format!("{LEFT_OUT} {length} bytes of a kind that holds secrets");
    }
    let json = content_type.is_empty() || content_type.contains("json");
    // Applies are sent as JSON under the media type of YAML.
    let yaml_that_is_json = content_type.contains("apply-patch");
    let value = (json || yaml_that_is_json)
        .then(|| body.get(..LARGEST.min(length)).filter(|part| part.len() == length))
        .flatten()
        .and_then(|body| serde_json::from_slice::<Value>(body).ok());
    // Only JSON can be searched for secrets, so other bodies are not shown.
    let Some(mut value) = value else {
        return format!("{length} bytes of {content_type:?}, not shown");
    };
    redact(&mut value);
    let mut text = value.to_string();
    // Cut at a character boundary: `truncate` panics inside of a character.
    if text.len() > limit {
        let end = (0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!("… ({length} bytes)"));
    }
    text
}

/// Returns whether a path leads to a kind that holds secrets, such as `…/secrets/a` or
/// `…/serviceaccounts/a/token`.
fn is_sensitive(path: &str) -> bool {
    let Some(place) = ApiPath::of(path) else { return false };
    let skip = if place.namespace.is_some() { 2 } else { 0 };
    let mut parts = place.rest.split('/').skip(skip);
    let resource = parts.next().unwrap_or_default();
    RESOURCES.contains(&resource) || parts.nth(1) == Some("token")
}

/// Returns whether the value of a member of this name is omitted. `secretName` and
/// `tokenExpirationSeconds` are not secret; `clientSecret` and `DB_PASSWORD` are.
fn names_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SECRETS.contains(&name) || ENDINGS.iter().any(|ending| plain.ends_with(ending))
}

/// Replaces secrets in a JSON value.
fn redact(value: &mut Value) {
    let secret_kind =
        |object: &Value| object["kind"].as_str().is_some_and(|kind| KINDS.contains(&kind));
    if secret_kind(value) {
        *value = LEFT_OUT.into();
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(members) => {
            // An operation of a JSON patch names the member in the path.
            let patched = members.get("path").and_then(Value::as_str).is_some_and(|path| {
                path.split('/').any(|part| names_secret(&part.replace("~1", "/")))
            });
            // A variable of a container's environment has its name beside the value.
            let named = members.get("name").and_then(Value::as_str).is_some_and(names_secret);
            for (name, member) in members.iter_mut() {
                if names_secret(name) || ((patched || named) && name == "value") {
                    *member = LEFT_OUT.into();
                } else {
                    redact(member);
                }
            }
        }
        _ => {}
    }
}

/// Returns a `curl` command line that sends the same request.
pub(in crate::client) fn curl(client: &Client, request: &Prepared) -> Result<String, Error> {
    let shared = &client.shared;
    let mut line = format!("curl -v -X {}", request.method);
    let mut header = |name: &HeaderName, value: &HeaderValue| {
        let value = if is_secret(name, value) {
            LEFT_OUT.into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        line.push_str(&format!(" -H {}", quoted(&format!("{name}: {value}"))));
    };
    if let Some(accept) =
        shared.defaults.accept.as_ref().filter(|_| !request.headers.contains_key(ACCEPT))
    {
        header(&ACCEPT, accept);
    }
    for (name, value) in
        shared.headers.iter().filter(|(name, _)| !request.headers.contains_key(*name))
    {
        header(name, value);
    }
    for (name, value) in &request.headers {
        header(name, value);
    }
    if shared.credentials.has_header() && !request.headers.contains_key(AUTHORIZATION) {
        header(&AUTHORIZATION, &HeaderValue::from_static(LEFT_OUT));
    }
    if request.extra.reader.is_some() {
        line.push_str(" --data-binary @-");
    } else if !request.body.is_empty() {
        let body = shown(
            &request.path,
            content_type(&request.headers),
            &request.body,
            shared.defaults.shown,
        );
        line.push_str(&format!(" --data-binary {}", quoted(&body)));
    }
    line.push_str(&format!(" {}", quoted(&uri(client, request)?.to_string())));
    Ok(line)
}

/// Quotes a word of a shell command line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "application/json";

    #[test]
    fn mechanism_17_no_body_shows_a_secret() {
        let pods = "/api/v1/namespaces/shop/configmaps/a";
        for (path, body) in [
            ("/api/v1/namespaces/shop/secrets", r#"{"x":"canary"}"#),
            ("/api/v1/secrets", r#"{"x":"canary"}"#),
            ("/api/v1/namespaces/shop/serviceaccounts/a/token", r#"{"status":{"x":"canary"}}"#),
            ("/apis/authentication.k8s.io/v1/tokenreviews", r#"{"spec":{"x":"canary"}}"#),
            (pods, r#"{"kind":"List","items":[{"kind":"Secret","x":"canary"}]}"#),
            (pods, r#"{"data":{"a":"canary"},"stringData":["canary"]}"#),
            (pods, r#"{"deep":[{"token":"canary","password":"canary"}]}"#),
            (pods, r#"{"deep":[{"adminPassword":"canary","client_secret":"canary"}]}"#),
            (
                pods,
                r#"{"spec":{"apiKey":"canary","privateKey":["canary"],"BEARER_TOKEN":"canary"}}"#,
            ),
            (pods, r#"{"spec":{"env":[{"name":"DB_PASSWORD","value":"canary"}]}}"#),
            (
                pods,
                r#"{"d\u0061ta":{"a":"canary"},"k\u0069nd":"X","x":{"kind":"S\u0065cret","y":"canary"}}"#,
            ),
            (pods, r#"[{"op":"replace","path":"","value":{"kind":"Secret","x":"canary"}}]"#),
            (pods, r#"[{"op":"add","path":"/spec/adminPassword","value":"canary"}]"#),
            (pods, r#"[{"op":"add","path":"/data/a","value":"canary"}]"#),
            (
                pods,
                r#"{"metadata":{"annotations":
                    {"kubectl.kubernetes.io/last-applied-configuration":"canary"}}}"#,
            ),
        ] {
            let text = shown(path, JSON, body.as_bytes(), SHOWN);
            assert!(!text.contains("canary") && text.contains(LEFT_OUT), "{path}: {text}");
        }
        let text = shown(pods, "text/plain", b"canary", SHOWN);
        assert_eq!(text, "6 bytes of \"text/plain\", not shown");
    }

    #[test]
    fn mechanism_17_a_body_is_cut_at_a_kibibyte() {
        let body = format!(r#"{{"x":"{}"}}"#, "é".repeat(4000));
        let text = shown("/api/v1/pods", JSON, body.as_bytes(), SHOWN);
        assert!(text.starts_with(r#"{"x":"éé"#) && text.len() < 1100, "{}", text.len());
        assert!(text.ends_with("… (8008 bytes)"), "{text}");
    }

    #[test]
    fn a_shell_takes_any_text_as_one_word() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
