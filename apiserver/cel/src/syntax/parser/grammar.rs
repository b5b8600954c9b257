//! CEL's grammar as a transition network: states, and edges that match tokens or call rules.

use std::sync::LazyLock;

use crate::syntax::lexer::{self as t, TokenType};

pub(super) type StateId = usize;

/// Set of token types, one bit each.
pub(super) type TokenSet = u64;

/// Bit that stands for the end of the rule in a set of next tokens.
pub(super) const EPSILON: TokenSet = 1 << 63;

pub(super) const fn set(token: TokenType) -> TokenSet {
    1 << token
}

/// The rules of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarRule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldInit,
    OptField,
    MapInit,
    EscapeIdent,
    OptExpr,
    Literal,
}

pub(super) const RULES: usize = 17;

/// The part that a token plays in its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    None,
    Op,
    Opt,
    Id,
    Sign,
    Open,
    LeadingDot,
    Colon,
}

/// The choices of the grammar, each with a separate lookahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarDecision {
    /// Enter an optional part or another round of a loop if the next token begins it.
    Enter(TokenSet),
    RelationLoop,
    CalcLoop,
    CalcOperator,
    Unary,
    MinusLoop,
    MemberLoop,
    MemberSuffix,
    Primary,
    /// Another element or a trailing comma: the first tokens of an element.
    Comma(TokenSet),
    EscapeIdent,
    Literal,
}

/// Kinds of states; error recovery depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateKind {
    Basic,
    Choice(GrammarDecision),
    LoopEntry(GrammarDecision),
    LoopBack(GrammarDecision, StateId),
    PlusStart,
    PlusBack(GrammarDecision),
    Stop,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Edge {
    Epsilon(StateId),
    Tokens(TokenSet, Label, StateId),
    Call(GrammarRule, u8, StateId),
}

#[derive(Debug)]
pub(super) struct GrammarState {
    pub(super) kind: StateKind,
    pub(super) edges: Vec<Edge>,
    /// Tokens that can follow within the rule, with [`EPSILON`] if the rule can end here.
    pub(super) next: TokenSet,
}

/// The network of all rules.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) states: Vec<GrammarState>,
    pub(super) starts: [StateId; RULES],
}

enum El {
    T(TokenSet, Label),
    R(GrammarRule, u8),
    Opt(TokenSet, Vec<El>),
    Star(GrammarDecision, Vec<Vec<El>>, Option<GrammarDecision>),
    Plus(GrammarDecision, Vec<El>),
    Alt(GrammarDecision, Vec<Vec<El>>),
}

pub(super) static NETWORK: LazyLock<Network> = LazyLock::new(build);

pub(super) const UNARY_LITERALS: TokenSet = set(t::FLOAT) | set(t::INT);
const LITERALS: TokenSet = UNARY_LITERALS
    | set(t::UINT)
    | set(t::STRING)
    | set(t::BYTES)
    | set(t::TRUE)
    | set(t::FALSE)
    | set(t::NULL);
/// Tokens that begin a member expression.
pub(super) const MEMBER_FIRST: TokenSet = LITERALS
    | set(t::MINUS)
    | set(t::DOT)
    | set(t::IDENT)
    | set(t::LPAREN)
    | set(t::LBRACKET)
    | set(t::LBRACE);
const EXPR_FIRST: TokenSet = MEMBER_FIRST | set(t::EXCLAM);
const OPT_EXPR_FIRST: TokenSet = EXPR_FIRST | set(t::QUESTION);
const OPT_FIELD_FIRST: TokenSet = set(t::QUESTION) | set(t::IDENT) | set(t::ESC_IDENT);
pub(super) const RELATION_OPERATORS: TokenSet = 0b1111_1110;
pub(super) const FACTOR_OPERATORS: TokenSet = set(t::STAR) | set(t::SLASH) | set(t::PERCENT);
pub(super) const TERM_OPERATORS: TokenSet = set(t::PLUS) | set(t::MINUS);

fn tok(token: TokenType) -> El {
    El::T(set(token), Label::None)
}

