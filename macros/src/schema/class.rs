//! The kind of value that a field's type is written as.

use syn::{GenericArgument, PathArguments, Type};

/// The part of a type that a macro can know: names of std, with options and boxes removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeClass {
    Text,
    Integer,
    Number,
    Bool,
    List,
    Map,
    /// Any other type, which may be anything.
    Unknown,
}

impl TypeClass {
    /// The class in a message.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Integer | Self::Number => "a number",
            Self::Bool => "a bool",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Unknown => "of another type",
        }
    }
}

/// Returns the class of a type.
pub(super) fn class(ty: &Type) -> TypeClass {
    let ty = peeled(ty);
    match last_segment(ty) {
        Some("String" | "str" | "char" | "PathBuf") => TypeClass::Text,
        Some(
            "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize"
            | "NonZeroU8" | "NonZeroU16" | "NonZeroU32" | "NonZeroU64",
        ) => TypeClass::Integer,
        Some("f32" | "f64") => TypeClass::Number,
        Some("bool") => TypeClass::Bool,
        Some("Vec" | "VecDeque" | "BTreeSet" | "HashSet" | "IndexSet") => TypeClass::List,
        Some("BTreeMap" | "HashMap" | "IndexMap") => TypeClass::Map,
        _ => TypeClass::Unknown,
    }
}

/// Whether the type is written as a text, a number or a bool of std.
pub(crate) fn is_scalar(ty: &Type) -> bool {
    matches!(class(ty), TypeClass::Text | TypeClass::Integer | TypeClass::Number | TypeClass::Bool)
}

/// Returns the name, the least and the greatest value of an integer type.
pub(super) fn integers(ty: &Type) -> Option<(&'static str, i128, i128)> {
    let name = last_segment(peeled(ty))?;
    let (least, most) = match name {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        _ => return None,
    };
    Some((name, least, most))
}

/// Returns the type below options, boxes and references.
pub(super) fn peeled(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => peeled(&reference.elem),
        Type::Group(group) => peeled(&group.elem),
        Type::Paren(paren) => peeled(&paren.elem),
        Type::Path(_)
            if matches!(last_segment(ty), Some("Option" | "Box" | "Arc" | "Rc" | "Cow")) =>
        {
            argument(ty).map_or(ty, peeled)
        }
        _ => ty,
    }
}

/// Whether the type is written as an `Option`, or as a pointer to an option, which serde reads
/// alike.
pub(super) fn is_option(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_option(&reference.elem),
        Type::Group(group) => is_option(&group.elem),
        Type::Paren(paren) => is_option(&paren.elem),
        Type::Path(_) => match last_segment(ty) {
            Some("Option") => true,
            Some("Box" | "Arc" | "Rc" | "Cow") => argument(ty).is_some_and(is_option),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the type of the elements or values of a list or map.
pub(super) fn element(ty: &Type) -> Option<&Type> {
    matches!(class(ty), TypeClass::List | TypeClass::Map).then(|| argument(peeled(ty))).flatten()
}

/// Returns the type of the keys of a map.
pub(super) fn map_key(ty: &Type) -> Option<&Type> {
    let (TypeClass::Map, Type::Path(path)) = (class(ty), ty) else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(key)) if arguments.args.len() > 1 => Some(key),
        _ => None,
    }
}

/// Returns the last type argument.
pub(super) fn argument(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    arguments.args.iter().rev().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Whether the last segment of a type's path is `name`.
pub(super) fn is_named(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == name)
}

/// Returns the last segment of a path that is a known name.
fn last_segment(ty: &Type) -> Option<&'static str> {
    const KNOWN: &[&str] = &[
        "String",
        "str",
        "char",
        "PathBuf",
        "i8",
        "i16",
        "i32",
        "i64",
        "isize",
        "u8",
        "u16",
        "u32",
        "u64",
        "usize",
        "NonZeroU8",
        "NonZeroU16",
        "NonZeroU32",
        "NonZeroU64",
        "f32",
        "f64",
        "bool",
        "Vec",
        "VecDeque",
        "BTreeSet",
        "HashSet",
        "IndexSet",
        "BTreeMap",
        "HashMap",
        "IndexMap",
        "Option",
        "Box",
        "Arc",
        "Rc",
        "Cow",
    ];
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    KNOWN.iter().find(|known| last.ident == **known).copied()
}
