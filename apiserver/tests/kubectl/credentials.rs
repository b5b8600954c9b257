//! kubectl with tokens of accounts, certificate requests and containers for debugging.

use super::Server;

pub(super) fn a_created_token_logs_in_as_the_account_until_it_is_deleted(server: &Server) {
    server.ok(&["create", "serviceaccount", "bot"]);
    let token = server.ok(&["create", "token", "bot", "--duration=20m"]);
    let token = format!("--token={}", token.trim());
    let address = format!("--server={}", server.address);
    let whoami = || {
        let arguments = [
            address.as_str(),
            token.as_str(),
            "--insecure-skip-tls-verify",
            "--kubeconfig=/dev/null",
            "auth",
            "whoami",
        ];
        server.command(&arguments).env_remove("KUBECONFIG").output().unwrap()
    };
    let output = whoami();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("system:serviceaccount:default:bot"), "{output:?}");
    assert!(text.contains("authentication.kubernetes.io/credential-id"), "{text}");
    let error = server.fails(&["create", "token", "bot", "--duration=5m"], "");
    assert!(error.contains("may not specify a duration less than 10 minutes"), "{error}");
    let error = server.fails(&["create", "token", "absent"], "");
    assert!(error.contains("serviceaccounts \"absent\" not found"), "{error}");
    server.ok(&["delete", "serviceaccount", "bot"]);
    let output = whoami();
    assert!(!output.status.success(), "{output:?}");
}

pub(super) fn certificates_are_approved_and_denied(server: &Server) {
    for name in ["a", "b"] {
        let request = format!(
            "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{ name: {name} }}\nspec: {{ request: {REQUEST}, signerName: example.dev/signer, usages: [client auth] }}\n"
        );
        server.ok_with(&["create", "-f", "-"], &request);
    }
    let approved = server.ok(&["certificate", "approve", "a"]);
    assert_eq!(approved, "certificatesigningrequest.certificates.k8s.io/a approved\n");
    server.ok(&["certificate", "deny", "b"]);
    let table = server.ok(&["get", "csr"]);
    for (name, state) in [("a ", "Approved"), ("b ", "Denied")] {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(state) && line.contains("example.dev/signer"), "{table}");
    }
    assert!(server.ok(&["describe", "csr", "a"]).contains("Approved"));
}

pub(super) fn debug_adds_a_container_to_a_pod(server: &Server) {
    server.ok(&["run", "p", "--image=nginx"]);
    let arguments =
        ["debug", "p", "--image=busybox", "-c", "look", "--target=p", "--attach=false", "--", "sh"];
    server.ok(&arguments);
    let path = "jsonpath={.spec.ephemeralContainers[*].name} {.spec.ephemeralContainers[0].image}";
    assert_eq!(server.ok(&["get", "pod", "p", "-o", path]), "look busybox");
    let error = server.fails(&arguments, "");
    assert!(error.contains("may not be changed"), "{error}");
}

pub(super) fn logs_and_exec_fail_as_without_a_kubelet(server: &Server) {
    server.ok(&["run", "p", "--image=nginx"]);
    assert_eq!(server.ok(&["logs", "p"]), "");
    let error = server.fails(&["logs", "p", "-c", "other"], "");
    assert!(error.contains("container other is not valid for pod p"), "{error}");
    let error = server.fails(&["exec", "p", "--", "true"], "");
    assert!(error.contains("does not have a host assigned"), "{error}");
}

/// A certificate request in PEM and base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQ1dJaG84bFp4cE13TS9MdFlia29kaHQ1VjNwcjY4Z1dLcWZMWXJUVCtMamM4aUpvZkZsQmNrVldwREZIQjVjCkpnUUFSUnc0RVZZZUl5ZGVyTHMxRnZDZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUF4eVZqVWFBblhuSHoKNmQ2WllSdmdWdVArS09oamEzTHhpYm5vSG5pTWdvZ0NJRERUZlNqTzhJVlBtdVRpTERLUlhzNGhLbTVmdlJtWQpML05INGd6VFdERnEKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
