//! Finds out whether a write whose fate is unknown was executed, by reading the object.
//!
//! The verdict is about the effect and not about its cause: the object is now as the write wanted
//! it, or shows nothing of the write. Otherwise the fate stays unknown, and the text gives the
//! reason.

mod judge;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use self::judge::{Verdict, judge, text};
use super::draft::{Draft, Target};
use super::{Api, Get, decode};
use crate::client::Verb;
use crate::error::{Error, ErrorKind, UncertainWrite};
use crate::resource::{Resource, Scope};

/// Fate of a write; see [`Api::settle`].
#[derive(Clone, Debug, PartialEq)]
pub enum Settled<K> {
    /// The object is as the write wanted it; for a deletion, it is marked for deletion.
    Happened(K),
    /// The object of a deletion no longer exists, or another one has its name.
    Gone,
    /// The write had no effect when the object was read.
    NotHappened,
    /// The object does not show the fate; the text has the reason and the remedy.
    Unknown(String),
}

impl<K: Resource> Api<K> {
    /// Determines the fate of the write that failed with the [ambiguous](Error::is_ambiguous)
    /// `error`: reads the object and compares it with the request.
    ///
    /// [`Happened`](Settled::Happened) is the result when:
    ///
    /// - create: the object exists, is not marked for deletion, and has every field that was sent.
    /// - replace: its version is another, and its content is the one that was sent, no more.
    /// - merge and strategic patch: its version is not the one that was sent, and every field is as
    ///   sent.
    /// - JSON patch: the same, for `add`, `replace` and `remove` outside of lists, values whole.
    /// - apply: the server lists exactly the sent fields as this manager's, and they are as sent.
    /// - delete: the object is marked for deletion. Without an object, or with another uid than was
    ///   sent, the result is [`Gone`](Settled::Gone).
    ///
    /// [`NotHappened`](Settled::NotHappened) is the result when:
    ///
    /// - create: there is no object.
    /// - replace and patch: the object is at the version that was sent.
    /// - apply: there is no object, or it is at the version that was sent.
    /// - delete: the object is not marked, and has the uid or version that was sent.
    ///
    /// For a write to `status` only the status counts. For other writes everything but the status
    /// counts; they may write the status too, so it must not differ from the part that they sent
    /// (except for a create). Fields that the server filled in or dropped make a replace or an
    /// apply unknown. Versions and uids can only be compared if the write carried them. Everything
    /// else is [`Unknown`](Settled::Unknown), such as a create with `generateName` (list by a label
    /// that only you set), the deletion of a collection, and other subresources.
    ///
    /// `NotHappened` is true at the moment of the read: an API server that still works on the write
    /// could yet execute it. It gives up after a minute (its `--request-timeout`); a caller that
    /// must be certain asks again then. Writes that carry a version or uid are safe to repeat in
    /// any case.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::api::Settled;
    /// # async fn example(
    /// #     client: windlass::client::Client,
    /// #     map: ConfigMap,
    /// # ) -> Result<(), windlass::Error> {
    /// let maps = client.namespace::<ConfigMap>("shop");
    /// let created = match maps.create(&map).await {
    ///     Err(error) if error.is_ambiguous() => match maps.settle(&error).await? {
    ///         Settled::Happened(map) => map,
    ///         Settled::NotHappened => maps.create(&map).await?,
    ///         _ => return Err(error),
    ///     },
    ///     result => result?,
    /// };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when `error` is not about an ambiguous write, or about another kind,
    /// namespace or cluster; and those of the read.
    pub async fn settle(&self, error: &Error) -> Result<Settled<K>, Error> {
        let usage =
            |why: &str| Error::new(ErrorKind::Usage, format!("cannot settle `{error}`: {why}"));
        let doubt = error.doubt().filter(|_| error.is_ambiguous());
        let doubt = doubt.ok_or_else(|| usage("it leaves no doubt about a write"))?;
        // Uids and versions are comparable within one cluster only.
        if doubt.host != self.client().host() {
            return Err(usage("it is about another API server"));
        }
        let place = Place::of(&doubt.path, &self.target)
            .ok_or_else(|| usage("it is about another kind or namespace"))?;
        let sent: Value = serde_json::from_slice(&doubt.body).unwrap_or_default();
        let name = match place.name.or_else(|| text(&sent, "/metadata/name")) {
            Some(name) => name,
            None => return Ok(Settled::Unknown(NAMELESS.to_owned())),
        };
        // A dry run stores nothing.
        if is_dry_run(doubt) {
            return Ok(Settled::NotHappened);
        }
        let status = match place.subresource.as_deref() {
            None => false,
            Some("status") => true,
            Some(other) => return Ok(Settled::Unknown(format!("read the subresource `{other}`"))),
        };
        let target =
            Target { namespace: place.namespace, metadata: false, ..(*self.target).clone() };
        let draft = Draft::named(&target.into(), Verb::Get, &name);
        let stored = Get::<Value>::new(draft, decode::value).opt().await?;
        Ok(match judge(doubt, &sent, stored.as_ref(), status) {
            Verdict::Happened => {
                let body = stored.unwrap_or_default().to_string();
                let what = format!("settle {}", self.target.noun(&name));
                Settled::Happened(decode::object(&what, body.as_bytes(), self.info())?)
            }
            Verdict::Gone => Settled::Gone,
            Verdict::NotHappened => Settled::NotHappened,
            Verdict::Unknown(why) => Settled::Unknown(why.to_owned()),
        })
    }
}

