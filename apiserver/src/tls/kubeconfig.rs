//! The kubeconfig of the administrator and of further users, with everything inline.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Authority;

/// Returns YAML with the server's address, the authority, a client certificate and a token.
///
/// A second context, `windlass-token`, has the token only: some clients read no private key of this
/// form. Each further user, a name with a token, has the context `windlass-NAME`.
pub(super) fn write(
    url: &str,
    authority: &Authority,
    token: &str,
    more: &[(String, String)],
) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    // Texts of JSON are texts of YAML: names hold any character.
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    let contexts = more.iter().map(|(name, _)| {
        let (context, user) = (quoted(format!("windlass-{name}")), quoted(name.clone()));
        format!("- name: {context}\n  context:\n    cluster: windlass\n    user: {user}\n    namespace: default\n")
    });
    let contexts: String = contexts.collect();
    let users = more.iter().map(|(name, token)| {
        format!("- name: {}\n  user:\n    token: {token}\n", quoted(name.clone()))
    });
    let users: String = users.collect();
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
{contexts}current-context: windlass
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
{users}",
        ca = encode(&authority.certificate),
        certificate = encode(&authority.admin.certificate),
        key = encode(&authority.admin.key),
    )
}
