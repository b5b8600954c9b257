use std::sync::Arc;

use serde_json::{Value, json};

use super::Rbac;
use crate::auth::{Attributes, Authorizer, User};
use crate::clock::Clock;
use crate::core::ServerCore;
use crate::seed::Rng;
use crate::verbs::{VerbCall, bootstrap, create};

const GROUP: &str = "rbac.authorization.k8s.io";

fn core() -> Arc<ServerCore> {
    let core = ServerCore::new(Clock::at(0), Rng::seeded(1));
    bootstrap::run(&core);
    core
}

fn role(core: &ServerCore, namespace: &str, name: &str, rules: Value) {
    let resource = if namespace.is_empty() { "clusterroles" } else { "roles" };
    bootstrap::seed(
        core,
        GROUP,
        resource,
        namespace,
        json!({"metadata": {"name": name}, "rules": rules}),
    );
}

fn bind(core: &ServerCore, namespace: &str, name: &str, role: (&str, &str), subject: Value) {
    let resource = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
    let object = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1},
        "subjects": [subject],
    });
    bootstrap::seed(core, GROUP, resource, namespace, object);
}

fn wants(verb: &str, resource: &str, namespace: &str, name: &str) -> Attributes {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    Attributes {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        namespace: namespace.into(),
        name: name.into(),
        ..Attributes::default()
    }
}

fn alice() -> User {
    User::new("alice", &["dev", "system:authenticated"])
}

#[tokio::test]
async fn nobody_may_do_anything_but_the_masters() {
    let core = core();
    let rbac = Rbac::new(Arc::downgrade(&core));
    let wanted = wants("get", "pods", "default", "x");
    assert_eq!(rbac.authorize(&alice(), &wanted), Err(String::new()));
    assert_eq!(rbac.authorize(&User::new("root", &["system:masters"]), &wanted), Ok(()));
}

#[tokio::test]
async fn a_role_counts_in_its_namespace_only() {
    let core = core();
    let rbac = Rbac::new(Arc::downgrade(&core));
    let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]);
    role(&core, "default", "reader", rules);
    bind(&core, "default", "b", ("Role", "reader"), json!({"kind": "User", "name": "alice"}));
    assert_eq!(
        rbac.explain(&alice(), &wants("get", "configmaps", "default", "x")),
        Ok("RBAC: allowed by RoleBinding \"b/default\" of Role \"reader\" to User \"alice\""
            .into())
    );
    for refused in [
        wants("get", "configmaps", "kube-system", "x"),
        wants("list", "configmaps", "", ""),
        wants("update", "configmaps", "default", "x"),
        wants("get", "configmaps/status", "default", "x"),
        wants("get", "configmaps.apps", "default", "x"),
        wants("get", "secrets", "default", "x"),
    ] {
        assert!(rbac.authorize(&alice(), &refused).is_err(), "{refused:?}");
    }
}

#[tokio::test]
async fn names_subresources_and_wildcards_narrow_and_widen_rules() {
    let core = core();
    let rbac = Rbac::new(Arc::downgrade(&core));
    role(
        &core,
        "",
        "mixed",
        json!([
            {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"]},
            {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*/scale", "deployments"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]},
        ]),
    );
    bind(&core, "", "b", ("ClusterRole", "mixed"), json!({"kind": "Group", "name": "dev"}));
    let path =
        |path: &str| Attributes { verb: "get".into(), path: path.into(), ..Attributes::default() };
    for (allowed, wanted) in [
        (true, wants("get", "configmaps", "a", "one")),
        (false, wants("get", "configmaps", "a", "two")),
        (false, wants("get", "configmaps", "a", "")),
        (true, wants("patch", "statefulsets.apps/scale", "a", "x")),
        (false, wants("patch", "statefulsets.apps", "a", "x")),
        (true, wants("delete", "deployments.apps", "a", "x")),
        (false, wants("delete", "deployments.apps/status", "a", "x")),
        (true, path("/metrics")),
        (false, path("/metrics/x")),
        (true, path("/debug/pprof")),
    ] {
        assert_eq!(rbac.authorize(&alice(), &wanted).is_ok(), allowed, "{wanted:?}");
    }
}

#[tokio::test]
async fn a_service_account_is_bound_by_namespace_and_name() {
    let core = core();
    let rbac = Rbac::new(Arc::downgrade(&core));
    role(&core, "", "r", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]));
    let subject = json!({"kind": "ServiceAccount", "name": "sa", "namespace": "default"});
    bind(&core, "", "b", ("ClusterRole", "r"), subject);
    let wanted = wants("get", "pods", "x", "y");
    let account = |name: &str| User::new(format!("system:serviceaccount:{name}"), &[]);
    assert!(rbac.authorize(&account("default:sa"), &wanted).is_ok());
    assert!(rbac.authorize(&account("other:sa"), &wanted).is_err());
    assert!(rbac.authorize(&User::new("sa", &[]), &wanted).is_err());
}

