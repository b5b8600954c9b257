use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::{Authority, PemIdentity};

fn authority() -> Authority {
    let own = PemIdentity::generate_authority().unwrap();
    Authority::new(&own, [192, 0, 2, 7].into(), Vec::new()).unwrap()
}

#[test]
fn the_administrators_certificate_names_the_masters() {
    let authority = authority();
    let der = CertificateDer::from_pem_slice(authority.admin.certificate.as_bytes()).unwrap();
    let user = crate::auth::identity::user_of(&der).unwrap();
    assert_eq!(user.name, "kubernetes-admin");
    assert_eq!(user.groups, ["system:masters"]);
}

#[test]
fn certificates_are_version_three_with_an_issuer_name_and_all_addresses() {
    let authority = authority();
    let config = authority.server_config(authority.clients().unwrap()).unwrap();
    assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    let parsed = webpki::EndEntityCert::try_from(&authority.server)
        .expect("version 3, all others are errors");
    let issuer = b"windlass-apiserver-ca";
    assert!(parsed.issuer().windows(issuer.len()).any(|part| part == issuer));
    let names: Vec<&str> = parsed.valid_dns_names().collect();
    let service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    assert!(names.contains(&"localhost"), "{names:?}");
    assert!(service.iter().all(|name| names.contains(name)), "{names:?}");
    for address in ["127.0.0.1", "::1", "192.0.2.7"] {
        let name = address.try_into().unwrap();
        parsed.verify_is_valid_for_subject_name(&name).expect(address);
    }
}

