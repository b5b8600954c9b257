//! The rules of columns, scale, selectable fields, rules and indexes.

use super::check_rules;
use super::model::ResourceModel;
use super::place::{ColumnAttr, ScaleAttr, USUAL};
use crate::errors::Errors;
use crate::keys::{WithSpan, closest, unknown};
use crate::path::{ParsedPath, PathStep, Segment, plain};

/// Types of columns that API servers accept (`additionalPrinterColumns`).
pub(crate) const COLUMN_TYPES: &[&str] = &["integer", "number", "string", "boolean", "date"];
/// Formats of columns that API servers accept.
pub(crate) const COLUMN_FORMATS: &[&str] =
    &["int32", "int64", "float", "double", "byte", "date", "date-time", "password"];
/// Most selectable fields of a version.
const MOST_SELECTABLE: usize = 8;

/// Checks every rule.
pub(super) fn check(model: &ResourceModel, errors: &mut Errors) {
    for column in &model.columns {
        check_column(model, column, errors);
    }
    if let Some(scale) = &model.scale {
        check_scale(model, scale, errors);
    }
    selectable(model, errors);
    for rule in &model.rules {
        check_rules::check(model, rule, errors);
        if let Some(path) = &rule.path {
            simple(model, path, "the place of a fault", errors);
        }
    }
    indexes(model, errors);
}

/// The API server refuses columns without a name or with another type or format.
fn check_column(model: &ResourceModel, column: &ColumnAttr, errors: &mut Errors) {
    let tried = |key: &str| column.tried.iter().any(|tried| tried == key);
    match &column.name {
        None if tried("name") || column.place.is_none() => {}
        None => errors.at(
            column.key.span,
            "a column needs a heading: `column(\"Host\", …)`, or `name = \"Host\"`",
        ),
        Some(name) if name.value.trim().is_empty() => {
            errors.at(name.span, "a column needs a heading, such as `Host`");
        }
        Some(_) => {}
    }
    match &column.place {
        None if tried("path") => {}
        None => errors.at(
            column.key.span,
            "a column needs a field: `column(\"Host\", spec.host)`, or `path = \".spec.host\"`",
        ),
        Some(PathStep::Text(path)) => json_path(path, ".spec.host", errors),
        Some(PathStep::Fields(path)) if path.segments.len() == 1 => word(model, path, errors),
        Some(PathStep::Fields(path)) => fields(model, path, errors),
    }
    if let Some(kind) = column.kind.as_ref().filter(|kind| !COLUMN_TYPES.contains(&&*kind.value)) {
        errors.at(kind.span, unknown("column type", &kind.value, COLUMN_TYPES));
    }
    let format = column.format.as_ref();
    if let Some(format) = format.filter(|format| !COLUMN_FORMATS.contains(&&*format.value)) {
        errors.at(format.span, unknown("column format", &format.value, COLUMN_FORMATS));
    }
    if let Some(priority) = column.priority.as_ref().filter(|priority| priority.value < 0) {
        errors.at(priority.span, "a priority is 0 (always shown) or more (shown with `-o wide`)");
    }
}

/// Checks a single word: a field of the object, as the words of columns that most kinds have are
/// taken before.
fn word(model: &ResourceModel, path: &ParsedPath, errors: &mut Errors) {
    let word = plain(path.root());
    if !model.is_struct || word == "metadata" || model.field(&word).is_some() {
        return;
    }
    let fields = field_names(model);
    let usual: Vec<&str> = USUAL.iter().map(|(word, ..)| *word).collect();
    let all: Vec<&str> = usual.iter().copied().chain(fields.iter().map(String::as_str)).collect();
    let columns = usual.join("` and `");
    let message = match closest(&word, &all) {
        Some(meant) => format!(
            "unknown field `{word}`; did you mean `{meant}`? The columns `{columns}` need no field"
        ),
        None => {
            let list = fields.join("`, `");
            format!(
                "unknown field `{word}`; expected one of `{list}`, or `{columns}`, which need no field"
            )
        }
    };
    errors.at(path.root().span(), message);
}

/// The API server reads the scale through plain paths below `.spec` and `.status` only.
fn check_scale(model: &ResourceModel, scale: &ScaleAttr, errors: &mut Errors) {
    if scale.is_told {
        return;
    }
    if let Some((first, second)) = scale.swapped() {
        let message = format!(
            "`scale` takes the wanted count of `spec` first and the present one of `status` second: \
             `scale({}, {})`",
            written(second),
            written(first)
        );
        errors.at(first.start(), message);
        return;
    }
    let counts =
        [("spec", "spec.replicas", &scale.spec), ("status", "status.replicas", &scale.status)];
    let is_missing = |(key, _, place): &(&str, &str, &Option<PathStep>)| {
        place.is_none() && !scale.tried.iter().any(|tried| tried == key)
    };
    if counts.iter().any(is_missing) {
        // A single count may stand in the place of the other.
        let is_given =
            |key| counts.iter().any(|(.., it)| it.as_ref().is_some_and(|it| it.is_below(key)));
        let absent = counts.iter().filter(|(key, ..)| !is_given(key));
        let absent: Vec<String> = absent.map(|(_, example, _)| format!("`{example}`")).collect();
        let verb = if absent.len() == 1 { "is" } else { "are" };
        let message = format!(
            "`scale` needs two fields: `scale(spec.replicas, status.replicas)`; {} {verb} missing",
            absent.join(" and ")
        );
        errors.at(scale.key.span, message);
    } else {
        for (key, example, place) in counts {
            place.iter().for_each(|place| below(model, place, &[key], example, errors));
        }
    }
    if let Some(place) = &scale.selector {
        below(model, place, &["spec", "status"], "status.selector", errors);
    }
}

