//! Verdicts on definitions and objects, as kube-apiserver would give them: one JSON document a line on the input,
//! `{"schema": …, "objects": […], "updates": [[new, old], …]}`, and one a line on the output,
//! `{"created": […], "checks": [[…], …], "updates": [[…], …]}`, with the causes of the refusals. A definition that is
//! refused judges no object.
//!
//! `cargo run -p windlass-cel --example judge < definitions.jsonl`; `tests/kube-apiserver/fuzz-cel.py` compares it with
//! the real server.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};
use windlass_cel::rules::{Validator, Violation, check_definition};

fn causes(violations: &[Violation]) -> Value {
    let cause = |violation: &Violation| json!({"reason": violation.reason.name(), "field": violation.path.as_str(), "message": violation.body()});
    violations.iter().map(cause).collect()
}

fn judged(document: &Value) -> Value {
    let schema = &document["schema"];
    let created = check_definition(schema);
    let (mut checks, mut updates) = (Vec::new(), Vec::new());
    if created.is_empty() {
        let validator = Validator::new(schema);
        for object in document["objects"].as_array().into_iter().flatten() {
            checks.push(causes(&validator.validate(object, None).violations));
        }
        for update in document["updates"].as_array().into_iter().flatten() {
            let report = validator.validate(&update[0], Some(&update[1]));
            updates.push(causes(&report.violations));
        }
    }
    json!({"created": causes(&created), "checks": checks, "updates": updates})
}

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let document: Value = serde_json::from_str(&line?).map_err(io::Error::other)?;
        writeln!(output, "{}", judged(&document))?;
        output.flush()?;
    }
    Ok(())
}
