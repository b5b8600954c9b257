//! The verdict of an API server on the parts of a version beside the schema: columns, selectable
//! fields, the warning of a deprecated version.
//!
//! Macros see single types, and the definition of a kind collects parts from nested types, so that
//! the number of selectable fields and the schema behind a path are known here only.

use serde_json::Value;

use crate::crd::faults::Faults;

/// Most fields by which an API server selects.
const MOST_SELECTABLE: usize = 8;
/// Most bytes of the warning about a deprecated version, which is sent in a header.
const MOST_WARNING: usize = 256;
/// Types of fields by which API servers select.
pub(in crate::crd) const SELECTABLE: &[&str] = &["string", "integer", "boolean"];
/// Reason for which a field of another type is refused.
pub(in crate::crd) const SELECTABLE_REASON: &str =
    "API servers select by texts, whole numbers and booleans";
/// Types of columns.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
/// Formats of columns.
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Judges a version of a definition.
pub(super) fn judge(version: &Value, faults: &mut Faults) {
    warning(version, faults);
    for column in list(version, "additionalPrinterColumns") {
        self::column(column, faults);
    }
    let schema = &version["schema"]["openAPIV3Schema"];
    let paths: Vec<&str> =
        list(version, "selectableFields").iter().map(|field| text(field, "jsonPath")).collect();
    for (place, path) in paths.iter().enumerate() {
        selectable(path, schema, faults);
        if paths[..place].contains(path) {
            faults.add(format!("selectable: `{path}` is there twice; leave one of them out"));
        }
    }
    if paths.len() > MOST_SELECTABLE {
        faults.add(format!(
            "selectable: there are {} fields, and an API server selects by {MOST_SELECTABLE} at most: {}; remove \
             `selectable` from some, of the kind or of the types inside",
            paths.len(),
            paths.join(", ")
        ));
    }
}

/// Checks that a path goes through listed fields, and keys of maps, to a text, a whole number or a
/// boolean.
fn selectable(path: &str, schema: &Value, faults: &mut Faults) {
    let steps = path.strip_prefix('.').map(|path| path.split('.'));
    let field = steps.and_then(|mut all| all.try_fold(schema, below));
    let Some(field) = field else {
        return faults.add(format!(
            "selectable: `{path}` does not refer to a valid field: an API server selects by fields that the schema \
             lists, and by keys of maps, but by no field of an object whose fields are kept; make it a field of a struct"
        ));
    };
    match field.get("type").and_then(Value::as_str) {
        Some(name) if selects_by(name) => {}
        Some(name) => {
            faults.add(format!("selectable: `{path}` is of type {name}; {SELECTABLE_REASON}"));
        }
        None => faults.add(format!(
            "selectable: `{path}` has no single type in the schema, such as an `IntOrString`, a `Quantity` or an \
             enum of several types; {SELECTABLE_REASON}"
        )),
    }
}

/// Whether API servers select by fields of a type.
pub(in crate::crd) fn selects_by(name: &str) -> bool {
    SELECTABLE.contains(&name)
}

/// Returns the schema of a listed field, or that of a map's values.
fn below<'a>(schema: &'a Value, step: &str) -> Option<&'a Value> {
    let listed = schema.get("properties").and_then(|fields| fields.get(step));
    listed.or_else(|| schema.get("additionalProperties").filter(|values| values.is_object()))
}

/// Checks a column.
fn column(column: &Value, faults: &mut Faults) {
    let (name, path) = (text(column, "name"), text(column, "jsonPath"));
    if name.is_empty() {
        faults.add(format!("column of `{path}`: a column has a heading"));
    }
    if !path.starts_with('.') {
        faults.add(format!("column `{name}`: the path `{path}` must begin with a dot"));
    }
    let words: [(&str, &[&str]); 2] = [("type", &COLUMN_TYPES), ("format", &COLUMN_FORMATS)];
    for (key, known) in words {
        let word = text(column, key);
        if !word.is_empty() && !known.contains(&word) {
            faults.add(format!(
                "column `{name}`: the {key} `{word}` must be one of {}",
                known.join(", ")
            ));
        }
    }
}

/// Checks the warning of a deprecated version.
fn warning(version: &Value, faults: &mut Faults) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let name = text(version, "name");
    if let Some(at) = warning.find(|c: char| !is_printable(c)) {
        faults.add(format!(
            "version {name}: the warning must only contain printable UTF-8 characters, and there is another at byte \
             {at}; write ASCII spaces, no end of a line, and no invisible character"
        ));
    }
    if warning.is_empty() || warning.len() > MOST_WARNING {
        faults.add(format!(
            "version {name}: the warning has {} bytes; it must have 1 to {MOST_WARNING} bytes, of which a letter \
             such as `é` takes more than one",
            warning.len()
        ));
    }
}

/// Whether Go prints a character (`unicode.IsPrint`): the space, and all but controls, formats,
/// other blanks, private and unassigned characters.
///
/// std escapes the same characters, except those that its Unicode tables assign and the older ones
/// of a server do not: these pass.
fn is_printable(c: char) -> bool {
    // At the beginning of a text std also escapes the marks that extend a letter.
    let text = String::from_iter(['a', c]);
    matches!(c, '\'' | '"' | '\\') || text.escape_debug().nth(1) != Some('\\')
}

/// The elements of a list; none where there is no list.
fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text; empty where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
