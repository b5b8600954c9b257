//! The kinds of changes: those of cargo-mutants that compile most of the time.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, BinOp, Block, Expr, ReturnType, Stmt, Type, parse_quote};

/// Does the expression hold a `let`, whose names live on behind the expression?
pub(crate) fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

/// Is the item compiled for tests only?
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        attribute.path().is_ident("test")
            || text.contains("cfg (test")
            || text.contains("all (test")
    })
}

/// Does a function return only that value?
pub(crate) fn is_just(block: &Block, value: &TokenStream) -> bool {
    let [Stmt::Expr(expr, None)] = &block.stmts[..] else { return false };
    expr.to_token_stream().to_string() == value.to_string()
}

/// The last name in the path of a type, as read by `source.py`.
pub(crate) fn name_of(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        Type::Reference(reference) => Some(name_of(&reference.elem)),
        _ => None,
    }
    .unwrap_or_default()
}

/// Values that a function of that type could return instead.
pub(crate) fn values(output: &ReturnType) -> Vec<TokenStream> {
    let ReturnType::Type(_, ty) = output else { return vec![quote!(())] };
    let text = ty.to_token_stream().to_string();
    if text == "& str" || text == "& 'static str" {
        return vec![quote!("")];
    }
    let Type::Path(path) = &**ty else { return Vec::new() };
    let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    match name.as_str() {
        "bool" => vec![quote!(true), quote!(false)],
        "Option" => vec![quote!(None)],
        "Duration" => vec![quote!(std::time::Duration::ZERO)],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => vec![quote!(0), quote!(1)],
        "String" => vec![quote!(String::new())],
        "Result" if text.starts_with("Result < () ,") => vec![quote!(Ok(()))],
        _ => Vec::new(),
    }
}

/// Replacements of an operator.
pub(crate) fn others(op: &BinOp) -> Vec<BinOp> {
    macro_rules! ops {
        ($($op:tt),*) => { vec![$(parse_quote!($op)),*] };
    }
    match op {
        BinOp::Eq(_) => ops![!=],
        BinOp::Ne(_) => ops![==],
        BinOp::Lt(_) => ops![==, >, <=],
        BinOp::Gt(_) => ops![==, <, >=],
        BinOp::Le(_) => ops![>],
        BinOp::Ge(_) => ops![<],
        BinOp::And(_) => ops![||],
        BinOp::Or(_) => ops![&&],
        BinOp::Add(_) => ops![-],
        BinOp::Sub(_) => ops![+],
        BinOp::BitAnd(_) => ops![|],
        BinOp::BitOr(_) => ops![&],
        BinOp::BitXor(_) => ops![|],
        BinOp::Shl(_) => ops![>>],
        BinOp::Shr(_) => ops![<<],
        BinOp::AddAssign(_) => ops![-=],
        BinOp::SubAssign(_) => ops![+=],
        BinOp::BitOrAssign(_) => ops![&=],
        BinOp::BitAndAssign(_) => ops![|=],
        _ => Vec::new(),
    }
}
