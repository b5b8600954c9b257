//! Names of types: in messages of the checker, in declarations and at run time.

use std::fmt;

use super::Type;

impl Type {
    /// Name of the type at run time, without its parameters: `list`, `google.protobuf.Timestamp`,
    /// `int` for `wrapper(int)`.
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Any => "google.protobuf.Any",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Wrapper(wrapped) => wrapped.name(),
            Type::Object(object) => &object.name,
            Type::Opaque(name, _) | Type::Param(name) => name,
            Type::Type(_) => "type",
        }
    }

    /// The type in the notation of declarations: `list(google.protobuf.Timestamp)`, `null_type`.
    pub fn declared(&self) -> impl fmt::Display + '_ {
        DeclarationNotation(self)
    }

    fn write_with(&self, f: &mut fmt::Formatter<'_>, leaf: fn(&Type) -> &str) -> fmt::Result {
        if let Type::Wrapper(wrapped) = self {
            return write!(f, "wrapper({})", wrapped.name());
        }
        let mut parameters = self.parameters().peekable();
        if parameters.peek().is_none() {
            return f.write_str(leaf(self));
        }
        write!(f, "{}(", self.name())?;
        for (index, parameter) in parameters.enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            parameter.write_with(f, leaf)?;
        }
        f.write_str(")")
    }
}

/// Writes a type in the notation of declarations.
struct DeclarationNotation<'t>(&'t Type);

impl fmt::Display for DeclarationNotation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_with(f, Type::name)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_with(f, |leaf| match leaf {
            Type::Any => "any",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::Null => "null",
            Type::Error => "!error!",
            other => other.name(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Type;

    #[test]
    fn messages_and_declarations_name_types_as_cel_go_does() {
        let optional = Type::optional(Type::Timestamp);
        let cases = [
            (Type::list(Type::String), "list(string)", "list(string)"),
            (
                Type::map(Type::String, Type::Duration),
                "map(string, duration)",
                "map(string, google.protobuf.Duration)",
            ),
            (optional, "optional_type(timestamp)", "optional_type(google.protobuf.Timestamp)"),
            (Type::Wrapper(Type::Int.into()), "wrapper(int)", "wrapper(int)"),
            (Type::Type(Some(Type::Null.into())), "type(null)", "type(null_type)"),
            (Type::Type(None), "type", "type"),
            (Type::Any, "any", "google.protobuf.Any"),
            (Type::Error, "!error!", "error"),
        ];
        for (ty, message, declared) in cases {
            assert_eq!(ty.to_string(), message);
            assert_eq!(ty.declared().to_string(), declared);
        }
    }
}
