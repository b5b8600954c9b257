//! Overrides of the program, and the places that are searched for a configuration.

use super::*;
use crate::client::auth::{ExecPlugin, InteractiveMode};

fn headers(config: &ClientConfig, name: &str) -> Vec<String> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    config.headers.get_all(name).iter().map(text).collect()
}

#[test]
fn impersonation_is_sent_as_client_go_sends_it() {
    let who = Impersonation::user("jane")
        .uid("42")
        .groups(["developers".to_owned(), "admins".to_owned()])
        .extra("Example.com/Reason 100%", ["because".to_owned(), "so it is".to_owned()]);
    let config = ClientConfig::new("https://one").unwrap().with_impersonation(&who).unwrap();
    assert_eq!(headers(&config, "impersonate-user"), ["jane"]);
    assert_eq!(headers(&config, "impersonate-uid"), ["42"]);
    assert_eq!(headers(&config, "impersonate-group"), ["developers", "admins"]);
    assert_eq!(
        headers(&config, "impersonate-extra-example.com%2freason%20100%25"),
        ["because", "so it is"]
    );
    // A later impersonation replaces an earlier impersonation.
    let config = config.with_impersonation(&Impersonation::user("joe")).unwrap();
    assert_eq!(headers(&config, "impersonate-user"), ["joe"]);
    assert_eq!(config.headers.len(), 1);
}

#[test]
fn an_impersonation_that_cannot_be_sent_is_refused() {
    let config = || ClientConfig::new("https://one").unwrap();
    for who in [
        Impersonation::user(""),
        Impersonation::user("jane\r\nimpersonate-group: system:masters"),
        Impersonation::user("jane").groups(["a\nb".to_owned()]),
    ] {
        let text = message(config().with_impersonation(&who));
        assert!(text.contains("impersonat"), "{text}");
    }
}

/// Servers trim header values and drop those that they cannot read; such a name would then be no
/// impersonation at all, and the request would run with the caller's own rights.
#[test]
fn a_name_that_a_server_would_trim_or_misread_is_refused_before_anything_is_sent() {
    let jane = || Impersonation::user("jane");
    let one = |value: &str| [value.to_owned()];
    for bad in ["", " ", "\t", " \t ", " admin", "admin ", "\tadmin", "jürgen", "a\u{a0}", "a\tb"]
    {
        for (what, who) in [
            ("user", Impersonation::user(bad)),
            ("uid", jane().uid(bad)),
            ("group", jane().groups(one(bad))),
            ("extra", jane().extra("reason", one(bad))),
        ] {
            let config = ClientConfig::new("https://one").unwrap();
            let text = message(config.with_impersonation(&who));
            assert!(text.contains(&format!("{what} {bad:?}")), "{text}");
            assert!(text.contains("cannot be impersonated"), "{text}");
            assert!(text.contains("caller's own rights"), "{text}");
        }
    }
    let text = message(
        ClientConfig::new("https://one").unwrap().with_impersonation(&jane().extra("", one("v"))),
    );
    assert!(text.contains("extra field without a name"), "{text}");
    // The same from a kubeconfig, with the name.
    for field in
        ["as: ' '", "as: jürgen", "as: jane, as-groups: [' admins']", "as: jane, as-uid: ' '"]
    {
        let text = BASE.replace("{token: first}", &format!("{{{field}}}"));
        let text = message(ClientConfig::from_yaml(&text, None));
        assert!(text.contains("context \"dev\"") && text.contains("impersonated"), "{text}");
    }
}

#[test]
fn uid_groups_and_extra_need_a_user_in_a_kubeconfig() {
    let with = |fields: &str| {
        ClientConfig::from_yaml(&BASE.replace("{token: first}", &format!("{{{fields}}}")), None)
    };
    for fields in ["as-uid: '1'", "as-groups: [a]", "as-user-extra: {a: [b]}"] {
        let text = message(with(fields));
        assert!(text.contains("without a user") && text.contains("context \"dev\""), "{text}");
    }
    let config = with("as: jane, as-uid: '1', as-groups: [a], as-user-extra: {K: [v, w]}").unwrap();
    assert_eq!(headers(&config, "impersonate-extra-k"), ["v", "w"]);
    assert_eq!(headers(&config, "impersonate-uid"), ["1"]);
}

