//! Files of source, cut into tokens and comments: enough of Rust's grammar for the tidy tests.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Folders with the source of packages: every `src` folder inside these folders, at any depth.
pub(crate) const FOLDERS: [&str; 5] = ["framework", "macros", "apiserver", "examples", "tests/src"];

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests crate lies in the workspace")
        .to_owned()
}

/// Reads a file.
pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
}

/// A file of source.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path below the workspace.
    pub(crate) path: PathBuf,
    /// Folder of the package: the path up to `src`.
    pub(crate) package: PathBuf,
    /// Path of the module in the package; empty for the root.
    pub(crate) module: Vec<String>,
    /// Content of the file.
    pub(crate) text: String,
    /// Tokens outside comments and tests.
    pub(crate) tokens: Vec<Token>,
    /// All comments, those of tests as well.
    pub(crate) comments: Vec<Comment>,
    /// Whether only tests have the file.
    pub(crate) is_test: bool,
    /// Number of lines, without those of tests inside the file.
    pub(crate) lines: usize,
}

/// An identifier, `::`, a literal, or any other single character.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// Text; empty for literals in quotes.
    pub(crate) text: String,
    /// Place in the file.
    span: Range<usize>,
}

/// Kind of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommentKind {
    /// `//`, `/* */`
    Plain,
    /// `///`
    Outer,
    /// `//!`
    Inner,
}

/// A line of a comment, without the slashes.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// Kind.
    pub(crate) kind: CommentKind,
    /// Text behind the slashes.
    pub(crate) text: String,
}

/// Files of each folder, read once for all tests.
static FILES: [OnceLock<Vec<Source>>; FOLDERS.len()] = [const { OnceLock::new() }; FOLDERS.len()];

/// Returns the files below a folder of [`FOLDERS`], without those that only tests have.
pub(crate) fn sources(folder: &str) -> impl Iterator<Item = &'static Source> + Clone + use<> {
    all_sources(folder).iter().filter(|file| !file.is_test)
}

/// Returns all files below a folder of [`FOLDERS`], sorted by path.
pub(crate) fn all_sources(folder: &str) -> &'static [Source] {
    let at = FOLDERS.iter().position(|known| *known == folder).expect("one of FOLDERS");
    FILES[at].get_or_init(|| {
        let mut paths = Vec::new();
        let is_inside = Path::new(folder).ends_with("src");
        collect(&root().join(folder), is_inside, &mut paths);
        paths.sort();
        assert!(!paths.is_empty(), "no Rust files in {folder}");
        let below =
            |path: &PathBuf| path.strip_prefix(root()).expect("in the workspace").to_owned();
        paths.iter().map(|path| Source::new(&below(path), &read(path))).collect()
    })
}

/// Adds the Rust files below `dir` that are inside a `src` folder.
fn collect(dir: &Path, is_inside: bool, paths: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot read {}: {error}", dir.display()));
    for entry in entries {
        let path = entry.expect("an entry of a folder that was just opened").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" {
                collect(&path, is_inside || name == "src", paths);
            }
        } else if is_inside && name.ends_with(".rs") {
            paths.push(path);
        }
    }
}

/// Whether a module has only tests, by the path in the package.
fn is_of_tests(module: &[String]) -> bool {
    let mut names = module.iter();
    names.any(|name| ["tests", "test_support"].contains(&name.as_str()) || name.ends_with("_tests"))
}

