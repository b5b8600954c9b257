//! Bodies of requests.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;

use crate::client::transport::{BodyReader, MAX_BODY, RequestBody};
use windlass_core::wire::times;

/// The body of a [`Request`](super::Request).
pub enum Body {
    /// The content of a file, of at most 64 MiB. The file is read at once, with a blocking call.
    File(PathBuf),
    /// Bytes.
    Bytes(Bytes),
    /// A stream that is read while the request is sent, at most 64 MiB. Such a request is sent
    /// once: after the first byte was read from the stream the request is not tried again,
    /// regardless of the outcome.
    Reader(BodyReader),
    /// An object; see [`Body::object`].
    Object(Encoded),
}

/// An object as JSON, or the reason for the failure.
pub struct Encoded(Result<Vec<u8>, serde_json::Error>);

impl Body {
    /// Encodes `object` as JSON and sets the content type. An object that is `null` is no body.
    pub fn object<T: Serialize + ?Sized>(object: &T) -> Self {
        Self::Object(Encoded(serde_json::to_vec(object).map(times::encoded)))
    }

    /// Wraps a reader whose content is sent while being read.
    pub fn reader(reader: impl tokio::io::AsyncRead + Send + Unpin + 'static) -> Self {
        Self::Reader(Box::new(reader))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Self {
        Self::Bytes(Bytes::from_static(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Bytes(text.into())
    }
}

/// The text, not the name of a file.
impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::Bytes(Bytes::from_static(text.as_bytes()))
    }
}

impl From<PathBuf> for Body {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
            Self::Object(object) => object.fmt(f),
        }
    }
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(bytes) => write!(f, "Object({} bytes)", bytes.len()),
            Err(error) => write!(f, "Object({error})"),
        }
    }
}

/// Body as the builder stores the value.
#[derive(Clone, Default)]
pub(super) struct BodyContent {
    /// Complete body; empty for a streamed body.
    pub(super) bytes: Bytes,
    /// Streamed body.
    pub(super) reader: Option<RequestBody>,
}

impl BodyContent {
    /// Reads files and encodes objects; an error text says how to correct the mistake.
    pub(super) fn of(body: Body) -> Result<Self, String> {
        match body {
            Body::Bytes(bytes) => Ok(Self { bytes, ..Self::default() }),
            Body::File(path) => Ok(Self { bytes: read_file(&path)?, ..Self::default() }),
            Body::Reader(reader) => {
                Ok(Self { reader: Some(RequestBody::streamed(reader)), ..Self::default() })
            }
            // `None` and `()` serialize to `null`, which means no body.
            Body::Object(Encoded(Ok(json))) if json == b"null" => Ok(Self::default()),
            Body::Object(Encoded(Ok(json))) => Ok(Self { bytes: json.into(), ..Self::default() }),
            Body::Object(Encoded(Err(error))) => Err(format!(
                "the object cannot be serialized as JSON: {error}; correct its Serialize"
            )),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.reader.is_none()
    }
}

impl fmt::Debug for BodyContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reader {
            Some(reader) => reader.fmt(f),
            None => write!(f, "{} bytes", self.bytes.len()),
        }
    }
}

/// Reads a file of at most `MAX_BODY` bytes.
fn read_file(path: &Path) -> Result<Bytes, String> {
    let unreadable = |error: std::io::Error| {
        format!("the body's file {} cannot be read: {error}", path.display())
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // A single byte beyond the limit is enough to notice a file that is too large.
    file.take(MAX_BODY + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BODY {
        let (path, limit) = (path.display(), MAX_BODY >> 20);
        return Err(format!("the body's file {path} is larger than {limit} MiB"));
    }
    Ok(bytes.into())
}
