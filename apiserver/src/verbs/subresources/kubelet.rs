//! The stand-in for a kubelet behind `log`, `exec`, `attach` and `portforward`: logs from
//! annotations, and sessions that echo.

use serde_json::{Value, json};

use crate::clock;
use crate::status::ApiError;
use crate::verbs::VerbCall;
use crate::verbs::options::Query;

/// Annotation of a Pod with the log of all containers; `…/log.NAME` is the log of a single
/// container.
pub(crate) const LOG: &str = "windlass.dev/log";
/// Annotation of a Pod with the exit code of the Pod's programs, and of commands in the Pod.
pub(crate) const EXIT_CODE: &str = "windlass.dev/exit-code";

/// Most ports of a connection: each has two channels, whose numbers are bytes.
const MOST_PORTS: usize = 127;

/// A command in a container, or the program that runs there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// The text that is printed first: the words of a command, or the log of the program.
    pub(crate) output: String,
    /// Exit code.
    pub(crate) exit_code: u8,
    /// Whether the client sends input.
    pub(crate) stdin: bool,
    /// Whether the client reads output.
    pub(crate) stdout: bool,
    /// Whether the client reads error output.
    pub(crate) stderr: bool,
    /// Whether the session has a terminal.
    pub(crate) tty: bool,
}

impl Command {
    /// Returns the streams that a query asks for.
    pub(crate) fn of(query: &Query) -> Self {
        let flag = |key: &str| query.flag(key).unwrap_or(false);
        let tty = flag("tty");
        Self {
            stdin: flag("stdin"),
            stdout: flag("stdout"),
            // A terminal has a single output.
            stderr: flag("stderr") && !tty,
            tty,
            ..Self::default()
        }
    }

    /// Returns the status of the command's end, in the form of a kubelet.
    pub(crate) fn status(&self) -> Value {
        if self.exit_code == 0 {
            return json!({"metadata": {}, "status": "Success"});
        }
        let code = self.exit_code.to_string();
        json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code}]},
        })
    }
}

/// Returns the command of an `exec` or `attach`.
pub(crate) fn command(call: &VerbCall, pod: &Value, container: &str, query: &Query) -> Command {
    let output = if call.subresource == "exec" {
        let words: Vec<&str> = query.all("command").collect();
        format!("{}\n", words.join(" "))
    } else {
        stored_log(pod, container)
    };
    Command { output, exit_code: exit_code(pod), ..Command::of(query) }
}

/// Returns the exit code that an annotation sets; 0 without a readable code.
pub(crate) fn exit_code(pod: &Value) -> u8 {
    let annotation = pod["metadata"]["annotations"][EXIT_CODE].as_str();
    annotation.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the log that an annotation sets, with a complete last line.
fn stored_log(pod: &Value, container: &str) -> String {
    let annotations = &pod["metadata"]["annotations"];
    let own = annotations[format!("{LOG}.{container}")].as_str();
    let mut log = own.or(annotations[LOG].as_str()).unwrap_or_default().to_owned();
    if !log.is_empty() && !log.ends_with('\n') {
        log.push('\n');
    }
    log
}

/// Returns the part of a container's log that is asked for; `now` is in seconds since 1970.
pub(crate) fn log(
    pod: &Value,
    container: &str,
    query: &Query,
    now: i64,
) -> Result<String, ApiError> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut statuses =
        lists.iter().flat_map(|list| pod["status"][*list].as_array().into_iter().flatten());
    let state = statuses.find(|status| status["name"] == container);
    if query.flag("previous").unwrap_or(false)
        && state.is_none_or(|state| state["lastState"]["terminated"].is_null())
    {
        let text = format!("previous terminated container {container:?} in pod {name:?} not found");
        return Err(ApiError::bad_request(text));
    }
    let state = state.map_or(&Value::Null, |status| &status["state"]);
    let times = [&state["running"]["startedAt"], &state["terminated"]["startedAt"]];
    let Some(started) = times.iter().find_map(|time| time.as_str()) else {
        let reason = state["waiting"]["reason"].as_str().unwrap_or("ContainerCreating");
        let text = format!("container {container:?} in pod {name:?} is waiting to start: {reason}");
        return Err(ApiError::bad_request(text));
    };
    Ok(part(&stored_log(pod, container), started, query, now))
}

