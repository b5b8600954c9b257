//! The catalog: groups, versions and resources of an API server, as plain data.

use windlass_core::resource::ResourceInfo;

/// Everything that an API server served at a single moment.
///
/// Lookups here send no request: [`Discovery`](super::Discovery) has the same lookups, which read
/// the server again when a name is missing.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let catalog = client.discovery().catalog().await?;
/// let deployments = catalog.resource_for("Deployment", Some("apps"), None)?;
/// println!("scale: {}", deployments.subresource("scale").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    pub(super) groups: Vec<ApiGroup>,
}

/// An API group.
///
/// Listed although none of the versions could be read: see [`VersionReadState`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// Name; empty for the core group.
    pub name: String,
    /// The group's versions: first the version that the server prefers, then stable before beta
    /// before alpha, and the higher number first.
    pub versions: Vec<ApiVersion>,
}

/// A version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiVersion {
    /// Name of the group; empty for the core group.
    pub group: String,
    /// Name of the version without its group, such as `v1`.
    pub name: String,
    /// Whether the version could be read.
    pub freshness: VersionReadState,
    /// The version's resources; empty when the version could not be read.
    pub resources: Vec<ApiResource>,
}

/// Whether a group version could be read.
///
/// Mainly an aggregated server, such as a metrics server, cannot be read: without the API server
/// itself the whole read fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionReadState {
    /// The version was read now.
    Current,
    /// The server behind the group version does not answer; the resources are from an earlier
    /// answer.
    Stale,
    /// The version could not be read, for this reason.
    Failed(String),
}

/// A resource and the sub-resources.
///
/// A sub-resource is no separate resource here: `pods/log` is in the
/// [`subresources`](Self::subresources) of `pods`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiResource {
    /// Group, version, kind, plural and scope. The kind is empty when only sub-resources are
    /// served.
    pub info: ResourceInfo,
    /// Singular name; the kind in lower case when the server names none.
    pub singular: String,
    /// Supported verbs, such as `list`.
    pub verbs: Vec<String>,
    /// Short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Categories by which kubectl finds the resource, such as `all`.
    pub categories: Vec<String>,
    /// The sub-resources of the resource, such as `status` and `scale`.
    pub subresources: Vec<ServedSubresource>,
}

/// A sub-resource.
///
/// The body of a sub-resource may be of another group than the resource: the scale of a Deployment
/// is `autoscaling/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedSubresource {
    /// Name behind the slash, such as `scale`.
    pub name: String,
    /// Group of the body, such as `autoscaling`; empty for the core group.
    pub group: String,
    /// Version of the body, such as `v1`.
    pub version: String,
    /// Kind of the body, such as `Scale`.
    pub kind: String,
    /// Supported verbs in lower case, such as `get` and `update`.
    pub verbs: Vec<String>,
}

impl Catalog {
    /// The groups, in the server's order.
    pub fn groups(&self) -> &[ApiGroup] {
        &self.groups
    }

    /// A group by name; the core group's name is empty.
    ///
    /// `None` when no server has the group.
    pub fn group(&self, name: &str) -> Option<&ApiGroup> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// A version of a group.
    pub fn version(&self, group: &str, version: &str) -> Option<&ApiVersion> {
        self.group(group)?.versions.iter().find(|candidate| candidate.name == version)
    }

    /// Every resource in every version.
    pub fn resources(&self) -> impl Iterator<Item = &ApiResource> {
        self.versions().flat_map(|version| &version.resources)
    }

    /// Every resource once, in the first version of the group that has the resource.
    pub fn preferred(&self) -> impl Iterator<Item = &ApiResource> {
        self.groups.iter().flat_map(|group| {
            group.versions.iter().enumerate().flat_map(|(at, version)| {
                let earlier = &group.versions[..at];
                version.resources.iter().filter(move |resource| {
                    let plural = &resource.info.plural;
                    !earlier.iter().any(|version| version.resource(plural).is_some())
                })
            })
        })
    }

    /// Group versions that could not be read, or not lately.
    ///
    /// A name that is not found may be in such a version.
    pub fn unread(&self) -> impl Iterator<Item = &ApiVersion> {
        self.versions().filter(|version| version.freshness != VersionReadState::Current)
    }

    /// Whether exactly this group, version, plural, kind and scope is served.
    ///
    /// A kind that is served under another plural or scope is another resource.
    pub fn serves(&self, info: &ResourceInfo) -> bool {
        let version = self.version(&info.group, &info.version);
        version.and_then(|version| version.resource(&info.plural)).is_some_and(|r| r.info == *info)
    }

    fn versions(&self) -> impl Iterator<Item = &ApiVersion> {
        self.groups.iter().flat_map(|group| &group.versions)
    }
}

impl ApiGroup {
    /// The version that the server prefers; `None` only for a group without a version.
    pub fn preferred(&self) -> Option<&ApiVersion> {
        self.versions.first()
    }
}

impl ApiVersion {
    /// `group/version`, or the version alone for the core group.
    ///
    /// As in the `apiVersion` of an object.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.group, self.name)
        }
    }

    /// A resource by the plural name, such as `deployments`; `None` if the version has none.
    pub fn resource(&self, plural: &str) -> Option<&ApiResource> {
        self.resources.iter().find(|resource| resource.info.plural == plural)
    }
}

impl ApiResource {
    /// Whether the resource supports `verb`.
    ///
    /// Verbs are in lower case, such as `deletecollection`.
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// A sub-resource by the name behind the slash; `None` if the resource has none.
    pub fn subresource(&self, name: &str) -> Option<&ServedSubresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}
