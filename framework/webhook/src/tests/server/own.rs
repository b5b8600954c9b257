//! Certificates that operators make by themselves, on an embedded API server.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::pin::Pin;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_apiserver::ApiServer;
use windlass_client::client::Connect;
use windlass_core::clock::Clock;
use windlass_core::crd::CustomResource;
use windlass_core::environment::Environment;
use windlass_core::rng::Rng;

use super::*;
use crate::ConfigurationOptions;
use crate::tests::versions::v1;

pub(super) const NAME: &str = "shop-webhooks.default.svc";
const SECRET: &str = "shop-webhook-certificates";
const CONFIGURATION: &str = "shop-webhooks";
/// 2026-01-01.
pub(super) const EPOCH: i64 = 1_767_225_600;
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub(super) struct Pipe(pub(super) ApiServer);

impl Connect for Pipe {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.0.connect()?) as BoxIo) })
    }
}

/// An API server with the printed configurations, and the clock of everybody.
pub(super) struct World {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) clock: Clock,
}

fn webhooks() -> Webhooks {
    Webhooks::new().validating(Rules).mutating(Defaults).converting::<v1::Parcel>()
}

impl World {
    pub(super) async fn start() -> Self {
        let server = ApiServer::builder().seed(1).epoch(EPOCH).start();
        let clock = Clock::simulated(Timestamp::from_second(EPOCH).unwrap());
        let (rng, metrics) = (Rng::seeded(1), Metrics::new());
        let environment = Environment { clock: clock.clone(), rng, metrics };
        let client = Client::over(Arc::new(Pipe(server.clone())), environment);
        let options = ConfigurationOptions::new("shop", "default");
        let made = webhooks().configurations(&options).unwrap();
        let validating = client.all::<ValidatingWebhookConfiguration>();
        validating.create(&made.validating.unwrap()).await.unwrap();
        let mutating = client.all::<MutatingWebhookConfiguration>();
        mutating.create(&made.mutating.unwrap()).await.unwrap();
        let definitions = client.all::<CustomResourceDefinition>();
        definitions.create(&v1::Parcel::crd().unwrap()).await.unwrap();
        Self { server, client, clock }
    }

    /// Starts a replica.
    pub(super) fn replica(&self) -> Replica {
        self.replica_named("shop", webhooks())
    }

    /// Starts a replica with other webhooks, such as one of another version.
    pub(super) fn replica_of(&self, webhooks: Webhooks) -> Replica {
        self.replica_named("shop", webhooks)
    }

    /// Returns a client of a node whose clock shows this time.
    pub(super) fn client_at(&self, seconds: i64) -> Client {
        let clock = Clock::simulated(Timestamp::from_second(seconds).unwrap());
        let environment = Environment { clock, rng: Rng::seeded(1), metrics: Metrics::new() };
        Client::over(Arc::new(Pipe(self.server.clone())), environment)
    }

    /// Starts a replica whose node has another time.
    pub(super) fn replica_with(&self, client: Client) -> Replica {
        self.start_replica(client, ("shop", webhooks()), true)
    }

    /// Starts an operator of another name, which converts the same kind.
    pub(super) fn replica_in(&self, name: &str) -> Replica {
        self.replica_named(name, Webhooks::new().converting::<v1::Parcel>())
    }

    pub(super) async fn add_namespace(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        self.client.all::<Namespace>().create(&namespace).await.unwrap();
    }

    /// Starts an operator of the same name in another namespace, in a Pod or not.
    pub(super) fn replica_at(&self, namespace: &str, is_in_pod: bool) -> Replica {
        let client = self.client.in_namespace(namespace);
        self.start_replica(client, ("shop", webhooks()), is_in_pod)
    }

    fn replica_named(&self, name: &str, webhooks: Webhooks) -> Replica {
        self.start_replica(self.client.clone(), (name, webhooks), true)
    }

