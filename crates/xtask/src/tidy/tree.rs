//! The files of the repository, as the rules see them.

use std::cell::OnceCell;
use std::path::Path;
use std::process::Command;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::steps::{Failure, Result};

/// Every file that Git tracks or would track.
pub struct Tree {
    pub files: Vec<Source>,
}

/// One file, its path relative to the root.
pub struct Source {
    pub path: String,
    /// The text; empty for a file that is not UTF-8 or that a program wrote.
    pub text: String,
    syntax: OnceCell<Option<syn::File>>,
}

impl Tree {
    pub fn load(root: &Path) -> Result<Tree> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let list = list.current_dir(root).output();
        let list = list.map_err(|e| Failure(format!("cannot run git: {e}")))?;
        if !list.status.success() {
            let why = String::from_utf8_lossy(&list.stderr).into_owned();
            return Err(Failure(format!("git ls-files failed: {why}")));
        }
        let names = String::from_utf8_lossy(&list.stdout).into_owned();
        let mut paths: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        // Git also lists a file that was deleted without a commit.
        let read = |path: &&str| {
            let bytes = std::fs::read(root.join(path)).ok()?;
            Some(Source::new(path, String::from_utf8(bytes).unwrap_or_default()))
        };
        Ok(Tree { files: paths.iter().filter_map(read).collect() })
    }

    pub fn file(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The Rust files of crates, without tests, examples and benchmarks in folders of their own.
    pub fn library(&self) -> impl Iterator<Item = &Source> {
        self.rust().filter(|file| file.is_library())
    }

    /// The documents.
    pub fn documents(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.path.ends_with(".md"))
    }

    /// The folders below `crates/`.
    pub fn crates(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.files.iter().filter_map(Source::crate_name).collect();
        names.dedup();
        names
    }

    /// Whether there is a file or folder of this path.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.iter().any(|file| {
            let rest = file.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| Source::new(path, (*text).into())).collect() }
    }
}

impl Source {
    fn new(path: &str, mut text: String) -> Source {
        if text.starts_with("// This file is @generated") {
            text.clear();
        }
        Source { path: path.into(), text, syntax: OnceCell::new() }
    }

    /// The parsed file; `None` when it does not parse, which the compiler reports.
    pub fn syntax(&self) -> Option<&syn::File> {
        self.syntax.get_or_init(|| syn::parse_file(&self.text).ok()).as_ref()
    }

    /// Lines with their numbers from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// `ferroflow-core` for `crates/ferroflow-core/src/lib.rs`.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name)
    }

    pub fn is_library(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.next() == Some("crates")
            && parts.nth(1) == Some("src")
            && self.path.ends_with(".rs")
            && !self.is_test_module()
    }

    /// Whether the file's name marks a module for tests only.
    fn is_test_module(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/src/tests/") || {
            let folders = self.path.split('/').skip(3);
            folders.into_iter().any(|folder| folder == "tests")
        }
    }
}

/// The identifiers of a file outside its tests, including those in macro calls, with their lines.
pub fn identifiers(file: &syn::File) -> Vec<(String, usize)> {
    let mut all = Identifiers(Vec::new());
    all.visit_file(file);
    all.0
}

struct Identifiers(Vec<(String, usize)>);

impl Identifiers {
    fn add(&mut self, ident: &proc_macro2::Ident) {
        self.0.push((ident.to_string(), ident.span().start().line));
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => self.add(&ident),
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Identifiers {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_ident(&mut self, ident: &'ast proc_macro2::Ident) {
        self.add(ident);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.add_tokens(call.tokens.clone());
    }
}

/// The attributes of a module, function, implementation or import; none of other items.
pub fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether these attributes compile an item for tests only.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| {
                    let condition = list.tokens.to_string();
                    condition.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
                })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_loads_and_parses() {
        let tree = Tree::load(&crate::paths::root()).unwrap();
        assert!(tree.has("crates/xtask/src/tidy.rs") && tree.has("crates/xtask/"));
        assert!(!tree.has("crates/xtas"));
        let own = tree.file("crates/xtask/src/tidy/tree.rs").unwrap();
        assert!(own.syntax().is_some() && own.is_library());
        assert_eq!(own.crate_name(), Some("xtask"));
        assert!(tree.crates().contains(&"ferroflow-core"));
    }

    #[test]
    fn tests_are_no_library() {
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", ""),
            ("crates/a/src/x/tests.rs", ""),
            ("crates/a/src/x/tests/deep.rs", ""),
            ("crates/a/tests/x.rs", ""),
            ("crates/a/benches/x.rs", ""),
            ("fuzz/src/x.rs", ""),
        ]);
        let found: Vec<&str> = tree.library().map(|file| file.path.as_str()).collect();
        assert_eq!(found, ["crates/a/src/x.rs"]);
    }

    #[test]
    fn identifiers_are_those_outside_tests() {
        let text = "fn f() { g!(h(1)) }\n#[cfg(test)]\nmod tests { fn t() {} }";
        let found = identifiers(&syn::parse_file(text).unwrap());
        assert_eq!(found, [("f".into(), 1), ("g".into(), 1), ("h".into(), 1)]);
    }

    #[test]
    fn test_attributes_are_found() {
        let item: syn::ItemMod = syn::parse_str("#[cfg(all(test, unix))] mod m {}").unwrap();
        assert!(is_test(&item.attrs));
        let item: syn::ItemMod = syn::parse_str("#[cfg(unix)] mod m {}").unwrap();
        assert!(!is_test(&item.attrs));
    }
}
