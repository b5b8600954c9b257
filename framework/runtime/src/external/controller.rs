//! Controller that consists of an external resource.

use std::fmt;

use super::{External, Externals};
use crate::controller::{Context, Controller, ControllerBuilder, Finalize, Reconciler, Result};

/// A whole controller of a kind whose objects stand for external resources:
/// `manager.controller(ExternalController::new(Externals::new(provider)))`.
///
/// Each reconcile drives the resource, calls [`External::report`] for the status, and polls. The
/// clean-up deletes the resource. [`Manager::controller_configured`] changes workers,
/// conditions and the other settings.
///
/// [`Manager::controller_configured`]: crate::manager::Manager::controller_configured
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::external::{External, ExternalController, Externals};
/// use windlass::prelude::*;
///
/// fn operator<E: External>(client: Client, provider: E) -> Manager {
///     let databases = ExternalController::new(Externals::new(provider));
///     Manager::new(client).controller_configured(databases, |builder| builder.outcome_condition("Ready"))
/// }
/// ```
pub struct ExternalController<E> {
    externals: Externals<E>,
}

impl<E> fmt::Debug for ExternalController<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExternalController").field(&self.externals).finish()
    }
}

impl<E: External> ExternalController<E> {
    /// Creates a controller with the settings of that driver.
    pub fn new(externals: Externals<E>) -> Self {
        Self { externals }
    }
}

#[diagnostic::do_not_recommend]
impl<E: External> Reconciler for ExternalController<E> {
    type Object = E::Object;

    async fn reconcile(&self, _: &E::Object, cx: &Context<Self>) -> Result {
        let state = self.externals.reconcile(cx).await?;
        self.externals.provider().report(&state, cx).await?;
        Ok(self.externals.requeue(cx))
    }
}

#[diagnostic::do_not_recommend]
impl<E: External> Finalize for ExternalController<E> {
    async fn cleanup(&self, _: &E::Object, cx: &Context<Self>) -> Result<()> {
        self.externals.cleanup(cx).await
    }
}

#[diagnostic::do_not_recommend]
impl<E: External> Controller for ExternalController<E> {
    fn builder() -> ControllerBuilder<Self> {
        let builder = ControllerBuilder::<Self>::new().finalizer(E::FINALIZER);
        builder.drives_alone(|controller| vec![controller.externals.name().to_owned()])
    }
}
