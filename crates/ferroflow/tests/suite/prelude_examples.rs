//! Every item of the prelude has an example in its documentation. The doc tests run the examples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PRELUDE: &str = include_str!("../../src/prelude.rs");

#[test]
fn every_item_of_the_prelude_has_an_example() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let names = ["ferroflow", "ferroflow-core", "ferroflow-op-kit", "ferroflow-train"];
    let documented = documentation(&names.map(|name| crates.join(name)));
    let mut count = 0;
    for item in exports() {
        let text = documented.get(item).unwrap_or_else(|| panic!("{item} is declared nowhere"));
        assert!(text.contains("```"), "no example in the documentation of {item}");
        count += 1;
    }
    assert!(count > 50, "the prelude was not understood: {count} items");
}

/// The items of the prelude.
fn exports() -> impl Iterator<Item = &'static str> {
    PRELUDE.split("pub use ").skip(1).flat_map(|text| {
        let (_, names) = text.split_once('{').unwrap();
        let (names, _) = names.split_once('}').unwrap();
        names.split(',').map(str::trim).filter(|name| !name.is_empty())
    })
}

/// The documentation of each public item of these crates, by name.
fn documentation(crates: &[PathBuf]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::<String, String>::new();
    for file in crates.iter().flat_map(|folder| sources(folder)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let module: String = text.lines().filter(|line| line.starts_with("//!")).collect();
        all.entry(name.to_owned()).or_default().push_str(&module);
        let mut comment = String::new();
        for line in text.lines() {
            if line.starts_with("///") {
                comment.push_str(line);
            } else if let Some(item) = declared(line) {
                all.entry(item.to_owned()).or_default().push_str(&comment);
                comment.clear();
            } else if !line.starts_with(['#', ' ', ')']) {
                comment.clear();
            }
        }
    }
    all
}

/// The public item that a line at the outermost level declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '!');
    let rest: Vec<&str> = words.by_ref().filter(|w| !w.is_empty()).take(3).collect();
    match rest[..] {
        ["pub", "struct" | "enum" | "trait" | "fn" | "type" | "mod", name] => Some(name),
        ["macro_rules!", name, ..] => Some(name),
        _ => None,
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !matches!(name, "tests" | "examples" | "target") {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}
