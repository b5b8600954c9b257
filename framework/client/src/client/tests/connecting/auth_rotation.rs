//! A8 (rotated tokens) and A9 (rotated CA or client certificate): changes while requests are under
//! way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::AUTHORIZATION;
use rcgen::ExtendedKeyUsagePurpose;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use super::tls::Pki;
use crate::client::auth::ExecPlugin;
use crate::client::tests::*;
use windlass_core::error::{Error, ErrorKind};

/// A folder for a single test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-rotate-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn over(server: &Arc<Server>, token: &Path) -> Client {
    let config = ClientConfig::new("http://localhost").unwrap().with_token_file(token);
    let wire = Arc::new(Wire(Arc::clone(server)));
    Client::builder().config(config).connector(wire).environment(environment()).build().unwrap()
}

fn tokens(server: &Server) -> Vec<String> {
    let token = |seen: &Seen| seen.headers[AUTHORIZATION].to_str().unwrap().to_owned();
    server.seen().iter().map(token).collect()
}

#[tokio::test(start_paused = true)]
async fn a8_three_hours_of_a_token_that_is_rotated_each_minute() {
    let token = folder("hours").join("token");
    let server = Server::with([Reply::Answer(200, "{}")]);
    std::fs::write(&token, "token-0").unwrap();
    let client = over(&server, &token);
    for minute in 0..180 {
        std::fs::write(&token, format!("token-{minute}\n")).unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        client.send(get()).await.unwrap();
        assert_eq!(*tokens(&server).last().unwrap(), format!("Bearer token-{minute}"));
    }
    assert_eq!(server.count(), 180);
}

