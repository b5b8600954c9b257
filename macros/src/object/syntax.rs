//! The syntax of `object!`, as a tree.
//!
//! A fault in a field does not hide faults in others: the parser goes on behind the next comma.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, ExprUnary, Lit, LitStr, Pat, Token, Type, UnOp};

use super::names::rust_name;
use crate::errors::Errors;

/// `Deployment { … }`
#[derive(Debug)]
pub(super) struct ObjectLiteral {
    pub(super) ty: Type,
    pub(super) object: ObjectBody,
}

/// The inside of braces.
#[derive(Debug, Default)]
pub(super) struct ObjectBody {
    pub(super) entries: Vec<ObjectEntry>,
    /// `..base`
    pub(super) base: Option<Expr>,
}

#[derive(Debug)]
pub(super) enum ObjectEntry {
    Field(ObjectField),
    If(If<Vec<ObjectEntry>>),
    For(For<Vec<ObjectEntry>>),
}

/// `name: value`
#[derive(Debug)]
pub(super) struct ObjectField {
    pub(super) name: ObjectFieldName,
    /// `name?: value`: an option, and nothing happens for `None`.
    pub(super) if_some: bool,
    pub(super) value: LiteralValue,
}

#[derive(Debug)]
pub(super) enum ObjectFieldName {
    /// The name of a field, or a key of a map that looks like a field's name.
    Word {
        /// As written.
        text: String,
        /// The field in Rust.
        ident: Ident,
    },
    /// A key of a map.
    Text(LitStr),
    /// A key of a map that is computed.
    Expr(Expr),
}

#[derive(Debug)]
pub(super) enum LiteralValue {
    Object(Span, ObjectBody),
    List(Span, Vec<ListItem>),
    /// A literal without suffix, which becomes the type that the field has.
    Integer(Expr),
    /// A literal with a fraction and without suffix.
    Fraction(Expr),
    /// `None`, which says nothing about the type.
    None(Span),
    /// A text in the `data` of a type that is called `Secret`, which may be one of bytes.
    Text(Expr),
    Expr(Expr),
}

#[derive(Debug)]
pub(super) enum ListItem {
    Value(LiteralValue),
    /// `..values`
    Spread(Expr),
    If(If<Vec<ListItem>>),
    For(For<Vec<ListItem>>),
}

#[derive(Debug)]
pub(super) struct If<B> {
    pub(super) condition: Expr,
    pub(super) then: B,
    pub(super) otherwise: Option<Else<B>>,
}

#[derive(Debug)]
pub(super) enum Else<B> {
    If(Box<If<B>>),
    Body(B),
}

#[derive(Debug)]
pub(super) struct For<B> {
    pub(super) span: Span,
    pub(super) pattern: Pat,
    pub(super) values: Expr,
    pub(super) body: B,
}

impl ObjectLiteral {
    /// Parses the input of the macro; `None` if not even a type is there.
    pub(super) fn parse(input: TokenStream, errors: &mut Errors) -> Option<Self> {
        let parser = |input: ParseStream<'_>| {
            let ty: Type = input.parse().map_err(|error| {
                syn::Error::new(error.span(), "begin with the type: `object!(Deployment { … })`")
            })?;
            if !input.peek(syn::token::Brace) {
                let text = format!(
                    "write the fields of `{0}` in braces: `{0} {{ … }}`",
                    quote::quote!(#ty)
                );
                return Err(syn::Error::new(ty.span(), text));
            }
            let object = braces(input, errors, object)?;
            if !input.is_empty() {
                errors.at(input.span(), "nothing follows the object");
                skip(input, |_| false);
            }
            Ok(Self { ty, object })
        };
        let parsed = parser.parse2(input);
        errors.keep(parsed)
    }
}

