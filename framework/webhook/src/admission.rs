//! The request that a handler judges, without its objects.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::{Deserialize, Deserializer};
use windlass_core::resource::ResourceInfo;

use crate::cut::{LONGEST, cut};

/// The write that the API server asks about: operation, place, user.
///
/// Has no client: a handler that reads other objects reads caches, which are fields of the handler.
/// Tests of a handler build one with [`Admission::new`] and set its fields.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use windlass::webhook::{Admission, Operation};
///
/// let mut admission = Admission::new(Operation::Create);
/// admission.user.username = "alice".into();
/// assert!(!admission.dry_run);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Admission {
    /// Identifier of this question; each call of each webhook has another.
    pub uid: String,
    /// The operation that the request asks for.
    #[serde(skip)]
    pub operation: Operation,
    /// Name of the object; empty at a creation with `generateName`.
    pub name: String,
    /// Namespace of the object; empty for kinds of the cluster.
    pub namespace: String,
    /// Sub-resource that is written, such as `status`; empty for the object itself.
    pub sub_resource: String,
    /// The user that sent the request; with impersonation the impersonated user.
    #[serde(rename = "userInfo")]
    pub user: User,
    /// Whether nothing will be stored. A handler with effects elsewhere leaves them out.
    pub dry_run: bool,
    /// Kind of the object.
    pub(crate) kind: GroupVersionKind,
}

impl Admission {
    /// Returns a request without name and user, for tests of handlers.
    pub fn new(operation: Operation) -> Self {
        Self { operation, ..Self::default() }
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    #[default]
    Create,
    /// A changed object: replaced, patched or applied.
    Update,
    /// A deletion; of a collection each object is asked about.
    Delete,
    /// A session, such as `pods/exec`.
    Connect,
}

/// The user that sent a request, as the authenticator of the API server knows the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct User {
    /// Name; for a service account `system:serviceaccount:<namespace>:<name>`.
    pub username: String,
    /// Uid; empty when the API server knows none.
    pub uid: String,
    /// Groups, such as `system:masters`.
    #[serde(deserialize_with = "or_empty")]
    pub groups: Vec<String>,
    /// Values that the authenticator added.
    #[serde(deserialize_with = "extra")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Reads a list; Go writes an empty one as `null`.
fn or_empty<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

fn extra<'de, D: Deserializer<'de>>(json: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let read: Option<BTreeMap<String, Option<Vec<String>>>> = Option::deserialize(json)?;
    let values = read.into_iter().flatten();
    Ok(values.map(|(name, values)| (name, values.unwrap_or_default())).collect())
}

/// A kind as reviews name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct GroupVersionKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl GroupVersionKind {
    /// Whether this is the kind of `info`.
    pub(crate) fn is(&self, info: &ResourceInfo) -> bool {
        self.group == info.group && self.version == info.version && self.kind == info.kind
    }

    /// Returns `Kind.group`, or the kind alone for the core group.
    pub(crate) fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }
}

/// A call that was not answered with a review: a status of HTTP and its text. The failure policy of
/// the webhook decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpFailure {
    pub(crate) code: StatusCode,
    pub(crate) text: String,
}

impl HttpFailure {
    pub(crate) fn new(code: StatusCode, text: impl Into<String>) -> Self {
        // The text may have names of a body, which may be of any length.
        Self { code, text: cut(&text.into(), LONGEST).to_owned() }
    }
}
