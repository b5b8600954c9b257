//! Finds out what became of a write whose fate is unknown, by reading the object.
//!
//! The verdict speaks of the effect, not of who caused it: that the object is now as the write wanted
//! it, or that it shows nothing of the write. What neither shows is unknown, and the text says why.

mod judge;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use self::judge::{Verdict, judge, text};
use super::draft::{Draft, Target};
use super::{Api, Get, decode};
use crate::client::Verb;
use crate::error::{Doubt, Error, ErrorKind};
use crate::resource::{Resource, Scope};

/// What became of a write; see [`Api::settle`].
#[derive(Clone, Debug, PartialEq)]
pub enum Settled<K> {
    /// The object is as the write wanted it; for a deletion, it is marked for deletion.
    Happened(K),
    /// A deletion's object is not there any more, or another one has its name.
    Gone,
    /// The write had no effect when the object was read.
    NotHappened,
    /// The object does not tell; why, and what to do.
    Unknown(String),
}

impl<K: Resource> Api<K> {
    /// What became of the write that failed with the [ambiguous](Error::is_ambiguous) `error`: reads
    /// the object and compares it with what was sent.
    ///
    /// | the write | `Happened` | `NotHappened` |
    /// |---|---|---|
    /// | create | the object is there, not marked for deletion, and has every field that was sent | there is none |
    /// | replace | its version is another, and its content is what was sent, no more | it is at the version that was sent |
    /// | merge and strategic patch | its version is not the one that was sent, and it has every field as sent | it is at the version that was sent |
    /// | JSON patch | the same, of `add`, `replace` and `remove` outside of lists, values as a whole | it is at the version that was sent |
    /// | apply | the server lists the fields that were sent as this manager's, no other ones, and they are as sent | there is none, or it is at the version that was sent |
    /// | delete | it is marked for deletion; [`Gone`](Settled::Gone) without it, or with another uid than was sent | it is not marked, and has the uid or version that was sent |
    ///
    /// Of a write to `status` only the status counts; of others all but the status, which they may
    /// write too and which therefore must not differ from what they sent of it (but of a create).
    /// Fields that the server filled in or dropped make a replace or an apply unknown. Versions and
    /// uids can only be compared where the write carried them. Everything else is
    /// [`Unknown`](Settled::Unknown), such as a create with `generateName` (list by a label that only
    /// you set), the deletion of a collection, and other subresources.
    ///
    /// `NotHappened` is true of the moment of the read: an API server that still works on the write
    /// could yet execute it. It gives up after a minute (its `--request-timeout`); who must be certain
    /// asks again then. Writes that carry a version or uid are safe to repeat in any case.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::api::Settled;
    /// # async fn example(client: windlass::client::Client, map: ConfigMap) -> Result<(), windlass::Error> {
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
    /// [`ErrorKind::Usage`] when `error` leaves nothing to settle, or is about another kind, namespace
    /// or cluster; and those of the read.
    pub async fn settle(&self, error: &Error) -> Result<Settled<K>, Error> {
        let usage =
            |why: &str| Error::new(ErrorKind::Usage, format!("cannot settle `{error}`: {why}"));
        let doubt = error.doubt().filter(|_| error.is_ambiguous());
        let doubt = doubt.ok_or_else(|| usage("it leaves no doubt about a write"))?;
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
/// Where a write went.
struct Place {
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Place {
    /// `None` when `path` is not about the kind and namespace of `target`.
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

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

fn is_dry_run(doubt: &Doubt) -> bool {
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
