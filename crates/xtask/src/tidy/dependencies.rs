//! Invariants of ARCHITECTURE about tokio and threads: tokio stays in the cluster, the public
//! session and the command, and no op kernel starts a thread.

use super::Finding;
use super::tree::{Tree, identifiers};

/// Crates that may depend on tokio.
const WITH_TOKIO: [&str; 8] = [
    "ferroflow",
    "ferroflow-cluster",
    "ferroflow-cli",
    "ferroflow-command",
    "ferroflow-observe",
    "ferroflow-python",
    "ferroflow-serve",
    "ferroflow-train",
];

/// The prefix of the crates with ops' kernels.
const OPS: &str = "ferroflow-ops";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in tree.crates().into_iter().filter(|name| !WITH_TOKIO.contains(name)) {
        let Some(manifest) = tree.file(&format!("crates/{name}/Cargo.toml")) else { continue };
        for (line, text) in manifest.lines() {
            if text.starts_with("tokio.") || text.starts_with("tokio =") {
                let text = format!("{name} must not depend on tokio");
                found.push(Finding::new(&manifest.path, line, text));
            }
        }
    }
    for file in tree.library() {
        let is_of_ops = file.crate_name().is_some_and(|name| name.starts_with(OPS));
        if !is_of_ops || !file.text.contains("thread") {
            continue;
        }
        let Some(syntax) = file.syntax() else { continue };
        let names = identifiers(syntax);
        for pair in names.windows(2) {
            let ((first, _), (second, line)) = (&pair[0], &pair[1]);
            let starts = matches!(second.as_str(), "spawn" | "Builder" | "scope");
            if first == "thread" && starts {
                let text = "an op starts a thread; use the pool of the step";
                found.push(Finding::new(&file.path, *line, text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokio_in_another_crate_is_found() {
        let tree = Tree::of(&[(
            "crates/ferroflow-graph/Cargo.toml",
            "[dependencies]\ntokio.workspace = true\n",
        )]);
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_thread_in_a_kernel_is_found() {
        let text = "fn f() {\n    std::thread::spawn(g);\n}";
        let found = check(&Tree::of(&[("crates/ferroflow-ops-math/src/x.rs", text)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn tokio_in_the_cluster_and_threads_elsewhere_pass() {
        let thread = "fn f() { std::thread::spawn(g); }";
        let test = format!("#[cfg(test)] mod tests {{ {thread} }}");
        let tree = Tree::of(&[
            ("crates/ferroflow-cluster/Cargo.toml", "tokio.workspace = true\n"),
            ("crates/ferroflow-runtime/src/pool.rs", thread),
            ("crates/ferroflow-ops/src/x.rs", &test),
        ]);
        assert_eq!(check(&tree), []);
    }
}
