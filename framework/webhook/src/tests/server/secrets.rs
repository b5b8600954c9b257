//! Keys are in no log and in no `Debug`.

use k8s_openapi::api::core::v1::Secret;

use super::certificates::Folder;
use super::logs::Captured;
use super::own::World;
use super::*;
use crate::{MountedFiles, OwnCertificates};

/// Returns the lines of a key, without those around it.
fn lines(pem: &str) -> impl Iterator<Item = &str> {
    pem.lines().filter(|line| !line.starts_with("-----") && line.len() > 16)
}

fn assert_absent(key: &str, texts: &[String]) {
    assert!(lines(key).count() >= 2, "a key has lines");
    for line in lines(key) {
        let hex: String = line.bytes().map(|byte| format!("{byte}, ")).collect();
        for text in texts {
            assert!(!text.contains(line) && !text.contains(&hex), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn keys_of_own_certificates_are_in_no_log_and_in_no_debug() {
    let captured = Captured::default();
    let _logs = tracing::subscriber::set_default(captured.clone());
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let mut secret: Secret = world.secret().await;
    let mut keys = Vec::new();
    let mut collect = |secret: &Secret| {
        for (name, value) in secret.data.iter().flatten() {
            if name.ends_with(".key") {
                keys.push(String::from_utf8(value.0.clone()).unwrap());
            }
        }
    };
    collect(&secret);
    world.clock.sleep_machine(Duration::from_secs(293 * 24 * 3600));
    pass(70).await;
    secret = world.secret().await;
    collect(&secret);
    pass(4000).await;
    collect(&world.secret().await);
    // One that is spoilt is reported.
    let key = secret.data.as_mut().unwrap().get_mut("tls.key").unwrap();
    key.0.truncate(100);
    secret.metadata.resource_version = None;
    world.client.namespace::<Secret>("default").replace(&secret).await.unwrap();
    pass(70).await;
    collect(&world.secret().await);
    keys.sort();
    keys.dedup();
    assert!(keys.len() >= 5, "the serving key and those of authorities: {}", keys.len());
    let server = WebhookServer::new(Webhooks::new()).certificates(OwnCertificates::new());
    let texts = [
        captured.text(),
        format!("{server:?} {:?}", replica.status),
        format!("{:#?}", replica.status.certificate()),
        format!("{:?} {:?}", OwnCertificates::new(), replica.status.checks()),
    ];
    assert!(texts[0].contains("a serving certificate is shown"), "logs are captured");
    keys.iter().for_each(|key| assert_absent(key, &texts));
}

#[tokio::test(start_paused = true)]
async fn mounted_keys_are_in_no_log_also_when_they_cannot_be_used() {
    let captured = Captured::default();
    let _logs = tracing::subscriber::set_default(captured.clone());
    let authority = Authority::new("first");
    let folder = Folder::new("canary");
    let (chain, key) = authority.issue();
    let (_, other_key) = authority.issue();
    let broken: String = key.lines().take(2).map(|line| format!("{line}\n")).collect();
    folder.write("tls.crt", &chain);
    folder.write("tls.key", &key);
    let files = MountedFiles::new(folder.path());
    let used = files.clone();
    let hooks = Hooks::start_with(|server| server.certificates(used)).await;
    for text in [&other_key, &broken] {
        folder.write("tls.key", text);
        pass(10).await;
    }
    // The files in the wrong order.
    folder.write("tls.crt", &key);
    pass(10).await;
    assert!(hooks.check().1.contains("serving certificate"), "{:?}", hooks.check());
    let texts = [captured.text(), format!("{files:?} {:?} {:?}", hooks.status, hooks.check())];
    assert!(texts[0].contains("the previous one stays in use"), "logs are captured");
    for key in [key, other_key] {
        assert_absent(&key, &texts);
    }
}
