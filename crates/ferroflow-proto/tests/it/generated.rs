//! The files in `src/generated` are what `proto/*.proto` compiles to.
//!
//! They are in the repository so that a build needs no protobuf compiler, which would take a tenth
//! of a first build with its dependencies. `UPDATE_PROTO=1 cargo test -p ferroflow-proto` writes
//! them again.

use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compiles the definitions into `to`, without the help of an installed `protoc`.
fn generate(to: &Path) {
    let proto = folder("proto");
    let entries = fs::read_dir(&proto).expect("the folder of the definitions");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let descriptors = protox::compile(&files, [&proto]).expect("definitions that compile");
    prost_build::Config::new()
        .bytes(["."])
        // Sorted maps make equal messages equal bytes.
        .btree_map(["."])
        // A graph holds an attribute value in every slot of every node's map, and nearly all are
        // small. The two large kinds would make each of them half a kilobyte.
        .boxed(".tensorflow.AttrValue.value.tensor")
        .boxed(".tensorflow.AttrValue.value.list")
        .boxed(".tensorflow.Summary.Value.value.tensor")
        .enable_type_names()
        .type_name_domain(["."], "type.googleapis.com")
        // `google.protobuf.Any` is one of our own files.
        .compile_well_known_types()
        .out_dir(to)
        .compile_fds(descriptors)
        .expect("code for the definitions");
}

#[test]
fn generated_code_is_that_of_the_definitions() {
    let generated = folder("src/generated");
    if std::env::var_os("UPDATE_PROTO").is_some() {
        return generate(&generated);
    }
    let fresh = std::env::temp_dir().join(format!("ferroflow-proto-{}", std::process::id()));
    fs::create_dir_all(&fresh).unwrap();
    generate(&fresh);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&generated), names(&fresh));
    for name in names(&fresh) {
        let read = |folder: &Path| fs::read_to_string(folder.join(&name)).unwrap();
        let is_current = read(&generated) == read(&fresh);
        assert!(is_current, "{name:?} is stale: UPDATE_PROTO=1 cargo test -p ferroflow-proto");
    }
    fs::remove_dir_all(&fresh).unwrap();
}
