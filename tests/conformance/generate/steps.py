"""Helpers that write steps and scripts; the format is explained in the README beside this folder."""

import json
import pathlib

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "corpus"
SCRIPTS = {}
NS = "/api/v1/namespaces/${u}"
MERGE = "application/merge-patch+json"
JSONPATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIAL = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIALS = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


def step(method, path, body=None, **more):
    """A step; `path` is relative to the root of the server."""
    out = {"do": method + " " + path}
    if body is not None:
        out["body"] = body
    for key, value in more.items():
        out[{"user": "as", "kind": "type"}.get(key, key)] = value
    return out


def get(path, **more):
    """A GET."""
    return step("GET", path, **more)


def post(path, body=None, **more):
    """A POST."""
    return step("POST", path, body, **more)


def put(path, body=None, **more):
    """A PUT."""
    return step("PUT", path, body, **more)


def patch(path, body, kind=MERGE, **more):
    """A PATCH, a JSON merge patch by default."""
    return step("PATCH", path, body, kind=kind, **more)


def apply(path, body, manager="m1", query="", **more):
    """A server-side apply."""
    return step("PATCH", "%s?fieldManager=%s%s" % (path, manager, query), body, kind=APPLY, **more)


def delete(path, body=None, **more):
    """A DELETE."""
    return step("DELETE", path, body, **more)


def watch(path, events, query="", **more):
    """A watch that is cut after a number of events, or ends after a second."""
    seconds = 1 if events == 0 else 5
    path += ("&" if "?" in path else "?") + "watch=1&timeoutSeconds=%d%s" % (seconds, query)
    return step("GET", path, events=max(events, 1), **more)


def namespace():
    """The creation of the script's namespace."""
    return post("/api/v1/namespaces", {"metadata": {"name": "${u}"}})


def rv(name="rv"):
    """Keeps the answer's version as a variable."""
    return {name: "/metadata/resourceVersion"}


def config(name, data=None, **meta):
    """A ConfigMap."""
    out = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": dict(meta, name=name)}
    if data is not None:
        out["data"] = data
    return out


def script(area, name, tier, title, steps, ns=True):
    """Adds a script, which begins with the creation of the namespace if `ns`."""
    steps = ([namespace()] if ns else []) + list(steps)
    SCRIPTS.setdefault(area, []).append(
        {"id": area + "-" + name, "tier": tier, "title": title, "steps": steps}
    )


def write():
    """Writes the files of all areas."""
    for area, scripts in SCRIPTS.items():
        lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in scripts]
        (CORPUS / (area + ".jsonl")).write_text("\n".join(lines) + "\n")
    steps = sum(len(one["steps"]) for scripts in SCRIPTS.values() for one in scripts)
    print(sum(map(len, SCRIPTS.values())), "scripts", steps, "steps")
