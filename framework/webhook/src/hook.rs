//! Handlers behind one type: decoding of the objects, the call, the patch.

use std::future::Future;
use std::pin::Pin;

use http::StatusCode;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_core::resource::{DynamicObject, Resource};
use windlass_core::wire::{Undecodable, times};

use crate::admission::{Admission, HttpFailure, Operation};
use crate::change::carry;
use crate::handlers::{Mutate, Validate};
use crate::patch::diff;
use crate::response::AdmissionResponse;
use crate::review::{HandlerResponse, Objects, Question};

/// The future of a response.
pub(crate) type HookFuture<'a> =
    Pin<Box<dyn Future<Output = Result<HandlerResponse, HttpFailure>> + Send + 'a>>;

/// A handler of any kind.
pub(crate) trait Hook: Send + Sync {
    /// Handles a question. A type that became stricter blocks what would change the objects that it
    /// refuses, but for a repair; it blocks neither their deletion nor changes of metadata and
    /// status alone.
    fn handle<'a>(&'a self, question: &'a Question<'a>) -> HookFuture<'a>;
}

/// A [`Validate`] as a hook.
pub(crate) struct Validating<V>(pub(crate) V);

/// A [`Mutate`] as a hook.
pub(crate) struct Mutating<M>(pub(crate) M);

/// The reason why there is no object to judge.
enum Unread {
    /// The object is not as its type wants it: the request is denied with this text.
    Denied(String),
    /// The question itself is wrong.
    Failed(HttpFailure),
}

impl Unread {
    fn into_response(self) -> Result<HandlerResponse, HttpFailure> {
        match self {
            Self::Denied(why) => Ok(HandlerResponse {
                response: AdmissionResponse::deny(why),
                ..HandlerResponse::default()
            }),
            Self::Failed(failure) => Err(failure),
        }
    }

    /// Allows what an unreadable object does not forbid, with the reason as a warning.
    fn passed(self) -> Result<AdmissionResponse, Self> {
        match self {
            Self::Denied(why) => {
                let mut response = AdmissionResponse::allowed();
                response.warn(format!("the webhook did not judge the object: {why}"));
                Ok(response)
            }
            Self::Failed(_) => Err(self),
        }
    }
}

impl<V: Validate> Hook for Validating<V> {
    fn handle<'a>(&'a self, question: &'a Question<'a>) -> HookFuture<'a> {
        Box::pin(async move {
            match self.judge(question).await {
                Ok(response) => Ok(HandlerResponse { response, ..HandlerResponse::default() }),
                Err(unread) => unread.into_response(),
            }
        })
    }
}

impl<V: Validate> Validating<V> {
    async fn judge(&self, question: &Question<'_>) -> Result<AdmissionResponse, Unread> {
        let (cx, objects, handler) = (&question.admission, &question.objects, &self.0);
        if cx.operation == Operation::Connect {
            let options = decode::<DynamicObject>(objects.object, "object")?;
            return Ok(handler.validate_connect(&options, cx).await);
        }
        check_kind::<V::Object>(cx)?;
        match cx.operation {
            Operation::Delete => match decode(objects.old_object, "oldObject") {
                Ok(old) => Ok(handler.validate_delete(&old, cx).await),
                Err(unread) => unread.passed(),
            },
            Operation::Update => self.judge_change(cx, objects).await,
            Operation::Create | Operation::Connect => {
                let object = decode(objects.object, "object")?;
                Ok(handler.validate(&object, cx).await)
            }
        }
    }
}

impl<V: Validate> Validating<V> {
    async fn judge_change(
        &self,
        cx: &Admission,
        sent: &Objects<'_>,
    ) -> Result<AdmissionResponse, Unread> {
        let handler = &self.0;
        let old = decode(sent.old_object, "oldObject");
        let object = match decode(sent.object, "object") {
            Ok(object) => object,
            Err(unread) if sent.leaves_spec_alone() => return unread.passed(),
            Err(unread) => return Err(unread),
        };
        match old {
            Ok(old) => Ok(handler.validate_update(&old, &object, cx).await),
            // Nothing to compare with: a repair is judged as a new object is.
            Err(Unread::Denied(_)) => Ok(handler.validate(&object, cx).await),
            Err(unread) => Err(unread),
        }
    }
}

impl<M: Mutate> Hook for Mutating<M> {
    fn handle<'a>(&'a self, question: &'a Question<'a>) -> HookFuture<'a> {
        Box::pin(async move {
            match self.change(question).await {
                Ok(answer) => Ok(answer),
                Err(unread) => unread.into_response(),
            }
        })
    }
}

impl<M: Mutate> Mutating<M> {
    async fn change(&self, question: &Question<'_>) -> Result<HandlerResponse, Unread> {
        let (cx, sent) = (&question.admission, question.objects.object);
        if matches!(cx.operation, Operation::Delete | Operation::Connect) {
            return Ok(HandlerResponse::default());
        }
        check_kind::<M::Object>(cx)?;
        let mut object: M::Object = match decode(sent, "object") {
            Ok(object) => object,
            Err(unread) if question.objects.leaves_spec_alone() => {
                return unread
                    .passed()
                    .map(|response| HandlerResponse { response, ..HandlerResponse::default() });
            }
            Err(unread) => return Err(unread),
        };
        let before = written(&object)?;
        let response = self.0.mutate(&mut object, cx).await;
        let after = written(&object)?;
        if before == after || !response.is_allowed() {
            return Ok(HandlerResponse { response, ..HandlerResponse::default() });
        }
        let raw: Value = decode_json(sent, "object")?;
        let patch = diff(&raw, &carry(&raw, &before, &after));
        Ok(HandlerResponse { response, patch })
    }
}

/// Checks that the question is about the kind of the handler.
fn check_kind<K: Resource>(cx: &Admission) -> Result<(), Unread> {
    let Some(info) = K::static_info().filter(|info| !cx.kind.is(info)) else { return Ok(()) };
    let text = format!(
        "cannot judge a {} of version {}: the handler is for {} of {}; correct the rules of the webhook's \
         configuration, and leave its matchPolicy at Equivalent",
        cx.kind.qualified(),
        cx.kind.version,
        info.kind,
        info.api_version(),
    );
    Err(Unread::Failed(HttpFailure::new(StatusCode::BAD_REQUEST, text)))
}

/// Reads an object of a request.
fn decode<K: Resource>(sent: Option<&RawValue>, field: &str) -> Result<K, Unread> {
    decode_json(sent, field)
}

fn decode_json<T: serde::de::DeserializeOwned>(
    sent: Option<&RawValue>,
    field: &str,
) -> Result<T, Unread> {
    let Some(sent) = sent.map(RawValue::get) else {
        let text = format!("cannot judge the request: it has no {field}");
        return Err(Unread::Failed(HttpFailure::new(StatusCode::BAD_REQUEST, text)));
    };
    times::from_slice(sent.as_bytes()).map_err(|error| {
        let why = Undecodable::explain::<T>(sent.as_bytes(), &error);
        Unread::Denied(format!("the webhook cannot read the {field}: {why}"))
    })
}

/// Returns an object as JSON.
fn written<K: Resource>(object: &K) -> Result<Value, Unread> {
    let mut value = serde_json::to_value(object).map_err(|error| {
        let text = format!("cannot write the object as JSON: {error}; correct its Serialize");
        Unread::Failed(HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, text))
    })?;
    times::encode_value(&mut value);
    Ok(value)
}
