//! Values that the API server stores in another form than they were applied in.
//!
//! Only for Kubernetes' own kinds: the API server reads them into types and writes them back, which
//! drops zero values, fills in defaults and spells quantities anew. Custom resources are stored as
//! they come.

use serde_json::Value;

/// Groups of Kubernetes' own kinds. Other groups may end in `.k8s.io`, too, and are served by
/// definitions.
const GROUPS: [&str; 16] = [
    "",
    "admissionregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Text defaults within values that are owned as a whole: the field above, the field, the default.
/// A value that equals the default is never lost by an apply that leaves the field out.
const DEFAULTS: [(&str, &str, &str); 11] = [
    ("fieldRef", "apiVersion", "v1"),
    ("onPodConditions", "status", "True"),
    ("ports", "protocol", "TCP"),
    ("resourceFieldRef", "divisor", "0"),
    ("roleRef", "apiGroup", "rbac.authorization.k8s.io"),
    ("rules", "scope", "*"),
    ("spec", "volumeMode", "Filesystem"),
    ("status", "phase", "Pending"),
    ("subjects", "apiGroup", "rbac.authorization.k8s.io"),
    ("volumeClaimTemplates", "apiVersion", "v1"),
    ("volumeClaimTemplates", "kind", "PersistentVolumeClaim"),
];
/// Fields whose values are maps wherever they stand: an empty map is left out.
const MAPS: [&str; 9] = [
    "annotations",
    "binaryData",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "requests",
    "stringData",
];
/// Fields whose values are objects with members of their own owners wherever they stand, and with
/// defaults.
const MERGED: [&str; 8] = [
    "behavior",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "rollingUpdate",
    "scaleDown",
    "scaleUp",
    "strategy",
    "updateStrategy",
];
/// Default lifetime of a projected token, in seconds.
const TOKEN_LIFETIME: u64 = 3600;

/// Suffixes of powers of 1024, the smallest first.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Suffixes of powers of 1000, the smallest first.
const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
/// Suffixes of parts, the smallest first.
const PARTS: [&str; 3] = ["n", "u", "m"];
/// Parts of one.
const BILLION: i128 = 1_000_000_000;
/// Most digits of an amount that is understood.
const MOST_DIGITS: usize = 18;

/// Whether kinds of this group are Kubernetes' own.
pub(super) fn is_builtin(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// Whether an apply merges an empty object into this field: the members that are there stay.
pub(super) fn is_merged(name: &str) -> bool {
    MERGED.contains(&name)
}

/// Whether the API server leaves this value of a field out.
pub(super) fn is_zero(name: &str, value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // An empty object that has a type stays.
        Value::Object(members) => members.is_empty() && MAPS.contains(&name),
        Value::Null => false,
    }
}

/// Whether the API server fills in this value of a field, below the field `above`, when absent.
pub(super) fn is_default(above: &str, name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => DEFAULTS.contains(&(above, name, text)),
        Value::Number(number) => {
            (above, name) == ("serviceAccountToken", "expirationSeconds")
                && number.as_u64() == Some(TOKEN_LIFETIME)
        }
        // A template for claims is stored with the status of a new claim.
        Value::Object(status) => {
            (above, name) == ("volumeClaimTemplates", "status")
                && status.iter().all(|(name, value)| is_default("status", name, value))
        }
        _ => false,
    }
}

/// Whether `live` is the API server's spelling of the quantity `intent`, at a place where
/// quantities are. At others the text counts.
pub(super) fn is_same_amount((above, name): (&str, &str), intent: &str, live: &str) -> bool {
    let is_amount = matches!(above, "limits" | "requests" | "hard" | "capacity" | "overhead")
        || (above, name) == ("emptyDir", "sizeLimit");
    is_amount && spelled(intent).is_some_and(|intent| intent == live)
}

/// Returns the API server's spelling of a quantity: the largest suffix of the same family that
/// loses nothing. `None` for texts that are no quantities, have an exponent, or are very long.
fn spelled(text: &str) -> Option<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    if digits.is_empty() || !are_digits || digits.len() > MOST_DIGITS {
        return None;
    }
    let power = |suffixes: &[&str]| -> Option<u32> {
        suffixes.iter().position(|known| *known == suffix)?.try_into().ok()
    };
    let (unit, is_binary) = match (power(&DECIMAL), power(&BINARY), power(&PARTS)) {
        (Some(power), ..) => (BILLION.checked_mul(1000_i128.checked_pow(power)?)?, false),
        (_, Some(power), _) => (BILLION.checked_mul(1024_i128.checked_pow(power)?)?, true),
        (.., Some(power)) => (1000_i128.checked_pow(power)?, false),
        _ => return None,
    };
    let amount = digits.parse::<i128>().ok()?.checked_mul(unit)?;
    let scale = 10_i128.checked_pow(fraction.len().try_into().ok()?)?;
    // Smaller parts than the API server knows would be rounded.
    (amount % scale == 0).then(|| spell(sign * (amount / scale), is_binary))
}

/// Spells an amount that is counted in billionths.
fn spell(amount: i128, is_binary: bool) -> String {
    if amount % BILLION != 0 {
        let thousand = |power| 1000_i128.pow(power);
        let power = if amount % thousand(2) == 0 { 2 } else { u32::from(amount % 1000 == 0) };
        return format!("{}{}", amount / thousand(power), PARTS[power as usize]);
    }
    let mut number = amount / BILLION;
    // Small numbers are spelled without a suffix of powers of 1024.
    let is_binary = is_binary && number.abs() >= 1024;
    let (factor, suffixes) = if is_binary { (1024, BINARY) } else { (1000, DECIMAL) };
    let mut power = 0;
    while number != 0 && number % factor == 0 && power + 1 < suffixes.len() {
        number /= factor;
        power += 1;
    }
    format!("{number}{}", suffixes[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_spelled_as_the_api_server_does() {
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1000", "1k"),
            ("1048576", "1048576"),
            ("1000Ki", "1000Ki"),
            ("-2000m", "-2"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1n", "1n"),
            ("1000n", "1u"),
        ] {
            assert_eq!(spelled(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "1e3", "many", "1.5.1", "0.1n", "9999999999999999999"] {
            assert_eq!(spelled(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_count_where_quantities_are_and_texts_elsewhere() {
        assert!(is_same_amount(("limits", "cpu"), "1000m", "1"));
        assert!(is_same_amount(("emptyDir", "sizeLimit"), "1024Mi", "1Gi"));
        assert!(!is_same_amount(("limits", "cpu"), "1", "1000m"), "it would be spelled anew");
        assert!(!is_same_amount(("env", "value"), "1000m", "1"));
    }
}
