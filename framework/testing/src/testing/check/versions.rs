//! Round trips of values through the other versions of a kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_core::crd::Versions;
use windlass_core::rng::Rng;

use super::values::Values;
use super::{SEED, VALUES, schema_of_version, with_head};

/// Counts of the round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct VersionCounts {
    /// Objects that were converted to another version and back.
    pub(super) converted: usize,
    /// Objects that have no equal in another version.
    pub(super) refused: usize,
    /// Objects that came back changed, and versions between which no object was converted.
    pub(super) differences: Vec<String>,
}

/// Converts values of each version to each other version and back.
pub(super) fn judge_versions(
    versions: &Versions,
    definition: &CustomResourceDefinition,
    examples: &[Value],
) -> VersionCounts {
    let mut tally = VersionCounts::default();
    for from in versions.names() {
        for to in versions.names().filter(|to| *to != from) {
            judge_pair(versions, definition, (from, to), examples, &mut tally);
        }
    }
    tally
}

fn judge_pair(
    versions: &Versions,
    definition: &CustomResourceDefinition,
    (from, to): (&str, &str),
    examples: &[Value],
    tally: &mut VersionCounts,
) {
    let schema = schema_of_version(definition, from);
    let info = versions.info();
    let head = serde_json::json!({
        "apiVersion": format!("{}/{from}", info.group), "kind": info.kind,
    });
    // Examples are of a single version.
    let own = examples.iter().filter(|example| example["apiVersion"] == head["apiVersion"]);
    let own: Vec<Value> = own.cloned().collect();
    let values = Values::new(Rng::seeded(SEED), &own);
    let (mut converted, mut refusal) = (0, None);
    for _ in 0..VALUES {
        let object = with_head(&values.fitting(&schema), &head);
        // What serde does not read is judged elsewhere.
        let Ok(typed) = versions.rewrite(object.clone()) else { continue };
        let there = match versions.convert(object.clone(), to) {
            Ok(there) => there,
            Err(error) => {
                tally.refused += 1;
                refusal.get_or_insert_with(|| error.to_string());
                continue;
            }
        };
        converted += 1;
        match versions.convert(there.clone(), from) {
            Ok(back) if is_equal(versions, &back, &typed) => {}
            Ok(back) => tally
                .differences
                .push(format!("{object} becomes {there} in {to}, and {back} in {from} again")),
            Err(error) => tally.differences.push(format!(
                "{object} becomes {there} in {to}, which does not convert back: {error}"
            )),
        }
    }
    tally.converted += converted;
    if let Some(refusal) = refusal.filter(|_| converted == 0) {
        tally.differences.push(format!("no object of {from} converts to {to}: {refusal}"));
    }
}

/// Whether an object is another one as its type writes it: a null may have become absent.
fn is_equal(versions: &Versions, object: &Value, typed: &Value) -> bool {
    versions.rewrite(Versions::without_kept(object.clone())).is_ok_and(|object| object == *typed)
}
