//! Predicates: filters of the changes that cause a reconcile.
//!
//! A [`Predicate`] is given the old and the new state of an object and returns whether the change
//! counts. Predicates are combined with [`and`](Predicate::and), [`or`](Predicate::or) and
//! [`not`](Predicate::not) and set per source:
//! [`ControllerBuilder::when`](crate::controller::ControllerBuilder::when) for the reconciled kind,
//! [`owns_when`](crate::controller::ControllerBuilder::owns_when) and
//! [`watches_when`](crate::controller::ControllerBuilder::watches_when) for others. The predicates
//! of this module read metadata and bytes in place and decode nothing.
//!
//! ```
//! # extern crate windlass_runtime as windlass;
//! # use windlass::controller::{Action, Context, Reconciler, Result, ControllerBuilder};
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! # struct Sites;
//! # impl Reconciler for Sites {
//! #     type Object = Deployment;
//! #     async fn reconcile(&self, _: &Deployment, _: &Context<Self>) -> Result {
//! #         Ok(Action::done())
//! #     }
//! # }
//! use windlass::controller::predicates::{field_changed, generation_changed, labels_changed};
//! let builder = ControllerBuilder::<Sites>::new()
//!     .when(generation_changed().or(labels_changed()))
//!     .owns_when::<ConfigMap>(field_changed(&["data", "host"]));
//! # let _ = builder;
//! ```
//!
//! They behave as controller-runtime's of the same names: a predicate that compares two states
//! passes creations and deletions. Not included: events without an object (controller-runtime's
//! `Generic`); a [`Trigger`](crate::controller::Trigger) names keys, which no predicate filters.
//!
//! A predicate filters changes, and causes without a change (resyncs, timers, polls). A predicate
//! does not hide objects: a child, a watched object, a trigger or a reconcile that names an object
//! causes a reconcile of that object. Operators that share a kind among them need a selector on the
//! cache, too: see [`CacheOptions::labels`](windlass_cache::informer::CacheOptions::labels).

// DESIGN.md, 39: Predicates are not called for deletions and the pause annotation

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windlass_cache::informer::Change;
use windlass_cache::store::{Cached, StoreEvent};
use windlass_core::panics::panic_text;
use windlass_core::resource::{FieldPath, Resource, Segment, Selector};
use windlass_core::wire::value_at_path;
use windlass_core::{Error, ErrorKind};

/// Test of a change; returns `None` if user code panicked, so that the result is unknown.
type Test<K> = Arc<dyn Fn(&Change<K>) -> Option<bool> + Send + Sync>;

