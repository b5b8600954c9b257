//! The syntax tree that the parser builds and that checker, cost estimate and evaluation read.
//!
//! Macros are expanded while the tree is built: a tree holds [`Comprehension`]s and presence tests,
//! and no call of `all`, `exists`, `map`, `filter` or `has`.

use super::source::Source;

/// Number of an expression within its tree, from 1, in the order in which the parser finishes them.
///
/// Checker and cost estimate keep their results for an expression in tables indexed by this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

impl ExprId {
    /// The index into a table of expressions.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Range of an expression in the source. An expression that a macro makes and that stands nowhere
/// in the text has `u32::MAX` for both.
///
/// Start is the position that cel-go reports for the expression: of a call by operator the
/// operator's place, of a selection the dot, of a call the opening parenthesis, of anything else
/// the first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffsetRange {
    /// Offset of the place that messages point at, in Unicode code points.
    pub start: u32,
    /// The start and the length of the text in bytes, as cel-go counts.
    pub end: u32,
}

/// A parsed expression with the source and the positions of all parts.
#[derive(Debug, Clone)]
pub struct Ast {
    /// The text that was parsed.
    pub source: Source,
    /// The outermost expression.
    pub root: Expr,
    /// Position of each expression, by [`ExprId::index`]; the entry 0 is not used.
    pub positions: Vec<OffsetRange>,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// The number in the tree.
    pub id: ExprId,
    /// The content.
    pub kind: ExprKind,
}

/// The shapes of an expression, those of cel-go's syntax tree.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A constant: `1`, `2u`, `'text'`, `true`.
    Literal(Literal),
    /// A name; a leading dot (`.name`) is a part of it.
    Ident(String),
    /// A selection `operand.field`, or with `test_only` the presence test `has(operand.field)`.
    Select(Box<Select>),
    /// A call of a function or an operator.
    Call(Box<Call>),
    /// `[a, b, ?c]`
    List(List),
    /// `{key: value, ?other: value}`
    Map(Vec<MapEntry>),
    /// `Name{field: value}`
    Struct(Struct),
    /// An expanded macro that iterates.
    Comprehension(Box<Comprehension>),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `'text'`
    String(String),
    /// `b'bytes'`
    Bytes(Vec<u8>),
}

/// A selection of a field, or the test of the field's presence.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// The value that has the field.
    pub operand: Expr,
    /// The field's name, as written (not unescaped).
    pub field: String,
    /// Whether the expression tests the presence instead of reading the value: `has(a.b)`.
    pub test_only: bool,
}

/// A call of a function: `f(a)`, `target.f(a)`, or an operator under the name that [`operators`]
/// lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Name of the function or operator.
    pub function: String,
    /// The receiver of a member call.
    pub target: Option<Expr>,
    /// The arguments without the receiver.
    pub args: Vec<Expr>,
}

/// A list literal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List {
    /// The elements in order.
    pub elements: Vec<Expr>,
    /// Indices of the elements that are written `?e`: an optional that is left out when empty.
    pub optional: Vec<usize>,
}

/// An entry of a map literal.
#[derive(Debug, Clone, PartialEq)]
pub struct MapEntry {
    /// Number of the entry itself.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether the entry is written `?key: value`.
    pub is_optional: bool,
}

/// A literal of a structured type.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Name of the type as written, dots included.
    pub type_name: String,
    /// The fields in order.
    pub fields: Vec<StructField>,
}

/// A field of a struct literal.
#[derive(Debug, Clone, PartialEq)]
pub struct StructField {
    /// Number of the entry itself.
    pub id: ExprId,
    /// The field's name.
    pub name: String,
    /// The value.
    pub value: Expr,
    /// Whether the field is written `?name: value`.
    pub is_optional: bool,
}

/// A fold over a list or the keys of a map.
///
/// The accumulator begins as `init`; for each element, while `condition` holds, it becomes `step`;
/// the value of the comprehension is `result`.
#[derive(Debug, Clone, PartialEq)]
pub struct Comprehension {
    /// The list or map.
    pub range: Expr,
    /// Name of the element (one variable), or of the index or key (two variables).
    pub variable: String,
    /// Name of the value of a comprehension with two variables.
    pub second_variable: Option<String>,
    /// Name of the accumulator; `@result` for the macros of the language.
    pub accumulator: String,
    /// First value of the accumulator.
    pub init: Expr,
    /// Condition to go on.
    pub condition: Expr,
    /// Next value of the accumulator.
    pub step: Expr,
    /// Value of the whole.
    pub result: Expr,
}

/// Names of the operators in [`Call::function`], those of cel-go.
pub mod operators {
    /// `c ? a : b`
    pub const CONDITIONAL: &str = "_?_:_";
    /// `a && b`
    pub const LOGICAL_AND: &str = "_&&_";
    /// `a || b`
    pub const LOGICAL_OR: &str = "_||_";
    /// `!a`
    pub const LOGICAL_NOT: &str = "!_";
    /// `a == b`
    pub const EQUALS: &str = "_==_";
    /// `a != b`
    pub const NOT_EQUALS: &str = "_!=_";
    /// `a < b`
    pub const LESS: &str = "_<_";
    /// `a <= b`
    pub const LESS_EQUALS: &str = "_<=_";
    /// `a > b`
    pub const GREATER: &str = "_>_";
    /// `a >= b`
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `a + b`
    pub const ADD: &str = "_+_";
    /// `a - b`
    pub const SUBTRACT: &str = "_-_";
    /// `a * b`
    pub const MULTIPLY: &str = "_*_";
    /// `a / b`
    pub const DIVIDE: &str = "_/_";
    /// `a % b`
    pub const MODULO: &str = "_%_";
    /// `-a`
    pub const NEGATE: &str = "-_";
    /// `a[b]`
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    /// `a.?b`, with the field's name as a string literal
    pub const OPTIONAL_SELECT: &str = "_?._";
    /// `a in b`
    pub const IN: &str = "@in";
    /// The condition of `all` and `exists`: false only when the argument is the value false.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    /// Name of the accumulator in macros of the language.
    pub const ACCUMULATOR: &str = "@result";
}
