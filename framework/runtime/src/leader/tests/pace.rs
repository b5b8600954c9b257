//! An election does not queue behind the requests of the workers whose writes the election gates.

use std::io;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;

use super::*;
use windlass_client::client::{BoxIo, Client, Connect, Permit, RequestLimiter};

/// A limiter whose permits are all taken; counts the requests that wait for a permit.
#[derive(Debug, Default)]
struct Exhausted(AtomicU32);

impl RequestLimiter for Exhausted {
    fn try_accept(&self) -> bool {
        false
    }

    fn accept(&self, _: Option<Instant>) -> Permit<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }

    fn qps(&self) -> f64 {
        1.0
    }
}

/// Counts the requests that get as far as needing a connection.
#[derive(Debug, Default)]
pub(super) struct Counted(AtomicU32);

impl Connect for Counted {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_an_election_wait_for_no_permit_of_the_operators_client() {
    let (connector, limiter) = (Arc::new(Counted::default()), Arc::new(Exhausted::default()));
    let environment =
        Environment { clock: Clock::system(), rng: Rng::seeded(3), metrics: Metrics::new() };
    let client = Client::builder()
        .connector(Arc::clone(&connector) as Arc<dyn Connect>)
        .environment(environment)
        .rate_limiter(Arc::clone(&limiter) as Arc<dyn RequestLimiter>)
        .build()
        .unwrap();
    let elector = Elector::new(LeaderElection::new("ops"), &client).unwrap();
    let stop = CancellationToken::new();
    let campaign = elector.campaign(&stop);
    assert!(tokio::time::timeout(Duration::from_secs(1), campaign).await.is_err());
    assert!(connector.0.load(Ordering::Relaxed) > 0, "the lease was asked for");
    assert_eq!(limiter.0.load(Ordering::Relaxed), 0, "and nothing waits for a permit");
}
