//! Discovery documents as data: both versions of the aggregated form, and the legacy form.
//!
//! A part that does not decode is left out alone. Names that are no path segment are left out.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::catalog::{ApiGroup, ApiResource, ApiVersion, ServedSubresource, VersionReadState};
use super::priority::by_priority;
use windlass_core::error::BoxError;
use windlass_core::resource::{ResourceInfo, Scope};
use windlass_core::wire::Undecodable;

/// The document at `/api` or `/apis`.
#[derive(Debug)]
pub(super) enum DiscoveryRoot {
    /// All groups with their resources.
    Aggregated(Vec<ApiGroup>),
    /// Names of group versions, each to be read separately; the preferred versions first.
    Legacy(Vec<GroupVersion>),
}

/// A group version by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupVersion {
    pub(super) group: String,
    pub(super) version: String,
}

/// A document of any form: only the fields of the kind are set.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    groups: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    versions: Option<Vec<String>>,
}

/// Decodes the document of a root, in any form.
pub(super) fn root(body: &[u8]) -> Result<DiscoveryRoot, BoxError> {
    let document: Document<'_> =
        serde_json::from_slice(body).map_err(|error| Undecodable::of(&error))?;
    match &*document.kind {
        "APIGroupDiscoveryList" => {
            let items = document.items.unwrap_or_default();
            Ok(DiscoveryRoot::Aggregated(items.into_iter().filter_map(aggregated_group).collect()))
        }
        "APIGroupList" => {
            let groups = document.groups.unwrap_or_default();
            Ok(DiscoveryRoot::Legacy(groups.into_iter().flat_map(legacy_group).collect()))
        }
        "APIVersions" => {
            let versions = document.versions.unwrap_or_default();
            Ok(DiscoveryRoot::Legacy(names("", versions, None)))
        }
        other => Err(format!("a document of kind {other:?} is not one of discovery").into()),
    }
}

/// Metadata of a group: the name.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    name: String,
}

/// A group in the aggregated form; the versions are decoded separately.
#[derive(Deserialize)]
struct WireGroup<'a> {
    #[serde(default)]
    metadata: Meta,
    #[serde(borrow, default)]
    versions: Option<Vec<&'a RawValue>>,
}

/// A version of a group in the aggregated form.
#[derive(Deserialize)]
struct WireVersion {
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Option<Vec<WireResource>>,
}

/// A version by name.
#[derive(Deserialize)]
struct OnlyVersion {
    version: String,
}

/// A resource of a version in the aggregated form; absent members are empty.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireResource {
    resource: String,
    response_kind: Option<WireKind>,
    scope: String,
    singular_resource: String,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
    subresources: Option<Vec<WireSubresource>>,
}

/// A subresource in the aggregated form.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSubresource {
    subresource: String,
    response_kind: Option<WireKind>,
    verbs: Option<Vec<String>>,
}

/// Kind of a body, which may be of another group than the resource.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireKind {
    group: String,
    version: String,
    kind: String,
}

/// Decodes a group of the aggregated form; `None` with a warning if that fails.
fn aggregated_group(item: &RawValue) -> Option<ApiGroup> {
    let group: WireGroup<'_> = match serde_json::from_str(item.get()) {
        Ok(group) => group,
        Err(error) => {
            let error = Undecodable::of(&error);
            tracing::warn!(%error, "an API group in the discovery document does not decode");
            return None;
        }
    };
    let name = group.metadata.name;
    // The core group has no name; other names become a part of paths.
    if !name.is_empty() && !is_segment(&name) {
        return None;
    }
    let versions = group.versions.unwrap_or_default();
    let versions = versions.into_iter().filter_map(|item| aggregated_version(&name, item));
    // Aggregated discovery lists the preferred version first.
    Some(ApiGroup { versions: ordered(versions.collect()), name })
}

/// Decodes a version of the aggregated form.
fn aggregated_version(group: &str, item: &RawValue) -> Option<ApiVersion> {
    let version = match serde_json::from_str::<WireVersion>(item.get()) {
        Ok(wire) => {
            let resources = wire.resources.unwrap_or_default().into_iter();
            let resources = resources.filter_map(|r| aggregated_resource(group, &wire.version, r));
            ApiVersion {
                group: group.to_owned(),
                freshness: match &*wire.freshness {
                    "Stale" => VersionReadState::Stale,
                    _ => VersionReadState::Current,
                },
                resources: resources.collect(),
                name: wire.version,
            }
        }
        Err(error) => {
            // The name alone may still decode: the version is then reported as failed.
            let named: OnlyVersion = serde_json::from_str(item.get()).ok()?;
            failed(
                group,
                &named.version,
                format!("the server's answer does not decode: {}", Undecodable::of(&error)),
            )
        }
    };
    is_segment(&version.name).then_some(version)
}

/// Makes a version that could not be read.
pub(super) fn failed(group: &str, version: &str, why: String) -> ApiVersion {
    ApiVersion {
        group: group.to_owned(),
        name: version.to_owned(),
        freshness: VersionReadState::Failed(why),
        resources: Vec::new(),
    }
}

/// Converts a resource of the aggregated form; `None` for an invalid name.
fn aggregated_resource(group: &str, version: &str, wire: WireResource) -> Option<ApiResource> {
    let subresources = wire.subresources.unwrap_or_default().into_iter();
    let subresources = subresources.map(|sub| {
        let body = sub.response_kind.unwrap_or_default();
        subresource(group, version, sub.subresource, body, sub.verbs)
    });
    let namespaced = wire.scope == "Namespaced";
    let kind = wire.response_kind.unwrap_or_default().kind;
    Some(named_singular(ApiResource {
        info: info(group, version, kind, wire.resource, namespaced)?,
        singular: wire.singular_resource,
        verbs: wire.verbs.unwrap_or_default(),
        short_names: wire.short_names.unwrap_or_default(),
        categories: wire.categories.unwrap_or_default(),
        subresources: subresources.collect(),
    }))
}

