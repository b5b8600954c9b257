//! Restricted handles of a client: dry runs only, or a single namespace only.
//!
//! Both share the client's connections and can be combined with each other, with a field manager
//! and with a gate. They hold for every request of the handle, also for requests that the caller
//! assembled. They guard against mistakes; permissions are the task of RBAC.

use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::path_template::ApiPath;
use crate::client::Client;
use crate::client::request::Prepared;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::Scope;

/// Subresources whose connection leads to a program that has no dry run.
const CONNECTIONS: &[&str] = &["exec", "attach", "portforward"];
/// Subresource whose writes have no dry run; reads are harmless.
const PROXY: &str = "proxy";

/// Restrictions.
impl Client {
    /// Returns a handle whose writes are checked and answered as usual, but not stored
    /// (`dryRun=All`). Requests without a dry run fail as [`ErrorKind::Usage`] before they are
    /// sent: `exec`, `attach` and `portforward`, writes through `proxy`, and writes outside of the
    /// versioned API.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self { dry_run: true, ..self.clone() }
    }

    /// Returns whether all writes of this handle are dry runs.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Returns a handle for namespaced kinds in `namespace` only. A request without a namespace
    /// gets `namespace`, and a request for another namespace fails as [`ErrorKind::Usage`] before
    /// sending. Cluster-scoped kinds and paths outside of the versioned API pass.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let bounds = self.bounds.iter().cloned().chain([Arc::from(namespace)]).collect();
        Self { bounds, ..self.clone() }
    }

    /// Returns the namespace that this handle is [restricted](Self::in_namespace) to.
    pub fn bound_namespace(&self) -> Option<&str> {
        self.bounds.last().map(|namespace| &**namespace)
    }

    /// Returns whether the handle is restricted to a namespace.
    pub(in crate::client) fn is_bound(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Applies the restrictions to a request, or refuses it.
    pub(in crate::client) fn apply_restrictions(
        &self,
        mut request: Prepared,
    ) -> Result<Prepared, Error> {
        check_method(&request)?;
        if self.dry_run {
            self.make_dry_run(&mut request)?;
        }
        say_so_in_body(&mut request)?;
        // The latest restriction sets the namespace; the earlier restrictions check it.
        for namespace in self.bounds.iter().rev() {
            self.place(&mut request, namespace)?;
        }
        Ok(request)
    }

    /// Turns a write into a dry run.
    fn make_dry_run(&self, request: &mut Prepared) -> Result<(), Error> {
        if let Some(why) = self.knows_no_dry_run(request) {
            let text = format!(
                "cannot {}: {why}, and this client makes dry runs only; use the one that it was \
                 made from",
                request.what
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if request.verb.writes() {
            // A value of the caller's must not take precedence.
            request.query.retain(|(name, _)| name != "dryRun");
            request.push_parameter("dryRun", "All");
            // Nothing is stored, so a second execution does no harm.
            request.repeatable = true;
        }
        Ok(())
    }

    /// Returns the reason why a request cannot be a dry run, if there is any.
    fn knows_no_dry_run(&self, request: &Prepared) -> Option<String> {
        let path = &request.path;
        let below = self.below(request);
        if is_disguised(path) {
            return Some(format!("`{path}` contains percent-encoding that is not needed"));
        }
        let place = below.and_then(ApiPath::of).filter(|place| !place.rest.is_empty());
        let Some(place) = place else {
            let why = || {
                format!("`{path}` is not an object of the API, so a dry run means nothing there")
            };
            return request.verb.writes().then(why);
        };
        let subresource = place.subresource()?;
        let connects = CONNECTIONS.contains(&subresource);
        let writes = request.verb.writes() && subresource == PROXY;
        (connects || writes).then(|| format!("`{subresource}` knows no dry run"))
    }

    /// Returns the path below the server's address; `None` when the path lies outside.
    pub(in crate::client) fn below<'a>(&self, request: &'a Prepared) -> Option<&'a str> {
        match request.extra.from_root {
            true => request.path.strip_prefix(self.shared.base_path()),
            false => Some(&request.path),
        }
    }

    /// Puts a request into `namespace`, or refuses it.
    fn place(&self, request: &mut Prepared, namespace: &str) -> Result<(), Error> {
        let refuse = |why: String| {
            let what = &request.what;
            let text = format!(
                "cannot {what}: {why}; this client is bound to namespace {namespace:?}, so use the \
                 one that it was made from"
            );
            Err(Error::new(ErrorKind::Usage, text))
        };
        if !is_namespace(namespace) {
            return refuse("that is not a namespace".into());
        }
        let Some(path) = self.below(request) else {
            return refuse(format!("`{}` lies outside of the server's address", request.path));
        };
        // Such a path could mean different namespaces here and to the server.
        let is_unclear = path.contains("//")
            || path.to_ascii_lowercase().contains("%2f")
            || (is_disguised(path)
                && ApiPath::of(path).is_none_or(|place| place.namespace.is_none()));
        if is_unclear {
            return refuse(format!("`{path}` does not clearly name a namespace"));
        }
        let Some(place) = ApiPath::of(path) else { return Ok(()) };
        // The old form `/api/v1/watch/…` has the namespace at another position.
        if place.rest == "watch" || place.rest.starts_with("watch/") {
            return refuse(format!(
                "`{path}` is an old form of a watch; use the parameter `watch`"
            ));
        }
        let namespaces = place.rest == "namespaces" || place.rest.starts_with("namespaces/");
        match (place.namespace, request.scope) {
            (Some(named), _) => match percent_decode_str(named).decode_utf8_lossy() {
                named if named == namespace => Ok(()),
                named => refuse(format!("it is in namespace {named:?}")),
            },
            (None, Some(Scope::Cluster)) => Ok(()),
            (None, _) if place.rest.is_empty() || namespaces => Ok(()),
            (None, Some(Scope::Namespaced)) => {
                let front = request.path.len() - path.len();
                request.path = format!("{}{}", &request.path[..front], place.within(namespace));
                Ok(())
            }
            (None, None) => refuse("it does not say whether its kind lives in namespaces".into()),
        }
    }
}

