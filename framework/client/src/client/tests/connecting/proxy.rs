//! Proxies on loopback, correct and faulty, and the client's behaviour with them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::ExtendedKeyUsagePurpose;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::tls::Pki;
use crate::client::tests::*;
use windlass_core::error::{Error, ErrorKind};

/// Reaction of a proxy to a request for a tunnel.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Connects to this port of loopback, regardless of the target.
    Relay(u16),
    /// Answers with these bytes and closes.
    Say(&'static [u8]),
    /// Never answers.
    Silence,
}

/// Requests to a proxy: the head of a `CONNECT`, or `user:password host:port` in SOCKS5.
type Asked = Arc<Mutex<Vec<String>>>;

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// An HTTP proxy; over TLS with `tls`.
async fn http_proxy(manner: Manner, tls: Option<TlsAcceptor>) -> (u16, Asked) {
    let (listener, port) = listen().await;
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (tls, seen) = (tls.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let io: BoxIo = match tls {
                    Some(tls) => match tls.accept(tcp).await {
                        Ok(stream) => Box::new(stream),
                        Err(_) => return,
                    },
                    None => Box::new(tcp),
                };
                let _ = lead(io, manner, &seen).await;
            });
        }
    });
    (port, asked)
}

async fn lead(mut io: BoxIo, manner: Manner, asked: &Asked) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await?);
    }
    asked.lock().push(String::from_utf8(head).unwrap());
    match manner {
        Manner::Relay(port) => {
            io.write_all(b"HTTP/1.1 200 Connection established\r\nx-proxy: yes\r\n\r\n").await?;
            relay(io, port).await
        }
        Manner::Say(text) => io.write_all(text).await,
        Manner::Silence => std::future::pending().await,
    }
}

async fn relay(mut io: BoxIo, port: u16) -> io::Result<()> {
    let mut to = TcpStream::connect(("127.0.0.1", port)).await?;
    copy_bidirectional(&mut io, &mut to).await.map(|_| ())
}

/// A SOCKS5 proxy that wants `login`, and answers a request with `code` (0 leads to `port`).
async fn socks_proxy(login: Option<&'static str>, code: u8, port: u16) -> (u16, Asked) {
    let (listener, own) = listen().await;
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let _ = lead_socks(tcp, login, code, port, &seen).await;
            });
        }
    });
    (own, asked)
}

async fn lead_socks(
    mut io: TcpStream,
    login: Option<&str>,
    code: u8,
    port: u16,
    asked: &Asked,
) -> io::Result<()> {
    let mut head = [0; 2];
    io.read_exact(&mut head).await?;
    let mut methods = vec![0; head[1].into()];
    io.read_exact(&mut methods).await?;
    let method = if login.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        return io.write_all(&[5, 0xff]).await;
    }
    io.write_all(&[5, method]).await?;
    let mut said = String::new();
    if let Some(login) = login {
        assert_eq!(io.read_u8().await?, 1);
        let user = text(&mut io).await?;
        said = format!("{user}:{} ", text(&mut io).await?);
        io.write_all(&[1, u8::from(said.trim() != login)]).await?;
        if said.trim() != login {
            return Ok(());
        }
    }
    let mut head = [0; 4];
    io.read_exact(&mut head).await?;
    let host = match head[3] {
        1 => std::net::Ipv4Addr::from(io.read_u32().await?).to_string(),
        3 => text(&mut io).await?,
        other => panic!("address type {other}"),
    };
    let target = format!("{said}{host}:{}", io.read_u16().await?);
    asked.lock().push(target);
    io.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    if code == 0 { relay(Box::new(io), port).await } else { Ok(()) }
}

async fn text(io: &mut TcpStream) -> io::Result<String> {
    let mut text = vec![0; io.read_u8().await?.into()];
    io.read_exact(&mut text).await?;
    Ok(String::from_utf8(text).unwrap())
}

/// A cluster whose name only the proxy can resolve.
fn far_away(pki: &Pki) -> ClientConfig {
    ClientConfig::new("https://api.invalid:6443").unwrap().with_ca(&pki.ca)
}

