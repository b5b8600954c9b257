"""The copy of the workspace that `run`, `units` and `examples` change."""

import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
COPY = os.path.join(TARGET, "mutants")
# A separate folder: in the workspace's, cargo would take the copy's crates for the workspace's, as they have the
# same names.
BUILT = os.path.join(TARGET, "mutants-built")


def copy():
    """The files that git knows or would add; unchanged files keep their times, so little is built. Rust files of an
    earlier copy that are gone from the workspace are removed: a file moved to `mod.rs` would be there twice."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = set(filter(None, listed.split("\0")))
    for folder, _, files in os.walk(COPY):
        for file in files:
            path = os.path.join(folder, file)
            if file.endswith(".rs") and os.path.relpath(path, COPY) not in names:
                os.remove(path)
    for name in names:
        source, to = os.path.join(ROOT, name), os.path.join(COPY, name)
        if not os.path.isfile(source):
            continue
        same = os.path.isfile(to) and open(to, "rb").read() == open(source, "rb").read()
        if not same:
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(source, to)
