//! Shortening of a sequence that two servers answer differently.

use serde_json::Value;

use super::run::{Found, Pair};
use crate::script::Script;

/// Most plays for a difference.
const PLAYS: usize = 150;

/// A script that differs, and the plays that are left for the script.
struct Shrinker<'a> {
    pair: &'a Pair,
    script: Script,
    found: Found,
    left: usize,
}

/// Returns the shortest script found that still differs, with the difference.
pub(super) async fn shortest(
    pair: &Pair,
    script: Script,
    found: Found,
) -> Result<(Script, Found), String> {
    let mut shrinker = Shrinker { pair, script, found, left: PLAYS };
    shrinker.short().await?;
    shrinker.steps().await?;
    shrinker.bodies().await?;
    Ok((shrinker.script, shrinker.found))
}

impl Shrinker<'_> {
    /// Leaves out the steps behind the difference, unless they are the reason of the difference: an
    /// old version in a later answer changes the ranks of versions in an earlier answer.
    async fn short(&mut self) -> Result<(), String> {
        let mut script = self.script.clone();
        script.steps.truncate(self.found.at + 1);
        self.takes(script).await.map(drop)
    }

    /// Takes a shorter script if that script differs, too; returns whether the script was taken.
    async fn takes(&mut self, script: Script) -> Result<bool, String> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
        self.left = left;
        let Some(found) = self.pair.again(&script).await? else { return Ok(false) };
        // Another difference would lead away from this difference.
        if found.signature() != self.found.signature() {
            return Ok(false);
        }
        (self.script, self.found) = (script, found);
        Ok(true)
    }

    /// Leaves out steps, but for the first step, which makes the namespace.
    async fn steps(&mut self) -> Result<(), String> {
        let mut at = self.script.steps.len();
        while at > 1 {
            at -= 1;
            if at < self.script.steps.len() {
                let mut script = self.script.clone();
                script.steps.remove(at);
                self.takes(script).await?;
            }
        }
        Ok(())
    }

    /// Leaves out fields and items of bodies.
    async fn bodies(&mut self) -> Result<(), String> {
        let mut at = self.script.steps.len();
        while at > 1 {
            at -= 1;
            let body = self.script.steps.get(at).and_then(|step| step.body.as_ref());
            let mut places = Vec::new();
            body.iter().for_each(|body| collect(body, String::new(), &mut places));
            for place in places {
                let mut script = self.script.clone();
                let step = script.steps.get_mut(at);
                let is_cut = step
                    .and_then(|step| step.body.as_mut())
                    .is_some_and(|body| remove(body, &place));
                if is_cut {
                    self.takes(script).await?;
                }
            }
        }
        Ok(())
    }
}

/// Appends the pointers of all fields and items, outer places first and later places before earlier
/// places.
fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| (format!("{at}/{}", escape(key)), field)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)).collect()
        }
        _ => return,
    };
    for (at, value) in inner.into_iter().rev() {
        places.push(at.clone());
        collect(value, at, places);
    }
}

/// Removes the field or item of a pointer; returns whether the place existed.
fn remove(body: &mut Value, pointer: &str) -> bool {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return false };
    let last = last.replace("~1", "/").replace("~0", "~");
    match body.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&last).is_some(),
        Some(Value::Array(items)) => match last.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
