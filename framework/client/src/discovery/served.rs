//! Waits until a kind is served.
//!
//! A new definition is served in steps: first the group version lists the kind, and only some
//! hundred milliseconds later the aggregated document does. The wait is for both, so that a lookup
//! right afterwards finds the kind.

use std::time::Duration;

use super::Discovery;
use super::catalog::ApiVersion;
use super::document::{GroupVersion, is_segment};
use super::fetch::{VERSION_TIMEOUT, group_version};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceInfo;

/// Bounds of the pause between two checks, which doubles in between.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The kind that should be served.
pub(super) struct WantedKind<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    /// Expected plural and scope, if known.
    pub(super) resource: Option<&'a ResourceInfo>,
}

impl<'a> WantedKind<'a> {
    pub(super) fn of(info: &'a ResourceInfo) -> Self {
        let ResourceInfo { group, version, kind, .. } = info;
        Self { group, version, kind, resource: Some(info) }
    }

    /// Name of the kind in error texts.
    fn describe(&self) -> String {
        match self.group {
            "" => format!("{} of {}", self.kind, self.version),
            group => format!("{} of {group}/{}", self.kind, self.version),
        }
    }

    /// Finds the resource in `version`; the error describes the other resources there.
    fn in_version(&self, version: &ApiVersion) -> Result<ResourceInfo, String> {
        let mut of_kind = version.resources.iter().filter(|r| r.info.kind == self.kind);
        let found = match self.resource {
            Some(wanted) => {
                let first = of_kind.next();
                let exact = version.resources.iter().find(|r| r.info == *wanted);
                // The kind exists under another plural or scope: the path would be wrong.
                if let (None, Some(other)) = (exact, first) {
                    let (plural, scope) = (&other.info.plural, other.info.scope);
                    return Err(format!("the kind is served as {plural:?} with scope {scope:?}"));
                }
                exact
            }
            None => of_kind.next(),
        };
        let known = || {
            let kinds: Vec<&str> =
                version.resources.iter().take(8).map(|r| &*r.info.kind).collect();
            format!("{} serves {kinds:?}, not this kind", version.api_version())
        };
        found.map(|found| found.info.clone()).ok_or_else(known)
    }
}

/// Checks at once, then with growing pauses, until `limit` is over.
pub(super) async fn wait(
    discovery: &Discovery,
    wanted: &WantedKind<'_>,
    limit: Duration,
) -> Result<ResourceInfo, Error> {
    let WantedKind { group, version, .. } = wanted;
    if (!group.is_empty() && !is_segment(group)) || !is_segment(version) {
        let text = format!(
            "cannot wait for {}: {group:?} and {version:?} are no group and version",
            wanted.describe()
        );
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let mut seen = LastCheck::default();
    let clock = discovery.client.environment().clock.clone();
    match clock.timeout(limit, look(discovery, wanted, &mut seen)).await {
        Some(info) => Ok(info),
        None => {
            let text = format!(
                "{} was not served within {limit:?}; seen last: {}; is its definition installed \
                 and established?",
                wanted.describe(),
                if seen.text.is_empty() { "no answer" } else { &seen.text }
            );
            let error = Error::new(ErrorKind::Timeout, text);
            Err(match seen.error {
                Some(cause) => error.because(cause),
                None => error,
            })
        }
    }
}

/// Result of the last check, for the error at the limit.
#[derive(Default)]
struct LastCheck {
    text: String,
    error: Option<Error>,
}

impl LastCheck {
    /// Stores a failed check, whose error becomes the cause at the limit.
    fn error(&mut self, error: Error) {
        let text = match error.kind() {
            ErrorKind::NotFound => "the group version is not served",
            _ => "an error",
        };
        *self = Self { text: text.to_owned(), error: Some(error) };
    }

    /// Stores a check that was answered, but not by the kind.
    fn text(&mut self, text: String) {
        *self = Self { text, error: None };
    }
}

/// Checks until the kind is served.
async fn look(
    discovery: &Discovery,
    wanted: &WantedKind<'_>,
    seen: &mut LastCheck,
) -> ResourceInfo {
    let client = &discovery.client;
    let named = GroupVersion { group: wanted.group.to_owned(), version: wanted.version.to_owned() };
    let mut pause = FIRST_PAUSE;
    loop {
        // The group version first: that document lists a new kind earlier than the aggregated
        // document, and a whole catalog is read only afterwards.
        match group_version(client, &named, VERSION_TIMEOUT).await {
            Ok(version) => match wanted.in_version(&version) {
                Ok(info) => match discovery.refresh().await {
                    Ok(catalog) if catalog.serves(&info) => return info,
                    Ok(_) => seen.text(format!(
                        "{} lists it, the catalog of all groups does not yet",
                        version.api_version()
                    )),
                    Err(error) => seen.error(error),
                },
                Err(text) => seen.text(text),
            },
            Err(error) => seen.error(error),
        }
        let environment = client.environment();
        // Jitter: waiters of the same definition do not check at the same moment.
        environment.clock.sleep(pause / 2 + environment.rng.jitter(pause / 2)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
