#!/usr/bin/env python3
"""Compares the embedded server with a real kube-apiserver on random sequences of requests.

    differential.py FOLDER [--sequences N] [--seed S] [differential's other options ...]

FOLDER holds kube-apiserver and kube-controller-manager, as tests/kube-apiserver/build.sh makes them.
Needs target/debug/differential; CARGO_TARGET_DIR names another folder than target.
"""

import os
import pathlib
import sys

sys.dont_write_bytecode = True

import record

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", record.HERE.parents[1] / "target"))

if __name__ == "__main__":
    sys.exit(record.play(pathlib.Path(sys.argv[1]), TARGET / "debug/differential", sys.argv[2:]))
