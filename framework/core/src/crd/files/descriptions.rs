//! Descriptions of fields cut down, and the size of a definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Sign behind a text that was cut in the middle of a sentence.
const CUT: char = '…';

/// Cuts the description of each field to at most `max` characters; 0 removes all of them.
///
/// A longer description is cut behind the last whole sentence, or, when the first sentence is too
/// long, behind a word, with `…`. Descriptions change nothing but `kubectl explain`.
///
/// ```
/// # extern crate windlass_core as windlass;
/// # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// # fn example(mut definition: CustomResourceDefinition) {
/// windlass::crd::cut_descriptions(&mut definition, 80);
/// # }
/// ```
pub fn cut_descriptions(definition: &mut CustomResourceDefinition, max: usize) {
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        if let Some(schema) = schema {
            cut_schema(schema, max);
        }
    }
}

/// Returns the size of a definition in bytes, as the JSON that a client sends.
#[must_use]
pub fn json_size(definition: &CustomResourceDefinition) -> usize {
    serde_json::to_vec(definition).map_or(0, |json| json.len())
}

/// Cuts the descriptions of a schema and of all schemas below.
fn cut_schema(schema: &mut JSONSchemaProps, max: usize) {
    schema.description = schema.description.take().and_then(|text| cut(text, max));
    for field in schema.properties.iter_mut().flat_map(|fields| fields.values_mut()) {
        cut_schema(field, max);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => cut_schema(items, max),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => {
            all.iter_mut().for_each(|items| cut_schema(items, max));
        }
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        cut_schema(values, max);
    }
    for list in [&mut schema.all_of, &mut schema.any_of, &mut schema.one_of] {
        list.iter_mut().flatten().for_each(|branch| cut_schema(branch, max));
    }
}

/// Cuts a text; `None` if nothing remains.
fn cut(text: String, max: usize) -> Option<String> {
    if max == 0 {
        return None;
    }
    let Some((end, _)) = text.char_indices().nth(max) else { return Some(text) };
    let head = &text[..end];
    let sentence = [". ", ".\n", "! ", "? "].iter().filter_map(|end| head.rfind(end)).max();
    if let Some(at) = sentence {
        return Some(head[..=at].to_owned());
    }
    // The whole head may be a single sentence.
    if head.ends_with('.') && text[end..].starts_with([' ', '\n']) {
        return Some(head.to_owned());
    }
    // One character less, for the sign.
    let end = text.char_indices().nth(max - 1).map_or(0, |(at, _)| at);
    let head = &text[..end];
    let is_word = text[end..].starts_with(char::is_whitespace);
    let last = head.rfind(char::is_whitespace).filter(|_| !is_word);
    let word = last.map_or(head, |at| &head[..at]).trim_end();
    Some(format!("{word}{CUT}"))
}
