//! Configurations that are made from handlers.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_client::client::Client;
use windlass_core::resource::DynamicObject;
use windlass_runtime::manager::{Manager, ManifestOptions};

use super::versions::v1;
use super::*;
use crate::{ConfigurationOptions, FailurePolicy, MountedFiles, Operation, WebhookServer};

/// Judges objects of any kind.
struct Anything;

impl Validate for Anything {
    type Object = DynamicObject;

    async fn validate(&self, _: &DynamicObject, _: &Admission) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }
}

fn options() -> ConfigurationOptions {
    ConfigurationOptions::new("shop", "shop-system")
}

fn validating(webhooks: Webhooks, options: &ConfigurationOptions) -> Value {
    let made = webhooks.configurations(options).unwrap();
    serde_json::to_value(made.validating.unwrap()).unwrap()
}

fn error(webhooks: Webhooks) -> String {
    webhooks.configurations(&options()).unwrap_err().to_string()
}

#[test]
fn the_defaults_spare_the_namespaces_that_the_operator_needs_and_kinds_of_others() {
    let made = validating(Webhooks::new().validating(Rules), &options());
    let wanted = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "shop-webhooks", "labels": { "app.kubernetes.io/name": "shop" } },
        "webhooks": [{
            "name": "validate.configmaps.core.k8s.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": {
                "name": "shop-webhooks", "namespace": "shop-system", "port": 443, "path": VALIDATE,
            } },
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": { "matchExpressions": [{
                "key": "kubernetes.io/metadata.name", "operator": "NotIn",
                "values": ["kube-system", "shop-system"],
            }] },
            "objectSelector": {},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "scope": "Namespaced", "operations": ["CREATE", "UPDATE"],
            }],
            "sideEffects": "None",
            "timeoutSeconds": 5,
        }],
    });
    assert_eq!(made, wanted);
}

#[test]
fn webhooks_of_own_kinds_fail_closed_unless_they_say_otherwise() {
    let policy = |webhooks: Webhooks, options: &ConfigurationOptions| {
        validating(webhooks, options)["webhooks"][0]["failurePolicy"].take()
    };
    let own = options().own_kind::<ConfigMap>();
    assert_eq!(policy(Webhooks::new().validating(Rules), &own), "Fail");
    let ignoring = WebhookRegistration::new().failure_policy(FailurePolicy::Ignore);
    assert_eq!(policy(Webhooks::new().validating_with(Rules, ignoring), &own), "Ignore");
}

#[test]
fn every_key_reaches_its_entry() {
    let labels = |key: &str| LabelSelector {
        match_labels: Some([(key.to_owned(), "yes".to_owned())].into()),
        ..LabelSelector::default()
    };
    let keys = WebhookRegistration::new()
        .name("rules.shop.example")
        .operations([Operation::Delete, Operation::Connect])
        .sub_resource("status")
        .resource("apps", "*", "deployments")
        .failure_policy(FailurePolicy::Fail)
        .timeout(Duration::from_secs(30))
        .every_namespace()
        .namespaces(labels("namespace"))
        .objects(labels("object"))
        .match_condition("not-by-nodes", "true")
        .side_effects_outside()
        .reinvoke();
    let options = options().url("https://127.0.0.1:9443/").ca_bundle("PEM").annotation("a", "b");
    let webhooks = Webhooks::new().mutating_with(Defaults, keys);
    let made = webhooks.configurations(&options).unwrap();
    assert_eq!(made.validating, None);
    let made = serde_json::to_value(made.mutating.unwrap()).unwrap();
    assert_eq!(made["metadata"]["annotations"], json!({ "a": "b" }));
    let wanted = json!({
        "name": "rules.shop.example",
        "admissionReviewVersions": ["v1"],
        "clientConfig": { "url": format!("https://127.0.0.1:9443{MUTATE}"), "caBundle": "UEVN" },
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "matchConditions": [{ "name": "not-by-nodes", "expression": "true" }],
        "namespaceSelector": { "matchLabels": { "namespace": "yes" } },
        "objectSelector": { "matchLabels": { "object": "yes" } },
        "reinvocationPolicy": "IfNeeded",
        "rules": [
            {
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps/status"],
                "scope": "Namespaced", "operations": ["DELETE", "CONNECT"],
            },
            {
                "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments/status"],
                "scope": "*", "operations": ["DELETE", "CONNECT"],
            },
        ],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 30,
    });
    assert_eq!(made["webhooks"], json!([wanted]));
}

