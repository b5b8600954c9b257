//! The end of a server: what is answered, what is not waited for, and what is removed.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use windlass_apiserver::faults::{Fault, FaultAction};
use windlass_runtime::manager::WebhookAccess;

use super::own::World;
use super::*;

#[tokio::test(start_paused = true)]
async fn requests_are_answered_after_the_stop_and_then_the_server_ends() {
    let hooks = Hooks::start().await;
    let mut busy = hooks.http().await;
    let asked = tokio::spawn(async move { send(&mut busy, "", json!({ "slow": "" })).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    hooks.stop.cancel();
    assert_eq!(asked.await.unwrap().0, 200);
    hooks.task.await.unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_without_connections_accepts_new_ones_for_a_second_after_the_stop() {
    let hooks = Hooks::start().await;
    let began = Instant::now();
    hooks.stop.cancel();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(hooks.ask(json!({})).await.0, 200, "the Service still leads here");
    }
    hooks.task.await.unwrap().unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn connections_are_answered_once_more_after_the_stop_and_told_to_close() {
    let hooks = Hooks::start().await;
    let (mut used, mut idle) = (hooks.http().await, hooks.http().await);
    for connection in [&mut used, &mut idle] {
        assert_eq!(send(connection, "", json!({})).await.0, 200);
    }
    let began = Instant::now();
    hooks.stop.cancel();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // A closed connection is known to a client only when its next request was lost.
    for connection in [&mut used, &mut hooks.http().await] {
        connection.ready().await.unwrap();
        let answer = connection.send_request(request("", json!({}))).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["connection"], "close");
    }
    hooks.task.await.unwrap().unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn clients_that_send_slowly_hold_up_a_stop_for_no_more_than_three_seconds() {
    for sent in ["", "POST /vali", "the head alone"] {
        let hooks = Hooks::start().await;
        let head = format!(
            "POST {VALIDATE} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
             content-length: 100\r\n\r\n{{"
        );
        let sent = if sent.starts_with("the") { &head } else { sent };
        let mut slow = hooks.tls().await;
        slow.write_all(sent.as_bytes()).await.unwrap();
        let silent = hooks.pipe(1024).await;
        let mut busy = hooks.http().await;
        let asked = tokio::spawn(async move { send(&mut busy, "", json!({ "slow": "" })).await });
        tokio::time::sleep(Duration::from_millis(900)).await;
        let began = Instant::now();
        hooks.stop.cancel();
        assert_eq!(asked.await.unwrap().0, 200);
        hooks.task.await.unwrap().unwrap();
        let took = began.elapsed();
        assert!(took <= Duration::from_secs(3), "{sent:?}: {took:?}");
        drop((slow, silent));
    }
}

#[tokio::test(start_paused = true)]
async fn a_review_that_takes_long_is_answered_after_the_stop() {
    let hooks = Hooks::start().await;
    let mut busy = hooks.http().await;
    let asked =
        tokio::spawn(async move { send(&mut busy, "?timeout=8s", json!({ "hang": "" })).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    hooks.stop.cancel();
    // The handler's own deadline ends it, and not the stop.
    assert_eq!(asked.await.unwrap().0, 504);
    hooks.task.await.unwrap().unwrap();
}

/// The configuration of a process at a URL.
const AT_URL: &str = "shop-webhooks-by-url-shop-webhooks.default.svc";

/// A process at a URL.
struct AtUrl {
    dial: mpsc::Sender<BoxIo>,
    stop: CancellationToken,
    status: Arc<ServerStatus>,
    task: JoinHandle<Result<(), Error>>,
}

impl AtUrl {
    fn start(world: &World) -> Self {
        let (dial, accepted) = mpsc::channel(16);
        let webhooks = Webhooks::new().validating(Rules).mutating(Defaults);
        let server = WebhookServer::new(webhooks).listener(Pipes(Mutex::new(accepted)));
        let (stop, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
        let client = world.client.clone();
        let access = Some(WebhookAccess::at(format!("https://{}", super::own::NAME)));
        let names =
            OperatorInfo { name: "shop".to_owned(), webhooks: access, ..OperatorInfo::default() };
        let task = tokio::spawn({
            let (stop, status) = (stop.clone(), Arc::clone(&status));
            async move { server.run((&client, &names), stop, &status, || ()).await }
        });
        Self { dial, stop, status, task }
    }
}

async fn stays(world: &World) -> bool {
    let validating = world.client.all::<ValidatingWebhookConfiguration>();
    let mutating = world.client.all::<MutatingWebhookConfiguration>();
    validating.get_opt(AT_URL).await.unwrap().is_some()
        || mutating.get_opt(AT_URL).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn configurations_at_a_url_are_not_written_again_after_their_removal_at_the_stop() {
    let world = World::start().await;
    // The second one cannot be written, so that both are written again and again.
    let fault = Fault::new(FaultAction::Answer(403)).on("patch").times(usize::MAX);
    let refused = world.server.faults().add(fault.resource("mutatingwebhookconfigurations"));
    let process = AtUrl::start(&world);
    pass(3).await;
    assert!(stays(&world).await && refused.hits() > 0);
    // A review that is being answered keeps the server up.
    let (near, far) = tokio::io::duplex(64 * 1024);
    process.dial.send(Box::new(far)).await.unwrap();
    let authorities = process.status.certificate().unwrap().authorities().unwrap();
    let config = pki::client_at(&authorities, &world.clock);
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(super::own::NAME.try_into().unwrap(), near).await.unwrap();
    let mut busy = http(stream).await;
    let asked =
        tokio::spawn(async move { send(&mut busy, "?timeout=9s", json!({ "hang": "" })).await });
    pass(1).await;
    process.stop.cancel();
    assert_eq!(asked.await.unwrap().0, 504);
    process.task.await.unwrap().unwrap();
    assert!(!stays(&world).await);
}

#[tokio::test(start_paused = true)]
async fn a_repair_at_a_url_that_is_on_its_way_at_the_stop_is_answered_before_the_removal() {
    let world = World::start().await;
    let process = AtUrl::start(&world);
    pass(3).await;
    world.client.all::<ValidatingWebhookConfiguration>().delete(AT_URL).await.unwrap();
    let fault = Fault::new(FaultAction::Delay(Duration::from_secs(3))).on("patch");
    let fault = fault.resource("validatingwebhookconfigurations");
    let delayed = world.server.faults().add(fault);
    while delayed.hits() == 0 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let began = Instant::now();
    process.stop.cancel();
    process.task.await.unwrap().unwrap();
    // An API server may execute a request whose client is gone.
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    pass(10).await;
    assert!(!stays(&world).await);
}
