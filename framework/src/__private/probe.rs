//! Entry points of the parsers that read untrusted bytes, for the fuzz targets under `tests/fuzz`
//! and for benchmarks.
//!
//! Each function calls a parser in the same way as the framework does, and returns the result.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};

use windlass_core::error::ApiStatus;
use windlass_core::wire::{
    ListSplitter, MetadataOffsets, MetadataRef, MetadataScan, StreamPiece, status, values_at,
};

/// Result of [`list`]: the items and the metadata of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct ScannedList {
    /// Bytes of each item; of an item beyond the limit the beginning, as an error.
    pub items: Vec<Result<Vec<u8>, Vec<u8>>>,
    /// The list's `metadata.resourceVersion`.
    pub resource_version: String,
    /// The list's `metadata.continue`.
    pub continue_token: Option<String>,
}

/// Splits a list that arrives in `pieces` into items, as a reflector does.
///
/// # Errors
/// The reason why the bytes are no list.
pub fn list<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limit: usize,
) -> Result<ScannedList, String> {
    let mut splitter = ListSplitter::with_limit(limit);
    let mut items = Vec::new();
    for piece in pieces {
        let mut each = |part: StreamPiece<'_>| {
            items.push(match part {
                StreamPiece::Whole(item) => Ok(item.to_vec()),
                StreamPiece::TooLarge(beginning) => Err(beginning.to_vec()),
            });
        };
        splitter.push(piece, &mut each).map_err(|error| error.to_string())?;
    }
    let meta = splitter.finish().map_err(|error| error.to_string())?;
    let (resource_version, continue_token) = (meta.resource_version, meta.continue_token);
    Ok(ScannedList { items, resource_version, continue_token })
}

/// Metadata that the cache reads from an object's bytes without decoding the object.
#[derive(Debug)]
pub struct ScannedMetadata {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: Option<String>,
    /// Offsets of the other metadata in `kept`.
    offsets: MetadataOffsets,
    /// Bytes that the cache stores: the object without `apiVersion`, `kind` and `managedFields`.
    pub kept: Box<[u8]>,
}

impl ScannedMetadata {
    /// Copies the result of a scan.
    fn of(scan: &MetadataScan<'_>) -> Self {
        Self {
            name: scan.name.clone().into_owned(),
            namespace: scan.namespace.clone().map(std::borrow::Cow::into_owned),
            offsets: scan.offsets(),
            kept: scan.compact(),
        }
    }

    /// Returns the rest of the scanned metadata.
    pub fn metadata(&self) -> MetadataRef<'_> {
        self.offsets.metadata(&self.kept)
    }
}

/// Scans the metadata of a complete object; `None` when the bytes are no object.
pub fn scan(object: &[u8]) -> Option<ScannedMetadata> {
    MetadataScan::of(object).ok().map(|scan| ScannedMetadata::of(&scan))
}

/// Scans the metadata of the beginning of an object; `None` when the metadata are incomplete.
pub fn scan_beginning(object: &[u8]) -> Option<ScannedMetadata> {
    MetadataScan::of_beginning(object).ok().map(|scan| ScannedMetadata::of(&scan))
}

/// Returns the bytes of an object that the cache stores. Benchmarks take the time of this call for
/// that of a watch frame without the cache.
pub fn kept(object: &[u8]) -> Option<Box<[u8]>> {
    MetadataScan::of(object).ok().map(|scan| scan.compact())
}

/// Returns the values of an index over `path`.
pub fn values(object: &[u8], path: &[&'static str]) -> Vec<String> {
    let mut values = Vec::new();
    values_at(object, path, &mut values);
    values
}

/// Decompresses a gzip body that arrives in `pieces`. Returns the bytes, and whether the body ends
/// between two members; `None` when the body is no gzip.
pub fn inflate<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<(Vec<u8>, bool)> {
    windlass_client::client::inflate(pieces)
}

/// Returns the Status of an error response, with `Retry-After` if the response has that header.
pub fn status(code: u16, retry_after: Option<&[u8]>, body: &[u8]) -> ApiStatus {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    status::of_answer(code, &headers(retry_after), body)
}

/// Returns the time in a `Retry-After`.
pub fn retry_after(value: &[u8]) -> Option<Duration> {
    status::retry_after(&headers(Some(value)))
}

/// Returns the headers of a response with this `Retry-After`.
fn headers(retry_after: Option<&[u8]>) -> HeaderMap {
    let value = retry_after.and_then(|value| HeaderValue::from_bytes(value).ok());
    value.map(|value| (RETRY_AFTER, value)).into_iter().collect()
}
