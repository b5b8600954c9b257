//! `#[derive(Controller)]`.

pub(crate) mod attrs;
mod check;
mod expand;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::errors::Errors;

/// Parses, checks, expands; with faults, the understood keys are still wired up, so that the
/// compiler does not report missing grants for a reconcile that uses them.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let attrs = attrs::Attrs::read(&input.attrs, &mut errors);
    check::check(&input.ident, &attrs, &mut errors);
    let mut output = errors.finish();
    let faulty = !output.is_empty();
    output.extend(expand::all(input, &attrs, faulty));
    output
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn read(input: &DeriveInput) -> (attrs::Attrs, Vec<String>) {
        let mut errors = Errors::default();
        let attrs = attrs::Attrs::read(&input.attrs, &mut errors);
        check::check(&input.ident, &attrs, &mut errors);
        let texts = errors.texts();
        errors.finish();
        (attrs, texts)
    }

    #[test]
    fn every_key_is_read() {
        let (attrs, faults) = read(&parse_quote! {
            #[controller(for = Website, owns(Deployment, Service), name = "sites", workers = 8)]
            #[controller(watches(Secret, by = maps::of_secret), watches(ConfigMap, index = A::BY_MAP))]
            #[controller(when = generation_changed(), watches(Pod, by = f, when = labels_changed()))]
            #[controller(finalizer = "example.dev/dns", can(get list Pod, create core::v1::Event))]
            struct Sites;
        });
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!((attrs.owns.len(), attrs.watches.len(), attrs.grants.len()), (2, 3, 3));
        assert!(attrs.when.is_some() && attrs.watches[2].when.is_some());
        assert_eq!(attrs.workers.map(|workers| workers.value), Some(8));
        assert_eq!(attrs.name.map(|name| name.value).as_deref(), Some("sites"));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let (_, faults) = read(&parse_quote! {
            #[controller(own(Service), owns(Deployment, Deployment), finalizer = "dns")]
            #[controller(can(gett Pod, get Pod, get Pod), workers = 0, watches(Secret))]
            struct Sites;
        });
        let expected = [
            "unknown key `own`; did you mean `owns`?",
            "`Deployment` is owned twice",
            "unknown verb `gett`; did you mean `get`?",
            "`get Pod` is granted twice",
            "a controller needs at least one worker",
        ];
        for text in expected {
            assert!(faults.iter().any(|fault| fault == text), "{text} not in {faults:#?}");
        }
        for part in ["for = Website", "`dns` is no finalizer", "by = "] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part} not in {faults:#?}");
        }
    }

    #[test]
    fn what_is_left_over_behind_a_grant_is_a_fault() {
        let left_over = [
            ("can(create Pod/eviction)", "subresources cannot be granted here yet"),
            ("can(get Pod/log, list Pod)", "subresources cannot be granted here yet"),
            ("can(get list core::v1::Pod/status)", "`core::v1::Pod/status`"),
            ("can(get Pod; list Pod)", "`; list Pod` stands behind the grant `get Pod`"),
            ("can(get Pod.log)", "`. log` stands behind"),
            ("can(get Pod:log)", "`: log` stands behind"),
            ("can(get Pod \"log\")", "`\"log\"` stands behind"),
            ("can(get Pod = Pod)", "`= Pod` stands behind"),
            ("can(get Pod + Service)", "`+ Service` stands behind"),
            ("can(get Pod & Service)", "`& Service` stands behind"),
            ("can(get Pod | Service)", "`| Service` stands behind"),
            ("can(get Pod { log })", "`{ log }` stands behind"),
            ("can(get Pod [log])", "`[log]` stands behind"),
            ("can(get Pod 1)", "`1` stands behind"),
            ("can(get|list Pod)", "a grant is verbs and a kind"),
            ("can(get Pod get Pod)", "unknown verb `Pod`"),
            ("can(get Pod,, list Pod)", ""),
            ("owns(Pod/status)", "expected `,`"),
            ("owns(Pod; Service)", "expected `,`"),
            ("watches(Pod by = f)", "by a function of it"),
            ("watches(Pod, by = f when = g())", "expected `,`"),
            ("watches(Pod, by = f, when = g() by = h)", "is written"),
            ("workers = 1 2", "expected `,`"),
            ("name = \"a\" \"b\"", "expected `,`"),
        ];
        for (keys, text) in left_over {
            let keys: proc_macro2::TokenStream = keys.parse().unwrap();
            let (attrs, faults) = read(&parse_quote! {
                #[controller(for = Website, #keys)]
                struct Sites;
            });
            let granted = &attrs.grants;
            assert!(
                !faults.is_empty() && faults.iter().any(|fault| fault.contains(text)),
                "{keys}: {text} not in {faults:#?}; granted: {granted:?}"
            );
        }
    }
}
