//! Summary writers: event files, and the ops that write to them.

use super::audio::audio_values;
use super::histogram::histogram_value;
use super::image::Images;
use super::plain::floats;
use super::tagged;
use crate::prelude::*;
use ferroflow_core::files;
use ferroflow_op_kit::file::{file_error, local};
use ferroflow_op_kit::handle::{Anchor, Seen};
use ferroflow_op_kit::protobuf::{Message, fields};
use ferroflow_op_kit::record_log::RecordLog;
use ferroflow_op_kit::tensor_proto::{Strings, encode};
use parking_lot::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A summary writer; it has no file until it is given one.
#[derive(Default)]
pub(crate) struct Writer(Mutex<Option<EventFile>>);

impl Resource for Writer {
    fn describe(&self) -> String {
        "a summary writer".into()
    }

    fn close(&self) {
        // Writes pending events.
        if let Some(file) = self.0.lock().take() {
            files::soon(move || drop(file));
        }
    }
}

impl Writer {
    /// Writes an event with these values of a summary; nothing before the writer has a file.
    pub fn write_values(&self, step: i64, values: &[Message]) -> Result<()> {
        let mut event = event(step);
        set_summary(&mut event, values);
        match &mut *self.0.lock() {
            Some(file) => file.add(event.as_bytes()),
            None => Ok(()),
        }
    }
}

/// An event file, written some events at a time.
struct EventFile {
    log: RecordLog,
    events: usize,
    written: Instant,
    max_queue: usize,
    max_wait: Duration,
}

impl EventFile {
    fn create(dir: &str, suffix: &str, max_queue: i32, max_millis: i32) -> Result<EventFile> {
        files::create_dir_all(local(dir.as_bytes())).map_err(|e| file_error(dir, &e))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = if host.trim().is_empty() { "localhost" } else { host.trim() };
        let name = format!("{dir}/events.out.tfevents.{now:010}.{host}{suffix}");
        let file = files::create(local(name.as_bytes())).map_err(|e| file_error(&name, &e))?;
        let mut events = EventFile {
            log: RecordLog::new(name, file),
            events: 0,
            written: Instant::now(),
            max_queue: usize::try_from(max_queue).unwrap_or(0),
            max_wait: Duration::from_millis(u64::try_from(max_millis).unwrap_or(0)),
        };
        let mut version = event(0);
        version.bytes(3, b"brain.Event:2");
        events.add(version.as_bytes())?;
        events.flush()?;
        Ok(events)
    }

    fn add(&mut self, event: &[u8]) -> Result<()> {
        self.log.add(event);
        self.events += 1;
        if self.events > self.max_queue || self.written.elapsed() > self.max_wait {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        (self.events, self.written) = (0, Instant::now());
        self.log.flush()
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// An event that happens now, in this step.
fn event(step: i64) -> Message {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut event = Message::new();
    event.double_if(1, now.as_micros() as f64 / 1e6).varint_if(2, step as u64);
    event
}

fn text(t: &Tensor, name: &str) -> Result<String> {
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be scalar");
    Ok(String::from_utf8_lossy(t.scalar_string()?).into_owned())
}

/// The kernel of an op that writes an event; `make` fills in the event.
fn writes(
    make: impl Fn(&Ctx<'_>, &mut Message) -> Result<()> + Send + Sync + 'static,
) -> Result<KernelBox> {
    let seen = Seen::<Writer>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let writer = find(&seen, ctx)?;
        let mut event = event(ctx.input(1)?.scalar_index()?);
        make(ctx, &mut event)?;
        on_file(&writer, |file| file.add(event.as_bytes()))
    }))
}

fn find(seen: &Seen<Writer>, ctx: &Ctx<'_>) -> Result<Arc<Writer>> {
    seen.find(&ctx.step().resources, &Value::Tensor(ctx.input(0)?.clone()))
}

fn on_file(writer: &Writer, act: impl FnOnce(&mut EventFile) -> Result<()>) -> Result<()> {
    match &mut *writer.0.lock() {
        Some(file) => act(file),
        None => bail!(NotFound, "the summary writer has no file yet"),
    }
}

/// Puts values into the summary of an event.
fn set_summary(event: &mut Message, values: &[Message]) {
    let mut summary = Message::new();
    for value in values {
        summary.message(1, value);
    }
    event.message(5, &summary);
}

fn create_file(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::<Writer>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let writer = find(&seen, ctx)?;
        let mut file = writer.0.lock();
        if file.is_none() {
            let dir = text(ctx.input(1)?, "logdir")?;
            let suffix = text(ctx.input(4)?, "filename_suffix")?;
            let number = |i: usize, name: &str| {
                let value = ctx.input(i)?;
                ensure!(value.rank() == 0, InvalidArgument, "{name} must be a scalar");
                value.scalar_value::<i32>()
            };
            let (queue, millis) = (number(2, "max_queue")?, number(3, "flush_millis")?);
            *file = Some(EventFile::create(&dir, &suffix, queue, millis)?);
        }
        Ok(())
    }))
}

