//! The generated code of a literal: for each field the place and the value.
//!
//! Local names are hygienic (`mixed_site`), so that no expression of the user can see them. Each
//! token has the span of the user's token behind it: a name that does not exist and a value of
//! another type are underlined where they were written.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

use super::known;
use super::syntax::{
    ListItem, LiteralValue, ObjectBody, ObjectEntry, ObjectField, ObjectFieldName, ObjectLiteral,
};

/// Words for which the crate has a struct of keys (`CommonKeys`).
const COMMON_KEYS: &[&str] = &[
    "app",
    "name",
    "component",
    "tier",
    "track",
    "version",
    "instance",
    "role",
    "env",
    "environment",
    "team",
    "owner",
    "managed",
    "part",
    "cpu",
    "memory",
    "storage",
    "key",
    "value",
    "host",
    "path",
    "port",
    "type",
    "mode",
    "message",
    "text",
    "url",
    "config",
    "image",
    "secret",
    "user",
    "password",
    "token",
];

/// The kinds of content that braces can have.
#[derive(Clone, Copy, PartialEq)]
enum BracesContent {
    /// Names of fields.
    Fields,
    /// Keys of a map.
    Entries,
    /// Words that are names or keys: the type of the place decides.
    Either,
}

/// Returns the value of a literal.
pub(super) fn literal(literal: &ObjectLiteral) -> TokenStream {
    let ObjectLiteral { ty, object } = literal;
    let place = at(ty.span());
    let (p, this) = (private(place), local("this", place));
    let start = match &object.base {
        Some(base) => {
            let p = private(at(base.span()));
            quote_spanned!(at(base.span())=> #p::start_from(#base))
        }
        None => quote_spanned!(place=> #p::start()),
    };
    let body = start_body(&this, place, &object.entries);
    let mutable = mutable(&object.entries);
    quote! {{
        #[allow(unused_imports)]
        use ::windlass::__private::literal::{self as __literal, AnySlot as _, AnyTexts as _};
        let #mutable #this: #ty = #start;
        #body
        #this
    }}
}

/// Returns the statements for a value that was just made and is called `this`.
fn start_body(this: &Ident, span: Span, entries: &[ObjectEntry]) -> TokenStream {
    if is_map(entries) {
        inside(&quote!(#this), span, BracesContent::Entries, entries)
    } else {
        fields(this, ObjectPlace::Owned, entries)
    }
}

/// Returns `mut` if there is something to set.
fn mutable(entries: &[ObjectEntry]) -> Option<syn::Token![mut]> {
    (!entries.is_empty()).then(Default::default)
}

/// Returns a span that shows errors at `place` and resolves names at the macro's call.
fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// Returns the path of the functions for literals, at `place`: an import of the block around the
/// literal, because a long path at each field would cost more time than the rest.
fn private(place: Span) -> Ident {
    Ident::new("__literal", place)
}

/// Returns a name that only generated code can see.
fn local(name: &str, place: Span) -> Ident {
    Ident::new(name, place.resolved_at(Span::mixed_site()))
}

/// Returns the place of the first key that can only be the key of a map.
fn map_key(entries: &[ObjectEntry]) -> Option<Span> {
    entries.iter().find_map(|entry| match entry {
        ObjectEntry::Field(ObjectField { name: ObjectFieldName::Word { .. }, .. }) => None,
        ObjectEntry::Field(ObjectField { name: ObjectFieldName::Text(text), .. }) => {
            Some(at(text.span()))
        }
        ObjectEntry::Field(ObjectField { name: ObjectFieldName::Expr(expr), .. }) => {
            Some(at(expr.span()))
        }
        ObjectEntry::For(each) => Some(at(each.span)),
        ObjectEntry::If(branch) => branch.bodies().iter().find_map(|body| map_key(body)),
    })
}

/// Whether some key can only be the key of a map.
pub(super) fn is_map(entries: &[ObjectEntry]) -> bool {
    map_key(entries).is_some()
}

/// Whether no value has braces or brackets, as in maps of texts.
pub(super) fn is_flat(entries: &[ObjectEntry]) -> bool {
    entries.iter().all(|entry| match entry {
        ObjectEntry::Field(field) => {
            !matches!(field.value, LiteralValue::Object(..) | LiteralValue::List(..))
        }
        ObjectEntry::For(_) => false,
        ObjectEntry::If(branch) => branch.bodies().iter().all(|body| is_flat(body)),
    })
}

/// Returns the statements that put `value` into `place`, a path to a value that is there.
fn fill(place: &TokenStream, span: Span, name: &str, value: &LiteralValue) -> TokenStream {
    match value {
        LiteralValue::Expr(expr) => set(place, expr),
        LiteralValue::Integer(number) => {
            let p = private(at(number.span()));
            quote_spanned!(at(number.span())=> #place = #p::integer(#number);)
        }
        LiteralValue::Fraction(number) => {
            let (span, p) = (at(number.span()), private(at(number.span())));
            quote_spanned!(span=> #p::Slot(&mut #place).set_fraction(#number);)
        }
        LiteralValue::None(none) => {
            quote_spanned!(at(*none)=> #place = ::core::option::Option::None;)
        }
        LiteralValue::Text(text) => {
            let p = private(at(text.span()));
            quote_spanned!(at(text.span())=> #p::Slot(&mut #place).set_text(#text);)
        }
        LiteralValue::Object(_, object) => {
            let base = object.base.as_ref().map(|base| set(place, base));
            let content = content(name, &object.entries);
            let body = inside(place, span, content, &object.entries);
            quote!(#base #body)
        }
        LiteralValue::List(brackets, items) => {
            let list = local("list", span);
            let count = items.iter().filter(|item| matches!(item, ListItem::Value(_))).count();
            let items: TokenStream = items.iter().map(|item| list_item(&list, item)).collect();
            let brackets = at(*brackets);
            let (p, slot) = (private(brackets), slot(place, brackets));
            let value = quote_spanned!(brackets=> #p::list(#slot.some().0, #count));
            quote!({ let #list = #value; #items })
        }
    }
}

/// Returns the slot of a place, with every token but the place at `span`.
fn slot(place: &TokenStream, span: Span) -> TokenStream {
    let p = private(span);
    quote_spanned!(span=> #p::Slot(&mut #place))
}

/// Returns the statement that sets a field to an expression.
fn set(place: &TokenStream, value: &Expr) -> TokenStream {
    let span = at(value.span());
    let p = private(span);
    quote_spanned!(span=> #p::Slot(&mut #place).set(#value);)
}

/// Decides by the names, the values and the field that they stand in.
fn content(name: &str, entries: &[ObjectEntry]) -> BracesContent {
    if is_map(entries) {
        return BracesContent::Entries;
    }
    let mut words = Vec::new();
    collect_words(entries, &mut words);
    let is_struct = known::is_struct(name, words.iter().map(|(word, _)| *word));
    if is_struct || entries.is_empty() || !is_flat(entries) {
        BracesContent::Fields
    } else {
        BracesContent::Either
    }
}

/// Returns the block for the content of braces at `place`.
fn inside(
    place: &TokenStream,
    span: Span,
    content: BracesContent,
    entries: &[ObjectEntry],
) -> TokenStream {
    let (p, this) = (private(span), local("this", span));
    match content {
        BracesContent::Fields => {
            let body = fields(&this, ObjectPlace::Borrowed, entries);
            quote_spanned!(span=> { let #this = #p::Slot(&mut #place).some().braces().0; #body })
        }
        BracesContent::Entries => {
            let map = local("map", span);
            let body = map_entries(&map, entries);
            let key = map_key(entries).unwrap_or(span);
            let (p, slot) = (private(key), slot(place, key));
            let value = quote_spanned!(key=> #p::map(#slot.some().0));
            quote!({ let #map = #value; #body })
        }
        BracesContent::Either => {
            let WordKeyTokens { item, enter } = keys(entries, span);
            let body = fields(&this, ObjectPlace::MaybeMap, entries);
            quote_spanned! {span=> {
                #item
                #[allow(unused_mut)]
                let mut #this = #p::Slot(&mut #place).some().flat().#enter;
                #body
                #p::Finish::finish(#this);
            }}
        }
    }
}

/// Words that may be keys of a map.
struct WordKeyTokens {
    /// A struct with a field for each of them, unless the crate has such a struct.
    item: TokenStream,
    /// The call that puts the struct in front of a map.
    enter: TokenStream,
}

/// Returns a struct for the words. It has no impl, which would cost the compiler a comparison with
/// those of all other literals.
fn keys(entries: &[ObjectEntry], span: Span) -> WordKeyTokens {
    let mut words: Vec<(&str, &Ident)> = Vec::new();
    collect_words(entries, &mut words);
    if words.iter().all(|(word, _)| COMMON_KEYS.contains(word)) {
        return WordKeyTokens {
            item: TokenStream::new(),
            enter: quote_spanned!(span=> enter_common()),
        };
    }
    let texts = words.iter().map(|(text, _)| *text);
    let idents: Vec<_> = words.iter().map(|(_, ident)| *ident).collect();
    let some = quote_spanned!(span=> ::core::option::Option);
    let keys = local("keys", span);
    WordKeyTokens {
        item: quote_spanned! {span=>
            #[allow(non_snake_case)]
            struct __Keys<V> { #(#idents: #some<V>),* }
        },
        enter: quote_spanned! {span=>
            enter(__Keys { #(#idents: #some::None),* }, |#keys| [#((#texts, #keys.#idents)),*])
        },
    }
}

/// Collects the words of all branches, each once.
fn collect_words<'a>(entries: &'a [ObjectEntry], words: &mut Vec<(&'a str, &'a Ident)>) {
    for entry in entries {
        match entry {
            ObjectEntry::Field(ObjectField {
                name: ObjectFieldName::Word { text, ident }, ..
            }) => {
                if !words.iter().any(|(_, known)| *known == ident) {
                    words.push((text, ident));
                }
            }
            ObjectEntry::If(branch) => {
                branch.bodies().into_iter().for_each(|body| collect_words(body, words));
            }
            ObjectEntry::Field(_) | ObjectEntry::For(_) => {}
        }
    }
}

/// The object whose fields are set, in the form of generated code.
#[derive(Clone, Copy)]
enum ObjectPlace {
    /// A value.
    Owned,
    /// A reference.
    Borrowed,
    /// A reference, or a map whose keys are written like fields.
    MaybeMap,
}

impl ObjectPlace {
    /// Returns the place of a field of `this`.
    fn place(self, this: &Ident, field: &Ident, span: Span) -> TokenStream {
        let is_head = *field == "api_version" || *field == "kind";
        let whole = match self {
            Self::Owned if is_head => quote_spanned!(span=> #this),
            Self::Borrowed if is_head => quote_spanned!(span=> *#this),
            _ => return quote_spanned!(span=> #this.#field),
        };
        // A manifest begins with these, and a kind has no such fields: an own text says why.
        let (p, it) = (private(span), local("it", span));
        quote_spanned!(span=> *#p::Slot(&mut #whole).part(|#it| &mut #it.#field))
    }
}

/// Returns the statements for the fields of `this`.
fn fields(this: &Ident, held: ObjectPlace, entries: &[ObjectEntry]) -> TokenStream {
    let mut statements = TokenStream::new();
    for entry in entries {
        statements.extend(match entry {
            ObjectEntry::If(branch) => branch.expand(|body| fields(this, held, body)),
            ObjectEntry::Field(ObjectField {
                name: ObjectFieldName::Word { text, ident },
                if_some,
                value,
            }) => {
                let span = at(ident.span());
                let this = Ident::new("this", this.span().located_at(span));
                let place = held.place(&this, ident, span);
                match value {
                    LiteralValue::Expr(value) if *if_some => if_some_set(&place, value),
                    value => fill(&place, span, text, value),
                }
            }
            // Those are entries of maps.
            ObjectEntry::Field(_) | ObjectEntry::For(_) => TokenStream::new(),
        });
    }
    statements
}

/// Returns the statement that sets a field if the value is there.
fn if_some_set(place: &TokenStream, value: &Expr) -> TokenStream {
    let span = at(value.span());
    let (p, some) = (private(span), local("some", span));
    quote_spanned! {span=>
        if let ::core::option::Option::Some(#some) = #p::option(#value) {
            #p::Slot(&mut #place).set(#some);
        }
    }
}

/// Returns the statements for the entries of a map.
fn map_entries(map: &Ident, entries: &[ObjectEntry]) -> TokenStream {
    let mut statements = TokenStream::new();
    for entry in entries {
        statements.extend(match entry {
            ObjectEntry::If(branch) => branch.expand(|body| map_entries(map, body)),
            ObjectEntry::For(each) => each.expand(|body| map_entries(map, body)),
            ObjectEntry::Field(field) => map_entry(map, field),
        });
    }
    statements
}

/// Returns the statement for an entry of a map.
fn map_entry(map: &Ident, field: &ObjectField) -> TokenStream {
    let (written, span) = match &field.name {
        ObjectFieldName::Word { text, ident } => (text.to_token_stream(), at(ident.span())),
        ObjectFieldName::Text(text) => (text.to_token_stream(), at(text.span())),
        ObjectFieldName::Expr(expr) => (expr.to_token_stream(), at(expr.span())),
    };
    let (p, key) = (private(span), local("key", span));
    let put = match &field.value {
        LiteralValue::Expr(value) if field.if_some => {
            let some = local("some", at(value.span()));
            let option = private(at(value.span()));
            let option = quote_spanned!(at(value.span())=> #option::option(#value));
            quote! {
                if let ::core::option::Option::Some(#some) = #option {
                    #p::put(#map, #key, #some);
                }
            }
        }
        LiteralValue::Expr(value) => {
            let p = private(at(value.span()));
            quote_spanned!(at(value.span())=> #p::put(#map, #key, #value);)
        }
        LiteralValue::Text(text) => {
            let p = private(at(text.span()));
            quote_spanned!(at(text.span())=> #p::Texts(&mut *#map).put_text(#key, #text);)
        }
        LiteralValue::Integer(number) => {
            let p = private(at(number.span()));
            quote_spanned!(at(number.span())=> #p::put_integer(#map, #key, #number);)
        }
        LiteralValue::Fraction(number) => {
            let p = private(at(number.span()));
            quote_spanned!(at(number.span())=> #p::put_fraction(#map, #key, #number);)
        }
        value => {
            let item = local("item", span);
            let body = fill(&quote!(#item), span, "", value);
            quote_spanned! {span=>
                let mut #item = #p::take(#map, &#key);
                #body
                #p::put_back(#map, #key, #item);
            }
        }
    };
    quote_spanned!(span=> { let #key = #p::key(#map, #written); #put })
}

/// Returns the statement for an item of a list.
fn list_item(list: &Ident, item: &ListItem) -> TokenStream {
    match item {
        ListItem::If(branch) => {
            branch.expand(|items| items.iter().map(|item| list_item(list, item)).collect())
        }
        ListItem::For(each) => {
            each.expand(|items| items.iter().map(|item| list_item(list, item)).collect())
        }
        ListItem::Spread(values) => {
            let p = private(at(values.span()));
            quote_spanned!(at(values.span())=> #p::extend(#list, #values);)
        }
        ListItem::Value(LiteralValue::Expr(value) | LiteralValue::Text(value)) => {
            let p = private(at(value.span()));
            quote_spanned!(at(value.span())=> #p::add(#list, #value);)
        }
        ListItem::Value(LiteralValue::Integer(number)) => {
            let p = private(at(number.span()));
            // The place at which the compiler reports a type that is no number.
            let list = Ident::new("list", list.span().located_at(number.span()));
            quote_spanned!(at(number.span())=> #p::add_integer(#list, #number);)
        }
        ListItem::Value(LiteralValue::Fraction(number)) => {
            let p = private(at(number.span()));
            quote_spanned!(at(number.span())=> #p::add_fraction(#list, #number);)
        }
        ListItem::Value(LiteralValue::None(span)) => {
            let p = private(at(*span));
            quote_spanned!(at(*span)=> #p::add_item(#list, ::core::option::Option::None);)
        }
        ListItem::Value(LiteralValue::Object(span, object)) => braces_item(list, at(*span), object),
        ListItem::Value(value @ LiteralValue::List(span, _)) => {
            let span = at(*span);
            let (p, item) = (private(span), local("item", span));
            let body = fill(&quote!(#item), span, "", value);
            quote_spanned!(span=> { let mut #item = #p::item(#list); #body #p::add_item(#list, #item); })
        }
    }
}

/// Returns the statement for an item in braces: the content is fields, unless the keys show a map.
fn braces_item(list: &Ident, span: Span, object: &ObjectBody) -> TokenStream {
    let (p, this) = (private(span), local("this", span));
    let body = start_body(&this, span, &object.entries);
    let mutable = mutable(&object.entries);
    let start = match &object.base {
        Some(base) => {
            let p = private(at(base.span()));
            quote_spanned!(at(base.span())=> #p::item_from(#list, #base))
        }
        None => quote_spanned!(span=> #p::item(#list)),
    };
    quote_spanned!(span=> { let #mutable #this = #start; #body #p::add_item(#list, #this); })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_keys_are_those_that_the_crate_has() {
        let source = include_str!("../../../framework/core/src/__private/literal/keys.rs");
        let (_, table) = source.split_once("\ncommon! {\n").expect("the table");
        let rows = table.lines().map_while(|row| row.trim().strip_suffix("\";"));
        let keys: Vec<_> = rows.filter_map(|row| row.split('"').nth(1)).collect();
        assert_eq!(keys, COMMON_KEYS);
    }
}
