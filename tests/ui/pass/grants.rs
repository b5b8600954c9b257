//! Granted calls compile, with no more types written than there are.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::{core, events};
use windlass::prelude::*;
use windlass::resource::ObjectKey;
use windlass::store::Cached;

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Service), watches(Secret, by = maps_of), can(get create Pod))]
struct Maps;

/// Kinds of one name, of which two are one.
#[derive(Controller)]
#[controller(for = ConfigMap, owns(core::v1::Event, events::v1::Event, Secret))]
#[controller(watches(core::v1::Secret, by = maps_of), can(create update core::v1::Secret))]
#[controller(can(get Pod, create core::v1::Pod, get Pod/log, create core::v1::Pod/eviction))]
struct Namesakes<T: Send + Sync + 'static>(T);

impl<T: Send + Sync + 'static> Reconciler for Namesakes<T> {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.apply_owned(core::v1::Event::default()).await?;
        cx.apply_owned(events::v1::Event::default()).await?;
        let secret: Secret = cx.get("a").await?;
        cx.create(&secret).await?;
        let pod: Pod = cx.get("a").await?;
        cx.create(&pod).await?;
        cx.evict("a").await?;
        Ok(Action::done())
    }
}

/// A part of a ConfigMap, of the same size as another kind's part.
#[derive(windlass::Projection, Clone, Debug)]
#[projection(of = Secret)]
struct Labels {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
}

type Credentials = Secret;

/// Kinds by other names: read as one type, and projections beside their kind.
#[derive(Controller)]
#[controller(for = ConfigMap, owns(Pod), watches(Secret, by = maps_of))]
#[controller(watches(Credentials, by = maps_of), watches(Labels, by = maps_of_labels))]
#[controller(can(create Credentials, get Service))]
struct Aliases;

impl Reconciler for Aliases {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        let secret: Credentials = cx.get("a").await?;
        cx.create(&secret).await?;
        let _ = cx.watched::<Secret>().get(&map.key());
        let _ = cx.watched::<Labels>().get(&map.key());
        let _: Service = cx.get("a").await?;
        Ok(Action::done())
    }
}

fn maps_of_labels(_: &Cached<Labels>) -> Vec<ObjectKey> {
    Vec::new()
}

fn maps_of(_: &Cached<Secret>) -> Vec<ObjectKey> {
    Vec::new()
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        let pod: Pod = cx.get("a").await?;
        cx.create(&pod).await?;
        let service = cx.apply_owned(Service::default()).adopt().await?;
        let _: &Service = &service;
        let _ = cx.watched::<Secret>().get(&map.key());
        let _ = cx.store_of::<Service>().owned_by(map.uid());
        cx.delete_owned::<Service>("a").await?;
        Ok(Action::done())
    }
}

pub fn main() {}

/// A controller with a constant parameter, whose settings name the kind of its objects.
#[derive(windlass::Controller)]
#[controller(for = k8s_openapi::api::core::v1::Pod, index(windlass::store::Index::<k8s_openapi::api::core::v1::Pod, String>::new("node", |pod| {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
})))]
struct Sized<const N: usize>;

impl<const N: usize> windlass::controller::Reconciler for Sized<N> {
    type Object = k8s_openapi::api::core::v1::Pod;

    async fn reconcile(
        &self,
        _: &Self::Object,
        _: &windlass::controller::Context<Self>,
    ) -> windlass::controller::Result {
        Ok(windlass::controller::Action::done())
    }
}