#[tokio::test]
async fn a_refusal_says_which_role_is_missing() {
    let core = core();
    let rbac = Rbac::new(Arc::downgrade(&core));
    bind(&core, "default", "b", ("Role", "none"), json!({"kind": "User", "name": "alice"}));
    assert_eq!(
        rbac.authorize(&alice(), &wants("get", "pods", "default", "x")),
        Err("RBAC: role.rbac.authorization.k8s.io \"none\" not found".into())
    );
}

#[tokio::test]
async fn the_default_roles_let_everybody_discover_and_viewers_view() {
    let core = core();
    super::defaults::seed(&core);
    crate::controllers::fill_default_roles(&core);
    let rbac = Rbac::new(Arc::downgrade(&core));
    let path =
        Attributes { verb: "get".into(), path: "/apis/apps/v1".into(), ..Attributes::default() };
    assert!(rbac.authorize(&alice(), &path).is_ok());
    let anonymous = User::new("system:anonymous", &["system:unauthenticated"]);
    assert!(rbac.authorize(&anonymous, &path).is_err());
    for (role, verb, resource, allowed) in [
        ("view", "list", "deployments.apps", true),
        ("view", "get", "secrets", false),
        ("view", "create", "deployments.apps", false),
        ("edit", "create", "deployments.apps", true),
        ("edit", "get", "secrets", true),
        ("edit", "list", "configmaps", true),
        ("edit", "create", "roles.rbac.authorization.k8s.io", false),
        ("admin", "create", "roles.rbac.authorization.k8s.io", true),
        ("admin", "list", "configmaps", true),
    ] {
        let user = User::new(role, &[]);
        let subject = json!({"kind": "User", "name": role});
        bind(
            &core,
            "default",
            &format!("{role}-{verb}-{resource}").replace('.', "-"),
            ("ClusterRole", role),
            subject,
        );
        let wanted = wants(verb, resource, "default", "");
        assert_eq!(rbac.authorize(&user, &wanted).is_ok(), allowed, "{role} {verb} {resource}");
    }
}

#[tokio::test]
async fn policies_name_only_parameters_that_their_writer_may_read() {
    let core = core();
    let rules = json!([{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]);
    role(&core, "", "policies", rules);
    let alice_too = json!({"kind": "User", "name": "alice", "apiGroup": GROUP});
    bind(&core, "", "policies", ("ClusterRole", "policies"), alice_too.clone());
    core.install(Arc::new(crate::auth::ByConnection), Arc::new(Rbac::new(Arc::downgrade(&core))));
    let make = |plural: &str, name: &str, spec: Value| {
        let mut call =
            VerbCall::by_server(&core, "admissionregistration.k8s.io", plural, "", "").unwrap();
        call.user = alice();
        let object = json!({"metadata": {"name": name}, "spec": spec});
        create::create(&core, &call, object, &mut Vec::new())
    };
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]});
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]});
    let error = make("validatingadmissionpolicies", "a", spec.clone()).unwrap_err();
    let user = "user &{alice  [dev system:authenticated] map[]}";
    let why = "must have \"get\" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)";
    assert_eq!(error.causes()[0].message, format!("Forbidden: {user} {why}"));
    let reference = json!({"selector": {}, "parameterNotFoundAction": "Deny"});
    let binding = json!({"policyName": "a", "validationActions": ["Deny"], "paramRef": reference});
    let error = make("validatingadmissionpolicybindings", "a", binding.clone()).unwrap_err();
    assert!(error.message().contains("unable to get policy a to determine minimum"), "{error}");

    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
    role(&core, "", "maps", rules);
    bind(&core, "", "maps", ("ClusterRole", "maps"), alice_too);
    assert!(make("validatingadmissionpolicies", "a", spec).is_ok());
    assert!(make("validatingadmissionpolicybindings", "a", binding).is_ok());
}
