#!/usr/bin/env python3
"""Records the verdicts of a real kube-apiserver on the CEL corpus.

    record-cel.py ~/.cache/windlass/kube-v1.36.3-*/kube-apiserver [FILE ...]

Starts the server with an empty store on loopback, and writes `recorded-NAME.jsonl` beside each
`NAME.jsonl` of apiserver/cel/tests/corpus (or of the given files only). The format of both is
explained in apiserver/cel/tests/corpus/README.md.
"""

import copy
import http.client
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "apiserver/cel/tests/corpus"
GROUP = "corpus.example"
TOKEN = "recorder"
RULES = "x-kubernetes-validations"
PACK = 40
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
DRY = "?dryRun=All"


class Server:
    """A kube-apiserver with an etcd and a separate folder."""

    def __init__(self, program):
        """Starts the server and waits until the server is ready."""
        self.folder = tempfile.TemporaryDirectory(prefix="record-cel-")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        folder = pathlib.Path(self.folder.name)
        key, public = folder / "accounts.key", folder / "accounts.pub"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=-3)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, stderr=-3)
        tokens = folder / "tokens.csv"
        tokens.write_text(TOKEN + ',admin,1,"system:masters"\n')
        flags = {
            "etcd-data-dir": folder / "etcd",
            "cert-dir": folder / "certificates",
            "token-auth-file": tokens,
            "service-account-key-file": public,
            "service-account-signing-key-file": key,
            "service-account-issuer": "https://corpus.example",
            "service-cluster-ip-range": "10.0.0.0/24",
            "bind-address": "127.0.0.1",
            "secure-port": self.port,
            "authorization-mode": "RBAC",
            "endpoint-reconciler-type": "none",
            "shutdown-delay-duration": 0,
        }
        words = ["--%s=%s" % flag for flag in flags.items()]
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen([program] + words, stdout=self.log, stderr=self.log)
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.connection = None
        wait("the server is not ready", lambda: self.answers("/readyz"))

    def answers(self, path):
        """Is the path answered with 200? Fails when the server has ended."""
        assert self.process.poll() is None, "the server has ended"
        try:
            return self.call("GET", path)[0] == 200
        except OSError:
            return False

    def call(self, method, path, body=None, user=None):
        """Status code, document and warnings of a request."""
        headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
        if user:
            headers["Impersonate-User"] = user
        answer = self.ask(method, path, body, headers)
        if answer[0] != 504:
            return answer
        # A busy machine: etcd did not answer within the server's deadline, and may have written.
        time.sleep(2)
        answer = self.ask(method, path, body, headers)
        if answer[0] == 409 and method == "POST" and "?" not in path:
            _, document, warnings = self.ask("GET", path + "/" + body["metadata"]["name"], None, headers)
            return 201, document, warnings
        return answer

    def ask(self, method, path, body, headers):
        """As `call`, once."""
        data = None if body is None else json.dumps(body)
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(
                    "127.0.0.1", self.port, context=self.context, timeout=60
                )
            try:
                self.connection.request(method, path, data, headers)
                answer = self.connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                # The server closes the connection when the handler of a request panics.
                self.connection = None
                if attempt == 2:
                    assert self.process.poll() is None, "the server has ended"
                    return 599, {"message": "the connection was closed"}, []
        try:
            document = json.loads(text)
        except ValueError:
            document = {"message": text.decode()}
        return answer.status, document, answer.headers.get_all("Warning") or []

    def must(self, method, path, body):
        """The document of a request that has to succeed."""
        code, document, _ = self.call(method, path, body)
        assert code < 300, (method, path, document)
        return document

    def stop(self):
        """Ends the server and removes the folder."""
        self.process.terminate()
        self.process.wait()
        self.log.close()
        self.folder.cleanup()


def wait(reason, condition):
    """Waits up to a minute for a condition."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(reason)
        time.sleep(0.1)


def outcome(answer, renamed=("", "")):
    """The recorded form of an answer; a field below renamed[0] is written below renamed[1]."""
    code, document, warnings = answer
    result = {"ok": code < 300}
    if code >= 300:
        causes = document.get("details", {}).get("causes", [])
        result["causes"] = [renamed_cause(cause, renamed) for cause in causes]
        if not causes or code != 422:
            result["code"], result["message"] = code, document.get("message", "")
    if warnings:
        result["warnings"] = warnings
    return result


def renamed_cause(cause, renamed):
    """A cause with the field below the property of a case instead of that of a pack."""
    before, after = renamed
    field = cause.get("field", "")
    if before and (field == before or field[len(before):len(before) + 1] in (".", "[")):
        if field.startswith(before):
            field = after + field[len(before):]
    result = {"reason": cause.get("reason", ""), "field": field, "message": cause.get("message", "")}
    return {key: value for key, value in result.items() if value}


def ruled(case, schemas):
    """The schema of a case with the rules."""
    schema = case["schema"]
    schema = copy.deepcopy(schemas[schema] if isinstance(schema, str) else schema)
    if "rules" in case:
        schema[RULES] = case["rules"]
    return schema


def bare(schema):
    """A schema without rules."""
    if isinstance(schema, dict):
        return {key: bare(value) for key, value in schema.items() if key != RULES}
    return [bare(value) for value in schema] if isinstance(schema, list) else schema


def definition(plural, schema):
    """A CustomResourceDefinition."""
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": plural + "." + GROUP},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": kind + "List"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def thing(plural, name, content):
    """An object of a definition."""
    content = dict(content)
    content["apiVersion"] = GROUP + "/v1"
    content["kind"] = plural.capitalize()
    content["metadata"] = dict(content.get("metadata", {}), name=name)
    return content


def below(case, schema):
    """The whole schema of a case's own definition."""
    if case.get("whole"):
        return schema
    return {"type": "object", "properties": {"value": schema}}


