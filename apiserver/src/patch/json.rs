//! JSON patches, with the quirks of the library that kube-apiserver uses.

use serde_json::Value;

use super::PatchError;

/// Most operations of a patch.
const MAX_OPERATIONS: usize = 10_000;
/// Most bytes of JSON that all `copy` operations of a patch may add.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Deepest nesting of a document; a deeper document could not be read again.
const MAX_DEPTH: usize = 120;
/// Most values that all operations of a patch look at to measure nesting.
const MAX_MEASURED: usize = 4_000_000;

/// Most items of lists that all operations of a patch may move to make room or to close a gap: a
/// list of a million items would be moved ten thousand times.
const MAX_MOVED: usize = 100_000_000;

/// Failure of an operation. The server gives the reason only for the patches of webhooks.
#[derive(Debug)]
enum OperationFailed {
    /// A container on the way to the path is missing.
    Away,
    /// The last step of the path fails; with the library's text.
    Step(String),
    /// Any other failure; with the library's text.
    Other(String),
}

/// Applies a JSON patch of a client.
pub(super) fn apply(doc: &Value, ops: &Value) -> Result<Value, PatchError> {
    run(doc, decode(ops)?).map_err(|_| PatchError::rejected())
}

/// Applies a JSON patch of a webhook; the error is the library's text.
pub(super) fn apply_with_reason(doc: &Value, ops: &Value) -> Result<Value, String> {
    let ops = decode(ops).map_err(|error| error.message)?;
    run(doc, ops)
}

/// Executes operations.
fn run(doc: &Value, ops: &[Value]) -> Result<Value, String> {
    let mut doc = doc.clone();
    let mut work = PatchWork::default();
    for op in ops {
        operation(&mut doc, op, &mut work).map_err(|failed| reason(op, failed))?;
    }
    Ok(doc)
}

/// Returns the library's text for an operation that failed.
fn reason(op: &Value, failed: OperationFailed) -> String {
    let text = |name: &str| op.get(name).and_then(Value::as_str).unwrap_or_default();
    let (path, from) = (text("path"), text("from"));
    match (text("op"), failed) {
        (_, OperationFailed::Other(why)) => why,
        (verb @ ("add" | "remove"), OperationFailed::Away) => {
            format!(
                "{verb} operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        }
        ("replace", OperationFailed::Away) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        ("test", OperationFailed::Away) => {
            format!("test operation does not apply: is missing path: {path}: missing value")
        }
        (verb @ ("move" | "copy"), OperationFailed::Away) => {
            format!(
                "{verb} operation does not apply: doc is missing from path: {from}: missing value"
            )
        }
        ("replace", OperationFailed::Step(_)) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        (verb, OperationFailed::Step(why)) => format!("error in {verb} for path: '{path}': {why}"),
        (verb, OperationFailed::Away) => format!("Unexpected kind: {verb}"),
    }
}

/// Work of the operations so far.
#[derive(Default)]
struct PatchWork {
    /// Bytes of all copies.
    copied: usize,
    /// Values whose nesting was measured.
    measured: usize,
    /// Items of lists that were moved.
    moved: usize,
}

impl PatchWork {
    /// Counts the items of a list behind a position, which move; fails if all were too many.
    fn shift(&mut self, list: &[Value], at: usize) -> Result<(), OperationFailed> {
        self.moved = self.moved.saturating_add(list.len().saturating_sub(at));
        if self.moved > MAX_MOVED {
            Err(other("the operations move too many items"))
        } else {
            Ok(())
        }
    }

    /// Fails if `value` at `path` makes a document nested too deeply.
    ///
    /// For each operation and not at the end only: operations can nest a document step by step, and
    /// a very deep document overflows the stack when dropped or printed, even if not the result.
    fn check_depth(&mut self, path: &str, value: &Value) -> Result<(), OperationFailed> {
        let above = path.matches('/').count();
        // Iterative, since recursion could overflow the stack.
        let mut open = vec![(value, above)];
        while let Some((value, depth)) = open.pop() {
            self.measured += 1;
            if depth > MAX_DEPTH || self.measured > MAX_MEASURED {
                return Err(other("the document is nested too deeply"));
            }
            match value {
                Value::Array(list) => open.extend(list.iter().map(|item| (item, depth + 1))),
                Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Checks that a patch is a list of operations.
fn decode(ops: &Value) -> Result<&[Value], PatchError> {
    let kind = |value: &Value| match value {
        Value::Null | Value::Object(_) => "object",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
    };
    let cannot = |value: &Value, to: &str| {
        let kind = kind(value);
        PatchError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go value of type {to}"
        ))
    };
    let list = match ops {
        Value::Array(list) => list.as_slice(),
        Value::Null => &[],
        other => return Err(cannot(other, "[]handlers.jsonPatchOp")),
    };
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError {
            code: 413,
            reason: "RequestEntityTooLarge",
            message: format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                list.len()
            ),
        });
    }
    for op in list {
        // A null operation is decoded, and fails when applied.
        if !op.is_object() && !op.is_null() {
            return Err(cannot(op, "handlers.jsonPatchOp"));
        }
        for name in ["op", "path", "from"] {
            match op.get(name) {
                None | Some(Value::String(_) | Value::Null) => {}
                Some(other) => {
                    return Err(PatchError::bad_request(format!(
                        "error decoding patch: json: cannot unmarshal {} into Go struct field \
                         jsonPatchOp.{name} of type string",
                        kind(other)
                    )));
                }
            }
        }
    }
    Ok(list)
}

/// Executes an operation.
fn operation(doc: &mut Value, op: &Value, work: &mut PatchWork) -> Result<(), OperationFailed> {
    let text = |name: &str| op.get(name).and_then(Value::as_str);
    let value = || op.get("value").cloned().unwrap_or(Value::Null);
    let path = text("path").ok_or_else(|| other("operation missing path field: missing value"))?;
    let from = || text("from").ok_or_else(|| other("operation, missing from field: missing value"));
    match text("op").unwrap_or("unknown") {
        "add" => {
            let value = value();
            work.check_depth(path, &value)?;
            add(doc, path, value, work)
        }
        "remove" => remove(doc, path, work).map(drop),
        "replace" => {
            let value = value();
            work.check_depth(path, &value)?;
            replace(doc, path, value)
        }
        "move" => {
            // Removed first: positions in `path` count without the moved item.
            let moved = remove(doc, from()?, work)?;
            work.check_depth(path, &moved)?;
            add(doc, path, moved, work)
        }
        "copy" => {
            let value = read(doc, from()?)?.cloned().unwrap_or(Value::Null);
            // Each copy can double the document: without a limit a short patch could fill memory.
            work.copied += value.to_string().len();
            if work.copied > MAX_COPIED {
                return Err(other("the copies are too large"));
            }
            work.check_depth(path, &value)?;
            add(doc, path, value, work)
        }
        "test" => {
            let wanted = value();
            let found = if path.is_empty() { Some(&*doc) } else { read(doc, path)? };
            match found {
                Some(found) if *found == wanted => Ok(()),
                // A missing key equals null, as in the library of the real server.
                None if wanted.is_null() => Ok(()),
                _ => Err(other(&format!("testing value {path} failed: test failed"))),
            }
        }
        verb => Err(other(&format!("Unexpected kind: {verb}"))),
    }
}

fn other(why: &str) -> OperationFailed {
    OperationFailed::Other(why.to_owned())
}

/// Returns the keys of a path, without the text before the first slash; `None` without a slash.
fn keys(path: &str) -> Option<Vec<String>> {
    let (_, rest) = path.split_once('/')?;
    // `~1` first: `~01` must become `~1`, and not a slash.
    Some(rest.split('/').map(|key| key.replace("~1", "/").replace("~0", "~")).collect())
}

/// Returns the container of a path's last key, and that key.
fn container<'d>(
    doc: &'d mut Value,
    path: &str,
) -> Result<(&'d mut Value, String), OperationFailed> {
    let mut keys = keys(path).ok_or(OperationFailed::Away)?;
    let last = keys.pop().ok_or(OperationFailed::Away)?;
    let mut at = doc;
    for key in keys {
        at = match at {
            Value::Object(map) => map.get_mut(&key).ok_or(OperationFailed::Away)?,
            Value::Array(list) => {
                let index = index(&key, list.len()).map_err(|_| OperationFailed::Away)?;
                list.get_mut(index).ok_or(OperationFailed::Away)?
            }
            _ => return Err(OperationFailed::Away),
        };
    }
    match at {
        Value::Object(_) | Value::Array(_) => Ok((at, last)),
        _ => Err(OperationFailed::Away),
    }
}