/// Parses the inside of braces with `inside`, which leaves nothing behind.
fn braces<T>(
    input: ParseStream<'_>,
    errors: &mut Errors,
    inside: impl FnOnce(ParseStream<'_>, &mut Errors) -> T,
) -> syn::Result<T> {
    let content;
    syn::braced!(content in input);
    Ok(inside(&content, errors))
}

/// Skips tokens until a token for which `ends` holds.
fn skip(input: ParseStream<'_>, ends: impl Fn(ParseStream<'_>) -> bool) {
    while !input.is_empty() && !ends(input) {
        // A token tree is always there: the input is not empty.
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

/// Parses elements with commas between them. Behind a fault the next comma is looked for.
fn separated<T>(
    input: ParseStream<'_>,
    errors: &mut Errors,
    element: impl Fn(ParseStream<'_>, &mut Errors) -> syn::Result<(Option<T>, bool)>,
) -> Vec<T> {
    let mut elements = Vec::new();
    while !input.is_empty() {
        let needs_comma = match element(input, errors) {
            Ok((parsed, needs_comma)) => {
                elements.extend(parsed);
                needs_comma
            }
            Err(fault) => {
                errors.add(fault);
                skip(input, |input| input.peek(Token![,]));
                true
            }
        };
        if input.is_empty() {
            break;
        }
        if input.peek(Token![,]) {
            let _: syn::Result<Token![,]> = input.parse();
        } else if needs_comma {
            errors.at(input.span(), "expected `,`");
            skip(input, |input| input.peek(Token![,]));
            let _: syn::Result<Token![,]> = input.parse();
        }
    }
    elements
}

/// Parses the fields of an object, and the value that the object starts from.
fn object(input: ParseStream<'_>, errors: &mut Errors) -> ObjectBody {
    let mut base = None;
    let entries = {
        let base = std::cell::RefCell::new(&mut base);
        separated(input, errors, |input, errors| {
            if !input.peek(Token![..]) {
                return entry(input, errors).map(|(entry, comma)| (Some(entry), comma));
            }
            let dots: Token![..] = input.parse()?;
            let value: Expr = input.parse()?;
            let is_last = input.is_empty() || input.peek(Token![,]) && input.peek2(syn::parse::End);
            if base.borrow_mut().replace(value).is_some() || !is_last {
                errors.at(dots.span(), "one `..value` may stand at the end");
            }
            Ok((None, true))
        })
    };
    ObjectBody { entries, base }
}

/// Parses the fields in the braces of an `if` or `for`.
fn entries(input: ParseStream<'_>, errors: &mut Errors) -> Vec<ObjectEntry> {
    let object = object(input, errors);
    if let Some(base) = object.base {
        errors.at(base.span(), "`..value` stands at the end of an object, not in its conditions");
    }
    object.entries
}

/// Parses a field, or fields under a condition; returns whether a comma has to follow.
fn entry(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<(ObjectEntry, bool)> {
    let is_name = input.peek2(Token![:]) || input.peek2(Token![?]);
    if input.peek(Token![if]) && !is_name {
        return Ok((ObjectEntry::If(if_(input, errors, entries)?), false));
    }
    if input.peek(Token![for]) && !is_name {
        return Ok((ObjectEntry::For(for_(input, errors, entries)?), false));
    }
    let name = name(input)?;
    let mark: Option<Token![?]> = input.parse()?;
    let shorthand = match &name {
        ObjectFieldName::Word { ident, .. } if mark.is_none() => {
            (input.is_empty() || input.peek(Token![,])).then(|| ident.clone())
        }
        _ => None,
    };
    let value = if let Some(ident) = shorthand {
        LiteralValue::Expr(syn::parse_quote!(#ident))
    } else {
        if !input.peek(Token![:]) {
            return Err(input.error("expected `: value` behind the name of a field"));
        }
        input.parse::<Token![:]>()?;
        if let Some(fault) = fields_without_braces(input, &name) {
            skip(input, |_| false);
            return Err(fault);
        }
        value(input, errors)?
    };
    if let (Some(mark), false) =
        (mark, matches!(value, LiteralValue::Expr(_) | LiteralValue::None(_)))
    {
        errors.at(mark.span(), "`?` is for values that are an `Option`");
    }
    Ok((ObjectEntry::Field(ObjectField { name, if_some: mark.is_some(), value }), true))
}

/// Reports fields that follow a name without braces around them, as in `metadata: name: "a"`.
fn fields_without_braces(input: ParseStream<'_>, name: &ObjectFieldName) -> Option<syn::Error> {
    let ObjectFieldName::Word { text, .. } = name else { return None };
    let is_name = input.peek(Ident::peek_any) && input.peek2(Token![:]) && !input.peek2(Token![::]);
    is_name.then(|| {
        let ahead = input.fork();
        let first = Ident::parse_any(&ahead).map(|it| it.to_string()).unwrap_or_default();
        input.error(format!(
            "the fields of `{text}` stand in braces of their own: `{text}: {{ {first}: … }}`"
        ))
    })
}

/// Parses the name of a field or the key of a map.
fn name(input: ParseStream<'_>) -> syn::Result<ObjectFieldName> {
    if input.peek(LitStr) {
        return Ok(ObjectFieldName::Text(input.parse()?));
    }
    if input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in input);
        return Ok(ObjectFieldName::Expr(content.parse()?));
    }
    let dollar: Option<Token![$]> = input.parse()?;
    if !input.peek(Ident::peek_any) {
        return Err(input.error(
            "expected the name of a field, a key as \"text\" or `(expression)`, `if`, `for` or `..`",
        ));
    }
    let first = Ident::parse_any(input)?;
    let mut span = first.span();
    let mut text = first.to_string();
    if let Some(raw) = text.strip_prefix("r#") {
        return Ok(ObjectFieldName::Word { text: raw.to_owned(), ident: first });
    }
    if dollar.is_some() {
        text.insert(0, '$');
    }
    // `x-kubernetes-list-type`
    while input.peek(Token![-]) {
        input.parse::<Token![-]>()?;
        let part = Ident::parse_any(input)?;
        text = format!("{text}-{part}");
        span = span.join(part.span()).unwrap_or(span);
    }
    let ident = Ident::new(&rust_name(&text), span);
    Ok(ObjectFieldName::Word { text, ident })
}

/// Parses a value: fields in braces, items in brackets, or an expression.
fn value(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<LiteralValue> {
    if input.peek(syn::token::Brace) {
        let span = input.span();
        return Ok(LiteralValue::Object(span, braces(input, errors, object)?));
    }
    if input.peek(syn::token::Bracket) && is_list(input) {
        let span = input.span();
        let content;
        syn::bracketed!(content in input);
        return Ok(LiteralValue::List(span, items(&content, errors)));
    }
    if input.is_empty() || input.peek(Token![,]) {
        return Err(input.error("expected a value"));
    }
    if input.peek(Token![-]) && input.peek2(Ident::peek_any) && input.peek3(Token![:]) {
        return Err(input.error("items stand in brackets: `[{ name: value }]`"));
    }
    let value: Expr = input.parse()?;
    if value.to_token_stream().to_string() == "null" {
        let message = "there is no `null`: leave the name out, or write `None`";
        return Err(syn::Error::new_spanned(value, message));
    }
    if let Some(method) = conversion(&value) {
        let message = "`object!` converts values by itself, so nothing says the type of `.into()`: leave it out, or name the \
                       type, as in `String::from(…)`";
        return Err(syn::Error::new(method.span(), message));
    }
    if let Some(number) = octal(&value) {
        let message = format!(
            "`{number}` is octal in YAML and decimal in Rust: write `0o{0}`, or `{0}` for the decimal number",
            number.trim_start_matches('0')
        );
        return Err(syn::Error::new_spanned(value, message));
    }
    Ok(expression(value))
}

/// Returns the text of an integer with a leading zero.
fn octal(value: &Expr) -> Option<String> {
    let Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) = value else { return None };
    let text = number.to_string();
    let digits = text.trim_start_matches('0');
    let is_octal = text.len() > digits.len() && digits.starts_with(|c: char| c.is_ascii_digit());
    is_octal.then_some(text)
}

/// Returns the method of `value.into()` and of `Some(value.into())`, whose type is unknown.
fn conversion(value: &Expr) -> Option<&Ident> {
    match value {
        Expr::MethodCall(call) if call.args.is_empty() && call.method == "into" => {
            Some(&call.method)
        }
        Expr::Call(call) if matches!(&*call.func, Expr::Path(it) if it.path.is_ident("Some")) => {
            call.args.first().and_then(conversion)
        }
        Expr::Paren(paren) => conversion(&paren.expr),
        _ => None,
    }
}

/// Whether the brackets are all of the value: `[1, 2].concat()` is an expression.
fn is_list(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    match ahead.parse::<TokenTree>() {
        Ok(TokenTree::Group(group)) => {
            group.delimiter() == Delimiter::Bracket && (ahead.is_empty() || ahead.peek(Token![,]))
        }
        _ => false,
    }
}

/// Returns the value of an expression: a literal without a type of its own, or any other
/// expression.
fn expression(expr: Expr) -> LiteralValue {
    let is_integer = |expr: &Expr| match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.suffix().is_empty(),
        _ => false,
    };
    let is_fraction = |expr: &Expr| match expr {
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.suffix().is_empty(),
        _ => false,
    };
    match &expr {
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr: number, .. }) if is_integer(number) => {
            LiteralValue::Integer(expr)
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr: number, .. }) if is_fraction(number) => {
            LiteralValue::Fraction(expr)
        }
        expr if is_fraction(expr) => LiteralValue::Fraction(expr.clone()),
        expr if is_integer(expr) => LiteralValue::Integer(expr.clone()),
        Expr::Path(path) if path.path.is_ident("None") => LiteralValue::None(path.span()),
        _ => LiteralValue::Expr(expr),
    }
}

