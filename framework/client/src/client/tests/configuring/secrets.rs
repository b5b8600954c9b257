//! Secrets in every place of a configuration, and their absence from all output.

use std::fmt::{Debug, Write};
use std::path::Path;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::ExtendedKeyUsagePurpose;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::Service;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::client::auth::ExecPlugin;
use crate::client::config::Impersonation;
use crate::client::tests::connecting::tls::Pki;
use crate::client::tests::*;
use windlass_core::error::Error;

/// All output: logs at every level, `Debug` of values, errors with their causes.
#[derive(Clone, Debug, Default)]
struct Printed(Arc<Mutex<String>>);

impl Printed {
    fn value(&self, value: &dyn Debug) {
        let _ = write!(self.0.lock(), "{value:?}\n{value:#?}\n");
    }

    fn error(&self, error: &Error) {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            let _ = write!(self.0.lock(), "{error}\n{error:?}\n");
            cause = error.source();
        }
    }

    fn outcome<T: Debug>(&self, result: Result<T, Error>) -> bool {
        match &result {
            Ok(value) => self.value(value),
            Err(error) => self.error(error),
        }
        result.is_ok()
    }
}

impl Visit for &Printed {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0.lock(), "{field}={value:?} ");
    }
}

impl Subscriber for Printed {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut &*self);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let _ = write!(self.0.lock(), "{} ", event.metadata().target());
        event.record(&mut &*self);
        self.0.lock().push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A user's layer that logs requests and answers.
#[derive(Clone)]
struct Nosy(Stack, Printed);

impl Service<HttpRequest> for Nosy {
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: HttpRequest) -> Self::Future {
        self.1.value(&request);
        self.0.call(request)
    }
}

/// Secret words, in plain and encoded form.
fn canaries(key: &str) -> Vec<String> {
    let mut all = vec!["canary".to_owned(), "CANARY".to_owned()];
    for login in ["us:canary-proxy", "us:canary-password"] {
        all.push(STANDARD.encode(login));
    }
    // The first line of a real private key, plain and as kubeconfig data.
    all.push(key.lines().nth(1).unwrap().to_owned());
    all.push(STANDARD.encode(key)[40..80].to_owned());
    all
}

/// A server that answers every request with `text`, then closes.
async fn speak(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _ = tcp.read(&mut head).await;
                let _ = tcp.write_all(text.as_bytes()).await;
            });
        }
    });
    port
}

async fn exercise(config: Result<ClientConfig, Error>, printed: &Printed) -> bool {
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            printed.error(&error);
            return false;
        }
    };
    printed.value(&config);
    let watcher = printed.clone();
    let layer = tower::layer::layer_fn(move |inner| Nosy(inner, watcher.clone()));
    let builder = Client::builder().config(config).layer(layer);
    printed.value(&builder);
    let client = match builder.build() {
        Ok(client) => client,
        Err(error) => {
            printed.error(&error);
            return false;
        }
    };
    let mut request = get();
    request.timeout = Some(Duration::from_millis(700));
    printed.value(&request);
    let answer = client.send(request).await;
    for value in [&client as &dyn Debug, &client.shared.credentials, &client.shared.pool] {
        printed.value(value);
    }
    printed.outcome(answer)
}

/// A kubeconfig; `cluster` and `user` are inner YAML.
fn kubeconfig(port: u16, cluster: &str, user: &str) -> Result<ClientConfig, Error> {
    let text = format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}'{cluster}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    );
    ClientConfig::from_yaml(&text, None)
}

fn plugin(script: &str, more: &str) -> String {
    format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: \
         Never, args: ['-c', {script}, canary-argument], env: [{{name: PLUGIN, value: \
         canary-env}}], installHint: hint{more}}}"
    )
}

fn ca(pki: &Pki) -> String {
    format!(", certificate-authority-data: {}", STANDARD.encode(&pki.ca))
}

async fn successes(pki: &Pki, folder: &Path, printed: &Printed) {
    let port = pki.serve("127.0.0.1", &["h2"], false).await;
    let old = pki.serve("127.0.0.1", &[], false).await;
    let (certificate, key) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
    let (certificate, key) = (STANDARD.encode(certificate), STANDARD.encode(key));
    let token = folder.join("token");
    std::fs::write(&token, "canary-file").unwrap();
    let ca = ca(pki);
    let printf = r#""printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"canary-output\"}}'""#;
    let users = [
        "token: canary-token".to_owned(),
        format!("tokenFile: '{}'", token.display()),
        "username: us, password: canary-password".to_owned(),
        format!("client-certificate-data: {certificate}, client-key-data: {key}"),
        plugin(printf, ", provideClusterInfo: true"),
    ];
    let extension = ", extensions: [{name: client.authentication.k8s.io/exec, extension: {a: \
                     canary-extension}}]";
    for user in users {
        for port in [port, old] {
            let config = kubeconfig(port, &format!("{ca}{extension}"), &user);
            assert!(exercise(config, printed).await, "{user}");
        }
    }
    let program = ClientConfig::new(&format!("https://127.0.0.1:{port}"))
        .unwrap()
        .with_ca(&pki.ca)
        .with_basic_auth("us", "canary-password")
        .with_impersonation(&Impersonation::user("jane"));
    assert!(exercise(program, printed).await);
}

