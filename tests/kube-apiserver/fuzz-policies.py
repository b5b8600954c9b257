#!/usr/bin/env python3
"""Compares the policies of windlass-cel with those of a real kube-apiserver on generated input.

    fuzz-policies.py ~/.cache/windlass/kube-v1.36.3-*/kube-apiserver [--cases 10000] [--seed 1]
                     [--minutes 60] [--report FILE]

Generates ValidatingAdmissionPolicies of a seed, with match conditions, variables, messages, audit
annotations, params and constraints. Both sides judge the policies and then, with those that the
server takes, creations, updates and deletions of custom resources. Prints the comparisons and every
difference, and ends with 1 when a verdict differs: whether a policy is taken, a request denied, or a
client warned. Differences of messages are counted and written to the report.

Where a verdict differs the server is asked again: the server goes through maps in no order, and answers
that change from one request to the next are counted apart. So are requests without an answer: the
server's handler panics at some expressions, such as `{?'a': dyn(1)}`.
"""

import argparse
import copy
import importlib.util
import json
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("fuzz_cel", HERE / "fuzz-cel.py")
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)
record = fuzz.record

PACK = 100
CREATIONS, UPDATES, AGAIN = 4, 2, 12
# Code of the recorder for a connection that the server closes, because the handler of the request panics.
FAULT = 599
THINGS = record.THINGS["path"]
CONFIGMAPS = record.CONFIGMAPS["path"]
LABEL = "pack"
POLICY = "ValidatingAdmissionPolicy"
CHECK = "authorizer.group('').resource('pods').namespace('default').check('get')"
REQUEST = [("request." + path, ty) for path, ty in (
    ("operation", "string"), ("name", "string"), ("kind.kind", "string"), ("resource.resource", "string"),
    ("userInfo.username", "string"), ("userInfo.groups", "list(string)"), ("dryRun", "bool"), ("namespace", "string"))]
OTHERS = [("object.metadata.name", "string"), ("namespaceObject.metadata.name", "string"),
          ("(object == null)", "bool"), ("(oldObject == null)", "bool"), (CHECK + ".allowed()", "bool"),
          ("authorizer.requestResource.check('get').allowed()", "bool"), (CHECK + ".reason()", "string"),
          ("authorizer.serviceAccount('default', 'nobody').path('/healthz').check('get').allowed()", "bool")]
LISTS = ["[]", "['*']", "['*', 'a']", "['a', 'b']", "['']", "['a/b', 'a/*']", "['*/c', 'b/c']", "['*/*', 'a']"]


