//! Reports of syntax errors and recovery from them, with the rules and limits of ANTLR and cel-go.

use super::engine::{Abort, Engine, ParseResult, RecognitionError};
use super::grammar::{NETWORK, StateId, StateKind, TokenSet, set};
use crate::syntax::lexer::{EOF, Token, token_name};

impl Engine<'_> {
    pub(super) fn syntax_error(&mut self, offset: u32, message: &str) -> ParseResult<()> {
        let limit = self.options.error_reporting_limit;
        if self.reports >= limit {
            self.issues.report(offset, format!("Syntax error: More than {limit} syntax errors"));
            return Err(Abort);
        }
        self.reports += 1;
        self.issues.report(offset, format!("Syntax error: {message}"));
        Ok(())
    }

    pub(super) fn report_match(&mut self) {
        self.recovering = false;
        self.last_error_index = None;
        self.last_error_states.clear();
    }

    fn begin_error(&mut self) -> bool {
        !std::mem::replace(&mut self.recovering, true)
    }

    pub(super) fn report(&mut self, failure: &RecognitionError) -> ParseResult<()> {
        if !self.begin_error() {
            return Ok(());
        }
        match failure {
            RecognitionError::Mismatch => {
                let token = self.token(self.at)?;
                let expected = set_text(self.expected_from(self.state));
                let message =
                    format!("mismatched input {} expecting {expected}", self.display(token));
                self.syntax_error(token.offset, &message)
            }
            RecognitionError::NoViable { start, offending } => {
                let (start, end) = (self.token(*start)?, self.token(*offending)?);
                let input = match start.kind {
                    EOF => "<EOF>".to_owned(),
                    _ => self.text_of_tokens(start.start, end.end),
                };
                let message = no_viable_message(&input);
                self.syntax_error(end.offset, &message)
            }
        }
    }

    fn display(&self, token: Token) -> String {
        match token.kind {
            EOF => "'<EOF>'".to_owned(),
            _ => quoted(self.text.get(token.start..token.end).unwrap_or_default()),
        }
    }

    fn report_unwanted(&mut self) -> ParseResult<()> {
        if !self.begin_error() {
            return Ok(());
        }
        let token = self.token(self.at)?;
        let expected = set_text(self.expected_from(self.state));
        let message = format!("extraneous input {} expecting {expected}", self.display(token));
        self.syntax_error(token.offset, &message)
    }

    fn count_attempt(&mut self) -> ParseResult<()> {
        let limit = self.options.error_recovery_limit;
        self.recovery_attempts += 1;
        if self.recovery_attempts <= limit {
            return Ok(());
        }
        let offset = self.token(self.at)?.offset;
        self.syntax_error(offset, &format!("error recovery attempt limit exceeded: {limit}"))?;
        Err(Abort)
    }

    pub(super) fn recover(&mut self) -> ParseResult<()> {
        self.count_attempt()?;
        let mut consumed = 0;
        if self.last_error_index == Some(self.at) && self.last_error_states.contains(&self.state) {
            self.consume()?;
            consumed = 1;
        }
        self.last_error_index = Some(self.at);
        self.last_error_states.push(self.state);
        let limit = self.options.error_recovery_token_lookahead_limit;
        self.consume_until(self.recovery_set(), Some((consumed, limit)))
    }

    fn recovery_set(&self) -> TokenSet {
        let follows = self.frames.iter().filter_map(|frame| frame.caller);
        follows.fold(0, |all, (_, follow)| all | NETWORK.states[follow].next)
    }

    fn consume_until(&mut self, stop: TokenSet, limit: Option<(usize, usize)>) -> ParseResult<()> {
        let mut consumed = limit.map_or(0, |(already, _)| already);
        loop {
            let next = self.peek(0)?;
            if next == EOF || stop & set(next) != 0 {
                return Ok(());
            }
            if let Some((_, most)) = limit.filter(|(_, most)| consumed >= *most) {
                return self
                    .abort(format!("error recovery token lookahead limit exceeded: {most}"));
            }
            consumed += 1;
            self.consume()?;
        }
    }

    /// Handles a token that does not fit before a choice or a round of a loop.
    pub(super) fn sync(&mut self, kind: StateKind) -> ParseResult<Result<(), RecognitionError>> {
        let next = NETWORK.states[self.state].next;
        if self.recovering || next & (set(self.peek(0)?) | super::grammar::EPSILON) != 0 {
            return Ok(Ok(()));
        }
        if !matches!(kind, StateKind::LoopBack(..) | StateKind::PlusBack(_)) {
            return Ok(if self.delete_token()? { Ok(()) } else { Err(RecognitionError::Mismatch) });
        }
        self.report_unwanted()?;
        self.consume_until(self.expected_from(self.state) | self.recovery_set(), None)?;
        Ok(Ok(()))
    }

    /// Skips the current token if the next token is expected.
    fn delete_token(&mut self) -> ParseResult<bool> {
        if self.expected_from(self.state) & set(self.peek(1)?) == 0 {
            return Ok(false);
        }
        self.report_unwanted()?;
        self.consume()?;
        self.report_match();
        Ok(true)
    }

    /// Recovers from a token that does not match: skips it, or acts as if the expected token were
    /// there.
    pub(super) fn recover_inline(
        &mut self,
        to: StateId,
    ) -> ParseResult<Result<Token, RecognitionError>> {
        self.count_attempt()?;
        if self.delete_token()? {
            let token = self.token(self.at)?;
            self.consume()?;
            return Ok(Ok(token));
        }
        let current = self.token(self.at)?;
        if self.expected_from(to) & set(current.kind) == 0 {
            return Ok(Err(RecognitionError::Mismatch));
        }
        if self.begin_error() {
            let expected = set_text(self.expected_from(self.state));
            let message = format!("missing {expected} at {}", self.display(current));
            self.syntax_error(current.offset, &message)?;
        }
        let place = match current.kind {
            EOF if self.at > 0 => self.token(self.at - 1)?,
            _ => current,
        };
        Ok(Ok(Token { kind: EOF, offset: place.offset, start: place.start, end: place.start }))
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}

/// Message of a failed choice. cel-go words a keyword behind a character, as in `a.true`, as a
/// mismatch.
fn no_viable_message(input: &str) -> String {
    let mut rest = input.chars();
    let first = rest.next();
    match rest.as_str() {
        word @ ("true" | "false" | "null")
            if first.is_some_and(|c| !matches!(c, '\t' | '\n' | '\r')) =>
        {
            format!("mismatched input '{word}' expecting IDENTIFIER")
        }
        _ => format!("no viable alternative at input {}", quoted(input)),
    }
}

fn set_text(tokens: TokenSet) -> String {
    let names: Vec<&str> = (0..38).filter(|t| tokens & set(*t) != 0).map(token_name).collect();
    match names.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("{{{}}}", names.join(", ")),
    }
}
