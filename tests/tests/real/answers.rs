//! Properties of an answer: compression, warnings, and counters.

use std::io;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Endpoints};
use windlass::client::Client;
use windlass::metrics::names::REST_REQUESTS;
use windlass::testing::RealServer;

use crate::bench::{client, config_map, new_namespace};
use crate::proxy::Proxy;

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_long_list_comes_in_gzip_and_decodes_to_what_comes_plain() {
    let server = RealServer::shared().await;
    let namespace = new_namespace(server).await;
    let writer = client(server.admin()).namespace::<ConfigMap>(&namespace);
    for number in 0..40 {
        let mut object = config_map(&format!("long-{number:02}"));
        let text: String = (0..900).map(|line| format!("line {line}\n")).collect();
        object.data = Some([("text".to_owned(), text)].into());
        writer.create(&object).await.unwrap();
    }
    let mut lists = Vec::new();
    for gzip in [true, false] {
        let proxy = Proxy::new(server).await;
        let client = Client::builder().config(proxy.admin(server)).compression(gzip).build();
        let list = client.unwrap().namespace::<ConfigMap>(&namespace).list().await.unwrap();
        lists.push((list, proxy.received()));
    }
    let [(zipped, few), (plain, many)] = &lists[..] else { unreachable!() };
    assert_eq!((zipped.items.len(), &zipped.items), (40, &plain.items));
    println!("a list of {many} bytes came in {few} bytes");
    assert!(*many > 300_000 && *few < many / 5, "{few} of {many} bytes");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn mechanism_14_the_warning_about_a_deprecated_api_is_logged_once() {
    let server = RealServer::shared().await;
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let namespace = new_namespace(server).await;
    let client = client(server.admin());
    let logging = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
    for _ in 0..3 {
        client.namespace::<Endpoints>(&namespace).list().await.unwrap();
    }
    drop(logging);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("v1 Endpoints is deprecated").count(), 1, "{text}");
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn answers_are_counted_by_code_method_and_host() {
    let server = RealServer::shared().await;
    let client = client(server.admin());
    let api = client.namespace::<ConfigMap>(&new_namespace(server).await);
    api.create(&config_map("home")).await.unwrap();
    api.create(&config_map("home")).await.unwrap_err();
    api.get("nobody").await.unwrap_err();
    let metrics = &client.environment().metrics;
    let host = server.address().to_string();
    for (code, method) in [("201", "POST"), ("409", "POST"), ("404", "GET")] {
        assert_eq!(metrics.counted(&REST_REQUESTS, &[code, method, &host]), 1, "{code}");
    }
    let line =
        format!("rest_client_requests_total{{code=\"201\",method=\"POST\",host=\"{host}\"}} 1");
    assert!(metrics.encode().contains(&line), "{}", metrics.encode());
}
