#!/usr/bin/env python3
"""Records the server's own Go types, which some refusals print.

    record-internal.py $(go list -m -f '{{.Dir}}' k8s.io/kubernetes k8s.io/api) > apiserver/src/typed/internal.types

Reads the declarations of the roots below and of all that they use, and writes a line per type: the
names of fields in the order of Go, with the types and with the names of the versioned form. The format is
explained in apiserver/src/typed/internal.rs, the reader.
"""

import pathlib
import re
import sys

ROOTS = [
    "core.PodSpec", "core.PodTemplateSpec", "core.PersistentVolumeSource", "core.PersistentVolumeClaimSpec",
    "core.ObjectReference", "core.EventSource", "core.NodeConfigSource", "core.ResourceQuotaSpec",
    "resource.ResourceClaimSpec", "resource.ResourceClaimTemplateSpec", "resource.ResourceSliceSpec",
    "storage.VolumeAttachmentSpec", "storage.CSINodeDriver", "networking.ParentReference",
    "networking.IngressClassParametersReference", "batch.PodFailurePolicy", "batch.SuccessPolicy",
    "policy.PodDisruptionBudgetSpec", "certificates.CertificateSigningRequestSpec",
    "flowcontrol.FlowSchemaSpec", "flowcontrol.PriorityLevelConfigurationSpec",
]
GROUPS = ["core", "batch", "resource", "storage", "networking", "policy", "certificates", "flowcontrol"]
VERSIONED = {group: f"{group}/v1/types.go" for group in GROUPS}
PLAIN = {
    "string": "s", "bool": "b", "int": "n", "int32": "n", "int64": "n", "uint32": "n", "byte": "n",
    "float64": "n", "types.UID": "s", "resource.Quantity": "q", "apiresource.Quantity": "q",
    "intstr.IntOrString": "x", "metav1.Time": "t", "metav1.MicroTime": "t", "metav1.ObjectMeta": "m",
    "metav1.LabelSelector": "l", "metav1.Duration": "s",
}


def declarations(text):
    """The types of a file: the body of a structure, or the name of another type."""
    text = re.sub(r"//.*", "", text)
    found = {}
    for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
        found[name] = [line.strip() for line in body.splitlines() if line.strip()]
    for name, other in re.findall(r"^type (\w+) ([^\s{]+)$", text, re.M):
        found[name] = other
    for block in re.findall(r"^type \(\n(.*?)^\)", text, re.M | re.S):
        for name, other in re.findall(r"^\s*(\w+) ([^\s{]+)$", block, re.M):
            found[name] = other
    return found


def read(folders):
    server, api = (pathlib.Path(folder) for folder in folders)
    own = {}
    names = {}
    for group in GROUPS:
        for name, body in declarations((server / f"pkg/apis/{group}/types.go").read_text()).items():
            own[f"{group}.{name}"] = body
        for name, body in declarations((api / VERSIONED[group]).read_text()).items():
            if isinstance(body, list):
                tags = [re.match(r"(\w+)\s+\S+\s+`json:\"(\w+)", line) for line in body]
                names[f"{group}.{name}"] = {tag[1].lower(): tag[2] for tag in tags if tag}
    return own, names


def lowered(name):
    """The usual name of a field in JSON: the first word in lower case."""
    head = re.match(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]+$|[A-Z]", name)
    return name[: head.end()].lower() + name[head.end() :]


class Writer:
    def __init__(self, own, names):
        self.own, self.names, self.lines, self.due = own, names, {}, []

    def kind(self, group, text):
        """The type of a field: signs for pointers, lists and maps, then a letter or a name."""
        if text == "[]byte":
            return "y"
        for start, sign in [("*", "*"), ("[]", "[")]:
            if text.startswith(start):
                return sign + self.kind(group, text[len(start) :])
        held = re.match(r"map\[[\w.]+\](.*)", text)
        if held:
            return "{" + self.kind(group, held[1])
        if text in PLAIN:
            return PLAIN[text]
        if text.startswith(("api.", "apiv1.", "v1.")):
            text = "core." + text.split(".")[1]
        full = text if "." in text else f"{group}.{text}"
        body = self.own.get(full)
        if body is None:
            return "."
        if isinstance(body, list):
            self.due.append(full)
            return "@" + full
        return self.kind(full.split(".")[0], body)

    def fields(self, full):
        group = full.split(".")[0]
        found = []
        for line in self.own[full]:
            words = line.split()
            if len(words) == 1 or words[1].startswith("`"):
                embedded = words[0]
                if embedded == "metav1.ObjectMeta":
                    found.append("^m")
                elif embedded not in ("metav1.TypeMeta",):
                    inner = embedded if "." in embedded else f"{group}.{embedded}"
                    found += self.fields(inner)
                continue
            name, kind = words[0], self.kind(group, words[1])
            told = self.names.get(full, {}).get(name.lower())
            json = told or lowered(name)
            plain = name[0].lower() + name[1:]
            found.append(f"{name}:{kind}" if json == plain else f"{name}={json}:{kind}")
        return found

    def write(self, roots):
        self.due = list(roots)
        while self.due:
            full = self.due.pop()
            if full not in self.lines:
                self.lines[full] = ""
                self.lines[full] = " ".join(self.fields(full))
        for full in sorted(self.lines):
            print(full, self.lines[full])


Writer(*read(sys.argv[1:])).write(ROOTS)
