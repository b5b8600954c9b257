//! The machine that walks the grammar's network over the tokens, with an explicit stack, and builds
//! the nodes.

use super::ParserOptions;
use super::grammar::{
    EPSILON, Edge, GrammarDecision, GrammarRule, Label, NETWORK, RULES, StateId, StateKind,
    TokenSet, set,
};
use crate::syntax::issues::Issues;
use crate::syntax::lexer::{EOF, Lexer, Token, TokenType};

pub(super) type NodeId = usize;

/// A node of the concrete syntax.
#[derive(Debug)]
pub(super) struct SyntaxNode {
    pub(super) rule: GrammarRule,
    /// The alternative of the rule from 1; 0 when an error came before the choice.
    pub(super) alternative: u8,
    pub(super) start: Token,
    /// Number of bytes of the tokens.
    pub(super) len: u32,
    pub(super) labels: Vec<(Label, Token)>,
    pub(super) children: Vec<NodeId>,
    first: usize,
}

impl SyntaxNode {
    pub(super) fn label(&self, label: Label) -> Option<Token> {
        self.labels.iter().find(|(l, _)| *l == label).map(|(_, token)| *token)
    }

    pub(super) fn all(&self, label: Label) -> impl Iterator<Item = Token> {
        self.labels.iter().filter(move |(l, _)| *l == label).map(|(_, token)| *token)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) rule: GrammarRule,
    pub(super) precedence: u8,
    /// State that called the rule, and the state after the rule; `None` for the outermost rule.
    pub(super) caller: Option<(StateId, StateId)>,
    pub(super) node: NodeId,
}

/// End of the parse before the end of the input. The error has been reported.
#[derive(Debug)]
pub(super) struct Abort;

/// Error of a rule, from which it recovers.
#[derive(Debug)]
pub(super) enum RecognitionError {
    Mismatch,
    NoViable { start: usize, offending: usize },
}

pub(super) type ParseResult<T> = Result<T, Abort>;

#[derive(Debug)]
pub(super) struct Engine<'s> {
    pub(super) text: &'s str,
    lexer: Lexer<'s>,
    tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) state: StateId,
    pub(super) frames: Vec<Frame>,
    pub(super) nodes: Vec<SyntaxNode>,
    pub(super) issues: Issues,
    pub(super) options: &'s ParserOptions,
    pub(super) reports: usize,
    pub(super) recovering: bool,
    pub(super) last_error_index: Option<usize>,
    pub(super) last_error_states: Vec<StateId>,
    pub(super) recovery_attempts: usize,
    depth: [usize; RULES],
    /// Ranges in bytes that are part of no token.
    skipped: Vec<(usize, usize)>,
}

