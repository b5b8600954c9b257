use serde_json::{Value, json};

use super::{IncludeObject, duration, find, table};
use crate::served::{Column, Served};

fn served(kind: &str, custom: bool, columns: Vec<Column>) -> Served {
    Served {
        group: String::new(),
        version: "v1".into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: format!("{}s", kind.to_lowercase()),
        singular: kind.to_lowercase(),
        short_names: vec![],
        categories: vec![],
        namespaced: true,
        verbs: vec![],
        subresources: vec![],
        custom,
        schema: None,
        columns,
        selectable: vec![],
        stored_as: String::new(),
        deprecated: None,
    }
}

const NOW: i64 = 1_700_000_000;

fn cells(kind: &str, mut object: Value) -> String {
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2023-11-14T22:10:20Z");
    let out = table(&served(kind, false, vec![]), &object, IncludeObject::None, NOW);
    let columns = out["columnDefinitions"].as_array().map_or(0, Vec::len);
    let cells = &out["rows"][0]["cells"];
    assert_eq!(cells.as_array().map_or(0, Vec::len), columns, "{kind}: one cell per column");
    cells.to_string()
}

#[test]
fn durations_are_short() {
    let table = [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (12_000, "3h20m"),
        (86_400, "24h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ];
    for (seconds, text) in table {
        assert_eq!(duration(seconds), text, "{seconds}");
    }
}

/// The expected cells were printed by kube-apiserver 1.36.3.
#[test]
fn built_in_kinds_have_the_cells_of_a_real_server() {
    let template = json!({"spec": {"nodeSelector": {"a": "b", "c": "d"}, "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
    let table = [
        ("ConfigMap", json!({"data": {"a": "b"}, "binaryData": {"x": "aGk="}}), r#"["x",2,"3m"]"#),
        ("Secret", json!({"type": "Opaque", "data": {"a": "Yg=="}}), r#"["x","Opaque",1,"3m"]"#),
        ("Namespace", json!({"status": {"phase": "Active"}}), r#"["x","Active","3m"]"#),
        ("Lease", json!({"spec": {"holderIdentity": "me"}}), r#"["x","me","3m"]"#),
        ("ServiceAccount", json!({}), r#"["x","3m"]"#),
        ("ClusterRole", json!({}), r#"["x","2023-11-14T22:10:20Z"]"#),
        (
            "Pod",
            json!({"spec": {"containers": [{}, {}]}, "status": {"phase": "Pending"}}),
            r#"["x","0/2","Pending","0","3m","<none>","<none>","<none>","<none>"]"#,
        ),
        (
            "Deployment",
            json!({"spec": {"replicas": 2, "template": template, "selector": {"matchLabels": {"app": "x", "b": "c"}}}}),
            r#"["x","0/2",0,0,"3m","a,b","x,y","app=x,b=c"]"#,
        ),
        (
            "ReplicaSet",
            json!({"spec": {"replicas": 2, "template": template, "selector": {"matchLabels": {"app": "x"}, "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["b", "a"]}, {"key": "q", "operator": "Exists"},
            {"key": "n", "operator": "DoesNotExist"}, {"key": "z", "operator": "NotIn", "values": ["1"]}]}}}),
            r#"["x",2,0,0,"3m","a,b","x,y","app=x,k in (a,b),!n,q,z notin (1)"]"#,
        ),
        ("StatefulSet", json!({"spec": {"template": template}}), r#"["x","0/1","3m","a,b","x,y"]"#),
        (
            "DaemonSet",
            json!({"spec": {"template": template, "selector": {"matchLabels": {"app": "x"}}}}),
            r#"["x",0,0,0,0,0,"a=b,c=d","3m","a,b","x,y","app=x"]"#,
        ),
        (
            "Job",
            json!({"spec": {"completions": 3, "parallelism": 2, "template": template, "selector": {"matchLabels": {"u": "1"}}}}),
            r#"["x","Running","0/3","","3m","a,b","x,y","u=1"]"#,
        ),
        (
            "CronJob",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}}),
            r#"["x","* * * * *","<none>","False",0,"<none>","3m","a,b","x,y","<none>"]"#,
        ),
        (
            "Service",
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.222", "clusterIPs": ["10.0.0.222"], "selector": {"app": "x"},
            "ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "UDP"}]}}),
            r#"["x","ClusterIP","10.0.0.222","<none>","80/TCP,81/UDP","3m","app=x"]"#,
        ),
        (
            "Service",
            json!({"spec": {"type": "NodePort", "clusterIPs": ["10.0.0.1"], "externalIPs": ["1.2.3.4"], "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]}}),
            r#"["x","NodePort","10.0.0.1","1.2.3.4","80:30080/TCP","3m","<none>"]"#,
        ),
        (
            "Service",
            json!({"spec": {"type": "ExternalName", "externalName": "foo.bar"}}),
            r#"["x","ExternalName","<none>","foo.bar","<none>","3m","<none>"]"#,
        ),
        (
            "Service",
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "None"}}),
            r#"["x","LoadBalancer","None","<pending>","<none>","3m","<none>"]"#,
        ),
        (
            "Node",
            json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x"}}, "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "1.1.1.1"}], "nodeInfo": {"kubeletVersion": "v1.36.0"}}}),
            r#"["x","Ready,SchedulingDisabled","control-plane,x","3m","v1.36.0","1.1.1.1","<none>","<unknown>","<unknown>","<unknown>"]"#,
        ),
        (
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "ns"}, {"kind": "User", "name": "u2"}]}),
            r#"["x","Role/r","3m","u, u2","g","ns/s"]"#,
        ),
        (
            "Ingress",
            json!({"spec": {"ingressClassName": "c", "tls": [{}], "rules": [{"host": "a.b"}, {"host": "c.d"}, {"host": "e.f"}, {"host": "g.h"}]}}),
            r#"["x","c","a.b,c.d,e.f + 1 more...","","80, 443","3m"]"#,
        ),
        (
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}], "ports": [{"port": 80}, {"port": 81}]}]}),
            r#"["x","10.1.1.1:80,10.1.1.2:80,10.1.1.1:81 + 1 more...","3m"]"#,
        ),
        (
            "Event",
            json!({"involvedObject": {"kind": "Pod", "name": "p1", "fieldPath": "spec.containers{a}"}, "reason": "R", "message": " hello \n", "type": "Normal",
            "count": 3, "firstTimestamp": "2023-11-14T21:10:20Z", "lastTimestamp": "2023-11-14T22:10:20Z", "source": {"component": "kubelet", "host": "n1"}}),
            r#"["3m","Normal","R","pod/p1","spec.containers{a}","kubelet, n1","hello","63m",3,"x"]"#,
        ),
        (
            "Event",
            json!({"regarding": {"kind": "Pod", "name": "p1"}, "reason": "R", "note": "n", "type": "Normal", "eventTime": "2023-11-14T21:10:20Z",
            "reportingController": "ctl", "reportingInstance": "i", "series": {"count": 4, "lastObservedTime": "2023-11-14T22:10:20Z"}}),
            r#"["3m","Normal","R","pod/p1","","ctl, i","n","63m",4,"x"]"#,
        ),
    ];
    for (kind, object, expected) in table {
        assert_eq!(cells(kind, object), expected, "{kind}");
    }
}

