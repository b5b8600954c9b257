//! Resources by their names.

use serde_json::json;

use super::*;

fn catalog() -> Catalog {
    let versions = |name: &str, versions: &[&str]| {
        let things = [resource("Thing", "things", &["th"])];
        let listed: Vec<(&str, &[serde_json::Value])> =
            versions.iter().map(|version| (*version, &things[..])).collect();
        group(name, &listed)
    };
    let mut newer = versions("mixed.dev", &["v1", "v2alpha1", "v2beta1"]);
    // Only the lower versions have this resource.
    for version in [1, 2] {
        newer["versions"][version]["resources"] = json!([resource("Extra", "extras", &["po"])]);
    }
    let groups = [
        apps(),
        newer,
        group("metrics.k8s.io", &[("v1beta1", &[resource("PodMetrics", "pods", &[])])]),
        group("events.k8s.io", &[("v1", &[resource("Event", "events", &["ev"])])]),
        versions("a.dev", &["v1beta1", "v1"]),
    ];
    let core = group(
        "",
        &[("v1", &[resource("Pod", "pods", &["po"]), resource("Event", "events", &["ev"])])],
    );
    let read = |groups: &[serde_json::Value]| match document::root(aggregated(groups).as_bytes())
        .unwrap()
    {
        document::DiscoveryRoot::Aggregated(groups) => groups,
        document::DiscoveryRoot::Legacy(_) => unreachable!(),
    };
    Catalog { groups: [read(&[core]), read(&groups)].concat() }
}

fn found(catalog: &Catalog, argument: &str) -> String {
    let info = &catalog.find(argument).unwrap().info;
    format!("{}/{}", info.api_version(), info.kind)
}

#[test]
fn one_resource_has_many_names() {
    let catalog = catalog();
    for argument in [
        "deploy",
        "Deploy",
        "deployment",
        "deployments",
        "Deployment",
        "DEPLOYMENTS",
        "deploy.apps",
        "deployments.apps",
        "Deployment.apps",
        "deployments.v1.apps",
        "Deployment.v1.apps",
    ] {
        assert_eq!(found(&catalog, argument), "apps/v1/Deployment", "{argument}");
    }
    assert_eq!(found(&catalog, "pods.v1."), "v1/Pod");
    assert_eq!(found(&catalog, "pods.metrics.k8s.io"), "metrics.k8s.io/v1beta1/PodMetrics");
    assert_eq!(found(&catalog, "pods.v1beta1.metrics.k8s.io"), "metrics.k8s.io/v1beta1/PodMetrics");
}

#[test]
fn no_other_group_takes_a_name_from_the_core_group_and_no_short_name_from_a_full_one() {
    let catalog = catalog();
    assert_eq!(found(&catalog, "pods"), "v1/Pod");
    assert_eq!(found(&catalog, "events"), "v1/Event");
    assert_eq!(found(&catalog, "Event"), "v1/Event");
    assert_eq!(found(&catalog, "po"), "v1/Pod");
    assert_eq!(found(&catalog, "po.mixed.dev"), "mixed.dev/v2beta1/Extra");
    assert_eq!(catalog.resource_for("Event", None, None).unwrap().info.group, "");
    let other = catalog.resource_for("Event", Some("events.k8s.io"), None).unwrap();
    assert_eq!(other.info.group, "events.k8s.io");
}

#[test]
fn without_a_version_the_server_s_preferred_one_is_taken_then_stable_before_beta_before_alpha() {
    let catalog = catalog();
    let names: Vec<&str> =
        catalog.group("mixed.dev").unwrap().versions.iter().map(|v| &*v.name).collect();
    assert_eq!(names, ["v1", "v2beta1", "v2alpha1"]);
    assert_eq!(found(&catalog, "things.mixed.dev"), "mixed.dev/v1/Thing");
    // The server prefers a beta here.
    assert_eq!(found(&catalog, "things.a.dev"), "a.dev/v1beta1/Thing");
    assert_eq!(found(&catalog, "things.v1.a.dev"), "a.dev/v1/Thing");
    assert_eq!(found(&catalog, "extras"), "mixed.dev/v2beta1/Extra");
    let preferred: Vec<String> = catalog.preferred().map(|r| r.info.group_resource()).collect();
    assert_eq!(preferred.iter().filter(|name| *name == "extras.mixed.dev").count(), 1);
}

#[test]
fn a_name_that_several_groups_have_is_refused_with_all_of_them() {
    let catalog = catalog();
    for error in [
        catalog.find("things").unwrap_err(),
        catalog.find("th").unwrap_err(),
        catalog.resource_for("Thing", None, None).unwrap_err(),
        catalog.kind_for("things", None, None).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        let text = error.to_string();
        assert!(text.contains("things.v1.mixed.dev, things.v1beta1.a.dev"), "{text}");
        assert!(text.contains("name one of them in full"), "{text}");
        let candidates = &Ambiguity::of(&error).unwrap().candidates;
        assert_eq!(candidates.len(), 2);
        assert!(NoMatch::of(&error).is_none());
    }
}

#[test]
fn what_is_not_served_is_said_with_what_is() {
    let catalog = catalog();
    let text = |error: Result<&ApiResource, Error>| {
        let error = error.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        error.to_string()
    };
    let missing = text(catalog.find("widgets"));
    assert_eq!(
        missing,
        "cannot find the resource \"widgets\": none of 6 API groups has it; is its definition \
         installed?"
    );
    let group = text(catalog.find("widgets.example.dev"));
    assert!(group.contains("the API group \"example.dev\" is not served"), "{group}");
    let version = text(catalog.find("deployments.v2.apps"));
    assert!(version.ends_with("it is served as deployments.v1.apps"), "{version}");
    let version = text(catalog.resource_for("Deployment", Some("apps"), Some("v1beta1")));
    assert!(version.contains("of apps/v1beta1: it is served as deployments.v1.apps"), "{version}");
    let kind = text(catalog.resource_for("deployment", Some("apps"), None));
    assert!(kind.ends_with("the group apps does not have it"), "{kind}");
    for odd in ["", ".", "..", "deployments.", ".apps", "a/b"] {
        assert!(catalog.find(odd).is_err(), "{odd}");
    }
}

#[test]
fn a_kind_and_a_plural_map_to_each_other() {
    let catalog = catalog();
    for resource in catalog.resources() {
        let ResourceInfo { group, version, kind, plural, .. } = &resource.info;
        let (group, version) = (Some(&**group), Some(&**version));
        assert_eq!(catalog.resource_for(kind, group, version).unwrap(), resource);
        assert_eq!(catalog.kind_for(plural, group, version).unwrap(), resource);
        assert!(catalog.serves(&resource.info));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_name_is_the_callers_mistake() {
    let catalog = catalog();
    for argument in ["", "deploy/web", "a b", "..", "a?b"] {
        let error = catalog.find(argument).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains("not a name of a resource"), "{error}");
    }
    let discovery = crate::client::Client::offline().discovery();
    for api_version in ["", "a/b/c", "/v1", "apps/", "apps//v1"] {
        let error = discovery.resource_of(api_version, "X").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{api_version}: {error}");
    }
}
