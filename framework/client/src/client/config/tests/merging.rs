//! The rules by which kubectl loads several kubeconfig files.

use super::*;

/// Merges several files in folders `0`, `1`, …
fn merged(files: &[&str], context: Option<&str>) -> Result<ClientConfig, Error> {
    let folder = folder();
    let path = |n: usize| folder.join(n.to_string()).join("config");
    let paths: Vec<_> = files.iter().enumerate().map(|(n, text)| write(&path(n), text)).collect();
    ClientConfig::from_files(paths, context)
}

fn context(name: &str, cluster: &str, user: &str) -> String {
    format!("contexts: [{{name: {name}, context: {{cluster: {cluster}, user: {user}}}}}]\n")
}

fn cluster(name: &str, rest: &str) -> String {
    format!("clusters: [{{name: {name}, cluster: {{{rest}}}}}]\n")
}

fn user(name: &str, rest: &str) -> String {
    format!("users: [{{name: {name}, user: {{{rest}}}}}]\n")
}

fn token(config: &ClientConfig) -> String {
    match &config.auth {
        AuthSource::Token(token) => token.expose().to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn parts_of_one_context_may_lie_in_different_files() {
    let config = merged(
        &[
            "current-context: c\n",
            &context("c", "k", "u"),
            &cluster("k", "server: 'https://k'"),
            &user("u", "token: t"),
        ],
        None,
    );
    let config = config.unwrap();
    assert_eq!((config.server().as_str(), token(&config).as_str()), ("https://k/", "t"));
}

#[test]
fn the_first_file_with_an_entry_of_a_name_decides_all_of_it() {
    let base = format!("{}{}", context("c", "k", "u"), cluster("k", "server: 'https://first'"));
    let later = cluster("k", "server: 'https://second', tls-server-name: second");
    // Members that the first entry leaves out are not taken from the second either.
    let config = merged(&[&base, &later, &user("u", "token: t")], Some("c")).unwrap();
    assert_eq!(config.server(), "https://first/");
    assert_eq!(config.tls.server_name, None);
    // The same for users and contexts.
    let first = format!("{base}{}", user("u", "username: me, password: p"));
    let config = merged(&[&first, &user("u", "token: t")], Some("c")).unwrap();
    assert!(matches!(&config.auth, AuthSource::Basic(user, _) if user == "me"));
    let first = format!("{base}{}", user("u", "token: t"));
    let other = "contexts: [{name: c, context: {cluster: x, user: x, namespace: second}}]\n";
    let config = merged(&[&first, other], Some("c")).unwrap();
    assert_eq!((config.server().as_str(), config.namespace()), ("https://first/", "default"));
}

#[test]
fn an_empty_entry_of_the_first_file_hides_that_of_the_second() {
    let base = format!("{}{}", context("c", "k", "u"), cluster("k", "server: 'https://k'"));
    let first = format!("{base}users: [{{name: u}}]\n");
    let config = merged(&[&first, &user("u", "token: t")], Some("c")).unwrap();
    assert!(matches!(config.auth, AuthSource::None));
}

#[test]
fn the_first_current_context_counts_though_a_later_file_describes_it() {
    let whole = |name: &str| {
        format!(
            "{}{}",
            context(name, name, ""),
            cluster(name, &format!("server: 'https://{name}'"))
        )
    };
    let first = format!("current-context: two\n{}", whole("one"));
    let second = format!("current-context: one\n{}", whole("two"));
    let config = merged(&[&first, &second], None).unwrap();
    assert_eq!(config.server(), "https://two/");
    // An empty value does not count.
    let first = format!("current-context: ''\n{}", whole("one"));
    assert_eq!(merged(&[&first, &second], None).unwrap().server(), "https://one/");
    // An explicit context takes precedence.
    assert_eq!(merged(&[&first, &second], Some("two")).unwrap().server(), "https://two/");
}

#[test]
fn relative_paths_count_from_the_folder_of_their_own_file() {
    let folder = folder();
    let first = context("c", "k", "u");
    let second = cluster("k", "server: 'https://k', certificate-authority: ../ca.crt");
    let third = user("u", "client-certificate: a/tls.crt, client-key: /abs/tls.key, tokenFile: t");
    let paths = [
        write(&folder.join("0/config"), &first),
        write(&folder.join("1/config"), &second),
        write(&folder.join("2/config"), &third),
    ];
    let config = ClientConfig::from_files(paths, Some("c")).unwrap();
    let file = |pem: &Pem| match pem {
        Pem::File(path) => path.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(file(config.tls.ca.as_ref().unwrap()), folder.join("1/../ca.crt"));
    let (certificate, key) = config.tls.identity.as_ref().unwrap();
    assert_eq!(file(certificate), folder.join("2/a/tls.crt"));
    assert_eq!(file(key), Path::new("/abs/tls.key"));
    assert!(
        matches!(&config.auth, AuthSource::TokenFile(path, None) if *path == folder.join("2/t"))
    );
}

#[test]
fn inline_data_wins_over_a_file_of_the_same_entry() {
    let text = format!(
        "{}{}",
        context("c", "k", ""),
        cluster(
            "k",
            "server: 'https://k', certificate-authority: x, certificate-authority-data: eA=="
        )
    );
    let config = merged(&[&text], Some("c")).unwrap();
    assert!(matches!(&config.tls.ca, Some(Pem::Inline(text)) if text.expose() == "x"));
}

#[test]
fn of_several_kinds_of_credentials_the_one_that_kubectl_takes_counts() {
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: plugin}";
    let certificate = "client-certificate: a, client-key: b";
    // (user, credentials in use)
    let table = [
        (format!("tokenFile: f, token: t, {exec}"), "file"),
        (format!("token: t, {exec}"), "token"),
        (format!("username: u, password: p, {exec}"), "basic"),
        (format!("{certificate}, {exec}"), "none"),
        (format!("{certificate}, token: t"), "token"),
        (exec.to_owned(), "exec"),
        ("{}".replace("{}", ""), "none"),
    ];
    for (fields, expected) in table {
        let base = format!("{}{}", context("c", "k", "u"), cluster("k", "server: 'https://k'"));
        let config = merged(&[&base, &user("u", &fields)], Some("c")).unwrap();
        let found = match &config.auth {
            AuthSource::None => "none",
            AuthSource::Token(_) => "token",
            AuthSource::TokenFile(..) => "file",
            AuthSource::Basic(..) => "basic",
            AuthSource::Exec(_) => "exec",
        };
        assert_eq!(found, expected, "{fields}");
        assert_eq!(config.tls.identity.is_some(), fields.contains("client-"), "{fields}");
    }
}

#[test]
fn every_field_of_a_cluster_counts() {
    let fields = "server: 'https://k/prefix/', tls-server-name: name, disable-compression: true, \
                  insecure-skip-tls-verify: true, proxy-url: 'socks5://proxy', extensions: \
                  [{name: client.authentication.k8s.io/exec, extension: {audience: shop}}]";
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: plugin, \
                provideClusterInfo: true}";
    let text = format!("{}{}{}", context("c", "k", "u"), cluster("k", fields), user("u", exec));
    let config = merged(&[&text], Some("c")).unwrap();
    assert_eq!(config.server(), "https://k/prefix");
    assert!(!config.compression() && config.tls.insecure);
    assert_eq!(config.tls.server_name.as_deref(), Some("name"));
    let AuthSource::Exec(plugin) = config.auth_source() else { panic!("{:?}", config.auth) };
    assert_eq!(plugin.extension, json!({"audience": "shop"}));
    assert_eq!(
        plugin.cluster.as_ref().unwrap().spec,
        json!({
            "server": "https://k/prefix",
            "config": null,
            "tls-server-name": "name",
            "insecure-skip-tls-verify": true,
            "proxy-url": "socks5://proxy",
            "disable-compression": true,
        })
    );
    assert!(plugin.origin.contains("context \"c\""), "{}", plugin.origin);
}

#[test]
fn fields_and_entries_that_nobody_knows_are_passed_over() {
    let text = format!(
        "apiVersion: v1\nkind: Config\npreferences: {{colors: true}}\nextensions: [{{name: x, \
         extension: {{a: [1]}}}}]\nunknown: 1\n{}{}",
        context("c", "k", ""),
        cluster("k", "server: 'https://k', unknown: {a: b}")
    );
    merged(&[&text], Some("c")).unwrap();
    // JSON is YAML.
    let json = r#"{"contexts":[{"name":"c","context":{"cluster":"k"}}],
                   "clusters":[{"name":"k","cluster":{"server":"https://k"}}]}"#;
    merged(&[json], Some("c")).unwrap();
}

#[test]
fn a_name_that_one_file_gives_twice_is_an_error() {
    let twice = "users: [{name: u, user: {token: canary}}, {name: u}]";
    let text = message(merged(&[twice], None));
    assert!(text.contains("two entries named \"u\"") && !text.contains("canary"), "{text}");
}

#[test]
fn a_file_that_is_listed_but_cannot_be_read_is_an_error_and_a_missing_one_is_not() {
    let folder = folder();
    let whole =
        format!("current-context: c\n{}{}", context("c", "k", ""), cluster("k", "server: k"));
    let good = write(&folder.join("good"), &whole);
    let broken = write(&folder.join("broken"), "{");
    assert!(env(&[&folder.join("missing"), &good]).find().unwrap().is_some());
    assert!(message(env(&[&good, &broken]).find()).contains("broken"));
    let mut list = env(&[]);
    list.kubeconfig = Some(format!(":{}:", good.display()).into());
    assert!(list.find().unwrap().is_some(), "empty names are passed over");
}
