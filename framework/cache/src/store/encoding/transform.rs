//! Transforms: changes to objects before they are kept.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use windlass_core::wire::without;

/// A change to each object before the cache keeps the object, mostly to leave members out. Readers,
/// listeners, indexes and selectors all see the transformed object only.
///
/// A transform runs once per version, and once more for the answer to an own write, outside of
/// every lock. Name, namespace, uid and resourceVersion must stay; an object whose transform
/// changes them or panics is kept unchanged, and that is logged.
///
/// A transformed object must not be written back whole, as the removed members would be lost.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use windlass::store::Transform;
///
/// let transform = Transform::drop_last_applied().then(Transform::drop_paths(&[&["status"]]));
/// assert_eq!(transform, transform.clone());
/// ```
#[derive(Clone)]
pub struct Transform {
    /// Shared by clones; the address is the identity that comparisons use.
    steps: Arc<[TransformStep]>,
}

/// A step of a transform.
#[derive(Clone)]
enum TransformStep {
    /// Members to leave out, by path.
    Drop(Arc<[Vec<String>]>),
    /// The user's function.
    Change(Arc<dyn Fn(&mut Value) + Send + Sync>),
}

/// kubectl's copy of the whole object, in an annotation.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Transform {
    /// Transforms objects with a function. Each object is parsed and printed for the call, which
    /// costs about 100 µs for an 8 KB Pod: prefer [`drop_paths`](Self::drop_paths). `change` must
    /// not block.
    pub fn new(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self { steps: Arc::new([TransformStep::Change(Arc::new(change))]) }
    }

    /// Leaves out the annotation in which `kubectl apply` repeats the object.
    pub fn drop_last_applied() -> Self {
        Self::drop_paths(&[&["metadata", "annotations", LAST_APPLIED]])
    }

    /// Leaves out the members at these paths, such as `&["status"]`; names are those of the JSON.
    /// Lists along a path fan out. Cut from the bytes without parsing: 1 to 3 µs for an 8 KB Pod.
    pub fn drop_paths(paths: &[&[&str]]) -> Self {
        let owned = |path: &&[&str]| path.iter().map(|step| (*step).to_owned()).collect();
        Self { steps: Arc::new([TransformStep::Drop(paths.iter().map(owned).collect())]) }
    }

    /// Returns a transform that runs `self`, and then `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self { steps: self.steps.iter().chain(&*next.steps).cloned().collect() }
    }

    /// Whether a step is a function. Path steps can also run on a part of an object.
    pub(crate) fn is_function(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, TransformStep::Change(_)))
    }

    /// Whether the transform leaves everything in an object that an apply could set: only the
    /// status, `managedFields` and kubectl's copy may be left out.
    pub(super) fn keeps_intents(&self) -> bool {
        let is_aside = |path: &Vec<String>| {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            matches!(names[..], ["status", ..] | ["metadata", "managedFields", ..])
                || names == ["metadata", "annotations", LAST_APPLIED]
        };
        self.steps.iter().all(|step| match step {
            TransformStep::Drop(paths) => paths.iter().all(is_aside),
            TransformStep::Change(_) => false,
        })
    }

    /// Returns the transformed `object`.
    ///
    /// # Errors
    /// The reason for which the object is kept unchanged.
    pub(crate) fn apply<'a>(&self, object: &'a [u8]) -> Result<Cow<'a, [u8]>, &'static str> {
        let mut object = Cow::Borrowed(object);
        for step in &*self.steps {
            match step {
                TransformStep::Drop(paths) => {
                    if let Some(rest) = without(&object, paths) {
                        object = Cow::Owned(rest);
                    }
                }
                TransformStep::Change(change) => object = Cow::Owned(changed(&object, &**change)?),
            }
        }
        Ok(object)
    }
}

/// Runs a user's function on the parsed object.
fn changed(object: &[u8], change: &dyn Fn(&mut Value)) -> Result<Vec<u8>, &'static str> {
    let mut value: Value =
        serde_json::from_slice(object).map_err(|_| "the object is not valid JSON")?;
    catch_unwind(AssertUnwindSafe(|| change(&mut value))).map_err(|_| "the transform panicked")?;
    serde_json::to_vec(&value).map_err(|_| "the transformed object does not encode")
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |step: &TransformStep| match step {
            TransformStep::Drop(paths) => {
                // A panic of the user's function costs this transform only: the object is kept
                // unchanged.
                let paths: Vec<_> = paths.iter().map(|path| path.join(".")).collect();
                format!("drop {}", paths.join(", "))
            }
            TransformStep::Change(_) => "function".to_owned(),
        };
        f.debug_list().entries(self.steps.iter().map(step)).finish()
    }
}

/// Two transforms are equal when they are copies of the same transform.
impl PartialEq for Transform {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.steps, &other.steps)
    }
}

impl Eq for Transform {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(transform: &Transform, object: &Value) -> Value {
        let bytes = serde_json::to_vec(object).expect("it encodes");
        let kept = transform.apply(&bytes).expect("it applies");
        serde_json::from_slice(&kept).expect("it is JSON")
    }

    #[test]
    fn the_copy_that_kubectl_makes_is_left_out() {
        let object =
            json!({"metadata": {"name": "a", "annotations": {LAST_APPLIED: "{}", "x": "y"}}});
        let kept = json!({"metadata": {"name": "a", "annotations": {"x": "y"}}});
        assert_eq!(after(&Transform::drop_last_applied(), &object), kept);
        assert_eq!(after(&Transform::drop_last_applied(), &kept), kept);
    }

    #[test]
    fn paths_are_cut_through_lists() {
        let object = json!({"metadata": {"name": "a"}, "status": {"x": 1},
            "spec": {"containers": [{"name": "c", "env": [1]}, {"env": []}], "n": 1}});
        let transform = Transform::drop_paths(&[
            &["status"],
            &["spec", "containers", "env"],
            &["spec", "none"],
        ]);
        let kept = json!({"metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c"}, {}], "n": 1}});
        assert_eq!(after(&transform, &object), kept);
    }

    #[test]
    fn steps_run_one_after_the_other() {
        let transform = Transform::drop_paths(&[&["spec"]]).then(Transform::new(|object| {
            object["seen"] = object.get("spec").is_some().into();
        }));
        assert_eq!(after(&transform, &json!({"spec": 1})), json!({"seen": false}));
        assert_eq!(format!("{transform:?}"), r#"["drop spec", "function"]"#);
    }

    #[test]
    fn what_an_apply_could_set_is_kept_unless_a_step_may_take_it() {
        let aside = Transform::drop_last_applied().then(Transform::drop_paths(&[&["status"]]));
        assert!(aside.keeps_intents());
        for path in [&["spec"][..], &["metadata", "annotations"], &["metadata", "labels", "status"]]
        {
            assert!(
                !aside.clone().then(Transform::drop_paths(&[path])).keeps_intents(),
                "{path:?}"
            );
        }
        assert!(!aside.then(Transform::new(|_| {})).keeps_intents());
    }

    #[test]
    fn a_transform_that_panics_is_reported() {
        let transform = Transform::new(|_| panic!("oops"));
        assert_eq!(transform.apply(b"{}"), Err("the transform panicked"));
        assert!(transform.apply(b"{]").is_err());
    }
}
