//! Skipgram: pairs of near words of a text file, for word2vec.

use super::records::Input;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::philox::{Philox, Singles, entropy};
use ferroflow_op_kit::tfrecord::RecordCompression;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// The words of a text and their numbers; 0 stands for all rare words.
struct Corpus {
    words: Tensor,
    counts: Tensor,
    text: Vec<i32>,
    frequencies: Vec<i64>,
}

impl Corpus {
    fn read(file: &str, min_count: i64, cancel: &CancelToken) -> Result<Corpus> {
        let mut input = Input::open(file, RecordCompression::None)?;
        let mut text: Vec<Bytes> = Vec::new();
        let mut counts: HashMap<Bytes, i64> = HashMap::new();
        while let Some(line) = input.line()? {
            cancel.check()?;
            for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                let word = line.slice_ref(word);
                *counts.entry(word.clone()).or_default() += 1;
                text.push(word);
            }
        }
        let mut kept: Vec<(Bytes, i64)> =
            counts.into_iter().filter(|(_, count)| *count >= min_count).collect();
        kept.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let total: i64 = kept.iter().map(|(_, count)| count).sum();
        let mut frequencies = vec![text.len() as i64 - total];
        let mut words = vec![Bytes::from_static(b"UNK")];
        let mut numbers: HashMap<Bytes, i32> = HashMap::new();
        for (word, count) in kept {
            numbers.insert(word.clone(), words.len() as i32);
            words.push(word);
            frequencies.push(count);
        }
        let narrow: Vec<i32> = frequencies.iter().map(|count| *count as i32).collect();
        Ok(Corpus {
            words: Tensor::from_strings([words.len()], words)?,
            counts: Tensor::vector(&narrow),
            text: text.iter().map(|word| numbers.get(word).copied().unwrap_or(0)).collect(),
            frequencies,
        })
    }
}

/// The position of a node in its text.
struct Walk {
    corpus: Corpus,
    random: Singles,
    epoch: i32,
    processed: i64,
    /// The next word of the text.
    at: usize,
    sentence: Vec<i32>,
    /// Pairs of the current sentence that have not been handed out.
    pairs: VecDeque<(i32, i32)>,
}

/// Words that are treated as one sentence.
const SENTENCE: usize = 1000;

struct Skipgram {
    file: String,
    batch: usize,
    window: u32,
    min_count: i64,
    subsample: f32,
    walk: Mutex<Option<Walk>>,
}

impl Skipgram {
    fn begin(&self, cancel: &CancelToken) -> Result<Walk> {
        let corpus = Corpus::read(&self.file, self.min_count, cancel)?;
        ensure!(
            corpus.text.len() > self.window as usize * 10,
            InvalidArgument,
            "The text file {} contains too little data: {} words",
            self.file,
            corpus.text.len()
        );
        let random = Singles::new(Philox::seeded(entropy() as i64, 0));
        let (sentence, pairs) = (Vec::new(), VecDeque::new());
        Ok(Walk { corpus, random, epoch: 0, processed: 0, at: 0, sentence, pairs })
    }

    /// Whether a frequent word is taken this time.
    fn keeps(&self, walk: &mut Walk, word: i32) -> bool {
        if self.subsample <= 0.0 {
            return true;
        }
        let count = std::cmp::max(walk.corpus.frequencies[word as usize], 1) as f32;
        let threshold = self.subsample * walk.corpus.text.len() as f32;
        let chance = ((count / threshold).sqrt() + 1.0) * threshold / count;
        walk.random.next_f32() <= chance
    }

    /// Takes the words of the next sentence and pairs each with its neighbours.
    fn refill(&self, walk: &mut Walk) -> Result<()> {
        let begun = walk.epoch;
        while walk.pairs.is_empty() {
            walk.sentence.clear();
            while walk.sentence.len() < SENTENCE {
                if walk.at >= walk.corpus.text.len() {
                    (walk.at, walk.epoch) = (0, walk.epoch.wrapping_add(1));
                    break;
                }
                let word = walk.corpus.text[walk.at];
                walk.at += 1;
                walk.processed += 1;
                if word != 0 && self.keeps(walk, word) {
                    walk.sentence.push(word);
                }
            }
            for i in 0..walk.sentence.len() {
                let reach = 1 + walk.random.below_u32(self.window) as usize;
                let near = i.saturating_sub(reach)..(i + reach + 1).min(walk.sentence.len());
                let word = walk.sentence[i];
                let own = near.filter(|j| *j != i).map(|j| (word, walk.sentence[j]));
                walk.pairs.extend(own);
            }
            ensure!(
                !walk.pairs.is_empty() || walk.epoch.wrapping_sub(begun) < 3,
                InvalidArgument,
                "The text file {} has no two near words that are frequent enough",
                self.file
            );
        }
        Ok(())
    }
}

