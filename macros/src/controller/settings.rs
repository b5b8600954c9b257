//! Settings of the builder that have a literal: durations, numbers, flags.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, Lit, LitInt, Token};

use super::arguments::{Argument, ComparableValue, duration, number, text};
use super::check;
use crate::errors::Errors;
use crate::keys::{self, SpannedKey, unknown};
use crate::names;

/// Settings with a value, and settings without.
#[cfg(test)]
pub(crate) const SINGLE: &[&str] = &[
    "resync",
    "reconcile_timeout",
    "outcome_condition",
    "report_failures",
    "report_every_failure",
    "cancel_superseded",
    "track_changes",
    "track_changes_within",
    "change_log",
    "former_finalizer",
    "task_per_object",
];
/// Settings with arguments in parentheses.
pub(crate) const GROUPS: &[SettingWithArguments] = &[
    SettingWithArguments {
        key: "retry",
        arguments: &["at_most", "base", "cap", "then_every"],
        example: "retry(at_most = 10, base = \"100ms\", cap = \"1m\")",
    },
    SettingWithArguments {
        key: "debounce",
        arguments: &["quiet", "most"],
        example: "debounce(quiet = \"500ms\", most = \"5s\")",
    },
    SettingWithArguments {
        key: "rate_limit",
        arguments: &["most", "within"],
        example: "rate_limit(most = 10, within = \"1h\")",
    },
    SettingWithArguments {
        key: "loop_guard",
        arguments: &["most", "within", "spacing"],
        example: "loop_guard(most = 200, within = \"1m\")",
    },
    SettingWithArguments {
        key: "timer",
        arguments: &["every", "name", "initial_delay", "idle"],
        example: "timer(every = \"1m\", name = \"probe\")",
    },
];
/// Arguments that are numbers, but for the `most` of `debounce`; `name` is a text, all others are
/// durations.
const COUNTS: &[&str] = &["at_most", "most"];

/// A setting with arguments.
#[derive(Debug)]
pub(crate) struct SettingWithArguments {
    pub(crate) key: &'static str,
    pub(crate) arguments: &'static [&'static str],
    example: &'static str,
}

/// A setting as written.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) key: SpannedKey,
    value: SettingValue,
}

/// The value of a setting.
#[derive(Debug)]
enum SettingValue {
    Flag,
    Never,
    One(Argument),
    /// Variant of `ChangeLog`.
    Detail(Ident),
    Several(Vec<(SpannedKey, Argument)>),
}

