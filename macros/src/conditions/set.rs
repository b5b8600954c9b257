//! `#[derive(Conditions)]`: the variants by their role, and the root that follows from them.

// DESIGN.md, 161: `Ready` follows from the outcome of a reconcile and from declared conditions

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{DeriveInput, LitStr, Path, Token};

use super::types::{self, ConditionName};
use crate::crate_path;
use crate::errors::Errors;
use crate::keys::{self, SpannedKey, WithSpan, set, unknown};
use crate::misplaced::misplaced;

/// Keys of `#[conditions(…)]`.
pub(crate) const KEYS: &[&str] = &["ready", "root", "crate"];
/// Keys of `ready(…)`.
pub(crate) const READY_KEYS: &[&str] = &["all", "stalled_on"];

const READY: &str = "ready(all(Applied, Available), stalled_on(InvalidSpec))";
/// The root, unless another is named.
const ROOT: &str = "Ready";
/// Conditions that controllers compute.
const COMPUTED: &[&str] = &["Ready", "Reconciling", "Stalled", "Paused"];

/// The keys, as written.
#[derive(Debug, Default)]
struct Attrs {
    /// Whether `ready` was written, even if it could not be read.
    has_ready: bool,
    all: Vec<Ident>,
    stalled_on: Vec<Ident>,
    root: Option<WithSpan<String>>,
    krate: Option<Path>,
}

impl Attrs {
    fn read(input: &DeriveInput, errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        let keys = "the keys of the type stand in `#[conditions(…)]`, and names of conditions on the variants";
        misplaced(&input.attrs, "condition", keys, errors);
        keys::attributes(&input.attrs, "conditions", errors, |input, errors| {
            let tried = keys::each_key(input, KEYS, errors, |key, input, errors| {
                attrs.key(key, input, errors)
            });
            attrs.has_ready |= tried.iter().any(|key| key == "ready");
        });
        attrs
    }

    fn key(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.name.as_str() {
            "ready" => keys::group(key, input, READY, |input| {
                keys::each_key(input, READY_KEYS, errors, |key, input, _| {
                    let example = format!("{}(Applied)", key.name);
                    let found = keys::group(key, input, &example, variants)?;
                    match key.name.as_str() {
                        "all" => self.all.extend(found),
                        _ => self.stalled_on.extend(found),
                    }
                    Ok(())
                });
                Ok(())
            }),
            "root" => {
                set(&mut self.root, key, keys::text(key, input)?, errors);
                Ok(())
            }
            _ => {
                set(&mut self.krate, key, crate_path::crate_path(key, input)?, errors);
                Ok(())
            }
        }
    }
}

/// Reads names of variants.
fn variants(input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            let message = format!("name the variant, without quotation marks: `{}`", text.value());
            return Err(syn::Error::new(text.span(), message));
        }
        found.push(input.call(Ident::parse_any)?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(found)
}

/// Parses, checks, expands.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let attrs = Attrs::read(input, &mut errors);
    let names = types::read(input, &mut errors);
    if let Some(names) = &names {
        check(input, &attrs, names, &mut errors);
    }
    let keys = errors.take_keys();
    let mut output = errors.finish();
    if let Some(names) = &names {
        output.extend(types::expand(input, names));
        output.extend(expand(input, &attrs, names));
        let krate = quote!(::windlass);
        output.extend(keys::references(&krate, "conditions", &keys, &[KEYS, READY_KEYS]));
    }
    crate_path::found_by(output, attrs.krate.as_ref())
}

