//! Requests over loopback TCP and TLS.

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::client::tests::*;
use windlass_core::error::ErrorKind;

/// Certificates of a test: a CA, and certificates signed by the CA.
pub(in crate::client) struct Pki {
    pub(in crate::client) ca: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Pki {
    pub(in crate::client) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        Self { ca, issuer: Issuer::new(params, key) }
    }

    pub(in crate::client) fn sign(
        &self,
        name: &str,
        usage: ExtendedKeyUsagePurpose,
    ) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Runs a server that requires a client certificate if `mutual`, and echoes protocol and host.
    pub(in crate::client) async fn serve(
        &self,
        name: &str,
        protocols: &[&str],
        mutual: bool,
    ) -> u16 {
        let (certificate, key) = self.sign(name, ExtendedKeyUsagePurpose::ServerAuth);
        let provider = crate::client::transport::default_provider().unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let certificates = |pem: &str| {
            let all = rustls_pki_types::CertificateDer::pem_slice_iter(pem.as_bytes());
            all.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let builder = if mutual {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(certificates(&self.ca).remove(0)).unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                provider,
            );
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let mut config = builder.with_single_cert(certificates(&certificate), key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config))));
        port
    }
}

/// Runs a server that answers 401 to clients whose certificate is not in `accepted`, as an API
/// server does once a certificate has expired on an open connection.
async fn serve_only(pki: &Pki, accepted: Arc<Mutex<Vec<u8>>>) -> u16 {
    let (certificate, key) = pki.sign("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
    let provider = crate::client::transport::default_provider().unwrap();
    let der = |pem: &str| rustls_pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der(&pki.ca)).unwrap();
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::clone(&provider),
    );
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![der(&certificate)],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(tcp).await else { continue };
            let peer = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            let accepted = Arc::clone(&accepted);
            let service = service_fn(move |_: http::Request<Incoming>| {
                let code = if *accepted.lock() == peer { 200 } else { 401 };
                async move { Ok::<_, Infallible>(response(code, "{}")) }
            });
            let builder = hyper::server::conn::http1::Builder::new();
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    port
}

#[tokio::test]
async fn a_401_makes_the_next_attempt_present_a_rotated_client_certificate() {
    let pki = Pki::new();
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let port = serve_only(&pki, Arc::clone(&accepted)).await;
    let folder = std::env::temp_dir().join(format!("windlass-rotation-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rotate = || {
        let (certificate, key) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
        std::fs::write(folder.join("tls.crt"), &certificate).unwrap();
        std::fs::write(folder.join("tls.key"), key).unwrap();
        let der = rustls_pki_types::CertificateDer::from_pem_slice(certificate.as_bytes());
        *accepted.lock() = der.unwrap().to_vec();
    };
    rotate();
    let shown = folder.display();
    let text = format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{client-certificate: '{shown}/tls.crt', client-key: \
         '{shown}/tls.key'}}}}]\n"
    );
    let config = ClientConfig::from_yaml(&text, None).unwrap().with_ca(&pki.ca);
    let client = Client::new(config).unwrap();
    client.send(get()).await.unwrap();
    rotate();
    client.send(create()).await.unwrap();
    accepted.lock().clear();
    let error = client.send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor) {
    while let Ok((tcp, _)) = listener.accept().await {
        let Ok(stream) = acceptor.accept(tcp).await else { continue };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = TokioIo::new(stream);
        let service = service_fn(|request: http::Request<Incoming>| async move {
            let host = request.uri().authority().map(ToString::to_string);
            let header = request.headers().get("host").and_then(|host| host.to_str().ok());
            let host = host.or(header.map(str::to_owned)).unwrap_or_default();
            let text = format!("{:?} {host}", request.version());
            Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from(text))))
        });
        tokio::spawn(async move {
            if http2 {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(io, service).await;
            } else {
                let builder = hyper::server::conn::http1::Builder::new();
                let _ = builder.serve_connection(io, service).await;
            }
        });
    }
}

pub(in crate::client) async fn answer(
    config: ClientConfig,
) -> Result<String, windlass_core::Error> {
    let mut request = get();
    request.timeout = Some(std::time::Duration::from_millis(700));
    let answer = Client::new(config)?.send(request).await?;
    Ok(String::from_utf8(answer.body.to_vec()).unwrap())
}

pub(in crate::client) fn at(port: u16) -> ClientConfig {
    ClientConfig::new(&format!("https://127.0.0.1:{port}")).unwrap()
}

