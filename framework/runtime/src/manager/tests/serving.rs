//! Probes, metrics and the debug page: the detail that each client gets, and that none starves
//! another.

use super::*;

fn get_from(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
}

/// S10: a page open in a browser may have its own name pointed at 127.0.0.1, and asks with that
/// name.
#[tokio::test(start_paused = true)]
async fn the_debug_page_and_metrics_on_loopback_are_refused_to_a_foreign_name() {
    let endpoints = endpoints();
    for path in ["/debug", "/debug/recording", "/metrics"] {
        for host in
            ["127.0.0.1:8080", "[::1]:8080", "[::1]", "10.1.2.3", "localhost:1", "LocalHost"]
        {
            let answer = ask(&endpoints, &get_from(host, path)).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{host}{path}: {answer}");
        }
        for host in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.x", ""]
        {
            let answer = ask(&endpoints, &get_from(host, path)).await;
            assert!(answer.starts_with("HTTP/1.1 403"), "{host}{path}: {answer}");
            assert!(answer.contains("localhost") && !answer.contains("evil"), "{answer}");
        }
        let without = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n");
        assert!(ask(&endpoints, &without).await.starts_with("HTTP/1.1 403"), "{path}");
        let two = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n");
        assert!(ask(&endpoints, &two).await.starts_with("HTTP/1.1 403"), "{path}");
        let absolute = get_from("127.0.0.1", &format!("http://evil.example{path}"));
        assert!(ask(&endpoints, &absolute).await.starts_with("HTTP/1.1 403"), "{path}");
    }
    // Probes are answered under any name.
    assert!(ask(&endpoints, &get_from("evil.example", "/healthz")).await.contains("200 OK"));
}

#[tokio::test(start_paused = true)]
async fn the_recording_is_served_as_lines_and_its_absence_is_explained() {
    let answer = ask(&endpoints(), &get("/debug/recording")).await;
    assert!(answer.contains("application/x-ndjson"), "{answer}");
    assert!(answer.contains("\r\n\r\n{\"recording\":1,\"operator\":\"ops\""), "{answer}");
    let elsewhere = Endpoints { debug: false, ..endpoints() };
    let far = ask_from(false, &elsewhere, &get("/debug/recording")).await;
    assert!(far.starts_with("HTTP/1.1 404"), "only where the debug page is: {far}");
    let manager = Manager::new(nowhere()).without_signals().without_health();
    let running = manager.metrics((Ipv4Addr::LOCALHOST, 0).into()).start();
    let answer = fetch(running.debug_addr().await.unwrap(), "/debug/recording").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("--record=5m"), "{answer}");
}

/// S9: kubelets need the verdict; the reason, and the leader, are shown on this machine only.
#[tokio::test(start_paused = true)]
async fn probes_give_reasons_and_identities_over_loopback_only() {
    let endpoints = endpoints();
    *endpoints.status.starting.lock() = Some("forbidden: canary-why".to_owned());
    for path in ["/readyz", "/readyz?verbose", "/readyz/start"] {
        let near = ask(&endpoints, &get(path)).await;
        assert!(near.contains("[-]start failed: forbidden: canary-why\n"), "{near}");
        let evil = ask(&endpoints, &get_from("evil.example", path)).await;
        let far = ask_from(false, &endpoints, &get(path)).await;
        for answer in [evil, far] {
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            assert!(answer.contains("[-]start failed: reason withheld\n"), "{answer}");
            assert!(answer.ends_with("readyz check failed\n"), "{answer}");
            assert!(!answer.contains("canary"), "{answer}");
        }
    }
    let checks = [Check {
        name: "leaderElection".to_owned(),
        ok: true,
        detail: "\"canary-pod\" leads".to_owned(),
    }];
    let far = crate::manager::endpoints::health::print("readyz", &checks, true, false);
    assert_eq!(far, (true, "[+]leaderElection ok\nreadyz check passed\n".to_owned()));
    let near = crate::manager::endpoints::health::print("readyz", &checks, true, true);
    assert!(near.1.starts_with("[+]leaderElection ok: \"canary-pod\" leads\n"), "{}", near.1);
}

#[tokio::test]
async fn a_connection_over_loopback_gets_details_from_a_server_of_every_interface() {
    let endpoints = endpoints();
    *endpoints.status.starting.lock() = Some("canary-why".to_owned());
    let listener = bind("[::]:0".parse().unwrap(), "probes").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(serve(listener, endpoints));
    let answer = fetch((Ipv4Addr::LOCALHOST, port).into(), "/readyz").await;
    assert!(answer.contains("canary-why"), "{answer}");
    // From an address that is not loopback, this machine's own included, no more is shown.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    if let Ok(own) = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) {
        let answer = fetch((own.ip(), port).into(), "/readyz").await;
        assert!(answer.contains("reason withheld") && !answer.contains("canary"), "{answer}");
    }
    server.abort();
}

/// The network may have every page that the operator serves to the network, under any name.
#[tokio::test(start_paused = true)]
async fn metrics_that_are_served_to_the_network_are_asked_for_by_any_name() {
    let answer = ask_from(false, &endpoints(), &get_from("ops.sites.svc:8080", "/metrics")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// S9: with probes and metrics at one address, clients that do not read their answers must leave
/// permits.
#[tokio::test]
async fn probes_are_answered_while_readers_of_metrics_do_not_read() {
    let endpoints = endpoints();
    let metrics = endpoints.metrics.clone().unwrap();
    let padding = "x".repeat(100_000);
    for n in 0..200 {
        metrics.count(&names::RECONCILE, &[&format!("{padding}{n}"), "success"], 1);
    }
    assert!(metrics.encode().len() > 16 << 20, "more than the kernel takes for a reader");
    let listener = bind("127.0.0.1:0".parse().unwrap(), "probes").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, endpoints));
    let mut readers = Vec::new();
    let mut served = 0;
    for _ in 0..100 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut reader = socket.connect(addr).await.unwrap();
        reader.write_all(get_from("127.0.0.1", "/metrics").as_bytes()).await.unwrap();
        let mut status = [0; 12];
        let patience = Duration::from_secs(10);
        let read = tokio::time::timeout(patience, reader.read_exact(&mut status)).await;
        read.expect("every reader is answered at once").unwrap();
        served += usize::from(&status == b"HTTP/1.1 200");
        assert!(matches!(&status, b"HTTP/1.1 200" | b"HTTP/1.1 503"), "{status:?}");
        readers.push(reader);
    }
    assert_eq!(served, 8, "so many bodies are held for readers at once, and no more");
    let probe = tokio::time::timeout(Duration::from_secs(10), fetch(addr, "/healthz")).await;
    assert!(probe.expect("the probe is answered").ends_with("ok"));
    // Readers that disconnect free their permits.
    drop(readers);
    let served = async {
        while !fetch(addr, "/metrics").await.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), served).await.expect("there is room again");
    server.abort();
}
#[tokio::test(start_paused = true)]
async fn a_wait_for_readiness_ends_with_it_or_with_the_operator_or_with_what_is_missing() {
    let controller = Slow::new(Duration::from_secs(20));
    let running = operator(&controller).start();
    running.wait_ready(Duration::from_secs(60)).await.unwrap();
    assert!(running.readiness().is_ready());
    running.stop();
    let late = running.wait_ready(Duration::from_millis(40)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    assert!(late.to_string().contains("after 40ms; missing: shutdown: stopping"), "{late}");
    let ended = running.wait_ready(Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Cancelled, "{ended}");
}
