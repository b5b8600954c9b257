//! Random objects of the three versions.

use serde_json::{Map, Value, json};

use super::types::{v1, v1alpha1, v1beta1};
use crate::rng::Rng;

/// Draws values.
pub(super) struct Random(pub(super) Rng);

impl Random {
    pub(super) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.below(u64::try_from(bound).unwrap())).unwrap()
    }

    fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn number(&self) -> i32 {
        i32::try_from(self.below(4)).unwrap()
    }

    fn text(&self) -> String {
        ["a", "b", "c", "", "\u{e9}", "x.y"][self.below(6)].to_owned()
    }

    fn option<T>(&self, value: impl FnOnce() -> T) -> Option<T> {
        (!self.one_in(3)).then(value)
    }

    fn list<T>(&self, value: impl Fn(usize) -> T) -> Vec<T> {
        (0..self.below(4)).map(value).collect()
    }

    /// Ports have names, mostly different ones.
    fn name(&self, place: usize) -> String {
        if self.one_in(8) { "same".to_owned() } else { format!("p{place}") }
    }

    fn args(&self) -> Vec<String> {
        self.list(|_| self.text())
    }

    pub(super) fn object(&self, version: &str) -> Value {
        match version {
            "v1" => self.hub(),
            "v1beta1" => self.beta(),
            _ => self.alpha(),
        }
    }

    fn hub(&self) -> Value {
        let spec = v1::JobSpec {
            minute: self.text(),
            hour: self.text(),
            host: self.text(),
            path: self.text(),
            starting_deadline_seconds: self.option(|| i64::from(self.number())),
            concurrency: match self.below(4) {
                0 => v1::Policy::Allow,
                1 => v1::Policy::Forbid,
                2 => v1::Policy::Replace { grace: self.number(), force: self.one_in(2) },
                _ => v1::Policy::Queue(self.number()),
            },
            ports: self.list(|place| v1::Port {
                name: self.name(place),
                number: i64::from(self.number()),
                tls: self.option(|| self.text()),
            }),
            steps: self.list(|_| v1::Step {
                image: self.text(),
                args: self.args(),
                weight: self.number(),
            }),
            limits: self
                .list(|_| (self.text(), v1::Limit { min: self.number(), max: self.number() }))
                .into_iter()
                .collect(),
            replicas: self.number(),
            time_zone: self.option(|| self.text()),
            suspend: self.one_in(2),
            nested: self.option(|| {
                let (text, hidden) = (self.text(), self.option(|| self.number()));
                Box::new(v1::Nested { text, hidden })
            }),
            retries: self.number(),
            tier: self.text(),
        };
        let mut job = v1::Job::new("a", spec);
        job.status = self.option(|| v1::JobStatus {
            active: self.option(|| self.args()),
            observed_generation: self.option(|| i64::from(self.number())),
        });
        self.with_metadata(serde_json::to_value(job).unwrap())
    }

    fn beta(&self) -> Value {
        let spec = v1beta1::JobSpec {
            schedule: format!("{} {}", self.text(), self.text()),
            url: format!("{}/{}", self.text(), self.text()),
            deadline: self.option(|| i64::from(self.number())),
            concurrency: match self.below(4) {
                0 => v1beta1::Policy::Allow,
                1 => v1beta1::Policy::Never,
                2 => v1beta1::Policy::Replace { seconds: self.number() },
                _ => v1beta1::Policy::Legacy(self.text()),
            },
            ports: self
                .list(|place| v1beta1::Port { name: self.name(place), number: self.number() }),
            steps: self.list(|_| v1beta1::Step { image: self.text(), args: self.args() }),
            limits: self
                .list(|_| (self.text(), v1beta1::Limit { max: self.number() }))
                .into_iter()
                .collect(),
            replicas: self.option(|| self.number()),
            nested: self.option(|| Box::new(v1beta1::Nested { text: self.text() })),
            comment: self.option(|| self.text()),
            retries: self.number(),
            tier: self.text(),
        };
        let mut job = v1beta1::Job::new("a", spec);
        job.status = self.option(|| v1beta1::JobStatus { active: self.option(|| self.args()) });
        self.with_metadata(serde_json::to_value(job).unwrap())
    }

    fn alpha(&self) -> Value {
        let (host, count, names) = (self.text(), self.number(), self.args());
        let mut job = v1alpha1::Job::new("a", v1alpha1::JobSpec { host, count, names });
        job.note = self.option(|| self.text());
        self.with_metadata(serde_json::to_value(job).unwrap())
    }

    /// Leaves out what types write and nobody else does, and adds what no type knows.
    fn as_received(&self, object: &mut Value) {
        let spec = object["spec"].as_object_mut().unwrap();
        if self.one_in(2) {
            spec.retain(|_, value| !value.is_null());
        }
        if self.one_in(3) {
            spec.remove("retries");
        }
        if self.one_in(2)
            && let Some(tier) = spec.get_mut("tier")
        {
            *tier = tier.as_str().unwrap().to_uppercase().into();
        }
        if self.one_in(2) {
            spec.insert("future".to_owned(), json!({ "text": self.text() }));
        }
        if let Some(port) = spec.get_mut("ports").and_then(|ports| ports.get_mut(0)) {
            port["since"] = json!(self.number());
        }
    }

    fn with_metadata(&self, mut object: Value) -> Value {
        self.as_received(&mut object);
        object["metadata"]["uid"] = json!("1");
        object["metadata"]["managedFields"] = json!([{ "manager": "kubectl" }]);
        if self.one_in(2) {
            object["metadata"]["annotations"] = json!({ "example.dev/note": self.text() });
        }
        object
    }

    /// Changes an object as a user does: some fields become those of another object, and lists are
    /// sorted, shortened and extended.
    pub(super) fn change(&self, object: &mut Value, other: &Value) {
        let spec: &mut Map<String, Value> = object["spec"].as_object_mut().unwrap();
        let names: Vec<String> = spec.keys().cloned().collect();
        for _ in 0..=self.below(2) {
            let name = &names[self.below(names.len())];
            // A field that was removed may be drawn again.
            let Some(Value::Array(list)) = spec.get_mut(name) else {
                match other["spec"].get(name) {
                    Some(value) => drop(spec.insert(name.clone(), value.clone())),
                    // To conversions that is what an API server prunes.
                    None if name == "future" => {}
                    None => drop(spec.remove(name)),
                }
                continue;
            };
            match self.below(4) {
                0 => list.reverse(),
                1 => drop(list.pop()),
                2 => {
                    let more = other["spec"][name].as_array().unwrap().first().cloned();
                    let place = self.below(list.len() + 1);
                    more.into_iter().for_each(|more| list.insert(place, more));
                }
                _ => *list = other["spec"][name].as_array().unwrap().clone(),
            }
        }
    }
}
