//! Error texts for a wrong configuration: they name the file, the context, and the remedy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::client::tests::connecting::tls::Pki;
use crate::client::tests::*;
use windlass_core::error::Error;

fn folder() -> PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-wrong-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A kubeconfig file; `cluster` and `user` are inner YAML.
fn write(path: &Path, port: u16, cluster: &str, user: &str) {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: dev\n\
         clusters:\n- name: one\n  cluster: {{server: 'https://127.0.0.1:{port}'{cluster}}}\n\
         contexts:\n- name: dev\n  context: {{cluster: one, user: me}}\n\
         users:\n- name: me\n  user: {{{user}}}\n"
    );
    std::fs::write(path, text).unwrap();
}

async fn attempt(path: &Path, context: Option<&str>) -> Error {
    let client = match ClientConfig::from_file(path, context).and_then(Client::new) {
        Ok(client) => client,
        Err(error) => return error,
    };
    let mut request = get();
    request.timeout = Some(Duration::from_millis(700));
    client.send(request).await.unwrap_err()
}

/// Returns the texts of the error and the causes, as a command line prints them.
fn read(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = format!("{text}\n  because: {source}");
        cause = source.source();
    }
    text
}

#[tokio::test]
async fn each_wrong_kubeconfig_names_its_file_its_context_and_what_to_do() {
    let folder = folder();
    let pki = Pki::new();
    let ca = folder.join("ca.crt");
    std::fs::write(&ca, &pki.ca).unwrap();
    let ca = format!(", certificate-authority: '{}'", ca.display());
    let bad = folder.join("bad.pem");
    std::fs::write(&bad, "no PEM at all").unwrap();
    let bad = bad.display();
    let plugin =
        |rest: &str| format!("exec: {{apiVersion: client.authentication.k8s.io/v1{rest}}}");
    let missing = ", command: windlass-no-such, interactiveMode: Never, installHint: run this";
    let (token, none) = ("token: t", String::new());
    // (name, cluster, user, parts of the text)
    let table: Vec<(&str, String, String, Vec<&str>)> = vec![
        (
            "wrong-ca",
            format!(", certificate-authority: '{bad}'"),
            token.into(),
            vec![
                "certificate-authority ",
                "bad.pem",
                "must begin with -----BEGIN CERTIFICATE-----",
            ],
        ),
        (
            "wrong-ca-data",
            ", certificate-authority-data: bm8=".into(),
            token.into(),
            vec!["certificate-authority-data", "must begin with -----BEGIN CERTIFICATE-----"],
        ),
        (
            "no-base64",
            ", certificate-authority-data: '%%%'".into(),
            token.into(),
            vec!["certificate-authority-data", "base64 -w0 FILE"],
        ),
        (
            "missing-ca",
            ", certificate-authority: gone.crt".into(),
            token.into(),
            vec!["cannot read", "gone.crt", "correct the path"],
        ),
        (
            "wrong-key",
            ca.clone(),
            format!("client-certificate-data: {}, client-key: '{bad}'", base64(&pki.ca)),
            vec!["client-key ", "bad.pem", "-----BEGIN PRIVATE KEY-----"],
        ),
        (
            "half",
            ca.clone(),
            "client-key: x".into(),
            vec!["user \"me\"", "without the other", "add it"],
        ),
        (
            "both",
            format!("{ca}, insecure-skip-tls-verify: true"),
            token.into(),
            vec!["insecure-skip-tls-verify", "remove one"],
        ),
        (
            "missing-plugin",
            ca.clone(),
            plugin(missing),
            vec!["windlass-no-such", "install it", "run this"],
        ),
        (
            "plugin-version",
            ca.clone(),
            plugin(missing).replace("/v1", "/v1alpha1"),
            vec!["user \"me\"", "client.authentication.k8s.io/v1 (or v1beta1)"],
        ),
        (
            "plugin-mode",
            ca.clone(),
            plugin(", command: x"),
            vec!["no interactiveMode", "write Never, IfAvailable or Always"],
        ),
        (
            "plugin-terminal",
            ca.clone(),
            plugin(", command: x, interactiveMode: Always"),
            vec!["not a terminal", "log in with another method"],
        ),
        (
            "auth-provider",
            ca.clone(),
            "auth-provider: {name: gcp}".into(),
            vec!["gcp", "use an exec plugin"],
        ),
        (
            "two-credentials",
            ca.clone(),
            "token: t, username: u".into(),
            vec!["token and also a username", "remove one"],
        ),
        (
            "groups-alone",
            ca.clone(),
            "token: t, as-groups: [a]".into(),
            vec!["without a user", "as `as`"],
        ),
        (
            "proxy",
            format!("{ca}, proxy-url: 'proxy:3128'"),
            token.into(),
            vec!["proxy-url", "cluster \"one\"", "http://host:port"],
        ),
        (
            "server-name",
            format!("{ca}, tls-server-name: 'a b'"),
            token.into(),
            vec!["`a b`", "tls-server-name"],
        ),
        ("empty-server", none, token.into(), vec!["names no server", "`server`"]),
    ];
    for (name, cluster, user, parts) in table {
        let path = folder.join(name);
        write(&path, 1, &cluster, &user);
        if name == "empty-server" {
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text.replace("'https://127.0.0.1:1'", "''")).unwrap();
        }
        let error = attempt(&path, None).await;
        let text = read(&error);
        assert_eq!(error.kind(), windlass_core::ErrorKind::Config, "{name}: {text}");
        assert!(text.contains(&path.display().to_string()), "{name}: {text}");
        assert!(text.contains("context \"dev\""), "{name}: {text}");
        for part in parts {
            assert!(text.contains(part), "{name}: `{part}` is missing: {text}");
        }
    }
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[tokio::test]
async fn a_file_that_is_no_kubeconfig_and_a_context_that_is_not_there_are_told() {
    let path = folder().join("whole");
    // (content, context, parts)
    let rows: [(&str, Option<&str>, &[&str]); 8] = [
        ("users: [a: b: c", None, &["is not a kubeconfig", "near line 1", "kubectl config view"]),
        ("just text", None, &["is not a kubeconfig"]),
        ("kind: Pod\nspec: {}\n", None, &["is not a kubeconfig", "its kind is `Pod`"]),
        ("", None, &["has no contexts", "kubectl config set-context"]),
        (
            "contexts: [{name: dev, context: {cluster: c}}]",
            Some("prod"),
            &["no context \"prod\"", "it has: dev"],
        ),
        (
            "contexts: [{name: dev, context: {cluster: c}}]",
            Some("dev"),
            &["context \"dev\"", "no cluster \"c\"", "correct"],
        ),
        (
            "contexts: [{name: dev}, {name: dev}]",
            None,
            &["two entries named \"dev\" under `contexts`", "rename or remove"],
        ),
        (
            "current-context: dev\ncontexts: [{name: dev, context: {cluster: c}}]\nclusters: \
             [{name: c, cluster: {server: 'https://user:canary@api.example'}}]",
            None,
            &["context \"dev\"", "holds a user or a password", "https://host:port", "`exec`"],
        ),
    ];
    for (content, context, parts) in rows {
        std::fs::write(&path, content).unwrap();
        let text = read(&attempt(&path, context).await);
        assert!(text.contains(&path.display().to_string()), "{text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is missing: {text}");
        }
        assert!(!text.contains("canary"), "{text}");
    }
    let text = read(&attempt(Path::new("/nonexistent/config"), None).await);
    assert!(text.contains("/nonexistent/config") && text.contains("correct the path"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_401_says_which_credentials_were_refused_and_what_to_do_about_them() {
    let token = folder().join("expired");
    std::fs::write(&token, "t").unwrap();
    let at = || ClientConfig::new("http://localhost").unwrap();
    let rows = [
        (at().with_token("canary"), "get a new one".to_owned()),
        (at().with_token_file(&token), format!("the token of {} was", token.display())),
        (at().with_basic_auth("jane", "canary"), "the password of the user `jane`".to_owned()),
        (at(), "there are no credentials".to_owned()),
    ];
    for (config, part) in rows {
        let server = Server::with([Reply::Answer(401, "{}")]);
        let builder = Client::builder().config(config).connector(Arc::new(Wire(server)));
        let text = read(&builder.build().unwrap().send(get()).await.unwrap_err());
        assert!(text.contains(&part), "`{part}` is missing: {text}");
        assert!(!text.contains("canary"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_would_be_another_path_is_refused_before_anything_is_sent() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server);
    let api = client.namespace::<ConfigMap>("shop");
    for name in ["a/b", "../secrets/x", "50%", "a%2fb", "", ".", ".."] {
        let error = api.get(name).await.unwrap_err();
        assert_eq!(error.kind(), windlass_core::ErrorKind::Usage, "{name}: {error}");
        assert!(error.to_string().contains("name"), "{name}: {error}");
    }
    assert_eq!(server.count(), 0);
}
