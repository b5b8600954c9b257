//! Clients that may do less: dry runs only, or one namespace only.
//!
//! Both are wrappers of the same connection and compose with each other, with a field manager and a
//! gate. They hold for every request of the client, whoever built it. They guard against mistakes;
//! what an operator may do at all is for RBAC to say.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::place::Place;
use super::{Client, Prepared};
use crate::error::{Error, ErrorKind};
use crate::resource::Scope;

/// Wrappers.
impl Client {
    /// The same connection; every write is checked and answered as usual, and nothing is stored
    /// (`dryRun=All`). Calls that are no writes of objects, such as `exec`, know no dry run and are
    /// not to be sent through it.
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
        if self.dry_run && request.verb.writes() {
            request.query.retain(|(name, _)| name != "dryRun");
            request.push_parameter("dryRun", "All");
            request.repeatable = true;
        }
        // The last wrapper gives the namespace, the earlier ones have their say after it.
        for namespace in self.bounds.iter().rev() {
            self.place(&mut request, namespace)?;
        }
        Ok(request)
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
        let mut path = request.path.as_str();
        if request.extra.from_root {
            let Some(below) = path.strip_prefix(self.shared.base_path()) else {
                return refuse(format!("`{path}` lies outside of the server's address"));
            };
            path = below;
        }
        if path.contains("//") || path.to_ascii_lowercase().contains("%2f") {
            return refuse(format!("`{path}` does not clearly name a namespace"));
        }
        let Some(place) = Place::of(path) else { return Ok(()) };
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
