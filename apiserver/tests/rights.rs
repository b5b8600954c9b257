//! Rights by verb, form of the path and user: the verdicts of a real kube-apiserver 1.36.3.
//!
//! `rights/matrix.py` makes the matrix and records the verdicts.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use windlass_apiserver::ApiServer;

const MATRIX: &str = include_str!("rights/matrix.json");
const RECORDED: &str = include_str!("rights/recorded.jsonl");

/// A connection of one user.
struct Client(SendRequest<Full<Bytes>>);

impl Client {
    async fn of(io: tokio::io::DuplexStream) -> Self {
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(io)).await.expect("a connection");
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request as the recorder does; returns the code and the text of its answer.
    async fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let media = if method == "PATCH" { "merge-patch+json" } else { "json" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "x")
            .header("content-type", format!("application/{media}"))
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        self.0.ready().await.expect("an open connection");
        let answer = self.0.send_request(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The texts of a list in the matrix.
fn texts(matrix: &Value, key: &str) -> Vec<String> {
    let items = matrix[key].as_array().expect("a list").iter();
    items.map(|item| item.as_str().expect("a text").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn who_may_do_what_at_which_path_is_as_on_a_real_server() {
    let matrix: Value = serde_json::from_str(MATRIX).expect("the matrix");
    let server = ApiServer::builder().seed(1).controllers(false).start();
    let mut admin = Client::of(server.connect().expect("a running server")).await;
    for object in matrix["objects"].as_array().expect("a list") {
        let path = object["path"].as_str().expect("a path");
        let (code, text) = admin.send("POST", path, Some(&object["body"])).await;
        assert_eq!(code, 201, "{path}: {text}");
    }
    let paths = texts(&matrix, "paths");
    let mut differences = Vec::new();
    let mut compared = 0;
    for line in RECORDED.lines() {
        let line: Value = serde_json::from_str(line).expect("a line");
        let (user, method) = (line["user"].as_str().unwrap(), line["method"].as_str().unwrap());
        let mut client = Client::of(server.connect_as(user, &[]).expect("a server")).await;
        for (path, recorded) in paths.iter().zip(line["codes"].as_array().expect("codes")) {
            let body = (method != "GET").then(|| serde_json::json!({}));
            let mark = if path.contains('?') { '&' } else { '?' };
            let target =
                if method == "GET" { path.clone() } else { format!("{path}{mark}dryRun=All") };
            let (code, text) = client.send(method, &target, body.as_ref()).await;
            compared += 1;
            if Some(u64::from(code)) != recorded.as_u64() {
                differences
                    .push(format!("{user}: {method} {path}: {code}, recorded {recorded}: {text}"));
            }
        }
    }
    assert!(compared > 4_000, "{compared}");
    let count = differences.len();
    assert!(differences.is_empty(), "{count} of {compared}:\n{}", differences.join("\n"));
}