fn write_tensor(_: &KernelInit<'_>) -> Result<KernelBox> {
    writes(|ctx, event| {
        let mut value = tagged(&text(ctx.input(3)?, "tag")?);
        let metadata = ctx.input(4)?;
        ensure!(metadata.rank() == 0, InvalidArgument, "summary_metadata must be scalar");
        let metadata = metadata.scalar_string()?;
        ensure!(
            fields(metadata).is_some(),
            InvalidArgument,
            "Could not parse serialized summary metadata"
        );
        value.message(8, &encode(ctx.input(2)?, Strings::Fields)?).bytes(9, metadata);
        set_summary(event, &[value]);
        Ok(())
    })
}

fn write_scalar(_: &KernelInit<'_>) -> Result<KernelBox> {
    writes(|ctx, event| {
        let mut value = tagged(&text(ctx.input(2)?, "tag")?);
        let &[x] = &floats(ctx.input(3)?)?[..] else {
            bail!(InvalidArgument, "value must be scalar, got shape {}", ctx.input(3)?.shape());
        };
        value.float(2, x);
        set_summary(event, &[value]);
        Ok(())
    })
}

fn write_histogram(_: &KernelInit<'_>) -> Result<KernelBox> {
    writes(|ctx, event| {
        let tag = text(ctx.input(2)?, "tag")?;
        set_summary(event, &[histogram_value(&tag, ctx.input(3)?, ctx.name())?]);
        Ok(())
    })
}

fn write_image(init: &KernelInit<'_>) -> Result<KernelBox> {
    let most = init.int("max_images")?;
    writes(move |ctx, event| {
        let images = Images::new(most, ctx.input(4)?)?;
        let tag = text(ctx.input(2)?, "tag")?;
        set_summary(event, &images.values(&tag, ctx.input(3)?)?);
        Ok(())
    })
}

fn write_audio(init: &KernelInit<'_>) -> Result<KernelBox> {
    let most = usize::try_from(init.int("max_outputs")?).unwrap_or(0);
    writes(move |ctx, event| {
        let (tag, rate) = (text(ctx.input(2)?, "tag")?, ctx.input(4)?.scalar_value::<f32>()?);
        set_summary(event, &audio_values(&tag, ctx.input(3)?, rate, most)?);
        Ok(())
    })
}

/// Writes a message that is already serialized, as field `FIELD` of the event.
fn write_raw<const FIELD: u32>(_: &KernelInit<'_>) -> Result<KernelBox> {
    writes(|ctx, event| {
        let message = ctx.input(2)?;
        for message in message.strings()? {
            ensure!(
                fields(message).is_some(),
                DataLoss,
                "Bad tf.compat.v1.Summary binary proto tensor string: could not parse it"
            );
            event.bytes(FIELD, message);
        }
        Ok(())
    })
}

fn import_event(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::<Writer>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let writer = find(&seen, ctx)?;
        let event = ctx.input(1)?.scalar_string()?;
        ensure!(fields(event).is_some(), DataLoss, "Bad tf.Event binary proto tensor string");
        on_file(&writer, |file| file.add(event))
    }))
}

fn flush(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::<Writer>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| on_file(&*find(&seen, ctx)?, EventFile::flush)))
}

