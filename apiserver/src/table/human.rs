//! Durations and selectors in the form that people read.

use std::collections::BTreeMap;

use serde_json::Value;

/// Returns the seconds since 1970 of an RFC 3339 time; `None` if the text is none.
pub fn seconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// Formats a duration in seconds, with at most two units: `45s`, `5m`, `2m30s`, `3h`, `10d`,
/// `2y30d`.
pub fn duration(seconds: i64) -> String {
    let pair = |big: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match seconds {
        // Up to a second is tolerated for clocks that differ.
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, 'd', hours % 24, 'h'),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

/// Formats the time since an RFC 3339 time, or returns `<unknown>`.
pub(crate) fn since(time: &Value, now: i64) -> String {
    time.as_str().and_then(seconds).map_or_else(|| "<unknown>".to_owned(), |t| duration(now - t))
}

/// Formats labels as `a=b,c=d`, or returns `<none>`.
pub(crate) fn labels(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// Formats a label selector in the syntax of `kubectl get -l`, or returns `<none>`.
pub(crate) fn selector(selector: &Value) -> String {
    let mut parts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let text = format!("{key}={}", value.as_str().unwrap_or_default());
        parts.entry(key).or_default().push(text);
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        // A set: the values are printed in order.
        values.sort_unstable();
        let values = values.join(",");
        parts.entry(key).or_default().push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    let parts: Vec<String> = parts.into_values().flatten().collect();
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(",") }
}
