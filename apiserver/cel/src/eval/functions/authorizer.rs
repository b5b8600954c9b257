//! Checks of permissions: Kubernetes' `authz` and `authzSelectors` libraries.

use std::any::Any;
use std::sync::Arc;

use super::super::authorizer::{
    Authorization, AuthorizationRequest, AuthorizationTarget, Authorizer, Decision,
    ResourceAttributes, UserInfo,
};
use super::super::error::EvalError;
use super::super::value::{Opaque, Value};
use super::{CallArgs, Function};
use crate::library::named_format::NamedFormat;

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// An authorizer and the user about whose requests it decides.
#[derive(Debug, Clone)]
struct AuthorizedSubject {
    authorizer: Arc<dyn Authorizer>,
    user: Arc<UserInfo>,
}

/// `authorizer.path(path)`
#[derive(Debug)]
struct PathCheck {
    subject: AuthorizedSubject,
    path: String,
}

/// `authorizer.group(group)`
#[derive(Debug)]
struct GroupCheck {
    subject: AuthorizedSubject,
    group: String,
}

/// `authorizer.group(group).resource(resource)`
#[derive(Debug, Clone)]
struct ResourceCheck {
    subject: AuthorizedSubject,
    resource: ResourceAttributes,
}

/// The value of `authorizer`.
pub(in crate::eval) fn authorizer(
    authorizer: Arc<dyn Authorizer>,
    user: UserInfo,
) -> Value<'static> {
    value(AuthorizedSubject { authorizer, user: Arc::new(user) })
}

/// The value of `authorizer.requestResource`.
pub(in crate::eval) fn resource_check(
    authorizer: Arc<dyn Authorizer>,
    user: UserInfo,
    resource: ResourceAttributes,
) -> Value<'static> {
    value(ResourceCheck {
        subject: AuthorizedSubject { authorizer, user: Arc::new(user) },
        resource,
    })
}

fn value<'a>(content: impl Opaque + 'static) -> Value<'a> {
    Value::Opaque(Arc::new(content))
}

/// Returns the implementation of the authorizer function `name`.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "path" => path,
        "group" => |call| {
            let (subject, group) =
                (receiver::<AuthorizedSubject>(call)?.clone(), call.text(1)?.to_string());
            Ok(value(GroupCheck { subject, group }))
        },
        "serviceAccount" => service_account,
        "resource" => resource,
        "subresource" => |call| with(call, |check, text| check.subresource = text),
        "namespace" => |call| with(call, |check, text| check.namespace = text),
        "name" => |call| with(call, |check, text| check.name = text),
        "fieldSelector" => |call| with(call, |check, text| check.field_selector = text),
        "labelSelector" => |call| with(call, |check, text| check.label_selector = text),
        "check" => check,
        "allowed" => {
            |call| Ok(Value::Bool(receiver::<Authorization>(call)?.decision == Decision::Allow))
        }
        "reason" => |call| Ok(Value::text(receiver::<Authorization>(call)?.reason.as_str())),
        "errored" => |call| Ok(Value::Bool(receiver::<Authorization>(call)?.error.is_some())),
        "error" => |call| {
            let error = receiver::<Authorization>(call)?.error.as_deref();
            Ok(Value::text(error.unwrap_or_default()))
        },
        _ => return None,
    })
}

fn argument<'c, T: 'static>(call: &'c CallArgs<'_, '_>) -> Option<&'c T> {
    match call.args.first() {
        Some(Value::Opaque(value)) => value.as_any().downcast_ref(),
        _ => None,
    }
}

fn receiver<'c, T: 'static>(call: &'c CallArgs<'_, '_>) -> Result<&'c T, EvalError> {
    argument(call).ok_or_else(|| call.no_such_overload())
}

/// The second argument, which must not be blank.
fn name_of(call: &CallArgs<'_, '_>, error: &'static str) -> Result<String, EvalError> {
    let text = call.text(1)?;
    if text.trim().is_empty() { Err(EvalError::Static(error)) } else { Ok(text.to_string()) }
}

fn path<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let subject = receiver::<AuthorizedSubject>(call)?.clone();
    let path = name_of(call, "path must not be empty")?;
    Ok(value(PathCheck { subject, path }))
}

fn resource<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let check: &GroupCheck = receiver(call)?;
    let resource = ResourceAttributes {
        group: check.group.clone(),
        resource: name_of(call, "resource must not be empty")?,
        ..ResourceAttributes::default()
    };
    Ok(value(ResourceCheck { subject: check.subject.clone(), resource }))
}

/// The same check with a part of the resource replaced.
fn with<'a>(
    call: &CallArgs<'_, 'a>,
    set: impl FnOnce(&mut ResourceAttributes, String),
) -> Evaluated<'a> {
    let mut check = receiver::<ResourceCheck>(call)?.clone();
    set(&mut check.resource, call.text(1)?.to_string());
    Ok(value(check))
}

fn service_account<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let subject = receiver::<AuthorizedSubject>(call)?;
    let (namespace, name) = (call.text(1)?, call.text(2)?);
    if !NamedFormat::Dns1123Subdomain.validate(&name).is_empty() {
        return Err(EvalError::Static("Invalid service account name"));
    }
    if !NamedFormat::Dns1123Label.validate(&namespace).is_empty() {
        return Err(EvalError::Static("Invalid service account namespace"));
    }
    let user = Arc::new(UserInfo::service_account(&namespace, &name));
    Ok(value(AuthorizedSubject { authorizer: Arc::clone(&subject.authorizer), user }))
}

