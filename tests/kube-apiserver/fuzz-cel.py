#!/usr/bin/env python3
"""Compares the rules of windlass-cel with those of a real kube-apiserver on generated input.

    fuzz-cel.py ~/.cache/windlass/kube-v1.36.3-*/kube-apiserver [--cases 100000] [--seed 1]
                [--minutes 60] [--report FILE] [--updates]

Generates schemas, rules and objects of a seed. Both sides judge the definitions and then, with the
rules that the server takes, the objects. A case is a rule; each verdict is compared: on the
definition, and on every object. Prints the comparisons and every difference, and ends with 1 when
a verdict differs. Differences of messages are counted and written to the report.

With --updates the objects exist before the rules do, and are changed under them: rules read oldSelf,
stand within lists, maps and objects, and values that have not changed are tolerated.
"""

import argparse
import copy
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("record_cel", HERE / "record-cel.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)

RULES = record.RULES
PACK = 100
OBJECTS = 6
PREFIX = "spec.validation.openAPIV3Schema"

TEXTS = ["", "a", "abc", "Hello", "héllo", "10.0.0.1", "::1", "10.0.0.0/8", "fe80::/10", "a,b,c",
         "1.2.3", "1.2.3-rc.1+b", "100Mi", "1.5", "-3", "true", "https://user@example.com:80/a/b?x=y&x=z#f",
         "2024-02-29T12:00:00Z", "2024-02-29", "1h30m", "1h", "^a+$", "[a-z", "web-1", "A_b.c/d", "😀x",
         "%s is %d", "{{x}}", "aGVsbG8=", "\n\t", "1e3", "null", "dns1123Label"]
NUMBERS = [0, 1, -1, 2, 3, 7, 10, 64, 255, 1000, 86400, 2147483647, -2147483648, 9007199254740993,
           9223372036854775807, -9223372036854775808]
FLOATS = [0.0, 1.0, -1.5, 0.1, 2.5, 1e10, 1e300, -0.0, 3.0]

# Templates by the type of their value. None makes a list of a map: the server has no order of a map's entries.
# `<T>` is a hole of that type, and `<T|v:U>` a hole in which v has type U.
TEMPLATES = {
    "bool": """<bool> && <bool>;<bool> || <bool>;!<bool>;<bool> ? <bool> : <bool>;<int> < <int>;<int> <= <int>;
        <double> > <double>;<string> >= <string>;<int> == <int>;<string> == <string>;<string> != <string>;
        <double> == <double>;<list(int)> == <list(int)>;<list(string)> == <list(string)>;<map> == <map>;
        <timestamp> < <timestamp>;<duration> >= <duration>;<timestamp> == <timestamp>;<uint> < <uint>;
        <bytes> == <bytes>;<bytes> < <bytes>;<bool> == <bool>;<int> < <double>;dyn(<int>) == dyn(<double>);
        <string>.startsWith(<string>);<string>.endsWith(<string>);<string>.contains(<string>);
        <string>.matches(<pattern>);<int> in <list(int)>;<string> in <list(string)>;<string> in <map>;
        <list(int)>.all(v, <bool|v:int>);<list(string)>.exists(v, <bool|v:string>);
        <list(int)>.exists_one(v, <bool|v:int>);<map>.all(v, <bool|v:string>);<map>.exists(v, <bool|v:string>);
        <list(int)>.all(i, v, <bool|v:int>);<map>.exists(k, v, <bool|v:string>);
        <map>.existsOne(k, v, <bool|v:string>);isIP(<string>);isCIDR(<string>);isURL(<string>);
        ip.isCanonical(<string>);<ip>.isLoopback();<ip>.isGlobalUnicast();<ip> == <ip>;<cidr>.containsIP(<string>);
        <cidr>.containsIP(<ip>);<cidr>.containsCIDR(<string>);<cidr> == <cidr>;<url> == <url>;
        isQuantity(<string>);<quantity>.isGreaterThan(<quantity>);<quantity>.isLessThan(<quantity>);
        <quantity> == <quantity>;<quantity>.isInteger();isSemver(<string>);<semver>.isLessThan(<semver>);
        <semver> == <semver>;isSemver(<string>, <bool>);sets.contains(<list(int)>, <list(int)>);
        sets.equivalent(<list(string)>, <list(string)>);sets.intersects(<list(int)>, <list(int)>);
        <list(int)>.isSorted();<list(string)>.isSorted();<optional(int)>.hasValue();bool(<string>);
        <optional(string)> == <optional(string)>;type(<any>) == <type>;<type> == <type>;<list(bool)>.all(v, v);
        format.dns1123Label().validate(<string>).hasValue();format.uuid().validate(<string>).hasValue();
        format.named(<string>).hasValue();<any> == <any>;<any> in [<any>, <any>];has(<path>);!has(<path>);
        <list(int)>.map(v, <int|v:int>) == <list(int)>""",
    "int": """<int> + <int>;<int> - <int>;<int> * <int>;<int> / <int>;<int> % <int>;-<int>;<string>.size();
        size(<list(int)>);size(<list(string)>);size(<map>);<bytes>.size();int(<string>);int(<double>);int(<uint>);
        int(<timestamp>);<bool> ? <int> : <int>;<list(int)>[<int>];<list(int)>.sum();<list(int)>.max();
        <list(int)>.min();<list(int)>.indexOf(<int>);<list(string)>.lastIndexOf(<string>);<string>.indexOf(<string>);
        <string>.indexOf(<string>, <int>);<string>.lastIndexOf(<string>);<string>.lastIndexOf(<string>, <int>);
        <timestamp>.getFullYear();<timestamp>.getMonth();<timestamp>.getDayOfWeek();<timestamp>.getDayOfYear();
        <timestamp>.getHours('+02:00');<timestamp>.getMinutes();<timestamp>.getMilliseconds();
        <timestamp>.getDate('America/New_York');<duration>.getSeconds();<duration>.getHours();
        <duration>.getMilliseconds();<ip>.family();<cidr>.prefixLength();<optional(int)>.value();
        <optional(int)>.orValue(<int>);<quantity>.asInteger();<quantity>.compareTo(<quantity>);<quantity>.sign();
        <semver>.major();<semver>.patch();<semver>.compareTo(<semver>);<list(int)>.first().orValue(<int>)""",
    "uint": "<uint> + <uint>;<uint> * <uint>;<uint> / <uint>;<uint> - <uint>;uint(<int>);uint(<string>);uint(<double>)",
    "double": """<double> + <double>;<double> - <double>;<double> * <double>;<double> / <double>;-<double>;
        double(<int>);double(<string>);double(<uint>);<bool> ? <double> : <double>;<list(double)>.sum();
        <list(double)>.max();<list(double)>[<int>];<quantity>.asApproximateFloat()""",
    "string": """<string> + <string>;string(<int>);string(<double>);string(<bool>);string(<uint>);string(<bytes>);
        string(<timestamp>);string(<duration>);<bool> ? <string> : <string>;<list(string)>[<int>];<map>[<string>];
        <string>.charAt(<int>);<string>.lowerAscii();<string>.upperAscii();<string>.trim();<string>.reverse();
        <string>.substring(<int>);<string>.substring(<int>, <int>);<string>.replace(<string>, <string>);
        <string>.replace(<string>, <string>, <int>);<list(string)>.join();<list(string)>.join(<string>);
        <string>.find(<pattern>);strings.quote(<string>);'%s and %d'.format([<any>, <int>]);
        '%.2f|%x|%b'.format([<double>, <int>, <int>]);'%s'.format([<any>]);'%e'.format([<double>]);string(<ip>);
        string(<cidr>);<url>.getHost();<url>.getScheme();<url>.getEscapedPath();<url>.getPort();<url>.getHostname();
        <optional(string)>.orValue(<string>);<map>.?a.orValue(<string>);<map>[?<string>].orValue(<string>);
        <list(string)>[?<int>].orValue(<string>);<list(string)>.last().orValue(<string>)""",
    "bytes": "bytes(<string>);<bytes> + <bytes>",
    "timestamp": """timestamp(<string>);timestamp(<int>);<timestamp> + <duration>;<timestamp> - <duration>;
        timestamp('2024-02-29T12:00:00.5Z');timestamp('1969-12-31T23:59:59-01:00')""",
    "duration": """duration(<string>);<timestamp> - <timestamp>;<duration> + <duration>;<duration> - <duration>;
        -<duration>;duration('1h30m');duration('-1.5s')""",
    "ip": "ip(<string>);ip('10.0.0.1');ip('::1');<cidr>.ip()",
    "cidr": "cidr(<string>);cidr('10.0.0.0/8');<cidr>.masked();cidr('fe80::1/10')",
    "url": "url(<string>);url('https://example.com:80/a?b=c')",
    "quantity": """quantity(<string>);quantity('1.5Gi');<quantity>.add(<quantity>);<quantity>.sub(<int>);
        quantity('100m');quantity('12e3');<quantity>.add(<int>)""",
    "semver": "semver(<string>);semver('1.2.3');semver('v1.2', true);semver(<string>, <bool>)",
    "type": "type(<any>);int;string;bool;list;map;null_type;double;google.protobuf.Timestamp;net.IP",
    "list(int)": """[<int>, <int>];[<int>];<list(int)> + <list(int)>;<list(int)>.filter(v, <bool|v:int>);
        <list(int)>.map(v, <int|v:int>);<list(string)>.map(v, <int|v:string>);<list(int)>.slice(<int>, <int>);
        <list(int)>.sort();<list(int)>.distinct();<list(int)>.reverse();lists.range(3);
        <list(int)>.map(v, <bool|v:int>, <int|v:int>);<list(int)>.transformList(i, v, <int|v:int>);
        [?<optional(int)>];[[<int>], <list(int)>].flatten();<bool> ? <list(int)> : <list(int)>""",
    "list(string)": """[<string>, <string>];<string>.split(<string>);<string>.split(<string>, <int>);
        <list(string)> + <list(string)>;<list(string)>.filter(v, <bool|v:string>);<list(string)>.map(v, <string|v:string>);<string>.findAll(<pattern>);<string>.findAll(<pattern>, <int>);
        <list(string)>.sort();<list(string)>.distinct();<list(string)>.sortBy(v, <int|v:string>);
        <list(string)>.reverse();<url>.getQuery()['x']""",
    "list(double)": "[<double>, <double>];<list(double)> + <list(double)>;<list(double)>.sort()",
    "list(bool)": "[<bool>, <bool>];<list(int)>.map(v, <bool|v:int>)",
    "map": """{<string>: <string>};{'a': <string>, 'b': <string>};{};<map>.transformMap(k, v, <string|v:string>);
        <list(string)>.transformMapEntry(i, v, {v: <string|v:string>});{?'a': <optional(string)>}""",
    "optional(int)": """optional.of(<int>);optional.none();optional.ofNonZeroValue(<int>);<list(int)>[?<int>];
        <optional(int)>.or(<optional(int)>);<optional(int)>.optMap(v, <int|v:int>);<list(int)>.first();
        <optional(int)>.optFlatMap(v, optional.of(v))""",
    "optional(string)": """optional.of(<string>);<map>[?<string>];<map>.?a;optional.ofNonZeroValue(<string>);
        <list(string)>.last();<optional(string)>.or(<optional(string)>);optional.none()""",
}
TEMPLATES = {ty: [" ".join(one.split()) for one in text.split(";")] for ty, text in TEMPLATES.items()}
ANY = ["int", "string", "bool", "double", "uint", "bytes", "timestamp", "duration", "list(int)", "map", "list(string)",
       "optional(int)", "ip", "quantity"]
PATTERNS = ["'^a+$'", "'[a-z]*'", "'(a|b)c?'", "'\\\\d{1,3}'", "'(?i)HELLO'", "'^[\\\\w-]+$'", "'['", "'a{2,1}'", "'.'",
            "'\\\\bx'", "'[[:alpha:]]+'", "'(?P<n>a)'", "''"]


def quoted(text):
    """A literal of CEL for a text."""
    return "'" + "".join({"'": "\\'", "\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(c, c) for c in text) + "'"


class Generator:
    """Rules and objects of a schema."""

    def __init__(self, rng, updates=False):
        """Makes the schema."""
        self.rng, self.updates = rng, updates
        self.properties = {}
        self.schema = self.new_object()
        self.paths = [("self", "object")]
        self.walk("self", self.schema, 0)

    def new_object(self):
        """A schema of an object with scalars, lists and maps."""
        names = self.rng.sample(["a", "b", "c", "d", "e", "min-size", "in", "x.y", "namespace", "k8s", "_f"],
                                self.rng.randint(3, 6))
        return {"type": "object", "properties": {name: self.new_schema(0) for name in names}}

    def new_schema(self, depth):
        """A schema of any type."""
        rng, result = self.rng, {}
        kind = rng.choice(["string"] * 4 + ["integer"] * 3 + ["number", "boolean", "list", "list", "map", "object", "mixed"])
        if kind == "string":
            result = {"type": "string"}
            if rng.random() < 0.9:
                result["maxLength"] = rng.choice([16, 64, 256])
            form = rng.choice([None] * 6 + ["date-time", "duration", "byte", "date", "uri", "email"])
            if form:
                result["format"] = form
                if "maxLength" in result and (form == "date-time" or rng.random() < 0.5):
                    result["maxLength"] = 64
        elif kind == "integer":
            result = {"type": "integer"}
            if rng.random() < 0.2:
                result["format"] = rng.choice(["int32", "int64"])
        elif kind in ("number", "boolean"):
            result = {"type": kind}
        elif kind == "mixed":
            result = {"x-kubernetes-int-or-string": True}
        elif kind == "list":
            items = rng.choice([{"type": "integer"}, {"type": "string", "maxLength": 16}, {"type": "number"},
                                {"type": "boolean"}])
            items = self.new_schema(depth + 1) if depth < 1 and rng.random() < 0.3 else dict(items)
            items.pop("nullable", None)
            result = {"type": "array", "items": items}
            if rng.random() < 0.9:
                result["maxItems"] = rng.choice([4, 10])
            if items.get("type") in ("string", "integer") and rng.random() < 0.2:
                result["x-kubernetes-list-type"] = "set"
        elif kind == "map":
            values = {"type": "string", "maxLength": 16}
            if depth < 1 and rng.random() < 0.3:
                values = self.new_schema(depth + 1)
            values.pop("nullable", None)
            result = {"type": "object", "additionalProperties": values}
            if rng.random() < 0.9:
                result["maxProperties"] = rng.choice([4, 10])
        else:
            names = rng.sample(["a", "b", "c", "v"], 2)
            inner = {name: self.new_schema(depth + 1) if depth < 2 else {"type": "integer"} for name in names}
            result = {"type": "object", "properties": inner}
        if rng.random() < 0.1:
            result["nullable"] = True
        return result

    def placed(self, rule):
        """The schema with the rule at a place within another schema."""
        ruled = dict(copy.deepcopy(self.schema), **{RULES: [rule]})
        if not self.updates:
            return ruled
        key = {"type": "string", "maxLength": 4}
        keyed = {"type": "object", "properties": {"k": key, "v": ruled}, "required": ["k"]}
        listed = {"type": "array", "maxItems": 3, "items": keyed, "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["k"]}
        return self.rng.choice([
            ruled, ruled, ruled, listed,
            {"type": "object", "properties": {"v": ruled}},
            {"type": "object", "additionalProperties": ruled, "maxProperties": 3},
            {"type": "object", "properties": {"v": listed}},
            {"type": "array", "items": ruled, "maxItems": 3},
            {"type": "object", "additionalProperties": ruled, "maxProperties": 3, "x-kubernetes-map-type": "atomic"},
        ])

    def changed(self, schema, value):
        """A value that fits a schema and has some parts of another schema."""
        rng = self.rng
        if rng.random() < 0.4 or value is None:
            return value
        if rng.random() < 0.1 and "k" not in schema.get("properties", {}):
            return self.content(schema, 1)
        if isinstance(value, dict):
            of = schema.get("properties", {})
            result = {name: self.changed(of.get(name) or schema["additionalProperties"], part)
                      for name, part in value.items() if rng.random() < 0.9}
            keys = [name for name in ("k",) if name in value]
            return dict(result, **{name: value[name] for name in keys})
        if isinstance(value, list):
            items = [self.changed(schema["items"], part) for part in value if rng.random() < 0.9]
            if rng.random() < 0.3:
                rng.shuffle(items)
            is_set = schema.get("x-kubernetes-list-type") == "set"
            return list(dict.fromkeys(items)) if is_set else items
        return self.content(schema, 1)

    def walk(self, path, schema, depth):
        """Paths of expressions with their types."""
        if depth > 3:
            return
        for name, inner in schema.get("properties", {}).items():
            below = path + "." + escaped(name)
            self.paths.append((below, type_of(inner)))
            self.walk(below, inner, depth + 1)

    def content(self, schema, depth=0):
        """A value that fits a schema."""
        rng = self.rng
        if schema.get("nullable") and rng.random() < 0.2:
            return None
        if schema.get("x-kubernetes-int-or-string"):
            return rng.choice([rng.choice(NUMBERS[:8]), rng.choice(TEXTS)])
        kind = schema["type"]
        if kind == "integer":
            return rng.choice(NUMBERS[:10] if schema.get("format") == "int32" else NUMBERS)
        if kind == "number":
            return rng.choice(FLOATS + [1, 7])
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "string":
            texts = {"date-time": ["2024-02-29T12:00:00Z", "1999-12-31T23:59:59.123+02:00"], "date": ["2024-02-29"],
                     "duration": ["1h", "90s", "1h30m"], "byte": ["aGVsbG8=", "+/8="], "email": ["a@b.example"],
                     "uri": ["https://example.com/a"]}.get(schema.get("format"), TEXTS)
            return rng.choice(texts)[:schema.get("maxLength", 99)]
        if "x-kubernetes-list-map-keys" in schema:
            keys = rng.sample(["a", "b", "c"], rng.randint(1, 3))
            return [dict(self.content(schema["items"], depth + 1), k=key) for key in keys]
        if kind == "array":
            most = 3 if RULES in schema["items"] else 4
            items = [self.content(schema["items"], depth + 1) for _ in range(rng.randint(0, most))]
            if schema.get("x-kubernetes-list-type") == "set":
                items = list(dict.fromkeys(items))
            return items
        if "additionalProperties" in schema:
            names = rng.sample(["a", "b", "x", "héllo", "a.b"], rng.randint(0, 3))
            return {name: self.content(schema["additionalProperties"], depth + 1) for name in names}
        return {name: self.content(inner, depth + 1) for name, inner in schema["properties"].items()
                if rng.random() < 0.8}

    def expression(self, ty, depth, scope):
        """An expression of a type, mostly."""
        rng = self.rng
        if rng.random() < 0.015:
            ty = rng.choice(ANY)
        if ty == "any":
            ty = rng.choice(ANY)
        if ty == "pattern":
            return rng.choice(PATTERNS) if rng.random() < 0.9 else self.expression("string", depth, scope)
        if ty == "path":
            return rng.choice(self.paths)[0] if rng.random() < 0.95 else rng.choice(["self.a.b", "self", "1"])
        known = [path for path, found in self.paths + scope if found == ty]
        if known and rng.random() < (0.75 if depth <= 0 else 0.3):
            return rng.choice(known)
        if depth <= 0 or ty not in TEMPLATES or rng.random() < 0.12:
            literal = self.literal(ty)
            if literal is not None:
                return literal
        if ty not in TEMPLATES:
            return rng.choice(self.paths)[0]
        text = self.filled(rng.choice(TEMPLATES[ty]), depth - 1, scope)
        return "(" + text + ")" if any(mark in text for mark in " ?-!") else text

    def filled(self, template, depth, scope):
        """A template with filled holes."""
        result, rest = "", template
        while "<" in rest:
            head, _, tail = rest.partition("<")
            hole, end, after = tail.partition(">")
            known = hole.split("|")[0]
            if not end or (known not in TEMPLATES and known not in ("any", "pattern", "path")):
                result, rest = result + head + "<", tail
                continue
            inner = scope
            if "|" in hole:
                name, ty = hole.split("|")[1].split(":")
                inner = scope + [(name, ty)] * 3
            result, rest = result + head + self.expression(known, depth, inner), after
        return result + rest

    def literal(self, ty):
        """A literal, if the type has some."""
        rng = self.rng
        return {
            "int": lambda: str(rng.choice(NUMBERS)),
            "uint": lambda: rng.choice(["0u", "1u", "7u", "18446744073709551615u"]),
            "double": lambda: repr(rng.choice(FLOATS)),
            "string": lambda: quoted(rng.choice(TEXTS)),
            "bytes": lambda: rng.choice(["b''", "b'abc'", "b'\\xff'", "b'h\\303\\251'"]),
            "bool": lambda: rng.choice(["true", "false"]),
            "list(int)": lambda: rng.choice(["[1, 2, 3]", "[]", "[3, 1, 3]"]),
            "list(string)": lambda: rng.choice(["['a', 'b']", "['']", "['b', 'a', 'b']"]),
            "list(double)": lambda: "[1.0, 0.5]",
            "list(bool)": lambda: "[true]",
            "map": lambda: rng.choice(["{'a': 'b'}", "{}"]),
        }.get(ty, lambda: None)()

    def rule(self):
        """A rule, with a message expression now and then."""
        rng = self.rng
        mode, plain = rng.choice(["plain", "old", "old", "optional"]) if self.updates else "plain", self.paths
        if mode != "plain":
            old = "oldSelf" if mode == "old" else "oldSelf.value()"
            self.paths = plain + [(path.replace("self", old, 1), ty) for path, ty in plain]
            self.paths += [("oldSelf.hasValue()", "bool")] * 3 if mode == "optional" else []
        rule = self.with_members()
        if mode == "optional":
            rule["optionalOldSelf"] = True
        self.paths = plain
        return rule

    def with_members(self):
        """A rule of the paths at hand."""
        rng = self.rng
        text = self.expression("bool", rng.choice([1, 2, 2, 3, 3, 4]), [])
        if rng.random() < 0.06:
            text = spoiled(rng, text)
        rule = {"rule": text}
        if rng.random() < 0.15:
            rule["messageExpression"] = self.expression("string", 2, [])
        elif rng.random() < 0.3:
            rule["message"] = "no"
        if rng.random() < 0.1:
            rule["reason"] = rng.choice(["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"])
        if rng.random() < 0.1:
            rule["fieldPath"] = rng.choice(["." + name for name in self.schema["properties"]] + [".zz", "a"])
        return rule


def escaped(name):
    """The name of a property in expressions."""
    if name in ("in", "namespace"):
        return "__%s__" % name
    return name.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


def type_of(schema):
    """The type of the values of a schema."""
    kind = schema.get("type")
    if schema.get("nullable"):
        return "nullable"
    if kind == "array":
        inner = type_of(schema["items"])
        return "list(%s)" % inner
    if kind == "object":
        values = schema.get("additionalProperties")
        return "object" if not values else "map" if type_of(values) == "string" else "map(%s)" % type_of(values)
    by_format = {"date-time": "timestamp", "date": "timestamp", "duration": "duration", "byte": "bytes"}
    return {"integer": "int", "number": "double", "boolean": "bool"}.get(
        kind, by_format.get(schema.get("format"), "string" if kind else "mixed"))


def without_rules(schema):
    """The schema without rules."""
    if not isinstance(schema, dict):
        return schema
    return {name: without_rules(part) for name, part in schema.items() if name != RULES}


def spoiled(rng, text):
    """A text with a change that is mostly an error of syntax or types."""
    at = rng.randint(0, len(text))
    piece = rng.choice(["(", ")", "'", "1", ".x", " ", "!", "-", "== 1", ".size()", "null", "[0]", "?", "in", "\\"])
    return text[:at] + piece + text[at + rng.randint(0, 2):]


class Judge:
    """The program of windlass-cel that judges."""

    def __init__(self):
        """Builds and starts the process."""
        build = ["cargo", "build", "--quiet", "--release", "-p", "windlass-cel", "--example", "judge",
                 "--message-format=json-render-diagnostics"]
        output = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        program = [json.loads(line).get("executable") for line in output.splitlines()]
        program = [path for path in program if path and path.endswith("judge")][-1]
        self.process = subprocess.Popen([program], stdin=-1, stdout=-1)

    def __call__(self, schema, objects, updates=()):
        """The verdicts on a definition, on objects, and on updates, each with the new and the old object."""
        return self.ask({"schema": schema, "objects": objects, "updates": list(updates)})

    def ask(self, document):
        """The answer to a document."""
        self.process.stdin.write(json.dumps(document).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Comparison:
    """Counts and differences."""

    def __init__(self, report):
        self.rules = self.definitions = self.checks = 0
        self.verdicts, self.messages, self.skipped, self.refused, self.failed = [], [], [], 0, 0
        self.report = report

    def compare(self, what, case, server, ours):
        """Compares the causes of a rule."""
        if bool(server) != bool(ours):
            self.verdicts.append((what, case, server, ours))
            print("VERDICT", what, json.dumps(case), "\n  server", server, "\n  ours  ", ours, flush=True)
        elif sorted(server) != sorted(ours):
            self.difference(what, case, server, ours)

    def difference(self, what, case, server, ours):
        """Reports messages that differ."""
        self.messages.append((what, case, server, ours))
        if self.report:
            with open(self.report, "a") as file:
                file.write(json.dumps({"what": what, "case": case, "server": server, "ours": ours}) + "\n")

    def summary(self):
        return ("%d rules, %d refused by the definition; %d definitions and %d objects judged, %d not valid; "
                "%d verdicts and %d messages differ" % (
                    self.rules, self.refused, self.definitions, self.checks, self.failed, len(self.verdicts),
                    len(self.messages)))


def split(causes, prefix):
    """Causes by the property that they are about; those about the whole schema have an empty name."""
    result = {}
    for cause in causes:
        field = cause.get("field", "")
        name = field[len(prefix):] if field.startswith(prefix) else ""
        name = name.lstrip(".[").split("]")[0].split(".")[0].split("[")[0]
        # The names of object types have the time of their creation in nanoseconds.
        message = re.sub(r"selfType[0-9]+", "selfType0", cause.get("message", ""))
        text = (cause.get("reason", ""), field, message)
        result.setdefault(name, []).append(text)
    return result


class Run:
    """A server with a definition, whose schema changes from pack to pack."""

    def __init__(self, server, judge, comparison, updates):
        self.server, self.judge, self.comparison, self.number = server, judge, comparison, 0
        self.updates = updates
        self.path = "/apis/%s/v1/fuzzes" % record.GROUP
        open_schema = {"type": "object", "properties": {"none": {"type": "boolean"}}}
        server.must("POST", record.CRDS, record.definition("fuzzes", open_schema))
        record.wait("the definition is not served", lambda: server.answers(self.path))

    def pack(self, rng):
        """Generates rules and objects and compares the verdicts."""
        generators = [Generator(rng, self.updates) for _ in range(PACK)]
        names = ["p%d" % number for number in range(PACK)]
        rules = {name: one.rule() for name, one in zip(names, generators)}
        schema = {"type": "object", "properties": {}}
        for name, one in zip(names, generators):
            schema["properties"][name] = one.placed(rules[name])
        taken = self.definition(schema, rules)
        self.comparison.rules += len(rules)
        while True:
            schema["properties"] = {name: schema["properties"][name] for name in names if name in taken}
            # Rules that are cheap enough singly may be too expensive together.
            still = self.definition(schema, {name: rules[name] for name in taken})
            if still == taken:
                break
            taken = still
        objects = []
        for _ in range(OBJECTS):
            objects.append({name: one.content({**schema["properties"][name], "nullable": False})
                            for name, one in zip(names, generators) if name in taken})
        if not self.updates:
            self.install(schema)
            whole = [record.thing("fuzzes", "probe", content) for content in objects]
            return self.objects(schema, whole, self.judge(schema, whole)["checks"], "POST", self.path)
        self.install(without_rules(schema))
        olds = [self.server.must("POST", self.path, record.thing("fuzzes", "old%d" % number, content))
                for number, content in enumerate(objects)]
        self.install(schema)
        for old in olds:
            new = {name: one.changed({**schema["properties"][name], "nullable": False}, old[name])
                   for name, one in zip(names, generators) if name in old}
            new = {**record.thing("fuzzes", "", new), "metadata": old["metadata"]}
            path = self.path + "/" + old["metadata"]["name"]
            self.objects(schema, [new], self.judge(schema, [], [[new, old]])["updates"], "PUT", path)
            self.server.must("DELETE", path, None)

    def definition(self, schema, rules):
        """Compares the verdicts on a definition; the rules that both sides take."""
        answer = self.server.call("POST", record.CRDS + record.DRY, record.definition("cases", schema))
        server = split(record.outcome(answer).get("causes", []), PREFIX + ".properties") if answer[0] != 201 else {}
        ours = split(self.judge(schema, [])["created"], "properties")
        for name, rule in rules.items():
            case = {"schema": schema["properties"][name], "rule": rule}
            causes = [(reason, field[len(PREFIX) + 1:], text) for reason, field, text in server.get(name, [])]
            self.comparison.compare("definition", case, causes, ours.get(name, []))
        known = set(rules)
        for name in (set(server) | set(ours)) - known:
            ours_whole = [(reason, PREFIX, text) for reason, _, text in ours.get(name, [])]
            self.comparison.compare("definition", {"at": name}, server.get(name, []), ours_whole)
        self.comparison.definitions += len(rules)
        self.comparison.refused += len(set(server) & known)
        taken = known - set(server) - set(ours)
        if taken == known and server:
            return set(sorted(known)[: len(known) // 2])
        return taken

    def install(self, schema):
        """Gives the definition a schema and waits until the definition is active."""
        self.number += 1
        sentinel = "sentinel%d" % self.number
        installed = copy.deepcopy(schema)
        installed["properties"][sentinel] = {"type": "boolean", RULES: [{"rule": "false"}]}
        name = record.CRDS + "/fuzzes." + record.GROUP
        answer = (409, None, None)
        while answer[0] == 409:
            full = record.definition("fuzzes", installed)
            stored = self.server.must("GET", name, None)
            full["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            answer = self.server.call("PUT", name, full)
        assert answer[0] == 200, answer
        probe = record.thing("fuzzes", "probe", {sentinel: True})
        record.wait("the rules are not active", lambda: "failed rule: false" in json.dumps(
            self.server.call("POST", self.path + record.DRY, probe)[1]))

    def objects(self, schema, objects, ours, method, path):
        """Compares the verdicts on objects."""
        for body, found in zip(objects, ours):
            answer = self.server.call(method, path + record.DRY, body)
            causes = record.outcome(answer).get("causes", []) if answer[0] != 201 else []
            if any(mark in cause["message"] for cause in causes for mark in (
                    "some validation rules were not checked", " in body should ")):
                self.comparison.skipped.append(causes)
                continue
            assert answer[0] in (201, 422), answer
            server, found = split(causes, ""), split(found, "")
            for rule in schema["properties"]:
                case = {"schema": schema["properties"][rule], "object": body.get(rule)}
                self.comparison.compare("object", case, server.get(rule, []), found.get(rule, []))
                self.comparison.checks += 1
                self.comparison.failed += rule in server


def main():
    """Runs until so many rules are compared, or the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--report")
    parser.add_argument("--updates", action="store_true")
    options = parser.parse_args()
    comparison, judge = Comparison(options.report), Judge()
    server, begin = record.Server(options.program), time.monotonic()
    try:
        run, number = Run(server, judge, comparison, options.updates), 0
        while comparison.rules < options.cases and time.monotonic() - begin < options.minutes * 60:
            run.pack(random.Random("%d/%d" % (options.seed, number)))
            number += 1
            if number % 10 == 0:
                print("%.0f s: %s" % (time.monotonic() - begin, comparison.summary()), file=sys.stderr, flush=True)
    finally:
        server.stop()
        judge.process.terminate()
    print(comparison.summary())
    sys.exit(1 if comparison.verdicts else 0)


if __name__ == "__main__":
    main()
