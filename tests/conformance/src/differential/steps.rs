//! Random requests on the objects of a kind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dice::Dice;
use super::kinds::{self, Field, Kind};
use crate::script::Step;

const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Name of the object whose event ends a watch.
const LAST: &str = "zz-last";

/// The making of a sequence.
#[derive(Debug)]
pub(super) struct Maker<'a> {
    pub(super) dice: Dice,
    pub(super) kind: &'a Kind,
    /// Number of a hundred values that are bad.
    pub(super) bad: usize,
}

/// Returns a request with a JSON body.
fn with_body(method: &str, path: &str, body: Value) -> Step {
    Step { request: format!("{method} {path}"), body: Some(body), ..Step::default() }
}

/// Returns a request without a body.
fn bare(method: &str, path: &str) -> Step {
    Step { request: format!("{method} {path}"), ..Step::default() }
}

/// Returns a request with the Accept header.
fn accepting(path: &str, accept: &str) -> Step {
    let headers = BTreeMap::from([("accept".to_owned(), accept.to_owned())]);
    Step { headers, ..bare("GET", path) }
}

impl Maker<'_> {
    /// Returns a step that makes the version of the list known to the watch at the end.
    pub(super) fn first(&self) -> Step {
        let set = BTreeMap::from([("begin".to_owned(), "/metadata/resourceVersion".to_owned())]);
        let path = format!("{}?labelSelector=u%3D${{u}}", self.kind.path());
        Step { set, ..bare("GET", &path) }
    }

    /// Returns a watch of all that happened since the first step, ended by a separate object.
    pub(super) fn last(&mut self) -> Vec<Step> {
        let path = self.kind.path();
        let name = self.kind.name(LAST);
        let selector = if self.kind.is_cluster || self.dice.percent(40) {
            self.dice.word(&["&labelSelector=u%3D${u}", "&labelSelector=u%3D${u},l"])
        } else {
            ""
        };
        let query = format!("watch=true&timeoutSeconds=3&resourceVersion=${{begin}}{selector}");
        let mut last = self.kind.least(&name);
        last["metadata"]["labels"]["l"] = json!("1");
        let watch = Step {
            events: Some(200),
            last: format!("\"name\":\"{name}\""),
            ..bare("GET", &format!("{path}?{query}"))
        };
        vec![with_body("POST", &path, last), watch]
    }

    /// Returns the requests of a random action.
    pub(super) fn action(&mut self) -> Vec<Step> {
        let short = self.dice.word(&["a", "a", "b", "c"]);
        let name = self.kind.name(short);
        let mut steps = match self.dice.below(100) {
            0..=17 => vec![self.create(&name)],
            18..=29 => vec![self.replace(short, &name)],
            30..=41 => vec![self.merge(&name)],
            42..=53 => vec![self.json_patch(&name)],
            54..=62 => vec![self.strategic(&name)],
            63..=76 => vec![self.apply(&name)],
            77..=81 => vec![self.delete(short, &name)],
            82..=85 => vec![self.get(&name)],
            86..=90 => vec![self.list()],
            // Pages of the cluster's objects depend on those of other sequences.
            91..=92 if !self.kind.is_cluster => self.pages(),
            91..=92 => vec![self.list()],
            93 => vec![self.delete_all()],
            _ => vec![self.subresource(&name)],
        };
        if let [step] = steps.as_mut_slice()
            && step.set.is_empty()
            && self.dice.percent(50)
            && !self.is_of_list(&step.request)
        {
            step.set.insert(short.to_owned(), "/metadata/resourceVersion".to_owned());
        }
        steps
    }

    /// Returns a random query of a write.
    fn query(&mut self) -> String {
        let mut parts = Vec::new();
        if self.dice.percent(6) {
            parts.push(self.dice.word(&["dryRun=All", "dryRun=All", "dryRun=x"]));
        }
        if self.dice.percent(20) {
            parts.push(self.dice.word(&["fieldManager=m1", "fieldManager=m2"]));
        }
        if self.dice.percent(15) {
            let good = ["fieldValidation=Strict", "fieldValidation=Ignore", "fieldValidation=Warn"];
            let is_bad = self.dice.percent(self.bad);
            parts.push(if is_bad { "fieldValidation=X" } else { self.dice.word(&good) });
        }
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// Returns a step whose body may be sent, and the answer read, in protobuf.
    fn formed(&mut self, mut step: Step, is_good: bool) -> Step {
        step.protobuf = self.kind.protobuf && is_good && self.dice.percent(15);
        step
    }

    fn create(&mut self, name: &str) -> Step {
        let (mut object, is_good) = self.kind.object(&mut self.dice, name, self.bad);
        if self.dice.percent(self.bad / 2) {
            let other = self.dice.word(&["A_b", "", "a/b", "x..y", "-"]);
            object["metadata"]["name"] = json!(other);
        }
        if self.dice.percent(4) {
            object["metadata"]["generateName"] = json!(format!("{name}-g-"));
            drop(object["metadata"].as_object_mut().and_then(|fields| fields.remove("name")));
        }
        let query = self.query();
        let step = with_body("POST", &format!("{}{query}", self.kind.path()), object);
        self.formed(step, is_good)
    }

    fn replace(&mut self, short: &str, name: &str) -> Step {
        let (mut object, is_good) = self.kind.object(&mut self.dice, name, self.bad);
        if self.dice.percent(25) {
            object["metadata"]["resourceVersion"] = json!(format!("${{{short}}}"));
        }
        if self.dice.percent(self.bad / 2) {
            let version = self.dice.word(&["1", "x", "0"]);
            object["metadata"]["resourceVersion"] = json!(version);
        }
        let mut query = self.query();
        if query.contains("dryRun") && self.kind.is_cluster {
            query.clear();
        }
        let step = with_body("PUT", &format!("{}/{name}{query}", self.kind.path()), object);
        self.formed(step, is_good)
    }

    /// Returns a patch of some fields.
    fn change(&mut self, fields: &[Field]) -> Value {
        let mut body = json!({});
        kinds::fill(&mut body, fields, &mut self.dice, self.bad);
        if self.dice.percent(30)
            && let Some(field) = self.dice.of(fields)
        {
            kinds::set(&mut body, &field.at, Value::Null);
        }
        body
    }

    fn patch(&mut self, path: &str, kind: &str, body: Value) -> Step {
        let query = self.query();
        let content_type = Some(kind.to_owned());
        let step = Step { content_type, ..with_body("PATCH", &format!("{path}{query}"), body) };
        let is_read = kind != APPLY || !self.dice.percent(10);
        if is_read { step } else { self.formed(step, true) }
    }

    fn merge(&mut self, name: &str) -> Step {
        let body = self.change(&self.kind.fields);
        self.patch(&format!("{}/{name}", self.kind.path()), MERGE, body)
    }

    fn strategic(&mut self, name: &str) -> Step {
        let special = self.dice.of(&self.kind.patches).cloned();
        let body = match special {
            Some(patch) if self.dice.percent(60) => patch,
            _ if self.kind.is_custom && self.dice.percent(80) => return self.merge(name),
            _ => self.change(&self.kind.fields),
        };
        self.patch(&format!("{}/{name}", self.kind.path()), STRATEGIC, body)
    }

    /// Returns an operation of a JSON patch.
    fn operation(&mut self) -> Value {
        let Some(field) = self.dice.of(&self.kind.fields) else { return json!({}) };
        let value = kinds::value(field, &mut self.dice, self.bad).0.unwrap_or(json!("v"));
        let deep = self.dice.of(&self.kind.deep);
        let at = match deep {
            Some(deep) if self.dice.percent(40) => deep,
            _ => &field.at,
        };
        let from = self.dice.of(&self.kind.fields).map_or("/x", |field| field.at.as_str());
        match self.dice.below(12) {
            0..=4 => json!({"op": "add", "path": at, "value": value}),
            5..=6 => json!({"op": "replace", "path": at, "value": value}),
            7..=8 => json!({"op": "remove", "path": at}),
            9 => json!({"op": "test", "path": at, "value": value}),
            10 => json!({"op": "copy", "from": from, "path": at}),
            _ => json!({"op": "move", "from": from, "path": at}),
        }
    }

    fn json_patch(&mut self, name: &str) -> Step {
        let operations: Vec<Value> = (0..=self.dice.below(3)).map(|_| self.operation()).collect();
        self.patch(&format!("{}/{name}", self.kind.path()), JSON_PATCH, json!(operations))
    }

    fn apply(&mut self, name: &str) -> Step {
        let (object, _) = self.kind.object(&mut self.dice, name, self.bad);
        self.applied(&format!("{}/{name}", self.kind.path()), object)
    }

    /// Returns an apply of an object.
    fn applied(&mut self, path: &str, object: Value) -> Step {
        let manager = self.dice.word(&["m1", "m1", "m2"]);
        let force = self.dice.word(&["", "", "&force=true"]);
        let is_dry = self.dice.percent(5) && !self.kind.is_custom;
        let dry = if is_dry { "&dryRun=All" } else { "" };
        let query = format!("?fieldManager={manager}{force}{dry}");
        let content_type = Some(APPLY.to_owned());
        Step { content_type, ..with_body("PATCH", &format!("{path}{query}"), object) }
    }

    fn delete(&mut self, short: &str, name: &str) -> Step {
        let path = format!("{}/{name}", self.kind.path());
        match self.dice.below(8) {
            0 => bare("DELETE", &format!("{path}?dryRun=All")),
            1 => bare("DELETE", &format!("{path}?gracePeriodSeconds=0")),
            2 => bare("DELETE", &format!("{path}?propagationPolicy=Background")),
            3 => {
                let version = json!({"resourceVersion": format!("${{{short}}}")});
                with_body("DELETE", &path, json!({"preconditions": version}))
            }
            4 if self.bad > 0 => bare("DELETE", &format!("{path}?propagationPolicy=X")),
            _ => bare("DELETE", &path),
        }
    }

    fn get(&mut self, name: &str) -> Step {
        let path = format!("{}/{name}", self.kind.path());
        match self.dice.below(6) {
            0 => accepting(&path, TABLE),
            1 => accepting(&path, PARTIAL),
            2 if self.kind.protobuf => Step { protobuf: true, ..bare("GET", &path) },
            _ => bare("GET", &path),
        }
    }

    /// Returns the query of a list with a label selector, and perhaps a field selector.
    fn selector(&mut self) -> String {
        let labels = self.dice.word(&[
            "u%3D${u}",
            "u%3D${u},l",
            "u%3D${u},!l",
            "u%3D${u},l+in+(1,2)",
            "u%3D${u},l+notin+(1)",
            "u%3D${u},l!%3D2",
            "u%3D${u},m,l%3D1",
        ]);
        let fields = if self.dice.percent(25) {
            let name = self.kind.name("a");
            let sign = self.dice.word(&["%3D", "!%3D", "%3D%3D"]);
            format!("&fieldSelector=metadata.name{sign}{name}")
        } else if self.dice.percent(self.bad / 3) {
            format!(
                "&fieldSelector={}",
                self.dice.word(&["spec.bogus%3D1", "x", "metadata.name%3Da,b"])
            )
        } else {
            String::new()
        };
        format!("labelSelector={labels}{fields}")
    }

    /// Whether a request reads or deletes a list, whose version moves with writes elsewhere: no
    /// object need have that version on both servers.
    fn is_of_list(&self, request: &str) -> bool {
        let path = format!("{}?", self.kind.path());
        let rest = request.strip_prefix("GET ").or_else(|| request.strip_prefix("DELETE "));
        rest.is_some_and(|rest| rest.starts_with(&path))
    }

    fn list(&mut self) -> Step {
        let path = format!("{}?{}", self.kind.path(), self.selector());
        match self.dice.below(6) {
            0 => accepting(&path, TABLE),
            1 => accepting(&path, PARTIAL_LIST),
            2 if self.kind.protobuf => Step { protobuf: true, ..bare("GET", &path) },
            _ => bare("GET", &path),
        }
    }

    fn pages(&mut self) -> Vec<Step> {
        let path = format!(
            "{}?limit={}&{}",
            self.kind.path(),
            self.dice.word(&["1", "2"]),
            self.selector()
        );
        let page = |path: &str| {
            let set = BTreeMap::from([("c".to_owned(), "/metadata/continue".to_owned())]);
            Step { set, ..bare("GET", path) }
        };
        let next = format!("{path}&continue=${{c}}");
        vec![page(&path), page(&next), page(&next)]
    }

    fn delete_all(&mut self) -> Step {
        bare("DELETE", &format!("{}?{}", self.kind.path(), self.selector()))
    }

    fn subresource(&mut self, name: &str) -> Step {
        let path = format!("{}/{name}", self.kind.path());
        if self.kind.scale && self.dice.percent(40) {
            return self.scale(&format!("{path}/scale"), name);
        }
        if !self.kind.status {
            return bare("GET", &format!("{path}/{}", self.dice.word(&["status", "scale", "x"])));
        }
        let path = format!("{path}/status");
        let fields = &self.kind.status_fields;
        // Upstream creates a missing Service by a write of the status, without an address.
        let upserts = self.kind.plural == "services";
        match self.dice.below(6) {
            0 => bare("GET", &path),
            1 if !upserts => {
                let mut object = self.kind.least(name);
                kinds::fill(&mut object, fields, &mut self.dice, self.bad);
                with_body("PUT", &path, object)
            }
            2 if !upserts => {
                let mut object = json!({"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {"name": name}});
                kinds::fill(&mut object, fields, &mut self.dice, self.bad);
                self.applied(&path, object)
            }
            3 if !self.kind.is_custom => {
                let body = self.change(fields);
                self.patch(&path, STRATEGIC, body)
            }
            _ => {
                let body = self.change(fields);
                self.patch(&path, MERGE, body)
            }
        }
    }

    fn scale(&mut self, path: &str, name: &str) -> Step {
        let replicas = [0, 4, -1][self.dice.below(if self.bad > 0 { 3 } else { 2 })];
        match self.dice.below(3) {
            0 => bare("GET", path),
            1 => self.patch(path, MERGE, json!({"spec": {"replicas": replicas}})),
            _ => {
                let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": "${u}"}, "spec": {"replicas": replicas}});
                with_body("PUT", path, body)
            }
        }
    }
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
