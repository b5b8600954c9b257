//! The handlers of an operator by path, and the answers to requests of HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::time::Instant;
use windlass_core::clock::Clock;
use windlass_core::crd::CustomResource;
use windlass_core::environment::Environment;
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::{ApiDuration, Resource, ResourceInfo};
use windlass_core::{Error, ErrorKind};

use crate::admission::HttpFailure;
use crate::configuration::{
    ConfigurationOptions, Configurations, Registered, WebhookRegistration, configurations,
};
use crate::conversion::{ConvertedKind, Converter, LargeObjectPermit};
use crate::cut::cut;
use crate::handlers::{Mutate, Validate};
use crate::hook::{Hook, Mutating, Validating};
use crate::meter::Meter;
use crate::review::Question;
use crate::size::{MAX_BODY, MAX_CONVERTED, ResponseMemory, ReviewSize};

/// Time for an answer when the request names none: the default of webhook configurations.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for an answer: the largest that webhook configurations may have.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Most characters of a path that no webhook has, in texts.
const LONGEST_PATH: usize = 256;
/// Longest part of the time that is kept for the way back.
const RESERVE: Duration = Duration::from_millis(500);

/// The webhooks of an operator, by path. [`build`](Self::build) makes the handler that answers.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::webhook::{Admission, AdmissionResponse, Validate};
/// # struct SettingsRules;
/// # impl Validate for SettingsRules {
/// #     type Object = ConfigMap;
/// #     async fn validate(&self, _: &ConfigMap, _: &Admission) -> AdmissionResponse {
/// #         AdmissionResponse::allowed()
/// #     }
/// # }
/// use windlass::webhook::Webhooks;
/// # use windlass_core::environment::Environment;
///
/// let webhooks = Webhooks::new().validating(SettingsRules).build(&Environment::system())?;
/// assert!(webhooks.paths().eq(["/validate--v1-configmap"]));
/// # Ok::<(), windlass_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Webhooks {
    hooks: Vec<(Registered, Arc<dyn Hook>)>,
    conversions: Vec<ConvertedKind>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conversions = self.conversions.iter().map(|conversion| &conversion.path);
        let paths = self.registered().map(|hook| &hook.path).chain(conversions);
        f.debug_list().entries(paths).finish()
    }
}

impl Webhooks {
    /// Returns an empty set: add handlers by [`validating`](Self::validating),
    /// [`mutating`](Self::mutating) and [`converting`](Self::converting).
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a validating webhook at the path of controller-runtime:
    /// `/validate-example-dev-v1-website`; `/validate` for a handler of any kind.
    #[must_use]
    pub fn validating<V: Validate>(self, handler: V) -> Self {
        self.validating_with(handler, WebhookRegistration::new())
    }

    /// Adds a validating webhook with keys for its configuration.
    #[must_use]
    pub fn validating_with<V: Validate>(
        self,
        handler: V,
        registration: WebhookRegistration,
    ) -> Self {
        self.validating_at(path::<V::Object>("/validate"), handler, registration)
    }

    /// Adds a validating webhook at a path, such as for a sub-resource.
    #[must_use]
    pub fn validating_at<V: Validate>(
        mut self,
        path: impl Into<String>,
        handler: V,
        registration: WebhookRegistration,
    ) -> Self {
        let hook = Registered::new::<V::Object>(path.into(), false, registration);
        self.hooks.push((hook, Arc::new(Validating(handler))));
        self
    }

    /// Adds a mutating webhook at the path of controller-runtime: `/mutate-example-dev-v1-website`;
    /// `/mutate` for a handler of any kind.
    #[must_use]
    pub fn mutating<M: Mutate>(self, handler: M) -> Self {
        self.mutating_with(handler, WebhookRegistration::new())
    }

    /// Adds a mutating webhook with keys for its configuration.
    #[must_use]
    pub fn mutating_with<M: Mutate>(self, handler: M, registration: WebhookRegistration) -> Self {
        self.mutating_at(path::<M::Object>("/mutate"), handler, registration)
    }

    /// Adds a mutating webhook at a path, such as for a sub-resource.
    #[must_use]
    pub fn mutating_at<M: Mutate>(
        mut self,
        path: impl Into<String>,
        handler: M,
        registration: WebhookRegistration,
    ) -> Self {
        let hook = Registered::new::<M::Object>(path.into(), true, registration);
        self.hooks.push((hook, Arc::new(Mutating(handler))));
        self
    }

    /// Converts the objects of a kind between its versions, at `/convert-example-dev-website`. The
    /// type may be that of any version.
    ///
    /// A review fails as a whole with a `Status` that names the first object without an equal; the
    /// client of the API server gets its text.
    #[must_use]
    pub fn converting<K: CustomResource>(mut self) -> Self {
        self.conversions.push(ConvertedKind::of::<K>());
        self
    }

