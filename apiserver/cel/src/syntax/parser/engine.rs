//! The machine that walks the grammar's network over the tokens, with an explicit stack, and builds the nodes.

use super::ParserOptions;
use super::grammar::{
    Decision, EPSILON, Edge, Kind, Label, NETWORK, RULES, Rule, StateId, TokenSet, set,
};
use crate::syntax::issues::Issues;
use crate::syntax::lexer::{EOF, Lexer, Token, TokenType};

pub(super) type NodeId = usize;

/// A node of the concrete syntax.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) rule: Rule,
    /// The alternative of the rule from 1; 0 when an error came before the choice.
    pub(super) alternative: u8,
    pub(super) start: Token,
    /// Number of bytes of the tokens.
    pub(super) len: u32,
    pub(super) labels: Vec<(Label, Token)>,
    pub(super) children: Vec<NodeId>,
    first: usize,
}

impl Node {
    pub(super) fn label(&self, label: Label) -> Option<Token> {
        self.labels.iter().find(|(l, _)| *l == label).map(|(_, token)| *token)
    }

    pub(super) fn all(&self, label: Label) -> impl Iterator<Item = Token> {
        self.labels.iter().filter(move |(l, _)| *l == label).map(|(_, token)| *token)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) rule: Rule,
    pub(super) precedence: u8,
    /// State that called the rule, and the one to go on at; `None` for the outermost rule.
    pub(super) caller: Option<(StateId, StateId)>,
    pub(super) node: NodeId,
}

/// End of the parse before the end of the input. The error has been reported.
#[derive(Debug)]
pub(super) struct Abort;

/// Error of a rule, from which it recovers.
#[derive(Debug)]
pub(super) enum Failure {
    Mismatch,
    NoViable { start: usize, offending: usize },
}

pub(super) type Step<T> = Result<T, Abort>;

