"""Objects and pages that a server makes by itself, positions of lists, and versions that are no longer there."""

import base64
import json

from fixtures import CRDS, OPEN, definition, served, version
from steps import *

CM, SVC = NS + "/configmaps", NS + "/services"
IPS, CIDRS = "/apis/networking.k8s.io/v1/ipaddresses", "/apis/networking.k8s.io/v1/servicecidrs"


def service(name, **spec):
    """A Service with a port."""
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": dict({"ports": [{"port": 80}]}, **spec)}


def address(name, parent=None):
    """An IPAddress."""
    parent = parent or {"resource": "services", "namespace": "${u}", "name": "other"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": name}, "spec": {"parentRef": parent}}


ip = {"ip": "/spec/clusterIP"}
SHORT = ["/metadata/labels", "/spec"]
script("own", "addresses", 2, "addresses of Services are objects", [
    get(IPS + "/10.0.0.1"),
    get(IPS + "/10.0.0.1", headers=TABLE),
    post(SVC, service("a"), set=ip),
    get(IPS + "/${ip}"),
    get(IPS + "?fieldSelector=metadata.name=${ip}", pick=["/items/0/metadata/labels", "/items/0/spec"]),
    patch(SVC + "/a", {"metadata": {"labels": {"a": "b"}}}, pick=["/metadata/labels"]),
    get(IPS + "/${ip}", pick=SHORT),
    patch(SVC + "/a", {"spec": {"type": "ExternalName", "externalName": "x.example"}}, pick=["/spec"]),
    get(IPS + "/${ip}", pick=SHORT),
    patch(SVC + "/a", {"spec": {"type": "ClusterIP", "externalName": None}}, pick=["/spec/type"], set=ip),
    get(IPS + "/${ip}", pick=SHORT),
    delete(SVC + "/a", pick=["/metadata/name"]),
    get(IPS + "/${ip}"),
    post(SVC + "?dryRun=All", service("b"), pick=["/spec/type"], set=ip),
    post(SVC, service("c", clusterIP="None"), pick=["/spec/clusterIPs"]),
    get(IPS + "/None"),
    post(SVC, service("d"), pick=["/kind"], set=ip),
    post(SVC, service("e", clusterIP="${ip}")),
    delete(IPS + "/${ip}"),
    get(IPS + "/${ip}"),
    patch(SVC + "/d", {"metadata": {"labels": {"a": "b"}}}, pick=["/metadata/labels"]),
    get(IPS + "/${ip}"),
    delete(SVC, pick=["/kind"]),
    get(IPS + "/${ip}"),
])
script("own", "addresses-of-others", 2, "addresses that somebody has taken by an object", [
    post(IPS, address("10.0.0.14")),
    post(SVC, service("a", clusterIP="10.0.0.14")),
    post(SVC + "?dryRun=All", service("a", clusterIP="10.0.0.14"), pick=["/spec/clusterIP"]),
    put(IPS + "/10.0.0.14", address("10.0.0.14", {"resource": "pods", "name": "x"})),
    patch(IPS + "/10.0.0.14", {"metadata": {"labels": {"a": "b"}}}, pick=SHORT),
    delete(IPS + "/10.0.0.14"),
    post(SVC, service("a", clusterIP="10.0.0.14"), pick=["/spec/clusterIPs"]),
    get(IPS + "/10.0.0.14"),
    post(IPS, address("10.0.0.14")),
    delete(SVC + "/a", pick=["/metadata/name"]),
    get(IPS + "/10.0.0.14"),
] + [post(IPS + "?dryRun=All", one) for one in [
    address("10.250.0.1"),
    address("10.250.0.01"),
    address("x"),
    address("2001:db8::1"),
    address("2001-db8--1"),
    address("10.250.0.2", {}),
    address("10.250.0.2", {"resource": "Services", "name": "a_"}),
    address("10.250.0.2", {"group": "Bad_", "resource": "a", "namespace": "A", "name": "a"}),
    {"metadata": {"name": "10.250.0.3"}},
    {"metadata": {"name": "10.250.0.3"}, "spec": {}},
]])
CIDR = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "${u}"}, "spec": {"cidrs": ["10.96.7.0/28"]}}
ready = lambda status: {"status": {"conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}}
script("own", "ranges", 2, "ranges of addresses that somebody adds", [
    get(CIDRS + "/kubernetes"),
    get(CIDRS + "/kubernetes", headers=TABLE),
    post(CIDRS, CIDR),
    # Ready as long as the status does not say otherwise.
    post(SVC, service("a", clusterIP="10.96.7.3"), until={"code": 201}, pick=["/spec/clusterIPs"]),
    get(IPS + "/10.96.7.3", pick=SHORT),
    patch(CIDRS + "/${u}/status", ready("False")),
    post(SVC + "?dryRun=All", service("b", clusterIP="10.96.7.4"), until={"code": 422}),
    patch(CIDRS + "/${u}/status", ready("True"), pick=["/status/conditions/0/status"]),
    post(SVC + "?dryRun=All", service("b", clusterIP="10.96.7.4"), until={"code": 201}, pick=["/kind"]),
    post(SVC, service("b", clusterIP="10.96.7.15")),
    post(SVC, service("b", clusterIP="10.96.7.0")),
    post(SVC, service("b", clusterIP="10.96.7.14"), pick=["/spec/clusterIPs"]),
    delete(SVC, pick=["/kind"]),
    get(IPS + "/10.96.7.3"),
    delete(CIDRS + "/${u}"),
    get(CIDRS + "/${u}"),
])

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
OWN = "${u}.corpus.example"
ours = definition(OWN, "things", "Thing", [version("v1", OPEN), version("v2beta1", OPEN, storage=False)])
second = definition(OWN, "others", "Other", [version("v1", OPEN)])
remote = lambda **spec: {"metadata": {"name": "v1.${u}.example"}, "spec": dict({"group": "${u}.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}, **spec)}
PARTS = ["/kind", "/metadata/name", "/metadata/labels", "/metadata/managedFields", "/metadata/generation", "/spec", "/status"]
TO = {"namespace": "${u}", "name": "x", "port": 443}
script("own", "apiservices", 2, "an APIService for each group and version", [
    get(SERVICES + "/v1.", pick=PARTS),
    get(SERVICES + "/v1.apps", pick=PARTS),
    get(SERVICES + "/v2.autoscaling", headers=TABLE),
    get(SERVICES + "?labelSelector=kube-aggregator.kubernetes.io/automanaged=onstart", headers=TABLE, pick=["/rows/%d/cells" % n for n in range(30)]),
    post(CRDS, ours, pick=["/kind"]),
    post(CRDS, second, pick=["/kind"]),
    get(SERVICES + "/v1." + OWN, until={"at": "/status/conditions/0/status", "is": "True"}),
    get(SERVICES + "/v2beta1." + OWN, until={"at": "/status/conditions/0/status", "is": "True"}),
    delete(SERVICES + "/v1." + OWN),
    get(SERVICES + "/v1." + OWN, until={"at": "/status/conditions/0/status", "is": "True"}, pick=["/spec"]),
    patch(SERVICES + "/v1." + OWN, {"spec": {"versionPriority": 5}}, pick=["/spec"]),
    get(SERVICES + "/v1." + OWN, until={"at": "/spec/versionPriority", "is": 100}, pick=["/spec"]),
    delete(CRDS + "/things." + OWN, pick=["/kind"]),
    get(SERVICES + "/v2beta1." + OWN, until={"code": 404}),
    get(SERVICES + "/v1." + OWN, pick=["/spec"]),
    delete(CRDS + "/others." + OWN, pick=["/kind"]),
    get(SERVICES + "/v1." + OWN, until={"code": 404}),
])
script("own", "apiservices-of-others", 3, "an APIService without a server", [
    post(SERVICES, remote(service=TO)),
    get(SERVICES + "/v1.${u}.example", until={"at": "/status/conditions/0/status", "is": "False"}),
    get("/apis/${u}.example/v1"),
    get("/apis/${u}.example/v1/things"),
    get("/apis/${u}.example"),
    patch(SERVICES + "/v1.${u}.example", {"spec": {"insecureSkipTLSVerify": True}}, pick=["/spec"]),
    patch(SERVICES + "/v1.${u}.example", {"spec": {"caBundle": "eA=="}}),
    delete(SERVICES + "/v1.${u}.example"),
    get("/apis/${u}.example/v1", until={"code": 404}),
] + [post(SERVICES + "?dryRun=All", one) for one in [
    remote(),
    remote(group=""),
    remote(version="V_"),
    remote(service={"name": "x"}),
    remote(service=dict(TO, port=0)),
    remote(service=TO, groupPriorityMinimum=0),
    remote(service=TO, versionPriority=1001),
    remote(service=TO, groupPriorityMinimum=20001),
    remote(service=TO, caBundle="e30="),
    dict(remote(service=TO), metadata={"name": "x"}),
    {"metadata": {"name": "v1.x"}},
]])

def shape(kind, v):
    """The form in which a page is asked for."""
    return {"accept": "application/json;as=%s;v=%s;g=config.k8s.io" % (kind, v)}


ZPAGES = [("/flagz", "Flagz"), ("/statusz", "Statusz")]
script("own", "pages", 3, "flags and state of the server", [one for path, kind in ZPAGES for one in [
    get(path, headers=shape(kind, "v1beta1"), pick=["/apiVersion", "/kind", "/metadata", "/binaryVersion", "/emulationVersion", "/flags/authorization-mode"]),
    get(path, headers=shape(kind, "v1alpha1"), pick=["/apiVersion", "/kind", "/metadata"]),
    get(path, headers=shape(kind, "v1")),
    get(path, headers=shape("Other", "v1beta1")),
    get(path, headers={"accept": "application/json"}),
    get(path, headers={"accept": "application/yaml"}),
    get(path, headers={"accept": "text/html"}),
    get(path, headers={"accept": "application/vnd.kubernetes.protobuf"}),
    get(path, user="nobody"),
    get(path, token=""),
    get(path + "/x"),
    get(path + "/"),
    post(path, {}, headers=shape(kind, "v1beta1"), pick=["/kind"]),
    delete(path, headers=shape(kind, "v1beta1"), pick=["/kind"]),
]] + [get("/statusz", headers=shape("Statusz", "v1beta1"), pick=["/paths"])], ns=False)
script("own", "texts", 3, "flags and state of the server as texts", [get(path, headers=h) for path, _ in ZPAGES for h in [{}, {"accept": "text/plain"}, {"accept": "*/*"}]] + [get(path) for path in ["/debug/pprof", "/debug/flags", "/configz", "/logs", "/swagger.json", "/swaggerapi", "/ui", "/api/"]], ns=False)

W = "/api/v1/watch"
END = "timeoutSeconds=1"
script("own", "old-watches", 2, "watches in the old form of paths", [
    post(CM, config("a", {"k": "v"})),
    post(CM, config("b", {"k": "v"}, labels={"l": "1"})),
] + [step("GET", path, events=count) for path, count in [
    (W + "/namespaces/${u}/configmaps?" + END, 2),
    (W + "/namespaces/${u}/configmaps?labelSelector=l=1&" + END, 1),
    (W + "/namespaces/${u}/configmaps/a?" + END, 1),
    (W + "/namespaces/${u}/configmaps/a?watch=false&" + END, 1),
    (W + "/namespaces/${u}/configmaps/nope?" + END, 1),
    (W + "/namespaces/${u}?" + END, 1),
    (W + "/namespaces?fieldSelector=metadata.name=${u}&" + END, 1),
    (W + "/configmaps?fieldSelector=metadata.namespace=${u}&" + END, 2),
    (W + "/nodes/nope?" + END, 1),
    (W + "/namespaces/${u}/configmaps/a/status?" + END, 1),
    (W + "/namespaces/${u}/pods/p/log?" + END, 1),
    (W + "/namespaces/${u}/status?" + END, 1),
    (W + "/componentstatuses?" + END, 1),
    (W + "?" + END, 1),
    (W + "/?" + END, 1),
    ("/apis/apps/v1/watch/namespaces/${u}/deployments?" + END, 1),
    ("/apis/apps/v1/watch/namespaces/${u}/deployments/d/scale?" + END, 1),
    ("/apis/authorization.k8s.io/v1/watch/selfsubjectaccessreviews?" + END, 1),
    ("/apis/apiextensions.k8s.io/v1/watch/customresourcedefinitions/gadgets.corpus.example?" + END, 1),
    ("/apis/apiregistration.k8s.io/v1/watch/apiservices/v1.apps?" + END, 1),
    ("/apis/corpus.example/v1/watch/namespaces/${u}/widgets?" + END, 1),
    ("/apis/corpus.example/v1/watch/widgets?fieldSelector=metadata.namespace=${u}&" + END, 1),
    (W + "/namespaces/${u}/configmaps?resourceVersion=x&" + END, 1),
    (W + "/namespaces/${u}/configmaps?limit=1&continue=x&" + END, 2),
    (W + "/namespaces/${u}/configmaps?sendInitialEvents=true&" + END, 1),
    (W + "/namespaces/${u}/configmaps/a?fieldSelector=metadata.name=b&" + END, 1),
    (W + "/namespaces/${u}/configmaps/a?fieldSelector=metadata.name=a&" + END, 1),
]] + [step(method, W + "/namespaces/${u}/configmaps" + name, {} if method in ["POST", "PUT"] else None) for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] for name in ["", "/a"]] + [
    step("GET", W + "/namespaces/${u}/configmaps?" + END, events=1, headers=TABLE),
    step("GET", W + "/namespaces/${u}/configmaps?" + END, events=2, user="nobody"),
    step("GET", W + "/namespaces/${u}/configmaps?" + END, headers={"accept": "application/yaml"}, events=1),
])


def token(raw):
    """A position of a list, made by hand."""
    text = raw if isinstance(raw, str) else json.dumps(raw, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def at(rv, start, v="meta.k8s.io/v1", **more):
    """A position."""
    return token(dict({"v": v, "rv": rv, "start": start}, **more))


TOKENS = [
    at(-1, "b"), at(-1, "b\0"), at(-1, "/b"), at(-1, "${u}/b"), at(-1, "z"), at(-1, "a"), at(-2, "b"), at(-1, "./b"), at(-1, "x/../b"), at(-1, "b/.."), at(-1, "b/../c"), at(-1, "."), at(-1, ".."), at(-1, "/"), at(-1, "//b"), at(-1, "b/"), at(-1, "b/c"), at(-1, "%62"),
    at(0, "b"), at(1, "b"), at(999999999, "b"), at(9223372036854775807, "b"), token('{"v":"meta.k8s.io/v1","rv":9223372036854775808,"start":"b"}'),
    at("1", "b"), at(1.5, "b"), at(None, "b"), at(-1, None), at(-1, 1), at(-1, ""), at(-1, "b", v=""), at(-1, "b", v="v1"), at(-1, "b", v="meta.k8s.io/v2"), at(-1, "b", v=None), at(-1, "b", extra=1),
    token({"rv": -1, "start": "b"}), token({"v": "meta.k8s.io/v1", "start": "b"}), token({"v": "meta.k8s.io/v1", "rv": -1}), token({"V": "meta.k8s.io/v1", "RV": -1, "Start": "b"}),
    token("[]"), token("null"), token('"x"'), token("1"), token("{}"), token("{"), token(""), token('{"v":"meta.k8s.io/v1","rv":-1,"start":"b"} x'), token('{"v":"meta.k8s.io/v1","rv":-1,"start":"b","start":"c"}'),
    base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":-1,"start":"b"}  ').decode().replace("=", "%3D"), "x", "xx", "xxx", "xxxx", "%3D", "a%2Fb", "a%2Bb", "a_-b", "a%20b", "a%0Ab", "%C3%A4",
]
MAPS = [post(CM, config(name, {"k": "v"}), pick=["/kind"]) for name in "abc"]
NAMES = ["/metadata/remainingItemCount"] + ["/items/%d/metadata/name" % n for n in range(3)]
script("own", "positions", 2, "positions of lists that are made by hand", MAPS + [get(CM + "?continue=" + one, pick=NAMES) for one in TOKENS])
GADGETS = "/apis/corpus.example/v1/gadgets"
CLUSTER = [at(-1, "${u}-b")]
WG = "/apis/corpus.example/v1/namespaces/${u}/widgets"
more = lambda n, **q: get(CM + "?limit=1" + "".join("&%s=%s" % kv for kv in q.items()), pick=NAMES, set={"next": "/metadata/continue"})
# A controller may have made another object of the namespace: how many are left is not compared.
NAMES = NAMES[1:]
script("own", "positions-options", 2, "positions of lists with other options", MAPS + [
    get(CM + "?limit=1", pick=NAMES, set={"next": "/metadata/continue"}),
    get(CM + "?continue=${next}", pick=NAMES),
    get(CM + "?continue=${next}&limit=1", pick=NAMES),
    get(CM + "?continue=${next}&resourceVersion=0", pick=NAMES),
    get(CM + "?continue=${next}&resourceVersion=1", pick=NAMES),
    get(CM + "?continue=${next}&resourceVersion=x", pick=NAMES),
    get(CM + "?continue=${next}&resourceVersionMatch=Exact", pick=NAMES),
    get(CM + "?continue=${next}&resourceVersion=0&resourceVersionMatch=NotOlderThan", pick=NAMES),
    get(CM + "?continue=${next}&fieldSelector=metadata.name=a", pick=NAMES),
    get(CM + "?continue=${next}&fieldSelector=metadata.name=c", pick=NAMES),
    get(CM + "?continue=${next}&labelSelector=a=b", pick=NAMES),
    get(NS + "/secrets?continue=${next}", pick=NAMES),
    get("/api/v1/namespaces/default/configmaps?continue=${next}", pick=["/items/0/metadata/name"]),
    get(CM + "?continue=${next}&limit=-1", pick=NAMES),
    get(CM + "?continue=" + at(-1, "b") + "&limit=1", pick=NAMES, set={"other": "/metadata/continue"}),
    get(CM + "?continue=${other}&limit=1", pick=NAMES),
    get(CM + "?watch=1&timeoutSeconds=1&continue=${next}", events=3),
    delete(CM + "?continue=${next}&limit=1", pick=NAMES),
    get(CM, pick=NAMES),
    delete(CM + "?continue=" + at(-1, "c"), pick=NAMES),
    get(CM, pick=NAMES),
    delete(CM + "?continue=" + at(0, "c"), pick=NAMES),
] + [post(WG, {"apiVersion": "corpus.example/v1", "kind": "Widget", "metadata": {"name": n}}, pick=["/kind"]) for n in "abc"] + [
    get(WG + "?continue=" + at(-1, "b"), pick=NAMES),
    get(WG + "?limit=1", pick=NAMES, set={"next": "/metadata/continue"}),
    get(WG + "?continue=${next}", pick=NAMES),
    get(WG + "?continue=" + at(0, "b"), pick=NAMES),
    get(WG + "?continue=x", pick=NAMES),
])

KEPT = definition(OWN, "kepts", "Kept", [version("v1", OPEN), version("v2", OPEN, storage=False)])
AT = "/apis/" + OWN + "/%s/namespaces/${u}/kepts"
NAME = CRDS + "/kepts." + OWN
kept = lambda v, name: {"apiVersion": OWN + "/" + v, "kind": "Kept", "metadata": {"name": name}, "spec": {"a": 1}}
only = lambda *versions: {"spec": {"versions": list(versions)}}
script("own", "versions", 2, "objects that are stored in a version that is gone", [
    post(CRDS, KEPT, pick=["/kind"]),
    served(AT % "v1"),
    post(AT % "v1", kept("v1", "a")),
    patch(NAME, only(version("v1", OPEN, storage=False), version("v2", OPEN)), pick=["/kind"]),
    get(NAME, until={"at": "/status/storedVersions", "is": ["v1", "v2"]}, pick=["/status/storedVersions"]),
    # The other version is in force as soon as new objects are stored so.
    get(AT % "v2" + "/a?probe", until={"code": 200}, pick=["/apiVersion"]),
    patch(NAME, only(version("v2", OPEN))),
    patch(NAME + "/status", {"status": {"storedVersions": ["v2"]}}, pick=["/status/storedVersions"]),
    patch(NAME, only(version("v2", OPEN)), pick=["/spec/versions/0/name"]),
    get(AT % "v1" + "/a", until={"code": 404}),
    get(AT % "v2" + "/a", until={"code": 500}),
    get(AT % "v2"),
    get(AT % "v2", headers=TABLE),
    get(AT % "v2", headers=PARTIALS),
    step("GET", AT % "v2" + "?watch=1&timeoutSeconds=1", events=1),
    post(AT % "v2", kept("v2", "b"), pick=["/kind"]),
    get(AT % "v2" + "/b", pick=["/kind"]),
    patch(AT % "v2" + "/a", {"metadata": {"labels": {"a": "b"}}}),
    put(AT % "v2" + "/a", kept("v2", "a")),
    apply(AT % "v2" + "/a", kept("v2", "a")),
    delete(AT % "v2" + "/a"),
    delete(AT % "v2"),
    # Served again: the objects are there.
    patch(NAME, only(version("v1", OPEN, storage=False), version("v2", OPEN)), pick=["/kind"]),
    get(AT % "v1" + "/a", until={"code": 200}),
    get(AT % "v2" + "/a"),
    patch(NAME + "/status", {"status": {"storedVersions": []}}, pick=["/status/storedVersions"]),
    patch(NAME + "/status", {"status": {"storedVersions": ["v1", "v3"]}}, pick=["/status/storedVersions"]),
    patch(NAME, only(version("v1", OPEN, storage=False), version("v2", OPEN))),
    delete(NAME, pick=["/kind"]),
    get(NAME, until={"code": 404}),
])
script("own", "versions-unserved", 2, "objects that are stored in a version that is not served", [
    post(CRDS, KEPT, pick=["/kind"]),
    served(AT % "v1"),
    post(AT % "v1", kept("v1", "a"), pick=["/kind"]),
    patch(NAME, only(dict(version("v1", OPEN), served=False), version("v2", OPEN, storage=False)), pick=["/kind"]),
    get(AT % "v1" + "/a", until={"code": 404}),
    get(AT % "v2" + "/a"),
    patch(AT % "v2" + "/a", {"spec": {"b": 1}}),
    patch(NAME, only(dict(version("v1", OPEN), served=False))),
    get(AT % "v2" + "/a", until={"code": 404}),
    get("/apis/" + OWN, until={"code": 404}),
    patch(NAME, only(dict(version("v1", OPEN), served=False), version("v2", OPEN, storage=False)), pick=["/kind"]),
    get(AT % "v2" + "/a", until={"code": 200}),
    delete(NAME, pick=["/kind"]),
    get(NAME, until={"code": 404}),
])
