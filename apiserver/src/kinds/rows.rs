//! Rows of the table of built-in kinds.

use super::{Generation, KindStrategy};
use crate::names::NameRule;

/// Verbs of most kinds, in discovery's order.
const VERBS: &str = "create delete deletecollection get list patch update watch";

/// A row of the table.
pub(super) struct Row {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short: &'static str,
    pub(super) categories: &'static str,
    /// Whether the kind is cluster-wide.
    pub(super) cluster: bool,
    pub(super) verbs: &'static str,
    pub(super) subresources: &'static [(&'static str, &'static str)],
    pub(super) facts: KindStrategy,
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
    /// Returns the row of a kind that is no resource, but the body of a subresource.
    pub(super) const fn body(api_version: &'static str, kind: &'static str) -> Self {
        row(api_version, kind, "", "").review()
    }

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

    /// Sets the subresources: pairs of a name and the kind; an empty kind is that of the object.
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
pub(super) const ROWS: &[Row] = &[
    row("v1", "Binding", "bindings", "").verbs("create").review_only(),
    row("v1", "ComponentStatus", "componentstatuses", "cs").cluster().verbs("get list"),
    row("v1", "ConfigMap", "configmaps", "cm"),
    row("v1", "Endpoints", "endpoints", "ep").upserts(),
    row("v1", "Event", "events", "ev")
        .upserts()
        .names(NameRule::Unchecked)
        .fields(CORE_EVENT_FIELDS),
    row("v1", "LimitRange", "limitranges", "limits").upserts(),
    row("v1", "Namespace", "namespaces", "ns")
        .cluster()
        .verbs("create delete get list patch update watch")
        .with(&[("finalize", "put"), STATUS])
        .names(NameRule::Label)
        .fields(&["status.phase"])
        .returned(),
    row("v1", "Node", "nodes", "no")
        .cluster()
        .with(&[("proxy", "v1 NodeProxyOptions"), STATUS])
        .fields(&["spec.unschedulable"]),
    row("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc").with(&[STATUS]).returned(),
    row("v1", "PersistentVolume", "persistentvolumes", "pv").cluster().with(&[STATUS]).returned(),
    row("v1", "Pod", "pods", "po")
        .all()
        .with(&[
            ("attach", "v1 PodAttachOptions"),
            ("binding", "v1 Binding"),
            ("ephemeralcontainers", ""),
            ("eviction", "policy/v1 Eviction"),
            ("exec", "v1 PodExecOptions"),
            ("log", "get"),
            ("portforward", "v1 PodPortForwardOptions"),
            ("proxy", "v1 PodProxyOptions"),
            ("resize", ""),
            STATUS,
        ])
        .spec()
        .fields(POD_FIELDS)
        .returned(),
    row("v1", "PodTemplate", "podtemplates", "").spec().returned(),
    row("v1", "ReplicationController", "replicationcontrollers", "rc")
        .names(NameRule::Declared)
        .all()
        .with(&[SCALE, STATUS])
        .spec()
        .fields(&["status.replicas"])
        .orphans(),
    row("v1", "ResourceQuota", "resourcequotas", "quota").with(&[STATUS]).returned(),
    row("v1", "Secret", "secrets", "").fields(&["type"]),
    row("v1", "ServiceAccount", "serviceaccounts", "sa")
        .with(&[("token", "authentication.k8s.io/v1 TokenRequest")])
        .returned(),
    row("v1", "Service", "services", "svc")
        .all()
        .with(&[("proxy", "v1 ServiceProxyOptions"), STATUS])
        .names(NameRule::Label)
        .upserts()
        .fields(&["spec.clusterIP", "spec.type"])
        .returned(),
    row(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        "",
    )
    .cluster()
    .in_category("api-extensions")
    .spec()
    .conditional(),
    row(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        "",
    )
    .cluster()
    .in_category("api-extensions")
    .spec()
    .conditional(),
    row(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "",
    )
    .cluster()
    .in_category("api-extensions")
    .generation(Generation::Sent)
    .conditional(),
    row(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        "",
    )
    .cluster()
    .in_category("api-extensions")
    .with(&[STATUS])
    .spec()
    .conditional(),
    row(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
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
    .generation(Generation::Sent)
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
    row("apiregistration.k8s.io/v1", "APIService", "apiservices", "")
        .cluster()
        .names(NameRule::Path)
        .in_category("api-extensions")
        .with(&[STATUS]),
    row("apps/v1", "ControllerRevision", "controllerrevisions", ""),
    row("apps/v1", "DaemonSet", "daemonsets", "ds").all().with(&[STATUS]).spec(),
    row("apps/v1", "Deployment", "deployments", "deploy")
        .all()
        .with(&[SCALE, STATUS])
        .generation(Generation::SpecOrAnnotations),
    row("apps/v1", "ReplicaSet", "replicasets", "rs").all().with(&[SCALE, STATUS]).spec(),
    row("apps/v1", "StatefulSet", "statefulsets", "sts")
        .all()
        .with(&[SCALE, STATUS])
        .spec()
        .names(NameRule::Label),
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
    row("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa")
        .all()
        .with(&[STATUS]),
    row("batch/v1", "CronJob", "cronjobs", "cj").all().with(&[STATUS]).spec(),
    row("batch/v1", "Job", "jobs", "")
        .all()
        .with(&[STATUS])
        .spec()
        .fields(&["status.successful"])
        .orphans(),
    row("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", "csr")
        .cluster()
        .with(&[("approval", ""), STATUS])
        .names(NameRule::Any)
        .fields(&["spec.signerName"]),
    row("coordination.k8s.io/v1", "Lease", "leases", "").conditional().upserts(),
    row("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", "")
        .generation(Generation::SpecOrLabels),
    row("events.k8s.io/v1", "Event", "events", "ev").upserts().fields(EVENT_FIELDS),
    row("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas", "")
        .cluster()
        .with(&[STATUS])
        .spec(),
    row(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        "",
    )
    .cluster()
    .with(&[STATUS])
    .spec(),
    row("networking.k8s.io/v1", "IngressClass", "ingressclasses", "").cluster().spec(),
    row("networking.k8s.io/v1", "Ingress", "ingresses", "ing").with(&[STATUS]).spec(),
    row("networking.k8s.io/v1", "IPAddress", "ipaddresses", "ip")
        .cluster()
        .names(NameRule::Address),
    row("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol")
        .generation(Generation::Sent),
    row("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", "").cluster().with(&[STATUS]),
    row("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", "").cluster().conditional(),
    row("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb")
        .with(&[STATUS])
        .spec()
        .names(NameRule::Any)
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
    row("resource.k8s.io/v1", "DeviceClass", "deviceclasses", "")
        .cluster()
        .spec()
        .names(NameRule::Declared)
        .returned(),
    row("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", "").with(&[STATUS]).returned(),
    row("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", "").returned(),
    row("resource.k8s.io/v1", "ResourceSlice", "resourceslices", "")
        .cluster()
        .spec()
        .fields(&["spec.nodeName", "spec.driver"])
        .returned(),
    row("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc")
        .cluster()
        .generation(Generation::Fixed),
    row("storage.k8s.io/v1", "CSIDriver", "csidrivers", "")
        .cluster()
        .generation(Generation::Late)
        .conditional()
        .returned(),
    row("storage.k8s.io/v1", "CSINode", "csinodes", "").cluster().conditional().returned(),
    row("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", "").conditional(),
    row("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc").cluster().returned(),
    row("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", "")
        .cluster()
        .with(&[STATUS])
        .conditional()
        .returned(),
    row("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", "vac")
        .cluster()
        .returned(),
];

impl Row {
    /// Stores nothing: Bindings can be posted at a path of their own, too.
    const fn review_only(mut self) -> Self {
        self.facts.review = true;
        self
    }
}
