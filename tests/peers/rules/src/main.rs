//! Validation rules in `windlass-cel` and in the `cel` crate: the same expressions on the same
//! data, in turns.
//!
//! `cargo run --release -p rules [ROUNDS]` prints a table: CPU time of the thread per operation,
//! the median of rounds, and the median of the rounds' ratios.
//!
//! The work is not equal, and ours does more work: compilation finds the types and refuses wrong
//! types, and evaluation counts the cost that Kubernetes' budget is about. `cel` copies an object's
//! JSON into separate values before evaluating a rule; ours reads the JSON in place.

use std::hint::black_box;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};
use windlass_cel::check::Environment;
use windlass_cel::eval::{LITERALS, Limits, Program, Value, Variables};
use windlass_cel::rules::Validator;
use windlass_cel::schema::Declaration;
use windlass_cel::syntax::{ParserOptions, Source, parse};
use windlass_cel::types::Type;
use windlass_cel::types::shape::Shape;

/// CPU time of a measurement, in nanoseconds.
const SLICE: u64 = 20_000_000;
/// Budget of a rule in Kubernetes.
const LIMITS: Limits = Limits::new(10_000_000);

/// CPU time of this thread in nanoseconds.
fn cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Nanoseconds of a call.
fn time(mut call: impl FnMut()) -> f64 {
    let (begin, mut count, mut batch) = (cpu(), 0_u64, 1_u64);
    loop {
        for _ in 0..batch {
            call();
        }
        count += batch;
        let spent = cpu() - begin;
        if spent >= SLICE {
            return spent as f64 / count as f64;
        }
        batch = (batch * 2).min(4096);
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A row: both sides in turns.
fn row(name: &str, rounds: usize, mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    let pairs: Vec<(f64, f64)> =
        (0..rounds).map(|_| (time(&mut ours), time(&mut theirs))).collect();
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let theirs = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.1 / pair.0).collect());
    println!("| {name} | {:.2} µs | {:.2} µs | {ratio:.1} |", ours / 1000.0, theirs / 1000.0);
}

/// A rule in both engines, with the data that evaluation needs.
struct Case {
    name: String,
    text: String,
    environment: Environment,
    shape: Shape,
    object: Json,
}

impl Case {
    fn rows(&self, rounds: usize) {
        let (name, text) = (self.name.as_str(), self.text.as_str());
        let checked = self.environment.compile(text).expect("a rule");
        let program = Program::new(&checked).expect("a rule");
        let rival = cel::Program::compile(text).expect("a rule");
        let variables = Variables::new().bind("self", self.value());
        let mut context = cel::Context::default();
        context.add_variable("self", &self.object).expect("an object");
        let bool_of = |value| matches!(value, Ok(Value::Bool(true)));
        assert!(bool_of(program.evaluate(&variables, LIMITS).result), "{name}");
        assert_eq!(rival.execute(&context).expect("a value"), true.into(), "{name}");
        row(
            &format!("{name}: evaluated, data bound before"),
            rounds,
            || drop(black_box(program.evaluate(&variables, LIMITS))),
            || drop(black_box(rival.execute(&context))),
        );
        row(
            &format!("{name}: evaluated on an object's JSON"),
            rounds,
            || {
                let variables = Variables::new().bind("self", self.value());
                drop(black_box(program.evaluate(&variables, LIMITS)));
            },
            || {
                let mut context = cel::Context::default();
                context.add_variable("self", &self.object).expect("an object");
                drop(black_box(rival.execute(&context)));
            },
        );
        row(
            &format!("{name}: text parsed"),
            rounds,
            || drop(black_box(parse(Source::new(text), &ParserOptions::default()))),
            || drop(black_box(cel::Program::compile(text))),
        );
        row(
            &format!("{name}: text compiled (ours with types and plan)"),
            rounds,
            || drop(black_box(self.environment.compile(text).map(|checked| Program::new(&checked)))),
            || drop(black_box(cel::Program::compile(text))),
        );
    }

    fn value(&self) -> Value<'_> {
        Value::json(&self.object, &self.shape).expect("an object of its schema")
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(15);
    let input: Json = serde_json::from_str(include_str!("../rules.json")).expect("JSON");
    let declaration = Declaration::of_schema(&input["schema"], false).expect("a schema");
    let (ty, shape) = declaration.to_type_and_shape("selfType");
    let mut environment = Environment::kubernetes().with_literal_validators(LITERALS);
    if let Type::Object(object) = &ty {
        environment = environment.with_type(Arc::clone(object));
    }
    let environment = environment.with_variable("self", ty);
    println!("| rule | ours | `cel` 0.15 | ratio |\n|---|---|---|---|");
    for rule in input["rules"].as_array().into_iter().flatten() {
        let text = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
        let (environment, shape) = (environment.clone(), shape.clone());
        let object = input["object"].clone();
        Case { name: text("name"), text: text("rule"), environment, shape, object }.rows(rounds);
    }
    admission(rounds, &input);
}

/// Whole objects, as a server admits them: the time per object with these rules.
fn admission(rounds: usize, input: &Json) {
    println!("\n| all rules of a definition on one object | ours |\n|---|---|");
    let mut schema = input["schema"].clone();
    let rules: Vec<Json> = input["rules"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| json!({"rule": rule["rule"]}))
        .collect();
    let mut one = |name: &str, rules: &[Json]| {
        schema["x-kubernetes-validations"] = rules.into();
        let whole = json!({"type": "object", "properties": {"spec": schema}});
        let object = json!({"apiVersion": "v1", "kind": "Web", "spec": input["object"]});
        let validator = Validator::new(&whole);
        assert!(validator.validate(&object, None).violations.is_empty());
        let times = (0..rounds).map(|_| time(|| drop(black_box(validator.validate(&object, None)))));
        println!("| {name} | {:.2} µs |", median(times.collect()) / 1000.0);
    };
    one("two fields", rules.get(..1).unwrap_or_default());
    one("all five", &rules);
}
