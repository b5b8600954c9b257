//! The administrator's kubeconfig, with everything inline.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Authority;

/// Returns YAML with the server's address, its authority, a client certificate and a token.
///
/// A second context, `windlass-token`, has the token only: some clients read no private key of this form.
pub(super) fn write(url: &str, authority: &Authority, token: &str) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: windlass
  cluster:
    server: {url}
    certificate-authority-data: {ca}
contexts:
- name: windlass
  context:
    cluster: windlass
    user: kubernetes-admin
    namespace: default
- name: windlass-token
  context:
    cluster: windlass
    user: kubernetes-admin-token
    namespace: default
current-context: windlass
preferences: {{}}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
    token: {token}
- name: kubernetes-admin-token
  user:
    token: {token}
",
        ca = encode(&authority.certificate),
        certificate = encode(&authority.admin.certificate),
        key = encode(&authority.admin.key),
    )
}
