//! Requests of clients that mean well.

use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use windlass_runtime::manager::{Exit, Manager};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_review_is_answered_over_tls_and_counted() {
    let hooks = Hooks::start().await;
    let (code, body) = hooks.ask(json!({ "invalid": "x" })).await;
    assert_eq!((code, &body["response"]["status"]["code"]), (200, &json!(422)));
    let counted = |code| hooks.metrics.counted(&names::WEBHOOK_REQUESTS, &[VALIDATE, code]);
    assert_eq!((counted("200"), counted("500")), (1, 0));
    let (code, _) = hooks.ask(json!({ "panic": "x" })).await;
    assert_eq!((code, counted("500")), (500, 1));
    assert_eq!(hooks.metrics.counted(&names::WEBHOOK_PANICS, &[]), 1);
    assert_eq!(hooks.metrics.level(&names::WEBHOOK_IN_FLIGHT, &[VALIDATE]), Some(0.0));
    let text = hooks.metrics.encode();
    for name in [
        "controller_runtime_webhook_requests_total{webhook=\"/validate--v1-configmap\",code=\"200\"} 1",
        "controller_runtime_webhook_latency_seconds_count{webhook=\"/validate--v1-configmap\"} 2",
        "controller_runtime_webhook_requests_in_flight{webhook=\"/mutate--v1-configmap\"} 0.0",
        "controller_runtime_webhook_panics_total",
    ] {
        assert!(text.contains(name), "{name}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_path_is_refused_before_its_body_comes() {
    let hooks = Hooks::start().await;
    let mut stream = hooks.tls().await;
    let head = b"POST /other HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, head).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
}

#[tokio::test(start_paused = true)]
async fn http2_is_spoken_only_when_it_is_switched_on() {
    for (is_on, wanted) in [(false, &b"http/1.1"[..]), (true, b"h2")] {
        let hooks = Hooks::start_with(|server| if is_on { server.http2() } else { server }).await;
        let config = hooks.authority.client(&["h2", "http/1.1"]);
        let stream = connect(config, hooks.pipe(64 * 1024).await).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(wanted));
        if is_on {
            let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let (parts, body) = request("", json!({ "warn": "over http/2" })).into_parts();
            let asked = Request::from_parts(parts, ());
            let (answer, mut sender) = client.send_request(asked, false).unwrap();
            let body = body.collect().await.unwrap().to_bytes();
            sender.send_data(body, true).unwrap();
            assert_eq!(answer.await.unwrap().status(), 200);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_outlives_the_idle_time_of_api_servers_and_then_ends() {
    let hooks = Hooks::start().await;
    let mut sender = hooks.http().await;
    for _ in 0..2 {
        assert_eq!(send(&mut sender, "", json!({})).await.0, 200);
        pass(100).await;
    }
    assert_eq!(hooks.open(), 1.0);
    pass(60).await;
    assert_eq!(hooks.open(), 0.0);
    assert_eq!((hooks.closed("headers"), hooks.closed("idle")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn w1_a_new_certificate_is_shown_to_new_connections_and_the_old_ones_go_on() {
    let hooks = Hooks::start().await;
    let mut old = hooks.http().await;
    assert_eq!(send(&mut old, "", json!({})).await.0, 200);
    let next = Authority::new("second");
    let (chain, key) = next.issue();
    let certificate = hooks.status.certificate().unwrap();
    certificate.set(chain.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(send(&mut old, "", json!({})).await.0, 200);
    let distrusting = connect(hooks.authority.client(&[]), hooks.pipe(64 * 1024).await).await;
    assert!(distrusting.is_err());
    let stream = connect(next.client(&[]), hooks.pipe(64 * 1024).await).await.unwrap();
    assert_eq!(send(&mut http(stream).await, "", json!({})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn w5_the_time_for_a_body_counts_to_the_deadline_of_the_review() {
    use tokio::io::AsyncWriteExt;
    let hooks = Hooks::start().await;
    let mut stream = hooks.tls().await;
    let body = review("CREATE", map(json!({ "hang": "" })), Value::Null).to_string();
    let head = format!(
        "POST {VALIDATE}?timeout=3s HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let began = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    pass(2).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 504");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3) && took > Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn with_a_client_ca_only_its_clients_are_answered() {
    let clients = Authority::new("clients");
    let folder = super::certificates::Folder::new("client-ca");
    folder.write("ca.crt", &clients.pem);
    let path = folder.path().join("ca.crt");
    let hooks = Hooks::start_with(|server| server.client_ca(path)).await;
    pass(1).await;
    for (identity, is_answered) in [
        (None, false),
        (Some(Authority::new("others").issue_for_client()), false),
        (Some(clients.issue_for_client()), true),
    ] {
        let config = hooks.authority.client_with(&[], identity);
        // With TLS 1.3 the client hears of the refusal after the handshake.
        let stream = connect(config, hooks.pipe(64 * 1024).await).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let answer = sender.send_request(request("", json!({}))).await;
        assert_eq!(answer.is_ok(), is_answered, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_ca_that_cannot_be_read_is_shown_by_readiness() {
    let clients = Authority::new("clients");
    let folder = super::certificates::Folder::new("no-client-ca");
    let path = folder.path().join("ca.crt");
    let hooks = Hooks::start_with(|server| server.client_ca(path)).await;
    let check = || {
        let checks = hooks.status.checks();
        let check = checks.into_iter().find(|check| check.name == "webhook client CA");
        check.map(|check| (check.ok, check.detail))
    };
    pass(10).await;
    let (ok, detail) = check().expect("it is shown");
    assert!(!ok && detail.contains("no connection is accepted"), "{detail}");
    assert!(detail.contains("cannot read") && detail.contains("ca.crt"), "{detail}");
    folder.write("ca.crt", &clients.pem);
    pass(10).await;
    assert_eq!(check(), None);
    for text in ["", "-----BEGIN CERTIFICATE-----\nMII"] {
        folder.write("ca.crt", text);
        pass(10).await;
        let (ok, detail) = check().expect("it is shown");
        assert!(ok && detail.contains("the one before stays in use"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_two_webhooks_of_one_path_ends_the_operator() {
    let twice = Webhooks::new().validating(Rules).validating(Rules);
    let error = |server: WebhookServer| async {
        let manager = Manager::new(Client::offline()).quiet().without_signals();
        let error = manager.runnable(server).run().await.unwrap_err();
        format!("{error:?}")
    };
    let two = error(WebhookServer::new(twice)).await;
    assert!(two.contains("another one has this path"), "{two}");
}

#[tokio::test(start_paused = true)]
async fn w4_the_manager_serves_before_its_caches_are_listed_and_until_its_end() {
    let authority = Authority::new("first");
    let (chain, key) = authority.issue();
    let (dial, accepted) = mpsc::channel(16);
    let server = WebhookServer::new(Webhooks::new().validating(Rules))
        .certificates(Fixed(chain, key))
        .listener(Pipes(Mutex::new(accepted)));
    let manager = Manager::new(Client::offline()).quiet().without_signals().runnable(server);
    let running = manager.start();
    // Its list fails for ever, as that of a kind whose conversion waits for this server would.
    let _cache = running.informers().pinned::<ConfigMap>();
    let (near, far) = tokio::io::duplex(64 * 1024);
    dial.send(Box::new(far) as BoxIo).await.unwrap();
    let served =
        tokio::time::timeout(Duration::from_secs(60), connect(authority.client(&[]), near));
    let mut sender = http(served.await.expect("nobody waits for the caches").unwrap()).await;
    assert_eq!(send(&mut sender, "", json!({})).await.0, 200);
    let checks = running.readiness().checks;
    let check = checks.iter().find(|check| check.name == "webhook certificate").unwrap();
    assert!(check.ok && check.detail.contains("4096-01-01"), "{check:?}");
    assert!(checks.iter().any(|check| check.name.starts_with("cache ") && !check.ok), "{checks:?}");
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// Any Pod may reach the port.
#[tokio::test(start_paused = true)]
async fn a_request_to_a_long_path_that_no_webhook_has_is_logged_in_short() {
    let captured = super::logs::Captured::default();
    let _logs = tracing::subscriber::set_default(captured.clone());
    let hooks = Hooks::start().await;
    let before = captured.text().len();
    let mut sender = hooks.http().await;
    let request = Request::post(format!("/{}", "x".repeat(8000))).header("host", pki::NAME);
    let answer = sender.send_request(request.body(Full::default()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let logged = captured.text().split_off(before);
    let ours: usize = logged.lines().filter(|line| line.contains("xxxx")).map(str::len).sum();
    assert!(code == 404 && ours < 1000 && body.len() < 1000, "{code}, {ours}, {}", body.len());
}
