//! `#[derive(Dependents)]`.

pub(crate) mod attrs;
mod check;
mod expand;
mod model;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;
use syn::ext::IdentExt;

use crate::errors::Errors;
use crate::misplaced::{misplaced, misplaced_on_fields};

/// Returns the type that stands for a graph of that name: the struct itself may be more private
/// than the controller.
pub(crate) fn graph_name(name: &syn::Ident, krate: &TokenStream) -> TokenStream {
    // FNV-1a in 64 bits. Graphs of a controller differ in names, which the children carry.
    let hash = name.unraw().to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    quote!(#krate::__private::dependents::GraphName<#hash>)
}

/// Parses, checks, expands. With faults the graph is empty, and the trait has a function per field,
/// so that the compiler does not report besides that the controller implements functions of
/// nothing.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let model = model::GraphModel::new(input, &mut errors);
    check::check(&model, &mut errors);
    let instead = "the keys of a child stand in `#[dependent(…)]`";
    misplaced_on_fields(&input.data, "dependents", instead, &mut errors);
    let instead = "the keys of the graph stand in `#[dependents(…)]`";
    misplaced(&input.attrs, "dependent", instead, &mut errors);
    let keys = errors.take_keys();
    let mut output = errors.finish();
    let is_faulty = !output.is_empty();
    output.extend(expand::all(&model, is_faulty));
    let known: &[&[&str]] = &[attrs::KEYS, attrs::FIELD_KEYS];
    let references = crate::keys::references(&quote!(::windlass), "dependents", &keys, known);
    output.extend(references);
    crate::crate_path::found_by(output, model.krate.as_ref())
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn faults(input: &DeriveInput) -> Vec<String> {
        let mut errors = Errors::default();
        let model = model::GraphModel::new(input, &mut errors);
        check::check(&model, &mut errors);
        let texts = errors.texts();
        errors.finish();
        texts
    }

    #[test]
    fn a_graph_in_any_order_is_fine() {
        let found = faults(&parse_quote! {
            #[dependents(for = Website, by = Sites, retired(Ingress), crate = facade::windlass)]
            struct Children {
                #[dependent(after(app, config), when = is_exposed, optional)]
                route: Route,
                #[dependent(after(config), ready = is_ready, adopt_if = may_adopt, scope = cluster)]
                app: Vec<Deployment>,
                config: ConfigMap,
                #[dependent(external, after(config), when = is_exposed, ready = is_warm)]
                database: Databases,
                #[dependent(rollout, after(database))]
                shards: Vec<StatefulSet>,
            }
        });
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_cycle_is_told_once_with_its_way() {
        let found = faults(&parse_quote! {
            #[dependents(by = Sites)]
            struct Children {
                #[dependent(after(c))]
                a: A,
                #[dependent(after(a))]
                b: B,
                #[dependent(after(b))]
                c: C,
                #[dependent(after(c))]
                d: D,
            }
        });
        let [only] = found.as_slice() else { panic!("{found:#?}") };
        assert!(only.contains("a → c → b → a"), "{only}");
    }

    #[test]
    fn a_mistake_has_one_text_that_names_the_remedy() {
        let mistakes = [
            ("after(confg)", "did you mean `config`?"),
            ("after(app)", "`app` comes after itself"),
            ("after(config, config)", "`config` stands twice"),
            ("after = config", "is written `after(config)`"),
            ("when", "needs a value"),
            ("ready", "needs a value"),
            ("optional = true", "has no value"),
            ("scope = namespaced", "`scope` is `cluster`"),
            ("scope", "needs a value"),
            ("namespace = target", "`scope = cluster`"),
            ("rollout", "`shards: Vec<StatefulSet>`"),
            ("external = true", "`external` has no value"),
            ("external, optional", "an external resource has no `optional`"),
            ("external, scope = cluster", "an external resource has no `scope`"),
            ("external, adopt_if = may_adopt", "`windlass.dev/external-name`"),
            ("owns(Pod)", "unknown key `owns`"),
            ("depends_on(config)", "`after(config)`"),
        ];
        for (keys, text) in mistakes {
            let keys: TokenStream = keys.parse().unwrap();
            let found = faults(&parse_quote! {
                #[dependents(by = Sites)]
                struct Children {
                    config: ConfigMap,
                    #[dependent(#keys)]
                    app: Deployment,
                }
            });
            let [only] = found.as_slice() else { panic!("{keys}: {found:#?}") };
            assert!(only.contains(text), "{keys}: {only}");
        }
    }

    #[test]
    fn a_struct_that_is_no_graph_is_told_why() {
        let cases: [(DeriveInput, &str); 7] = [
            (
                parse_quote!(
                    struct Children {
                        a: A,
                    }
                ),
                "`#[dependents(by = Sites)]`",
            ),
            (
                parse_quote!(
                    #[dependents(by = Sites)]
                    struct Children;
                ),
                "a struct with named fields",
            ),
            (
                parse_quote!(
                    #[dependents(by = Sites)]
                    struct Children {}
                ),
                "no children",
            ),
            (
                parse_quote!(
                    #[dependents(by = Sites)]
                    struct C<T> {
                        a: T,
                    }
                ),
                "no parameters",
            ),
            (
                parse_quote!(
                    #[dependents(for = Website)]
                    struct C {
                        a: A,
                    }
                ),
                "`#[dependents(by = Sites)]`",
            ),
            (
                parse_quote!(
                    #[dependents(for = Website, by = Sites)]
                    struct C {
                        precondition: A,
                    }
                ),
                "give the child another one",
            ),
            (
                parse_quote!(
                    #[dependents(by = Sites)]
                    struct C {
                        a: Option<A>,
                    }
                ),
                "has `when`",
            ),
        ];
        for (input, text) in cases {
            let found = faults(&input);
            let [only] = found.as_slice() else { panic!("{text}: {found:#?}") };
            assert!(only.contains(text), "{only}");
        }
    }
}
