"""Bodies that subresources and patches of missing objects read, the status of Pods, and orders of faults."""

import json

from steps import *

DEPLOYMENTS = "/apis/apps/v1/namespaces/${u}/deployments"
CONTROLLERS = NS + "/replicationcontrollers"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/${u}"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
CONTROLLER = {"metadata": {"name": "r"}, "spec": {"replicas": 2, "selector": {"a": "b"}, "template": TEMPLATE}}
POD = {"metadata": {"name": "p"}, "spec": TEMPLATE["spec"]}
FORMS = [JSONPATCH, STRATEGIC, MERGE, APPLY]


def sent(method, path, text, kind="application/json", **more):
    """A step with a body as text."""
    return step(method, path, kind=kind, raw=text, **more)


def patches(path, texts, forms=FORMS):
    """Each text as a patch of each type."""
    query = lambda form: "?fieldManager=m" if form == APPLY else ""
    return [sent("PATCH", path + query(form), text, form) for form in forms for text in texts]


odd = ['{"op":"add"}', '"x"', "[1]", "{", "", "null", "[]", "{}", '[{"op":"foo","path":"/a"}]', '{"kind":1}', '{"metadata":{"name":"b"}}']
steps = patches(NS + "/configmaps/nope", odd + ['{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}'])
for path in ["/scale", "/status"]:
    steps += patches(DEPLOYMENTS + "/nope" + path, odd + ['{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":"x"}}'])
script("writes", "missing", 2, "patches of missing objects that no patch can be read from", steps)

SCALE = DEPLOYMENTS + "/d/scale"
named = {"name": "d"}
scales = [{"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": named, "spec": {"replicas": 1}}, {"metadata": named, "spec": {"replicas": "x"}}, {"metadata": named, "spec": {"replicas": 2, "foo": 1}, "bar": 2}, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": named}, {"kind": "Foo", "apiVersion": "apps/v1", "metadata": named}, {"kind": "Scale", "apiVersion": "autoscaling/v2", "metadata": named}, {"kind": "Scale", "apiVersion": "extensions/v1beta1", "metadata": named}, {"kind": "Scale", "apiVersion": "apps/v1beta1", "metadata": named}, {"kind": "Scale", "metadata": named, "spec": {"replicas": 3}}, {"apiVersion": "autoscaling/v1", "metadata": named, "spec": {"replicas": 3}}, [], "x", 1, {"metadata": 1}, {"kind": 1}, {"metadata": dict(named, labels={"a": "b"}), "spec": {"replicas": 2}}, {"metadata": dict(named, labels={"a b": "b"}), "spec": {"replicas": -2}}, {"metadata": dict(named, uid="x"), "spec": {"replicas": 2}}, {"metadata": dict(named, resourceVersion="1"), "spec": {"replicas": 2}}, {"metadata": dict(named, resourceVersion="x"), "spec": {"replicas": 2}}, {"metadata": named, "spec": None}, {"metadata": named, "spec": {"replicas": 1.5}}, {"metadata": named, "spec": {"replicas": 99999999999}}, {"metadata": named, "spec": {"replicas": 2}, "status": {"replicas": "x"}}, {"metadata": dict(named, namespace="q")}, {"metadata": dict(named, finalizers=["x"]), "spec": {"replicas": 2}}]
steps = [post(DEPLOYMENTS, DEPLOYMENT)]
for query in ["", "?fieldValidation=Strict", "?dryRun=All"]:
    steps += [sent("PUT", SCALE + query, json.dumps(one)) for one in scales]
script("writes", "scale-put", 2, "bodies of a Scale", steps + [get(SCALE), get(DEPLOYMENTS + "/d")])

intents = ['{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":"x"}}', '{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":4}}', '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":5}}', '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"labels":{"x":"y"}},"spec":{"replicas":3}}', '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"managedFields":[{}]},"spec":{"replicas":3}}', '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"resourceVersion":"1"},"spec":{"replicas":3}}', '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"e"},"spec":{"replicas":3}}']
changes = ['{"spec":{"replicas":-1}}', '{"spec":null}', '{"status":{"replicas":3}}', '{"metadata":{"resourceVersion":"1"},"spec":{"replicas":2}}', '[{"op":"replace","path":"/spec/replicas","value":7}]', '[{"op":"replace","path":"/spec/replicas","value":"7"}]', '[{"op":"add","path":"/foo","value":"7"}]', '[{"op":"add","path":"/metadata/labels","value":{"a":"7"}}]', '[{"op":"remove","path":"/spec"}]', '[{"op":"test","path":"/spec/replicas","value":70}]', '{"spec":{"foo":1,"replicas":3}}', '{"spec":{"replicas":3.0}}']
steps = [post(DEPLOYMENTS, DEPLOYMENT)] + patches(SCALE, odd + intents + changes)
script("writes", "scale-patch", 2, "patches of a Scale", steps + [get(SCALE), get(DEPLOYMENTS + "/d")])

R = CONTROLLERS + "/r"
scale = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
steps = [post(CONTROLLERS, CONTROLLER), apply(R + "/scale", dict(scale, spec={"replicas": 3})), apply(R + "/scale", dict(scale, spec={"replicas": 3}), query="&force=true"), get(R), apply(R + "/scale", scale), get(R), apply(R + "/scale", dict(scale, spec={"replicas": 5}), "m2"), get(R)]
script("writes", "scale-owners", 2, "an apply that gives up the replicas of a Scale", steps)

bad = ["{", "", "null", "[]", '"x"', "{}", '{"kind":1}', '{"kind":"Foo"}', '{"kind":"Pod","apiVersion":"v1"}', '{"apiVersion":"v9"}', '{"metadata":1}', '{"metadata":{"name":"zz"}}', '{"metadata":{"namespace":"zz"}}', '{"foo":1}', '{"spec":1}', '{"metadata":{"labels":{"a b":"c"}}}']
steps = [post(NS + "/pods", POD), post(NS + "/serviceaccounts", {"metadata": {"name": "s"}})]
for query in ["", "?fieldValidation=Strict", "?fieldManager=x%0A"]:
    for path in ["/pods/p/binding", "/pods/p/eviction", "/serviceaccounts/s/token", "/bindings"]:
        # Accepted requests for tokens have other texts each time.
        fit = [text for text in bad if not path.endswith("token") or text not in ("null", "{}", '{"foo":1}', bad[-1])]
        steps += [sent("POST", NS + path + query, text) for text in fit]
for form in [MERGE, STRATEGIC]:
    for path in ["/pods/p/ephemeralcontainers", "/pods/p/resize", "/pods/p/status", "/finalize", "/status"]:
        steps += [sent("PATCH", NS + path, text, form) for text in bad]
script("writes", "actions", 2, "bodies of the subresources of Pods, ServiceAccounts and Namespaces", steps)

statuses = [{"podIP": "1.2.3"}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}, {"ip": "::2"}]}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "x"}]}, {"podIPs": [{"ip": "01.2.3.4"}]}, {"podIPs": [{"ip": ""}]}, {"podIPs": [{}]}, {"hostIP": "x"}, {"hostIPs": [{"ip": "x"}]}, {"hostIP": "1.1.1.1", "hostIPs": [{"ip": "1.1.1.2"}]}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}]}, {"podIP": "::1"}, {"nominatedNodeName": "a_b"}, {"resourceClaimStatuses": [{"name": "x"}]}, {"observedGeneration": -1}, {"qosClass": "Burstable", "podIP": "x", "nominatedNodeName": "a_b", "conditions": [{"type": "A", "observedGeneration": -1}]}]
steps = [post(NS + "/pods", POD)] + [patch(NS + "/pods/p/status", {"status": one}) for one in statuses] + [get(NS + "/pods/p")]
script("writes", "pod-status", 2, "addresses and names in the status of a Pod", steps)