fn close(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::<Writer>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        find(&seen, ctx)?.close();
        Ok(())
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SummaryWriter")
        .doc("A summary writer.")
        .output("writer: resource")
        .attr("shared_name: string = ''")
        .attr("container: string = ''")
        .stateful()
        .shape(shape::scalar)
        .cpu(|init| {
            let anchor = Anchor::<Writer>::new(init, true, "tensorflow::SummaryWriterInterface")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                anchor.output(ctx, |_| Ok(Writer::default()), |_| Ok(()))
            }))
        });
    type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
    let table: [(&str, &str, &[&str], &[&str], Make); 11] = [
        (
            "CreateSummaryFileWriter",
            "Gives a summary writer a file, unless it has one.",
            &[
                "logdir: string",
                "max_queue: int32",
                "flush_millis: int32",
                "filename_suffix: string",
            ],
            &[],
            create_file,
        ),
        (
            "WriteSummary",
            "Writes a tensor, with a tag and metadata.",
            &["step: int64", "tensor: T", "tag: string", "summary_metadata: string"],
            &["T: type"],
            write_tensor,
        ),
        (
            "WriteScalarSummary",
            "Writes a number.",
            &["step: int64", "tag: string", "value: T"],
            &["T: realnumbertype"],
            write_scalar,
        ),
        (
            "WriteHistogramSummary",
            "Writes how values are distributed.",
            &["step: int64", "tag: string", "values: T"],
            &["T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, \
               uint32, uint64, bool} = DT_FLOAT"],
            write_histogram,
        ),
        (
            "WriteImageSummary",
            "Writes images.",
            &["step: int64", "tag: string", "tensor: T", "bad_color: uint8"],
            &["max_images: int >= 1 = 3", "T: {uint8, double, float, half} = DT_FLOAT"],
            write_image,
        ),
        (
            "WriteAudioSummary",
            "Writes sound.",
            &["step: int64", "tag: string", "tensor: float", "sample_rate: float"],
            &["max_outputs: int >= 1 = 3"],
            write_audio,
        ),
        (
            "WriteGraphSummary",
            "Writes a graph, given as a serialized GraphDef.",
            &["step: int64", "tensor: string"],
            &[],
            write_raw::<4>,
        ),
        (
            "WriteRawProtoSummary",
            "Writes a serialized Summary.",
            &["step: int64", "tensor: string"],
            &[],
            write_raw::<5>,
        ),
        ("ImportEvent", "Writes a serialized Event.", &["event: string"], &[], import_event),
        ("FlushSummaryWriter", "Writes out what is pending.", &[], &[], flush),
        ("CloseSummaryWriter", "Closes the file of a summary writer.", &[], &[], close),
    ];
    for (op, doc, inputs, attrs, make) in table {
        let mut b = c.op(op).doc(doc).input("writer: resource");
        for input in inputs {
            b = b.input(input);
        }
        for attr in attrs {
            b = b.attr(attr);
        }
        b.stateful().does_io().shape(shape::unknown).cpu(make);
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    #[test]
    fn events_are_written() {
        let resources = Arc::new(Resources::new());
        let dir = std::env::temp_dir().join(format!("ferroflow-events-{}", std::process::id()));
        check("SummaryWriter").resources(&resources).attr("shared_name", "w").run().unwrap();
        let on = |op: &str| -> Check<'static> {
            check(op).resources(&resources).input(Tensor::handle(ResourceHandle {
                container: "localhost".into(),
                name: "w".into(),
                ..Default::default()
            }))
        };
        let scalar = |x: f32| {
            on("WriteScalarSummary")
                .input(Tensor::scalar(7i64))
                .input(Tensor::string("loss"))
                .input(Tensor::scalar(x))
        };
        scalar(1.0).fails(Code::NotFound, "no file yet");
        on("CreateSummaryFileWriter")
            .input(Tensor::string(dir.display().to_string()))
            .input(Tensor::scalar(10i32))
            .input(Tensor::scalar(60_000i32))
            .input(Tensor::string(".v2"))
            .run()
            .unwrap();
        scalar(1.5).run().unwrap();
        on("WriteHistogramSummary")
            .input(Tensor::scalar(7i64))
            .input(Tensor::string("h"))
            .input(Tensor::vector(&[true, false]))
            .run()
            .unwrap();
        on("FlushSummaryWriter").run().unwrap();
        let files: Vec<_> = std::fs::read_dir(&dir).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        let name = files[0].file_name().into_string().unwrap();
        assert!(name.starts_with("events.out.tfevents.") && name.ends_with(".v2"), "{name}");
        let bytes = std::fs::read(files[0].path()).unwrap();
        let has = |text: &[u8]| bytes.windows(text.len()).any(|w| w == text);
        assert!(has(b"brain.Event:2") && has(b"\x10\x07*\x0d\n\x0b\n\x04loss\x15\x00\x00\xc0?"));
        on("CloseSummaryWriter").run().unwrap();
        scalar(1.0).fails(Code::NotFound, "no file yet");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
