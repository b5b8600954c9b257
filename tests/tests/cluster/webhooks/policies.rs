//! Admission policies: rules in CEL that the API server evaluates, without a webhook.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use windlass::Error;
use windlass::resource::ResourceExt;
use windlass::webhook::{
    AdmissionPolicies, AdmissionPolicy, CelExpression, DenialReason, PolicyRule, cel,
};

use super::*;

/// Returns a Deployment in which each label has the value `yes`.
fn deployment(name: &str, replicas: i32, labels: &[&str]) -> Deployment {
    let labels = labels.iter().map(|label| (*label, "yes"));
    let mut labels: serde_json::Map<_, _> =
        labels.map(|(label, value)| (label.to_owned(), json!(value))).collect();
    labels.insert("app".to_owned(), json!(name));
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "web" }] },
            },
        },
    }))
    .unwrap()
}

/// Returns policies for the Deployments of a namespace.
fn policies(namespace: &str) -> AdmissionPolicies {
    let here = || CelExpression::from_text(format!("request.namespace == '{namespace}'"));
    let few = AdmissionPolicy::<Deployment>::new("few")
        .match_condition("here", here())
        .variable("most", cel!("has(object.metadata.labels.large) ? 50 : 5"))
        .rule_with(
            PolicyRule::new(
                cel!(Deployment: "object.spec.replicas <= variables.most"),
                "too many replicas",
            )
            .message_expression(cel!("'at most ' + string(variables.most) + ' replicas'")),
        )
        .rule_with(
            PolicyRule::new(
                cel!(Deployment: "!has(object.spec.paused) || !object.spec.paused"),
                "deployments are not paused",
            )
            .reason(DenialReason::Forbidden),
        );
    let latest = AdmissionPolicy::<Deployment>::new("checked")
        .match_condition("here", here())
        // Fails without the label.
        .rule(
            cel!(Deployment: "object.spec.template.metadata.labels['checked'] == 'yes'"),
            "the template is checked",
        );
    AdmissionPolicies::new().policy(few).policy(latest)
}

fn text(error: &Error) -> String {
    format!("{error:?}")
}

/// Creates Deployments with too many replicas until one is refused: a real API server takes a
/// moment to read policies.
async fn until_judged(client: &Client, namespace: &str) -> Error {
    let api = client.namespace::<Deployment>(namespace);
    let (mut made, mut refused) = (0, None);
    eventually("the policies are judged", async || {
        made += 1;
        // Whichever policy is read first: both are waited for.
        let breaks_few = deployment(&format!("few-{made}"), 6, &["checked"]);
        let fails = deployment(&format!("checked-{made}"), 1, &[]);
        let few = api.create(&breaks_few).dry_run().await;
        let checked = api.create(&fails).dry_run().await;
        refused = few.err().filter(|_| checked.is_err());
        refused.is_some()
    })
    .await;
    refused.unwrap()
}

/// Returns the names of the policies and of the bindings of an operator.
async fn stored(client: &Client, operator: &str) -> Vec<String> {
    let policies = client.all::<ValidatingAdmissionPolicy>().list().await.unwrap().items;
    let bindings = client.all::<ValidatingAdmissionPolicyBinding>().list().await.unwrap().items;
    let names = policies.iter().map(|policy| policy.name());
    let names = names.chain(bindings.iter().map(|binding| binding.name()));
    let prefix = format!("{operator}-");
    names.filter(|name| name.starts_with(&prefix)).map(str::to_owned).collect()
}