#[derive(Debug)]
pub(super) struct Engine<'s> {
    pub(super) text: &'s str,
    lexer: Lexer<'s>,
    tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) state: StateId,
    pub(super) frames: Vec<Frame>,
    pub(super) nodes: Vec<Node>,
    pub(super) issues: Issues,
    pub(super) options: &'s ParserOptions,
    pub(super) reports: usize,
    pub(super) recovering: bool,
    pub(super) last_error_index: Option<usize>,
    pub(super) last_error_states: Vec<StateId>,
    pub(super) recovery_attempts: usize,
    depth: [usize; RULES],
    /// While looking ahead: the number of frames below which a match ends it.
    pub(super) lookahead_base: Option<usize>,
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
            lookahead_base: None,
        }
    }

    /// Parses the whole input; returns the outermost node.
    pub(super) fn parse(&mut self) -> Step<NodeId> {
        self.enter(Rule::Start, 0, None)?;
        loop {
            if NETWORK.states[self.state].kind == Kind::Stop {
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

    /// The token at an index; the end of the input behind it.
    pub(super) fn token(&mut self, index: usize) -> Step<Token> {
        loop {
            if let Some(token) = self.tokens.get(index) {
                return Ok(*token);
            }
            if let Some(last) = self.tokens.last().filter(|token| token.kind == EOF) {
                return Ok(*last);
            }
            match self.lexer.next_token() {
                Ok(token) => self.tokens.push(token),
                Err(error) => self.syntax_error(error.offset, &error.message)?,
            }
        }
    }

    /// Type of the token that is `ahead` tokens after the current one.
    pub(super) fn peek(&mut self, ahead: usize) -> Step<TokenType> {
        Ok(self.token(self.at + ahead)?.kind)
    }

    pub(super) fn consume(&mut self) -> Step<()> {
        if self.token(self.at)?.kind != EOF {
            self.at += 1;
            self.token(self.at)?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        rule: Rule,
        precedence: u8,
        caller: Option<(StateId, StateId)>,
    ) -> Step<()> {
        let start = self.token(self.at)?;
        let mut node = 0;
        if self.lookahead_base.is_none() {
            self.depth[rule as usize] += 1;
            if self.depth[rule as usize] > self.options.max_recursion_depth {
                let limit = self.options.max_recursion_depth;
                return self.abort(format!("expression recursion limit exceeded: {limit}"));
            }
            node = self.new_node(rule, start, self.at);
        }
        self.frames.push(Frame { rule, precedence, caller, node });
        self.state = NETWORK.starts[rule as usize];
        Ok(())
    }

    pub(super) fn abort<T>(&mut self, message: String) -> Step<T> {
        self.issues.report_without_position(message);
        Err(Abort)
    }

    fn new_node(&mut self, rule: Rule, start: Token, first: usize) -> NodeId {
        let (labels, children) = (Vec::new(), Vec::new());
        self.nodes.push(Node { rule, alternative: 0, start, len: 0, labels, children, first });
        self.nodes.len() - 1
    }

    /// Ends the innermost rule; returns the root when it was the outermost one.
    fn leave(&mut self) -> Option<NodeId> {
        let frame = self.frames.pop()?;
        if self.lookahead_base.is_none() {
            self.depth[frame.rule as usize] -= 1;
            self.finish_node(frame.node);
        }
        let Some((_, follow)) = frame.caller else {
            return Some(frame.node);
        };
        if let (None, Some(parent)) = (self.lookahead_base, self.frames.last()) {
            self.nodes[parent.node].children.push(frame.node);
        }
        self.state = follow;
        None
    }

    fn finish_node(&mut self, node: NodeId) {
        let first = self.nodes[node].first;
        let tokens = self.tokens.get(first..self.at).unwrap_or_default();
        // The lengths of unary chains and nested rules add up only once per node that reports need.
        if let (Some(a), Some(b)) = (tokens.first(), tokens.last()) {
            self.nodes[node].len = (b.end - a.start) as u32;
        }
    }

    /// The innermost node, unless the machine looks ahead.
    fn node(&mut self) -> Option<&mut Node> {
        let frame = self.frames.last().filter(|_| self.lookahead_base.is_none())?;
        self.nodes.get_mut(frame.node)
    }

    pub(super) fn add_label(&mut self, label: Label, token: Token) {
        if let (true, Some(node)) = (label != Label::None, self.node()) {
            node.labels.push((label, token));
        }
    }

    /// Makes the current node the first child of a new one: a step of a left-recursive rule.
    fn wrap_node(&mut self) {
        let Some(frame) = self.frames.last().copied().filter(|_| self.lookahead_base.is_none())
        else {
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
    pub(super) fn advance(&mut self) -> Step<Result<(), Failure>> {
        let state = &NETWORK.states[self.state];
        match state.kind {
            Kind::Basic => self.basic(&state.edges),
            Kind::Stop => Ok(Ok(())),
            Kind::PlusStart => {
                if let Err(failure) = self.sync(state.kind)? {
                    return Ok(Err(failure));
                }
                Ok(self.follow(1))
            }
            Kind::Choice(decision) | Kind::LoopEntry(decision) | Kind::PlusBack(decision) => {
                if let Err(failure) = self.sync(state.kind)? {
                    return Ok(Err(failure));
                }
                self.choose(decision)
            }
            Kind::LoopBack(decision, entry) => {
                if let Err(failure) = self.sync(state.kind)? {
                    return Ok(Err(failure));
                }
                self.state = entry;
                self.choose(decision)
            }
        }
    }

    fn choose(&mut self, decision: Decision) -> Step<Result<(), Failure>> {
        let alternative = match self.predict(decision)? {
            Ok(alternative) => alternative,
            Err(failure) => return Ok(Err(failure)),
        };
        let wraps = match decision {
            Decision::RelationLoop => alternative == 1,
            Decision::CalcOperator | Decision::MemberSuffix => true,
            _ => false,
        };
        if wraps {
            self.wrap_node();
        }
        if let (false, Some(node)) =
            (matches!(decision, Decision::Enter(_) | Decision::Comma(_)), self.node())
            && !matches!(decision, Decision::MemberLoop | Decision::MinusLoop | Decision::CalcLoop)
        {
            node.alternative = alternative;
        }
        Ok(self.follow(alternative))
    }

    fn follow(&mut self, alternative: u8) -> Result<(), Failure> {
        match NETWORK.states[self.state].edges.get(usize::from(alternative) - 1) {
            Some(Edge::Epsilon(to)) => {
                self.state = *to;
                Ok(())
            }
            _ => Err(Failure::Mismatch),
        }
    }

    fn basic(&mut self, edges: &[Edge]) -> Step<Result<(), Failure>> {
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

    /// Whether what follows a negative number, from the token at `at`, can be parsed up to and with the first
    /// token behind the member expression.
    pub(super) fn number_is_viable(&mut self, member_end: StateId) -> Step<bool> {
        let saved = (self.at, self.state, self.frames.clone(), self.recovering);
        self.lookahead_base = Some(self.frames.len());
        self.at += 2;
        let member = NETWORK.starts[Rule::Member as usize];
        if let Some(Edge::Call(_, _, after_primary)) = NETWORK.states[member].edges.first() {
            let caller = Some((self.state, member_end));
            self.frames.push(Frame { rule: Rule::Member, precedence: 0, caller, node: 0 });
            self.state = *after_primary;
        }
        let result = self.look_ahead();
        self.lookahead_base = None;
        (self.at, self.state, self.frames, self.recovering) = saved;
        result
    }

    fn look_ahead(&mut self) -> Step<bool> {
        let base = self.lookahead_base.unwrap_or_default();
        loop {
            let state = &NETWORK.states[self.state];
            if state.kind == Kind::Stop {
                self.leave();
                continue;
            }
            let token = self.peek(0)?;
            if state.next & (set(token) | EPSILON) == 0 {
                return Ok(false);
            }
            if self.frames.len() < base && matches!(state.edges.first(), Some(Edge::Tokens(..))) {
                return Ok(true);
            }
            self.recovering = true;
            if self.advance()?.is_err() {
                return Ok(false);
            }
        }
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