/// Parses the items of a list.
fn items(input: ParseStream<'_>, errors: &mut Errors) -> Vec<ListItem> {
    separated(input, errors, |input, errors| {
        if input.peek(Token![..]) {
            input.parse::<Token![..]>()?;
            return Ok((Some(ListItem::Spread(input.parse()?)), true));
        }
        if input.peek(Token![if]) {
            return Ok((Some(ListItem::If(if_(input, errors, items)?)), false));
        }
        if input.peek(Token![for]) {
            return Ok((Some(ListItem::For(for_(input, errors, items)?)), false));
        }
        if input.peek(Ident::peek_any) && input.peek2(Token![:]) && !input.peek2(Token![::]) {
            let fault = input
                .error("the fields of an item stand in braces of their own: `[{ name: value }]`");
            skip(input, |_| false);
            return Err(fault);
        }
        Ok((Some(ListItem::Value(value(input, errors)?)), true))
    })
}

/// Parses `if condition { … } else { … }`.
fn if_<B>(
    input: ParseStream<'_>,
    errors: &mut Errors,
    body: fn(ParseStream<'_>, &mut Errors) -> B,
) -> syn::Result<If<B>> {
    input.parse::<Token![if]>()?;
    let condition = Expr::parse_without_eager_brace(input)?;
    let then = braces(input, errors, body)?;
    let mut otherwise = None;
    if input.peek(Token![else]) {
        input.parse::<Token![else]>()?;
        otherwise = Some(if input.peek(Token![if]) {
            Else::If(Box::new(if_(input, errors, body)?))
        } else {
            Else::Body(braces(input, errors, body)?)
        });
    }
    Ok(If { condition, then, otherwise })
}

/// Parses `for pattern in values { … }`.
fn for_<B>(
    input: ParseStream<'_>,
    errors: &mut Errors,
    body: fn(ParseStream<'_>, &mut Errors) -> B,
) -> syn::Result<For<B>> {
    let span = input.parse::<Token![for]>()?.span();
    if input.peek(syn::Ident) && input.peek2(syn::token::Brace) && !input.peek3(Token![in]) {
        let message = "a loop names its values: `for item in items { … }`";
        return Err(syn::Error::new(input.span(), message));
    }
    let pattern = Pat::parse_multi_with_leading_vert(input)?;
    input.parse::<Token![in]>()?;
    let values = Expr::parse_without_eager_brace(input)?;
    Ok(For { span, pattern, values, body: braces(input, errors, body)? })
}
