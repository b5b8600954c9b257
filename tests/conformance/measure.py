#!/usr/bin/env python3
"""Measures the embedded server beside a real kube-apiserver, and prints a table for BENCHMARKS.md.

    measure.py FOLDER PROGRAMS [--objects N]

FOLDER holds kube-apiserver and kube-controller-manager, as tests/kube-apiserver/build.sh makes them; PROGRAMS
holds `measure` and `windlass-apiserver`, optimized: cargo build --release -p windlass-conformance --bin measure
-p windlass-apiserver.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import record

STARTS = 5
GOALS = {
    "start": "< 50", "empty": "< 20", "post_ms": "< 0.3", "inside_post_ms": "< 0.1",
    "inside_writes_per_second": ">= 20000", "delivery_us": "<= 3", "objects_mb": "<= 250", "list_ms": ">= 5x faster",
}
ROWS = [
    ("start", "start to ready, ms (median of %d; the real one once)" % STARTS),
    ("empty", "resident when empty, MB"),
    ("post_ms", "POST of 1 KB over TLS loopback, p50, ms"),
    ("inside_post_ms", "POST of 1 KB in process, p50, ms"),
    ("writes_per_second", "writes of 1 KB over TLS, 8 connections, /s"),
    ("inside_writes_per_second", "writes of 1 KB in process, one core for client and server, /s"),
    ("delivery_us", "CPU for a delivery to one of 100 watches, µs"),
    ("list_ms", "list of 10,000 objects of 1 KB, JSON, ms"),
    ("objects_mb", "resident for all objects of 1 KB, MB"),
]


def resident(pid):
    """Returns the resident memory of a process in MB."""
    for line in open("/proc/%d/status" % pid):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmRSS")


def command(folder, program):
    """Returns the command of the embedded server."""
    (folder / "tokens.csv").write_text(record.TOKENS)
    flags = ["--listen=127.0.0.1:0", "--controllers=namespace,garbagecollector,clusterrole-aggregation"]
    return [program] + flags + ["--kubeconfig", folder / "own", "--token-auth-file", folder / "tokens.csv"]


def ours(programs, objects):
    """Measures the embedded server."""
    times, figures = [], {}
    for last in [False] * (STARTS - 1) + [True]:
        with tempfile.TemporaryDirectory(prefix="measure-") as name:
            folder = pathlib.Path(name)
            begin = time.monotonic()
            server = subprocess.Popen(
                command(folder, programs / "windlass-apiserver"), stdout=subprocess.PIPE, text=True
            )
            line = server.stdout.readline()
            times.append((time.monotonic() - begin) * 1000)
            try:
                if last:
                    port = line.split("127.0.0.1:")[1].split(",")[0]
                    kubeconfig = folder / "kubeconfig"
                    kubeconfig.write_text(record.KUBECONFIG.replace("PORT", port))
                    figures["empty"] = resident(server.pid)
                    figures.update(play(programs, kubeconfig, server.pid, objects))
            finally:
                server.terminate()
                server.wait()
    figures["start"] = sorted(times)[STARTS // 2]
    inside = json.loads(subprocess.check_output([programs / "measure"], text=True))
    for key in ["post_ms", "writes_per_second"]:
        figures["inside_" + key] = inside[key]
    return figures


def play(programs, kubeconfig, pid, objects):
    """Measures a running server."""
    words = ["--kubeconfig", kubeconfig, "--pid", str(pid), "--objects", str(objects)]
    return json.loads(subprocess.check_output([programs / "measure"] + words, text=True))


def server_of(parent):
    """Returns the process of the real server, a child of this process."""
    for child in open("/proc/%d/task/%d/children" % (parent, parent)).read().split():
        if open("/proc/%s/comm" % child).read().strip() == "kube-apiserver":
            return int(child)
    raise LookupError("no kube-apiserver runs")


def real(kube, programs, objects):
    """Measures the real server: `record.play` starts that server and calls this file again."""
    with tempfile.TemporaryDirectory(prefix="measure-") as name:
        out = pathlib.Path(name) / "figures"
        record.play(kube, pathlib.Path(__file__).resolve(), ["--real", str(programs), str(objects), str(out)])
        return json.loads(out.read_text())


def measure_real(words):
    """Measures the real server that the parent process has started."""
    import os

    kubeconfig, programs, objects, out = words[1], pathlib.Path(words[3]), int(words[4]), words[5]
    pid = server_of(os.getppid())
    began = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    uptime = float(open("/proc/uptime").read().split()[0])
    figures = {"start": (uptime - began) * 1000, "empty": resident(pid)}
    figures.update(play(programs, kubeconfig, pid, objects))
    pathlib.Path(out).write_text(json.dumps(figures))


def main():
    """Prints the table."""
    if "--real" in sys.argv:
        return measure_real(sys.argv[1:])
    kube, programs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    objects = int(sys.argv[sys.argv.index("--objects") + 1]) if "--objects" in sys.argv else 100_000
    left, right = ours(programs, objects), real(kube, programs, objects)
    print("Objects in the end: %d (ours), %d (real)\n" % (left["objects"], right["objects"]))
    print("| measure | goal | ours | kube-apiserver | real / ours |\n|---|---|--:|--:|--:|")
    for key, text in ROWS:
        row = [text, GOALS.get(key, ""), "%.3g" % left[key] if left[key] < 1000 else "%d" % left[key]]
        if right.get(key) is None:
            row += ["", ""]
        else:
            row += ["%.3g" % right[key] if right[key] < 1000 else "%d" % right[key], "%.2g" % (right[key] / left[key])]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
