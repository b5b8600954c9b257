"""Changes of objects that exist: fields that keep their value, and rules for changes alone.

`changes.jsonl` has an object of each kind, and merge patches; each is tried without being stored.
"""

import json
import pathlib

from steps import *

for line in pathlib.Path(__file__).with_suffix(".jsonl").read_text().splitlines():
    family = json.loads(line)
    path = family["path"]
    name = family["base"]["metadata"]["name"]
    steps = [post(path, family["base"])]
    for change in family["changes"]:
        where = path + "/" + name + family.get("sub", "")
        steps.append(patch(where + "?dryRun=All", change))
    if family.get("cluster"):
        steps.append(delete(path + "/" + name, pick=["/kind"]))
    title = "changes of " + path.split("?")[0].split("/")[-1]
    script("changes", family["name"], 3, title, steps)
