//! No code compares an op's name outside the file that declares the op, except in the files of
//! `op_names.allow`. Passes ask the `OpDef` instead.
//!
//! A comparison is `==`, `!=`, a pattern, `matches!`, or `contains` of an array. The names are
//! those of the generated page of all ops.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit};

use super::Finding;
use super::allow::Allow;
use super::tree::{Source, Tree, attributes_of, is_test};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut allow = Allow::read(tree, "op_names");
    let names = op_names(tree);
    let mut found = Vec::new();
    if names.is_empty() {
        found.push(Finding::new("docs", 0, "no page ops.md that lists the ops"));
    }
    for file in tree.library() {
        let Some(syntax) = file.syntax() else { continue };
        let mut walk = Walk { names: &names, found: Vec::new() };
        walk.visit_file(syntax);
        let compared: Vec<_> = walk.found.iter().map(|(name, _)| name.clone()).collect();
        for (name, line) in walk.found {
            let times = compared.iter().filter(|other| **other == name).count();
            if !declares(file, &name, times) && !allow.permits(&file.path) {
                let text = format!("compares with the op name \"{name}\"; ask the OpDef");
                found.push(Finding::new(&file.path, line, text));
            }
        }
    }
    found.extend(allow.problems());
    found
}

/// The ops that the generated page lists: rows that begin with a name in backquotes.
pub fn op_names(tree: &Tree) -> HashSet<&str> {
    let pages = tree.documents().filter(|file| {
        file.path.starts_with("docs/") && file.path.rsplit('/').next() == Some("ops.md")
    });
    let lines = pages.flat_map(|page| page.text.lines());
    lines.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

/// Whether a file of ops names the op other than in its `compared` comparisons.
fn declares(file: &Source, name: &str, compared: usize) -> bool {
    let is_of_ops = file.crate_name().is_some_and(|name| name.starts_with("ferroflow-ops"));
    (is_of_ops || file.path.ends_with("/ops.rs"))
        && file.text.matches(&format!("\"{name}\"")).count() > compared
}

struct Walk<'a> {
    names: &'a HashSet<&'a str>,
    found: Vec<(String, usize)>,
}

impl Walk<'_> {
    fn literal(&mut self, literal: &Lit) {
        if let Lit::Str(text) = literal
            && self.names.contains(text.value().as_str())
        {
            self.found.push((text.value(), text.span().start().line));
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Lit(literal) => self.literal(&literal.lit),
            Expr::Reference(inner) => self.expression(&inner.expr),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Array(array) => array.elems.iter().for_each(|e| self.expression(e)),
            _ => {}
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Literal(literal) => self.literal(&Lit::new(literal)),
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        if matches!(both.op, BinOp::Eq(_) | BinOp::Ne(_)) {
            self.expression(&both.left);
            self.expression(&both.right);
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        if let syn::Pat::Lit(literal) = pattern {
            self.literal(&literal.lit);
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "contains" {
            self.expression(&call.receiver);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.is_ident("matches") {
            self.tokens(call.tokens.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: (&str, &str) = ("docs/ops.md", "| op | about |\n| `Relu` | … |\n| `Const` | … |\n");

    fn findings(text: &str) -> usize {
        check(&Tree::of(&[PAGE, ("crates/ferroflow-graph/src/passes/p.rs", text)])).len()
    }

    #[test]
    fn comparisons_with_an_op_name_are_found() {
        assert_eq!(findings("fn f(n: &Node) -> bool { n.op == \"Relu\" }"), 1);
        assert_eq!(findings("fn f(n: &str) { match n { \"Relu\" | \"Const\" => {} _ => {} } }"), 2);
        assert_eq!(findings("fn f(n: &str) -> bool { matches!(n, \"Const\") }"), 1);
        assert_eq!(findings("fn f(n: &str) -> bool { [\"Relu\"].contains(&n) }"), 1);
    }

    #[test]
    fn other_uses_of_an_op_name_pass() {
        assert_eq!(findings("fn f(g: &G) { g.call(\"Relu\"); }"), 0);
        assert_eq!(findings("fn f(n: &str) -> bool { n == \"Other\" }"), 0);
        assert_eq!(findings("#[test] fn f() { assert!(op == \"Relu\"); }"), 0);
    }

    #[test]
    fn the_file_of_the_op_and_listed_files_pass() {
        let text = "fn register(c: &mut C) { c.op(\"Relu\"); } fn f() -> bool { x == \"Relu\" }";
        let tree = Tree::of(&[
            PAGE,
            ("crates/ferroflow-ops/src/nn/relu.rs", text),
            ("crates/ferroflow-graph/src/old.rs", "fn f() -> bool { op == \"Const\" }"),
            ("crates/xtask/tidy/op_names.allow", "crates/ferroflow-graph/src/old.rs  reason\n"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
