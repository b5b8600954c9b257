//! Expansion of macros while the tree is built.

use super::ast::{
    Call, Comprehension, Expr, ExprId, ExprKind, List, Literal, OffsetRange, Select,
    operators as op,
};
use super::parser::Builder;

/// Name of the function that adds entries to the accumulated map.
const MAP_INSERT: &str = "cel.@mapInsert";

struct MacroError {
    at: ExprId,
    message: String,
}

type Expansion = Result<Expr, MacroError>;

/// A call, or the expansion of the macro that the call names. `id` is the number of the call.
pub(super) fn call(
    b: &mut Builder<'_>,
    id: ExprId,
    name: &str,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Expr {
    let is_known = is_macro(b, name, target.is_some(), args.len())
        || is_binding(b, name, target.as_ref(), args.len());
    if b.is_exhausted() || !is_known {
        let call = Call { function: name.to_owned(), target, args };
        return Expr { id, kind: ExprKind::Call(Box::new(call)) };
    }
    let start = b.position(id).start;
    let mut expander = Expander { b, at: OffsetRange { start, end: start } };
    let expanded = match target {
        None => expander.has(args),
        Some(target) => expander.member(name, target, args),
    };
    match expanded {
        Ok(expr) => {
            b.delete_id(id);
            expr
        }
        Err(error) => {
            let place = b.position(error.at);
            b.delete_id(id);
            b.error(place, error.message)
        }
    }
}

fn is_macro(b: &Builder<'_>, name: &str, is_member: bool, args: usize) -> bool {
    let two = b.options.two_variable_comprehensions;
    match (is_member, name, args) {
        (false, "has", 1) => true,
        // `existsOne` with one variable is no macro of the environment that Kubernetes builds.
        (true, "all" | "exists" | "exists_one" | "map" | "filter", 2) => true,
        (true, "map", 3) => true,
        (true, "all" | "exists" | "exists_one" | "existsOne", 3) => two,
        (true, "transformList" | "transformMap" | "transformMapEntry", 3 | 4) => two,
        (true, "sortBy", 2) => true,
        (true, "optMap" | "optFlatMap", 2) => b.options.optional_syntax,
        _ => false,
    }
}

/// Whether a call is `cel.bind`.
fn is_binding(b: &Builder<'_>, name: &str, target: Option<&Expr>, args: usize) -> bool {
    b.options.bindings && (name, args) == ("bind", 3) && target.and_then(ident_of) == Some("cel")
}

struct Expander<'b, 'o> {
    b: &'b mut Builder<'o>,
    at: OffsetRange,
}

fn ident_of(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name),
        _ => None,
    }
}

impl Expander<'_, '_> {
    fn new_expr(&mut self, kind: ExprKind) -> Expr {
        Expr { id: self.b.id(self.at), kind }
    }

