//! Hostile or broken plugins, token files and kubeconfigs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::*;
use super::together;
use crate::client::auth::ExecPlugin;
use windlass_core::error::ErrorKind;

/// A folder for a single test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-attack-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A plugin that counts the runs in a file and then executes `script`.
fn plugin(folder: &Path, script: &str) -> ExecPlugin {
    let script = format!("echo x >> {}/runs; {script}", folder.display());
    ExecPlugin::new("/bin/sh").arg("-c").arg(script)
}

fn runs(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("runs")).unwrap_or_default().lines().count()
}

fn credential(rest: &str) -> String {
    format!(
        r#"printf '%s' '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"t"{rest}}}}}'"#
    )
}

fn over(server: &Arc<Server>, plugin: ExecPlugin) -> Client {
    let config = ClientConfig::new("http://localhost").unwrap().with_exec(plugin);
    let wire = Arc::new(Wire(Arc::clone(server)));
    Client::builder().config(config).connector(wire).environment(environment()).build().unwrap()
}

#[tokio::test]
async fn a8_a_plugin_that_gives_the_same_refused_token_is_not_run_by_every_request() {
    let folder = folder("same");
    let server = Server::with([Reply::Answer(401, "{}")]);
    let client = over(&server, plugin(&folder, &credential("")));
    for _ in 0..3 {
        for result in together(&client, 10).await {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Unauthorized);
        }
    }
    assert_eq!(runs(&folder), 2, "once to begin with, once because of the refusals");
}

