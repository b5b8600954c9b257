//! State of an operator before its first stage.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::leader::Elector;
use crate::manager::endpoints::{OperatorStatus, SharedStatus};
use crate::manager::recording::Recorder;
use crate::manager::runnable::OperatorInfo;
use crate::manager::{Manager, checks, manifests, planning};
use windlass_cache::informer::InformerRegistry;
use windlass_core::error::Error;
use windlass_core::resource::ResourceExt;

/// The definitions of an operator, or the errors of their making.
pub(super) type Definitions = Vec<Result<CustomResourceDefinition, Error>>;

/// Sets up the state that probes and the debug page read; returns the first setting that cannot
/// work, too.
pub(super) fn set_up(
    manager: Manager,
    stop: &CancellationToken,
) -> (SharedStatus, Definitions, Option<Error>) {
    let checked = checks::names(&manager)
        .and_then(|()| checks::conditions(&manager))
        .and_then(|()| checks::drivers(&manager))
        .and_then(|()| checks::shadow(&manager));
    if manager.shadow.is_some() {
        planning::refuse_writes(&manager.clusters);
    }
    let name = manager.display_name().to_owned();
    let recorder = Recorder::of(&manager, &name);
    let names = OperatorInfo {
        name: name.clone(),
        definitions: manifests::definition_names(&manager),
        webhooks: manager.webhook_access.clone(),
        installed: CancellationToken::new(),
    };
    let Manager { client, controllers, definitions, election, namespaces, caches, .. } = manager;
    let informers = InformerRegistry::new(client.clone(), namespaces);
    let mut caches = caches.into_iter();
    let cached = caches.try_for_each(|(info, options)| informers.set_options(info, options));
    let is_elected = election.is_some();
    let lease = election.as_ref().map(|settings| settings.name.clone());
    let elector = election.map(|settings| Elector::new(settings, &client)).transpose();
    let (elector, problem) = match checked.and(cached).and(elector) {
        Ok(elector) => (elector, None),
        Err(problem) => (None, Some(problem)),
    };
    if is_elected {
        // No process leads yet: writes to other clusters are refused until a term begins.
        manager.clusters.iter().for_each(|cluster| cluster.fence(None));
    }
    let status = OperatorStatus {
        name,
        names: Arc::new(names),
        began: client.environment().clock.now(),
        client,
        stop: stop.clone(),
        informers,
        clusters: manager.clusters,
        controllers,
        runnables: manager.runnables,
        lease,
        elector,
        recorder,
        installs: definitions.iter().flatten().map(|one| one.name().to_owned()).collect(),
        kept_definitions: Mutex::default(),
        starting: Mutex::new(Some("starting".to_owned())),
        gate: Mutex::new(None),
    };
    (Arc::new(status), definitions, problem)
}
