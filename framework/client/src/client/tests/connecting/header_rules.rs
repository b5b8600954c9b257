//! Credentials over plain HTTP and ineffective impersonations, from any part of a program.

use http::header::{AUTHORIZATION, HeaderValue};
use tower::layer::layer_fn;

use crate::client::ClientConfig;
use crate::client::tests::*;
use windlass_core::error::ErrorKind;

/// A client of `address` whose connections end in `server`.
fn at(address: &str, server: &Arc<Server>) -> ClientBuilder {
    let config = ClientConfig::new(address).unwrap();
    Client::builder()
        .config(config)
        .connector(Arc::new(Wire(Arc::clone(server))))
        .environment(environment())
}

fn with_token(name: &'static str, value: &str) -> Prepared {
    let mut request = get();
    request.headers.insert(name, HeaderValue::from_str(value).unwrap());
    request
}

#[tokio::test(start_paused = true)]
async fn a_requests_own_credentials_are_not_sent_over_plain_http() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = at("http://one.example", &server).build().unwrap();
    let mut sensitive = with_token("x-own", "canary");
    sensitive.headers.get_mut("x-own").unwrap().set_sensitive(true);
    for request in [
        with_token("authorization", "Bearer canary"),
        with_token("cookie", "session=canary"),
        sensitive,
    ] {
        let error = client.send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("plain HTTP") && text.contains("http://one.example"), "{text}");
        assert!(text.contains("use https://") && !text.contains("canary"), "{text}");
    }
    assert_eq!((server.connections(), server.count()), (0, 0));
    // Other headers may be sent in the clear.
    client.send(with_token("x-own", "shown")).await.unwrap();
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_a_layer_adds_are_not_sent_over_plain_http() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let layer = layer_fn(|inner: Stack| {
        tower::util::MapRequest::new(inner, |mut request: HttpRequest| {
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer canary"));
            request
        })
    });
    let client = at("http://one.example", &server).layer(layer).build().unwrap();
    let error = client.send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(error.to_string().contains("plain HTTP"), "{error}");
    assert_eq!(server.connections(), 0);
    let client = at("http://127.0.0.1:8001", &server).layer(layer).build().unwrap();
    client.send(get()).await.unwrap();
    assert_eq!(server.seen()[0].headers[AUTHORIZATION], "Bearer canary");
}

#[tokio::test(start_paused = true)]
async fn a_requests_own_credentials_are_sent_to_this_machine_and_over_tls() {
    for address in ["http://localhost:8001", "http://[::1]:8001", "https://one.example"] {
        let server = Server::with([Reply::Answer(200, "{}")]);
        let client = at(address, &server).build().unwrap();
        client.send(with_token("authorization", "Bearer mine")).await.unwrap();
        assert_eq!(server.seen()[0].headers[AUTHORIZATION], "Bearer mine", "{address}");
    }
}

/// A connector opens connections in place of TCP and TLS; the address decides whether they count as
/// encrypted.
#[test]
fn a_connector_of_ones_own_is_no_way_around_the_rule_for_plain_http() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let build = |address: &str| {
        let config = ClientConfig::new(address).unwrap().with_token("canary");
        let wire = Arc::new(Wire(Arc::clone(&server)));
        Client::builder().config(config).connector(wire).environment(environment()).build()
    };
    let error = build("http://one.example").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("plain HTTP"), "{error}");
    build("http://localhost:8001").unwrap();
    build("https://one.example").unwrap();
}

#[cfg(feature = "ws")]
#[tokio::test(start_paused = true)]
async fn an_upgrade_carries_no_credentials_over_plain_http() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = at("http://one.example", &server).build().unwrap();
    let request = with_token("authorization", "Bearer canary");
    let error = client.upgrade(&request, &["v5.channel.k8s.io"]).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(error.to_string().contains("plain HTTP"), "{error}");
    assert_eq!(server.connections(), 0);
}

/// A name from an object may be blank, and then no user is impersonated.
#[tokio::test(start_paused = true)]
async fn a_header_that_impersonates_nobody_is_refused_wherever_it_comes_from() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let layer = layer_fn(|inner: Stack| {
        tower::util::MapRequest::new(inner, |mut request: HttpRequest| {
            let headers = request.headers_mut();
            headers
                .insert("impersonate-group", HeaderValue::from_bytes("größer".as_bytes()).unwrap());
            request
        })
    });
    let plain = at("https://one.example", &server).build().unwrap();
    let layered = at("https://one.example", &server).layer(layer).build().unwrap();
    for (client, request) in [
        (&plain, with_token("impersonate-user", " ")),
        (&plain, with_token("impersonate-user", "")),
        (&plain, with_token("impersonate-extra-reason", "because ")),
        (&layered, get()),
    ] {
        let error = client.send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error:?}");
        assert!(error.to_string().contains("caller's own rights"), "{error}");
    }
    assert_eq!((server.connections(), server.count()), (0, 0));
    plain.send(with_token("impersonate-user", "jane")).await.unwrap();
}
