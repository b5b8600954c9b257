//! The form in which texts of the compiler are kept: without parts that differ between machines or
//! after changes elsewhere.

/// The package in the workspace.
const FOLDER: &str = "tests/ui/";

/// Types that the compiler names as alternatives, at most.
const ALTERNATIVES: usize = 8;

/// Blanks before an alternative.
const ENTRY: usize = 12;

/// Libraries that fixtures name.
const LIBRARIES: [&str; 8] =
    ["std", "core", "alloc", "windlass", "k8s_openapi", "schemars", "serde", "serde_json"];

/// The kept form of a text: folders have names, lines of other crates no numbers, lists of
/// alternatives an end.
pub(crate) fn kept(text: &str) -> String {
    let numbered = without_numbers(text);
    let mut lines = Vec::new();
    for line in shortened(&numbered) {
        let repeated_blank = line.is_empty() && lines.last().is_none_or(String::is_empty);
        if !repeated_blank && !is_summary(&line) {
            lines.push(line);
        }
    }
    aligned(&mut lines);
    format!("{}\n", lines.join("\n").trim_end())
}

/// Lines about all errors of a run, and about files with long names of types.
fn is_summary(line: &str) -> bool {
    let note = line.trim_start().trim_start_matches("= note: ");
    line.starts_with("error: aborting due to ")
        || line.starts_with("For more information about ")
        || line.starts_with("Some errors have detailed explanations:")
        || note.starts_with("the full type name has been written to")
        || note.starts_with("the full name for the type has been written to")
}

/// Lines with names for folders of this machine, and without numbers in excerpts of other crates.
fn without_numbers(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut foreign = false;
    for line in text.lines() {
        let line = line.trim_end();
        let rest = line.trim_start();
        if rest.starts_with("--> ") || rest.starts_with("::: ") {
            let (before, place) = line.split_at(line.len() - rest.len() + "--> ".len());
            let own = place.strip_prefix(FOLDER);
            foreign = own.is_none();
            lines
                .push(format!("{before}{}", own.map_or_else(|| other_crate(place), str::to_owned)));
        } else {
            foreign &= rest.starts_with(|c: char| c.is_ascii_digit() || c == '|' || c == '.');
            lines.push(if foreign { blank_number(line) } else { line.to_owned() });
        }
    }
    lines
}

/// A place in another crate, without line and column.
fn other_crate(place: &str) -> String {
    let path = place.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    let registry = path.split_once("/registry/src/").and_then(|(_, path)| path.split_once('/'));
    if let Some((package, path)) = registry.and_then(|(_, path)| path.split_once('/')) {
        let name = package.rsplit_once('-').map_or(package, |(name, _)| name);
        return format!("$CARGO/{name}-$VERSION/{path}");
    }
    match path.split_once("/library/") {
        Some((_, path)) => format!("$RUST/{path}"),
        // The compiler is called in the workspace, as cargo does for members.
        None => format!("$WORKSPACE/{path}"),
    }
}

/// A line of an excerpt with blanks for the number.
fn blank_number(line: &str) -> String {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    format!("{}{rest}", " ".repeat(line.len() - rest.len()))
}

/// Lines with a bounded number of types that implement a trait, without those of libraries that
/// fixtures do not name: which of these are loaded depends on the features of all packages that
/// cargo builds together.
fn shortened(lines: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut lines = lines.iter().peekable();
    while let Some(line) = lines.next() {
        kept.push(line.clone());
        let rest = line.trim_start();
        if rest.starts_with("= help: the following ") && rest.contains("types implement trait ") {
            let is_entry = |line: &&String| line.starts_with(&" ".repeat(ENTRY));
            let mut entries: Vec<String> =
                std::iter::from_fn(|| lines.next_if(is_entry)).cloned().collect();
            entries.retain(|entry| !names_another_library(entry));
            if entries.len() > ALTERNATIVES + 1 {
                entries.truncate(ALTERNATIVES);
                entries.push(format!("{}and $N others", " ".repeat(ENTRY - 2)));
            }
            kept.extend(entries);
        }
    }
    kept
}

/// Whether a line has a path that begins with the name of a library that no fixture names.
fn names_another_library(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    words.any(|word| {
        let library = word.split_once("::").map_or("", |(library, _)| library);
        library.starts_with(|c: char| c.is_ascii_lowercase()) && !LIBRARIES.contains(&library)
    })
}

/// Margins of excerpts as narrow as the numbers that were left.
fn aligned(lines: &mut [String]) {
    let mut start = 0;
    while start < lines.len() {
        let heading = lines[start].starts_with("error") || lines[start].starts_with("warning");
        start += 1;
        if !heading || !lines.get(start).is_some_and(|line| line.trim_start().starts_with("--> ")) {
            continue;
        }
        let length = lines[start..].iter().take_while(|line| !line.is_empty()).count();
        let block = &mut lines[start..start + length];
        let spare = block.iter().filter_map(|line| margin(line)).min().unwrap_or(0);
        for line in block.iter_mut() {
            let deep = line.starts_with("           ");
            if margin(line).is_some() || deep {
                let at = line.find(' ').unwrap_or(0);
                line.replace_range(at..at + spare, "");
            }
        }
        start += length;
    }
}

/// Blanks that the margin of a line of an excerpt can lose; `None` for other lines.
fn margin(line: &str) -> Option<usize> {
    if let Some(rest) = line.strip_prefix("... ") {
        return Some(rest.len() - rest.trim_start().len());
    }
    let digits = line.trim_start();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let numbered = digits.starts_with(|c: char| c.is_ascii_digit());
    let blanks = line.bytes().take(line.len() - rest.len()).filter(|byte| *byte == b' ').count();
    let mark = rest.split(' ').next()?;
    let known = matches!(mark, "|") || (numbered && matches!(mark, "~" | "+" | "-"));
    let plain = !numbered && matches!(mark, "-->" | ":::" | "=");
    (blanks > 0 && (known || plain)).then(|| blanks - 1)
}
