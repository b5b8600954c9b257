//! Mounted certificates that are replaced on disk while an API server asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::ByteString;
use tokio_util::sync::CancellationToken;
use windlass::metrics::{Metrics, names};

use super::*;

/// Longest time until files are read again.
const TAKEN_OVER: Duration = Duration::from_secs(10);

/// Writes a serving certificate that ends with a year, of an authority of its own, over the one of
/// `mounted`: the key first. Returns the authority, PEM.
fn replace(mounted: &Mounted, year: i32) -> String {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let mut serving = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    serving.not_after = rcgen::date_time_ymd(year, 12, 31);
    let key = KeyPair::generate().unwrap();
    let chain = serving.signed_by(&key, &issuer).unwrap().pem();
    for (name, text) in [("tls.key", key.serialize_pem()), ("tls.crt", chain)] {
        let beside = mounted.folder.join(format!(".{name}"));
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, mounted.folder.join(name)).unwrap();
    }
    authority
}

/// Creates maps by dry runs until it is stopped; each must be answered.
async fn ask(maps: Api<ConfigMap>, stop: CancellationToken, asked: Arc<AtomicU64>) {
    let clock = Clock::system();
    while !stop.is_cancelled() {
        let made = maps.create(&config_map("asking")).dry_run().await.unwrap();
        assert_eq!(made.data.unwrap()["host"], "home");
        // `Relaxed`: a count.
        asked.fetch_add(1, Ordering::Relaxed);
        clock.sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until some more requests were answered.
async fn until_more(asked: &AtomicU64) {
    let before = asked.load(Ordering::Relaxed);
    let more = async || asked.load(Ordering::Relaxed) >= before + 50;
    eventually("more requests are answered", more).await;
}

/// Writes the authorities into both configurations.
async fn trust(admin: &Client, name: &str, authorities: &str) {
    let bundle = || Some(ByteString(authorities.as_bytes().to_vec()));
    let mut validating: ValidatingWebhookConfiguration = admin.all().get(name).await.unwrap();
    for entry in validating.webhooks.iter_mut().flatten() {
        entry.client_config.ca_bundle = bundle();
    }
    admin.all().replace(&validating).await.unwrap();
    let mut mutating: MutatingWebhookConfiguration = admin.all().get(name).await.unwrap();
    for entry in mutating.webhooks.iter_mut().flatten() {
        entry.client_config.ca_bundle = bundle();
    }
    admin.all().replace(&mutating).await.unwrap();
}

/// Returns the connections that were closed early, by a cause other than an untrusted certificate.
fn dropped(metrics: &Metrics) -> u64 {
    let causes = ["headers", "write", "displaced", "resets"];
    causes.iter().map(|cause| metrics.counted(&names::WEBHOOK_REFUSED, &[cause])).sum()
}

/// Sockets need real time: the clock is not paused.
#[tokio::test]
async fn mounted_certificates_that_are_replaced_are_shown_within_ten_seconds_and_no_request_fails()
{
    let cluster = TestCluster::start().await;
    let (admin, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let mounted = Mounted::new(&format!("replaced-{namespace}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let hooks = WebhookServer::new(webhooks(&namespace))
        .certificates(MountedFiles::new(&mounted.folder))
        .listener(listener);
    let running = Manager::new(admin.clone()).quiet().without_signals().runnable(hooks).start();
    eventually("the operator is ready", async || running.readiness().is_ready()).await;
    let options = ConfigurationOptions::new(&namespace, "operators").url(url);
    let options = options.ca_bundle(mounted.authority.clone());
    configure(&admin, &webhooks(&namespace), &options).await;
    let maps = admin.namespace::<ConfigMap>(&namespace);
    eventually("both handlers are asked", async || {
        let made = maps.create(&config_map("made")).dry_run().await.unwrap();
        let refused = maps.create(&map("refused", "invalid")).dry_run().await;
        made.data.is_some_and(|data| data.contains_key("host")) && refused.is_err()
    })
    .await;

    let (stop, asked) = (CancellationToken::new(), Arc::<AtomicU64>::default());
    let asking = tokio::spawn(ask(maps, stop.clone(), Arc::clone(&asked)));
    until_more(&asked).await;
    let name = format!("{namespace}-webhooks");
    let clock = Clock::system();
    let mut trusted = mounted.authority.clone();
    let metrics = &admin.environment().metrics;
    for year in [2050, 2051] {
        let shown = || metrics.level(&names::CERTIFICATE_EXPIRES, &[]);
        let before = shown();
        let next = replace(&mounted, year);
        trust(&admin, &name, &format!("{trusted}{next}")).await;
        let taken_over = async {
            while shown() == before {
                clock.sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(clock.timeout(TAKEN_OVER, taken_over).await.is_some(), "the old one is shown");
        // With another bundle API servers open new connections, which trust the new one alone.
        trust(&admin, &name, &next).await;
        trusted = next;
        until_more(&asked).await;
        assert_eq!(dropped(metrics), 0);
    }
    stop.cancel();
    asking.await.unwrap();
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    admin.all::<ValidatingWebhookConfiguration>().delete(&name).await.unwrap();
    admin.all::<MutatingWebhookConfiguration>().delete(&name).await.unwrap();
}
