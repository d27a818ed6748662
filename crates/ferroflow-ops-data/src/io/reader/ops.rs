//! The ops on readers. Those without `V2` are the same over handles that are references to
//! strings.

use super::{Format, Reader};
use crate::prelude::*;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::handle::{Anchor, Seen};
use ferroflow_op_kit::handle_form::ref_handle_shape;
use ferroflow_op_kit::tfrecord::RecordCompression;
use ferroflow_ops_state::queue::Queue;

fn make(
    format: fn(&KernelInit<'_>) -> Result<Format>,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let format = format(init)?;
        let anchor = Anchor::<Reader>::new(init, false, "tensorflow::ReaderInterface")?;
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            anchor.output(ctx, |name| Ok(Reader::new(name, format.clone())), |_| Ok(()))
        }))
    }
}

/// A count of bytes or lines in an attribute.
fn size(init: &KernelInit<'_>, name: &str) -> Result<u64> {
    let n = init.int(name)?;
    u64::try_from(n).map_err(|_| err!(InvalidArgument, "{name} must be >= 0 not {n}"))
}

fn lines(init: &KernelInit<'_>) -> Result<Format> {
    Ok(Format::Lines { skip: size(init, "skip_header_lines")? })
}

fn fixed(init: &KernelInit<'_>) -> Result<Format> {
    let record = size(init, "record_bytes")?;
    ensure!(record > 0, InvalidArgument, "record_bytes must be >= 0 not {record}");
    let encoding = if init.contains("encoding") { init.string("encoding")? } else { String::new() };
    Ok(Format::Fixed {
        header: size(init, "header_bytes")?,
        record,
        footer: size(init, "footer_bytes")?,
        hop: size(init, "hop_bytes")?,
        compression: RecordCompression::from_name(&encoding)?,
    })
}

fn records(init: &KernelInit<'_>) -> Result<Format> {
    let compression = RecordCompression::from_name(&init.string("compression_type")?)?;
    Ok(Format::Records { compression })
}

/// ReaderRead, or ReaderReadUpTo where there is a third input.
fn read(init: &KernelInit<'_>) -> Result<KernelBox> {
    let up_to = init.inputs.len() > 2;
    let (readers, queues) = (Seen::<Reader>::new(), Seen::<Queue>::new());
    Ok(KernelBox::new_async(move |ctx: AsyncCtx, done: Done, _: &InlineScope| {
        let found = || -> Result<_> {
            let (Some(reader), Some(queue)) = (ctx.inputs.first(), ctx.inputs.get(1)) else {
                bail!(Internal, "no handles");
            };
            let resources = &ctx.step.resources;
            let (reader, queue) =
                (readers.find(resources, reader)?, queues.find(resources, queue)?);
            ensure!(
                queue.dtypes() == [DType::String],
                InvalidArgument,
                "Queue not suitable for Reader: its components are {:?}, not one string",
                queue.dtypes()
            );
            let most = match up_to {
                false => None,
                true => {
                    let n = ctx.input(2)?.scalar_index()?;
                    let n = usize::try_from(n).ok().filter(|&n| n > 0);
                    ensure!(n.is_some(), InvalidArgument, "num_records must be positive");
                    n
                }
            };
            Ok((reader, queue, most))
        };
        match found() {
            Ok((reader, queue, most)) => reader.read(queue, ctx.step.clone(), most, done),
            Err(e) => done.fail(e),
        }
    }))
}

/// The kernel of an op on a reader that never waits.
fn acts(
    act: fn(&Reader, &mut Ctx<'_>) -> Result<()>,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |_| {
        let seen = Seen::<Reader>::new();
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let handle = ctx.take_value(0)?;
            let reader = seen.find(&ctx.step().resources, &handle)?;
            act(&reader, ctx)
        }))
    }
}

