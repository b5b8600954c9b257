use serde_json::{Value, json};

use crate::http::test_support::*;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

/// A mutation that merges the fields of an expression.
fn merging(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

/// A mutation by operations of a JSON Patch.
fn operating(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Creates a policy about ConfigMaps with a binding, with further members of the policy's spec.
async fn bind(client: &mut Client, name: &str, mutations: Value, more: Value) {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE", "UPDATE"]});
    let mut spec = json!({"matchConstraints": {"resourceRules": [rule]}, "mutations": mutations,
        "reinvocationPolicy": "Never"});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let reply = client.post(POLICIES, policy).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    let mut spec = json!({"policyName": name});
    if let Some(reference) = more.get("paramRef") {
        spec["paramRef"] = reference.clone();
    }
    let reply = client.post(BINDINGS, json!({"metadata": {"name": name}, "spec": spec})).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn policies_patch_in_the_order_of_names_and_each_sees_what_the_one_before_left() {
    let (_server, mut client) = start().await;
    let label = "Object{metadata: Object.metadata{labels: {'a': variables.n + '-1'}}}";
    let variable = json!({"variables": [{"name": "n", "expression": "object.metadata.name"}]});
    bind(&mut client, "a", json!([merging(label)]), variable).await;
    let key = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x.io/b'), \
               value: object.metadata.labels.a + '-2'}]";
    bind(&mut client, "b", json!([operating(key)]), json!({})).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    let labels = json!({"a": "m-1", "x.io/b": "m-1-2"});
    assert_eq!(reply.value["metadata"]["labels"], labels);
    // The fields of policies have no owner.
    assert!(!reply.value["metadata"]["managedFields"].to_string().contains("f:labels"));
    let change = json!({"metadata": {"labels": null}, "data": {"k": "w"}});
    let reply = client.merge(&format!("{MAPS}/m"), change).await;
    assert_eq!(reply.value["metadata"]["labels"], labels);
}

#[tokio::test(start_paused = true)]
async fn an_error_refuses_the_request_unless_the_policy_ignores_it() {
    let (_server, mut client) = start().await;
    let mutations = json!([operating("[JSONPatch{op: 'remove', path: '/data/nope'}]")]);
    bind(&mut client, "p", mutations, json!({})).await;
    let reply = client.post(MAPS, map("m")).await;
    let why = "policy 'p' with binding 'p' denied request: JSON Patch: ";
    assert!(reply.message().starts_with(why), "{}", reply.text);
    assert_eq!((reply.code, &reply.value["reason"]), (403, &json!("Invalid")));
    assert_eq!(reply.value["details"]["causes"][0]["message"], reply.message());
    let change = json!({"spec": {"failurePolicy": "Ignore"}});
    assert_eq!(client.merge(&format!("{POLICIES}/p"), change).await.code, 200);
    assert_eq!(client.post(MAPS, map("m")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn conditions_and_failed_tests_leave_the_object_as_it_is() {
    let (_server, mut client) = start().await;
    let condition = json!([{"name": "c", "expression": "object.metadata.name != 'skipped'"}]);
    let test = "[JSONPatch{op: 'test', path: '/data/k', value: 'other'}, \
                JSONPatch{op: 'remove', path: '/data/k'}]";
    let label = merging("Object{metadata: Object.metadata{labels: {'a': 'b'}}}");
    let mutations = json!([operating(test), label]);
    bind(&mut client, "p", mutations, json!({"matchConditions": condition})).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!(reply.value["data"], json!({"k": "v"}));
    assert_eq!(reply.value["metadata"]["labels"], json!({"a": "b"}));
    let reply = client.post(MAPS, map("skipped")).await;
    assert!(reply.value["metadata"].get("labels").is_none(), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_policy_reads_its_parameters_and_is_invoked_again_after_a_change() {
    let (_server, mut client) = start().await;
    client.post(MAPS, json!({"metadata": {"name": "param"}, "data": {"value": "x"}})).await;
    let count = "Object{metadata: Object.metadata{annotations: {'count': \
                 string(int(object.metadata.?annotations[?'count'].orValue('0')) + 1)}}}";
    bind(&mut client, "a", json!([merging(count)]), json!({"reinvocationPolicy": "IfNeeded"}))
        .await;
    let label = merging("Object{metadata: Object.metadata{labels: {'p': params.data.value}}}");
    let more = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "paramRef": {
        "name": "param", "namespace": "default", "parameterNotFoundAction": "Deny"}});
    bind(&mut client, "b", json!([label]), more).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    assert_eq!(reply.value["metadata"]["labels"], json!({"p": "x"}));
    assert_eq!(reply.value["metadata"]["annotations"], json!({"count": "2"}));
}

#[tokio::test(start_paused = true)]
async fn validating_policies_see_what_mutating_ones_have_made() {
    let (_server, mut client) = start().await;
    let label = merging("Object{metadata: Object.metadata{labels: {'a': 'b'}}}");
    bind(&mut client, "p", json!([label]), json!({})).await;
    let validation = json!({"expression": "!has(object.metadata.labels)", "message": "labelled"});
    super::bind(&mut client, super::about("", &["configmaps"], validation), json!({})).await;
    let reply = client.post(MAPS, map("m")).await;
    assert!(reply.message().ends_with("denied request: labelled"), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn fields_without_a_type_and_atomic_lists_are_refused() {
    let (_server, mut client) = start().await;
    for (expression, why) in [
        (
            "Object{nope: 1}",
            "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema",
        ),
        (
            "Object{metadata: Object.wrong{}}",
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.metadata\", which matches field name path from root Object type",
        ),
    ] {
        bind(&mut client, "p", json!([merging(expression)]), json!({})).await;
        let reply = client.post(MAPS, map("m")).await;
        let expected = format!("policy 'p' with binding 'p' denied request: {why}");
        assert_eq!(reply.message(), expected);
        for url in [POLICIES, BINDINGS] {
            assert_eq!(client.delete(&format!("{url}/p")).await.code, 200);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn operations_that_make_no_object_of_the_kind_are_internal_errors() {
    let (_server, mut client) = start().await;
    for (operation, why) in [
        ("path: '/nope', value: 1", "strict decoding error: unknown field \"nope\""),
        (
            "path: '/metadata/annotations', value: {'a': [1]}",
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.annotations of type string",
        ),
    ] {
        let expression = format!("[JSONPatch{{op: 'add', {operation}}}]");
        bind(&mut client, "p", json!([operating(&expression)]), json!({})).await;
        let reply = client.post(MAPS, map("m")).await;
        assert_eq!(reply.code, 500, "{}", reply.text);
        assert_eq!(reply.message(), format!("Internal error occurred: {why}"));
        for url in [POLICIES, BINDINGS] {
            assert_eq!(client.delete(&format!("{url}/p")).await.code, 200);
        }
    }
}
