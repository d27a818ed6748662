//! Files and modules that a document names in backquotes exist.
//!
//! A path may be short: `core/src/error.rs` is a file of `ferroflow-core`, and `error.rs` is any
//! file of that name. `{a,b}` means both; `*` and words in capitals match anything. The rule checks
//! only Rust files, and paths that begin in a folder of the repository: other names in backquotes
//! may be the reader's own files.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::markdown::code;
use super::tree::Tree;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let known = Known::new(tree);
    let mut found = Vec::new();
    for document in tree.documents().filter(|file| file.path != "CHANGELOG.md") {
        for span in code(&document.text) {
            for word in span.text.split_whitespace() {
                let word = word.trim_end_matches([',', ';']);
                let why = if word.contains("::") {
                    known.is_missing_module(word).then(|| format!("there is no module {word}"))
                } else {
                    known.missing_path(word).map(|path| format!("there is no file {path}"))
                };
                found.extend(why.map(|why| Finding::new(&document.path, span.line, why)));
            }
        }
    }
    found
}

struct Known<'a> {
    tree: &'a Tree,
    /// Folders at the root of the repository.
    folders: HashSet<&'a str>,
    crates: Vec<&'a str>,
    /// The names that Rust files declare or import.
    declared: HashSet<String>,
}

impl<'a> Known<'a> {
    fn new(tree: &'a Tree) -> Known<'a> {
        let folders = tree.files.iter().filter_map(|file| Some(file.path.split_once('/')?.0));
        let mut declared = HashSet::new();
        for file in tree.library() {
            if let Ok(tokens) = file.text.parse() {
                declare(tokens, &mut declared);
            }
        }
        Known { tree, folders: folders.collect(), crates: tree.crates(), declared }
    }

    /// The first path in a word that looks like a file of the repository and does not exist.
    fn missing_path(&self, word: &str) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./{},*".contains(c);
        if word.starts_with(['/', '.', '-']) || !word.chars().all(plain) {
            return None;
        }
        expand(word).into_iter().find(|path| self.is_ours(path) && !self.exists(path))
    }

    fn is_ours(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_rust = name.ends_with(".rs") && name.len() > 3;
        let Some((first, _)) = path.split_once('/') else { return is_rust };
        let is_short = self.crates.iter().any(|name| short(name) == first);
        is_rust
            || (self.folders.contains(first) || is_short)
                && (path.ends_with('/') || name.contains('.') || self.folders.contains(first))
    }

    fn exists(&self, path: &str) -> bool {
        let pattern: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let is_within = |file: &str| {
            let parts: Vec<&str> = file.split('/').collect();
            // A folder exists if it contains a file.
            (0..parts.len()).any(|start| {
                let window = &parts[start..parts.len().min(start + pattern.len())];
                window.len() == pattern.len()
                    && (!path.contains(".rs") || start + pattern.len() == parts.len())
                    && pattern.iter().zip(window).all(|(p, part)| matches(p, part))
            })
        };
        self.tree.files.iter().any(|file| is_within(&file.path))
    }

    /// Whether a word such as `graph::wire` begins with one of our crates, and continues with a
    /// name that none of our files declares.
    fn is_missing_module(&self, word: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
        let word = word.trim_end_matches("()").trim_end_matches('!');
        if !word.chars().all(plain) {
            return false;
        }
        let (first, rest) = word.split_once("::").unwrap_or((word, ""));
        let is_crate = |name: &&str| short(name) == first || name.replace('-', "_") == first;
        self.crates.iter().any(is_crate)
            && rest.split("::").any(|part| !part.is_empty() && !self.declared.contains(part))
    }
}

/// `core` for `ferroflow-core`.
fn short(name: &str) -> &str {
    name.strip_prefix("ferroflow-").unwrap_or(name)
}

/// Whether a part of a path matches the text of a document: literally, with `*` for anything. A
/// word in capitals is a placeholder, and a short crate name is its folder.
fn matches(pattern: &str, part: &str) -> bool {
    let stem = pattern.split('.').next().unwrap_or_default();
    let is_document =
        ["README", "OPS", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"].contains(&stem);
    let is_capitals = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let is_placeholder = !is_document && stem.split('_').any(is_capitals);
    if pattern == part || is_placeholder || short(part) == pattern {
        return true;
    }
    match pattern.split_once('*') {
        Some((before, after)) => {
            part.len() >= before.len() + after.len()
                && part.starts_with(before)
                && part.ends_with(after)
        }
        None => false,
    }
}

/// `a{b,c}d` as `abd` and `acd`.
fn expand(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.into()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![word.into()] };
    let each = choices.split(',').map(|choice| format!("{before}{choice}{after}"));
    each.flat_map(|word| expand(&word)).collect()
}

/// Adds the names after `mod`, `fn`, `struct` and so on, and all names of `use` items.
fn declare(tokens: TokenStream, into: &mut HashSet<String>) {
    const KEYWORDS: [&str; 10] =
        ["mod", "fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];
    let (mut is_next, mut is_import) = (false, false);
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                is_import |= name == "use";
                if is_import || is_next {
                    into.insert(name.clone());
                }
                is_next = KEYWORDS.contains(&name.as_str());
            }
            TokenTree::Group(group) => {
                if is_import {
                    let names = group.stream().to_string();
                    let names = names.split(|c: char| !c.is_alphanumeric() && c != '_');
                    into.extend(names.map(str::to_owned));
                } else {
                    declare(group.stream(), into);
                }
            }
            TokenTree::Punct(punct) => is_import &= punct.as_char() != ';',
            TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("crates/ferroflow-core/src/error.rs", "pub mod wire { fn f() {} }"),
            ("crates/ferroflow-core/src/lib.rs", "pub use x::{Shape, other as Error};"),
            ("bench/run.py", ""),
        ]);
        check(&tree).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn names_of_files_and_modules_that_are_gone_are_found() {
        for word in [
            "core/src/gone.rs",
            "gone.rs",
            "crates/ferroflow-gone/",
            "bench/gone.py",
            "core/src/{error,gone}.rs",
            "core::gone",
            "ferroflow_core::Gone",
        ] {
            assert_eq!(findings(&format!("See `{word}`.")).len(), 1, "{word}");
        }
    }

    #[test]
    fn names_of_what_is_there_pass() {
        for word in [
            "core/src/error.rs",
            "error.rs",
            "src/error.rs",
            "crates/ferroflow-core/src/",
            "bench/run.py",
            "core/src/{error,lib}.rs",
            "core/src/NAME.rs",
            "bench/N_NAME.py",
            "bench/*.py",
            "core::wire",
            "ferroflow_core::Error",
            "std::fmt",
            "train.py",
            "/etc/hosts",
            "read/write",
        ] {
            assert_eq!(findings(&format!("See `{word}`.")), [] as [String; 0], "{word}");
        }
    }
}
