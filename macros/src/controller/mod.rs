//! `#[derive(Controller)]`.

mod arguments;
pub(crate) mod attrs;
mod check;
mod comparisons;
mod durations;
mod expand;
pub(crate) mod grants;
mod hints;
mod object_names;
pub(crate) mod settings;
mod subresources;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::errors::Errors;
use crate::misplaced::misplaced_on_fields;

/// Parses, checks, expands; with faults, everything is granted, so that the compiler does not
/// report missing grants for a reconcile that uses them.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let attrs = attrs::ControllerAttrs::read(&input.attrs, &mut errors);
    check::check(&input.ident, &attrs, &mut errors);
    let instead = "the keys of a controller stand on the type";
    misplaced_on_fields(&input.data, "controller", instead, &mut errors);
    let keys = errors.take_keys();
    let mut output = errors.finish();
    let faulty = !output.is_empty();
    output.extend(expand::all(input, &attrs, faulty));
    let references = crate::keys::references(&attrs.krate(), "controller", &keys, &[attrs::KEYS]);
    output.extend(references);
    match &attrs.krate {
        Some(path) => crate::crate_path::within_macro(&output, path),
        None => output,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn read(input: &DeriveInput) -> (attrs::ControllerAttrs, Vec<String>) {
        let mut errors = Errors::default();
        let attrs = attrs::ControllerAttrs::read(&input.attrs, &mut errors);
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
            #[controller(finalizer = "example.dev/dns", can(get list Node, create core::v1::Event))]
            struct Sites;
        });
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!((attrs.owns.len(), attrs.watches.len(), attrs.grants.len()), (2, 3, 2));
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
        for part in ["for = Website", "`dns` is not a finalizer", "by = "] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part} not in {faults:#?}");
        }
    }

    #[test]
    fn a_detail_of_the_log_of_changes_may_have_its_path() {
        for detail in ["Full", "ChangeLog::Full", "windlass::controller::ChangeLog::Full"] {
            let detail: proc_macro2::TokenStream = detail.parse().unwrap();
            let (attrs, faults) = read(&parse_quote! {
                #[controller(for = Website, change_log(#detail))]
                struct Sites;
            });
            assert!(faults.is_empty(), "{faults:?}");
            let text = attrs.settings[0].statement(&attrs.krate()).to_string().replace(' ', "");
            let expected = "change_log(::windlass::controller::ChangeLog::Full)";
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn every_setting_is_read_and_becomes_a_call_of_the_builder() {
        let (attrs, faults) = read(&parse_quote! {
            #[controller(for = Website, owns(Pod, when = labels_changed()), index(A::B, A::C))]
            #[controller(resync = "never", reconcile_timeout = "1m30s", outcome_condition = "Ready")]
            #[controller(retry(at_most = 3, base = "1s", cap = LONGEST, then_every = "1h"))]
            #[controller(debounce(most = "5s", quiet = "500ms"), rate_limit(most = 10, within = "1h"))]
            #[controller(loop_guard(most = 9, within = "1m", spacing = "2s"), report_failures)]
            #[controller(timer(every = "1m", name = "a"), timer(every = "2m", name = "b", idle = "1s"))]
            #[controller(cancel_superseded, track_changes_within = 1 << 20, task_per_object)]
            #[controller(change_log(Summary), former_finalizer = "a.dev/x")]
            #[controller(former_finalizer = "a.dev/y")]
            #[controller(on_change(spec.host = rehost, status = handlers::of_status))]
            #[controller(with = |builder| builder, crate = facade::windlass)]
            struct Sites;
        });
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!((attrs.indexes.len(), attrs.settings.len()), (2, 16));
        assert!(attrs.owns[0].when.is_some() && attrs.with.is_some());
        assert_eq!(
            attrs.on_change.iter().map(|one| one.field.text()).collect::<Vec<_>>(),
            ["spec.host", "status"]
        );
        let krate = attrs.krate();
        let text = |at: usize| attrs.settings[at].statement(&krate).to_string().replace(' ', "");
        assert_eq!(text(0), "letbuilt=built.without_resync();");
        assert!(text(1).contains("reconcile_timeout(::core::time::Duration::new(90u64,0u32))"));
        assert!(text(3).contains("RetryPolicy::at_most(3u32).between("), "{}", text(3));
        assert!(text(3).contains("facade::windlass::controller::AfterMaxRetries::Every("));
        assert_eq!(text(11), "letbuilt=built.track_changes_within(1<<20);");
        assert!(text(13).contains("change_log(facade::windlass::controller::ChangeLog::Summary)"));
        assert_eq!(text(14), "letbuilt=built.former_finalizer(\"a.dev/x\");");
        // In the order of the builder's arguments, whatever the order of the keys.
        assert!(text(4).contains("debounce(::core::time::Duration::new(0u64,500000000u32),"));
    }

    #[test]
    fn a_condition_belongs_to_the_handler_before_it() {
        let (attrs, faults) = read(&parse_quote! {
            #[controller(for = Website, conditions(C))]
            #[controller(on_change(spec.host = rehost, condition = HostReady, spec.size = resize))]
            #[controller(on_change(status.condition = f, condition = Checked))]
            struct Sites;
        });
        assert!(faults.is_empty(), "{faults:?}");
        let shown = attrs.on_change.iter();
        let shown: Vec<_> =
            shown.map(|one| one.condition.as_ref().map(ToString::to_string)).collect();
        assert_eq!(shown, [Some("HostReady".to_owned()), None, Some("Checked".to_owned())]);
    }

    #[test]
    fn a_mistake_has_one_text_that_names_the_remedy() {
        let mistakes = [
            ("can(* Pod)", "name the verbs"),
            ("can(all Pod)", "name the verbs"),
            ("can(get, list Pod)", "needs a kind behind it"),
            ("can(bind ClusterRole)", "name the objects"),
            ("can(use \"securitycontextconstraints.security.openshift.io\")", "name the objects"),
            ("can(use, list Pod)", "`use` needs a kind behind it, and no comma"),
            ("can(get use)", "`use` needs a kind behind it, and no comma"),
            ("can(escalate Role)", "name the objects"),
            ("can(impersonate \"users\")", "name the objects"),
            ("can(approve \"signers.certificates.k8s.io\")", "name the objects"),
            ("can(sign \"signers.certificates.k8s.io\")", "name the objects"),
            ("can(attest \"signers.certificates.k8s.io\")", "name the objects"),
            ("can(create Secret[\"a\"])", "cannot be limited to names"),
            ("can(deletecollection Pod[\"a\"])", "cannot be limited to names"),
            ("can(list Secret[\"a\"])", "field selector"),
            ("can(get Secret[])", "no names"),
            ("can(get Secret[tls])", "names of objects are texts"),
            ("can(get Secret[\"a\", \"a\"])", "written twice"),
            ("can(get Secret, get Secret[\"a\"])", "granted for all objects already"),
            ("can(get Secret[\"a\"], get Secret[\"b\"])", "write all names there"),
            ("can(create Pod/evict)", "did you mean `eviction`?"),
            ("can(delete Pod/eviction)", "its verbs are `create`"),
            ("can(get \"Pod\")", "without quotation marks"),
            ("can(get \"/a/*/b\")", "at the end of a path only"),
            ("can(list \"/metrics\")", "unknown verb `list`"),
            ("can(get \"/metrics\"[\"a\"])", "has no objects"),
            ("can(get \"secrets\"[\"Tls_\"])", "has the name \"Tls_\""),
            ("can(get \"services/status\"[\"a.b\"])", "letters, digits and `-`, at most 63"),
            ("can(get Secret[\".\"])", "has the name \".\""),
            ("can(get ClusterRole[\"a%b\"])", "no name has a `%`"),
            ("can(get \"*\")", "a wildcard grants more"),
            ("can(apply Pod)", "is the verb `patch`"),
            ("can([get, list] Pod)", "verbs stand side by side"),
            ("can((get, list) Pod)", "verbs stand side by side"),
            ("can(edit Pod)", "writing is the verbs"),
            ("concurrency = 4", "`workers = 4`"),
            ("predicate = f()", "`when = generation_changed()`"),
            ("owns(\"Service\")", "without quotation marks: `Service`"),
            ("watches(\"Service\", by = f)", "without quotation marks: `Service`"),
            ("verbs = \"get\", ", "further ones are written `can(get list Pod)`"),
            ("owns(Pod, Service, when = f())", "a predicate is of one kind"),
            ("workers = -1", "a whole number from 1 to 65536"),
            ("workers = 100000", "a whole number from 1 to 65536"),
            ("workers = 0", "at least one worker"),
            ("resync = 600", "`resync = \"600s\"`"),
            ("resync = \"10\"", "has no unit; write `10s`"),
            ("resync = \"1d\"", "write hours"),
            ("resync = \"100ms\"", "at least 1 s"),
            ("resync", "needs a value"),
            ("resync = \"0s\"", "at least 1 s; none at all is \"never\""),
            ("reconcile_timeout = \"0s\"", "at least 1 ms; none at all is \"never\""),
            ("reconcile_timeout = \"100us\"", "`reconcile_timeout` is at least 1 ms"),
            ("reconcile_timeout = \"1ms500us\"", "is counted in milliseconds"),
            ("retry(base = \"999us\", cap = \"1s\")", "`base` is at least 1 ms"),
            ("retry(base = \"1ms\", cap = \"0s\")", "`cap` is at least 1 ms"),
            ("retry(at_most = 3, then_every = \"1ns\")", "`then_every` is at least 1 ms"),
            ("debounce(quiet = \"1us\", most = \"1s\")", "`quiet` is at least 1 ms"),
            ("debounce(quiet = \"1ms\", most = \"1ms1ns\")", "`most` is counted in milli"),
            ("rate_limit(most = 1, within = \"999ms\")", "`within` is at least 1 s"),
            ("loop_guard(most = 9, within = \"999ms\")", "`within` is at least 1 s"),
            ("loop_guard(most = 1, within = \"1m\")", "`most` is at least 2"),
            (
                "loop_guard(most = 9, within = \"1s\", spacing = \"501ms\")",
                "`spacing` of `loop_guard` is at most half of `within`",
            ),
            (
                "loop_guard(most = 9, within = \"1s\", spacing = \"0s\")",
                "`spacing` is at least 1 ms",
            ),
            ("timer(every = \"500ms\", name = \"a\")", "`every` is at least 1 s"),
            (
                "timer(every = \"1s\", name = \"a\", initial_delay = \"0s\")",
                "`initial_delay` is at least 1 ms",
            ),
            ("timer(every = \"1s\", name = \"a\", idle = \"5us\")", "`idle` is at least 1 ms"),
            ("debounce(quiet = \"1s\")", "is written `debounce("),
            ("retry(base = \"1s\")", "`base` and `cap` stand together"),
            (
                "retry(base = \"5m\", cap = \"1s\")",
                "`cap` of `retry` is at least as long as `base`",
            ),
            (
                "debounce(quiet = \"10s\", most = \"5s\")",
                "`most` of `debounce` is at least as long",
            ),
            ("outcome_condition = \"\"", "is not a type of a condition"),
            ("outcome_condition = \"Not Ready\"", "is not a type of a condition"),
            (
                "timer(every = \"1m\", name = \"a\"), timer(every = \"2m\", name = \"a\")",
                "two timers of the name \"a\"",
            ),
            (
                "on_change(spec.host = f, spec.host = f)",
                "`f` is named twice for changes of `spec.host`",
            ),
            ("retry(then_every = \"1h\")", "say how many by `at_most`"),
            ("retry(at_most = \"3\")", "takes a whole number"),
            ("retry(attempts = 3)", "unknown key `attempts`"),
            ("retry = 3", "is written `retry("),
            ("report_failures = true", "has no value"),
            ("report_failures, report_every_failure", "write one of them"),
            ("track_changes, track_changes_within = 5", "write one of them"),
            ("track_changes_within = 0", "zero bytes keep no state"),
            ("track_changes_within = \"1MiB\"", "a number of bytes"),
            ("track_changes_within", "needs a value"),
            ("change_log(Sumary)", "did you mean `Summary`?"),
            ("change_log(\"Full\")", "without quotation marks: `Full`"),
            ("change_log = Full", "is written `change_log(Summary)`"),
            ("change_log()", "write the detail: `change_log(Summary)`"),
            ("change_log(3)", "write the detail: `change_log(Summary)`"),
            ("change_log(ChangeLog::)", "write the detail: `change_log(Summary)`"),
            ("change_log(ChangeLog::Sumary)", "did you mean `Summary`?"),
            ("change_log(Level::Full)", "a detail is a variant of `ChangeLog`"),
            ("change_log(Full, Off)", "has one detail"),
            ("former_finalizer = \"dns\"", "`dns` is not a finalizer"),
            ("finalizer = \"a.dev/x\", former_finalizer = \"a.dev/x\"", "is the present finalizer"),
            ("former_finalizer = \"a.dev/x\", former_finalizer = \"a.dev/x\"", "is listed already"),
            ("resync = \"1h\", resync = \"2h\"", "duplicate key `resync`"),
            ("timer(\"1m\")", "is written `timer("),
            ("on_change(\"spec.host\" = f)", "without quotation marks"),
            ("on_change(spec.host)", "name the handler"),
            ("on_change(spec.host = f, condition = Up)", "declare the enum of `Up`"),
            ("conditions, on_change(spec.host = f, condition = Up)", "declare the enum of `Up`"),
            ("conditions(C), on_change(condition = Up)", "stands behind its handler"),
            ("conditions(C), on_change(a.b = f, condition = \"Up\")", "without quotation marks"),
            ("conditions(C), on_change(a = f, condition = A, condition = B)", "has one condition"),
            ("conditions = C", "`conditions` is written `conditions(WebsiteCondition)`"),
            ("conditions(\"C\")", "without quotation marks: `C`"),
            ("conditions(C, D)", "are one enum"),
            ("conditions(C), conditions(D)", "duplicate key `conditions`"),
            ("conditions(C), outcome_condition = \"Ready\"", "leave `outcome_condition` out"),
        ];
        for (keys, text) in mistakes {
            let keys: proc_macro2::TokenStream = keys.parse().unwrap();
            let (_, faults) = read(&parse_quote! {
                #[controller(for = Website, #keys)]
                struct Sites;
            });
            let [only] = faults.as_slice() else { panic!("{keys}: {faults:#?}") };
            assert!(only.contains(text), "{keys}: {only}");
        }
    }

    #[test]
    fn what_is_left_over_behind_a_grant_is_a_fault() {
        let left_over = [
            (
                "can(create Pod/eviction extra)",
                "`extra` stands behind the grant `create Pod/eviction`",
            ),
            ("can(get Pod[\"a\"]/log)", "names stand behind the subresource: `get Pod/log[…]`"),
            ("can(get Pod/log/more)", "`/ more` stands behind the grant `get Pod/log`"),
            ("can(get Pod; list Pod)", "`; list Pod` stands behind the grant `get Pod`"),
            ("can(get Pod.log)", "`. log` stands behind"),
            ("can(get Pod:log)", "`: log` stands behind"),
            ("can(get Pod \"log\")", "unknown verb `Pod`"),
            ("can(get Pod = Pod)", "`= Pod` stands behind"),
            ("can(get Pod + Service)", "`+ Service` stands behind"),
            ("can(get Pod & Service)", "`& Service` stands behind"),
            ("can(get Pod | Service)", "`| Service` stands behind"),
            ("can(get Pod { log })", "`{ log }` stands behind"),
            ("can(get Pod [log])", "names of objects are texts"),
            ("can(get Pod 1)", "`1` stands behind"),
            ("can(get|list Pod)", "needs a kind behind it, and no comma"),
            ("can(get Pod get Pod)", "a comma is missing between two grants: `get Pod, get …`"),
            ("can(get Pod,, list Pod)", ""),
            ("owns(Pod/status)", "expected `,`"),
            ("owns(Pod; Service)", "expected `,`"),
            ("owns(Pod, when = f() when = g())", "`when` stands last"),
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
