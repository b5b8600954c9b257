#!/usr/bin/env python3
"""Records the types of the built-in kinds from a running kube-apiserver.

    record-types.py https://127.0.0.1:6443 TOKEN > apiserver/src/typed/builtin.types

Reads /openapi/v3 and every named group document, and writes a line per type: field names,
types, formats, required, defaults, list types and keys, map types, patch strategies. No texts.
The format is explained in apiserver/src/typed/builtin.rs, the reader.
"""

import json
import ssl
import sys
import urllib.request

PREFIXES = [
    ("io.k8s.apimachinery.pkg.apis.meta.", "&"),
    ("io.k8s.apimachinery.pkg.", "+"),
    ("io.k8s.api.", "%"),
]
REF = "#/components/schemas/"

# Optional fields that the server always writes, as null when unset. The documents do not say
# them from others; they were found by creating such objects (see the conditions rule in `field`).
WRITTEN = {
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus", "currentMetrics"),
    ("io.k8s.api.core.v1.AzureFilePersistentVolumeSource", "secretNamespace"),
    ("io.k8s.api.core.v1.ContainerImage", "names"),
    ("io.k8s.api.core.v1.ContainerStateRunning", "startedAt"),
    ("io.k8s.api.core.v1.ContainerStateTerminated", "finishedAt"),
    ("io.k8s.api.core.v1.ContainerStateTerminated", "startedAt"),
    ("io.k8s.api.core.v1.Event", "eventTime"),
    ("io.k8s.api.core.v1.Event", "firstTimestamp"),
    ("io.k8s.api.core.v1.Event", "lastTimestamp"),
    ("io.k8s.api.core.v1.EventSeries", "lastObservedTime"),
    ("io.k8s.api.core.v1.ProjectedVolumeSource", "sources"),
    ("io.k8s.api.core.v1.TypedLocalObjectReference", "apiGroup"),
    ("io.k8s.api.core.v1.TypedObjectReference", "apiGroup"),
    ("io.k8s.api.discovery.v1.EndpointSlice", "endpoints"),
    ("io.k8s.api.discovery.v1.EndpointSlice", "ports"),
    ("io.k8s.api.events.v1.Event", "deprecatedFirstTimestamp"),
    ("io.k8s.api.events.v1.Event", "deprecatedLastTimestamp"),
    ("io.k8s.api.flowcontrol.v1.ResourcePolicyRule", "namespaces"),
    ("io.k8s.api.storage.v1.CSINodeDriver", "topologyKeys"),
    ("io.k8s.api.storage.v1.VolumeError", "time"),
}

# Optional fields with a zero default that the server nevertheless omits when unset; all others are written.
# An optional `name` with a default is omitted, too.
OMITTED = {
    ("io.k8s.api.autoscaling.v1.ScaleSpec", "replicas"),
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "readOnly"),
    ("io.k8s.api.core.v1.FileKeySelector", "optional"),
    ("io.k8s.api.core.v1.GRPCAction", "service"),
    ("io.k8s.api.core.v1.ReplicationControllerSpec", "minReadySeconds"),
}


def get(server, token, path):
    """A document of the server, as JSON; the certificate is not checked."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(
        server + path, headers={"Authorization": "Bearer " + token, "Accept": "application/json"}
    )
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


def short(name):
    """A type's name with the common prefix as a single character."""
    for prefix, sign in PREFIXES:
        if name.startswith(prefix):
            return sign + name[len(prefix):]
    return name


def reference(schema):
    """The type that a schema refers to, if any."""
    if "$ref" in schema:
        return schema["$ref"][len(REF):]
    if len(schema.get("allOf", [])) == 1:
        return reference(schema["allOf"][0])
    return None


def form(schema):
    """A type as text."""
    ref = reference(schema)
    if ref:
        override = {"atomic": "^", "granular": "~"}.get(schema.get("x-kubernetes-map-type"), "")
        return override + "@" + short(ref)
    if schema.get("format") == "int-or-string":
        return "x"
    if "oneOf" in schema:
        return "q"
    kind = schema.get("type")
    if kind is None:
        return "*"
    if kind in ("string", "integer", "number", "boolean"):
        fmt = schema.get("format")
        return kind[0] + ("<%s>" % fmt if fmt else "")
    if kind == "array":
        how = schema.get("x-kubernetes-list-type", "")
        if how == "map":
            how = ",".join(schema["x-kubernetes-list-map-keys"])
        elif how == "set":
            how = "="
        elif how == "atomic":
            how = "."
        return "[%s]" % how + form(schema["items"])
    if "additionalProperties" in schema:
        atomic = "." if schema.get("x-kubernetes-map-type") == "atomic" else ""
        return "{%s}" % atomic + form(schema["additionalProperties"])
    return "o"


def written(owner, name, schema):
    """Is the field in WRITTEN, or a time of a condition?"""
    time = reference(schema) == "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
    return (owner, name) in WRITTEN or (time and owner.endswith("Condition"))


def field(owner, name, schema, required):
    """A field as text."""
    omitted = name not in required and "default" in schema
    omitted = omitted and ((owner, name) in OMITTED or name == "name")
    sign = "!" if name in required else "?" if omitted else ""
    text = name + sign + ":" + form(schema)
    if "default" in schema:
        text += "=" + json.dumps(schema["default"], separators=(",", ":"))
    elif written(owner, name, schema) and name not in required:
        text += "=null"
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    key = schema.get("x-kubernetes-patch-merge-key", "")
    if strategy or key:
        text += "|" + strategy + (":" + key if key else "")
    assert " " not in text, text
    return text


def line(name, schema):
    """A type's line."""
    words = [short(name) + ("^" if schema.get("x-kubernetes-map-type") == "atomic" else "")]
    kinds = schema.get("x-kubernetes-group-version-kind", [])
    if len(kinds) == 1:
        kind = kinds[0]
        version = "/".join(part for part in (kind["group"], kind["version"]) if part)
        words.append("=%s,%s" % (version, kind["kind"]))
    if "properties" not in schema:
        words.append(":" + form(schema))
    required = schema.get("required", [])
    for key, value in sorted(schema.get("properties", {}).items()):
        words.append(field(name, key, value, required))
    return " ".join(words)


def main():
    """Reads everything, writes the types that have a group, sorted by name."""
    server, token = sys.argv[1].rstrip("/"), sys.argv[2]
    types = {}
    for path in get(server, token, "/openapi/v3")["paths"]:
        if path == "api/v1" or (path.startswith("apis/") and path.count("/") == 2):
            types.update(get(server, token, "/openapi/v3/" + path)["components"]["schemas"])
    for name in sorted(types):
        print(line(name, types[name]))


if __name__ == "__main__":
    main()
