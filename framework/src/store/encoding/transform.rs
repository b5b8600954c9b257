//! Settings for storing the objects of a kind: the representation, and transforms that run before.
//!
//! Compact bytes are the default because most objects are never read. A kind that is read over and
//! over, or never, or in a part only, has a cheaper form. Not here: the forms themselves
//! (`content`), and the choice for each kind (`CacheOptions` of the informers).

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::wire::without;

/// Form in which the cache keeps the objects of a kind.
///
/// For a type that derives `Projection` only the bytes of its fields are kept, and a read decodes
/// them; with [`Typed`](Self::Typed) the decoded value is kept.
///
/// | | kept | a read costs | bytes of an 8.4 KB Pod |
/// |---|---|---|---|
/// | [`Compact`](Self::Compact) | JSON, no managedFields | decoding, shared while held | 6,100 |
/// | [`Typed`](Self::Typed) | the decoded value | a pointer | 42,000 |
/// | a projection | the JSON of its fields | decoding them: 3 µs, shared while held | 1,400 |
/// | [`Metadata`](Self::Metadata) | `metadata` | decoding it | 1,300 |
/// | [`Cold`](Self::Cold) | compressed JSON | 2 µs more than `Compact` | 1,000 |
///
/// The figures are resident bytes of single runs with 100,000 Pods and two indexes; the benchmarks
/// have current ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Representation {
    /// The JSON as it came, without `apiVersion`, `kind` and `metadata.managedFields`; decoded by
    /// the first read and shared for as long as a reader holds the value. The default.
    #[default]
    Compact,
    /// The value, decoded once when it arrives: for small kinds that are read on every event.
    ///
    /// The bytes are dropped. Fields that the type does not have are not kept, and an index on such
    /// a field has to be declared before the first list. Unsuitable for many objects or large ones:
    /// a decoded Pod takes seven times its JSON, and its lists keep the spare capacity that serde
    /// allocated.
    Typed,
    /// `metadata` only, for kinds that are looked up by name, label or owner.
    ///
    /// The server is asked for metadata only. The rest of an object reads as if it were absent: use
    /// [`PartialObject`](crate::resource::PartialObject), as types with required fields do not
    /// decode.
    Metadata,
    /// Compressed with a dictionary that is trained from the kind's own first objects; compact
    /// until then.
    ///
    /// For many objects that are rarely read. Without the feature `cold` the same as
    /// [`Compact`](Self::Compact), with one warning in the log.
    Cold,
}

/// A change to each object before the cache keeps it, mostly to leave members out. Readers,
/// listeners, indexes and selectors all see the transformed object only.
///
/// A transform runs once per version, and once more for the answer to an own write, outside of
/// every lock. Name, namespace, uid and resourceVersion must stay; an object whose transform
/// changes them or panics is kept as it came, and that is logged.
///
/// A transformed object must not be written back whole, as the removed members would be lost.
#[derive(Clone)]
pub struct Transform {
    steps: Arc<[Step]>,
}

/// One step of a transform.
#[derive(Clone)]
enum Step {
    /// Members to leave out, by path.
    Drop(Arc<[Vec<String>]>),
    /// The user's function.
    Change(Arc<dyn Fn(&mut Value) + Send + Sync>),
}

/// kubectl's copy of the whole object, in an annotation.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Transform {
    /// Transforms objects with a function. Each object is parsed and printed for it, which costs
    /// about 100 µs for an 8 KB Pod: prefer [`drop_paths`](Self::drop_paths). `change` must not
    /// block.
    pub fn new(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self { steps: Arc::new([Step::Change(Arc::new(change))]) }
    }

    /// Leaves out the annotation in which `kubectl apply` repeats the object.
    pub fn drop_last_applied() -> Self {
        Self::drop_paths(&[&["metadata", "annotations", LAST_APPLIED]])
    }

    /// Leaves out the members at these paths, such as `&["status"]`; names are those of the JSON.
    /// Lists along a path fan out. Cut from the bytes without parsing: 1 to 3 µs for an 8 KB Pod.
    pub fn drop_paths(paths: &[&[&str]]) -> Self {
        let owned = |path: &&[&str]| path.iter().map(|step| (*step).to_owned()).collect();
        Self { steps: Arc::new([Step::Drop(paths.iter().map(owned).collect())]) }
    }

    /// Returns a transform that runs this one, and then `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self { steps: self.steps.iter().chain(&*next.steps).cloned().collect() }
    }

    /// Whether a step is a function. Path steps can also run on a part of an object.
    pub(crate) fn is_function(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Change(_)))
    }

    /// Returns the transformed `object`.
    ///
    /// # Errors
    /// The reason for which the object is kept as it came.
    pub(crate) fn apply<'a>(&self, object: &'a [u8]) -> Result<Cow<'a, [u8]>, &'static str> {
        let mut object = Cow::Borrowed(object);
        for step in &*self.steps {
            match step {
                Step::Drop(paths) => {
                    if let Some(rest) = without(&object, paths) {
                        object = Cow::Owned(rest);
                    }
                }
                Step::Change(change) => object = Cow::Owned(changed(&object, &**change)?),
            }
        }
        Ok(object)
    }
}

/// Runs a user's function on the parsed object.
fn changed(object: &[u8], change: &dyn Fn(&mut Value)) -> Result<Vec<u8>, &'static str> {
    let mut value: Value =
        serde_json::from_slice(object).map_err(|_| "the object is no valid JSON")?;
    catch_unwind(AssertUnwindSafe(|| change(&mut value))).map_err(|_| "the transform panicked")?;
    serde_json::to_vec(&value).map_err(|_| "the transformed object does not encode")
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |step: &Step| match step {
            Step::Drop(paths) => {
                // A panic of the user's function costs this transform only: the object is kept as
                // it came.
                let paths: Vec<_> = paths.iter().map(|path| path.join(".")).collect();
                format!("drop {}", paths.join(", "))
            }
            Step::Change(_) => "function".to_owned(),
        };
        f.debug_list().entries(self.steps.iter().map(step)).finish()
    }
}

/// Two transforms are equal when they are copies of one.
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
    fn a_transform_that_panics_is_reported() {
        let transform = Transform::new(|_| panic!("oops"));
        assert_eq!(transform.apply(b"{}"), Err("the transform panicked"));
        assert!(transform.apply(b"{]").is_err());
    }
}
