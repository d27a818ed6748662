//! `cargo xtask book`: the book in `docs/`, built by mdBook.
//!
//! This compiles mdBook (`docs/builder`) without optimization, which is the quickest way to a book
//! on a machine without mdBook. The rules `doc-links` and `doc-paths` of tidy check the references
//! of its pages.

use std::fs;

use crate::paths;
use crate::steps::{self, Failure, Result};

/// Build the book in docs/ into target/book/.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Result {
    build()
}

/// Builds the book and checks that its first page is there.
pub fn build() -> Result {
    let target = paths::target().join("book-builder");
    let mut command = steps::cargo(&["run", "--quiet", "--locked", "--manifest-path"]);
    command.arg("docs/builder/Cargo.toml").arg("--target-dir").arg(target).args(["--", "docs"]);
    steps::run(&mut command)?;
    let page = paths::root().join("target/book/index.html");
    let size = fs::metadata(&page)
        .map_err(|e| Failure(format!("the build left no {}: {e}", paths::shown(&page))))?;
    println!("{}: {} bytes", paths::shown(&page), size.len());
    Ok(())
}
