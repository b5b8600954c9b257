//! URI of a request: the server's address, the path, and the query with the field manager.

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::Client;
use crate::client::request::Prepared;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::Verb;

/// Characters that are encoded in a query: all but the unreserved characters.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the absolute URI of a request, with the field manager.
pub(in crate::client) fn uri(client: &Client, request: &Prepared) -> Result<Uri, Error> {
    let shared = &client.shared;
    let base = if request.extra.from_root { shared.root() } else { &shared.base };
    let mut uri = format!("{base}{}", request.path);
    let mut separator = '?';
    let mut add = |key: &str, value: &str| {
        uri.push(separator);
        uri.extend(utf8_percent_encode(key, QUERY));
        uri.push('=');
        uri.extend(utf8_percent_encode(value, QUERY));
        separator = '&';
    };
    for (key, value) in &request.query {
        add(key, value);
    }
    // Deletions have no field manager.
    let managed = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Apply);
    if managed && request.parameter("fieldManager").is_none() {
        add("fieldManager", &client.manager);
    }
    uri.parse().map_err(|error| {
        let text = format!("cannot {}: `{}` is not a path", request.what, request.path);
        Error::new(ErrorKind::Usage, text).because(error)
    })
}