fn lab(token: TokenType, label: Label) -> El {
    El::T(set(token), label)
}

fn question() -> El {
    El::Opt(set(t::QUESTION), vec![lab(t::QUESTION, Label::Opt)])
}

fn leading_dot() -> El {
    El::Opt(set(t::DOT), vec![lab(t::DOT, Label::LeadingDot)])
}

fn chain(operator: TokenType, rule: GrammarRule) -> Vec<El> {
    let round = vec![lab(operator, Label::Op), El::R(rule, 0)];
    vec![El::R(rule, 0), El::Star(GrammarDecision::Enter(set(operator)), vec![round], None)]
}

fn arguments() -> El {
    El::Opt(EXPR_FIRST, vec![El::R(GrammarRule::ExprList, 0)])
}

/// `open elements? ','? close`
fn literal_of(
    open: TokenType,
    first: TokenSet,
    elements: GrammarRule,
    close: TokenType,
) -> Vec<El> {
    vec![
        lab(open, Label::Op),
        El::Opt(first, vec![El::R(elements, 0)]),
        El::Opt(set(t::COMMA), vec![tok(t::COMMA)]),
        tok(close),
    ]
}

fn pairs(first: TokenSet, key: GrammarRule) -> Vec<El> {
    let pair = || vec![El::R(key, 0), lab(t::COLON, Label::Colon), El::R(GrammarRule::Expr, 0)];
    let mut round = vec![tok(t::COMMA)];
    round.extend(pair());
    let mut elements = pair();
    elements.push(El::Star(GrammarDecision::Comma(first), vec![round], None));
    elements
}

fn member_rule() -> Vec<El> {
    let id = || lab(t::IDENT, Label::Id);
    let select = vec![lab(t::DOT, Label::Op), question(), El::R(GrammarRule::EscapeIdent, 0)];
    let call = vec![tok(t::DOT), id(), lab(t::LPAREN, Label::Open), arguments(), tok(t::RPAREN)];
    let index = vec![
        lab(t::LBRACKET, Label::Op),
        question(),
        El::R(GrammarRule::Expr, 0),
        tok(t::RBRACKET),
    ];
    let suffixes = vec![select, call, index];
    vec![
        El::R(GrammarRule::Primary, 0),
        El::Star(GrammarDecision::MemberLoop, suffixes, Some(GrammarDecision::MemberSuffix)),
    ]
}

fn primary_rule() -> Vec<El> {
    let id = || lab(t::IDENT, Label::Id);
    let path = El::Star(GrammarDecision::Enter(set(t::DOT)), vec![vec![tok(t::DOT), id()]], None);
    let mut message = vec![leading_dot(), id(), path];
    message.extend(literal_of(t::LBRACE, OPT_FIELD_FIRST, GrammarRule::FieldInit, t::RBRACE));
    let call = vec![leading_dot(), id(), lab(t::LPAREN, Label::Op), arguments(), tok(t::RPAREN)];
    let alternatives = vec![
        vec![leading_dot(), id()],
        call,
        vec![tok(t::LPAREN), El::R(GrammarRule::Expr, 0), tok(t::RPAREN)],
        literal_of(t::LBRACKET, OPT_EXPR_FIRST, GrammarRule::ListInit, t::RBRACKET),
        literal_of(t::LBRACE, OPT_EXPR_FIRST, GrammarRule::MapInit, t::RBRACE),
        message,
        vec![El::R(GrammarRule::Literal, 0)],
    ];
    vec![El::Alt(GrammarDecision::Primary, alternatives)]
}

fn literal_rule() -> Vec<El> {
    let sign = || El::Opt(set(t::MINUS), vec![lab(t::MINUS, Label::Sign)]);
    let plain = |token| vec![lab(token, Label::Id)];
    let alternatives = vec![
        vec![sign(), lab(t::INT, Label::Id)],
        plain(t::UINT),
        vec![sign(), lab(t::FLOAT, Label::Id)],
        plain(t::STRING),
        plain(t::BYTES),
        plain(t::TRUE),
        plain(t::FALSE),
        plain(t::NULL),
    ];
    vec![El::Alt(GrammarDecision::Literal, alternatives)]
}

