//! Rules of a schema that the handlers of webhooks repeat, found by experiment.
//!
//! An API server asks a webhook only about objects that fit the schema. So a refusal is repeated if
//! handlers refuse a field of objects that break one rule there, and of no object that fits.

// DESIGN.md, 263: A repeated rule is a remark about a field, from objects that break one rule alone

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_client::api::Api;
use windlass_core::error::{Error, StatusCause};
use windlass_core::resource::{DynamicObject, ResourceInfo};
use windlass_core::rng::Rng;
use windlass_runtime::manager::AdmissionCheck;

use super::changes::{ValueChange, changes};
use super::values::Values;
use super::{SEED, sent, with_head, without_head};

/// Objects that are changed.
const OBJECTS: usize = 12;
/// Most objects that are generated for these.
const ATTEMPTS: usize = 60;
/// Most changed objects.
const CHANGES: usize = 600;
/// Objects to which one change at one place is made.
const EACH: usize = 3;

/// Words of the cause by which a server says that it left out rules behind a structural fault.
const LEFT_OUT: &str = "some validation rules were not checked";

/// The parts of an experiment.
pub(super) struct Experiment<'a> {
    /// The kind as it is installed; see `installed`.
    pub(super) api: &'a Api<DynamicObject>,
    /// The kind as the handlers know it.
    pub(super) info: &'a ResourceInfo,
    /// Namespace of the objects, if the kind has namespaces.
    pub(super) namespace: Option<&'a str>,
    /// Type and metadata of all objects.
    pub(super) head: &'a Value,
    pub(super) schema: &'a Value,
    pub(super) handler: &'a dyn AdmissionCheck,
}

/// The rules that are repeated.
#[derive(Clone, Debug, Default)]
pub(super) struct RepeatCounts {
    /// Objects that break one rule alone and were judged by the handlers.
    pub(super) broken: usize,
    /// A line for each field.
    pub(super) remarks: Vec<String>,
}

/// Observations by the fields that handlers refused.
#[derive(Debug, Default)]
struct Observations {
    broken: usize,
    /// Fields of objects that break one rule there.
    repeated: BTreeMap<String, Repeated>,
    /// Fields of objects that the server stores: there the handlers say more than the schema.
    beyond: BTreeSet<String>,
}

/// Objects that were refused at one field.
#[derive(Debug, Default)]
struct Repeated {
    objects: usize,
    /// The first refusal of the server for each field of a rule.
    rules: BTreeMap<String, String>,
}

impl Experiment<'_> {
    /// Changes stored objects, some of them made from `examples`, and compares the judges.
    pub(super) async fn run(&self, examples: &[Value]) -> Result<RepeatCounts, Error> {
        let values = Values::new(Rng::seeded(SEED), examples);
        let mut seen = Observations::default();
        let mut tried: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
        let (mut objects, mut left) = (0, CHANGES);
        for _ in 0..ATTEMPTS {
            if objects == OBJECTS || left == 0 {
                break;
            }
            let Ok(base) = self.store(&values.fitting(self.schema)).await? else { continue };
            objects += 1;
            // Without a judgement there is nothing to compare.
            if !self.stored(&base, &mut seen).await {
                continue;
            }
            for change in changes(&base, self.schema, &values.fitting(self.schema)) {
                let count = tried.entry((plain(&change.place), change.name)).or_default();
                if *count == EACH || left == 0 {
                    continue;
                }
                (*count, left) = (*count + 1, left - 1);
                self.changed(&base, &change, &mut seen).await?;
            }
        }
        Ok(seen.tally())
    }

    /// Compares the judges of a changed object.
    async fn changed(
        &self,
        base: &Value,
        change: &ValueChange,
        seen: &mut Observations,
    ) -> Result<(), Error> {
        let value = change.of(base);
        match self.store(&value).await? {
            Ok(stored) => {
                self.stored(&stored, seen).await;
            }
            Err(causes) => {
                let Some(rule) = only(&causes) else { return Ok(()) };
                let Some(fields) = self.refused_fields(&value).await else { return Ok(()) };
                seen.broken += 1;
                for field in fields.iter().filter(|field| is_at(field, &rule.field)) {
                    let repeated = seen.repeated.entry(plain(field)).or_default();
                    repeated.objects += 1;
                    let message = || rule.message.clone();
                    repeated.rules.entry(plain(&rule.field)).or_insert_with(message);
                }
            }
        }
        Ok(())
    }

    /// Records the fields that the handlers refuse of an object that the server stores; returns
    /// whether they judged the object.
    async fn stored(&self, stored: &Value, seen: &mut Observations) -> bool {
        let Some(fields) = self.refused_fields(stored).await else { return false };
        seen.beyond.extend(fields.iter().map(|field| plain(field)));
        true
    }

    async fn refused_fields(&self, value: &Value) -> Option<Vec<String>> {
        let mut object = with_head(value, self.head);
        if let Some(namespace) = self.namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        self.handler.refused_fields(self.info, &object).await
    }

    /// Writes an object as a dry run: returns it as it would be stored, or the causes of a refusal.
    async fn store(&self, value: &Value) -> Result<Result<Value, Vec<StatusCause>>, Error> {
        let Ok(object) = sent(self.api, with_head(value, self.head)) else {
            return Ok(Err(Vec::new()));
        };
        match self.api.create(&object).dry_run().await {
            Ok(stored) => Ok(Ok(without_head(serde_json::to_value(&stored).unwrap_or_default()))),
            Err(error) if error.is_invalid() => Ok(Err(error.causes().to_vec())),
            // A body that the server cannot decode breaks no rule.
            Err(error) if error.is_bad_request() => Ok(Err(Vec::new())),
            Err(error) => Err(error),
        }
    }
}

