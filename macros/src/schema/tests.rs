//! Faults of the fixtures in `tests/ui/schema`, without a compiler, with at most one message for a
//! mistake.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{DeriveInput, Item};

/// The messages in generated code.
fn messages(tokens: &proc_macro2::TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(tokens.clone()).expect("a derive generates items");
    let texts = file.items.iter().filter_map(|item| match item {
        Item::Macro(call) if call.mac.path.segments.last()?.ident == "compile_error" => {
            syn::parse2::<syn::LitStr>(call.mac.tokens.clone()).ok().map(|text| text.value())
        }
        _ => None,
    });
    texts.collect()
}

/// The inputs of the derive in a fixture.
fn inputs(source: &str) -> Vec<DeriveInput> {
    let file = syn::parse_file(source).expect("a fixture is Rust");
    let items = file.items.into_iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item.into()),
        Item::Enum(item) => Some(item.into()),
        Item::Union(item) => Some(item.into()),
        _ => None,
    });
    let is_ours = |input: &DeriveInput| {
        let derives = input.attrs.iter().filter(|it| it.path().is_ident("derive"));
        derives.into_iter().any(|it| quote::quote!(#it).to_string().contains("Schema"))
    };
    items.filter(is_ours).collect()
}

#[test]
fn each_mistake_has_one_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/ui/schema");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the fixtures") {
        let path = entry.expect("a fixture").path();
        let Some(name) = path.file_stem().filter(|_| path.extension().is_some_and(|it| it == "rs"))
        else {
            continue;
        };
        let source = std::fs::read_to_string(&path).expect("a fixture");
        let texts =
            inputs(&source).iter().flat_map(|input| messages(&super::derive(input))).collect();
        found.insert(name.to_string_lossy().into_owned(), texts);
    }
    assert!(found.len() >= 60, "{} fixtures", found.len());
    let several: Vec<_> =
        found.iter().filter(|(name, texts)| texts.len() > 1 && *name != "many_faults").collect();
    assert!(several.is_empty(), "{several:#?}");
    assert_eq!(found["many_faults"].len(), 5, "{:#?}", found["many_faults"]);
    // The compiler explains these alone, with the texts of the framework's traits.
    let silent: Vec<&str> =
        found.iter().filter(|(_, texts)| texts.is_empty()).map(|(name, _)| name.as_str()).collect();
    let expected = [
        "beside_the_derive_of_schemars",
        "default_by_a_function_of_another_type",
        "default_by_a_missing_function",
        "default_of_a_type_without_one",
        "default_of_a_variant_without_one",
        "default_of_another_type",
        "default_of_the_struct_without_one",
        "default_that_is_no_text",
        "flattened_option_without_schema",
        "full_of_another_type",
        "generic_type_without_schema",
        "list_by_another_name_without_schema",
        "list_in_an_option_without_schema",
        "list_key_of_a_newtype",
        "list_key_of_no_field",
        "list_key_of_no_field_of_kubernetes",
        "list_map_of_an_alias",
        "list_without_schema",
        "option_without_schema",
        "schema_of_a_type_without_one",
        "type_inside_of_containers",
        "type_of_a_parameter_without_schema",
        "type_without_schema",
    ];
    assert_eq!(silent, expected, "{found:#?}");
}

#[test]
fn core_knows_the_same_keywords_that_say_which_values_there_are() {
    let source = include_str!("../../../framework/core/src/crd/schema/marks.rs");
    let (_, list) = source.split_once("const CONDITIONS: [").expect("the list of core");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let of_core: Vec<&str> = list.lines().filter_map(|it| it.trim().split('"').nth(1)).collect();
    assert_eq!(of_core, super::model::CONDITIONS);
}
