//! Selection of controllers by the names of kube-controller-manager.

use std::str::FromStr;

/// A built-in controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    /// Deletes dependents whose owners are gone.
    Garbage,
    /// Empties namespaces that are being deleted.
    Namespaces,
    /// Creates the account `default` in each namespace.
    Accounts,
    /// Writes `kube-root-ca.crt` to each namespace.
    RootCertificate,
    /// Gives aggregated roles of the cluster their rules.
    Roles,
    /// Makes the `ReplicaSets` of Deployments; without `ReplicaSets` reports Deployments available.
    Deployments,
    /// Makes the Pods of `ReplicaSets`.
    ReplicaSets,
    /// Makes the Pods and claims of `StatefulSets`.
    StatefulSets,
    /// Makes a Pod on each node.
    DaemonSets,
    /// Makes the Pods of Jobs, and counts them.
    Jobs,
    /// Makes Jobs by a schedule.
    CronJobs,
    /// Writes the Endpoints of Services.
    Endpoints,
    /// Writes the `EndpointSlices` of Services.
    EndpointSlices,
    /// Binds claims to volumes, and makes volumes.
    Volumes,
    /// Lets Pods run, in the place of scheduler and kubelet.
    Kubelet,
    /// Releases claims that no Pod uses.
    ClaimProtection,
    /// Releases volumes that are not bound.
    VolumeProtection,
    /// Releases classes that no claim and no volume names.
    ClassProtection,
    /// Writes how many Pods disruption budgets let go.
    Disruption,
    /// Signs approved certificate requests.
    Signing,
    /// Counts what namespaces with quotas hold.
    Quota,
}

/// Controllers with their names, their older names, and whether `*` selects them.
const CONTROLLERS: [(Controller, &str, &str, bool); 21] = [
    (Controller::Garbage, "garbage-collector-controller", "garbagecollector", true),
    (Controller::Namespaces, "namespace-controller", "namespace", true),
    (Controller::Accounts, "serviceaccount-controller", "serviceaccount", true),
    (
        Controller::RootCertificate,
        "root-ca-certificate-publisher-controller",
        "root-ca-cert-publisher",
        true,
    ),
    (Controller::Roles, "clusterrole-aggregation-controller", "clusterrole-aggregation", true),
    (Controller::Deployments, "deployment-controller", "deployment", false),
    (Controller::ReplicaSets, "replicaset-controller", "replicaset", false),
    (Controller::StatefulSets, "statefulset-controller", "statefulset", false),
    (Controller::DaemonSets, "daemonset-controller", "daemonset", false),
    (Controller::Jobs, "job-controller", "job", false),
    (Controller::CronJobs, "cronjob-controller", "cronjob", false),
    (Controller::Endpoints, "endpoints-controller", "endpoint", false),
    (Controller::EndpointSlices, "endpointslice-controller", "endpointslice", false),
    (Controller::Volumes, "persistentvolume-binder-controller", "persistentvolume-binder", false),
    (Controller::Disruption, "disruption-controller", "disruption", false),
    (Controller::Signing, "certificatesigningrequest-signing-controller", "csrsigning", false),
    (Controller::Quota, "resourcequota-controller", "resourcequota", true),
    (Controller::Kubelet, "kubelet", "kubelet", false),
    (
        Controller::ClaimProtection,
        "persistentvolumeclaim-protection-controller",
        "pvc-protection",
        true,
    ),
    (Controller::VolumeProtection, "persistentvolume-protection-controller", "pv-protection", true),
    (
        Controller::ClassProtection,
        "volumeattributesclass-protection-controller",
        "vac-protection",
        true,
    ),
];

/// A set of built-in controllers, read from a list as kube-controller-manager's `--controllers`:
/// `*` selects those that are on by default, `name` a single controller, `-name` none of that name;
/// of entries about the same controller the first counts.
///
/// | name | older name | with `*` |
/// |---|---|---|
/// | `garbage-collector-controller` | `garbagecollector` | yes |
/// | `namespace-controller` | `namespace` | yes |
/// | `serviceaccount-controller` | `serviceaccount` | yes |
/// | `root-ca-certificate-publisher-controller` | `root-ca-cert-publisher` | yes |
/// | `clusterrole-aggregation-controller` | `clusterrole-aggregation` | yes |
/// | `resourcequota-controller` | `resourcequota` | yes |
/// | `persistentvolumeclaim-protection-controller` | `pvc-protection` | yes |
/// | `persistentvolume-protection-controller` | `pv-protection` | yes |
/// | `volumeattributesclass-protection-controller` | `vac-protection` | yes |
/// | `deployment-controller` | `deployment` | no |
/// | `replicaset-controller` | `replicaset` | no |
/// | `statefulset-controller` | `statefulset` | no |
/// | `daemonset-controller` | `daemonset` | no |
/// | `job-controller` | `job` | no |
/// | `cronjob-controller` | `cronjob` | no |
/// | `endpoints-controller` | `endpoint` | no |
/// | `endpointslice-controller` | `endpointslice` | no |
/// | `persistentvolume-binder-controller`, with a provisioner | `persistentvolume-binder` | no |
/// | `disruption-controller` | `disruption` | no |
/// | `certificatesigningrequest-signing-controller` | `csrsigning` | no |
/// | `kubelet`, with a scheduler | | no |
///
/// Those that `*` does not select are stand-ins: they need no nodes and run no containers. Without
/// `replicaset-controller`, `deployment-controller` reports Deployments available as soon as they
/// exist. Without `resourcequota-controller`, quotas limit by what their status has, as those of a
/// lone kube-apiserver.
///
/// ```
/// use windlass_apiserver::{ApiServer, ControllerSet};
///
/// let set: ControllerSet = "*,-garbagecollector".parse()?;
/// let builder = ApiServer::builder().controller_set(set);
/// # drop(builder);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSet(u32);