fn restore(reader: &Reader, ctx: &mut Ctx<'_>) -> Result<()> {
    let state = ctx.input(1)?;
    ensure!(
        state.rank() == 0,
        InvalidArgument,
        "Reader state must be scalar, but had shape: {}",
        state.shape()
    );
    reader.restore(state.scalar_string()?, &ctx.step().cancel)
}

/// The two kinds of an op that makes a reader: its name, its attributes, its format.
type Maker = (&'static str, &'static [&'static str], fn(&KernelInit<'_>) -> Result<Format>);

const MAKERS: [Maker; 5] = [
    ("WholeFileReader", &[], |_| Ok(Format::WholeFile)),
    ("IdentityReader", &[], |_| Ok(Format::Identity)),
    ("TextLineReader", &["skip_header_lines: int = 0"], lines),
    (
        "FixedLengthRecordReader",
        &[
            "header_bytes: int = 0",
            "record_bytes: int",
            "footer_bytes: int = 0",
            "hop_bytes: int = 0",
        ],
        fixed,
    ),
    ("TFRecordReader", &["compression_type: string = ''"], records),
];

pub(crate) fn register(c: &mut Catalog) {
    for (name, attrs, format) in MAKERS {
        for is_new in [false, true] {
            let (op, handle) = match is_new {
                true => (format!("{name}V2"), "reader_handle: resource"),
                false => (name.to_string(), "reader_handle: Ref(string)"),
            };
            let mut b = c.op(&op).doc("A reader of files.").output(handle);
            for attr in attrs {
                b = b.attr(attr);
            }
            b = b.attr("container: string = ''").attr("shared_name: string = ''");
            if op == "FixedLengthRecordReaderV2" {
                b = b.attr("encoding: string = ''");
            }
            let b = b.stateful();
            let b = if is_new { b.shape(shape::scalar) } else { b.shape(ref_handle_shape) };
            b.cpu(make(format));
        }
    }
    c.op("LMDBReader")
        .doc("A reader of LMDB databases.")
        .output("reader_handle: Ref(string)")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .shape(ref_handle_shape)
        .cpu(make(|_| Ok(Format::Lmdb)));
    for is_new in [false, true] {
        register_uses(c, is_new);
    }
    c.no_gradient(&[
        "FixedLengthRecordReader",
        "IdentityReader",
        "LMDBReader",
        "ReaderNumRecordsProduced",
        "ReaderNumWorkUnitsCompleted",
        "ReaderRead",
        "ReaderReadUpTo",
        "ReaderReset",
        "ReaderRestoreState",
        "ReaderSerializeState",
        "TFRecordReader",
        "TextLineReader",
        "WholeFileReader",
    ]);
}

/// The declaration of an op that uses a reader, begun.
fn using<'c>(c: &'c mut Catalog, is_new: bool, name: &str, doc: &str) -> OpBuilder<'c> {
    let (version, kind) = if is_new { ("V2", "resource") } else { ("", "Ref(string)") };
    let b = c.op(&format!("{name}{version}")).doc(doc);
    let b = b.input(&format!("reader_handle: {kind}"));
    // Only ops over resources say that they have effects; references say it themselves.
    if is_new { b.stateful() } else { b }
}