fn unary_rule() -> Vec<El> {
    let member = || El::R(GrammarRule::Member, 0);
    let not = El::Plus(GrammarDecision::Enter(set(t::EXCLAM)), vec![lab(t::EXCLAM, Label::Op)]);
    let negate = El::Plus(GrammarDecision::MinusLoop, vec![lab(t::MINUS, Label::Op)]);
    vec![El::Alt(
        GrammarDecision::Unary,
        vec![vec![member()], vec![not, member()], vec![negate, member()]],
    )]
}

fn definition(rule: GrammarRule) -> Vec<El> {
    let expr = || El::R(GrammarRule::Expr, 0);
    match rule {
        GrammarRule::Start => vec![expr(), tok(t::EOF)],
        GrammarRule::Expr => {
            let branches = vec![
                lab(t::QUESTION, Label::Op),
                El::R(GrammarRule::Or, 0),
                tok(t::COLON),
                El::R(GrammarRule::Expr, 0),
            ];
            vec![El::R(GrammarRule::Or, 0), El::Opt(set(t::QUESTION), branches)]
        }
        GrammarRule::Or => chain(t::LOGICAL_OR, GrammarRule::And),
        GrammarRule::And => chain(t::LOGICAL_AND, GrammarRule::Relation),
        GrammarRule::Relation => {
            let round = vec![El::T(RELATION_OPERATORS, Label::Op), El::R(GrammarRule::Relation, 2)];
            vec![
                El::R(GrammarRule::Calc, 0),
                El::Star(GrammarDecision::RelationLoop, vec![round], None),
            ]
        }
        GrammarRule::Calc => {
            let factor = vec![El::T(FACTOR_OPERATORS, Label::Op), El::R(GrammarRule::Calc, 3)];
            let term = vec![El::T(TERM_OPERATORS, Label::Op), El::R(GrammarRule::Calc, 2)];
            let inner = Some(GrammarDecision::CalcOperator);
            vec![
                El::R(GrammarRule::Unary, 0),
                El::Star(GrammarDecision::CalcLoop, vec![factor, term], inner),
            ]
        }
        GrammarRule::Unary => unary_rule(),
        GrammarRule::Member => member_rule(),
        GrammarRule::Primary => primary_rule(),
        GrammarRule::ExprList => {
            let round = vec![tok(t::COMMA), expr()];
            vec![expr(), El::Star(GrammarDecision::Enter(set(t::COMMA)), vec![round], None)]
        }
        GrammarRule::ListInit => {
            let round = vec![tok(t::COMMA), El::R(GrammarRule::OptExpr, 0)];
            vec![
                El::R(GrammarRule::OptExpr, 0),
                El::Star(GrammarDecision::Comma(OPT_EXPR_FIRST), vec![round], None),
            ]
        }
        GrammarRule::FieldInit => pairs(OPT_FIELD_FIRST, GrammarRule::OptField),
        GrammarRule::OptField => vec![question(), El::R(GrammarRule::EscapeIdent, 0)],
        GrammarRule::MapInit => pairs(OPT_EXPR_FIRST, GrammarRule::OptExpr),
        GrammarRule::EscapeIdent => {
            let names = vec![vec![lab(t::IDENT, Label::Id)], vec![lab(t::ESC_IDENT, Label::Id)]];
            vec![El::Alt(GrammarDecision::EscapeIdent, names)]
        }
        GrammarRule::OptExpr => vec![question(), expr()],
        GrammarRule::Literal => literal_rule(),
    }
}

const ALL_RULES: [GrammarRule; RULES] = [
    GrammarRule::Start,
    GrammarRule::Expr,
    GrammarRule::Or,
    GrammarRule::And,
    GrammarRule::Relation,
    GrammarRule::Calc,
    GrammarRule::Unary,
    GrammarRule::Member,
    GrammarRule::Primary,
    GrammarRule::ExprList,
    GrammarRule::ListInit,
    GrammarRule::FieldInit,
    GrammarRule::OptField,
    GrammarRule::MapInit,
    GrammarRule::EscapeIdent,
    GrammarRule::OptExpr,
    GrammarRule::Literal,
];

