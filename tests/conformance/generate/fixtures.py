"""Definitions that many scripts share."""

from steps import get, post, put, script

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRING, INTEGER = {"type": "string"}, {"type": "integer"}
PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {"port": INTEGER, "name": STRING, "protocol": {"type": "string", "default": "TCP"}},
    },
}
WIDGET_SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 100},
        "color": {"type": "string", "enum": ["red", "green", "blue"]},
        "label": {"type": "string", "maxLength": 8, "minLength": 2, "pattern": "^[a-z]+$"},
        "mode": {"type": "string", "default": "auto"},
        "note": {"type": "string", "nullable": True},
        "replicas": {"type": "integer", "format": "int32"},
        "ratio": {"type": "number", "multipleOf": 0.5},
        "when": {"type": "string", "format": "date-time"},
        "enabled": {"type": "boolean"},
        "ports": PORTS,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
        "steps": {"type": "array", "maxItems": 3, "items": STRING},
        "parts": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {"a": STRING}}},
        "map": {"type": "object", "additionalProperties": STRING, "maxProperties": 3},
        "nested": {
            "type": "object",
            "required": ["must"],
            "properties": {"must": STRING, "may": STRING, "deep": {"type": "object", "properties": {"x": INTEGER}}},
        },
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": STRING, "b": STRING}},
        "either": {"x-kubernetes-int-or-string": True},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
WIDGET = {
    "type": "object",
    "properties": {
        "spec": WIDGET_SPEC,
        "status": {
            "type": "object",
            "properties": {
                "replicas": INTEGER,
                "selector": STRING,
                "phase": STRING,
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "required": ["type"], "properties": {"type": STRING, "status": STRING}},
                },
            },
        },
    },
}


def names(plural, kind, **more):
    """The names of a definition."""
    return dict({"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}, **more)


def version(name, schema, storage=True, **more):
    """A version of a definition."""
    return dict({"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}, **more)


def definition(group, plural, kind, versions, scope="Namespaced", **more):
    """A CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": plural + "." + group},
        "spec": dict({"group": group, "scope": scope, "names": names(plural, kind), "versions": versions}, **more),
    }


def served(path):
    """Waits until a resource is served."""
    return get(path, until={"code": 200}, pick=["/kind"])


SUB = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "The size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
G = "corpus.example"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
RULED = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min>max"},
                {"rule": "!has(oldSelf.fixed) || self.fixed == oldSelf.fixed", "message": "fixed is immutable"},
            ],
            "properties": {
                "min": INTEGER,
                "max": INTEGER,
                "fixed": STRING,
                "even": {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 0", "messageExpression": "self > 10 ? 'big and odd' : 'odd'"}]},
                "gone": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'no'", "message": "not no", "reason": "FieldValueForbidden"}]},
            },
        }
    },
}
widget = definition(G, "widgets", "Widget", [version("v1", WIDGET, subresources=SUB, additionalPrinterColumns=COLUMNS, selectableFields=[{"jsonPath": ".spec.color"}])])
widget["spec"]["names"].update(shortNames=["wd"], categories=["all", "corpus"])
gadget = definition(G, "gadgets", "Gadget", [version("v1", OPEN)], scope="Cluster")
plain = definition(G, "plains", "Plain", [version("v1", OPEN)])
ruled = definition(G, "ruleds", "Ruled", [version("v1", RULED)])
old = version("v1beta1", WIDGET, storage=False, deprecated=True)
many = definition("many." + G, "manies", "Many", [version("v1", WIDGET), old, version("v2alpha1", OPEN, storage=False, deprecated=True, deprecationWarning="use v1"), dict(version("v0", OPEN, storage=False), served=False)])

steps = []
for one in [widget, gadget, plain, ruled, many]:
    steps.append(post(CRDS, one))
    group, plural = one["spec"]["group"], one["spec"]["names"]["plural"]
    at = "/apis/%s/v1/%s" % (group, plural)
    steps.append(served(at))
    steps.append(get(CRDS + "/" + one["metadata"]["name"], pick=["/status/acceptedNames", "/status/storedVersions", "/spec"]))
script("fixtures", "definitions", 1, "definitions that other scripts use", steps, ns=False)