/// Refuses methods that write under a verb that only reads: gates, dry runs and retries rely on the
/// verb.
fn check_method(request: &Prepared) -> Result<(), Error> {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&request.method);
    if reads || request.verb.writes() {
        return Ok(());
    }
    let (what, method, verb) = (&request.what, &request.method, request.verb.as_str());
    let text = format!("cannot {what}: {method} writes, and the verb `{verb}` only reads");
    Err(Error::new(ErrorKind::Usage, text))
}

/// Sets `dryRun` in the body of a deletion, too. API servers take the options of a deletion from
/// the body, and from the query only without a body: without the option in the body a dry run would
/// delete.
fn say_so_in_body(request: &mut Prepared) -> Result<(), Error> {
    let has_reader = request.extra.reader.is_some();
    let is_dry_run = request.parameter("dryRun").is_some_and(|value| !value.is_empty());
    if request.method != Method::DELETE || !is_dry_run || (request.body.is_empty() && !has_reader) {
        return Ok(());
    }
    let options = serde_json::from_slice::<Map<String, Value>>(&request.body).ok();
    let Some(mut options) = options.filter(|_| !has_reader) else {
        let text = format!(
            "cannot {}: the body of a deletion that is a dry run has to say so, and this one is not a \
             DeleteOptions as JSON",
            request.what
        );
        return Err(Error::new(ErrorKind::Usage, text));
    };
    options.insert("dryRun".to_owned(), json!(["All"]));
    request.body = Value::Object(options).to_string().into();
    Ok(())
}

/// Returns whether a path encodes letters, digits or other characters that need no encoding. A
/// server would decode the path, while proxies and these checks would see another path.
fn is_disguised(path: &str) -> bool {
    path.split('%').skip(1).any(|rest| {
        let byte = rest.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_none_or(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte))
    })
}

/// Returns whether `text` can be a namespace in a path.
fn is_namespace(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !matches!(text, "" | "." | "..") && text.bytes().all(fits)
}