async fn answer(config: ClientConfig) -> Result<String, Error> {
    let mut request = get();
    request.timeout = Some(Duration::from_secs(5));
    let answer = Client::new(config)?.send(request).await?;
    Ok(String::from_utf8(answer.body.to_vec()).unwrap())
}

/// Returns the complete error text of the first attempt, and the call's error. A later attempt may
/// have been cut short by the call's deadline.
async fn refused(config: ClientConfig) -> (String, Error) {
    let failures = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&failures);
    let layer = tower::util::MapErrLayer::new(move |error: BoxError| {
        seen.lock().push(chain(&*error));
        error
    });
    let mut request = get();
    request.timeout = Some(Duration::from_secs(1));
    let client = Client::builder().config(config).layer(layer).build().unwrap();
    let error = client.send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    let first = failures.lock()[0].clone();
    assert!(!format!("{first} {}", chain(&error)).contains("canary"), "{first} {error:?}");
    (first, error)
}

/// Returns the texts of the error and all causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        text = format!("{text} {error} {error:?}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn tls_and_http2_go_through_an_http_proxy_which_looks_the_name_up() {
    let pki = Pki::new();
    let server = pki.serve("api.invalid", &["h2"], false).await;
    let (port, asked) = http_proxy(Manner::Relay(server), None).await;
    let config = far_away(&pki).with_proxy(&format!("http://127.0.0.1:{port}")).unwrap();
    assert_eq!(answer(config).await.unwrap(), "HTTP/2.0 api.invalid:6443");
    let asked = asked.lock().concat();
    assert!(asked.starts_with("CONNECT api.invalid:6443 HTTP/1.1\r\n"), "{asked}");
    let asked = asked.to_ascii_lowercase();
    assert!(asked.contains("\r\nhost: api.invalid:6443\r\n"), "{asked}");
    assert!(!asked.contains("authorization"), "{asked}");
}

#[tokio::test]
async fn a_proxy_gets_its_user_and_password_and_no_credentials_of_ours() {
    let pki = Pki::new();
    let server = pki.serve("api.invalid", &[], false).await;
    let (port, asked) = http_proxy(Manner::Relay(server), None).await;
    let text = format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://api.invalid:6443', proxy-url: \
         'http://us%40er:pass@127.0.0.1:{port}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{token: canary}}}}]\n"
    );
    let config = ClientConfig::from_yaml(&text, None).unwrap().with_ca(&pki.ca);
    assert_eq!(answer(config).await.unwrap(), "HTTP/1.1 api.invalid:6443");
    let asked = asked.lock().concat().to_ascii_lowercase();
    let login = STANDARD.encode("us@er:pass").to_ascii_lowercase();
    assert!(asked.contains(&format!("proxy-authorization: basic {login}\r\n")), "{asked}");
    assert!(!asked.contains("canary"), "{asked}");
}

#[tokio::test]
async fn a_proxy_may_be_reached_over_tls_if_the_clusters_ca_signed_it() {
    let pki = Pki::new();
    let server = pki.serve("api.invalid", &["h2"], false).await;
    let (certificate, key) = pki.sign("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
    let provider = crate::client::transport::default_provider().unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (port, asked) = http_proxy(Manner::Relay(server), Some(acceptor)).await;
    let url = format!("https://127.0.0.1:{port}");
    let config = far_away(&pki).with_proxy(&url).unwrap();
    assert_eq!(answer(config).await.unwrap(), "HTTP/2.0 api.invalid:6443");
    assert_eq!(asked.lock().len(), 1);
    let config = far_away(&Pki::new()).with_proxy(&url).unwrap();
    let (text, _) = refused(config).await;
    assert!(text.contains(&url) && text.contains("TLS handshake failed"), "{text}");
}

#[tokio::test]
async fn a_server_of_plain_http_is_reached_through_a_tunnel_too() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let (listener, plain) = listen().await;
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            Arc::clone(&server).serve(theirs);
            tokio::spawn(async move {
                let mut ours = ours;
                let _ = copy_bidirectional(&mut tcp, &mut ours).await;
            });
        }
    });
    let (port, asked) = http_proxy(Manner::Relay(plain), None).await;
    let config = ClientConfig::new("http://api.invalid").unwrap();
    let config = config.with_proxy(&format!("http://127.0.0.1:{port}")).unwrap();
    assert_eq!(answer(config.clone()).await.unwrap(), "{}");
    assert!(asked.lock().concat().starts_with("CONNECT api.invalid:80 HTTP/1.1"));
    // Behind a proxy no address is this machine, so no token is sent there in the clear.
    let local = config.with_server("http://localhost:8080").unwrap().with_token("t");
    assert_eq!(Client::new(local.clone()).unwrap_err().kind(), ErrorKind::Config);
    Client::new(local.without_proxy()).unwrap();
}

