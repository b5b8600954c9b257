//! Options of writes.

use super::*;

#[tokio::test(start_paused = true)]
async fn dry_run_and_field_validation_go_with_each_write() {
    let echo = Echo::with([(200, stored())]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let home = configmap("home", "7");
    let strict = FieldValidation::Strict;
    let intent = json!({});
    for write in [
        api.create(&home),
        api.replace(&home),
        api.patch("home", Patch::Merge(json!({}))),
        api.apply("home", &intent),
    ] {
        write.dry_run().field_validation(strict).await.unwrap();
    }
    assert_eq!(echo.lines().len(), 4);
    for line in echo.lines() {
        assert!(line.contains("?dryRun=All&fieldValidation=Strict"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn patch_apply_sends_an_apply() {
    let echo = Echo::with([(200, stored())]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let intent = json!({ "data": { "a": "b" }, "status": { "x": 1 } });
    api.patch("home", Patch::Apply(intent.clone())).force().await.unwrap();
    api.apply_status("home", &intent).manager("counter").await.unwrap();
    let seen = echo.seen();
    assert!(seen[0].0.contains("/configmaps/home?force=true"), "{}", seen[0].0);
    assert!(seen[1].0.contains("/configmaps/home/status?fieldManager=counter"), "{}", seen[1].0);
    for (_, kind, body) in seen {
        assert_eq!(kind, "application/apply-patch+yaml");
        assert_eq!(body["metadata"], json!({ "name": "home" }));
        assert_eq!((&body["apiVersion"], &body["kind"]), (&json!("v1"), &json!("ConfigMap")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_may_have_its_own_timeout() {
    let echo = Echo::with([(200, stored())]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let time = std::time::Duration::from_secs(3);
    let home = configmap("home", "7");
    let timeout_of = |draft: &Draft| draft.finish().unwrap().timeout;
    let draft = {
        let mut draft = Draft::named(&api.target, Verb::Get, "home");
        draft.set_timeout(time);
        draft
    };
    assert_eq!(timeout_of(&draft), Some(time));
    api.get("home").timeout(time).await.unwrap();
    api.replace(&home).timeout(time).await.unwrap();
    assert!(echo.lines().iter().all(|line| line.contains("timeout=3s")), "{:?}", echo.lines());
}

#[test]
fn no_debug_output_shows_what_is_written() {
    use k8s_openapi::api::core::v1::Secret;
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "home", "namespace": "shop", "resourceVersion": "5" },
        "stringData": { "password": "canary" },
    }))
    .unwrap();
    let api = Client::offline().namespace::<Secret>("shop");
    let body = json!({ "stringData": { "password": "canary" } });
    let patch = Patch::Merge(body.clone());
    let texts = [
        format!("{:?} {:#?}", api.create(&secret), api.replace(&secret)),
        format!("{:?} {:#?}", api.apply("home", &body), api.patch("home", patch.clone())),
        format!("{patch:?} {patch:#?}"),
        format!("{:?}", api.subresource::<Value>("home", "status").replace(&body)),
        format!("{:?}", api.subresource::<Value>("home", "status").create(&body)),
    ];
    for text in texts {
        // `can` as a list of bytes, the derived `Debug` of a `Vec<u8>`.
        assert!(!text.contains("canary") && !text.contains("99, 97, 110"), "{text}");
        assert!(text.contains("bytes"), "{text}");
    }
}
