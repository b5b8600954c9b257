//! Writes types of every form that serde has, from a seed, into `shapes.rs`.
//!
//! `WINDLASS_SHAPES` is their number (60 by default), `WINDLASS_SHAPES_SEED` the seed.

#[path = "build/maps.rs"]
mod maps;

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    for name in ["WINDLASS_SHAPES", "WINDLASS_SHAPES_SEED"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/maps.rs");
    let number = |name: &str, default: u64| {
        env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let count = number("WINDLASS_SHAPES", 60);
    let mut writer = Writer {
        state: number("WINDLASS_SHAPES_SEED", 1),
        types: String::new(),
        named: 0,
        is_flattened: false,
    };
    let mut out = String::new();
    let mut table = String::new();
    for i in 0..count {
        writer.types.clear();
        writer.named = 0;
        let (root, is_exact) = writer.root(i);
        let _ = writeln!(
            out,
            "mod s{i} {{\n    use super::prelude::*;\n{}    pub(super) type Root = {root};\n}}",
            writer.types
        );
        let _ = writeln!(table, "    Shape::of::<s{i}::Root>(\"s{i}\", {is_exact}),");
    }
    let _ = writeln!(out, "fn shapes() -> Vec<Shape> {{\n    vec![\n{table}    ]\n}}");
    let folder = env::var("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&folder).join("shapes.rs"), out)
        .expect("the folder for output is writable");
}

/// Writes types; the numbers follow from `state`.
struct Writer {
    state: u64,
    types: String,
    named: usize,
    /// Whether the type under construction is flattened into another.
    is_flattened: bool,
}

/// A type, and whether the type has a `Default` and is ordered.
struct Ty {
    text: String,
    has_default: bool,
}

impl Writer {
    /// SplitMix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    /// The root of a shape; whether the type has no additional conditions.
    fn root(&mut self, i: u64) -> (String, bool) {
        let is_exact = i % 4 != 3;
        // Small types show which form is wrong; some larger types show how forms meet.
        let depth = 1 + u32::from(self.one_in(4));
        // Every form comes in turn, so that few shapes have all of them.
        let root = match i % 8 {
            0 => self.structure(depth, is_exact),
            1 => self.external(depth),
            2 => self.internal(depth),
            3 if self.one_in(3) => self.maps(true),
            3 if self.one_in(2) => self.keyed(),
            3 => self.structure(depth, is_exact),
            4 => self.adjacent(depth),
            5 => self.untagged(depth),
            6 => self.flattened(depth),
            7 if !is_exact && self.one_in(2) => self.kubernetes(),
            _ => self.ty(depth + 1).text,
        };
        (root, is_exact)
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("T{}", self.named)
    }

    fn declare(&mut self, attributes: &str, body: &str) {
        // In turn, so that either derive meets fields of the other.
        let is_ours = self.named.is_multiple_of(2);
        self.declare_by(is_ours, attributes, body);
    }

    fn declare_by(&mut self, is_ours: bool, attributes: &str, body: &str) {
        let derive = if is_ours { "Schema" } else { "JsonSchema" };
        // To schemars' derive these keys are texts (`reference/schema.md` of the book).
        let schemars = || {
            let mut body = body.replace("BTreeMap<Ipv4Addr, ", "BTreeMap<String, ");
            while let Some(end) = body.find("Noted, ") {
                let key = body[..end].rfind('<').map_or(0, |open| open + 1);
                body.replace_range(key..end + "Noted".len(), "String");
            }
            body
        };
        let body = if is_ours { typed(body) } else { schemars() };
        let _ = writeln!(
            self.types,
            "    #[derive(Serialize, Deserialize, {derive})]\n{attributes}    pub(super) {body}"
        );
    }

    fn leaf(&mut self) -> Ty {
        let text = self.pick(&[
            "bool",
            "i8",
            "i32",
            "i64",
            "u8",
            "u16",
            "u32",
            "u64",
            "f64",
            "String",
            "String",
            "char",
            "IpAddr",
            "Ipv4Addr",
            "NonZeroU16",
            "NonZeroI32",
            "Value",
            "Duration",
            "()",
        ]);
        let without = ["IpAddr", "Ipv4Addr", "NonZeroU16", "NonZeroI32"];
        Ty { text: text.to_owned(), has_default: !without.contains(&text) }
    }

    /// A type of at most `depth` levels.
    fn ty(&mut self, depth: u32) -> Ty {
        if depth == 0 {
            return self.leaf();
        }
        let yes = |text: String| Ty { text, has_default: true };
        let no = |text: String| Ty { text, has_default: false };
        match self.below(26) {
            24 | 25 => no(self.maps(false)),
            22 => yes(self.defaulted(depth - 1)),
            23 => no(self.parsed()),
            0..=4 => self.leaf(),
            5 | 6 => yes(format!("Option<{}>", self.ty(depth - 1).text)),
            7 | 8 => yes(format!("Vec<{}>", self.ty(depth - 1).text)),
            9 => yes(format!("BTreeMap<String, {}>", self.ty(depth - 1).text)),
            10 => match self.below(9) {
                4 => yes("BTreeSet<IpAddr>".to_owned()),
                5 => yes("BTreeSet<u16>".to_owned()),
                6 => yes(format!("Option<Vec<{}>>", self.leaf().text)),
                7 => yes("BTreeMap<Ipv4Addr, bool>".to_owned()),
                8 => no(format!(
                    "({}, {}, {})",
                    self.leaf().text,
                    self.leaf().text,
                    self.leaf().text
                )),
                0 => yes(format!("BTreeMap<i32, {}>", self.leaf().text)),
                1 => yes("BTreeSet<String>".to_owned()),
                2 => no(format!("({}, {})", self.leaf().text, self.leaf().text)),
                _ => no(format!("[{}; 2]", self.leaf().text)),
            },
            11 => no(self.units()),
            12 => no(self.structure(depth - 1, true)),
            13 => no(self.external(depth - 1)),
            14 => no(self.internal(depth - 1)),
            15 => no(self.adjacent(depth - 1)),
            16 => no(self.untagged(depth - 1)),
            17 => Ty { has_default: false, ..self.boxed(depth) },
            18 => no(self.newtype(depth - 1)),
            19 => no(self.generic()),
            20 => no(self.by_name()),
            _ => no(self.flattened(depth - 1)),
        }
    }

    fn boxed(&mut self, depth: u32) -> Ty {
        let ty = self.ty(depth - 1);
        Ty { text: format!("Box<{}>", ty.text), ..ty }
    }

    /// A struct that is written as the only field.
    fn newtype(&mut self, depth: u32) -> String {
        let ty = self.ty(depth).text;
        let name = self.name();
        let attributes = if self.one_in(2) { "    #[serde(transparent)]\n" } else { "" };
        self.declare(attributes, &format!("struct {name}(pub(super) {ty});"));
        name
    }

    /// A struct whose fields have the values of `Default` where they are absent.
    fn defaulted(&mut self, depth: u32) -> String {
        let mut fields = String::new();
        for name in ["first_one", "second", "third"].into_iter().take(1 + self.below(3) as usize) {
            let ty = self.ty(depth);
            let ty = if ty.has_default { ty.text } else { "Vec<String>".to_owned() };
            let _ = write!(fields, "pub(super) {name}: {ty}, ");
        }
        let name = self.name();
        let attributes = "    #[derive(Default)]\n    #[serde(default)]\n";
        self.declare(attributes, &format!("struct {name} {{ {fields} }}"));
        name
    }

    /// A text that serde converts. To schemars' derive the conversion is invisible.
    fn parsed(&mut self) -> String {
        let name = self.name();
        let attributes =
            "    #[derive(Clone)]\n    #[serde(try_from = \"String\", into = \"String\")]\n";
        let pattern = if self.one_in(2) { "#[schema(pattern = \"^[a-f]*$\")] " } else { "" };
        self.declare_by(true, attributes, &format!("struct {name}({pattern}pub(super) String);"));
        let _ = writeln!(self.types, "    hexadecimal!({name});");
        name
    }

    /// A struct with keys of `Schema`, which are additional conditions.
    fn keyed(&mut self) -> String {
        let all = [
            "#[schema(default = 3)] a: i32,",
            "#[serde(default)] #[schema(list(map, keys(name)))] b: Vec<Item>,",
            "#[schema(immutable)] c: Option<String>,",
            "#[schema(preserve)] d: Option<Item>,",
            "#[schema(opaque)] e: Value,",
            "#[schema(nullable)] f: Option<bool>,",
            "#[serde(with = \"as_text\")] #[schema(with = String, pattern = \"^[0-9]{1,4}$\")] g: u16,",
            "#[schema(each(length(min = 1)))] h: Option<Vec<String>>,",
            "#[schema(pattern = \"^1\")] i: Option<Ipv4Addr>,",
            "#[schema(map(atomic), properties(max = 2))] j: BTreeMap<String, i32>,",
            "#[schema(exclusive_min = 0, exclusive_max = 9)] k: Option<f64>,",
            "#[schema(format = \"date-time\")] l: Option<String>,",
            "#[schema(properties(max = 3))] m: Option<BTreeMap<i8, String>>,",
            "#[schema(properties(max = 3))] n: BTreeMap<bool, i32>,",
        ];
        let mut fields = String::new();
        for field in all {
            if self.one_in(3) {
                fields.push_str(field);
                fields.push(' ');
            }
        }
        let mut attributes = String::new();
        if self.one_in(2) {
            let key = self.pick(&["one_of", "at_most_one_of", "at_least_one_of"]);
            attributes = format!("    #[schema({key}(x, y))]\n");
            fields.push_str("x: Option<i32>, y: Option<String>, ");
        }
        fields.push_str("z: bool,");
        let name = self.name();
        self.declare_by(true, &attributes, &format!("struct {name} {{ {fields} }}"));
        name
    }

    /// A struct with Kubernetes types, which schemars' derive does not know.
    fn kubernetes(&mut self) -> String {
        let all = [
            "ApiDuration",
            "ApiTime",
            "IntOrString",
            "LabelSelector",
            "LocalObjectReference",
            "PodTemplateSpec",
            "Quantity",
            "RawExtension",
            "ResourceRequirements",
            "Toleration",
            "Vec<Condition>",
            "Vec<EnvVar>",
            "Vec<LocalObjectReference>",
            "BTreeMap<String, Quantity>",
        ];
        let mut fields = String::new();
        for name in ["first_one", "second", "third"].into_iter().take(1 + self.below(3) as usize) {
            let ty = self.pick(&all);
            let ty = if self.one_in(2) { format!("Option<{ty}>") } else { ty.to_owned() };
            let _ = write!(fields, "pub(super) {name}: {ty}, ");
        }
        let name = self.name();
        self.declare_by(true, "", &format!("struct {name} {{ {fields} }}"));
        name
    }

    /// A struct with a type parameter.
    fn generic(&mut self) -> String {
        let (one, two) = (self.leaf().text, self.leaf().text);
        let name = self.name();
        let body = format!(
            "struct {name}<T> {{ pub(super) value: T, pub(super) more: Option<Vec<T>>, pub(super) other: {two} }}"
        );
        self.declare("", &body);
        format!("{name}<{one}>")
    }

    /// A map whose keys are the names of an enum.
    fn by_name(&mut self) -> String {
        let value = self.leaf().text;
        let mut name = self.name();
        let doc = if self.one_in(2) { "#[doc = \"Below.\"] " } else { "" };
        name.push_str(if doc.is_empty() { "" } else { "Noted" });
        self.declare(
            "    #[derive(PartialEq, Eq, PartialOrd, Ord)]\n",
            &format!("enum {name} {{ {doc}Low, High }}"),
        );
        match self.below(4) {
            0 => format!("Option<BTreeMap<{name}, {value}>>"),
            1 => format!("Vec<BTreeMap<{name}, {value}>>"),
            _ => format!("BTreeMap<{name}, {value}>"),
        }
    }

    /// An enum of names.
    fn units(&mut self) -> String {
        let name = self.name();
        let case = self.pick(&["lowercase", "camelCase", "SCREAMING_SNAKE_CASE"]);
        let doc = if self.one_in(2) { "/// Red.\n        " } else { "" };
        self.declare(
            &format!("    #[serde(rename_all = \"{case}\")]\n"),
            &format!("enum {name} {{ {doc}DarkRed, Green, Blue }}"),
        );
        name
    }

    /// Fields of a struct or a variant.
    fn fields(&mut self, depth: u32, is_exact: bool, visible: &str) -> String {
        let mut fields = String::new();
        let names = ["first_one", "second", "third", "kind_of"];
        let count = 1 + self.below(names.len() as u64) as usize;
        for name in names.into_iter().take(count) {
            let _ = write!(fields, "{} ", self.field(name, depth, is_exact, visible));
        }
        fields
    }

    fn field(&mut self, name: &str, depth: u32, is_exact: bool, visible: &str) -> String {
        if !is_exact && self.one_in(2) {
            return match self.below(8) {
                4 => format!(
                    "#[schemars(extend(\"x-kubernetes-list-type\" = \"set\"))] {visible}{name}: Vec<String>,"
                ),
                5 => {
                    format!("#[schemars(extend(\"multipleOf\" = 5))] {visible}{name}: Option<i64>,")
                }
                6 => format!("#[schemars(inner(length(max = 3)))] {visible}{name}: Vec<String>,"),
                7 => format!(
                    "#[schemars(extend(\"format\" = \"ipv6\"))] {visible}{name}: Option<String>,"
                ),
                0 => format!("#[schemars(range(min = 1, max = 5))] {visible}{name}: i32,"),
                1 => format!("#[schemars(length(min = 1, max = 3))] {visible}{name}: Vec<String>,"),
                2 => format!("#[schemars(regex(pattern = \"^[a-z]+$\"))] {visible}{name}: String,"),
                _ => format!(
                    "#[schemars(extend(\"x-kubernetes-validations\" = [{{ \"rule\": \"self < 5\" }}]))] \
                     {visible}{name}: i32,"
                ),
            };
        }
        let ty = self.ty(depth);
        let alias = format!("#[serde(alias = \"{name}_too\")] ");
        let attribute = match self.below(6) {
            4 => alias.as_str(),
            0 if ty.has_default => "#[serde(default)] ",
            1 if ty.text.starts_with("Option<") => {
                "#[serde(default, skip_serializing_if = \"Option::is_none\")] "
            }
            2 if ty.text.starts_with("Option<") => {
                "#[serde(skip_serializing_if = \"Option::is_none\")] "
            }
            3 => "#[serde(rename = \"re-named\")] ",
            _ => "",
        };
        // Each name only once in a struct.
        let attribute =
            if attribute.contains("rename") && name != "second" { "" } else { attribute };
        format!("{attribute}{visible}{name}: {},", ty.text)
    }

    fn structure(&mut self, depth: u32, is_exact: bool) -> String {
        let fields = self.fields(depth, is_exact, "pub(super) ");
        let name = self.name();
        let mut attributes = String::new();
        if self.one_in(3) {
            attributes.push_str("    #[serde(rename_all = \"camelCase\")]\n");
        }
        if !self.is_flattened && self.one_in(4) {
            attributes.push_str("    #[serde(deny_unknown_fields)]\n");
        }
        let more = if self.one_in(6) {
            format!("pub(super) children: Vec<{name}>,")
        } else {
            String::new()
        };
        let skipped = if self.one_in(6) { "#[serde(skip)] pub(super) hidden: u8," } else { "" };
        self.declare(&attributes, &format!("struct {name} {{ {fields}{skipped}{more} }}"));
        name
    }

    /// Variants: without data, with a value, with fields, with places.
    fn variants(&mut self, depth: u32, forms: &[&str]) -> String {
        let mut variants = String::new();
        let count = 2 + self.below(3) as usize;
        for name in ["One", "TwoWords", "Three", "Four"].into_iter().take(count) {
            let form = self.pick(forms);
            let _ = match form {
                "unit" => write!(variants, "{name}, "),
                "newtype" => {
                    let ty = self.ty(depth).text;
                    write!(variants, "{name}({ty}), ")
                }
                "newtype struct" => {
                    let ty = self.structure(depth, true);
                    write!(variants, "{name}({ty}), ")
                }
                "tuple" => {
                    let (one, two) = (self.leaf().text, self.leaf().text);
                    write!(variants, "{name}({one}, {two}), ")
                }
                _ => {
                    let fields = self.fields(depth, true, "");
                    write!(variants, "{name} {{ {fields} }}, ")
                }
            };
        }
        variants
    }

    fn enumeration(&mut self, attributes: &str, depth: u32, forms: &[&str], last: &str) -> String {
        let variants = self.variants(depth, forms) + last;
        let name = self.name();
        let mut attributes = attributes.to_owned();
        // serde supports no flattened type that denies unknown fields.
        if !self.is_flattened && self.one_in(4) {
            attributes.push_str("    #[serde(deny_unknown_fields)]\n");
        }
        self.declare(&attributes, &format!("enum {name} {{ {variants} }}"));
        name
    }

    fn external(&mut self, depth: u32) -> String {
        let forms = ["unit", "newtype", "fields", "tuple"];
        // A variant that serde tries where none of the names is there.
        let last = if self.one_in(6) {
            let ty = self.pick(&["i32", "bool", "String", "Vec<String>", "(i32, i32)"]);
            format!("#[serde(untagged)] Other({ty}), ")
        } else {
            String::new()
        };
        self.enumeration("    #[serde(rename_all = \"camelCase\")]\n", depth, &forms, &last)
    }

    fn internal(&mut self, depth: u32) -> String {
        let forms = ["unit", "newtype struct", "fields", "fields"];
        let last = if self.one_in(5) { "#[serde(other)] Rest, " } else { "" };
        self.enumeration("    #[serde(tag = \"type\")]\n", depth, &forms, last)
    }

    fn adjacent(&mut self, depth: u32) -> String {
        let forms = ["unit", "newtype", "fields", "tuple"];
        self.enumeration("    #[serde(tag = \"t\", content = \"c\")]\n", depth, &forms, "")
    }

    fn untagged(&mut self, depth: u32) -> String {
        self.enumeration("    #[serde(untagged)]\n", depth, &["newtype", "newtype", "fields"], "")
    }

    /// A struct with another type's fields among the struct's fields.
    fn flattened(&mut self, depth: u32) -> String {
        let outside = std::mem::replace(&mut self.is_flattened, true);
        let inner = match self.below(5) {
            0 => self.structure(depth, true),
            1 => self.internal(depth),
            2 => self.external_with_data(depth),
            3 => format!("BTreeMap<String, {}>", self.leaf().text),
            _ => format!("Option<{}>", self.internal(depth)),
        };
        self.is_flattened = outside;
        let own = self.ty(depth).text;
        let name = self.name();
        self.declare(
            "",
            &format!(
                "struct {name} {{ pub(super) beside: {own}, #[serde(flatten)] pub(super) rest: {inner} }}"
            ),
        );
        name
    }

    fn external_with_data(&mut self, depth: u32) -> String {
        self.enumeration("", depth, &["newtype", "fields"], "")
    }
}

/// The keys of `Schema` in place of those of schemars.
fn typed(body: &str) -> String {
    let rule = "extend(\"x-kubernetes-validations\" = [{ \"rule\": \"self < 5\" }])";
    body.replace(rule, "rule(\"self < 5\")")
        .replace("regex(pattern = \"^[a-z]+$\")", "pattern = \"^[a-z]+$\"")
        .replace("extend(\"x-kubernetes-list-type\" = \"set\")", "set")
        .replace("extend(\"multipleOf\" = 5)", "multiple_of = 5")
        .replace("extend(\"format\" = \"ipv6\")", "format = \"ipv6\"")
        .replace("inner(length(max = 3))", "each(length(max = 3))")
        .replace("#[schemars(", "#[schema(")
}
