#!/usr/bin/env python3
"""Measures how long a real kube-apiserver takes for the rules of rules.json, as a client sees it.

    admission.py ~/.cache/windlass/kube-v1.36.3-*/kube-apiserver [--requests 4000]

Creates the object of rules.json as a custom resource with `dryRun=All` over a TLS connection on
loopback: of a definition without rules, with the first rule, and with all rules, in
turns. Prints the medians of the requests' wall time, the server's CPU time for each request, and the
differences from the definition without rules, which are the price of the rules.
"""

import argparse
import copy
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("record_cel", HERE.parents[1] / "kube-apiserver/record-cel.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)

BLOCK = 100
TICK = os.sysconf("SC_CLK_TCK")


def cpu(server):
    """CPU time of the server so far in seconds; etcd runs in the same process."""
    fields = pathlib.Path("/proc/%d/stat" % server.process.pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def install(server, plural, schema):
    """A definition of this schema with the probe: the path of the objects."""
    server.must("POST", record.CRDS, record.definition(plural, schema))
    path = "/apis/%s/v1/%s" % (record.GROUP, plural)
    record.wait(plural + " is not served", lambda: server.answers(path))
    return path + record.DRY


def main():
    """Measures and prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=4000, help="requests to each definition")
    options = parser.parse_args()
    given = json.loads((HERE / "rules.json").read_text())
    rules = [{"rule": rule["rule"]} for rule in given["rules"]]
    variants = {"bares": ("no rules", []), "twos": ("two fields", rules[:1]), "alls": ("all five", rules)}
    server = record.Server(options.program)
    try:
        paths, times, spent = {}, {name: [] for name in variants}, dict.fromkeys(variants, 0.0)
        for name, (_, some) in variants.items():
            schema = copy.deepcopy(given["schema"])
            if some:
                schema[record.RULES] = some
            paths[name] = install(server, name, {"type": "object", "properties": {"spec": schema}})
        bodies = {name: record.thing(name, "probe", {"spec": given["object"]}) for name in variants}
        for name in variants:
            for _ in range(2 * BLOCK):
                server.must("POST", paths[name], bodies[name])
        while len(times["alls"]) < options.requests:
            for name in variants:
                before = cpu(server)
                for _ in range(BLOCK):
                    begin = time.perf_counter()
                    server.must("POST", paths[name], bodies[name])
                    times[name].append(time.perf_counter() - begin)
                spent[name] += cpu(server) - before
        print("| %d requests each | wall time, median | quartiles | server's CPU time |\n|---|---|---|---|" % options.requests)
        base = None
        for name, (label, _) in variants.items():
            low, middle, high = (1e6 * value for value in statistics.quantiles(times[name], n=4))
            used = 1e6 * spent[name] / len(times[name])
            base = base or (middle, used)
            print("| %s | %.0f µs (%+.0f) | %.0f to %.0f µs | %.0f µs (%+.0f) |" % (
                label, middle, middle - base[0], low, high, used, used - base[1]))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
