//! `every SKIP LABELS FILE...` rewrites each file so that all mutants are in a single program, and
//! at most a single mutant is alive, chosen by the environment: `a < b` becomes
//! `if mutants::is(7) { a <= b } else { a < b }`. All mutants share a build, instead of a build for
//! each.
//!
//! `LABELS` gets a line for each mutant: number, file, function, change, and place. The function is
//! named by the path in the file, and a change by kind and number among the changes of this kind in
//! the function: no label has a text of the source. `SKIP` holds the labels (file, function,
//! change) of the mutants that do not compile.

mod rules;

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::{env, fs};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Attribute, Block, Expr, ExprBinary, ExprMatch, ExprUnary, ImplItemConst, ImplItemFn,
    ItemConst, ItemFn, ItemImpl, ItemMod, ItemStatic, ItemTrait, Macro, Pat, Signature, Stmt,
    Token, TraitItemFn, Type, UnOp, parse_quote,
};

#[derive(Default)]
struct Mutator {
    file: String,
    /// The modules, types and functions around the current place.
    scope: Vec<String>,
    skipped: HashSet<String>,
    /// Number of times that each change was seen in a function: a label stays when lines move.
    seen: HashMap<String, u32>,
    labels: String,
    count: usize,
}

impl Mutator {
    /// The condition that a change is alive, unless the change is skipped.
    fn change(&mut self, at: Span, change: &str) -> Option<TokenStream> {
        let label = format!("{}\t{}\t{change}", self.file, self.scope.join("::"));
        let seen = self.seen.entry(label.clone()).or_default();
        *seen += 1;
        let label = if *seen > 1 { format!("{label} #{seen}") } else { label };
        if self.skipped.contains(&label) {
            return None;
        }
        self.count += 1;
        let (number, start) = (self.count, at.start());
        let _ = writeln!(self.labels, "{number}\t{label}\t{}:{}", start.line, start.column + 1);
        Some(quote!(crate::mutants::is(#number)))
    }

    fn function(&mut self, signature: &Signature, block: &mut Block) {
        if signature.constness.is_some() {
            return;
        }
        self.scope.push(signature.ident.to_string());
        visit_mut::visit_block_mut(self, block);
        if !block.stmts.is_empty() {
            let mut first = Vec::new();
            for value in rules::values(&signature.output) {
                if rules::is_just(block, &value) {
                    continue;
                }
                let change = format!("return {value}");
                if let Some(is_alive) = self.change(signature.ident.span(), &change) {
                    let stmt: Stmt = parse_quote!(if #is_alive { return #value; });
                    first.push(stmt);
                }
            }
            block.stmts.splice(0..0, first);
        }
        self.scope.pop();
    }

    fn binary(&mut self, old: &ExprBinary, new: &ExprBinary) -> Option<Expr> {
        let mut branches = TokenStream::new();
        let (left, right) = (&old.left, &old.right);
        for op in rules::others(&old.op) {
            let change = format!("{} for {}", op.to_token_stream(), old.op.to_token_stream());
            if let Some(is_alive) = self.change(old.op.span(), &change) {
                branches.extend(quote!(if #is_alive { #left #op #right } else));
            }
        }
        (!branches.is_empty()).then(|| parse_quote!((#branches { #new })))
    }

    fn not(&mut self, old: &ExprUnary, new: &ExprUnary) -> Option<Expr> {
        let is_alive = self.change(old.op.span(), "no !")?;
        let inner = &old.expr;
        Some(parse_quote!((if #is_alive { #inner } else { #new })))
    }

    fn arms(&mut self, arms: &mut ExprMatch) {
        let is_wild = |arm: &Arm| arm.guard.is_none() && matches!(arm.pat, Pat::Wild(_));
        let has_rest = arms.arms.last().is_some_and(is_wild);
        for arm in arms.arms.iter_mut().filter(|arm| !is_wild(arm)) {
            let at = arm.pat.span();
            let guard = match arm.guard.take() {
                Some((_, guard)) if rules::has_let(&guard) => Some(*guard),
                Some((_, guard)) => {
                    let mut guard = *guard;
                    if let Some(is_alive) = self.change(at, "a guard that holds") {
                        guard = parse_quote!((#is_alive || #guard));
                    }
                    if let Some(is_alive) = self.change(at, "a guard that does not hold") {
                        guard = parse_quote!((!#is_alive && #guard));
                    }
                    Some(guard)
                }
                None if has_rest => {
                    self.change(at, "without an arm").map(|is_alive| parse_quote!(!#is_alive))
                }
                None => None,
            };
            arm.guard = guard.map(|guard| (Token![if](Span::call_site()), Box::new(guard)));
        }
    }
}

impl VisitMut for Mutator {
    fn visit_item_mod_mut(&mut self, item: &mut ItemMod) {
        if !rules::is_for_tests(&item.attrs) {
            self.scope.push(item.ident.to_string());
            visit_mut::visit_item_mod_mut(self, item);
            self.scope.pop();
        }
    }

    fn visit_item_trait_mut(&mut self, item: &mut ItemTrait) {
        self.scope.push(item.ident.to_string());
        visit_mut::visit_item_trait_mut(self, item);
        self.scope.pop();
    }

    fn visit_item_impl_mut(&mut self, item: &mut ItemImpl) {
        let name = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !name.is_some_and(|name| name.ident == "Debug") && !rules::is_for_tests(&item.attrs) {
            self.scope.push(rules::name_of(&item.self_ty));
            visit_mut::visit_item_impl_mut(self, item);
            self.scope.pop();
        }
    }

    fn visit_item_fn_mut(&mut self, item: &mut ItemFn) {
        if !rules::is_for_tests(&item.attrs) {
            self.function(&item.sig, &mut item.block);
        }
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut ImplItemFn) {
        if !rules::is_for_tests(&item.attrs) {
            self.function(&item.sig, &mut item.block);
        }
    }

    fn visit_trait_item_fn_mut(&mut self, item: &mut TraitItemFn) {
        if let Some(block) = &mut item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // A single mutant is alive at a time: the parts of a mutant are unchanged.
        let old = expr.clone();
        visit_mut::visit_expr_mut(self, expr);
        let changed = match (&old, &mut *expr) {
            (Expr::Binary(old_binary), Expr::Binary(new)) if !rules::has_let(&old) => {
                self.binary(old_binary, new)
            }
            (Expr::Unary(old), Expr::Unary(new)) if matches!(old.op, UnOp::Not(_)) => {
                self.not(old, new)
            }
            (_, Expr::Match(arms)) => {
                self.arms(arms);
                None
            }
            _ => None,
        };
        if let Some(changed) = changed {
            *expr = changed;
        }
    }

    // Conditions that the compiler decides, and those that are no expression.
    fn visit_item_const_mut(&mut self, _: &mut ItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut ItemStatic) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut ImplItemConst) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
    fn visit_macro_mut(&mut self, _: &mut Macro) {}
}

fn main() {
    let mut words = env::args().skip(1);
    let (skipped, labels) = (words.next().expect("SKIP"), words.next().expect("LABELS"));
    let skipped = fs::read_to_string(skipped).unwrap_or_default();
    let mut mutator =
        Mutator { skipped: skipped.lines().map(str::to_owned).collect(), ..Mutator::default() };
    for path in words {
        let text = fs::read_to_string(&path).expect("a file of the source");
        let mut file = syn::parse_file(&text).expect("it compiles");
        mutator.file.clone_from(&path);
        mutator.visit_file_mut(&mut file);
        fs::write(&path, file.to_token_stream().to_string()).expect("a copy may be written");
    }
    fs::write(labels, &mutator.labels).expect("the labels can be written");
}