#[test]
fn the_kubeconfig_holds_everything_inline() {
    let text = super::kubeconfig::write("https://127.0.0.1:1", &authority(), "tok", &[]);
    for part in [
        "server: https://127.0.0.1:1\n",
        "token: tok\n",
        "client-key-data: ",
        "certificate-authority-data: ",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let (_, user) = text.split_once("- name: kubernetes-admin-token\n").unwrap();
    assert_eq!(user, "  user:\n    token: tok\n", "one context needs no private key");
}

#[test]
fn the_administrators_key_has_the_label_and_the_structure_of_sec1() {
    let key = authority().admin.key;
    assert!(key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{}", key.lines().next().unwrap());
    assert!(key.lines().all(|line| line.len() <= 64));
    let der = rustls_pki_types::PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let parts = yasna::parse_der(der.secret_der(), |reader| {
        reader.read_sequence(|reader| {
            let version = reader.next().read_u8()?;
            let secret = reader.next().read_bytes()?;
            let curve = reader.next().read_tagged(yasna::Tag::context(0), |r| r.read_oid())?;
            let public =
                reader.next().read_tagged(yasna::Tag::context(1), |r| r.read_bitvec_bytes())?;
            Ok((version, secret.len(), curve.to_string(), public.1))
        })
    });
    assert_eq!(parts.unwrap(), (1, 32, "1.2.840.10045.3.1.7".to_owned(), 65 * 8));
}

#[test]
fn further_users_have_contexts_of_their_own() {
    let more = [("a: \"b\"".to_owned(), "tok2".to_owned())];
    let text = super::kubeconfig::write("https://127.0.0.1:1", &authority(), "tok", &more);
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["contexts"][2]["name"], "windlass-a: \"b\"");
    assert_eq!(config["users"][2]["name"], config["contexts"][2]["context"]["user"]);
    assert_eq!(config["users"][2]["user"]["token"], "tok2");
}

/// Sends a request over TLS, with the administrator's certificate if `certificate`; returns status
/// and body.
async fn ask(
    listening: &crate::Listening,
    certificate: bool,
    token: Option<&str>,
    path: &str,
) -> (u16, String) {
    use base64::Engine;

    let field = |name: &str| {
        let line = listening.kubeconfig.lines().find_map(|l| l.trim().strip_prefix(name));
        let text = base64::engine::general_purpose::STANDARD.decode(line.unwrap().trim()).unwrap();
        String::from_utf8(text).unwrap()
    };
    let own = certificate.then(|| PemIdentity {
        certificate: field("client-certificate-data:"),
        key: field("client-key-data:"),
    });
    ask_as(listening, own, token, path).await
}

/// Sends a request over TLS, with a certificate if any; returns status and body.
async fn ask_as(
    listening: &crate::Listening,
    own: Option<PemIdentity>,
    token: Option<&str>,
    path: &str,
) -> (u16, String) {
    use std::sync::Arc;

    use base64::Engine;
    use http_body_util::{BodyExt, Empty};
    use rustls::crypto::ring;
    use rustls_pki_types::PrivateKeyDer;

    let field = |name: &str| {
        let line = listening.kubeconfig.lines().find_map(|l| l.trim().strip_prefix(name));
        base64::engine::general_purpose::STANDARD.decode(line.unwrap().trim()).unwrap()
    };
    let mut roots = rustls::RootCertStore::empty();
    let ca = field("certificate-authority-data:");
    roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = if let Some(own) = own {
        let chain = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
        builder.with_client_auth_cert(vec![chain], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let stream = tokio::net::TcpStream::connect(listening.addr).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let mut request = http::Request::get(path).header("host", "localhost");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&bytes).into_owned())
}

fn token(listening: &crate::Listening) -> String {
    let line = listening.kubeconfig.lines().find_map(|l| l.trim().strip_prefix("token: "));
    line.unwrap().to_owned()
}

#[tokio::test]
async fn certificates_tokens_and_nobody_are_told_apart_over_tls() {
    let server = crate::Builder::default().tokens("t,alice,1,\"dev\"").start();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    assert_ne!(listening.addr.port(), 0);
    let pods = "/api/v1/pods";
    assert_eq!(ask(&listening, true, None, pods).await.0, 200);
    assert_eq!(ask(&listening, false, Some(&token(&listening)), pods).await.0, 200);
    let (code, text) = ask(&listening, false, Some("t"), pods).await;
    assert_eq!(code, 403);
    assert!(text.contains("User \\\"alice\\\" cannot list resource \\\"pods\\\""), "{text}");
    let (code, text) = ask(&listening, false, None, pods).await;
    assert_eq!(code, 403);
    assert!(text.contains("system:anonymous"), "{text}");
    assert_eq!(ask(&listening, false, None, "/version").await.0, 200);
    assert_eq!(ask(&listening, false, Some("wrong"), "/version").await.0, 401);
    let root = server.get_object("", "configmaps", "default", "kube-root-ca.crt").unwrap();
    assert!(root["data"]["ca.crt"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE"));
    server.shutdown().await;
}

#[tokio::test]
async fn a_taken_address_is_an_error_that_names_it() {
    let server = crate::Builder::default().start();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let error = server.listen(listening.addr).await.unwrap_err();
    assert!(error.to_string().contains(&format!("cannot listen on {}", listening.addr)), "{error}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_certificate_of_a_foreign_authority_is_unauthorized_unless_a_token_counts() {
    let server = crate::Builder::default().start();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let foreign = || Some(authority().admin);
    // Anonymous requests are allowed here, but those with a wrong certificate are none.
    let (code, text) = ask_as(&listening, foreign(), None, "/version").await;
    assert_eq!(code, 401, "{text}");
    assert!(text.contains("\"message\":\"Unauthorized\""), "{text}");
    let own = token(&listening);
    assert_eq!(ask_as(&listening, foreign(), Some(&own), "/api/v1/pods").await.0, 200);
    server.shutdown().await;
}

#[tokio::test]
async fn the_address_of_the_server_is_that_of_the_service_kubernetes() {
    let server = crate::Builder::default().start();
    let addr = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap().addr;
    let get = |group: &str, plural: &str| {
        server.get_object(group, plural, "default", "kubernetes").unwrap()
    };
    let port = serde_json::json!(addr.port());
    let subset = &get("", "endpoints")["subsets"][0];
    assert_eq!(
        (&subset["addresses"][0]["ip"], &subset["ports"][0]["port"]),
        (&"127.0.0.1".into(), &port)
    );
    let slice = get("discovery.k8s.io", "endpointslices");
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["endpoints"][0]["addresses"][0], "127.0.0.1");
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "kubernetes");
    assert_eq!(get("", "services")["spec"]["ports"][0]["targetPort"], port);
    // A second socket takes the place of the first.
    let second = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap().addr;
    assert_eq!(get("", "endpoints")["subsets"][0]["ports"][0]["port"], second.port());
    server.shutdown().await;
}

/// Makes a request for a certificate, approves it, and returns the final status.
async fn signed(
    server: &crate::ApiServer,
    name: &str,
    pem: &str,
    spec: serde_json::Value,
) -> serde_json::Value {
    use base64::Engine;
    use serde_json::json;

    let mut client = crate::http::test_support::Client::of(server).await;
    let url = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let mut whole = json!({"request": base64::engine::general_purpose::STANDARD.encode(pem)});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let made = client.post(url, json!({"metadata": {"name": name}, "spec": whole})).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let mut approved = made.value.clone();
    approved["status"]["conditions"] =
        json!([{"type": "Approved", "status": "True", "reason": "Test", "message": "yes"}]);
    let reply = client.put(&format!("{url}/{name}/approval"), approved).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    for _ in 0..100_000 {
        let held = client.get(&format!("{url}/{name}")).await.value;
        let conditions = held["status"]["conditions"].as_array().unwrap().len();
        if held["status"]["certificate"].is_string() || conditions > 1 {
            return held["status"].clone();
        }
        tokio::task::yield_now().await;
    }
    panic!("the request {name} is neither signed nor refused");
}

/// Returns a key, and a request in PEM for a name in groups.
fn request(name: &str, groups: &[&str]) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["host.example".to_owned()]).unwrap();
    if !groups.contains(&"hosts") {
        params.subject_alt_names.clear();
    }
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    for group in groups.iter().filter(|group| **group != "hosts") {
        params.distinguished_name.push(rcgen::DnType::OrganizationName, *group);
    }
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    (key.serialize_pem(), pem)
}

