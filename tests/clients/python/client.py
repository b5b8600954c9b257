#!/usr/bin/env python3
"""The Python client against the server of $KUBECONFIG: one function per case."""

import os
import sys
import threading
import traceback

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.stream import stream

SPACE = "python"
GROUP = "python.example"
WAIT = 20


def check(got, want):
    """Fails unless both values are equal."""
    assert got == want, "%r instead of %r" % (got, want)


def refused(status, reason, call, *words, **options):
    """Fails unless the server refuses the call with this status and reason."""
    try:
        call(*words, **options)
    except ApiException as error:
        check(error.status, status)
        assert '"reason":"%s"' % reason in error.body.replace('": "', '":"'), error.body
        return
    raise AssertionError("%s was not refused" % call)


def config_map(name, labels=None, **data):
    """Returns a ConfigMap."""
    return client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name=name, namespace=SPACE, labels=labels), data=data
    )


def objects_are_created_read_replaced_and_deleted(core):
    made = core.create_namespaced_config_map(SPACE, config_map("crud", a="1"))
    refused(409, "AlreadyExists", core.create_namespaced_config_map, SPACE, config_map("crud"))
    read = core.read_namespaced_config_map("crud", SPACE)
    check(read.metadata.uid, made.metadata.uid)
    check(read.metadata.creation_timestamp, made.metadata.creation_timestamp)
    read.data["a"] = "2"
    check(core.replace_namespaced_config_map("crud", SPACE, read).data, {"a": "2"})
    refused(409, "Conflict", core.replace_namespaced_config_map, "crud", SPACE, read)
    core.delete_namespaced_config_map("crud", SPACE)
    refused(404, "NotFound", core.read_namespaced_config_map, "crud", SPACE)
    refused(422, "Invalid", core.create_namespaced_config_map, SPACE, config_map("A B"))


def patches_of_four_kinds_are_read(core):
    core.create_namespaced_config_map(SPACE, config_map("patched", a="1", b="1"))

    def patched(kind, body, **options):
        answer = core.patch_namespaced_config_map(
            "patched", SPACE, body, _content_type="application/%s+json" % kind, **options
        )
        return answer.data

    check(patched("merge-patch", {"data": {"a": None, "c": "3"}}), {"b": "1", "c": "3"})
    operations = [{"op": "replace", "path": "/data/c", "value": "4"}]
    check(patched("json-patch", operations), {"b": "1", "c": "4"})
    check(patched("strategic-merge-patch", {"data": {"d": "5"}}), {"b": "1", "c": "4", "d": "5"})
    intent = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}, "data": {"e": "6"}
    }
    dynamic = DynamicClient(core.api_client).resources.get(api_version="v1", kind="ConfigMap")
    applied = dynamic.server_side_apply(
        body=intent, name="patched", namespace=SPACE, field_manager="python"
    )
    check(applied.data.e, "6")
    managers = {entry.manager for entry in applied.metadata.managedFields}
    assert "python" in managers, managers


def lists_come_in_pages_and_by_selectors(core):
    for number in range(5):
        labels = {"half": str(number % 2), "paged": "yes"}
        core.create_namespaced_config_map(SPACE, config_map("page-%d" % number, labels))
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(
            SPACE, label_selector="paged", limit=2, _continue=token
        )
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    check(names, ["page-%d" % number for number in range(5)])
    half = core.list_namespaced_config_map(SPACE, label_selector="half=1,paged in (yes,no)")
    check([item.metadata.name for item in half.items], ["page-1", "page-3"])
    one = core.list_namespaced_config_map(SPACE, field_selector="metadata.name=page-2")
    check(len(one.items), 1)


