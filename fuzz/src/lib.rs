//! What the fuzz targets share: writing valid inputs for the fuzzer to start from.
#![forbid(unsafe_code)]

use std::path::PathBuf;

/// Writes `samples` into the folder `FUZZ_SEEDS`, if that is set. The fuzzer reads the
/// folder afterwards.
pub fn write_seeds(samples: Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (i, sample) in samples.iter().enumerate() {
        let path = folder.join(format!("sample-{i}"));
        std::fs::write(&path, sample).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

/// The files in a recorded text of invocations: strings in hexadecimal notation.
pub fn recorded_files(text: &str) -> Vec<Vec<u8>> {
    let files = text.split_whitespace().filter_map(|word| word.strip_prefix('x'));
    files.filter_map(decode_hex).collect()
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