#[tokio::test]
async fn http2_is_spoken_where_the_server_offers_it_and_http1_elsewhere() {
    let pki = Pki::new();
    let port = pki.serve("127.0.0.1", &["h2", "http/1.1"], false).await;
    let text = answer(at(port).with_ca(&pki.ca)).await.unwrap();
    assert_eq!(text, format!("HTTP/2.0 127.0.0.1:{port}"));
    let port = pki.serve("127.0.0.1", &[], false).await;
    let text = answer(at(port).with_ca(&pki.ca)).await.unwrap();
    assert_eq!(text, format!("HTTP/1.1 127.0.0.1:{port}"));
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn an_upgrade_speaks_http1_also_where_the_server_prefers_http2() {
    let pki = Pki::new();
    let port = pki.serve("127.0.0.1", &["h2", "http/1.1"], false).await;
    let client = Client::new(at(port).with_ca(&pki.ca)).unwrap();
    client.send(get()).await.unwrap();
    let error = client.upgrade(&get(), &["v5.channel.k8s.io"]).await.err().unwrap();
    assert!(error.to_string().contains("the answer was HTTP 200 and no upgrade"), "{error}");
}

#[tokio::test]
async fn a_server_of_another_ca_is_not_trusted_unless_configured() {
    let pki = Pki::new();
    let port = pki.serve("127.0.0.1", &["h2"], false).await;
    let error = answer(at(port).with_ca(&Pki::new().ca)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("TLS handshake failed"), "{error}");
    let kubeconfig = |extra: &str| {
        let text = format!(
            "current-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', {extra}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c}}}}]\n"
        );
        ClientConfig::from_yaml(&text, None).unwrap()
    };
    answer(kubeconfig("insecure-skip-tls-verify: true")).await.unwrap();
}

#[tokio::test]
async fn tls_server_name_is_what_the_certificate_must_carry() {
    let pki = Pki::new();
    let port = pki.serve("kubernetes.default", &["h2"], false).await;
    assert!(answer(at(port).with_ca(&pki.ca)).await.is_err());
    let text = format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', tls-server-name: \
         kubernetes.default}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c}}}}]\n"
    );
    let config = ClientConfig::from_yaml(&text, None).unwrap().with_ca(&pki.ca);
    answer(config).await.unwrap();
}

#[tokio::test]
async fn a_client_certificate_is_presented_where_the_server_asks() {
    let pki = Pki::new();
    let port = pki.serve("127.0.0.1", &["h2"], true).await;
    let config = at(port).with_ca(&pki.ca);
    assert!(answer(config.clone()).await.is_err());
    let (certificate, key) = pki.sign("admin", ExtendedKeyUsagePurpose::ClientAuth);
    answer(config.with_identity(&certificate, key)).await.unwrap();
}

#[tokio::test]
async fn unusable_certificates_are_reported_when_the_client_is_made() {
    let error = Client::new(at(1).with_ca("no certificate")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let pki = Pki::new();
    let error = Client::new(at(1).with_ca(&pki.ca).with_identity("x", "y")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[test]
fn the_crates_features_choose_the_cryptography() {
    let provider = crate::client::transport::default_provider().unwrap();
    let expected = if cfg!(feature = "ring") { "Ring" } else { "AwsLcRs" };
    assert_eq!(format!("{:?}", provider.key_provider), expected);
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_ends_the_call_at_once_and_says_what_to_do() {
    let (pki, other) = (Pki::new(), Pki::new());
    let port = pki.serve("127.0.0.1", &["h2"], false).await;
    let table = [
        (at(port).with_ca(&other.ca), "certificate-authority of the program"),
        (at(port).with_ca(&pki.ca).with_tls_server_name("other.example"), "tls-server-name"),
    ];
    for (config, advice) in table {
        let client = Client::new(config).unwrap();
        for request in [get(), create()] {
            let error = client.send(request).await.unwrap_err();
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Connect, "{text}");
            assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains(advice), "{text}");
            assert!(text.contains("invalid peer certificate"), "{text}");
            assert!(!text.contains("tried"), "{text}");
        }
    }
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn an_upgrade_to_a_server_that_is_not_trusted_is_tried_once() {
    use k8s_openapi::api::core::v1::Pod;
    let port = Pki::new().serve("127.0.0.1", &["http/1.1"], false).await;
    let client = Client::new(at(port).with_ca(&Pki::new().ca)).unwrap();
    let pods = client.namespace::<Pod>("shop");
    let error = pods.exec("db-0", &["x"], Default::default()).await.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Connect, "{text}");
    assert!(text.contains("certificate-authority of") && !text.contains("tried"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn tls_to_a_port_that_speaks_none_is_reported() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let _ = tcp.read(&mut [0; 4096]).await;
            let _ = tcp.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let client = Client::new(at(port).with_ca(&Pki::new().ca)).unwrap();
    let text = client.send(get()).await.unwrap_err().to_string();
    assert!(text.contains("does the server speak TLS"), "{text}");
}
