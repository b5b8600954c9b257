#!/usr/bin/env python3
"""Changed crates of the workspace, for .ci/quick: changed.py [CRATE ...] <CHANGED-FILES

Prints a line per crate: its name, the flags of its unit tests joined by commas (`-` for none), and the
changed modules joined by commas (nothing for all of them). With arguments, the crates of these names or
folders, with all modules.
"""

import json, os, subprocess, sys


def crates():
    """Workspace crates as (folder, name, unit test flags)."""
    command = ["cargo", "metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    root = metadata["workspace_root"]
    for package in metadata["packages"]:
        folder = os.path.relpath(os.path.dirname(package["manifest_path"]), root)
        kinds = {kind for one in package["targets"] if one["test"] for kind in one["kind"]}
        flags = ["--lib"] * bool(kinds & {"lib", "proc-macro"}) + ["--bins"] * ("bin" in kinds)
        yield folder, package["name"], flags


def holder(path):
    """The folder of the package that a file belongs to; packages outside of the workspace are none of its crates."""
    folder = os.path.dirname(path)
    while folder and not os.path.isfile(os.path.join(folder, "Cargo.toml")):
        folder = os.path.dirname(folder)
    return folder


def module(path):
    """The top-level module of a file below `src`, or None for the crate as a whole."""
    parts = path.split("/")
    if parts[0] != "src" or len(parts) < 2:
        return None
    name = parts[1].removesuffix(".rs")
    return None if name in ("lib", "main", "bin") or not parts[-1].endswith(".rs") else name


def main():
    known = list(crates())
    if sys.argv[1:]:
        for wanted in sys.argv[1:]:
            found = [crate for crate in known if wanted.rstrip("/") in crate[:2]]
            if not found:
                sys.exit(f".ci/quick: no crate of the workspace has the name or folder {wanted!r}")
            print(found[0][1], ",".join(found[0][2]) or "-")
        return
    changed = {}
    for path in filter(None, sys.stdin.read().split("\n")):
        folder = holder(path)
        for name, flags in [crate[1:] for crate in known if crate[0] == folder]:
            changed.setdefault((name, ",".join(flags) or "-"), set()).add(module(path[len(folder) + 1:]))
    for (name, flags), modules in sorted(changed.items()):
        print(name, flags, "" if None in modules else ",".join(f"{one}::" for one in sorted(modules)))


if __name__ == "__main__":
    main()
