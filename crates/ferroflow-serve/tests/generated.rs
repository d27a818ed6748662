//! The files in `src/wire/generated` are the compiled `proto/*.proto`. `UPDATE_PROTO=1 cargo test
//! -p ferroflow-serve` writes them again.

use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn generate(to: &Path) {
    let (own, shared) = (folder("proto"), folder("../ferroflow-proto/proto"));
    let files = ["serving.proto", "serving_config.proto"];
    let mut code = protox::compile(files, [&own, &shared]).expect("definitions that compile");
    code.file.retain(|file| file.package() == "tensorflow.serving");
    let (tensorflow, any) =
        ("::ferroflow_proto::tensorflow", "::ferroflow_proto::google::protobuf");
    prost_build::Config::new()
        .bytes(["."])
        .btree_map(["."])
        .enable_type_names()
        .type_name_domain(["."], "type.googleapis.com")
        .extern_path(".tensorflow.SignatureDef", format!("{tensorflow}::SignatureDef"))
        .extern_path(".tensorflow.error.Code", format!("{tensorflow}::error::Code"))
        .extern_path(".google.protobuf.Any", format!("{any}::Any"))
        .out_dir(to)
        .compile_fds(code)
        .expect("code for the definitions");
}

#[test]
fn generated_code_is_that_of_the_definitions() {
    let generated = folder("src/wire/generated");
    if std::env::var_os("UPDATE_PROTO").is_some() {
        return generate(&generated);
    }
    let fresh = std::env::temp_dir().join(format!("ferroflow-serve-{}", std::process::id()));
    fs::create_dir_all(&fresh).expect("a folder");
    generate(&fresh);
    let name = "tensorflow.serving.rs";
    let read = |folder: &Path| fs::read(folder.join(name)).expect(name);
    let is_current = read(&generated) == read(&fresh);
    assert!(is_current, "{name:?} is stale: UPDATE_PROTO=1 cargo test -p ferroflow-serve");
    fs::remove_dir_all(&fresh).expect("to remove it");
}