#[test]
fn configurations_that_an_api_server_refuses_are_errors() {
    let any = error(Webhooks::new().validating(Anything));
    assert!(any.contains("at `/validate`: its handler is of any kind"), "{any}");
    let named = |name: &str| {
        error(Webhooks::new().validating_with(Rules, WebhookRegistration::new().name(name)))
    };
    for name in ["rules.example", "Rules.shop.example", "a..b", "-a.b.c"] {
        assert!(named(name).contains("is no DNS name of three parts"), "{name}: {}", named(name));
    }
    let twice =
        Webhooks::new().validating(Rules).validating_at("/two", Rules, WebhookRegistration::new());
    assert!(error(twice).contains("another one is called"));
    for time in [Duration::ZERO, Duration::from_secs(31), Duration::from_millis(1500)] {
        let keys = WebhookRegistration::new().timeout(time);
        let text = error(Webhooks::new().validating_with(Rules, keys));
        assert!(text.contains("its time-out is"), "{text}");
    }
}

#[test]
fn a_sub_resource_and_another_kind_of_webhook_have_names_of_their_own() {
    let status = WebhookRegistration::new().sub_resource("status");
    let anything = WebhookRegistration::new().resource("*", "*", "*");
    let webhooks = Webhooks::new()
        .validating(Rules)
        .mutating(Defaults)
        .validating_at("/status", Rules, status)
        .validating_with(Anything, anything);
    let made = validating(webhooks, &options());
    let names =
        made["webhooks"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    let wanted = [
        "validate.status.configmaps.core.k8s.io",
        "validate.validate.any.k8s.io",
        "validate.configmaps.core.k8s.io",
    ];
    assert!(names.eq(wanted), "{made}");
}

fn manifests(server: WebhookServer) -> Result<String, windlass_core::Error> {
    let manager = Manager::new(Client::offline()).name("shop").runnable(server);
    manager.manifests(&ManifestOptions::default().namespace("shop-system"))
}

#[test]
fn the_manifests_have_service_port_mount_and_configurations() {
    let webhooks = Webhooks::new().validating(Rules).mutating(Defaults);
    let files = MountedFiles::new("/tls").secret("shop-certificate");
    let server = WebhookServer::new(webhooks)
        .certificates(files)
        .annotation("cert-manager.io/inject-ca-from", "shop-system/shop");
    let text = manifests(server).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let of = |kind: &str| documents.iter().find(|one| one["kind"] == kind).unwrap();
    let pod = &of("Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        pod["volumes"],
        json!([{ "name": "webhook-certificate", "secret": { "secretName": "shop-certificate" } }])
    );
    let container = &pod["containers"][0];
    let mount = json!({ "name": "webhook-certificate", "mountPath": "/tls", "readOnly": true });
    assert_eq!(container["volumeMounts"], json!([mount]));
    let port = json!({ "name": "webhooks", "containerPort": 9443 });
    assert!(container["ports"].as_array().unwrap().contains(&port), "{container}");
    let service = of("Service");
    assert_eq!(service["metadata"]["name"], "shop-webhooks");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "webhooks");
    // A Pod whose caches wait for conversions is not ready: without this nobody would reach its
    // webhooks.
    assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
    assert_eq!(service["spec"]["selector"], of("Deployment")["spec"]["selector"]["matchLabels"]);
    let ingress = of("NetworkPolicy")["spec"]["ingress"].as_array().unwrap();
    let rule = json!({ "ports": [{ "port": "webhooks", "protocol": "TCP" }] });
    assert!(ingress.contains(&rule), "{ingress:?}");
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        let annotations = &of(kind)["metadata"]["annotations"];
        assert_eq!(annotations["cert-manager.io/inject-ca-from"], "shop-system/shop");
    }
}

#[test]
fn a_server_on_loopback_is_not_printed() {
    let server = WebhookServer::new(Webhooks::new().validating(Rules));
    let error = manifests(server.listen(([127, 0, 0, 1], 9443).into())).unwrap_err().to_string();
    assert!(error.contains("no API server reaches webhooks at 127.0.0.1:9443"), "{error}");
}