impl<'s> Engine<'s> {
    pub(super) fn new(text: &'s str, issues: Issues, options: &'s ParserOptions) -> Engine<'s> {
        Engine {
            text,
            lexer: Lexer::new(text),
            tokens: Vec::new(),
            at: 0,
            state: 0,
            frames: Vec::new(),
            nodes: Vec::new(),
            issues,
            options,
            reports: 0,
            recovering: false,
            last_error_index: None,
            last_error_states: Vec::new(),
            recovery_attempts: 0,
            depth: [0; RULES],
            skipped: Vec::new(),
        }
    }

    /// Parses the whole input; returns the outermost node.
    pub(super) fn parse(&mut self) -> ParseResult<NodeId> {
        self.enter(GrammarRule::Start, 0, None)?;
        loop {
            if NETWORK.states[self.state].kind == StateKind::Stop {
                if let Some(root) = self.leave() {
                    return Ok(root);
                }
            } else if let Err(failure) = self.advance()? {
                self.report(&failure)?;
                self.recover()?;
                if let Some(root) = self.leave() {
                    return Ok(root);
                }
            }
        }
    }

    /// The token at an index; the end of the input behind the last token.
    pub(super) fn token(&mut self, index: usize) -> ParseResult<Token> {
        loop {
            if let Some(token) = self.tokens.get(index) {
                return Ok(*token);
            }
            if let Some(last) = self.tokens.last().filter(|token| token.kind == EOF) {
                return Ok(*last);
            }
            match self.lexer.next_token() {
                Ok(token) => self.tokens.push(token),
                Err(error) => {
                    self.skipped.push((error.start, error.end));
                    self.syntax_error(error.offset, &error.message)?;
                }
            }
        }
    }

    /// Type of the token that is `ahead` tokens after the current one.
    pub(super) fn peek(&mut self, ahead: usize) -> ParseResult<TokenType> {
        Ok(self.token(self.at + ahead)?.kind)
    }

    pub(super) fn consume(&mut self) -> ParseResult<()> {
        if self.token(self.at)?.kind != EOF {
            self.at += 1;
            self.token(self.at)?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        rule: GrammarRule,
        precedence: u8,
        caller: Option<(StateId, StateId)>,
    ) -> ParseResult<()> {
        let start = self.token(self.at)?;
        self.depth[rule as usize] += 1;
        if self.depth[rule as usize] > self.options.max_recursion_depth {
            let limit = self.options.max_recursion_depth;
            return self.abort(format!("expression recursion limit exceeded: {limit}"));
        }
        let node = self.new_node(rule, start, self.at);
        self.frames.push(Frame { rule, precedence, caller, node });
        self.state = NETWORK.starts[rule as usize];
        Ok(())
    }

    pub(super) fn abort<T>(&mut self, message: String) -> ParseResult<T> {
        self.issues.report_without_position(message);
        Err(Abort)
    }

    fn new_node(&mut self, rule: GrammarRule, start: Token, first: usize) -> NodeId {
        let (labels, children) = (Vec::new(), Vec::new());
        self.nodes.push(SyntaxNode {
            rule,
            alternative: 0,
            start,
            len: 0,
            labels,
            children,
            first,
        });
        self.nodes.len() - 1
    }

    /// Ends the innermost rule; returns the root when that was the outermost rule.
    fn leave(&mut self) -> Option<NodeId> {
        let frame = self.frames.pop()?;
        self.depth[frame.rule as usize] -= 1;
        self.finish_node(frame.node);
        let Some((_, follow)) = frame.caller else {
            return Some(frame.node);
        };
        if let Some(parent) = self.frames.last() {
            self.nodes[parent.node].children.push(frame.node);
        }
        self.state = follow;
        None
    }

    fn finish_node(&mut self, node: NodeId) {
        let first = self.nodes[node].first;
        let tokens = self.tokens.get(first..self.at).unwrap_or_default();
        self.nodes[node].len = match tokens {
            // White space between a sign and its number does not count.
            [sign, number] => sign.len() + number.len(),
            _ => tokens.first().zip(tokens.last()).map_or(0, |(a, b)| (b.end - a.start) as u32),
        };
    }

    /// The innermost node.
    fn node(&mut self) -> Option<&mut SyntaxNode> {
        let frame = self.frames.last()?;
        self.nodes.get_mut(frame.node)
    }

    pub(super) fn add_label(&mut self, label: Label, token: Token) {
        if let (true, Some(node)) = (label != Label::None, self.node()) {
            node.labels.push((label, token));
        }
    }

    /// Makes the current node the first child of a new node: a step of a left-recursive rule.
    fn wrap_node(&mut self) {
        let Some(frame) = self.frames.last().copied() else {
            return;
        };
        self.finish_node(frame.node);
        let (start, first) = (self.nodes[frame.node].start, self.nodes[frame.node].first);
        let node = self.new_node(frame.rule, start, first);
        self.nodes[node].children.push(frame.node);
        if let Some(frame) = self.frames.last_mut() {
            frame.node = node;
        }
    }

    /// One step from the current state.
    pub(super) fn advance(&mut self) -> ParseResult<Result<(), RecognitionError>> {
        let state = &NETWORK.states[self.state];
        match state.kind {
            StateKind::Basic => self.basic(&state.edges),
            StateKind::Stop => Ok(Ok(())),
            StateKind::PlusStart => {
                if let Err(failure) = self.sync(state.kind)? {
                    return Ok(Err(failure));
                }
                Ok(self.follow(1))
            }
            StateKind::Choice(decision)
            | StateKind::LoopEntry(decision)
            | StateKind::PlusBack(decision) => {
                if let Err(failure) = self.sync(state.kind)? {
                    return Ok(Err(failure));
                }
                self.choose(decision)
            }
            StateKind::LoopBack(decision, entry) => {
                if let Err(failure) = self.sync(state.kind)? {
                    return Ok(Err(failure));
                }
                self.state = entry;
                self.choose(decision)
            }
        }
    }

    fn choose(&mut self, decision: GrammarDecision) -> ParseResult<Result<(), RecognitionError>> {
        let alternative = match self.predict(decision)? {
            Ok(alternative) => alternative,
            Err(failure) => return Ok(Err(failure)),
        };
        let wraps = match decision {
            GrammarDecision::RelationLoop => alternative == 1,
            GrammarDecision::CalcOperator | GrammarDecision::MemberSuffix => true,
            _ => false,
        };
        if wraps {
            self.wrap_node();
        }
        if let (false, Some(node)) =
            (matches!(decision, GrammarDecision::Enter(_) | GrammarDecision::Comma(_)), self.node())
            && !matches!(
                decision,
                GrammarDecision::MemberLoop
                    | GrammarDecision::MinusLoop
                    | GrammarDecision::CalcLoop
            )
        {
            node.alternative = alternative;
        }
        Ok(self.follow(alternative))
    }

    fn follow(&mut self, alternative: u8) -> Result<(), RecognitionError> {
        match NETWORK.states[self.state].edges.get(usize::from(alternative) - 1) {
            Some(Edge::Epsilon(to)) => {
                self.state = *to;
                Ok(())
            }
            _ => Err(RecognitionError::Mismatch),
        }
    }

    fn basic(&mut self, edges: &[Edge]) -> ParseResult<Result<(), RecognitionError>> {
        match edges.first() {
            Some(Edge::Tokens(tokens, label, to)) => {
                let token = self.token(self.at)?;
                let found = if tokens & set(token.kind) != 0 {
                    self.report_match();
                    self.consume()?;
                    token
                } else {
                    match self.recover_inline(*to)? {
                        Ok(token) => token,
                        Err(failure) => return Ok(Err(failure)),
                    }
                };
                self.add_label(*label, found);
                self.state = *to;
            }
            Some(Edge::Call(rule, precedence, to)) => {
                self.enter(*rule, *precedence, Some((self.state, *to)))?;
            }
            Some(Edge::Epsilon(to)) => self.state = *to,
            None => {}
        }
        Ok(Ok(()))
    }

    /// Text between two places, without characters that belong to no token.
    pub(super) fn text_of_tokens(&self, start: usize, end: usize) -> String {
        let mut text = String::new();
        let mut at = start;
        let first = self.skipped.partition_point(|(from, _)| *from < start);
        let skipped = self.skipped.iter().skip(first).take_while(|(from, _)| *from < end);
        for (from, to) in skipped {
            text.push_str(self.text.get(at..*from).unwrap_or_default());
            at = *to;
        }
        text.push_str(self.text.get(at..end).unwrap_or_default());
        text
    }

    /// The tokens that can come next from a state of the innermost rule.
    pub(super) fn expected_from(&self, state: StateId) -> TokenSet {
        let mut expected = NETWORK.states[state].next;
        for frame in self.frames.iter().rev() {
            if expected & EPSILON == 0 {
                return expected;
            }
            match frame.caller {
                Some((_, follow)) => expected = (expected & !EPSILON) | NETWORK.states[follow].next,
                None => return (expected & !EPSILON) | set(EOF),
            }
        }
        expected & !EPSILON
    }
}
