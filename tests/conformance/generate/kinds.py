"""The life of an object of every built-in kind."""

from steps import *

POD = {"containers": [{"name": "c", "image": "busybox"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTOR = {"matchLabels": {"a": "b"}}
ROLE = {"kind": "Role", "name": "x", "apiGroup": "rbac.authorization.k8s.io"}
CROLE = {"kind": "ClusterRole", "name": "x", "apiGroup": "rbac.authorization.k8s.io"}
JOB = {"template": {"spec": dict(POD, restartPolicy="Never")}}
SUBJECTS = [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
HOOK = [{"name": "h.example.com", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [{"apiGroups": ["none.example"], "apiVersions": ["v1"], "resources": ["nones"], "operations": ["CREATE"]}]}]
RULES = [{"apiGroups": ["none.example"], "apiVersions": ["v1"], "resources": ["nones"], "operations": ["CREATE"]}]
SLICE = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
# (api version, plural, kind, namespaced, tier, content)
KINDS = [
    ("v1", "configmaps", "ConfigMap", 1, 1, {"data": {"k": "v"}}),
    ("v1", "secrets", "Secret", 1, 1, {"stringData": {"k": "v"}}),
    ("v1", "services", "Service", 1, 2, {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    ("v1", "serviceaccounts", "ServiceAccount", 1, 1, {}),
    ("v1", "endpoints", "Endpoints", 1, 3, {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]}),
    ("v1", "events", "Event", 1, 1, {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "${u}"}, "reason": "R", "message": "m", "type": "Normal"}),
    ("v1", "limitranges", "LimitRange", 1, 3, {"spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]}}),
    ("v1", "resourcequotas", "ResourceQuota", 1, 3, {"spec": {"hard": {"services": "10"}}}),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", 1, 3, {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    ("v1", "pods", "Pod", 1, 2, {"spec": POD}),
    ("v1", "podtemplates", "PodTemplate", 1, 3, {"template": TEMPLATE}),
    ("v1", "replicationcontrollers", "ReplicationController", 1, 3, {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}}),
    ("v1", "nodes", "Node", 0, 3, {}),
    ("v1", "persistentvolumes", "PersistentVolume", 0, 3, {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}}),
    ("v1", "namespaces", "Namespace", 0, 1, {}),
    ("apps/v1", "deployments", "Deployment", 1, 2, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "statefulsets", "StatefulSet", 1, 3, {"spec": {"selector": SELECTOR, "serviceName": "s", "template": TEMPLATE}}),
    ("apps/v1", "daemonsets", "DaemonSet", 1, 3, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "replicasets", "ReplicaSet", 1, 3, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "controllerrevisions", "ControllerRevision", 1, 3, {"data": {"a": 1}, "revision": 1}),
    ("batch/v1", "jobs", "Job", 1, 3, {"spec": JOB}),
    ("batch/v1", "cronjobs", "CronJob", 1, 3, {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": JOB}}}),
    ("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", 1, 3, {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}}),
    ("autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", 1, 3, {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "targetCPUUtilizationPercentage": 50}}),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", 1, 2, {"spec": {"minAvailable": 1, "selector": SELECTOR}}),
    ("networking.k8s.io/v1", "ingresses", "Ingress", 1, 3, {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
    ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", 1, 3, {"spec": {"podSelector": {}}}),
    ("networking.k8s.io/v1", "ingressclasses", "IngressClass", 0, 3, {"spec": {"controller": "example.com/c"}}),
    ("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", 0, 3, {"spec": {"cidrs": ["10.9.0.0/24"]}}),
    ("rbac.authorization.k8s.io/v1", "roles", "Role", 1, 2, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    ("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", 1, 2, {"roleRef": ROLE, "subjects": SUBJECTS}),
    ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", 0, 2, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", 0, 2, {"roleRef": CROLE, "subjects": SUBJECTS}),
    ("coordination.k8s.io/v1", "leases", "Lease", 1, 1, {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "2020-01-01T00:00:00.000000Z"}}),
    ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", 1, 3, {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]}),
    ("events.k8s.io/v1", "events", "Event", 1, 2, {"eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "example.com/c", "reportingInstance": "i", "action": "A", "reason": "R", "note": "n", "type": "Normal", "regarding": {"kind": "Pod", "name": "p", "namespace": "${u}"}}),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", 0, 3, {"provisioner": "example.com/p"}),
    ("storage.k8s.io/v1", "csidrivers", "CSIDriver", 0, 3, {"spec": {}}),
    ("storage.k8s.io/v1", "csinodes", "CSINode", 0, 3, {"spec": {"drivers": []}}),
    ("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", 0, 3, {"spec": {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
    ("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", 1, 3, {"storageClassName": "s"}),
    ("storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", 0, 3, {"driverName": "d.example", "parameters": {"a": "b"}}),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", 0, 3, {"value": 10}),
    ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", 0, 3, {"handler": "h"}),
    ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", 0, 2, {"webhooks": HOOK}),
    ("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", 0, 2, {"webhooks": HOOK}),
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", 0, 3, {"spec": {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "true"}]}}),
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", 0, 3, {"spec": {"policyName": "${u}", "validationActions": ["Deny"]}}),
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", 0, 3, {"spec": {"matchConstraints": {"resourceRules": RULES}, "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]}}),
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", 0, 3, {"spec": {"policyName": "${u}"}}),
    ("certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", 0, 3, {"spec": {"request": "aaaa", "signerName": "example.com/s", "usages": ["client auth"]}}),
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas", "FlowSchema", 0, 3, {"spec": {"priorityLevelConfiguration": {"name": "global-default"}}}),
    ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", 0, 3, {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}}),
    ("resource.k8s.io/v1", "deviceclasses", "DeviceClass", 0, 3, {"spec": {}}),
    ("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", 1, 3, {"spec": {}}),
    ("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate", 1, 3, {"spec": {"spec": {}}}),
    ("resource.k8s.io/v1", "resourceslices", "ResourceSlice", 0, 3, {"spec": SLICE}),
    ("corpus.example/v1", "widgets", "Widget", 1, 1, {"spec": {"size": 1}}),
    ("corpus.example/v1", "gadgets", "Gadget", 0, 1, {"spec": {"size": 1}}),
    ("corpus.example/v1", "plains", "Plain", 1, 1, {"spec": {"size": 1}}),
]


def base(api, plural, namespaced):
    """The path of a collection."""
    root = "/api/v1" if api == "v1" else "/apis/" + api
    return root + ("/namespaces/${u}/" if namespaced else "/") + plural


def life(api, plural, kind, namespaced, tier, content):
    """The scripts of a kind."""
    path = base(api, plural, namespaced)
    name = "${u}" + (".example.com" if plural in ("csidrivers",) else "-a")
    if plural == "servicecidrs":
        name = "${u}"
    one = path + "/" + name
    body = dict(content, apiVersion=api, kind=kind, metadata={"name": name, "labels": {"l": "1"}})
    relabelled = lambda label, **meta: dict(body, metadata=dict({"name": name, "labels": {"l": label}}, **meta))
    key = plural + api.split("/")[-1] if plural == "horizontalpodautoscalers" else plural
    key = "events-new" if api == "events.k8s.io/v1" else key
    steps = [
        post(path + "?dryRun=All", body),
        post(path, body, set=rv()),
        post(path, body),
        get(one),
        get(one + "?resourceVersion=0"),
        get(one, headers=TABLE),
        get(one, headers=PARTIAL),
        put(one, relabelled("2", resourceVersion="${rv}"), set=rv("two")),
        put(one, relabelled("3", resourceVersion="${rv}")),
        put(one, relabelled("4")),
        patch(one, {"metadata": {"annotations": {"x": "y"}}}),
        patch(one, [{"op": "add", "path": "/metadata/labels/j", "value": "1"}], kind=JSONPATCH),
        patch(one, {"metadata": {"labels": {"l": None, "s": "1"}}}, kind=STRATEGIC),
        apply(one, {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": {"app": "1"}}}),
        get(path + "?fieldSelector=metadata.name=" + name),
        get(path + "?fieldSelector=metadata.name=" + name, headers=TABLE),
        watch(path + "?fieldSelector=metadata.name=" + name, 1, "&resourceVersion=0"),
        delete(one + "?dryRun=All"),
        delete(one),
        get(one),
        delete(one),
    ]
    # A controller removes them some time later.
    if plural in ("jobs", "replicationcontrollers", "namespaces"):
        steps[-2]["until"] = {"code": 404}
    # A second range of addresses would be used by the Services of other scripts.
    if plural == "servicecidrs":
        steps = steps[:1]
    script("kinds", key, tier, "life of an object of " + kind, steps, ns=bool(namespaced))
    errors = [
        post(path, {"apiVersion": api, "kind": kind, "metadata": {}}),
        post(path, {"apiVersion": api, "kind": kind, "metadata": {"name": name}}),
        post(path, {"apiVersion": api, "kind": kind, "metadata": {"name": "Bad_Name"}, **content}),
        post(path + "?fieldValidation=Strict", dict(body, bogus=1)),
        post(path + "?fieldValidation=Warn&dryRun=All", dict(body, bogus=1)),
        post(path, dict(body, kind="Wrong")),
        post(path, dict(body, apiVersion="wrong/v1")),
        post(path, dict(body, metadata={"name": name, "resourceVersion": "5"})),
        post(path, dict(body, metadata={"name": name, "labels": {"bad key!": "x", "ok": "bad value!"}})),
        post(path, dict(body, metadata={"name": name, "namespace": "elsewhere"})),
        post(path, dict(body, spec="text")),
        put(one, relabelled("1")),
        patch(one, {"metadata": {"labels": {"x": "y"}}}),
        get(one + "/status"),
        get(one + "/nonsense"),
        delete(path + "/missing"),
        step("POST", one, body),
        step("PUT", path, body),
        get(path + "?limit=abc"),
        get(path + "?labelSelector=a%20b"),
        get(path + "?fieldSelector=spec.nope=1"),
        get(path + "?resourceVersion=abc"),
    ]
    if plural == "servicecidrs":
        errors = [one for one in errors if not one["do"].startswith("PUT")][2:]
    script("kinderrors", key, tier, "refused requests about " + kind, errors, ns=bool(namespaced))


for row in KINDS:
    life(*row)
