//! Snapshots of the code that the derives generate, so that a change of it is read in a review.
//!
//! `INSTA_UPDATE=always cargo test -p windlass-macros expansions` writes them anew.

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_quote};

use crate::{controller, projection, resource};

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
        #[resource(column(name = "Host", path = ".spec.host"))]
        #[resource(scale(spec = ".spec.replicas", status = ".status.replicas"))]
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
        #[projection(of = Pod, skip(annotations))]
        struct PodView {
            metadata: ObjectMeta,
            #[projection(path = "spec.nodeName")]
            node: Option<String>,
            #[projection(path = "status.phase", default)]
            phase: String,
            #[projection(label = "app.kubernetes.io/name")]
            app: Option<String>,
        }
    };
    compare("projection", projection::derive(&input));
}
