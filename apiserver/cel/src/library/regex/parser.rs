//! Translation of a pattern in Go's syntax: each item becomes an item of the `regex` crate with the
//! same meaning under every flag, so that the crate sees no flag of the pattern.

use super::{Code, SyntaxError};

/// Largest count of a repetition, and largest product of nested counts.
const MAX_REPEAT: u32 = 1000;
/// Most repetitions of a repetition (`a*(?i)*`): each moves the text behind.
const MAX_WRAPPED: u32 = 250;
/// Ranges of a class of Unicode, about.
pub(super) const UNICODE_RANGES: u64 = 1000;
/// Length of the translation of a range in brackets, in bytes.
const RANGE_LENGTH: usize = 16;

/// Flags of a part of the pattern.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    /// `i`
    pub(super) fold: bool,
    /// `m`
    pub(super) multi_line: bool,
    /// `s`
    pub(super) dot_newline: bool,
    /// `U`
    pub(super) swap_greed: bool,
}

/// A group that is not closed yet.
#[derive(Debug, Default)]
pub(super) struct OpenGroup {
    /// Flags to be restored after the group.
    flags: Flags,
    /// Offset of the group's text in the output.
    start: usize,
    /// Largest product of repetitions of the items.
    repeats: u32,
    /// Number of items, each as often as repeated.
    weight: Weight,
}

/// The size of a pattern or of a part, with each item as often as repeated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// Number of items: the time of searching a character grows with it.
    pub(super) items: u64,
    /// Number of ranges of characters in the items: the time of a compilation grows with it.
    pub(super) ranges: u64,
}

impl Default for Weight {
    fn default() -> Weight {
        Weight { items: 1, ranges: 1 }
    }
}

/// The last item, to which a repetition applies.
#[derive(Debug, Clone, Copy)]
struct Item {
    start: usize,
    repeats: u32,
    weight: Weight,
    is_repetition: bool,
}

/// The state of a translation.
#[derive(Debug)]
pub(super) struct Parser<'p> {
    pub(super) pattern: &'p str,
    /// The part that is not read yet.
    pub(super) rest: &'p str,
    pub(super) out: String,
    pub(super) flags: Flags,
    groups: Vec<OpenGroup>,
    /// Groups of the top level and of the innermost open group.
    current: OpenGroup,
    item: Option<Item>,
    /// The pattern from the repetition on that was read just before.
    last_repetition: Option<&'p str>,
    wrapped: u32,
    pub(super) unicode_classes: u32,
}

/// The pattern for the crate, with the weight.
pub(super) fn translate(pattern: &str) -> Result<(String, Weight), SyntaxError> {
    let mut parser = Parser {
        pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        flags: Flags::default(),
        groups: Vec::new(),
        current: OpenGroup::default(),
        item: None,
        last_repetition: None,
        wrapped: 0,
        unicode_classes: 0,
    };
    while let Some(c) = parser.rest.chars().next() {
        let repetition = parser.step(c)?;
        parser.last_repetition = repetition;
    }
    if !parser.groups.is_empty() {
        return Err(parser.whole(Code::MissingParen));
    }
    parser.end_item();
    Ok((parser.out, parser.current.weight))
}

impl<'p> Parser<'p> {
    /// An error about the whole pattern.
    pub(super) fn whole(&self, code: Code) -> SyntaxError {
        SyntaxError::new(code, self.pattern)
    }

    /// The part of `from` that is read by now.
    pub(super) fn consumed(&self, from: &'p str) -> &'p str {
        from.get(..from.len().saturating_sub(self.rest.len())).unwrap_or(from)
    }

    /// Skips bytes that are ASCII.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Reads a character.
    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    /// Reads an item. Returns the pattern from the item on if it is a repetition.
    fn step(&mut self, c: char) -> Result<Option<&'p str>, SyntaxError> {
        let before = self.rest;
        match c {
            '(' => self.open_group()?,
            ')' => self.close_group()?,
            '|' => self.alternative(),
            '^' => self.symbol(if self.flags.multi_line { "(?m:^)" } else { r"\A" }),
            '$' => self.symbol(if self.flags.multi_line { "(?m:$)" } else { r"\z" }),
            '.' => self.symbol(if self.flags.dot_newline { "(?s:.)" } else { "." }),
            '[' => {
                self.begin_item();
                let (before, classes) = (self.out.len(), self.unicode_classes);
                self.class()?;
                let ranges = (self.out.len() - before) / RANGE_LENGTH + 1;
                let classes = self.unicode_classes - classes;
                self.weigh(ranges as u64 + u64::from(classes) * UNICODE_RANGES);
            }
            '*' | '+' | '?' => {
                self.skip(1);
                self.repeat(before, 0, 0, c)?;
                return Ok(Some(before));
            }
            '{' => return self.braces(before),
            '\\' => self.backslash()?,
            _ => {
                self.skip(c.len_utf8());
                self.literal(u32::from(c));
            }
        }
        Ok(None)
    }

