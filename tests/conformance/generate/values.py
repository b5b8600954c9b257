"""Values of fields that creations bring, singly: refusals, and filled-in defaults.

`values.jsonl` has an object of each kind, and the sent changes of that object. A change is a list of paths and
values; `<<absent>>` takes the field away.
"""

import copy
import json
import pathlib

from steps import *


def changed(base, path, value):
    """An object with another value at a path; lists and objects on the way are made."""
    made = copy.deepcopy(base)
    parts = path.strip("/").split("/")
    held = made
    for at, part in enumerate(parts):
        if isinstance(held, list):
            part = int(part)
            held.extend({} for _ in range(part + 1 - len(held)))
        if at + 1 == len(parts):
            if value == "<<absent>>":
                held.pop(part, None)
            else:
                held[part] = value
        else:
            if isinstance(held, dict) and not isinstance(held.get(part), (dict, list)):
                held[part] = [] if parts[at + 1].isdigit() else {}
            held = held[part]
    return made


for line in pathlib.Path(__file__).with_suffix(".jsonl").read_text().splitlines():
    family = json.loads(line)
    path = family["path"] + "?dryRun=All"
    steps = [post(path, family["base"])]
    for change in family["changes"]:
        made = family["base"]
        for place, value in change:
            made = changed(made, place, value)
        steps.append(post(path, made))
    title = "values of fields of " + path.split("?")[0].split("/")[-1]
    script("values", family["name"], 3, title, steps)
