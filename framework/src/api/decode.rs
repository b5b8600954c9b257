//! Answers become objects.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ObjectList;
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceInfo};

/// The object in the answer to `what`.
pub(crate) fn decode<K: Resource>(what: &str, body: &[u8]) -> Result<K, Error> {
    serde_json::from_slice(body).map_err(|error| undecodable(what, "the answer", error))
}

fn undecodable(what: &str, part: &str, error: serde_json::Error) -> Error {
    let text = format!("cannot {what}: {part} does not decode: {error}");
    Error::new(ErrorKind::Decode, text).because(error)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(default)]
    metadata: HeadMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeadMeta {
    name: String,
    namespace: String,
}

/// The list in the answer to `what`.
pub(crate) fn decode_list<K: Resource>(
    what: &str,
    body: &[u8],
    info: &ResourceInfo,
) -> Result<ObjectList<K>, Error> {
    let raw: RawList<'_> =
        serde_json::from_slice(body).map_err(|error| undecodable(what, "the answer", error))?;
    let items = raw.items.unwrap_or_default();
    let items = items.into_iter().map(|item| decode_item(what, item.get(), info));
    Ok(ObjectList {
        items: items.collect::<Result<_, _>>()?,
        resource_version: raw.metadata.resource_version,
        continue_token: raw.metadata.continue_token.filter(|token| !token.is_empty()),
    })
}

/// One item of a list or of a watch. API servers leave the type of a built-in kind's list items out;
/// objects whose type is a value get it back.
pub(crate) fn decode_item<K: Resource>(
    what: &str,
    item: &str,
    info: &ResourceInfo,
) -> Result<K, Error> {
    let text = if K::static_info().is_none() { with_type(item, info) } else { item.into() };
    serde_json::from_str(&text).map_err(|error| {
        let name = serde_json::from_str::<Head<'_>>(item).map(|head| head.metadata);
        let part = match name {
            Ok(HeadMeta { name, namespace }) if namespace.is_empty() => format!("\"{name}\""),
            Ok(HeadMeta { name, namespace }) => format!("\"{name}\" in \"{namespace}\""),
            Err(_) => "an item".to_owned(),
        };
        undecodable(what, &part, error)
    })
}

fn with_type<'a>(item: &'a str, info: &ResourceInfo) -> Cow<'a, str> {
    let typed = serde_json::from_str::<Head<'_>>(item).is_ok_and(|head| head.api_version.is_some());
    let Some(rest) = item.trim_start().strip_prefix('{').filter(|_| !typed) else {
        return item.into();
    };
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    let (version, kind) = (info.api_version(), &info.kind);
    format!(r#"{{"apiVersion":"{version}","kind":"{kind}"{comma}{rest}"#).into()
}
