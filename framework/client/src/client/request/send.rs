//! The end of the builder: sending a request, or showing it.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Uri};

use super::path_template;
use super::prepared::Prepared;
use super::response::Response;
use super::stream::ByteStream;
use super::watch::RawWatch;
use super::{PatchType, Request, UrlPrefix};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Scope, Verb};

impl Request {
    /// Sends the request and reads the whole answer, of at most 64 MiB; error answers become
    /// errors.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for the first mistake of the builder; otherwise those of
    /// [`Client::send`](crate::client::Client::send).
    /// # Cancel safety
    /// Dropping the future cancels the request; a write may have been executed.
    pub async fn send(&self) -> Result<Response, Error> {
        self.client.send(self.prepare()?).await
    }

    /// As [`send`](Self::send), but returns the body alone.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    /// # Cancel safety
    /// As of [`send`](Self::send).
    pub async fn send_raw(&self) -> Result<Bytes, Error> {
        Ok(self.send().await?.into_raw())
    }

    /// Sends the request and streams the answer's body, without a time limit; error answers become
    /// errors.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn stream(&self) -> Result<ByteStream, Error> {
        self.client.stream(self.prepare()?).await
    }

    /// Starts a watch; adds the parameter `watch=true`. A watch needs no permit of a rate limiter.
    ///
    /// When a server accepts the connection but does not answer, or closes the connection, until
    /// the retries are used up, the returned watch is empty: it ends at once, and the caller begins
    /// a new watch as after any other end.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), when there is no connection or the server refuses.
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn watch(&self) -> Result<RawWatch, Error> {
        let watch = self.client.watch(self.assemble(true)?).await?;
        Ok(self.response_limit.into_iter().fold(watch, RawWatch::limited))
    }

    /// Returns the absolute URL, with the query.
    ///
    /// The path of the server's address comes first, unless [`request_uri`](Request::request_uri)
    /// replaced that path.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for the first mistake of the builder.
    pub fn url(&self) -> Result<String, Error> {
        Ok(self.uri()?.to_string())
    }

    /// Returns the path with `{namespace}` and `{name}` in place of the values that differ from
    /// object to object, as in spans and logs.
    pub fn url_template(&self) -> String {
        path_template::template(&self.address.path())
    }

    /// Returns a `curl` command line that sends the same request, for people to read: without the
    /// client's credentials, and without contents of Secrets and tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for the first mistake of the builder.
    pub fn curl(&self) -> Result<String, Error> {
        self.client.curl(self.prepare()?)
    }

    /// Returns the request as plain data.
    ///
    /// The result is sent by [`Client::send`](crate::client::Client::send).
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for the first mistake of the builder.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        self.assemble(false)
    }

    /// Returns the absolute URI, after the restrictions of the client.
    fn uri(&self) -> Result<Uri, Error> {
        self.client.uri(self.prepare()?)
    }

    /// Checks the parts and returns the request as plain data; a watch gets the parameter `watch`.
    fn assemble(&self, watch: bool) -> Result<Prepared, Error> {
        let asked = self
            .params
            .iter()
            .any(|(name, value)| name == "watch" && matches!(value.as_str(), "true" | "1" | ""));
        // An apply may be repeated; a patch of another media type is no apply, regardless of the
        // code that built the patch.
        let media_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let apply = self.apply && media_type.and_then(PatchType::of) == Some(PatchType::Apply);
        let verb = self.address.verb(&self.method, apply, watch || asked);
        let what = self.words.clone().unwrap_or_else(|| self.address.what(&self.method, verb));
        let refuse = |why: &str| Error::new(ErrorKind::Usage, format!("cannot {what}: {why}"));
        if let Some(mistake) = &self.mistake {
            return Err(refuse(mistake));
        }
        self.address.preflight(&self.method).map_err(refuse)?;
        // Without a resource the name would take the resource's place in the path.
        if self.address.name.is_some() && self.address.resource.is_none() {
            return Err(refuse("it has a name and no resource; set `resource`"));
        }
        let method = self.method.clone();
        let mut prepared = Prepared::new(verb, method, self.address.path(), what);
        for (name, value) in &self.params {
            prepared.push_parameter(name.clone(), value);
        }
        if watch && !asked {
            prepared.push_parameter("watch", "true");
        }
        prepared.timeout = self.timeout;
        prepared.push_timeout();
        prepared.response_limit = self.response_limit;
        prepared.headers = self.headers.clone();
        if !self.content.is_empty() && !prepared.headers.contains_key(CONTENT_TYPE) {
            let media_type = self.client.content_type();
            if let Some(value) = HeaderValue::from_str(media_type).ok().filter(|v| !v.is_empty()) {
                prepared.headers.insert(CONTENT_TYPE, value);
            }
        }
        prepared.body = self.content.bytes.clone();
        prepared.repeatable = self.repeatable || !verb.writes() || verb == Verb::Apply;
        prepared.background = self.background;
        prepared.scope = self.scope();
        prepared.extra = self.extra.clone();
        prepared.extra.reader = self.content.reader.clone();
        // A reader can be read once: a second send would find an empty or truncated body.
        if prepared.extra.reader.is_some() && !prepared.is_sendable() {
            let text = "its body was read already; give each request a reader of its own";
            return Err(Error::new(ErrorKind::Usage, format!("cannot {}: {text}", prepared.what)));
        }
        Ok(prepared)
    }

    /// Returns the scope of the kind. A client that is restricted to a namespace takes a resource
    /// of unknown scope as namespaced, except `namespaces` themselves.
    fn scope(&self) -> Option<Scope> {
        let core = self.address.version.as_ref().is_none_or(|(group, _)| group.is_empty());
        let namespaces = core && self.address.resource.as_deref() == Some("namespaces");
        match (self.address.scope, &self.address.front) {
            // Namespaces themselves are cluster-scoped.
            (None, _) if namespaces => Some(Scope::Cluster),
            (None, UrlPrefix::Versioned(_)) if self.address.resource.is_some() => {
                self.client.is_bound().then_some(Scope::Namespaced)
            }
            (scope, _) => scope,
        }
    }
}
