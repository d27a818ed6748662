//! Protobuf types appear only in wire modules, in `ferroflow-proto`, and in the files of
//! `wire_types.allow`, such as gRPC services.

use super::Finding;
use super::allow::Allow;
use super::tree::{Tree, identifiers};

/// Crates whose names indicate protobuf types.
const CRATES: [&str; 2] = ["ferroflow_proto", "prost"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut allow = Allow::read(tree, "wire_types");
    let mut found = Vec::new();
    for file in tree.library() {
        if is_wire(&file.path) || !CRATES.iter().any(|name| file.text.contains(name)) {
            continue;
        }
        let Some(syntax) = file.syntax() else { continue };
        let used = identifiers(syntax).into_iter().find(|(name, _)| CRATES.contains(&&**name));
        let Some((name, line)) = used else { continue };
        if !allow.permits(&file.path) {
            let text =
                format!("uses {name} outside a wire module; convert there, or list the file");
            found.push(Finding::new(&file.path, line, text));
        }
    }
    found.extend(allow.problems());
    found
}

fn is_wire(path: &str) -> bool {
    path.starts_with("crates/ferroflow-proto/")
        || path.split('/').any(|part| part == "wire" || part == "wire.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protobuf_type_outside_wire_modules_is_found() {
        let text = "use std::fmt;\nuse ferroflow_proto::GraphDef;\n";
        let tree = Tree::of(&[("crates/a/src/pass.rs", text), ("crates/a/src/wire.rs", text)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/a/src/pass.rs", 2));
    }

    #[test]
    fn wire_modules_tests_and_listed_files_pass() {
        let text = "fn f(g: &prost::Message) {}";
        let test = "#[cfg(test)]\nmod tests { use ferroflow_proto::GraphDef; }";
        let tree = Tree::of(&[
            ("crates/a/src/wire/graph.rs", text),
            ("crates/a/src/service.rs", text),
            ("crates/a/src/pass.rs", test),
            ("crates/xtask/tidy/wire_types.allow", "crates/a/src/service.rs  gRPC service\n"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
