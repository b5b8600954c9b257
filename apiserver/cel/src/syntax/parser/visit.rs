//! From the concrete syntax to expressions: numbers in cel-go's order, macros expanded, literals
//! read.

use super::builder::{Builder, global_call};
use super::engine::{NodeId, SyntaxNode};
use super::grammar::{GrammarRule, Label};
use super::literals;
use crate::syntax::ast::{
    Expr, ExprId, ExprKind, List, Literal, MapEntry, OffsetRange, Select, Struct, StructField,
    operators,
};
use crate::syntax::lexer::Token;
use crate::syntax::{identifiers, macros};

/// Reads the nodes of a parse.
pub(super) struct Visitor<'t> {
    text: &'t str,
    nodes: &'t [SyntaxNode],
    builder: Builder<'t>,
    depth: usize,
    too_deep: bool,
}

/// Range of a part that is missing because of a syntax error; cel-go prints it as the column 0 of
/// the first line.
const NOWHERE: OffsetRange = OffsetRange { start: u32::MAX, end: u32::MAX };

fn range(token: Token) -> OffsetRange {
    OffsetRange { start: token.offset, end: token.offset + token.len() }
}

fn node_range(node: &SyntaxNode) -> OffsetRange {
    OffsetRange { start: node.start.offset, end: node.start.offset + node.len }
}

