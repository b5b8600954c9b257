//! YAML answers, written as Go's `sigs.k8s.io/yaml` writes them: clients compare them as text.
//!
//! A text stands plain where a reader of YAML 1.1 recognizes a text, in quotes elsewhere, and over
//! several lines if the text has some. Lines are folded at spaces behind column 80.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Column behind which a line is folded at the next space.
const WIDTH: usize = 80;
/// Most bytes of a key before the colon in the same line.
const SIMPLE_KEY: usize = 128;
/// Spaces of a level.
const STEP: usize = 2;

/// Texts that YAML 1.1 reads as other values.
const WORDS: [&str; 39] = [
    "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No",
    "NO", "false", "False", "FALSE", "off", "Off", "OFF", "", "~", "null", "Null", "NULL", ".nan",
    ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];

/// Texts that YAML 1.1 reads as numbers or times; underscores in numbers have been taken out.
static OTHERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let number = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?";
    let based = r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+)";
    let sixty = r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?";
    let day = r"[0-9]{4}-(0?[1-9]|1[0-2])-(0?[1-9]|[12][0-9]|3[01])";
    let clock = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](\.[0-9]+)?";
    let time = format!("{day}([Tt]{clock}(Z|[-+][0-9]{{2}}:[0-9]{{2}})| {clock})?");
    Regex::new(&format!("^({number}|{based}|{sixty}|{time})$")).ok()
});

/// Returns a value as a document.
pub(super) fn print(value: &Value) -> String {
    let mut emitter = Emitter { out: String::new(), column: 0, starts: true, blank: true };
    emitter.node(value, EmitPosition::Root, 0);
    if !emitter.out.ends_with('\n') {
        emitter.out.push('\n');
    }
    emitter.out
}

/// Place of a node in the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EmitPosition {
    Root,
    Item,
    Field,
}

/// A document under construction.
struct Emitter {
    out: String,
    /// Characters of the current line.
    column: usize,
    /// Whether the line holds nothing but spaces and marks of items.
    starts: bool,
    /// Whether a space or the begin of the line is before the next character.
    blank: bool,
}

