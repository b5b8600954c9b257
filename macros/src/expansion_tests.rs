//! Snapshots of the code that the derives generate, so that a change is read in a review.
//!
//! `INSTA_UPDATE=always cargo test -p windlass-macros expansion_tests` writes them anew.

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_quote};

use crate::{apply, conditions, controller, dependents, object, projection, resource, schema};

#[track_caller]
fn compare(name: &str, tokens: TokenStream) {
    let file: syn::File = syn::parse2(tokens).expect("a derive generates items");
    let code = prettyplease::unparse(&file);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, code);
    });
}

#[test]
fn a_resource_with_columns_status_scale_and_an_index() {
    let input: DeriveInput = parse_quote! {
        /// A static site.
        #[resource(group = "example.dev", version = "v1", namespaced, short = "ws")]
        #[resource(column("Host", spec.host), column("Up", ".status.up"), selectable(spec.host))]
        #[resource(scale(spec.replicas, status.replicas))]
        #[index(by_host = spec.host)]
        pub struct Website {
            metadata: ObjectMeta,
            spec: WebsiteSpec,
            status: Option<WebsiteStatus>,
        }
    };
    compare("resource", resource::derive(&input));
}

#[test]
fn a_graph_with_every_key() {
    let input: DeriveInput = parse_quote! {
        #[dependents(by = Sites, retired(Endpoints), crate = facade::windlass)]
        pub(crate) struct Children {
            config: ConfigMap,
            #[dependent(after(config), when = Website::is_exposed, optional)]
            route: Route,
            #[dependent(after(route, config), ready = is_ready, adopt_if = may_adopt, scope = cluster)]
            shards: Vec<ConfigMap>,
            #[dependent(external, after(shards), ready = is_warm)]
            database: Databases,
            #[dependent(rollout, when = Website::is_exposed)]
            sets: Vec<StatefulSet>,
        }
    };
    compare("dependents", dependents::derive(&input));
}

#[test]
fn a_resource_of_the_cluster_with_a_spec_alone() {
    let input: DeriveInput = parse_quote! {
        #[resource(group = "example.dev", version = "v1")]
        struct Zone {
            metadata: ObjectMeta,
            spec: ZoneSpec,
        }
    };
    compare("resource_of_the_cluster", resource::derive(&input));
}

#[test]
fn a_resource_of_another_crate_with_a_rule_and_constants() {
    let input: DeriveInput = parse_quote! {
        #[resource(group = GROUP, version = "v1", cluster, crate = facade::windlass, deprecated)]
        #[resource(rule("self.metadata.name != 'x'", message = "no x", path = spec.name))]
        #[resource(label("team" = "web"))]
        struct Zone {
            metadata: ObjectMeta,
            #[serde(rename = "theSpec")]
            spec: ZoneSpec,
        }
    };
    compare("resource_of_another_crate", resource::derive(&input));
}

#[test]
fn a_path_through_a_list_and_a_map() {
    let input = quote::quote!(::windlass; Website: spec.ports[].labels["app"]);
    let code = crate::path::path(input);
    let file: syn::File = parse_quote!(const PATH: () = #code;);
    let code = prettyplease::unparse(&file);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("path", code);
    });
}

#[test]
fn a_controller_that_owns_watches_and_finalizes() {
    let input: DeriveInput = parse_quote! {
        #[controller(for = Website, owns(Deployment, Service), watches(Secret, by = sites_of))]
        #[controller(finalizer = "example.dev/dns", can(get create Pod))]
        struct Sites;
    };
    compare("controller", controller::derive(&input));
}

#[test]
fn a_controller_with_every_form_of_grant() {
    let input: DeriveInput = parse_quote! {
        #[controller(for = Website, crate = facade::windlass)]
        #[controller(can(get Secret["tls", "ca"], create Pod/eviction, get patch Deployment/scale))]
        #[controller(can(get create Pod/exec, deletecollection Pod, bind ClusterRole["view"]))]
        #[controller(can(get "/metrics", approve "signers.certificates.k8s.io"["example.dev/*"]))]
        struct Sites<T>;
    };
    compare("controller_grants", controller::derive(&input));
}

#[test]
fn a_controller_with_settings() {
    let input: DeriveInput = parse_quote! {
        #[controller(for = Website, owns(Pod, when = labels_changed()), index(Website::BY_HOST))]
        #[controller(resync = "1h", reconcile_timeout = "never", retry(at_most = 10, then_every = "1h"))]
        #[controller(timer(every = "1m", name = "probe"), track_changes, with = Self::more)]
        #[controller(on_change(spec.host = rehost))]
        struct Sites;
    };
    compare("controller_settings", controller::derive(&input));
}

