//! Annotations that name many places, and the search for these places.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use super::super::index::{Indexes, hash, name_of, work};
use super::super::kept::{Judges, KeptValues, MOST_PLACES};
use super::random::Random;
use super::{KEPT_FIELDS, MOST_KEPT, job, versions};
use crate::rng::Rng;

/// Elements of the list that is searched.
const ELEMENTS: usize = 5_000;
/// Places of an annotation.
const PLACES: usize = 1_200;

fn step() -> Value {
    json!({ "image": "x", "args": [], "weight": 1 })
}

/// Returns a job of v1beta1 whose annotation has these places for the hub.
fn with_places(steps: usize, places: &[Value]) -> Value {
    let mut hub = job();
    hub["spec"]["steps"] = json!(vec![step(); steps]);
    let mut older = versions().convert(hub, "v1beta1").unwrap();
    let text = json!({ "v1": { "of": 0, "kept": places } }).to_string();
    assert!(text.len() <= MOST_KEPT, "{}", text.len());
    older["metadata"]["annotations"][KEPT_FIELDS] = json!(text);
    older
}

/// Returns the place of a field of an element.
fn of_element(element: &Value) -> Value {
    json!({ "p": ["spec", "steps", element, "weight"], "b": 1, "k": [2] })
}

#[test]
fn the_work_of_a_conversion_grows_with_its_object_and_not_with_the_places_of_its_annotation() {
    let (n, h) = (ELEMENTS, hash(&step()));
    let cases: [(&str, &dyn Fn(usize) -> Value); 5] = [
        ("the last of equal elements", &|_| {
            of_element(&json!({ "i": 0, "n": 1, "h": h, "r": n - 1 }))
        }),
        ("one more than there are equal elements", &|_| {
            of_element(&json!({ "i": 0, "n": 1, "h": h, "r": n }))
        }),
        ("a name that no element has", &|_| {
            of_element(&json!({ "i": 0, "n": n, "h": 1, "name": "a" }))
        }),
        ("the own place", &|at| of_element(&json!({ "i": at, "n": n, "h": at }))),
        ("the whole list", &|_| json!({ "p": ["spec", "steps"], "b": 1, "k": [2] })),
    ];
    for (case, place) in cases {
        let object = with_places(n, &(0..PLACES).map(place).collect::<Vec<_>>());
        let length = object.to_string().len();
        work::take();
        versions().convert(object, "v1").unwrap();
        let steps = work::take();
        assert!(steps > 0, "{case}: nothing was counted");
        assert!(steps < 8 * length, "{case}: {steps} steps for {length} bytes");
    }
}

/// Values, one inside of another, around a long text.
const AROUND: usize = 60;

/// Returns the steps of restoring places in `made`, of which no list is as long as the type writes
/// it, so that all is searched in one value.
fn steps_of(made: &Value, places: &[Value]) -> usize {
    let text = json!({ "v1": { "of": 0, "kept": places } }).to_string();
    let mut kept = KeptValues::take(&mut json!({ "annotations": { KEPT_FIELDS: text } }));
    let judges = Judges { looks_same: &|_: &Value| true, is_readable: &|_: &Value| true };
    work::take();
    kept.restore("v1", (made.clone(), &Value::Null), &judges);
    work::take()
}

#[test]
fn a_value_is_hashed_at_most_once_for_each_value_around_it() {
    let element = json!({ "i": 0, "n": 1, "h": 1 });
    type Around = fn(Value) -> Value;
    let cases: [(&str, Value, Around); 2] = [
        ("objects", json!("a"), |inner| json!({ "a": inner })),
        ("lists", element, |inner| json!([inner])),
    ];
    for (case, step, around) in cases {
        let leaf = json!("x".repeat(10_000));
        let made = json!({ "spec": (0..AROUND).fold(leaf, |inner, _| around(inner)) });
        let place = |depth: usize, b: Option<u64>| {
            let mut steps = vec![json!("spec")];
            steps.resize(depth + 1, step.clone());
            json!({ "p": steps, "b": b, "k": [2] })
        };
        let changed: Vec<Value> = (0..=AROUND).map(|depth| place(depth, Some(1))).collect();
        let steps = steps_of(&made, &changed);
        let length = made.to_string().len();
        assert!(steps > AROUND * 10_000, "{case}: {steps} steps show nothing");
        assert!(steps < (AROUND + 2) * length, "{case}: {steps} steps for {length} bytes");
        let twice = [changed.as_slice(), &changed].concat();
        assert!(steps_of(&made, &twice) < steps + steps / 10, "{case}: places are hashed again");
    }
}

