//! Error of a failed reconcile.
//!
//! A failure consists of an error, the operations that were attempted when the error occurred, and
//! a retry schedule. The schedule is chosen where the error is made, because only that code knows
//! whether a repetition can help; the worker that ends the reconcile reads the schedule.

// DESIGN.md, 1: One opaque `Error` with a kind, and `Failure` for reconcilers

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::action::Wait;
use windlass_core::error::{BoxError, Error, ErrorKind};
use windlass_core::rbac::Rule;

/// A failed reconcile. Any error becomes a failure through `?`; a failure is retried with backoff
/// unless its schedule says otherwise.
///
/// The attempted operations are kept with the error, and shown outermost first in log, Event and
/// condition:
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::controller::{Failure, ResultExt};
///
/// fn port(text: &str) -> Result<u16, Failure> {
///     text.parse::<u16>().tried("reading the port")
/// }
/// let failure = port("x").tried("building the Service").unwrap_err();
/// let text = "building the Service: reading the port: invalid digit found in string";
/// assert_eq!(failure.to_string(), text);
/// ```
///
/// The schedule of the next attempt depends on the constructor:
///
/// | made by | next attempt |
/// |---|---|
/// | `?` or `Failure::from` | after the backoff of the [`RetryPolicy`](crate::workqueue::RetryPolicy) |
/// | [`retry_after`](Self::retry_after) | after the given delay, without counting as a failure |
/// | [`terminal`](Self::terminal) | when the object changes |
/// | [`wait_for`](Self::wait_for) | with the checks of a wait; not a failure at all |
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use std::time::Duration;
/// use windlass::controller::Failure;
///
/// fn check(replicas: i32, is_database_up: bool) -> Result<(), Failure> {
///     if replicas < 0 {
///         // A retry reads the same spec: only a change of the object helps.
///         return Err(Failure::terminal("spec.replicas is negative"));
///     }
///     if !is_database_up {
///         // Expected for a while, and no reason to slow down.
///         return Err(Failure::retry_after(Duration::from_secs(10), "the database starts"));
///     }
///     Ok(())
/// }
/// assert!(check(-1, true).unwrap_err().is_terminal());
/// assert!(!check(1, false).unwrap_err().is_terminal());
/// ```
pub struct Failure {
    /// The error that ended the reconcile.
    pub(crate) source: BoxError,
    /// Schedule of the next attempt.
    pub(crate) retry: Retry,
    /// Attempted operations, innermost first.
    tried: Vec<Cow<'static, str>>,
    /// The other failures of a group of steps that ran at the same time: this failure represents
    /// the group, and the text names all.
    beside: Vec<Self>,
    /// Whether the retries are used up. Set by the worker, which counts them.
    pub(in crate::controller) gave_up: bool,
    /// Wait of a reconcile in which nothing failed. The wait's text is the error's.
    wait: Option<Box<Wait>>,
}

/// Retry schedule of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// After the delay of the controller's retry policy.
    Backoff,
    /// After this delay; not counted as a failure in a row.
    After(Duration),
    /// Not before a change.
    Never,
    /// By the checks of a wait.
    Waiting,
}

impl Failure {
    /// Creates a failure without attempted operations.
    fn new(source: BoxError, retry: Retry) -> Self {
        Self { source, retry, tried: Vec::new(), beside: Vec::new(), gave_up: false, wait: None }
    }

    /// Creates a failure that is not retried until the object changes.
    ///
    /// controller-runtime's `reconcile.TerminalError`. For a spec that cannot be carried out, or a
    /// request that the API server refuses because of the content. A resync or a timer still
    /// reconciles the object.
    pub fn terminal(source: impl Into<BoxError>) -> Self {
        Self::new(source.into(), Retry::Never)
    }

    /// Creates a failure that is retried after `delay` instead of the backoff. For operations that
    /// are known to take their time: such failures are not counted, and the object is never given
    /// up for them.
    ///
    /// Equivalent to a requeue with an error text: the text reaches log, Event and condition, as
    /// that of every failure does. A zero delay leads to an attempt at once; use at least a second
    /// for systems that are polled.
    pub fn retry_after(delay: Duration, source: impl Into<BoxError>) -> Self {
        Self::new(source.into(), Retry::After(delay))
    }