#[tokio::test]
async fn what_a_proxy_answers_instead_of_a_tunnel_is_told_with_what_to_do() {
    // (answer, password given, parts of the text)
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(64 << 10));
    let table: [(&'static [u8], bool, &'static [&'static str]); 9] = [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 6\r\n\r\ncanary",
            false,
            &["407", "wants a user", "http://user:password@host"],
        ),
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            true,
            &["407", "refuses the user and password"],
        ),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", true, &["502 Bad Gateway", "could not reach"]),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", false, &["403 Forbidden", "allow this destination"]),
        (b"HTTP/1.1 302 Found\r\nlocation: https://x\r\n\r\n", false, &["302 Found"]),
        (b"220 mail.example ESMTP\r\n", false, &["no answer to CONNECT", "is it an HTTP proxy"]),
        (b"", false, &["no answer to CONNECT"]),
        (b"HTTP/1.1 200 OK\r\n\r\nearly", false, &["behind its answer"]),
        (long.leak().as_bytes(), false, &["no answer to CONNECT"]),
    ];
    // In parallel: the client retries each of them for a while.
    let mut rows = tokio::task::JoinSet::new();
    for (said, login, parts) in table {
        rows.spawn(refused_by_http(said, login, parts));
    }
    rows.join_all().await;
}

