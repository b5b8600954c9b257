"""Random sequences of requests on three names, with a seed."""

import random

from objects import W, widget
from steps import *


def write_step(rng, path, make):
    """A random request."""
    name = rng.choice("abc")
    one, key, value = path + "/" + name, rng.choice("xyz"), str(rng.randrange(3))
    finalizers = rng.choice([None, [], ["a.example/f"]])
    meta = {} if finalizers is None else {"finalizers": finalizers}
    kind = rng.randrange(12)
    if kind < 3:
        return post(path, make(name, key, value, meta))
    if kind == 3:
        return put(one, make(name, key, value, meta))
    if kind == 4:
        return patch(one, dict(make(name, key, value, {}), metadata=meta))
    if kind == 5:
        return patch(one, [{"op": rng.choice(["add", "replace", "remove"]), "path": "/metadata/labels/" + key, "value": value}], kind=JSONPATCH)
    if kind == 6:
        return patch(one, {"metadata": {"labels": {key: rng.choice([value, None])}, "finalizers": rng.choice([None, []])}})
    if kind in (7, 8):
        return apply(one, make(name, key, value, meta), rng.choice(["m1", "m2"]), rng.choice(["", "&force=true"]))
    if kind == 9:
        return delete(one + rng.choice(["", "?propagationPolicy=Background", "?dryRun=All"]))
    if kind == 10:
        return get(rng.choice([one, path + "?labelSelector=" + key, path]))
    return patch(one, {"metadata": {"finalizers": None}})


def of_secret(name, key, value, meta):
    """A Secret with a single key."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": dict(meta, name=name), "data": {key: VALUES[int(value)]}}


def of_widget(name, key, value, meta):
    """A Widget with a single map entry."""
    return widget(name, {"map": {key: value}, "size": int(value)}, **meta)


VALUES = ["MA==", "MQ==", "Mg=="]
for seed in range(40):
    rng = random.Random(seed)
    path, make = (NS + "/secrets", of_secret) if seed % 2 else (W, of_widget)
    steps = [get(path, set=rv(), pick=["/kind"])] + [write_step(rng, path, make) for _ in range(24)]
    steps += [get(path), watch(path, 30, "&resourceVersion=${rv}")]
    steps[-1]["do"] = steps[-1]["do"].replace("timeoutSeconds=5", "timeoutSeconds=1")
    script("sequences", "seed-%02d" % seed, 2, "random requests with the seed %d" % seed, steps)
