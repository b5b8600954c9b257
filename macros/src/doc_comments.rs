//! Documentation of an item, as the definition and the help of a kind show it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, LitStr};

/// The documentation of an item.
#[derive(Clone, Debug)]
pub(crate) enum Doc {
    /// A text, with all lines.
    Text(String),
    /// Pieces of which some are macros, such as `include_str!`: joined by the compiler.
    Pieces(Vec<Expr>),
}

impl Default for Doc {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl ToTokens for Doc {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Self::Text(text) => quote!(#text),
            Self::Pieces(pieces) => quote!(::core::concat!(#(#pieces, "\n"),*)),
        });
    }
}

/// Returns the documentation: doc comments and `#[doc = …]` attributes, line by line.
pub(crate) fn docs(attributes: &[Attribute]) -> Doc {
    let pieces: Vec<Expr> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        // `#[doc(hidden)]` and similar attributes are no text.
        .filter_map(|attribute| Some(attribute.meta.require_name_value().ok()?.value.clone()))
        .collect();
    let literal = |piece: &Expr| match piece {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    };
    match pieces.iter().map(literal).collect::<Option<Vec<_>>>() {
        Some(texts) => Doc::Text(lines(&texts.join("\n"))),
        None => Doc::Pieces(pieces.into_iter().map(without_blank).collect()),
    }
}

/// Returns a piece without the blank that stands behind `///`: pieces of other sources have none.
fn without_blank(piece: Expr) -> Expr {
    match &piece {
        Expr::Lit(ExprLit { lit: Lit::Str(text), attrs }) => {
            let value = text.value();
            let lines = value.split('\n').map(|line| line.strip_prefix(' ').unwrap_or(line));
            let lines = lines.collect::<Vec<_>>().join("\n");
            let lit = Lit::Str(LitStr::new(&lines, text.span()));
            Expr::Lit(ExprLit { lit, attrs: attrs.clone() })
        }
        _ => piece,
    }
}

/// Returns a text without the indentation that all of its lines share, so that lists and blocks of
/// code stay unchanged.
fn lines(text: &str) -> String {
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    let shared = filled.map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
    let lines = text.lines().map(|line| line.get(shared..).unwrap_or_default().trim_end());
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc_of(input: &syn::DeriveInput) -> String {
        match docs(&input.attrs) {
            Doc::Text(text) => text,
            Doc::Pieces(pieces) => panic!("{} pieces", pieces.len()),
        }
    }

    #[test]
    fn doc_lines_keep_lists_and_blocks_of_code() {
        let input: syn::DeriveInput = syn::parse_quote! {
            /// A site,
            /// served.
            ///
            /// - one
            ///   more
            ///
            /// ```yaml
            /// spec:
            ///   host: a
            /// ```
            #[doc(hidden)]
            struct X;
        };
        let expected = "A site,\nserved.\n\n- one\n  more\n\n```yaml\nspec:\n  host: a\n```";
        assert_eq!(doc_of(&input), expected);
        assert_eq!(
            doc_of(&syn::parse_quote!(
                struct X;
            )),
            ""
        );
    }

    #[test]
    fn a_documentation_from_a_file_is_left_to_the_compiler() {
        let input: syn::DeriveInput = syn::parse_quote! {
            #[doc = " A site."]
            #[doc = include_str!("site.md")]
            struct X;
        };
        let code = docs(&input.attrs).to_token_stream().to_string();
        let expected =
            ":: core :: concat ! (\"A site.\" , \"\\n\" , include_str ! (\"site.md\") , \"\\n\")";
        assert_eq!(code, expected);
    }
}
