//! `manifests diff`: the changes of an operator's definitions since an older file.

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::escape::escaped;
use super::options::Diff;
use windlass_core::crd::{APPLY_LIMIT, ChangeKind, changes, definitions_from_yaml, json_size};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

/// Exit code for a change that breaks.
const BREAKS: u8 = 2;
/// Largest file that is read, in bytes: definitions have at most 1.5 MiB each.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Prints the changes of the definitions, and returns the exit code.
///
/// # Errors
/// The file cannot be read, or has no definition.
pub(super) fn run(diff: &Diff, new: &[CustomResourceDefinition]) -> Result<ExitCode, Error> {
    let old = definitions_from_yaml(&read(&diff.old)?)?;
    let (text, breaks) = compare(&old, new, diff.allow_ratcheted, &diff.old)?;
    // A closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if breaks { ExitCode::from(BREAKS) } else { ExitCode::SUCCESS })
}

/// Returns the changes in words, and whether any change breaks.
///
/// # Errors
/// [`ErrorKind::Config`] without a definition on either side.
fn compare(
    old: &[CustomResourceDefinition],
    new: &[CustomResourceDefinition],
    allow_ratcheted: bool,
    path: &Path,
) -> Result<(String, bool), Error> {
    let path = path.display();
    let missing = |reason: String| {
        let text = format!("cannot compare custom resource definitions: {reason}");
        Err(Error::new(ErrorKind::Config, text))
    };
    if new.is_empty() {
        return missing("the operator has none".to_owned());
    }
    if old.is_empty() {
        return missing(format!("{path} has none; write the old manifests to it"));
    }
    let (mut text, mut counts) = (String::new(), [0; 3]);
    for definition in new {
        let Some(old) = old.iter().find(|old| old.name() == definition.name()) else {
            text.push_str(&format!("{}: the definition is new\n", definition.name()));
            continue;
        };
        let changes = changes(old, definition);
        let kinds = [ChangeKind::Breaking, ChangeKind::Ratcheted, ChangeKind::Compatible];
        for (count, kind) in counts.iter_mut().zip(kinds) {
            *count += changes.count(kind);
        }
        // Descriptions and patterns are texts of a file: they must not write to the terminal.
        for line in changes.to_string().lines() {
            text.push_str(&format!("{}\n", escaped(line)));
        }
    }
    for gone in old.iter().filter(|old| !new.iter().any(|new| new.name() == old.name())) {
        // A file may have definitions of others: only definitions of the operator's groups belong
        // to the operator.
        if new.iter().any(|new| new.spec.group == gone.spec.group) {
            counts[0] += 1;
            text.push_str(&format!(
                "{}:\n  breaking [definition-removed]: the operator no longer has this kind; its objects stay \
                 until the definition is deleted, and nothing reconciles them\n",
                escaped(gone.name())
            ));
        }
    }
    let [breaking, ratcheted, compatible] = counts;
    text.push_str(&format!(
        "{breaking} breaking, {ratcheted} ratcheted (unchanged values of stored objects stay valid), {compatible} \
         compatible\n"
    ));
    Ok((text, breaking > 0 || (ratcheted > 0 && !allow_ratcheted)))
}

/// Reads a file, or the standard input.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let limited = |source: &mut dyn Read, text: &mut String| {
        source.take(MOST_BYTES).read_to_string(text).map(|_| ())
    };
    let outcome = if path == Path::new("-") {
        limited(&mut std::io::stdin(), &mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| limited(&mut file, &mut text))
    };
    match outcome {
        Ok(()) => Ok(text),
        Err(error) => {
            let text = format!("cannot read {}", path.display());
            Err(Error::new(ErrorKind::Config, text).because(error))
        }
    }
}

/// Names each definition on the standard error that `kubectl apply` cannot apply.
pub(super) fn warn_of_size(definitions: &[CustomResourceDefinition]) {
    for text in definitions.iter().filter_map(size_warning) {
        let _ = writeln!(std::io::stderr(), "warning: {text}");
    }
}

