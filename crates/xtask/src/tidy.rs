//! `cargo xtask tidy`: rules about the source that no compiler checks.
//!
//! A rule is a file in `tidy/` with a function from a [`Tree`] to [`Finding`]s, and a row of
//! [`RULES`]. Its tests show a small tree that breaks the rule and one that keeps it.

mod allow;
mod comment_width;
mod dependencies;
mod doc_links;
mod doc_paths;
mod environment;
mod file_access;
mod forbid_unsafe;
mod linked_packages;
mod lock_guards;
mod markdown;
mod missing_docs;
mod op_names;
mod phrases;
mod security_tests;
mod test_functions;
mod tree;
mod type_names;
mod unsafe_files;
mod wire_types;

use std::fmt;
use std::time::Instant;

use crate::paths;
use crate::steps::{self, Failure, Result};
use tree::Tree;

/// Check the rules about the source that no compiler checks.
///
/// Each rule is a file in crates/xtask/src/tidy/. Exceptions are listed with their reasons in
/// crates/xtask/tidy/*.allow.
#[derive(clap::Args)]
pub struct Args {
    /// Check this rule only; may be repeated
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,

    /// Show the rules instead of checking them
    #[arg(long)]
    list: bool,
}

/// A place that breaks a rule.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Finding {
        Finding { path: path.into(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

struct Rule {
    name: &'static str,
    about: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "wire-types",
        about: "protobuf types appear only in wire modules and services",
        check: wire_types::check,
    },
    Rule {
        name: "unsafe-files",
        about: "files with unsafe code are those in unsafe.allow",
        check: unsafe_files::check,
    },
    Rule {
        name: "forbid-unsafe",
        about: "a crate without unsafe code forbids it",
        check: forbid_unsafe::check,
    },
    Rule {
        name: "op-names",
        about: "no code compares an op's name outside the op's own file",
        check: op_names::check,
    },
    Rule {
        name: "lock-guards",
        about: "no lock is held over an await, a callback or a kernel",
        check: lock_guards::check,
    },
    Rule {
        name: "doc-paths",
        about: "files and modules that a document names exist",
        check: doc_paths::check,
    },
    Rule {
        name: "doc-links",
        about: "links in documents lead to files and headings that exist",
        check: doc_links::check,
    },
    Rule {
        name: "environment",
        about: "FERROFLOW_* variables are those on the reference page",
        check: environment::check,
    },
    Rule {
        name: "file-access",
        about: "ops use files through ferroflow_core::files",
        check: file_access::check,
    },
    Rule {
        name: "security-tests",
        about: "tests that SECURITY.md names exist",
        check: security_tests::check,
    },
    Rule {
        name: "missing-docs",
        about: "public crates have the missing_docs lint",
        check: missing_docs::check,
    },
    Rule {
        name: "comment-width",
        about: "comments have at most 100 columns",
        check: comment_width::check,
    },
    Rule {
        name: "phrases",
        about: "text does without the phrases of phrases.txt",
        check: phrases::check,
    },
    Rule {
        name: "type-names",
        about: "a public type name has one meaning in the workspace",
        check: type_names::check,
    },
    Rule {
        name: "test-functions",
        about: "tests do something, and ignored ones say why",
        check: test_functions::check,
    },
    Rule {
        name: "dependencies",
        about: "tokio and threads stay where ARCHITECTURE puts them",
        check: dependencies::check,
    },
    Rule {
        name: "linked-packages",
        about: "packages that link programs have no optimization level of their own",
        check: linked_packages::check,
    },
];

pub fn run(args: &Args) -> Result {
    if args.list {
        for rule in RULES {
            println!("{:<15} {}", rule.name, rule.about);
        }
        return Ok(());
    }
    if let Some(unknown) = args.only.iter().find(|name| RULES.iter().all(|r| r.name != **name)) {
        return Err(Failure(format!("no rule '{unknown}'; `cargo xtask tidy --list` shows them")));
    }
    let began = Instant::now();
    let tree = Tree::load(&paths::root())?;
    let mut count = 0;
    for rule in RULES {
        if !args.only.is_empty() && args.only.iter().all(|name| name != rule.name) {
            continue;
        }
        let findings = (rule.check)(&tree);
        count += findings.len();
        if !findings.is_empty() {
            println!("{}: {} ({} places)", rule.name, rule.about, findings.len());
        }
        findings.iter().for_each(|finding| println!("  {finding}"));
    }
    println!("tidy: {count} places, {}", steps::time_text(began.elapsed()));
    if count == 0 { Ok(()) } else { Err(Failure(format!("{count} places break a rule"))) }
}

/// The rules, as a step of `cargo xtask check`.
pub fn checked() -> Result {
    run(&Args { only: Vec::new(), list: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_names_are_unique() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(RULES[..i].iter().all(|other| other.name != rule.name), "{}", rule.name);
        }
    }

    #[test]
    fn a_finding_names_its_place() {
        assert_eq!(Finding::new("a.rs", 3, "bad").to_string(), "a.rs:3: bad");
        assert_eq!(Finding::new("a.rs", 0, "bad").to_string(), "a.rs: bad");
    }
}
