//! Create-or-update and create-or-patch.

use super::*;

fn color(color: &'static str) -> impl FnMut(&mut ConfigMap) {
    move |map| {
        map.data.get_or_insert_default().insert("color".into(), color.into());
    }
}

fn held(color: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "color": color, "size": "1" },
        "metadata": { "name": "home", "namespace": "shop", "uid": "u", "resourceVersion": version },
    })
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({ "kind": "Status", "reason": reason, "code": code }))
}

fn verbs(echo: &Echo) -> Vec<String> {
    echo.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_nothing_changed() {
    let echo = Echo::with([(200, held("red", "5"))]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let done = api.create_or_update(&configmap("home", ""), color("red")).await.unwrap();
    assert!(matches!(done, Upserted::Unchanged(_)) && !done.is_written());
    let done = api.create_or_patch(&configmap("home", ""), color("red")).await.unwrap();
    assert_eq!(done.into_object().metadata.resource_version.as_deref(), Some("5"));
    assert_eq!(verbs(&echo), ["GET", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_there_is_created_as_changed() {
    let echo = Echo::with([status(404, "NotFound"), (201, held("red", "1"))]);
    let api = client(&echo).all::<ConfigMap>();
    let mut home = configmap("home", "");
    home.metadata.resource_version = None;
    home.metadata.namespace = Some("shop".into());
    let done = api.create_or_update(&home, color("red")).await.unwrap();
    assert!(matches!(done, Upserted::Created(_)));
    let seen = echo.seen();
    assert!(seen[0].0.starts_with("GET /api/v1/namespaces/shop/configmaps/home"), "{}", seen[0].0);
    assert!(seen[1].0.starts_with("POST /api/v1/namespaces/shop/configmaps?"), "{}", seen[1].0);
    assert_eq!(seen[1].2["data"], json!({ "color": "red" }));
}

#[tokio::test(start_paused = true)]
async fn an_update_writes_the_whole_and_a_patch_the_difference_at_the_version_read() {
    let echo = Echo::with([(200, held("red", "5"))]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let done = api.create_or_update(&configmap("home", ""), color("blue")).await.unwrap();
    assert!(matches!(done, Upserted::Updated(_)));
    api.create_or_patch(&configmap("home", ""), color("blue")).await.unwrap();
    let seen = echo.seen();
    assert_eq!(verbs(&echo), ["GET", "PUT", "GET", "PATCH"]);
    assert_eq!(seen[1].2["data"], json!({ "color": "blue", "size": "1" }));
    assert_eq!(
        seen[3].2,
        json!({ "data": { "color": "blue" }, "metadata": { "resourceVersion": "5" } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_conflict_and_a_faster_creation_are_looked_at_again() {
    let echo = Echo::with([
        status(404, "NotFound"),
        status(409, "AlreadyExists"),
        (200, held("red", "5")),
        status(409, "Conflict"),
        (200, held("green", "6")),
        (200, held("blue", "7")),
    ]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let done = api.create_or_update(&configmap("home", ""), color("blue")).await.unwrap();
    assert!(done.is_written());
    assert_eq!(verbs(&echo), ["GET", "POST", "GET", "PUT", "GET", "PUT"]);
    assert_eq!(echo.seen()[5].2["metadata"]["resourceVersion"], "6");
}

#[tokio::test(start_paused = true)]
async fn conflicts_without_end_are_told_after_five_attempts() {
    let mut answers = Vec::new();
    for _ in 0..9 {
        answers.push((200, held("red", "5").to_string()));
        answers.push((409, status(409, "Conflict").1.to_string()));
    }
    let answers: [(u16, String); 18] = answers.try_into().unwrap();
    let echo = Echo::text(answers);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let error = api.create_or_update(&configmap("home", ""), color("blue")).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("tried 5 times"), "{error}");
    assert_eq!(echo.seen().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_change_may_not_move_the_object() {
    let echo = Echo::with([(200, held("red", "5"))]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let rename = |map: &mut ConfigMap| map.metadata.name = Some("else".into());
    usage(api.create_or_update(&configmap("home", ""), rename).await, "another name");
    assert_eq!(verbs(&echo), ["GET"]);
}

/// The first replace worked and its answer was lost: the own write caused the conflict of the
/// second replace.
#[tokio::test(start_paused = true)]
async fn g_r3_a_change_whose_answer_was_lost_is_not_made_a_second_time() {
    let count = |map: &mut ConfigMap| {
        let data = map.data.get_or_insert_default();
        let n: u32 = data.get("n").map_or(0, |n| n.parse().unwrap());
        data.insert("n".into(), (n + 1).to_string());
    };
    let script = || {
        let mut after = held("red", "6");
        after["data"]["n"] = json!("1");
        [
            (200, held("red", "5")),
            status(504, "Timeout"),
            status(409, "Conflict"),
            (200, after.clone()),
            (200, after),
        ]
    };
    let echo = Echo::with(script());
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let sent = |echo: &Echo| {
        let seen = echo.seen().into_iter().filter(|(line, ..)| !line.starts_with("GET"));
        seen.map(|(_, _, body)| body["data"]["n"].clone()).collect::<Vec<_>>()
    };
    let _ = api.create_or_update(&configmap("home", ""), count).await;
    assert_eq!(sent(&echo), [json!("1"), json!("1")]);
    let echo = Echo::with(script());
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let _ = retry_on_conflict(api.client(), Retries::DEFAULT_RETRY, || async {
        let mut map = api.get("home").await?;
        count(&mut map);
        api.replace(&map).await
    })
    .await;
    assert_eq!(sent(&echo), [json!("1"), json!("1")]);
}

/// As in a change that replaces the stored object by a new object.
#[tokio::test(start_paused = true)]
async fn a_change_that_forgets_the_version_is_guarded_by_the_one_that_was_read() {
    let echo = Echo::with([(200, held("red", "5"))]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let whole = |map: &mut ConfigMap| {
        let mut new = configmap("home", "");
        new.metadata.resource_version = None;
        new.metadata.namespace = Some("shop".into());
        new.data = Some([("color".to_owned(), "blue".to_owned())].into());
        *map = new;
    };
    api.create_or_update(&configmap("home", ""), whole).await.unwrap();
    let (line, _, body) = &echo.seen()[1];
    assert!(line.starts_with("PUT "), "{line}");
    assert_eq!(body["metadata"]["resourceVersion"], "5");
    assert_eq!(body["metadata"]["uid"], "u");
}
