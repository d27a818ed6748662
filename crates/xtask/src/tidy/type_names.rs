//! A public type name has one meaning in the workspace, except those of `type_names.allow`.
//!
//! The rule counts `pub struct`, `enum`, `trait`, `type` and `union` of library crates, except in
//! tests and in crates that are not published.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Item, Visibility};

use super::Finding;
use super::allow::Allow;
use super::tree::{Source, Tree, attributes_of, is_test};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut allow = Allow::read(tree, "type_names");
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in tree.library() {
        let own = |name: &str| {
            tree.file(&format!("crates/{}/{name}", file.crate_name().unwrap_or_default()))
        };
        let is_internal = |manifest: &Source| manifest.text.contains("\npublish = false\n");
        if own("src/lib.rs").is_none() || own("Cargo.toml").is_some_and(is_internal) {
            continue;
        }
        let Some(syntax) = file.syntax() else { continue };
        let mut types = Types(Vec::new());
        types.visit_file(syntax);
        for (name, line) in types.0 {
            places.entry(name).or_default().push((&file.path, line));
        }
    }
    let mut found = Vec::new();
    for (name, places) in places {
        if places.len() < 2 || allow.permits(&name) {
            continue;
        }
        let (first, line) = places[0];
        for (path, other) in &places[1..] {
            let text = format!("'{name}' is also a type of {first}:{line}; rename one");
            found.push(Finding::new(path, *other, text));
        }
    }
    found.extend(allow.problems());
    found
}

struct Types(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes_of(item)) {
            return;
        }
        let named = match item {
            Item::Struct(item) => Some((&item.vis, &item.ident)),
            Item::Enum(item) => Some((&item.vis, &item.ident)),
            Item::Trait(item) => Some((&item.vis, &item.ident)),
            Item::Type(item) => Some((&item.vis, &item.ident)),
            Item::Union(item) => Some((&item.vis, &item.ident)),
            _ => None,
        };
        if let Some((Visibility::Public(_), name)) = named {
            self.0.push((name.to_string(), name.span().start().line));
        }
        visit::visit_item(self, item);
    }

    // Types inside a function are private to it.
    fn visit_block(&mut self, _: &'ast syn::Block) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARIES: [(&str, &str); 2] =
        [("crates/a/src/lib.rs", "mod x;"), ("crates/b/src/lib.rs", "pub struct Part;")];

    #[test]
    fn two_types_of_one_name_are_found() {
        let [a, b] = LIBRARIES;
        let found = check(&Tree::of(&[a, ("crates/a/src/x.rs", "\npub enum Part {}"), b]));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "crates/b/src/lib.rs:1: 'Part' is also a type of crates/a/src/x.rs:2; rename one"
        );
    }

    #[test]
    fn private_types_commands_and_listed_names_pass() {
        let [a, b] = LIBRARIES;
        let private = "pub(crate) struct Part; struct Part; fn f() { pub struct Part; }
            #[cfg(test)] mod tests { pub struct Part; } pub struct Error;";
        let tree = Tree::of(&[
            a,
            ("crates/a/src/x.rs", private),
            b,
            ("crates/b/src/y.rs", "pub enum Error {}"),
            ("crates/c/src/main.rs", "pub struct Part;"),
            ("crates/d/src/lib.rs", "pub struct Part;"),
            ("crates/d/Cargo.toml", "[package]\npublish = false\n"),
            ("crates/xtask/tidy/type_names.allow", "Error  each is the error of its crate\n"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