impl Kernel for Skipgram {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut guard = self.walk.lock();
        let walk = match &mut *guard {
            Some(walk) => walk,
            none => none.insert(self.begin(&ctx.step().cancel)?),
        };
        let (mut examples, mut labels) = (Vec::new(), Vec::new());
        while examples.len() < self.batch {
            if walk.pairs.is_empty() {
                self.refill(walk)?;
            }
            let wanted = (self.batch - examples.len()).min(walk.pairs.len());
            for (example, label) in walk.pairs.drain(..wanted) {
                examples.push(example);
                labels.push(label);
            }
        }
        ctx.set(0, walk.corpus.words.clone())?;
        ctx.set(1, walk.corpus.counts.clone())?;
        ctx.set(2, Tensor::scalar(walk.corpus.text.len() as i64))?;
        ctx.set(3, Tensor::scalar(walk.epoch))?;
        ctx.set(4, Tensor::scalar(walk.processed))?;
        ctx.set(5, Tensor::vector(&examples))?;
        ctx.set(6, Tensor::vector(&labels))
    }
}

fn skipgram(init: &KernelInit<'_>) -> Result<KernelBox> {
    let positive = |name: &str| {
        let n = init.int(name)?;
        let n = u32::try_from(n).ok().filter(|n| *n > 0);
        n.ok_or_else(|| err!(InvalidArgument, "{name} must be positive"))
    };
    Ok(KernelBox::new(Skipgram {
        file: init.string("filename")?,
        batch: positive("batch_size")? as usize,
        window: positive("window_size")?,
        min_count: init.int("min_count")?,
        subsample: init.float("subsample")?,
        walk: Mutex::new(None),
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Skipgram")
        .doc("Pairs of near words of a text file, and the file's vocabulary.")
        .output("vocab_word: string")
        .output("vocab_freq: int32")
        .output("words_per_epoch: int64")
        .output("current_epoch: int32")
        .output("total_words_processed: int64")
        .output("examples: int32")
        .output("labels: int32")
        .attr("filename: string")
        .attr("batch_size: int")
        .attr("window_size: int = 5")
        .attr("min_count: int = 5")
        .attr("subsample: float = 0.001")
        .stateful()
        .does_io()
        .shape(|c| {
            let (vector, scalar) = (PartialShape::new([None]), PartialShape::scalar());
            let batch = PartialShape::new([usize::try_from(c.attrs.int("batch_size")?).ok()]);
            Ok(vec![
                vector.clone(),
                vector,
                scalar.clone(),
                scalar.clone(),
                scalar,
                batch.clone(),
                batch,
            ])
        })
        .cpu(skipgram);
    c.no_gradient(&["Skipgram"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn a_cancelled_step_reads_no_more_text() {
        let cancel = CancelToken::new();
        cancel.cancel(err!(Cancelled, "the client has gone"));
        let file = std::env::temp_dir().join(format!("ferroflow-corpus-{}", std::process::id()));
        std::fs::write(&file, "one\ntwo\n").unwrap();
        let result = Corpus::read(file.to_str().unwrap(), 1, &cancel);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(result.err().unwrap().code(), Code::Cancelled);
    }

    #[test]
    fn near_words_are_paired() {
        let file = std::env::temp_dir().join(format!("ferroflow-words-{}", std::process::id()));
        let text = "a b c d\n".repeat(40) + "rare\n";
        std::fs::write(&file, text).unwrap();
        let of = |file: &std::path::Path| {
            check("Skipgram")
                .attr("filename", &*file.to_string_lossy())
                .attr("batch_size", 200i64)
                .attr("window_size", 1i64)
                .attr("min_count", 2i64)
                .attr("subsample", 0f32)
        };
        let out = of(&file).run().unwrap();
        let words = out[0].strings().unwrap();
        assert_eq!(&words[0][..], b"UNK");
        assert_eq!(words.len(), 5);
        assert_eq!(out[1], Tensor::vector(&[1i32, 40, 40, 40, 40]));
        assert_eq!(out[2], Tensor::scalar(161i64));
        let (x, y) = (out[5].as_slice::<i32>().unwrap(), out[6].as_slice::<i32>().unwrap());
        assert_eq!(x.len(), 200);
        for (x, y) in x.iter().zip(y) {
            // The words repeat in the order a, b, c, d.
            assert!(matches!((y - x).rem_euclid(4), 1 | 3), "{x} {y}");
        }
        std::fs::write(&file, "a b").unwrap();
        of(&file).fails(Code::InvalidArgument, "contains too little data");
        std::fs::remove_file(&file).unwrap();
    }
}
