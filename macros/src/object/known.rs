//! Words that tell the content of braces without the type.

/// Fields of Kubernetes types that are no maps, with the words that stand in their braces most
/// often: such a literal needs no code for the case that the place is a map. A map of a user's own
/// may have the name of such a field, and is known by other words. Without a list of words any word
/// is a field: every kind has such a struct.
const STRUCTS: &[(&str, Option<&[&str]>)] = &[
    (
        "metadata",
        Some(&[
            "name",
            "namespace",
            "labels",
            "annotations",
            "generateName",
            "generate_name",
            "ownerReferences",
            "owner_references",
            "finalizers",
        ]),
    ),
    ("spec", None),
    ("status", None),
    ("template", Some(&["metadata", "spec"])),
    ("strategy", Some(&["type", "rollingUpdate", "rolling_update"])),
    (
        "rollingUpdate",
        Some(&["maxSurge", "max_surge", "maxUnavailable", "max_unavailable", "partition"]),
    ),
    ("httpGet", Some(&["path", "port", "scheme", "host"])),
    ("tcpSocket", Some(&["port"])),
    ("livenessProbe", Some(PROBE)),
    ("readinessProbe", Some(PROBE)),
    ("startupProbe", Some(PROBE)),
    ("securityContext", Some(SECURITY)),
    ("podSecurityContext", Some(SECURITY)),
    ("seccompProfile", Some(&["type", "localhostProfile", "localhost_profile"])),
    ("capabilities", Some(&["add", "drop"])),
    ("resources", Some(&["requests", "limits", "claims"])),
    ("valueFrom", Some(&["fieldRef", "secretKeyRef", "configMapKeyRef", "resourceFieldRef"])),
    ("fieldRef", Some(&["fieldPath", "field_path"])),
    ("secretKeyRef", Some(KEY_OF)),
    ("configMapKeyRef", Some(KEY_OF)),
    ("resourceFieldRef", Some(&["resource", "divisor", "containerName", "container_name"])),
    ("configMapRef", Some(NAMED)),
    ("secretRef", Some(NAMED)),
    ("emptyDir", Some(&["medium", "sizeLimit", "size_limit"])),
    ("hostPath", Some(&["path", "type"])),
    ("persistentVolumeClaim", Some(&["claimName", "claim_name"])),
    ("configMap", Some(&["name", "defaultMode", "default_mode", "items", "optional"])),
    ("volumeClaimTemplate", Some(&["metadata", "spec"])),
    ("scaleTargetRef", Some(REFERENCE)),
    ("roleRef", Some(REFERENCE)),
    ("objectReference", Some(REFERENCE)),
    ("claimRef", Some(REFERENCE)),
    ("labelSelector", Some(&["matchLabels", "match_labels"])),
    ("backend", Some(&["service", "resource"])),
];

const PROBE: &[&str] = &[
    "httpGet",
    "tcpSocket",
    "exec",
    "periodSeconds",
    "initialDelaySeconds",
    "timeoutSeconds",
    "failureThreshold",
];
const SECURITY: &[&str] = &[
    "runAsNonRoot",
    "runAsUser",
    "runAsGroup",
    "fsGroup",
    "privileged",
    "allowPrivilegeEscalation",
    "readOnlyRootFilesystem",
];
const KEY_OF: &[&str] = &["name", "key", "optional"];
const NAMED: &[&str] = &["name", "optional"];
const REFERENCE: &[&str] =
    &["name", "kind", "apiVersion", "apiGroup", "api_version", "api_group", "namespace"];

/// Whether braces with these words, in a field of that name, surely hold fields.
pub(super) fn is_struct<'a>(field: &str, mut words: impl Iterator<Item = &'a str>) -> bool {
    let known = STRUCTS.iter().find(|(name, _)| *name == field);
    known.is_some_and(|(_, fields)| {
        fields.is_none_or(|fields| words.any(|word| fields.contains(&word)))
    })
}