    /// Returns the configurations that let API servers ask these webhooks, sorted by path.
    ///
    /// ```
    /// # extern crate windlass_webhook as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::webhook::{Admission, AdmissionResponse, Validate};
    /// # struct SettingsRules;
    /// # impl Validate for SettingsRules {
    /// #     type Object = ConfigMap;
    /// #     async fn validate(&self, _: &ConfigMap, _: &Admission) -> AdmissionResponse {
    /// #         AdmissionResponse::allowed()
    /// #     }
    /// # }
    /// use windlass::webhook::{ConfigurationOptions, Webhooks};
    ///
    /// let options = ConfigurationOptions::new("shop-operator", "shop-system");
    /// let made = Webhooks::new().validating(SettingsRules).configurations(&options)?;
    /// let entry = &made.validating.unwrap().webhooks.unwrap()[0];
    /// assert_eq!(entry.name, "validate.configmaps.core.k8s.io");
    /// assert_eq!(entry.failure_policy.as_deref(), Some("Ignore"));
    /// # Ok::<(), windlass_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for two webhooks of one name, a name that is no DNS name of three
    /// parts, a handler of any kind without a resource, a time-out that API servers refuse.
    pub fn configurations(&self, options: &ConfigurationOptions) -> Result<Configurations, Error> {
        configurations(self.registered().collect(), &self.conversions, options)
    }

    /// Returns the conversions.
    pub(crate) fn conversions(&self) -> &[ConvertedKind] {
        &self.conversions
    }

    /// Returns the webhooks as configurations see them.
    pub(crate) fn registered(&self) -> impl Iterator<Item = &Registered> {
        self.hooks.iter().map(|(hook, _)| hook)
    }

    /// Returns the handler of requests.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when two webhooks have one path, a path does not begin with `/`, or a
    /// kind with one version is to be converted.
    pub fn build(self, environment: &Environment) -> Result<AdmissionHandler, Error> {
        let mut hooks = BTreeMap::new();
        let judges = self.registered();
        let judges = judges.filter_map(|it| Some((it.judged_kind()?.clone(), it.path.clone())));
        let judges = judges.collect();
        // One object of all kinds: a server has one handler.
        let permits = LargeObjectPermit::new();
        let conversions = self.conversions.into_iter().map(|conversion| {
            let converter = |versions| Converter::new(versions, permits.clone());
            (conversion.path, conversion.versions.map(converter).map(PathHandler::Conversion))
        });
        let admission = self.hooks.into_iter();
        let admission = admission.map(|(hook, it)| (hook.path, Some(PathHandler::Admission(it))));
        for (path, answering) in admission.chain(conversions) {
            let refuse = |why: &str| {
                let text = format!("cannot add a webhook at `{path}`: {why}");
                Err(Error::new(ErrorKind::Usage, text))
            };
            if !path.starts_with('/') || path.contains(['?', '#']) {
                return refuse("a path begins with `/` and has no query");
            }
            if hooks.contains_key(&path) {
                return refuse("another one has this path; give one of them its own by `…_at`");
            }
            let Some(answering) = answering else {
                return refuse("the kind has one version, so that nothing is converted");
            };
            hooks.insert(path, answering);
        }
        let (clock, metrics) = (environment.clock.clone(), environment.metrics.clone());
        let meters = hooks.keys().map(|path| (path.clone(), Meter::new(&metrics, path))).collect();
        Ok(AdmissionHandler { shared: Arc::new(WebhookHandlers { hooks, judges, meters, clock }) })
    }
}

/// Returns the path of a kind's webhook.
fn path<K: Resource>(prefix: &str) -> String {
    K::static_info().map_or_else(
        || prefix.to_owned(),
        |info| {
            let (group, kind) = (info.group.replace('.', "-"), info.kind.to_lowercase());
            format!("{prefix}-{group}-{}-{kind}", info.version)
        },
    )
}

/// The handler at a path.
enum PathHandler {
    Admission(Arc<dyn Hook>),
    Conversion(Converter),
}

impl PathHandler {
    fn size(&self) -> ReviewSize {
        match self {
            Self::Admission(_) => ReviewSize { longest: MAX_BODY, is_answered_in_kind: false },
            Self::Conversion(_) => ReviewSize { longest: MAX_CONVERTED, is_answered_in_kind: true },
        }
    }

    async fn handle(&self, body: &[u8], memory: impl ResponseMemory) -> Result<Bytes, HttpFailure> {
        match self {
            Self::Admission(hook) => {
                let question = Question::read(body)?;
                let review = hook.handle(&question).await?.review(&question.admission)?;
                Ok(review.to_string().into())
            }
            Self::Conversion(converter) => converter.handle(body, memory).await,
        }
    }
}

/// Answers requests of API servers. Cheap to clone.
///
/// Has no socket: a server, or a test, gives it requests whose body was read.
#[derive(Clone)]
pub struct AdmissionHandler {
    shared: Arc<WebhookHandlers>,
}

struct WebhookHandlers {
    hooks: BTreeMap<String, PathHandler>,
    /// The validating webhooks of creations: kind and path.
    judges: Vec<(ResourceInfo, String)>,
    meters: BTreeMap<String, Meter>,
    clock: Clock,
}

