//! Helper attributes at places where no derive reads them.

use syn::Attribute;
use syn::spanned::Spanned;

use crate::errors::Errors;

/// Reports the attributes of that name: they have no effect here. `instead` says what to write.
pub(crate) fn misplaced(attributes: &[Attribute], name: &str, instead: &str, errors: &mut Errors) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        let message = format!("`#[{name}(…)]` has no effect here: {instead}");
        errors.at(attribute.path().span(), message);
    }
}

/// As [`misplaced`], on every field of a type.
pub(crate) fn misplaced_on_fields(
    data: &syn::Data,
    name: &str,
    instead: &str,
    errors: &mut Errors,
) {
    match data {
        syn::Data::Struct(data) => {
            for field in &data.fields {
                misplaced(&field.attrs, name, instead, errors);
            }
        }
        syn::Data::Enum(data) => {
            for variant in &data.variants {
                misplaced(&variant.attrs, name, instead, errors);
                for field in &variant.fields {
                    misplaced(&field.attrs, name, instead, errors);
                }
            }
        }
        syn::Data::Union(_) => {}
    }
}
