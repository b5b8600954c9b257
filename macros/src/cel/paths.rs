//! The paths of an object that an expression reads.

use proc_macro2::{Ident, Span};
use syn::LitStr;
use windlass_cel::syntax::ast::operators::{INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT};
use windlass_cel::syntax::ast::{Call, Comprehension};
use windlass_cel::syntax::{Expr, ExprKind, Literal};

use crate::object::rust_name;
use crate::path::Segment;

/// Fields that types of Kubernetes leave out.
const TYPE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// A step to a value, by its name in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JsonStep {
    Field(String),
    Key(String),
    Item(usize),
    Each,
}

type Steps = Vec<JsonStep>;

/// Returns the paths in Rust, those that are parts of longer ones left out.
pub(super) fn of(root: &Expr, place: Span) -> Vec<Vec<Segment>> {
    let mut reader = PathCollector::default();
    reader.read(root);
    let found = reader.found;
    let is_whole = |steps: &&Steps| {
        !found.iter().any(|other| other.len() > steps.len() && other.starts_with(steps))
    };
    let is_of_type = |steps: &&Steps| matches!(&steps[0], JsonStep::Field(name) if !TYPE_FIELDS.contains(&&**name));
    let whole = found.iter().filter(is_whole).filter(is_of_type);
    whole.map(|steps| segments(steps, place)).collect()
}

fn segments(steps: &Steps, place: Span) -> Vec<Segment> {
    let segment = |step: &JsonStep| match step {
        JsonStep::Field(name) => Segment::Field(Ident::new(&rust_name(name), place)),
        JsonStep::Key(name) => Segment::Key(LitStr::new(name, place)),
        JsonStep::Item(at) => Segment::Item(*at, place),
        JsonStep::Each => Segment::Each(place),
    };
    steps.iter().map(segment).collect()
}

/// Collects the paths of an expression.
#[derive(Debug, Default)]
struct PathCollector {
    /// Each path once, in the order of the expression.
    found: Vec<Steps>,
    /// The names of loops, innermost last, with the value that each stands for.
    names: Vec<(String, Option<Steps>)>,
}

impl PathCollector {
    /// Returns the steps from the object to the value of an expression; `None` for any other value.
    fn read(&mut self, expr: &Expr) -> Option<Steps> {
        match &expr.kind {
            ExprKind::Literal(_) => None,
            ExprKind::Ident(name) => self.named(name),
            ExprKind::Select(select) => {
                let steps = self.read(&select.operand);
                self.goes_to(steps, JsonStep::Field(select.field.clone()))
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::List(list) => self.all(&list.elements),
            ExprKind::Map(entries) => {
                for entry in entries {
                    self.read(&entry.key);
                    self.read(&entry.value);
                }
                None
            }
            ExprKind::Struct(literal) => self.all(literal.fields.iter().map(|field| &field.value)),
            ExprKind::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn all<'a>(&mut self, expressions: impl IntoIterator<Item = &'a Expr>) -> Option<Steps> {
        for expr in expressions {
            self.read(expr);
        }
        None
    }

    fn named(&self, name: &str) -> Option<Steps> {
        if let Some((_, steps)) = self.names.iter().rev().find(|(known, _)| known == name) {
            return steps.clone();
        }
        matches!(name, "object" | "oldObject").then(Vec::new)
    }

    /// Returns the path with a step more, which is collected.
    fn goes_to(&mut self, steps: Option<Steps>, step: JsonStep) -> Option<Steps> {
        let mut steps = steps?;
        // The first step is a field, however it is written.
        steps.push(match step {
            JsonStep::Key(name) if steps.is_empty() => JsonStep::Field(name),
            step => step,
        });
        if !self.found.contains(&steps) {
            self.found.push(steps.clone());
        }
        Some(steps)
    }

    fn call(&mut self, call: &Call) -> Option<Steps> {
        let target = call.target.as_ref().and_then(|target| self.read(target));
        match (call.function.as_str(), call.args.as_slice()) {
            (INDEX | OPTIONAL_INDEX, [value, index]) => {
                let steps = self.read(value);
                self.read(index);
                let step = match &index.kind {
                    ExprKind::Literal(Literal::String(name)) => JsonStep::Key(name.clone()),
                    ExprKind::Literal(Literal::Int(at)) => {
                        usize::try_from(*at).map_or(JsonStep::Each, JsonStep::Item)
                    }
                    _ => JsonStep::Each,
                };
                self.goes_to(steps, step)
            }
            (OPTIONAL_SELECT, [value, field]) => {
                let steps = self.read(value);
                let ExprKind::Literal(Literal::String(name)) = &field.kind else { return None };
                self.goes_to(steps, JsonStep::Field(name.clone()))
            }
            // The value of an optional.
            ("value", []) => target,
            (_, args) => self.all(args),
        }
    }

    fn comprehension(&mut self, it: &Comprehension) -> Option<Steps> {
        let range = self.read(&it.range);
        self.read(&it.init);
        let before = self.names.len();
        self.names.push((it.accumulator.clone(), None));
        // Not collected here: of a map it is a key, which has no fields.
        let element = range.map(|mut steps| {
            steps.push(JsonStep::Each);
            steps
        });
        match &it.second_variable {
            Some(second) => {
                self.names.push((it.variable.clone(), None));
                self.names.push((second.clone(), element));
            }
            None => self.names.push((it.variable.clone(), element)),
        }
        self.read(&it.condition);
        self.read(&it.step);
        // The names of elements end here; the accumulator stays for the result.
        self.names.truncate(before + 1);
        self.read(&it.result);
        self.names.truncate(before);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile;
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let checked = compile(text).unwrap();
        let found = of(&checked.ast.root, Span::call_site());
        found.into_iter().map(|segments| crate::path::ParsedPath::new(segments).text()).collect()
    }

    #[test]
    fn each_path_of_an_expression_is_read_to_its_end() {
        let cases: [(&str, &[&str]); 13] = [
            ("object.spec.replicas <= 5", &["spec.replicas"]),
            ("has(object.spec.clusterIPs)", &["spec.cluster_ips"]),
            ("object.spec.type == 'NodePort'", &["spec.type_"]),
            ("object.metadata.labels['team'] == 'a'", &["metadata.labels[\"team\"]"]),
            ("object['spec'].replicas > 1", &["spec.replicas"]),
            ("object.?spec.?replicas.orValue(1) > 0", &["spec.replicas"]),
            ("oldObject == null || object.spec == oldObject.spec", &["spec"]),
            ("object.spec.containers[0].image == ''", &["spec.containers[0].image"]),
            (
                "object.spec.containers.all(it, it.ports.exists(one, one.hostPort == 0))",
                &["spec.containers[].ports[].host_port"],
            ),
            ("object.metadata.labels.all(key, key.startsWith('a'))", &["metadata.labels"]),
            (
                "object.metadata.labels.all(key, object.metadata.labels[key] != '')",
                &["metadata.labels[]"],
            ),
            (
                "object.spec.containers.all(i, it, i > 5 || it.image != '')",
                &["spec.containers[].image"],
            ),
            ("object.kind == 'Deployment' && request.operation == 'CREATE'", &[]),
        ];
        for (text, wanted) in cases {
            assert_eq!(paths(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_name_of_a_loop_hides_the_object() {
        assert_eq!(paths("[1].all(object, object > 0)"), [""; 0]);
        let shadowed = "object.spec.ports.all(object, object.port > 0)";
        assert_eq!(paths(shadowed), ["spec.ports[].port"]);
    }
}