    /// Starts an item at the end of the output; the item before is complete.
    pub(super) fn begin_item(&mut self) {
        self.end_item();
        self.item = Some(Item {
            start: self.out.len(),
            repeats: 1,
            weight: Weight::default(),
            is_repetition: false,
        });
    }

    /// Sets the ranges of the item that was just begun.
    pub(super) fn weigh(&mut self, ranges: u64) {
        if let Some(item) = &mut self.item {
            item.weight.ranges = ranges;
        }
    }

    fn end_item(&mut self) {
        if let Some(item) = self.item.take() {
            self.current.repeats = self.current.repeats.max(item.repeats);
            let Weight { items, ranges } = &mut self.current.weight;
            *items = items.saturating_add(item.weight.items);
            *ranges = ranges.saturating_add(item.weight.ranges);
        }
    }

    /// An item of a single character of the pattern.
    fn symbol(&mut self, translated: &str) {
        self.skip(1);
        self.begin_item();
        self.out.push_str(translated);
    }

    /// An item that is a code point.
    pub(super) fn literal(&mut self, code: u32) {
        self.begin_item();
        let folds = self.flags.fold
            && (code >= 0x80 || u8::try_from(code).is_ok_and(|byte| byte.is_ascii_alphabetic()));
        match char::from_u32(code) {
            // A surrogate is a code point for Go but occurs in no text.
            None => self.out.push_str(super::class::NOTHING),
            Some(_) if folds => {
                self.out.push_str("(?i:");
                super::class::push_code(&mut self.out, code);
                self.out.push(')');
            }
            Some(_) => super::class::push_code(&mut self.out, code),
        }
    }

    fn alternative(&mut self) {
        self.skip(1);
        self.end_item();
        self.out.push('|');
    }

    /// Opens a group whose end restores `flags`. No group captures: only the whole match matters.
    pub(super) fn push_group(&mut self, flags: Flags) {
        self.end_item();
        let group =
            OpenGroup { flags, start: self.out.len(), repeats: 1, weight: Weight::default() };
        self.groups.push(std::mem::replace(&mut self.current, group));
        self.out.push_str("(?:");
    }

    fn close_group(&mut self) -> Result<(), SyntaxError> {
        self.end_item();
        let Some(outer) = self.groups.pop() else { return Err(self.whole(Code::UnexpectedParen)) };
        self.skip(1);
        self.out.push(')');
        let group = std::mem::replace(&mut self.current, outer);
        self.flags = group.flags;
        self.item = Some(Item {
            start: group.start,
            repeats: group.repeats,
            weight: group.weight,
            is_repetition: false,
        });
        Ok(())
    }