#[tokio::test(start_paused = true)]
async fn a8_an_expired_token_is_read_again_at_once_and_any_verb_is_sent_once_more() {
    for (n, request) in [get(), create(), apply()].into_iter().enumerate() {
        let token = folder(&format!("expired-{n}")).join("token");
        std::fs::write(&token, "old").unwrap();
        let server = Server::with([
            Reply::Answer(200, "{}"),
            Reply::Answer(401, "{}"),
            Reply::Answer(200, "{}"),
        ]);
        let client = over(&server, &token);
        client.send(get()).await.unwrap();
        std::fs::write(&token, "new").unwrap();
        client.send(request).await.unwrap();
        assert_eq!(tokens(&server), ["Bearer old", "Bearer old", "Bearer new"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a8_a_revoked_token_is_tried_twice_and_the_error_names_its_file() {
    let token = folder("revoked").join("token");
    std::fs::write(&token, "canary").unwrap();
    let server = Server::with([Reply::Answer(401, "{}")]);
    let error = over(&server, &token).send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert_eq!(server.count(), 2);
    let text = error.to_string();
    assert!(text.contains(&token.display().to_string()) && text.contains("renew"), "{text}");
    assert!(!format!("{text} {error:?}").contains("canary"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a8_many_requests_that_are_refused_together_read_the_token_once_more() {
    let token = folder("together").join("token");
    std::fs::write(&token, "old").unwrap();
    let replies = [Reply::Answer(401, "{}"), Reply::Answer(401, "{}"), Reply::Answer(200, "{}")];
    let server = Server::with(replies);
    let client = over(&server, &token);
    client.shared.credentials.header().await.unwrap();
    std::fs::write(&token, "new").unwrap();
    let (one, two) = tokio::join!(client.send(get()), client.send(create()));
    one.unwrap();
    two.unwrap();
    assert_eq!(tokens(&server), ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]);
}

#[tokio::test]
async fn a_token_that_stands_beside_its_files_name_is_used_until_the_file_can_be_read() {
    let path = folder("beside").join("token");
    let text = format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'http://localhost'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{token: inline, tokenFile: '{}'}}}}]\n",
        path.display()
    );
    let config = ClientConfig::from_yaml(&text, None).unwrap();
    let server = Server::with([Reply::Answer(200, "{}")]);
    let wire = Arc::new(Wire(Arc::clone(&server)));
    let builder = Client::builder().config(config).connector(wire);
    let client = builder.build().unwrap();
    client.send(get()).await.unwrap();
    std::fs::write(&path, "filed").unwrap();
    let current = client.shared.credentials.header().await.unwrap();
    client.shared.credentials.refused(current.as_ref()).await;
    client.send(get()).await.unwrap();
    assert_eq!(tokens(&server), ["Bearer inline", "Bearer filed"]);
}

/// A TLS server with HTTP/2 whose certificate and trusted CAs can be swapped.
struct Secure {
    config: Mutex<Arc<rustls::ServerConfig>>,
    /// Client certificates of the received requests, in order.
    peers: Mutex<Vec<Vec<u8>>>,
    connections: AtomicU32,
    /// Each change shuts all connections down gracefully.
    farewell: watch::Sender<u32>,
    /// Lets `/stream` continue.
    go: Notify,
    /// Client certificate that gets 401.
    revoked: Mutex<Vec<u8>>,
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// A server certificate of `pki`, for clients of any of `trusted`.
fn server_config(pki: &Pki, trusted: &[&Pki]) -> Arc<rustls::ServerConfig> {
    let (certificate, key) = pki.sign("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
    let provider = crate::client::transport::default_provider().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    for pki in trusted {
        roots.add(der(&pki.ca)).unwrap();
    }
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::clone(&provider),
    );
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![der(&certificate)],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

impl Secure {
    async fn start(config: Arc<rustls::ServerConfig>) -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let this = Arc::new(Self {
            config: Mutex::new(config),
            peers: Mutex::default(),
            connections: AtomicU32::new(0),
            farewell: watch::Sender::new(0),
            go: Notify::new(),
            revoked: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&this).accept(listener));
        (this, port)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = TlsAcceptor::from(Arc::clone(&self.config.lock()));
            let this = Arc::clone(&self);
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(tcp).await else { return };
                this.connections.fetch_add(1, Ordering::Relaxed);
                let peer = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
                let mut farewell = this.farewell.subscribe();
                let service = service_fn(move |request: http::Request<Incoming>| {
                    this.peers.lock().push(peer.clone());
                    let revoked = *this.revoked.lock() == peer;
                    Arc::clone(&this).answer(request, revoked)
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let serving = builder.serve_connection(TokioIo::new(stream), service);
                let mut serving = std::pin::pin!(serving);
                tokio::select! {
                    biased;
                    _ = serving.as_mut() => {}
                    _ = farewell.changed() => {
                        serving.as_mut().graceful_shutdown();
                        let _ = serving.await;
                    }
                }
            });
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<Incoming>,
        revoked: bool,
    ) -> Result<http::Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
        if revoked {
            return Ok(response(401, "{}"));
        }
        if request.uri().path() != "/stream" {
            return Ok(response(200, "{}"));
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let frame = |text: &'static str| Ok::<_, BoxError>(Frame::data(Bytes::from(text)));
            sender.send(frame("first\n")).await?;
            self.go.notified().await;
            sender.send(frame("second\n")).await?;
            Ok::<_, BoxError>(())
        });
        Ok(http::Response::new(Frames(receiver).boxed_unsync()))
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Body of the frames from a channel.
struct Frames(tokio::sync::mpsc::Receiver<Result<Frame<Bytes>, BoxError>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(cx)
    }
}

/// Lets time pass, while no request is under way.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Runs eight tasks that read and create, and returns the number of requests. None may fail.
async fn load(client: &Client) -> usize {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        tasks.spawn(async move {
            for _ in 0..10 {
                client.send(get()).await.unwrap();
                client.send(create()).await.unwrap();
            }
        });
    }
    tasks.join_all().await.len() * 20
}

/// A client certificate of `pki`, written into the files that the client reads; DER.
fn write_identity(folder: &Path, pki: &Pki) -> Vec<u8> {
    let (certificate, key) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
    std::fs::write(folder.join("tls.key"), key).unwrap();
    std::fs::write(folder.join("tls.crt"), &certificate).unwrap();
    der(&certificate).to_vec()
}

