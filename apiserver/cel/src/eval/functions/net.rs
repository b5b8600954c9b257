//! Addresses and networks: Kubernetes' `ip` and `cidr` libraries.

use std::any::Any;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::{Opaque, Value};
use super::{CallArgs, Function};
use crate::library::cidr::Cidr;
use crate::library::ip::Ip;

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// Returns the body of the function of addresses and networks with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "ip" => ip,
        "isIP" => |call| Ok(Value::Bool(Ip::parse(&call.text(0)?).is_ok())),
        "ip.isCanonical" => |call| {
            let text = call.text(0)?;
            let ip = Ip::parse(&text).map_err(EvalError::new)?;
            Ok(Value::Bool(ip.to_string() == *text))
        },
        "family" => |call| Ok(Value::Int(argument::<Ip>(call, 0)?.family())),
        "isUnspecified" => |call| test(call, Ip::is_unspecified),
        "isLoopback" => |call| test(call, Ip::is_loopback),
        "isLinkLocalMulticast" => |call| test(call, Ip::is_link_local_multicast),
        "isLinkLocalUnicast" => |call| test(call, Ip::is_link_local_unicast),
        "isGlobalUnicast" => |call| test(call, Ip::is_global_unicast),
        "cidr" => |call| {
            let cidr = Cidr::parse(&call.text(0)?).map_err(EvalError::new)?;
            Ok(Value::Opaque(Arc::new(cidr)))
        },
        "isCIDR" => |call| Ok(Value::Bool(Cidr::parse(&call.text(0)?).is_ok())),
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        "masked" => |call| Ok(Value::Opaque(Arc::new(argument::<Cidr>(call, 0)?.masked()))),
        "prefixLength" => |call| Ok(Value::Int(argument::<Cidr>(call, 0)?.prefix_length())),
        _ => return None,
    })
}

/// Returns the text that `string(…)` gives for an address or a network; `None` for other values.
pub(super) fn to_text(value: &dyn Opaque) -> Option<String> {
    let any = value.as_any();
    let ip = any.downcast_ref::<Ip>().map(Ip::to_string);
    ip.or_else(|| any.downcast_ref::<Cidr>().map(Cidr::to_string))
}

/// Returns the argument at `index` as an address or a network.
fn argument<T: Copy + 'static>(call: &CallArgs<'_, '_>, index: usize) -> Result<T, EvalError> {
    match call.args.get(index) {
        Some(Value::Opaque(value)) => value.as_any().downcast_ref::<T>().copied(),
        _ => None,
    }
    .ok_or_else(|| call.no_such_overload())
}

fn test<'a>(call: &CallArgs<'_, 'a>, is: fn(Ip) -> bool) -> Evaluated<'a> {
    Ok(Value::Bool(is(argument(call, 0)?)))
}

/// Parses a text as an address, or returns the address of a network.
fn ip<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let ip = match call.args.first() {
        Some(Value::String(text)) => Ip::parse(text).map_err(EvalError::new)?,
        _ => argument::<Cidr>(call, 0)?.ip(),
    };
    Ok(Value::Opaque(Arc::new(ip)))
}

fn contains_ip<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let cidr: Cidr = argument(call, 0)?;
    let ip = match call.args.get(1) {
        // Kubernetes answers a text that is no address with `no such overload`, and drops the
        // error of the parser.
        Some(Value::String(text)) => Ip::parse(text).map_err(|_| EvalError::no_such_overload())?,
        _ => argument(call, 1)?,
    };
    Ok(Value::Bool(cidr.contains_ip(ip)))
}

fn contains_cidr<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let cidr: Cidr = argument(call, 0)?;
    let other = match call.args.get(1) {
        Some(Value::String(text)) => Cidr::parse(text).map_err(EvalError::new)?,
        _ => argument(call, 1)?,
    };
    Ok(Value::Bool(cidr.contains_cidr(other)))
}

impl Opaque for Ip {
    fn type_name(&self) -> &str {
        "net.IP"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Ip>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn size(&self) -> Option<u64> {
        Some(self.byte_len())
    }
}

impl Opaque for Cidr {
    fn type_name(&self) -> &str {
        "net.CIDR"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Cidr>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn size(&self) -> Option<u64> {
        Some(self.byte_len())
    }
}