    fn literal(&mut self, value: Literal) -> Expr {
        self.new_expr(ExprKind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.new_expr(ExprKind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(op::ACCUMULATOR)
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.new_expr(ExprKind::List(List { elements, optional: Vec::new() }))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        let call = Call { function: function.to_owned(), target: None, args };
        self.new_expr(ExprKind::Call(Box::new(call)))
    }

    fn method(&mut self, function: &str, target: Expr) -> Expr {
        let call = Call { function: function.to_owned(), target: Some(target), args: Vec::new() };
        self.new_expr(ExprKind::Call(Box::new(call)))
    }

    fn has(&mut self, args: Vec<Expr>) -> Expansion {
        let Some(arg) = args.into_iter().next() else {
            return Err(MacroError {
                at: ExprId(0),
                message: "invalid argument to has() macro".into(),
            });
        };
        match arg.kind {
            ExprKind::Select(select) => {
                let Select { operand, field, .. } = *select;
                Ok(self.new_expr(ExprKind::Select(Box::new(Select {
                    operand,
                    field,
                    test_only: true,
                }))))
            }
            _ => Err(MacroError { at: arg.id, message: "invalid argument to has() macro".into() }),
        }
    }

    fn member(&mut self, name: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let second = args.len() > 3 || args.len() == 3 && name != "map";
        if name == "sortBy" {
            return self.sort_by(target, args);
        }
        if name == "bind" {
            return self.binding(args);
        }
        let is_optional = matches!(name, "optMap" | "optFlatMap");
        let body = args.split_off(if second { 2 } else { 1 });
        if is_optional {
            return self.optional(name, target, args, body);
        }
        let variables = self.variables(name, &args)?;
        let (init, condition, step, result) = self.fold(name, &variables, &args, body);
        let mut variables = variables.into_iter();
        let comprehension = Comprehension {
            range: target,
            variable: variables.next().unwrap_or_default(),
            second_variable: variables.next(),
            accumulator: op::ACCUMULATOR.to_owned(),
            init,
            condition,
            step,
            result,
        };
        Ok(self.new_expr(ExprKind::Comprehension(Box::new(comprehension))))
    }

    fn variables(&mut self, name: &str, args: &[Expr]) -> Result<Vec<String>, MacroError> {
        let message = match name {
            "map" | "filter" => "argument is not an identifier",
            _ => "argument must be a simple name",
        };
        let mut names = Vec::new();
        for arg in args {
            let found =
                ident_of(arg).ok_or_else(|| MacroError { at: arg.id, message: message.into() })?;
            names.push(found.to_owned());
        }
        if let ([first, second], [_, arg]) = (names.as_slice(), args)
            && first == second
        {
            return Err(MacroError {
                at: arg.id,
                message: format!("duplicate variable name: {first}"),
            });
        }
        for (name, arg) in names.iter().zip(args) {
            if name == op::ACCUMULATOR || name == "__result__" {
                let message = "iteration variable overwrites accumulator variable".to_owned();
                return Err(MacroError { at: arg.id, message });
            }
        }
        Ok(names)
    }

    /// Init, condition, step and result of a comprehension; numbers go out in this order.
    fn fold(
        &mut self,
        name: &str,
        vars: &[String],
        args: &[Expr],
        body: Vec<Expr>,
    ) -> (Expr, Expr, Expr, Expr) {
        match name {
            "all" | "exists" => self.quantifier(name == "all", body),
            "exists_one" | "existsOne" => self.exactly_one(body),
            _ => self.collect(name, vars, args, body),
        }
    }

    fn quantifier(&mut self, all: bool, body: Vec<Expr>) -> (Expr, Expr, Expr, Expr) {
        let init = self.literal(Literal::Bool(all));
        let mut condition = self.accumulator();
        if !all {
            condition = self.call(op::LOGICAL_NOT, vec![condition]);
        }
        let condition = self.call(op::NOT_STRICTLY_FALSE, vec![condition]);
        let mut operands = vec![self.accumulator()];
        operands.extend(body);
        let step = self.call(if all { op::LOGICAL_AND } else { op::LOGICAL_OR }, operands);
        (init, condition, step, self.accumulator())
    }

    fn exactly_one(&mut self, body: Vec<Expr>) -> (Expr, Expr, Expr, Expr) {
        let init = self.literal(Literal::Int(0));
        let condition = self.literal(Literal::Bool(true));
        let sum = vec![self.accumulator(), self.literal(Literal::Int(1))];
        let mut branches = body;
        branches.push(self.call(op::ADD, sum));
        branches.push(self.accumulator());
        let step = self.call(op::CONDITIONAL, branches);
        let sides = vec![self.accumulator(), self.literal(Literal::Int(1))];
        (init, condition, step, self.call(op::EQUALS, sides))
    }

    fn collect(
        &mut self,
        name: &str,
        vars: &[String],
        args: &[Expr],
        body: Vec<Expr>,
    ) -> (Expr, Expr, Expr, Expr) {
        let is_map = name.starts_with("transformMap");
        let mut body = body.into_iter();
        let (filter, value) = match (name, body.len()) {
            // The element itself is collected: the tree holds the variable's expression, with its
            // number.
            ("filter", _) => (body.next(), args.first().cloned()),
            (_, 2) => (body.next(), body.next()),
            _ => (None, body.next()),
        };
        // Two-variable macros build the step before init and condition; the others after.
        let early = vars.len() == 2;
        let mut step = early.then(|| self.collect_step(name, vars, filter.clone(), value.clone()));
        let init =
            if is_map { self.new_expr(ExprKind::Map(Vec::new())) } else { self.list(Vec::new()) };
        let condition = self.literal(Literal::Bool(true));
        let step = step.take().unwrap_or_else(|| self.collect_step(name, vars, filter, value));
        (init, condition, step, self.accumulator())
    }

    fn collect_step(
        &mut self,
        name: &str,
        vars: &[String],
        filter: Option<Expr>,
        value: Option<Expr>,
    ) -> Expr {
        let mut operands = vec![self.accumulator()];
        let function = match name {
            "transformMap" => {
                operands.push(self.ident(vars.first().map_or("", String::as_str)));
                operands.extend(value);
                MAP_INSERT
            }
            "transformMapEntry" => {
                operands.extend(value);
                MAP_INSERT
            }
            _ => {
                operands.push(self.list(value.into_iter().collect()));
                op::ADD
            }
        };
        let step = self.call(function, operands);
        match filter {
            Some(filter) => {
                let branches = vec![filter, step, self.accumulator()];
                self.call(op::CONDITIONAL, branches)
            }
            None => step,
        }
    }

    /// `list.sortBy(e, key)`: the keys are computed for a variable that is bound to the list once.
    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Expansion {
        const INPUT: &str = "@__sortBy_input__";
        let input = self.ident(INPUT);
        if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct(_)) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                           select expression";
            return Err(MacroError { at: target.id, message: message.into() });
        }
        let range = self.ident(INPUT);
        let keys = self.member("map", range, args)?;
        let receiver = self.ident(INPUT);
        let call = Call {
            function: "@sortByAssociatedKeys".to_owned(),
            target: Some(receiver),
            args: vec![keys],
        };
        let result = self.new_expr(ExprKind::Call(Box::new(call)));
        let comprehension = Comprehension {
            range: self.list(Vec::new()),
            variable: "#unused".to_owned(),
            second_variable: None,
            accumulator: INPUT.to_owned(),
            init: target,
            condition: self.literal(Literal::Bool(false)),
            step: input,
            result,
        };
        Ok(self.new_expr(ExprKind::Comprehension(Box::new(comprehension))))
    }

