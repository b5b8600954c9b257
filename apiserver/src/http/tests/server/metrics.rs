use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn metrics_count_requests_of_served_resources_by_verb_and_code() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    client.get(&format!("{MAPS}/nope")).await;
    client.get("/apis/no.such.group/v1/secret-texts-of-clients").await;
    let mut other = Client::of(&server).await;
    let watch = other.get(&format!("{MAPS}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(watch.code, 200);
    let text = client.get("/metrics").await.text;
    let has = |name: &str, parts: &[&str]| {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    };
    let maps = "resource=\"configmaps\"";
    assert!(has("apiserver_request_total{code=\"201\"", &[maps, "verb=\"POST\"", "} 1"]), "{text}");
    assert!(has("apiserver_request_total{code=\"404\"", &[maps, "verb=\"GET\"", "} 1"]), "{text}");
    assert!(has("apiserver_request_duration_seconds_count{", &[maps, "} 1"]), "{text}");
    assert!(has("apiserver_longrunning_requests{", &[maps, "verb=\"WATCH\"", "} 0"]), "{text}");
    assert!(has("apiserver_storage_objects{", &[maps]), "{text}");
    assert!(has("process_start_time_seconds", &[]), "{text}");
    assert!(!text.contains("secret-texts"), "{text}");
}