/// Filter of changes of kind `K`; cheap to clone.
///
/// The `Debug` output shows the expression: `(generation_changed or labels_changed)`.
pub struct Predicate<K> {
    test: Test<K>,
    /// Whether the predicate consists of the framework's own code, which returns at once.
    is_quick: bool,
    text: Arc<str>,
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        let (test, text) = (Arc::clone(&self.test), Arc::clone(&self.text));
        Self { test, is_quick: self.is_quick, text }
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K: Resource> Predicate<K> {
    /// Creates a predicate of your own: `true` passes the change. The test is called on a separate
    /// task, in the order of the changes of an object, and may take its time; meanwhile only the
    /// predicate's source waits. For an object that changes faster than the predicate answers, the
    /// predicate sees the first and the latest changes; those in between are summed up, and pass
    /// unchecked. When the test panics, the change passes, unless another predicate combined with
    /// this predicate decides alone.
    pub fn new(test: impl Fn(&Change<K>) -> bool + Send + Sync + 'static) -> Self {
        let guarded = move |change: &Change<K>| {
            let result = catch_unwind(AssertUnwindSafe(|| test(change)));
            let panic = match result {
                Ok(passes) => return Some(passes),
                Err(panic) => panic_text(&*panic),
            };
            tracing::error!(object = %change.key(), "a predicate panicked, and does not keep the change back: {panic}");
            None
        };
        Self { test: Arc::new(guarded), is_quick: false, text: "custom".into() }
    }

    /// A predicate of the framework's own, which returns at once and may run inline.
    fn quick(
        text: impl Into<Arc<str>>,
        test: impl Fn(&Change<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { test: Arc::new(move |change| Some(test(change))), is_quick: true, text: text.into() }
    }

    /// A predicate that passes creations and deletions, and updates for which `differ` returns
    /// true.
    fn on_update(
        text: impl Into<Arc<str>>,
        differ: impl Fn(&Cached<K>, &Cached<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::quick(text, move |change| match change {
            Change::Updated { old, new } => differ(old, new),
            Change::Added { .. } | Change::Deleted { .. } => true,
        })
    }

    /// A predicate on an object rather than a change: an update passes when the old or the new
    /// state fits.
    fn on_state(
        text: impl Into<Arc<str>>,
        fits: impl Fn(&Cached<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::quick(text, move |change| match change {
            Change::Updated { old, new } => fits(new) || fits(old),
            Change::Added { new, .. } => fits(new),
            Change::Deleted { last, .. } => fits(last),
        })
    }

    /// Passes the changes that both pass. The second is called only when the first passes.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let text = format!("({} and {})", self.text, other.text).into();
        let is_quick = self.is_quick && other.is_quick;
        let (one, two) = (self.test, other.test);
        let test = move |change: &Change<K>| match one(change) {
            Some(false) => Some(false),
            first => match two(change) {
                Some(false) => Some(false),
                second => first.and(second),
            },
        };
        Self { test: Arc::new(test), is_quick, text }
    }

    /// Passes the changes that either passes. The second is called only when the first does not
    /// pass.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let text = format!("({} or {})", self.text, other.text).into();
        let is_quick = self.is_quick && other.is_quick;
        let (one, two) = (self.test, other.test);
        let test = move |change: &Change<K>| match one(change) {
            Some(true) => Some(true),
            first => match two(change) {
                Some(true) => Some(true),
                second => first.and(second),
            },
        };
        Self { test: Arc::new(test), is_quick, text }
    }

    /// Passes the changes that this predicate does not. For a predicate that compares two states
    /// such a change is neither a creation nor a deletion.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "it reads like its neighbours")]
    pub fn not(self) -> Self {
        let text = format!("not {}", self.text).into();
        let (test, is_quick) = (self.test, self.is_quick);
        Self { test: Arc::new(move |change| test(change).map(|passes| !passes)), is_quick, text }
    }

    /// Whether the predicate passes this change.
    pub fn passes(&self, change: &Change<K>) -> bool {
        // A panic lets the change pass: a superfluous reconcile is harmless, a missing reconcile is
        // not.
        (self.test)(change).unwrap_or(true)
    }

    /// Whether this object may be reconciled without a change: the predicate passes the object as
    /// found at the start, or as shown once more.
    pub(crate) fn allows(&self, object: &Cached<K>) -> bool {
        let (old, new) = (object.clone(), object.clone());
        self.passes(&Change::Added { new: object.clone(), is_initial: true })
            || self.passes(&Change::Updated { old, new })
    }

    pub(crate) fn passes_event(&self, event: &StoreEvent) -> bool {
        self.passes(&Change::of(event))
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.is_quick
    }
}

/// Passes updates with another generation: the spec was changed, not the status and not metadata.
/// Marking an object for deletion changes the generation, too.
///
/// Kinds without a generation (a ConfigMap, a Secret) pass with every change; controller-runtime
/// drops all of theirs. Resyncs that were requested of a cache are dropped, as nothing changed.
pub fn generation_changed<K: Resource>() -> Predicate<K> {
    Predicate::on_update("generation_changed", |old, new| {
        let generation = new.metadata().generation();
        // Without a generation every change passes but a resync.
        let has_none = generation == 0 && !old.is_same(new);
        has_none || generation != old.metadata().generation() || !is_one(old, new)
    })
}

/// Passes updates with other labels.
pub fn labels_changed<K: Resource>() -> Predicate<K> {
    Predicate::on_update("labels_changed", |old, new| {
        !old.metadata().labels().eq(new.metadata().labels()) || !is_one(old, new)
    })
}

/// Passes updates with other annotations. A cache that keeps values whose type has no annotations
/// does not see them.
pub fn annotations_changed<K: Resource>() -> Predicate<K> {
    differs_at("annotations_changed".into(), &["metadata", "annotations"])
}

/// Passes updates with another resourceVersion: all but resyncs.
pub fn resource_version_changed<K: Resource>() -> Predicate<K> {
    Predicate::on_update("resource_version_changed", |old, new| {
        old.metadata().resource_version() != new.metadata().resource_version()
    })
}

/// Passes updates with another value at `path`, such as `&["spec", "host"]`: names as in the JSON,
/// through objects only; the value itself may be a list or an object. Values are compared as
/// written by the API server, without decoding; a field that appears or disappears has changed.
///
/// The predicate reads the cached bytes: only metadata in a cache of metadata, only the projected
/// fields in a cache of a projection.
pub fn field_changed<K: Resource>(path: &'static [&'static str]) -> Predicate<K> {
    differs_at(format!("field_changed({})", path.join(".")), path)
}

/// As [`field_changed`], at a path that the compiler checks:
/// `path_changed(path!(Website: spec.host))?`.
///
/// # Errors
/// [`ErrorKind::Usage`] when a name of the path is not known in JSON
/// ([`FieldPath::segments`]), or the path goes into a list: compare the whole list.
pub fn path_changed<K: Resource, V>(path: FieldPath<K, V>) -> Result<Predicate<K>, Error> {
    let name = |segment| match segment {
        Segment::Field(name) => Some(name),
        _ => None,
    };
    let Some(names) = path.segments()?.into_iter().map(name).collect::<Option<Vec<String>>>()
    else {
        let message = format!(
            "cannot compare the values at `{path:?}`: the path goes into a list; compare the whole \
             list, by the path up to it"
        );
        return Err(Error::new(ErrorKind::Usage, message));
    };
    Ok(differs(format!("path_changed({})", names.join(".")), move |bytes| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        value_at_path(bytes, &names)
    }))
}

