#!/usr/bin/env python3
"""Records the sessions of apiserver/tests/kubectl on a real kube-apiserver.

    kubectl.py FOLDER

FOLDER holds the programs that tests/kube-apiserver/build.sh makes. Compare the changed sessions by
`git diff`, and run `cargo test --test kubectl` afterwards.
"""

import os
import pathlib
import sys

sys.dont_write_bytecode = True

import record

TEST = "commands_print_what_they_print_on_a_kube_apiserver"

if __name__ == "__main__":
    if sys.argv[1] == "--kubeconfig":
        os.environ["WINDLASS_KUBECTL_RECORD"] = sys.argv[2]
        command = ["cargo", "test", "--locked", "--quiet", "--test", "kubectl", "--", TEST]
        os.chdir(record.HERE.parents[1])
        os.execvp(command[0], command)
    folder = pathlib.Path(sys.argv[1]).resolve()
    os.environ["WINDLASS_KUBE_BIN"] = str(folder)
    sys.exit(record.play(folder, pathlib.Path(__file__).resolve(), []))