    /// A repetition in braces; anything else that starts with a brace is literal.
    fn braces(&mut self, before: &'p str) -> Result<Option<&'p str>, SyntaxError> {
        let Some((least, most, after)) = counts(before) else {
            self.skip(1);
            self.literal(u32::from('{'));
            return Ok(None);
        };
        self.rest = after;
        let is_valid =
            least <= MAX_REPEAT && most.is_none_or(|most| most <= MAX_REPEAT && least <= most);
        if !is_valid {
            return Err(SyntaxError::new(Code::InvalidRepeatSize, self.consumed(before)));
        }
        // Without an upper bound the lower bound counts.
        let copies = if most == Some(0) { 0 } else { most.unwrap_or(least).max(1) };
        let checked = if least >= 2 || most.is_some_and(|most| most >= 2) { copies } else { 0 };
        self.repeat(before, copies, checked, '{')?;
        Ok(Some(before))
    }

    /// Repeats the last item. `before` is the pattern from the operator on; `copies` the factor of
    /// nested counts, for which `checked` is zero if the operator adds none.
    fn repeat(
        &mut self,
        before: &'p str,
        copies: u32,
        checked: u32,
        operator: char,
    ) -> Result<(), SyntaxError> {
        let text = self.consumed(before);
        let mut lazy = self.flags.swap_greed;
        if self.rest.starts_with('?') {
            self.skip(1);
            lazy = !lazy;
        }
        if let Some(last) = self.last_repetition {
            return Err(SyntaxError::new(Code::InvalidRepeatOp, self.consumed(last)));
        }
        let Some(mut item) = self.item else {
            return Err(SyntaxError::new(Code::MissingRepeatArgument, self.consumed(before)));
        };
        if item.is_repetition {
            self.wrap(item.start)?;
        }
        if operator == '{' {
            item.repeats = item.repeats.saturating_mul(copies);
            let times = u64::from(copies.max(1));
            item.weight.items = item.weight.items.saturating_mul(times);
            item.weight.ranges = item.weight.ranges.saturating_mul(times);
        }
        if checked > 0 && item.repeats > MAX_REPEAT {
            return Err(SyntaxError::new(Code::InvalidRepeatSize, self.consumed(before)));
        }
        self.out.push_str(text);
        if lazy {
            self.out.push('?');
        }
        item.is_repetition = true;
        self.item = Some(item);
        Ok(())
    }
    /// Makes a group of a repetition that is repeated.
    fn wrap(&mut self, start: usize) -> Result<(), SyntaxError> {
        self.wrapped += 1;
        if self.wrapped > MAX_WRAPPED {
            return Err(self.whole(Code::NestingDepth));
        }
        self.out.insert_str(start, "(?:");
        self.out.push(')');
        Ok(())
    }
}

/// The counts at the start of a text, `{2}`, `{2,}` or `{2,3}`, and the text after them.
fn counts(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (least, rest) = count(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => count(rest).map(|(most, rest)| (Some(most), rest))?,
    };
    Some((least, most, rest.strip_prefix('}')?))
}

/// A decimal number without leading zeros; a number that is too large becomes the largest.
fn count(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

impl<'p> Parser<'p> {
    /// Reads the start of a group, or flags without a group.
    pub(super) fn open_group(&mut self) -> Result<(), SyntaxError> {
        if !self.rest.starts_with("(?") {
            self.skip(1);
            self.push_group(self.flags);
            return Ok(());
        }
        // Go looks at lengths too: `(?P<` at the end is not the start of a name.
        let start = match self.rest {
            rest if rest.starts_with("(?P<") && rest.len() > 4 => 4,
            rest if rest.starts_with("(?<") && rest.len() > 3 => 3,
            _ => return self.group_flags(),
        };
        self.named_group(start)
    }

    fn named_group(&mut self, start: usize) -> Result<(), SyntaxError> {
        let Some((head, after)) = self.rest.split_once('>') else {
            return Err(SyntaxError::new(Code::InvalidNamedCapture, self.rest));
        };
        let before = self.rest;
        self.rest = after;
        let name = head.get(start..).unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            return Err(SyntaxError::new(Code::InvalidNamedCapture, self.consumed(before)));
        }
        self.push_group(self.flags);
        Ok(())
    }

    /// Reads `(?flags)` or `(?flags:`.
    fn group_flags(&mut self) -> Result<(), SyntaxError> {
        let before = self.rest;
        self.skip(2);
        let mut flags = self.flags;
        let (mut value, mut saw_flag) = (true, false);
        while let Some(c) = self.next() {
            match c {
                'i' | 'm' | 's' | 'U' => {
                    set(&mut flags, c, value);
                    saw_flag = true;
                }
                '-' if value => {
                    value = false;
                    saw_flag = false;
                }
                ':' | ')' if value || saw_flag => {
                    if c == ':' {
                        self.push_group(self.flags);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(SyntaxError::new(Code::InvalidPerlOp, self.consumed(before)))
    }
}

fn set(flags: &mut Flags, letter: char, value: bool) {
    match letter {
        'i' => flags.fold = value,
        'm' => flags.multi_line = value,
        's' => flags.dot_newline = value,
        _ => flags.swap_greed = value,
    }
}
