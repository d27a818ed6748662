//! A `#[test]` function tests something: it does not pass without doing anything, and if it is
//! ignored it has a reason.
//!
//! A test that does nothing unless a variable is set is the body of a child process. A test that
//! needs a second process runs itself again instead, and calls the body as an ordinary function
//! (`ferroflow_testing::child`).

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, Stmt};

use super::Finding;
use super::tree::Tree;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| file.text.contains("test]")) {
        let Some(syntax) = file.syntax() else { continue };
        let mut walk = Walk(Vec::new());
        walk.visit_file(syntax);
        found.extend(walk.0.into_iter().map(|(line, text)| Finding::new(&file.path, line, text)));
    }
    found
}

struct Walk(Vec<(usize, String)>);

impl<'ast> Visit<'ast> for Walk {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let (name, line) = (&item.sig.ident, item.sig.ident.span().start().line);
        let bare = |a: &syn::Attribute| {
            a.path().is_ident("ignore") && matches!(a.meta, syn::Meta::Path(_))
        };
        if item.attrs.iter().any(bare) {
            self.0.push((line, format!("{name} is ignored without a reason")));
        }
        let is_test =
            |a: &syn::Attribute| a.path().segments.last().is_some_and(|last| last.ident == "test");
        if item.attrs.iter().any(is_test) && does_nothing_without_variable(&item.block) {
            let text = format!("{name} passes without doing anything unless a variable is set");
            self.0.push((line, text));
        }
        visit::visit_item_fn(self, item);
    }
}

/// Whether a test begins with `let … = VARIABLE else { return }` or `if VARIABLE is missing
/// { return }`, or is nothing but `if VARIABLE … { … }`.
fn does_nothing_without_variable(block: &syn::Block) -> bool {
    match block.stmts.first() {
        Some(Stmt::Local(local)) => local.init.as_ref().is_some_and(|init| {
            let is_return = |(_, other): &(_, Box<Expr>)| returns(other);
            reads_variable(&init.expr) && init.diverge.as_ref().is_some_and(is_return)
        }),
        Some(Stmt::Expr(Expr::If(choice), _)) if reads_variable(&choice.cond) => {
            let is_all = block.stmts.len() == 1 && choice.else_branch.is_none();
            let is_missing = mentions(choice.cond.to_token_stream(), &["is_none", "is_err"]);
            is_all || is_missing && choice.then_branch.stmts.first().is_some_and(is_bare_return)
        }
        _ => false,
    }
}

fn reads_variable(expression: &Expr) -> bool {
    mentions(expression.to_token_stream(), &["var", "var_os", "from_env", "role"])
}

fn mentions(tokens: TokenStream, names: &[&str]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.iter().any(|name| ident == name),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}

fn returns(expression: &Expr) -> bool {
    match expression {
        Expr::Block(block) => block.block.stmts.last().is_some_and(is_bare_return),
        _ => false,
    }
}

fn is_bare_return(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::Return(result), _) if result.expr.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&Tree::of(&[("crates/a/tests/x.rs", text)])).len()
    }

    #[test]
    fn tests_that_do_nothing_unless_a_variable_is_set_are_found() {
        for body in [
            "let Ok(scene) = std::env::var(SCENE) else { return };\n act(scene)",
            "if std::env::var_os(\"RANK\").is_none() { return; }\n act()",
            "if std::env::var(\"RANK\").is_ok() { act() }",
        ] {
            assert_eq!(findings(&format!("#[test] fn a_child() {{ {body} }}")), 1, "{body}");
            assert_eq!(findings(&format!("fn no_test() {{ {body} }}")), 0, "{body}");
        }
    }

    #[test]
    fn an_ignored_test_without_a_reason_is_found() {
        assert_eq!(findings("#[test] #[ignore] fn f() {}"), 1);
    }

    #[test]
    fn tests_that_run_themselves_again_pass() {
        let text = "fn rank() {}
            #[test] fn parent() { if role().is_some() { return rank() } start() }
            #[test] fn count() { let n = env::var(\"N\").unwrap_or_default(); run(n) }
            #[test] #[ignore = \"takes an hour\"] fn long() {}";
        assert_eq!(findings(text), 0);
    }
}
