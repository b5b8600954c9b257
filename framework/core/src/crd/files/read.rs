//! Definitions in a YAML text of any number of documents.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::error::{Error, ErrorKind};

const GROUP: &str = "apiextensions.k8s.io/";
/// Deepest nesting of a document, which is also the limit of the YAML reader: a schema of 28
/// levels. A deeper document would need more stack than a thread has.
const MOST_LEVELS: usize = 64;

/// Reads all custom resource definitions of a YAML or JSON text.
///
/// The text may have several documents, and lists (`kind: List`) in them, as the output of
/// `kubectl get -o yaml` and of `manifests`; objects of other kinds are left out. Their order
/// stays.
///
/// # Errors
/// [`ErrorKind::Decode`] for a text that is no YAML, with the line; for a definition of
/// `apiextensions.k8s.io/v1beta1`, which no API server has had since Kubernetes 1.22; for one that
/// does not decode, with the name.
pub fn definitions_from_yaml(text: &str) -> Result<Vec<CustomResourceDefinition>, Error> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        Error::new(ErrorKind::Decode, "cannot read definitions: the text is not YAML")
            .because(error)
    })?;
    let mut found = Vec::new();
    for document in documents {
        if depth(&document) > MOST_LEVELS {
            let text = format!(
                "cannot read definitions: a document is nested deeper than {MOST_LEVELS} levels"
            );
            return Err(Error::new(ErrorKind::Decode, text));
        }
        collect(document, &mut found)?;
    }
    Ok(found)
}

/// Adds the definitions of a document.
fn collect(document: Value, found: &mut Vec<CustomResourceDefinition>) -> Result<(), Error> {
    let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
    if kind == "List" || kind == "CustomResourceDefinitionList" {
        let Value::Object(mut list) = document else { return Ok(()) };
        let Some(Value::Array(items)) = list.remove("items") else { return Ok(()) };
        for mut item in items {
            // The elements of a typed list do not name their kind.
            if kind != "List"
                && let Value::Object(item) = &mut item
            {
                item.entry("kind").or_insert("CustomResourceDefinition".into());
                item.entry("apiVersion").or_insert(version.clone().into());
            }
            collect(item, found)?;
        }
        return Ok(());
    }
    if kind != "CustomResourceDefinition" {
        return Ok(());
    }
    let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let name = name.to_owned();
    let refused = |text: String| {
        Error::new(ErrorKind::Decode, format!("cannot read the definition {name:?}: {text}"))
    };
    if version == format!("{GROUP}v1beta1") {
        let text = "apiextensions.k8s.io/v1beta1 ended with Kubernetes 1.22; write it as \
                    apiextensions.k8s.io/v1: one schema in each version (`schema.openAPIV3Schema`), \
                    `additionalPrinterColumns[].jsonPath` instead of `JSONPath`, and no \
                    `validation` or `version` beside `versions`";
        return Err(refused(text.to_owned()));
    }
    if version != format!("{GROUP}v1") {
        return Err(refused(format!("its apiVersion is {version:?}, not \"{GROUP}v1\"")));
    }
    let definition = serde_json::from_value(document)
        .map_err(|error| refused("it has a field of a wrong type".to_owned()).because(error))?;
    found.push(definition);
    Ok(())
}

/// Number of levels of a value.
fn depth(value: &Value) -> usize {
    // Without recursion, as the depth is not known yet.
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, level + 1))),
            _ => {}
        }
    }
    deepest
}
