//! Language: sentences have nouns as subjects, and public names consist of known words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{
    Comment, CommentKind, Export, FOLDERS, Source, all_sources, children, imports, read, root,
    sources,
};

/// Words with which a summary line hides the subject.
const OPENERS: [&str; 14] = [
    "what",
    "whatever",
    "where",
    "wherever",
    "who",
    "whoever",
    "whose",
    "whom",
    "how",
    "however",
    "which",
    "whichever",
    "why",
    "when",
];
/// Verbs that hide the subject as well, if one of [`OPENERS`] follows: "Returns why" is "Returns
/// the reason". No summary line begins so.
const VERBS: [&str; 5] = ["notes", "reports", "returns", "says", "tells"];
/// Largest share of such summary lines, in per cent.
const MOST_OPENERS: usize = 1;

/// Groups of words, and the largest number of a group in 1000 words.
const WORDS: [(&[&str], usize); 4] = [
    (&["what", "whatever"], 2),
    (&["who", "whoever", "nobody", "somebody", "everybody"], 1),
    (&["tell", "tells", "told"], 1),
    (&["it", "its", "one", "ones"], 15),
];

/// Number of places that a report names.
const SHOWN: usize = 40;

/// Folders whose public types are named by the words of `tests/terms.txt`.
const NAMED: [&str; 3] = ["framework", "macros", "apiserver"];

/// Returns the comments of a file without blocks of code, inline code and the targets of links.
fn prose(file: &Source) -> Vec<Comment> {
    let mut is_code = false;
    let mut found = Vec::new();
    let mut last = 0;
    for comment in &file.comments {
        // A block of code ends with the comment at the latest.
        is_code &= comment.line == last + 1;
        last = comment.line;
        let fence = comment.text.trim_start().starts_with("```");
        is_code ^= fence;
        let text = if is_code || fence { String::new() } else { plain(&comment.text) };
        found.push(Comment { text, ..comment.clone() });
    }
    found
}

/// Returns a line without inline code and the targets of links.
fn plain(line: &str) -> String {
    let mut text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    while let Some(open) = text.find("](") {
        let close = text[open..].find(')').map_or(text.len(), |at| open + at + 1);
        text.replace_range(open..close, "]");
    }
    // `[name]: path` is a target, too.
    match text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some(_) => String::new(),
        None => text,
    }
}

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Returns the first line of each comment that documents an item or a module.
fn summaries(comments: &[Comment]) -> Vec<&Comment> {
    let is_first = |at: &usize| {
        let before = at.checked_sub(1).map(|before| &comments[before]);
        before.is_none_or(|before| {
            before.kind != comments[*at].kind || before.line + 1 != comments[*at].line
        })
    };
    let documents = |at: &usize| comments[*at].kind != CommentKind::Plain;
    (0..comments.len()).filter(documents).filter(is_first).map(|at| &comments[at]).collect()
}

/// Whether a summary line begins with a word that hides the subject.
fn hides_its_subject(summary: &Comment) -> bool {
    let first = summary.text.split_whitespace().next().unwrap_or_default();
    let word = first.trim_matches(|c: char| !c.is_alphanumeric() && c != '`').to_lowercase();
    OPENERS.contains(&word.as_str())
}

/// Whether a summary line begins with a verb and a word that hides the verb's object.
fn hides_its_object(summary: &Comment) -> bool {
    let mut words = summary.text.split_whitespace().map(str::to_lowercase);
    let has_verb = words.next().is_some_and(|word| VERBS.contains(&word.as_str()));
    has_verb && words.next().is_some_and(|word| OPENERS.contains(&word.as_str()))
}

#[test]
fn summary_lines_name_the_object_of_their_verb() {
    let mut faults = Vec::new();
    for file in FOLDERS.into_iter().flat_map(all_sources) {
        let comments = prose(file);
        let hidden = summaries(&comments).into_iter().filter(|summary| hides_its_object(summary));
        faults.extend(hidden.map(|summary| format!("{}:{}", file.at(summary.line), summary.text)));
    }
    assert!(
        faults.is_empty(),
        "write \"Returns the reason\", not \"Returns why\": after {VERBS:?} none of {OPENERS:?}:\n{}",
        faults.join("\n")
    );
}

#[test]
fn a_verb_and_a_question_word_hide_the_object_of_a_summary() {
    let text = "
        /// Returns why it ends.
        fn a() {}
        /// Returns the reason why it ends.
        fn b() {}
        /// Notes `why`, which is code.
        fn c() {}
    ";
    let file = Source::new(Path::new("framework/src/a.rs"), text);
    let comments = prose(&file);
    let hidden = summaries(&comments).into_iter().filter(|summary| hides_its_object(summary));
    assert_eq!(hidden.map(|summary| summary.line).collect::<Vec<_>>(), [2]);
}

