//! The fields of a struct, with serde's names and the shapes that a macro can see.

use proc_macro2::Ident;
use syn::{
    Attribute, Data, DeriveInput, Expr, ExprLit, Fields, GenericArgument, Lit, PathArguments, Type,
};

use crate::names;

/// A field that an apply configuration can set.
#[derive(Debug)]
pub(super) struct ApplyField<'a> {
    pub(super) ident: &'a Ident,
    pub(super) json: String,
    pub(super) shape: FieldShape<'a>,
    pub(super) docs: Vec<&'a Attribute>,
}

/// The type of a field, without the options around it.
#[derive(Debug)]
pub(super) enum FieldShape<'a> {
    One(&'a Type),
    /// A type that may be another name of an option.
    Named(&'a Type),
    List(&'a Type),
    Map(&'a Type, &'a Type),
    /// `#[serde(flatten)]`
    Flattened(&'a Type),
    /// A field that serde writes by a custom function.
    Json,
}

/// Keys of `#[serde(…)]` that matter here.
#[derive(Debug, Default)]
struct Serde {
    rename: Option<String>,
    rename_all: Option<String>,
    is_skipped: bool,
    is_flattened: bool,
    has_function: bool,
    /// Whether the container is not written field by field: `transparent`, `into`, `tag`.
    is_other: bool,
}

/// Returns the fields of a struct that is written field by field; `None` for other types.
pub(super) fn named(input: &DeriveInput) -> Option<Vec<ApplyField<'_>>> {
    let container = Serde::read(&input.attrs);
    if !input.generics.params.is_empty() || container.is_other {
        return None;
    }
    let Data::Struct(data) = &input.data else { return None };
    let Fields::Named(named) = &data.fields else { return None };
    let rule = container.rename_all.as_deref();
    let fields = named.named.iter().filter_map(|field| {
        let ident = field.ident.as_ref()?;
        let serde = Serde::read(&field.attrs);
        if serde.is_skipped {
            return None;
        }
        let plain = syn::ext::IdentExt::unraw(ident).to_string();
        let json = serde.rename.unwrap_or_else(|| renamed(&plain, rule));
        let mut read = ApplyField::new(ident, json, &field.ty);
        if serde.has_function {
            read.shape = FieldShape::Json;
        } else if serde.is_flattened {
            read.shape = FieldShape::Flattened(&field.ty);
        }
        read.docs = field.attrs.iter().filter(|attr| attr.path().is_ident("doc")).collect();
        Some(read)
    });
    Some(fields.collect())
}

impl<'a> ApplyField<'a> {
    /// Reads a field by type.
    pub(super) fn new(ident: &'a Ident, json: String, ty: &'a Type) -> Self {
        Self { ident, json, shape: shape(ty), docs: Vec::new() }
    }
}

/// Returns the shape of a type; options and boxes do not matter.
fn shape(ty: &Type) -> FieldShape<'_> {
    match arguments(ty) {
        Some((name, arguments)) => match (name.as_str(), arguments.as_slice()) {
            ("Option" | "Box", [inner]) => match shape(inner) {
                FieldShape::Named(inner) => FieldShape::One(inner),
                inner => inner,
            },
            ("Vec" | "BTreeSet" | "HashSet" | "VecDeque", [item, ..]) => FieldShape::List(item),
            ("BTreeMap" | "HashMap" | "IndexMap", [key, value, ..]) => FieldShape::Map(key, value),
            _ => one(ty),
        },
        None => one(ty),
    }
}

/// Returns the shape of a type that is no container.
fn one(ty: &Type) -> FieldShape<'_> {
    if matches!(ty, Type::Path(_)) && !crate::schema::is_scalar(ty) {
        FieldShape::Named(ty)
    } else {
        FieldShape::One(ty)
    }
}

/// Returns the name of a type and the type arguments.
fn arguments(ty: &Type) -> Option<(String, Vec<&Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    Some((last.ident.to_string(), types.collect()))
}

impl Serde {
    /// Reads the attributes. Faults in them are serde's to report.
    fn read(attributes: &[Attribute]) -> Self {
        let mut serde = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            let _: syn::Result<()> = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
                let mut text = None;
                if meta.input.peek(syn::Token![=]) {
                    text = text_of(&meta.value()?.parse()?);
                } else if meta.input.peek(syn::token::Paren) {
                    meta.parse_nested_meta(|inner| {
                        if inner.input.peek(syn::Token![=]) {
                            let value = text_of(&inner.value()?.parse()?);
                            if inner.path.is_ident("serialize") {
                                text = value;
                            }
                        }
                        Ok(())
                    })?;
                }
                match name.as_str() {
                    "rename" => serde.rename = text,
                    "rename_all" => serde.rename_all = text,
                    "skip" | "skip_serializing" => serde.is_skipped = true,
                    "flatten" => serde.is_flattened = true,
                    "with" | "serialize_with" => serde.has_function = true,
                    "transparent" | "into" | "tag" | "remote" => serde.is_other = true,
                    _ => {}
                }
                Ok(())
            });
        }
        serde
    }
}

/// Returns the text of a literal.
fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns the name that serde gives a field by `rename_all`.
fn renamed(name: &str, rule: Option<&str>) -> String {
    let pascal = |name: &str| {
        let camel = names::camel(name);
        let mut letters = camel.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    };
    match rule {
        Some("camelCase") => names::camel(name),
        Some("PascalCase") => pascal(name),
        Some("UPPERCASE" | "SCREAMING_SNAKE_CASE") => name.to_ascii_uppercase(),
        Some("kebab-case") => name.replace('_', "-"),
        Some("SCREAMING-KEBAB-CASE") => name.to_ascii_uppercase().replace('_', "-"),
        // `lowercase` and `snake_case` leave fields as they are.
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn names_and_shapes_are_those_that_serde_writes() {
        let input: DeriveInput = parse_quote! {
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            struct Spec {
                host_name: String,
                #[serde(rename = "TTL", default = "ttl")]
                ttl: Option<i64>,
                #[serde(rename(serialize = "out", deserialize = "in"))]
                both: Option<Vec<Box<Rule>>>,
                labels: std::collections::BTreeMap<String, String>,
                #[serde(flatten)]
                rest: Rest,
                #[serde(skip)]
                cache: Cache,
                #[serde(with = "seconds")]
                every: Duration,
                r#type: Option<Box<Kind>>,
            }
        };
        let fields = named(&input).unwrap();
        let names: Vec<_> = fields.iter().map(|field| field.json.as_str()).collect();
        assert_eq!(names, ["hostName", "TTL", "out", "labels", "rest", "every", "type"]);
        assert!(matches!(fields[1].shape, FieldShape::One(_)));
        assert!(matches!(fields[2].shape, FieldShape::List(_)));
        assert!(matches!(fields[3].shape, FieldShape::Map(..)));
        assert!(matches!(fields[4].shape, FieldShape::Flattened(_)));
        assert!(matches!(fields[5].shape, FieldShape::Json));
    }

    #[test]
    fn types_that_are_not_written_field_by_field_have_no_configuration() {
        let inputs: [DeriveInput; 4] = [
            parse_quote!(
                enum A {
                    B,
                }
            ),
            parse_quote!(
                struct A(String);
            ),
            parse_quote!(
                struct A<T> {
                    t: T,
                }
            ),
            parse_quote!(
                #[serde(into = "String")]
                struct A {
                    t: T,
                }
            ),
        ];
        assert!(inputs.iter().all(|input| named(input).is_none()));
    }
}
