//! Grants as traits: [`Can`] is implemented by the derive, calls require the trait of their verb.

// DESIGN.md, 79: `Can<V, K>` is implemented; calls require `CanGet<K>` and its siblings

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};

use super::{SubresourceOf, subresources, verbs};

/// `C` may use verb `V` on kind `K`, or on a [`SubresourceOf`] a kind. Derived from
/// `#[controller(can(get Pod))]`.
///
/// A grant that is limited to names (`can(get Secret["tls"])`) is a grant on the kind here; the API
/// server refuses other names.
///
/// Methods require the trait of their verb, such as [`CanGet`], which this trait implies: the
/// compiler then names the missing verb as spelt in `can(…)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `{V}` on `{K}`",
    note = "add the verb to the controller: `#[controller(…, can(… {K}))]`",
    note = "as the bound of a function, `CanGet<{K}>` and its siblings name the verb"
)]
pub trait Can<V: verbs::VerbType, K> {}

/// `C` may get objects of kind `K`: [`Can`]`<`[`verbs::Get`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `get` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(get {K}))]`"
)]
pub trait CanGet<K> {}

// Here and below: the compiler then names the missing `Can…`, and not this bound.
#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Get, K>, K> CanGet<K> for C {}

/// `C` may list objects of kind `K`: [`Can`]`<`[`verbs::List`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `list` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(list {K}))]`"
)]
pub trait CanList<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::List, K>, K> CanList<K> for C {}

/// `C` may read a cache of kind `K`: [`Can`]`<`[`verbs::List`]`, K>` and
/// [`Can`]`<`[`verbs::Watch`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `list` and `watch` on `{K}`, which a cache needs",
    note = "add them to the controller: `#[controller(…, can(list watch {K}))]`",
    note = "`watches({K}, by = …)` grants both and wakes the controller's objects"
)]
pub trait CanCache<K> {}

// A single trait for both verbs: a cache that was not granted is a single mistake and a single
// error.
#[diagnostic::do_not_recommend]
impl<C: Can<verbs::List, K> + Can<verbs::Watch, K>, K> CanCache<K> for C {}

/// `C` may create objects of kind `K`: [`Can`]`<`[`verbs::Create`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `create` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(create {K}))]`"
)]
pub trait CanCreate<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Create, K>, K> CanCreate<K> for C {}

/// `C` may update objects of kind `K`: [`Can`]`<`[`verbs::Update`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `update` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(update {K}))]`"
)]
pub trait CanUpdate<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Update, K>, K> CanUpdate<K> for C {}

/// `C` may patch objects of kind `K`: [`Can`]`<`[`verbs::Patch`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `patch` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(patch {K}))]`"
)]
pub trait CanPatch<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Patch, K>, K> CanPatch<K> for C {}

/// `C` may delete objects of kind `K`: [`Can`]`<`[`verbs::Delete`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `delete` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(delete {K}))]`"
)]
pub trait CanDelete<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Delete, K>, K> CanDelete<K> for C {}

/// `C` may delete objects of kind `K` by a selector:
/// [`Can`]`<`[`verbs::DeleteCollection`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `deletecollection` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(deletecollection {K}))]`",
    note = "the verb `delete` deletes one object at a time and does not imply it"
)]
pub trait CanDeleteCollection<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::DeleteCollection, K>, K> CanDeleteCollection<K> for C {}

/// `C` may evict Pods: `create` on [`subresources::Eviction`] of Pods.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `create` on `Pod/eviction`",
    note = "add it to the controller: `#[controller(…, can(create Pod/eviction))]`",
    note = "the verb `delete` on Pods deletes past disruption budgets and does not imply it"
)]
pub trait CanEvict {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Create, SubresourceOf<Pod, subresources::Eviction>>> CanEvict for C {}

/// `C` may read logs of Pods: `get` on [`subresources::Log`] of Pods.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `get` on `Pod/log`",
    note = "add it to the controller: `#[controller(…, can(get Pod/log))]`"
)]
pub trait CanReadLog {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Get, SubresourceOf<Pod, subresources::Log>>> CanReadLog for C {}

/// `C` may request tokens of service accounts: `create` on [`subresources::Token`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `create` on `ServiceAccount/token`",
    note = "add it to the controller: `#[controller(…, can(create ServiceAccount/token))]`"
)]
pub trait CanRequestToken {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Create, SubresourceOf<ServiceAccount, subresources::Token>>> CanRequestToken
    for C
{
}

/// `C` may read the number of replicas of objects of kind `K`: `get` on [`subresources::Scale`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `get` on `{K}/scale`",
    note = "add it to the controller: `#[controller(…, can(get {K}/scale))]`"
)]
pub trait CanGetScale<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Get, SubresourceOf<K, subresources::Scale>>, K> CanGetScale<K> for C {}

/// `C` may set the number of replicas of objects of kind `K`: `patch` on [`subresources::Scale`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `patch` on `{K}/scale`",
    note = "add it to the controller: `#[controller(…, can(patch {K}/scale))]`"
)]
pub trait CanPatchScale<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Patch, SubresourceOf<K, subresources::Scale>>, K> CanPatchScale<K> for C {}

/// `C` may patch the status of objects of kind `K`: `patch` on [`subresources::Status`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `patch` on `{K}/status`",
    note = "add it to the controller: `#[controller(…, can(patch {K}/status))]`"
)]
pub trait CanPatchStatus<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Patch, SubresourceOf<K, subresources::Status>>, K> CanPatchStatus<K> for C {}

/// `C` may replace the status of objects of kind `K`: `update` on [`subresources::Status`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `update` on `{K}/status`",
    note = "add it to the controller: `#[controller(…, can(update {K}/status))]`"
)]
pub trait CanUpdateStatus<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Update, SubresourceOf<K, subresources::Status>>, K> CanUpdateStatus<K> for C {}

/// `C` owns children of kind `K`. Derived from `#[controller(owns(Deployment))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    note = "add it to the controller: `#[controller(…, owns({K}))]`"
)]
pub trait Owns<K> {}

/// `C` [`Owns`] the kind `K` of the object `A`. With the object's type in the bound, the compiler
/// underlines the object.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    note = "add it to the controller: `#[controller(…, owns({K}))]`"
)]
#[doc(hidden)]
pub trait OwnsObject<A, K> {}

#[diagnostic::do_not_recommend]
impl<C: Owns<K>, A, K> OwnsObject<A, K> for C {}

/// `C` has a cache of children of kind `K`, which `C` [`Owns`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    note = "the cache of a kind that it only watches is `cx.watched::<{K}>()`",
    note = "if it makes children of that kind: `#[controller(…, owns({K}))]`"
)]
pub trait OwnsCache<K> {}

#[diagnostic::do_not_recommend]
impl<C: Owns<K>, K> OwnsCache<K> for C {}