#[test]
fn summary_lines_begin_with_their_subject() {
    let mut faults = Vec::new();
    for folder in FOLDERS {
        let (mut count, mut found) = (0, Vec::new());
        for file in all_sources(folder) {
            let comments = prose(file);
            for summary in summaries(&comments) {
                count += 1;
                if hides_its_subject(summary) {
                    found.push(format!("{}:{}", file.at(summary.line), summary.text));
                }
            }
        }
        if found.len() * 100 > MOST_OPENERS * count {
            faults.push(format!("{folder}: {} of {count} summary lines", found.len()));
            faults.extend(found.into_iter().take(SHOWN));
        }
    }
    assert!(
        faults.is_empty(),
        "the subject of a summary is a noun from the code, not {OPENERS:?} (at most {MOST_OPENERS} \
         per cent):\n{}",
        faults.join("\n")
    );
}

#[test]
fn comments_name_their_subjects() {
    let mut faults = Vec::new();
    for folder in FOLDERS {
        // The crate of CEL is counted apart from the API server, which is many times larger.
        let is_cel = |file: &&Source| file.package.ends_with("apiserver/cel");
        let (cel, others): (Vec<&Source>, Vec<&Source>) =
            all_sources(folder).iter().partition(is_cel);
        for (files, (group, most)) in
            [cel, others].iter().flat_map(|it| WORDS.map(|words| (it, words)))
        {
            let (mut count, mut found) = (0, Vec::new());
            for file in files {
                for line in prose(file) {
                    for word in words(&line.text) {
                        count += 1;
                        if group.contains(&word.as_str()) {
                            found.push(format!("{}:{}", file.at(line.line), line.text));
                        }
                    }
                }
            }
            if found.len() * 1000 > most * count {
                faults.push(format!("{folder}: {group:?}: {} of {count} words", found.len()));
                faults.extend(found.into_iter().take(SHOWN));
            }
        }
    }
    assert!(faults.is_empty(), "words that hide a noun, per 1000 words:\n{}", faults.join("\n"));
}

/// Largest number of sentences in a folder that begin with "Of": "Of a list the first item counts"
/// is no English, which has "In a list …", "For …" or "Among …".
const MOST_OF: usize = 0;

/// Whether a sentence begins with "Of" in this line. Lines go on with a small letter.
fn opens_with_of(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    line.starts_with("Of ") || [". Of ", ": Of ", "; Of "].iter().any(|open| line.contains(open))
}

#[test]
fn sentences_do_not_begin_with_of() {
    let mut faults = Vec::new();
    for folder in FOLDERS {
        let mut found = Vec::new();
        for file in all_sources(folder) {
            let lines = prose(file).into_iter().filter(|line| opens_with_of(&line.text));
            found.extend(lines.map(|line| format!("{}:{}", file.at(line.line), line.text)));
        }
        if found.len() > MOST_OF {
            faults.push(format!("{folder}: {} sentences", found.len()));
            faults.extend(found.into_iter().take(SHOWN));
        }
    }
    assert!(
        faults.is_empty(),
        "write \"in\", \"for\" or \"among\", or begin with the noun:\n{}",
        faults.join("\n")
    );
    assert!(opens_with_of(" Of two, one counts."));
    assert!(opens_with_of(" - It ends. Of two, one counts."));
    assert!(!opens_with_of(" The first of two. Often Of is a name."));
}