impl Source {
    /// Cuts the text of a file, whose path is below the workspace.
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        let (tokens, comments) = lex(text);
        let tests = test_items(&tokens);
        let is_test = |line: usize| tests.iter().any(|range| range.contains(&line));
        let (package, module) = place(path);
        Self {
            path: path.to_owned(),
            tokens: tokens.into_iter().filter(|token| !is_test(token.line)).collect(),
            comments,
            is_test: is_of_tests(&module),
            package,
            module,
            text: text.to_owned(),
            lines: text.lines().count() - tests.iter().map(|range| range.len()).sum::<usize>(),
        }
    }

    /// Returns the top-level module that the file belongs to; `None` for the root of the package.
    pub(crate) fn top(&self) -> Option<&str> {
        self.module.first().map(String::as_str)
    }

    /// Returns the numbered lines of code, without comments and tests.
    pub(crate) fn code(&self) -> Vec<(usize, String)> {
        let mut lines: BTreeMap<usize, String> = BTreeMap::new();
        let mut end = 0;
        for token in &self.tokens {
            let line = lines.entry(token.line).or_default();
            let between = self.text.get(end..token.span.start).unwrap_or_default();
            // The space between two tokens of a line counts: `async fn` is a single text to look
            // for.
            if !line.is_empty() && !between.contains("//") && !between.contains('\n') {
                line.push_str(between);
            }
            line.push_str(&self.text[token.span.clone()]);
            end = token.span.end;
        }
        lines.into_iter().collect()
    }

    /// Returns a place in the file, in the form of reports.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// Returns the folder of a file's package, and the path of the module in that package.
fn place(path: &Path) -> (PathBuf, Vec<String>) {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let src = parts.iter().position(|part| *part == "src").expect("inside a `src` folder");
    let mut module: Vec<String> = parts[src + 1..].iter().map(|part| (*part).to_owned()).collect();
    let file = module.pop().unwrap_or_default();
    let name = file.strip_suffix(".rs").unwrap_or(&file);
    if !["mod", "lib", "main"].contains(&name) {
        module.push(name.to_owned());
    }
    (parts[..src].iter().collect(), module)
}

/// Cuts a file into tokens and comments.
fn lex(text: &str) -> (Vec<Token>, Vec<Comment>) {
    let (mut tokens, mut comments) = (Vec::new(), Vec::new());
    let (mut at, mut line) = (0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let end = at + length(rest, first);
        if rest.starts_with("//") || rest.starts_with("/*") {
            comments.extend(comment(&text[at..end], line));
        } else if !first.is_whitespace() {
            // The content of literals in quotes is no code: such content must not read like an
            // import.
            let is_quoted = text[at..end].ends_with(['"', '#', '\'']) && end - at > 1;
            let word = if is_quoted { String::new() } else { text[at..end].to_owned() };
            tokens.push(Token { line, text: word, span: at..end });
        }
        line += text[at..end].matches('\n').count();
        at = end;
    }
    (tokens, comments)
}

/// Returns the length of the token or comment at the beginning of `rest`.
fn length(rest: &str, first: char) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if let Some(quoted) = string(rest) {
        return quoted;
    }
    if first == '\'' {
        return character(rest).unwrap_or(1);
    }
    if first.is_alphanumeric() || first == '_' {
        return rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    }
    if rest.starts_with("::") { 2 } else { first.len_utf8() }
}

/// Returns the length of the string literal at the beginning of `rest`, if `rest` begins with a
/// literal.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|tail| tail.starts_with(['"', '#']))
    })?;
    let hashes = rest[prefix.len()..].chars().take_while(|c| *c == '#').count();
    let open = prefix.len() + hashes;
    if !rest[open..].starts_with('"') || hashes > 0 && !prefix.contains('r') {
        return None;
    }
    if prefix.contains('r') {
        let close = format!("\"{}", "#".repeat(hashes));
        return Some(
            rest[open + 1..].find(&close).map_or(rest.len(), |at| open + 1 + at + close.len()),
        );
    }
    let mut is_escaped = false;
    let close = rest[open + 1..].char_indices().find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    Some(close.map_or(rest.len(), |(at, _)| open + 1 + at + 1))
}

/// Returns the length of the character literal at the beginning of `rest`; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        let (skipped, _) = chars.next()?;
        return rest[skipped + 1..].find('\'').map(|at| skipped + 1 + at + 1);
    }
    chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
}

