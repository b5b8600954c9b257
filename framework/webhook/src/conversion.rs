//! `ConversionReview` of `apiextensions.k8s.io/v1`: objects of one kind in another version.
//!
//! A review has one result for all of its objects: the first that has no equal fails it.

// DESIGN.md, 222: A conversion has a path per kind, and the installed definition keeps its client
// configuration

// DESIGN.md, 256: A conversion decodes one object at a time, and its answer counts as memory
// DESIGN.md, 260: Large objects of all kinds are decoded one at a time

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use windlass_core::crd::{CustomResource, Versions, conversion_path};

use crate::admission::HttpFailure;
use crate::cut::cut;
use crate::review::LONGEST_NAME;
use crate::size::{MAX_BODY, ResponseMemory};

/// Version of the reviews.
const VERSION: &str = "apiextensions.k8s.io/v1";
/// Kind of the reviews.
const KIND: &str = "ConversionReview";
/// Most characters of a failure's text.
const LONGEST: usize = 4 * 1024;
/// Most objects of a review: real ones have more bytes than the longest body leaves for each of as
/// many.
const MOST_OBJECTS: usize = 1 << 18;
/// Most bytes of an object.
const MAX_OBJECT: usize = MAX_BODY / 2;
/// Most values in an object: decoded, each of them takes many times its bytes.
const MOST_VALUES: usize = 250_000;
/// Bytes of an object that is decoded alone.
const LARGE: usize = 64 * 1024;
/// Bytes by which an answer that is longer than its request grows.
const GROWTH: usize = 64 * 1024;

/// A kind whose objects are converted.
#[derive(Clone, Debug)]
pub(crate) struct ConvertedKind {
    pub(crate) path: String,
    /// Name of the definition.
    pub(crate) definition: String,
    /// The versions; `None` for a kind that has one.
    pub(crate) versions: Option<Versions>,
}

impl ConvertedKind {
    pub(crate) fn of<K: CustomResource>() -> Self {
        let info = K::static_info();
        let path = info.as_ref().map(|info| conversion_path(&info.group, &info.kind));
        Self {
            path: path.unwrap_or_else(|| "/convert".to_owned()),
            definition: info.map(|info| info.group_resource()).unwrap_or_default(),
            versions: Versions::of::<K>(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<ConversionRequest<'a>>,
}

#[derive(Deserialize)]
struct ConversionRequest<'a> {
    #[serde(default)]
    uid: String,
    #[serde(default, rename = "desiredAPIVersion")]
    desired: String,
    #[serde(borrow, default)]
    objects: Option<Objects<'a>>,
}

/// Objects as they were sent.
#[derive(Default)]
struct Objects<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Objects<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ObjectsVisitor)
    }
}

struct ObjectsVisitor;

impl<'de> Visitor<'de> for ObjectsVisitor {
    type Value = Objects<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(object) = list.next_element()? {
            if objects.len() == MOST_OBJECTS {
                return Err(serde::de::Error::custom(format_args!(
                    "it has more than {MOST_OBJECTS} objects"
                )));
            }
            objects.push(object);
        }
        Ok(Objects(objects))
    }
}

/// Converts the objects of a kind, one after the other.
#[derive(Debug)]
pub(crate) struct Converter {
    versions: Versions,
    permits: LargeObjectPermit,
}

/// Turns to decode objects above [`LARGE`]: the converters that share them decode one at a time.
#[derive(Clone, Debug)]
pub(crate) struct LargeObjectPermit(Arc<Semaphore>);

impl LargeObjectPermit {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Converter {
    pub(crate) fn new(versions: Versions, permits: LargeObjectPermit) -> Self {
        Self { versions, permits }
    }

