#!/usr/bin/env python3
"""Writes matrix.json: objects, users with rights, methods and paths of the matrix of rights.

    apiserver/tests/rights/matrix.py
    apiserver/tests/rights/matrix.py --record KUBE-APISERVER

With --record it also asks a real kube-apiserver for its verdict on each request as each user, and
writes recorded.jsonl: one line for each user and method, with the code of the answer to each path, in
the order of the paths. `cargo test -p windlass-apiserver --test rights` compares the embedded server.
"""

import importlib.util
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
RBAC = "/apis/rbac.authorization.k8s.io/v1"

# Users by name: rules in namespace "a", rules in the cluster.
USERS = {
    "nobody": ([], []),
    "all-in-a": ([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], []),
    "reads-in-a": ([{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]}], []),
    "one-map": (
        [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["x"],
          "verbs": ["get", "list", "watch", "update", "patch", "delete"]}], []),
    "creates": ([{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["create"]}], []),
    "deletes-all": ([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["deletecollection"]}], []),
    "subresources": (
        [{"apiGroups": ["apps"], "resources": ["deployments/scale", "deployments/status"],
          "verbs": ["get", "update", "patch"]},
         {"apiGroups": [""], "resources": ["*/status"], "verbs": ["get", "patch"]}], []),
    "main-only": ([{"apiGroups": ["apps", ""], "resources": ["deployments", "namespaces"], "verbs": ["*"]}], []),
    "namespaces-in-a": ([{"apiGroups": [""], "resources": ["namespaces", "namespaces/status"], "verbs": ["*"]}], []),
    "cluster-namespaces": ([], [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "delete"]}]),
    "cluster-nodes": ([], [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}]),
    "urls": ([], [{"nonResourceURLs": ["/metrics", "/logs/*", "/healthz/*"], "verbs": ["get"]}]),
    "everything": ([], [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
    "all-urls": ([], [{"nonResourceURLs": ["*"], "verbs": ["*"]}]),
}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
MAPS = "/api/v1/namespaces/a/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/a/deployments"
PATHS = [
    "/api/v1/namespaces", "/api/v1/namespaces/a", "/api/v1/namespaces/b", "/api/v1/namespaces/a/status",
    "/api/v1/namespaces/a/finalize", "/api/v1/namespaces/b/status",
    "/api/v1/namespaces/a/namespaces", "/api/v1/namespaces/a/namespaces/a", "/api/v1/namespaces/a/namespaces/b",
    "/api/v1/namespaces/a/namespaces/b/status", "/api/v1/namespaces/a/nodes", "/api/v1/namespaces/a/nodes/n",
    "/api/v1/nodes", "/api/v1/nodes/n",
    MAPS, MAPS + "/x", MAPS + "/y", MAPS + "/x/status", MAPS + "/x/more/parts",
    MAPS + "?fieldSelector=metadata.name%3Dx", MAPS + "?fieldSelector=metadata.name%3Dy",
    "/api/v1/namespaces/b/configmaps", "/api/v1/namespaces/b/configmaps/x", "/api/v1/configmaps",
    "/api/v1/configmaps?fieldSelector=metadata.name%3Dx", "/api/v1/configmaps/x",
    "//api/v1/namespaces/a/configmaps/x", "/api//v1/namespaces/a/configmaps/x",
    "/api/v1/namespaces/a/configmaps/", "/api/v1/namespaces/a/configmaps/x/",
    "/api/v1/namespaces/a%2Fconfigmaps", "/api/v1/namespaces/a/configmaps%2Fx", "/api/v1/namespaces/%61/configmaps/x",
    "/API/v1/namespaces/a/configmaps/x", "/api/V1/namespaces/a/configmaps", "/api/v1/Namespaces/a",
    "/api/v1/namespaces/a/ConfigMaps", "/api/v2/namespaces/a/configmaps", "/api/v1/namespaces/a/nonsense",
    "/apis/v1/namespaces/a/configmaps",
    DEPLOYMENTS, DEPLOYMENTS + "/d", DEPLOYMENTS + "/d/scale", DEPLOYMENTS + "/d/status", DEPLOYMENTS + "/d/nonsense",
    "/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/b/deployments/d/scale",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/a/clusterroles", RBAC + "/clusterroles/r",
    RBAC + "/namespaces/a/roles",
    "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/nope", "/version", "/healthz", "/healthz/ping",
    "/readyz", "/livez", "/metrics", "/logs", "/logs/", "/openapi/v2", "/", "/nope", "/api/", "/version/",
    "/healthz?verbose", "/metrics/cadvisor",
]


def setup():
    """The objects of the matrix, in the order of their creation."""
    objects = [("/api/v1/namespaces", {"metadata": {"name": name}}) for name in ("a", "b")]
    labels = {"matchLabels": {"a": "b"}}
    container = {"name": "c", "image": "i"}
    deployment = {"selector": labels, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}}
    for namespace in ("a", "b"):
        at = "/namespaces/" + namespace
        objects.append(("/api/v1" + at + "/configmaps", {"metadata": {"name": "x"}}))
        objects.append(("/apis/apps/v1" + at + "/deployments", {"metadata": {"name": "d"}, "spec": deployment}))
    for user, (local, everywhere) in USERS.items():
        subject = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]
        for rules, at, kind in ((local, "/namespaces/a", "Role"), (everywhere, "", "ClusterRole")):
            if not rules:
                continue
            name = {"metadata": {"name": user}}
            ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}
            plural = kind.lower()
            objects.append((RBAC + at + "/" + plural + "s", {**name, "rules": rules}))
            objects.append((RBAC + at + "/" + plural + "bindings", {**name, "roleRef": ref, "subjects": subject}))
    return [{"path": path, "body": body} for path, body in objects]


def record(program):
    """Asks a real server."""
    source = HERE.parents[2] / "tests/kube-apiserver/record-cel.py"
    spec = importlib.util.spec_from_file_location("recorder", source)
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)
    server = recorder.Server(program)
    try:
        for item in setup():
            recorder.wait("no " + item["path"], lambda: server.call("POST", item["path"], item["body"])[0] in (201, 409))
        lines = []
        for user in USERS:
            for method in METHODS:
                codes = [verdict(server, recorder, user, method, path) for path in PATHS]
                lines.append(json.dumps({"user": user, "method": method, "codes": codes}))
        (HERE / "recorded.jsonl").write_text("\n".join(lines) + "\n")
    finally:
        server.stop()


def verdict(server, recorder, user, method, path):
    """The code of an answer. Nothing is changed: writes are dry runs of an empty object."""
    headers = {"Authorization": "Bearer " + recorder.TOKEN, "Impersonate-User": user}
    media = "merge-patch+json" if method == "PATCH" else "json"
    headers["Content-Type"] = "application/" + media
    if method != "GET":
        path += ("&" if "?" in path else "?") + "dryRun=All"
    body = None if method == "GET" else {}
    return server.ask(method, path, body, headers)[0]


def main():
    matrix = {"objects": setup(), "users": list(USERS), "methods": METHODS, "paths": PATHS}
    (HERE / "matrix.json").write_text(json.dumps(matrix, indent=1) + "\n")
    if len(sys.argv) > 2 and sys.argv[1] == "--record":
        record(sys.argv[2])


main()