/// Returns the lines of a comment.
fn comment(text: &str, line: usize) -> Vec<Comment> {
    let (kind, content) = if let Some(content) = text.strip_prefix("//!") {
        (CommentKind::Inner, content)
    } else if let Some(content) = text.strip_prefix("///").filter(|rest| !rest.starts_with('/')) {
        (CommentKind::Outer, content)
    } else {
        (CommentKind::Plain, text.trim_start_matches(['/', '*']).trim_end_matches(['*', '/']))
    };
    let numbered = content.lines().enumerate();
    numbered
        .map(|(index, text)| Comment { line: line + index, kind, text: text.to_owned() })
        .collect()
}

/// Returns the lines of the items that only tests have: those behind `#[cfg(test)]`.
fn test_items(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for start in 0..tokens.len() {
        let is_inside = found.last().is_some_and(|range| range.contains(&tokens[start].line));
        if is_inside || !is_attribute(tokens, start) {
            continue;
        }
        let close = group(tokens, start + 1);
        let words = || tokens[start..close].iter().map(|token| token.text.as_str());
        let has = |wanted: &str| words().any(|word| word == wanted);
        // `any(test, feature = "…")` and `not(test)` are in programs, too.
        if has("cfg") && has("test") && !has("any") && !has("not") {
            let last =
                tokens.get(item(tokens, close)).or(tokens.last()).map_or(0, |token| token.line);
            found.push(tokens[start].line..last + 1);
        }
    }
    found
}

fn is_attribute(tokens: &[Token], at: usize) -> bool {
    tokens[at].text == "#" && tokens.get(at + 1).is_some_and(|token| token.text == "[")
}

/// Returns the index behind the group of brackets that opens at `open`.
fn group(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// Returns the index of the last token of the item, field or statement that begins at `at`.
fn item(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() && is_attribute(tokens, at) {
        at = group(tokens, at + 1);
    }
    // A field ends at a comma; the commas of an item are inside brackets or generics.
    let is_field = tokens.get(at + 1).is_some_and(|token| token.text == ":");
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            ";" => return at,
            "," if is_field => return at,
            "{" => {
                let end = group(tokens, at);
                let is_more = tokens.get(end).is_some_and(|next| next.text == ";");
                return if is_more { end } else { end - 1 };
            }
            "(" | "[" => at = group(tokens, at),
            "}" => return at.saturating_sub(1),
            _ => at += 1,
        }
    }
    at
}

/// A module that a file declares: `mod name;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// Name.
    pub(crate) name: String,
    /// Whether the item is `pub`.
    pub(crate) is_public: bool,
}

/// Returns the modules that a file declares.
pub(crate) fn children(source: &Source) -> Vec<Child> {
    let tokens = &source.tokens;
    let declares = |at: &usize| tokens[*at].text == "mod" && tokens[at + 2].text == ";";
    let of = |at: usize| Child {
        name: tokens[at + 1].text.clone(),
        is_public: at > 0 && tokens[at - 1].text == "pub",
    };
    (0..tokens.len().saturating_sub(2)).filter(declares).map(of).collect()
}

/// A path that a file names, from the root of the file's package or of a sibling package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// Path behind `crate::`.
    pub(crate) path: Vec<String>,
    /// Visibility of the path's export; `None` for a path that is not exported again.
    pub(crate) export: Option<Export>,
}

/// Visibility of a `use`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// `pub use`
    Public,
    /// `pub(crate) use`, `pub(super) use`
    Inside,
}

