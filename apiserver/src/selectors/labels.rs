//! Label selectors: `a=b,c in (d,e),!f`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names;

/// A parsed label selector, of which all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// A requirement for a label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

/// Operators of requirements; `=` and `!=` count as sets of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}

impl LabelSelector {
    /// Parses a selector; the error is kube-apiserver's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Parser { tokens: scan(text), at: 0 }.parse()
    }

    /// Whether every object is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the object's `metadata.labels` meet all requirements.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }
}

impl Requirement {
    /// Whether labels meet the requirement.
    fn holds(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).map(|value| value.as_str().unwrap_or_default());
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            // An absent label is not in the set.
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
            Operator::Greater => self.compare(value, |held, bound| held > bound),
            Operator::Less => self.compare(value, |held, bound| held < bound),
        }
    }

    /// Whether a label and the requirement's value are integers that compare as required.
    fn compare(&self, value: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let held = value.and_then(|value| value.parse().ok());
        let bound = self.values.first().and_then(|value| value.parse().ok());
        matches!((held, bound), (Some(held), Some(bound)) if holds(held, bound))
    }
}

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Word,
    In,
    NotIn,
    Equal,
    NotEqual,
    Greater,
    Less,
    Not,
    Comma,
    Open,
    Close,
    End,
    Junk,
}

/// A token with the text.
#[derive(Clone, Debug)]
struct SelectorToken {
    kind: TokenKind,
    text: String,
}

/// Characters that end a word.
const SPECIAL: &[char] = &['=', '!', '(', ')', ',', '>', '<'];

/// Splits a selector into tokens; the last token is `End`.
fn scan(text: &str) -> Vec<SelectorToken> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else { break };
        let length = if SPECIAL.contains(&first) {
            special_length(rest)
        } else {
            rest.find(|c: char| SPECIAL.contains(&c) || c.is_ascii_whitespace())
                .unwrap_or(rest.len())
        };
        let (word, tail) = rest.split_at(length);
        tokens.push(SelectorToken { kind: kind_of(word), text: word.to_owned() });
        rest = tail;
    }
    tokens.push(SelectorToken { kind: TokenKind::End, text: String::new() });
    tokens
}

/// Returns the length of the operator or separator at the beginning of a text.
fn special_length(rest: &str) -> usize {
    if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 }
}

/// Returns the kind of a token.
fn kind_of(word: &str) -> TokenKind {
    match word {
        "in" => TokenKind::In,
        "notin" => TokenKind::NotIn,
        "=" | "==" => TokenKind::Equal,
        "!=" => TokenKind::NotEqual,
        ">" => TokenKind::Greater,
        "<" => TokenKind::Less,
        "!" => TokenKind::Not,
        "," => TokenKind::Comma,
        "(" => TokenKind::Open,
        ")" => TokenKind::Close,
        // A special character that is no operator alone.
        _ if word.starts_with(SPECIAL) => TokenKind::Junk,
        _ => TokenKind::Word,
    }
}

/// A parser with a single token of lookahead.
struct Parser {
    tokens: Vec<SelectorToken>,
    at: usize,
}

impl Parser {
    /// Returns the token at the cursor; keywords count as words unless an operator is expected.
    fn peek(&self, operator: bool) -> SelectorToken {
        let token = self.tokens.get(self.at).or(self.tokens.last()).cloned();
        let mut token =
            token.unwrap_or(SelectorToken { kind: TokenKind::End, text: String::new() });
        if !operator && matches!(token.kind, TokenKind::In | TokenKind::NotIn) {
            token.kind = TokenKind::Word;
        }
        token
    }

    /// Consumes a token.
    fn next(&mut self, operator: bool) -> SelectorToken {
        let token = self.peek(operator);
        self.at += 1;
        token
    }