#[test]
fn a_place_where_nothing_came_back_is_not_hashed() {
    let made = json!({ "spec": { "a": "x".repeat(10_000) } });
    let steps = steps_of(&made, &[json!({ "p": ["spec", "a"], "k": [2] })]);
    assert!(steps < 1_000, "{steps} steps");
}

#[test]
fn an_annotation_of_more_places_than_a_conversion_writes_restores_nothing() {
    let time_zone = |nowhere: usize| {
        let mut places = vec![json!({ "p": ["spec", "timeZone"], "k": ["Etc/UTC"] })];
        places.resize(nowhere + 1, json!({ "p": [] }));
        versions().convert(with_places(1, &places), "v1").unwrap()["spec"]["timeZone"].take()
    };
    assert_eq!(time_zone(MOST_PLACES - 1), "Etc/UTC");
    assert_eq!(time_zone(MOST_PLACES), Value::Null);
}

#[test]
fn the_attempts_to_restore_parts_convert_few_bytes_also_after_a_long_value_was_restored() {
    let object: Map<String, Value> = (0..400).map(|at| (format!("o{at}"), json!({}))).collect();
    let made = json!({ "spec": object });
    let mut places = vec![json!({ "p": ["spec", "long"], "k": ["x".repeat(100_000)] })];
    places.extend((0..400).map(|at| json!({ "p": ["spec", format!("o{at}"), "x"], "k": [1] })));
    let text = json!({ "v1": { "of": 0, "kept": places } }).to_string();
    let mut metadata = json!({ "annotations": { KEPT_FIELDS: text } });
    let mut kept = KeptValues::take(&mut metadata);
    let converted = Cell::new(0);
    let looks_same = |object: &Value| {
        converted.set(converted.get() + object.to_string().len());
        object["spec"].as_object().unwrap().values().all(|value| value.get("x").is_none())
    };
    let judges = Judges { looks_same: &looks_same, is_readable: &|_: &Value| true };
    let restored = kept.restore("v1", (made.clone(), &made), &judges);
    assert_eq!(restored["spec"]["long"].as_str().map(str::len), Some(100_000));
    assert!(converted.get() < 5 << 20, "{} bytes are converted", converted.get());
}

#[test]
fn an_index_finds_the_elements_that_a_search_of_the_whole_list_finds() {
    let random = Random(Rng::seeded(3));
    let element = || match random.below(3) {
        0 => json!(random.below(3)),
        1 => json!({ "name": format!("n{}", random.below(4)), "of": random.below(2) }),
        _ => json!({ "name": random.below(2) }),
    };
    for _ in 0..2_000 {
        let list: Vec<Value> = (0..random.below(9)).map(|_| element()).collect();
        let (sought, before) = (element(), random.below(4));
        let mut indexes = Indexes::default();
        let index = indexes.list(&list);
        let mut equal = (0..list.len()).filter(|at| list[*at] == sought);
        assert_eq!(index.equal(hash(&sought), before), equal.nth(before), "{sought} in {list:?}");
        let name = format!("n{}", random.below(4));
        let named: Vec<usize> =
            (0..list.len()).filter(|at| name_of(&list[*at]) == Some(&name)).collect();
        let only = if let [only] = named.as_slice() { Some(*only) } else { None };
        assert_eq!(index.named(&name), only, "{name} in {list:?}");
    }
}