#[test]
fn what_the_program_says_counts_over_the_kubeconfig() {
    let config = ClientConfig::from_yaml(BASE, None)
        .unwrap()
        .with_server("https://two.example")
        .unwrap()
        .with_namespace("other")
        .with_token_file("/run/token")
        .with_identity_files("/run/tls.crt", "/run/tls.key")
        .with_ca_file("/run/ca.crt")
        .with_tls_server_name("name")
        .with_proxy("http://proxy:3128")
        .unwrap()
        .with_compression(false);
    assert_eq!(config.server(), "https://two.example/");
    assert_eq!((config.namespace(), config.compression()), ("other", false));
    assert!(matches!(&config.auth, AuthSource::TokenFile(path, None) if path.ends_with("token")));
    assert!(matches!(&config.tls.identity, Some((Pem::File(_), Pem::File(_)))));
    assert!(matches!(&config.proxy, ProxyChoice::Through(proxy) if proxy.port == 3128));
    assert!(matches!(config.clone().without_proxy().proxy, ProxyChoice::Direct));
    assert!(matches!(config.clone().with_basic_auth("u", "p").auth, AuthSource::Basic(..)));
    let plugin = ExecPlugin::new("x").interactive(InteractiveMode::IfAvailable).v1beta1();
    assert!(matches!(config.clone().with_exec(plugin).auth, AuthSource::Exec(_)));
    assert!(config.with_server("https://u:p@two").is_err());
}

#[test]
fn verification_is_switched_off_by_name_alone_and_in_a_pod_by_the_program_alone() {
    let text = BASE.replace("certificate-authority: pki/ca.crt", "insecure-skip-tls-verify: true");
    let found = ClientConfig::from_yaml(&text, None).unwrap();
    let here = env(&[]);
    let mut pod = env(&[]);
    pod.service_host = Some("10.96.0.1".into());
    pod.service_port = Some("443".into());
    found.check_insecure_in(&here).unwrap();
    let text = message(found.check_insecure_in(&pod));
    assert!(text.contains("with_insecure_skip_tls_verify"), "{text}");
    assert!(text.contains("context \"dev\""), "{text}");
    let own = found.with_insecure_skip_tls_verify();
    own.check_insecure_in(&pod).unwrap();
    assert!(own.tls.ca.is_none());
    assert!(!own.with_ca_file("ca.crt").tls.insecure, "a CA means that it is checked");
}

#[test]
fn a_pods_account_comes_before_the_home_folder_and_after_the_list() {
    let (home, account) = (folder(), folder());
    let mut env = env(&[]);
    env.home = Some(home.clone());
    write(&home.join(".kube/config"), BASE);
    env.service_host = Some("10.96.0.1".into());
    env.service_port = Some("443".into());
    env.service_account.clone_from(&account);
    // Without a token there is no service account, and the home folder is no replacement.
    let text = message(env.find());
    assert!(text.contains("has no token") && text.contains("KUBECONFIG"), "{text}");
    write(&account.join("token"), "t");
    let found = env.find().unwrap().unwrap();
    assert_eq!(found.server(), "https://10.96.0.1:443/");
    assert!(found.origin().contains("Pod"), "{}", found.origin());
    // A plugin is never part of the configuration.
    assert!(matches!(found.auth, AuthSource::TokenFile(..)));
    let listed = write(&home.join("listed"), &BASE.replace("shop", "listed"));
    env.kubeconfig = Some(listed.into());
    assert_eq!(env.find().unwrap().unwrap().namespace(), "listed");
}
