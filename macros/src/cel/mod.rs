//! `cel!`: an expression of an admission policy, checked while the program is compiled.
//!
//! The text is checked with the API server's own functions and variables. Fields of `object` and
//! `oldObject` become walks over the kind's type, one for each path in the expression (`places`),
//! so that the compiler looks the fields up: a macro does not see the types of Kubernetes.

// DESIGN.md, 262: Fields of an expression are checked by the compiler, as walks over the kind's
// type

mod paths;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::{LitStr, Token, Type};
use windlass_cel::check::{Checked, Environment};
use windlass_cel::syntax::Issues;
use windlass_cel::types::Type as CelType;

use crate::path::{CollectNames, ParsedPath, located, statements};

/// Variables of a policy.
const VARIABLES: [&str; 6] =
    ["object", "oldObject", "request", "namespaceObject", "authorizer", "variables"];

/// Input of `cel!`: `crate_path; Deployment: "object.spec.replicas <= 5"`.
struct Input {
    krate: syn::Path,
    /// The kind whose fields are looked up.
    ty: Option<Type>,
    text: LitStr,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let krate = input.call(syn::Path::parse_mod_style)?;
        input.parse::<Token![;]>()?;
        let example = "write a kind and a text of CEL: \
                       `cel!(Deployment: \"object.spec.replicas <= 5\")`";
        let fault = |input: ParseStream<'_>| syn::Error::new(input.span(), example);
        let ty = if input.peek(LitStr) || input.is_empty() {
            None
        } else {
            let ty = input.parse().map_err(|_| fault(input))?;
            input.parse::<Token![:]>().map_err(|_| fault(input))?;
            Some(ty)
        };
        let text = input.parse().map_err(|_| fault(input))?;
        if !input.is_empty() {
            return Err(input.error("the expression is one text"));
        }
        Ok(Self { krate, ty, text })
    }
}

/// Expands `cel!`.
pub(crate) fn expression(input: TokenStream) -> TokenStream {
    let Input { krate, ty, text } = match syn::parse2(input) {
        Ok(input) => input,
        Err(fault) => return fault.to_compile_error(),
    };
    let code = match compile(&text.value()) {
        Ok(checked) => expand(&checked, ty.as_ref(), &text),
        Err(why) => {
            let fault = syn::Error::new(text.span(), why).to_compile_error();
            let ty = ty.map_or_else(|| quote!(_), |ty| quote!(#ty));
            // A value of the expected type, so that one fault is one error.
            quote!({ #fault ::windlass::webhook::CelExpression::<#ty, _>::checked(#text) })
        }
    };
    crate::crate_path::with_crate(code, Some(&krate))
}

/// Checks an expression as the API server does at the creation of a policy, but for the types of
/// `variables`, which another expression gives.
fn compile(text: &str) -> Result<Checked, String> {
    if text.trim().is_empty() {
        return Err(
            "an expression is a text of CEL, such as `object.spec.replicas <= 5`".to_owned()
        );
    }
    let environment = Environment::admission()
        .with_authorizer()
        .with_variable("variables", CelType::map(CelType::String, CelType::Dyn));
    environment.compile(text).map_err(|issues| explain(&issues))
}

/// The issues in the server's words, with the variable that was meant.
fn explain(issues: &Issues) -> String {
    let mut text = format!("the expression is not valid CEL:\n{issues}");
    for issue in issues.iter() {
        let Some(rest) = issue.message.strip_prefix("undeclared reference to '") else { continue };
        let name = rest.split('\'').next().unwrap_or_default();
        let meant = match name {
            "self" | "this" => Some("object"),
            "oldSelf" | "old" => Some("oldObject"),
            "user" => Some("request.userInfo"),
            "params" => {
                text.push_str("\npolicies have no parameters here: put a value into the text");
                None
            }
            name => crate::keys::closest(name, &VARIABLES),
        };
        if let Some(meant) = meant {
            text.push_str(&format!("\ndid you mean `{meant}`?"));
        }
    }
    text
}

/// Returns the expression with its type, and the walks to its fields.
fn expand(checked: &Checked, ty: Option<&Type>, text: &LitStr) -> TokenStream {
    let value = match checked.output_type() {
        CelType::Bool => quote!(bool),
        CelType::String => quote!(::std::string::String),
        // Another expression gives the type.
        CelType::Dyn if text.value().contains("variables.") => quote!(_),
        // A field, too: API servers know no types of fields, and refuse it as a rule.
        _ => quote!(()),
    };
    let Some(ty) = ty else {
        return quote!(::windlass::webhook::CelExpression::<_, #value>::checked(#text));
    };
    let p = quote!(::windlass::expansion::path);
    let place = located(text.span());
    let paths = paths::of(&checked.ast.root, place);
    let walks = paths.iter().map(|segments| {
        let steps = statements(&ParsedPath::new(segments.clone()), CollectNames::Ignored);
        quote_spanned! {place=>
            let _ = |__w: #p::Walk<'_, #ty>| {
                #steps
                let _ = __w;
            };
        }
    });
    quote! {{
        #[allow(unused_imports)]
        use #p::Inner as _;
        #(#walks)*
        ::windlass::webhook::CelExpression::<#ty, #value>::checked(#text)
    }}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        compile(text).unwrap_err()
    }

    #[test]
    fn a_variable_that_policies_do_not_have_is_answered_with_the_one_that_was_meant() {
        let cases = [
            ("self.spec.replicas < 5", "`object`"),
            ("oldSelf.spec == object.spec", "`oldObject`"),
            ("objekt.spec == null", "`object`"),
            ("user.name == 'alice'", "`request.userInfo`"),
            ("object.spec.replicas <= params.data.most", "put a value into the text"),
        ];
        for (text, meant) in cases {
            let fault = fault(text);
            assert!(fault.contains("undeclared reference") && fault.contains(meant), "{fault}");
        }
        assert!(fault(" ").contains("an expression is a text of CEL"));
        assert!(fault("request.user == 'a'").contains("undefined field 'user'"));
    }
}
