//! Clients that may do less: dry runs only, or one namespace only.
//!
//! Both are wrappers of the same connection and compose with each other, with a field manager and a
//! gate. They hold for every request of the client, whoever built it. They guard against mistakes;
//! what an operator may do at all is for RBAC to say.

use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::place::Place;
use super::{Client, Prepared};
use crate::error::{Error, ErrorKind};
use crate::resource::Scope;

/// Subresources that hand a connection on to somebody who knows no dry run.
const CONNECTIONS: &[&str] = &["exec", "attach", "portforward"];
/// The same, where reading is harmless.
const PROXY: &str = "proxy";

/// Wrappers.
impl Client {
    /// The same connection; every write is checked and answered as usual, and nothing is stored
    /// (`dryRun=All`). What knows no dry run fails as [`ErrorKind::Usage`] before it is sent: `exec`,
    /// `attach` and `portforward`, writes through `proxy`, and writes outside of the versioned API.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self { dry_run: true, ..self.clone() }
    }

    /// Does every write of this client only pretend?
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// The same connection, for namespaced kinds in `namespace` only: a request that names no
    /// namespace gets this one, and one that names another fails as [`ErrorKind::Usage`] before it is
    /// sent. Cluster-scoped kinds and paths outside of the versioned API pass.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let bounds = self.bounds.iter().cloned().chain([Arc::from(namespace)]).collect();
        Self { bounds, ..self.clone() }
    }

    /// The namespace that this client is [bound](Self::in_namespace) to.
    pub fn bound_namespace(&self) -> Option<&str> {
        self.bounds.last().map(|namespace| &**namespace)
    }

    pub(super) fn is_bound(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// The request as the wrappers let it pass.
    pub(super) fn dress(&self, mut request: Prepared) -> Result<Prepared, Error> {
        check_method(&request)?;
        if self.dry_run {
            self.pretend(&mut request)?;
        }
        say_so_in_body(&mut request)?;
        // The last wrapper gives the namespace, the earlier ones have their say after it.
        for namespace in self.bounds.iter().rev() {
            self.place(&mut request, namespace)?;
        }
        Ok(request)
    }

    /// Makes a dry run of a write.
    fn pretend(&self, request: &mut Prepared) -> Result<(), Error> {
        if let Some(why) = self.knows_no_dry_run(request) {
            let text = format!(
                "cannot {}: {why}, and this client makes dry runs only; use the one that it was \
                 made from",
                request.what
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if request.verb.writes() {
            request.query.retain(|(name, _)| name != "dryRun");
            request.push_parameter("dryRun", "All");
            request.repeatable = true;
        }
        Ok(())
    }

    fn knows_no_dry_run(&self, request: &Prepared) -> Option<String> {
        let path = &request.path;
        let below = self.below(request);
        if is_disguised(path) {
            return Some(format!("`{path}` encodes what needs no encoding"));
        }
        let place = below.and_then(Place::of).filter(|place| !place.rest.is_empty());
        let Some(place) = place else {
            let why =
                || format!("`{path}` is no object of the API, so a dry run means nothing there");
            return request.verb.writes().then(why);
        };
        let subresource = place.subresource()?;
        let connects = CONNECTIONS.contains(&subresource);
        let writes = request.verb.writes() && subresource == PROXY;
        (connects || writes).then(|| format!("`{subresource}` knows no dry run"))
    }

    /// The path below the server's address; `None` when it lies outside.
    fn below<'a>(&self, request: &'a Prepared) -> Option<&'a str> {
        match request.extra.from_root {
            true => request.path.strip_prefix(self.shared.base_path()),
            false => Some(&request.path),
        }
    }

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
            return refuse("that is no namespace".into());
        }
        let Some(path) = self.below(request) else {
            return refuse(format!("`{}` lies outside of the server's address", request.path));
        };
        let is_unclear = path.contains("//")
            || path.to_ascii_lowercase().contains("%2f")
            || (is_disguised(path)
                && Place::of(path).is_none_or(|place| place.namespace.is_none()));
        if is_unclear {
            return refuse(format!("`{path}` does not clearly name a namespace"));
        }
        let Some(place) = Place::of(path) else { return Ok(()) };
        // `/api/v1/watch/…`, which is older than the parameter `watch`.
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

/// Gates, dry runs and retries go by the verb, so the method may not do more than it says.
fn check_method(request: &Prepared) -> Result<(), Error> {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&request.method);
    if reads || request.verb.writes() {
        return Ok(());
    }
    let (what, method, verb) = (&request.what, &request.method, request.verb.as_str());
    let text = format!("cannot {what}: {method} writes, and the verb `{verb}` only reads");
    Err(Error::new(ErrorKind::Usage, text))
}

/// API servers take the options of a deletion from its body, and from the query only when there is
/// no body: a dry run that the body does not know of would delete.
fn say_so_in_body(request: &mut Prepared) -> Result<(), Error> {
    let has_reader = request.extra.reader.is_some();
    let is_dry_run = request.parameter("dryRun").is_some_and(|value| !value.is_empty());
    if request.method != Method::DELETE || !is_dry_run || (request.body.is_empty() && !has_reader) {
        return Ok(());
    }
    let options = serde_json::from_slice::<Map<String, Value>>(&request.body).ok();
    let Some(mut options) = options.filter(|_| !has_reader) else {
        let text = format!(
            "cannot {}: the body of a deletion that is a dry run has to say so, and this one is no \
             DeleteOptions as JSON",
            request.what
        );
        return Err(Error::new(ErrorKind::Usage, text));
    };
    options.insert("dryRun".to_owned(), json!(["All"]));
    request.body = Value::Object(options).to_string().into();
    Ok(())
}

/// Does a path encode letters, digits or other characters that need no encoding? A server reads it
/// as another path than those who look at it on the way.
fn is_disguised(path: &str) -> bool {
    path.split('%').skip(1).any(|rest| {
        let byte = rest.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_none_or(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte))
    })
}

fn is_namespace(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !matches!(text, "" | "." | "..") && text.bytes().all(fits)
}
