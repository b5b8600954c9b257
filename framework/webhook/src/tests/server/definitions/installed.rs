//! Readiness while definitions are installed: a server that is ready converts.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_apiserver::faults::{Fault, FaultAction};
use windlass_runtime::manager::WebhookAccess;

use super::own::World;
use super::*;
use crate::tests::versions::v1;

const DEFINITION: &str = "parcels.example.dev";

/// An operator that installs the definition of its kind.
struct Installer {
    installed: CancellationToken,
    status: Arc<ServerStatus>,
    _dial: mpsc::Sender<BoxIo>,
}

impl Installer {
    fn start(world: &World, url: Option<&str>) -> Self {
        let (dial, accepted) = mpsc::channel(16);
        let server = WebhookServer::new(Webhooks::new().converting::<v1::Parcel>())
            .listener(Pipes(Mutex::new(accepted)));
        let (installed, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
        let names = OperatorInfo {
            name: "shop".to_owned(),
            webhooks: url.map(WebhookAccess::at),
            installed: installed.clone(),
            ..OperatorInfo::default()
        };
        let (client, shown) = (world.client.clone(), Arc::clone(&status));
        tokio::spawn(async move {
            server.run((&client, &names), CancellationToken::new(), &shown, || ()).await
        });
        Self { installed, status, _dial: dial }
    }

    fn is_ready(&self) -> bool {
        self.status.checks().iter().all(|check| check.ok)
    }
}

/// Whether API servers can ask for conversions.
async fn is_written(world: &World) -> bool {
    let stored: CustomResourceDefinition = world.client.all().get(DEFINITION).await.unwrap();
    let client = stored.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap();
    client.ca_bundle.is_some()
}

#[tokio::test(start_paused = true)]
async fn a_server_is_ready_as_soon_as_the_definitions_that_it_installs_name_it() {
    for url in [None, Some("https://laptop.example")] {
        let world = World::start().await;
        let definitions = world.client.all::<CustomResourceDefinition>();
        let mut definition = definitions.get(DEFINITION).await.unwrap();
        definitions.delete(DEFINITION).await.unwrap();
        let operator = Installer::start(&world, url);
        assert!(!operator.is_ready());
        pass(21).await;
        assert!(operator.is_ready(), "nothing is to be converted: {:?}", operator.status.checks());

        definition.metadata.resource_version = None;
        definitions.create(&definition).await.unwrap();
        operator.installed.cancel();
        let began = tokio::time::Instant::now();
        while !operator.is_ready() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(is_written(&world).await, "{url:?}");
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_conversion_cannot_be_written_for_now_is_not_ready() {
    let world = World::start().await;
    let fault = Fault::new(FaultAction::Answer(503)).on("patch").times(usize::MAX);
    let away = world.server.faults().add(fault.resource("customresourcedefinitions"));
    let operator = Installer::start(&world, None);
    operator.installed.cancel();
    pass(60).await;
    assert!(!operator.is_ready() && away.hits() > 0);
    away.remove();
    pass(60).await;
    assert!(operator.is_ready() && is_written(&world).await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_may_not_read_definitions_is_ready() {
    let world = World::start().await;
    let fault = Fault::new(FaultAction::Answer(403)).on("get").times(usize::MAX);
    world.server.faults().add(fault.resource("customresourcedefinitions"));
    let operator = Installer::start(&world, None);
    operator.installed.cancel();
    pass(60).await;
    assert!(operator.is_ready(), "{:?}", operator.status.checks());
}