    pub(super) fn start_replica(
        &self,
        client: Client,
        (name, webhooks): (&str, Webhooks),
        is_in_pod: bool,
    ) -> Replica {
        let (dial, accepted) = mpsc::channel(16);
        let mut server = WebhookServer::new(webhooks).listener(Pipes(Mutex::new(accepted)));
        server.is_in_pod = is_in_pod;
        let (stop, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
        let name = name.to_owned();
        let task = tokio::spawn({
            let (stop, status) = (stop.clone(), Arc::clone(&status));
            async move {
                let names = OperatorInfo { name, ..OperatorInfo::default() };
                server.run((&client, &names), stop, &status, || ()).await
            }
        });
        Replica { dial, stop, status, task }
    }

    pub(super) async fn secret(&self) -> Secret {
        self.client.namespace::<Secret>("default").get(SECRET).await.unwrap()
    }

    pub(super) async fn validating(&self) -> ValidatingWebhookConfiguration {
        self.client.all().get(CONFIGURATION).await.unwrap()
    }

    /// Sends a review to a replica as the API server does: by the authorities of the configuration.
    pub(super) async fn ask(&self, replica: &Replica) -> (u16, Value) {
        send(&mut self.dial(replica).await, "", json!({})).await
    }

    /// Opens a connection to a replica by the authorities of the configuration.
    pub(super) async fn dial(&self, replica: &Replica) -> SendRequest<Full<Bytes>> {
        let entry = self.validating().await.webhooks.unwrap().remove(0);
        let bundle = entry.client_config.ca_bundle.expect("the configuration has authorities").0;
        let config = pki::client_at(std::str::from_utf8(&bundle).unwrap(), &self.clock);
        let (near, far) = tokio::io::duplex(64 * 1024);
        replica.dial.send(Box::new(far)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(NAME.try_into().unwrap(), near).await.unwrap();
        http(stream).await
    }
}

pub(super) struct Replica {
    dial: mpsc::Sender<BoxIo>,
    stop: CancellationToken,
    pub(super) status: Arc<ServerStatus>,
    task: JoinHandle<Result<(), Error>>,
}

impl Replica {
    pub(super) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    pub(super) fn not_after(&self) -> Timestamp {
        self.status.certificate().unwrap().not_after().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_share_the_certificates_of_the_first() {
    let world = World::start().await;
    let replicas = [world.replica(), world.replica(), world.replica()];
    pass(2).await;
    for replica in &replicas {
        assert_eq!(world.ask(replica).await.0, 200);
    }
    let version = world.secret().await.metadata.resource_version;
    pass(3600).await;
    assert_eq!(world.secret().await.metadata.resource_version, version);
}

#[tokio::test(start_paused = true)]
async fn w1_certificates_are_replaced_in_time_for_years_and_no_request_meets_one_without_trust() {
    let world = World::start().await;
    let replicas = [world.replica(), world.replica()];
    pass(2).await;
    let (mut authorities, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..365 {
        for replica in &replicas {
            assert_eq!(world.ask(replica).await.0, 200);
            let left = replica.not_after().as_second() - world.clock.wall().as_second();
            assert!(left > 14 * 24 * 3600, "{left} s are left");
            ends.insert(replica.not_after());
        }
        let data = world.secret().await.data.unwrap();
        authorities.insert(data["signing-ca.crt"].0.clone());
        let trusted = String::from_utf8(data["ca.crt"].0.clone()).unwrap();
        assert!(trusted.matches("BEGIN").count() <= 3, "{trusted}");
        world.clock.sleep_machine(DAY * 3);
        pass(70).await;
    }
    // A year less a fifth of it, and 90 days less a fifth of them.
    assert_eq!(authorities.len(), 4);
    assert!((15..=20).contains(&ends.len()), "{}", ends.len());
}

#[tokio::test(start_paused = true)]
async fn w1_a_new_authority_is_trusted_for_an_hour_before_it_signs() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let signing = async || world.secret().await.data.unwrap()["signing-ca.crt"].0.clone();
    let trusted = async || {
        let bundle = world.secret().await.data.unwrap()["ca.crt"].0.clone();
        String::from_utf8(bundle).unwrap().matches("BEGIN").count()
    };
    let first = signing().await;
    world.clock.sleep_machine(DAY * 293);
    pass(70).await;
    assert_eq!((signing().await == first, trusted().await), (true, 2));
    assert_eq!(world.ask(&replica).await.0, 200);
    pass(crate::certificates::OVERLAP.as_secs() - 120).await;
    assert!(signing().await == first);
    pass(240).await;
    assert!(signing().await != first);
    assert_eq!((trusted().await, world.ask(&replica).await.0), (2, 200));
}

#[tokio::test(start_paused = true)]
async fn w1_certificates_that_expired_while_everything_was_down_are_made_anew() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    replica.stop.cancel();
    replica.task.await.unwrap().unwrap();
    for days in [89, 100, 400] {
        world.clock.sleep_machine(DAY * days);
        let replica = world.replica();
        pass(20).await;
        assert_eq!(world.ask(&replica).await.0, 200);
        let entry = world.validating().await.webhooks.unwrap().remove(0);
        let bundle = entry.client_config.ca_bundle.unwrap().0;
        let trusted = String::from_utf8(bundle).unwrap().matches("BEGIN").count();
        // One that has ended stays until the next step: the clock of a node may be wrong.
        assert_eq!(trusted, if days == 400 { 2 } else { 1 });
        replica.stop.cancel();
        replica.task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_emptied_spoilt_or_deleted_is_made_anew() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let secrets = world.client.namespace::<Secret>("default");
    for spoil in ["tls.key", "signing-ca.crt", "all", "deleted"] {
        let mut secret = world.secret().await;
        match spoil {
            "all" => secret.data = None,
            key => {
                let text = ByteString(b"-----BEGIN CERTIFICATE-----\nMII".to_vec());
                secret.data.get_or_insert_default().insert(key.to_owned(), text);
            }
        }
        match spoil {
            "deleted" => drop(secrets.delete(SECRET).await.unwrap()),
            _ => drop(secrets.replace(&secret).await.unwrap()),
        }
        pass(80).await;
        assert_eq!(world.ask(&replica).await.0, 200, "{spoil}");
        let check = replica.status.checks().remove(0);
        assert!(check.ok && !check.detail.contains(';'), "{check:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_somebody_changed_is_put_back() {
    let world = World::start().await;
    let _replica = world.replica();
    pass(2).await;
    let right = world.validating().await.webhooks;
    let mut changed = world.validating().await;
    let entry = &mut changed.webhooks.as_mut().unwrap()[0];
    entry.failure_policy = Some("Fail".to_owned());
    let (name, expression) = ("never".to_owned(), "false".to_owned());
    entry.match_conditions = Some(vec![MatchCondition { name, expression }]);
    entry.client_config.ca_bundle = None;
    world.client.all().replace(&changed).await.unwrap();
    assert_ne!(world.validating().await.webhooks, right);
    pass(16).await;
    let put_back = world.validating().await;
    assert_eq!(put_back.webhooks, right);
    pass(120).await;
    let version = world.validating().await.metadata.resource_version;
    assert_eq!(version, put_back.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn the_conversion_of_a_definition_gets_the_authorities_and_is_put_back() {
    let world = World::start().await;
    let definitions = world.client.all::<CustomResourceDefinition>();
    let stored = async || definitions.get("parcels.example.dev").await.unwrap();
    let _replica = world.replica();
    pass(2).await;
    let webhook = async || stored().await.spec.conversion.unwrap().webhook.unwrap();
    let right = webhook().await;
    let client = right.client_config.clone().unwrap();
    let bundle = world.secret().await.data.unwrap()["ca.crt"].clone();
    assert_eq!(client.ca_bundle, Some(bundle));
    let service = client.service.unwrap();
    assert_eq!((service.name, service.namespace), ("shop-webhooks".into(), "default".into()));
    assert_eq!(service.path.as_deref(), Some("/convert-example-dev-parcel"));

    let mut changed = stored().await;
    let conversion = changed.spec.conversion.as_mut().unwrap();
    let client = conversion.webhook.as_mut().unwrap().client_config.as_mut().unwrap();
    (client.service, client.url) = (None, Some("https://elsewhere.example".to_owned()));
    definitions.replace(&changed).await.unwrap();
    assert_ne!(webhook().await, right);
    pass(16).await;
    assert_eq!(webhook().await, right);
    assert_eq!(stored().await.spec.versions, changed.spec.versions, "the rest stays");
}