/// The ops that use readers, over handles of either kind.
fn register_uses(c: &mut Catalog, is_new: bool) {
    let kind = if is_new { "resource" } else { "Ref(string)" };
    using(c, is_new, "ReaderRead", "The next record of a reader, from files that a queue names.")
        .input(&format!("queue_handle: {kind}"))
        .output("key: string")
        .output("value: string")
        .shape(shape::scalar)
        .waits()
        .cpu(read);
    using(
        c,
        is_new,
        "ReaderReadUpTo",
        "Several records of a reader, from files that a queue names.",
    )
    .input(&format!("queue_handle: {kind}"))
    .input("num_records: int64")
    .output("keys: string")
    .output("values: string")
    .shape(shape::vector)
    .waits()
    .cpu(read);
    using(c, is_new, "ReaderNumRecordsProduced", "How many records a reader has given.")
        .output("records_produced: int64")
        .shape(shape::scalar)
        .cpu(acts(|reader, ctx| {
            let n = reader.state.lock().produced;
            ctx.set(0, Tensor::scalar(n))
        }));
    using(c, is_new, "ReaderNumWorkUnitsCompleted", "How many files a reader is done with.")
        .output("units_completed: int64")
        .shape(shape::scalar)
        .cpu(acts(|reader, ctx| {
            let n = reader.state.lock().finished;
            ctx.set(0, Tensor::scalar(n))
        }));
    using(c, is_new, "ReaderSerializeState", "The state of a reader, as a string.")
        .output("state: string")
        .shape(shape::scalar)
        .cpu(acts(|reader, ctx| {
            let state = reader.serialize()?;
            ctx.set(0, Tensor::string(state))
        }));
    using(c, is_new, "ReaderRestoreState", "Puts a reader in a state it was in before.")
        .input("state: string")
        .does_io()
        .shape(shape::unknown)
        .cpu(acts(restore));
    using(c, is_new, "ReaderReset", "Puts a reader in the state it began in.")
        .shape(shape::unknown)
        .cpu(acts(|reader, _| {
            reader.reset();
            Ok(())
        }));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;

    /// A reader and a queue of names, in a session of their own.
    struct Fixture {
        resources: Arc<Resources>,
        dir: std::path::PathBuf,
    }

    impl Fixture {
        fn new(test: &str, op: &str, set: impl Fn(Check<'static>) -> Check<'static>) -> Fixture {
            let dir = std::env::temp_dir().join(format!("ferroflow-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            let f = Fixture { resources: Arc::new(Resources::new()), dir };
            set(f.on(op)).attr("shared_name", "r").run().unwrap();
            f.on("FIFOQueueV2")
                .attr("component_types", vec![DType::String])
                .attr("shared_name", "q")
                .run()
                .unwrap();
            f
        }

        fn on(&self, op: &str) -> Check<'static> {
            check(op).resources(&self.resources)
        }

        fn with(&self, op: &str, names: &[&str]) -> Check<'static> {
            names.iter().fold(self.on(op), |c, name| {
                c.input(Tensor::handle(ResourceHandle {
                    container: "localhost".into(),
                    name: name.to_string(),
                    ..Default::default()
                }))
            })
        }

        /// Writes a file and queues its name.
        fn file(&self, name: &str, contents: &[u8]) {
            let path = self.dir.join(name);
            std::fs::write(&path, contents).unwrap();
            let path = Tensor::string(path.display().to_string());
            self.with("QueueEnqueueV2", &["q"]).input(path).run().unwrap();
        }

        fn close(&self) {
            self.with("QueueCloseV2", &["q"]).run().unwrap();
        }

        fn read(&self) -> Result<(String, Bytes)> {
            let out = self.with("ReaderReadV2", &["r", "q"]).run()?;
            let key = String::from_utf8(out[0].scalar_string()?.to_vec()).unwrap();
            Ok((key.rsplit('/').next().unwrap().to_string(), out[1].scalar_string()?.clone()))
        }

        fn count(&self, op: &str) -> i64 {
            self.with(op, &["r"]).run().unwrap()[0].scalar_value().unwrap()
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    #[test]
    fn lines_of_one_file_after_another() {
        let f = Fixture::new("lines", "TextLineReaderV2", |c| c.attr("skip_header_lines", 1i64));
        f.file("a", b"head\none\r\ntwo");
        f.file("empty", b"");
        f.file("b", b"head\nthree\n");
        f.close();
        assert_eq!(f.read().unwrap(), ("a:2".into(), "one".into()));
        assert_eq!(f.read().unwrap(), ("a:3".into(), "two".into()));
        assert_eq!(f.read().unwrap(), ("b:2".into(), "three".into()));
        assert_eq!(f.read().unwrap_err().code(), Code::OutOfRange);
        assert_eq!(f.count("ReaderNumRecordsProducedV2"), 3);
        assert_eq!(f.count("ReaderNumWorkUnitsCompletedV2"), 3);
    }

    #[test]
    fn several_records_at_once() {
        let f = Fixture::new("many", "TextLineReaderV2", |c| c);
        f.file("a", b"1\n2\n3\n");
        f.file("b", b"4\n");
        f.close();
        let many = || {
            let c = f.with("ReaderReadUpToV2", &["r", "q"]).input(Tensor::scalar(2i64));
            c.run().map(|out| out[1].elements())
        };
        assert_eq!([many().unwrap(), many().unwrap(), many().unwrap()], [2, 1, 1]);
        assert_eq!(many().unwrap_err().code(), Code::OutOfRange);
    }

    #[test]
    fn records_of_a_fixed_length() {
        let f = Fixture::new("fixed", "FixedLengthRecordReaderV2", |c| {
            c.attr("header_bytes", 1i64).attr("record_bytes", 2i64).attr("footer_bytes", 1i64)
        });
        f.file("a", b"HaabbF");
        assert_eq!(f.read().unwrap(), ("a:0".into(), "aa".into()));
        assert_eq!(f.read().unwrap(), ("a:1".into(), "bb".into()));
    }

    #[test]
    fn tf_records() {
        const TRUNCATED: &str = "truncated record at 0' failed with Read less bytes than requested";
        let f = Fixture::new("tfrecord", "TFRecordReaderV2", |c| c);
        let masked = |b: &[u8]| crc32c::crc32c(b).rotate_right(15).wrapping_add(0xa282_ead8);
        let record = |data: &[u8]| {
            let len = (data.len() as u64).to_le_bytes();
            let (a, b) = (masked(&len).to_le_bytes(), masked(data).to_le_bytes());
            [&len[..], &a, data, &b].concat()
        };
        f.file("a", &[record(b"one"), record(b"three")].concat());
        let mut damaged = record(b"four");
        damaged[13] ^= 1;
        f.file("b", &damaged);
        f.file("c", &record(b"five")[..14]);
        assert_eq!(f.read().unwrap(), ("a:0".into(), "one".into()));
        assert_eq!(f.read().unwrap(), ("a:19".into(), "three".into()));
        let e = f.read().unwrap_err();
        assert_eq!((e.code(), e.message()), (Code::DataLoss, "corrupted record at 0"));
        let e = f.read().unwrap_err();
        assert_eq!((e.code(), e.message()), (Code::DataLoss, TRUNCATED));
    }

    #[test]
    fn a_reader_remembers_and_forgets() {
        let f = Fixture::new("state", "IdentityReaderV2", |c| c);
        f.file("a", b"");
        f.file("b", b"");
        f.read().unwrap();
        let state = f.with("ReaderSerializeStateV2", &["r"]).run().unwrap().remove(0);
        f.read().unwrap();
        f.with("ReaderRestoreStateV2", &["r"]).input(state).run().unwrap();
        assert_eq!(f.count("ReaderNumRecordsProducedV2"), 1);
        f.with("ReaderResetV2", &["r"]).run().unwrap();
        assert_eq!(f.count("ReaderNumRecordsProducedV2"), 0);
        f.with("ReaderRestoreStateV2", &["r"])
            .input(Tensor::string(&b"\xff"[..]))
            .fails(Code::InvalidArgument, "Could not parse state");
    }

    #[test]
    fn a_missing_file_is_an_error_and_the_reader_goes_on() {
        let f = Fixture::new("missing", "WholeFileReaderV2", |c| c);
        f.with("QueueEnqueueV2", &["q"]).input(Tensor::string("/nonexistent/x")).run().unwrap();
        f.file("a", b"all of it");
        assert_eq!(f.read().unwrap_err().code(), Code::NotFound);
        assert_eq!(f.read().unwrap(), ("a".into(), "all of it".into()));
    }
}