impl fmt::Debug for AdmissionHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths()).finish()
    }
}

impl AdmissionHandler {
    /// Returns the paths with a webhook, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.shared.hooks.keys().map(String::as_str)
    }

    /// Returns the paths of the validating webhooks that judge creations of a kind.
    pub(crate) fn judges(&self, kind: &ResourceInfo) -> impl Iterator<Item = &str> {
        let judges = self.shared.judges.iter().filter(move |(info, _)| info == kind);
        judges.map(|(_, path)| path.as_str())
    }

    /// Handles a request: `200` with a review, or another status, after which the failure policy of
    /// the webhook decides.
    ///
    /// The answer comes before the time that `?timeout=` names is over (default 10 s, at most 30
    /// s): of it a tenth, at most 500 ms, is kept for the way back. A handler that is not ready by
    /// then is dropped: `504`. A panic is logged: `500`. Bodies above [`MAX_BODY`], or
    /// [`MAX_CONVERTED`] for conversions, are refused: `413`.
    ///
    /// # Cancel safety
    /// Safe: the handler is dropped with the future.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let body = async |_: Duration, _: ReviewSize| Ok((body, ()));
        self.handle_read(&parts, body).await
    }

    /// Handles a request whose body is read by `read`, which gets the time that it may take and its
    /// size, and returns its memory, too.
    pub(crate) async fn handle_read<M: ResponseMemory>(
        &self,
        parts: &Parts,
        read: impl AsyncFnOnce(Duration, ReviewSize) -> Result<(Bytes, M), HttpFailure>,
    ) -> Response<Bytes> {
        let path = parts.uri.path();
        let began = self.shared.clock.now();
        let meter = self.shared.meters.get(path);
        let in_flight = meter.map(Meter::in_flight);
        let reviewed = self.review(parts, began, read).await;
        drop(in_flight);
        let answer = match reviewed {
            Ok(review) => respond(StatusCode::OK, review),
            Err(HttpFailure { code, text }) => {
                // Any Pod may ask: only what concerns a webhook is a warning.
                match &meter {
                    Some(_) => tracing::warn!(webhook = path, code = code.as_u16(), "{text}"),
                    None => tracing::debug!(code = code.as_u16(), "{text}"),
                }
                let message = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": text, "code": code.as_u16(),
                });
                respond(code, message.to_string().into())
            }
        };
        if let Some(meter) = meter {
            meter.answered(answer.status(), self.shared.clock.now() - began);
        }
        answer
    }

    async fn review<M: ResponseMemory>(
        &self,
        parts: &Parts,
        began: Instant,
        read: impl AsyncFnOnce(Duration, ReviewSize) -> Result<(Bytes, M), HttpFailure>,
    ) -> Result<Bytes, HttpFailure> {
        let path = parts.uri.path();
        let Some(hook) = self.shared.hooks.get(path) else {
            let text = format!("no webhook has the path {:?}", cut(path, LONGEST_PATH));
            return Err(HttpFailure::new(StatusCode::NOT_FOUND, text));
        };
        check(parts)?;
        let limit = timeout(parts.uri.query().unwrap_or_default());
        let limit = limit - RESERVE.min(limit / 10);
        let size = hook.size();
        let (body, memory) = read(limit, size).await?;
        let longest = size.longest;
        if body.len() > longest {
            let text = format!(
                "cannot read a body of {} bytes: at most {longest} are accepted",
                body.len()
            );
            return Err(HttpFailure::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        // Decoding runs code of the types, which may panic as well.
        let answering = caught(hook.handle(&body, memory));
        let left = limit.saturating_sub(self.shared.clock.now() - began);
        match self.shared.clock.timeout(left, answering).await {
            Some(Ok(answered)) => answered,
            Some(Err(panic)) => {
                // The text may have values of the object: it is logged, and not sent.
                tracing::error!(webhook = path, "a webhook panicked: {}", panic_text(&*panic));
                self.shared.meters.get(path).into_iter().for_each(Meter::panicked);
                let text = format!("the webhook at {path:?} panicked: see the operator's log");
                Err(HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
            None => {
                let text = format!("the webhook at {path:?} gave no answer within {limit:?}");
                Err(HttpFailure::new(StatusCode::GATEWAY_TIMEOUT, text))
            }
        }
    }
}

/// Checks method and type of a request.
fn check(parts: &Parts) -> Result<(), HttpFailure> {
    if parts.method != Method::POST {
        let text = format!("cannot {} a webhook: POST a review", parts.method);
        return Err(HttpFailure::new(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    let media = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media.and_then(|media| media.split(';').next()).unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let text = format!("cannot read a body of type {essence:?}: send application/json");
        return Err(HttpFailure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    Ok(())
}

/// Returns the time for the answer.
fn timeout(query: &str) -> Duration {
    let named = query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let named = named.and_then(|text| text.parse::<ApiDuration>().ok()).map(ApiDuration::get);
    named.filter(|time| !time.is_zero()).unwrap_or(TIMEOUT).min(MAX_TIMEOUT)
}

fn respond(code: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
