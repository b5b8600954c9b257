//! Mounted certificates of another authority, which replicas read at different moments.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::certificates::Folder;
use super::own::World;
use super::*;
use crate::MountedFiles;
use crate::tests::versions::v1;

const DEFINITION: &str = "parcels.example.dev";

/// A replica with a folder of its own, as on a node of its own.
struct Mounted {
    folder: Folder,
    dial: mpsc::Sender<BoxIo>,
    status: Arc<ServerStatus>,
    shown: std::sync::Mutex<String>,
}

impl Mounted {
    async fn start(world: &World, name: &str, authority: &Authority) -> Self {
        let (dial, accepted) = mpsc::channel(16);
        let folder = Folder::new(name);
        let status = Arc::new(ServerStatus::default());
        let it = Self { folder, dial, status: Arc::clone(&status), shown: Default::default() };
        it.write(authority);
        let server = WebhookServer::new(Webhooks::new().converting::<v1::Parcel>())
            .certificates(MountedFiles::new(it.folder.path()))
            .listener(Pipes(Mutex::new(accepted)));
        let client = world.client.clone();
        tokio::spawn(async move {
            let names = OperatorInfo { name: "shop".to_owned(), ..OperatorInfo::default() };
            server.run((&client, &names), CancellationToken::new(), &status, || ()).await
        });
        pass(5).await;
        it
    }

    /// Writes a certificate of an authority.
    fn write(&self, authority: &Authority) {
        let (chain, key) = authority.issue();
        self.folder.write("tls.crt", &chain);
        self.folder.write("tls.key", &key);
        self.folder.write("ca.crt", &authority.pem);
        self.shown.lock().unwrap().clone_from(&authority.pem);
    }

    /// Whether the replica shows a certificate of one of these authorities.
    async fn is_trusted_by(&self, authorities: &str) -> bool {
        let (near, far) = tokio::io::duplex(64 * 1024);
        self.dial.send(Box::new(far)).await.unwrap();
        connect(pki::client_of(authorities), near).await.is_ok()
    }
}

/// Returns the authorities in the definition.
async fn bundle(world: &World) -> String {
    let stored: CustomResourceDefinition = world.client.all().get(DEFINITION).await.unwrap();
    let client = stored.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap();
    String::from_utf8(client.ca_bundle.unwrap().0).unwrap()
}

#[tokio::test(start_paused = true)]
async fn no_conversion_fails_while_replicas_read_files_of_another_authority_at_different_moments() {
    let world = World::start().await;
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let replicas = [
        Mounted::start(&world, "one", &first).await,
        Mounted::start(&world, "other", &first).await,
    ];
    assert_eq!(bundle(&world).await, first.pem);
    // A kubelet takes up to two minutes to update a mounted Secret.
    for second_of_test in 0..300 {
        match second_of_test {
            10 => replicas[0].write(&second),
            130 => replicas[1].write(&second),
            _ => {}
        }
        let authorities = bundle(&world).await;
        for (number, replica) in replicas.iter().enumerate() {
            // API servers read a changed definition within a second.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let is_trusted = replica.is_trusted_by(&authorities).await;
            assert!(is_trusted, "replica {number} after {second_of_test} s");
        }
    }
    assert!(bundle(&world).await.contains(second.pem.trim()));
    for replica in &replicas {
        assert!(replica.is_trusted_by(&second.pem).await, "the new certificate is shown");
        assert!(replica.status.checks().iter().all(|check| check.ok));
    }
    // An hour after the last change the old authority goes; what others added, an hour later.
    pass(2 * 3600 + 60).await;
    assert_eq!(bundle(&world).await, second.pem);
    let version = async || {
        let stored: CustomResourceDefinition = world.client.all().get(DEFINITION).await.unwrap();
        stored.metadata.resource_version
    };
    let before = version().await;
    pass(3600).await;
    assert_eq!(version().await, before, "nobody writes it");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_another_authority_is_shown_within_ten_seconds() {
    let world = World::start().await;
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let replica = Mounted::start(&world, "soon", &first).await;
    pass(2).await;
    replica.write(&second);
    pass(10).await;
    assert!(replica.is_trusted_by(&second.pem).await);
    assert!(!replica.is_trusted_by(&first.pem).await);
}