fn secured(folder: &Path, port: u16) -> Client {
    let config = ClientConfig::new(&format!("https://127.0.0.1:{port}"))
        .unwrap()
        .with_ca_file(folder.join("ca.crt"))
        .with_identity_files(folder.join("tls.crt"), folder.join("tls.key"));
    Client::new(config).unwrap()
}

fn watching() -> Prepared {
    let mut request = Prepared::get("/stream", "watch configmaps");
    request.verb = Verb::Watch;
    request
}

#[tokio::test]
async fn a9_a_client_certificate_rotated_under_load_loses_no_request_and_cuts_no_stream() {
    let folder = folder("identity");
    let (old, new) = (Pki::new(), Pki::new());
    std::fs::write(folder.join("ca.crt"), &old.ca).unwrap();
    let first = write_identity(&folder, &old);
    let (server, port) = Secure::start(server_config(&old, &[&old, &new])).await;
    let client = secured(&folder, port);
    let mut stream = client.stream(watching()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "first\n");
    load(&client).await;
    assert!(server.peers.lock().iter().all(|peer| *peer == first));
    let before = server.connections();

    // Half-way: the key is new, the certificate is not. Nothing changes.
    let (_, key) = new.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
    std::fs::write(folder.join("tls.key"), key).unwrap();
    pass(Duration::from_secs(60)).await;
    load(&client).await;
    assert_eq!(server.connections(), before);

    // Complete: noticed soon, and used by every request from then on.
    let second = write_identity(&folder, &new);
    pass(Duration::from_secs(5)).await;
    let from = server.peers.lock().len();
    let sent = load(&client).await;
    let peers = server.peers.lock()[from..].to_vec();
    assert_eq!(peers.len(), sent);
    // No request waits while the files are read, so the first few still use the old certificate.
    assert!(peers[sent - 80..].iter().all(|peer| *peer == second));

    // Also within a minute without a failure.
    let third = write_identity(&folder, &new);
    pass(Duration::from_secs(60)).await;
    load(&client).await;
    assert_eq!(*server.peers.lock().last().unwrap(), third);
    assert!(server.connections() <= before + 4, "{}", server.connections());

    // The stream continues on the first connection.
    server.go.notify_one();
    assert_eq!(stream.next().await.unwrap().unwrap(), "second\n");
    assert!(stream.next().await.is_none());
}

/// All requests are refused at once; each finds the new certificate, whichever request reads the
/// files.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a9_a_client_certificate_revoked_under_load_is_replaced_by_the_new_one_in_every_request() {
    let folder = folder("revoked-certificate");
    let pki = Pki::new();
    std::fs::write(folder.join("ca.crt"), &pki.ca).unwrap();
    let mut current = write_identity(&folder, &pki);
    let (server, port) = Secure::start(server_config(&pki, &[&pki])).await;
    let client = secured(&folder, port);
    client.send(get()).await.unwrap();
    for _ in 0..5 {
        let next = write_identity(&folder, &pki);
        *server.revoked.lock() = std::mem::replace(&mut current, next);
        load(&client).await;
    }
    assert!(server.connections() <= 12, "{}", server.connections());
}

#[tokio::test]
async fn a9_a_ca_swapped_at_the_server_is_noticed_by_the_handshake_that_fails() {
    let folder = folder("ca");
    let (old, new) = (Pki::new(), Pki::new());
    std::fs::write(folder.join("ca.crt"), &old.ca).unwrap();
    write_identity(&folder, &old);
    let (server, port) = Secure::start(server_config(&old, &[&old])).await;
    let client = secured(&folder, port);
    load(&client).await;
    // The server comes back with a certificate of a new CA, in the middle of the load; a moment
    // before, the new CA got into the file that we had read a moment before that.
    let loading = load(&client);
    let rotation = async {
        std::fs::write(folder.join("ca.crt"), &new.ca).unwrap();
        *server.config.lock() = server_config(&new, &[&old]);
        server.farewell.send_modify(|times| *times += 1);
    };
    tokio::join!(loading, rotation);
    load(&client).await;
    // A CA that clients do not trust: reported, and resolved when the file comes.
    *server.config.lock() = server_config(&old, &[&old]);
    server.farewell.send_modify(|times| *times += 1);
    let failed = async {
        loop {
            let mut request = get();
            request.timeout = Some(Duration::from_millis(500));
            if let Err(error) = client.send(request).await {
                return error;
            }
        }
    };
    let error: Error = failed.await;
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("TLS handshake failed"), "{error}");
    std::fs::write(folder.join("ca.crt"), &old.ca).unwrap();
    client.send(get()).await.unwrap();
}

