//! Decoded values that are encoded differently from their input: indexes answer by the input.

use std::collections::BTreeMap;

use super::*;

/// Has a default, and a number outside of the type's range.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
struct Odd {
    metadata: ObjectMeta,
    #[projection(path = "spec.hostname", default)]
    host: String,
    #[projection(path = "spec.free", default)]
    free: BTreeMap<String, Value>,
}

const BY_HOST: Index<Odd, String> = Index::on_path("host", &["spec", "hostname"]);
const BY_NUMBER: Index<Odd, String> = Index::on_path("number", &["spec", "free", "n"]);
const NUMBER: &str = "99999999999999999999999";

#[test]
fn g_c5_a_snapshot_of_decoded_values_answers_by_what_the_objects_had_and_not_by_what_they_write() {
    for representation in [Representation::Compact, Representation::Typed] {
        let core = core(settings::<Odd>(representation));
        let store: Store<Odd> = Store::new(Arc::clone(&core));
        store.ensure_index(BY_HOST).unwrap();
        store.ensure_index(BY_NUMBER).unwrap();
        let text = pod(1, 7).to_string();
        let spec = format!("\"spec\":{{\"free\":{{\"n\":{NUMBER}}},");
        let text = text.replacen("\"spec\":{", &spec, 1);
        let object = core.object(&MetadataScan::of(text.as_bytes()).unwrap());
        core.apply(vec![Delta::Put(Observed {
            object,
            run: ListGeneration::default(),
            is_initial: false,
        })]);
        let before = store.snapshot();
        let told = || {
            let by_number = names(&before.by_index(BY_NUMBER, NUMBER));
            (names(&before.by_index(BY_HOST, "")), by_number)
        };
        let expected = (String::new(), "p-0001".to_owned());
        assert_eq!(told(), expected, "{representation:?}");
        put(&core, &pod(1, 8));
        assert_eq!(told(), expected, "{representation:?}, after it has changed");
    }
}
