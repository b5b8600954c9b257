//! Decodes the bodies of answers into objects, lists and pages.
//!
//! Invariants: an item that does not decode never hides its neighbours, and an error text names the
//! object and the field, never a value, which may be a secret.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::object_list::ObjectList;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Resource, ResourceInfo};
use windlass_core::wire::{Undecodable, times};

/// Decodes a body. The first argument names the operation, for error texts.
pub(crate) type Decoder<T> = fn(&str, &[u8], &ResourceInfo) -> Result<T, Error>;

/// Decodes the object in the answer to `what`.
pub(crate) fn object<K: Resource>(
    what: &str,
    body: &[u8],
    info: &ResourceInfo,
) -> Result<K, Error> {
    let mut object: K = value(what, body, info)?;
    object.set_type(info);
    Ok(object)
}

/// Decodes any other value in the answer to `what`.
pub(crate) fn value<T: DeserializeOwned>(
    what: &str,
    body: &[u8],
    _: &ResourceInfo,
) -> Result<T, Error> {
    times::from_slice(body)
        .map_err(|error| undecodable(what, "the answer", Undecodable::explain::<T>(body, &error)))
}

/// The error of a part that does not decode; `what` is the attempted operation.
fn undecodable(what: &str, part: &str, error: Undecodable) -> Error {
    let text = format!("cannot {what}: {part} does not decode: {error}");
    Error::new(ErrorKind::Decode, text).because(error)
}

/// Metadata of a list.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    #[doc(hidden)]
    pub resource_version: String,
    #[serde(rename = "continue")]
    #[doc(hidden)]
    pub continue_token: Option<String>,
    remaining_item_count: Option<u64>,
}

/// A list whose items are not decoded yet.
#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    // Raw: each object is decoded separately, so that a bad object does not hide the others.
    items: Option<Vec<&'a RawValue>>,
}

/// The parts of an undecodable item that the error names.
#[derive(Deserialize)]
struct ItemIdentity<'a> {
    #[serde(borrow, default)]
    metadata: ItemMetadata<'a>,
}

/// Name and namespace of an undecodable item.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemMetadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

/// A page of a list, in which single objects may be undecodable.
pub(crate) struct DecodedPage<K> {
    /// The objects; an error for each that does not decode.
    pub(crate) items: Vec<Result<K, Error>>,
    /// Version of the collection.
    pub(crate) resource_version: String,
    /// Token of the next page; `None` on the last page.
    pub(crate) continue_token: Option<String>,
    /// Approximate number of objects on later pages, if the server sends the number.
    pub(crate) remaining: Option<u64>,
}

/// Decodes the page in the answer to `what`.
pub(crate) fn page<K: Resource>(
    what: &str,
    body: &[u8],
    info: &ResourceInfo,
) -> Result<DecodedPage<K>, Error> {
    let raw: RawList<'_> = serde_json::from_slice(body)
        .map_err(|error| undecodable(what, "the answer", Undecodable::of(&error)))?;
    let items = raw.items.unwrap_or_default();
    let items = items.into_iter().map(|one| item(what, one.get(), info));
    Ok(DecodedPage {
        items: items.collect(),
        resource_version: raw.metadata.resource_version,
        continue_token: raw.metadata.continue_token.filter(|token| !token.is_empty()),
        remaining: raw.metadata.remaining_item_count,
    })
}

/// Decodes the list in the answer to `what`; an undecodable object is an error.
pub(crate) fn list<K: Resource>(
    what: &str,
    body: &[u8],
    info: &ResourceInfo,
) -> Result<ObjectList<K>, Error> {
    let page: DecodedPage<K> = page(what, body, info)?;
    Ok(ObjectList {
        items: page.items.into_iter().collect::<Result<_, _>>()?,
        resource_version: page.resource_version,
        continue_token: page.continue_token,
        remaining: page.remaining,
    })
}

/// Decodes an item of a list or of a watch.
pub(crate) fn item<K: Resource>(what: &str, item: &str, info: &ResourceInfo) -> Result<K, Error> {
    let decoded: Result<K, _> = times::from_slice(item.as_bytes());
    let mut object = decoded.map_err(|error| {
        // The name may decode although the object does not: the error contains the name.
        let name = serde_json::from_str::<ItemIdentity<'_>>(item).map(|item| item.metadata);
        let part = match name {
            Ok(ItemMetadata { name, namespace }) if namespace.is_empty() => format!("\"{name}\""),
            Ok(ItemMetadata { name, namespace }) => format!("\"{name}\" in \"{namespace}\""),
            Err(_) => "an item".to_owned(),
        };
        undecodable(what, &part, Undecodable::explain::<K>(item.as_bytes(), &error))
    })?;
    // Items of lists have no type of their own.
    object.set_type(info);
    Ok(object)
}
