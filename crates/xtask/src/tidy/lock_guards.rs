//! No lock is held over an await, a callback or a kernel, except in the functions of
//! `lock_guards.allow` (`path::function`).
//!
//! The rule reads source, not types. A guard is a `let` binding of `….lock()`, `….read()`,
//! `….write()` or of a function that returns a guard, or a temporary of that kind in the head of a
//! `for`, `match`, `if let` or `while let`. It lives until its block ends, it is dropped, or it is
//! passed on by value. A callback is a call of a field or of a local variable that is no closure of
//! the same function. A kernel is a call of `compute`.

use std::collections::HashSet;

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Expr, Pat, ReturnType};

use super::Finding;
use super::allow::Allow;
use super::tree::{Source, Tree, attributes_of, is_test};

const GUARDS: [&str; 5] = [
    "MutexGuard",
    "MappedMutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "MappedRwLockReadGuard",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut allow = Allow::read(tree, "lock_guards");
    let mut found = Vec::new();
    for name in tree.crates() {
        let files: Vec<&Source> =
            tree.library().filter(|file| file.crate_name() == Some(name)).collect();
        let mut lockers = Lockers::default();
        for file in files.iter().filter(|file| file.text.contains("Guard<")) {
            file.syntax().iter().for_each(|syntax| lockers.visit_file(syntax));
        }
        for file in files {
            let Some(syntax) = file.syntax() else { continue };
            let mut walk = Walk::new(&lockers.0);
            walk.visit_file(syntax);
            for held in walk.found {
                if !allow.permits(&format!("{}::{}", file.path, held.function)) {
                    found.push(Finding::new(&file.path, held.line, held.text()));
                }
            }
        }
    }
    found.extend(allow.problems());
    found
}

/// Names of functions that return a guard.
#[derive(Default)]
struct Lockers(HashSet<String>);

impl<'ast> Visit<'ast> for Lockers {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let ReturnType::Type(_, result) = &signature.output else { return };
        if let syn::Type::Path(path) = &**result
            && let Some(last) = path.path.segments.last()
            && GUARDS.iter().any(|guard| last.ident == guard)
        {
            self.0.insert(signature.ident.to_string());
        }
    }
}

struct Held {
    function: String,
    line: usize,
    over: String,
    since: usize,
}

impl Held {
    fn text(&self) -> String {
        let Held { function, over, since, .. } = self;
        format!("{function} holds the lock of line {since} over {over}")
    }
}

#[derive(Clone)]
struct Guard {
    /// Empty for a temporary.
    name: String,
    line: usize,
}

struct Walk<'a> {
    lockers: &'a HashSet<String>,
    function: String,
    /// Variables of the function, without closures that it defines itself.
    locals: HashSet<String>,
    live: Vec<Guard>,
    found: Vec<Held>,
}

fn line(span: Span) -> usize {
    span.start().line
}

