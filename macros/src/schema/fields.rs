//! The generated code of fields: a call for each field, and a call for each key of a field.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Generics, Lit, Member, Type};

use super::class::{TypeClass, argument, class, element, is_option, is_scalar, map_key, peeled};
use super::key::{CelRule, FieldCount, KeyMeaning, RulePath, SchemaKey};
use super::model::{ItemAttributes, SchemaField};
use super::serde::Default;

/// A span that shows errors at `place` and resolves names at the derive.
fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// The calls that describe fields with names. `whole` is the variable with the default of the type.
pub(super) fn named(
    fields: &[SchemaField],
    whole: Option<&Ident>,
    generics: &Generics,
) -> TokenStream {
    fields
        .iter()
        .filter(|field| field.is_described())
        .map(|field| one_named(field, whole, generics))
        .collect()
}

fn one_named(field: &SchemaField, whole: Option<&Ident>, generics: &Generics) -> TokenStream {
    let place = at(field.ty.span());
    if field.serde.flatten.is_some() {
        let flat = requested(&field.ty, short, "flat");
        return quote_spanned!(place=> .flat(#flat));
    }
    let shape = shape(field);
    let json = &field.json;
    let remarks = remarks(&field.remarks, Some(field), &[]);
    let has_default = field.remarks.has(|kind| matches!(kind, KeyMeaning::Default(_)));
    let of_schema = (has_default && field.serde.default.is_none() && whole.is_none())
        .then(|| quote!(.default_of_schema()));
    let default = default(field, whole, generics);
    let list_map = list_map(field);
    let left_out = left_out(field);
    let one_way = match (field.serde.not_read, field.serde.not_written) {
        (true, _) => quote!(.not_read()),
        (_, true) => quote!(.not_written()),
        _ => TokenStream::new(),
    };
    let call = quote_spanned!(place=> .field(#json, #shape));
    let aliases = &field.serde.aliases;
    let aliases = (!aliases.is_empty() && !field.serde.not_read)
        .then(|| quote!(.keyword("x-windlass-aliases", __s::json!([#(#aliases),*]))));
    let read = read_by_function(field);
    quote!(#call #remarks #aliases #read #default #of_schema #left_out #list_map #one_way)
}

/// The mark of a field that a function reads from values of another type, of which it may refuse
/// some. A function for the field's own type is taken for one that fills values in.
fn read_by_function(field: &SchemaField) -> Option<TokenStream> {
    let other = field.remarks.attrs.keys.iter().find_map(|key| match &key.kind {
        KeyMeaning::With(other) => Some(other),
        _ => None,
    })?;
    let ty = field.ty.to_token_stream().to_string();
    let name = format!("`{}`", ty.replace(' ', ""));
    let is_other = other.to_token_stream().to_string() != ty;
    // The schema of another type is not known here.
    let is_other = is_other && is_scalar(peeled(other));
    (field.serde.read_by_function && is_other)
        .then(|| quote!(.keyword("x-windlass-parsed", __s::json!({ "type": #name, "had": [], "function": true }))))
}

/// The call for a field of which serde leaves some values out.
fn left_out(field: &SchemaField) -> Option<TokenStream> {
    let skip = field.serde.skip_if.as_ref()?;
    let ty = &field.ty;
    let default = field.remarks.attrs.keys.iter().find_map(|key| match &key.kind {
        KeyMeaning::Default(value) => Some(value),
        _ => None,
    });
    let is_default = match default {
        // The default that serde fills in is no default of the schema if serde leaves it out.
        None => quote!(false),
        Some(value) if is_option(ty) && !is_some(value) => {
            let is_none = skip.path.segments.last().is_some_and(|last| last.ident == "is_none");
            // Other functions may leave out any value.
            let is_default = !is_none;
            quote!(#is_default)
        }
        Some(value) => {
            let value = converted(value);
            quote_spanned!(at(value.span())=> { let __value: #ty = #value; #skip(&__value) })
        }
    };
    Some(quote!(.left_out_as_default(#is_default)))
}

/// The expression of a field's shape.
pub(super) fn shape(field: &SchemaField) -> TokenStream {
    let place = at(field.ty.span());
    let ty = &field.ty;
    // Serde calls the function for a value only: an absent field is an error, even an `Option`.
    let is_never_absent = field.serde.read_by_function && field.serde.default.is_none();
    let never_absent = is_never_absent.then(|| quote!(.never_absent()));
    if !field.is_replaced() {
        let shape = shape_of(ty);
        return quote_spanned!(place=> #shape #never_absent);
    }
    if field.remarks.has(|kind| matches!(kind, KeyMeaning::Full)) {
        return quote_spanned!(place=> __s::full::<#ty>() #never_absent);
    }
    let schema = field.remarks.attrs.keys.iter().find_map(|key| match &key.kind {
        // The function may read another form than the type's `Deserialize`.
        KeyMeaning::Opaque if field.serde.read_by_function => {
            Some(quote!(.absence().by(__s::unknown)))
        }
        KeyMeaning::Opaque => Some(quote!(.opaque())),
        KeyMeaning::Embedded => Some(kept("embedded", ty)),
        KeyMeaning::IntOrString => Some(kept("int_or_string", ty)),
        KeyMeaning::With(other) => {
            let other = shape_of(other);
            Some(quote!(.absence().with(#other)))
        }
        KeyMeaning::By(function) => {
            Some(quote_spanned!(at(function.span())=> .absence().by(#function)))
        }
        _ => None,
    });
    // The type need not have a schema.
    quote_spanned!(place=> (&__s::Of::<#ty>::NEW) #schema #never_absent)
}

/// The call for the schema in the list or map that the spelling shows; of another type, and of
/// containers of options or containers, serde tells the form, at run time.
fn kept(name: &str, ty: &Type) -> TokenStream {
    let is_flat = !element(ty)
        .is_some_and(|it| is_option(it) || matches!(class(it), TypeClass::List | TypeClass::Map));
    let container = match class(ty) {
        TypeClass::List if is_flat => format_ident!("{name}_list"),
        TypeClass::Map if is_flat => format_ident!("{name}_map"),
        _ => {
            let name = format_ident!("{name}");
            return quote!(.#name());
        }
    };
    quote!(.absence().by(__s::#container))
}

/// The expression of a type's shape.
pub(super) fn shape_of(ty: &Type) -> TokenStream {
    requested(ty, short, "shape")
}

/// The call of a method that every type with a schema has. An error names the innermost type that
/// can be seen, and underlines that type.
fn requested(ty: &Type, path: fn(Span) -> TokenStream, method: &str) -> TokenStream {
    let leaf = innermost(ty);
    let place = at(leaf.span());
    let (path, method) = (path(place), Ident::new(method, place));
    let parameter = argument(leaf).map(innermost).filter(|it| !is_scalar(it));
    let named = match parameter {
        Some(parameter) => quote_spanned!(place=> , #path::Generic<#leaf, #parameter>),
        None if std::ptr::eq(leaf, ty) || is_scalar(leaf) => TokenStream::new(),
        None => quote_spanned!(place=> , #path::Leaf<#leaf>),
    };
    quote_spanned!(place=> (&&&&&#path::Of::<#ty #named>::NEW).#method())
}

/// As [`requested`], of a field of a kind, which serde writes: of a type that serde does not write
/// the compiler says no more than that.
pub(crate) fn requested_of_root(ty: &Type, path: fn(Span) -> TokenStream) -> TokenStream {
    let leaf = innermost(ty);
    let place = at(leaf.span());
    if is_scalar(leaf) || argument(leaf).is_some() {
        return requested(ty, path, "shape");
    }
    let path = path(place);
    quote_spanned!(place=> (&&&&&#path::Of::<#ty, #path::RootLeaf<#leaf>>::NEW).shape())
}

/// The path that generated code imports.
fn short(place: Span) -> TokenStream {
    quote_spanned!(place=> __s)
}

/// Returns the type below options, boxes, lists and maps.
fn innermost(ty: &Type) -> &Type {
    let ty = peeled(ty);
    element(ty).map_or(ty, innermost)
}

/// The calls for documentation and keys.
pub(super) fn remarks(
    remarks: &ItemAttributes,
    field: Option<&SchemaField>,
    names: &[SchemaField],
) -> TokenStream {
    let doc = remarks.doc.as_ref().map(|doc| quote!(.doc(#doc)));
    let deprecated = remarks.deprecated.then(|| quote!(.keyword("deprecated", true)));
    let keys = remarks.attrs.keys.iter().map(|key| self::key(key, field, names));
    let maps = field.filter(|field| !field.is_replaced()).map(|field| map_keys(&field.ty));
    quote!(#maps #doc #deprecated #(#keys)*)
}

/// The calls for the types of keys of maps that stand inside of options, lists and maps: the type
/// of the field shows those of its own keys only.
fn map_keys(ty: &Type) -> TokenStream {
    let mut calls = TokenStream::new();
    let (mut ty, mut steps) = (ty, Vec::new());
    loop {
        let is_own = steps.is_empty() && !is_option(ty);
        ty = peeled(ty);
        if let Some(key) = map_key(ty).filter(|key| !is_own && class(key) != TypeClass::Text) {
            calls.extend(quote!(.map_keys::<#key>(&[#(#steps),*])));
        }
        steps.push(if class(ty) == TypeClass::Map { "additionalProperties" } else { "items" });
        match element(ty) {
            Some(below) => ty = below,
            None => return calls,
        }
    }
}

/// The call for a key.
fn key(key: &SchemaKey, field: Option<&SchemaField>, names: &[SchemaField]) -> TokenStream {
    let is_list = field.is_some_and(|field| class(&field.ty) == TypeClass::List);
    match &key.kind {
        KeyMeaning::Keyword(name, value) => {
            let name = match *name {
                "minLength" if is_list => "minItems",
                "maxLength" if is_list => "maxItems",
                name => name,
            };
            quote!(.keyword(#name, #value))
        }
        KeyMeaning::Item(name, value) => quote!(.item(#name, #value)),
        KeyMeaning::Extend(name, value) => quote!(.keyword(#name, __s::json!(#value))),
        KeyMeaning::Atomic => {
            let is_struct = !names.is_empty();
            let keyword = match field.map(|field| class(&field.ty)) {
                Some(TypeClass::List) => "x-kubernetes-list-type",
                Some(TypeClass::Map) => "x-kubernetes-map-type",
                None if is_struct => "x-kubernetes-map-type",
                // A list or a map: the schema of the type tells.
                _ => return quote!(.keyword("x-windlass-atomic", "atomic")),
            };
            quote!(.keyword(#keyword, "atomic"))
        }
        KeyMeaning::Rule(rule) => self::rule(rule, names),
        KeyMeaning::OneOf(many, fields) => one_of(*many, fields, names),
        KeyMeaning::Default(value) => {
            field.map_or_else(TokenStream::new, |field| default_key(field, value))
        }
        KeyMeaning::Example(value) => quote!(.example(#value)),
        KeyMeaning::Transform(change) => quote_spanned!(at(change.span())=> .transform(#change)),
        KeyMeaning::Required => quote!(.required()),
        KeyMeaning::Optional => quote!(.optional()),
        // Part of the shape, or handled where the fields are.
        KeyMeaning::ListMap(_)
        | KeyMeaning::Opaque
        | KeyMeaning::Full
        | KeyMeaning::Embedded
        | KeyMeaning::IntOrString
        | KeyMeaning::With(_)
        | KeyMeaning::By(_)
        | KeyMeaning::Skip => TokenStream::new(),
    }
}

/// `default = expression`: of the field's type, or of the type inside the field's option. A text
/// may stand for any type that is made from a text.
fn default_key(field: &SchemaField, value: &Expr) -> TokenStream {
    let inner = if is_option(&field.ty) && !is_some(value) { peeled(&field.ty) } else { &field.ty };
    let value = converted(value);
    quote_spanned!(at(value.span())=> .default::<#inner>(#value))
}

/// The value of a default: a text is converted.
fn converted(value: &Expr) -> TokenStream {
    if matches!(value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. })) {
        quote!(::core::convert::Into::into(#value))
    } else {
        value.to_token_stream()
    }
}

/// Whether the expression is `Some(…)` or `None`.
fn is_some(value: &Expr) -> bool {
    let path = match value {
        Expr::Call(call) => &*call.func,
        other => other,
    };
    matches!(path, Expr::Path(path) if path.path.is_ident("Some") || path.path.is_ident("None"))
}

/// The default of a type. That a type has none is left to serde's derive to say, but for a type
/// parameter, to which serde adds the bound by itself.
pub(super) fn default_of(ty: &impl ToTokens, generics: &Generics) -> TokenStream {
    if generics.type_params().next().is_some() {
        quote!(<#ty as ::core::default::Default>::default())
    } else {
        quote!(__s::DefaultOf::<#ty>::NEW.value())
    }
}

/// The call for the default that serde fills in.
fn default(field: &SchemaField, whole: Option<&Ident>, generics: &Generics) -> Option<TokenStream> {
    let place = at(field.ty.span());
    if field.remarks.has(|kind| matches!(kind, KeyMeaning::Default(_) | KeyMeaning::Required)) {
        return None;
    }
    let ty = &field.ty;
    let (value, is_reference) = match (&field.serde.default, whole, &field.member) {
        (Some(Default::Function(function)), ..) => (quote!(#function()), false),
        (Some(Default::Trait), ..) => (default_of(ty, generics), false),
        (None, Some(whole), Member::Named(name)) => (quote!(&#whole.#name), true),
        _ => return None,
    };
    if field.serde.not_written {
        return Some(quote!(.optional()));
    }
    if let Some(write) = &field.serde.serialize_with {
        let reference = (!is_reference).then(|| quote!(&));
        let written = quote_spanned! {place=>
            __s::written(#write(__value, __s::ValueSerializer).ok(), |__text| #write(__value, __text))
        };
        let skip = field.serde.skip_if.as_ref();
        // A default that serde leaves out is no text of its own.
        let written = skip.map_or_else(
            || written.clone(),
            |skip| quote_spanned!(place=> if #skip(__value) { None } else { #written }),
        );
        return Some(quote_spanned!(place=> .default_json({
            let __value: &#ty = #reference #value;
            #written
        })));
    }
    Some(match &field.serde.skip_if {
        Some(skip) if is_reference => {
            quote_spanned!(place=> .default_unless(#value, |it| #skip(*it)))
        }
        Some(skip) => quote_spanned!(place=> .default_unless(#value, |it: &#ty| #skip(it))),
        None => quote_spanned!(place=> .default(#value)),
    })
}

/// The call for `list(map, keys(…))`: the compiler looks for the fields in the item's type.
pub(super) fn list_map(field: &SchemaField) -> Option<TokenStream> {
    let names = field.remarks.attrs.keys.iter().find_map(|key| match &key.kind {
        KeyMeaning::ListMap(names) => Some(names),
        _ => None,
    })?;
    let ty = &field.ty;
    let items = quote_spanned!(at(ty.span())=> __s::item_of::<#ty, _>());
    let keys = names.iter().map(|name| {
        let text = syn::ext::IdentExt::unraw(name).to_string();
        quote!((&__items.has(|__item| _ = &__item.#name)).json_name(#text))
    });
    Some(quote!(.list_map(&{ let __items = #items; [#(#keys),*] })))
}

/// The call for a rule.
fn rule(rule: &CelRule, names: &[SchemaField]) -> TokenStream {
    let CelRule { rule, message, message_expression, reason, path, optional_old_self } = rule;
    let path = path.as_ref().map(|path| match path {
        RulePath::Json(path) => path.value(),
        RulePath::Field(name) => json_path(&json(name, names)),
    });
    let pairs = [
        ("message", message.as_ref().map(syn::LitStr::value)),
        ("messageExpression", message_expression.as_ref().map(syn::LitStr::value)),
        ("reason", reason.as_ref().map(syn::LitStr::value)),
        ("fieldPath", path),
    ];
    let pairs =
        pairs.into_iter().filter_map(|(key, value)| value.map(|value| quote!((#key, #value))));
    let pairs: Vec<_> = pairs.collect();
    let old_self = optional_old_self.then(|| quote!(.optional_old_self()));
    quote!(.rule(#rule, &[#(#pairs),*]) #old_self)
}

/// The path from a value to the field of that name in JSON.
fn json_path(name: &str) -> String {
    if name.is_empty() || name.contains(['.', '[', ']', '\'']) {
        let escaped = name.replace('\\', "\\\\").replace('\'', "\\'");
        return format!("['{escaped}']");
    }
    format!(".{name}")
}

/// The rule of fields of which some are set, in kubebuilder's form.
fn one_of(many: FieldCount, fields: &[Ident], names: &[SchemaField]) -> TokenStream {
    let names: Vec<String> = fields.iter().map(|name| json(name, names)).collect();
    let set: Vec<String> = names
        .iter()
        .map(|name| windlass_cel::syntax::identifiers::escape(name).unwrap_or_else(|| name.clone()))
        .map(|name| format!("has(self.{name})"))
        .collect();
    let list = names.join(" ");
    let (condition, message) = match many {
        FieldCount::Exactly => {
            ("== 1", format!("exactly one of the fields in [{list}] must be set"))
        }
        FieldCount::AtMost => ("<= 1", format!("at most one of the fields in [{list}] may be set")),
        FieldCount::AtLeast => {
            (">= 1", format!("at least one of the fields in [{list}] must be set"))
        }
    };
    let rule = format!("[{}].filter(x,x==true).size() {condition}", set.join(","));
    quote!(.rule(#rule, &[("message", #message)]))
}

/// The name in JSON of a field.
fn json(name: &Ident, fields: &[SchemaField]) -> String {
    let field = fields.iter().find(|field| *name == field.rust().as_str());
    field.map_or_else(|| name.to_string(), |field| field.json.clone())
}
