//! Compiles `proto/*.proto` to Rust. Does not need an installed `protoc`.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut files: Vec<PathBuf> = std::fs::read_dir("proto")?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;

    prost_build::Config::new()
        .bytes(["."])
        // Sorted maps make equal messages equal bytes.
        .btree_map(["."])
        // A graph has an attribute value in every slot of every node's map, and nearly all are
        // small. The two large variants would make each of them half a kilobyte.
        .boxed(".tensorflow.AttrValue.value.tensor")
        .boxed(".tensorflow.AttrValue.value.list")
        .boxed(".tensorflow.Summary.Value.value.tensor")
        .enable_type_names()
        .type_name_domain(["."], "type.googleapis.com")
        // `google.protobuf.Any` is one of our own files.
        .compile_well_known_types()
        .compile_fds(descriptors)?;
    Ok(())
}
