//! Conversions of several operators in the process of a test's own API server.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_runtime::manager::WebhookAccess;

use super::own::World;
use super::*;
use crate::tests::versions::v1;

/// The operators that an API server reaches, by their hosts.
type Routes = Arc<parking_lot::Mutex<BTreeMap<String, Vec<CancellationToken>>>>;

/// The connections to an operator, which knows the others.
struct Listener(Pipes, Routes);

impl WebhookListener for Listener {
    fn accept(&self) -> AcceptFuture<'_> {
        self.0.accept()
    }

    fn gone<'a>(&'a self, url: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let host = url.trim_start_matches("https://").split('/').next().unwrap_or_default();
        let open = self.1.lock().get(host).cloned().unwrap_or_default();
        Box::pin(async move {
            for ended in open {
                ended.cancelled().await;
            }
        })
    }
}

/// An operator that converts parcels.
struct Operator {
    stop: CancellationToken,
    ended: CancellationToken,
    status: Arc<ServerStatus>,
    task: JoinHandle<Result<(), Error>>,
    _dial: mpsc::Sender<BoxIo>,
}

impl Operator {
    async fn start(world: &World, routes: &Routes, name: &str) -> Self {
        let (dial, accepted) = mpsc::channel(16);
        let (stop, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
        let (host, ended) = (format!("{name}.example"), CancellationToken::new());
        routes.lock().entry(host.clone()).or_default().push(ended.clone());
        let listener = Arc::new(Listener(Pipes(Mutex::new(accepted)), Arc::clone(routes)));
        let access = WebhookAccess {
            in_process: Some(listener),
            ..WebhookAccess::at(format!("https://{host}"))
        };
        let (name, webhooks) = (name.to_owned(), Some(access));
        let names = OperatorInfo { name, webhooks, ..OperatorInfo::default() };
        let server = WebhookServer::new(Webhooks::new().converting::<v1::Parcel>());
        let client = world.client.clone();
        let task = tokio::spawn({
            let (stop, status) = (stop.clone(), Arc::clone(&status));
            async move { server.run((&client, &names), stop, &status, || ()).await }
        });
        pass(3).await;
        Self { stop, ended, status, task, _dial: dial }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        self.ended.cancel();
    }

    /// Returns the check about the conversion.
    fn check(&self) -> Option<(bool, String)> {
        let mut checks = self.status.checks().into_iter();
        let check = checks.find(|check| check.name == "webhook conversion");
        check.map(|check| (check.ok, check.detail))
    }
}

/// Returns the host at which the conversion is asked, and the version of the definition.
async fn asked(world: &World) -> (String, Option<String>) {
    let stored = world.client.all::<CustomResourceDefinition>();
    let stored = stored.get("parcels.example.dev").await.unwrap();
    let client = stored.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap();
    let host = client.url.unwrap().split('/').nth(2).unwrap().to_owned();
    (host, stored.metadata.resource_version)
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_that_convert_one_kind_in_a_test_the_other_takes_over_at_once() {
    let (world, routes) = (World::start().await, Routes::default());
    let first = Operator::start(&world, &routes, "first").await;
    let second = Operator::start(&world, &routes, "second").await;
    let written = asked(&world).await;
    assert_eq!(written.0, "second.example");
    for _ in 0..60 {
        pass(5).await;
        assert_eq!(asked(&world).await, written, "they do not write in turn");
    }
    let (ok, detail) = first.check().expect("it says where the conversion is asked");
    assert!(ok && detail.contains("https://second.example"), "{detail}");
    assert_eq!(second.check(), None);
    second.stop().await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!((asked(&world).await.0.as_str(), first.check()), ("first.example", None));

    let third = Operator::start(&world, &routes, "third").await;
    first.stop().await;
    pass(30).await;
    assert_eq!((asked(&world).await.0.as_str(), third.check()), ("third.example", None));
    third.stop().await;
    assert_eq!(asked(&world).await.0, "third.example", "it stays, as in a cluster");
    let last = Operator::start(&world, &routes, "last").await;
    assert_eq!((asked(&world).await.0.as_str(), last.check()), ("last.example", None));
}

#[tokio::test(start_paused = true)]
async fn replicas_of_an_operator_in_a_test_have_one_conversion_until_the_last_one_ends() {
    let (world, routes) = (World::start().await, Routes::default());
    let other = Operator::start(&world, &routes, "other").await;
    let first = Operator::start(&world, &routes, "shop").await;
    let second = Operator::start(&world, &routes, "shop").await;
    let written = asked(&world).await;
    first.stop().await;
    pass(60).await;
    assert_eq!((asked(&world).await, &*written.0), (written.clone(), "shop.example"));
    second.stop().await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(asked(&world).await.0, "other.example");
    other.stop().await;
}