class Policies(fuzz.Generator):
    """A policy, and the objects that the policy judges."""

    def __init__(self, rng):
        """Makes the schema of the objects, which the server does not know."""
        super().__init__(rng)
        own = [("object" + path[4:], ty) for path, ty in self.paths]
        old = [("oldObject" + path[4:], ty) for path, ty in self.paths]
        self.has_params = rng.random() < 0.3
        params = [("params.data." + name, "string") for name in ("a", "b")] if self.has_params else []
        self.paths = own * 3 + old + params + REQUEST + rng.sample(OTHERS, 3)
        if rng.random() < 0.02:
            self.paths.append(("params", "any"))

    def text(self, ty):
        """An expression of a type, mostly; now and then with a mistake."""
        text = self.expression(ty, self.rng.choice([1, 1, 2, 2, 3]), [])
        return fuzz.spoiled(self.rng, text) if self.rng.random() < 0.03 else text

    def variables(self):
        """The variables; each may read earlier variables, and later expressions may read all."""
        rng, result = self.rng, []
        for number in range(rng.choice([0, 0, 1, 2, 4])):
            name = rng.choice(["v%d" % number] * 80 + ["v0", "a__b", "a__dash__b", "in", "1a", ""])
            ty = rng.choice(["bool", "int", "string", "list(int)", "list(string)", "map", "timestamp", "optional(int)"])
            result.append({"name": name, "expression": self.text(ty)})
            self.paths += [("variables." + name, ty)] * 4
        if result and rng.random() < 0.2:
            body = self.expression("bool", 1, [("v", rng.choice(["int", "string", "bool"]))] * 3)
            macro = rng.choice(["all(v, %s)", "exists(v, %s)", "all(v, w, %s)", "exists(k, v, %s)"])
            self.paths += [("dyn(variables)." + macro % body, "bool")] * 4
        if rng.random() < 0.03:
            self.paths.append(("variables.zz", "int"))
        return result

    def policy(self):
        """The spec of a policy without the constraints."""
        rng = self.rng
        result = {}
        if rng.random() < 0.5:
            result["failurePolicy"] = rng.choice(["Fail", "Fail", "Ignore", "Ignore", "Never" if rng.random() < 0.1 else "Fail"])
        if rng.random() < 0.3:
            name = lambda number: rng.choice(["c%d" % number] * 60 + ["c0", "a b", ""])
            result["matchConditions"] = [{"name": name(number), "expression": self.text("bool")}
                                         for number in range(rng.choice([1, 1, 2]))]
        result["variables"] = self.variables()
        if rng.random() < 0.95:
            result["validations"] = [self.validation() for _ in range(rng.choice([1, 1, 2, 3]))]
        if rng.random() < 0.15:
            result["auditAnnotations"] = [{"key": rng.choice(["k", "l"] * 10 + ["a b"]), "valueExpression": rng.choice(
                [self.text("string"), self.text("bool") + " ? 'a' : null", "null"])} for _ in range(rng.choice([1, 1, 2]))]
        if self.has_params:
            result["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
        return result

    def validation(self):
        """A validation with message and reason."""
        rng = self.rng
        result = {"expression": self.text("bool")}
        if rng.random() < 0.3:
            result["message"] = rng.choice(["no", " no "] * 20 + [" ", "a\nb"])
        if rng.random() < 0.3:
            result["messageExpression"] = rng.choice([self.text("string")] * 30 + [" "])
        if rng.random() < 0.2:
            result["reason"] = rng.choice(["Invalid", "Forbidden", "RequestEntityTooLarge"] * 6 + ["Unauthorized"])
        return result

    def constraints(self, name):
        """The constraints of a policy about the object of this name; of a few policies they are spoiled."""
        rng = self.rng
        rule = {"apiGroups": [record.GROUP], "apiVersions": ["v1"], "resources": ["things"], "resourceNames": [name],
                "operations": ["CREATE", "UPDATE", "DELETE"]}
        result = {"resourceRules": [rule]}
        if rng.random() > 0.15:
            return result, False
        lists = [text.replace("'", '"') for text in LISTS]
        spoiled = copy.deepcopy(rule)
        spoiled[rng.choice(["apiGroups", "apiVersions", "resources", "operations"])] = json.loads(rng.choice(lists))
        spoiled["resourceNames"] = json.loads(rng.choice(lists + ['[".."]', '["a%b"]', '["a", "a"]']))
        expression = {"key": rng.choice(["a", "", "a b"]), "operator": rng.choice(["In", "NotIn", "Exists", "is", ""]),
                      "values": json.loads(rng.choice(['[]', '["a"]', '["-"]']))}
        change = rng.choice([
            {"resourceRules": []}, {"resourceRules": [spoiled]}, {"excludeResourceRules": [rule, spoiled]},
            {"resourceRules": [dict(rule, scope=rng.choice(["*", "Cluster", "all"]))]},
            {"matchPolicy": rng.choice(["Exact", "Equivalent", "exact", ""])},
            {"objectSelector": {"matchLabels": rng.choice([{"a": "b"}, {"a b": "c"}, {"a": "b c"}, {"": ""}])}},
            {rng.choice(["namespaceSelector", "objectSelector"]): {"matchExpressions": [expression]}}])
        return (None if rng.random() < 0.05 else dict(result, **change)), True

    def param_kind(self):
        """A kind that is no kind, mostly."""
        version = self.rng.choice(["", "/", "v1", "a/v1", "a/b/c", "A/v1", "a/1", "a/", "/v1", "a.b-/v1"])
        return {"apiVersion": version, "kind": self.rng.choice(["", "A", "a-b", "A_b", "1"])}


class Run:
    """A server, whose policies change from pack to pack."""

    def __init__(self, server, judge, comparison):
        self.server, self.judge, self.comparison, self.number = server, judge, comparison, 0
        self.policies = self.denied = self.warned = self.unsure = self.faults = 0
        open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        server.must("POST", record.CRDS, record.definition("things", open_schema))
        record.wait("things are not served", lambda: server.answers(THINGS))
        # The server watches the objects of a kind of params as long as a bound policy names the kind.
        self.sentinel("keeper", {})

    def sentinel(self, name, labels):
        """Creates a policy that denies an object, and waits until the denial happens with params."""
        rule = {"apiGroups": [record.GROUP], "apiVersions": ["v1"], "resources": ["things"], "resourceNames": [name],
                "operations": ["CREATE"]}
        self.params(name, {"a": name})
        answer = self.create(name, {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                                    "validations": [{"expression": "params.data.a == ''", "message": "active"}],
                                    "matchConstraints": {"resourceRules": [rule]}}, labels)
        assert answer[0] == 201, answer
        self.bind(name, ["Deny"], labels, True)
        probe = record.thing("things", name, {})
        record.wait("the policies are not active", lambda: "denied request: active" in self.server.call(
            "POST", THINGS + record.DRY, probe)[1].get("message", ""))

    def params(self, name, data):
        """Creates the object of params of a policy."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "param-" + name}, "data": data}
        return self.server.must("POST", CONFIGMAPS, body)

    def create(self, name, rules, labels=None, dry=""):
        """The answer to the creation of a policy."""
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": POLICY, "spec": rules,
                "metadata": {"name": name, "labels": labels or {}}}
        return self.server.call("POST", record.POLICIES + "ies" + dry, body)

    def bind(self, name, actions, labels, has_params):
        """Binds a policy."""
        binding = {"policyName": name, "validationActions": actions}
        if has_params:
            binding["paramRef"] = {"name": "param-" + name, "namespace": "default", "parameterNotFoundAction": "Deny"}
        self.server.must("POST", record.POLICIES + "ybindings", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": POLICY + "Binding", "spec": binding,
            "metadata": {"name": name, "labels": labels}})

    def pack(self, rng):
        """Generates policies and objects and compares the verdicts."""
        self.number += 1
        labels, cases = {LABEL: str(self.number)}, []
        for number in range(PACK):
            case = self.case(rng, "p%d-%d" % (self.number, number), labels)
            if case:
                cases.append(case)
        self.sentinel("sentinel-%d" % self.number, labels)
        found = self.judge.ask({"policies": cases})["policies"]
        for case, ours in zip(cases, found):
            for check, verdict in zip(case["checks"], ours["checks"]):
                self.check(case, check, verdict)
        for kind in ("ybindings", "ies"):
            self.server.must("DELETE", record.POLICIES + kind + "?labelSelector=" + LABEL, None)

    def case(self, rng, name, labels):
        """Creates a policy with all related objects, and compares the verdict; None if the policy is unusable."""
        generator = Policies(rng)
        rules = generator.policy()
        constraints, is_spoiled = generator.constraints(name)
        if constraints is not None:
            rules["matchConstraints"] = constraints
        if rng.random() < 0.03:
            rules["paramKind"], is_spoiled = generator.param_kind(), True
        case = {"name": name, "spec": rules, "checks": [], "actions": rng.choice(
            [["Deny"], ["Deny"], ["Deny"], ["Warn"], ["Audit"], ["Deny", "Audit"]])}
        params = {"a": rng.choice(fuzz.TEXTS), "b": rng.choice(fuzz.TEXTS)} if generator.has_params else None
        old = None
        if not is_spoiled:
            old = self.server.must("POST", THINGS, record.thing("things", name, generator.content(generator.schema)))
            old = self.server.must("GET", THINGS + "/" + name, None)
            if params:
                params = self.params(name, params)
        answer = self.create(name, rules, labels, record.DRY if is_spoiled else "")
        ours = self.judge.ask({"policies": [case]})["policies"][0]["created"]
        shape = lambda all: [(cause.get("reason", ""), cause.get("field", ""), cause.get("message", "")) for cause in all]
        if answer[0] == FAULT:
            self.faults += 1
            return None
        causes = [] if answer[0] == 201 else record.outcome(answer).get("causes", [])
        assert answer[0] in (201, 422), (rules, answer)
        self.comparison.compare("policy", case, shape(causes), shape(ours))
        self.policies += 1
        self.comparison.refused += answer[0] != 201
        if is_spoiled or ours or causes:
            return None
        self.bind(name, case["actions"], labels, generator.has_params)
        for number in range(CREATIONS + UPDATES + 1):
            operation = "CREATE" if number < CREATIONS else "UPDATE" if number < CREATIONS + UPDATES else "DELETE"
            # The old object of a creation exists already: another name would be another policy's.
            case["checks"].append(self.request(generator, name, operation, old, params))
        return case

    def request(self, generator, name, operation, old, params):
        """A request that a policy judges."""
        request = {
            "kind": {"group": record.GROUP, "version": "v1", "kind": "Things"}, "name": name, "operation": operation,
            "resource": {"group": record.GROUP, "version": "v1", "resource": "things"}, "namespace": "", "dryRun": True,
            "userInfo": {"username": "admin", "uid": "1", "groups": ["system:masters", "system:authenticated"]},
            "options": {"dryRun": ["All"]}}
        content = generator.content(generator.schema)
        body = record.thing("things", name, content)
        if operation != "CREATE":
            body["metadata"] = old["metadata"]
        return {"request": request, "object": None if operation == "DELETE" else body,
                "old": None if operation == "CREATE" else old, "params": params}

    def answer(self, case, check):
        """The outcome of a request: causes of the denial and warnings."""
        name, operation, body = case["name"], check["request"]["operation"], check["object"]
        path = THINGS if operation == "CREATE" else THINGS + "/" + name
        method = {"CREATE": "POST", "UPDATE": "PUT", "DELETE": "DELETE"}[operation]
        code, document, warnings = self.server.call(method, path + record.DRY, body)
        denial = None
        if code == FAULT:
            return None
        if code == 409 and document.get("reason") == "AlreadyExists":
            # Admission comes before the look at the store.
            code = 201
        if code >= 300:
            causes = document.get("details", {}).get("causes") or [document]
            denial = [code, causes[0]["message"]]
        # Python reads headers as Latin-1.
        texts = [text.encode("latin-1").decode() for text in warnings]
        return {"denial": denial, "warnings": [text[len('299 - "'):-1] for text in texts]}

    def check(self, case, check, ours):
        """Compares the verdicts on a request."""
        verdict = lambda answer: (answer["denial"] is None, not answer["warnings"])
        quoted = lambda text: text.replace("\\", "\\\\").replace('"', '\\"')
        # The server writes a warning once, for any number of validations with that warning.
        ours["warnings"] = list(dict.fromkeys(quoted(text) for text in ours["warnings"]))
        answer = self.answer(case, check)
        if answer is None:
            self.faults += 1
            return
        self.comparison.checks += 1
        self.denied += answer["denial"] is not None
        self.warned += bool(answer["warnings"])
        if verdict(answer) != verdict(ours):
            others = [self.answer(case, check) for _ in range(AGAIN)]
            if any(other is None or verdict(other) == verdict(ours) for other in others):
                self.unsure += 1
                return
            self.comparison.verdicts.append((case["name"], answer, ours))
            shown = dict(case, checks=[check])
            print("VERDICT request", json.dumps(shown), "\n  server", answer, "\n  ours  ", ours, flush=True)
        elif answer != ours:
            self.comparison.difference("request", dict(case, checks=[check]), answer, ours)

    def summary(self):
        """The counts so far."""
        return ("%d policies, %d refused; %d requests judged, %d denied, %d warned; %d answers of the server change and %d are faults "
                "without an answer; "
                "%d verdicts and %d messages differ" % (
                    self.policies, self.comparison.refused, self.comparison.checks, self.denied, self.warned, self.unsure, self.faults,
                    len(self.comparison.verdicts), len(self.comparison.messages)))


def main():
    """Runs until so many policies are compared, or the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--report")
    options = parser.parse_args()
    comparison, judge = fuzz.Comparison(options.report), fuzz.Judge()
    server, begin = record.Server(options.program), time.monotonic()
    try:
        run = Run(server, judge, comparison)
        while run.policies < options.cases and time.monotonic() - begin < options.minutes * 60:
            run.pack(random.Random("%d/%d" % (options.seed, run.number)))
            print("%.0f s: %s" % (time.monotonic() - begin, run.summary()), file=sys.stderr, flush=True)
    finally:
        server.stop()
        judge.process.terminate()
    print(run.summary())
    sys.exit(1 if comparison.verdicts else 0)


if __name__ == "__main__":
    main()
