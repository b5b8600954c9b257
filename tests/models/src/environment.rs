//! Stand-ins of time, randomness and metrics for the modelled source.

use self::clock::Clock;
use self::metrics::Metrics;
use self::rng::Rng;

/// All three.
#[derive(Clone, Default)]
pub struct Environment {
    pub clock: Clock,
    pub rng: Rng,
    pub metrics: Metrics,
}

/// Time that stands still until a model moves it.
pub mod clock {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    use tokio::time::Instant;

    use crate::sync::{Mutex, Notify};

    /// Start of the time of all models: no other clock is read after that.
    static BEGIN: OnceLock<Instant> = OnceLock::new();

    #[derive(Clone, Debug)]
    pub struct Clock(Arc<State>);

    #[derive(Debug)]
    struct State {
        passed: Mutex<Duration>,
        moved: Notify,
    }

    /// A moment.
    #[derive(Clone, Copy, Debug)]
    pub struct ClockReading(Duration);

    impl ClockReading {
        pub fn longest_until(&self, later: &Self) -> Duration {
            later.0.saturating_sub(self.0)
        }
    }

    impl Default for Clock {
        fn default() -> Self {
            Self(Arc::new(State { passed: Mutex::default(), moved: Notify::new() }))
        }
    }

    impl Clock {
        pub fn now(&self) -> Instant {
            *BEGIN.get_or_init(Instant::now) + *self.0.passed.lock()
        }

        pub fn reading(&self) -> ClockReading {
            ClockReading(*self.0.passed.lock())
        }

        /// Time passes.
        pub fn advance(&self, time: Duration) {
            *self.0.passed.lock() += time;
            self.0.moved.notify_waiters();
        }

        pub async fn sleep_until(&self, at: Instant) {
            loop {
                let mut moved = pin!(self.0.moved.notified());
                moved.as_mut().enable();
                if self.now() >= at {
                    return;
                }
                moved.await;
            }
        }

        /// No limit is ever reached.
        pub async fn timeout<T>(&self, _: Duration, future: impl Future<Output = T>) -> Option<T> {
            Some(future.await)
        }
    }
}

/// The same numbers each time.
pub mod rng {
    #[derive(Clone, Default)]
    pub struct Rng;

    impl Rng {
        pub fn fork(&self, _: &str) -> Self {
            Self
        }
        pub fn next_u64(&self) -> u64 {
            1
        }
        pub fn unit(&self) -> f64 {
            0.5
        }
    }
}

/// No model reads metrics.
pub mod metrics {
    use std::sync::Weak;

    #[derive(Clone, Debug, Default)]
    pub struct Metrics;

    pub trait MetricSource: Send + Sync {
        fn collect(&self);
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Durations;

    impl Durations {
        pub fn add(&mut self, _: u64) {}
        pub fn take(&mut self) -> Self {
            Self
        }
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Series;
    pub type CounterSeries = Series;
    pub type GaugeSeries = Series;
    pub type HistogramSeries = Series;

    impl Metrics {
        pub fn counter(&self, _: &(), _: &[&str]) -> Series {
            Series
        }
        pub fn gauge(&self, _: &(), _: &[&str]) -> Series {
            Series
        }
        pub fn histogram(&self, _: &(), _: &[&str]) -> Series {
            Series
        }
        pub fn register_source(&self, _: Weak<dyn MetricSource>) {}
    }

    impl Series {
        pub fn count(&self, _: u64) {}
        pub fn add(&self, _: f64) {}
        pub fn set(&self, _: f64) {}
        pub fn gathering(&self) -> Durations {
            Durations
        }
        pub fn gather(&self, _: &Durations) {}
    }

    pub mod names {
        pub const QUEUE_DEPTH: () = ();
        pub const QUEUE_ADDS: () = ();
        pub const QUEUE_RETRIES: () = ();
        pub const QUEUE_SECONDS: () = ();
        pub const QUEUE_WORK_SECONDS: () = ();
        pub const QUEUE_UNFINISHED_SECONDS: () = ();
        pub const QUEUE_LONGEST_SECONDS: () = ();
    }
}
