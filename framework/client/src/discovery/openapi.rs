//! OpenAPI v3: an index of documents, one per group version, fetched for tools.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;

use super::fetch::{TIMEOUT, get};
use crate::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::Undecodable;

/// Index of the OpenAPI v3 documents of an API server.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let index = client.discovery().openapi_v3().await?;
/// if let Some(hash) = index.hash("apis/apps/v1") {
///     println!("the document of apps/v1 has the hash {hash}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenApiIndex {
    hashes: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    paths: BTreeMap<String, IndexEntry>,
}

#[derive(Deserialize)]
struct IndexEntry {
    #[serde(default, rename = "serverRelativeURL")]
    url: String,
}

impl OpenApiIndex {
    /// Paths of the documents, such as `apis/apps/v1`, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.hashes.keys().map(String::as_str)
    }

    /// Returns a document's hash, which changes with the content; `None` when there is no such
    /// document, or the server sends no hash.
    pub fn hash(&self, path: &str) -> Option<&str> {
        self.hashes.get(path)?.as_deref()
    }

    /// The path of `name`, which is a path or a group version.
    fn path(&self, name: &str) -> Option<&str> {
        let name = name.trim_matches('/');
        let names = [name.to_owned(), format!("apis/{name}"), format!("api/{name}")];
        names.iter().find_map(|name| Some(self.hashes.get_key_value(name)?.0.as_str()))
    }

    /// Reads the hash from the URL of each document.
    fn of(wire: Wire) -> Self {
        let hash = |item: IndexEntry| {
            let (_, query) = item.url.split_once('?')?;
            let hash = query.split('&').find_map(|pair| pair.strip_prefix("hash="))?;
            Some(percent_decode_str(hash).decode_utf8_lossy().into_owned())
        };
        Self { hashes: wire.paths.into_iter().map(|(path, item)| (path, hash(item))).collect() }
    }
}

/// Reads the index.
pub(super) async fn index(client: &Client) -> Result<OpenApiIndex, Error> {
    let what = "read the index of OpenAPI documents";
    let answer = client.send(get("/openapi/v3", what, TIMEOUT)).await?;
    let wire = serde_json::from_slice(&answer.body).map_err(|error| undecodable(what, error))?;
    Ok(OpenApiIndex::of(wire))
}

/// Reads a document, by the name in the index.
pub(super) async fn document(client: &Client, name: &str) -> Result<Value, Error> {
    let what = format!("read the OpenAPI document {name:?}");
    let index = index(client).await?;
    let path = index.path(name).ok_or_else(|| {
        let text = format!(
            "cannot {what}: the index has no such document, but {} others; name one by its group \
             version, such as apps/v1",
            index.hashes.len()
        );
        Error::new(ErrorKind::NotFound, text)
    })?;
    // The URL in the index is not used: the path would be relative to a prefix before the server's
    // root.
    let mut request = get(format!("/openapi/v3/{path}"), &what, TIMEOUT);
    if let Some(hash) = index.hash(path) {
        request.query.push(("hash".into(), hash.to_owned()));
    }
    let answer = client.send(request).await?;
    serde_json::from_slice(&answer.body).map_err(|error| undecodable(&what, error))
}

/// The error of an answer that is no OpenAPI document.
fn undecodable(what: &str, error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Decode, format!("cannot {what}: the answer is not JSON of its form"))
        .because(Undecodable::of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_named_by_its_path_or_by_its_group_version() {
        let wire = r#"{"paths":{
            "api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=AB%2F1&x=y"},
            "apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1"},
            "version":{}}}"#;
        let index = OpenApiIndex::of(serde_json::from_str(wire).unwrap());
        assert_eq!(index.paths().collect::<Vec<_>>(), ["api/v1", "apis/apps/v1", "version"]);
        assert_eq!(index.path("v1"), Some("api/v1"));
        assert_eq!(index.path("/apis/apps/v1"), Some("apis/apps/v1"));
        assert_eq!(index.path("apps/v1"), Some("apis/apps/v1"));
        assert_eq!(index.path("apps"), None);
        assert_eq!((index.hash("api/v1"), index.hash("apis/apps/v1")), (Some("AB/1"), None));
    }
}
