//! Parsers of foreign bytes, for the fuzz targets under `tests/fuzz` and for benchmarks.
//!
//! Each function passes bytes to a parser as the framework does and returns the result.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};

use windlass_core::error::ApiStatus;
use windlass_core::wire::{
    ListSplitter, MetadataOffsets, MetadataRef, MetadataScan, RawItem, status, values_at,
};

/// A list in pieces, as a reflector splits it.
#[derive(Debug, PartialEq, Eq)]
pub struct List {
    /// The items' bytes; for an item beyond the limit its beginning, as an error.
    pub items: Vec<Result<Vec<u8>, Vec<u8>>>,
    /// Version of the list.
    pub resource_version: String,
    /// Token of the next page.
    pub continue_token: Option<String>,
}

/// Splits a list.
///
/// # Errors
/// The reason why the bytes are no list.
pub fn list<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Result<List, String> {
    let mut splitter = ListSplitter::with_limit(limit);
    let mut items = Vec::new();
    for piece in pieces {
        let mut each = |part: RawItem<'_>| {
            items.push(match part {
                RawItem::Whole(item) => Ok(item.to_vec()),
                RawItem::TooLarge(beginning) => Err(beginning.to_vec()),
            });
        };
        splitter.push(piece, &mut each).map_err(|error| error.to_string())?;
    }
    let meta = splitter.finish().map_err(|error| error.to_string())?;
    let (resource_version, continue_token) = (meta.resource_version, meta.continue_token);
    Ok(List { items, resource_version, continue_token })
}

/// Metadata that the cache reads from an object's bytes without decoding it.
#[derive(Debug)]
pub struct Skimmed {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: Option<String>,
    offsets: MetadataOffsets,
    /// The cached bytes: the object without `apiVersion`, `kind` and `managedFields`.
    pub kept: Box<[u8]>,
}

impl Skimmed {
    fn of(skim: &MetadataScan<'_>) -> Self {
        Self {
            name: skim.name.clone().into_owned(),
            namespace: skim.namespace.clone().map(std::borrow::Cow::into_owned),
            offsets: skim.offsets(),
            kept: skim.compact(),
        }
    }

    /// The rest of the scanned metadata.
    pub fn metadata(&self) -> MetadataRef<'_> {
        self.offsets.metadata(&self.kept)
    }
}

/// Scans a complete object.
pub fn skim(object: &[u8]) -> Option<Skimmed> {
    MetadataScan::of(object).ok().map(|skim| Skimmed::of(&skim))
}

/// Scans an object that is cut off.
pub fn skim_beginning(object: &[u8]) -> Option<Skimmed> {
    MetadataScan::of_beginning(object).ok().map(|skim| Skimmed::of(&skim))
}

/// An object's cached bytes alone: the cost of a watch frame without the cache.
pub fn kept(object: &[u8]) -> Option<Box<[u8]>> {
    MetadataScan::of(object).ok().map(|skim| skim.compact())
}

/// The values of an index over `path`.
pub fn values(object: &[u8], path: &[&'static str]) -> Vec<String> {
    let mut values = Vec::new();
    values_at(object, path, &mut values);
    values
}

/// Decompresses a gzip body in pieces; also whether it ends between two members. `None` when the
/// body is no gzip.
pub fn inflate<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<(Vec<u8>, bool)> {
    windlass_client::client::inflate(pieces)
}

/// The Status of an error answer, with its `Retry-After` if it has one.
pub fn status(code: u16, retry_after: Option<&[u8]>, body: &[u8]) -> ApiStatus {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    status::of_answer(code, &headers(retry_after), body)
}

/// The wait in a `Retry-After`.
pub fn retry_after(value: &[u8]) -> Option<Duration> {
    status::retry_after(&headers(Some(value)))
}

/// The headers of an answer with this `Retry-After`.
fn headers(retry_after: Option<&[u8]>) -> HeaderMap {
    let value = retry_after.and_then(|value| HeaderValue::from_bytes(value).ok());
    value.map(|value| (RETRY_AFTER, value)).into_iter().collect()
}
