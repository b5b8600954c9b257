//! The service account of a Pod, whose files the kubelet rotates.

use std::time::Duration;

use super::*;
use crate::client::auth::Credentials;
use crate::client::auth::{ExecPlugin, ExecPolicy};
use windlass_core::clock::Clock;

#[tokio::test(start_paused = true)]
async fn a_pods_token_and_ca_are_read_from_their_files_again_and_again() {
    let account = folder();
    let token = write(&account.join("token"), "one");
    let mut env = env(&[]);
    env.service_host = Some("10.0.0.1".into());
    env.service_port = Some("443".into());
    env.service_account.clone_from(&account);
    let config = env.find().unwrap().unwrap();
    assert_eq!(config.server(), "https://10.0.0.1:443/");
    let ca = config.tls.ca.clone();
    assert!(matches!(&ca, Some(Pem::File(path)) if *path == account.join("ca.crt")), "{ca:?}");

    let credentials = Credentials::new(config.auth_source(), Clock::system());
    for (text, seconds, expected) in
        [("one", 0, "Bearer one"), ("two", 59, "Bearer one"), ("two", 2, "Bearer two")]
    {
        write(&token, text);
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let header = credentials.header().await.unwrap().unwrap();
        assert_eq!(header, expected);
        assert!(header.is_sensitive());
    }
}

/// An image or a volume may contain a foreign `~/.kube/config`, whose plugin would run.
#[test]
fn a_pod_without_a_token_never_falls_back_to_the_home_folder() {
    let home = folder();
    write(&home.join(".kube/config"), BASE);
    for port in [Some("443".to_owned()), None] {
        let mut env = env(&[]);
        env.home = Some(home.clone());
        env.service_host = Some("10.0.0.1".into());
        env.service_port = port;
        let text = message(env.find());
        assert!(text.contains("this is a Pod"), "{text}");
        assert!(text.contains("--kubeconfig"), "{text}");
    }
}

/// A user whose plugin leaves `mark` when run.
fn with_plugin(mark: &Path) -> String {
    let exec = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: \
         Never, args: ['-c', 'touch {}; exit 1']}}}}",
        mark.display()
    );
    BASE.replace("{token: first}", &exec)
}

fn in_a_pod() -> Env {
    let mut env = env(&[]);
    env.service_host = Some("10.0.0.1".into());
    env.service_port = Some("443".into());
    env
}

/// Runs the plugin, if the plugin may run.
async fn ask(config: &ClientConfig, env: &Env) -> String {
    let credentials = Credentials::new(config.auth_source_in(env), Clock::system());
    credentials.header().await.unwrap_err().to_string()
}

/// A kubeconfig in a Pod may be foreign, so the plugin needs the program's permission.
#[tokio::test]
async fn a_plugin_of_a_kubeconfig_runs_in_a_pod_only_if_the_program_allows_it() {
    let mark = folder().join("was-run");
    let config = ClientConfig::from_yaml(&with_plugin(&mark), None).unwrap();
    let refused = ask(&config, &in_a_pod()).await;
    assert!(refused.contains("may not be run") && refused.contains("context \"dev\""), "{refused}");
    assert!(refused.contains("with_exec_policy"), "{refused}");
    assert!(!mark.exists());
    // KUBERNETES_SERVICE_HOST alone indicates a Pod, too.
    let mut half = in_a_pod();
    half.service_port = None;
    assert_eq!(ask(&config, &half).await, refused);
    let listed = |policy| config.clone().with_exec_policy(policy);
    ask(&listed(ExecPolicy::allow_list(["/bin/cat"])), &in_a_pod()).await;
    assert!(!mark.exists());
    ask(&listed(ExecPolicy::allow_list(["/bin/sh"])), &in_a_pod()).await;
    assert!(mark.exists());
    std::fs::remove_file(&mark).unwrap();
    ask(&listed(ExecPolicy::AllowAll), &in_a_pod()).await;
    assert!(mark.exists());
    std::fs::remove_file(&mark).unwrap();
    // Elsewhere plugins run, unless the program says otherwise.
    ask(&config, &env(&[])).await;
    assert!(mark.exists());
    std::fs::remove_file(&mark).unwrap();
    ask(&listed(ExecPolicy::Deny), &env(&[])).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_plugin_that_the_program_itself_names_runs_in_a_pod_unless_its_policy_denies_it() {
    let mark = folder().join("was-run");
    let plugin = ExecPlugin::new("/bin/sh").arg("-c").arg(format!("touch {}", mark.display()));
    let config = ClientConfig::new("https://one.example").unwrap().with_exec(plugin);
    ask(&config, &in_a_pod()).await;
    assert!(mark.exists());
    std::fs::remove_file(&mark).unwrap();
    ask(&config.with_exec_policy(ExecPolicy::Deny), &in_a_pod()).await;
    assert!(!mark.exists());
}

/// The Pod's own account runs no program for a token, regardless of the existing files.
#[tokio::test]
async fn in_cluster_configuration_never_runs_a_plugin() {
    let (home, account) = (folder(), folder());
    let mark = home.join("was-run");
    write(&home.join(".kube/config"), &with_plugin(&mark));
    let mut env = in_a_pod();
    env.home = Some(home);
    env.service_account.clone_from(&account);
    for token in [None, Some("t")] {
        if let Some(token) = token {
            write(&account.join("token"), token);
        }
        let found = env.find();
        assert_eq!(found.is_ok(), token.is_some());
        if let Ok(Some(config)) = found {
            let credentials = Credentials::new(config.auth_source_in(&env), Clock::system());
            assert_eq!(credentials.header().await.unwrap().unwrap(), "Bearer t");
        }
        assert!(!mark.exists());
    }
}
