//! Rust types for existing custom resource definitions.
//!
//! [`import_definitions`] reads definitions as YAML and prints a module of Rust: the kind as a
//! struct that derives `CustomResource`, and the nested types. The schema that `crd()` derives from
//! these types equals the imported schema, or a comment at the top names the difference. The
//! program `windlass` of this crate calls the function: `windlass import crd.yaml`.
//!
//! `simplify` removes keywords that derived schemas cannot have, `names` finds identifiers,
//! `module` has the types that are printed so far, `types` turns schemas into types, `fields` and
//! `defaults` have the types and defaults of fields, `attributes` prints attributes, of which
//! `keys` and `rules` have the keys, `documentation` prints descriptions, `root` prints the kind,
//! and `places` the kind's columns, subresources and rules.

// DESIGN.md, 143: Imported types loosen a schema only where Rust's types do

mod attributes;
mod command;
mod defaults;
mod documentation;
mod fields;
mod keys;
mod literals;
mod module;
mod names;
mod places;
mod root;
mod rules;
mod simplify;
mod types;

pub use command::main;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

use windlass_core::crd::definitions_from_yaml;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

/// Options of [`import_definitions`].
///
/// ```
/// let options = windlass::cli::ImportOptions::default().name("sites.example.dev").version("v1");
/// assert_eq!(options.version.as_deref(), Some("v1"));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Name of the definition, such as `sites.example.dev`. Default: all of the text.
    pub name: Option<String>,
    /// Version. Default: the version in which objects are stored.
    pub version: Option<String>,
    /// Whether the derived schema equals the imported schema also in keywords that Rust's types
    /// imply: `nullable` of optional fields, and formats of numbers. Default: no, for shorter
    /// types.
    pub exact: bool,
}

impl ImportOptions {
    /// Selects a definition by name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Selects a version by name, such as `v1`. Default: the storage version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Makes the derived schema equal the imported schema also in keywords that Rust's types imply.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }
}

/// Rust source of imported definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOutput {
    /// Source of a module; a module per definition if there are several.
    pub source: String,
    /// Differences between the imported schemas and those that the types have, with their paths.
    /// The source has them as comments.
    pub warnings: Vec<String>,
}

/// Prints Rust types for the definitions in `text`, YAML in the form of `kubectl get crd -o yaml`.
///
/// # Errors
/// Those of [`definitions_from_yaml`]; [`ErrorKind::NotFound`] without a definition, or without the
/// selected version.
pub fn import_definitions(text: &str, options: &ImportOptions) -> Result<ImportOutput, Error> {
    let all = definitions_from_yaml(text)?;
    let names: Vec<&str> = all.iter().map(ResourceExt::name).collect();
    let is_wanted = |definition: &&CustomResourceDefinition| {
        options.name.as_deref().is_none_or(|name| name == definition.name())
    };
    let wanted: Vec<&CustomResourceDefinition> = all.iter().filter(is_wanted).collect();
    let mut output = ImportOutput { source: String::new(), warnings: Vec::new() };
    match wanted.as_slice() {
        [] => {
            let text = match &options.name {
                Some(name) => format!("there is no definition {name:?}, but {names:?}"),
                None => "the text has no custom resource definition".to_owned(),
            };
            return Err(Error::new(ErrorKind::NotFound, format!("cannot import: {text}")));
        }
        [one] => output.source = import_one(one, options, &mut output.warnings)?,
        several => {
            let mut modules = names::UniqueIdentifiers::default();
            for definition in several {
                let name = modules.field(&definition.spec.names.plural);
                let source = import_one(definition, options, &mut output.warnings)?;
                output.source.push_str(&format!("pub mod {name} {{\n"));
                for line in source.lines() {
                    let indent = if line.is_empty() { "" } else { "    " };
                    output.source.push_str(&format!("{indent}{line}\n"));
                }
                output.source.push_str("}\n\n");
            }
            output.source.truncate(output.source.trim_end().len());
            output.source.push('\n');
        }
    }
    Ok(output)
}

/// Prints the module of a definition.
fn import_one(
    definition: &CustomResourceDefinition,
    options: &ImportOptions,
    warnings: &mut Vec<String>,
) -> Result<String, Error> {
    let version = version_of(definition, options.version.as_deref())?;
    let (source, found) = root::print(definition, version, options.exact);
    warnings.extend(found.into_iter().map(|text| format!("{}: {text}", definition.name())));
    Ok(source)
}

/// Returns the selected version; without a selection that in which objects are stored.
fn version_of<'a>(
    definition: &'a CustomResourceDefinition,
    wanted: Option<&str>,
) -> Result<&'a CustomResourceDefinitionVersion, Error> {
    let versions = &definition.spec.versions;
    let found = match wanted {
        Some(name) => versions.iter().find(|version| version.name == name),
        None => versions.iter().find(|version| version.storage).or(versions.first()),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = versions.iter().map(|version| version.name.as_str()).collect();
        let text = format!(
            "cannot import {:?}: it has no version {:?}, but {names:?}",
            definition.name(),
            wanted.unwrap_or_default()
        );
        Error::new(ErrorKind::NotFound, text)
    })
}

#[cfg(test)]
mod tests;