/// Whether the lines of a log, all of which were written at the same time, are older than asked
/// for.
fn is_older(started: &str, query: &Query, now: i64) -> bool {
    let seconds = query.get("sinceSeconds").and_then(|text| text.parse::<i64>().ok());
    let since = query.get("sinceTime").and_then(clock::parse);
    let first = seconds.map(|seconds| now.saturating_sub(seconds)).or(since);
    first.zip(clock::parse(started)).is_some_and(|(first, written)| written < first)
}

/// Returns the last lines, with times before them, and no more bytes than asked for.
fn part(log: &str, started: &str, query: &Query, now: i64) -> String {
    if is_older(started, query, now) {
        return String::new();
    }
    // In nanoseconds, as the lines of a kubelet are dated.
    let started = started.replace('Z', ".000000000Z");
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<usize>().ok());
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    let skipped = number("tailLines").map_or(0, |count| lines.len().saturating_sub(count));
    let timed = query.flag("timestamps").unwrap_or(false);
    let mut text = String::new();
    for line in lines.into_iter().skip(skipped) {
        if timed {
            text.push_str(&started);
            text.push(' ');
        }
        text.push_str(line);
    }
    if let Some(most) = number("limitBytes") {
        let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
    }
    text
}

/// Reads the ports of a port-forward; there may be none over SPDY.
pub(crate) fn ports(query: &Query) -> Result<Vec<u16>, ApiError> {
    let mut ports = Vec::new();
    for text in query.all("ports").flat_map(|list| list.split(',')) {
        let why = match text.parse::<u64>() {
            Ok(port) if port <= u64::from(u16::MAX) => {
                ports.extend(u16::try_from(port));
                continue;
            }
            Ok(_) => "value out of range",
            Err(_) => "invalid syntax",
        };
        return Err(ApiError::bad_request(format!(
            "cannot convert to []int32: strconv.ParseUint: parsing {text:?}: {why}"
        )));
    }
    if ports.len() > MOST_PORTS {
        let text = format!("at most {MOST_PORTS} ports can be forwarded over one connection");
        return Err(ApiError::bad_request(text));
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_cut_by_lines_and_bytes() {
        let read = |query: &str| part("one\ntwo\nthré", "T", &Query::parse(query), 0);
        assert_eq!(read(""), "one\ntwo\nthré");
        assert_eq!(read("tailLines=1"), "thré");
        assert_eq!(read("tailLines=0"), "");
        assert_eq!(read("tailLines=9&timestamps=true"), "T one\nT two\nT thré");
        assert_eq!(read("tailLines=1&limitBytes=4"), "thr", "no half characters");
    }

    #[test]
    fn the_last_line_of_a_log_ends_and_lines_have_the_time_of_the_start() {
        let pod = json!({
            "metadata": {"name": "p", "annotations": {LOG: "one\ntwo"}},
            "status": {"containerStatuses": [{"name": "c",
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]},
        });
        let now = clock::parse("2026-01-01T00:01:00Z").unwrap();
        let read = |query: &str| log(&pod, "c", &Query::parse(query), now).unwrap();
        assert_eq!(read(""), "one\ntwo\n");
        assert_eq!(read("tailLines=1"), "two\n");
        assert_eq!(read("timestamps=true&tailLines=1"), "2026-01-01T00:00:00.000000000Z two\n");
        assert_eq!((read("sinceSeconds=61").len(), read("sinceSeconds=59").len()), (8, 0));
        assert_eq!(read("sinceTime=2026-01-01T00:00:01Z"), "");
    }

    #[test]
    fn ports_are_numbers_of_sixteen_bits() {
        let read =
            |query: &str| ports(&Query::parse(query)).map_err(|why| why.message().to_owned());
        assert_eq!(read("ports=80,81&ports=82"), Ok(vec![80, 81, 82]));
        assert!(read("ports=abc").unwrap_err().ends_with("parsing \"abc\": invalid syntax"));
        assert!(read("ports=70000").unwrap_err().ends_with("value out of range"));
        assert!(read(&format!("ports={}", "1,".repeat(200) + "1")).is_err());
    }
}
