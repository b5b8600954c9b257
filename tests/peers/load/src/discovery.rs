//! Discovery documents: groups, versions and kinds.

use crate::http::Request;

const VERSION: &str =
    r#"{"major":"1","minor":"36","gitVersion":"v1.36.3","platform":"linux/amd64"}"#;
const API: &str = r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}"#;
const APIS: &str = r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"peers.example.dev","versions":[{"groupVersion":"peers.example.dev/v1","version":"v1"}],"preferredVersion":{"groupVersion":"peers.example.dev/v1","version":"v1"}}]}"#;
const GROUP: &str = r#"{"kind":"APIGroup","apiVersion":"v1","name":"peers.example.dev","versions":[{"groupVersion":"peers.example.dev/v1","version":"v1"}],"preferredVersion":{"groupVersion":"peers.example.dev/v1","version":"v1"}}"#;
const CORE: &str = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}"#;
const WIDGETS: &str = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"peers.example.dev/v1","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get","list","watch"]}]}"#;

pub fn document(path: &str) -> Option<&'static str> {
    Some(match path {
        "/version" => VERSION,
        "/api" => API,
        "/apis" => APIS,
        "/api/v1" => CORE,
        "/apis/peers.example.dev" => GROUP,
        "/apis/peers.example.dev/v1" => WIDGETS,
        _ => return None,
    })
}

pub fn not_found(request: &Request) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{} {} is not served here","reason":"NotFound","code":404}}"#,
        request.method, request.path
    )
}
