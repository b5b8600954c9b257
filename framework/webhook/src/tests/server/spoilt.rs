//! Secrets that somebody spoilt or deleted while replicas serve.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::logs::Captured;
use super::own::{Replica, World};
use super::*;

const SECRET: &str = "shop-webhook-certificates";

fn text(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}

/// Writes texts into the Secret.
async fn write<const N: usize>(world: &World, texts: [(&str, String); N]) {
    let mut secret = world.secret().await;
    let data = secret.data.get_or_insert_default();
    data.extend(texts.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))));
    world.client.namespace::<Secret>("default").replace(&secret).await.unwrap();
}

/// Returns a certificate and its key, PEM, which the certificate itself signed.
fn self_signed(names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(2029, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Asks each replica once a second.
async fn ask(world: &World, replicas: &[Replica], seconds: u64, case: &str) {
    for second in 0..seconds {
        for replica in replicas {
            assert_eq!(world.ask(replica).await.0, 200, "{case}, after {second} s");
        }
        pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_serving_pair_that_api_servers_refuse_is_signed_anew_by_the_same_authority() {
    let service = ["shop-webhooks.default.svc", "shop-webhooks.default.svc.cluster.local"];
    let names = [service[0], service[1], "localhost", "127.0.0.1"];
    for case in ["a key of another certificate", "no names", "its own authority"] {
        let world = World::start().await;
        let replicas = [world.replica(), world.replica()];
        pass(2).await;
        let before = world.secret().await;
        let (certificate, key) = match case {
            "no names" => self_signed(&[]),
            "its own authority" => self_signed(&names),
            _ => (text(&before, "tls.crt"), self_signed(&names).1),
        };
        write(&world, [("tls.crt", certificate.clone()), ("tls.key", key)]).await;
        ask(&world, &replicas, 130, case).await;
        let after = world.secret().await;
        assert_ne!(text(&after, "tls.crt"), certificate, "{case}");
        assert_eq!(text(&after, "signing-ca.crt"), text(&before, "signing-ca.crt"), "{case}");
        let check = replicas[0].status.checks().remove(0);
        assert!(check.ok && !check.detail.contains(';'), "{case}: {check:?}");
        for replica in replicas {
            replica.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_starts_with_a_secret_whose_key_does_not_belong_to_the_certificate() {
    for (certificate, key) in [("tls.crt", "tls.key"), ("signing-ca.crt", "signing-ca.key")] {
        let captured = Captured::default();
        let _logs = tracing::subscriber::set_default(captured.clone());
        let world = World::start().await;
        let replica = world.replica();
        pass(2).await;
        replica.end().await;
        let before = world.secret().await;
        write(&world, [(key, self_signed(&[]).1)]).await;
        let replica = world.replica();
        pass(20).await;
        assert_eq!(world.ask(&replica).await.0, 200, "{key}");
        let is_same = text(&world.secret().await, certificate) == text(&before, certificate);
        assert!(!is_same, "{certificate} is another one");
        let logged = captured.text();
        assert!(logged.contains("default/shop-webhook-certificates"), "{logged}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_fails_while_a_secret_that_was_deleted_or_spoilt_is_made_anew() {
    for case in ["deleted", "emptied", "without authority", "authority of another key"] {
        let world = World::start().await;
        let replicas = [world.replica(), world.replica()];
        pass(30).await;
        let before = world.secret().await;
        let secrets = world.client.namespace::<Secret>("default");
        match case {
            "deleted" => drop(secrets.delete(SECRET).await.unwrap()),
            "emptied" => {
                let emptied = Secret { data: None, ..before.clone() };
                drop(secrets.replace(&emptied).await.unwrap());
            }
            "without authority" => write(&world, [("signing-ca.crt", "none".to_owned())]).await,
            _ => write(&world, [("signing-ca.key", self_signed(&[]).1)]).await,
        }
        ask(&world, &replicas, 200, case).await;
        let after = world.secret().await;
        assert_ne!(text(&after, "signing-ca.crt"), text(&before, "signing-ca.crt"), "{case}");
        assert!(text(&after, "ca.crt").contains(text(&before, "signing-ca.crt").trim()), "{case}");
        for replica in replicas {
            replica.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_spoilt_authority_in_the_bundle_of_the_secret_is_left_out() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let bundle = text(&world.secret().await, "ca.crt");
    let spoilt = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n";
    write(&world, [("ca.crt", format!("{bundle}{spoilt}"))]).await;
    pass(80).await;
    let shown = replica.status.certificate().unwrap().authorities();
    assert_eq!(shown, Some(bundle));
}