/// Checks the roles of the variants, and the names that are taken.
fn check(input: &DeriveInput, attrs: &Attrs, names: &[ConditionName<'_>], errors: &mut Errors) {
    let root = attrs.root.as_ref().map_or(ROOT, |root| root.value.as_str());
    for name in names {
        if COMPUTED.contains(&name.text.as_str()) || name.text == root {
            let message = format!(
                "`{}` is computed by the framework: declare what it depends on, and leave it out",
                name.text
            );
            errors.at(name.span, message);
        }
    }
    if let Some(root) = &attrs.root
        && (!crate::names::is_label_key(&root.value)
            || ["Reconciling", "Stalled", "Paused"].contains(&root.value.as_str()))
    {
        let message = format!(
            "{:?} is not a root: use a name such as `Ready` or `example.dev/CertificateReady`",
            root.value
        );
        errors.at(root.span, message);
    }
    if !attrs.has_ready && !names.is_empty() {
        let all: Vec<String> = names.iter().map(|name| name.ident.to_string()).collect();
        let message = format!(
            "say which of them make an object ready: `#[conditions(ready(all({})))]`",
            all.join(", ")
        );
        errors.at(input.ident.span(), message);
    }
    let known: Vec<String> = names.iter().map(|name| name.ident.unraw().to_string()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let mut before: Vec<&Ident> = Vec::new();
    for found in attrs.all.iter().chain(&attrs.stalled_on) {
        let name = found.unraw().to_string();
        if !known.contains(&name.as_str()) {
            errors.at(found.span(), unknown("condition", &name, &known));
        } else if before.contains(&found) {
            errors.at(found.span(), format_args!("`{name}` is listed twice: it has one role"));
        }
        before.push(found);
    }
}

/// Returns the impl of `ConditionSet`.
fn expand(input: &DeriveInput, attrs: &Attrs, names: &[ConditionName<'_>]) -> TokenStream {
    let texts = |listed: &[Ident]| -> Vec<&str> {
        let text = |ident: &Ident| {
            names.iter().find(|name| name.ident == ident).map(|name| name.text.as_str())
        };
        listed.iter().filter_map(text).collect()
    };
    let (ready, stalled_on) = (texts(&attrs.all), texts(&attrs.stalled_on));
    let has_role = |text: &&str| ready.contains(text) || stalled_on.contains(text);
    let others = names.iter().map(|name| name.text.as_str()).filter(|text| !has_role(text));
    let root = attrs.root.as_ref().map_or(ROOT, |root| root.value.as_str());
    let (ident, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    quote! {
        #[automatically_derived]
        impl #generics ::windlass::conditions::ConditionSet for #ident #arguments #bounds {
            const TYPES: ::windlass::conditions::ConditionTypes =
                ::windlass::conditions::ConditionTypes {
                    root: #root,
                    ready: &[#(#ready),*],
                    stalled_on: &[#(#stalled_on),*],
                    others: &[#(#others),*],
                };
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn faults(input: &DeriveInput) -> Vec<String> {
        let mut errors = Errors::default();
        let attrs = Attrs::read(input, &mut errors);
        if let Some(names) = types::read(input, &mut errors) {
            check(input, &attrs, &names, &mut errors);
        }
        let texts = errors.texts();
        errors.finish();
        texts
    }

    #[test]
    fn a_mistake_has_one_text_that_names_the_remedy() {
        let mistakes = [
            (
                "",
                "say which of them make an object ready: `#[conditions(ready(all(Applied, Bad)))]`",
            ),
            ("#[conditions(ready(all(Aplied)))]", "did you mean `Applied`?"),
            ("#[conditions(ready(all(Applied, Applied)))]", "`Applied` is listed twice"),
            ("#[conditions(ready(all(Bad), stalled_on(Bad)))]", "`Bad` is listed twice"),
            ("#[conditions(ready(all(\"Applied\")))]", "without quotation marks: `Applied`"),
            ("#[conditions(ready(any(Applied)))]", "unknown key `any`"),
            ("#[conditions(ready)]", "`ready` is written `ready(all("),
            ("#[conditions(ready(all))]", "`all` is written `all(Applied)`"),
            ("#[conditions(ready(all(Applied)), root = \"Not Ready\")]", "is not a root"),
            ("#[conditions(ready(all(Applied)), root = \"Stalled\")]", "is not a root"),
            ("#[conditions(ready(all(Applied)), root = \"Bad\")]", "`Bad` is computed"),
        ];
        for (attribute, text) in mistakes {
            let input = format!("{attribute} enum C {{ Applied, Bad }}");
            let faults = faults(&syn::parse_str(&input).unwrap());
            let [only] = faults.as_slice() else { panic!("{attribute}: {faults:#?}") };
            assert!(only.contains(text), "{attribute}: {only}");
        }
    }

    #[test]
    fn computed_conditions_cannot_be_declared() {
        let faults = faults(&parse_quote! {
            #[conditions(ready(all(Applied)))]
            enum C { Applied, Ready, Stalled, #[condition("Reconciling")] Working }
        });
        assert_eq!(faults.len(), 3, "{faults:#?}");
        assert!(faults.iter().all(|fault| fault.contains("is computed by the framework")));
    }
}
