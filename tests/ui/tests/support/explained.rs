//! The texts of `#[diagnostic::on_unimplemented(…)]` in the sources of the framework.

use std::path::Path;

/// Messages, labels and notes, with `{}` for the names of types.
pub(crate) fn explanations() -> Vec<String> {
    let mut found = Vec::new();
    let framework = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework");
    read(&framework, &mut found);
    found
}

/// Whether a compiler's text has a text of ours: its parts between the names of types, in order.
pub(crate) fn is_in(text: &str, shown: &str) -> bool {
    let mut rest = shown;
    text.split("{}").all(|part| {
        let found = rest.split_once(part);
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    })
}

/// Adds the texts of all sources below a folder.
fn read(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            read(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).expect("a source");
            let attributes = source.split("#[diagnostic::on_unimplemented(\n").skip(1);
            let ends = attributes.filter_map(|text| text.split_once("\n)]"));
            ends.for_each(|(attribute, _)| found.extend(texts(attribute)));
        }
    }
}

/// The texts of an attribute.
fn texts(attribute: &str) -> Vec<String> {
    let lines = attribute.replace("\\\n", "");
    let texts = lines.lines().filter_map(|line| line.split_once(" = \"")?.1.rsplit_once('"'));
    texts.map(|(text, _)| plain(text)).collect()
}

/// A text without the blanks of a continued line, and without the escapes and names of its source.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace("\\\"", "\"").replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut plain = String::new();
    for (at, part) in text.split('{').enumerate() {
        let rest = if at == 0 { part } else { part.split_once('}').map_or("", |(_, rest)| rest) };
        plain.push_str(if at == 0 { "" } else { "{}" });
        plain.push_str(rest);
    }
    plain.replace('\u{1}', "{").replace('\u{2}', "}")
}
