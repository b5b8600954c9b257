//! Repeated runs of a verb, until all needed answers of webhooks are there.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::core::ServerCore;
use crate::hooks::{CallFailure, HookResponse, WebhookSession};
use crate::status::ApiError;

/// Most runs of a verb. Each but the last ends with a question that has not been asked before; a
/// collection of many objects asks for each of them.
const RUNS: usize = 100_000;
/// Longest time for a request, as in kube-apiserver.
const LONGEST: Duration = Duration::from_secs(34);

/// The calls that a request may still make.
#[derive(Debug)]
pub(crate) struct RemainingWebhookCalls {
    session: Arc<WebhookSession>,
    deadline: Instant,
    /// Whether the client has set the deadline.
    is_own: bool,
    runs: usize,
}

impl RemainingWebhookCalls {
    /// Returns the run of a request that may take `limit`, and no longer than upstream allows.
    pub(crate) fn new(session: Arc<WebhookSession>, limit: Option<Duration>) -> Self {
        let own = limit.filter(|limit| !limit.is_zero() && *limit < LONGEST);
        let deadline = Instant::now() + own.unwrap_or(LONGEST);
        Self { session, deadline, is_own: own.is_some(), runs: 0 }
    }

    /// Puts the open questions of a suspended verb to their webhooks, all at once. False if there
    /// are none: the verb has ended.
    pub(crate) async fn goes_on(&mut self, core: &Arc<ServerCore>) -> Result<bool, ApiError> {
        let pending = self.session.take_pending();
        if pending.is_empty() {
            return Ok(false);
        }
        self.runs += 1;
        if self.runs > RUNS {
            return Err(ApiError::internal("the object changes with every call of its webhooks"));
        }
        // Webhooks see stored objects: not before these outlive the process.
        core.store.durable().await;
        let mut calls = JoinSet::new();
        for (question, uid) in pending {
            let (core, deadline) = (core.clone(), self.deadline);
            calls.spawn(async move {
                let (store, long) = (&core.store, &core.long_work);
                let result = core.webhooks.call(store, long, &question, &uid, deadline).await;
                (question, HookResponse { uid, result })
            });
        }
        let mut is_over = false;
        while let Some(done) = calls.join_next().await {
            // A call that panicked stays unanswered, and is asked again.
            let Ok((question, answer)) = done else { continue };
            is_over |= matches!(answer.result, Err(CallFailure::Deadline));
            self.session.answer(question, answer);
        }
        // Not for the webhook's failure policy to decide: the time of the request is over.
        if is_over { Err(ApiError::deadline(self.is_own)) } else { Ok(true) }
    }
}
