//! Builds the book: `book-builder docs`. A page of SUMMARY.md that is missing is an error.
#![forbid(unsafe_code)]

use mdbook_driver::MDBook;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".into());
    match MDBook::load(&folder).and_then(|book| book.build()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}
