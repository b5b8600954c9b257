//! Tests of evaluation with trees that are built by hand.

use std::sync::Arc;

use serde_json::json;

use super::{Limits, Outcome, Program, Value, Variables};
use crate::check::Checked;
use crate::syntax::ast::{Call, Select};
use crate::syntax::{Ast, Expr, ExprId, ExprKind, Literal, Source};
use crate::types::shape::Shape;

fn expr(kind: ExprKind) -> Expr {
    Expr { id: ExprId(0), kind }
}

fn field(name: &str, test_only: bool) -> Expr {
    let operand = expr(ExprKind::Ident("self".to_owned()));
    expr(ExprKind::Select(Box::new(Select { operand, field: name.to_owned(), test_only })))
}

fn call(function: &str, args: Vec<Expr>) -> Expr {
    expr(ExprKind::Call(Box::new(Call { function: function.to_owned(), target: None, args })))
}

fn evaluated(root: Expr, cost_limit: u64) -> (String, u64) {
    let ast = Arc::new(Ast { source: Source::new(""), root, positions: Vec::new() });
    let program =
        Program::new(&Checked { ast, types: Vec::new(), references: Vec::new() }).unwrap();
    let data = json!({"min": 1, "max": 5, "name": "web"});
    let variables = Variables::new().bind("self", Value::json(&data, &Shape::Dyn).unwrap());
    let Outcome { result, cost, .. } = program.evaluate(&variables, Limits::new(cost_limit));
    (result.map_or_else(|error| error.to_string(), |value| super::functions::display(&value)), cost)
}

#[test]
fn a_selection_costs_one_for_its_root_and_one_for_each_field() {
    assert_eq!(evaluated(field("name", false), 10), ("web".to_owned(), 2));
}

#[test]
fn a_presence_test_costs_its_field_only() {
    assert_eq!(evaluated(field("other", true), 10), ("false".to_owned(), 1));
}

#[test]
fn a_missing_key_is_an_error() {
    assert_eq!(evaluated(field("other", false), 10), ("no such key: other".to_owned(), 2));
}

#[test]
fn a_true_term_absorbs_the_error_of_another_one() {
    let root =
        call("_||_", vec![field("other", false), expr(ExprKind::Literal(Literal::Bool(true)))]);
    assert_eq!(evaluated(root, 10), ("true".to_owned(), 2));
}

#[test]
fn no_term_absorbs_the_end_of_the_budget() {
    let root =
        call("_||_", vec![field("other", false), expr(ExprKind::Literal(Literal::Bool(true)))]);
    assert_eq!(evaluated(root, 1).0, "operation cancelled: actual cost limit exceeded");
}

#[test]
fn a_comparison_of_two_fields_costs_five() {
    let root = call("_<=_", vec![field("min", false), field("max", false)]);
    assert_eq!(evaluated(root, 10), ("true".to_owned(), 5));
}

#[test]
fn a_joined_text_is_paid_by_characters_and_not_by_bytes() {
    let data = json!({"parts": ["\u{1d11e}".repeat(100)]});
    let environment = crate::check::Environment::kubernetes().with_variable(
        "self",
        crate::types::Type::map(crate::types::Type::String, crate::types::Type::Dyn),
    );
    let program = Program::new(&environment.compile("self.parts.join('')").unwrap()).unwrap();
    let variables = Variables::new().bind("self", Value::json(&data, &Shape::Dyn).unwrap());
    let Outcome { result, cost, .. } = program.evaluate(&variables, Limits::new(60));
    let length = result.map(|text| super::functions::display(&text).chars().count());
    assert_eq!((length.ok(), cost), (Some(100), 22));
}

