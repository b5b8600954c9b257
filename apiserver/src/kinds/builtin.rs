//! Table of built-in kinds.
//!
//! One row per kind and version, in discovery's order of groups. Rows state differences from a
//! plain kind; everything else follows from [`KindStrategy::PLAIN`].

use std::sync::Arc;

use super::{Generation, Kind, KindStrategy};
use crate::names::NameRule;
use crate::served::{Served, Subresource};
use crate::typed::TypeSchema;

/// Verbs of most kinds, in discovery's order.
const VERBS: &str = "create delete deletecollection get list patch update watch";

/// One row of the table.
struct Row {
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    categories: &'static str,
    /// Whether the kind is cluster-wide.
    cluster: bool,
    verbs: &'static str,
    subresources: &'static [(&'static str, &'static str)],
    facts: KindStrategy,
}

/// The status subresource.
const STATUS: (&str, &str) = ("status", "");
/// The scale subresource.
const SCALE: (&str, &str) = ("scale", "autoscaling/v1 Scale");

/// Returns the row of a plain namespaced kind.
const fn row(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
) -> Row {
    Row {
        api_version,
        kind,
        plural,
        short,
        categories: "",
        cluster: false,
        verbs: VERBS,
        subresources: &[],
        facts: KindStrategy::PLAIN,
    }
}

impl Row {
    /// Makes the kind cluster-wide.
    const fn cluster(mut self) -> Self {
        self.cluster = true;
        self
    }

    /// Adds the category `all`.
    const fn all(mut self) -> Self {
        self.categories = "all";
        self
    }

    const fn in_category(mut self, category: &'static str) -> Self {
        self.categories = category;
        self
    }

    /// Sets the subresources: pairs of a name and its kind; an empty kind is that of the object.
    const fn with(mut self, subresources: &'static [(&'static str, &'static str)]) -> Self {
        self.subresources = subresources;
        self
    }

    const fn generation(mut self, rule: Generation) -> Self {
        self.facts.generation = rule;
        self
    }

    /// Increments the generation with changes of the spec.
    const fn spec(self) -> Self {
        self.generation(Generation::Spec)
    }

    /// Refuses updates without a resourceVersion.
    const fn conditional(mut self) -> Self {
        self.facts.unconditional = false;
        self
    }

    /// Lets an update create a missing object.
    const fn upserts(mut self) -> Self {
        self.facts.create_on_update = true;
        self
    }

    /// Lets DELETE answer with the object.
    const fn returned(mut self) -> Self {
        self.facts.returns_object = true;
        self
    }

    const fn names(mut self, rule: NameRule) -> Self {
        self.facts.names = rule;
        self
    }

    /// Sets the fields for selectors.
    const fn fields(mut self, fields: &'static [&'static str]) -> Self {
        self.facts.fields = fields;
        self
    }

    const fn verbs(mut self, verbs: &'static str) -> Self {
        self.verbs = verbs;
        self
    }

    /// Lets DELETE orphan dependents by default.
    const fn orphans(mut self) -> Self {
        self.facts.orphans = true;
        self
    }

    /// Makes the kind a review: POST only, and nothing is stored.
    const fn review(mut self) -> Self {
        self.facts.review = true;
        self.verbs = "create";
        self
    }
}

/// Selectable fields of Pods.
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
/// Selectable fields of events in core/v1.
const CORE_EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
/// Selectable fields of events in events.k8s.io/v1.
const EVENT_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

