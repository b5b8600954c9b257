//! Permissions of a controller beside those of its watched and owned kinds.

use super::{ControllerBuilder, static_info};
use crate::controller::Reconciler;
use windlass_core::rbac::Rule;
use windlass_core::rbac::verbs::VerbType;
use windlass_core::resource::Resource;

impl<C: Reconciler> ControllerBuilder<C> {
    /// Adds the permission to use verb `V` on kind `K`; the matching grant is `C:`
    /// [`Can`](windlass_core::rbac::Can)`<V, K>`.
    ///
    /// Owned and watched kinds have their permissions already. The rule appears in the manifests;
    /// nothing is checked against the API server.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn can<V: VerbType, K: Resource>(self) -> Self {
        let info = static_info::<K>();
        let rule = Rule::new(&info, None, &[V::NAME]);
        self.ask(&info.kind, &[], rule)
    }

    /// Adds a permission that [`can`](Self::can) does not express: on a subresource, on objects of
    /// some names, on a resource without a Rust type, or on a path that is no resource.
    ///
    /// The derive writes `can(create Pod/eviction)` and `can(get Secret["tls"])` with this call.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
    /// # struct Sites;
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
    /// #         Ok(Action::done())
    /// #     }
    /// # }
    /// use windlass::rbac::Rule;
    /// use windlass::resource::ResourceInfo;
    ///
    /// let secrets = ResourceInfo::of::<Secret>();
    /// let builder = ControllerBuilder::<Sites>::new()
    ///     .grant(Rule::new(&secrets, None, &["get"]).named(["tls"]))
    ///     .grant(Rule::of_url("/metrics", &["get"]));
    /// # let _ = builder;
    /// ```
    pub fn grant(self, rule: Rule) -> Self {
        let target = match rule.urls.first() {
            Some(url) => format!("{url:?}"),
            None => {
                let (plural, sub) = rule.resource.split_once('/').unwrap_or((&rule.resource, ""));
                let group = if rule.group.is_empty() { "" } else { "." };
                let slash = if sub.is_empty() { "" } else { "/" };
                format!("\"{plural}{group}{}{slash}{sub}\"", rule.group)
            }
        };
        let named = rule.clone();
        let names: Vec<&str> = named.names.iter().map(String::as_str).collect();
        self.ask(&target, &names, rule)
    }

    /// Adds a permission, and the text by which `can(…)` asks for each of its verbs.
    fn ask(mut self, target: &str, names: &[&str], rule: Rule) -> Self {
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let names =
            if names.is_empty() { String::new() } else { format!("[{}]", names.join(", ")) };
        for verb in &rule.verbs {
            let one = Rule { verbs: [*verb].into(), ..rule.clone() };
            self.granted.push((format!("{verb} {target}{names}"), one));
        }
        self.rules.push(rule);
        self
    }

    /// Adds the permission to use `verbs` on kind `K` or on a subresource of it, for objects of
    /// `names` or, when there are none, for all. Called by derived code; `target` is the target as
    /// `can(…)` has it, which may be another name of the type, or a projection.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[doc(hidden)]
    #[track_caller]
    pub fn can_on<K: Resource>(
        self,
        target: &str,
        subresource: Option<&str>,
        names: &[&str],
        verbs: &[&'static str],
    ) -> Self {
        let rule = Rule::new(&static_info::<K>(), subresource, verbs);
        self.ask(target, names, rule.named(names.iter().copied()))
    }
}
