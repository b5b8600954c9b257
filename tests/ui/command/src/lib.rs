//! The command line of the compiler that expands a macro.

use proc_macro::TokenStream;

/// Arguments of the running compiler, as a slice of texts: program first, then flags, `--extern`
/// among them.
///
/// Cargo gives every build of a library a file name of its own, and a change of these names
/// compiles the caller again. So the slice always names the libraries that the calling program is
/// linked with.
#[proc_macro]
pub fn rustc_arguments(_: TokenStream) -> TokenStream {
    let arguments: Vec<String> = std::env::args().map(|argument| format!("{argument:?}")).collect();
    let slice = format!("&[{}]", arguments.join(", "));
    slice.parse().unwrap_or_else(|fault| panic!("{slice} is not Rust: {fault}"))
}