/// Returns the warning about the size of a definition.
fn size_warning(definition: &CustomResourceDefinition) -> Option<String> {
    let size = json_size(definition);
    (size > APPLY_LIMIT).then(|| {
        format!(
            "the custom resource definition {:?} has {} KiB as JSON, and `kubectl apply` copies at most {} KiB into \
             its annotation: use `kubectl apply --server-side`, or shorten descriptions by `--max-description`",
            definition.name(),
            size.div_ceil(1024),
            APPLY_LIMIT / 1024
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A definition with a field of this schema.
    fn definition(plural: &str, field: &serde_json::Value) -> CustomResourceDefinition {
        let schema = json!({ "type": "object", "properties": { "a": field } });
        let value = json!({
            "metadata": { "name": format!("{plural}.example.dev") },
            "spec": {
                "group": "example.dev", "scope": "Namespaced",
                "names": { "kind": "Site", "plural": plural },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        });
        serde_json::from_value(value).unwrap()
    }

    fn between(
        old: &[CustomResourceDefinition],
        new: &[CustomResourceDefinition],
        allow_ratcheted: bool,
    ) -> (String, bool) {
        compare(old, new, allow_ratcheted, Path::new("old.yaml")).unwrap()
    }

    #[test]
    fn a_break_and_a_change_that_is_ratcheted_are_counted_apart() {
        let of = |max: i32| definition("sites", &json!({ "type": "integer", "maximum": max }));
        let (text, breaks) = between(&[of(9)], &[of(5)], false);
        assert!(
            text.contains("ratcheted [bound-tightened] v1 .a: `maximum` changes from 9 to 5"),
            "{text}"
        );
        assert!(text.ends_with("0 breaking, 1 ratcheted (unchanged values of stored objects stay valid), 0 compatible\n"));
        assert!(breaks);
        assert!(!between(&[of(9)], &[of(5)], true).1);
        assert!(!between(&[of(5)], &[of(9)], false).1);
    }

    #[test]
    fn a_kind_that_is_gone_breaks_and_a_new_one_does_not() {
        let (sites, pages) = (definition("sites", &json!({})), definition("pages", &json!({})));
        let both = [sites.clone(), pages];
        let one = std::slice::from_ref(&sites);
        let (text, breaks) = between(&both, one, true);
        assert!(
            breaks && text.contains("pages.example.dev:\n  breaking [definition-removed]"),
            "{text}"
        );
        let (text, breaks) = between(one, &both, false);
        assert!(!breaks && text.contains("pages.example.dev: the definition is new"), "{text}");
        let mut foreign = definition("sites", &json!({}));
        foreign.spec.group = "example.org".to_owned();
        foreign.metadata.name = Some("sites.example.org".to_owned());
        assert!(!between(&[sites.clone(), foreign], one, false).1);
    }

    #[test]
    fn files_without_definitions_are_an_error() {
        let sites = [definition("sites", &json!({}))];
        let error = compare(&[], &sites, false, Path::new("old.yaml")).unwrap_err();
        assert!(error.to_string().contains("old.yaml has none"), "{error}");
        assert!(compare(&sites, &[], false, Path::new("old.yaml")).is_err());
        let error = read(Path::new("/there/is/no/such/file")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }

    #[test]
    fn a_definition_that_kubectl_cannot_apply_is_named_with_its_size() {
        let small = definition("sites", &json!({ "description": "x" }));
        assert_eq!(size_warning(&small), None);
        let large = definition("sites", &json!({ "description": "x".repeat(300 * 1024) }));
        let text = size_warning(&large).unwrap();
        assert!(text.contains("\"sites.example.dev\" has 301 KiB"), "{text}");
        let mut cut = large;
        windlass_core::crd::cut_descriptions(&mut cut, 0);
        assert_eq!(size_warning(&cut), None);
    }
}
