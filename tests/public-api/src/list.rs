//! The list: a line per public item, and the number of public methods per type.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type};

use crate::modules::{Forest, Import, Module, ModuleId, is_hidden, is_listed};
use crate::names::{Target, derived, name_of};

/// The public items of some crates.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Lines such as `windlass::store fn get`, sorted.
    pub lines: Vec<String>,
    /// Number of public methods by the type's path.
    pub methods: BTreeMap<String, usize>,
}

/// Public paths by the thing at their end.
type Paths = BTreeMap<Target, BTreeSet<Vec<String>>>;

/// Returns the public items of the forest's crates.
pub(crate) fn listing(forest: &Forest) -> Listing {
    let mut walk = Walk { forest, paths: Paths::new(), lines: BTreeSet::new() };
    for (name, root) in &forest.roots {
        walk.module(*root, &mut vec![name.clone()], &mut Vec::new());
        walk.exported_macros(name);
    }
    let mut writer = Writer { forest, listing: Listing::default(), lines: walk.lines };
    writer.items(&walk.paths);
    writer.listing.lines = writer.lines.into_iter().collect();
    writer.listing
}

struct Walk<'a> {
    forest: &'a Forest,
    paths: Paths,
    lines: BTreeSet<String>,
}

impl Walk<'_> {
    /// Records the public items of the module under this path; `open` holds the modules on the way.
    fn module(&mut self, id: ModuleId, path: &mut Vec<String>, open: &mut Vec<ModuleId>) {
        if open.contains(&id) {
            return;
        }
        open.push(id);
        let module = &self.forest.modules[id];
        for (place, item) in module.items.iter().enumerate() {
            if is_public(item) {
                self.named(Target::Item(id, place), name_of(item), path);
            }
        }
        self.generated(id, path);
        for (name, child) in module.children.iter().filter(|(_, child)| child.listed) {
            self.target(Target::Module(child.id), name, path, open);
        }
        for import in module.imports.iter().filter(|import| import.listed) {
            self.import(id, import, path, open);
        }
        open.pop();
    }

    fn import(
        &mut self,
        id: ModuleId,
        import: &Import,
        path: &mut Vec<String>,
        open: &mut Vec<ModuleId>,
    ) {
        let targets = self.forest.resolve(id, &import.path);
        if targets.is_empty() {
            let line = self.unresolved(id, import);
            self.lines.insert(format!("{} use {line}", path.join("::")));
        }
        for target in targets {
            match (&import.name, target) {
                (Some(name), target) => self.target(target, name, path, open),
                (None, Target::Module(glob)) => self.module(glob, path, open),
                (None, _) => {}
            }
        }
    }

    /// Returns an import from another crate, or of a variant, in the form of the list.
    fn unresolved(&self, id: ModuleId, import: &Import) -> String {
        let own = &self.forest.modules[id].path[0];
        let part = |part: &String| if part == "crate" { own.clone() } else { part.clone() };
        let path = import.path.iter().map(part).collect::<Vec<_>>().join("::");
        match &import.name {
            Some(name) => format!("{name} = {path}"),
            None => format!("{path}::*"),
        }
    }

    fn target(
        &mut self,
        target: Target,
        name: &str,
        path: &mut Vec<String>,
        open: &mut Vec<ModuleId>,
    ) {
        let module = target.clone();
        self.named(target, Some(name.to_owned()), path);
        if let Target::Module(id) = module {
            path.push(name.to_owned());
            self.module(id, path, open);
            path.pop();
        }
    }

    fn named(&mut self, target: Target, name: Option<String>, path: &[String]) {
        if let Some(name) = name {
            let full = path.iter().cloned().chain([name]).collect();
            self.paths.entry(target).or_default().insert(full);
        }
    }

    /// Records names in macro calls that name nothing else: they may be those of public items.
    fn generated(&mut self, id: ModuleId, path: &[String]) {
        for name in self.forest.generated(id) {
            let target = Target::Generated(id, name.clone());
            if self.forest.resolve(id, std::slice::from_ref(&name)) == [target.clone()] {
                self.named(target, Some(name), path);
            }
        }
    }

    /// Records the `macro_rules!` of a crate that are exported, at the crate's root.
    fn exported_macros(&mut self, name: &str) {
        for module in self.forest.modules.iter().filter(|module| module.path[0] == name) {
            for item in &module.items {
                if let Item::Macro(item) = item
                    && item.attrs.iter().any(|attr| attr.path().is_ident("macro_export"))
                    && !is_hidden(&item.attrs)
                    && let Some(ident) = &item.ident
                {
                    self.lines.insert(format!("{name} macro {ident}!"));
                }
            }
        }
    }
}

struct Writer<'a> {
    forest: &'a Forest,
    listing: Listing,
    lines: BTreeSet<String>,
}

