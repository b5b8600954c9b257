#!/usr/bin/env python3
"""Records the answers of a real kube-apiserver to the corpus.

    record.py FOLDER [conformance's options ...]

FOLDER holds kube-apiserver and kube-controller-manager, as tests/kube-apiserver/build.sh makes them.
Plays the corpus twice, each time on a server with an empty store, and marks unrepeated parts as
unstable. Needs target/debug/conformance.
"""

import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
RUNNER = HERE.parents[1] / "target/debug/conformance"
TOKENS = """admin-token,admin,1,"system:masters"
reader-token,reader,reader-uid,"readers,testers"
plain-token,plain,,
"""
CONTROLLERS = "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller"
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:PORT", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: admin-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def ready(port, process):
    """Waits until the server answers /readyz with 200."""
    context = ssl._create_unverified_context()
    request = urllib.request.Request("https://127.0.0.1:%d/readyz" % port)
    request.add_header("Authorization", "Bearer admin-token")
    for _ in range(600):
        assert process.poll() is None, "the server has ended"
        try:
            urllib.request.urlopen(request, context=context).read()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError("the server is not ready")


def play(programs, command, words):
    """Runs a program with the kubeconfig of a new server."""
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        folder = pathlib.Path(name)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        key, public = folder / "accounts.key", folder / "accounts.pub"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=-3)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, stderr=-3)
        (folder / "tokens.csv").write_text(TOKENS)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.replace("PORT", str(port)))
        flags = {
            "etcd-data-dir": folder / "etcd",
            "cert-dir": folder / "certificates",
            "token-auth-file": folder / "tokens.csv",
            "service-account-key-file": public,
            "service-account-signing-key-file": key,
            "service-account-issuer": "https://corpus.example",
            "service-cluster-ip-range": "10.0.0.0/24",
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "authorization-mode": "RBAC",
            "allow-privileged": "true",
            # No controller makes the ServiceAccounts without which this plugin refuses every Pod.
            "disable-admission-plugins": "ServiceAccount",
            "endpoint-reconciler-type": "none",
            "shutdown-delay-duration": 0,
            "shutdown-watch-termination-grace-period": "1s",
        }
        flags = ["--%s=%s" % flag for flag in flags.items()]
        log = open(folder / "log", "wb")
        server = subprocess.Popen([programs / "kube-apiserver"] + flags, stdout=log, stderr=log)
        manager = None
        try:
            ready(port, server)
            flags = ["--kubeconfig=%s" % kubeconfig, "--controllers=" + CONTROLLERS]
            flags += ["--leader-elect=false", "--secure-port=0"]
            manager = subprocess.Popen(
                [programs / "kube-controller-manager"] + flags, stdout=log, stderr=log
            )
            return subprocess.run([command, "--kubeconfig", kubeconfig] + words).returncode
        finally:
            for process in [manager, server]:
                if process is not None:
                    process.terminate()
                    process.wait()
            log.close()


def main():
    """Records, and compares with a second recording."""
    programs, options = pathlib.Path(sys.argv[1]), sys.argv[2:]
    modes = ["play"] if "--check" in options else ["record", "again"]
    options = [option for option in options if option != "--check"]
    for mode in modes:
        code = play(programs, RUNNER, options + [mode])
        if code:
            sys.exit(code)


if __name__ == "__main__":
    main()