/// Returns a place as written in an attribute.
fn written(place: &PathStep) -> String {
    match place {
        PathStep::Text(text) => format!("{:?}", text.value),
        PathStep::Fields(path) => path.text(),
    }
}

/// The API server takes at most eight fields, none in lists or maps, and has the metadata anyway.
fn selectable(model: &ResourceModel, errors: &mut Errors) {
    let mut taken: Vec<String> = Vec::new();
    for place in &model.selectable {
        simple(model, place, "a selectable field", errors);
        let text = place.text();
        let plain = text.trim_start_matches('.').to_owned();
        if plain.starts_with("metadata") {
            let message = "of the metadata, name and namespace are selectable by themselves, and \
                           nothing else can be";
            errors.at(place.span(), message);
        }
        if taken.contains(&plain) {
            errors.at(place.span(), format_args!("`{text}` is selectable already"));
        }
        taken.push(plain);
        if taken.len() == MOST_SELECTABLE + 1 {
            errors.at(place.span(), "API servers take at most 8 selectable fields");
        }
    }
}

/// Checks that a place is a chain of fields below one of `roots`.
fn below(
    model: &ResourceModel,
    place: &PathStep,
    roots: &[&str],
    example: &str,
    errors: &mut Errors,
) {
    let text = place.text();
    let fits = match place {
        PathStep::Text(path) => roots.iter().any(|root| {
            path.value.strip_prefix('.').is_some_and(|rest| rest.starts_with(&format!("{root}.")))
        }),
        PathStep::Fields(path) => roots.iter().any(|root| plain(path.root()) == *root),
    };
    if !fits || text.trim_start_matches('.').split('.').count() < 2 {
        let roots: Vec<_> = roots.iter().map(|root| format!("`{root}`")).collect();
        let roots = roots.join(" or ");
        errors.at(
            place.start(),
            format_args!("`{text}` is not a field below {roots}, such as `{example}`"),
        );
    } else {
        simple(model, place, "a field of `scale`", errors);
    }
}

/// Checks that a place is a chain of fields, without lists and maps.
fn simple(model: &ResourceModel, place: &PathStep, what: &str, errors: &mut Errors) {
    match place {
        PathStep::Text(path) => {
            let name = |part: &str| {
                !part.is_empty()
                    && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            };
            let is_plain =
                path.value.strip_prefix('.').is_some_and(|rest| rest.split('.').all(name));
            if !is_plain {
                let message = format!(
                    "`{}` is not a JSON path of names alone, which {what} needs: write it like `.spec.host`",
                    path.value
                );
                errors.at(path.span, message);
            }
        }
        PathStep::Fields(path) => {
            fields(model, path, errors);
            let list = path.no_field().filter(|segment| {
                // Reported by `fields`.
                !matches!(segment, Segment::Keys(_) | Segment::Values(_))
            });
            if let Some(segment) = list {
                errors
                    .at(segment.span(), format_args!("{what} is not an element of a list or map"));
            }
        }
    }
}

/// Checks the first field of a path, with a text that is better than that of the compiler, and that
/// the path has a place in JSON.
fn fields(model: &ResourceModel, path: &ParsedPath, errors: &mut Errors) {
    root(model, path, errors);
    let call = path
        .segments
        .iter()
        .find(|segment| matches!(segment, Segment::Keys(_) | Segment::Values(_)));
    if let Some(call) = call {
        errors.at(
            call.span(),
            "`keys()` and `values()` have no place in JSON: only an index has them",
        );
    }
}

/// Checks the first field of a path.
fn root(model: &ResourceModel, path: &ParsedPath, errors: &mut Errors) {
    let first = plain(path.root());
    if model.is_struct && first != "metadata" && model.field(&first).is_none() {
        let known = field_names(model);
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        errors.at(path.root().span(), unknown("field", &first, &known));
    }
}

/// Returns the names of the fields of the object.
fn field_names(model: &ResourceModel) -> Vec<String> {
    let fields = model.fields.iter().map(|field| plain(&field.ident));
    std::iter::once("metadata".to_owned()).chain(fields).collect()
}

/// A JSON path begins with a dot; without a dot kubectl prints empty columns.
fn json_path(path: &WithSpan<String>, example: &str, errors: &mut Errors) {
    let text = &path.value;
    let balanced = text.matches('[').count() == text.matches(']').count();
    if !text.starts_with('.') || text.len() < 2 || text.contains("..") || !balanced {
        errors
            .at(path.span, format_args!("`{text}` is not a JSON path: write it like `{example}`"));
    }
}

/// Each index becomes a constant, so names are unique.
fn indexes(model: &ResourceModel, errors: &mut Errors) {
    let mut taken: Vec<String> = Vec::new();
    for index in &model.indexes {
        let name = index.constant();
        if let Some(proposal) = index.proposal() {
            let message = format!(
                "an index is named in lower case, and its constant in capitals: write `{proposal}` for \
                 `{}::{name}`",
                model.ident
            );
            errors.at(index.name.span(), message);
        } else if taken.contains(&name) {
            errors
                .at(index.name.span(), format_args!("there is already an index `{}`", index.name));
        }
        taken.push(name);
        match &index.source {
            PathStep::Text(path) => {
                json_path(path, ".spec.host", errors);
                if path.value.contains(['[', '\'', '"']) {
                    errors
                        .at(path.span, "name fields only: lists along the path are looked through");
                }
            }
            PathStep::Fields(path) => root(model, path, errors),
        }
    }
}
