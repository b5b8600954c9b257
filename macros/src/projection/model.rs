//! Input of the code generator of `#[derive(Projection)]`: fields, and the tree of paths that they
//! are read by.

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, Type};

use super::attrs::{ProjectionAttrs, ProjectionFieldAttrs};
use crate::derived::Derived;
use crate::errors::Errors;
use crate::keys::WithSpan;
use crate::names;
use crate::path::{ParsedPath, PathStep, Segment, plain};

/// The answer to derives of serde.
const OTHER_DERIVES: &str = "`Projection` implements `Serialize` and `Deserialize` for the struct: remove serde's \
                             derives here; the types of its fields have them";

/// A struct that shows a part of a kind.
#[derive(Debug)]
pub(super) struct ProjectionModel {
    pub(super) ident: Ident,
    pub(super) of: Option<Type>,
    pub(super) has_of: bool,
    /// Parts of the metadata that are not read.
    pub(super) skip: Vec<String>,
    /// Path of windlass in generated code; `None`: `::windlass`.
    pub(super) krate: Option<syn::Path>,
    /// All fields, `metadata` included, in order.
    pub(super) fields: Vec<ProjectionField>,
    /// Whether the input is a struct; `false` is a fault that is reported.
    pub(super) is_struct: bool,
    /// Impls of other derives; a fault that is reported.
    pub(super) derived: Derived,
}

/// A field of the projection.
#[derive(Debug)]
pub(super) struct ProjectionField {
    pub(super) ident: Ident,
    pub(super) ty: Type,
    /// Names in JSON from the root to the value. For Rust fields, their names in camelCase:
    /// generated code finds the true names.
    pub(super) path: Vec<String>,
    /// The path, if written as Rust fields, or as the name of this field alone.
    pub(super) fields: Option<ParsedPath>,
    /// Whether the path is the name of this field.
    pub(super) is_own: bool,
    /// Position of the path, or of the field.
    pub(super) span: Span,
    pub(super) absent: Absent,
    pub(super) is_list: bool,
    /// Set if the field is a single label or annotation: `labels` or `annotations`. The path ends
    /// with the key.
    pub(super) pick: Option<&'static str>,
}

/// Value of a field that the object does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    None,
    Default,
    /// The object does not decode.
    Fault,
}

/// A node of the object below which fields lie.
#[derive(Debug, Default)]
pub(super) struct PathNode {
    pub(super) members: Vec<(String, NodeMember)>,
}

/// Member of a node under a name.
#[derive(Debug)]
pub(super) enum NodeMember {
    /// The field with this index in the struct.
    Field(usize),
    Node(PathNode),
}

impl ProjectionModel {
    /// Reads attributes and fields of the input.
    pub(super) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        let attrs = ProjectionAttrs::read(&input.attrs, errors);
        let (is_struct, fields) = named_fields(input, errors);
        Self {
            ident: input.ident.clone(),
            of: attrs.of,
            has_of: attrs.has_of,
            skip: attrs.skip,
            krate: attrs.krate,
            fields,
            is_struct,
            derived: Derived::read(&input.attrs, OTHER_DERIVES, errors),
        }
    }

    /// Returns the paths as a tree. The model must have been checked.
    pub(super) fn tree(&self) -> PathNode {
        let mut root = PathNode::default();
        for (place, field) in self.fields.iter().enumerate() {
            // Single labels and annotations are read with the metadata, not as members of the tree.
            if field.pick.is_none() {
                root.add(&field.path, place);
            }
        }
        root
    }

    /// Returns the single labels or annotations that fields read.
    pub(super) fn selected(&self, part: &str) -> PathNode {
        let mut node = PathNode::default();
        for (place, field) in self.fields.iter().enumerate() {
            if let (Some(pick), Some(key)) = (field.pick, field.path.last())
                && pick == part
            {
                node.members.push((key.clone(), NodeMember::Field(place)));
            }
        }
        node
    }
}

