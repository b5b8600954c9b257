//! Generated impls of serde's traits.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::{api_version, private, private_at};
use crate::path::located as at;
use crate::resource::model::{ResourceModel, RootField};
use crate::schema::FieldDefault;

/// Generates the impl of `Serialize`, with apiVersion and kind.
pub(super) fn serialize(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (kind, api_version) = (&model.kind.value, api_version(model));
    let count = model.fields.len() + 3;
    let fields = model.fields.iter().map(|field| {
        let RootField { ident, ty, .. } = field;
        let json = &field.json.value;
        let place = at(ty.span());
        let p = private_at(place);
        let left_out = left_out(field, place);
        quote_spanned!(place=> #p::write_unless(#left_out, &mut __out, #json, &self.#ident)?;)
    });
    quote! {
        #[automatically_derived]
        impl #p::serde::Serialize for #ident {
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                __serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                #[allow(unused_imports)]
                use #p::AlwaysThere as _;
                let mut __out = #p::begin(__serializer, #kind, #api_version, #count)?;
                #p::write(&mut __out, "metadata", &self.metadata)?;
                #(#fields)*
                #p::serde::ser::SerializeStruct::end(__out)
            }
        }
    }
}

/// Returns the condition under which a field is not written.
fn left_out(field: &RootField, place: Span) -> TokenStream {
    let RootField { ident, ty, .. } = field;
    let p = private_at(place);
    let skip = field.skip_if.as_ref().map(|skip| quote_spanned!(place=> #skip(&self.#ident)));
    match (&field.default, skip) {
        // As `null`, for an absent field is read as the value of the function.
        (Some(FieldDefault::Function(_)), skip) => skip.unwrap_or_else(|| quote!(false)),
        (_, skip) => {
            let skip = skip.map(|skip| quote!(|| #skip));
            quote_spanned!(place=> #p::path::TypeOf::<#ty>::new().is_left_out(&self.#ident) #skip)
        }
    }
}

/// Generates a visitor that knows the fields by number; the read of a field is a call. Values that
/// were read are variables by number, too: a field may have the name of a constant.
pub(super) fn deserialize(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (kind, api_version) = (&model.kind.value, api_version(model));
    let slots: Vec<_> = (1..=model.fields.len()).map(|place| format_ident!("__f{place}")).collect();
    let jsons: Vec<_> = model.fields.iter().map(|field| &field.json.value).collect();
    let reads = model.fields.iter().zip(&slots).enumerate().map(|(place, (field, slot))| {
        let RootField { ty, .. } = field;
        let json = &field.json.value;
        let place = place + 1;
        let here = at(ty.span());
        let p = private_at(here);
        let slot = quote_spanned!(here=> #slot);
        let read = match field.status() {
            Some(inner) => {
                let missing = missing(inner);
                quote_spanned! {here=>
                    #p::path::TypeOf::<#inner>::new()
                        .read_status(&mut __map, #json, &mut #slot, #missing)?
                }
            }
            None => quote_spanned! {here=>
                #p::path::TypeOf::<#ty>::new().read_field(&mut __map, #json, &mut #slot)?
            },
        };
        quote!(#place => #read,)
    });
    let values = model.fields.iter().zip(&slots).map(|(field, slot)| {
        let RootField { ident, ty, optional, .. } = field;
        let json = &field.json.value;
        if *optional {
            quote!(#ident: ::core::option::Option::flatten(#slot))
        } else if let Some(default) = field.default_path() {
            let place = at(ty.span());
            quote_spanned! {place=>
                #ident: match #slot {
                    ::core::option::Option::Some(__value) => __value,
                    ::core::option::Option::None => #default(),
                }
            }
        } else {
            let absent = quote!(#p::path::TypeOf::<#ty>::new().absent());
            quote!(#ident: #p::required_or(#slot, #absent, #json)?)
        }
    });
    quote! {
        #[automatically_derived]
        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<__D: #p::serde::Deserializer<'de>>(
                __deserializer: __D,
            ) -> ::core::result::Result<Self, __D::Error> {
                const __FIELDS: &[&str] = &["metadata", #(#jsons),*];
                struct __Fields;
                impl<'de> #p::serde::de::Visitor<'de> for __Fields {
                    type Value = #ident;

                    fn expecting(
                        &self,
                        __f: &mut ::core::fmt::Formatter<'_>,
                    ) -> ::core::fmt::Result {
                        __f.write_str(#kind)
                    }

                    fn visit_map<__A: #p::serde::de::MapAccess<'de>>(
                        self,
                        mut __map: __A,
                    ) -> ::core::result::Result<#ident, __A::Error> {
                        #[allow(unused_imports)]
                        use #p::{AlwaysThere as _, NeverWritten as _};
                        let mut __f0 = ::core::option::Option::None;
                        #(let mut #slots = ::core::option::Option::None;)*
                        while let ::core::option::Option::Some(__field) =
                            #p::next_field(&mut __map, #api_version, #kind, __FIELDS)?
                        {
                            match __field {
                                #(#reads)*
                                _ => #p::read(&mut __map, "metadata", &mut __f0)?,
                            }
                        }
                        ::core::result::Result::Ok(#ident {
                            metadata: ::core::option::Option::unwrap_or_default(__f0),
                            #(#values,)*
                        })
                    }
                }
                const __NAMES: &[&str] = &["apiVersion", "kind", "metadata", #(#jsons),*];
                __deserializer.deserialize_struct(#kind, __NAMES, __Fields)
            }
        }
    }
}

/// Returns the values for absent fields of a status of that type. The presence of a `Default` is
/// found by method resolution: the method of `Of<T>`, if there is one, comes before that of
/// `&Of<T>`.
pub(super) fn missing(status: &Type) -> TokenStream {
    let p = private();
    quote!({
        static __MISSING: #p::Filling = #p::Filling::new();
        #[allow(unused_imports)]
        use #p::{FilledByDefault as _, NotFilled as _};
        __MISSING.get(|| (&#p::Of::<#status>::new()).missing())
    })
}