/// Passes only deletions: the object is marked for deletion, is first seen so, or is gone.
pub fn deletion<K: Resource>() -> Predicate<K> {
    Predicate::quick("deletion", |change| match change {
        Change::Added { new, .. } => new.metadata().is_terminating(),
        Change::Updated { old, new } => {
            new.metadata().is_terminating()
                && !(old.metadata().is_terminating() && is_one(old, new))
        }
        Change::Deleted { .. } => true,
    })
}

/// Passes only objects in that namespace. The predicate filters changes and hides nothing: see the
/// [module](self).
pub fn namespace<K: Resource>(name: impl Into<String>) -> Predicate<K> {
    let name = name.into();
    Predicate::on_state(format!("namespace({name})"), move |object| {
        object.key().namespace() == Some(&name)
    })
}

/// Passes only objects of that name. The predicate filters changes and hides nothing: see the
/// [module](self).
pub fn name<K: Resource>(name: impl Into<String>) -> Predicate<K> {
    let name = name.into();
    Predicate::on_state(format!("name({name})"), move |object| object.key().name() == name)
}

/// Passes only objects whose labels match; a change passes also when only the old labels do. The
/// predicate filters changes and hides nothing: see the [module](self).
pub fn labelled<K: Resource>(selector: Selector) -> Predicate<K> {
    Predicate::on_state(format!("labelled({selector})"), move |object| {
        let metadata = object.metadata();
        selector.matches_with(&|key| metadata.label(key))
    })
}

/// A predicate that passes updates whose bytes at `path` differ.
fn differs_at<K: Resource>(text: String, path: &'static [&'static str]) -> Predicate<K> {
    differs(text, move |bytes| value_at_path(bytes, path))
}

/// A predicate that passes updates with different bytes where `find` finds them.
fn differs<K: Resource>(
    text: String,
    find: impl for<'a> Fn(&'a [u8]) -> Option<&'a [u8]> + Send + Sync + 'static,
) -> Predicate<K> {
    Predicate::on_update(text, move |old, new| {
        // A resync delivers the same state twice: no bytes need to be compared.
        if old.is_same(new) {
            return false;
        }
        let (old_bytes, new_bytes) = (old.raw(), new.raw());
        find(&old_bytes) != find(&new_bytes) || !is_one(old, new)
    })
}

