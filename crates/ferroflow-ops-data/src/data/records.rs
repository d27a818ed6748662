//! Datasets of file contents: TextLineDataset, TFRecordDataset, FixedLengthRecordDataset.

use super::dataset::*;
use super::scope::Scope;
use super::task::{before_io, take_turn};
use crate::io::records::Input;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_op_kit::file::{file_error, local};
use ferroflow_op_kit::tfrecord::RecordCompression;

/// The format of a file.
#[derive(Clone, Copy)]
enum Format {
    Lines,
    Records,
    Fixed { header: u64, record: u64, footer: u64 },
}

struct Files {
    names: Arc<Vec<String>>,
    /// Where to begin in each file; empty: at the front.
    offsets: Arc<Vec<u64>>,
    compression: RecordCompression,
    format: Format,
}

impl Dataset for Files {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let (names, offsets) = (self.names.clone(), self.offsets.clone());
        let files = Files { names, offsets, compression: self.compression, format: self.format };
        Ok(Elements::new(Reading { files, at: 0, open: None }))
    }
}

/// An iteration over the records of files.
struct Reading {
    files: Files,
    /// The number of the file that is read.
    at: usize,
    open: Option<File>,
}

impl Produce for Reading {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            before_io().await;
            while self.at < self.files.names.len() {
                if self.open.is_none() {
                    self.open = Some(self.files.open(self.at).await?);
                }
                let next = self.open.as_mut().map_or(Ok(None), File::next);
                if let Ok(Some(record)) = next {
                    return Ok(Some(vec![Tensor::string(record)]));
                }
                // After a damaged record, the start of the next one is unknown.
                (self.open, self.at) = (None, self.at + 1);
                next?;
            }
            Ok(None)
        })
    }
}

impl Files {
    /// Opens a file and skips what comes before its first record.
    async fn open(&self, at: usize) -> Result<File> {
        let (name, format) = (&self.names[at], self.format);
        if let Format::Fixed { header, record, footer } = format
            && self.compression == RecordCompression::None
        {
            check_size(name, header, record, footer)?;
        }
        let mut input = Input::open(name, self.compression)?;
        let mut left = match format {
            Format::Fixed { header, .. } => header,
            _ => self.offsets.get(at).copied().unwrap_or(0),
        };
        while left > 0 {
            // Compressed data and devices can be endless.
            take_turn().await;
            before_io().await;
            left = input.skip_piece(left)?;
        }
        let mut ahead = Vec::new();
        if let Format::Fixed { footer, .. } = format {
            ahead = input.bytes(footer)?;
        }
        Ok(File { input, format, ahead })
    }
}

struct File {
    input: Input,
    format: Format,
    /// Of a fixed-length file: bytes read ahead that may be the footer.
    ahead: Vec<u8>,
}

impl File {
    fn next(&mut self) -> Result<Option<Bytes>> {
        match self.format {
            Format::Lines => self.input.line(),
            Format::Records => Ok(self.input.record()?.map(|(_, record)| record)),
            Format::Fixed { record, footer, .. } => {
                let more = self.input.bytes(record)?;
                if more.is_empty() {
                    return Ok(None);
                }
                let len = more.len() as u64;
                ensure!(
                    len == record,
                    DataLoss,
                    "Excess bytes of {len} at the end of a file of records of {record} bytes"
                );
                // Bytes that were read ahead come first; the last bytes of the rest are the footer.
                self.ahead.extend_from_slice(&more);
                let rest = self.ahead.split_off(self.ahead.len() - footer as usize);
                Ok(Some(Bytes::from(std::mem::replace(&mut self.ahead, rest))))
            }
        }
    }
}

fn check_size(name: &str, header: u64, record: u64, footer: u64) -> Result<()> {
    let path = local(name.as_bytes());
    let size = ferroflow_core::files::metadata(path).map_err(|e| file_error(name, &e))?.len();
    let around = header.saturating_add(footer);
    ensure!(
        size >= around && (size - around).is_multiple_of(record),
        InvalidArgument,
        "Excluding the header ({header} bytes) and footer ({footer} bytes), input file \"{name}\" \
         has body length {} bytes, which is not an exact multiple of the record length ({record} \
         bytes).",
        size.saturating_sub(around)
    );
    Ok(())
}