    /// Ends a reconcile or a clean-up that waits, from any depth:
    /// [`Action::wait_for`](crate::controller::Action::wait_for) for functions that return no
    /// action.
    ///
    /// A wait is neither counted nor logged as an error, and no
    /// [`OnFailure`](crate::controller::OnFailure) is called.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// use windlass::controller::Failure;
    ///
    /// /// Ends a clean-up when the last backup is written.
    /// fn cleanup(backups_left: usize) -> Result<(), Failure> {
    ///     if backups_left > 0 {
    ///         return Err(Failure::wait_for("Backup", format!("{backups_left} backups are being written")));
    ///     }
    ///     Ok(())
    /// }
    /// assert!(cleanup(2).unwrap_err().is_wait());
    /// ```
    pub fn wait_for(reason: impl Into<Cow<'static, str>>, text: impl fmt::Display) -> Self {
        let mut failure = Self::new(text.to_string().into(), Retry::Waiting);
        failure.wait = Some(Box::new(Wait::new(reason, String::new())));
        failure
    }

    /// Sets the delay of the next check of a [wait](Self::wait_for); no effect on a failure.
    #[must_use]
    pub fn check_after(mut self, delay: Duration) -> Self {
        if let Some(wait) = &mut self.wait {
            wait.check_after = Some(delay);
        }
        self
    }