#[test]
fn a_pod_says_what_keeps_it_from_running() {
    let status = |containers: Value, init: Value| {
        let pod = json!({
            "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]},
            "status": {"phase": "Running", "containerStatuses": containers, "initContainerStatuses": init}
        });
        let cells: Vec<Value> = serde_json::from_str(&cells("Pod", pod)).unwrap();
        format!(
            "{} {} {}",
            cells[1].as_str().unwrap(),
            cells[2].as_str().unwrap(),
            cells[3].as_str().unwrap()
        )
    };
    let done = json!([{"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {"terminated": {"exitCode": 0}}}]);
    let waiting = json!([{"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"finishedAt": "2023-11-14T22:12:20Z"}}}]);
    assert_eq!(status(waiting, done.clone()), "0/1 CrashLoopBackOff 3 (60s ago)");
    assert_eq!(
        status(json!([{"ready": true, "state": {"running": {}}}]), done.clone()),
        "1/1 Running 0"
    );
    assert_eq!(
        status(json!([{"state": {"terminated": {"exitCode": 2}}}]), done),
        "0/1 ExitCode:2 0"
    );
    let init = json!([{"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {"running": {}}}]);
    assert_eq!(status(json!([]), init), "0/1 Init:1/2 0");
}

#[test]
fn custom_columns_are_read_by_json_path() {
    let column = |name: &str, kind: &str, path: &str| Column {
        name: name.into(),
        kind: kind.into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: path.into(),
    };
    let columns = vec![
        column("Size", "integer", ".spec.size"),
        column("Tags", "string", ".spec.tags"),
        column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        column("Star", "string", ".spec.list[*].name"),
        column("When", "date", ".spec.when"),
        column("None", "string", ".spec.none"),
        column("Bad", "integer", ".spec.when"),
    ];
    let list = json!({"kind": "WidgetList", "metadata": {"resourceVersion": "7", "continue": ""}, "items": [{
        "metadata": {"name": "w"},
        "spec": {"size": 1.0, "tags": ["a", "b"], "when": "2023-11-14T22:08:20Z", "list": [{"name": "p"}, {"name": "q"}]},
        "status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]}}]});
    let out = table(&served("Widget", true, columns), &list, IncludeObject::Metadata, NOW);
    assert_eq!(out["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(
        out["rows"][0]["cells"],
        json!(["w", 1, "[\"a\",\"b\"]", "True", "p", "5m", null, null])
    );
    assert_eq!(out["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(
        out["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.size"
    );
}

#[test]
fn a_custom_resource_without_columns_shows_its_age() {
    let object = json!({"kind": "Widget", "apiVersion": "g/v1", "metadata": {"name": "w", "creationTimestamp": "2023-11-14T22:08:20Z"}, "items": [1]});
    let out = table(&served("Widget", true, vec![]), &object, IncludeObject::Object, NOW);
    assert_eq!(out["rows"][0]["cells"], json!(["w", "5m"]));
    assert_eq!(out["rows"][0]["object"], object);
}

#[test]
fn json_paths_that_cannot_be_read_find_nothing() {
    let value = json!({"a": [1, 2, 3], "b.c": {"d": 4}});
    assert_eq!(find(&value, ".a[-1]"), [&json!(3)]);
    assert_eq!(find(&value, "{.a[0]}"), [&json!(1)]);
    assert_eq!(find(&value, ".b\\.c.d"), [&json!(4)]);
    assert_eq!(find(&value, "['b\\.c'].d"), [&json!(4)]);
    assert_eq!(find(&value, ".a[-1:]"), [&json!(3)]);
    assert_eq!(find(&value, ".a[0:2]"), [&json!(1), &json!(2)]);
    assert_eq!(find(&value, ".a[0,2]"), [&json!(1), &json!(3)]);
    assert_eq!(find(&value, "..d"), [&json!(4)]);
    for bad in [".a[", "a", ".a[x]", ".a[x:y]", ".a[9]", ".z.y"] {
        assert!(find(&value, bad).is_empty(), "{bad}");
    }
}

/// The values that client-go 0.36.3 finds.
#[test]
fn names_in_json_paths_end_where_those_of_kubectl_end() {
    let value = json!({
        "a": [1, 2, 3],
        "b": {"c": {"d": 5}, "x": 6},
        "m": {"q w": 1, "$": 2, "a,b": 3, "x[0]": 4, "a:b@c": 5, "k": 7, "z": 8, "a}b": 9, "a\\b": 11},
        "l": [{"t": "R", "s": 1}, {"t": "]", "s": 2}],
    });
    let table = [
        (".m.q\\ w", json!([1])),
        (".m.q w", json!([])),
        (".m['q w']", json!([])),
        (".m.a\\,b", json!([3])),
        (".m.a,b", json!([])),
        (".m['a,b']", json!([])),
        (".m.x\\[0\\]", json!([4])),
        (".m['x[0]']", json!([])),
        (".m['k','z']", json!([7, 8])),
        (".m[\"k\"]", json!([])),
        (".m[*]", json!([])),
        (".m.a:b\\@c", json!([5])),
        (".m.\\$", json!([2])),
        (".m['\\$']", json!([2])),
        (".m.$", json!([])),
        (".m.a\\}b", json!([9])),
        (".m.a\\\\b", json!([])),
        (".a[0:2,2]", json!([1, 2, 3])),
        (".l[?(@.t=='R')].s", json!([1])),
        (".b['c.d']", json!([5])),
        (".b['c','x'].d", json!([5])),
        (" .m.k ", json!([7])),
        (".m.k.", json!([])),
        (".m. k", json!([])),
    ];
    for (path, expected) in table {
        assert_eq!(json!(find(&value, path)), expected, "{path}");
    }
}