    /// Answers a review. The answer is written object by object, so that one object is decoded at a
    /// time.
    pub(crate) async fn handle(
        &self,
        body: &[u8],
        memory: impl ResponseMemory,
    ) -> Result<Bytes, HttpFailure> {
        let ConversionRequest { uid, desired, objects } = read(body)?;
        let objects = objects.unwrap_or_default().0;
        let mut output = Output { bytes: Vec::with_capacity(body.len()), memory };
        output.begin(&uid)?;
        match self.convert(&desired, &objects, &mut output).await? {
            Ok(()) => {
                output.write(br#"],"result":{"status":"Success"}}}"#)?;
                Ok(Bytes::from_owner(output))
            }
            Err(text) => {
                let text = cut(&text, LONGEST);
                tracing::warn!(kind = %self.versions.info().kind, "{text}");
                let review = json!({
                    "apiVersion": VERSION, "kind": KIND,
                    "response": {
                        "uid": uid, "convertedObjects": [],
                        "result": {
                            "status": "Failure", "message": text, "reason": "Invalid", "code": 422,
                        },
                    },
                });
                Ok(review.to_string().into())
            }
        }
    }

    /// Writes the converted objects; returns the reason against the first that has no equal.
    async fn convert<M: ResponseMemory>(
        &self,
        desired: &str,
        objects: &[&RawValue],
        output: &mut Output<M>,
    ) -> Result<Result<(), String>, HttpFailure> {
        let info = self.versions.info();
        let (group, version) = desired.split_once('/').unwrap_or(("", desired));
        if group != info.group {
            let text = format!("cannot convert to {desired:?}: {} is of {}", info.kind, info.group);
            return Ok(Err(text));
        }
        for (at, object) in objects.iter().enumerate() {
            if at > 0 {
                output.write(b",")?;
            }
            let turn = match object.get().len() > LARGE {
                true => self.permits.0.acquire().await.ok(),
                false => None,
            };
            match self.convert_one(object, version) {
                Ok(converted) => output.write_value(&converted)?,
                Err(text) => return Ok(Err(text)),
            }
            drop(turn);
            // A long list leaves room for other reviews, and for its deadline.
            tokio::task::yield_now().await;
        }
        Ok(Ok(()))
    }

    fn convert_one(&self, object: &RawValue, version: &str) -> Result<Value, String> {
        let kind = &self.versions.info().kind;
        let text = object.get();
        if text.len() > MAX_OBJECT || values(text) > MOST_VALUES {
            return Err(format!(
                "cannot convert a {kind} to {version}: it has {} bytes and {} values; at most {MAX_OBJECT} \
                 and {MOST_VALUES} are converted",
                text.len(),
                values(text),
            ));
        }
        let object: Value = serde_json::from_str(text)
            .map_err(|error| format!("cannot convert a {kind} to {version}: {error}"))?;
        let field = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let name = match field("namespace") {
            "" => field("name").to_owned(),
            namespace => format!("{namespace}/{}", field("name")),
        };
        let made = self.versions.convert(object, version);
        made.map_err(|error| format!("cannot convert {kind} {name:?} to {version}: {error}"))
    }
}

/// Returns at least the number of values in a text of JSON: those of commas and brackets.
fn values(text: &str) -> usize {
    let (mut count, mut is_in_text, mut is_escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in_text = !is_in_text,
            b',' | b'[' | b'{' if !is_in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// An answer that is being written.
struct Output<M> {
    bytes: Vec<u8>,
    memory: M,
}

impl<M> AsRef<[u8]> for Output<M> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<M: ResponseMemory> Output<M> {
    fn begin(&mut self, uid: &str) -> Result<(), HttpFailure> {
        let head = format!(r#"{{"apiVersion":"{VERSION}","kind":"{KIND}","response":{{"uid":"#);
        self.write(head.as_bytes())?;
        self.write_value(&Value::from(uid))?;
        self.write(br#","convertedObjects":["#)
    }

    fn write_value(&mut self, value: &Value) -> Result<(), HttpFailure> {
        let text = serde_json::to_vec(value).map_err(|error| {
            let text = format!("cannot write a converted object: {error}");
            HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
        })?;
        self.write(&text)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), HttpFailure> {
        let missing = (self.bytes.len() + bytes.len()).saturating_sub(self.bytes.capacity());
        if missing > 0 {
            let more = missing.max(GROWTH);
            let room = self.bytes.capacity() - self.bytes.len() + more;
            if !self.memory.grow(more) {
                let text = "the memory for converted objects is used by other reviews; ask again, or \
                            list in smaller pages";
                return Err(HttpFailure::new(StatusCode::SERVICE_UNAVAILABLE, text));
            }
            self.bytes.reserve_exact(room);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

fn read(body: &[u8]) -> Result<ConversionRequest<'_>, HttpFailure> {
    let bad = |text: String| HttpFailure::new(StatusCode::BAD_REQUEST, text);
    // The text of the error would quote values of objects.
    let review: Review<'_> = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        bad(format!("cannot read the body as {KIND} of {VERSION}: line {line}, column {column}"))
    })?;
    if review.api_version != VERSION || review.kind != KIND {
        return Err(bad(format!(
            "cannot read the body: it is {:?} of {:?}, and not {KIND} of {VERSION}",
            cut(&review.kind, LONGEST_NAME),
            cut(&review.api_version, LONGEST_NAME)
        )));
    }
    let Some(request) = review.request else {
        return Err(bad(format!("cannot answer the {KIND}: it has no request")));
    };
    if request.uid.is_empty() {
        return Err(bad(format!("cannot answer the {KIND}: its request has no uid")));
    }
    for (field, text) in [("uid", &request.uid), ("desiredAPIVersion", &request.desired)] {
        if text.len() > LONGEST_NAME {
            let length = text.len();
            return Err(bad(format!(
                "cannot answer the {KIND}: its {field} has {length} bytes; at most {LONGEST_NAME} are read"
            )));
        }
    }
    Ok(request)
}
