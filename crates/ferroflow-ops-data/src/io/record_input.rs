//! RecordInput: records of TFRecord files in random order, without end.

use super::files_matching;
use super::records::Input;
use crate::data::{Turns, before_io, run_kernel, take_turn};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::philox::{Philox, Singles};
use ferroflow_op_kit::tfrecord::RecordCompression;
use std::collections::VecDeque;

/// Files, their records, and a buffer from which they are drawn.
struct Records {
    pattern: String,
    compression: RecordCompression,
    /// By which part of the list of files each epoch is shifted.
    shift: f32,
    buffer_size: usize,
    seed: i64,
    epoch: i64,
    files: VecDeque<Bytes>,
    open: Option<Input>,
    buffer: Vec<Bytes>,
    random: Singles,
    /// Whether this epoch had a record.
    is_fruitful: bool,
}

impl Records {
    /// Lists the files of the next epoch, in an order that the seed and its number give.
    fn begin_epoch(&mut self, cancel: &CancelToken) -> Result<()> {
        ensure!(
            self.is_fruitful || self.epoch == 0,
            DataLoss,
            "the files at {} have no records",
            self.pattern
        );
        self.epoch += 1;
        self.is_fruitful = false;
        let mut files = Vec::new();
        for pattern in self.pattern.split(',') {
            files.extend(files_matching(pattern.as_bytes(), cancel)?);
        }
        ensure!(!files.is_empty(), NotFound, "Found no files at {}", self.pattern);
        files.sort();
        let mut random = Singles::new(Philox::seeded(self.seed, self.epoch));
        for i in (1..files.len()).rev() {
            files.swap(i, random.below_u64(i as u64 + 1) as usize);
        }
        if (0.0..1.0).contains(&self.shift) {
            let shift = (self.shift * files.len() as f32) as usize;
            files.rotate_left(shift);
        }
        self.files = files.into();
        Ok(())
    }

    /// The next record of the epoch, in the order of the files.
    fn read(&mut self) -> Result<Option<Bytes>> {
        loop {
            let input = match &mut self.open {
                Some(input) => input,
                none => {
                    let Some(name) = self.files.pop_front() else { return Ok(None) };
                    let name = String::from_utf8_lossy(&name).into_owned();
                    none.insert(Input::open(&name, self.compression)?)
                }
            };
            let next = input.record();
            if !matches!(next, Ok(Some(_))) {
                self.open = None;
            }
            if let Some((_, record)) = next? {
                self.is_fruitful = true;
                return Ok(Some(record));
            }
        }
    }

    /// Draws a record. The next epoch begins when all records of this one are drawn.
    async fn draw(&mut self, cancel: &CancelToken) -> Result<Bytes> {
        loop {
            take_turn().await;
            before_io().await;
            while self.buffer.len() < self.buffer_size {
                let Some(record) = self.read()? else { break };
                let i = self.random.below_u64(self.buffer.len() as u64 + 1) as usize;
                self.buffer.push(record);
                let last = self.buffer.len() - 1;
                self.buffer.swap(i, last);
                if last % 64 == 63 {
                    take_turn().await;
                    before_io().await;
                }
            }
            match self.buffer.pop() {
                Some(record) => return Ok(record),
                None => self.begin_epoch(cancel)?,
            }
        }
    }
}

struct RecordInput {
    records: Arc<Turns<Records>>,
    batch: usize,
}

impl AsyncKernel for RecordInput {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let (records, batch) = (self.records.clone(), self.batch);
        let cancel = ctx.step.cancel.clone();
        run_kernel(&ctx.step, None, scope, done, async move {
            let mut records = records.take().await;
            let mut all = Vec::with_capacity(batch);
            for _ in 0..batch {
                all.push(records.draw(&cancel).await?);
            }
            Ok(vec![Tensor::from_strings([batch], all)?])
        });
    }
}

/// An attribute that must be positive.
fn positive(init: &KernelInit<'_>, attr: &str) -> Result<usize> {
    let x = init.int(attr)?;
    ensure!(x > 0, InvalidArgument, "attr {attr} must be positive, got {x}");
    Ok(x as usize)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RecordInput")
        .doc("Records of TFRecord files in random order, without end.")
        .output("records: string")
        .attr("file_pattern: string")
        .attr("file_random_seed: int = 301")
        .attr("file_shuffle_shift_ratio: float = 0.0")
        .attr("file_buffer_size: int = 10000")
        .attr("file_parallelism: int = 16")
        .attr("batch_size: int = 32")
        .attr("compression_type: string = ''")
        .stateful()
        .waits()
        .does_io()
        .shape(|c| Ok(vec![PartialShape::new([usize::try_from(c.attrs.int("batch_size")?).ok()])]))
        .cpu(|init| {
            positive(init, "file_parallelism")?;
            let seed = init.int("file_random_seed")?;
            let records = Records {
                pattern: init.string("file_pattern")?,
                compression: RecordCompression::from_name(&init.string("compression_type")?)?,
                shift: init.float("file_shuffle_shift_ratio")?,
                buffer_size: positive(init, "file_buffer_size")?,
                seed,
                epoch: 0,
                files: VecDeque::new(),
                open: None,
                buffer: Vec::new(),
                random: Singles::new(Philox::from_seeds(seed, 0)),
                is_fruitful: false,
            };
            Ok(KernelBox::new_async(RecordInput {
                records: Arc::new(Turns::new(records)),
                batch: positive(init, "batch_size")?,
            }))
        });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_op_kit::tfrecord::RecordWriter;

    #[test]
    fn an_epoch_gives_each_record_once() {
        let dir =
            std::env::temp_dir().join(format!("ferroflow-record-input-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..3 {
            let mut writer = RecordWriter::create(dir.join(format!("part-{file}"))).unwrap();
            for i in 0..4 {
                writer.write(&[b'a' + file * 4 + i]).unwrap();
            }
            writer.finish().unwrap();
        }
        let op = |pattern: &str, n: i64| {
            check("RecordInput")
                .attr("file_pattern", dir.join(pattern).to_str().unwrap())
                .attr("batch_size", n)
                .attr("file_buffer_size", 5)
        };
        let got = op("part-*", 24).run().unwrap().remove(0);
        let all: Vec<u8> = got.strings().unwrap().iter().map(|s| s[0]).collect();
        for epoch in all.chunks(12) {
            let mut sorted = epoch.to_vec();
            sorted.sort();
            assert_eq!(sorted, b"abcdefghijkl");
            assert_ne!(epoch, b"abcdefghijkl");
        }
        op("nothing-*", 1).fails(Code::NotFound, "Found no files at");
        std::fs::write(dir.join("empty"), b"").unwrap();
        op("empty", 1).fails(Code::DataLoss, "have no records");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
