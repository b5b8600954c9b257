//! Declarations of functions: the tables of the libraries and the declarations that are read from
//! them.

mod authorization;
mod extensions;
mod kubernetes;
mod optional;
mod standard;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::types::Type;

/// A function or operator with its overloads in the order in which the checker tries them.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) overloads: Vec<Overload>,
}

/// A signature of a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// Identifier of cel-go: `add_int64`.
    pub(super) id: &'static str,
    /// Whether the first argument is the receiver: `a.f(b)`.
    pub(super) is_member: bool,
    pub(super) arguments: Vec<Type>,
    pub(super) result: Type,
    /// Names of the type parameters in the order of their first use.
    pub(super) type_parameters: Vec<Arc<str>>,
}

/// Functions by name.
pub(super) type Functions = HashMap<&'static str, Function>;

/// The functions of the standard library.
pub(super) fn standard() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| functions_of(&[standard::TABLE]))
}

/// All functions of Kubernetes. The order of the tables is the order of overloads of a function
/// that several libraries declare.
pub(super) fn kubernetes() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        functions_of(&[
            standard::TABLE,
            optional::TABLE,
            kubernetes::TABLE,
            authorization::TABLE,
            extensions::TABLE,
        ])
    })
}

fn functions_of(tables: &[&'static str]) -> Functions {
    let mut functions = Functions::new();
    for table in tables {
        parse_table(table, &mut functions);
    }
    functions
}

/// Reads a table: a line without indentation names a function, an indented line below is an
/// overload, `id (argument types) -> result`, or `id receiver.(argument types) -> result`. A
/// capital letter alone is a type parameter.
fn parse_table(table: &'static str, functions: &mut Functions) {
    let mut name = "";
    for line in table.lines() {
        if !line.starts_with(' ') {
            name = line;
        } else if let Some(overload) = parse_overload(line) {
            let function =
                functions.entry(name).or_insert_with(|| Function { name, overloads: Vec::new() });
            function.overloads.push(overload);
        }
    }
}

fn parse_overload(line: &'static str) -> Option<Overload> {
    let (id, signature) = line.trim_start().split_once(' ')?;
    let (arguments, result) = signature.split_once(" -> ")?;
    let (receiver, arguments) = match arguments.split_once(".(") {
        Some((receiver, arguments)) => (receiver, arguments),
        None => ("", arguments.strip_prefix('(')?),
    };
    let mut types = parse_types(receiver);
    let is_member = !types.is_empty();
    types.extend(parse_types(arguments.strip_suffix(')')?));
    let result = parse_types(result).pop()?;
    let mut type_parameters = Vec::new();
    for ty in types.iter().chain([&result]) {
        collect_parameters(ty, &mut type_parameters);
    }
    Some(Overload { id, is_member, arguments: types, result, type_parameters })
}

/// Reads types that commas separate.
fn parse_types(text: &'static str) -> Vec<Type> {
    let (mut types, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (index, byte) in text.bytes().chain([b',']).enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                let name = text.get(start..index).unwrap_or_default().trim();
                types.extend((!name.is_empty()).then(|| parse_type(name)));
                start = index + 1;
            }
            _ => {}
        }
    }
    types
}

fn parse_type(text: &'static str) -> Type {
    let (name, parameters) = match text.split_once('(') {
        Some((name, rest)) => (name, parse_types(rest.strip_suffix(')').unwrap_or(rest))),
        None => (text, Vec::new()),
    };
    match (name, parameters.as_slice()) {
        ("dyn", _) => Type::Dyn,
        ("null", _) => Type::Null,
        ("bool", _) => Type::Bool,
        ("int", _) => Type::Int,
        ("uint", _) => Type::Uint,
        ("double", _) => Type::Double,
        ("string", _) => Type::String,
        ("bytes", _) => Type::Bytes,
        ("duration", _) => Type::Duration,
        ("timestamp", _) => Type::Timestamp,
        ("list", [element]) => Type::list(element.clone()),
        ("map", [key, value]) => Type::map(key.clone(), value.clone()),
        ("type", [content]) => Type::Type(Some(Arc::new(content.clone()))),
        (name, []) if name.len() == 1 => Type::Param(name.into()),
        (name, parameters) => Type::Opaque(name.into(), parameters.into()),
    }
}

fn collect_parameters(ty: &Type, found: &mut Vec<Arc<str>>) {
    if let Type::Param(name) = ty
        && !found.contains(name)
    {
        found.push(name.clone());
    }
    for parameter in ty.parameters() {
        collect_parameters(parameter, found);
    }
}

#[cfg(test)]
mod tests {
    use super::{kubernetes, parse_overload, standard};

    #[test]
    fn every_line_of_the_tables_declares_an_overload() {
        let overloads = |functions: &super::Functions| {
            functions.values().map(|f| f.overloads.len()).sum::<usize>()
        };
        assert_eq!(overloads(standard()), 163);
        assert_eq!(overloads(kubernetes()), 341);
        for function in kubernetes().values() {
            for overload in &function.overloads {
                let mut types = overload.arguments.iter().chain([&overload.result]);
                assert!(
                    types.all(|ty| !ty.to_string().contains(' ') || ty.to_string().contains(", ")),
                    "{overload:?}"
                );
            }
        }
    }

    #[test]
    fn a_member_overload_counts_its_receiver_as_an_argument() {
        let overload = parse_overload("  map_size map(A, B).(list(A), int) -> list(B)").unwrap();
        assert!(overload.is_member);
        let arguments: Vec<String> = overload.arguments.iter().map(ToString::to_string).collect();
        assert_eq!(arguments, ["map(A, B)", "list(A)", "int"]);
        assert_eq!(overload.result.to_string(), "list(B)");
        assert_eq!(overload.type_parameters.len(), 2);
    }
}
