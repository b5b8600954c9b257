//! Requests that get no response.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// Returns status and message of the answer to a creation.
async fn failed(path: &str, data: Value) -> (u16, String) {
    let (code, body) = ask(path, &review("CREATE", map(data), Value::Null)).await;
    assert_eq!(body["kind"], "Status", "{body}");
    (code, body["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn w3_a_panic_is_a_failure_that_does_not_show_its_text() {
    let (code, text) = failed(VALIDATE, json!({ "panic": "password" })).await;
    assert_eq!(code, 500);
    assert!(text.contains("panicked") && !text.contains("password"), "{text}");
}

#[tokio::test]
async fn a_response_that_fails_leaves_the_decision_to_the_failure_policy() {
    let answer = failed(VALIDATE, json!({ "fail": "the quota is not known" })).await;
    assert_eq!(answer, (500, "the quota is not known".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn w5_a_handler_that_hangs_is_answered_for_before_the_deadline_of_the_caller() {
    for (query, most) in
        [("?timeout=1s", 1000), ("?timeout=30s", 30_000), ("", 10_000), ("?timeout=5h", 30_000)]
    {
        let begin = Instant::now();
        let (code, _) = failed(&format!("{VALIDATE}{query}"), json!({ "hang": "" })).await;
        let (took, most) = (begin.elapsed(), Duration::from_millis(most));
        assert_eq!(code, 504);
        assert!(took < most && took >= most * 9 / 10, "{query}: {took:?}");
    }
}

#[tokio::test]
async fn an_object_that_does_not_decode_is_denied_with_the_place_and_without_the_value() {
    let asked = review("CREATE", map(json!({ "a": 4711 })), Value::Null);
    for path in [VALIDATE, MUTATE] {
        let (code, body) = ask(path, &asked).await;
        let status = &body["response"]["status"];
        assert_eq!((code, &status["code"]), (200, &json!(403)), "{body}");
        let text = status["message"].as_str().unwrap();
        assert!(
            text.contains("cannot read the object")
                && text.contains("data")
                && !text.contains("4711"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_no_review_of_this_version_is_a_bad_request() {
    let mut old = review("CREATE", map(json!({})), Value::Null);
    old["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let mut empty = review("CREATE", map(json!({})), Value::Null);
    empty["request"] = Value::Null;
    let objectless = review("CREATE", Value::Null, Value::Null);
    let without = |field: &str| {
        let mut review = review("CREATE", map(json!({})), Value::Null);
        review["request"].as_object_mut().unwrap().remove(field);
        review
    };
    let (unasked, nameless) = (without("operation"), without("uid"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let texts = [old, empty, objectless, unasked, nameless].map(|review| review.to_string());
    let texts = texts.into_iter().chain(["".into(), "{".into(), "[]".into(), deep]);
    for text in texts {
        let answer = post(VALIDATE, text.clone()).await;
        let code = answer.status().as_u16();
        assert_eq!(code, 400, "{} for {}", code, &text[..text.len().min(200)]);
    }
    assert_eq!(post(VALIDATE, vec![0xff, 0xfe]).await.status(), 400);
}

#[tokio::test]
async fn an_object_that_is_nested_deeply_is_denied() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let asked = review("CREATE", json!("DEEP"), Value::Null).to_string();
    let answer = post(VALIDATE, asked.replace("\"DEEP\"", &deep)).await;
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(body["response"]["allowed"], false, "{body}");
}

#[tokio::test]
async fn a_review_of_another_kind_is_a_bad_request_that_names_both() {
    let mut asked = review("CREATE", map(json!({})), Value::Null);
    asked["request"]["kind"] = json!({ "group": "apps", "version": "v1", "kind": "Deployment" });
    let (code, body) = ask(VALIDATE, &asked).await;
    let text = body["message"].as_str().unwrap();
    assert_eq!(code, 400);
    assert!(text.contains("Deployment.apps") && text.contains("ConfigMap of v1"), "{text}");
}

#[tokio::test]
async fn requests_of_another_form_are_refused() {
    let send = async |method: &str, path: &str, media: &str, size: usize| {
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let body = Bytes::from(vec![b' '; size]);
        handler().handle(request.body(body).unwrap()).await.status().as_u16()
    };
    let codes = [
        send("POST", "/validate", "application/json", 2).await,
        send("GET", VALIDATE, "application/json", 2).await,
        send("POST", VALIDATE, "text/plain", 2).await,
        send("POST", VALIDATE, "application/json", crate::MAX_BODY + 1).await,
        send("POST", VALIDATE, "Application/JSON; charset=utf-8", crate::MAX_BODY).await,
    ];
    assert_eq!(codes, [404, 405, 415, 413, 400]);
}

#[test]
fn two_webhooks_at_one_path_are_refused() {
    let twice = Webhooks::new().validating(Rules).validating(Rules).build(&Environment::system());
    let text = twice.unwrap_err().to_string();
    assert!(text.contains(VALIDATE) && text.contains("another one has this path"), "{text}");
    let relative = Webhooks::new()
        .validating_at("rules", Rules, WebhookRegistration::new())
        .build(&Environment::system());
    assert!(relative.is_err());
}
