//! Attributes of a derive at places where the derive reads none: the compiler takes them there
//! without a word.

use syn::{Attribute, Data, DeriveInput, Fields};

use crate::errors::Errors;

/// Reports attributes of this name on fields and variants.
pub(crate) fn below(input: &DeriveInput, name: &str, message: &str, errors: &mut Errors) {
    match &input.data {
        Data::Struct(data) => fields(&data.fields, name, message, errors),
        Data::Enum(data) => {
            for variant in &data.variants {
                report(&variant.attrs, name, message, errors);
                fields(&variant.fields, name, message, errors);
            }
        }
        Data::Union(_) => {}
    }
}

/// Reports attributes of this name above the type.
pub(crate) fn above(input: &DeriveInput, name: &str, message: &str, errors: &mut Errors) {
    report(&input.attrs, name, message, errors);
}

fn fields(all: &Fields, name: &str, message: &str, errors: &mut Errors) {
    for field in all {
        report(&field.attrs, name, message, errors);
    }
}

fn report(attributes: &[Attribute], name: &str, message: &str, errors: &mut Errors) {
    for attribute in attributes {
        if let Some(found) = attribute.path().get_ident().filter(|found| *found == name) {
            errors.at(found.span(), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn attributes_of_fields_and_variants_are_found_and_those_of_the_type_apart() {
        let input: DeriveInput = parse_quote! {
            #[a]
            enum E {
                #[a]
                One { #[a] field: u8 },
                Two(#[a] u8, #[b] u8),
            }
        };
        let mut errors = Errors::default();
        below(&input, "a", "below", &mut errors);
        above(&input, "a", "above", &mut errors);
        assert_eq!(errors.texts(), ["below", "below", "below", "above"]);
        errors.finish();
    }
}