fn build() -> Network {
    let mut network = Network { states: Vec::new(), starts: [0; RULES] };
    for rule in ALL_RULES {
        let stop = network.state(StateKind::Stop);
        network.starts[rule as usize] = network.sequence(rule, definition(rule), stop);
    }
    network.compute_next();
    network
}

impl Network {
    fn state(&mut self, kind: StateKind) -> StateId {
        self.states.push(GrammarState { kind, edges: Vec::new(), next: 0 });
        self.states.len() - 1
    }

    /// Adds the states of a sequence that goes on to `end`; returns its first state.
    fn sequence(&mut self, rule: GrammarRule, elements: Vec<El>, end: StateId) -> StateId {
        elements.into_iter().rev().fold(end, |next, element| self.element(rule, element, next))
    }

    fn single(&mut self, kind: StateKind, edges: Vec<Edge>) -> StateId {
        let id = self.state(kind);
        self.states[id].edges = edges;
        id
    }

    fn element(&mut self, rule: GrammarRule, element: El, end: StateId) -> StateId {
        match element {
            El::T(tokens, label) => {
                self.single(StateKind::Basic, vec![Edge::Tokens(tokens, label, end)])
            }
            El::R(callee, precedence) => {
                self.single(StateKind::Basic, vec![Edge::Call(callee, precedence, end)])
            }
            El::Opt(first, body) => {
                let body = self.sequence(rule, body, end);
                let edges = vec![Edge::Epsilon(body), Edge::Epsilon(end)];
                self.single(StateKind::Choice(GrammarDecision::Enter(first)), edges)
            }
            El::Alt(decision, bodies) => self.alternatives(rule, decision, bodies, end),
            El::Star(decision, bodies, inner) => {
                let entry = self.state(StateKind::LoopEntry(decision));
                let back =
                    self.single(StateKind::LoopBack(decision, entry), vec![Edge::Epsilon(entry)]);
                let inner = inner.unwrap_or(GrammarDecision::Enter(0));
                let body = match <[_; 1]>::try_from(bodies) {
                    Ok([only]) => self.sequence(rule, only, back),
                    Err(bodies) => self.alternatives(rule, inner, bodies, back),
                };
                self.states[entry].edges = vec![Edge::Epsilon(body), Edge::Epsilon(end)];
                entry
            }
            El::Plus(decision, body) => {
                let start = self.state(StateKind::PlusStart);
                let edges = vec![Edge::Epsilon(start), Edge::Epsilon(end)];
                let back = self.single(StateKind::PlusBack(decision), edges);
                let body = self.sequence(rule, body, back);
                self.states[start].edges = vec![Edge::Epsilon(body)];
                start
            }
        }
    }

    fn alternatives(
        &mut self,
        rule: GrammarRule,
        choice: GrammarDecision,
        bodies: Vec<Vec<El>>,
        end: StateId,
    ) -> StateId {
        let edges =
            bodies.into_iter().map(|body| Edge::Epsilon(self.sequence(rule, body, end))).collect();
        self.single(StateKind::Choice(choice), edges)
    }

    /// Computes the next tokens of all states as a least fixed point.
    fn compute_next(&mut self) {
        loop {
            let mut changed = false;
            for id in 0..self.states.len() {
                let next = self.next_of(id);
                changed |= next != self.states[id].next;
                self.states[id].next = next;
            }
            if !changed {
                return;
            }
        }
    }

    fn next_of(&self, id: StateId) -> TokenSet {
        let state = &self.states[id];
        if state.kind == StateKind::Stop {
            return EPSILON;
        }
        let reached = state.edges.iter().map(|edge| match *edge {
            Edge::Epsilon(to) => self.states[to].next,
            Edge::Tokens(tokens, _, _) => tokens,
            // No rule of the grammar matches nothing.
            Edge::Call(rule, _, _) => self.states[self.starts[rule as usize]].next & !EPSILON,
        });
        reached.fold(0, |all, next| all | next)
    }
}