/// The files named in input 0.
fn names(ctx: &Ctx<'_>) -> Result<Arc<Vec<String>>> {
    let t = ctx.input(0)?;
    ensure!(t.rank() <= 1, InvalidArgument, "`filenames` must be a scalar or a vector.");
    let text = |s: &Bytes| String::from_utf8_lossy(s).into_owned();
    Ok(Arc::new(t.strings()?.iter().map(text).collect()))
}

fn compression(ctx: &Ctx<'_>, i: usize, format: Format) -> Result<RecordCompression> {
    let known = RecordCompression::from_name(&text(ctx, i, "compression_type")?);
    match format {
        // TensorFlow reads records with an unknown compression uncompressed.
        Format::Records => Ok(known.unwrap_or(RecordCompression::None)),
        _ => known.map_err(|_| err!(InvalidArgument, "Unsupported compression_type.")),
    }
}

/// Checks the requested buffer size. We choose our own size, but TensorFlow refuses invalid ones.
fn check_buffer_size(ctx: &Ctx<'_>, i: usize) -> Result<()> {
    let size: i64 = scalar(ctx, i, "buffer_size")?;
    ensure!(size >= 0, InvalidArgument, "`buffer_size` must be >= 0 (0 == no buffering)");
    Ok(())
}

fn offsets(ctx: &Ctx<'_>, i: usize, files: usize) -> Result<Arc<Vec<u64>>> {
    let t = ctx.input(i)?;
    ensure!(t.rank() <= 1, InvalidArgument, "`byte_offsets` must be a scalar or a vector.");
    let all = t.to_indices()?;
    ensure!(
        all.is_empty() || all.len() == files,
        InvalidArgument,
        "`byte_offsets` must be of same size as `filenames`"
    );
    let all: Result<Vec<u64>> = all
        .into_iter()
        .map(|n| u64::try_from(n).map_err(|_| err!(InvalidArgument, "byte offset {n} < 0")))
        .collect();
    Ok(Arc::new(all?))
}

