//! Completes a draft as a [`Prepared`], sends the request and decodes the answer.
//!
//! A draft is completed for each attempt of a call anew, so that a refused metadata-only form can
//! be asked for again in the other form. A draft with a mistake never becomes a [`Prepared`]: no
//! request is sent for such a draft.

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::decode::Decoder;
use super::draft::Draft;
use crate::client::{Address, ByteStream, PatchType, Prepared, RawWatch, Verb};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ResourceInfo, Scope};

const JSON: &str = "application/json";
/// Accepts metadata alone; the whole object from servers without this ability.
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
/// The same for lists.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

impl Draft {
    /// The attempted operation, for error texts.
    fn what(&self) -> String {
        let verb = match self.verb() {
            Verb::Update => "replace",
            Verb::DeleteCollection => "delete all",
            other => other.as_str(),
        };
        match &self.subresource {
            Some(subresource) => format!("{verb} {subresource} of {}", self.noun),
            None => format!("{verb} {}", self.noun),
        }
    }

    /// The error of a list that would never end.
    pub(super) fn repeated_token(&self) -> Error {
        let text = format!(
            "cannot {}: the server gives the same continue token again and again",
            self.what()
        );
        Error::new(ErrorKind::Decode, text)
    }

    /// Returns the media type of the body.
    fn content_type(&self) -> Option<&'static str> {
        match self.verb() {
            Verb::Get | Verb::List | Verb::Watch => None,
            Verb::Create | Verb::Update => Some(JSON),
            Verb::Patch | Verb::Apply => Some(self.form.unwrap_or(PatchType::Merge).content_type()),
            Verb::Delete | Verb::DeleteCollection => {
                (!self.prepared.body.is_empty()).then_some(JSON)
            }
        }
    }

    /// Returns the media types of the answer, if they differ from the client's.
    fn accept(&self) -> Option<&'static str> {
        match self.verb() {
            Verb::Delete | Verb::DeleteCollection => None,
            Verb::List => self.metadata.then_some(METADATA_LIST),
            _ => self.metadata.then_some(METADATA),
        }
    }

    /// Returns the path, or the mistake in a part of the path.
    fn path(&self) -> Result<String, String> {
        let info = &self.target.info;
        let mut address = Address::default();
        address.set_version(&info.group, &info.version)?;
        address.set_resource(&info.plural)?;
        if let (Scope::Namespaced, Some(namespace)) = (info.scope, &self.namespace) {
            address.set_namespace(namespace)?;
        }
        if let Some(name) = &self.name {
            address.set_name(name)?;
        }
        if let Some(subresource) = &self.subresource {
            address.set_subresource(vec![subresource.clone()])?;
        }
        Ok(address.path())
    }

    /// Completes the request; the first mistake is reported.
    pub(crate) fn finish(&self) -> Result<Prepared, Error> {
        let what = self.what();
        let path = self.mistake.clone().map_or_else(|| self.path(), Err);
        let path = path.map_err(|mistake| Error::usage(format!("cannot {what}: {mistake}")))?;
        let mut prepared = Prepared { path, what, ..self.prepared.clone() };
        prepared.push_timeout();
        // A second execution of an apply sets the same fields again.
        prepared.repeatable |= self.verb() == Verb::Apply;
        let headers = [(CONTENT_TYPE, self.content_type()), (ACCEPT, self.accept())];
        for (name, value) in headers {
            prepared.headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
        }
        let part = self.subresource.as_ref().map(|part| format!("/{part}"));
        let kind = format!("{}{}", self.target.info.kind, part.unwrap_or_default());
        prepared.extra.kind = Some(kind.into());
        // A separate manager: backoff managers count the failures of a single request.
        prepared.extra.backoff = self.target.client.new_backoff();
        Ok(prepared)
    }

    /// Sends the request and decodes the answer.
    pub(crate) async fn send<T>(self, decode: Decoder<T>) -> Result<T, Error> {
        self.answered(decode).await.map(|(decoded, _)| decoded)
    }

    /// As [`send`](Self::send), with the undecoded answer: a type may hold only a part of the
    /// answer.
    pub(crate) async fn answered<T>(self, decode: Decoder<T>) -> Result<(T, Bytes), Error> {
        let (decoded, answer) = self.executed(decode).await?;
        Ok((decoded?, answer))
    }

    /// As [`answered`](Self::answered), for an executed request whose answer may not decode.
    pub(crate) async fn executed<T>(
        mut self,
        decode: Decoder<T>,
    ) -> Result<(Result<T, Error>, Bytes), Error> {
        let client = self.target.client.clone();
        let mut answer = client.send(self.finish()?).await;
        // Asked once more, for the whole object, of which the metadata is kept.
        if self.was_refused(&answer) {
            answer = client.send(self.finish()?).await;
        }
        let answer = answer.map_err(|error| self.explain(error))?;
        if let Some(on_response) = &self.on_response {
            on_response(&answer.body);
        }
        Ok((decode(&self.what(), &answer.body, &self.target.info), answer.body))
    }

    /// Sends the request and streams the answer's body.
    pub(crate) async fn stream(self) -> Result<ByteStream, Error> {
        let answer = self.target.client.stream(self.finish()?).await;
        answer.map_err(|error| self.explain(error))
    }

    /// Starts a watch; also returns the attempted operation, for error texts.
    pub(crate) async fn watch(mut self) -> Result<(String, RawWatch), Error> {
        let client = self.target.client.clone();
        let mut watch = client.watch(self.finish()?).await;
        // As in `executed`.
        if self.was_refused(&watch) {
            watch = client.watch(self.finish()?).await;
        }
        Ok((self.what(), watch?))
    }

    /// Whether the server refused the metadata-only form. The draft then asks for whole objects;
    /// the refused request was not executed.
    fn was_refused<T>(&mut self, answer: &Result<T, Error>) -> bool {
        let refused = matches!(answer, Err(error) if self.metadata && error.is_not_acceptable());
        self.metadata &= !refused;
        refused
    }

    /// Adds the meaning of a 404 or 405 of a subresource to the error.
    fn explain(&self, error: Error) -> Error {
        match &self.subresource {
            Some(subresource) => explain(error, &self.target.info, subresource),
            None => error,
        }
    }
}

/// Explains a failed request to a subresource.
fn explain(error: Error, info: &ResourceInfo, subresource: &str) -> Error {
    let kind = info.group_resource();
    // The API server names the object when the object is missing.
    let details = error.status().and_then(|status| status.details.as_ref());
    let named = details.is_some_and(|details| !details.name.is_empty());
    if error.is_method_not_supported() {
        error.note(&format!("`{subresource}` of {kind} does not take this verb"))
    } else if !error.is_not_found() {
        error
    } else if !named {
        error.note(&format!("{kind} seem to have no subresource `{subresource}`"))
    } else if is_custom(info) {
        // For custom resources the API server names the object whichever of the two is missing.
        error.note(&format!(
            "if it exists, {kind} have no subresource `{subresource}`: their definition must declare it"
        ))
    } else {
        error
    }
}

/// Whether the kind comes from a definition, by the name of the group.
fn is_custom(info: &ResourceInfo) -> bool {
    info.group.contains('.') && !info.group.ends_with(".k8s.io")
}
