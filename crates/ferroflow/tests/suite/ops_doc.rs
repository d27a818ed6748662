//! docs/src/reference/ops.md lists the ops of the catalog. Write it again with
//! `UPDATE_DOCS=1 cargo test -p ferroflow --test suite ops_doc`.

use ferroflow::graph::default_catalog;
use ferroflow_graph::unsupported_reason;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The ops for which TensorFlow 2.15.1 has CPU kernels.
const TENSORFLOW: &str = include_str!("../data/tf-2.15.1-cpu-kernels.tsv");

/// Where the oracle's answers differ, and why.
const EXPLAINED: &str = include_str!("../../../../oracle/explained.tsv");

#[test]
fn the_list_of_ops_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/ops.md");
    let fresh = render();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == fresh,
        "docs/src/reference/ops.md is stale; run: UPDATE_DOCS=1 cargo test -p ferroflow --test suite ops_doc"
    );
}

fn render() -> String {
    let theirs: BTreeSet<&str> = TENSORFLOW
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut columns = line.split('\t');
            let (op, kernels) = (columns.next()?, columns.next()?);
            (kernels != "0").then_some(op)
        })
        .collect();
    let catalog = default_catalog();
    let ours: Vec<_> = catalog.iter().filter(|op| op.cpu.is_some()).collect();
    let names: BTreeSet<&str> = ours.iter().map(|op| op.name.as_str()).collect();
    let mut families: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for op in &ours {
        families.entry(family(op.source)).or_default().push(op);
    }
    let covered = names.intersection(&theirs).count();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "# Ops\n\nGenerated from the catalog. Ferroflow has CPU kernels for {covered} of the {} ops \
         for which TensorFlow 2.15.1 has some, and {} ops in all. An op that is missing answers \
         `Unimplemented`, naming op and node, when the graph is registered.\n",
        theirs.len(),
        names.len()
    );
    for (family, ops) in &families {
        let _ = writeln!(out, "## {family} ({})\n\n| op | what it is |\n| --- | --- |", ops.len());
        for op in ops {
            let _ = writeln!(out, "| `{}` | {} |", op.name, op.doc.replace('|', "\\|"));
        }
        out.push('\n');
    }
    let missing: Vec<&str> = theirs.difference(&names).copied().collect();
    without_kernels(&mut out, &missing);
    differences(&mut out);
    out
}

/// The ops without kernels, by reason, and those that are still to come.
fn without_kernels(out: &mut String, missing: &[&str]) {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut to_come = Vec::new();
    for op in missing {
        match unsupported_reason(op) {
            Some(reason) => by_reason.entry(reason).or_default().push(op),
            None => to_come.push(*op),
        }
    }
    let count: usize = by_reason.values().map(Vec::len).sum();
    let _ = writeln!(out, "## Without a kernel ({count})\n\n| why | ops |\n| --- | --- |");
    for (reason, ops) in by_reason {
        let ops: Vec<String> = ops.iter().map(|op| format!("`{op}`")).collect();
        let _ = writeln!(out, "| {} | {} |", reason.replace('*', "\\*"), ops.join(", "));
    }
    let _ = writeln!(out, "\n## Not yet ({})\n\n{}", to_come.len(), to_come.join(", "));
}

#[test]
fn ops_with_kernels_are_not_listed_as_unsupported() {
    for op in default_catalog().iter().filter(|op| op.cpu.is_some()) {
        assert_eq!(unsupported_reason(&op.name), None, "{} has a kernel", op.name);
    }
}

/// The table of intended differences from TensorFlow.
fn differences(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Where results differ\n\nRandom calls of every op are made in TensorFlow and in Ferroflow \
         (`oracle/README.md`). Where the answers differ on purpose, this is why. \"Spoiled\" calls are \
         those made to be wrong; *refused* means that only TensorFlow computes them, *accepted* that \
         only Ferroflow does, *code* that the error codes differ.\n\n\
         | ops | dtypes | what | where the call or the answers say | why |\n| --- | --- | --- | --- | --- |"
    );
    for line in EXPLAINED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let names = |i: usize| columns.get(i).copied().unwrap_or_default().replace('*', "\\*");
        let pattern = columns.get(3).copied().unwrap_or_default().replace('|', "\\|");
        let reason = columns.get(4).copied().unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} | {} | `{pattern}` | {reason} |",
            names(0),
            names(1),
            names(2)
        );
    }
}

/// The folder or file below `src` that an op is declared in.
fn family(source: &str) -> String {
    let below = source.rsplit("/src/").next().unwrap_or(source);
    below.split('/').next().unwrap_or(below).trim_end_matches(".rs").to_string()
}
