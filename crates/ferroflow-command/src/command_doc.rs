//! `docs/src/reference/command.md` is what `--help` prints. Write it again with
//! `UPDATE_DOCS=1 cargo test -p ferroflow-command command_doc`.

use crate::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;
use std::path::Path;

const INTRODUCTION: &str = "\
# Which commands are there?

Generated from the command's own `--help`. Every command that reports figures takes `--json`.
Exit code 0 means success, 1 failure, 2 a wrong command line. `ferroflow run` returns the exit code of the
first process that failed.
";

#[test]
fn the_page_of_commands_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/command.md");
    let fresh = render();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == fresh,
        "docs/src/reference/command.md is stale; run: UPDATE_DOCS=1 cargo test -p ferroflow-command command_doc"
    );
}

fn render() -> String {
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut out = INTRODUCTION.to_string();
    describe(&root, 2, &mut out);
    out
}

/// The help of the visible commands below `parent`, each under a heading.
fn describe(parent: &Command, level: usize, out: &mut String) {
    for command in parent.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let mut command = command.clone().term_width(100);
        let name = command.get_bin_name().unwrap_or(command.get_name()).to_string();
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let text = lines.join("\n");
        let _ =
            write!(out, "\n{} `{name}`\n\n```text\n{}\n```\n", "#".repeat(level), text.trim_end());
        describe(&command, level + 1, out);
    }
}