#[tokio::test]
async fn rules_of_cel_about_kinds_of_others_hold_without_a_webhook() {
    let cluster = TestCluster::start().await;
    let (client, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let name = format!("rules-{namespace}");
    assert_eq!(stored(&client, &name).await.len(), 0);
    let manager = Manager::new(cluster.client()).name(&name).runnable(policies(&namespace));
    let running = cluster.spawn(manager);
    running.settled().await;
    let refused = until_judged(&client, &namespace).await;
    // On a real API server, which others use, the operator is asked about its namespace alone, by
    // policies of one process.
    let suffix = match cluster.is_embedded() {
        true => "-outside".to_owned(),
        false => format!("-outside-{namespace}-"),
    };
    let few = stored(&client, &name).await;
    let few = few.iter().find(|one| one.starts_with(&format!("{name}-few{suffix}"))).unwrap();
    let wanted = format!(
        "ValidatingAdmissionPolicy '{few}' with binding '{few}' denied request: at most 5 replicas"
    );
    assert!(text(&refused).contains(&wanted), "{refused:?}");
    assert_eq!(refused.code(), Some(422));

    let api = client.namespace::<Deployment>(&namespace);
    api.create(&deployment("large", 6, &["checked", "large"])).await.unwrap();
    let mut web = api.create(&deployment("web", 5, &["checked"])).await.unwrap();
    web.spec.as_mut().unwrap().replicas = Some(6);
    assert_eq!(api.replace(&web).await.unwrap_err().code(), Some(422), "updates are judged");
    web.spec.as_mut().unwrap().replicas = Some(4);
    web.spec.as_mut().unwrap().paused = Some(true);
    let forbidden = api.replace(&web).await.unwrap_err();
    assert!(text(&forbidden).contains("deployments are not paused"), "{forbidden:?}");
    assert_eq!(forbidden.code(), Some(403));
    let failed = api.create(&deployment("unchecked", 1, &[])).await.unwrap_err();
    assert!(text(&failed).contains("no such key: checked"), "{failed:?}");

    assert_eq!(running.stop().await, Exit::Drained);
    let left = stored(&client, &name).await.len();
    // Those of a test's own server stay, as they do in a cluster.
    assert_eq!(left, if cluster.is_embedded() { 4 } else { 0 });
}

#[tokio::test]
async fn the_policies_of_two_replicas_outside_hold_until_the_last_one_stops() {
    let cluster = TestCluster::start().await;
    let (client, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let name = format!("twice-{namespace}");
    let start = || {
        let manager = Manager::new(cluster.client()).name(&name).runnable(policies(&namespace));
        cluster.spawn(manager)
    };
    let (first, second) = (start(), start());
    first.settled().await;
    second.settled().await;
    until_judged(&client, &namespace).await;
    let shared = if cluster.is_embedded() { 4 } else { 8 };
    assert_eq!(stored(&client, &name).await.len(), shared);
    assert_eq!(first.stop().await, Exit::Drained);
    assert_eq!(stored(&client, &name).await.len(), 4);
    until_judged(&client, &namespace).await;
    assert_eq!(second.stop().await, Exit::Drained);
    let left = if cluster.is_embedded() { 4 } else { 0 };
    assert_eq!(stored(&client, &name).await.len(), left);
}

#[tokio::test]
async fn printed_policies_are_accepted_and_hold_in_all_namespaces_but_the_operators() {
    let cluster = TestCluster::start().await;
    let (client, namespace) = (cluster.client(), cluster.namespace().to_owned());
    // In one of these namespaces the operator runs.
    for own in [&*namespace, "operators"] {
        let name = format!("printed-{own}-{namespace}");
        let options = ConfigurationOptions::new(&name, own);
        let made = policies(&namespace).objects(&options).unwrap();
        for (policy, binding) in &made {
            let stored = client.all::<ValidatingAdmissionPolicy>().create(policy).await.unwrap();
            // Nothing is left to the server's defaults.
            assert_eq!(stored.spec, policy.spec);
            let stored =
                client.all::<ValidatingAdmissionPolicyBinding>().create(binding).await.unwrap();
            assert_eq!(stored.spec, binding.spec);
        }
    }
    let refused = until_judged(&client, &namespace).await;
    let name = format!("printed-operators-{namespace}-few");
    assert!(text(&refused).contains(&name), "{refused:?}");
    for own in [&*namespace, "operators"] {
        for policy in ["few", "checked"] {
            let name = format!("printed-{own}-{namespace}-{policy}");
            client.all::<ValidatingAdmissionPolicyBinding>().delete(&name).await.unwrap();
            client.all::<ValidatingAdmissionPolicy>().delete(&name).await.unwrap();
        }
    }
}
