"""Values that are stored as they were sent, nulls and emptied objects of applies, numbers of sets, and first writes."""

import json

from fixtures import CRDS, definition, served, version
from steps import *

REVISIONS = "/apis/apps/v1/namespaces/${u}/controllerrevisions"


def revision(name="a", **more):
    """A ControllerRevision."""
    return dict({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}, "revision": 1, "data": {"a": 1, "b": {"c": [1, 2]}}}, **more)


def operation(name, path, **more):
    """A JSON patch with a single operation."""
    return [dict({"op": name, "path": path}, **more)]


A = REVISIONS + "/a"
merges = [{"metadata": {"labels": {"a": "b"}}}, {"revision": 2}, {"data": {"a": 2}}, {"data": {"a": 1}}, {"data": None}, {"data": {"b": None}}, {"revision": None}, {"revision": -1}, {"data": "x"}, {"data": [1]}, {"data": {}}, {"data": {"x": 1}, "revision": -3}, {}]
nested = [{"data": {"b": {"c": [1, 2]}}}, {"data": {"b": {"d": None}}}, {"data": {"b": [1]}}, {"data": {"e": {"f": None, "g": 1}}}]
operations = [operation("replace", "/revision", value=7), operation("replace", "/data/a", value=2), operation("test", "/data/a", value=1), operation("remove", "/data"), operation("replace", "/data", value=None), operation("add", "/data/b/c/-", value=3), operation("replace", "/data", value={"a": 1, "b": {"c": [1, 2]}}), operation("remove", "/revision"), operation("replace", "/data", value="q")]
intents = [revision(), revision(revision=9), revision(data={"a": 2}), revision(data={"a": 1}), revision(data={}), revision(data=None), revision(data="x"), revision(data=5), revision(data=[1]), revision(revision=-1)]
steps = [post(REVISIONS, revision())]
for one in merges + nested:
    steps += [patch(A, one), patch(A, one, STRATEGIC)]
steps += [patch(A, one, JSONPATCH) for one in operations]
for one in intents:
    steps += [apply(A, one), apply(A, one, query="&force=true"), apply(A, one, "m2")]
steps += [apply(REVISIONS + "/n%d" % at, dict(one, metadata={"name": "n%d" % at}), query="&dryRun=All") for at, one in enumerate(intents)]
steps += [put(A, one) for one in [revision(), revision(data={"a": 2}), revision(data=None)]]
steps += [get(A)]
script("raw", "revisions", 2, "patches of the data of a ControllerRevision, which never changes", steps)

WIDGETS = "/apis/corpus.example/v1/namespaces/${u}/widgets"


