//! Finds a resource by any name, and explains a name without a match or with several.

// DESIGN.md, 23: Discovery is one cache per client with numbered reads

use std::fmt;

use super::catalog::{ApiResource, ApiVersion, Catalog, VersionReadState};
use super::document::is_segment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceInfo;

/// Most names in an error's text; the values have all of them.
const MOST_NAMES: usize = 8;

/// The source of an error when no resource was found; [`NoMatch::of`] returns that source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoMatch {
    /// The wanted resource, such as `the kind "Widget" of example.dev/v1`.
    pub wanted: String,
    /// Groups that were searched; the core group as `core`.
    pub groups: Vec<String>,
    /// Group versions that may have the resource but could not be read, or not lately.
    pub unread: Vec<String>,
}

/// The source of an error when several groups serve the wanted name; [`Ambiguity::of`] returns that
/// source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ambiguity {
    /// The wanted resource.
    pub wanted: String,
    /// The resources of that name.
    pub candidates: Vec<ResourceInfo>,
}

impl NoMatch {
    /// Returns the `NoMatch` of an error, if there is any.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl Ambiguity {
    /// Returns the `Ambiguity` of an error, if there is any.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl fmt::Display for NoMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.groups.as_slice() {
            [] => f.write_str("the server has no group to search"),
            groups => write!(f, "looked at {}", groups.join(", ")),
        }
    }
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.candidates.iter().map(full_name).collect();
        write!(f, "candidates: {}", names.join(", "))
    }
}

impl std::error::Error for NoMatch {}
impl std::error::Error for Ambiguity {}

/// `plural.version.group`: the name of exactly one resource.
fn full_name(info: &ResourceInfo) -> String {
    format!("{}.{}.{}", info.plural, info.version, info.group)
}

/// Joins at most [`MOST_NAMES`] names.
fn shortened(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A group and a version to search; all of them without a name.
#[derive(Clone, Copy, Debug)]
struct SearchScope<'a> {
    group: Option<&'a str>,
    version: Option<&'a str>,
}

impl SearchScope<'_> {
    /// Whether the version belongs to this group and version.
    fn takes(self, version: &ApiVersion) -> bool {
        self.group.is_none_or(|group| version.group.eq_ignore_ascii_case(group))
            && self.version.is_none_or(|wanted| version.name == wanted)
    }
}

/// The kind of name by which a resource is wanted.
#[derive(Clone, Copy, Debug)]
enum ResourceNameKind {
    /// Plural or singular, in any case.
    Name,
    Short,
    /// Kind, in any case.
    AnyKind,
    Plural,
    Kind,
}

impl ResourceNameKind {
    /// Whether `name` is a name of this kind for the resource.
    fn means(self, name: &str, resource: &ApiResource) -> bool {
        let info = &resource.info;
        // A resource without a kind has subresources only.
        !info.kind.is_empty()
            && match self {
                Self::Name => {
                    info.plural.eq_ignore_ascii_case(name)
                        || resource.singular.eq_ignore_ascii_case(name)
                }
                Self::Short => resource.short_names.iter().any(|s| s.eq_ignore_ascii_case(name)),
                Self::AnyKind => info.kind.eq_ignore_ascii_case(name),
                Self::Plural => info.plural == name,
                Self::Kind => info.kind == name,
            }
    }
}

