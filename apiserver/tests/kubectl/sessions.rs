//! Sessions of kubectl that were recorded on a real kube-apiserver, line by line.
//!
//! A file of `sessions/` is one session in a namespace of its own. `## ` begins a comment, `$ ` a
//! command, `< ` a line of its input, `! ` a line of its standard error; `[3]` is an exit code
//! other than 0, and the other lines are the standard output.
//! `tests/conformance/kubectl.py` records them anew.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::Server;

/// Controllers of the recording: workloads stay as kubectl wrote them.
const CONTROLLERS: &str =
    "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller";
/// Kubeconfig of the server that the sessions are recorded on.
const RECORD: &str = "WINDLASS_KUBECTL_RECORD";

/// Command of a session, with its input and what was printed.
#[derive(Default)]
struct Exchange {
    /// Comments and blank lines above the command.
    above: String,
    command: String,
    input: String,
    printed: String,
}

/// Returns the exchanges of a session's text.
fn exchanges(text: &str) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    let mut above = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let above = std::mem::take(&mut above);
            all.push(Exchange { above, command: command.to_owned(), ..Exchange::default() });
        } else if line.starts_with("## ") {
            above.push_str(&format!("{line}\n"));
        } else if let (Some(input), Some(last)) = (line.strip_prefix("< "), all.last_mut()) {
            last.input.push_str(&format!("{input}\n"));
        } else if let Some(last) = all.last_mut() {
            last.printed.push_str(&format!("{line}\n"));
        }
    }
    all
}

/// Returns the words of a command line; quotes keep blanks together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for sign in line.chars() {
        match (sign, quote) {
            ('\'' | '"', None) => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (_, Some(open)) if sign == open => quote = None,
            (' ', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    words
}

/// Texts that differ from run to run, and their placeholders.
fn masks() -> Vec<(Regex, &'static str)> {
    let pairs = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r#"(resourceVersion\\?"?: ?\\?")\d+"#, "${1}N"),
        (r"(Resource Version: +)\d+", "${1}N"),
        (r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "LOG "),
        (r"https://127\.0\.0\.1:\d+", "SERVER"),
        (r"/tmp/[\w./-]+", "FILE"),
        // Ages in tables and descriptions, with the blanks of their column.
        (r"(^|\s)(\d+m)?\d+s(\s|$)", "${1}AGE${3}"),
        (r"(\S)  +", "${1}  "),
        (r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}", "TOKEN"),
    ];
    pairs.into_iter().map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).collect()
}

/// Returns a text with placeholders for what differs from run to run.
fn masked(text: &str, masks: &[(Regex, &str)]) -> String {
    let line = |line: &str| {
        let masked = masks.iter().fold(line.to_owned(), |line, (pattern, text)| {
            pattern.replace_all(&line, *text).into_owned()
        });
        masked.trim_end().to_owned() + "\n"
    };
    text.lines().map(line).collect()
}

/// Runs a command, and returns what it printed in the form of the files.
fn play(server: &Server, space: &str, exchange: &Exchange, masks: &[(Regex, &str)]) -> String {
    let words = words(&exchange.command);
    let words: Vec<&str> = words.iter().map(String::as_str).skip(1).collect();
    let output = server.run(&[&["--namespace", space], &words[..]].concat(), &exchange.input);
    let mut printed = masked(&String::from_utf8_lossy(&output.stdout), masks);
    for line in masked(&String::from_utf8_lossy(&output.stderr), masks).lines() {
        printed.push_str(format!("! {line}").trim_end());
        printed.push('\n');
    }
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        printed.push_str(&format!("[{code}]\n"));
    }
    printed
}

/// Returns the files of all sessions in their order.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/sessions");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Plays one session, and returns the commands that printed something else than the file has.
fn differences(server: &Server, file: &Path, masks: &[(Regex, &str)], record: bool) -> Vec<String> {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let space = format!("session-{name}");
    server.ok(&["create", "namespace", &space]);
    let (mut different, mut text) = (Vec::new(), String::new());
    for exchange in exchanges(&std::fs::read_to_string(file).unwrap()) {
        let printed = play(server, &space, &exchange, masks);
        if printed != exchange.printed {
            different.push(format!(
                "{name}: $ {}\n--- kube-apiserver\n{}--- windlass-apiserver\n{printed}",
                exchange.command, exchange.printed
            ));
        }
        text.push_str(&format!("{}$ {}\n", exchange.above, exchange.command));
        exchange.input.lines().for_each(|line| text.push_str(&format!("< {line}\n")));
        text.push_str(&printed);
    }
    if record {
        std::fs::write(file, text).unwrap();
        return Vec::new();
    }
    different
}

pub(super) fn commands_print_what_they_print_on_a_kube_apiserver(server: &Server) {
    let masks = masks();
    let record = std::env::var_os(RECORD);
    let server = Server::start_with(server.kubectl.clone(), &["--controllers", CONTROLLERS]);
    if let Some(kubeconfig) = &record {
        std::fs::copy(kubeconfig, server.folder.join("kubeconfig")).unwrap();
    }
    let different: Vec<String> = files()
        .iter()
        .flat_map(|file| differences(&server, file, &masks, record.is_some()))
        .collect();
    assert!(different.is_empty(), "{} commands differ:\n{}", different.len(), different.join("\n"));
}

pub(super) fn at_least_a_hundred_commands_were_recorded(_: &Server) {
    let count: usize =
        files().iter().map(|file| exchanges(&std::fs::read_to_string(file).unwrap()).len()).sum();
    assert!(count >= 100, "{count} commands");
}