/// Returns the words of a name: `HttpServer`, `HTTPServer` and `http_server` are `http` and
/// `server`.
fn name_words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || after.is_some_and(|after| after.is_lowercase()));
        if begins || *letter == '_' {
            words.push(String::new());
        }
        words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
    }
    let words = words.iter().map(|word| word.trim_matches('_').to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the public types and traits of a file, each with the line.
fn public_types(file: &Source) -> Vec<(usize, &str)> {
    let kinds = ["struct", "enum", "union", "trait", "type"];
    let triples = file.tokens.windows(3).filter(|triple| {
        triple[0].text == "pub"
            && kinds.contains(&triple[1].text.as_str())
            && triple[2].text.starts_with(char::is_alphabetic)
    });
    triples.map(|triple| (triple[2].line, triple[2].text.as_str())).collect()
}

/// Paths of modules and of their items that users of a package can name. Modules whose names begin
/// with `__` are no part of the interface.
fn interface<'a>(files: &[&'a Source]) -> BTreeSet<(&'a Path, Vec<String>)> {
    // A program's root exports nothing.
    let files = files.iter().filter(|file| !file.path.ends_with("main.rs"));
    let roots = files.clone().filter(|file| file.module.is_empty());
    let by_module: BTreeMap<(&Path, &[String]), &Source> =
        files.map(|file| ((file.package.as_path(), file.module.as_slice()), *file)).collect();
    let mut open: Vec<(&Path, Vec<String>)> =
        roots.map(|file| (file.package.as_path(), Vec::new())).collect();
    let mut found = BTreeSet::new();
    while let Some((package, path)) = open.pop() {
        if path.last().is_some_and(|name| name.starts_with("__"))
            || !found.insert((package, path.clone()))
        {
            continue;
        }
        let Some(file) = by_module.get(&(package, path.as_slice())) else { continue };
        let inside = |name: &str| (package, [path.as_slice(), &[name.to_owned()]].concat());
        open.extend(public_types(file).into_iter().map(|(_, name)| inside(name)));
        let modules = children(file).into_iter().filter(|child| child.is_public);
        open.extend(modules.map(|child| inside(&child.name)));
        let exports = imports(file).into_iter().filter(|i| i.export == Some(Export::Public));
        // `a::*` exports the public items of `a`.
        open.extend(exports.map(|mut export| {
            export.path.pop_if(|name| name == "*");
            (package, export.path)
        }));
    }
    found
}

#[test]
fn public_types_are_named_by_known_words() {
    let list = read(&root().join("tests/terms.txt"));
    let lines =
        list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let terms: BTreeSet<&str> = lines.collect();
    let mut faults = Vec::new();
    let files: Vec<&Source> = NAMED.into_iter().flat_map(sources).collect();
    let interface = interface(&files);
    for file in files {
        for (line, name) in public_types(file) {
            let path = [file.module.as_slice(), &[name.to_owned()]].concat();
            let is_public = interface.contains(&(file.package.as_path(), path));
            if !is_public {
                continue;
            }
            for word in name_words(name).into_iter().filter(|word| !terms.contains(word.as_str())) {
                faults.push(format!("{}: `{word}` in {name}", file.at(line)));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "public types are named by terms of Kubernetes, client-go, controller-runtime, tokio or \
         Rust; choose such a term, or add the word to tests/terms.txt if it is one:\n{}",
        faults.join("\n")
    );
}

/// Kinds that controllers read and write.
const KINDS: [&str; 28] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "EndpointSlice",
    "Endpoints",
    "Ingress",
    "Job",
    "Lease",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "ReplicaSet",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
];

// DESIGN.md, 193: No type of the framework has the name of a kind that controllers use
#[test]
fn no_public_type_makes_the_compiler_write_the_path_of_a_kind() {
    let mut faults = Vec::new();
    for file in sources("framework") {
        for (line, name) in public_types(file) {
            if KINDS.contains(&name) {
                faults.push(format!("{}: {name}", file.at(line)));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "errors about the kinds of Kubernetes would name their whole path:\n{}",
        faults.join("\n")
    );
}

#[test]
fn the_terms_are_sorted_and_lower_case() {
    let list = read(&root().join("tests/terms.txt"));
    let terms: Vec<&str> =
        list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let faults: Vec<&&str> = terms.iter().filter(|term| name_words(term) != [**term]).collect();
    assert!(faults.is_empty(), "one word per line, in lower case: {faults:?}");
    assert!(terms.is_sorted_by(|a, b| a < b), "tests/terms.txt is not sorted, or has a word twice");
}

#[test]
fn names_and_comments_are_cut_into_words() {
    assert_eq!(name_words("HTTPServerV2"), ["http", "server", "v2"]);
    assert_eq!(name_words("ApiServer"), ["api", "server"]);
    let text = "
        /// What a [worker](crate::what) holds. `what` is code.
        ///
        /// ```
        /// what()
        /// ```
        /// Who
        pub struct A;
        // who
        #[cfg(test)]
        /// What
        pub struct B;
        //// Told
        /// `What` is a name.
        pub(crate) struct C;
        let text = \"/// What\";
    ";
    let file = Source::new(std::path::Path::new("framework/src/a.rs"), text);
    assert_eq!(public_types(&file), [(8, "A")]);
    let comments = prose(&file);
    let hidden: Vec<usize> = summaries(&comments)
        .into_iter()
        .filter(|summary| hides_its_subject(summary))
        .map(|summary| summary.line)
        .collect();
    assert_eq!(hidden, [2, 11]);
    let all: Vec<String> = comments.iter().flat_map(|line| words(&line.text)).collect();
    assert_eq!(
        all,
        [
            "what", "a", "worker", "holds", "is", "code", "who", "who", "what", "told", "is", "a",
            "name",
        ]
    );
}
