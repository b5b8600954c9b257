//! The generated code of `if` and `for` inside of a literal.

use proc_macro2::TokenStream;
use quote::quote;

use super::syntax::{Else, For, If};

impl<B> If<B> {
    /// Returns the bodies of all branches.
    pub(super) fn bodies(&self) -> Vec<&B> {
        let mut bodies = vec![&self.then];
        match &self.otherwise {
            None => {}
            Some(Else::Body(body)) => bodies.push(body),
            Some(Else::If(branch)) => bodies.extend(branch.bodies()),
        }
        bodies
    }

    /// Returns the `if` with the bodies as statements.
    pub(super) fn expand(&self, mut body: impl FnMut(&B) -> TokenStream) -> TokenStream {
        self.expand_with(&mut body)
    }

    fn expand_with(&self, body: &mut dyn FnMut(&B) -> TokenStream) -> TokenStream {
        let condition = &self.condition;
        let then = body(&self.then);
        let otherwise = match &self.otherwise {
            None => TokenStream::new(),
            Some(Else::Body(other)) => {
                let other = body(other);
                quote!(else { #other })
            }
            Some(Else::If(branch)) => {
                let branch = branch.expand_with(body);
                quote!(else #branch)
            }
        };
        quote!(if #condition { #then } #otherwise)
    }
}

impl<B> For<B> {
    /// Returns the `for` with the body as statements.
    pub(super) fn expand(&self, body: impl FnOnce(&B) -> TokenStream) -> TokenStream {
        let (pattern, values, body) = (&self.pattern, &self.values, body(&self.body));
        quote!(for #pattern in #values { #body })
    }
}