def widget(name, **spec):
    """A Widget of the fixtures."""
    return {"apiVersion": "corpus.example/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


filled = [("any", {"x": {}}), ("any", {"x": 1}), ("map", {"a": "b"}), ("nested", {"must": "a", "may": "b"}), ("tags", ["a"]), ("ports", [{"port": 1}]), ("atom", {"a": "b"}), ("parts", [{"a": "b"}]), ("template", {"apiVersion": "v1", "kind": "X", "x": 1})]
steps = []
for at, (field, value) in enumerate(filled):
    name = "w%d" % at
    for one in [value, type(value)(), None]:
        steps += [apply(WIDGETS + "/" + name, widget(name, **{field: one}))]
    steps += [apply(WIDGETS + "/" + name, widget(name))]
for name, held, sent in [("d", {"x": {"y": 1}}, {"x": {}}), ("e", {"x": [1]}, {"x": []}), ("f", {"x": {"y": {"z": 1}, "k": 1}}, {"x": {"y": {}}})]:
    steps += [apply(WIDGETS + "/" + name, widget(name, any=one)) for one in [held, sent]]
for sent in [{"must": "a", "deep": {"x": 1}}, {"must": "a", "deep": {}}]:
    steps += [apply(WIDGETS + "/g", widget("g", nested=sent))]
script("raw", "emptied", 2, "applies that empty what they applied before", steps)

nulls = [("tags", None), ("tags", [None]), ("map", {"a": None}), ("note", None), ("mode", None), ("ports", [None]), ("ports", [{"port": 1, "protocol": None}]), ("ports", [{"port": None}]), ("nested", {"must": None}), ("nested", {"must": "a", "may": None}), ("atom", {"a": None}), ("parts", [None]), ("parts", [{"a": None}]), ("any", None), ("any", {"x": None}), ("size", None), ("either", None), ("steps", [None]), ("template", None), ("unknown", None)]
steps = []
for at, (field, value) in enumerate(nulls):
    body = widget("w%d" % at, **{field: value})
    steps += [apply(WIDGETS + "/w%d" % at, body), apply(WIDGETS + "/x", widget("x", **{field: value}), query="&force=true")]
    steps += [post(WIDGETS + "?dryRun=All", widget("y", **{field: value})), patch(WIDGETS + "/x", operation("add", "/spec/" + field, value=value), JSONPATCH)]
steps += [apply(WIDGETS + "/x/status", {"apiVersion": "corpus.example/v1", "kind": "Widget", "metadata": {"name": "x"}, "status": status}) for status in [{"phase": None}, {"conditions": None}, {"conditions": [{"type": "A", "status": None}]}]]
script("raw", "nulls", 2, "nulls that applies and other writes send for custom resources", steps)

CLAIMS = NS + "/persistentvolumeclaims"


def claim(name, **spec):
    """A claim of a volume."""
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": dict({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}, **spec)}


C = CLAIMS + "/%s"
steps = []
for name, write in [("a", patch(C % "a", {})), ("b", patch(C % "b", {}, STRATEGIC)), ("c", patch(C % "c", [], JSONPATCH)), ("d", patch(C % "d/status", {})), ("e", apply(C % "e/status", claim("e"), "m3")), ("f", patch(C % "f?dryRun=All", {})), ("g", put(C % "g", claim("g"))), ("h", patch(C % "h/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}))]:
    steps += [post(CLAIMS, claim(name)), write, write, patch(C % name, {}), patch(C % name, {})]
steps += [apply(C % "i", claim("i")), apply(C % "i", claim("i")), apply(C % "i", claim("i"))]
steps += [post(NS + "/configmaps", {"metadata": {"name": "a"}}), patch(NS + "/configmaps/a", {})]
script("raw", "claims", 2, "the first write to a claim is one, even if it changes nothing", steps)

GROUP = "${u}.corpus.example"
NUMS = "/apis/" + GROUP + "/v1/namespaces/${u}/nums"


def listed(items, kind="set", **more):
    """A list of a type."""
    return dict({"type": "array", "x-kubernetes-list-type": kind, "items": items}, **more)


NUMBER = {"type": "number"}
SPEC = {"i": listed({"type": "integer"}), "n": listed(NUMBER), "s": listed({"type": "string"}), "x": listed({"x-kubernetes-int-or-string": True}), "b": listed({"type": "boolean"}), "l": listed(listed(NUMBER, "atomic")), "o": listed({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"k": NUMBER, "l": NUMBER}}), "m": listed({"type": "object", "required": ["k"], "properties": {"k": NUMBER, "v": NUMBER}}, "map", **{"x-kubernetes-list-map-keys": ["k"]}), "u": {"type": "array", "items": NUMBER}}
OBJECT = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}
NUM = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "nums." + GROUP}, "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "nums", "singular": "num", "kind": "Num", "listKind": "NumList"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OBJECT}}]}}


def num(name, spec):
    """A Num as text, since a program may write 1.0 as 1."""
    return '{"apiVersion":"%s/v1","kind":"Num","metadata":{"name":"%s"},"spec":%s}' % (GROUP, name, spec)


sets = ['{"n":[1,1.0]}', '{"n":[1,1]}', '{"n":[1.0,1.0]}', '{"n":[1.0,1]}', '{"n":[1,1e0]}', '{"n":[1.5,1.50]}', '{"n":[1,10e-1]}', '{"n":[1,1.0,1]}', '{"n":[2,1,2.0,1.0,1]}', '{"i":[1,1.0]}', '{"i":[1,1]}', '{"x":[1,"1"]}', '{"x":[1,1.0]}', '{"x":["1","1"]}', '{"b":[true,true]}', '{"s":["a","a","a"]}', '{"l":[[1],[1.0]]}', '{"l":[[1],[1]]}', '{"o":[{"k":1},{"k":1.0}]}', '{"o":[{"k":1,"l":2},{"l":2,"k":1}]}', '{"m":[{"k":1},{"k":1.0}]}', '{"m":[{"k":1,"v":1},{"k":1,"v":2}]}', '{"m":[{"k":1.5},{"k":1.5}]}', '{"n":[1e100,1e100]}', '{"u":[1,1.0]}', '{"n":[0,0.0]}']
J = "application/json"
steps = [post(CRDS, NUM, pick=["/kind"]), served(NUMS)]
for at, one in enumerate(sets):
    steps += [post(NUMS + "?dryRun=All", raw=num("a", one), kind=J), step("PATCH", NUMS + "/p%d?fieldManager=m1" % at, raw=num("p%d" % at, one), kind=APPLY)]
for manager, name, one in [("m1", "q", '{"n":[1,2]}'), ("m2", "q", '{"n":[1.0,3]}'), ("m1", "q", '{"n":[2]}'), ("m3", "q", '{"n":[2.5,2.0]}'), ("m1", "r", '{"m":[{"k":1}]}'), ("m2", "r", '{"m":[{"k":1.0}]}')]:
    steps += [step("PATCH", NUMS + "/%s?fieldManager=%s" % (name, manager), raw=num(name, one), kind=APPLY)]
steps += [post(NUMS, raw=num("t", '{"n":[1,1.0]}'), kind=J), get(NUMS + "/t"), step("PUT", NUMS + "/t", raw=num("t", '{"n":[1,1.0]}'), kind=J), patch(NUMS + "/t", {}), patch(NUMS + "/t", {"spec": {"i": [3]}}), apply(NUMS + "/t", json.loads(num("t", '{"n":[1]}')))]
NAME = CRDS + "/nums." + GROUP
steps += [delete(NAME, pick=["/kind"]), get(NAME, until={"code": 404})]
script("raw", "numbers", 2, "equal numbers in lists that are sets", steps)

PODS = NS + "/pods"


def gated(name, **spec):
    """A Pod that waits for a gate."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": dict({"containers": [{"image": "i", "name": "c"}], "schedulingGates": [{"name": "g"}]}, **spec)}


steps = [post(PODS, gated("a")), patch(PODS + "/a", {"spec": {"nodeSelector": {}, "schedulerName": "mine"}}), apply(PODS + "/a", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"hostNetwork": True, "nodeSelector": {}}}, "m2", "&force=true"), patch(PODS + "/a", {"spec": {"nodeSelector": {"a": "b"}, "schedulerName": "mine"}}), patch(PODS + "/a", {"spec": {"nodeSelector": {"a": "b"}}}), patch(PODS + "/a", {"spec": {"nodeSelector": None, "schedulerName": "mine"}})]
for at, hook in enumerate([{"preStop": {"httpGet": {"port": 1}}}, {"postStart": {"httpGet": {"port": "a", "path": "x", "scheme": "HTTPS"}}, "preStop": {"tcpSocket": {"port": 2}}}]):
    steps += [post(PODS, gated("l%d" % at, containers=[{"name": "c", "image": "i", "lifecycle": hook}], initContainers=[{"name": "d", "image": "i", "restartPolicy": "Always", "lifecycle": hook}]))]
steps += [patch(PODS + "/a", {"spec": {"containers": [{"name": "c", "image": "i", "lifecycle": {"preStop": {"httpGet": {"port": "X_"}}}}]}})]
script("raw", "pods", 2, "defaults of hooks and an empty node selector within a refused change", steps)