/// The table.
const ROWS: &[Row] = &[
    row("v1", "Binding", "bindings", "").verbs("create").review_only(),
    row("v1", "ConfigMap", "configmaps", "cm"),
    row("v1", "Endpoints", "endpoints", "ep").upserts(),
    row("v1", "Event", "events", "ev").upserts().fields(CORE_EVENT_FIELDS),
    row("v1", "LimitRange", "limitranges", "limits").upserts(),
    row("v1", "Namespace", "namespaces", "ns")
        .cluster()
        .verbs("create delete get list patch update watch")
        .with(&[("finalize", "put"), STATUS])
        .names(NameRule::Label)
        .fields(&["status.phase"])
        .returned(),
    row("v1", "Node", "nodes", "no").cluster().with(&[STATUS]).fields(&["spec.unschedulable"]),
    row("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc").with(&[STATUS]).returned(),
    row("v1", "PersistentVolume", "persistentvolumes", "pv").cluster().with(&[STATUS]).returned(),
    row("v1", "Pod", "pods", "po")
        .all()
        .with(&[("binding", "v1 Binding"), ("eviction", "policy/v1 Eviction"), STATUS])
        .spec()
        .fields(POD_FIELDS)
        .returned(),
    row("v1", "PodTemplate", "podtemplates", "").generation(Generation::Fixed).returned(),
    row("v1", "ReplicationController", "replicationcontrollers", "rc")
        .all()
        .with(&[SCALE, STATUS])
        .spec()
        .fields(&["status.replicas"]),
    row("v1", "ResourceQuota", "resourcequotas", "quota").with(&[STATUS]).returned(),
    row("v1", "Secret", "secrets", "").fields(&["type"]),
    row("v1", "ServiceAccount", "serviceaccounts", "sa")
        .with(&[("token", "authentication.k8s.io/v1 TokenRequest")])
        .returned(),
    row("v1", "Service", "services", "svc")
        .all()
        .with(&[STATUS])
        .names(NameRule::Label1035)
        .upserts()
        .fields(&["spec.clusterIP", "spec.type"])
        .returned(),
    row(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "",
    )
    .cluster()
    .in_category("api-extensions")
    .spec()
    .conditional(),
    row(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "",
    )
    .cluster()
    .in_category("api-extensions")
    .spec()
    .conditional(),
    row(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd,crds",
    )
    .cluster()
    .in_category("api-extensions")
    .with(&[STATUS])
    .spec()
    .conditional(),
    row("apps/v1", "ControllerRevision", "controllerrevisions", ""),
    row("apps/v1", "DaemonSet", "daemonsets", "ds").all().with(&[STATUS]).spec(),
    row("apps/v1", "Deployment", "deployments", "deploy")
        .all()
        .with(&[SCALE, STATUS])
        .generation(Generation::SpecOrAnnotations),
    row("apps/v1", "ReplicaSet", "replicasets", "rs").all().with(&[SCALE, STATUS]).spec(),
    row("apps/v1", "StatefulSet", "statefulsets", "sts").all().with(&[SCALE, STATUS]).spec(),
    row("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", "")
        .cluster()
        .review(),
    row("authentication.k8s.io/v1", "TokenReview", "tokenreviews", "").cluster().review(),
    row("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", "")
        .review(),
    row("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "")
        .cluster()
        .review(),
    row("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "")
        .cluster()
        .review(),
    row("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", "")
        .cluster()
        .review(),
    row("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa")
        .all()
        .with(&[STATUS]),
    row("batch/v1", "CronJob", "cronjobs", "cj").all().with(&[STATUS]).spec(),
    row("batch/v1", "Job", "jobs", "")
        .all()
        .with(&[STATUS])
        .spec()
        .fields(&["status.successful"])
        .orphans(),
    row("coordination.k8s.io/v1", "Lease", "leases", "").conditional().upserts(),
    row("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", "").spec(),
    row("events.k8s.io/v1", "Event", "events", "ev").upserts().fields(EVENT_FIELDS),
    row("networking.k8s.io/v1", "IngressClass", "ingressclasses", "").cluster().spec(),
    row("networking.k8s.io/v1", "Ingress", "ingresses", "ing").with(&[STATUS]).spec(),
    row("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol").spec(),
    row("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb")
        .with(&[STATUS])
        .spec()
        .conditional(),
    row("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", "")
        .cluster()
        .names(NameRule::Path)
        .upserts(),
    row("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "")
        .cluster()
        .names(NameRule::Path)
        .upserts(),
    row("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", "")
        .names(NameRule::Path)
        .upserts(),
    row("rbac.authorization.k8s.io/v1", "Role", "roles", "").names(NameRule::Path).upserts(),
    row("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc").cluster().spec(),
    row("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc").cluster().returned(),
];

impl Row {
    /// Stores nothing: Bindings can be posted at a path of their own, too.
    const fn review_only(mut self) -> Self {
        self.facts.review = true;
        self
    }
}

/// Returns all built-in kinds.
pub(crate) fn kinds() -> Vec<Kind> {
    ROWS.iter().map(kind).collect()
}

/// Splits a text into its non-empty words.
fn words(text: &str, by: char) -> Vec<String> {
    text.split(by).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the kind of a row.
fn kind(row: &Row) -> Kind {
    let (group, version) = row.api_version.split_once('/').unwrap_or(("", row.api_version));
    let types = TypeSchema::builtin(row.api_version, row.kind);
    let served = Served {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: words(row.short, ','),
        categories: words(row.categories, ','),
        namespaced: !row.cluster,
        verbs: words(row.verbs, ' '),
        subresources: row
            .subresources
            .iter()
            .map(|sub| subresource(row, group, version, *sub))
            .collect(),
        custom: false,
        schema: None,
        columns: Vec::new(),
        selectable: row.facts.fields.iter().map(|field| format!(".{field}")).collect(),
        deprecated: (row.kind == "Endpoints").then(|| {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
        }),
    };
    // Both event APIs show the same stored objects, which are kept in the core version.
    let (storage, stored_as) = if row.kind == "Event" {
        ("events".to_owned(), "v1".to_owned())
    } else {
        (served.group_resource(), row.api_version.to_owned())
    };
    Kind {
        served,
        storage,
        stored_as,
        facts: row.facts,
        // Kinds without recorded types merge like objects without a schema.
        types: types.unwrap_or_else(|| Arc::new(TypeSchema::untyped())),
        custom: None,
    }
}

/// Returns the subresource that a pair of a row describes.
fn subresource(row: &Row, group: &str, version: &str, (name, what): (&str, &str)) -> Subresource {
    let own = |verbs: &str| Subresource {
        name: name.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: row.kind.to_owned(),
        verbs: words(verbs, ' '),
        paths: Vec::new(),
    };
    match what {
        "" => own("get patch update"),
        "put" => own("update"),
        _ => {
            let (api_version, kind) = what.split_once(' ').unwrap_or((what, ""));
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            Subresource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                ..own(if name == "scale" { "get patch update" } else { "create" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_event_apis_share_a_store_and_no_other_kinds_do() {
        let mut seen = std::collections::BTreeMap::new();
        for kind in kinds() {
            seen.entry(kind.storage.clone())
                .or_insert_with(Vec::new)
                .push(kind.served.api_version());
        }
        let shared: Vec<_> = seen.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
        assert_eq!(
            shared,
            [("events".to_owned(), vec!["v1".to_owned(), "events.k8s.io/v1".to_owned()])]
        );
    }

    #[test]
    fn a_subresource_of_another_kind_says_which() {
        let deployment = kinds().into_iter().find(|kind| kind.name() == "Deployment").unwrap();
        let scale = deployment.subresource("scale").unwrap();
        assert_eq!((scale.group.as_str(), scale.kind.as_str()), ("autoscaling", "Scale"));
        assert_eq!(deployment.subresource("status").unwrap().kind, "Deployment");
    }
}
