//! A `#[test]` function is a test: not the body of a child process, and not ignored without a
//! reason.
//!
//! A test that needs a second process runs itself again and calls the body as an ordinary function
//! (`ferroflow_testing::child`). A body that is a test of its own is found by its name, which
//! the parent writes as a string.

use std::collections::HashMap;

use syn::Lit;
use syn::visit::{self, Visit};

use super::Finding;
use super::tree::{Source, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in tree.crates() {
        let mut walk = Walk::default();
        for file in tree.rust().filter(|file| file.crate_name() == Some(name)) {
            let Some(syntax) = file.syntax() else { continue };
            walk.file = Some(file);
            walk.visit_file(syntax);
        }
        for (file, line) in walk.ignored {
            let text = "#[ignore] without a reason: write #[ignore = \"…\"]";
            found.push(Finding::new(&file.path, line, text));
        }
        for (text, file, line) in walk.strings {
            let last = text.rsplit("::").next().unwrap_or_default();
            if walk.tests.contains_key(last) {
                let text = format!("starts the test {last} as a process; make it a function");
                found.push(Finding::new(&file.path, line, text));
            }
        }
    }
    found
}

#[derive(Default)]
struct Walk<'a> {
    file: Option<&'a Source>,
    tests: HashMap<String, usize>,
    ignored: Vec<(&'a Source, usize)>,
    /// Strings that could be names of tests.
    strings: Vec<(String, &'a Source, usize)>,
}

impl<'a, 'ast> Visit<'ast> for Walk<'a> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let line = item.sig.ident.span().start().line;
        let is = |name: &str| item.attrs.iter().any(|a| a.path().is_ident(name));
        if is("test") {
            self.tests.insert(item.sig.ident.to_string(), line);
        }
        let bare = |a: &syn::Attribute| {
            a.path().is_ident("ignore") && matches!(a.meta, syn::Meta::Path(_))
        };
        if let Some(file) = self.file.filter(|_| item.attrs.iter().any(bare)) {
            self.ignored.push((file, line));
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_lit(&mut self, literal: &'ast Lit) {
        if let (Lit::Str(text), Some(file)) = (literal, self.file) {
            let value = text.value();
            if value.contains('_') && value.chars().all(|c| c.is_alphanumeric() || "_:".contains(c))
            {
                self.strings.push((value, file, text.span().start().line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&Tree::of(&[("crates/a/tests/x.rs", text)])).len()
    }

    #[test]
    fn a_child_process_that_is_a_test_is_found() {
        let text = "#[test] fn a_child() {}\n
            #[test] fn parent() { run([\"--exact\", \"tests::a_child\"]) }";
        assert_eq!(findings(text), 1);
    }

    #[test]
    fn an_ignored_test_without_a_reason_is_found() {
        assert_eq!(findings("#[test] #[ignore] fn f() {}"), 1);
    }

    #[test]
    fn tests_that_run_themselves_again_pass() {
        let text = "fn a_child() {}
            #[test] fn parent() { if is_child(\"rank\") { return a_child() } }
            #[test] #[ignore = \"takes an hour\"] fn long() {}";
        assert_eq!(findings(text), 0);
    }
}