impl Emitter {
    /// Writes a node whose parent is indented by `indent`.
    fn node(&mut self, value: &Value, place: EmitPosition, indent: usize) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let indent = if place == EmitPosition::Root { 0 } else { indent + STEP };
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by(|(a, _), (b, _)| order(a, b));
                for (key, value) in fields {
                    self.field(key, value, indent);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                // Items of a field stand below its key.
                let indent = if place == EmitPosition::Item { indent + STEP } else { indent };
                for item in items {
                    self.indent(indent);
                    self.mark("-");
                    self.starts = true;
                    self.node(item, EmitPosition::Item, indent);
                }
            }
            Value::Object(_) => self.word("{}"),
            Value::Array(_) => self.word("[]"),
            Value::String(text) => self.text(text, false, indent + STEP),
            Value::Number(number) => self.word(&go_number(number)),
            other => self.word(&other.to_string()),
        }
    }

    /// Writes a key with the value.
    fn field(&mut self, key: &str, value: &Value, indent: usize) {
        self.indent(indent);
        if key.len() > SIMPLE_KEY || key.contains('\n') {
            self.mark("?");
            self.starts = true;
            self.text(key, false, indent + STEP);
            self.indent(indent);
            self.mark(":");
        } else {
            self.text(key, true, indent + STEP);
            self.put(':');
            self.starts = false;
        }
        self.node(value, EmitPosition::Field, indent);
    }

    /// Writes a text; a key has no line breaks.
    fn text(&mut self, text: &str, is_key: bool, indent: usize) {
        let form = ScalarStyles::of(text);
        let is_plain = is_text(text);
        if form.has_lines && form.block && !is_key {
            self.literal(text, indent);
        } else if !form.has_lines && is_plain && form.plain {
            self.scalar(text, None, is_key, indent);
        } else if !form.has_lines && is_plain && form.single {
            self.scalar(text, Some('\''), is_key, indent);
        } else {
            self.double(text, is_key, indent);
        }
    }

    /// Writes a plain text, or a text in single quotes.
    fn scalar(&mut self, text: &str, quote: Option<char>, is_key: bool, indent: usize) {
        self.space();
        quote.into_iter().for_each(|quote| self.put(quote));
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (index, c) in chars.iter().enumerate() {
            let inside = quote.is_none() || index > 0 && index + 1 < chars.len();
            let folds = inside && !is_key && !spaces && chars.get(index + 1) != Some(&' ');
            if *c == ' ' && folds && self.column > WIDTH {
                self.indent(indent);
            } else {
                if *c == '\'' && quote.is_some() {
                    self.put('\'');
                }
                self.put(*c);
            }
            spaces = *c == ' ';
            self.starts = false;
        }
        quote.into_iter().for_each(|quote| self.put(quote));
        self.starts = false;
    }

    /// Writes a text in double quotes.
    fn double(&mut self, text: &str, is_key: bool, indent: usize) {
        self.space();
        self.put('"');
        self.starts = false;
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (index, c) in chars.iter().enumerate() {
            let inside = index > 0 && index + 1 < chars.len();
            if *c == ' ' && inside && !is_key && !spaces && self.column > WIDTH {
                self.indent(indent);
                if chars.get(index + 1) == Some(&' ') {
                    self.put('\\');
                }
            } else if !is_printable(*c) || is_break(*c) || matches!(c, '"' | '\\') {
                escape(*c).chars().for_each(|c| self.put(c));
            } else {
                self.put(*c);
            }
            spaces = *c == ' ';
        }
        self.put('"');
        self.starts = false;
    }

    /// Writes a text of several lines as they are.
    fn literal(&mut self, text: &str, indent: usize) {
        self.space();
        self.put('|');
        if text.starts_with(' ') || text.starts_with(is_break) {
            self.put('2');
        }
        let mut back = text.chars().rev();
        match (back.next().is_some_and(is_break), back.next().is_none_or(is_break)) {
            (false, _) => self.put('-'),
            (true, true) => self.put('+'),
            (true, false) => {}
        }
        self.line();
        let mut begins = true;
        for c in text.chars() {
            if is_break(c) {
                self.out.push(c);
                (self.column, self.starts, self.blank) = (0, true, true);
                begins = true;
                continue;
            }
            if begins {
                self.indent(indent);
            }
            self.put(c);
            self.starts = false;
            begins = false;
        }
    }

    /// Writes a value that needs no quotes.
    fn word(&mut self, text: &str) {
        self.space();
        text.chars().for_each(|c| self.put(c));
        self.starts = false;
    }

    /// Writes a mark, after which a value may stand in the same line.
    fn mark(&mut self, mark: &str) {
        self.space();
        mark.chars().for_each(|c| self.put(c));
    }

    /// Goes to a column, in a new line unless the present line is empty there.
    fn indent(&mut self, indent: usize) {
        if !self.starts || self.column > indent || (self.column == indent && !self.blank) {
            self.line();
        }
        while self.column < indent {
            self.put(' ');
        }
        (self.starts, self.blank) = (true, true);
    }

    fn space(&mut self) {
        if !self.blank {
            self.put(' ');
        }
    }

    fn line(&mut self) {
        self.out.push('\n');
        (self.column, self.starts, self.blank) = (0, true, true);
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
        self.blank = false;
    }
}

/// Styles in which a text can be written.
struct ScalarStyles {
    has_lines: bool,
    plain: bool,
    single: bool,
    block: bool,
}

impl ScalarStyles {
    /// Returns the forms of a text.
    fn of(text: &str) -> ScalarStyles {
        let chars: Vec<char> = text.chars().collect();
        let is_blank = |c: Option<&char>| matches!(c, None | Some(' ' | '\t' | '\n'));
        let mut has_marks = text.starts_with("---") || text.starts_with("...");
        for (index, c) in chars.iter().enumerate() {
            let followed = is_blank(chars.get(index + 1));
            let preceded = index == 0 || is_blank(chars.get(index - 1));
            has_marks |= match c {
                '#' => preceded,
                ':' => followed,
                '-' | '?' if index == 0 => followed,
                _ => index == 0 && ",[]{}&*!|>'\"%@`".contains(*c),
            };
        }
        let pair = |first: fn(char) -> bool, second: fn(char) -> bool| {
            chars.windows(2).any(|pair| first(pair[0]) && second(pair[1]))
        };
        let is_space = |c: char| c == ' ';
        let special = chars.iter().any(|c| !is_printable(*c)) || pair(is_space, is_break);
        let break_space = pair(is_break, is_space);
        let has_lines = chars.iter().any(|c| is_break(*c));
        let ends = |c: Option<&char>| c.is_some_and(|c| *c == ' ' || is_break(*c));
        let at_ends = ends(chars.first()) || ends(chars.last());
        ScalarStyles {
            has_lines,
            plain: !(has_marks || special || break_space || has_lines || at_ends),
            single: !(special || break_space),
            block: !special && !text.ends_with(' ') && text.contains('\n'),
        }
    }
}