/// Whether both states belong to the same object, and not to a successor of the same name.
fn is_one<K: Resource>(old: &Cached<K>, new: &Cached<K>) -> bool {
    old.metadata().uid() == new.metadata().uid()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;
    use windlass_cache::store::{StoreCore, StoreSettings};
    use windlass_core::clock::Clock;
    use windlass_core::resource::ResourceInfo;
    use windlass_core::wire::MetadataScan;

    struct Maker(Arc<StoreCore>);

    impl Maker {
        fn new() -> Self {
            let info = ResourceInfo::of::<ConfigMap>();
            Self(StoreCore::with_settings(info, Clock::system(), StoreSettings::default(), 0))
        }

        /// A state of `shop/home` at generation 1, with `more` in the metadata and this data.
        fn state(&self, version: u32, more: Value, data: Value) -> Cached<ConfigMap> {
            let mut metadata = json!({
                "name": "home", "namespace": "shop", "uid": "u1", "generation": 1,
                "resourceVersion": version.to_string(),
            });
            if let (Value::Object(known), Value::Object(more)) = (&mut metadata, more) {
                known.extend(more);
            }
            let text = json!({ "metadata": metadata, "data": data }).to_string();
            Cached::new(self.0.object(&MetadataScan::of(text.as_bytes()).expect("an object")))
        }

        fn update(&self, old: Value, new: Value) -> Change<ConfigMap> {
            let (old, new) = (self.state(1, old, json!({})), self.state(2, new, json!({})));
            Change::Updated { old, new }
        }

        fn data(&self, old: Value, new: Value) -> Change<ConfigMap> {
            let (old, new) = (self.state(1, json!({}), old), self.state(2, json!({}), new));
            Change::Updated { old, new }
        }
    }

    /// As in controller-runtime's tests of predicates.
    #[test]
    fn predicates_on_two_states_pass_creations_and_deletions_and_no_resync() {
        let maker = Maker::new();
        let state = maker.state(1, json!({}), json!({}));
        let resync = Change::Updated { old: state.clone(), new: state.clone() };
        let added = Change::Added { new: state.clone(), is_initial: false };
        let deleted = Change::Deleted { last: state, final_state_unknown: false };
        let comparing: [Predicate<ConfigMap>; 5] = [
            generation_changed(),
            labels_changed(),
            annotations_changed(),
            resource_version_changed(),
            field_changed(&["data", "x"]),
        ];
        for predicate in comparing {
            let result = [&added, &deleted, &resync].map(|change| predicate.passes(change));
            assert_eq!(result, [true, true, false], "{predicate:?}");
        }
    }

    #[test]
    fn each_predicate_sees_its_own_difference_and_no_other() {
        let maker = Maker::new();
        let same = maker.update(json!({}), json!({}));
        let differences: [(Predicate<ConfigMap>, Change<ConfigMap>); 4] = [
            (generation_changed(), maker.update(json!({}), json!({ "generation": 2 }))),
            (labels_changed(), maker.update(json!({}), json!({ "labels": { "a": "b" } }))),
            (
                annotations_changed(),
                maker.update(json!({}), json!({ "annotations": { "a": "b" } })),
            ),
            (field_changed(&["data", "x"]), maker.data(json!({ "x": "1" }), json!({ "x": "2" }))),
        ];
        for (at, (predicate, own)) in differences.iter().enumerate() {
            assert!(predicate.passes(own) && !predicate.passes(&same), "{predicate:?}");
            for (_, foreign) in
                differences.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, d)| d)
            {
                assert!(!predicate.passes(foreign), "{predicate:?}");
            }
        }
        assert!(resource_version_changed().passes(&same), "another version, nothing else");
    }

    #[test]
    fn a_path_of_fields_is_compared_by_its_names_in_json() {
        let maker = Maker::new();
        let predicate =
            path_changed(windlass_macros::field_path!(::windlass; ConfigMap: metadata.labels["x"]));
        let predicate = predicate.expect("a path through maps");
        assert_eq!(format!("{predicate:?}"), "path_changed(metadata.labels.x)");
        let labels = |value: &str| json!({ "labels": { "x": value, "y": "1" } });
        assert!(predicate.passes(&maker.update(labels("1"), labels("2"))));
        assert!(!predicate.passes(&maker.update(labels("1"), labels("1"))));
        let list = windlass_macros::field_path!(::windlass; ConfigMap: metadata.finalizers[0]);
        let error = path_changed(list).expect_err("a path into a list").to_string();
        assert!(error.contains("`.metadata.finalizers[0]`"), "{error}");
    }

    #[test]
    fn a_kind_without_generations_passes_and_so_does_an_object_that_took_the_name() {
        let maker = Maker::new();
        let none = maker.update(json!({ "generation": 0 }), json!({ "generation": 0 }));
        assert!(generation_changed().passes(&none));
        let successor = maker.update(json!({}), json!({ "uid": "u2" }));
        for predicate in [generation_changed(), labels_changed(), field_changed(&["data", "x"])] {
            assert!(predicate.passes(&successor), "{predicate:?}");
        }
    }

    #[test]
    fn a_field_that_comes_or_goes_and_one_below_a_list_has_changed() {
        let maker = Maker::new();
        let predicate: Predicate<ConfigMap> = field_changed(&["data", "x"]);
        let list = |n: u32| json!({ "x": [{ "y": n }] });
        for (old, new, passes) in [
            (json!({}), json!({ "x": "1" }), true),
            (json!({ "x": "1" }), json!({}), true),
            (list(1), list(2), true),
            (list(1), list(1), false),
            (json!({ "z": "1" }), json!({ "z": "2" }), false),
        ] {
            let change = maker.data(old, new);
            assert_eq!(predicate.passes(&change), passes, "{change:?}");
        }
    }

    #[test]
    fn deletion_passes_the_mark_and_the_end() {
        let maker = Maker::new();
        let mark = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        let predicate = deletion();
        let state = maker.state(1, json!({}), json!({}));
        let gone = Change::Deleted { last: state.clone(), final_state_unknown: true };
        assert!(
            predicate.passes(&maker.update(json!({}), mark.clone())) && predicate.passes(&gone)
        );
        let marked = maker.state(1, mark.clone(), json!({}));
        assert!(predicate.passes(&Change::Added { new: marked, is_initial: true }));
        assert!(!predicate.passes(&Change::Added { new: state, is_initial: false }));
        assert!(!predicate.passes(&maker.update(mark.clone(), mark)));
        assert!(!predicate.passes(&maker.update(json!({}), json!({ "generation": 2 }))));
    }

    #[test]
    fn a_change_that_leaves_the_selection_still_passes() {
        let maker = Maker::new();
        let red = json!({ "labels": { "color": "red" } });
        let is_red = labelled(Selector::everything().equals("color", "red"));
        assert!(is_red.passes(&maker.update(red.clone(), json!({}))));
        assert!(is_red.passes(&maker.update(json!({}), red)));
        assert!(!is_red.passes(&maker.update(json!({}), json!({}))));
        let change = maker.update(json!({}), json!({}));
        assert!(namespace("shop").passes(&change) && !namespace("other").passes(&change));
        assert!(name("home").passes(&change) && !name("other").passes(&change));
    }

    #[test]
    fn predicates_combine_and_read_as_they_were_written() {
        let maker = Maker::new();
        let labelled = maker.update(json!({}), json!({ "labels": { "a": "b" } }));
        let either = generation_changed().or(labels_changed());
        let both = generation_changed().and(labels_changed());
        assert!(either.passes(&labelled) && !both.passes(&labelled));
        assert!(!either.clone().not().passes(&labelled) && both.clone().not().passes(&labelled));
        assert_eq!(format!("{either:?}"), "(generation_changed or labels_changed)");
        assert!(either.is_quick() && !either.and(Predicate::new(|_| true)).is_quick());
    }

    #[test]
    fn a_predicate_that_panics_passes_the_change_unless_another_one_decides() {
        let maker = Maker::new();
        let change = maker.update(json!({}), json!({}));
        let panics = || Predicate::<ConfigMap>::new(|_| panic!("on purpose"));
        let (yes, no) = (|| Predicate::new(|_| true), || Predicate::new(|_| false));
        for (predicate, passes) in [
            (panics(), true),
            (panics().not(), true),
            (panics().or(no()).not(), true),
            (no().or(panics()).not(), true),
            (panics().and(yes()).not(), true),
            // Decided without the panicking predicate.
            (panics().and(no()), false),
            (yes().or(panics()).not(), false),
        ] {
            assert_eq!(predicate.passes(&change), passes, "{predicate:?}");
        }
    }

    #[test]
    fn an_unchanged_state_is_refused_only_by_predicates_on_the_state_alone() {
        let maker = Maker::new();
        let state = maker.state(1, json!({ "labels": { "shard": "a" } }), json!({}));
        let shard = |name: &str| labelled(Selector::everything().equals("shard", name));
        let updates = Predicate::new(|change| matches!(change, Change::Updated { .. }));
        for (predicate, allows) in [
            (shard("a"), true),
            (shard("b"), false),
            (shard("a").and(generation_changed()), true),
            (shard("b").or(generation_changed().not()), true),
            (generation_changed(), true),
            (generation_changed().not(), true),
            (resource_version_changed(), true),
            (deletion(), false),
            (updates, true),
        ] {
            assert_eq!(predicate.allows(&state), allows, "{predicate:?}");
        }
    }
}