#[test]
fn sorting_an_error_ends_the_evaluation_as_the_fault_of_cel_go_does() {
    let data = json!({"min": 1});
    let environment = crate::check::Environment::kubernetes().with_variable(
        "self",
        crate::types::Type::map(crate::types::Type::String, crate::types::Type::Dyn),
    );
    let fault =
        "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add";
    let cases = [
        ("self.other.distinct() == [] || true", fault),
        ("true || self.other.sort() == []", "true"),
    ];
    for (text, expected) in cases {
        let program = Program::new(&environment.compile(text).unwrap()).unwrap();
        let variables = Variables::new().bind("self", Value::json(&data, &Shape::Dyn).unwrap());
        let result = program.evaluate(&variables, Limits::new(100)).result;
        let found = result
            .map_or_else(|error| error.to_string(), |value| super::functions::display(&value));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn any_value_but_bytes_is_a_key_of_a_map() {
    let cases = [
        ("size({[1]: 1, [1]: 2})", "2"),
        ("{[1]: 'a'}.transformMap(k, v, v == 'a').all(k, v, v)", "true"),
        ("[1] in {[1]: 1}", "false"),
        ("null in {null: 1}", "true"),
        ("duration('1h') in {duration('60m'): 1}", "true"),
        (
            "{bytes('a' + 'b'): 1} == {} || true",
            "internal error: runtime error: hash of unhashable type types.Bytes",
        ),
    ];
    for (text, expected) in cases {
        let checked = crate::check::Environment::kubernetes().compile(text).unwrap();
        let program = Program::new(&checked).unwrap();
        let variables = Variables::new();
        let result = program.evaluate(&variables, Limits::new(1000)).result;
        let found = result
            .map_or_else(|error| error.to_string(), |value| super::functions::display(&value));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn data_nested_deeply_end_an_evaluation_and_not_the_stack() {
    // Built level by level, as no parser would build it; and dropped without recursion by the
    // test's end.
    let deep = (0..10_000).fold(json!(1), |inner, _| serde_json::Value::Array(vec![inner]));
    let deep = std::mem::ManuallyDrop::new(deep);
    let environment =
        crate::check::Environment::kubernetes().with_variable("x", crate::types::Type::Dyn);
    let fault = "internal error: data is nested too deeply";
    let cases = [
        ("x == x || true", fault),
        ("x != x || true", fault),
        ("x in [x]", fault),
        ("[x].indexOf(x) == 0", fault),
        ("google.protobuf.ListValue{values: [x]} == []", fault),
        ("[x].flatten(9000) == []", fault),
        ("'%s'.format([x]) == ''", "values nest more than 256 deep"),
        ("dyn(string(x)) == ''", "no such overload: string(list)"),
        ("type(x) == list", "true"),
    ];
    for (text, expected) in cases {
        let program = Program::new(&environment.compile(text).unwrap()).unwrap();
        let variables = Variables::new().bind("x", Value::json(&deep, &Shape::Dyn).unwrap());
        let result = program.evaluate(&variables, Limits::new(1_000_000)).result;
        let found = result
            .map_or_else(|error| error.to_string(), |value| super::functions::display(&value));
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn a_list_longer_than_an_int_can_tell_is_an_overflow() {
    let text = format!("[[0]]{}.size() == 1", ".map(x, x + x)".repeat(70));
    let checked = crate::check::Environment::kubernetes().compile(&text).unwrap();
    let program = Program::new(&checked).unwrap();
    let outcome = program.evaluate(&Variables::new(), Limits::new(1_000_000));
    assert_eq!(outcome.result.unwrap_err().to_string(), "integer overflow");
}

#[test]
fn data_without_a_schema_does_not_make_work_that_no_cost_pays_for() {
    // Without declared types the server chooses the overload when it evaluates, and such a call
    // costs 1.
    let long = "a".repeat(100_000);
    let data = serde_json::json!({"s": long, "l": (0..1000).collect::<Vec<i32>>()});
    let text = "self.s".to_owned() + &" + self.s".repeat(3);
    let doubled = |step: &str| {
        let levels = (0..30).map(|level| {
            let step = step.replace("X", &format!("v{level}"));
            format!("[{step}].all(v{}, ", level + 1)
        });
        format!("[self.s].all(v0, {}v30.size() > 0{}", levels.collect::<String>(), ")".repeat(31))
    };
    let again = |expression: &str| format!("lists.range(50000).all(i, {expression})");
    let cases = [
        doubled("X + X"),
        again(&format!("({text}).size() > 0")),
        again("self.s <= self.s"),
        again("bytes(self.s).size() > 0"),
        again("timestamp(self.s) == timestamp(self.s) || true"),
        again("self.l.sort().size() > 0"),
        again("self.l.reverse().size() > 0"),
        again("self.l.slice(0, 1000).size() > 0"),
        again("self.s.findAll('').size() > 0"),
        again("self.s in {'a': 1} || true"),
    ];
    for text in cases {
        let environment =
            crate::check::Environment::kubernetes().with_variable("self", crate::types::Type::Dyn);
        let program = Program::new(&environment.compile(&text).unwrap()).unwrap();
        let value = Value::json(&data, &crate::types::shape::Shape::Dyn).unwrap();
        let variables = Variables::new().bind("self", value);
        let outcome = program.evaluate(&variables, Limits::new(200_000));
        let error =
            outcome.result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"));
        assert_eq!(error, "operation cancelled: actual cost limit exceeded", "{text}");
        assert!(
            outcome.work == Limits::new(200_000).work_limit || outcome.cost < 300_000,
            "{text}"
        );
    }
}

#[test]
fn sharing_does_not_make_work_that_no_cost_pays_for() {
    let doubled = format!("[1]{}", ".map(x, [x, x])".repeat(40));
    let tripled = format!("['a']{}", ".map(x, '%s%s%s'.format([x, x, x]))".repeat(30));
    let again = |expression: &str| {
        let some = format!("[0]{}", ".map(x, [x, x])".repeat(13));
        format!("[{some}].all(d, lists.range(100000).all(i, {expression}))")
    };
    let cases = [
        format!("{doubled} == {doubled}"),
        format!("{doubled} != {doubled} || true"),
        format!("[{doubled}].indexOf({doubled}) == 0"),
        format!("{doubled}.flatten(100) == []"),
        format!("google.protobuf.ListValue{{values: {doubled}}} == []"),
        format!("'%s'.format([{doubled}]) == ''"),
        format!("[?dyn({doubled})] == [] || true"),
        format!("{tripled}.size() == 1"),
        format!("['aaaaaaaaaa']{}.size() == 1", ".map(x, x.replace('a', x))".repeat(5)),
        format!("[[''] + ['']]{}.all(x, x.join('') == '')", ".map(x, x + x)".repeat(40)),
        again("d == d"),
        again("d in [d]"),
        again("sets.contains(d, d)"),
        again("d.flatten(100).size() > 0"),
        "lists.range(100000).all(i, !('' + string(i)).matches('(.{1000}|b{1000}|c{1000})x' + string(i)))"
            .to_owned(),
        r"lists.range(100000).all(i, !'a'.matches('\\pL{60}x' + string(i)))".to_owned(),
        "lists.range(900000).all(i, sets.contains(lists.range(900000), [i]))".to_owned(),
    ];
    for text in cases {
        let checked = crate::check::Environment::kubernetes().compile(&text).unwrap();
        let program = Program::new(&checked).unwrap();
        let variables = Variables::new();
        // A tenth of the server's limit: the test is for the bound, not for its size.
        let outcome = program.evaluate(&variables, Limits::new(100_000));
        let error =
            outcome.result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"));
        assert_eq!(error, "operation cancelled: actual cost limit exceeded", "{text}");
    }
}