#[tokio::test]
async fn an_approved_request_is_signed_and_its_certificate_lets_the_user_in() {
    use base64::Engine;
    use serde_json::json;

    let set = "*,csrsigning".parse().unwrap();
    let server = crate::Builder::default().controller_set(set).start();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (key, pem) = request("alice", &["hosts"]);
    let client = json!({"signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["digital signature", "client auth"], "expirationSeconds": 3600});
    let status = signed(&server, "alice", &pem, client.clone()).await;
    let text = status["certificate"].as_str().expect("a certificate");
    let text = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let own = PemIdentity { certificate: String::from_utf8(text).unwrap(), key };
    let (code, text) = ask_as(&listening, Some(own), None, "/api/v1/pods").await;
    assert_eq!(code, 403, "{text}");
    assert!(text.contains("User \\\"alice\\\" cannot list"), "{text}");

    let mut wrong = client;
    wrong["usages"] = json!(["server auth"]);
    let status = signed(&server, "wrong", &pem, wrong).await;
    assert_eq!(status["certificate"], serde_json::Value::Null);
    assert_eq!(status["conditions"][1]["type"], "Failed");
    assert_eq!(
        status["conditions"][1]["message"],
        "invalid usage for client certificate: server auth"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn requests_of_kubelets_need_the_name_of_a_node() {
    use serde_json::json;

    let set = "csrsigning".parse().unwrap();
    let server = crate::Builder::default().controller_set(set).start();
    server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubelet = json!({"signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"]});
    let serving = json!({"signerName": "kubernetes.io/kubelet-serving",
        "usages": ["digital signature", "key encipherment", "server auth"]});
    for (number, (name, groups, spec, why)) in [
        ("system:node:a", vec!["system:nodes"], &kubelet, None),
        ("system:node:a", vec!["system:nodes", "hosts"], &serving, None),
        ("system:node:a", vec![], &kubelet, Some("subject organization is not system:nodes")),
        (
            "a",
            vec!["system:nodes"],
            &kubelet,
            Some("subject common name does not begin with system:node:"),
        ),
        (
            "system:node:a",
            vec!["system:nodes"],
            &serving,
            Some("DNS or IP subjectAltName is required"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (_, pem) = request(name, &groups);
        let status = signed(&server, &format!("r{number}"), &pem, spec.clone()).await;
        match why {
            None => assert!(status["certificate"].is_string(), "{status}"),
            Some(why) => assert_eq!(status["conditions"][1]["message"], why),
        }
    }
    server.shutdown().await;
}