/// Returns a position below `len`; negative positions count from the end.
fn index(key: &str, len: usize) -> Result<usize, OperationFailed> {
    let number: i64 = key.parse().map_err(|_| {
        OperationFailed::Step(format!("strconv.Atoi: parsing {key:?}: invalid syntax"))
    })?;
    let wrong = || {
        OperationFailed::Step(format!(
            "Unable to access invalid index: {key}: invalid index referenced"
        ))
    };
    let length = i64::try_from(len).map_err(|_| wrong())?;
    let number = if number < 0 { number + length } else { number };
    if (0..length).contains(&number) {
        usize::try_from(number).map_err(|_| wrong())
    } else {
        Err(wrong())
    }
}

/// Returns the value at a path; `None` for a missing key of a map.
fn read<'d>(doc: &'d mut Value, path: &str) -> Result<Option<&'d Value>, OperationFailed> {
    let (container, key) = container(doc, path)?;
    match container {
        Value::Array(list) => {
            let index = index(&key, list.len())?;
            Ok(list.get(index))
        }
        other => Ok(other.get(&key)),
    }
}

/// Adds a value; `-` stands for the end of a list.
fn add(
    doc: &mut Value,
    path: &str,
    value: Value,
    work: &mut PatchWork,
) -> Result<(), OperationFailed> {
    match container(doc, path)? {
        (Value::Array(list), key) => {
            // An index may be the position behind the end: the value is then appended.
            let at = if key == "-" { list.len() } else { index(&key, list.len() + 1)? };
            work.shift(list, at)?;
            list.insert(at, value);
        }
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        _ => return Err(OperationFailed::Away),
    }
    Ok(())
}

/// Removes a value and returns it.
fn remove(doc: &mut Value, path: &str, work: &mut PatchWork) -> Result<Value, OperationFailed> {
    match container(doc, path)? {
        (Value::Array(list), key) => {
            let index = index(&key, list.len())?;
            work.shift(list, index)?;
            Ok(list.remove(index))
        }
        (Value::Object(map), key) => map.remove(&key).ok_or_else(|| {
            OperationFailed::Step(format!("Unable to remove nonexistent key: {key}: missing value"))
        }),
        _ => Err(OperationFailed::Away),
    }
}

/// Replaces a value; a missing key of a map is added.
fn replace(doc: &mut Value, path: &str, value: Value) -> Result<(), OperationFailed> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(other("replace operation value must be object or array: %!w(<nil>)"));
        }
        *doc = value;
        return Ok(());
    }
    match container(doc, path)? {
        (Value::Array(list), key) => {
            let index = index(&key, list.len())?;
            *list.get_mut(index).ok_or(OperationFailed::Away)? = value;
        }
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        _ => return Err(OperationFailed::Away),
    }
    Ok(())
}