/// Whether a plain text is read as a text.
fn is_text(text: &str) -> bool {
    if WORDS.contains(&text) {
        return false;
    }
    let first = text.chars().next().unwrap_or(' ');
    if !first.is_ascii_digit() && !"+-.".contains(first) {
        return text != "<<";
    }
    let plain = text.replace('_', "");
    OTHERS.as_ref().is_none_or(|others| !others.is_match(&plain) && !others.is_match(text))
}

/// Whether a character ends a line.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character stands unchanged in a document.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        || u32::from(c) >= 0x10000
}

/// Returns the escape of a character in double quotes.
fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' | '\\' => c,
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let code = u32::from(c);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// Returns a number in Go's form: a fraction with an exponent if large or small.
fn go_number(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..21).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{float}"),
    }
}

/// Order of keys: letters after other characters, and numbers by their value.
fn order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len().cmp(&b.len()) };
    let (x, y) = (a[at], b[at]);
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (false, true) => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, false) => {}
    }
    // A zero counts inside of a number, and not at the beginning.
    let before = a[..at].iter().rev().take_while(|c| c.is_ascii_digit());
    let starts = (x == '0' || y == '0') && before.clone().any(|c| *c != '0');
    let number = |chars: &[char]| {
        let digits = chars[at..].iter().map_while(|c| c.to_digit(10));
        let mut end = at;
        let value = digits.fold(i64::from(starts), |sum, digit| {
            end += 1;
            sum.wrapping_mul(10).wrapping_add(i64::from(digit))
        });
        (value, end)
    };
    number(&a).cmp(&number(&b)).then(x.cmp(&y))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_stand_below_their_key_and_keys_are_plain() {
        let value = json!({"metadata": {"managedFields": [{"a": 1, "f:data": {".": {}, "f:k": {}}}]},
            "list": [[1, 2], ["x"], {}], "k:{\"name\":\"c\"}": [], "empty": null});
        let text = "empty: null\nk:{\"name\":\"c\"}: []\nlist:\n- - 1\n  - 2\n- - x\n- {}\n\
                    metadata:\n  managedFields:\n  - a: 1\n    f:data:\n      .: {}\n      f:k: {}\n";
        assert_eq!(print(&value), text);
    }

    #[test]
    fn texts_that_would_be_other_values_are_quoted() {
        for (text, shown) in [
            ("a", "a"),
            ("true", "\"true\""),
            ("1", "\"1\""),
            ("0x1f", "\"0x1f\""),
            ("1_000", "\"1_000\""),
            ("12:30", "\"12:30\""),
            ("2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""),
            ("", "\"\""),
            ("a: b", "'a: b'"),
            ("it's #1", "'it''s #1'"),
            ("- x", "'- x'"),
            ("1.2.3", "1.2.3"),
            ("tab\there", "\"tab\\there\""),
            (" x", "' x'"),
            ("*", "'*'"),
            ("grüß", "grüß"),
        ] {
            assert_eq!(print(&json!(text)), format!("{shown}\n"), "{text}");
        }
    }

    #[test]
    fn lines_are_kept_and_long_ones_are_folded() {
        assert_eq!(print(&json!({"a": "x\ny\n", "b": 1})), "a: |\n  x\n  y\nb: 1\n");
        assert_eq!(print(&json!({"a": "x\n  y"})), "a: |-\n  x\n    y\n");
        assert_eq!(print(&json!({"a": "x\n\n"})), "a: |+\n  x\n\n");
        let words = vec!["word"; 30].join(" ");
        let lines = print(&json!({ "a": words }));
        let lengths: Vec<usize> = lines.lines().map(str::len).collect();
        assert_eq!(lengths, [82, 71]);
        assert!(lines.lines().nth(1).is_some_and(|line| line.starts_with("  word")));
    }

    #[test]
    fn keys_are_in_natural_order() {
        let mut keys = ["a10", "a2", "b", "a", ".", "f:1", "B"];
        keys.sort_by(|a, b| order(a, b));
        assert_eq!(keys, [".", "B", "a", "a2", "a10", "b", "f:1"]);
    }
}
