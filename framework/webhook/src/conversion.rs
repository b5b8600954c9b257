//! `ConversionReview` of `apiextensions.k8s.io/v1`: objects of one kind in another version.
//!
//! A review has one result for all of its objects: the first that has no equal fails it.

// DESIGN.md, 222: A conversion has a path per kind, and the installed definition keeps its client configuration

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_core::crd::{CustomResource, Versions, conversion_path};

use crate::admission::Failure;
use crate::response::cut;

/// Version of the reviews.
const VERSION: &str = "apiextensions.k8s.io/v1";
/// Kind of the reviews.
const KIND: &str = "ConversionReview";
/// Most characters of a failure's text.
const LONGEST: usize = 4 * 1024;

/// A kind whose objects are converted.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    pub(crate) path: String,
    /// Name of the definition.
    pub(crate) definition: String,
    /// The versions; `None` for a kind that has one.
    pub(crate) versions: Option<Versions>,
}

impl Conversion {
    pub(crate) fn of<K: CustomResource>() -> Self {
        let info = K::static_info();
        let path = info.as_ref().map(|info| conversion_path(&info.group, &info.kind));
        Self {
            path: path.unwrap_or_else(|| "/convert".to_owned()),
            definition: info.map(|info| info.group_resource()).unwrap_or_default(),
            versions: Versions::of::<K>(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    uid: String,
    #[serde(default, rename = "desiredAPIVersion")]
    desired: String,
    #[serde(default)]
    objects: Option<Vec<Value>>,
}

/// Answers a review.
pub(crate) async fn answer(versions: &Versions, body: &[u8]) -> Result<Value, Failure> {
    let Request { uid, desired, objects } = read(body)?;
    let result = convert(versions, &desired, objects.unwrap_or_default()).await;
    let response = match result {
        Ok(objects) => json!({
            "uid": uid, "convertedObjects": objects, "result": { "status": "Success" },
        }),
        Err(text) => {
            let text = cut(&text, LONGEST);
            tracing::warn!(kind = %versions.info().kind, "{text}");
            json!({
                "uid": uid, "convertedObjects": [],
                "result": {
                    "status": "Failure", "message": text, "reason": "Invalid", "code": 422,
                },
            })
        }
    };
    Ok(json!({ "apiVersion": VERSION, "kind": KIND, "response": response }))
}

fn read(body: &[u8]) -> Result<Request, Failure> {
    let bad = |text: String| Failure::new(StatusCode::BAD_REQUEST, text);
    let review: Review = serde_json::from_slice(body)
        .map_err(|error| bad(format!("cannot read the {KIND}: {error}")))?;
    if review.api_version != VERSION || review.kind != KIND {
        return Err(bad(format!(
            "cannot read the body: it is `{}` of `{}`, and not {KIND} of {VERSION}",
            review.kind, review.api_version
        )));
    }
    let Some(request) = review.request else {
        return Err(bad(format!("cannot answer the {KIND}: it has no request")));
    };
    if request.uid.is_empty() {
        return Err(bad(format!("cannot answer the {KIND}: its request has no uid")));
    }
    Ok(request)
}

async fn convert(
    versions: &Versions,
    desired: &str,
    objects: Vec<Value>,
) -> Result<Vec<Value>, String> {
    let info = versions.info();
    let (group, version) = desired.split_once('/').unwrap_or(("", desired));
    if group != info.group {
        return Err(format!("cannot convert to {desired:?}: {} is of {}", info.kind, info.group));
    }
    let mut converted = Vec::with_capacity(objects.len());
    for object in objects {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let name = match text("namespace") {
            "" => text("name").to_owned(),
            namespace => format!("{namespace}/{}", text("name")),
        };
        let made = versions.convert(object, version);
        let refused =
            |error| format!("cannot convert {} {name:?} to {version}: {error}", info.kind);
        converted.push(made.map_err(refused)?);
        // A long list leaves room for other reviews, and for its deadline.
        tokio::task::yield_now().await;
    }
    Ok(converted)
}
