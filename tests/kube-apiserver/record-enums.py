#!/usr/bin/env python3
"""Records the enumerations of built-in fields from a running kube-apiserver.

    record-enums.py https://127.0.0.1:6443 TOKEN > apiserver/src/typed/enums.txt

Reads /openapi/v3 and every document of a group. A line of an enumeration has its values as a list in JSON, a
tab, and what the description says of them, as a text in JSON. The lines below it are the fields: a tab, the
type, a tab, and the name of the field, with `[]` for the items of a list and `{}` for the values of a map.
"""

import json
import ssl
import sys
import urllib.request

BEGIN = "\n\nPossible enum values:\n"


def read(server, token, path):
    """Returns a document."""
    request = urllib.request.Request(server + path)
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Accept", "application/json")
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as response:
        return json.load(response)


def enumerations(schema):
    """Yields the fields of a type with an enumeration: name, values, and what is said of them."""
    for name, field in schema.get("properties", {}).items():
        for mark, one in [("", field), ("[]", field.get("items")), ("{}", field.get("additionalProperties"))]:
            if isinstance(one, dict) and "enum" in one:
                text = one.get("description", "")
                yield name + mark, one["enum"], BEGIN + text.split(BEGIN)[1] if BEGIN in text else ""


def main():
    """Prints all enumerations."""
    server, token = sys.argv[1:]
    found = {}
    for document in read(server, token, "/openapi/v3")["paths"].values():
        schemas = read(server, token, document["serverRelativeURL"]).get("components", {}).get("schemas", {})
        for name, schema in schemas.items():
            for field, values, text in enumerations(schema):
                key = json.dumps(values) + "\t" + json.dumps(text)
                found.setdefault(key, set()).add((name, field))
    for key, fields in sorted(found.items()):
        print(key)
        for field in sorted(fields):
            print("\t%s\t%s" % field)


if __name__ == "__main__":
    main()