async fn refused_by_http(said: &'static [u8], login: bool, parts: &[&str]) {
    let (port, _) = http_proxy(Manner::Say(said), None).await;
    let login = if login { "us:canary@" } else { "" };
    let url = format!("http://{login}127.0.0.1:{port}");
    let config = far_away(&Pki::new()).with_proxy(&url).unwrap();
    let (text, error) = refused(config).await;
    assert!(text.contains(&format!("http://127.0.0.1:{port}")), "{text}");
    assert!(error.to_string().contains(&format!("http://127.0.0.1:{port}")), "{error}");
    for part in parts {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_named_and_not_its_password() {
    let (listener, port) = listen().await;
    drop(listener);
    let url = format!("http://us:canary@127.0.0.1:{port}");
    let (text, _) = refused(far_away(&Pki::new()).with_proxy(&url).unwrap()).await;
    assert!(text.contains(&format!("http://127.0.0.1:{port}")), "{text}");
    assert!(text.contains("cannot be reached") && text.contains("NO_PROXY"), "{text}");
}

/// The clock moves automatically while nothing happens on the sockets.
#[tokio::test(start_paused = true)]
async fn a_proxy_that_never_answers_holds_a_request_up_for_no_longer_than_its_deadline() {
    let (port, _) = http_proxy(Manner::Silence, None).await;
    let url = format!("http://127.0.0.1:{port}");
    let started = tokio::time::Instant::now();
    let client = Client::new(far_away(&Pki::new()).with_proxy(&url).unwrap()).unwrap();
    let error = client.send(get()).await.unwrap_err();
    assert!(started.elapsed() <= Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(error.to_string().contains(&url), "{error}");
}

#[tokio::test]
async fn tls_goes_through_socks5_with_and_without_a_password() {
    let pki = Pki::new();
    let server = pki.serve("api.invalid", &["h2"], false).await;
    for scheme in ["socks5", "socks5h"] {
        let (port, asked) = socks_proxy(None, 0, server).await;
        let config = far_away(&pki).with_proxy(&format!("{scheme}://127.0.0.1:{port}")).unwrap();
        assert_eq!(answer(config).await.unwrap(), "HTTP/2.0 api.invalid:6443");
        assert_eq!(*asked.lock(), ["api.invalid:6443"]);
    }
    let (port, asked) = socks_proxy(Some("user:pass"), 0, server).await;
    let url = format!("socks5://user:pass@127.0.0.1:{port}");
    assert_eq!(
        answer(far_away(&pki).with_proxy(&url).unwrap()).await.unwrap(),
        "HTTP/2.0 api.invalid:6443"
    );
    assert_eq!(*asked.lock(), ["user:pass api.invalid:6443"]);
}

#[tokio::test]
async fn a_refusal_of_socks5_is_told_with_its_reason_and_without_the_password() {
    let pki = Pki::new();
    let table: [(Option<&'static str>, u8, &'static str, &'static str); 7] = [
        (None, 1, "", "general server failure"),
        (None, 2, "", "connection not allowed"),
        (None, 4, "", "host unreachable"),
        (None, 5, "", "connection refused"),
        (Some("user:pass"), 0, "", "does not support user/pass"),
        (Some("user:pass"), 0, "user:canary@", "credentials not accepted"),
        (None, 0, "user:canary@", "authentication"),
    ];
    let mut rows = tokio::task::JoinSet::new();
    for (login, code, given, reason) in table {
        rows.spawn(async move {
            let (port, _) = socks_proxy(login, code, 1).await;
            let url = format!("socks5://{given}127.0.0.1:{port}");
            let config = far_away(&Pki::new()).with_proxy(&url).unwrap();
            let (text, error) = refused(config).await;
            assert!(text.contains(&format!("socks5://127.0.0.1:{port}")), "{text}");
            assert!(error.to_string().contains(&format!("socks5://127.0.0.1:{port}")), "{error}");
            assert!(text.contains(reason), "{reason}: {text}");
        });
    }
    rows.join_all().await;
    // An HTTP proxy under the wrong scheme.
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let _ = tcp.read_u8().await;
            let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let config = far_away(&pki).with_proxy(&format!("socks5://127.0.0.1:{port}")).unwrap();
    let (text, _) = refused(config).await;
    assert!(text.contains("check its scheme"), "{text}");
    let url = format!("socks5://user:{}@127.0.0.1:{port}", "x".repeat(250));
    let (text, _) = refused(far_away(&pki).with_proxy(&url).unwrap()).await;
    assert!(text.contains("use shorter ones"), "{text}");
}

/// Second half of the next test, run in a process with a separate environment.
async fn ask_through_the_environments_proxy() {
    let proxied = ClientConfig::new("https://api.invalid:6443").unwrap();
    let direct = ClientConfig::new("https://direct.invalid:6443").unwrap().without_proxy();
    tokio::join!(refused(proxied), refused(direct));
}

#[tokio::test]
async fn the_environments_proxy_is_used_unless_the_program_says_otherwise() {
    const CHILD: &str = "WINDLASS_TESTS_PROXY";
    if std::env::var_os(CHILD).is_some() {
        return ask_through_the_environments_proxy().await;
    }
    let refusal = b"HTTP/1.1 403 Forbidden\r\n\r\n";
    let (port, asked) = http_proxy(Manner::Say(refusal), None).await;
    let own = "client::tests::connecting::proxy::the_environments_proxy_is_used_unless_the_program_says_otherwise";
    let output = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", own])
        .env(CHILD, "1")
        .env("HTTPS_PROXY", format!("http://127.0.0.1:{port}"))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 passed"), "{text}");
    let asked = asked.lock().concat();
    assert!(asked.contains("CONNECT api.invalid:6443"), "{asked}");
    assert!(!asked.contains("direct.invalid"), "{asked}");
}
