//! A trace of all tensors for chrome://tracing and Perfetto. Each tensor has a row that shows how
//! long it was negotiated, queued and processed.

use super::run::Mark;
use ferroflow_core::Result;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Most rows of a trace. It bounds the memory of a job that keeps using new names.
const ROWS: usize = 10_000;

pub(crate) struct Timeline {
    /// `None` after a failed write: a missing trace must not end the job.
    out: Option<BufWriter<File>>,
    start: Instant,
    rank: usize,
    rows: HashMap<String, usize>,
}

impl Timeline {
    pub(crate) fn create(path: &Path, rank: usize) -> Result<Timeline> {
        let file = File::create(path).map_err(|e| {
            crate::io_error(&format!("cannot write the timeline {}", path.display()), &e)
        })?;
        let mut timeline = Timeline {
            out: Some(BufWriter::new(file)),
            start: Instant::now(),
            rank,
            rows: HashMap::new(),
        };
        // The time of this host's clock, to put the traces of several hosts beside each other.
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        timeline.write(&format!(
            "[\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{rank},\"tid\":0,\"args\":{{\"name\":\"rank {rank}\",\"start_time_since_epoch_in_micros\":{began}}}}}"
        ));
        Ok(timeline)
    }

    /// Records that `tensor` was in `phase` between two times.
    pub(crate) fn span(
        &mut self,
        tensor: &str,
        phase: &str,
        from: Instant,
        to: Instant,
        why: &str,
    ) {
        let row = match self.rows.get(tensor) {
            Some(&row) => row,
            None if self.rows.len() >= ROWS => ROWS + 1,
            None => {
                let row = self.rows.len() + 1;
                self.rows.insert(tensor.into(), row);
                self.write(&format!(",\n{}", metadata("thread_name", self.rank, row, tensor)));
                row
            }
        };
        let micros = |t: Instant| t.saturating_duration_since(self.start).as_nanos() as f64 / 1e3;
        let (ts, end) = (micros(from), micros(to));
        self.write(&format!(
            ",\n{{\"name\":{},\"ph\":\"X\",\"ts\":{ts:.3},\"dur\":{:.3},\"pid\":{},\"tid\":{row},\"args\":{{\"detail\":{}}}}}",
            quoted(phase),
            (end - ts).max(0.0),
            self.rank,
            quoted(why)
        ));
    }

    /// Records a collective that has just ended. Its decision arrived at `arrived` and it started
    /// at `start`.
    pub(super) fn ran(&mut self, marks: Vec<Mark>, arrived: Instant, start: Instant) {
        let end = Instant::now();
        for mark in marks {
            // Horovod's names, for the tools that read its traces: ALLREDUCE, NEGOTIATE_ALLREDUCE.
            let what = mark.what.replace('-', "").to_uppercase();
            if let Some(submitted) = mark.submitted {
                self.span(&mark.tensor, &format!("NEGOTIATE_{what}"), submitted, arrived, "");
            }
            self.span(&mark.tensor, "QUEUE", arrived, start, "");
            self.span(&mark.tensor, &what, start, end, &mark.detail);
        }
        // Flush whole records, so that a killed process leaves a readable file. Readers accept a
        // list without its end.
        self.flush();
    }

    /// Writes the buffered records to the file.
    fn flush(&mut self) {
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        self.give_up_on(flushed);
    }

    fn write(&mut self, text: &str) {
        let written = self.out.as_mut().map_or(Ok(()), |out| out.write_all(text.as_bytes()));
        self.give_up_on(written);
    }

    fn give_up_on(&mut self, result: std::io::Result<()>) {
        if let Err(e) = result {
            tracing::warn!("cannot write the timeline any more: {e}");
            self.out = None;
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.write("\n]\n");
        self.flush();
    }
}

fn metadata(what: &str, rank: usize, row: usize, name: &str) -> String {
    let name = quoted(name);
    format!(
        "{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{rank},\"tid\":{row},\"args\":{{\"name\":{name}}}}}"
    )
}

/// The text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_trace_has_a_row_for_each_tensor_and_quotes_its_name() {
        let path = std::env::temp_dir().join(format!("ferroflow-timeline-{}", fastrand::u64(..)));
        let mut timeline = Timeline::create(&path, 3).unwrap();
        let start = timeline.start;
        let at = |us: u64| start + Duration::from_micros(us);
        timeline.span("a \"b\"\n", "NEGOTIATE_ALLREDUCE", at(1), at(3), "");
        timeline.span("a \"b\"\n", "ALLREDUCE", at(3), at(10), "4 bytes");
        drop(timeline);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.matches("thread_name").count(), 1);
        assert!(text.contains(r#""name":"a \"b\"\n""#), "{text}");
        assert!(
            text.contains(r#""name":"ALLREDUCE","ph":"X","ts":3.000,"dur":7.000,"pid":3,"tid":1"#)
        );
        assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"));
    }

    #[test]
    fn a_killed_process_leaves_whole_records() {
        let path = std::env::temp_dir().join(format!("ferroflow-timeline-{}", fastrand::u64(..)));
        let mut timeline = Timeline::create(&path, 0).unwrap();
        let now = Instant::now();
        let mark = |i: usize| Mark {
            tensor: format!("grad {i}"),
            what: "all-reduce",
            submitted: Some(now),
            detail: "x".repeat(100),
        };
        for some in [3, 0, 200] {
            timeline.ran((0..some).map(mark).collect(), now, now);
        }
        std::mem::forget(timeline);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let trace: serde_json::Value = serde_json::from_str(&format!("{text}]")).unwrap();
        let spans = trace.as_array().unwrap().iter().filter(|e| e["ph"] == "X").count();
        assert_eq!(spans, 3 * 203);
    }
}