impl<'t> Visitor<'t> {
    pub(super) fn new(text: &'t str, nodes: &'t [SyntaxNode], builder: Builder<'t>) -> Visitor<'t> {
        Visitor { text, nodes, builder, depth: 0, too_deep: false }
    }

    pub(super) fn run(mut self, root: NodeId) -> (Expr, Builder<'t>) {
        let expr = self.visit_child(&self.nodes[root], 0);
        if self.too_deep {
            self.builder.error_without_position("max recursion depth exceeded");
        }
        (expr, self.builder)
    }

    fn str(&self, token: Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn visit_child(&mut self, node: &SyntaxNode, index: usize) -> Expr {
        match node.children.get(index) {
            Some(child) => self.visit(*child),
            // A syntax error came before this part, and has been reported.
            None => self.builder.unspecified(NOWHERE),
        }
    }

    /// Skips nodes that only wrap another.
    fn unnest(&self, mut id: NodeId) -> NodeId {
        loop {
            let node = &self.nodes[id];
            let wraps = match node.rule {
                GrammarRule::Expr
                | GrammarRule::Or
                | GrammarRule::And
                | GrammarRule::Relation
                | GrammarRule::Calc => node.label(Label::Op).is_none(),
                GrammarRule::Unary => node.alternative == 1,
                GrammarRule::Member => node.alternative == 0,
                GrammarRule::Primary => matches!(node.alternative, 3 | 7),
                _ => false,
            };
            match node.children.first() {
                Some(child) if wraps => id = *child,
                _ => return id,
            }
        }
    }

    fn visit(&mut self, id: NodeId) -> Expr {
        let id = self.unnest(id);
        let node = &self.nodes[id];
        if self.too_deep || self.builder.is_exhausted() {
            return self.builder.unspecified(NOWHERE);
        }
        let counts = matches!(
            node.rule,
            GrammarRule::Expr | GrammarRule::Relation | GrammarRule::Calc | GrammarRule::Member
        );
        self.depth += usize::from(counts);
        self.too_deep = self.depth > self.builder.options.max_recursion_depth;
        let expr = match node.rule {
            GrammarRule::Expr => self.visit_conditional(node),
            GrammarRule::Or => self.visit_logical(node, operators::LOGICAL_OR),
            GrammarRule::And => self.visit_logical(node, operators::LOGICAL_AND),
            GrammarRule::Relation | GrammarRule::Calc => self.visit_binary(node),
            GrammarRule::Unary => self.visit_unary(node),
            GrammarRule::Member => self.visit_member(node),
            GrammarRule::Primary => self.visit_primary(node),
            GrammarRule::Literal if node.alternative != 0 => self.visit_literal(node),
            _ => self.builder.unspecified(NOWHERE),
        };
        self.depth -= usize::from(counts);
        expr
    }

    fn visit_conditional(&mut self, node: &SyntaxNode) -> Expr {
        let condition = self.visit_child(node, 0);
        let id = self.label_id(node, Label::Op);
        let args = vec![condition, self.visit_child(node, 1), self.visit_child(node, 2)];
        global_call(id, operators::CONDITIONAL, args)
    }

    fn label_id(&mut self, node: &SyntaxNode, label: Label) -> ExprId {
        let place = node.label(label).map_or_else(|| node_range(node), range);
        self.builder.id(place)
    }

    fn visit_logical(&mut self, node: &SyntaxNode, operator: &str) -> Expr {
        let mut terms = vec![self.visit_child(node, 0)];
        let mut ids = Vec::new();
        for (index, token) in node.all(Label::Op).enumerate() {
            if node.children.len() < index + 2 {
                let wanted = if operator == operators::LOGICAL_OR { "||" } else { "&&" };
                let message = format!("unexpected character, wanted '{wanted}'");
                return self.builder.error(node_range(node), message);
            }
            terms.push(self.visit_child(node, index + 1));
            ids.push(self.builder.id(range(token)));
        }
        let mut terms = terms.into_iter();
        let first = terms.next();
        let rest = ids.into_iter().zip(terms).collect::<Vec<_>>();
        match first {
            Some(first) => balance(operator, first, rest),
            None => self.builder.unspecified(node_range(node)),
        }
    }

    fn visit_binary(&mut self, node: &SyntaxNode) -> Expr {
        let left = self.visit_child(node, 0);
        let operator = node.label(Label::Op).map_or("", |token| self.str(token));
        let id = self.label_id(node, Label::Op);
        let right = self.visit_child(node, 1);
        let function =
            if operator == "in" { operators::IN.to_owned() } else { format!("_{operator}_") };
        global_call(id, &function, vec![left, right])
    }

    fn visit_unary(&mut self, node: &SyntaxNode) -> Expr {
        if node.alternative == 0 {
            return self.builder.unspecified(node_range(node));
        }
        if node.all(Label::Op).count().is_multiple_of(2) {
            return self.visit_child(node, 0);
        }
        let id = self.label_id(node, Label::Op);
        let operand = self.visit_child(node, 0);
        let function =
            if node.alternative == 2 { operators::LOGICAL_NOT } else { operators::NEGATE };
        global_call(id, function, vec![operand])
    }

    fn visit_member(&mut self, node: &SyntaxNode) -> Expr {
        let operand = self.visit_child(node, 0);
        match node.alternative {
            1 => self.visit_select(node, operand),
            2 => {
                let Some(name) = node.label(Label::Id) else {
                    return self.builder.unspecified(node_range(node));
                };
                let id = self.label_id(node, Label::Open);
                let args = self.visit_arguments(node, 1);
                let name = self.str(name);
                macros::call(&mut self.builder, id, name, Some(operand), args)
            }
            _ => self.visit_index(node, operand),
        }
    }

    fn visit_select(&mut self, node: &SyntaxNode, operand: Expr) -> Expr {
        let (Some(op), Some(name)) = (node.label(Label::Op), node.children.get(1)) else {
            return self.builder.unspecified(node_range(node));
        };
        let name = &self.nodes[*name];
        let field = self.field_name(name).unwrap_or_else(|message| {
            self.builder.error(node_range(name), message);
            String::new()
        });
        if node.label(Label::Opt).is_none() {
            let select = Select { operand, field, test_only: false };
            return Expr {
                id: self.builder.id(range(op)),
                kind: ExprKind::Select(Box::new(select)),
            };
        }
        if !self.builder.options.optional_syntax {
            return self.builder.error(range(op), "unsupported syntax '.?'");
        }
        let kind = ExprKind::Literal(Literal::String(field));
        let field = Expr { id: self.builder.id(node_range(name)), kind };
        global_call(self.builder.id(range(op)), operators::OPTIONAL_SELECT, vec![operand, field])
    }

    /// Name of an `escapeIdent` node. Kubernetes does not turn names in backticks on.
    fn field_name(&self, node: &SyntaxNode) -> Result<String, &'static str> {
        match (node.alternative, node.label(Label::Id)) {
            (1, Some(token)) => Ok(self.str(token).to_owned()),
            (2, _) => Err("unsupported syntax: '`'"),
            _ => Err("unsupported ident kind"),
        }
    }

    fn visit_index(&mut self, node: &SyntaxNode, operand: Expr) -> Expr {
        let Some(op) = node.label(Label::Op) else {
            return self.builder.unspecified(node_range(node));
        };
        let id = self.builder.id(range(op));
        let index = self.visit_child(node, 1);
        let mut function = operators::INDEX;
        if node.label(Label::Opt).is_some() {
            if !self.builder.options.optional_syntax {
                return self.builder.error(range(op), "unsupported syntax '[?'");
            }
            function = operators::OPTIONAL_INDEX;
        }
        global_call(id, function, vec![operand, index])
    }

    fn visit_arguments(&mut self, node: &SyntaxNode, index: usize) -> Vec<Expr> {
        let list = node.children.get(index).map(|id| &self.nodes[*id]);
        let children = list.map_or(&[][..], |list| &list.children);
        children.iter().map(|child| self.visit(*child)).collect()
    }

    fn visit_primary(&mut self, node: &SyntaxNode) -> Expr {
        match node.alternative {
            1 | 2 => self.visit_name(node),
            4 => self.visit_list(node),
            5 => {
                let id = self.label_id(node, Label::Op);
                let entries = self.visit_entries(node);
                Expr { id, kind: ExprKind::Map(entries) }
            }
            6 => self.visit_struct(node),
            _ => self.builder.unspecified(NOWHERE),
        }
    }

    fn visit_name(&mut self, node: &SyntaxNode) -> Expr {
        let Some(token) = node.label(Label::Id) else {
            return self.builder.unspecified(node_range(node));
        };
        let name = self.str(token);
        if identifiers::is_reserved(name) {
            return self.builder.error(node_range(node), format!("reserved identifier: {name}"));
        }
        let dot = node.label(Label::LeadingDot).map_or("", |_| ".");
        let full = format!("{dot}{name}");
        if node.alternative == 1 {
            return Expr { id: self.builder.id(range(token)), kind: ExprKind::Ident(full) };
        }
        let id = self.label_id(node, Label::Op);
        let args = self.visit_arguments(node, 0);
        macros::call(&mut self.builder, id, &full, None, args)
    }

    fn visit_list(&mut self, node: &SyntaxNode) -> Expr {
        let id = self.label_id(node, Label::Op);
        let mut list = List::default();
        let items = node.children.first().map_or(&[][..], |id| &self.nodes[*id].children);
        for (index, item) in items.iter().enumerate() {
            let item = &self.nodes[*item];
            let element = self.visit_child(item, 0);
            list.elements.push(element);
            if let Some(question) = item.label(Label::Opt) {
                if self.builder.options.optional_syntax {
                    list.optional.push(index);
                } else {
                    self.builder.error(range(question), "unsupported syntax '?'");
                }
            }
        }
        Expr { id, kind: ExprKind::List(list) }
    }

    /// Reports an optional entry where the syntax is off.
    fn refuses_optional(&mut self, node: &SyntaxNode) -> bool {
        let refused = node.label(Label::Opt).is_some() && !self.builder.options.optional_syntax;
        if refused {
            self.builder.error(node_range(node), "unsupported syntax '?'");
        }
        refused
    }

    fn visit_entries(&mut self, node: &SyntaxNode) -> Vec<MapEntry> {
        let Some(list) = node.children.first().map(|id| &self.nodes[*id]) else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        for (index, colon) in list.all(Label::Colon).enumerate() {
            let id = self.builder.id(range(colon));
            let (Some(key), Some(value)) =
                (list.children.get(2 * index), list.children.get(2 * index + 1))
            else {
                return Vec::new();
            };
            let key = &self.nodes[*key];
            if self.refuses_optional(key) {
                continue;
            }
            let is_optional = key.label(Label::Opt).is_some();
            let key = self.visit_child(key, 0);
            entries.push(MapEntry { id, key, value: self.visit(*value), is_optional });
        }
        entries
    }

    fn visit_struct(&mut self, node: &SyntaxNode) -> Expr {
        let names: Vec<&str> = node.all(Label::Id).map(|token| self.str(token)).collect();
        let dot = node.label(Label::LeadingDot).map_or("", |_| ".");
        let type_name = format!("{dot}{}", names.join("."));
        let id = self.label_id(node, Label::Op);
        let mut fields = Vec::new();
        if let Some(list) = node.children.first().map(|id| &self.nodes[*id]) {
            for (index, colon) in list.all(Label::Colon).enumerate() {
                let (Some(key), Some(value)) =
                    (list.children.get(2 * index), list.children.get(2 * index + 1))
                else {
                    break;
                };
                let id = self.builder.id(range(colon));
                let key = &self.nodes[*key];
                if self.refuses_optional(key) {
                    continue;
                }
                let Some(name) = key.children.first().map(|id| &self.nodes[*id]) else { break };
                match self.field_name(name) {
                    Ok(name) => {
                        let is_optional = key.label(Label::Opt).is_some();
                        fields.push(StructField {
                            id,
                            name,
                            value: self.visit(*value),
                            is_optional,
                        });
                    }
                    Err(message) => {
                        self.builder.error(node_range(list), message);
                    }
                }
            }
        }
        Expr { id, kind: ExprKind::Struct(Struct { type_name, fields }) }
    }

    fn visit_literal(&mut self, node: &SyntaxNode) -> Expr {
        let place = node_range(node);
        let Some(token) = node.label(Label::Id) else {
            return self.builder.unspecified(place);
        };
        let text = self.str(token);
        let sign = node.label(Label::Sign).map_or("", |_| "-");
        let value = match node.alternative {
            1 => literals::int(sign, text).ok_or("invalid int literal"),
            2 => literals::uint(text).ok_or("invalid uint literal"),
            3 => literals::double(sign, text).ok_or("invalid double literal"),
            4 => literals::unquote(text, false)
                .map(|bytes| Literal::String(String::from_utf8_lossy(&bytes).into_owned())),
            5 => literals::unquote(text.get(1..).unwrap_or_default(), true).map(Literal::Bytes),
            6 => Ok(Literal::Bool(true)),
            7 => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        match value {
            Ok(value) => Expr { id: self.builder.id(place), kind: ExprKind::Literal(value) },
            Err(message) => self.builder.error(place, message),
        }
    }
}

/// A balanced tree of a chain of logical operators: less deep than the chain, and equal in value.
fn balance(operator: &str, first: Expr, mut rest: Vec<(ExprId, Expr)>) -> Expr {
    if rest.is_empty() {
        return first;
    }
    let mut right = rest.split_off(rest.len() / 2);
    let (id, term) = right.remove(0);
    let left = balance(operator, first, rest);
    global_call(id, operator, vec![left, balance(operator, term, right)])
}