impl Catalog {
    /// Returns the resource that a user's `argument` names; see
    /// [`Discovery::find`](super::Discovery::find).
    ///
    /// # Errors
    /// Those of [`Discovery::find`](super::Discovery::find) that concern the names.
    pub fn find(&self, argument: &str) -> Result<&ApiResource, Error> {
        let wanted = || format!("the resource {argument:?}");
        if !is_segment(argument) {
            let text = format!(
                "cannot find {}: that is not a name of a resource; name one such as `pods`, \
                 `deployments.apps` or `deployments.v1.apps`",
                wanted()
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let (name, rest) = argument.split_once('.').unwrap_or((argument, ""));
        let mut places = Vec::new();
        if !argument.contains('.') {
            places.push(SearchScope { group: None, version: None });
        } else {
            // `v1.apps` may be a version and a group, or a group: both are tried.
            if let Some((version, group)) = rest.split_once('.') {
                places.push(SearchScope { group: Some(group), version: Some(version) });
            }
            places.push(SearchScope { group: Some(rest), version: None });
        }
        // As in kubectl: a short name never hides a full name, nor does a kind.
        for place in &places {
            for by in [ResourceNameKind::Name, ResourceNameKind::Short, ResourceNameKind::AnyKind] {
                let found = self.matching(*place, |resource| by.means(name, resource));
                if let Some(found) = single(found, wanted)? {
                    return Ok(found);
                }
            }
        }
        Err(self.no_match(wanted(), &places, |resource| {
            [ResourceNameKind::Name, ResourceNameKind::Short, ResourceNameKind::AnyKind]
                .iter()
                .any(|by| by.means(name, resource))
        }))
    }

    /// Returns the resource of a kind; see
    /// [`Discovery::resource_for`](super::Discovery::resource_for).
    ///
    /// # Errors
    /// Those of [`Discovery::find`](super::Discovery::find) that concern the names.
    pub fn resource_for(
        &self,
        kind: &str,
        group: Option<&str>,
        version: Option<&str>,
    ) -> Result<&ApiResource, Error> {
        self.exactly("kind", ResourceNameKind::Kind, kind, SearchScope { group, version })
    }

    /// Returns the kind of a resource by the plural name; see
    /// [`Discovery::kind_for`](super::Discovery::kind_for).
    ///
    /// # Errors
    /// Those of [`Discovery::find`](super::Discovery::find) that concern the names.
    pub fn kind_for(
        &self,
        plural: &str,
        group: Option<&str>,
        version: Option<&str>,
    ) -> Result<&ApiResource, Error> {
        self.exactly("resource", ResourceNameKind::Plural, plural, SearchScope { group, version })
    }

    /// Finds a resource by an exact name; `word` is the kind of name in error texts.
    fn exactly(
        &self,
        word: &str,
        by: ResourceNameKind,
        name: &str,
        place: SearchScope<'_>,
    ) -> Result<&ApiResource, Error> {
        let wanted = || match (place.group, place.version) {
            (None, None) => format!("the {word} {name:?}"),
            (Some(""), None) => format!("the {word} {name:?} of the core group"),
            (Some(group), None) => format!("the {word} {name:?} of {group}"),
            (None | Some(""), Some(version)) => format!("the {word} {name:?} of {version}"),
            (Some(group), Some(version)) => format!("the {word} {name:?} of {group}/{version}"),
        };
        let is_meant = |resource: &ApiResource| by.means(name, resource);
        match single(self.matching(place, is_meant), wanted)? {
            Some(found) => Ok(found),
            None => Err(self.no_match(wanted(), &[place], is_meant)),
        }
    }

    /// The wanted resources: for each group those of the first version that has any.
    fn matching(
        &self,
        place: SearchScope<'_>,
        is_meant: impl Fn(&ApiResource) -> bool,
    ) -> Vec<&ApiResource> {
        let mut found = Vec::new();
        for group in &self.groups {
            let versions = group.versions.iter().filter(|version| place.takes(version));
            let mut matches = versions
                .map(|version| version.resources.iter().filter(|r| is_meant(r)).collect::<Vec<_>>())
                .filter(|matches| !matches.is_empty());
            found.extend(matches.next().unwrap_or_default());
        }
        found
    }

    /// The error of a name without a match, with the most likely reason.
    fn no_match(
        &self,
        wanted: String,
        places: &[SearchScope<'_>],
        is_meant: impl Fn(&ApiResource) -> bool,
    ) -> Error {
        let versions = || self.groups.iter().flat_map(|group| &group.versions);
        let in_groups = |version: &&ApiVersion| {
            places.iter().any(|place| SearchScope { version: None, ..*place }.takes(version))
        };
        let mut groups: Vec<String> = versions().filter(in_groups).map(group_name).collect();
        // Versions of the same group stand together.
        groups.dedup();
        let is_open = |version: &&ApiVersion| {
            version.freshness != VersionReadState::Current
                && places.iter().any(|p| p.takes(version))
        };
        let unread: Vec<String> = versions().filter(is_open).map(reason).collect();
        // In any version of the group, for a hint at the version that has the name.
        let elsewhere = |place: &SearchScope<'_>| {
            self.matching(SearchScope { version: None, ..*place }, &is_meant).into_iter().next()
        };
        let last = places.last().and_then(|place| place.group);
        let hint = match (places.iter().find_map(elsewhere), groups.as_slice(), last) {
            // An unread version may have the name: the name must not be reported as absent.
            _ if !unread.is_empty() => {
                format!("it may be in a group that could not be read: {}", shortened(&unread))
            }
            (Some(other), ..) => format!("it is served as {}", full_name(&other.info)),
            (None, [], Some(group)) => {
                format!("the API group {group:?} is not served; is its definition installed?")
            }
            (None, [group], _) => format!("the group {group} does not have it"),
            (None, groups, _) => {
                format!("none of {} API groups has it; is its definition installed?", groups.len())
            }
        };
        let kind = if unread.is_empty() { ErrorKind::NotFound } else { ErrorKind::Server };
        Error::new(kind, format!("cannot find {wanted}: {hint}")).because(NoMatch {
            wanted,
            groups,
            unread,
        })
    }
}

/// Name of a version's group for people: `core` for the core group.
fn group_name(version: &ApiVersion) -> String {
    if version.group.is_empty() { "core".to_owned() } else { version.group.clone() }
}

/// An unread version, with the reason.
fn reason(version: &ApiVersion) -> String {
    match &version.freshness {
        VersionReadState::Failed(why) => format!("{} ({why})", version.api_version()),
        _ => format!("{} (stale: the server behind it does not answer)", version.api_version()),
    }
}

/// The only match, or the match of the core group, whose names no other group can take.
fn single(
    found: Vec<&ApiResource>,
    wanted: impl Fn() -> String,
) -> Result<Option<&ApiResource>, Error> {
    let mut core = found.iter().filter(|resource| resource.info.group.is_empty());
    match (found.as_slice(), core.next(), core.next()) {
        ([], ..) => Ok(None),
        ([only], ..) | (_, Some(only), None) => Ok(Some(only)),
        (several, ..) => {
            let candidates: Vec<_> = several.iter().map(|r| r.info.clone()).collect();
            let names: Vec<String> = candidates.iter().map(full_name).collect();
            let wanted = wanted();
            let text = format!(
                "{wanted} means more than one: {}; name one of them in full, as \
                 plural.version.group or by group and version",
                shortened(&names)
            );
            Err(Error::new(ErrorKind::Usage, text).because(Ambiguity { wanted, candidates }))
        }
    }
}