const NAMELESS: &str = "the server was to choose the name, or there were many objects: list them by \
                        a label that only you set";
/// The object that a request path addresses.
struct Place {
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Place {
    /// Parses `path`; `None` when it is not about the kind and namespace of `target`.
    fn of(path: &str, target: &Target) -> Option<Self> {
        let info = &target.info;
        let root = info.collection_path(None);
        let mut rest = path.strip_prefix(root.strip_suffix(info.plural.as_ref())?)?;
        let mut namespace = None;
        if info.scope == Scope::Namespaced {
            let (in_it, behind) = rest.strip_prefix("namespaces/")?.split_once('/')?;
            (namespace, rest) = (Some(decoded(in_it)), behind);
            if target.namespace.is_some() && target.namespace != namespace {
                return None;
            }
        }
        let mut segments = rest.strip_prefix(info.plural.as_ref())?.splitn(3, '/');
        if !segments.next()?.is_empty() {
            return None;
        }
        Some(Self {
            namespace,
            name: segments.next().map(decoded),
            subresource: segments.next().map(str::to_owned),
        })
    }
}

/// A segment of a path or query without percent escapes.
fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

/// Whether the write was a dry run.
fn is_dry_run(doubt: &UncertainWrite) -> bool {
    doubt.query.split('&').any(|parameter| parameter == "dryRun=All")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_the_path_of_its_kind_only() {
        let info = crate::resource::ResourceInfo::of::<k8s_openapi::api::apps::v1::Deployment>();
        let mut target = Target::new(crate::client::Client::offline(), Some(info), None);
        let of = |path: &str, target: &Target| {
            Place::of(path, target).map(|place| (place.namespace, place.name, place.subresource))
        };
        let s = |text: &str| Some(text.to_owned());
        let root = "/apis/apps/v1/namespaces/shop";
        let all = format!("{root}/deployments");
        assert_eq!(of(&all, &target), Some((s("shop"), None, None)));
        let status = format!("{root}/deployments/web/status");
        assert_eq!(of(&status, &target), Some((s("shop"), s("web"), s("status"))));
        assert_eq!(of(&format!("{root}/deploymentsx/web"), &target), None);
        assert_eq!(of("/api/v1/namespaces/shop/pods/web", &target), None);
        target.namespace = s("other");
        assert_eq!(of(&all, &target), None);
    }
}
