"""Builds the programs, runs jobs, keeps an eye on the machine."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target"))
BIN = TARGET / "release"
# A round begins when other programs use less than this share of a core, and a job counts if they did so
# meanwhile. The load average would include our own last job for a minute or two.
FOREIGN = 0.15
PATIENCE = 400


def build(say):
    cargo = os.environ.get("CARGO", "cargo").split()
    say("building the Rust drivers")
    subprocess.run(
        [*cargo, "build", "--release", "--locked", "--quiet", "--manifest-path",
         str(HERE / "Cargo.toml"), "--workspace"],
        check=True, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    say("building the Go driver")
    subprocess.run(["go", "build", "-o", str(BIN / "peers-go"), "."], check=True, cwd=HERE / "go")


class Load:
    """The load generator; ends with the `with` block."""

    def __init__(self, kind, n, protobuf=None):
        words = [str(BIN / "load"), "--kind", kind, "--n", str(n)]
        if protobuf:
            words += ["--protobuf", str(protobuf)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        line = self.process.stdout.readline().split()
        if len(line) != 2:
            self.process.kill()
            raise RuntimeError(f"the load generator did not start: {' '.join(words)}")
        self.api, self.control = line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def encoded(n):
    """The Pods of a load generator in protobuf, made once per size and template."""
    template = (HERE / "load/src/pod.json").read_bytes()
    file = TARGET / f"pods-{n}-{len(template)}.pb"
    if not file.exists():
        part = file.with_suffix(".part")
        with Load("pod", n) as load:
            subprocess.run([str(BIN / "peers-go"), "encode", "--server", load.api, "--out",
                            str(part)], check=True)
        part.rename(file)
    return file


def busy():
    """Seconds of CPU that the machine has used since the start."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, _, _, steal = (int(word) for word in words[:8])
    # Interrupts are left out: those of the loopback are our own.
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")


def used():
    """Seconds of CPU of this program's children that have ended."""
    children, own = (resource.getrusage(group) for group in
                     (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    return children.ru_utime + children.ru_stime + own.ru_utime + own.ru_stime


def run(job):
    """Runs a job; the lines, or the reason why there are none, and the CPU time of others meanwhile."""
    is_protobuf = job.column in ("go-pb", "go-stripped") and job.kind == "pod"
    protobuf = encoded(job.n) if is_protobuf else None
    began, before, own = time.monotonic(), busy(), used()
    with Load(job.kind, job.n, protobuf) as load:
        words = [str(BIN / job.driver), "--server", load.api, "--control", load.control,
                 "--kind", job.kind, "--n", str(job.n), "--mode", job.mode, "--work", job.work,
                 "--phases", job.phases]
        if job.workers:
            words += ["--workers", str(job.workers)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE,
                                  env={**os.environ, "RUST_BACKTRACE": "0"})
            error = None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]
            output = done.stdout
        except subprocess.TimeoutExpired as late:
            error, output = f"not done after {PATIENCE} s", (late.stdout or b"").decode()
    wall = time.monotonic() - began
    foreign = max(0.0, busy() - before - (used() - own)) / wall
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    end = next((line for line in lines if line["phase"] == "end"), None)
    has_cache = job.column != "drain"
    if error is None and has_cache and not (end and end["same"]):
        error = "its cache differs from the server's state"
    return {"job": job.name, "n": job.n, "lines": lines, "error": error, "foreign": foreign,
            "seconds": wall, "load": os.getloadavg()[0]}


def wait_for_quiet(say, patience=600):
    """Waits until others use next to nothing; the number of cores in use, or nothing if others stay busy."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        before, own, began = busy(), used(), time.monotonic()
        time.sleep(3)
        others = max(0.0, busy() - before - (used() - own)) / (time.monotonic() - began)
        if others <= FOREIGN:
            return others
        say(f"waiting for the machine to be quiet (others use {others:.2f} cores)")
    return None


class Bar:
    """A progress bar on the error output."""

    def __init__(self, total):
        self.total, self.done, self.began = total, 0, time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def __call__(self, text):
        filled = 24 * self.done // max(self.total, 1)
        elapsed = time.monotonic() - self.began
        left = elapsed / self.done * (self.total - self.done) if self.done else 0
        line = (f"[{'#' * filled}{'.' * (24 - filled)}] {self.done}/{self.total} "
                f"{elapsed:.0f} s, {left:.0f} s left  {text}")
        if self.is_terminal:
            print(f"\r\033[K{line[:118]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self):
        if self.is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