impl Observations {
    fn tally(self) -> RepeatCounts {
        let repeated = self.repeated.iter().filter(|(field, _)| !self.beyond.contains(*field));
        let remark = |(field, Repeated { objects, rules }): (&String, &Repeated)| {
            let rules: Vec<&str> = rules.values().map(String::as_str).collect();
            format!(
                "{field}: of {objects} objects the webhook refuses what the schema refuses ({}), and nothing else; the \
                 API server does not ask it about them: leave the rule to the schema, unless it is about users, \
                 updates or other objects",
                rules.join("; ")
            )
        };
        RepeatCounts { broken: self.broken, remarks: repeated.map(remark).collect() }
    }
}

/// Returns the cause of a refusal by one rule.
fn only(causes: &[StatusCause]) -> Option<&StatusCause> {
    let mut rules = causes.iter().filter(|cause| !cause.message.contains(LEFT_OUT));
    rules.next().filter(|_| rules.next().is_none())
}

/// Whether a field of a handler's error is that of a rule, or stands below: a rule about several
/// fields names the value that has them.
fn is_at(field: &str, rule: &str) -> bool {
    let rule = if rule == "<nil>" { "" } else { rule };
    let rest = field.strip_prefix(rule);
    rest.is_some_and(|rest| rest.is_empty() || rule.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns a path without the positions of elements: `spec.ports[0].name` is `spec.ports[].name`,
/// and the same for a pointer.
fn plain(path: &str) -> String {
    let is_position = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let of_pointer = path.split('/').map(|part| if is_position(part) { "[]" } else { part });
    let path = of_pointer.collect::<Vec<_>>().join("/");
    let mut plain = String::new();
    for (at, part) in path.split('[').enumerate() {
        let (inside, rest) = part.split_once(']').unwrap_or(("", part));
        match at {
            0 => plain.push_str(part),
            _ if is_position(inside) => plain.extend(["[]", rest]),
            _ => plain.extend(["[", part]),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_at_a_rule_or_below_and_positions_do_not_count() {
        let cases = [
            ("spec.a", "spec.a", true),
            ("spec.a.b", "spec.a", true),
            ("spec.a[0]", "spec.a", true),
            ("spec.ab", "spec.a", false),
            ("spec", "spec.a", false),
            ("spec.a", "<nil>", true),
        ];
        for (field, rule, is_there) in cases {
            assert_eq!(is_at(field, rule), is_there, "{field} {rule}");
        }
        assert_eq!(plain("spec.ports[12].name"), "spec.ports[].name");
        assert_eq!(plain("spec.labels[team]"), "spec.labels[team]");
        assert_eq!(plain("/spec/ports/3/name"), "/spec/ports/[]/name");
    }
}
