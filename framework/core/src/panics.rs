//! Catches panics of called code and returns them as values, so that the caller goes on.
//!
//! A panic in a reconcile, a listener or a predicate concerns a single object. Caught here, the
//! panic becomes an error of that object, and the worker goes on with others. With
//! `panic = "abort"` nothing can be caught.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Payload of a panic.
pub(crate) type Panic = Box<dyn Any + Send>;

/// Awaits `future`, and returns a panic inside as an error. The future is not polled again after a
/// panic.
#[doc(hidden)]
pub async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    // Unwind safe: after a panic the future is dropped without another poll.
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// The text of a panic, for logs and errors.
#[doc(hidden)]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with something other than a text".to_owned())
}
