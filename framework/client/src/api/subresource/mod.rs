//! Subresources: parts of an object with a URL of their own.

mod evict;
mod log;
mod token;

pub use evict::Evict;
pub use log::{Log, LogStream};
pub use token::{Token, TokenRequest};

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v1::Scale;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::decode;
use super::draft::{ApiTarget, Draft};
use super::{Api, Get, Patch, Write};
use crate::client::Verb;
use windlass_core::resource::Resource;

/// Subresources. The API server decides which kind has which subresource; the server's 404 and 405
/// are explained.
impl<K: Resource> Api<K> {
    /// Any subresource of an object, with bodies of type `T`; `serde_json::Value` accepts any body.
    /// For the status, [`Write::status`] is shorter.
    ///
    /// Errors: a 404 whose text says whether the object or the subresource is missing, as far as
    /// the server reports that; [`Usage`](windlass_core::ErrorKind::Usage) for an empty name.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use serde_json::Value;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let pods = client.namespace::<Pod>("shop");
    /// let status: Value = pods.subresource("web-0", "status").get().await?;
    /// println!("{}", status["status"]["phase"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn subresource<T>(&self, object: &str, name: &str) -> Subresource<T>
    where
        T: Serialize + DeserializeOwned + 'static,
    {
        Subresource::new(&self.target, object, name)
    }

    /// The number of replicas of a workload, or of a custom resource that declares the field.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// client.namespace::<Deployment>("shop").scale("web").to(3).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn scale(&self, name: &str) -> Subresource<Scale> {
        self.subresource(name, "scale")
    }

    /// Evicts a Pod: deletes the Pod if the disruption budgets allow the deletion.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// match client.namespace::<Pod>("shop").evict("web-0").await {
    ///     Err(error) if error.is_disruption_budget() => println!("not now"),
    ///     result => result?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn evict(&self, pod: &str) -> Evict {
        Evict::new(Draft::part(&self.target, Verb::Create, pod, "eviction"))
    }

    /// Requests a token of a service account.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ServiceAccount;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let accounts = client.namespace::<ServiceAccount>("shop");
    /// let hour = Duration::from_secs(3600);
    /// let token = accounts.token_request("robot").audience("registry").expires_in(hour).await?;
    /// println!("valid until {}", token.expires);
    /// # Ok(())
    /// # }
    /// ```
    pub fn token_request(&self, service_account: &str) -> TokenRequest {
        TokenRequest::new(Draft::part(&self.target, Verb::Create, service_account, "token"))
    }

    /// Reads the output of a container of a Pod.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let pods = client.namespace::<Pod>("shop");
    /// let mut log = pods.log("web-0").container("web").tail(10).follow().await?;
    /// while let Some(line) = log.next_line().await {
    ///     println!("{}", line?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn log(&self, pod: &str) -> Log {
        Log::new(Draft::part(&self.target, Verb::Get, pod, "log"))
    }
}

/// A subresource of a single object, with bodies of type `T`. The API server decides whether the
/// kind has the subresource: the error's text explains the server's 404 and 405.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let scale = client.namespace::<Deployment>("shop").scale("web");
/// let now = scale.get().await?.spec.and_then(|spec| spec.replicas).unwrap_or_default();
/// scale.to(now + 1).await?;
/// # Ok(())
/// # }
/// ```
pub struct Subresource<T> {
    target: Arc<ApiTarget>,
    /// Name of the object.
    object: String,
    name: String,
    _body: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned + 'static> Subresource<T> {
    pub(crate) fn new(target: &Arc<ApiTarget>, object: &str, name: &str) -> Self {
        let target = Arc::clone(target);
        Self { target, object: object.to_owned(), name: name.to_owned(), _body: PhantomData }
    }

    /// A request about this subresource.
    fn draft(&self, verb: Verb) -> Draft {
        Draft::part(&self.target, verb, &self.object, &self.name)
    }

    /// A write of the subresource with this body.
    fn written(&self, verb: Verb, body: &impl Serialize) -> Write<T> {
        let mut draft = self.draft(verb);
        draft.any_body(body);
        Write::new(draft, decode::value)
    }

    /// Reads the subresource.
    ///
    /// Errors and cancel safety are those of [`Get`].
    pub fn get(&self) -> Get<T> {
        Get::new(self.draft(Verb::Get), decode::value)
    }

    /// Posts `body` to the subresource; the answer must be a `T`. For subresources that are
    /// actions.
    pub fn create(&self, body: &impl Serialize) -> Write<T> {
        self.written(Verb::Create, body)
    }

    /// Replaces the subresource. A resourceVersion in `body` restricts the write to that version,
    /// which also makes the write safe to repeat.
    ///
    /// Without a resourceVersion the last writer wins.
    pub fn replace(&self, body: &T) -> Write<T> {
        self.written(Verb::Update, body)
    }

    /// Patches the subresource.
    ///
    /// An [apply](Patch::Apply) must carry `apiVersion` and `kind` of the subresource's body.
    pub fn patch(&self, patch: Patch) -> Write<T> {
        let verb = if matches!(patch, Patch::Apply(_)) { Verb::Apply } else { Verb::Patch };
        let mut draft = self.draft(verb);
        draft.patch_body(&patch);
        Write::new(draft, decode::value)
    }
}

impl Subresource<Scale> {
    /// Sets the number of replicas, whatever the number was before.
    ///
    /// A negative number is [`Invalid`](windlass_core::ErrorKind::Invalid). Two callers overwrite
    /// each other: read and [`replace`](Self::replace) with a version where that matters.
    pub fn to(&self, replicas: i32) -> Write<Scale> {
        self.patch(Patch::Merge(json!({ "spec": { "replicas": replicas } })))
    }
}

impl<T> Clone for Subresource<T> {
    fn clone(&self) -> Self {
        Self {
            target: Arc::clone(&self.target),
            object: self.object.clone(),
            name: self.name.clone(),
            _body: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Subresource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subresource")
            .field("info", &self.target.info)
            .field("object", &self.object)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
