//! The authorizer that expressions ask: the server's own.

use std::fmt;
use std::sync::Arc;

use windlass_cel::eval::{
    Authorization, AuthorizationRequest, AuthorizationTarget, Decision, ResourceAttributes,
    UserInfo, Value, authorizer_value, request_resource_value,
};

use crate::auth::{self, Attributes, User};
use crate::core::ServerCore;
use crate::policies::PolicyRequest;
use crate::verbs::VerbCall;

/// The server's authorizer, for expressions.
struct Rights(Arc<dyn auth::Authorizer>);

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rights").finish_non_exhaustive()
    }
}

impl windlass_cel::eval::Authorizer for Rights {
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> Authorization {
        let user = User {
            name: request.user.name.clone(),
            groups: request.user.groups.clone(),
            uid: request.user.uid.clone(),
            extra: request.user.extra.clone(),
        };
        let verb = request.verb.to_owned();
        let wanted = match request.target {
            AuthorizationTarget::Path(path) => {
                Attributes { verb, path: path.to_owned(), ..Attributes::default() }
            }
            AuthorizationTarget::Resource(resource) => Attributes {
                verb,
                group: resource.group.clone(),
                version: "*".to_owned(),
                resource: resource.resource.clone(),
                subresource: resource.subresource.clone(),
                namespace: resource.namespace.clone(),
                name: resource.name.clone(),
                ..Attributes::default()
            },
        };
        let (decision, reason) = match self.0.explain(&user, &wanted) {
            Ok(reason) => (Decision::Allow, reason),
            // Rights are only added, never taken away, so that the absence of a right is no
            // opinion.
            Err(reason) => (Decision::NoOpinion, reason),
        };
        Authorization { decision, reason, error: None }
    }
}

/// Returns the values of `authorizer` and `authorizer.requestResource`.
pub(in crate::verbs::admit) fn values(
    core: &ServerCore,
    call: &VerbCall,
    subject: &PolicyRequest<'_>,
) -> (Value<'static>, Value<'static>) {
    let rights: Arc<dyn windlass_cel::eval::Authorizer> = Arc::new(Rights(core.authorizer()));
    let user = UserInfo {
        name: call.user.name.clone(),
        uid: call.user.uid.clone(),
        groups: call.user.groups.clone(),
        extra: call.user.extra.clone(),
    };
    let served = &call.kind.served;
    let resource = ResourceAttributes {
        group: served.group.clone(),
        resource: served.plural.clone(),
        subresource: call.subresource.clone(),
        namespace: subject.namespace.to_owned(),
        name: subject.name.to_owned(),
        ..ResourceAttributes::default()
    };
    let resource = request_resource_value(rights.clone(), user.clone(), resource);
    (authorizer_value(rights, user), resource)
}