def a_watch_goes_on_from_a_version(core):
    begin = core.list_namespaced_config_map(SPACE).metadata.resource_version
    core.create_namespaced_config_map(SPACE, config_map("watched", {"w": "1"}, a="1"))
    core.patch_namespaced_config_map("watched", SPACE, {"data": {"a": "2"}})
    core.delete_namespaced_config_map("watched", SPACE)
    seen, versions = [], []
    for event in watch.Watch().stream(
        core.list_namespaced_config_map, SPACE, label_selector="w=1", resource_version=begin,
        timeout_seconds=WAIT,
    ):
        seen.append((event["type"], event["object"].data["a"]))
        versions.append(int(event["object"].metadata.resource_version))
        if event["type"] == "DELETED":
            break
    check(seen, [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")])
    check(versions, sorted(set(versions)))


def a_watch_ends_at_its_time_limit(core):
    check(list(watch.Watch().stream(
        core.list_namespaced_config_map, SPACE, label_selector="nobody", timeout_seconds=1
    )), [])


def an_informer_follows_all_writes(core):
    """List, watch from the version, list anew at 410: like an informer."""
    store, settled, restarts = {}, threading.Event(), []

    def follow():
        while not settled.is_set():
            page = core.list_namespaced_config_map(SPACE, label_selector="informed")
            store.clear()
            store.update({item.metadata.name: item for item in page.items})
            watcher = watch.Watch()
            try:
                # The first watch begins at a version that is gone.
                begin = page.metadata.resource_version if restarts else "1"
                restarts.append(begin)
                for event in watcher.stream(
                    core.list_namespaced_config_map, SPACE, label_selector="informed",
                    resource_version=begin, allow_watch_bookmarks=True, timeout_seconds=WAIT,
                ):
                    item = event["object"]
                    if event["type"] == "DELETED":
                        store.pop(item.metadata.name, None)
                    elif event["type"] != "BOOKMARK":
                        store[item.metadata.name] = item
                    if sorted(store) == ["informed-1", "informed-2"] and all(
                        item.data == {"a": "2"} for item in store.values()
                    ):
                        settled.set()
                        return
            except ApiException as error:
                check(error.status, 410)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    for number in range(3):
        name, labels = "informed-%d" % number, {"informed": "yes"}
        core.create_namespaced_config_map(SPACE, config_map(name, labels, a="1"))
        core.patch_namespaced_config_map(name, SPACE, {"data": {"a": "2"}})
    core.delete_namespaced_config_map("informed-0", SPACE)
    assert settled.wait(WAIT), "the informer has %s" % {k: v.data for k, v in store.items()}


def custom_resources_are_served_after_their_definition(core):
    extensions = client.ApiextensionsV1Api(core.api_client)
    text = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"text": text, "replicas": {"type": "integer", "default": 2}},
            },
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    extensions.create_custom_resource_definition({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "notes." + GROUP},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": [version],
            "names": {"plural": "notes", "singular": "note", "kind": "Note", "listKind": "NoteList"},
        },
    })
    for event in watch.Watch().stream(
        extensions.list_custom_resource_definition, timeout_seconds=WAIT,
        field_selector="metadata.name=notes." + GROUP,
    ):
        conditions = event["object"].status.conditions or []
        if any(one.type == "Established" and one.status == "True" for one in conditions):
            break
    custom = client.CustomObjectsApi(core.api_client)
    place = (GROUP, "v1", SPACE, "notes")
    note = {"apiVersion": GROUP + "/v1", "kind": "Note", "metadata": {"name": "n"}, "spec": {"text": "x"}}
    made = custom.create_namespaced_custom_object(*place, note)
    check(made["spec"], {"text": "x", "replicas": 2})
    custom.patch_namespaced_custom_object_status(*place, "n", {"status": {"replicas": 1}})
    scale = custom.get_namespaced_custom_object_scale(*place, "n")
    check((scale["spec"]["replicas"], scale["status"]["replicas"]), (2, 1))
    custom.patch_namespaced_custom_object_scale(*place, "n", {"spec": {"replicas": 5}})
    check(custom.get_namespaced_custom_object(*place, "n")["metadata"]["generation"], 2)
    note["spec"]["text"] = 5
    refused(422, "Invalid", custom.create_namespaced_custom_object, *place, note)