    /// `cel.bind(name, value, expression)`: the expression with a name for a value.
    fn binding(&mut self, args: Vec<Expr>) -> Expansion {
        let Ok([variable, value, result]) = <[Expr; 3]>::try_from(args) else {
            let message = "cel.bind() takes three arguments".to_owned();
            return Err(MacroError { at: ExprId(0), message });
        };
        let Some(name) = ident_of(&variable).map(str::to_owned) else {
            let message = "cel.bind() variable names must be simple identifiers".to_owned();
            return Err(MacroError { at: variable.id, message });
        };
        let comprehension = Comprehension {
            range: self.list(Vec::new()),
            variable: "#unused".to_owned(),
            second_variable: None,
            accumulator: name.clone(),
            init: value,
            condition: self.literal(Literal::Bool(false)),
            step: self.ident(&name),
            result,
        };
        Ok(self.new_expr(ExprKind::Comprehension(Box::new(comprehension))))
    }

    fn optional(
        &mut self,
        name: &str,
        target: Expr,
        args: Vec<Expr>,
        body: Vec<Expr>,
    ) -> Expansion {
        let (Some(variable), Some(result)) = (args.into_iter().next(), body.into_iter().next())
        else {
            return Ok(target);
        };
        let Some(variable_name) = ident_of(&variable).map(str::to_owned) else {
            let message = format!("{name}() variable name must be a simple identifier");
            return Err(MacroError { at: variable.id, message });
        };
        let mut copy = target.clone();
        let has_value = self.method("hasValue", target);
        let range = self.list(Vec::new());
        self.renumber(&mut copy);
        let comprehension = Comprehension {
            range,
            variable: "#unused".to_owned(),
            second_variable: None,
            accumulator: variable_name.clone(),
            init: self.method("value", copy),
            condition: self.literal(Literal::Bool(false)),
            step: self.ident(&variable_name),
            result,
        };
        let mut value = self.new_expr(ExprKind::Comprehension(Box::new(comprehension)));
        if name == "optMap" {
            value = self.call("optional.of", vec![value]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(op::CONDITIONAL, vec![has_value, value, none]))
    }

    /// Gives a copy new numbers: the expression first, then its parts.
    fn renumber(&mut self, expr: &mut Expr) {
        if self.b.is_exhausted() {
            return;
        }
        let range = self.b.position(expr.id);
        expr.id = self.b.id(range);
        match &mut expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => self.renumber(&mut select.operand),
            ExprKind::Call(call) => {
                call.args.iter_mut().chain(&mut call.target).for_each(|part| self.renumber(part));
            }
            ExprKind::List(list) => list.elements.iter_mut().for_each(|part| self.renumber(part)),
            ExprKind::Map(entries) => {
                for entry in entries {
                    entry.id = self.b.id(self.at);
                    self.renumber(&mut entry.key);
                    self.renumber(&mut entry.value);
                }
            }
            ExprKind::Struct(literal) => {
                for field in &mut literal.fields {
                    field.id = self.b.id(self.at);
                    self.renumber(&mut field.value);
                }
            }
            ExprKind::Comprehension(c) => {
                let parts =
                    [&mut c.range, &mut c.init, &mut c.condition, &mut c.step, &mut c.result];
                parts.into_iter().for_each(|part| self.renumber(part));
            }
        }
    }
}
