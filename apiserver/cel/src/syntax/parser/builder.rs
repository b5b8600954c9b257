//! Numbers and positions of the expressions of a tree under construction.

use super::ParserOptions;
use crate::syntax::ast::{Call, Expr, ExprId, ExprKind, Literal, OffsetRange};
use crate::syntax::issues::Issues;

/// Largest number of expressions. Macros that copy their target would otherwise grow a tree without
/// bound.
const MAX_EXPRESSIONS: usize = 500_000;

/// Hands out numbers and keeps positions and errors.
#[derive(Debug)]
pub(in crate::syntax) struct Builder<'o> {
    positions: Vec<OffsetRange>,
    issues: Issues,
    pub(in crate::syntax) options: &'o ParserOptions,
    exhausted: bool,
}

impl<'o> Builder<'o> {
    pub(super) fn new(issues: Issues, options: &'o ParserOptions) -> Builder<'o> {
        Builder { positions: vec![OffsetRange::default()], issues, options, exhausted: false }
    }

    pub(super) fn finish(self) -> (Vec<OffsetRange>, Issues) {
        (self.positions, self.issues)
    }

    /// A new number for an expression at a range.
    pub(in crate::syntax) fn id(&mut self, range: OffsetRange) -> ExprId {
        self.positions.push(range);
        ExprId(self.positions.len() as u32 - 1)
    }

    /// Whether the tree may not grow; the first call with this result reports it.
    pub(in crate::syntax) fn is_exhausted(&mut self) -> bool {
        if !self.exhausted && self.positions.len() > MAX_EXPRESSIONS {
            self.exhausted = true;
            let message =
                format!("expression size after macro expansion exceeds limit: {MAX_EXPRESSIONS}");
            self.issues.report_without_position(message);
        }
        self.exhausted
    }

    /// Gives up a number; the number is used again if no later number was given.
    pub(in crate::syntax) fn delete_id(&mut self, id: ExprId) {
        if id.index() + 1 == self.positions.len() {
            self.positions.pop();
        } else if let Some(range) = self.positions.get_mut(id.index()) {
            *range = OffsetRange::default();
        }
    }

    pub(in crate::syntax) fn position(&self, id: ExprId) -> OffsetRange {
        self.positions.get(id.index()).copied().unwrap_or_default()
    }

    /// Reports an error; returns an expression in place of the erroneous one.
    pub(in crate::syntax) fn error(
        &mut self,
        range: OffsetRange,
        message: impl Into<String>,
    ) -> Expr {
        self.issues.report(range.start, message);
        self.unspecified(range)
    }

    /// Reports an error without a place.
    pub(super) fn error_without_position(&mut self, message: &str) {
        self.issues.report_without_position(message);
    }

    /// An expression in place of an erroneous one: neither a name nor a selection, so that macros
    /// refuse it.
    pub(in crate::syntax) fn unspecified(&mut self, range: OffsetRange) -> Expr {
        Expr { id: self.id(range), kind: ExprKind::Literal(Literal::Null) }
    }
}

/// A call of a global function or an operator.
pub(in crate::syntax) fn global_call(id: ExprId, function: &str, args: Vec<Expr>) -> Expr {
    let call = Call { function: function.to_owned(), target: None, args };
    Expr { id, kind: ExprKind::Call(Box::new(call)) }
}