impl PathNode {
    /// Adds a field below `path`; `place` is the field's index in the struct.
    fn add(&mut self, path: &[String], place: usize) {
        let Some((first, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.members.push((first.clone(), NodeMember::Field(place)));
            return;
        }
        let known = self.members.iter().position(|(name, _)| name == first);
        let at = known.unwrap_or_else(|| {
            self.members.push((first.clone(), NodeMember::Node(Self::default())));
            self.members.len() - 1
        });
        if let NodeMember::Node(node) = &mut self.members[at].1 {
            node.add(rest, place);
        }
    }
}

impl ProjectionField {
    /// Reads a field: the path, and the value for an object without the field.
    fn new(field: &syn::Field, errors: &mut Errors) -> Option<Self> {
        let ident = field.ident.clone()?;
        let attrs = ProjectionFieldAttrs::read(&field.attrs, errors);
        let name = names::camel(&syn::ext::IdentExt::unraw(&ident).to_string());
        let selected = |part: &str, key: WithSpan<String>| {
            (vec!["metadata".to_owned(), part.to_owned(), key.value], key.span)
        };
        let given = [
            attrs.path.as_ref().map(PathStep::span),
            attrs.label.as_ref().map(|label| label.span),
            attrs.annotation.as_ref().map(|annotation| annotation.span),
        ];
        if let Some(second) = given.into_iter().flatten().nth(1) {
            errors.at(second, "a field lies at one place: `path`, `label` or `annotation`");
        }
        let (mut pick, mut fields) = (None, None);
        let (path, span) = if let Some(path) = attrs.path {
            let span = path.span();
            match path {
                PathStep::Text(path) => {
                    let text = path.value.strip_prefix('.').unwrap_or(&path.value);
                    (text.split('.').map(str::to_owned).collect(), span)
                }
                PathStep::Fields(path) => (guessed(fields.insert(path), errors), span),
            }
        } else if let Some(key) = attrs.label {
            pick = Some("labels");
            selected("labels", key)
        } else if let Some(key) = attrs.annotation {
            pick = Some("annotations");
            selected("annotations", key)
        } else {
            fields = own(&ident);
            let name = match &fields {
                Some(path) => guessed(path, errors).remove(0),
                None => name,
            };
            (vec![name], ident.span())
        };
        let outer = outer(&field.ty);
        let absent = match outer.as_deref() {
            _ if attrs.default.is_some() => Absent::Default,
            Some("Option") => Absent::None,
            // Kubernetes leaves empty lists and maps out.
            Some("Vec" | "BTreeMap" | "BTreeSet" | "HashMap" | "HashSet") => Absent::Default,
            _ => Absent::Fault,
        };
        let is_list = outer.as_deref() == Some("Vec");
        let is_own = given.iter().all(Option::is_none);
        Some(Self {
            ident,
            ty: field.ty.clone(),
            path,
            fields,
            is_own,
            span,
            absent,
            is_list,
            pick,
        })
    }
}

// DESIGN.md, 287: A field of a projection without a path is the field of that name of the kind

/// Returns the path of a field without `path`. Metadata are read apart; a word of Rust has another
/// name in types of k8s-openapi.
fn own(ident: &Ident) -> Option<ParsedPath> {
    let is_word = ident.to_string().starts_with("r#");
    (ident != "metadata" && !is_word).then(|| ParsedPath::new(vec![Segment::Field(ident.clone())]))
}

/// Returns the names of Rust fields in camelCase: those in JSON for nearly all types.
fn guessed(path: &ParsedPath, errors: &mut Errors) -> Vec<String> {
    let name = |segment: &Segment| match segment {
        // `type_` is the name of k8s-openapi for `type`.
        Segment::Field(ident) => Some(names::camel(plain(ident).trim_end_matches('_'))),
        _ => None,
    };
    if let Some(other) = path.no_field() {
        let message = "a path goes through objects only: take the list as a `Vec` of a struct that \
                       derives `Serialize` and `Deserialize`, and one label by `label = \"…\"`";
        errors.at(other.span(), message);
    }
    path.segments.iter().filter_map(name).collect()
}

/// Returns the type's name without path and parameters.
fn outer(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// Returns whether the input is a struct with named fields, and the struct's fields.
fn named_fields(input: &DeriveInput, errors: &mut Errors) -> (bool, Vec<ProjectionField>) {
    let shape = "a projection is a struct with named fields: \
                 `metadata: ObjectMeta` and those that are read";
    if !input.generics.params.is_empty() {
        let span = syn::spanned::Spanned::span(&input.generics);
        errors.at(span, "a projection has no type parameters: it is a part of one kind");
        return (false, Vec::new());
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => (
                true,
                named
                    .named
                    .iter()
                    .filter_map(|field| ProjectionField::new(field, errors))
                    .collect(),
            ),
            _ => {
                errors.at(input.ident.span(), shape);
                (false, Vec::new())
            }
        },
        _ => {
            errors.at(input.ident.span(), shape);
            (false, Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn model(input: &DeriveInput) -> (ProjectionModel, Vec<String>) {
        let mut errors = Errors::default();
        let model = ProjectionModel::new(input, &mut errors);
        super::super::check::check(&model, &mut errors);
        let texts = errors.texts();
        errors.finish();
        (model, texts)
    }

    #[test]
    fn fields_lie_at_their_own_names_or_at_the_path_that_is_given() {
        let (model, faults) = model(&parse_quote! {
            #[projection(of = Pod, skip(annotations))]
            struct View {
                metadata: ObjectMeta,
                #[projection(path = "spec.nodeName")]
                node: Option<String>,
                #[projection(path = ".spec.containers")]
                containers: Vec<Image>,
                last_seen: u8,
                #[projection(default)]
                r#type: String,
            }
        });
        assert!(faults.is_empty(), "{faults:?}");
        let paths: Vec<_> = model.fields.iter().map(|field| field.path.join("/")).collect();
        assert_eq!(paths, ["metadata", "spec/nodeName", "spec/containers", "lastSeen", "type"]);
        let absent: Vec<_> = model.fields.iter().skip(1).map(|field| field.absent).collect();
        assert_eq!(absent, [Absent::None, Absent::Default, Absent::Fault, Absent::Default]);
        assert_eq!(model.skip, ["annotations"]);
        let tree = model.tree();
        assert_eq!(tree.members.len(), 4);
        let (name, NodeMember::Node(spec)) = &tree.members[1] else { panic!("a node") };
        assert_eq!((name.as_str(), spec.members.len()), ("spec", 2));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let (_, faults) = model(&parse_quote! {
            #[projection(off = Pod, skip(label))]
            struct View {
                #[projection(path = "spec.containers[].image")]
                image: String,
                #[projection(path = "spec..a")]
                a: String,
                spec: Spec,
                #[projection(path = "spec.nodeName")]
                node: String,
                kind: String,
            }
        });
        for part in [
            "unknown key `off`; did you mean `of`?",
            "unknown part of the metadata `label`; did you mean `labels`?",
            "a path goes through objects only",
            "`spec..a` is not a path",
            "`spec.nodeName` lies in `spec`, which the field `spec` reads",
            "`kind` is that of the projected type: remove this field",
            "a projection has a field `metadata: ObjectMeta`",
        ] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part} not in {faults:#?}");
        }
        assert_eq!(faults.len(), 9, "{faults:#?}");
    }
}