def workloads_run_and_are_reached_by_logs_and_exec(core):
    apps = client.AppsV1Api(core.api_client)
    annotations = {"windlass.dev/log": "one\ntwo\n"}
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    apps.create_namespaced_deployment(SPACE, {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    })
    for event in watch.Watch().stream(
        apps.list_namespaced_deployment, SPACE, timeout_seconds=WAIT
    ):
        if event["object"].status.ready_replicas == 2:
            break
    else:
        raise AssertionError("the Deployment does not become ready")
    pod = core.list_namespaced_pod(SPACE, label_selector="app=web").items[0].metadata.name
    check(core.read_namespaced_pod_log(pod, SPACE), "one\ntwo\n")
    check(core.read_namespaced_pod_log(pod, SPACE, tail_lines=1), "two\n")
    answer = stream(
        core.connect_get_namespaced_pod_exec, pod, SPACE, command=["echo", "a b"],
        stdout=True, stderr=True, stdin=False, tty=False,
    )
    check(answer, "echo a b\n")
    session = stream(
        core.connect_get_namespaced_pod_exec, pod, SPACE, command=["cat"],
        stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False,
    )
    session.write_stdin("input\n")
    got = ""
    while "input\n" not in got and session.is_open():
        session.update(timeout=WAIT)
        got += session.read_stdout() if session.peek_stdout() else ""
    session.close()
    check(got, "cat\ninput\n")
    apps.patch_namespaced_deployment_scale("web", SPACE, {"spec": {"replicas": 1}})
    check(apps.read_namespaced_deployment("web", SPACE).spec.replicas, 1)


def rights_and_tokens_are_those_of_a_cluster(core):
    core.create_namespaced_service_account(SPACE, {"metadata": {"name": "robot"}})
    rbac = client.RbacAuthorizationV1Api(core.api_client)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    rbac.create_namespaced_role(SPACE, {"metadata": {"name": "reads"}, "rules": rules})
    rbac.create_namespaced_role_binding(SPACE, {
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": SPACE}],
    })
    token = core.create_namespaced_service_account_token("robot", SPACE, {"spec": {}}).status.token
    settings = client.Configuration()
    settings.host = core.api_client.configuration.host
    settings.ssl_ca_cert = core.api_client.configuration.ssl_ca_cert
    settings.api_key = {"authorization": "Bearer " + token}
    robot = client.CoreV1Api(client.ApiClient(settings))
    robot.list_namespaced_config_map(SPACE)
    refused(403, "Forbidden", robot.list_namespaced_secret, SPACE)
    settings.api_key = {"authorization": "Bearer nonsense"}
    refused(401, "Unauthorized", robot.list_namespaced_config_map, SPACE)


def discovery_and_dynamic_access_know_the_kinds(core):
    dynamic = DynamicClient(core.api_client)
    leases = dynamic.resources.get(api_version="coordination.k8s.io/v1", kind="Lease")
    leases.create(
        body={"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}, namespace=SPACE
    )
    check(leases.get(name="l", namespace=SPACE).spec.holderIdentity, "me")
    for event in leases.watch(namespace=SPACE, timeout=WAIT):
        check(event["object"].metadata.name, "l")
        break
    assert client.VersionApi(core.api_client).get_code().git_version.startswith("v1.36")


CASES = [
    objects_are_created_read_replaced_and_deleted,
    patches_of_four_kinds_are_read,
    lists_come_in_pages_and_by_selectors,
    a_watch_goes_on_from_a_version,
    a_watch_ends_at_its_time_limit,
    an_informer_follows_all_writes,
    custom_resources_are_served_after_their_definition,
    workloads_run_and_are_reached_by_logs_and_exec,
    rights_and_tokens_are_those_of_a_cluster,
    discovery_and_dynamic_access_know_the_kinds,
]


def main():
    """Plays all cases."""
    config.load_kube_config(os.environ["KUBECONFIG"])
    core = client.CoreV1Api()
    core.create_namespace({"metadata": {"name": SPACE}})
    failed = 0
    for case in CASES:
        try:
            case(core)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print("failed: python: %s" % case.__name__)
            traceback.print_exc()
    print("python: %d passed, %d failed" % (len(CASES) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
