//! URLs: Kubernetes' `url` library.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::map::{Entries, Map};
use super::super::value::{Opaque, Value};
use super::{CallArgs, Function};
use crate::library::url::Url;

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// Returns the body of the function of URLs with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "url" => |call| {
            let url = Url::parse(&call.text(0)?).map_err(EvalError::new)?;
            Ok(Value::Opaque(Arc::new(url)))
        },
        "isURL" => |call| Ok(Value::Bool(Url::is_valid(&call.text(0)?))),
        "getScheme" => |call| part(call, |url| url.scheme().to_owned()),
        "getHost" => |call| part(call, Url::host),
        "getHostname" => |call| part(call, Url::hostname),
        "getPort" => |call| part(call, Url::port),
        "getEscapedPath" => |call| part(call, |url| url.escaped_path().to_owned()),
        "getQuery" => query,
        _ => return None,
    })
}

/// The URL that is the first argument.
fn receiver<'c>(call: &'c CallArgs<'_, '_>) -> Result<&'c Url, EvalError> {
    match call.args.first() {
        Some(Value::Opaque(value)) => value.as_any().downcast_ref::<Url>(),
        _ => None,
    }
    .ok_or_else(|| call.no_such_overload())
}

fn part<'a>(call: &CallArgs<'_, 'a>, of: fn(&Url) -> String) -> Evaluated<'a> {
    Ok(Value::text(of(receiver(call)?)))
}

fn query<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let mut names = Vec::new();
    let mut values: HashMap<Arc<str>, Vec<Value<'a>>> = HashMap::new();
    for (name, value) in receiver(call)?.query() {
        let name: Arc<str> = Arc::from(name);
        let of_name = values.entry(name.clone()).or_default();
        if of_name.is_empty() {
            names.push(name);
        }
        of_name.push(Value::text(value));
    }
    let mut entries = Entries::default();
    for name in names {
        let list = values.remove(&name).unwrap_or_default();
        entries.set(Value::text(name), Value::list(list))?;
    }
    Ok(Value::Map(Map::Entries(Arc::new(entries))))
}

impl Opaque for Url {
    fn type_name(&self) -> &str {
        "kubernetes.URL"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = other.as_any().downcast_ref::<Url>();
        other.is_some_and(|other| other.to_string() == self.to_string())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
