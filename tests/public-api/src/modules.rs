//! The modules of crates, each with parsed items.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::CrateSource;

/// Index of a module in a [`Forest`].
pub(crate) type ModuleId = usize;

/// A module with items; `#[cfg(test)]` items are left out.
#[derive(Debug)]
pub(crate) struct Module {
    /// Path from the crate's name on.
    pub(crate) path: Vec<String>,
    pub(crate) parent: Option<ModuleId>,
    pub(crate) items: Vec<Item>,
    pub(crate) children: BTreeMap<String, Child>,
    pub(crate) imports: Vec<Import>,
}

#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) id: ModuleId,
    /// Whether the declaration is `pub` and not hidden.
    pub(crate) listed: bool,
}

/// A name of a `use` item.
#[derive(Debug)]
pub(crate) struct Import {
    /// `None` for a glob.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
    /// Whether the item is `pub` and not hidden.
    pub(crate) listed: bool,
}

/// All modules of the crates.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    pub(crate) modules: Vec<Module>,
    pub(crate) roots: BTreeMap<String, ModuleId>,
}

impl Forest {
    pub(crate) fn read(crates: &[CrateSource]) -> Result<Self, String> {
        let mut forest = Self::default();
        for source in crates {
            let folder = source.root.parent().unwrap_or(Path::new("")).to_owned();
            let items = parse(&source.root)?;
            let id = forest.add(None, vec![source.name.clone()], items, &folder)?;
            forest.roots.insert(source.name.clone(), id);
        }
        Ok(forest)
    }

    /// Adds a module whose children without a body lie in `folder`.
    fn add(
        &mut self,
        parent: Option<ModuleId>,
        path: Vec<String>,
        items: Vec<Item>,
        folder: &Path,
    ) -> Result<ModuleId, String> {
        let id = self.modules.len();
        let (children, imports) = (BTreeMap::new(), Vec::new());
        self.modules.push(Module { path, parent, items: Vec::new(), children, imports });
        for item in items {
            match item {
                Item::Mod(item) => self.add_child(id, item, folder)?,
                Item::Use(item) if !is_of_tests(&item.attrs) => {
                    let listed = is_listed(&item.vis, &item.attrs);
                    collect(&item.tree, &mut Vec::new(), listed, &mut self.modules[id].imports);
                }
                item => self.modules[id].items.push(item),
            }
        }
        Ok(id)
    }

    fn add_child(&mut self, id: ModuleId, item: syn::ItemMod, folder: &Path) -> Result<(), String> {
        if is_of_tests(&item.attrs) {
            return Ok(());
        }
        let name = item.ident.to_string();
        let mut path = self.modules[id].path.clone();
        path.push(name.clone());
        let items = match item.content {
            Some((_, items)) => items,
            None => parse(&file_of(folder, &name))?,
        };
        let child = self.add(Some(id), path, items, &folder.join(&name))?;
        let listed = is_listed(&item.vis, &item.attrs);
        self.modules[id].children.insert(name, Child { id: child, listed });
        Ok(())
    }
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    let flat = folder.join(format!("{name}.rs"));
    if flat.is_file() { flat } else { folder.join(name).join("mod.rs") }
}

fn parse(file: &Path) -> Result<Vec<Item>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(parsed.items)
}

/// Splits a `use` tree into an import per name.
fn collect(tree: &UseTree, path: &mut Vec<String>, listed: bool, imports: &mut Vec<Import>) {
    let mut push = |name: Option<&syn::Ident>, last: Option<&syn::Ident>| {
        let mut path = path.clone();
        path.extend(last.filter(|last| *last != "self").map(ToString::to_string));
        let own = name.filter(|name| *name != "self").map(ToString::to_string);
        let name = if name.is_some() { own.or_else(|| path.last().cloned()) } else { None };
        if name.as_deref() != Some("_") {
            imports.push(Import { name, path, listed });
        }
    };
    match tree {
        UseTree::Name(tree) => push(Some(&tree.ident), Some(&tree.ident)),
        UseTree::Rename(tree) => push(Some(&tree.rename), Some(&tree.ident)),
        UseTree::Glob(_) => push(None, None),
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            collect(&tree.tree, path, listed, imports);
            path.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                collect(tree, path, listed, imports);
            }
        }
    }
}

pub(crate) fn is_listed(vis: &Visibility, attrs: &[Attribute]) -> bool {
    matches!(vis, Visibility::Public(_)) && !is_hidden(attrs)
}

pub(crate) fn is_hidden(attrs: &[Attribute]) -> bool {
    is_of_tests(attrs) || attrs.iter().any(|attr| has(attr, "doc", &["hidden"]))
}

/// Whether an item exists in tests only: `cfg(test)`, and not `cfg(any(test, …))`.
fn is_of_tests(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| has(attr, "cfg", &["test"]))
}

/// Whether the attribute's list begins with a word of `words`.
fn has(attr: &Attribute, name: &str, words: &[&str]) -> bool {
    let first = |tokens: TokenStream| tokens.into_iter().next();
    attr.path().is_ident(name)
        && attr.meta.require_list().is_ok_and(|list| match first(list.tokens.clone()) {
            Some(TokenTree::Ident(ident)) => words.iter().any(|word| ident == word),
            _ => false,
        })
}
