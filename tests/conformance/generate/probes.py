"""Requests at the edges: options of collections, changed schemas, forms of answers, bodies of actions."""

from fixtures import CRDS, definition, served, version
from steps import *

CM, POD = NS + "/configmaps", NS + "/pods"
MAPS = [post(CM, config("c%d" % n, {"k": "v"}, labels={"n": str(n)})) for n in range(6)]

script("delete", "pages", 1, "deletion of a collection in pages", MAPS + [
    delete(CM + "?limit=2", pick=["/items/0/metadata/name", "/items/1/metadata/name"], set={"next": "/metadata/continue"}),
    get(CM, pick=["/items/0/metadata/name"]),
    delete(CM + "?labelSelector=n!=3&limit=1", pick=["/items"]),
    delete(CM + "?limit=1&continue=x"),
    delete(CM + "?limit=x"),
    delete(CM + "?dryRun=All&limit=1", pick=["/items/0/metadata/name"]),
    delete(CM + "/c5?uid=x"),
    delete(CM + "/c5?resourceVersion=1"),
    delete(CM, pick=["/items"]),
    get(CM, pick=["/items"]),
])

SPEC = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
WHOLE = {"type": "object", "properties": {"spec": SPEC, "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
LESS = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "c": {"type": "string", "default": "d"}}}}}
GROUP = "${u}.corpus.example"
SHRUNK = "/apis/" + GROUP + "/v1/namespaces/${u}/shrunks"
one = {"apiVersion": GROUP + "/v1", "kind": "Shrunk", "metadata": {"name": "x"}, "spec": {"a": "abc", "b": "2"}, "extra": {"k": "v"}}
script("crdschema", "shrunk", 2, "a schema that loses fields", [
    post(CRDS, definition(GROUP, "shrunks", "Shrunk", [version("v1", WHOLE)]), pick=["/spec/group"]),
    served(SHRUNK),
    post(SHRUNK, one),
    patch(CRDS + "/shrunks." + GROUP, [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": LESS}], JSONPATCH, pick=["/spec/group"]),
    # The schema is in force as soon as the default of the new field shows.
    get(SHRUNK + "/x?probe", until={"at": "/spec/c", "is": "d"}),
    patch(SHRUNK + "/x", {"metadata": {"labels": {"l": "1"}}}),
    patch(SHRUNK + "/x", {"spec": {"a": "xyz"}}),
    patch(SHRUNK + "/x", {"spec": {"a": "z"}}),
    get(SHRUNK + "/x"),
    delete(CRDS + "/shrunks." + GROUP, pick=["/kind"]),
])

DEPLOYMENTS = "/apis/apps/v1/namespaces/${u}/deployments"
PODSPEC = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}}}]}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": PODSPEC}}}
script("create", "quantities", 1, "quantities are spelled anew", [
    post(DEPLOYMENTS, DEPLOYMENT),
    apply(DEPLOYMENTS + "/d", DEPLOYMENT),
    patch(DEPLOYMENTS + "/d", {"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1500m", "memory": "1.5Gi"}}}]}}}}, STRATEGIC),
] + [post(POD + "?dryRun=All", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": size}}]}}, pick=["/spec/volumes/0/emptyDir"]) for size in ["1000m", "1e3", "12e5", "0.5Ki", "100n", "01", "12.34Ki", 1000, 0.25, "1.5E"]])

script("strategic", "heads", 2, "patches that name another kind, and empty ones", [
    post(DEPLOYMENTS, DEPLOYMENT, pick=["/kind"]),
    patch(DEPLOYMENTS + "/d", {"kind": "Other"}, STRATEGIC),
    patch(DEPLOYMENTS + "/d", {"apiVersion": "v1"}, STRATEGIC),
    step("PATCH", DEPLOYMENTS + "/d", raw="null", kind=STRATEGIC),
    patch(DEPLOYMENTS + "/d", {"kind": "Other"}),
])

script("jsonpatch", "strict", 2, "operations with more fields than they have", [
    post(CM, config("x", {"a": "1"})),
    patch(CM + "/x", [{"op": "add", "path": "/data/x", "value": "1", "extra": 2}], JSONPATCH),
    step("PATCH", CM + "/x", raw='[{"op":"add","path":"/data/y","value":"1","op":"add"}]', kind=JSONPATCH),
    patch(CM + "/x?fieldValidation=Ignore", [{"op": "add", "path": "/data/x", "value": "1", "extra": 2}], JSONPATCH),
])

HTML = {"accept": "text/html"}
OLDER = {"accept": "application/json;as=Table;v=v1beta1;g=meta.k8s.io"}
PART = {"accept": "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io"}
script("protocol", "forms", 2, "media types of documents, and older shapes", [
    post(CM, config("x", {"a": "1"})),
] + [get(path, headers=HTML) for path in ["/version", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/.well-known/openid-configuration", "/openid/v1/jwks"]] + [
    get("/version", headers={"accept": "application/yaml"}),
    get(CM + "/x", headers={"accept": "application/yaml;q=0"}),
    get(CM + "/x", headers=OLDER),
    get(CM, headers=OLDER),
    get(CM + "/x", headers=PART),
    get("/livez?verbose"),
    get("/readyz?verbose"),
    get("/healthz?verbose&exclude=etcd"),
    get("/readyz/shutdown"),
    get("/livez/shutdown"),
])

YAML = {"kind": "application/yaml"}
script("protocol", "repeated", 2, "keys of YAML that are there twice", [
    step("POST", CM, raw="metadata: {name: q}\nmetadata: {name: r}\n", **YAML),
    step("POST", CM, raw="metadata:\n  name: s\n  name: s\ndata:\n  a: b\n  a: c\n", **YAML),
    step("POST", CM + "?fieldValidation=Strict", raw="metadata: {name: q}\nmetadata: {name: t}\n", **YAML),
    step("PATCH", CM + "/w?fieldManager=m", raw='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w"},"data":{"n":"1"},"data":{"m":"2"}}', kind=APPLY),
    step("PATCH", CM + "/w?fieldManager=m&fieldValidation=Strict", raw="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w}\ndata: {a: b}\ndata: {c: d}\n", kind=APPLY),
])

BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
POD_P = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
script("subresources", "bodies", 2, "bodies of bindings and evictions", [
    post(POD, POD_P),
    post(POD + "/p/binding", dict(BINDING, target={})),
    post(POD + "/p/binding", dict(BINDING, target={"kind": "Pod", "name": "x"})),
    post(POD + "/p/binding", dict(BINDING, kind="Foo")),
    post(POD + "/p/eviction", {"apiVersion": "policy/v1", "kind": "Foo", "metadata": {"name": "p"}}),
    post(POD + "/p/binding", BINDING),
    put(POD + "/p", {"metadata": {"name": "p"}, "spec": dict(POD_P["spec"], nodeName="n")}),
])

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASS = {"metadata": {"name": "${u}-c"}, "value": 7, "preemptionPolicy": "Never"}
script("validation", "admission", 2, "priorities and runtime classes of Pods", [
    post(CLASSES, CLASS),
    post(POD, {"metadata": {"name": "a"}, "spec": dict(POD_P["spec"], priorityClassName="${u}-c")}),
    post(POD, {"metadata": {"name": "b"}, "spec": dict(POD_P["spec"], priorityClassName="${u}-c", priority=8)}),
    post(POD, {"metadata": {"name": "b"}, "spec": dict(POD_P["spec"], priority=5)}),
    post(POD, {"metadata": {"name": "b"}, "spec": dict(POD_P["spec"], preemptionPolicy="Never")}),
    post(POD, {"metadata": {"name": "b"}, "spec": dict(POD_P["spec"], runtimeClassName="none")}),
    post(POD, {"metadata": {"name": "b"}, "spec": dict(POD_P["spec"], overhead={"cpu": "1"})}),
    get(POD, pick=["/items/1"]),
])

ACCESS = "/apis/authorization.k8s.io/v1/"
GETS = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
LISTS = [{}, {"rawSelector": "a=b"}, {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}]
script("reviews", "selectors", 2, "reviews with selectors and names", [
    post(ACCESS + "selfsubjectaccessreviews", {"metadata": {"name": "x"}, "spec": GETS}),
    post(ACCESS + "subjectaccessreviews", {"metadata": {"name": "x"}, "spec": dict(GETS, user="u")}),
    post(ACCESS + "namespaces/${u}/localsubjectaccessreviews", {"metadata": {"name": "x"}, "spec": dict(GETS, user="u")}),
] + [post(ACCESS + "selfsubjectaccessreviews", {"spec": {"resourceAttributes": dict(GETS["resourceAttributes"], **{field: held})}}) for held in LISTS for field in ["labelSelector", "fieldSelector"]])

ROLES, BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All", "/apis/rbac.authorization.k8s.io/v1/namespaces/${u}/rolebindings?dryRun=All"
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
script("rbac", "references", 2, "references and selectors of roles that are refused", [
    post(ROLES, {"metadata": {"name": "${u}-a"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"-": "x"}}]}}),
    post(ROLES, {"metadata": {"name": "${u}-a"}, "aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}}),
    post(BINDINGS, {"metadata": {"name": "b"}, "roleRef": dict(REF, name="a/b")}),
    post(BINDINGS, {"metadata": {"name": "b"}, "roleRef": REF, "subjects": [{"name": "x"}]}),
])
