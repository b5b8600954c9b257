//! Certificates from files, and their lives.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;

use super::*;
use crate::MountedFiles;

/// A folder of its own, removed at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("webhook-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(start_paused = true)]
async fn w1_mounted_files_are_replaced_within_ten_seconds() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let folder = Folder::new("reload");
    let write = |(chain, key): &(String, String)| {
        folder.write("tls.crt", chain);
        folder.write("tls.key", key);
    };
    write(&first.issue());
    let path = folder.path().to_owned();
    let hooks = Hooks::start_with(|server| server.certificates(MountedFiles::new(path))).await;
    let dial = async |authority: &Authority| {
        connect(authority.client(&[]), hooks.pipe(64 * 1024).await).await
    };
    let mut old = http(dial(&first).await.unwrap()).await;
    assert_eq!(send(&mut old, "", json!({})).await.0, 200);
    write(&second.issue());
    pass(10).await;
    assert!(dial(&first).await.is_err());
    assert!(dial(&second).await.is_ok());
    assert_eq!(send(&mut old, "", json!({})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_is_half_written_changes_nothing_and_is_reported() {
    let authority = Authority::new("first");
    let folder = Folder::new("half");
    let (chain, key) = authority.issue();
    folder.write("tls.crt", &chain);
    folder.write("tls.key", &key);
    let path = folder.path().to_owned();
    let hooks = Hooks::start_with(|server| server.certificates(MountedFiles::new(path))).await;
    let (next, next_key) = authority.issue();
    for (text, wanted) in [
        (next.as_str(), "do they belong together?"),
        ("", "the serving certificate is empty"),
        ("-----BEGIN CERTIFICATE-----\nMII", "serving certificate"),
    ] {
        folder.write("tls.crt", text);
        pass(10).await;
        let (ok, detail) = hooks.check();
        assert!(ok && detail.contains(wanted), "{detail}");
        let stream = connect(authority.client(&[]), hooks.pipe(64 * 1024).await).await;
        assert!(stream.is_ok(), "{text}");
    }
    std::fs::remove_file(folder.path().join("tls.key")).unwrap();
    folder.write("tls.crt", &next);
    pass(10).await;
    assert!(hooks.check().1.contains("cannot read"), "{}", hooks.check().1);
    folder.write("tls.key", &next_key);
    pass(10).await;
    let (ok, detail) = hooks.check();
    assert!(ok && !detail.contains(';'), "{detail}");
}

/// Returns a place for certificates on a simulated day.
pub(super) fn place(now: &str) -> (ServingCertificate, Clock) {
    let clock = Clock::simulated(now.parse::<Timestamp>().unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let metrics = Environment::system().metrics;
    (ServingCertificate::new(provider, clock.clone(), metrics), clock)
}

#[tokio::test(start_paused = true)]
async fn w1_readiness_warns_of_the_last_fifth_of_a_life_and_falls_at_its_end() {
    let (place, clock) = place("2026-01-01T00:00:00Z");
    assert!(!place.check().ok);
    let (chain, key) = Authority::new("first").issue_between((2026, 1, 1), (2026, 4, 11));
    place.set(chain.as_bytes(), key.as_bytes()).unwrap();
    let day = Duration::from_secs(24 * 3600);
    for (days, ok, text) in [
        (79, true, "certificate until"),
        (2, true, "ends soon, at 2026-04-11"),
        (19, false, "expired at"),
    ] {
        clock.sleep_machine(day * days);
        let check = place.check();
        assert!(check.ok == ok && check.detail.contains(text), "{check:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn w1_an_expired_certificate_does_not_replace_one_that_lives() {
    let (place, _) = place("2026-01-01T00:00:00Z");
    let authority = Authority::new("first");
    let (chain, key) = authority.issue();
    place.set(chain.as_bytes(), key.as_bytes()).unwrap();
    let (chain, key) = authority.issue_between((2024, 1, 1), (2025, 1, 1));
    let error = place.set(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("expired at 2025-01-01T00:00:00Z"), "{error}");
    let check = place.check();
    assert!(check.ok && check.detail.contains(&error), "{check:?}");
    assert!(!format!("{place:?}{error}").contains("PRIVATE"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_life_is_read_from_both_forms_of_time() {
    let (place, _) = place("2026-01-01T00:00:00Z");
    let authority = Authority::new("first");
    for (end, text) in
        [((2049, 12, 31), "2049-12-31T00:00:00Z"), ((2050, 1, 1), "2050-01-01T00:00:00Z")]
    {
        let (chain, key) = authority.issue_between((1999, 6, 1), end);
        place.set(chain.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(place.not_after().unwrap().to_string(), text);
    }
    for cut in 0..chain_der(&authority).len() {
        // No prefix of a certificate ends the process.
        let _ = place.set(&chain_der(&authority)[..cut], b"");
    }
}

fn chain_der(authority: &Authority) -> &[u8] {
    authority.pem.as_bytes()
}

#[tokio::test(start_paused = true)]
async fn the_authorities_of_mounted_files_reach_the_definitions_and_follow_the_file() {
    use k8s_openapi::ByteString;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    let world = super::own::World::start().await;
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let folder = Folder::new("authorities");
    let write = |authority: &Authority| {
        let (chain, key) = authority.issue();
        folder.write("tls.crt", &chain);
        folder.write("tls.key", &key);
        folder.write("ca.crt", &authority.pem);
    };
    write(&first);
    let (_dial, accepted) = mpsc::channel(16);
    let webhooks = Webhooks::new().converting::<crate::tests::versions::v1::Parcel>();
    let server = WebhookServer::new(webhooks)
        .certificates(MountedFiles::new(folder.path()))
        .listener(Pipes(Mutex::new(accepted)));
    let (client, status) = (world.client.clone(), Arc::new(ServerStatus::default()));
    tokio::spawn(async move {
        let names = OperatorInfo { name: "shop".to_owned(), ..OperatorInfo::default() };
        server.run((&client, &names), CancellationToken::new(), &status, || ()).await
    });
    let bundle = async || {
        let definitions = world.client.all::<CustomResourceDefinition>();
        let definition = definitions.get("parcels.example.dev").await.unwrap();
        let client = definition.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap();
        assert_eq!(client.service.unwrap().name, "shop-webhooks");
        client.ca_bundle
    };
    pass(5).await;
    assert_eq!(bundle().await, Some(ByteString(first.pem.clone().into_bytes())));
    write(&second);
    pass(10).await;
    // Other replicas may show a certificate of the first one for some time.
    let both = format!("{}{}", second.pem, first.pem);
    assert_eq!(bundle().await, Some(ByteString(both.into_bytes())));
    // An hour, and two readings of other replicas.
    pass(3600 + 165).await;
    assert_eq!(bundle().await, Some(ByteString(second.pem.clone().into_bytes())));
    // A file that is half written changes nothing.
    folder.write("ca.crt", "-----BEGIN CERTIFICATE-----\nMII");
    pass(60).await;
    assert_eq!(bundle().await, Some(ByteString(second.pem.clone().into_bytes())));
}
