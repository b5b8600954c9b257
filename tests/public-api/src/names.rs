//! Resolution of paths to the items that they name.

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;

use crate::modules::{Forest, ModuleId};

/// A named thing; a name may stand for several, such as a trait and a derive macro.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Module(ModuleId),
    /// An item by position among the module's items.
    Item(ModuleId, usize),
    /// A name in the arguments of a macro call that makes items.
    Generated(ModuleId, String),
}

/// Longest chain of imports that is followed; a circle of globs ends here.
const MOST_STEPS: usize = 12;

impl Forest {
    /// Resolves a path as written in the module; empty for names of other crates.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<Target> {
        self.resolve_within(from, path, MOST_STEPS)
    }

    fn resolve_within(&self, from: ModuleId, path: &[String], steps: usize) -> Vec<Target> {
        let Some((first, rest)) = path.split_first().filter(|_| steps > 0) else {
            return Vec::new();
        };
        let mut found = self.first(from, first, steps);
        for name in rest {
            found = found
                .into_iter()
                .flat_map(|target| match (target, name.as_str()) {
                    (Target::Module(id), "super") => {
                        self.modules[id].parent.map(Target::Module).into_iter().collect()
                    }
                    (Target::Module(id), _) => self.lookup(id, name, steps - 1),
                    _ => Vec::new(),
                })
                .collect();
        }
        found.sort();
        found.dedup();
        found
    }

    fn first(&self, from: ModuleId, name: &str, steps: usize) -> Vec<Target> {
        let module = &self.modules[from];
        match name {
            "self" => vec![Target::Module(from)],
            "super" => module.parent.map(Target::Module).into_iter().collect(),
            "crate" => vec![Target::Module(self.roots[&module.path[0]])],
            _ => {
                let own = self.lookup(from, name, steps - 1);
                let root = self.roots.get(name).filter(|_| own.is_empty());
                root.map_or(own, |id| vec![Target::Module(*id)])
            }
        }
    }

    /// Returns everything of this name in the module, imported names included.
    fn lookup(&self, id: ModuleId, name: &str, steps: usize) -> Vec<Target> {
        if steps == 0 {
            return Vec::new();
        }
        let module = &self.modules[id];
        let mut found = Vec::new();
        for (place, item) in module.items.iter().enumerate() {
            if name_of(item).is_some_and(|own| own == name) {
                found.push(Target::Item(id, place));
            }
        }
        found.extend(module.children.get(name).map(|child| Target::Module(child.id)));
        for import in module.imports.iter().filter(|import| import.name.as_deref() == Some(name)) {
            // A name that is imported from a crate of the same name would lead back to the same
            // import.
            if import.path.first().map(String::as_str) != Some(name) {
                found.extend(self.resolve_within(id, &import.path, steps - 1));
            } else if let Some(root) = self.roots.get(name).filter(|_| import.path.len() == 1) {
                found.push(Target::Module(*root));
            }
        }
        // Declared names shadow those of globs.
        if found.is_empty() {
            found = self.lookup_in_globs(id, name, steps);
        }
        if found.is_empty() && self.generated(id).iter().any(|own| own == name) {
            found.push(Target::Generated(id, name.to_owned()));
        }
        found
    }

    fn lookup_in_globs(&self, id: ModuleId, name: &str, steps: usize) -> Vec<Target> {
        let globs = self.modules[id].imports.iter().filter(|import| import.name.is_none());
        let modules = globs.flat_map(|glob| self.resolve_within(id, &glob.path, steps - 1));
        let found = modules.flat_map(|target| match target {
            Target::Module(glob) if glob != id => self.lookup(glob, name, steps - 1),
            _ => Vec::new(),
        });
        found.collect()
    }

    /// Returns the identifiers in the arguments of the module's macro calls; they may name items.
    pub(crate) fn generated(&self, id: ModuleId) -> Vec<String> {
        let mut names = Vec::new();
        for item in &self.modules[id].items {
            if let Item::Macro(call) = item
                && call.ident.is_none()
            {
                identifiers(call.mac.tokens.clone(), &mut names);
            }
        }
        names.sort();
        names.dedup();
        names
    }
}

fn identifiers(tokens: TokenStream, names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => names.push(ident.to_string()),
            TokenTree::Group(group) => identifiers(group.stream(), names),
            _ => {}
        }
    }
}

/// Returns the name that an item declares in the module.
pub(crate) fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => return derived(&item.attrs).or_else(|| Some(item.sig.ident.to_string())),
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns the name of the derive macro that a function implements.
pub(crate) fn derived(attrs: &[syn::Attribute]) -> Option<String> {
    let attr = attrs.iter().find(|attr| attr.path().is_ident("proc_macro_derive"))?;
    let first = attr.meta.require_list().ok()?.tokens.clone().into_iter().next();
    first.map(|name| name.to_string())
}