#[test]
fn a_projection_with_a_path_a_label_and_a_default() {
    let input: DeriveInput = parse_quote! {
        #[projection(of = Pod, skip(labels, annotations))]
        struct PodView {
            metadata: ObjectMeta,
            #[projection(path = spec.node_name)]
            node: Option<String>,
            #[projection(path = "status.phase", default)]
            phase: String,
            #[projection(label = "app.kubernetes.io/name")]
            app: Option<String>,
        }
    };
    compare("projection", projection::derive(&input));
}

#[test]
fn a_schema_of_a_struct_with_keys() {
    let input: DeriveInput = parse_quote! {
        /// The wanted site.
        #[serde(rename_all = "camelCase")]
        #[schema(rule("self.minSize <= self.maxSize", message = "min is above max"))]
        struct SiteSpec {
            /// Host name.
            #[schema(pattern = "^[a-z.]+$", length(max = 253))]
            host: String,
            min_size: i32,
            #[schema(default = 3)]
            max_size: i32,
            #[serde(default)]
            mode: Mode,
            #[schema(list(map, keys(name)))]
            ports: Vec<Port>,
            #[schema(opaque)]
            extra: Option<Foreign>,
            #[serde(flatten)]
            rest: Rest,
            template: Option<PodTemplateSpec>,
        }
    };
    compare("schema_of_a_struct", schema::derive(&input));
}

#[test]
fn a_schema_of_an_enum() {
    let input: DeriveInput = parse_quote! {
        #[serde(tag = "kind")]
        enum Source {
            /// From a repository.
            Git { url: String, branch: Option<String> },
            Image(ImageSource),
            None,
        }
    };
    compare("schema_of_an_enum", schema::derive(&input));
}

#[test]
fn a_schema_of_a_generic_newtype() {
    let input: DeriveInput = parse_quote! {
        struct Named<T: Clone>(#[schema(title = "Value")] T);
    };
    compare("schema_of_a_generic_newtype", schema::derive(&input));
}

#[test]
fn a_literal_with_options_lists_maps_and_conditions() {
    let tokens = object::object(quote::quote! {
        ::windlass;
        Deployment {
            metadata: { name: site.name() },
            spec: {
                replicas: 2,
                selector: { matchLabels: { app: name } },
                template: { spec: { containers: [{ name: "web" }, ..more] } },
                if paused { paused: true }
            },
            ..base
        }
    });
    compare("literal", quote::quote!(fn literal() -> Deployment { #tokens }));
}

#[test]
fn an_apply_configuration_of_a_nested_type() {
    let input: DeriveInput = parse_quote! {
        #[serde(rename_all = "camelCase")]
        pub struct WebsiteSpec {
            /// Host name.
            host_name: String,
            replicas: Option<i32>,
            aliases: Option<Vec<Alias>>,
            labels: BTreeMap<String, String>,
        }
    };
    compare("apply_configuration", apply::derive(&input));
}

#[test]
fn types_of_conditions() {
    let input: DeriveInput = parse_quote! {
        enum WebsiteCondition {
            Ready,
            #[condition("example.dev/Reachable")]
            Reachable,
        }
    };
    compare("condition_type", conditions::condition_type(&input));
}

#[test]
fn conditions_of_a_controller() {
    let input: DeriveInput = parse_quote! {
        #[conditions(ready(all(ConfigApplied, Available), stalled_on(InvalidSpec)))]
        enum WebsiteCondition {
            ConfigApplied,
            #[condition("example.dev/Available")]
            Available,
            InvalidSpec,
            Backed,
        }
    };
    compare("conditions", conditions::conditions(&input));
}

#[test]
fn a_controller_with_conditions() {
    let input: DeriveInput = parse_quote! {
        #[controller(for = Website, conditions(WebsiteCondition))]
        struct Sites;
    };
    compare("controller_conditions", controller::derive(&input));
}

#[test]
fn code_for_a_framework_of_another_name_names_no_windlass() {
    let spec: DeriveInput = parse_quote! {
        #[schema(crate = facade::framework)]
        #[apply(crate = facade::framework)]
        struct WebsiteSpec {
            #[schema(min = 1, default = 2)]
            replicas: i32,
        }
    };
    let condition: DeriveInput = parse_quote! {
        #[condition(crate = facade::framework)]
        #[conditions(ready(all(Up)), crate = facade::framework)]
        enum WebsiteCondition { Up }
    };
    let controller: DeriveInput = parse_quote! {
        #[controller(for = Website, owns(Pod, core::v1::Pod), on_change(spec.host = rehost))]
        #[controller(conditions(C), can(get list Secret), crate = facade::framework)]
        struct Sites;
    };
    let literal =
        quote::quote!(facade::framework; Pod { kind: "Pod", spec: { containers: [{ name }] } });
    for code in [
        schema::derive(&spec),
        apply::derive(&spec),
        conditions::condition_type(&condition),
        conditions::conditions(&condition),
        controller::derive(&controller),
        object::object(literal),
    ] {
        let text = code.to_string();
        assert!(text.contains("facade :: framework") && !text.contains("windlass"), "{text}");
    }
}