    /// Whether this is a [wait](Self::wait_for), and nothing failed.
    pub fn is_wait(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns the reason of a wait; `None` for a failure.
    pub(crate) fn wait_reason(&self) -> Option<&str> {
        self.wait.as_ref().map(|wait| &*wait.reason)
    }

    /// Returns the wait, with the attempted operations in its text; the failure itself if there is
    /// no wait.
    pub(crate) fn into_wait(mut self) -> Result<Box<Wait>, Self> {
        match self.wait.take() {
            Some(mut wait) => {
                wait.text = self.to_string();
                Ok(wait)
            }
            None => Err(self),
        }
    }

    /// Adds the attempted operation in front of the known ones: `"creating the Deployment"`.
    ///
    /// Operations are shown outermost first, so the text reads as a path from the reconcile to the
    /// error. Write them as a gerund with an object, without a final colon.
    #[must_use]
    pub fn tried(mut self, what: impl Into<Cow<'static, str>>) -> Self {
        self.tried.push(what.into());
        self
    }

    /// Appends the missing grant, as written in `can(…)`, to the text of a request that RBAC
    /// refused. For a grant among `declared` it says that the cluster's Role is outdated.
    pub(in crate::controller) fn naming_missing_grant(mut self, declared: &[Rule]) -> Self {
        if let Some(error) = self.source.downcast_mut::<Error>()
            && let Some(grant) = error.missing_grant()
        {
            // A grant of names permits no other name, and the error does not show which names a
            // controller has: the text shows the form for this one.
            let details = error.status().and_then(|status| status.details.as_ref());
            let name = details.map(|details| details.name.as_str());
            let of_name = name.filter(|name| !name.is_empty() && !grant.contains('/'));
            let of_name =
                of_name.map(|name| format!(", or `can({grant}[{name:?}])` for this name,"));
            let note = if is_declared(declared, error, grant) {
                format!(
                    "the controller declares the grant `{grant}`, and the Role in the cluster does not have it: apply the \
                     printed Role of this version again"
                )
            } else {
                format!(
                    "the Role of the operator does not permit it: add `can({grant})`{} to \
                     `#[controller(…)]`, and apply the printed Role again",
                    of_name.unwrap_or_default()
                )
            };
            let unnoted = std::mem::replace(error, Error::new(ErrorKind::Forbidden, ""));
            *error = unnoted.note(&note);
        }
        let beside = self.beside.into_iter();
        self.beside = beside.map(|other| other.naming_missing_grant(declared)).collect();
        self
    }

    /// Adds a failure of a step that ran concurrently; its text is appended.
    pub(in crate::controller) fn and(mut self, other: Self) -> Self {
        self.beside.push(other);
        self
    }

    /// Failures of steps that ran concurrently.
    pub(in crate::controller) fn beside(&self) -> &[Self] {
        &self.beside
    }

    /// The attempted operations, outermost first.
    ///
    /// Useful as a label of a metric: the texts are short and few, unlike those of errors.
    pub fn attempts(&self) -> impl Iterator<Item = &str> {
        self.tried.iter().rev().map(AsRef::as_ref)
    }

    /// The error; the causes are behind `source()`.
    ///
    /// Downcast the cause to react to a certain error:
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// use windlass::controller::Failure;
    ///
    /// let failure = Failure::from(std::io::Error::other("disk full")).tried("writing the report");
    /// assert!(failure.cause().downcast_ref::<std::io::Error>().is_some());
    /// ```
    pub fn cause(&self) -> &(dyn std::error::Error + 'static) {
        &*self.source
    }

    /// Whether there is no retry until the object changes.
    ///
    /// True for failures of [`terminal`](Self::terminal) only; see [`gave_up`](Self::gave_up) for
    /// the end of counted retries.
    pub fn is_terminal(&self) -> bool {
        self.retry == Retry::Never
    }

    /// Whether the object used up the retries of a
    /// [`RetryPolicy::at_most`](crate::workqueue::RetryPolicy::at_most). Set for failures that are
    /// passed to [`OnFailure`](crate::controller::OnFailure).
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether the API server answered 404, for any missing object.
    pub(crate) fn is_not_found(&self) -> bool {
        self.errors().any(|error| error.code() == Some(404))
    }

    /// Returns the code of the API server's refusal, if a request was refused.
    pub(in crate::controller) fn code(&self) -> Option<u16> {
        self.errors().find_map(Error::code)
    }

    /// Whether the API server has refused a request, of this failure or of one beside it, for a
    /// reason that no repetition changes ([`is_refusal`]). False for a failure that is not retried
    /// with the backoff: one that is terminal, or whose author has set the next attempt's time.
    pub(in crate::controller) fn is_refused(&self) -> bool {
        let is_own = self.retry == Retry::Backoff && self.errors().any(is_refusal);
        is_own || self.beside.iter().any(Self::is_refused)
    }

    /// The framework's errors among the causes, outermost first.
    fn errors(&self) -> impl Iterator<Item = &Error> {
        let causes = std::iter::successors(Some(self.cause()), |cause| cause.source());
        causes.filter_map(|cause| cause.downcast_ref::<Error>())
    }

    /// Whether the API server refused a write because another client wrote first. Conflicts over
    /// fields that another manager owns do not count: a retry does not help there.
    pub(crate) fn lost_a_race(&self) -> bool {
        let refused = self.errors().find(|error| error.is_conflict() && error.code() == Some(409));
        refused.is_some_and(|error| !error.is_field_conflict())
    }
}

/// Whether the API server has refused a request for a reason that lasts.
pub(crate) fn is_refusal(error: &Error) -> bool {
    // Messages of refusals that end without a change of the object. Their Status has no
    // distinguishing reason: a quota that is exceeded, or not counted yet, plugins that start, and
    // the account of a young namespace.
    const PASSING: [&str; 4] = [
        "exceeded quota: ",
        "status unknown for quota: ",
        "not yet ready to handle request",
        "error looking up service account ",
    ];
    let status = error.status();
    let is_passing =
        status.is_some_and(|status| PASSING.iter().any(|words| status.message.contains(words)));
    match error.code() {
        Some(422) => !is_lost_race(error),
        Some(403) => !error.namespace_terminating() && !is_passing,
        // A cache that a reconcile reads cannot be filled for want of a right. A reconciler may
        // make errors of the kind `Forbidden`, too, about systems that are none of ours.
        None => error.is_for_want_of_right(),
        _ => false,
    }
}

/// Whether a 422 says that the object has changed: a `test` of a JSON patch failed, or another
/// object has the name by now.
fn is_lost_race(error: &Error) -> bool {
    error
        .causes()
        .iter()
        .any(|cause| cause.reason == "UnexpectedServerResponse" || cause.field == "metadata.uid")
}

/// Whether `rules` permit the request that was refused for want of a grant.
fn is_declared(rules: &[Rule], error: &Error, grant: &str) -> bool {
    let Some(details) = error.status().and_then(|status| status.details.as_ref()) else {
        return false;
    };
    let Some((verb, kind)) = grant.split_once(' ') else { return false };
    // The details name the resource without its subresource.
    let resource = match kind.split_once('/') {
        Some((_, part)) if !details.kind.contains('/') => format!("{}/{part}", details.kind),
        _ => details.kind.clone(),
    };
    rules.iter().any(|rule| {
        rule.group == details.group
            && rule.resource == resource
            && rule.verbs.contains(verb)
            && (rule.names.is_empty() || rule.names.contains(&details.name))
    })
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(source: E) -> Self {
        Self::new(source.into(), Retry::Backoff)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for what in self.attempts() {
            write!(f, "{what}: ")?;
        }
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(source) = cause {
            write!(f, ": {source}")?;
            cause = source.source();
        }
        self.beside.iter().try_for_each(|other| write!(f, "; {other}"))
    }
}

/// Adds the attempted operation to an error.
///
/// Implemented for every `Result` whose error becomes a [`Failure`], also if it is one already: the
/// operations add up.
pub trait ResultExt<T> {
    /// Turns the error into a [`Failure`] that carries `what`:
    /// `.tried("creating the Deployment")?`.
    ///
    /// # Errors
    /// Returns the error as such a failure.
    fn tried(self, what: impl Into<Cow<'static, str>>) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> ResultExt<T> for Result<T, E> {
    fn tried(self, what: impl Into<Cow<'static, str>>) -> Result<T, Failure> {
        self.map_err(|error| error.into().tried(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::error::ErrorKind;

    #[test]
    fn a_failure_lists_its_attempted_actions_in_order_and_keeps_its_retry() {
        let failure: Result<(), _> = Err(Failure::terminal("no such zone"));
        let failure = failure.tried("asking the DNS").tried("publishing the host").unwrap_err();
        assert_eq!(failure.to_string(), "publishing the host: asking the DNS: no such zone");
        assert_eq!(failure.attempts().next(), Some("publishing the host"));
        assert!(failure.is_terminal());
        assert_eq!(failure.cause().to_string(), "no such zone");
    }

    #[test]
    fn a_missing_grant_that_is_declared_is_said_to_be_missing_in_the_cluster() {
        let declared = [
            Rule::of_resource("configmaps", &["delete"]).named(["one"]),
            Rule::of_resource("pods/eviction", &["create"]),
        ];
        let text = |name: &str, kind: &str, grant: &str| {
            let details = format!(r#"{{"name": "{name}", "kind": "{kind}"}}"#);
            let status = format!(r#"{{"code": 403, "reason": "Forbidden", "details": {details}}}"#);
            let error = Error::from_status("write", serde_json::from_str(&status).unwrap());
            let failure = Failure::from(error.with_missing_grant(grant));
            failure.naming_missing_grant(&declared).to_string()
        };
        let old = "the Role in the cluster does not have it: apply the printed Role";
        assert!(text("one", "configmaps", "delete ConfigMap").contains(old));
        assert!(text("web", "pods", "create Pod/eviction").contains(old));
        for (name, kind, grant) in [
            ("two", "configmaps", "delete ConfigMap"),
            ("one", "configmaps", "patch ConfigMap"),
            ("web", "pods", "create Pod"),
        ] {
            let text = text(name, kind, grant);
            assert!(!text.contains(old) && text.contains(&format!("can({grant})")), "{text}");
        }
    }

    #[test]
    fn each_of_several_refused_requests_names_its_grant() {
        let refused = |grant: &str| {
            let status = r#"{"code": 403, "reason": "Forbidden"}"#;
            let error = Error::from_status("write", serde_json::from_str(status).unwrap());
            Failure::from(error.with_missing_grant(grant))
        };
        let all = refused("patch Secret").and(refused("delete ConfigMap"));
        let text = all.naming_missing_grant(&[]).to_string();
        for grant in ["`can(patch Secret)`", "`can(delete ConfigMap)`"] {
            assert!(text.contains(grant), "{text}");
        }
    }

    #[test]
    fn causes_are_shown_and_kept() {
        let cause = std::io::Error::other("broken pipe");
        let error = Error::new(ErrorKind::Usage, "cannot write").because(cause);
        let failure = Failure::from(error).tried("saving");
        assert_eq!(failure.to_string(), "saving: cannot write: broken pipe");
        assert!(failure.cause().source().is_some());
    }
}
