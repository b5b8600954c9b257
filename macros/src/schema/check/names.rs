//! Names in JSON: serde reads each for a single field or variant.

use std::collections::BTreeMap;

use super::super::model::{Data, SchemaField, SchemaModel, Variant};
use crate::errors::Errors;

/// Checks the names of fields and variants.
pub(super) fn check(model: &SchemaModel, errors: &mut Errors) {
    // Serde reads another type's names.
    if model.serde.from.is_some() {
        return;
    }
    match &model.data {
        Data::Named(fields) => of_fields(fields, errors),
        Data::Enum(variants) => {
            if !model.serde.untagged {
                of_variants(variants, errors);
            }
            for variant in variants {
                if let Data::Named(fields) = &variant.data {
                    of_fields(fields, errors);
                }
            }
        }
        _ => {}
    }
}

/// Checks that no two fields share a name in JSON.
fn of_fields(fields: &[SchemaField], errors: &mut Errors) {
    let described: Vec<_> =
        fields.iter().filter(|it| it.is_described() && it.serde.flatten.is_none()).collect();
    for (place, field) in described.iter().enumerate() {
        let span = syn::spanned::Spanned::span(&field.member);
        if let Some(other) = described[..place].iter().find(|other| other.json == field.json) {
            let message = format!(
                "`{}` and this field have one name in JSON: `{}`",
                other.rust(),
                field.json
            );
            errors.at(span, message);
            continue;
        }
        for alias in field.serde.aliases.iter().filter(|_| field.is_read()) {
            let is_of = |it: &&&SchemaField| {
                it.member != field.member
                    && it.is_read()
                    && (it.json == *alias || it.serde.aliases.contains(alias))
            };
            if let Some(other) = described.iter().find(is_of) {
                let message = format!(
                    "serde also reads this field under `{alias}`, a name of `{}`, and refuses or mistakes objects that \
                     have it: remove the alias",
                    other.rust()
                );
                errors.at(span, message);
                break;
            }
        }
    }
}

/// Checks that serde reads each name as a single variant.
fn of_variants(variants: &[Variant], errors: &mut Errors) {
    let mut known: BTreeMap<&str, &Variant> = BTreeMap::new();
    for variant in variants.iter().filter(|it| !it.serde.skipped && !it.serde.untagged) {
        let names = || std::iter::once(&variant.json).chain(&variant.serde.aliases);
        let shared = names().find_map(|name| Some((known.get(name.as_str())?, name)));
        if let Some((other, name)) = shared {
            let message = format!(
                "`{}` and this variant have one name in JSON, `{name}`, which serde reads as `{0}`",
                other.ident
            );
            errors.at(variant.ident.span(), message);
        }
        for name in names() {
            known.entry(name).or_insert(variant);
        }
    }
}
