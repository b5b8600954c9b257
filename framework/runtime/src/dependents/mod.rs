//! Children of an object as a graph: declared once, applied in order, removed in reverse.
//!
//! [`Dependents`] is derived for a struct whose fields are the children. Its `apply` makes each
//! child as the controller describes it: those whose predecessors are ready side by side, each
//! other one when its predecessors are ready. Children that are not wanted any more are removed,
//! and [`Readiness`] says of each child whether it is ready.
//!
//! All of it stands on public parts: children are written by
//! [`Context::apply_owned`](crate::controller::Context::apply_owned), so that nothing is sent when
//! nothing differs, and a reconciler may make further children by itself. The inventory is the
//! cache: the children that the object owns by uid and that carry the [`LABEL`] of the graph. An
//! owner reference names the owner, or with `scope = cluster` a [mark](crate::owner::OWNER), where
//! none can be. A restart loses nothing, because caches are filled before the first reconcile.
//!
//! The parts by file: `graph_run` has the data of one apply, `node` applies the children of one
//! field, `external` drives a resource outside, `rollout` a rolling change, `removal` decides which
//! children go and when, `run` walks through the graph, `registration` adds watches and
//! permissions to a controller.

// DESIGN.md, 158: A graph is a struct of one controller, and a trait with a function per child
// DESIGN.md, 159: Readiness follows kstatus, as typed rules
// DESIGN.md, 160: A label and the owner's uid are the inventory of a graph

mod applied;
pub(crate) mod external;
pub(crate) mod graph_run;
pub(crate) mod main_graph;
pub(crate) mod marker;
pub(crate) mod node;
mod registration;
mod removal;
pub(crate) mod rollout;
pub(crate) mod run;

pub use crate::children::{LABEL, Readiness};
pub use applied::{Applied, Dependent, DependentState};
pub use external::ExternalDependent;
pub use windlass_macros::Dependents;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use self::node::{AnyKind, AnyNode};
use self::run::FieldOutcomes;
use crate::controller::{Context, ControllerBuilder, Reconciler, Result};

/// A call on a graph, which does nothing before it is awaited.
///
/// Boxed, so that a missing `dependents(…)` is reported once, at the call.
pub type DependentsFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The object that a graph's controller reconciles.
type Object<G> = <<G as Dependents>::Controller as Reconciler>::Object;

