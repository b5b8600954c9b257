//! A reconcile of a key: creations pass admission, whose webhooks the reconcile cannot wait for.
//!
//! A creation that needs a webhook's answer ends the reconcile. The questions are put meanwhile,
//! and the next reconcile of the key makes the same object again and finds the answers in the
//! session.

// DESIGN.md, 151: Creations of stand-ins pass admission

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::WorkloadKey;
use super::objects::{self, ObjectEvent, Resource};
use crate::auth::User;
use crate::controllers::selection::Controller;
use crate::core::ServerCore;
use crate::hooks::WebhookSession;
use crate::status::ApiError;
use crate::verbs::create;

/// Group of all service accounts.
const ACCOUNTS: &str = "system:serviceaccounts";

/// A reconcile of a key.
#[derive(Debug)]
pub(super) struct WorkloadReconcile<'a> {
    core: &'a ServerCore,
    /// Account of the controller.
    user: User,
    /// Questions and answers of the next creation.
    session: RefCell<Arc<WebhookSession>>,
    /// Failure of the next creation, which ran out of time.
    failure: RefCell<Option<ApiError>>,
}

/// The functions that read and write objects take the core: they pass no admission.
impl Deref for WorkloadReconcile<'_> {
    type Target = ServerCore;

    fn deref(&self) -> &ServerCore {
        self.core
    }
}

/// The answers for the first creation of a reconcile, and the failure if answers did not come in
/// time.
pub(super) type WebhookAnswers = (Arc<WebhookSession>, Option<ApiError>);

impl<'a> WorkloadReconcile<'a> {
    /// Creates the reconcile of a key; `answered` after a wait for webhooks.
    pub(super) fn new(
        core: &'a ServerCore,
        key: &WorkloadKey,
        answered: Option<WebhookAnswers>,
    ) -> Self {
        let (session, failure) = answered.unwrap_or_else(|| (WebhookSession::open(), None));
        let name = format!("system:serviceaccount:kube-system:{}", account(key.controller));
        let groups = [ACCOUNTS, "system:serviceaccounts:kube-system"];
        let user = User::new(name, &groups).authenticated();
        Self { core, user, session: RefCell::new(session), failure: RefCell::new(failure) }
    }

    /// Creates an object as the controller, once admission allows that.
    pub(super) fn create(
        &self,
        resource: Resource,
        namespace: &str,
        object: Value,
    ) -> Result<Value, ApiError> {
        let mut call = objects::call(self, resource, namespace, "")?;
        call.session = self.session.borrow().clone();
        call.user = self.user.clone();
        let made = match self.failure.take() {
            Some(failure) => Err(failure),
            None => create::create(self, &call, object, &mut Vec::new()),
        };
        if !call.session.is_waiting() {
            // The next object has a uid and a name of its own, and needs separate answers.
            *self.session.borrow_mut() = WebhookSession::open();
        }
        made.map(|answer| answer.value)
    }

    /// Writes the event about an object that could not be created: not while webhooks are asked,
    /// nor in a namespace that is about to go.
    pub(super) fn record_failure(
        &self,
        about: &Value,
        event: ObjectEvent<'_>,
        error: &ApiError,
        text: &str,
    ) {
        let is_ending = error.causes().iter().any(|cause| cause.reason == "NamespaceTerminating");
        if !self.is_waiting() && !is_ending {
            let event = ObjectEvent { level: "Warning", ..event };
            objects::record_repeated_event(self, about, event, text);
        }
    }

    /// Whether a creation waits for webhooks.
    pub(super) fn is_waiting(&self) -> bool {
        self.session.borrow().is_waiting()
    }

    /// Returns the session of a creation that waits for webhooks.
    pub(super) fn into_waiting(self) -> Option<Arc<WebhookSession>> {
        Some(self.session.into_inner()).filter(|session| session.is_waiting())
    }
}

/// Returns the name of the service account of a controller.
fn account(controller: Controller) -> &'static str {
    match controller {
        Controller::Deployments => "deployment-controller",
        Controller::ReplicaSets => "replicaset-controller",
        Controller::StatefulSets => "statefulset-controller",
        Controller::DaemonSets => "daemon-set-controller",
        Controller::Jobs => "job-controller",
        Controller::CronJobs => "cronjob-controller",
        _ => "generic-garbage-collector",
    }
}
