//! Costs of the functions of Kubernetes' libraries: the figures of the estimator there.

use super::calls::{Arg, CostedCall, Estimate, ONE};
use super::estimator::Estimator;
use super::range::{CostEstimate, REGEX, TRAVERSAL, UNKNOWN};
use crate::syntax::{ExprKind, Literal};
use crate::types::Type;

/// Cost of a check of the authorizer.
const CHECK: CostEstimate = CostEstimate::fixed(350_000);
/// Cost of a selector with the slice of requirements.
const SELECTOR: CostEstimate = CostEstimate::fixed(10);
/// Cost of a requirement with the slice of values.
const REQUIREMENT: f64 = 50.0;
/// Sizes of addresses in bytes.
const ADDRESS: CostEstimate = CostEstimate { min: 4, max: 16 };
/// Largest length of the pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// Largest length of the name of a format.
const FORMAT_NAME: u64 = 64;

/// The estimate of a call, without its arguments; `None` leaves the call to the estimate of the
/// language.
pub(super) fn estimate(call: &CostedCall<'_>, estimator: &Estimator<'_>) -> Option<Estimate> {
    let size = |arg: &Arg<'_>| size_of(arg, estimator);
    let read = |arg: &Arg<'_>| size(arg).times(TRAVERSAL);
    Some(match (call.function, call.target, call.args) {
        ("check", ..) => (CHECK, None),
        (name, ..) if is_constant(name) => (ONE, None),
        ("fieldSelector" | "labelSelector", _, [text]) => (selector(size(text)), None),
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
            (elements(target, estimator), None)
        }
        ("url" | "jsonpatch.escapeKey", _, [text]) => (read(text), Some(size(text))),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
            (read(target), Some(size(target)))
        }
        ("replace", Some(target), [from, to, ..]) => {
            let result = replaced(size(target), size(from), size(to));
            (size(target).times(2.0 * TRAVERSAL), Some(result))
        }
        ("split", Some(target), args) => {
            let text = size(target);
            let limit = args.get(1).and_then(constant);
            let max = limit.map_or(text.max, |limit| limit as u64);
            (text.times(2.0 * TRAVERSAL), Some(CostEstimate { min: 0, max }))
        }
        ("join", Some(target), args) => {
            let result = joined(target, args.first(), estimator);
            (result.times(TRAVERSAL), Some(result))
        }
        ("find" | "findAll", Some(target), [pattern, ..]) => {
            let text = size(target);
            let cost = text.add(ONE).times(TRAVERSAL).multiply(size(pattern).times(REGEX));
            (cost, Some(CostEstimate { min: 0, max: text.max }))
        }
        ("ip", ..) if call.overload == "cidr_ip" => (ONE, None),
        ("ip.isCanonical", _, [text, ..]) => (size(text).times(2.0 * TRAVERSAL), None),
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
            [text, ..],
        ) => (read(text), None),
        ("containsIP", _, [other, ..]) => {
            let is_text = call.overload == "cidr_contains_ip_string";
            let compared = ADDRESS.add(ADDRESS).times(TRAVERSAL);
            (if is_text { compared.add(read(other)) } else { compared }, None)
        }
        ("containsCIDR", _, [other, ..]) => {
            let is_text = call.overload == "cidr_contains_cidr_string";
            let compared =
                ADDRESS.add(ADDRESS).times(TRAVERSAL).add(ADDRESS.times(TRAVERSAL)).add(ONE);
            (if is_text { compared.add(read(other)) } else { compared }, None)
        }
        ("validate", _, [text, ..]) => (read(text).times(FORMAT_PATTERN * REGEX), None),
        ("_==_", None, [left, right]) if left.ty.is_same(right.ty) => {
            (equality(left.ty, right)?, None)
        }
        _ => return None,
    })
}

