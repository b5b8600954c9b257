//! The exchanges under way: lists and watches of caches become objects and events, others are kept
//! until their end.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::mask::Mask;
use windlass_client::client::{RequestOrigin, SentRequest};
use windlass_core::wire::{
    EventType, Frame, FrameDecoder, ListSplitter, MAX_PIECE, Malformed, MetadataScan, StreamPiece,
};

/// Parameters of a query that select objects.
const SELECTORS: [&str; 2] = ["labelSelector=", "fieldSelector="];

/// Namespace and name of an object; the namespace is empty for a cluster-scoped one.
pub(super) type ObjectId = (String, String);

/// Objects as a server sent them, Secrets masked.
pub(super) type Objects = BTreeMap<ObjectId, Bytes>;

/// Objects that a cache asks for, and their state at the beginning of the recording.
#[derive(Clone, Debug)]
pub(super) struct RecordedCache {
    pub(super) path: String,
    /// Parameters of the query that select objects, as they are sent.
    pub(super) selectors: String,
    pub(super) is_metadata: bool,
    pub(super) state: CacheState,
    /// Objects of the pages of a list that is not complete.
    pub(super) pages: Objects,
}

/// Answer to a list.
#[derive(Clone, Debug, Default)]
pub(super) enum CacheState {
    /// None yet.
    #[default]
    Unknown,
    /// An error that no repetition changes: the kind is not served, or may not be listed.
    Refused {
        code: u16,
        body: Bytes,
    },
    Listed {
        version: String,
        objects: Objects,
    },
}

impl CacheState {
    /// Returns the memory of the state.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Refused { body, .. } => body.len(),
            Self::Listed { objects, .. } => total(objects),
        }
    }
}

/// Returns the memory of objects.
pub(super) fn total(objects: &Objects) -> usize {
    objects.values().map(|object| cost(object)).sum()
}

/// Returns the memory of an object.
pub(super) fn cost(object: &[u8]) -> usize {
    /// Keys and nodes around an object, about.
    const OVERHEAD: usize = 128;
    object.len() + OVERHEAD
}

/// An exchange whose answer is being read.
#[derive(Debug)]
pub(super) enum OpenExchange {
    /// A page of a list of a cache.
    Page { cache: usize, body: Vec<u8>, code: u16 },
    /// A watch of a cache; `listing` has the objects until the list in its beginning is complete,
    /// `body` an error.
    Watch {
        cache: usize,
        decoder: FrameDecoder,
        listing: Option<Objects>,
        body: Vec<u8>,
        code: u16,
    },
    /// An answer of discovery.
    Document { path: String, body: Vec<u8>, code: u16 },
    /// Any other request.
    Call { answer: CallResponse },
}

/// The answer to a request, as far as it has come.
#[derive(Clone, Debug, Default)]
pub(super) struct CallResponse {
    pub(super) code: u16,
    pub(super) retry_after: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) is_secret: bool,
    /// Whether the body is left out, which a reader takes in pieces.
    pub(super) is_stream: bool,
}

impl OpenExchange {
    /// Returns the exchange of a request, its cache still to be found.
    pub(super) fn of(request: &SentRequest) -> Self {
        let is_object = is_resource(&request.path);
        let parameter = |text: &str| request.query.split('&').any(|pair| pair == text);
        if request.origin == RequestOrigin::Cache && is_object {
            if !parameter("watch=true") && !parameter("watch=1") {
                return Self::Page { cache: 0, body: Vec::new(), code: 0 };
            }
            let listing = parameter("sendInitialEvents=true").then(Objects::new);
            let decoder = FrameDecoder::new();
            return Self::Watch { cache: 0, decoder, listing, body: Vec::new(), code: 0 };
        }
        if request.method == "GET" && !is_object && !request.is_stream {
            return Self::Document { path: request.path.clone(), body: Vec::new(), code: 0 };
        }
        let (is_secret, is_stream) = (Mask::concerns(&request.path), request.is_stream);
        Self::Call { answer: CallResponse { is_secret, is_stream, ..CallResponse::default() } }
    }
}

/// Whether a path leads to objects, and not to discovery.
fn is_resource(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", _, _, ..] => true,
        ["apis", _, _, rest @ ..] => !rest.is_empty(),
        _ => false,
    }
}

/// Returns the parameters of a query that select objects.
pub(super) fn selectors(query: &str) -> String {
    let chosen = |pair: &&str| SELECTORS.iter().any(|name| pair.starts_with(name));
    query.split('&').filter(chosen).collect::<Vec<_>>().join("&")
}

/// An event of a watch.
pub(super) struct CacheEvent {
    pub(super) event: EventType,
    /// `None` of a bookmark and of an error.
    pub(super) id: Option<ObjectId>,
    pub(super) version: String,
    pub(super) object: Bytes,
    /// Whether the event completes the list at the beginning of the watch.
    pub(super) completes_list: bool,
}

/// Reads the frames that end in a piece. Frames that do not decode, or are beyond the size that
/// caches take, have no event.
pub(super) fn events(
    decoder: &mut FrameDecoder,
    piece: &[u8],
    mask: Option<&Mask>,
) -> Vec<CacheEvent> {
    let mut found = Vec::new();
    decoder.push(piece, &mut |part| {
        if let StreamPiece::Whole(line) = part {
            found.extend(event(line, mask));
        }
    });
    found
}

/// Reads a frame.
fn event(line: &[u8], mask: Option<&Mask>) -> Option<CacheEvent> {
    let frame = Frame::of(line).ok()?;
    let scan = MetadataScan::version_of(frame.object).ok();
    let scan = scan.unwrap_or_default();
    let is_object =
        matches!(frame.event, EventType::Added | EventType::Modified | EventType::Deleted);
    Some(CacheEvent {
        event: frame.event,
        id: is_object.then(|| id(&scan)),
        version: scan.resource_version.to_string(),
        completes_list: frame.event == EventType::Bookmark && scan.ends_initial_events(),
        object: kept(frame.object, mask),
    })
}

/// Reads a page of a list: the objects, the version and the token of the next page. Objects beyond
/// the size that caches take are left out.
///
/// # Errors
/// The body is no list.
pub(super) fn page(
    body: &[u8],
    mask: Option<&Mask>,
    objects: &mut Objects,
) -> Result<(String, Option<String>), Malformed> {
    let mut splitter = ListSplitter::with_limit(MAX_PIECE);
    splitter.push(body, &mut |part| {
        if let StreamPiece::Whole(object) = part {
            let scan = MetadataScan::version_of(object).unwrap_or_default();
            objects.insert(id(&scan), kept(object, mask));
        }
    })?;
    let meta = splitter.finish()?;
    Ok((meta.resource_version, meta.continue_token))
}

fn id(scan: &MetadataScan<'_>) -> ObjectId {
    (scan.namespace.as_deref().unwrap_or_default().to_owned(), scan.name.to_string())
}

/// Returns an object to keep, masked if it may be a Secret.
fn kept(object: &[u8], mask: Option<&Mask>) -> Bytes {
    let Some(mask) = mask else { return Bytes::copy_from_slice(object) };
    // An object that does not decode is not kept: a secret may be anywhere in it.
    let mut value = serde_json::from_slice::<Value>(object).unwrap_or_default();
    mask.value(&mut value);
    value.to_string().into()
}
