//! Tests of the fault catalogue's rows on transport and API server; ids are those of the book.
//!
//! Tests whose name ends in `in_memory` run over pipes on a paused clock with the default times.
//! Those that end in `on_a_socket` run over loopback in real time, with short times. Each checks
//! the caller's result, the number of executions at the server, and that the client works
//! afterwards. A8 (tokens) and A9 (certificates) are tested with credentials and certificates.

mod answers;
mod bad_server;
mod breaks;
mod driving;
mod half_open;
mod http2;
mod limits;
mod pki;
mod restarts;
mod slow;

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use bad_server::{Bad, BadServer, Pipe, answer, chunk, chunked};
use windlass_core::error::{Error, ErrorKind};

/// A server that misbehaves, and a client of that server.
struct Rig {
    server: Arc<BadServer>,
    client: Client,
    /// A pause between two bytes of a server that is too slow.
    drip: Duration,
    /// Longest time of a call, with a margin for a busy machine.
    call: Duration,
}

impl Rig {
    /// Over pipes, with the default times.
    fn in_memory(script: impl IntoIterator<Item = Bad>) -> Self {
        let server = BadServer::new(script);
        let client = Client::over(Arc::new(Pipe(Arc::clone(&server))), environment());
        Self { server, client, drip: Duration::from_secs(1), call: Duration::from_millis(30_500) }
    }

    /// Over loopback, with short times: 150 ms for a head, 600 ms for a call.
    async fn on_a_socket(script: impl IntoIterator<Item = Bad>) -> Self {
        let server = BadServer::new(script);
        let address = server.listen(None).await;
        let client = short(ClientConfig::new(&format!("http://{address}")).unwrap());
        Self { server, client, drip: Duration::from_millis(20), call: Duration::from_secs(5) }
    }

    /// Checks that the next requests are answered.
    async fn goes_on(&self) {
        self.server.change([Bad::Write(answer(200, "{}"))]);
        for request in [get(), create(), apply()] {
            let answer = self.client.send(request).await.unwrap();
            assert_eq!(answer.body, "{}");
        }
    }

    /// Sends a request that fails; returns the error and the number of executions.
    async fn fails(&self, request: Prepared) -> (Error, usize) {
        let before = self.server.requests();
        let started = Instant::now();
        let error = self.client.send(request).await.unwrap_err();
        assert!(started.elapsed() <= self.call, "{:?}: {error}", started.elapsed());
        (error, self.server.requests() - before)
    }
}

/// A client with times that tests in real time can wait for.
fn short(config: ClientConfig) -> Client {
    Client::builder()
        .config(config)
        .environment(environment())
        .head_timeout(Duration::from_millis(150))
        .timeout(Duration::from_millis(600))
        .build()
        .unwrap()
}

/// Waits for the effect of another task, for at most 20 s.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

/// A watch of config maps, as bytes.
fn watch(seconds: u64) -> Prepared {
    let path = "/api/v1/namespaces/shop/configmaps".to_owned();
    let what = "watch configmaps in \"shop\"".to_owned();
    let mut request = Prepared::new(Verb::Watch, Method::GET, path, what);
    request.query.push(("watch".into(), "true".to_owned()));
    request.query.push(("timeoutSeconds".into(), seconds.to_string()));
    request
}

/// An event of such a watch.
fn event(name: &str, version: u64) -> String {
    format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":\
         {{\"name\":\"{name}\",\"namespace\":\"shop\",\"uid\":\"u\",\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}
