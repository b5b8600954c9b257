//! Large objects of several kinds, which are decoded one after the other.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::versions::v1 as parcels;
use super::*;

/// Tells that a conversion began, and waits for the word to end it.
type Gate = (Sender<()>, Receiver<()>);

/// The gate of the next conversion of a bag.
static GATE: Mutex<Option<Gate>> = Mutex::new(None);

/// A second kind of two versions, whose conversion waits at the gate.
mod bags {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde::{Deserialize, Serialize};
    use windlass_runtime::{Convertible, CustomResource, Schema};

    pub(super) mod v1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug)]
        #[resource(group = "example.dev", version = "v1", namespaced, versions(v1beta1::Bag))]
        #[resource(crate = windlass_runtime)]
        pub(crate) struct Bag {
            pub(crate) metadata: ObjectMeta,
            pub(crate) spec: BagSpec,
        }

        #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
        #[schema(crate = windlass_runtime)]
        pub(crate) struct BagSpec {
            pub(crate) grams: i64,
        }
    }

    pub(super) mod v1beta1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug)]
        #[resource(version = "v1beta1", hub = v1::Bag, crate = windlass_runtime)]
        pub(crate) struct Bag {
            pub(crate) metadata: ObjectMeta,
            pub(crate) spec: BagSpec,
        }

        #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
        #[schema(crate = windlass_runtime)]
        #[convert(hub = v1::BagSpec, crate = windlass_runtime)]
        pub(crate) struct BagSpec {
            #[convert(rename = grams, to_hub = wait, from_hub = same)]
            pub(crate) weight: i64,
        }

        fn same(grams: i64) -> i64 {
            grams
        }

        fn wait(weight: i64) -> i64 {
            let gate = crate::tests::turns::GATE.lock().take();
            if let Some((began, end)) = gate {
                began.send(()).unwrap();
                end.recv().unwrap();
            }
            weight
        }
    }
}

/// Asks for the conversion of an object of 70 kB to v1.
async fn convert(handler: AdmissionHandler, kind: &str) -> u16 {
    let object = json!({
        "apiVersion": "example.dev/v1beta1", "kind": kind, "spec": { "weight": 5 },
        "metadata": { "name": "a", "annotations": { "note": "x".repeat(70_000) } },
    });
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "7", "desiredAPIVersion": "example.dev/v1", "objects": [object] },
    });
    let path = format!("/convert-example-dev-{}", kind.to_lowercase());
    let request = Request::post(path).header("content-type", "application/json");
    let answer = handler.handle(request.body(Bytes::from(review.to_string())).unwrap()).await;
    answer.status().as_u16()
}

#[tokio::test]
async fn a_large_object_waits_for_the_end_of_a_large_one_of_another_kind() {
    let webhooks = Webhooks::new().converting::<bags::v1::Bag>().converting::<parcels::Parcel>();
    let handler = webhooks.build(&Environment::system()).unwrap();
    let ((began, is_begun), (end, ended)) = (channel(), channel());
    *GATE.lock() = Some((began, ended));
    let first = thread::spawn({
        let handler = handler.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(convert(handler, "Bag"))
        }
    });
    is_begun.recv_timeout(Duration::from_secs(60)).unwrap();

    let mut second = pin!(convert(handler, "Parcel"));
    for _ in 0..8 {
        let polled = std::future::poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx))).await;
        assert!(polled.is_pending(), "{polled:?}");
    }
    end.send(()).unwrap();
    assert_eq!((first.join().unwrap(), second.await), (200, 200));
}