def admissible(server, case, schemas):
    """The outcome of the creation of a case's definition."""
    schema = below(case, ruled(case, schemas))
    return outcome(server.call("POST", CRDS + DRY, definition("cases", schema)))


def install(server, plural, schema, before):
    """Creates a definition without rules, calls `before`, and adds the rules by an update."""
    # Stored objects may break the rules: they are older than them.
    schema = copy.deepcopy(schema)
    schema.setdefault("properties", {})["sentinel"] = {"type": "boolean", RULES: [{"rule": "false"}]}
    server.must("POST", CRDS, definition(plural, bare(schema)))
    path = "/apis/%s/v1/%s" % (GROUP, plural)
    wait(plural + " is not served", lambda: server.answers(path))
    kept = before(path)
    full = definition(plural, schema)
    name = CRDS + "/" + full["metadata"]["name"]
    answer = (409, None, None)
    # The server writes conditions to a new definition meanwhile.
    while answer[0] == 409:
        stored = server.must("GET", name, None)
        full["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        answer = server.call("PUT", name, full)
    assert answer[0] == 200, (plural, answer)
    probe = thing(plural, "sentinel", {"sentinel": True})
    ruled_now = lambda: "failed rule: false" in json.dumps(server.call("POST", path + DRY, probe)[1])
    wait(plural + " has no rules", ruled_now)
    return path, kept


def record_pack(server, plural, members, schemas):
    """The outcomes of the checks of cases that share a definition, a property each."""
    if len(members) == 1 and members[0][0].get("whole"):
        case, result = members[0]
        schema, names = ruled(case, schemas), [None]
    else:
        names = ["c%d" % number for number in range(len(members))]
        properties = {
            name: ruled(case, schemas) for name, (case, _) in zip(names, members)
        }
        schema = {"type": "object", "properties": properties}

    def content(name, value):
        return value if name is None else {name: value}

    def before(path):
        kept = {}
        for name, (case, _) in zip(names, members):
            for number, check in enumerate(case["checks"]):
                if "old" not in check:
                    continue
                label = "%s-%d" % (name or "whole", number)
                label = check["old"].get("metadata", {}).get("name", label) if name is None else label
                old = thing(plural, label, content(name, check["old"]))
                kept[name, number] = server.call("POST", path, old)
        return kept

    path, kept = install(server, plural, schema, before)
    for name, (case, result) in zip(names, members):
        renamed = (name, "value") if name else ("", "")
        result["checks"] = []
        for number, check in enumerate(case["checks"]):
            if "old" in check:
                code, old, _ = kept[name, number]
                if code >= 300:
                    result["checks"].append({"old": outcome(kept[name, number], renamed)})
                    continue
                label = old["metadata"]["name"]
                body = thing(plural, label, content(name, check["object"]))
                body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
                answer = server.call("PUT", path + "/" + label + DRY, body)
            else:
                label = check["object"].get("metadata", {}).get("name", "probe") if not name else "probe"
                answer = server.call(
                    "POST", path + DRY, thing(plural, label, content(name, check["object"]))
                )
            result["checks"].append(outcome(answer, renamed))
    server.call("DELETE", CRDS + "/" + plural + "." + GROUP)


def record_rules(server, stem, cases, schemas):
    """The results of cases about rules of custom resources."""
    results, waiting, packs = [], [], []
    for case in cases:
        created = admissible(server, case, schemas)
        result = {"name": case["name"], "created": created}
        results.append(result)
        if not created["ok"] or not case.get("checks"):
            continue
        if case.get("whole"):
            packs.append([(case, result)])
        else:
            waiting.append((case, result))
    packs += [waiting[start:start + PACK] for start in range(0, len(waiting), PACK)]
    for number, members in enumerate(packs):
        record_pack(server, "%sx%d" % (stem, number), members, schemas)
        print(stem, "pack", number + 1, "of", len(packs), file=sys.stderr)
    return results


def policy(name, case, subject):
    """A policy with a binding for a case."""
    spec = dict(case["policy"])
    rule = {
        "apiGroups": [subject["group"]],
        "apiVersions": ["v1"],
        "resources": [subject["plural"]],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resourceNames": [name],
    }
    spec["matchConstraints"] = {"resourceRules": [rule]}
    binding = {"policyName": name, "validationActions": case.get("actions", ["Deny"])}
    if "params" in case:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
        binding["paramRef"] = {
            "name": "param-" + name,
            "namespace": "default",
            "parameterNotFoundAction": "Deny",
        }
    kind = "ValidatingAdmissionPolicy"
    common = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    return dict(common, kind=kind, spec=spec), dict(common, kind=kind + "Binding", spec=binding)


CONFIGMAPS = {"group": "", "plural": "configmaps", "path": "/api/v1/namespaces/default/configmaps"}
THINGS = {"group": GROUP, "plural": "things", "path": "/apis/%s/v1/things" % GROUP}


def subject_of(case):
    """The resource that a policy case is about."""
    return CONFIGMAPS if case.get("subject") == "configmaps" else THINGS


def subject_object(case, name, content):
    """An object of the resource that a policy case is about."""
    if subject_of(case) is THINGS:
        return thing("things", name, content)
    return dict(content, apiVersion="v1", kind="ConfigMap", metadata={"name": name})


def record_policies(server, cases):
    """The results of cases about admission policies."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    server.must("POST", CRDS, definition("things", open_schema))
    wait("things are not served", lambda: server.answers(THINGS["path"]))
    sentinel = {"name": "sentinel", "policy": {"validations": [{"expression": "false"}]}}
    results, kept = [], {}
    for number, case in enumerate(cases + [sentinel]):
        name = "policy-%d" % number
        subject = subject_of(case)
        for at, check in enumerate(case.get("checks", [])):
            if "old" in check:
                body = subject_object(case, name, check["old"])
                kept[name, at] = server.must("POST", subject["path"], body)
                assert len(case["checks"]) == 1, "one check with an old object: " + case["name"]
        if "params" in case:
            body = dict(case["params"], apiVersion="v1", kind="ConfigMap")
            body["metadata"] = {"name": "param-" + name}
            server.must("POST", CONFIGMAPS["path"], body)
        rules, binding = policy(name, case, subject)
        created = outcome(server.call("POST", POLICIES + "ies", rules))
        if created["ok"]:
            server.must("POST", POLICIES + "ybindings", binding)
        results.append({"name": case["name"], "created": created})
    probe = thing("things", "policy-%d" % len(cases), {})
    wait("no policy is active", lambda: server.call("POST", THINGS["path"] + DRY, probe)[0] == 422)
    time.sleep(2)
    for number, (case, result) in enumerate(zip(cases, results)):
        if result["created"]["ok"] and case.get("checks"):
            name = "policy-%d" % number
            result["checks"] = [
                admitted(server, case, name, check, kept.get((name, at)))
                for at, check in enumerate(case["checks"])
            ]
    return results[:-1]


def admitted(server, case, name, check, old):
    """The outcome of a request that a policy judges."""
    path, user = subject_of(case)["path"], check.get("user")
    if check.get("operation") == "DELETE":
        answer = server.call("DELETE", path + "/" + name + DRY, None, user)
    elif old is None:
        body = subject_object(case, name, check["object"])
        answer = server.call("POST", path + DRY, body, user)
    else:
        body = subject_object(case, name, check["object"])
        body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        answer = server.call("PUT", path + "/" + name + DRY, body, user)
    # The number in the name is the position of the case, which changes with every new case.
    return json.loads(json.dumps(outcome(answer)).replace(name, "policy"))


def main():
    """Records every file of the corpus, or the given ones."""
    program = sys.argv[1]
    files = [pathlib.Path(name) for name in sys.argv[2:]] or sorted(FOLDER.glob("*.jsonl"))
    schemas = json.loads((FOLDER / "schemas.json").read_text())
    server = Server(program)
    try:
        for path in files:
            if path.name.startswith("recorded-"):
                continue
            cases = [json.loads(text) for text in path.read_text().strip("\n").split("\n")]
            names = [case["name"] for case in cases]
            assert len(set(names)) == len(names), "two cases of one name in " + path.name
            if cases[0]["kind"] == "policy":
                results = record_policies(server, cases)
            else:
                results = record_rules(server, path.stem, cases, schemas)
            lines = [json.dumps(result, ensure_ascii=False, separators=(",", ":")) for result in results]
            # The names of object types have the time of their creation in nanoseconds.
            text = re.sub(r"selfType[0-9]+", "selfType0", "\n".join(lines))
            path.with_name("recorded-" + path.name).write_text(text + "\n")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