impl<'a> Walk<'a> {
    fn new(lockers: &'a HashSet<String>) -> Walk<'a> {
        let (function, locals) = (String::new(), HashSet::new());
        Walk { lockers, function, locals, live: Vec::new(), found: Vec::new() }
    }

    fn over(&mut self, span: Span, over: String) {
        if let Some(guard) = self.live.last() {
            let (function, since) = (self.function.clone(), guard.line);
            self.found.push(Held { function, line: line(span), over, since });
        }
    }

    fn function(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        let outer = (
            std::mem::replace(&mut self.function, name),
            std::mem::take(&mut self.locals),
            std::mem::take(&mut self.live),
        );
        visit(self);
        (self.function, self.locals, self.live) = outer;
    }

    /// Visits code that runs at another time, without the guards around it.
    fn later(&mut self, visit: impl FnOnce(&mut Self)) {
        let live = std::mem::take(&mut self.live);
        visit(self);
        self.live = live;
    }

    /// Visits a body during which the temporaries of `head` are alive.
    fn during(&mut self, head: &Expr, visit: impl FnOnce(&mut Self)) {
        let count = self.live.len();
        let mut temporary = Temporary { lockers: self.lockers, found: None };
        temporary.visit_expr(head);
        self.live.extend(temporary.found.map(|line| Guard { name: String::new(), line }));
        visit(self);
        self.live.truncate(count);
    }

    /// Visits a block after a condition, during which the temporaries of its `let` parts are alive.
    fn condition(&mut self, condition: &Expr, block: &syn::Block) {
        match condition {
            Expr::Let(part) => self.during(&part.expr, |walk| walk.visit_block(block)),
            Expr::Binary(both) if matches!(*both.left, Expr::Let(_)) => {
                self.condition(&both.left, block);
            }
            Expr::Binary(both) => self.condition(&both.right, block),
            _ => self.visit_block(block),
        }
    }

    fn end(&mut self, argument: &Expr) {
        if let Some(name) = variable(argument) {
            self.live.retain(|guard| guard.name != name);
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(item.sig.ident.to_string(), |walk| visit::visit_item_fn(walk, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(item.sig.ident.to_string(), |walk| visit::visit_impl_item_fn(walk, item));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(item.sig.ident.to_string(), |walk| visit::visit_trait_item_fn(walk, item));
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let live = self.live.clone();
        visit::visit_block(self, block);
        self.live = live;
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        let Some(init) = &local.init else { return };
        let Some(name) = bound(&local.pat) else { return };
        if matches!(&*init.expr, Expr::Closure(_)) {
            self.locals.remove(&name);
        }
        if let Some(line) = locking(&init.expr, self.lockers) {
            self.live.push(Guard { name, line });
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.locals.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        visit::visit_expr_call(self, call);
        call.args.iter().for_each(|argument| self.end(argument));
        let span = call.paren_token.span.open();
        match &*call.func {
            Expr::Paren(inner) if matches!(&*inner.expr, Expr::Field(_)) => {
                self.over(span, "a callback in a field".into());
            }
            function => {
                let name = variable(function);
                if let Some(name) = name.filter(|name| self.locals.contains(name)) {
                    self.over(span, format!("the callback {name}"));
                }
            }
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        call.args.iter().for_each(|argument| self.end(argument));
        if call.method == "compute" {
            self.over(call.method.span(), "a kernel".into());
        }
    }

    fn visit_expr_await(&mut self, wait: &'ast syn::ExprAwait) {
        visit::visit_expr_await(self, wait);
        self.over(wait.await_token.span, "an await".into());
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.later(|walk| visit::visit_expr_async(walk, block));
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        // A `move` closure usually runs on another thread or later.
        match closure.capture {
            Some(_) => self.later(|walk| visit::visit_expr_closure(walk, closure)),
            None => visit::visit_expr_closure(self, closure),
        }
    }

    fn visit_expr_for_loop(&mut self, each: &'ast syn::ExprForLoop) {
        self.visit_expr(&each.expr);
        self.visit_pat(&each.pat);
        self.during(&each.expr, |walk| walk.visit_block(&each.body));
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        self.visit_expr(&choice.expr);
        self.during(&choice.expr, |walk| {
            choice.arms.iter().for_each(|arm| walk.visit_arm(arm));
        });
    }

    fn visit_expr_if(&mut self, choice: &'ast syn::ExprIf) {
        self.visit_expr(&choice.cond);
        self.condition(&choice.cond, &choice.then_branch);
        if let Some((_, other)) = &choice.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, each: &'ast syn::ExprWhile) {
        self.visit_expr(&each.cond);
        self.condition(&each.cond, &each.body);
    }
}

/// Finds a lock among the temporaries of an expression.
struct Temporary<'a> {
    lockers: &'a HashSet<String>,
    found: Option<usize>,
}

impl<'ast> Visit<'ast> for Temporary<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        if let Expr::MethodCall(call) = expression
            && is_lock(call, self.lockers)
        {
            self.found.get_or_insert(line(call.method.span()));
        }
        visit::visit_expr(self, expression);
    }

    fn visit_block(&mut self, _: &'ast syn::Block) {}
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
}

fn is_lock(call: &syn::ExprMethodCall, lockers: &HashSet<String>) -> bool {
    let name = call.method.to_string();
    call.args.is_empty() && (matches!(&*name, "lock" | "read" | "write") || lockers.contains(&name))
}

/// The line of the lock whose guard is the value of this expression.
fn locking(expression: &Expr, lockers: &HashSet<String>) -> Option<usize> {
    match expression {
        Expr::Await(wait) => locking(&wait.base, lockers),
        Expr::Try(tried) => locking(&tried.expr, lockers),
        Expr::MethodCall(call) if is_lock(call, lockers) => Some(line(call.method.span())),
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            let keeps = matches!(&*name, "unwrap" | "expect" | "unwrap_or_else");
            keeps.then(|| locking(&call.receiver, lockers)).flatten()
        }
        _ => None,
    }
}

/// The name that a simple pattern binds.
fn bound(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(pattern) => Some(pattern.ident.to_string()),
        Pat::Type(pattern) => bound(&pattern.pat),
        _ => None,
    }
}

/// The name of an expression that is just a variable.
fn variable(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(body: &str) -> Vec<String> {
        let text = format!(
            "impl A {{\n fn state(&self) -> MutexGuard<'_, S> {{ self.s.lock() }}\n {body}\n}}"
        );
        let found = check(&Tree::of(&[("crates/a/src/x.rs", &text)]));
        found.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_guard_held_over_an_await_is_found() {
        assert_eq!(
            findings("async fn f(&self) { let g = self.m.lock().unwrap(); wait().await; }"),
            ["f holds the lock of line 3 over an await"]
        );
        assert_eq!(findings("async fn f(&self) { let g = self.state(); wait().await; }").len(), 1);
        assert_eq!(
            findings("async fn f(&self) { let g = self.m.lock().await; wait().await; }").len(),
            1
        );
    }

    #[test]
    fn a_guard_held_over_a_callback_is_found() {
        assert_eq!(
            findings("fn f(&self, done: impl Fn()) { let g = self.m.lock(); done(); }"),
            ["f holds the lock of line 3 over the callback done"]
        );
        assert_eq!(findings("fn f(&self) { let g = self.m.write(); (self.done)(1); }").len(), 1);
        assert_eq!(findings("fn f(&self) { for w in self.m.lock().drain(..) { w() } }").len(), 1);
        assert_eq!(
            findings("fn f(&self) { if let Some(w) = self.m.lock().take() { w() } }").len(),
            1
        );
        assert_eq!(
            findings("fn f(&self) { match self.m.lock().pop() { Some(w) => w(), _ => {} } }").len(),
            1
        );
    }

    #[test]
    fn a_guard_held_over_a_kernel_is_found() {
        assert_eq!(
            findings("fn f(&self) { let g = self.m.lock(); self.kernel.compute(&mut ctx); }"),
            ["f holds the lock of line 3 over a kernel"]
        );
    }

    #[test]
    fn guards_that_ended_pass() {
        for body in [
            "async fn f(&self) { let n = self.m.lock().len(); wait(n).await; }",
            "async fn f(&self) { let g = self.m.lock(); drop(g); wait().await; }",
            "async fn f(&self) { { let g = self.m.lock(); } wait().await; }",
            "fn f(&self) { let Some(w) = self.m.lock().take() else { return }; w(); }",
            "fn f(&self) { let ws = take(&mut *self.m.lock()); for w in ws { w() } }",
            "fn f(&self) { let g = self.m.lock(); let h = |x| x; h(1); free(2); }",
            "fn f(&self) { let g = self.m.lock(); spawn(async move { wait().await }); }",
            "fn f(&self, c: F) { let g = self.m.lock(); spawn(move || c()); }",
            "fn f(&self, c: F) { let mut g = self.m.lock(); g = wait(g); finish(g); c(); }",
        ] {
            assert_eq!(findings(body), [] as [String; 0], "{body}");
        }
    }

    #[test]
    fn tests_and_listed_functions_pass() {
        let text = "fn f(c: F) { let g = m.lock(); c(); }";
        let test = format!("#[cfg(test)] mod tests {{ {text} }}");
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", text),
            ("crates/a/src/y.rs", &test),
            ("crates/xtask/tidy/lock_guards.allow", "crates/a/src/x.rs::f  sorts by the key\n"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
