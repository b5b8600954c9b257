//! Layers: a module imports from the same layer and from layers below, and the page shows the same
//! table.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, imports, read, root, sources};
use crate::{CEL_LAYERS, CLIENT_LAYERS, CONTROLLER_LAYERS, LAYERS, SERVER_LAYERS, STORE_LAYERS};

/// Layers of the modules of a package, or of the folders inside a module.
struct Table {
    folder: &'static str,
    /// The package of the folder that the table is about; `None` for a table of all packages.
    package: Option<&'static str>,
    /// Path of the module whose folders have layers; empty for the modules of the package.
    inside: &'static [&'static str],
    layers: &'static [(&'static str, u8)],
    /// Heading of the same table in ARCHITECTURE.md, if the page shows the table.
    heading: Option<&'static str>,
}

const TABLES: &[Table] = &[
    Table {
        folder: "framework",
        package: None,
        inside: &[],
        layers: LAYERS,
        heading: Some("## Layers of the framework"),
    },
    Table {
        folder: "framework",
        package: None,
        inside: &["client"],
        layers: CLIENT_LAYERS,
        heading: None,
    },
    Table {
        folder: "framework",
        package: Some("framework/runtime"),
        inside: &["controller"],
        layers: CONTROLLER_LAYERS,
        heading: Some("## Inside `controller`"),
    },
    Table {
        folder: "framework",
        package: Some("framework/cache"),
        inside: &["store"],
        layers: STORE_LAYERS,
        heading: Some("## Inside `store`"),
    },
    Table {
        folder: "apiserver",
        package: Some("apiserver"),
        inside: &[],
        layers: SERVER_LAYERS,
        heading: Some("## Inside `apiserver/src`"),
    },
    Table {
        folder: "apiserver",
        package: Some("apiserver/cel"),
        inside: &[],
        layers: CEL_LAYERS,
        heading: Some("## Inside `apiserver/cel/src`"),
    },
];

/// Modules of the framework of which the first does not name the second; `*` is every other module.
const APART: &[(&str, &str)] = &[
    ("*", "prelude"),
    ("*", "__private"),
    ("client", "api"),
    ("client", "discovery"),
    ("discovery", "api"),
    ("api", "discovery"),
];

impl Table {
    /// Returns the module or folder with a layer that a path is in.
    fn part<'a>(&self, path: &'a [String]) -> Option<&'a String> {
        let is_inside = path.iter().zip(self.inside).all(|(part, wanted)| part == wanted);
        path.get(self.inside.len()).filter(|_| is_inside)
    }

    fn layer(&self, module: &str) -> Option<u8> {
        self.layers.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
    }
}

/// An import of a top-level module by another.
struct Edge {
    from: String,
    to: String,
    at: String,
}

/// Returns the module path of a file; all of the crates `fifo` and `webhook` is a module each.
fn qualified(file: &Source) -> Vec<String> {
    let is_of = |name: &&str| file.package.ends_with(format!("framework/{name}"));
    let whole = ["fifo", "webhook"].into_iter().find(is_of).map(str::to_owned);
    whole.into_iter().chain(file.module.iter().cloned()).collect()
}

/// Returns the imports between the modules of a table.
fn edges(table: &Table) -> Vec<Edge> {
    let is_of_package =
        |file: &&Source| table.package.is_none_or(|package| file.package.ends_with(package));
    let files = sources(table.folder).filter(is_of_package);
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
        let module = qualified(file);
        let Some(from) = table.part(&module) else { continue };
        // A file of a module with folders has no layer if the file serves all folders.
        assert!(
            table.layer(from).is_some() || !table.inside.is_empty(),
            "{}: module `{from}` is not in the table of layers: decide where it belongs",
            file.path.display()
        );
        for mut import in imports(file) {
            // `crate::Error` is an import from the module whose type the root exports.
            if let Some(module) = import.path.first().and_then(|name| exports.get(name)) {
                import.path.insert(0, module.clone());
            }
            let Some(to) = table.part(&import.path) else { continue };
            if to != from && table.layer(from).is_some() && table.layer(to).is_some() {
                let (from, to) = (from.clone(), to.clone());
                edges.push(Edge { from, to, at: file.at(import.line) });
            }
        }
    }
    edges
}

#[test]
fn modules_import_only_from_their_own_layer_and_below() {
    let mut faults = Vec::new();
    for table in TABLES {
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
fn no_module_imports_itself_through_others() {
    let mut faults = Vec::new();
    for table in TABLES {
        let edges = edges(table);
        let modules: BTreeSet<&str> = edges.iter().map(|edge| edge.from.as_str()).collect();
        let circle: Vec<&str> =
            modules.into_iter().filter(|module| reached(&edges, module).contains(module)).collect();
        if !circle.is_empty() {
            faults.push(format!("{} {:?}: {circle:?}", table.folder, table.inside));
        }
    }
    assert!(faults.is_empty(), "modules import each other in a circle:\n{}", faults.join("\n"));
}

#[test]
fn modules_that_stand_apart_do_not_import_each_other() {
    let faults: Vec<String> = edges(&TABLES[0])
        .into_iter()
        .filter(|edge| {
            APART.iter().any(|(from, to)| ["*", &edge.from].contains(from) && *to == edge.to)
        })
        .map(|edge| format!("{}: `{}` imports `{}`", edge.at, edge.from, edge.to))
        .collect();
    assert!(faults.is_empty(), "these imports are refused:\n{}", faults.join("\n"));
}

#[test]
fn the_page_shows_the_tables_of_layers() {
    let page = read(&root().join("ARCHITECTURE.md"));
    for table in TABLES {
        let Some(heading) = table.heading else { continue };
        let (_, section) = page.split_once(heading).expect("the section is there");
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
            "ARCHITECTURE.md (left) and tests/tests/tidy.rs (right) differ: {heading}"
        );
    }
}
