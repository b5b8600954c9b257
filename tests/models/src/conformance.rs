//! The notification that models use behaves as tokio's, step by step.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use crate::sync::Notify;

pub const MODELS: &[(&str, fn())] = &[("the_notification_agrees_with_tokios", agrees)];

const FUTURES: usize = 3;
const RUNS: u64 = 3_000;
const STEPS: usize = 16;

/// A step of the play on both sides.
trait Side {
    type Notified;
    fn notify_one(&self);
    fn notify_waiters(&self);
    fn notified(&self) -> Self::Notified;
    fn enable(notified: &mut Self::Notified) -> bool;
    fn is_ready(notified: &mut Self::Notified) -> bool;
}

macro_rules! side {
    ($notify:ty, $notified:ty) => {
        impl Side for &'static $notify {
            type Notified = Pin<Box<$notified>>;
            fn notify_one(&self) {
                <$notify>::notify_one(self);
            }
            fn notify_waiters(&self) {
                <$notify>::notify_waiters(self);
            }
            fn notified(&self) -> Self::Notified {
                Box::pin(<$notify>::notified(self))
            }
            fn enable(notified: &mut Self::Notified) -> bool {
                notified.as_mut().enable()
            }
            fn is_ready(notified: &mut Self::Notified) -> bool {
                let mut context = Context::from_waker(Waker::noop());
                notified.as_mut().poll(&mut context).is_ready()
            }
        }
    };
}
side!(tokio::sync::Notify, tokio::sync::futures::Notified<'static>);
side!(Notify, crate::sync::Notified<'static>);

/// Plays the steps of `seed` and returns the observations.
fn play<S: Side>(side: &S, seed: u64) -> Vec<bool> {
    let mut draw = seed;
    let mut below = |bound: u64| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 33) % bound
    };
    let mut futures: [Option<(S::Notified, bool)>; FUTURES] = [const { None }; FUTURES];
    let mut seen = Vec::new();
    for _ in 0..STEPS {
        let at = below(FUTURES as u64) as usize;
        match (below(7), &mut futures[at]) {
            (0 | 1, _) => side.notify_one(),
            (2, _) => side.notify_waiters(),
            (3, place) => *place = None,
            // A future that is done is not asked again.
            (_, Some((_, true))) => {}
            (4, Some((notified, _))) => seen.push(S::enable(notified)),
            (_, Some((notified, is_done))) => {
                *is_done = S::is_ready(notified);
                seen.push(*is_done);
            }
            (_, place) => *place = Some((side.notified(), false)),
        }
    }
    seen
}

fn agrees() {
    for seed in 0..RUNS {
        let tokios = play(&&*Box::leak(Box::new(tokio::sync::Notify::new())), seed);
        loom::model(move || {
            // Leaked so that both sides have the same type of future; a few bytes a run.
            let ours = play(&&*Box::leak(Box::new(Notify::new())), seed);
            assert_eq!(ours, tokios, "seed {seed}");
        });
    }
}