impl Writer<'_> {
    fn items(&mut self, paths: &Paths) {
        let mut main_paths = BTreeMap::new();
        for (target, all) in paths {
            let main = canonical(self.forest, target, all);
            for path in all {
                let Some((name, module)) = path.split_last() else { continue };
                let line = match path.as_slice() == main {
                    true => format!("{} {}", self.kind(target), name),
                    false => format!("use {name} = {}", main.join("::")),
                };
                self.lines.insert(format!("{} {line}", module.join("::")));
            }
            if let Target::Item(id, place) = target {
                self.members(&self.forest.modules[*id].items[*place], &main.join("::"));
                main_paths.insert(target.clone(), main.join("::"));
            }
        }
        for (id, module) in self.forest.modules.iter().enumerate() {
            self.methods(id, module, &main_paths);
        }
    }

    fn kind(&self, target: &Target) -> &'static str {
        match target {
            Target::Module(_) => "mod",
            Target::Generated(..) => "generated",
            Target::Item(id, place) => kind(&self.forest.modules[*id].items[*place]),
        }
    }

    /// Adds the fields, variants and trait items of an item.
    fn members(&mut self, item: &Item, path: &str) {
        match item {
            Item::Struct(item) => self.fields(&item.fields, path),
            Item::Enum(item) => {
                for variant in item.variants.iter().filter(|variant| !is_hidden(&variant.attrs)) {
                    self.lines.insert(format!("{path} variant {}", variant.ident));
                }
            }
            Item::Trait(item) => item.items.iter().for_each(|item| self.trait_item(item, path)),
            _ => {}
        }
    }

    fn fields(&mut self, fields: &Fields, path: &str) {
        for (place, field) in fields.iter().enumerate() {
            if is_listed(&field.vis, &field.attrs) {
                let name = field.ident.as_ref().map_or(place.to_string(), ToString::to_string);
                self.lines.insert(format!("{path} field {name}"));
            }
        }
    }

    fn trait_item(&mut self, item: &TraitItem, path: &str) {
        let (kind, ident, attrs): (_, _, &[Attribute]) = match item {
            TraitItem::Fn(item) => ("fn", &item.sig.ident, &item.attrs),
            TraitItem::Type(item) => ("type", &item.ident, &item.attrs),
            TraitItem::Const(item) => ("const", &item.ident, &item.attrs),
            _ => return,
        };
        if !is_hidden(attrs) {
            self.lines.insert(format!("{path} {kind} {ident}"));
        }
    }

    /// Adds the public methods and constants of a module's `impl` blocks.
    fn methods(&mut self, id: ModuleId, module: &Module, main_paths: &BTreeMap<Target, String>) {
        for item in &module.items {
            let Item::Impl(item) = item else { continue };
            let Type::Path(of) = &*item.self_ty else { continue };
            if item.trait_.is_some() || is_hidden(&item.attrs) {
                continue;
            }
            let path: Vec<_> = of.path.segments.iter().map(|part| part.ident.to_string()).collect();
            let targets = self.forest.resolve(id, &path);
            for path in targets.iter().filter_map(|target| main_paths.get(target)) {
                item.items.iter().for_each(|item| self.impl_item(item, path));
            }
        }
    }

    fn impl_item(&mut self, item: &ImplItem, path: &str) {
        match item {
            ImplItem::Fn(item) if is_listed(&item.vis, &item.attrs) => {
                self.lines.insert(format!("{path} fn {}", item.sig.ident));
                *self.listing.methods.entry(path.to_owned()).or_default() += 1;
            }
            ImplItem::Const(item) if is_listed(&item.vis, &item.attrs) => {
                self.lines.insert(format!("{path} const {}", item.ident));
            }
            _ => {}
        }
    }
}

/// Chooses the path that shares most with the place of the definition, then the shortest.
fn canonical<'a>(
    forest: &'a Forest,
    target: &Target,
    all: &'a BTreeSet<Vec<String>>,
) -> &'a [String] {
    let (Target::Module(id) | Target::Item(id, _) | Target::Generated(id, _)) = target;
    let own = &forest.modules[*id].path;
    let rank = |path: &[String]| {
        let shared = own.iter().zip(path).take_while(|(one, other)| one == other).count();
        (shared, Reverse(path.len()))
    };
    let better = |best: &'a [String], path: &'a Vec<String>| {
        if best.is_empty() || rank(path) > rank(best) { path } else { best }
    };
    all.iter().fold(&[], better)
}

fn kind(item: &Item) -> &'static str {
    match item {
        Item::Const(_) => "const",
        Item::Enum(_) => "enum",
        Item::Fn(item) if derived(&item.attrs).is_some() => "derive",
        Item::Fn(_) => "fn",
        Item::Macro(_) => "macro",
        Item::Static(_) => "static",
        Item::Struct(_) => "struct",
        Item::Trait(_) => "trait",
        Item::Type(_) => "type",
        Item::Union(_) => "union",
        _ => "other",
    }
}

fn is_public(item: &Item) -> bool {
    let (vis, attrs) = match item {
        Item::Const(item) => (&item.vis, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.attrs),
        Item::Static(item) => (&item.vis, &item.attrs),
        Item::Struct(item) => (&item.vis, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.attrs),
        Item::Type(item) => (&item.vis, &item.attrs),
        Item::Union(item) => (&item.vis, &item.attrs),
        _ => return false,
    };
    is_listed(vis, attrs)
}
