//! Assert, Print, PrintV2, Timestamp.

use super::summarize::first_elements;
use crate::prelude::*;
use ferroflow_core::files;
use ferroflow_op_kit::file::file_error;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

fn assert_op(init: &KernelInit<'_>) -> Result<KernelBox> {
    let summarize = init.int("summarize")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let condition = ctx.input(0)?;
        ensure!(
            condition.rank() == 0,
            InvalidArgument,
            "In[0] should be a scalar: {}",
            condition.shape()
        );
        if condition.scalar_value::<bool>()? {
            return Ok(());
        }
        let mut texts = Vec::new();
        for i in 1..ctx.num_inputs() {
            texts.push(format!("[{}]", first_elements(ctx.input(i)?, summarize)?));
        }
        bail!(InvalidArgument, "assertion failed: {}", texts.join(" "))
    }))
}

struct Print {
    message: String,
    summarize: i64,
    /// Remaining number of prints; negative means no limit.
    left: Option<AtomicI64>,
}

impl Kernel for Print {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let speaks = self.left.as_ref().is_none_or(|n| n.fetch_sub(1, Ordering::Relaxed) > 0);
        if speaks {
            let mut line = self.message.clone();
            for i in 1..ctx.num_inputs() {
                line += &format!("[{}]", first_elements(ctx.input(i)?, self.summarize)?);
            }
            line.push('\n');
            say("stderr", line.as_bytes())?;
        }
        let value = ctx.take_value(0)?;
        ctx.set_value(0, value)
    }
}

/// Writes to a stream by name: `stdout`, `stderr`, a log level, or a file that is appended to.
fn say(stream: &str, text: &[u8]) -> Result<()> {
    let written = match stream {
        "stdout" => std::io::stdout().lock().write_all(text),
        // Messages with a log level go to the log.
        "stderr" | "log(info)" | "log(warning)" | "log(error)" => {
            std::io::stderr().lock().write_all(text)
        }
        _ => match stream.strip_prefix("file://") {
            Some(path) => {
                let file = files::append(Path::new(path));
                let mut file = file.map_err(|e| file_error(path, &e))?;
                return file.write_all(text).map_err(|e| file_error(path, &e));
            }
            None => bail!(InvalidArgument, "Unknown output stream: {stream}"),
        },
    };
    // Ignore the error: a closed stream must not fail the step.
    let _ = written;
    Ok(())
}

fn print_v2(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (stream, end) = (init.string("output_stream")?, init.bytes("end")?);
    let is_known = matches!(
        stream.as_str(),
        "stdout" | "stderr" | "log(info)" | "log(warning)" | "log(error)"
    ) || stream.starts_with("file://");
    ensure!(
        is_known,
        InvalidArgument,
        "Unknown output stream: {stream}, Valid streams are: stdout, stderr, log(info), \
         log(warning), log(error)"
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let input = ctx.input(0)?;
        ensure!(
            input.rank() == 0,
            InvalidArgument,
            "Input is expected to be scalar, but got {}",
            input.shape()
        );
        let text = [&input.scalar_string()?[..], &end].concat();
        say(&stream, &text)
    }))
}

fn timestamp(ctx: &mut Ctx<'_>) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ctx.set(0, Tensor::scalar(now.as_micros() as f64 / 1e6))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Assert")
        .doc("Fails with the data given unless the condition holds.")
        .input("condition: bool")
        .input("data: T")
        .attr("T: list(type) >= 1")
        .attr("summarize: int = 3")
        .stateful()
        .shape(shape::unknown)
        .cpu(assert_op);
    c.op("Print")
        .doc("Its input; says a message and the data given.")
        .input("input: T")
        .input("data: U")
        .output("output: T")
        .attr("T: type")
        .attr("U: list(type) >= 0")
        .attr("message: string = ''")
        .attr("first_n: int = -1")
        .attr("summarize: int = 3")
        .stateful()
        .does_io()
        .shape(shape::same_as_input)
        .cpu(|init| {
            let first = init.int("first_n")?;
            Ok(KernelBox::new(Print {
                message: init.string("message")?,
                summarize: init.int("summarize")?,
                left: (first >= 0).then(|| AtomicI64::new(first)),
            }))
        });
    c.op("PrintV2")
        .doc("Says a string.")
        .input("input: string")
        .attr("output_stream: string = 'stderr'")
        .attr("end: string = '\n'")
        .stateful()
        .does_io()
        .shape(shape::unknown)
        .cpu(print_v2);
    c.op("Timestamp")
        .doc("Seconds since 1970.")
        .output("ts: double")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(timestamp);
    c.gradient("Print", |g, dy| Ok(g.only(dy[0])));
    c.no_gradient(&["Assert", "Timestamp"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn a_failed_assertion_shows_its_data() {
        check("Assert")
            .input(Tensor::scalar(false))
            .input(Tensor::string("x must be positive"))
            .input(Tensor::vector(&[1.5f32, -2.0, 3.0, 4.0]))
            .fails(Code::InvalidArgument, "assertion failed: [x must be positive] [1.5 -2 3...]");
        let held = check("Assert").input(Tensor::scalar(true)).input(Tensor::scalar(1i32));
        assert!(held.run().unwrap().is_empty());
    }

    #[test]
    fn print_passes_its_input_on() {
        check("Print")
            .attr("first_n", 0i64)
            .input(Tensor::scalar(1i32))
            .input(Tensor::scalar(2i32))
            .gives(Tensor::scalar(1i32));
    }

    #[test]
    fn print_v2_appends_to_a_file() {
        let path = std::env::temp_dir().join(format!("ferroflow-print-{}", std::process::id()));
        for _ in 0..2 {
            let stream = format!("file://{}", path.display());
            let c = check("PrintV2").attr("output_stream", stream.as_str());
            c.input(Tensor::string("hi")).run().unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"hi\nhi\n");
        std::fs::remove_file(&path).unwrap();
        check("PrintV2")
            .attr("output_stream", "somewhere")
            .input(Tensor::string(""))
            .fails(Code::InvalidArgument, "Unknown output stream: somewhere");
    }
}
