//! Texts in the `data` of a type that is called `Secret`.
//!
//! The macro knows names and not types: the compiler decides whether the values are bytes, which
//! take no text, and then has an error that says what to write.

// DESIGN.md, 293: `object!` takes no text for bytes

use syn::{Expr, ExprLit, Lit, Type};

use super::syntax::{Else, If, LiteralValue, ObjectEntry, ObjectFieldName, ObjectLiteral};

/// Marks the texts.
pub(super) fn mark(literal: &mut ObjectLiteral) {
    let Type::Path(ty) = &literal.ty else { return };
    if ty.path.segments.last().is_some_and(|it| it.ident == "Secret") {
        of_object(&mut literal.object.entries);
    }
}

/// Calls `mark` for the entries of braces and of their branches.
fn in_branches(entries: &mut [ObjectEntry], mark: &mut dyn FnMut(&mut ObjectEntry)) {
    for entry in entries {
        match entry {
            ObjectEntry::Field(_) => mark(entry),
            ObjectEntry::If(branch) => in_branch(branch, mark),
            ObjectEntry::For(each) => in_branches(&mut each.body, mark),
        }
    }
}

fn in_branch(branch: &mut If<Vec<ObjectEntry>>, mark: &mut dyn FnMut(&mut ObjectEntry)) {
    in_branches(&mut branch.then, mark);
    match &mut branch.otherwise {
        None => {}
        Some(Else::Body(body)) => in_branches(body, mark),
        Some(Else::If(branch)) => in_branch(branch, mark),
    }
}

fn of_object(entries: &mut [ObjectEntry]) {
    in_branches(entries, &mut |entry| {
        if let ObjectEntry::Field(field) = entry
            && matches!(&field.name, ObjectFieldName::Word { text, .. } if text == "data")
            && let LiteralValue::Object(_, data) = &mut field.value
        {
            in_branches(&mut data.entries, &mut of_entry);
        }
    });
}

fn of_entry(entry: &mut ObjectEntry) {
    let ObjectEntry::Field(field) = entry else { return };
    if let LiteralValue::Expr(Expr::Lit(ExprLit { lit: Lit::Str(_), .. })) = &field.value
        && !field.if_some
        && let LiteralValue::Expr(text) =
            std::mem::replace(&mut field.value, LiteralValue::None(proc_macro2::Span::call_site()))
    {
        field.value = LiteralValue::Text(text);
    }
}