/// Returns every path of the own package, or of a package of the framework, that a file names: by
/// `use` with all braces, and in expressions and types.
pub(crate) fn imports(source: &Source) -> Vec<Import> {
    let tokens = &source.tokens;
    let mut module = source.module.clone();
    let children = children(source);
    let mut blocks: Vec<bool> = Vec::new();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
        match word(at) {
            // A module inside the file: `super` is the file's module there.
            "mod" if word(at + 2) == "{" => {
                module.push(word(at + 1).to_owned());
                blocks.push(true);
                at += 3;
            }
            "{" => {
                blocks.push(false);
                at += 1;
            }
            "}" => {
                if blocks.pop() == Some(true) {
                    module.pop();
                }
                at += 1;
            }
            "use" if word(at + 1) != "<" => {
                let export = match at.checked_sub(1).map_or("", word) {
                    "pub" => Some(Export::Public),
                    ")" => Some(Export::Inside),
                    _ => None,
                };
                let mut paths = Vec::new();
                at = tree(tokens, at + 1, &[], &mut paths);
                let absolute = paths
                    .into_iter()
                    .filter_map(|(line, path)| Some((line, from_root(&module, &children, &path)?)));
                found.extend(absolute.map(|(line, path)| Import { line, path, export }));
            }
            _ if word(at + 1) == "::" && is_first(tokens, at) => {
                let line = tokens[at].line;
                let mut path = vec![word(at).to_owned()];
                at += 1;
                while word(at) == "::"
                    && word(at + 1).starts_with(|c: char| c.is_alphabetic() || c == '_')
                {
                    path.push(word(at + 1).to_owned());
                    at += 2;
                }
                found.extend(from_root(&module, &children, &path).map(|path| Import {
                    line,
                    path,
                    export: None,
                }));
            }
            _ => at += 1,
        }
    }
    found
}

/// Whether a path begins here, which is not that of a visibility: `pub(in crate::client)`.
fn is_first(tokens: &[Token], at: usize) -> bool {
    at == 0 || !["::", "in"].contains(&tokens[at - 1].text.as_str())
}

/// Reads a tree of `use`; returns the index behind the tree.
fn tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    let mut line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "::" => {}
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = tree(tokens, at, &path, found);
                    if tokens.get(at).is_some_and(|token| token.text == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            // The new name is not part of the path.
            "as" => at += 1,
            "self" if !path.is_empty() => {}
            word => {
                line = token.line;
                path.push(word.to_owned());
            }
        }
        at += 1;
    }
    found.push((line, path));
    at
}

/// Returns a path from the root of the package; `None` for paths that begin elsewhere.
fn from_root(module: &[String], children: &[Child], path: &[String]) -> Option<Vec<String>> {
    let first = path.first()?.as_str();
    if first == "crate" || first == "windlass" || first.starts_with("windlass_") {
        return Some(path[1..].to_vec());
    }
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (kept, skipped) = match first {
        "self" => (module.len(), 1),
        "super" => (module.len().checked_sub(ups)?, ups),
        // A module of the file, as in `pub use error::Error`.
        _ if children.iter().any(|child| child.name == first) => (module.len(), 0),
        _ => return None,
    };
    Some(module[..kept].iter().chain(&path[skipped..]).cloned().collect())
}

#[test]
fn imports_are_seen_in_braces_behind_super_and_in_expressions() {
    let text = r##"
        // use crate::comment;
        use crate::{a, b::{self, c as d}, e::*};
        pub(crate) use super::super::f::G;
        #[cfg(test)]
        use crate::tests_only;
        #[cfg(test)]
        mod tests;
        pub(in crate::visible) fn h<'a>(x: &'a str) -> crate::i::J {
            let y = ("crate::text", r#"crate::raw "text"#, '"', '\'', b'x');
            super::k(y, self::l::m());
        }
        mod inner { use super::n; use super::super::o; }
        #[cfg(test)]
        mod more { use crate::p; }
    "##;
    let paths: Vec<String> = imports(&Source::new(Path::new("framework/src/x/y/z.rs"), text))
        .iter()
        .map(|import| import.path.join("::"))
        .collect();
    assert_eq!(
        paths,
        [
            "a",
            "b",
            "b::c",
            "e::*",
            "x::f::G",
            "i::J",
            "x::y::k",
            "x::y::z::l::m",
            "x::y::z::n",
            "x::y::o"
        ]
    );
}
