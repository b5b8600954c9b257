//! Fates of ambiguous writes.

use super::*;

/// The ambiguous error of `write`, whose answer was a 504, and the connection whose next answer is
/// `then`.
async fn ambiguous<T: std::fmt::Debug>(
    then: (u16, Value),
    write: impl AsyncFn(&Api<ConfigMap>) -> Result<T, Error>,
) -> (Api<ConfigMap>, Error, Arc<Echo>) {
    let echo =
        Echo::with([(504, json!({ "kind": "Status", "reason": "Timeout", "code": 504 })), then]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let error = write(&api).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    assert_eq!(echo.seen().len(), 1, "an ambiguous write is not sent again");
    (api, error, echo)
}

fn missing() -> (u16, Value) {
    (404, json!({ "kind": "Status", "reason": "NotFound", "code": 404 }))
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_creation_is_settled_by_reading_the_object() {
    let home = configmap("home", "");
    let (api, error, echo) = ambiguous(missing(), async |api| api.create(&home).await).await;
    assert_eq!(api.settle(&error).await.unwrap(), Settled::NotHappened);
    assert_eq!(echo.lines()[1], "GET /api/v1/namespaces/shop/configmaps/home");
    let (api, error, _) = ambiguous((200, stored()), async |api| api.create(&home).await).await;
    match api.settle(&error).await.unwrap() {
        Settled::Happened(map) => assert_eq!(map.metadata.uid.as_deref(), Some("u")),
        other => panic!("{other:?}"),
    }
    let all = client(&echo).all::<ConfigMap>();
    assert!(matches!(all.settle(&error).await, Ok(Settled::NotHappened)));
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_cannot_be_settled_and_the_text_says_what_to_do() {
    let mut home = configmap("", "");
    home.metadata.generate_name = Some("home-".into());
    let (api, error, echo) = ambiguous(missing(), async |api| api.create(&home).await).await;
    match api.settle(&error).await.unwrap() {
        Settled::Unknown(hint) => assert!(hint.contains("label that only you set"), "{hint}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(echo.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_the_status_is_settled_by_the_status() {
    let mut now = stored();
    now["metadata"]["resourceVersion"] = json!("8");
    now["status"] = json!({ "a": 1, "b": 2 });
    let patch = || Patch::Merge(json!({ "spec": { "ignored": 1 }, "status": { "a": 1 } }));
    let (api, error, _) =
        ambiguous((200, now), async |api| api.patch("home", patch()).status().await).await;
    assert!(matches!(api.settle(&error).await.unwrap(), Settled::Happened(_)));
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_deletion_is_settled_by_mark_or_absence() {
    let (api, error, _) = ambiguous(missing(), async |api| api.delete("home").await).await;
    assert_eq!(api.settle(&error).await.unwrap(), Settled::Gone);
    let mut marked = stored();
    marked["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let (api, error, _) = ambiguous((200, marked), async |api| api.delete("home").await).await;
    assert!(matches!(api.settle(&error).await.unwrap(), Settled::Happened(_)));
    let (api, error, _) = ambiguous((200, stored()), async |api| api.delete("home").await).await;
    assert!(matches!(api.settle(&error).await.unwrap(), Settled::Unknown(_)));
}

#[tokio::test(start_paused = true)]
async fn only_an_ambiguous_error_of_this_kind_and_namespace_can_be_settled() {
    let home = configmap("home", "");
    let (_, error, echo) = ambiguous(missing(), async |api| api.create(&home).await).await;
    let client = client(&echo);
    usage(client.all::<Node>().settle(&error).await, "another kind or namespace");
    usage(client.namespace::<ConfigMap>("other").settle(&error).await, "another kind or namespace");
    let plain = Error::new(ErrorKind::Conflict, "no");
    usage(client.all::<ConfigMap>().settle(&plain).await, "no doubt");
    assert_eq!(echo.seen().len(), 1);
}
