//! Layers: a module imports from its own layer and from those below, and the page shows the same
//! table.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{imports, read, root, sources};
use crate::{LAYERS, SERVER_LAYERS};

/// A package's table of layers.
struct Table {
    folder: &'static str,
    layers: &'static [(&'static str, u8)],
    /// Heading of the same table in ARCHITECTURE.md.
    heading: &'static str,
}

const TABLES: [Table; 2] = [
    Table { folder: "framework", layers: LAYERS, heading: "## Layers of `framework/src`" },
    Table { folder: "apiserver", layers: SERVER_LAYERS, heading: "## Inside `apiserver/src`" },
];

impl Table {
    fn layer(&self, module: &str) -> Option<u8> {
        self.layers.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
    }
}

/// An import of one top-level module by another.
struct Edge {
    from: String,
    to: String,
    at: String,
}

/// Returns the imports between the modules of a table.
fn edges(table: &Table) -> Vec<Edge> {
    let files = sources(table.folder);
    let mut exports: BTreeMap<String, String> = BTreeMap::new();
    for file in files.clone().filter(|file| file.module.is_empty()) {
        for import in imports(file).into_iter().filter(|import| import.export.is_some()) {
            if let [module, .., name] = import.path.as_slice() {
                exports.insert(name.clone(), module.clone());
            }
        }
    }
    let mut edges = Vec::new();
    for file in files {
        let Some(from) = file.top() else { continue };
        assert!(
            table.layer(from).is_some(),
            "{}: module `{from}` is not in the table of layers: decide where it belongs",
            file.path.display()
        );
        for import in imports(file) {
            let Some(first) = import.path.first() else { continue };
            // `crate::Error` is an import from the module whose type the root exports.
            let to = exports.get(first).unwrap_or(first);
            if to != from && table.layer(to).is_some() {
                let (from, to) = (from.to_owned(), to.clone());
                edges.push(Edge { from, to, at: file.at(import.line) });
            }
        }
    }
    edges
}

#[test]
fn modules_import_only_from_their_own_layer_and_below() {
    let mut faults = Vec::new();
    for table in &TABLES {
        for Edge { from, to, at } in edges(table) {
            let (own, other) = (table.layer(&from), table.layer(&to));
            if other > own {
                faults.push(format!("{at}: `{from}` imports `{to}` from above"));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a module may not import from above its layer:\n{}",
        faults.join("\n")
    );
}

/// Returns the modules that a module reaches through imports.
fn reached<'a>(edges: &'a [Edge], from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for edge in edges.iter().filter(|edge| edge.from == module) {
            if found.insert(edge.to.as_str()) {
                open.push(&edge.to);
            }
        }
    }
    found
}

#[test]
fn no_module_of_the_api_server_imports_itself_through_others() {
    let edges = edges(&TABLES[1]);
    let modules: BTreeSet<&str> = edges.iter().map(|edge| edge.from.as_str()).collect();
    let circle: Vec<&str> =
        modules.into_iter().filter(|module| reached(&edges, module).contains(module)).collect();
    assert!(circle.is_empty(), "these modules import each other in a circle: {circle:?}");
}

#[test]
fn the_page_shows_the_tables_of_layers() {
    let page = read(&root().join("ARCHITECTURE.md"));
    for table in &TABLES {
        let (_, section) = page.split_once(table.heading).expect("the section is there");
        let block = section.split("```").nth(1).expect("the section has a block");
        let mut shown = BTreeSet::new();
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let names = line.split('(').next().unwrap_or_default();
            let mut words = names.split_whitespace();
            let layer = words.next().and_then(|word| word.parse().ok());
            let layer: u8 = layer.unwrap_or_else(|| panic!("no layer in `{line}`"));
            shown.extend(words.map(|name| (layer, name)));
        }
        let wanted: BTreeSet<(u8, &str)> =
            table.layers.iter().map(|(name, layer)| (*layer, *name)).collect();
        assert_eq!(
            shown, wanted,
            "ARCHITECTURE.md (left) and tests/tests/tidy.rs (right) differ: {}",
            table.heading
        );
    }
}