/// Whether a function costs 1, whatever the arguments are.
fn is_constant(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

fn size_of(arg: &Arg<'_>, estimator: &Estimator<'_>) -> CostEstimate {
    arg.size.or_else(|| estimator.size_at(&arg.path)).unwrap_or(UNKNOWN)
}

fn constant(arg: &Arg<'_>) -> Option<i64> {
    match &arg.expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Some(*value),
        _ => None,
    }
}

/// Type and size of the elements of a list; `None` for a value of another type.
fn element<'e>(list: &Arg<'e>, estimator: &Estimator<'_>) -> Option<(&'e Type, CostEstimate)> {
    let ty = list.ty.parameters().next()?;
    // Nothing is known of the elements of a value that is no part of the data, not even of a
    // literal's.
    if list.path.is_empty() {
        return Some((ty, UNKNOWN));
    }
    let path = [list.path.as_slice(), &["@items".to_owned()]].concat();
    Some((ty, estimator.size_at(&path).unwrap_or(UNKNOWN)))
}

/// Cost of reading the elements of a list once, or a text.
fn elements(target: &Arg<'_>, estimator: &Estimator<'_>) -> CostEstimate {
    let size = size_of(target, estimator);
    match element(target, estimator) {
        Some((Type::String | Type::Bytes, element)) => {
            size.multiply(ONE.add(element.times(TRAVERSAL)))
        }
        Some(_) => size.multiply(ONE),
        None => size.times(TRAVERSAL),
    }
}

/// Size of a text after a replacement.
fn replaced(text: CostEstimate, from: CostEstimate, to: CostEstimate) -> CostEstimate {
    // An empty text is found before each character and at the end.
    let count = |size: u64, part: u64| {
        if part == 0 { size.saturating_add(1) } else { (size as f64 / part as f64).ceil() as u64 }
    };
    let (max_count, max_kept) = match (from.min, to.max) {
        (0, _) => (count(text.max, 0), text.max),
        (from, to) if to <= from => (0, text.max),
        (from, _) => (count(text.max, from), 0),
    };
    let (min_count, min_kept) = match (from.max, to.min) {
        (0, _) => (count(text.min, 0), text.min),
        (from, to) if from <= to => (0, text.min),
        (from, _) => (count(text.min, from), 0),
    };
    let counts = CostEstimate { min: min_count, max: max_count };
    counts.multiply(to).add(CostEstimate { min: min_kept, max: max_kept })
}

fn joined(list: &Arg<'_>, separator: Option<&Arg<'_>>, estimator: &Estimator<'_>) -> CostEstimate {
    let count = size_of(list, estimator);
    let texts = element(list, estimator).map(|(_, size)| count.multiply(size));
    let texts = texts.unwrap_or(CostEstimate::fixed(0));
    let Some(separator) = separator else { return texts };
    let gaps = CostEstimate { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
    texts.add(size_of(separator, estimator).multiply(gaps))
}

/// Cost of the equality of two values of a library's type.
fn equality(ty: &Type, right: &Arg<'_>) -> Option<CostEstimate> {
    match ty.name() {
        "net.IP"
        | "net.CIDR"
        | "kubernetes.Quantity"
        | "kubernetes.Semver"
        | "kubernetes.authorization.Authorizer"
        | "kubernetes.authorization.PathCheck"
        | "kubernetes.authorization.GroupCheck"
        | "kubernetes.authorization.ResourceCheck"
        | "kubernetes.authorization.Decision" => Some(ONE),
        "kubernetes.NamedFormat" => {
            Some(CostEstimate { min: 1, max: FORMAT_NAME }.times(TRAVERSAL))
        }
        "kubernetes.URL" => {
            let max = right.size.map_or(1, |size| size.max);
            Some(CostEstimate { min: 1, max }.times(TRAVERSAL))
        }
        _ => None,
    }
}

/// Cost of parsing a selector: the text, and a slice for each requirement, which has two characters
/// at least.
fn selector(text: CostEstimate) -> CostEstimate {
    let requirements = text.times(0.5).times(REQUIREMENT);
    SELECTOR.add(text.times(TRAVERSAL)).add(requirements)
}