/// The identity of a resource; `None` when the plural is no path segment.
fn info(
    group: &str,
    version: &str,
    kind: String,
    plural: String,
    namespaced: bool,
) -> Option<ResourceInfo> {
    is_segment(&plural).then(|| ResourceInfo {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: kind.into(),
        plural: plural.into(),
        scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
    })
}

/// Fills in a missing singular name.
fn named_singular(mut resource: ApiResource) -> ApiResource {
    if resource.singular.is_empty() {
        resource.singular = resource.info.kind.to_lowercase();
    }
    resource
}

/// Makes a subresource. A body without a version is of the document's group version.
fn subresource(
    group: &str,
    version: &str,
    name: String,
    body: WireKind,
    verbs: Option<Vec<String>>,
) -> ServedSubresource {
    let (group, version) = match body.version.as_str() {
        "" => (group.to_owned(), version.to_owned()),
        _ => (body.group, body.version),
    };
    ServedSubresource { name, group, version, kind: body.kind, verbs: verbs.unwrap_or_default() }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyGroup {
    name: String,
    #[serde(default)]
    versions: Option<Vec<OnlyVersion>>,
    #[serde(default)]
    preferred_version: Option<OnlyVersion>,
}

/// The versions of a group in the legacy form.
fn legacy_group(item: &RawValue) -> Vec<GroupVersion> {
    match serde_json::from_str::<LegacyGroup>(item.get()) {
        Ok(group) if is_segment(&group.name) => {
            let versions = group.versions.unwrap_or_default().into_iter().map(|v| v.version);
            let preferred = group.preferred_version.map(|preferred| preferred.version);
            names(&group.name, versions.collect(), preferred.as_deref())
        }
        Ok(_) => Vec::new(),
        Err(error) => {
            let error = Undecodable::of(&error);
            tracing::warn!(%error, "an API group in the discovery document does not decode");
            Vec::new()
        }
    }
}

/// Sorts versions: the preferred version first, the others by priority.
fn names(group: &str, versions: Vec<String>, preferred: Option<&str>) -> Vec<GroupVersion> {
    let mut versions: Vec<String> = versions.into_iter().filter(|v| is_segment(v)).collect();
    let place = |version: &str| usize::from(Some(version) != preferred);
    versions.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| by_priority(a, b)));
    let named = |version| GroupVersion { group: group.to_owned(), version };
    versions.into_iter().map(named).collect()
}

/// Keeps the first version in place, and sorts the others by priority.
fn ordered(mut versions: Vec<ApiVersion>) -> Vec<ApiVersion> {
    if let Some((_, rest)) = versions.split_first_mut() {
        rest.sort_by(|a, b| by_priority(&a.name, &b.name));
    }
    versions
}

/// The document of a group version in the legacy form.
#[derive(Deserialize)]
struct LegacyList {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    resources: Option<Vec<LegacyResource>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LegacyResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    group: String,
    version: String,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
}

/// Decodes the document of a group version.
pub(super) fn group_version(of: &GroupVersion, body: &[u8]) -> Result<ApiVersion, BoxError> {
    let list: LegacyList = serde_json::from_slice(body).map_err(|error| Undecodable::of(&error))?;
    if list.kind != "APIResourceList" && list.resources.is_none() {
        return Err(format!("a document of kind {:?} is not an APIResourceList", list.kind).into());
    }
    let (group, version) = (of.group.as_str(), of.version.as_str());
    let mut resources: Vec<ApiResource> = Vec::new();
    // The legacy form lists subresources beside resources, as `plural/name`.
    let (subs, whole): (Vec<_>, Vec<_>) =
        list.resources.unwrap_or_default().into_iter().partition(|r| r.name.contains('/'));
    for wire in whole {
        let Some(info) = info(group, version, wire.kind, wire.name, wire.namespaced) else {
            continue;
        };
        resources.push(named_singular(ApiResource {
            info,
            singular: wire.singular_name,
            verbs: wire.verbs.unwrap_or_default(),
            short_names: wire.short_names.unwrap_or_default(),
            categories: wire.categories.unwrap_or_default(),
            subresources: Vec::new(),
        }));
    }
    for wire in subs {
        let Some((plural, name)) = wire.name.split_once('/') else { continue };
        let body = WireKind { group: wire.group, version: wire.version, kind: wire.kind };
        let sub = subresource(group, version, name.to_owned(), body, wire.verbs);
        if let Some(parent) = resources.iter_mut().find(|r| r.info.plural == plural) {
            parent.subresources.push(sub);
        // Subresources may be served without their resource.
        } else if let Some(info) =
            info(group, version, String::new(), plural.to_owned(), wire.namespaced)
        {
            resources.push(ApiResource {
                info,
                singular: String::new(),
                verbs: Vec::new(),
                short_names: Vec::new(),
                categories: Vec::new(),
                subresources: vec![sub],
            });
        }
    }
    let (group, name) = (of.group.clone(), of.version.clone());
    Ok(ApiVersion { group, name, freshness: VersionReadState::Current, resources })
}

/// Whether the text can be a path segment without escapes.
pub(super) fn is_segment(text: &str) -> bool {
    let is_bad =
        |c: char| matches!(c, '/' | '%' | '?' | '#' | '\\') || c.is_whitespace() || c.is_control();
    !matches!(text, "" | "." | "..") && !text.contains(is_bad)
}
