//! Webhooks that kube-apiserver asks through the Service of their operator, as in a cluster: own
//! certificates in a Secret, and configurations that the operator keeps.

mod certificates;
mod kept;
mod load;
mod replicas;
mod rotation;
mod service;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::net::TcpListener;
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::environment::Environment;
use windlass::manager::{Exit, Manager, Running};
use windlass::metrics::{Metrics, names};
use windlass::rng::Rng;
use windlass::testing::RealServer;
use windlass::webhook::{
    Admission, AdmissionResponse, ConfigurationOptions, FailurePolicy, Validate,
    WebhookRegistration, WebhookServer, Webhooks,
};

use self::load::Load;
use self::service::Service;
use crate::bench::{client, config_map, eventually, new_namespace};

/// Refuses maps with data, and counts the questions.
struct Rules(Arc<AtomicU64>);

impl Validate for Rules {
    type Object = ConfigMap;

    async fn validate(&self, map: &ConfigMap, _: &Admission) -> AdmissionResponse {
        // `Relaxed`: a count.
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut response = AdmissionResponse::allowed();
        for (key, text) in map.data.iter().flatten() {
            response.invalid(format!("data[{key}]"), text, "is not wanted");
        }
        response
    }
}

/// An operator's place in the cluster: its Service and its printed configuration.
struct World {
    server: &'static RealServer,
    admin: Client,
    /// Name of the operator, and of its namespace.
    operator: String,
    /// Namespace whose maps are judged.
    shop: String,
    service: Service,
}

impl World {
    async fn start() -> Self {
        let server = RealServer::shared().await;
        let (operator, shop) = (new_namespace(server).await, new_namespace(server).await);
        let service = Service::start().await;
        let admin = client(server.admin());
        service.create(&admin, &operator).await;
        let world = Self { server, admin, operator, shop, service };
        world.print().await;
        world
    }

    fn webhooks(&self, asked: &Arc<AtomicU64>) -> Webhooks {
        let keys = WebhookRegistration::new()
            .name(format!("rules.{}.example", self.shop))
            .match_condition("namespace", format!("request.namespace == '{}'", self.shop))
            .failure_policy(FailurePolicy::Fail)
            .timeout(Duration::from_secs(10));
        Webhooks::new().validating_with(Rules(Arc::clone(asked)), keys)
    }

    fn options(&self) -> ConfigurationOptions {
        ConfigurationOptions::new(&self.operator, &self.operator)
    }

    /// Applies the printed configuration, which has no authorities.
    async fn print(&self) {
        let made = self.webhooks(&Arc::default()).configurations(&self.options()).unwrap();
        let api = self.admin.all::<ValidatingWebhookConfiguration>();
        api.create(&made.validating.unwrap()).await.unwrap();
    }

    async fn configuration(&self) -> ValidatingWebhookConfiguration {
        self.admin.all().get(&self.name()).await.unwrap()
    }

    /// Returns the name of the Service, and of the configuration.
    fn name(&self) -> String {
        format!("{}-webhooks", self.operator)
    }

    async fn secret(&self) -> Secret {
        let name = format!("{}-webhook-certificates", self.operator);
        self.admin.namespace(&self.operator).get(&name).await.unwrap()
    }

    /// Returns the authority that signs, PEM.
    async fn signing(&self) -> Vec<u8> {
        self.secret().await.data.unwrap().remove("signing-ca.crt").unwrap().0
    }

    /// Returns the number of authorities in the configuration.
    async fn trusted(&self) -> usize {
        let entry = self.configuration().await.webhooks.unwrap().remove(0);
        let bundle = entry.client_config.ca_bundle.unwrap_or_default().0;
        String::from_utf8(bundle).unwrap().matches("BEGIN CERTIFICATE").count()
    }

    async fn replica(&self, clock: &Clock) -> Replica {
        let asked = Arc::default();
        let webhooks = self.webhooks(&asked);
        self.replica_of(webhooks, asked, clock).await
    }

    /// Starts a replica, which the Service reaches once it is ready.
    async fn replica_of(
        &self,
        webhooks: Webhooks,
        asked: Arc<AtomicU64>,
        clock: &Clock,
    ) -> Replica {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (rng, metrics) = (Rng::seeded(1), Metrics::new());
        let environment = Environment { clock: clock.clone(), rng, metrics: metrics.clone() };
        let config = self.server.admin().with_namespace(&self.operator);
        let client = Client::builder().config(config).environment(environment).build().unwrap();
        let server = WebhookServer::new(webhooks).listener(listener);
        let manager = Manager::new(client).name(&self.operator).runnable(server);
        let running = manager.quiet().without_signals().start();
        eventually("the operator is ready", async || running.readiness().is_ready()).await;
        self.service.add(address);
        Replica { address, running, asked, metrics }
    }

    /// Whether a handler judges; else the outcome of a creation that it would refuse.
    async fn judged(&self) -> Result<(), String> {
        let mut map = config_map("refused");
        map.data = Some([("wish".to_owned(), "x".to_owned())].into());
        let maps = self.admin.namespace::<ConfigMap>(&self.shop);
        match maps.create(&map).dry_run().await {
            Err(refused) if refused.code() == Some(422) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    async fn until_judged(&self) {
        eventually("the handlers are asked", async || self.judged().await.is_ok()).await;
    }

    /// Removes what tests of a shared server would meet.
    async fn end(self) {
        let api = self.admin.all::<ValidatingWebhookConfiguration>();
        api.delete(&self.name()).await.unwrap();
    }
}

/// A replica of the operator.
struct Replica {
    address: SocketAddr,
    running: Running,
    asked: Arc<AtomicU64>,
    metrics: Metrics,
}

impl Replica {
    /// Returns the number of questions so far.
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns the end of the certificate that is shown.
    fn not_after(&self) -> f64 {
        self.metrics.level(&names::CERTIFICATE_EXPIRES, &[]).unwrap()
    }

    /// Ends it as a cluster does: the Service leaves it out first.
    async fn stop(self, world: &World) {
        world.service.remove(self.address);
        self.running.stop();
        assert_eq!(self.running.join().await.unwrap(), Exit::Drained);
    }
}
