//! Tests of the checker with trees that are built by hand.

use std::sync::Arc;

use super::{Environment, LiteralValidator, Reference};
use crate::syntax::ast::{Call, Comprehension, List, OffsetRange, Select, Struct, StructField};
use crate::syntax::{Ast, Expr, ExprId, ExprKind, Literal, Source};
use crate::types::{FieldType, ObjectType, Type};

/// Numbers the expressions of a tree in order of their creation.
#[derive(Default)]
struct Tree {
    last: u32,
}

impl Tree {
    fn expr(&mut self, kind: ExprKind) -> Expr {
        self.last += 1;
        Expr { id: ExprId(self.last), kind }
    }

    fn int(&mut self) -> Expr {
        self.expr(ExprKind::Literal(Literal::Int(1)))
    }

    fn text(&mut self, text: &str) -> Expr {
        self.expr(ExprKind::Literal(Literal::String(text.to_owned())))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.expr(ExprKind::Ident(name.to_owned()))
    }

    fn select(&mut self, operand: Expr, field: &str) -> Expr {
        let select = Select { operand, field: field.to_owned(), test_only: false };
        self.expr(ExprKind::Select(Box::new(select)))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.expr(ExprKind::Call(Box::new(Call {
            function: function.to_owned(),
            target: None,
            args,
        })))
    }

    fn member(&mut self, target: Expr, function: &str, args: Vec<Expr>) -> Expr {
        self.expr(ExprKind::Call(Box::new(Call {
            function: function.to_owned(),
            target: Some(target),
            args,
        })))
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.expr(ExprKind::List(List { elements, optional: Vec::new() }))
    }

    /// An expression whose type has `2^depth` parts.
    fn exponential(&mut self, depth: u32) -> Expr {
        let init = self.int();
        let range = self.list(vec![init]);
        (0..depth).fold(range, |range, _| {
            let (element, twin) = (self.ident("x"), self.ident("x"));
            let entry = crate::syntax::ast::MapEntry {
                id: self.int().id,
                key: element,
                value: twin,
                is_optional: false,
            };
            let map = self.expr(ExprKind::Map(vec![entry]));
            self.map_elements(range, map)
        })
    }

    /// `range.map(x, step)`
    fn map_elements(&mut self, range: Expr, step: Expr) -> Expr {
        let init = self.list(Vec::new());
        let condition = self.expr(ExprKind::Literal(Literal::Bool(true)));
        let accumulated = self.ident("@result");
        let element = self.list(vec![step]);
        let step = self.call("_+_", vec![accumulated, element]);
        let result = self.ident("@result");
        let (variable, accumulator) = ("x".to_owned(), "@result".to_owned());
        let comprehension = Comprehension {
            range,
            variable,
            second_variable: None,
            accumulator,
            init,
            condition,
            step,
            result,
        };
        self.expr(ExprKind::Comprehension(Box::new(comprehension)))
    }

    fn ast(self, root: Expr) -> Ast {
        let positions = vec![OffsetRange::default(); self.last as usize + 1];
        Ast { source: Source::new("text"), root, positions }
    }
}

fn environment() -> Environment {
    let field = |name: &str, ty: Type| (Arc::from(name), FieldType { ty, max_size: None });
    let spec =
        Arc::new(ObjectType { name: "Object.spec".into(), fields: vec![field("size", Type::Int)] });
    let root = Arc::new(ObjectType {
        name: "Object".into(),
        fields: vec![field("spec", Type::Object(spec))],
    });
    Environment::kubernetes()
        .with_type(root.clone())
        .with_variable("self", Type::Object(root))
        .with_variable("a.b", Type::String)
        .with_variable("any", Type::Dyn)
}

/// First line of the issues that a tree has.
fn issue(environment: &Environment, tree: Tree, root: Expr) -> String {
    let issues = environment.check(tree.ast(root)).expect_err("the types must not agree");
    let text = issues.to_string();
    let message =
        text.lines().next().unwrap_or_default().trim_start_matches("ERROR: <input>:1:1: ");
    message.to_owned()
}

#[test]
fn a_call_has_the_result_and_the_overload_of_its_arguments() {
    let mut tree = Tree::default();
    let (left, right) = (tree.int(), tree.int());
    let root = tree.call("_+_", vec![left, right]);
    let id = root.id;
    let checked = environment().check(tree.ast(root)).unwrap();
    assert_eq!(checked.output_type(), &Type::Int);
    assert_eq!(checked.reference(id), Some(&Reference::Overloads(vec!["add_int64"])));
}

#[test]
fn an_unknown_type_leaves_several_overloads() {
    let mut tree = Tree::default();
    let (left, right) = (tree.ident("any"), tree.int());
    let root = tree.call("_-_", vec![left, right]);
    let id = root.id;
    let checked = environment().check(tree.ast(root)).unwrap();
    assert_eq!(checked.output_type(), &Type::Int);
    assert_eq!(checked.reference(id), Some(&Reference::Overloads(vec!["subtract_int64"])));
    let mut tree = Tree::default();
    let (left, right) = (tree.ident("any"), tree.ident("any"));
    let root = tree.call("_-_", vec![left, right]);
    let id = root.id;
    let checked = environment().check(tree.ast(root)).unwrap();
    assert_eq!(checked.output_type(), &Type::Dyn);
    assert!(matches!(checked.reference(id), Some(Reference::Overloads(ids)) if ids.len() == 6));
}