label = {"a b": "c"}
steps = [post(NS + "/configmaps", {"metadata": {"name": "a"}, "immutable": True, "data": {"a": "b"}}), post(NS + "/secrets", {"metadata": {"name": "a"}, "immutable": True, "stringData": {"a": "b"}})]
for one in [{"metadata": {"labels": label, "annotations": {"x y": "1"}}, "data": {"a": "YQ==", "x y": "YQ=="}, "immutable": None, "binaryData": {"q": "aa=="}}, {"metadata": {"labels": label}, "data": {"a": "YQ=="}}, {"metadata": {"finalizers": ["bad"], "ownerReferences": [{"apiVersion": "v1", "kind": "X"}]}, "data": {"a": "YQ=="}}, {"type": "x", "data": {"a": "YQ=="}, "metadata": {"labels": label}}]:
    steps += [patch(NS + "/configmaps/a", one), patch(NS + "/secrets/a", one)]
steps += [post(NS + "/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}}) for ports in [[{}, {"port": 80}], [{"port": 0, "protocol": "X", "name": "A", "targetPort": "a_b"}, {"port": 70000, "appProtocol": "a b/c"}], [{"port": 80}, {"port": 80}]]]
subjects = [{"kind": "User"}, {"kind": "ServiceAccount", "name": "a b"}, {"kind": "Group", "name": "x", "namespace": "n"}, {"kind": "Foo", "name": "x"}, {"kind": "ServiceAccount", "name": "a", "apiGroup": "x"}]
steps += [post(ROLES + "/rolebindings", {"metadata": {"name": "v"}, "roleRef": {"kind": "Role", "name": "r", "apiGroup": "x"}, "subjects": subjects})]
D = DEPLOYMENTS + "/d"
steps += [post(DEPLOYMENTS, DEPLOYMENT)] + [patch(D, one, STRATEGIC) for one in [{"kind": 1}, {"apiVersion": []}, {"kind": "Foo"}, {"spec": {"replicas": 3.0}}, {"spec": {"replicas": 4.5}}]]
keyed = [("", "services", {"spec": {"ports": [{"port": 1}], "clusterIP": "None"}}), ("", "endpoints", {}), ("", "replicationcontrollers", {"spec": CONTROLLER["spec"]}), ("coordination.k8s.io", "leases", {}), ("rbac.authorization.k8s.io", "roles", {})]
for group, plural, spec in keyed:
    root = "/apis/%s/v1" % group if group else "/api/v1"
    path = root + "/namespaces/${u}/" + plural
    steps += [post(path, dict(spec, metadata={"name": "u"}))] + [put(path + "/u" + query, dict(spec, metadata={"name": "u", "uid": "q"})) for query in ["", "?dryRun=All"]]
script("writes", "orders", 2, "orders of faults, and keys of the store in conflicts about uids", steps)

CORE = NS + "/"
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
VOLUME = {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}
SELECTED = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
POLICY = {"spec": {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}}}
ROLE_REF = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
KINDS = [("/apis/%s/v1/namespaces/${u}/" % group if group else CORE, plural, spec) for group, plural, spec in [
    ("", "pods", POD), ("", "services", {"spec": {"ports": [{"port": 1}], "clusterIP": "None"}}), ("", "replicationcontrollers", {"spec": CONTROLLER["spec"]}), ("", "resourcequotas", {"spec": {"hard": {"pods": "9"}}}), ("", "persistentvolumeclaims", CLAIM), ("", "serviceaccounts", {}), ("", "limitranges", {"spec": {"limits": []}}), ("", "endpoints", {}), ("", "podtemplates", {"template": TEMPLATE}), ("", "events", {"involvedObject": {"namespace": "${u}"}, "type": "Normal"}),
    ("apps", "deployments", SELECTED), ("apps", "statefulsets", {"spec": dict(SELECTED["spec"], serviceName="s")}), ("apps", "daemonsets", SELECTED), ("apps", "replicasets", SELECTED), ("apps", "controllerrevisions", {"revision": 1, "data": {}}),
    ("batch", "cronjobs", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": dict(POD["spec"], restartPolicy="Never")}}}}}), ("policy", "poddisruptionbudgets", {"spec": {"minAvailable": 1}}), ("networking.k8s.io", "ingresses", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}}), ("networking.k8s.io", "networkpolicies", {"spec": {"podSelector": {}}}), ("coordination.k8s.io", "leases", {}), ("rbac.authorization.k8s.io", "roles", {}), ("rbac.authorization.k8s.io", "rolebindings", {"roleRef": ROLE_REF}), ("discovery.k8s.io", "endpointslices", {"addressType": "IPv4", "endpoints": []}), ("resource.k8s.io", "resourceclaims", {"spec": {}}), ("resource.k8s.io", "resourceclaimtemplates", {"spec": {"spec": {}}}), ("storage.k8s.io", "csistoragecapacities", {"storageClassName": "x"}),
]]
KINDS += [("/apis/%s/v1/" % group if group else "/api/v1/", plural, spec) for group, plural, spec in [
    ("", "persistentvolumes", VOLUME), ("", "nodes", {}), ("admissionregistration.k8s.io", "validatingadmissionpolicies", POLICY), ("admissionregistration.k8s.io", "validatingwebhookconfigurations", {"webhooks": []}), ("rbac.authorization.k8s.io", "clusterroles", {}), ("rbac.authorization.k8s.io", "clusterrolebindings", {"roleRef": ROLE_REF}), ("networking.k8s.io", "ingressclasses", {"spec": {"controller": "a.b/c"}}), ("storage.k8s.io", "storageclasses", {"provisioner": "p"}), ("storage.k8s.io", "csidrivers", {"spec": {}}), ("storage.k8s.io", "csinodes", {"spec": {"drivers": []}}), ("storage.k8s.io", "volumeattachments", {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}), ("storage.k8s.io", "volumeattributesclasses", {"driverName": "a.b", "parameters": {"a": "b"}}), ("scheduling.k8s.io", "priorityclasses", {"value": 1}), ("node.k8s.io", "runtimeclasses", {"handler": "h"}), ("resource.k8s.io", "deviceclasses", {"spec": {}}),
]]
WITH_STATUS = ["pods", "services", "replicationcontrollers", "resourcequotas", "persistentvolumeclaims", "deployments", "statefulsets", "daemonsets", "replicasets", "cronjobs", "poddisruptionbudgets", "ingresses", "resourceclaims", "persistentvolumes", "nodes", "validatingadmissionpolicies", "volumeattachments"]
metadata = {"labels": label, "generateName": "A_", "finalizers": ["x"], "deletionGracePeriodSeconds": 3, "uid": "zz"}
steps = []
for root, plural, spec in KINDS:
    path = root + plural
    steps += [post(path, dict(spec, metadata={"name": "${u}"})), patch(path + "/${u}", {"metadata": metadata})]
    steps += [patch(path + "/${u}/status", {"metadata": metadata})] if plural in WITH_STATUS else []
    steps += [delete(path + "/${u}?gracePeriodSeconds=0")]
script("writes", "metadata", 2, "faults of metadata in changes of each kind and status", steps)