async fn failures(pki: &Pki, folder: &Path, printed: &Printed) {
    let refusal = "HTTP/1.1 407 canary-reason\r\nx: canary-header\r\n\r\ncanary-body";
    let (port, proxy) = (pki.serve("127.0.0.1", &["h2"], false).await, speak(refusal).await);
    let garbage =
        STANDARD.encode("-----BEGIN PRIVATE KEY-----\ncanary!!\n-----END PRIVATE KEY-----");
    let file = folder.join("bad.pem");
    std::fs::write(&file, "-----BEGIN CERTIFICATE-----\ncanary!!\n-----END CERTIFICATE-----")
        .unwrap();
    let file = file.display();
    let (certificate, key) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
    let (certificate, key) = (STANDARD.encode(certificate), STANDARD.encode(key));
    let (_, other) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
    let other = STANDARD.encode(other);
    let token = "token: canary-token".to_owned();
    let ca = ca(pki);
    let own = |cluster: &str, user: &str| (cluster.to_owned(), user.to_owned());
    let rows = [
        // Not trusted; bad roots; proxies that refuse and that do not exist.
        own("", &token),
        own(&format!(", certificate-authority: '{file}'"), &token),
        own(&format!(", certificate-authority-data: {garbage}"), &token),
        own(&format!(", certificate-authority-data: canary!{ca}"), &token),
        own(&format!("{ca}, proxy-url: 'http://us:canary-proxy@127.0.0.1:{proxy}'"), &token),
        own(&format!("{ca}, proxy-url: 'https://us:canary-proxy@127.0.0.1:{proxy}'"), &token),
        own(&format!("{ca}, proxy-url: 'socks5://us:canary-proxy@127.0.0.1:{proxy}'"), &token),
        own(&format!("{ca}, proxy-url: 'http://us:canary-proxy@127.0.0.1:1'"), &token),
        own(&format!("{ca}, proxy-url: 'ftp://us:canary-proxy@127.0.0.1'"), &token),
        own(&format!("{ca}, proxy-url: 'http://us:canary proxy@127.0.0.1'"), &token),
        // Identities that are wrong.
        own(&ca, &format!("client-certificate-data: {certificate}, client-key-data: {garbage}")),
        own(&ca, &format!("client-certificate-data: {certificate}, client-key-data: {other}")),
        own(&ca, &format!("client-certificate-data: {garbage}, client-key-data: {key}")),
        own(&ca, &format!("client-certificate: '{file}', client-key-data: {key}")),
        own(&ca, &format!("client-certificate-data: {certificate}, client-key-data: canary!")),
        own(&ca, &format!("client-key-data: {key}")),
        // Tokens that fit no header, missing files, files that are too large.
        own(&ca, "token: \"canary\\ntoken\""),
        own(&ca, "token: canary-token, username: us, password: canary-password"),
        own(&ca, "tokenFile: /nonexistent/token"),
        own(&ca, "token: [canary]"),
        // Plugins that fail and print a reason.
        own(&ca, &plugin("'echo canary-output; exit 3'", "")),
        own(&ca, &plugin("'echo canary-output'", "")),
        own(&ca, &plugin("\"printf '{\\\"apiVersion\\\":\\\"canary-version\\\"}'\"", "")),
        own(&ca, &plugin("'yes canary'", "")),
        own(&ca, &plugin("'true'", "").replace("/bin/sh", "/nonexistent/plugin")),
        own(&ca, &plugin("'true'", "").replace("Never", "Always")),
        own(&ca, &plugin("'true'", "").replace("Never", "canary")),
    ];
    for (cluster, user) in rows {
        let config = kubeconfig(port, &cluster, &user);
        assert!(!exercise(config, printed).await, "{cluster} {user}");
    }
    let addresses = ["https://us:canary@api.example", "us:canary@api.example", "https://canary@"];
    for address in addresses {
        assert!(!printed.outcome(ClientConfig::new(address)));
        let config = ClientConfig::new("https://api.example").unwrap();
        assert!(!printed.outcome(config.with_proxy(&address.replace("https", "x"))));
    }
}

/// Answers 401 to every request, over memory.
async fn refusals(printed: &Printed) {
    let sources = [
        ClientConfig::new("http://localhost").unwrap().with_token("canary-token"),
        ClientConfig::new("http://localhost").unwrap().with_basic_auth("us", "canary-password"),
        ClientConfig::new("http://localhost").unwrap().with_exec(
            ExecPlugin::new("/bin/sh").arg("-c").arg("exit 1 # canary").env("A", "canary-env"),
        ),
    ];
    for config in sources {
        let server = Server::with([Reply::Answer(401, "{\"message\":\"no\"}")]);
        let builder = Client::builder().config(config).connector(Arc::new(Wire(server)));
        let client = builder.build().unwrap();
        assert!(!printed.outcome(client.send(create()).await));
    }
}

#[tokio::test]
async fn no_secret_is_in_anything_that_is_printed() {
    let printed = Printed::default();
    let folder = std::env::temp_dir().join(format!("windlass-birds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pki = Pki::new();
    let key = pki.sign("x", ExtendedKeyUsagePurpose::ClientAuth).1;
    let guard = tracing::subscriber::set_default(printed.clone());
    printed.value(&SecretString::new("canary"));
    printed.value(&ExecPlugin::new("plugin").arg("canary").env("A", "canary"));
    printed.value(&Impersonation::user("jane"));
    successes(&pki, &folder, &printed).await;
    failures(&pki, &folder, &printed).await;
    refusals(&printed).await;
    tracing::debug!(secret = "the end");
    drop(guard);
    let text = printed.0.lock().clone();
    // Expected output is present: our own lines, those of the HTTP library, and redactions.
    for expected in ["the end", "the credential plugin is started", "[redacted]", "Sensitive", "h2"]
    {
        assert!(text.contains(expected), "{expected} is missing in {} bytes", text.len());
    }
    // The server's certificate check repeats none of our data; the test's own paths are no secret.
    for canary in canaries(&key) {
        if let Some(at) = text.find(&canary) {
            let from = text[..at].rfind('\n').map_or(0, |at| at + 1);
            let line: String = text[from..].chars().take(600).collect();
            panic!("`{canary}` was printed: {line}");
        }
    }
}
