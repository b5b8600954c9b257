//! Choice of alternatives by lookahead, with the results and failures of ANTLR's adaptive
//! prediction.

use super::engine::{Engine, ParseResult, RecognitionError};
use super::grammar::{
    FACTOR_OPERATORS, GrammarDecision, MEMBER_FIRST, RELATION_OPERATORS, TERM_OPERATORS,
    UNARY_LITERALS, set,
};
use crate::syntax::lexer as t;

type Prediction = Result<u8, RecognitionError>;

fn when(condition: bool) -> Prediction {
    Ok(if condition { 1 } else { 2 })
}

impl Engine<'_> {
    /// The alternative, from 1, that the next tokens select.
    pub(super) fn predict(&mut self, decision: GrammarDecision) -> ParseResult<Prediction> {
        let next = self.peek(0)?;
        let precedence = self.frames.last().map_or(0, |frame| frame.precedence);
        let is_in = |tokens| set(next) & tokens != 0;
        Ok(match decision {
            GrammarDecision::Enter(tokens) => when(is_in(tokens)),
            GrammarDecision::RelationLoop => when(is_in(RELATION_OPERATORS) && precedence <= 1),
            GrammarDecision::CalcLoop => when(
                is_in(FACTOR_OPERATORS) && precedence <= 2
                    || is_in(TERM_OPERATORS) && precedence <= 1,
            ),
            GrammarDecision::CalcOperator => when(is_in(FACTOR_OPERATORS)),
            GrammarDecision::MemberLoop => when(is_in(set(t::DOT) | set(t::LBRACKET))),
            GrammarDecision::EscapeIdent if next == t::IDENT => Ok(1),
            GrammarDecision::EscapeIdent if next == t::ESC_IDENT => Ok(2),
            GrammarDecision::EscapeIdent => self.no_viable(0),
            GrammarDecision::Comma(first) => {
                when(next == t::COMMA && set(self.peek(1)?) & first != 0)
            }
            GrammarDecision::MemberSuffix => self.predict_suffix()?,
            GrammarDecision::Unary => self.predict_unary()?,
            GrammarDecision::MinusLoop => self.predict_minus()?,
            GrammarDecision::Primary => self.predict_primary()?,
            GrammarDecision::Literal => self.predict_literal()?,
        })
    }

    fn no_viable(&self, ahead: usize) -> Prediction {
        Err(RecognitionError::NoViable { start: self.at, offending: self.at + ahead })
    }

    fn predict_suffix(&mut self) -> ParseResult<Prediction> {
        if self.peek(0)? == t::LBRACKET {
            return Ok(Ok(3));
        }
        if self.peek(0)? != t::DOT {
            return Ok(self.no_viable(0));
        }
        Ok(match self.peek(1)? {
            t::QUESTION | t::ESC_IDENT => Ok(1),
            t::IDENT => Ok(if self.peek(2)? == t::LPAREN { 2 } else { 1 }),
            _ => self.no_viable(1),
        })
    }

    fn predict_unary(&mut self) -> ParseResult<Prediction> {
        let next = self.peek(0)?;
        if next == t::EXCLAM {
            return Ok(Ok(2));
        }
        if next != t::MINUS {
            return Ok(if set(next) & MEMBER_FIRST != 0 { Ok(1) } else { self.no_viable(0) });
        }
        let second = self.peek(1)?;
        if set(second) & MEMBER_FIRST == 0 {
            return Ok(self.no_viable(1));
        }
        if set(second) & UNARY_LITERALS == 0 {
            return Ok(Ok(3));
        }
        // `-1` is a literal and a negation: the first alternative wins.
        Ok(Ok(1))
    }

    fn predict_minus(&mut self) -> ParseResult<Prediction> {
        let next = self.peek(0)?;
        if next != t::MINUS {
            return Ok(if set(next) & MEMBER_FIRST != 0 { Ok(2) } else { self.no_viable(0) });
        }
        let second = self.peek(1)?;
        Ok(if set(second) & MEMBER_FIRST != 0 { Ok(1) } else { self.no_viable(1) })
    }

    fn predict_primary(&mut self) -> ParseResult<Prediction> {
        let next = self.peek(0)?;
        match next {
            t::LPAREN => return Ok(Ok(3)),
            t::LBRACKET => return Ok(Ok(4)),
            t::LBRACE => return Ok(Ok(5)),
            t::DOT | t::IDENT => {}
            _ if set(next) & MEMBER_FIRST != 0 => return Ok(Ok(7)),
            _ => return Ok(self.no_viable(0)),
        }
        let mut ahead = usize::from(next == t::DOT);
        if self.peek(ahead)? != t::IDENT {
            return Ok(self.no_viable(ahead));
        }
        ahead += 1;
        if self.peek(ahead)? == t::LPAREN {
            return Ok(Ok(2));
        }
        while self.peek(ahead)? == t::DOT && self.peek(ahead + 1)? == t::IDENT {
            ahead += 2;
        }
        Ok(Ok(if self.peek(ahead)? == t::LBRACE { 6 } else { 1 }))
    }

    fn predict_literal(&mut self) -> ParseResult<Prediction> {
        let next = self.peek(0)?;
        let signed = usize::from(next == t::MINUS);
        Ok(match self.peek(signed)? {
            t::INT => Ok(1),
            t::FLOAT => Ok(3),
            _ if signed == 1 => self.no_viable(1),
            t::UINT => Ok(2),
            t::STRING => Ok(4),
            t::BYTES => Ok(5),
            t::TRUE => Ok(6),
            t::FALSE => Ok(7),
            t::NULL => Ok(8),
            _ => self.no_viable(0),
        })
    }
}
