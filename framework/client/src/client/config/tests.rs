mod in_pod;
mod merging;
mod overrides;

use super::*;
use crate::client::transport::Pem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for a single test.
fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("windlass-config-{}-{n}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn write(path: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_owned()
}

fn env(kubeconfig: &[&Path]) -> Env {
    let list = std::env::join_paths(kubeconfig).unwrap();
    Env {
        kubeconfig: (!kubeconfig.is_empty()).then_some(list),
        home: None,
        service_host: None,
        service_port: None,
        pod_namespace: None,
        service_account: "/nonexistent".into(),
    }
}

fn message(result: Result<impl fmt::Debug, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

const BASE: &str = r#"
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: one
  cluster: {server: "https://one.example:6443/", certificate-authority: pki/ca.crt}
contexts:
- name: dev
  context: {cluster: one, user: me, namespace: shop}
users:
- name: me
  user: {token: first}
"#;

#[test]
fn a_context_gives_address_namespace_and_credentials() {
    let config = ClientConfig::from_yaml(BASE, None).unwrap();
    assert_eq!(config.server(), "https://one.example:6443/");
    assert_eq!(config.namespace(), "shop");
    assert!(matches!(&config.auth, AuthSource::Token(token) if token.expose() == "first"));
}

#[test]
fn of_several_files_the_first_that_names_something_decides_it() {
    let folder = folder();
    let first = write(
        &folder.join("a/config"),
        "contexts:\n- {name: dev, context: {cluster: one, user: me, namespace: first}}\n",
    );
    let second = write(&folder.join("b/config"), BASE);
    let config = env(&[&first, &second]).find().unwrap().unwrap();
    assert_eq!(config.namespace(), "first");
    assert_eq!(config.server(), "https://one.example:6443/");
    assert!(config.origin().contains("a/config, "), "{}", config.origin());
    // Relative paths are relative to the folder of the file that names them.
    let ca = config.tls.ca.unwrap();
    assert!(matches!(&ca, Pem::File(path) if *path == folder.join("b/pki/ca.crt")), "{ca:?}");
}

#[test]
fn a_missing_file_among_several_is_passed_over_but_not_when_all_are_missing() {
    let folder = folder();
    let there = write(&folder.join("config"), BASE);
    let missing = folder.join("missing");
    assert!(env(&[&missing, &there]).find().unwrap().is_some());
    let text = message(env(&[&missing]).find());
    assert!(text.contains("missing") && text.contains("does not exist"), "{text}");
}

#[test]
fn nothing_is_configured_without_files_and_outside_of_a_pod() {
    let mut env = env(&[]);
    assert!(env.find().unwrap().is_none());
    let home = folder();
    env.home = Some(home.clone());
    assert!(env.find().unwrap().is_none());
    write(
        &home.join(".kube/config"),
        "apiVersion: v1\nkind: Config\nclusters: null\ncontexts: null\nusers: null\n\
         current-context: \"\"\n",
    );
    assert!(env.find().unwrap().is_none());
    write(&home.join(".kube/config"), BASE);
    assert!(env.find().unwrap().is_some());
}

#[test]
fn a_pods_service_account_is_found_after_the_kubeconfig() {
    let account = folder();
    let mut env = env(&[]);
    env.service_host = Some("fd00::1".into());
    env.service_port = Some("443".into());
    env.service_account.clone_from(&account);
    let text = message(env.find());
    assert!(text.contains("automountServiceAccountToken"), "{text}");
    write(&account.join("token"), "canary");
    write(&account.join("namespace"), "prod\n");
    let config = env.find().unwrap().unwrap();
    assert_eq!(config.server(), "https://[fd00::1]:443/");
    assert_eq!(config.namespace(), "prod");
    env.pod_namespace = Some("other".into());
    assert_eq!(env.find().unwrap().unwrap().namespace(), "other");
    let kubeconfig = write(&account.join("config"), BASE);
    env.kubeconfig = Some(kubeconfig.into());
    assert_eq!(env.find().unwrap().unwrap().namespace(), "shop");
}

#[test]
fn errors_name_file_and_context_and_what_there_is() {
    let folder = folder();
    let path = write(&folder.join("config"), BASE);
    let text = message(ClientConfig::from_file(&path, Some("prod")));
    assert!(text.contains("\"prod\"") && text.contains("dev") && text.contains("config"), "{text}");
    let text = message(ClientConfig::from_yaml(&BASE.replace("current-context: dev", ""), None));
    assert!(text.contains("use-context") && text.contains("dev"), "{text}");
    let text = message(ClientConfig::from_yaml(&BASE.replace("user: me", "user: you"), None));
    assert!(text.contains("no user \"you\"") && text.contains("context \"dev\""), "{text}");
    let text = message(ClientConfig::from_yaml(&BASE.replace("cluster: one", "cluster: x"), None));
    assert!(text.contains("no cluster \"x\""), "{text}");
}

#[test]
fn secrets_show_neither_in_debug_nor_in_errors() {
    let inline = r#"
current-context: dev
clusters: [{name: one, cluster: {server: "https://one.example"}}]
contexts: [{name: dev, context: {cluster: one, user: me}}]
users:
- name: me
  user:
    token: canary-token
    password: canary-password
    client-certificate-data: Y2FuYXJ5LWNlcnQ=
    client-key-data: Y2FuYXJ5LWtleQ==
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: plugin
      args: [canary-argument]
      env: [{name: A, value: canary-env}]
"#;
    let parsed = Kubeconfig::parse(inline, "file", Path::new(".")).unwrap();
    let config = parsed.resolve(None).unwrap();
    let client = crate::client::Client::new(config.clone().with_ca("x"));
    for shown in [format!("{parsed:?}"), format!("{config:?}"), format!("{client:?}")] {
        assert!(!shown.contains("canary") && !shown.contains("Y2FuYXJ5"), "{shown}");
    }
    let broken = [
        "users: [{name: me, user: {token: [canary]}}]",
        "users: canary",
        "users:\n- name: me\n  user:\n    token: \"canary\n",
        "users: [{name: me, user: {token: canary, token: canary}}]",
        "clusters: [{name: one, cluster: {insecure-skip-tls-verify: canary}}]",
    ];
    for text in broken {
        let error = ClientConfig::from_yaml(text, None).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
    let bad = inline.replace("Y2FuYXJ5LWtleQ==", "canary!");
    let text = message(ClientConfig::from_yaml(&bad, None));
    assert!(text.contains("client-key-data") && !text.contains("canary"), "{text}");
}

#[test]
fn a_plugins_path_is_relative_to_its_file_and_a_bare_name_is_not() {
    let text = |command: &str| {
        format!(
            "current-context: dev\n\
             clusters: [{{name: one, cluster: {{server: 'https://one'}}}}]\n\
             contexts: [{{name: dev, context: {{cluster: one, user: me}}}}]\n\
             users: [{{name: me, user: {{exec: {{apiVersion: {VERSION}, command: {command}, \
             provideClusterInfo: true}}}}}}]\n"
        )
    };
    const VERSION: &str = "client.authentication.k8s.io/v1beta1";
    let command = |text: &str| {
        let parsed = Kubeconfig::parse(text, "file", Path::new("/etc/kube")).unwrap();
        match parsed.resolve(None).unwrap().auth_source() {
            AuthSource::Exec(plugin) => {
                let cluster = plugin.cluster.as_ref().unwrap();
                assert_eq!(cluster.spec["server"], "https://one");
                plugin.command.clone()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(command(&text("bin/plugin")), Path::new("/etc/kube/bin/plugin"));
    assert_eq!(command(&text("plugin")), Path::new("plugin"));
    assert_eq!(command(&text("/bin/plugin")), Path::new("/bin/plugin"));
    let old = text("plugin").replace(VERSION, "client.authentication.k8s.io/v1alpha1");
    assert!(message(ClientConfig::from_yaml(&old, None)).contains("apiVersion"));
}

#[test]
fn credentials_go_over_plain_http_to_this_machine_only() {
    let at = |server: &str| {
        ClientConfig::from_yaml(&BASE.replace("https://one.example:6443/", server), None)
    };
    assert!(message(at("http://one.example")).contains("plain HTTP"));
    assert!(at("http://127.0.0.1:8080").is_ok());
    assert!(at("http://[::1]:8080").is_ok());
    assert!(at("http://localhost:8080").is_ok());
}

#[test]
fn what_cannot_be_obeyed_is_refused() {
    let with = |extra: &str| BASE.replace("certificate-authority: pki/ca.crt", extra);
    let refused = |extra: &str| message(ClientConfig::from_yaml(&with(extra), None));
    let text = refused("proxy-url: 'ftp://user:canary@proxy:3128'");
    assert!(text.contains("proxy-url") && text.contains("context \"dev\""), "{text}");
    assert!(text.contains("socks5://host:port") && !text.contains("canary"), "{text}");
    assert!(
        refused("certificate-authority: x, insecure-skip-tls-verify: true").contains("remove one")
    );
    let legacy = BASE.replace("{token: first}", "{auth-provider: {name: gcp}}");
    assert!(message(ClientConfig::from_yaml(&legacy, None)).contains("exec plugin"));
    let half = BASE.replace("{token: first}", "{client-key: x}");
    assert!(message(ClientConfig::from_yaml(&half, None)).contains("without the other"));
    assert!(message(ClientConfig::new("ftp://x")).contains("https://host:port"));
    assert!(message(ClientConfig::new("https://user:canary@x")).contains("https://host:port"));
}
