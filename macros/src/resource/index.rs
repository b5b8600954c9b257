//! Parser of `#[index(by_host = spec.host)]`.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, Token, Type};

use crate::errors::Errors;
use crate::keys::skip_to_comma;
use crate::path::PathStep;

/// An index.
#[derive(Debug)]
pub(super) struct IndexAttr {
    pub(super) name: Ident,
    /// Type of the values; `None`: `String`.
    pub(super) value: Option<Type>,
    /// Source of the values.
    pub(super) source: PathStep,
}

impl IndexAttr {
    /// Reads `name = source, …`; goes on behind faults.
    pub(super) fn read_all(input: ParseStream<'_>, errors: &mut Errors, into: &mut Vec<Self>) {
        if input.is_empty() {
            errors.at(input.span(), "name an index: `#[index(by_host = spec.host)]`");
        }
        while !input.is_empty() {
            match Self::read(input) {
                Ok(index) if input.is_empty() || input.peek(Token![,]) => into.push(index),
                Ok(index) => {
                    into.push(index);
                    errors.at(input.span(), "expected `,`");
                }
                Err(fault) => errors.add(fault),
            }
            skip_to_comma(input);
            let _ = input.parse::<Option<Token![,]>>();
        }
    }

    /// Reads `name: Type = source`.
    fn read(input: ParseStream<'_>) -> syn::Result<Self> {
        let start = input.span();
        let name = input.call(Ident::parse_any).map_err(|_| {
            syn::Error::new(start, "name an index: `#[index(by_host = spec.host)]`")
        })?;
        let value = match input.parse::<Option<Token![:]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        if input.parse::<Option<Token![=]>>()?.is_none() {
            let message = format!("index `{name}` needs a field: `{name} = spec.host`");
            return Err(syn::Error::new(name.span(), message));
        }
        Ok(Self { name, value, source: PathStep::parse(input)? })
    }

    /// Returns the name without `r#`.
    pub(super) fn plain_name(&self) -> String {
        crate::path::plain(&self.name)
    }

    /// Returns the name of the constant.
    pub(super) fn constant(&self) -> String {
        snake(&self.plain_name()).to_uppercase()
    }

    /// Returns the name that is meant by a name with capitals.
    pub(super) fn proposal(&self) -> Option<String> {
        let name = self.plain_name();
        Some(snake(&name)).filter(|proposal| *proposal != name)
    }
}

/// Returns a name in `snake_case`: `ByHost`, `byHost` and `BY_HOST` are `by_host`.
fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| letters[before]);
        let is_first = letter.is_uppercase()
            && before.is_some_and(|before| {
                let ends_capitals = letters.get(place + 1).is_some_and(|next| next.is_lowercase());
                before != '_' && (!before.is_uppercase() || ends_capitals)
            });
        if is_first {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::snake;

    #[test]
    fn a_name_with_capitals_is_meant_in_snake_case() {
        for name in ["ByHost", "byHost", "BY_HOST", "by_host", "By_Host"] {
            assert_eq!(snake(name), "by_host", "{name}");
        }
        assert_eq!(snake("ByHTTPPort"), "by_http_port");
        assert_eq!(snake("byPort2"), "by_port2");
    }
}