#[test]
fn messages_are_those_of_cel_go() {
    type Build = fn(&mut Tree) -> Expr;
    let cases: [(Build, &str); 7] = [
        (|tree| tree.ident("x"), "undeclared reference to 'x' (in container '')"),
        (
            |tree| {
                let args = vec![tree.int(), tree.text("a")];
                tree.call("_+_", args)
            },
            "found no matching overload for '_+_' applied to '(int, string)'",
        ),
        (
            |tree| {
                let target = tree.int();
                tree.member(target, "size", Vec::new())
            },
            "found no matching overload for 'size' applied to 'int.()'",
        ),
        (
            |tree| {
                let operand = tree.text("a");
                tree.select(operand, "b")
            },
            "type 'string' does not support field selection",
        ),
        (
            |tree| {
                let operand = tree.ident("self");
                tree.select(operand, "min_size")
            },
            "undefined field 'min_size'",
        ),
        (
            |tree| {
                let elements = vec![tree.int(), tree.text("a")];
                tree.list(elements)
            },
            "expected type 'int' but found 'string'",
        ),
        (
            |tree| {
                let (range, step) = (tree.int(), tree.ident("x"));
                tree.map_elements(range, step)
            },
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
    ];
    for (build, message) in cases {
        let mut tree = Tree::default();
        let root = build(&mut tree);
        assert_eq!(issue(&environment(), tree, root), message);
    }
}

#[test]
fn a_qualified_name_becomes_one_identifier() {
    let mut tree = Tree::default();
    let operand = tree.ident("a");
    let root = tree.select(operand, "b");
    let checked = environment().check(tree.ast(root)).unwrap();
    assert_eq!(checked.ast.root.kind, ExprKind::Ident("a.b".to_owned()));
    assert_eq!(checked.output_type(), &Type::String);
}

#[test]
fn a_name_is_looked_up_in_the_container_first() {
    let environment = environment().with_variable("b", Type::Int).with_container("a.c");
    for (name, ty) in [("b", Type::String), (".b", Type::Int)] {
        let mut tree = Tree::default();
        let root = tree.ident(name);
        assert_eq!(environment.check(tree.ast(root)).unwrap().output_type(), &ty);
    }
}

#[test]
fn a_namespaced_function_loses_its_receiver() {
    let mut tree = Tree::default();
    let (target, argument) = (tree.ident("sets"), tree.list(Vec::new()));
    let other = tree.list(Vec::new());
    let root = tree.member(target, "contains", vec![argument, other]);
    let checked = environment().check(tree.ast(root)).unwrap();
    let ExprKind::Call(call) = &checked.ast.root.kind else { panic!("not a call") };
    assert_eq!((call.function.as_str(), &call.target), ("sets.contains", &None));
}

#[test]
fn a_comprehension_infers_the_type_of_its_elements() {
    let mut tree = Tree::default();
    let element = tree.int();
    let (range, step) = (tree.list(vec![element]), tree.ident("x"));
    let root = tree.map_elements(range, step);
    assert_eq!(environment().check(tree.ast(root)).unwrap().output_type(), &Type::list(Type::Int));
}

#[test]
fn fields_of_a_struct_literal_are_checked() {
    let mut tree = Tree::default();
    let value = tree.text("a");
    let field =
        StructField { id: tree.int().id, name: "size".to_owned(), value, is_optional: false };
    let root = tree.expr(ExprKind::Struct(Struct {
        type_name: "Object.spec".to_owned(),
        fields: vec![field],
    }));
    assert_eq!(
        issue(&environment(), tree, root),
        "expected type of field 'size' is 'int' but provided type is 'string'"
    );
}

#[test]
fn the_standard_environment_lets_a_list_mix_types() {
    let mut tree = Tree::default();
    let elements = vec![tree.int(), tree.text("a")];
    let root = tree.list(elements);
    let checked = Environment::standard().check(tree.ast(root)).unwrap();
    assert_eq!(checked.output_type(), &Type::list(Type::Dyn));
}

#[test]
fn a_literal_validator_reports_a_constant_argument() {
    const VALIDATORS: &[LiteralValidator] =
        &[LiteralValidator { function: "duration", argument: 0, is_valid: |_| false }];
    let mut tree = Tree::default();
    let argument = tree.text("x");
    let root = tree.call("duration", vec![argument]);
    let environment = environment().with_literal_validators(VALIDATORS);
    assert_eq!(issue(&environment, tree, root), "invalid duration argument");
}

#[test]
fn an_expression_that_is_nested_too_deeply_is_an_error() {
    let mut tree = Tree::default();
    let mut root = tree.int();
    for _ in 0..3_000 {
        root = tree.call("-_", vec![root]);
    }
    assert_eq!(issue(&environment(), tree, root), "expression nesting limit exceeded: 1000");
    let mut tree = Tree::default();
    let mut root = tree.int();
    for _ in 0..1_000 {
        let range = tree.list(Vec::new());
        root = tree.map_elements(range, root);
    }
    assert_eq!(issue(&environment(), tree, root), "expression nesting limit exceeded: 1000");
    let mut tree = Tree::default();
    let mut root = tree.int();
    for _ in 0..998 {
        root = tree.list(vec![root]);
    }
    assert!(environment().check(tree.ast(root)).is_ok());
}

#[test]
fn a_type_that_grows_exponentially_is_an_error() {
    let mut tree = Tree::default();
    let root = tree.exponential(60);
    let issues =
        environment().check(tree.ast(root)).expect_err("the type is too large").to_string();
    assert!(issues.contains("type of the expression is too large"), "{issues}");
    let mut tree = Tree::default();
    let root = tree.exponential(3);
    assert!(environment().check(tree.ast(root)).is_ok());
}