impl ControllerSet {
    /// The empty set: the server behaves like a lone kube-apiserver.
    pub const NONE: Self = Self(0);
    /// The set of all controllers, with the stand-ins: workloads run as if there was a node.
    pub const ALL: Self = Self((1 << CONTROLLERS.len()) - 1);

    /// Returns the set with another controller, or without it.
    pub(crate) fn set(self, controller: Controller, on: bool) -> Self {
        let bit = 1 << controller as u8;
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// Whether a stand-in for workloads is in the set.
    pub(crate) fn has_stand_ins(self) -> bool {
        let all = CONTROLLERS.iter().filter(|(.., is_default)| !is_default);
        all.into_iter().any(|(controller, ..)| self.has(*controller))
    }

    /// Whether addresses of Services are written.
    pub(crate) fn has_endpoints(self) -> bool {
        self.has(Controller::Endpoints) || self.has(Controller::EndpointSlices)
    }

    /// Whether the controller is in the set.
    pub(crate) fn has(self, controller: Controller) -> bool {
        self.0 & (1 << controller as u8) != 0
    }
}

/// Those that `*` selects.
impl Default for ControllerSet {
    fn default() -> Self {
        let on = CONTROLLERS.iter().filter(|(.., is_default)| *is_default);
        on.fold(Self::NONE, |set, (controller, ..)| set.set(*controller, true))
    }
}

impl FromStr for ControllerSet {
    type Err = String;

    /// Reads a list of names, separated by commas.
    ///
    /// # Errors
    /// The name of a controller that does not exist, and the names that do.
    fn from_str(list: &str) -> Result<Self, String> {
        let entries: Vec<&str> =
            list.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        let is_known = |name: &str| {
            name == "*" || CONTROLLERS.iter().any(|(_, new, old, _)| [*new, *old].contains(&name))
        };
        let unknown = entries.iter().find(|entry| !is_known(entry.trim_start_matches('-')));
        if let Some(entry) = unknown {
            let names: Vec<&str> = CONTROLLERS.iter().map(|(_, name, ..)| *name).collect();
            return Err(format!(
                "there is no controller {:?}: known are {}",
                entry.trim_start_matches('-'),
                names.join(", ")
            ));
        }
        let has_star = entries.contains(&"*");
        let is_on = |(_, new, old, is_default): &(Controller, &str, &str, bool)| {
            let about = entries.iter().find(|entry| {
                let name = entry.trim_start_matches('-');
                name == *new || name == *old
            });
            about.map_or(has_star && *is_default, |entry| !entry.starts_with('-'))
        };
        let on = CONTROLLERS.iter().filter(|row| is_on(row));
        Ok(on.fold(Self::NONE, |set, (controller, ..)| set.set(*controller, true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_by_the_controller_manager() {
        let read = |list: &str| list.parse::<ControllerSet>().unwrap();
        assert_eq!(read("*"), ControllerSet::default());
        assert_eq!(read(""), ControllerSet::NONE);
        assert_eq!(read("-namespace"), ControllerSet::NONE);
        let set = read("*, -garbagecollector,deployment-controller");
        assert!(!set.has(Controller::Garbage) && set.has(Controller::Deployments));
        assert!(set.has(Controller::Roles) && set.has(Controller::RootCertificate));
        let set = read("namespace,-namespace");
        assert!(set.has(Controller::Namespaces), "the first entry counts");
        assert!(!set.has(Controller::Garbage));
        let error = "*,podgc".parse::<ControllerSet>().unwrap_err();
        assert!(error.starts_with("there is no controller \"podgc\": known are"), "{error}");
        let every = CONTROLLERS.map(|(_, name, ..)| name).join(",");
        assert_eq!(read(&every), ControllerSet::ALL);
    }
}
