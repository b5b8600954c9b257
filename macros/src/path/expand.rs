//! Generated walk along a path.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{ParsedPath, Segment, plain};

/// Whether a walk collects the names in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectNames {
    Collected,
    /// An index reads values only.
    Ignored,
}

/// Returns a span that shows errors at `place` and resolves names at the macro's call.
pub(crate) fn located(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// Returns statements that move the walk `__w` along the path. The traits of
/// `windlass::__private::path` must be in scope. All tokens of a segment stand at the segment, so
/// that an error underlines that segment.
pub(crate) fn statements(path: &ParsedPath, names: CollectNames) -> TokenStream {
    let steps = path.segments.iter().enumerate().map(|(number, segment)| {
        let place = located(segment.span());
        // The object itself is no option. Three times: an option of a box of an option.
        let inner = match number {
            0 => quote_spanned!(place=> __w),
            _ => quote_spanned!(place=> __w.inner().inner().inner()),
        };
        let step = match segment {
            Segment::Field(ident) if names == CollectNames::Collected => {
                let rust = plain(ident);
                // Bound first: the type is asked for names before the walk goes on.
                let inner = (number > 0).then(|| quote_spanned!(place=> let __w = #inner;));
                quote_spanned! {place=>
                    #inner
                    let __n = (&&&__w.container()).field_source();
                    let __w = __w.field(__n, #rust, |__v| &__v.#ident);
                }
            }
            Segment::Field(ident) => {
                quote_spanned!(place=> let __w = #inner.step(|__v| &__v.#ident);)
            }
            Segment::Each(_) => quote_spanned!(place=> let __w = #inner.each();),
            Segment::Item(at, _) => quote_spanned!(place=> let __w = #inner.item(#at);),
            Segment::Key(key) => quote_spanned!(place=> let __w = #inner.key(#key);),
            Segment::Keys(_) => quote_spanned!(place=> let __w = #inner.keys();),
            Segment::Values(_) => quote_spanned!(place=> let __w = #inner.values();),
        };
        let marks = path.marks.iter().filter(|(before, _)| *before == number + 1);
        let marks = marks.map(|(_, mark)| quote_spanned!(located(*mark)=> let __w = __w.marked();));
        quote!(#step #(#marks)*)
    });
    steps.collect()
}
