//! The fuzz targets of `tests/fuzz/expressions.rs` on any toolchain: a million executions with
//! expressions of the corpus that have random changes. Any text gives a result or an error, and
//! nothing panics.

#[path = "../../../tests/fuzz/expressions.rs"]
mod targets;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use windlass_cel::rules::{Validator, check_definition};

/// Changed expressions that become rules of a definition.
const RUNS: usize = 20_000;

const PARSED: usize = 400_000;
const CHECKED: usize = 300_000;
const EVALUATED: usize = 300_000;

/// A million in all; each test below makes its part.
const _: () = assert!(PARSED + CHECKED + EVALUATED >= 1_000_000);

/// Pieces that are put into an expression.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "?",
    ":",
    "+",
    "-",
    "!",
    "&&",
    "||",
    "==",
    "in",
    "self",
    "oldSelf",
    "dyn(",
    "null",
    "0",
    "-9223372036854775808",
    "1.5",
    "18446744073709551615u",
    "'\\",
    "\"",
    "r'",
    "b'",
    "//",
    ".all(x, ",
    ".map(x, x)",
    ".size()",
    "has(",
    "duration('1h')",
    "timestamp(0)",
    "\u{e9}",
    "\u{1f600}",
    "`",
    "\n",
];

/// Numbers in a fixed order: the splitmix64 generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).expect("below the bound")
    }
}

fn rules() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut rules = Vec::new();
    for entry in fs::read_dir(folder).expect("the corpus") {
        let path = entry.expect("a file").path();
        let is_recording =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("recorded-"));
        if is_recording || path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in
            fs::read_to_string(path).expect("a text").split('\n').filter(|line| !line.is_empty())
        {
            let case: Value = serde_json::from_str(line).expect("a case");
            let own = case["rules"].as_array().into_iter().flatten();
            rules.extend(own.filter_map(|rule| rule["rule"].as_str()).map(str::to_owned));
        }
    }
    rules.retain(|rule| rule.len() < 500);
    rules.sort();
    rules
}

fn changed(rule: &str, numbers: &mut Numbers) -> String {
    let mut chars: Vec<char> = rule.chars().collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(chars.len() + 1);
        match numbers.below(3) {
            0 if at < chars.len() => {
                let end = (at + 1 + numbers.below(5)).min(chars.len());
                chars.drain(at..end);
            }
            1 => {
                let to = numbers.below(chars.len() + 1);
                let part: Vec<char> = chars[at.min(to)..at.max(to)].to_vec();
                chars.splice(at..at, part);
            }
            _ => {
                let piece = PIECES[numbers.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn no_change_of_an_expression_panics() {
    let (rules, mut numbers) = (rules(), Numbers(7));
    let value = json!({"s": "h\u{e9}llo", "i": -3, "n": 2.5, "b": true, "ls": ["b", "a"], "li": [3, 1], "m": {"a": "1"}});
    let shape = json!({"s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
        "b": {"type": "boolean"}, "ls": {"type": "array", "items": {"type": "string"}},
        "li": {"type": "array", "items": {"type": "integer"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}}});
    let mut accepted = 0;
    for _ in 0..RUNS {
        let rule = changed(&rules[numbers.below(rules.len())], &mut numbers);
        let schema = json!({"type": "object", "properties": shape,
            "x-kubernetes-validations": [{"rule": rule, "message": "no"}]});
        accepted += usize::from(check_definition(&schema).is_empty());
        let report = Validator::new(&schema).validate(&value, Some(&value));
        assert!(report.cost <= 10_000_000 + 1_000_000, "{rule}: {}", report.cost);
    }
    assert!(accepted > RUNS / 100, "{accepted} of {RUNS} changed expressions are valid");
}

/// Calls a target with changed expressions, the same on every machine.
fn run(target: fn(&[u8]), executions: usize, seed: u64) {
    let (rules, mut numbers) = (rules(), Numbers(seed));
    for _ in 0..executions {
        target(changed(&rules[numbers.below(rules.len())], &mut numbers).as_bytes());
    }
}

#[test]
fn any_text_is_an_expression_or_has_issues_at_places_of_it() {
    run(targets::parse_any, PARSED, 1);
}

#[test]
fn any_text_has_a_type_or_issues() {
    run(targets::check_any, CHECKED, 2);
}

#[test]
fn an_expression_has_a_value_of_its_type_or_an_error_within_its_budget() {
    run(targets::evaluate_any, EVALUATED, 3);
}

/// Runs the inputs that fuzzing begins with, and those that once failed.
#[test]
fn the_seeds_of_the_fuzz_targets_pass() {
    type Target = fn(&[u8]);
    let all: [(&str, Target); 3] = [
        ("parse", targets::parse_any),
        ("check", targets::check_any),
        ("evaluate", targets::evaluate_any),
    ];
    for (name, target) in all {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds").join(name);
        let mut count = 0;
        for file in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{name}: {error}")) {
            target(&fs::read(file.expect("a file").path()).expect("a seed"));
            count += 1;
        }
        assert!(count > 0, "no seeds of {name}");
    }
}
