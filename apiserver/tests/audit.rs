//! The audit log of the program.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

mod support;

use support::{Folder, Program};

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_a_line_with_its_user_and_its_changes_and_no_value_of_a_secret() {
    let folder = Folder::new();
    let log = folder.path("audit");
    let program = Program::start(&folder, &["--audit-log", log.to_str().unwrap()]);
    let mut client = program.client().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hidden-one"}});
    let created = client.post(secrets, secret).await;
    let patch = json!({"stringData": {"password": "hidden-two"}, "metadata": {"labels": {"a.b/c": "hidden-three"}}});
    let patched = client.send("PATCH", &format!("{secrets}/s"), patch).await;
    assert_eq!((created.code, patched.code), (201, 200));
    let maps = "/api/v1/namespaces/default/configmaps";
    client.post(maps, json!({"metadata": {"name": "m"}, "data": {"k": "1"}})).await;
    client.send("PATCH", &format!("{maps}/m"), json!({"data": {"k": "2"}})).await;
    let dry =
        client.send("PATCH", &format!("{maps}/m?dryRun=All"), json!({"data": {"k": "3"}})).await;
    assert_eq!(dry.code, 200);
    let alice = [("impersonate-user", "alice")];
    client.try_send_with("DELETE", &format!("{maps}/m"), &alice, &Value::Null).await.unwrap();
    client.send("DELETE", &format!("{maps}/m"), Value::Null).await;
    client.token = Some("wrong".to_owned());
    assert_eq!(client.get("/version").await.code, 401);
    program.terminate();

    let text = std::fs::read_to_string(log).unwrap();
    assert!(!text.contains("hidden") && !text.contains("aGlkZGVu"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<_> = lines
        .iter()
        .map(|line| (line["verb"].as_str().unwrap(), line["code"].as_u64().unwrap()))
        .collect();
    let wanted = [
        ("create", 201),
        ("patch", 200),
        ("create", 201),
        ("patch", 200),
        ("patch", 200),
        ("delete", 403),
        ("delete", 200),
        ("get", 401),
    ];
    assert_eq!(codes, wanted);
    let change = &lines[1]["changes"][0];
    assert_eq!(change["resourceVersionBefore"], created.value["metadata"]["resourceVersion"]);
    assert_eq!(change["resourceVersionAfter"], patched.value["metadata"]["resourceVersion"]);
    let paths: Vec<&str> = change["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["path"].as_str().unwrap())
        .collect();
    assert!(paths.contains(&"data.password"), "{paths:?}");
    assert_eq!(
        lines[3]["changes"][0]["paths"],
        json!([{"path": "data.k", "before": "1", "after": "2"}])
    );
    assert_eq!(lines[4]["changes"], json!([]), "a dry run");
    assert_eq!(
        (&lines[5]["user"], &lines[5]["impersonatedUser"]),
        (&json!("kubernetes-admin"), &json!("alice"))
    );
    assert_eq!(lines[6]["changes"][0]["operation"], "delete");
    assert_eq!((&lines[7]["user"], &lines[7]["resource"]), (&json!(""), &json!("/version")));
    assert!(
        lines[0]["time"].as_str().unwrap().ends_with('Z')
            && lines[0]["durationMicros"].as_u64().unwrap() > 0
    );
}
