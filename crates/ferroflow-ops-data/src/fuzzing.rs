//! Parsers of files, for the fuzz targets. A parser may return an error. It must not panic, and its
//! memory must be proportional to the input.

use crate::io::bundle;
use crate::io::records::Input;
use ferroflow_op_kit::tfrecord::{RecordCompression, write_record};

/// The table of a checkpoint: its index, and the entries in it.
pub fn checkpoint_table(data: &[u8]) {
    bundle::fuzz_table(data);
}

/// Valid inputs of [`checkpoint_table`].
pub fn sample_tables() -> Vec<Vec<u8>> {
    [0, 1, 40].map(bundle::sample_index).to_vec()
}

/// A TFRecord file; the first byte chooses a compression and whether lines are read instead.
pub fn records(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let compression = match kind % 3 {
        0 => RecordCompression::None,
        1 => RecordCompression::Zlib,
        _ => RecordCompression::Gzip,
    };
    let mut input = Input::new("fuzz", std::io::Cursor::new(data.to_vec()), compression);
    // Compressed data can expand to very many records.
    for _ in 0..10_000 {
        let more = match kind & 128 {
            0 => input.record().map(|record| record.is_some()),
            _ => input.line().map(|line| line.is_some()),
        };
        if !matches!(more, Ok(true)) {
            return;
        }
    }
}

/// Valid inputs of [`records`].
pub fn sample_records() -> Vec<Vec<u8>> {
    let mut file = vec![0];
    for record in [&b"one"[..], b"", &[7; 300]] {
        write_record(&mut file, record).expect("memory takes any record");
    }
    vec![file, b"\x80one\ntwo\r\n\nthree".to_vec()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::fuzz_bytes;

    #[test]
    fn checkpoint_tables_do_not_panic() {
        fuzz_bytes(checkpoint_table, &sample_tables());
    }

    #[test]
    fn record_files_do_not_panic() {
        fuzz_bytes(records, &sample_records());
    }
}