fn fixed(init: &KernelInit<'_>) -> Result<KernelBox> {
    let compressed = init.node.op.ends_with("V2");
    makes_typed(ElementTypes::scalar(DType::String), move |ctx| {
        let bytes = |i, name: &str, least: i64, text: &str| {
            let n: i64 = scalar(ctx, i, name)?;
            ensure!(n >= least, InvalidArgument, "`{name}` must be {text}");
            Ok::<_, Error>(n as u64)
        };
        let format = Format::Fixed {
            header: bytes(1, "header_bytes", 0, ">= 0")?,
            record: bytes(2, "record_bytes", 1, "> 0")?,
            footer: bytes(3, "footer_bytes", 0, ">= 0")?,
        };
        check_buffer_size(ctx, 4)?;
        Ok(Files {
            names: names(ctx)?,
            offsets: Arc::default(),
            compression: if compressed {
                compression(ctx, 5, format)?
            } else {
                RecordCompression::None
            },
            format,
        })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, format, doc) in [
        ("TextLineDataset", Format::Lines, "A dataset of the lines of text files."),
        ("TFRecordDataset", Format::Records, "A dataset of the records of TFRecord files."),
        ("TFRecordDatasetV2", Format::Records, "A dataset of the records of TFRecord files."),
    ] {
        let has_offsets = op.ends_with("V2");
        let mut b = c
            .op(op)
            .doc(doc)
            .input("filenames: string")
            .input("compression_type: string")
            .input("buffer_size: int64");
        if has_offsets {
            b = b.input("byte_offsets: int64");
        }
        drop(b.makes_dataset().metadata_attr().stateful().cpu(move |_| {
            makes_typed(ElementTypes::scalar(DType::String), move |ctx| {
                let names = names(ctx)?;
                check_buffer_size(ctx, 2)?;
                let files = names.len();
                Ok(Files {
                    offsets: if has_offsets { offsets(ctx, 3, files)? } else { Arc::default() },
                    names,
                    compression: compression(ctx, 1, format)?,
                    format,
                })
            })
        }));
    }
    for op in ["FixedLengthRecordDataset", "FixedLengthRecordDatasetV2"] {
        let mut b = c
            .op(op)
            .doc("A dataset of the records of files, all of one length.")
            .input("filenames: string")
            .input("header_bytes: int64")
            .input("record_bytes: int64")
            .input("footer_bytes: int64")
            .input("buffer_size: int64");
        if op.ends_with("V2") {
            b = b.input("compression_type: string");
        }
        drop(b.makes_dataset().metadata_attr().stateful().cpu(fixed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::task::polled_here;
    use crate::data::testing::elements;
    use crate::testing::check;
    use ferroflow_op_kit::tfrecord::RecordWriter;
    use std::task::{Context, Waker};

    fn texts(dataset: Vec<Tensor>) -> Result<Vec<String>> {
        let text = |t: &Tensor| String::from_utf8_lossy(t.scalar_string().unwrap()).into_owned();
        Ok(elements(&dataset[0])?.iter().map(|e| text(&e[0])).collect())
    }

    fn read(op: &str, name: &str, compression: &str) -> Result<Vec<String>> {
        let op = check(op).input(Tensor::string(name.to_string()));
        let op = op.input(Tensor::string(compression.to_string())).input(Tensor::scalar(0i64));
        texts(op.run()?)
    }

    #[test]
    fn a_step_can_be_cancelled_while_its_dataset_skips_an_endless_file() {
        let files = Files {
            names: Arc::new(vec!["/dev/zero".into()]),
            offsets: Arc::new(vec![u64::MAX]),
            compression: RecordCompression::None,
            format: Format::Records,
        };
        let mut reading = Reading { files, at: 0, open: None };
        let mut next = reading.next();
        let mut cx = Context::from_waker(Waker::noop());
        // The executor drops a cancelled task when its poll returns.
        let polled = polled_here(|| next.as_mut().poll(&mut cx).is_ready());
        assert!(!polled);
    }

    #[test]
    fn files_are_read_as_lines_and_records() {
        let dir = std::env::temp_dir().join(format!("ferroflow-records-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
        std::fs::write(path("lines"), "one\r\ntwo\n\nlast").unwrap();
        assert_eq!(
            read("TextLineDataset", &path("lines"), "").unwrap(),
            ["one", "two", "", "last"]
        );
        for compression in ["", "GZIP", "ZLIB"] {
            let how = RecordCompression::from_name(compression).unwrap();
            let mut writer = RecordWriter::create_compressed(path("records"), how).unwrap();
            ["a", "", "ccc"].iter().for_each(|s| writer.write(s.as_bytes()).unwrap());
            writer.finish().unwrap();
            let got = read("TFRecordDataset", &path("records"), compression).unwrap();
            assert_eq!(got, ["a", "", "ccc"]);
        }
        std::fs::write(path("fixed"), "HHabcdefFFF").unwrap();
        let fixed = |record: i64| {
            let op = check("FixedLengthRecordDatasetV2").input(Tensor::string(path("fixed")));
            let sizes = [2, record, 3, 0].map(Tensor::scalar::<i64>);
            let op = sizes.into_iter().fold(op, |c, t| c.input(t));
            texts(op.input(Tensor::string("")).run()?)
        };
        assert_eq!(fixed(3).unwrap(), ["abc", "def"]);
        let e = fixed(4).unwrap_err();
        assert!(e.message().contains("body length 6 bytes, which is not an exact multiple"), "{e}");
        assert_eq!(fixed(0).unwrap_err().message(), "`record_bytes` must be > 0");
        let e = read("TextLineDataset", &path("missing"), "").unwrap_err();
        assert_eq!(e.code(), Code::NotFound);
        let e = read("TextLineDataset", &path("lines"), "XX").unwrap_err();
        assert_eq!(e.message(), "Unsupported compression_type.");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