/// A graph of children; derived from a struct whose fields are the children.
///
/// The derive generates a trait `Desired` + the struct's name, with one `async fn` for each field.
/// The controller implements it: a function returns the child as it should be. One that is missing
/// does not compile, and neither does an `after` that leads back to itself. With `for = Website`
/// beside `by`, the derive implements [`Reconciler`] for the controller as well, so that nothing
/// but the children is to be written.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
/// use windlass::dependents::Dependents;
/// use windlass::prelude::*;
///
/// #[derive(Dependents)]
/// #[dependents(by = Sites)]
/// struct Children {
///     login: Secret,
///     #[dependent(after(login))]
///     app: Deployment,
///     #[dependent(when = is_exposed)]
///     service: Service,
/// }
///
/// fn is_exposed(site: &ConfigMap) -> bool {
///     site.label("exposed") == Some("true")
/// }
///
/// #[derive(Controller)]
/// #[controller(for = ConfigMap, dependents(Children))]
/// struct Sites;
///
/// impl DesiredChildren for Sites {
///     async fn login(&self, site: &ConfigMap, _: &Context<Self>) -> Result<Secret> {
///         Ok(object!(Secret { metadata: { name: format!("{}-login", site.name()) } }))
///     }
///
///     async fn app(&self, site: &ConfigMap, _: &Context<Self>) -> Result<Deployment> {
///         let name = site.name();
///         Ok(object!(Deployment {
///             metadata: { name },
///             spec: {
///                 selector: { matchLabels: { app: name } },
///                 template: {
///                     metadata: { labels: { app: name } },
///                     spec: { containers: [{ name: "web", image: "nginx:1.29" }] },
///                 },
///             },
///         }))
///     }
///
///     async fn service(&self, site: &ConfigMap, _: &Context<Self>) -> Result<Service> {
///         let name = site.name();
///         Ok(object!(Service { metadata: { name }, spec: { selector: { app: name }, ports: [{ port: 80 }] } }))
///     }
/// }
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
///         let children = Children::apply(self, site, cx).await?;
///         children.action()
///     }
/// }
/// ```
pub trait Dependents: Sized + Send + Sync + 'static {
    /// The controller whose objects have these children.
    type Controller: Reconciler;

    /// A [`Dependent`] for each field, under the field's name; an [`ExternalDependent`] for an
    /// external resource.
    type Fields: Send + Debug;

    /// Name of the graph in the label of its children.
    #[doc(hidden)]
    const NAME: &'static str;

    /// The kinds of the fields: a controller of the graph owns them.
    #[doc(hidden)]
    const KINDS: &'static [(&'static [&'static str], usize, usize)];

    /// Returns the nodes in the order of the fields.
    #[doc(hidden)]
    fn nodes() -> Vec<Box<dyn AnyNode<Self::Controller>>>;

    /// Returns the kinds of which earlier versions of the graph had children.
    #[doc(hidden)]
    fn retired() -> Vec<Box<dyn AnyKind<Self::Controller>>>;

    /// Returns the outcomes by name.
    #[doc(hidden)]
    fn fields(outcomes: &mut FieldOutcomes) -> Self::Fields;

    /// Adds the watches and permissions of all kinds of the graph to the controller that applies
    /// it.
    ///
    /// `#[controller(dependents(Children))]` calls it; a hand-written
    /// [`Controller`](crate::controller::Controller) does it in `builder`, as [`OwnsDependents`]
    /// shows.
    ///
    /// # Panics
    /// When a child is of the reconciled kind, when a kind is retired that a field has, and when a
    /// kind is known at run time only.
    fn add_to(builder: ControllerBuilder<Self::Controller>) -> ControllerBuilder<Self::Controller> {
        registration::add_to::<Self>(builder)
    }

    /// Makes every wanted child of `object` exist as the controller describes it, and removes those
    /// that are not wanted any more.
    ///
    /// Children whose predecessors are ready are applied side by side; the others as soon as their
    /// predecessors are ready, which may be in a later reconcile: the change of a child reconciles
    /// its owner. A failure of one child does not keep others from being applied, unless they come
    /// after it. Nothing is sent when nothing differs.
    ///
    /// # Errors
    /// The failures of all children in one; a reconcile that does not want to end by it uses
    /// [`apply_each`](Self::apply_each). A child that is not ready is no error.
    /// # Cancel safety
    /// Dropping it cancels the requests; what they did is completed by the next reconcile.
    fn apply<'a>(
        controller: &'a Self::Controller,
        object: &'a Object<Self>,
        cx: &'a Context<Self::Controller>,
    ) -> DependentsFuture<'a, Result<Applied<Self>>>
    where
        Self::Controller: OwnsDependents<Self>,
    {
        Box::pin(async move { Self::apply_each(controller, object, cx).await.into_result() })
    }

    /// As [`apply`](Self::apply), for a status that says of each child whether it failed: failures
    /// are in the result, and [`Applied::action`] or [`Applied::into_result`] returns them.
    ///
    /// # Cancel safety
    /// As [`apply`](Self::apply).
    fn apply_each<'a>(
        controller: &'a Self::Controller,
        object: &'a Object<Self>,
        cx: &'a Context<Self::Controller>,
    ) -> DependentsFuture<'a, Applied<Self>>
    where
        Self::Controller: OwnsDependents<Self>,
    {
        Box::pin(run::apply::<Self>(controller, object, cx))
    }

    /// Deletes all children of the graph in reverse order, each after those that come after it are
    /// gone; for a clean-up that needs this order, since garbage collection has none.
    ///
    /// The children are deleted in the foreground: one is gone when all that it owns is gone.
    ///
    /// # Errors
    /// A [wait](crate::controller::Failure::wait_for) with the reason `Deleting` while children are
    /// left, and any error of the API server.
    /// # Cancel safety
    /// Dropping it cancels the requests; a repetition is harmless.
    fn delete<'a>(
        controller: &'a Self::Controller,
        object: &'a Object<Self>,
        cx: &'a Context<Self::Controller>,
    ) -> DependentsFuture<'a, Result<()>>
    where
        Self::Controller: OwnsDependents<Self>,
    {
        Box::pin(removal::delete_all::<Self>(controller, object, cx))
    }
}

/// A controller that has the watches and permissions of graph `G`; implemented by
/// `#[controller(dependents(Children))]`.
///
/// A hand-written [`Controller`](crate::controller::Controller) implements it, and calls
/// [`Dependents::add_to`] in its `builder`: that adds watches and permissions, clean-ups and the
/// finalizer. Without `add_to` children are neither watched nor permitted. The children of the
/// graph need no grant; calls beside it have those that the controller implements, of kinds that
/// the graph does not have. Calls beside the graph for one of its kinds, and fields that are a
/// [rollout](crate::rollout), need `#[derive(Controller)]`, whose `with = fn` reaches the whole
/// builder: a hand-written [`Owns`](windlass_core::rbac::Owns) of a kind of the graph is the error
/// E0283.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
/// use windlass::controller::{Controller, ControllerBuilder};
/// use windlass::dependents::{Dependents, OwnsDependents};
/// use windlass::prelude::*;
/// use windlass::rbac::Owns;
///
/// #[derive(Dependents)]
/// #[dependents(by = Sites)]
/// struct Children {
///     service: Service,
/// }
///
/// struct Sites;
///
/// impl Controller for Sites {
///     fn builder() -> ControllerBuilder<Self> {
///         Children::add_to(ControllerBuilder::new().owns::<Secret>())
///     }
/// }
///
/// impl OwnsDependents<Children> for Sites {}
///
/// // For the call beside the graph.
/// impl Owns<Secret> for Sites {}
///
/// # impl DesiredChildren for Sites {
/// #     async fn service(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Service> {
/// #         Ok(Service::default())
/// #     }
/// # }
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
///         let name = format!("{}-key", site.name());
///         cx.apply_owned(object!(Secret { metadata: { name } })).await?;
///         Children::apply(self, site, cx).await?.action()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not watch the children of `{G}`",
    note = "add the graph to the controller: `#[controller(…, dependents({G}))]`; for a controller that is written by hand \
            `impl OwnsDependents<{G}> for {Self} {{}}`, and `{G}::add_to(…)` around the builder in its `builder`"
)]
pub trait OwnsDependents<G> {}