#[tokio::test]
async fn a_plugin_whose_credentials_are_always_expired_is_not_run_by_every_request() {
    let folder = folder("expired");
    let server = Server::with([Reply::Answer(200, "{}")]);
    let expired = credential(r#","expirationTimestamp":"2001-01-01T00:00:00Z""#);
    let client = over(&server, plugin(&folder, &expired));
    for result in together(&client, 20).await {
        result.unwrap();
    }
    assert_eq!(runs(&folder), 1);
}

#[tokio::test]
async fn those_who_wait_for_a_plugin_that_fails_share_its_failure() {
    let folder = folder("failing");
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = over(&server, plugin(&folder, "sleep 0.2; exit 3"));
    for result in together(&client, 20).await {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        assert!(text.contains("the plugin /bin/sh") && text.contains("exit status: 3"), "{text}");
    }
    assert_eq!(runs(&folder), 1);
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_plugin_that_leaves_a_process_behind_is_not_waited_for() {
    let folder = folder("forked");
    let server = Server::with([Reply::Answer(200, "{}")]);
    let script = format!("sleep 30 & {}", credential(""));
    let client = over(&server, plugin(&folder, &script));
    let started = tokio::time::Instant::now();
    client.send(get()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(server.seen()[0].headers["authorization"], "Bearer t");
}

#[tokio::test]
async fn a_plugin_that_a_signal_ends_is_told_with_the_signal() {
    let folder = folder("signal");
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = over(&server, plugin(&folder, "kill -9 $$"));
    let error = client.send(get()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the plugin /bin/sh") && text.contains("signal: 9"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a8_a_token_file_that_becomes_garbage_or_endless_changes_nothing() {
    let folder = folder("garbage");
    let token = folder.join("token");
    std::fs::write(&token, "good").unwrap();
    let server = Server::with([Reply::Answer(200, "{}")]);
    let config = ClientConfig::new("http://localhost").unwrap().with_token_file(&token);
    let wire = Arc::new(Wire(Arc::clone(&server)));
    let client = Client::builder()
        .config(config)
        .connector(wire)
        .environment(environment())
        .build()
        .unwrap();
    client.send(get()).await.unwrap();
    let bad: [&[u8]; 5] = [b"", b" \n", b"one\ntwo", b"\xff\xfe", b"a\r\nX-Injected: 1"];
    for content in bad {
        std::fs::write(&token, content).unwrap();
        tokio::time::advance(Duration::from_secs(61)).await;
        client.send(get()).await.unwrap();
    }
    std::fs::write(&token, vec![b'a'; 2 << 20]).unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    client.send(get()).await.unwrap();
    // Without a bound this would be read until memory runs out.
    std::fs::remove_file(&token).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &token).unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    client.send(get()).await.unwrap();
    for seen in server.seen() {
        assert_eq!(seen.headers["authorization"], "Bearer good");
        assert!(!seen.headers.contains_key("x-injected"));
    }
    std::fs::remove_file(&token).unwrap();
    std::fs::write(&token, "new").unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    client.send(get()).await.unwrap();
    assert_eq!(server.seen().last().unwrap().headers["authorization"], "Bearer new");
}

#[test]
fn a_server_address_with_a_query_is_refused_without_showing_it() {
    let error = ClientConfig::new("https://api.example:6443/?token=canary").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

#[test]
fn a_value_that_would_be_another_header_is_refused_and_shown_on_one_line() {
    for who in [
        Impersonation::user("jane\r\nImpersonate-Group: system:masters"),
        Impersonation::user("jane").uid("1\n2"),
        Impersonation::user("jane").groups(["a\r\nb".to_owned()]),
        Impersonation::user("jane").extra("k", ["a\0b".to_owned()]),
    ] {
        let config = ClientConfig::new("https://api.example:6443").unwrap();
        let error = config.with_impersonation(&who).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(!error.to_string().contains(['\r', '\n', '\0']), "{error:?}");
    }
    // A key with a line break is escaped, as every byte that no header name can contain.
    let who = Impersonation::user("jane").extra("k\r\nx: y", ["v".to_owned()]);
    let config = ClientConfig::new("https://api.example:6443").unwrap();
    let config = config.with_impersonation(&who).unwrap();
    let names: Vec<_> = config.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["impersonate-user", "impersonate-extra-k%0d%0ax%3a%20y"]);
}

#[test]
fn names_in_a_kubeconfig_do_not_steer_the_terminal_of_whoever_reads_an_error() {
    let text = "current-context: \"a\\e[2Jb\"\n\
                contexts: [{name: \"c\\e[2Jd\", context: {cluster: \"x\\e[2J\", user: u}}]\n";
    for context in [None, Some("c\u{1b}[2Jd")] {
        let error = ClientConfig::from_yaml(text, context).unwrap_err();
        assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_do_not_come_in_time_are_named() {
    let folder = folder("slow");
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = over(&server, plugin(&folder, "exec sleep 100"));
    let text = client.send(get()).await.unwrap_err().to_string();
    assert!(text.contains("no credentials in time: the plugin /bin/sh"), "{text}");
}

#[test]
fn a_token_that_no_request_could_carry_is_told_when_the_client_is_made() {
    for token in ["", " \n", "canary\nx", "can\0ary"] {
        let config = ClientConfig::new("https://api.example:6443").unwrap().with_token(token);
        let error = Client::new(config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = format!("{error} {error:?}");
        assert!(text.contains("token") && !text.contains("canary"), "{text}");
    }
}

#[test]
fn an_address_without_a_scheme_is_secure_where_tls_is_configured() {
    let server = |cluster: &str, user: &str| {
        let text = format!(
            "apiVersion: v1\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'api.example:6443'{cluster}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n"
        );
        ClientConfig::from_yaml(&text, None).unwrap().server()
    };
    assert_eq!(server("", ""), "http://api.example:6443/");
    for (cluster, user) in [
        (", certificate-authority: ca.crt", ""),
        (", insecure-skip-tls-verify: true", ""),
        ("", "client-certificate: a.crt, client-key: a.key"),
        (", certificate-authority: ca.crt", "token: t"),
    ] {
        assert_eq!(server(cluster, user), "https://api.example:6443/", "{cluster} {user}");
    }
    let error = ClientConfig::from_yaml("apiVersion: v2", None).unwrap_err().to_string();
    assert!(error.contains("apiVersion is \"v2\""), "{error}");
    let error = ClientConfig::from_yaml("", None).unwrap_err().to_string();
    assert!(error.contains("has no contexts"), "{error}");
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc, which Linux has")]
async fn a_plugin_that_is_given_up_is_killed() {
    let folder = folder("killed");
    let pid = folder.join("pid");
    let script = format!("echo $$ > {}; exec sleep 60", pid.display());
    let plugin = plugin(&folder, &script);
    let run = tokio::spawn(async move { plugin.run(&Clock::system()).await });
    let read = || std::fs::read_to_string(&pid).unwrap_or_default().trim().to_owned();
    let wait = async |condition: &dyn Fn() -> bool| {
        let polling = async {
            while !condition() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), polling).await.unwrap();
    };
    wait(&|| !read().is_empty()).await;
    run.abort();
    let stat = format!("/proc/{}/stat", read());
    wait(&|| std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))).await;
}
