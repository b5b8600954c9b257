//! The key `crate`: the path under which generated code finds `windlass`.

// DESIGN.md, 134: Generated code is renamed to another crate at the end

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Attribute;
use syn::parse::ParseStream;

use crate::errors::Errors;
use crate::keys::{SpannedKey, attributes, each_key, needs_value, set};

/// Reads `= path` behind the key `crate`: the path under which generated code finds `windlass`.
pub(crate) fn crate_path(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<syn::Path> {
    needs_value(key, input, "my_facade::windlass")?;
    let start = input.span();
    input.call(syn::Path::parse_mod_style).map_err(|_| {
        let message = "`crate` takes the path of windlass: `crate = my_facade::windlass`";
        syn::Error::new(start, message)
    })
}

/// Reads `#[name(crate = path)]`, of a derive whose type has no other key.
pub(crate) fn crate_of(of: &[Attribute], name: &str, errors: &mut Errors) -> Option<syn::Path> {
    let mut path = None;
    attributes(of, name, errors, |input, errors| {
        each_key(input, &["crate"], errors, |key, input, errors| {
            set(&mut path, key, crate_path(key, input)?, errors);
            Ok(())
        });
    });
    path
}

/// Returns generated code that names windlass by another path; `None`: by `::windlass`.
///
/// The generators write `::windlass` everywhere, and this function replaces that path: no generator
/// can miss a place.
pub(crate) fn with_crate(code: TokenStream, path: Option<&syn::Path>) -> TokenStream {
    let Some(path) = path else { return code };
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let mut out = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        let name = match tokens.get(at + 2) {
            Some(TokenTree::Ident(ident)) if *ident == "windlass" => Some(ident),
            _ => None,
        };
        if let Some(name) =
            name.filter(|_| is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1)))
        {
            out.extend(path.to_token_stream().into_iter().map(|mut token| {
                // Errors underline the place that the code stands for.
                token.set_span(name.span().resolved_at(token.span()));
                token
            }));
            at += 3;
            continue;
        }
        out.extend([match &tokens[at] {
            TokenTree::Group(group) => {
                let inside = with_crate(group.stream(), Some(path));
                let mut inside = Group::new(group.delimiter(), inside);
                inside.set_span(group.span());
                TokenTree::Group(inside)
            }
            token => token.clone(),
        }]);
        at += 1;
    }
    out
}

/// Returns the code of a derive with the key `crate`: as [`with_crate`], and as the input of a
/// macro of that crate, which returns it.
///
/// A path that leads nowhere is one error at its token then, for nothing else is compiled.
pub(crate) fn found_by(code: TokenStream, path: Option<&syn::Path>) -> TokenStream {
    let Some(path) = path else { return code };
    within_macro(&with_crate(code, Some(path)), path)
}

/// Returns code as the input of a macro of windlass, which returns it.
pub(crate) fn within_macro(code: &TokenStream, path: &syn::Path) -> TokenStream {
    quote!(#path::__private::here! { #code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_names_the_crate_by_the_path_that_is_given() {
        let code = quote!(::windlass::Error::of({ ::windlass::x(windlass::y) }));
        let path = syn::parse_quote!(facade::windlass);
        let expected = quote!(facade::windlass::Error::of({ facade::windlass::x(windlass::y) }));
        assert_eq!(with_crate(code.clone(), Some(&path)).to_string(), expected.to_string());
        assert_eq!(with_crate(code.clone(), None).to_string(), code.to_string());
    }
}