    /// Parses a whole selector.
    fn parse(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.peek(false);
            match token.kind {
                TokenKind::Word | TokenKind::Not => {
                    let parsed = self.requirement();
                    requirements
                        .push(parsed.map_err(|why| format!("unable to parse requirement: {why}"))?);
                    if self.separator()? {
                        return Ok(LabelSelector { requirements });
                    }
                }
                TokenKind::End => return Ok(LabelSelector { requirements }),
                _ => {
                    let text = token.text;
                    return Err(format!(
                        "found '{text}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
    }

    /// Consumes a separator; returns whether the selector ends here.
    fn separator(&mut self) -> Result<bool, String> {
        let token = self.next(false);
        match token.kind {
            TokenKind::End => Ok(true),
            TokenKind::Comma => {
                let next = self.peek(false);
                if matches!(next.kind, TokenKind::Word | TokenKind::Not) {
                    Ok(false)
                } else {
                    Err(format!("found '{}', expected: identifier after ','", next.text))
                }
            }
            _ => Err(format!("found '{}', expected: ',' or 'end of string'", token.text)),
        }
    }

    /// Parses a requirement.
    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next(false);
        let absent = token.kind == TokenKind::Not;
        if absent {
            token = self.next(false);
        }
        if token.kind != TokenKind::Word {
            return Err(format!("found '{}', expected: identifier", token.text));
        }
        let key = token.text;
        if let Some(why) = names::qualified(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        // A key alone asks for the existence of the label.
        let ends = matches!(self.peek(false).kind, TokenKind::End | TokenKind::Comma);
        let operator = match (absent, ends) {
            (true, _) => Some(Operator::Absent),
            (false, true) => Some(Operator::Exists),
            (false, false) => None,
        };
        if let Some(operator) = operator {
            return Ok(Requirement { key, operator, values: BTreeSet::new() });
        }
        self.operation(key)
    }

    /// Parses the operator and the values of a requirement.
    fn operation(&mut self, key: String) -> Result<Requirement, String> {
        let token = self.next(true);
        let operator = match token.kind {
            TokenKind::In | TokenKind::Equal => Operator::In,
            TokenKind::NotIn | TokenKind::NotEqual => Operator::NotIn,
            TokenKind::Greater => Operator::Greater,
            TokenKind::Less => Operator::Less,
            _ => {
                let text = token.text;
                return Err(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        let values = if matches!(token.kind, TokenKind::In | TokenKind::NotIn) {
            self.values()?
        } else {
            self.value()?
        };
        if matches!(operator, Operator::Greater | Operator::Less) {
            check_integer(&values)?;
        }
        for (index, value) in values.iter().enumerate() {
            if let Some(why) = names::label_value(value).first() {
                return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}"));
            }
        }
        Ok(Requirement { key, operator, values })
    }

    /// Parses a single value; an absent value is the empty text.
    fn value(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.peek(false).kind, TokenKind::End | TokenKind::Comma) {
            return Ok(BTreeSet::from([String::new()]));
        }
        let token = self.next(false);
        if token.kind == TokenKind::Word {
            return Ok(BTreeSet::from([token.text]));
        }
        Err(format!("found '{}', expected: identifier", token.text))
    }

    /// Parses a list of values in parentheses.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let token = self.next(false);
        if token.kind != TokenKind::Open {
            return Err(format!("found '{}' expected: '('", token.text));
        }
        let token = self.peek(false);
        match token.kind {
            TokenKind::Close => {
                self.next(false);
                Ok(BTreeSet::from([String::new()]))
            }
            TokenKind::Word | TokenKind::Comma => {
                let values = self.list()?;
                let close = self.next(false);
                if close.kind == TokenKind::Close {
                    Ok(values)
                } else {
                    Err(format!("found '{}', expected: ')'", close.text))
                }
            }
            _ => Err(format!("found '{}', expected: ',', ')' or identifier", token.text)),
        }
    }

    /// Parses the values between the parentheses; an absent value is the empty text.
    fn list(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            let token = self.next(false);
            let next = self.peek(false);
            match token.kind {
                TokenKind::Word => {
                    values.insert(token.text);
                    match next.kind {
                        TokenKind::Comma => {}
                        TokenKind::Close => return Ok(values),
                        _ => return Err(format!("found '{}', expected: ',' or ')'", next.text)),
                    }
                }
                TokenKind::Comma => {
                    // A comma at the beginning stands behind an empty value.
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    if matches!(next.kind, TokenKind::Close | TokenKind::Comma) {
                        values.insert(String::new());
                    }
                    match next.kind {
                        TokenKind::Close => return Ok(values),
                        TokenKind::Comma => self.at += 1,
                        _ => {}
                    }
                }
                _ => return Err(format!("found '{}', expected: ',', or identifier", token.text)),
            }
        }
    }
}

/// Checks that values are integers, as `>` and `<` need them.
fn check_integer(values: &BTreeSet<String>) -> Result<(), String> {
    for value in values {
        if value.parse::<i64>().is_err() {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            return Err(format!("values[0]: Invalid value: {value:?}: {why}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(selector: &str, labels: Value) -> bool {
        let object = json!({"metadata": {"labels": labels}});
        LabelSelector::parse(selector).unwrap().matches(&object)
    }

    #[test]
    fn negative_operators_match_objects_without_the_label() {
        for (selector, without, empty, b, c) in [
            ("k=b", false, false, true, false),
            ("k==b", false, false, true, false),
            ("k!=b", true, true, false, true),
            ("k in (b,c)", false, false, true, true),
            ("k notin (b, c)", true, true, false, false),
            ("k", false, true, true, true),
            ("!k", true, false, false, false),
            ("", true, true, true, true),
            ("k=", false, true, false, false),
            ("k in ()", false, true, false, false),
            ("k in (,b)", false, true, true, false),
        ] {
            let found = [json!({}), json!({"k": ""}), json!({"k": "b"}), json!({"k": "c"})]
                .map(|labels| matches(selector, labels));
            assert_eq!(found, [without, empty, b, c], "{selector}");
        }
    }

    #[test]
    fn numbers_compare_and_keywords_may_be_keys() {
        assert!(matches("k>5", json!({"k": "6"})));
        assert!(!matches("k>5", json!({"k": "5"})));
        assert!(matches("in in (in)", json!({"in": "in"})));
        assert!(matches("a=1,b!=2", json!({"a": "1", "b": "3"})));
    }

    #[test]
    fn errors_read_as_upstream_words_them() {
        for (text, error) in [
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("k=1 2", "found '2', expected: ',' or 'end of string'"),
            ("=1", "found '=', expected: !, identifier, or 'end of string'"),
            ("k,", "found '', expected: identifier after ','"),
            ("k in 1", "unable to parse requirement: found '1' expected: '('"),
            ("k in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err(), error, "{text}");
        }
        for legal in ["k==", "k in ()", "k in (,1)", "k>5"] {
            assert!(LabelSelector::parse(legal).is_ok(), "{legal}");
        }
    }
}
