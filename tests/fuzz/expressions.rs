//! Bodies of the fuzz targets of `windlass-cel`, which `apiserver/cel/tests/fuzz.rs` calls with
//! changed expressions: no text panics, and the stages agree about each expression.
//!
//! Every target takes any bytes; those that are no UTF-8 are read with replacement characters.

use std::sync::{Arc, LazyLock};

use serde_json::{Value as Json, json};
use windlass_cel::check::{Checked, Environment};
use windlass_cel::eval::{LITERALS, Limits, Program, Value, Variables};
use windlass_cel::syntax::{Ast, Expr, ExprKind, Issues, ParserOptions, Source, parse};
use windlass_cel::types::Type;
use windlass_cel::types::shape::Shape;

/// Budget of an evaluation: an evaluation within the budget takes milliseconds.
const COST_LIMIT: u64 = 20_000;

/// Longest text that the targets read; the server refuses rules of that length long before.
const MAX_LENGTH: usize = 4096;

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(MAX_LENGTH)]).into_owned()
}

/// Variables of every type that a schema brings about.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let list = |ty: Type| Type::List(Arc::new(ty));
    let map = |ty: Type| Type::Map(Arc::new(Type::String), Arc::new(ty));
    [
        ("b", Type::Bool),
        ("i", Type::Int),
        ("n", Type::Double),
        ("s", Type::String),
        ("li", list(Type::Int)),
        ("ls", list(Type::String)),
        ("m", map(Type::String)),
        ("self", map(Type::Dyn)),
        ("oldSelf", Type::Dyn),
    ]
    .into_iter()
    .fold(Environment::kubernetes().with_literal_validators(LITERALS), |environment, (name, ty)| {
        environment.with_variable(name, ty)
    })
});

static DATA: LazyLock<Json> = LazyLock::new(|| {
    let part = json!({"s": "h\u{e9}llo", "i": -3, "n": 2.5, "b": true, "ls": ["b", "a"],
        "li": [3, 1], "m": {"a": "1", "b": ""}});
    let mut whole = part.clone();
    whole["self"] = part.clone();
    whole["oldSelf"] = part;
    whole
});

/// The data as the environment's variables; numbers of `n` are doubles.
fn variables() -> Variables<'static> {
    DATA.as_object().into_iter().flatten().fold(Variables::new(), |variables, (name, value)| {
        let shape = if name == "n" { &Shape::Double } else { &Shape::Dyn };
        variables.bind(name.as_str(), Value::json(value, shape).expect("data of its type"))
    })
}

/// Any text is an expression or has issues, each at a place of the text.
pub(crate) fn parse_any(data: &[u8]) {
    let text = text(data);
    match parse(Source::new(text.as_str()), &ParserOptions::default()) {
        Ok(ast) => {
            let end = u32::try_from(text.chars().count()).expect("a bounded text");
            // An expression that a macro makes has no place.
            let mut starts = ast.positions.iter().skip(1).map(|range| range.start);
            assert!(starts.all(|start| start <= end || start == u32::MAX), "{text:?}");
            assert_eq!(
                without_position(&ast),
                Vec::<u32>::new(),
                "expressions without a position: {text:?}"
            );
        }
        Err(issues) => has_places(&text, &issues),
    }
}

fn has_places(text: &str, issues: &Issues) {
    assert!(!issues.is_empty(), "a refusal without an issue: {text:?}");
    let lines = text.lines().count().max(1) + 1;
    for position in issues.iter().filter_map(|issue| issue.position) {
        assert!(position.line as usize <= lines, "{position:?} in {text:?}");
    }
    assert!(issues.to_string().contains("ERROR"), "{issues} of {text:?}");
}

/// Numbers of the tree's expressions that have no entry in the table of positions.
fn without_position(ast: &Ast) -> Vec<u32> {
    let mut without = Vec::new();
    let mut rest: Vec<&Expr> = vec![&ast.root];
    while let Some(expr) = rest.pop() {
        if expr.id.index() == 0 || expr.id.index() >= ast.positions.len() {
            without.push(expr.id.0);
        }
        match &expr.kind {
            ExprKind::Select(select) => rest.push(&select.operand),
            ExprKind::Call(call) => rest.extend(call.target.iter().chain(&call.args)),
            ExprKind::List(list) => rest.extend(&list.elements),
            ExprKind::Map(entries) => {
                rest.extend(entries.iter().flat_map(|entry| [&entry.key, &entry.value]));
            }
            ExprKind::Struct(literal) => rest.extend(literal.fields.iter().map(|f| &f.value)),
            ExprKind::Comprehension(fold) => {
                rest.extend([&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]);
            }
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        }
    }
    without
}

/// Any text has a type or issues, and the type has a text.
pub(crate) fn check_any(data: &[u8]) {
    compiled(&text(data));
}

fn compiled(text: &str) -> Option<Checked> {
    match ENVIRONMENT.compile(text) {
        Ok(checked) => {
            assert!(!checked.output_type().to_string().is_empty(), "{text:?}");
            assert!(checked.types.len() >= checked.ast.root.id.index(), "{text:?}");
            Some(checked)
        }
        Err(issues) => {
            has_places(text, &issues);
            None
        }
    }
}

/// An expression with types has a value of the expression's type or an error, each time the same,
/// and stays within the budget.
pub(crate) fn evaluate_any(data: &[u8]) {
    let text = text(data);
    let Some(checked) = compiled(&text) else { return };
    let Ok(program) = Program::new(&checked) else { return };
    let (variables, limits) = (variables(), Limits::new(COST_LIMIT));
    let first = program.evaluate(&variables, limits);
    let again = program.evaluate(&variables, limits);
    assert_eq!(format!("{first:?}"), format!("{again:?}"), "{text:?}");
    if let Ok(value) = &first.result {
        assert!(first.cost <= COST_LIMIT, "{text:?} costs {}", first.cost);
        let ty = checked.output_type();
        assert!(has_type(value, ty), "{text:?} is {value:?}, not a value of {ty}");
    }
}

/// Whether a value has a type, as far as both say.
fn has_type(value: &Value<'_>, ty: &Type) -> bool {
    match ty {
        Type::Null => matches!(value, Value::Null),
        Type::Bool => matches!(value, Value::Bool(_)),
        Type::Int => matches!(value, Value::Int(_)),
        Type::Uint => matches!(value, Value::Uint(_)),
        Type::Double => matches!(value, Value::Double(_)),
        Type::String => matches!(value, Value::String(_)),
        Type::Bytes => matches!(value, Value::Bytes(_)),
        Type::Duration => matches!(value, Value::Duration(_)),
        Type::Timestamp => matches!(value, Value::Timestamp(_)),
        Type::List(_) => matches!(value, Value::List(_)),
        Type::Map(..) => matches!(value, Value::Map(_)),
        Type::Type(_) => matches!(value, Value::Type(_)),
        Type::Opaque(name, _) if **name == *"optional_type" => matches!(value, Value::Optional(_)),
        Type::Opaque(name, _) => value.type_name() == &**name,
        _ => true,
    }
}
