#!/usr/bin/env python3
"""Writes apiserver/src/typed/descriptions.gz: the documentation of built-in types and their fields.

    describe-types.py FOLDER

FOLDER is a version's folder in the sources of the crate k8s-openapi (Apache-2.0), such as
~/.cargo/registry/src/*/k8s-openapi-*/src/v1_36; the schemas there have the texts that kube-apiserver publishes.
A line is a type's name, a tab and the text, or a tab, a field's name, a tab and the field's text.
Texts are escaped as in JSON. Types are sorted: the same sources make the same file.
"""

import gzip
import json
import pathlib
import re
import sys

OUT = pathlib.Path(__file__).resolve().parents[2] / "apiserver/src/typed/descriptions.gz"
NAME = re.compile(r"^// Generated from definition (\S+)$", re.M)
PROPERTY = re.compile(r'^ {16}"([^"]+)": ')
TEXT = re.compile(r'^ +"description": ("(?:[^"\\]|\\.)*"),$')
INSERTED = re.compile(r'insert\("description"\.into\(\), ("(?:[^"\\]|\\.)*")\.into\(\)\)')


def unescaped(literal):
    """The text of a literal of Rust."""
    plain = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda m: "\\u%04x" % int(m[1], 16), literal)
    return json.loads(plain.replace("\\'", "'").replace("\\0", "\\u0000"))


def read(source):
    """The text of a type, and those of the fields by name."""
    own, fields, current = "", {}, None
    begun = False
    for line in source.splitlines():
        begun = begun or "fn json_schema(" in line
        if not begun:
            continue
        found = PROPERTY.match(line)
        if found:
            current = found[1]
        text = TEXT.match(line) or INSERTED.search(line)
        if not text:
            continue
        text = unescaped(text[1])
        if current is None:
            own = own or text
        else:
            fields.setdefault(current, text)
    return own, fields


def main():
    """Writes the file."""
    types = {}
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.rs")):
        source = path.read_text()
        name = NAME.search(source)
        if name and "fn json_schema(" in source:
            types[name[1]] = read(source)
    escaped = lambda text: json.dumps(text, ensure_ascii=False)[1:-1]
    lines = []
    for name, (own, fields) in sorted(types.items()):
        lines.append("%s\t%s" % (name, escaped(own)))
        lines += ["\t%s\t%s" % (field, escaped(text)) for field, text in sorted(fields.items())]
    text = ("\n".join(lines) + "\n").encode()
    OUT.write_bytes(gzip.compress(text, 9, mtime=0))
    print("%d types, %d bytes, %d compressed" % (len(types), len(text), OUT.stat().st_size))


if __name__ == "__main__":
    main()