fn check<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let verb = call.text(1)?;
    let (subject, target) = match (argument::<PathCheck>(call), argument::<ResourceCheck>(call)) {
        (Some(check), _) => (&check.subject, AuthorizationTarget::Path(&check.path)),
        (_, Some(check)) => (&check.subject, AuthorizationTarget::Resource(&check.resource)),
        _ => return Err(call.no_such_overload()),
    };
    let request = AuthorizationRequest { user: &subject.user, verb: &verb, target };
    Ok(value(subject.authorizer.authorize(&request)))
}

/// A value that has methods only; the server finds no overload of `==` for any of them.
macro_rules! opaque {
    ($type:ty, $name:literal) => {
        impl Opaque for $type {
            fn type_name(&self) -> &str {
                concat!("kubernetes.authorization.", $name)
            }

            fn equals(&self, _: &dyn Opaque) -> bool {
                false
            }

            fn is_comparable(&self) -> bool {
                false
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    };
}

opaque!(AuthorizedSubject, "Authorizer");
opaque!(PathCheck, "PathCheck");
opaque!(GroupCheck, "GroupCheck");
opaque!(ResourceCheck, "ResourceCheck");
opaque!(Authorization, "Decision");

#[cfg(test)]
mod tests {
    use super::super::display;
    use super::*;
    use crate::check::Environment;
    use crate::eval::{Limits, Program, Variables, authorizer_value, request_resource_value};
    use crate::types::Type;

    /// Allows the requests of the user `root`, and repeats every question as the reason.
    #[derive(Debug)]
    struct Echo;

    impl Authorizer for Echo {
        fn authorize(&self, request: &AuthorizationRequest<'_>) -> Authorization {
            let target = match request.target {
                AuthorizationTarget::Path(path) => path.to_owned(),
                AuthorizationTarget::Resource(r) => [
                    &r.group,
                    &r.resource,
                    &r.subresource,
                    &r.namespace,
                    &r.name,
                    &r.field_selector,
                    &r.label_selector,
                ]
                .map(String::as_str)
                .join("|"),
            };
            let UserInfo { name, groups, .. } = request.user;
            let is_root = name == "root";
            Authorization {
                decision: if is_root { Decision::Allow } else { Decision::NoOpinion },
                reason: format!("{name}[{}] {} {target}", groups.join(","), request.verb),
                error: (request.verb == "fail").then(|| "no answer".to_owned()),
            }
        }
    }

    fn evaluated(text: &str) -> (String, u64) {
        let ty = |name: &str| Type::opaque(format!("kubernetes.authorization.{name}"));
        let environment = Environment::kubernetes()
            .with_variable("authorizer", ty("Authorizer"))
            .with_variable("authorizer.requestResource", ty("ResourceCheck"));
        let program = Program::new(&environment.compile(text).unwrap()).unwrap();
        let user = UserInfo { name: "root".to_owned(), ..UserInfo::default() };
        let resource = ResourceAttributes {
            resource: "pods".to_owned(),
            namespace: "ns".to_owned(),
            ..ResourceAttributes::default()
        };
        let authorizer = Arc::new(Echo);
        let resource = request_resource_value(authorizer.clone(), user.clone(), resource);
        let variables = Variables::new()
            .bind("authorizer", authorizer_value(authorizer, user))
            .bind("authorizer.requestResource", resource);
        let outcome = program.evaluate(&variables, Limits::new(1_000_000));
        let text = outcome.result.map_or_else(|error| error.to_string(), |value| display(&value));
        (text, outcome.cost)
    }

    #[test]
    fn a_check_asks_the_authorizer_about_what_the_expression_says() {
        let cases = [
            ("authorizer.path('/healthz').check('get').allowed()", "true"),
            ("authorizer.path('/healthz').check('get').reason()", "root[] get /healthz"),
            (
                "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('a')\
                 .fieldSelector('a=b').labelSelector('c in (d)').check('update').reason()",
                "root[] update apps|deployments|scale|n|a|a=b|c in (d)",
            ),
            ("authorizer.requestResource.check('delete').reason()", "root[] delete |pods||ns|||"),
            (
                "authorizer.serviceAccount('n', 'a').path('/x').check('get').reason()",
                "system:serviceaccount:n:a[system:serviceaccounts,system:serviceaccounts:n] get /x",
            ),
            ("authorizer.serviceAccount('n', 'a').path('/x').check('get').allowed()", "false"),
            ("authorizer.path('/x').check('fail').error()", "no answer"),
            ("authorizer.path('/x').check('get').errored()", "false"),
            ("string(authorizer.path(' ').check('get').allowed())", "path must not be empty"),
            (
                "authorizer.group('').resource('').check('get').allowed()",
                "resource must not be empty",
            ),
            (
                "authorizer.serviceAccount('n', 'A').path('/').check('').allowed()",
                "Invalid service account name",
            ),
            (
                "authorizer.serviceAccount('a.b', 'a').path('/').check('').allowed()",
                "Invalid service account namespace",
            ),
            ("authorizer == authorizer", "no such overload"),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluated(text).0, expected, "{text}");
        }
    }

    #[test]
    fn a_check_costs_350_000() {
        assert_eq!(evaluated("authorizer.path('/x').check('get').allowed()").1, 350_003);
    }
}