#[tokio::test]
async fn a9_a_ca_that_is_withdrawn_from_the_file_is_trusted_for_no_longer_than_a_minute() {
    let folder = folder("withdrawn");
    let (old, new) = (Pki::new(), Pki::new());
    std::fs::write(folder.join("ca.crt"), &old.ca).unwrap();
    write_identity(&folder, &old);
    let (server, port) = Secure::start(server_config(&old, &[&old])).await;
    let client = secured(&folder, port);
    load(&client).await;
    let before = server.connections();
    // Both, as in every careful rotation: new connections, no failure.
    std::fs::write(folder.join("ca.crt"), format!("{}{}", old.ca, new.ca)).unwrap();
    pass(Duration::from_secs(60)).await;
    load(&client).await;
    assert!(server.connections() > before);
    std::fs::write(folder.join("ca.crt"), &new.ca).unwrap();
    pass(Duration::from_secs(60)).await;
    let mut request = get();
    request.timeout = Some(Duration::from_millis(500));
    assert_eq!(client.send(request).await.unwrap_err().kind(), ErrorKind::Connect);
}

#[tokio::test]
async fn a9_another_client_certificate_of_a_plugin_leads_to_new_connections() {
    let folder = folder("plugin");
    let pki = Pki::new();
    let shown = folder.display();
    // The credential has expired already, so that the plugin runs again every 5 s.
    let script = format!("cat {shown}/credential");
    let credential = || {
        let (certificate, key) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
        let text = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {
                "clientCertificateData": certificate,
                "clientKeyData": key,
                "expirationTimestamp": "2001-01-01T00:00:00Z",
            },
        });
        std::fs::write(folder.join("credential"), text.to_string()).unwrap();
        der(&certificate).to_vec()
    };
    let (server, port) = Secure::start(server_config(&pki, &[&pki])).await;
    let config = ClientConfig::new(&format!("https://127.0.0.1:{port}"))
        .unwrap()
        .with_ca(&pki.ca)
        .with_exec(ExecPlugin::new("/bin/sh").arg("-c").arg(script));
    let client = Client::new(config).unwrap();
    let first = credential();
    client.send(get()).await.unwrap();
    client.send(get()).await.unwrap();
    assert_eq!((server.connections(), server.peers.lock().clone()), (1, vec![first; 2]));
    let second = credential();
    pass(Duration::from_secs(5)).await;
    client.send(create()).await.unwrap();
    client.send(get()).await.unwrap();
    assert_eq!(server.connections(), 2);
    assert_eq!(server.peers.lock()[2..], [second.clone(), second]);
}

#[tokio::test]
async fn any_crypto_provider_is_taken_as_a_value() {
    let pki = Pki::new();
    let port = pki.serve("127.0.0.1", &["h2"], false).await;
    let mut provider = (*crate::client::transport::default_provider().unwrap()).clone();
    // A single suite of TLS 1.2: the server's answer shows which provider was used.
    provider.cipher_suites.retain(|suite| suite.tls13().is_none());
    provider.cipher_suites.truncate(1);
    let config = super::tls::at(port).with_ca(&pki.ca);
    let builder = Client::builder().config(config.clone()).crypto_provider(Arc::new(provider));
    builder.build().unwrap().send(get()).await.unwrap();
    let mut none = (*crate::client::transport::default_provider().unwrap()).clone();
    none.cipher_suites.clear();
    let error = Client::builder().config(config).crypto_provider(Arc::new(none)).build();
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Config);
    assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "no process-wide provider");
}
