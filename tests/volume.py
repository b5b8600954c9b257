#!/usr/bin/env python3
"""Lines of code, documents and comments: tests/volume.py [REVISION:]FOLDER ...

Counts the Rust files of each folder, of the work tree or of a revision, without tests: without files and folders
called `tests`, `test_support` or `…_tests`, and without items behind `#[cfg(test)]`. A line is a document if it
begins with `///` or `//!`, a comment if it begins with `//`, blank, or else code. Needs git and Python 3.9.
"""

import re, subprocess, sys


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout.decode()


def is_of_tests(path):
    names = path.removesuffix(".rs").split("/")
    return any(name in ("tests", "test_support") or name.endswith("_tests") for name in names)


def sources(revision, folder):
    """The texts of the files."""
    listed = ["ls-tree", "-r", "--name-only", revision, folder] if revision else ["ls-files", folder]
    for path in git(*listed).split("\n"):
        if path.endswith(".rs") and not is_of_tests(path):
            yield git("show", f"{revision}:{path}") if revision else open(path, encoding="utf-8").read()


def without_tests(lines):
    """The lines outside of items behind `#[cfg(test)]`, which end at a line that is not indented further."""
    lines = iter(lines)
    for line in lines:
        if not re.match(r"\s*#\[cfg\((all\()?test\b", line):
            yield line
            continue
        indent = len(line) - len(line.lstrip())
        for inner in lines:
            text = inner.strip()
            is_outside = text and len(inner) - len(inner.lstrip()) <= indent
            if is_outside and (text.startswith("}") or text.endswith((";", ","))):
                break


def main():
    for argument in sys.argv[1:] or ["framework", "macros", "apiserver/src", "apiserver/cel"]:
        revision, _, folder = argument.rpartition(":")
        files = lines = code = documents = comments = 0
        for text in sources(revision, folder):
            files += 1
            for line in without_tests(text.rstrip("\n").split("\n")):
                line = line.strip()
                lines += 1
                documents += line.startswith(("///", "//!"))
                comments += line.startswith("//") and not line.startswith(("///", "//!"))
                code += bool(line) and not line.startswith("//")
        share = 100 * documents / (code + documents + comments or 1)
        print(
            f"{argument}: {files} files, {lines} lines, {code} of code, documents {share:.1f} % of lines that are not "
            f"blank and {100 * documents / (lines or 1):.1f} % of all, {100 * comments / (code or 1):.1f} other comments "
            "per 100 lines of code"
        )


main()
