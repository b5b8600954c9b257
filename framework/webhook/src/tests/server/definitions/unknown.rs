//! Conversions while the authorities of mounted certificates are not known.

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};

use super::certificates::Folder;
use super::logs::Captured;
use super::own::World;
use super::*;
use crate::MountedFiles;
use crate::tests::versions::v1;

const DEFINITION: &str = "parcels.example.dev";

/// A server with a mounted certificate, and no `ca.crt` beside it.
struct Mounted {
    folder: Folder,
    authority: Authority,
    status: Arc<ServerStatus>,
    _dial: mpsc::Sender<BoxIo>,
}

impl Mounted {
    async fn start(world: &World, name: &str) -> Self {
        let (folder, authority) = (Folder::new(name), Authority::new("first"));
        let (chain, key) = authority.issue();
        folder.write("tls.crt", &chain);
        folder.write("tls.key", &key);
        let (dial, accepted) = mpsc::channel(16);
        let server = WebhookServer::new(Webhooks::new().converting::<v1::Parcel>())
            .certificates(MountedFiles::new(folder.path()))
            .listener(Pipes(Mutex::new(accepted)));
        let status = Arc::new(ServerStatus::default());
        let (client, shown) = (world.client.clone(), Arc::clone(&status));
        tokio::spawn(async move {
            let names = OperatorInfo { name: "shop".to_owned(), ..OperatorInfo::default() };
            server.run((&client, &names), CancellationToken::new(), &shown, || ()).await
        });
        pass(20).await;
        Self { folder, authority, status, _dial: dial }
    }

    /// Returns the check about the conversion; it leaves the Pod ready.
    fn shown(&self) -> Option<String> {
        let checks = self.status.checks();
        assert!(checks.iter().all(|check| check.ok), "{checks:?}");
        let mut checks = checks.into_iter().filter(|check| check.name == "webhook conversion");
        checks.next().map(|check| check.detail)
    }
}

async fn stored(world: &World) -> CustomResourceDefinition {
    world.client.all().get(DEFINITION).await.unwrap()
}

async fn client(world: &World) -> WebhookClientConfig {
    stored(world).await.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap()
}

/// Changes the client configuration of the conversion.
async fn change(world: &World, change: impl FnOnce(&mut WebhookClientConfig)) {
    let mut changed = stored(world).await;
    let webhook = changed.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
    change(webhook.client_config.as_mut().unwrap());
    world.client.all().replace(&changed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_without_authorities_is_named_by_the_definition_and_tells_what_is_missing() {
    let captured = Captured::default();
    let _logs = tracing::subscriber::set_default(captured.clone());
    let world = World::start().await;
    // That of the type, which no operator answers.
    assert_eq!(client(&world).await.service.unwrap().name, "parcels-webhooks");
    let mounted = Mounted::start(&world, "unknown").await;
    let found = client(&world).await;
    assert_eq!((found.service.unwrap().name.as_str(), found.ca_bundle), ("shop-webhooks", None));
    let shown = mounted.shown().expect("it says what is missing");
    assert!(shown.contains("add `ca.crt`"), "{shown}");
    let version = stored(&world).await.metadata.resource_version;
    pass(600).await;
    assert_eq!(stored(&world).await.metadata.resource_version, version, "nobody writes it");
    assert_eq!(captured.text().matches("has no authorities").count(), 1, "{}", captured.text());

    mounted.folder.write("ca.crt", &mounted.authority.pem);
    pass(10).await;
    let bundle = ByteString(mounted.authority.pem.clone().into_bytes());
    assert_eq!((client(&world).await.ca_bundle, mounted.shown()), (Some(bundle), None));
}

#[tokio::test(start_paused = true)]
async fn authorities_that_another_component_writes_stay_while_no_others_are_known() {
    let world = World::start().await;
    let mounted = Mounted::start(&world, "injected").await;
    let bundle = Some(ByteString(mounted.authority.pem.clone().into_bytes()));
    change(&world, |client| client.ca_bundle.clone_from(&bundle)).await;
    pass(20).await;
    assert_eq!((client(&world).await.ca_bundle, mounted.shown()), (bundle.clone(), None));
    change(&world, |client| client.service.as_mut().unwrap().path = Some("/other".into())).await;
    pass(20).await;
    let found = client(&world).await;
    let path = found.service.unwrap().path.unwrap();
    assert_eq!((path.as_str(), found.ca_bundle), ("/convert-example-dev-parcel", bundle));
}

#[tokio::test(start_paused = true)]
async fn a_conversion_at_another_place_stays_while_no_authorities_are_known() {
    let world = World::start().await;
    let url = Some("https://elsewhere.example/convert".to_owned());
    change(&world, |client| (client.service, client.url) = (None, url.clone())).await;
    let mounted = Mounted::start(&world, "elsewhere").await;
    pass(60).await;
    assert_eq!(client(&world).await.url, url);
    let shown = mounted.shown().unwrap();
    assert!(shown.contains("names another place") && shown.contains("`ca.crt`"), "{shown}");
}
