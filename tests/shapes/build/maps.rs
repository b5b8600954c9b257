//! Maps by keys of every form: enums, new types, generic types, behind aliases and in each other.

use std::fmt::Write as _;

use super::Writer;

impl Writer {
    /// A struct with maps by keys of every form, in containers and in each other. A bound is an
    /// additional condition.
    pub(super) fn maps(&mut self, has_bounds: bool) -> String {
        let mut fields = String::new();
        for name in ["first_one", "second", "third"].into_iter().take(1 + self.below(3) as usize) {
            let depth = 1 + self.below(3) as u32;
            let map = self.map(depth);
            let is_bounded = has_bounds && self.one_in(2);
            let ty = match self.below(4) {
                0 | 1 => format!("Option<{map}>"),
                2 if !is_bounded => format!("Vec<{map}>"),
                _ => map,
            };
            let bound = if is_bounded { "#[schema(properties(max = 9))] " } else { "" };
            let _ = write!(fields, "{bound}pub(super) {name}: {ty}, ");
        }
        let name = self.name();
        self.declare_by(true, "", &format!("struct {name} {{ {fields} }}"));
        name
    }

    /// A map of `depth` maps, by its name or by an alias.
    fn map(&mut self, depth: u32) -> String {
        let key = self.key();
        let value = if depth > 1 { self.map(depth - 1) } else { self.leaf().text };
        let value = match self.below(6) {
            0 => format!("Vec<{value}>"),
            1 => format!("Option<{value}>"),
            _ => value,
        };
        if self.one_in(2) {
            return format!("BTreeMap<{key}, {value}>");
        }
        let name = self.name();
        let _ = writeln!(self.types, "    pub(super) type {name}<K> = BTreeMap<K, {value}>;");
        format!("{name}<{key}>")
    }

    /// A type of keys.
    fn key(&mut self) -> String {
        let form = self.below(9);
        if form < 2 {
            return self.pick(&["String", "u16", "i8", "bool", "NonZeroU16", "char"]).to_owned();
        }
        let name = self.name();
        let (body, argument) = match form {
            2 => (format!("struct {name}(pub(super) u8);"), ""),
            3 => {
                let pattern = "#[schema(pattern = \"^[a-f0-9]*$\")]";
                (format!("struct {name}({pattern} pub(super) String);"), "")
            }
            4 | 5 => {
                let inside = self.pick(&["<i8>", "<NonZeroU16>", "<String>", "<bool>"]);
                (format!("struct {name}<T>(pub(super) T);"), inside)
            }
            6 => (format!("enum {name} {{ #[doc = \"Below.\"] Low, High }}"), ""),
            7 => (format!("enum {name} {{ Low, High }}"), ""),
            _ => (format!("enum {name} {{ Low, High, #[serde(untagged)] Other(String) }}"), ""),
        };
        let attributes = "    #[derive(PartialEq, Eq, PartialOrd, Ord)]\n";
        self.declare_by(true, attributes, &body);
        format!("{name}{argument}")
    }
}