/// Reads the value of a setting.
pub(super) fn read(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<Setting> {
    let value = match key.name.as_str() {
        "report_failures"
        | "report_every_failure"
        | "cancel_superseded"
        | "track_changes"
        | "task_per_object" => flag(key, input)?,
        "outcome_condition" => {
            let text = keys::text(key, input)?;
            if !names::is_label_key(&text.value) {
                let message = format!(
                    "{:?} is not a type of a condition: use a name such as `Ready` or `example.dev/Ready`",
                    text.value
                );
                return Err(syn::Error::new(text.span, message));
            }
            SettingValue::One(Argument::of_text(&text.value, text.span))
        }
        "resync" | "reconcile_timeout" => single_duration(key, input)?,
        "track_changes_within" => bytes(key, input)?,
        "change_log" => change_log(key, input)?,
        "former_finalizer" => {
            let text = keys::text(key, input)?;
            check::finalizer_name(&text)?;
            SettingValue::One(Argument::of_text(&text.value, text.span))
        }
        _ => several(key, input)?,
    };
    Ok(Setting { key: key.clone(), value })
}

/// Reads a key without a value.
fn flag(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<SettingValue> {
    if input.peek(Token![=]) || input.peek(syn::token::Paren) {
        let message = format!("`{}` has no value: its presence switches it on", key.name);
        return Err(syn::Error::new(input.span(), message));
    }
    Ok(SettingValue::Flag)
}

/// Reads `= "10m"` or `= "never"`.
fn single_duration(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<SettingValue> {
    if !input.peek(Token![=]) {
        let message = format!("`{}` needs a value: `{0} = \"10m\"`, or \"never\"", key.name);
        return Err(syn::Error::new(key.span, message));
    }
    input.parse::<Token![=]>()?;
    let found: Expr = input.parse()?;
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &found
        && text.value() == "never"
    {
        return Ok(SettingValue::Never);
    }
    duration(&key.name, &key.name, &found).map(SettingValue::One)
}

/// Reads `= 1048576`, a number of bytes, or `= 1 << 20`.
fn bytes(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<SettingValue> {
    let found: Expr = keys::value(key, input, "1048576")?;
    let span = found.span();
    if let Expr::Lit(ExprLit { lit, .. }) = &found {
        let Lit::Int(digits) = lit else {
            let message = format!("`{}` takes a number of bytes: `{0} = 1048576`", key.name);
            return Err(syn::Error::new(span, message));
        };
        if digits.base10_parse::<u64>()? == 0 {
            let message = "zero bytes keep no state: leave the key out, or write `track_changes`";
            return Err(syn::Error::new(span, message));
        }
    }
    Ok(SettingValue::One(Argument { tokens: quote!(#found), span, literal: None }))
}

/// Details of `change_log(…)`.
const DETAILS: &[&str] = &["Off", "Summary", "Full"];

/// Reads `(Summary)`, or the path of the variant, `(ChangeLog::Summary)`.
fn change_log(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<SettingValue> {
    keys::group(key, input, "change_log(Summary)", |input| {
        if input.peek(syn::LitStr) {
            let text: syn::LitStr = input.parse()?;
            let message =
                format!("a detail is written without quotation marks: `{}`", text.value());
            return Err(syn::Error::new(text.span(), message));
        }
        let path = input.call(syn::Path::parse_mod_style).map_err(|fault| {
            syn::Error::new(fault.span(), "write the detail: `change_log(Summary)`")
        })?;
        let mut names = path.segments.iter().rev().map(|segment| &segment.ident);
        let (word, of) = (names.next(), names.next());
        let Some(word) = word.filter(|_| of.is_none_or(|of| of == "ChangeLog")) else {
            let message = "a detail is a variant of `ChangeLog`: `change_log(Summary)`";
            return Err(syn::Error::new(path.span(), message));
        };
        let name = word.to_string();
        if !DETAILS.contains(&name.as_str()) {
            return Err(syn::Error::new(word.span(), unknown("detail", &name, DETAILS)));
        }
        if !input.is_empty() {
            return Err(input.error("a controller has one detail: `change_log(Summary)`"));
        }
        let place = word.span().resolved_at(Span::call_site());
        let variant = Ident::new(&name, place);
        Ok(SettingValue::Detail(variant))
    })
}

/// Reads `(name = value, …)`.
fn several(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<SettingValue> {
    let Some(group) = GROUPS.iter().find(|group| group.key == key.name) else {
        return Err(syn::Error::new(key.span, "not a setting"));
    };
    keys::group(key, input, group.example, |input| {
        let mut arguments: Vec<(SpannedKey, Argument)> = Vec::new();
        while !input.is_empty() {
            let found = argument(group, input)?;
            if arguments.iter().any(|(before, _)| before.name == found.0.name) {
                let message = format!("duplicate key `{}`: it is set above", found.0.name);
                return Err(syn::Error::new(found.0.span, message));
            }
            arguments.push(found);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        missing(group, key, &arguments).map_or(Ok(()), Err)?;
        Ok(SettingValue::Several(arguments))
    })
}

/// Reads an argument of a group.
fn argument(
    group: &SettingWithArguments,
    input: ParseStream<'_>,
) -> syn::Result<(SpannedKey, Argument)> {
    if !(input.peek(Ident::peek_any) && input.peek2(Token![=])) {
        let message = format!("`{}` is written `{}`", group.key, group.example);
        return Err(syn::Error::new(input.span(), message));
    }
    let ident = input.call(Ident::parse_any)?;
    let name = ident.unraw().to_string();
    if !group.arguments.contains(&name.as_str()) {
        return Err(syn::Error::new(ident.span(), unknown("key", &name, group.arguments)));
    }
    input.parse::<Token![=]>()?;
    let found: Expr = input.parse()?;
    let value = match name.as_str() {
        "name" => text(&name, &found)?,
        count if COUNTS.contains(&count) && group.key != "debounce" => {
            // The builder would raise a single reconcile to two without a word.
            number(count, if group.key == "loop_guard" { 2 } else { 1 }, &found)?
        }
        _ => duration(group.key, &name, &found)?,
    };
    Ok((SpannedKey { name, span: ident.span() }, value))
}

/// Returns the fault for arguments that are missing.
fn missing(
    group: &SettingWithArguments,
    key: &SpannedKey,
    found: &[(SpannedKey, Argument)],
) -> Option<syn::Error> {
    let has = |name: &str| found.iter().any(|(key, _)| key.name == name);
    let lacks = |names: &[&str]| names.iter().any(|name| !has(name));
    let is_incomplete = match group.key {
        "retry" => found.is_empty(),
        "loop_guard" => lacks(&["most", "within"]),
        "timer" => lacks(&["every", "name"]),
        _ => lacks(group.arguments),
    };
    if is_incomplete {
        let message = format!("`{}` is written `{}`", group.key, group.example);
        return Some(syn::Error::new(key.span, message));
    }
    if group.key == "retry" && has("base") != has("cap") {
        let message = "`base` and `cap` stand together: the first delay, and the longest one";
        return Some(syn::Error::new(key.span, message));
    }
    if group.key == "retry" && has("then_every") && !has("at_most") {
        let message = "`then_every` begins when retries are used up: say how many by `at_most`";
        return Some(syn::Error::new(key.span, message));
    }
    None
}

/// Reads `= 8`, the number of workers.
pub(super) fn workers(
    key: &SpannedKey,
    input: ParseStream<'_>,
) -> syn::Result<keys::WithSpan<usize>> {
    let found: Expr = keys::value(key, input, "8")?;
    let span = found.span();
    let digits: Option<&LitInt> = match &found {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => Some(digits),
        _ => None,
    };
    let count = digits.and_then(|digits| digits.base10_parse::<usize>().ok());
    match count {
        Some(0) => Err(syn::Error::new(span, "a controller needs at least one worker")),
        Some(value) if value <= 65_536 => Ok(keys::WithSpan { value, span }),
        _ => {
            let message = "`workers` takes a whole number from 1 to 65536: `workers = 8`";
            Err(syn::Error::new(span, message))
        }
    }
}

/// Checks settings against each other.
pub(super) fn check_all(settings: &[Setting], errors: &mut Errors) {
    for (i, setting) in settings.iter().enumerate() {
        let name = &setting.key.name;
        // Each timer has its own name and interval, and there may have been several finalizers.
        let may_repeat = matches!(name.as_str(), "timer" | "former_finalizer");
        if !may_repeat && settings[..i].iter().any(|before| before.key.name == *name) {
            errors.at(setting.key.span, format_args!("duplicate key `{name}`: it is set above"));
        }
    }
    let of = |name: &str| settings.iter().find(|setting| setting.key.name == name);
    if let (Some(_), Some(every)) = (of("report_failures"), of("report_every_failure")) {
        let message = "`report_every_failure` includes `report_failures`: write one of them";
        errors.at(every.key.span, message);
    }
    if let (Some(_), Some(within)) = (of("track_changes"), of("track_changes_within")) {
        let message = "`track_changes_within` includes `track_changes`: write one of them";
        errors.at(within.key.span, message);
    }
    orders(settings, errors);
    spacings(settings, errors);
    timer_names(settings, errors);
}

/// Checks that the first delay is not longer than the longest delay.
fn orders(settings: &[Setting], errors: &mut Errors) {
    for (key, least, most) in [("retry", "base", "cap"), ("debounce", "quiet", "most")] {
        let of_key = settings.iter().filter(|setting| setting.key.name == key);
        for setting in of_key {
            let SettingValue::Several(arguments) = &setting.value else { continue };
            let (Some(low), Some(high)) = (find(arguments, least), find(arguments, most)) else {
                continue;
            };
            if let (Some(ComparableValue::Duration(lower)), Some(ComparableValue::Duration(higher))) =
                (&low.literal, &high.literal)
                && lower > higher
            {
                let message = format!("`{most}` of `{key}` is at least as long as `{least}`");
                errors.at(high.span, message);
            }
        }
    }
}

/// Checks that the interval of a slowed-down object is at most half of the window, to which the
/// builder would cut a longer one.
fn spacings(settings: &[Setting], errors: &mut Errors) {
    for setting in settings.iter().filter(|setting| setting.is("loop_guard")) {
        let SettingValue::Several(arguments) = &setting.value else { continue };
        let (Some(spacing), Some(within)) = (find(arguments, "spacing"), find(arguments, "within"))
        else {
            continue;
        };
        if let (Some(ComparableValue::Duration(one)), Some(ComparableValue::Duration(window))) =
            (&spacing.literal, &within.literal)
            && *one > *window / 2
        {
            errors.at(spacing.span, "`spacing` of `loop_guard` is at most half of `within`");
        }
    }
}

/// Checks that no two timers share a name, which distinguishes timers in logs and metrics.
fn timer_names(settings: &[Setting], errors: &mut Errors) {
    let names: Vec<&Argument> = settings
        .iter()
        .filter(|setting| setting.key.name == "timer")
        .filter_map(|setting| match &setting.value {
            SettingValue::Several(arguments) => find(arguments, "name"),
            _ => None,
        })
        .collect();
    for (i, name) in names.iter().enumerate() {
        if names[..i].iter().any(|before| before.literal == name.literal) {
            let message = format!("there are two timers of the name {}", name.tokens);
            errors.at(name.span, message);
        }
    }
}

/// Returns an argument.
fn find<'a>(arguments: &'a [(SpannedKey, Argument)], name: &str) -> Option<&'a Argument> {
    arguments.iter().find(|(key, _)| key.name == name).map(|(_, argument)| argument)
}

impl Setting {
    /// Whether this is the setting of that key.
    pub(super) fn is(&self, key: &str) -> bool {
        self.key.name == key
    }

    /// Returns the text of the setting, with the position, if it is of that key.
    pub(super) fn text_of(&self, key: &str) -> Option<(&str, Span)> {
        match &self.value {
            SettingValue::One(Argument {
                literal: Some(ComparableValue::Text(text)),
                span,
                ..
            }) if self.is(key) => Some((text, *span)),
            _ => None,
        }
    }

    /// Position of the key.
    pub(super) fn span(&self) -> Span {
        self.key.span
    }

    /// Returns the statement that passes the setting to the builder.
    pub(super) fn statement(&self, krate: &TokenStream) -> TokenStream {
        let place = self.key.span.resolved_at(Span::call_site());
        let method = Ident::new(&self.key.name, place);
        match (self.key.name.as_str(), &self.value) {
            ("resync", SettingValue::Never) => {
                quote_spanned!(place=> let built = built.without_resync();)
            }
            (_, SettingValue::Never) => {
                quote_spanned!(place=> let built = built.#method(::core::time::Duration::MAX);)
            }
            (_, SettingValue::Detail(detail)) => quote_spanned! {place=>
                let built = built.change_log(#krate::controller::ChangeLog::#detail);
            },
            (_, SettingValue::Flag) => quote_spanned!(place=> let built = built.#method();),
            (_, SettingValue::One(value)) => {
                let (tokens, at) = (&value.tokens, value.span.resolved_at(Span::call_site()));
                quote_spanned!(at=> let built = built.#method(#tokens);)
            }
            ("retry", SettingValue::Several(arguments)) => retry(krate, place, arguments),
            ("loop_guard", SettingValue::Several(arguments)) => {
                let (most, within) = (value(arguments, "most"), value(arguments, "within"));
                let spacing = value(arguments, "spacing").map(|it| quote!(.spacing(#it)));
                quote_spanned! {place=>
                    let built = built.loop_guard(
                        #krate::controller::LoopGuard::new(#most, #within) #spacing
                    );
                }
            }
            ("timer", SettingValue::Several(arguments)) => {
                let (every, name) = (value(arguments, "every"), value(arguments, "name"));
                let delay = value(arguments, "initial_delay").map(|it| quote!(.initial_delay(#it)));
                let idle = value(arguments, "idle").map(|it| quote!(.idle(#it)));
                quote_spanned! {place=>
                    let built = built.timer(
                        #krate::controller::Timer::every(#every, #name) #delay #idle
                    );
                }
            }
            (key, SettingValue::Several(arguments)) => {
                let order = GROUPS.iter().find(|group| group.key == key);
                let order = order.map_or(&[][..], |group| group.arguments);
                let values = order.iter().filter_map(|name| value(arguments, name));
                quote_spanned!(place=> let built = built.#method(#(#values),*);)
            }
        }
    }
}

/// Returns the value of an argument.
fn value<'a>(arguments: &'a [(SpannedKey, Argument)], name: &str) -> Option<&'a TokenStream> {
    find(arguments, name).map(|argument| &argument.tokens)
}

/// Returns the statements of `retry(…)`.
fn retry(krate: &TokenStream, place: Span, arguments: &[(SpannedKey, Argument)]) -> TokenStream {
    let policy = match value(arguments, "at_most") {
        Some(most) => quote!(#krate::controller::RetryPolicy::at_most(#most)),
        None => quote!(#krate::controller::RetryPolicy::forever()),
    };
    let between = value(arguments, "base")
        .zip(value(arguments, "cap"))
        .map(|(base, cap)| quote!(.between(#base, #cap)));
    let then = value(arguments, "then_every").map(|every| {
        quote_spanned! {place=>
            let built = built.after_max_retries(
                #krate::controller::AfterMaxRetries::Every(#every)
            );
        }
    });
    quote_spanned!(place=> let built = built.retry(#policy #between); #then)
}
