//! `unsafe.allow` lists every file with unsafe code, and only those.

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::allow::Allow;
use super::tree::{Source, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut allow = Allow::read(tree, "unsafe");
    let mut found = Vec::new();
    for file in tree.rust() {
        let Some(line) = unsafe_line(file) else { continue };
        if !allow.permits(&file.path) {
            let text = "has unsafe code and is not in crates/xtask/tidy/unsafe.allow";
            found.push(Finding::new(&file.path, line, text));
        }
    }
    found.extend(allow.problems());
    found
}

/// The first line of a file with the keyword `unsafe`, in macros, too.
pub fn unsafe_line(file: &Source) -> Option<usize> {
    if !file.text.contains("unsafe") {
        return None;
    }
    first_unsafe(file.text.parse().ok()?)
}

fn first_unsafe(tokens: TokenStream) -> Option<usize> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "unsafe" => Some(ident.span().start().line),
        TokenTree::Group(group) => first_unsafe(group.stream()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSAFE: &str = "// unsafe in words\nfn f() {\n    unsafe { g() }\n}\n";

    #[test]
    fn a_new_file_with_unsafe_code_is_found() {
        let found = check(&Tree::of(&[("crates/a/src/x.rs", UNSAFE)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn a_listed_file_without_unsafe_code_is_found() {
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", "#![forbid(unsafe_code)] // no unsafe"),
            ("crates/xtask/tidy/unsafe.allow", "crates/a/src/x.rs  SIMD\n"),
        ]);
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_listed_file_passes() {
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", UNSAFE),
            ("crates/xtask/tidy/unsafe.allow", "crates/a/src/x.rs  SIMD\n"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