#[test]
fn rights_for_own_certificates_and_configurations_are_by_name() {
    let text = manifests(WebhookServer::new(Webhooks::new().validating(Rules))).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let of = |kind: &str| {
        let is_it =
            |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == "shop-webhooks";
        documents.iter().find(is_it).unwrap()
    };
    assert_eq!(
        of("Role")["rules"],
        json!([
            { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
            {
                "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"],
                "resourceNames": ["shop-webhook-certificates"],
            },
        ])
    );
    assert_eq!(
        of("ClusterRole")["rules"],
        json!([{
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "verbs": ["get", "update"], "resourceNames": ["shop-webhooks"],
        }])
    );
    for (binding, role) in [("RoleBinding", "Role"), ("ClusterRoleBinding", "ClusterRole")] {
        assert_eq!(of(binding)["roleRef"]["kind"], role);
        assert_eq!(of(binding)["subjects"][0]["name"], "shop");
    }
    assert_eq!(of("Role")["metadata"]["namespace"], "shop-system");
}

#[test]
fn with_mounted_certificates_the_operator_gets_no_rights() {
    let server = WebhookServer::new(Webhooks::new().validating(Rules));
    let text = manifests(server.certificates(MountedFiles::new("/tls"))).unwrap();
    assert!(!text.contains("secrets") && !text.contains("validatingwebhookconfigurations"));
}

#[test]
fn the_manifests_have_the_conversion_and_its_right_by_name_or_are_refused() {
    let operator = || Manager::new(Client::offline()).name("shop").install::<v1::Parcel>();
    let options = ManifestOptions::default().namespace("shop-system");
    let error = operator().manifests(&options).unwrap_err().to_string();
    assert!(error.contains("nothing converts between them"), "{error}");

    let server = WebhookServer::new(Webhooks::new().converting::<v1::Parcel>());
    let text = operator().runnable(server).manifests(&options).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let of = |kind: &'static str| documents.iter().filter(move |one| one["kind"] == kind);
    let definition = of("CustomResourceDefinition").next().unwrap();
    let client = &definition["spec"]["conversion"]["webhook"]["clientConfig"];
    let service = json!({
        "name": "shop-webhooks", "namespace": "shop-system", "port": 443,
        "path": "/convert-example-dev-parcel",
    });
    assert_eq!(client["service"], service);
    let role = of("ClusterRole").find(|one| one["metadata"]["name"] == "shop-webhooks").unwrap();
    let rules = json!([{
        "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
        "verbs": ["get", "patch"], "resourceNames": ["parcels.example.dev"],
    }]);
    assert_eq!(role["rules"], rules);

    // With mounted certificates the definition gets their authorities: the right is the same.
    let server = WebhookServer::new(Webhooks::new().converting::<v1::Parcel>());
    let server = server.certificates(MountedFiles::new("/tls"));
    let text = operator().runnable(server).manifests(&options).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let mut roles = documents.iter().filter(|one| one["kind"] == "ClusterRole");
    let role = roles.find(|one| one["metadata"]["name"] == "shop-webhooks").unwrap();
    assert_eq!(role["rules"], rules);
    assert!(!text.contains("shop-webhook-certificates"), "no right to Secrets");
}

#[test]
fn objects_of_a_process_at_a_url_have_host_and_port_in_their_names() {
    let named = |url: &str, only: &[&str]| {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let options = options().outside(url, &only).alone().of_process("7f");
        (options.configuration(), options.policy("few"))
    };
    let at = |end: &str| (format!("shop-webhooks-by-url-{end}"), format!("shop-few-outside-{end}"));
    assert_eq!(named("https://192.168.1.5:9443/", &[]), at("192.168.1.5-9443"));
    assert_eq!(named("https://[::1]:9443", &[]), at("1--9443"));
    assert_eq!(named("https://Laptop_1.example", &["a"]), at("laptop-1.example"));
    assert_eq!(named("https://127.0.0.1:0", &["test-1"]), at("test-1-7f"));
    assert_eq!(named("https://127.0.0.1:0", &[]), at("127.0.0.1-7f"));
    assert_eq!(named("https://a-.-b..c:1", &[]), at("a.b.c-1"));
    let (long, policy) = named(&format!("https://{}.example:9443", "a".repeat(240)), &[]);
    assert!(long.len() < 200 && policy.len() < 200 && long.starts_with("shop-webhooks-by-url-aaa"));
    let shared = options().outside("https://shop.example", &[]);
    assert_eq!(shared.configuration(), "shop-webhooks-by-url");
}

#[test]
fn a_name_that_is_too_long_for_the_service_is_refused() {
    let made = |length: usize| {
        let webhooks = Webhooks::new().validating(Rules);
        webhooks.configurations(&ConfigurationOptions::new("n".repeat(length), "shop-system"))
    };
    made(54).unwrap();
    let text = made(55).unwrap_err().to_string();
    assert!(text.contains("at most 63 characters") && text.contains("Manager::name"), "{text}");
}
