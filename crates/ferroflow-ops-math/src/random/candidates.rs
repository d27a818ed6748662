//! Candidate samplers: draw classes for sampled losses, with the expected count of each.

use crate::prelude::*;
use ferroflow_core::{CancelToken, Reservation};
use ferroflow_op_kit::philox::{SharedPhilox, Singles};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// Draws this many times at most for distinct candidates: a sampler that cannot give enough of
/// them must not run forever.
const MAX_TRIES: u32 = 100_000_000;
/// How often a sampler draws until it looks whether the step was cancelled.
const BETWEEN_CHECKS: u32 = 1 << 16;

/// How classes are drawn from a range.
enum Sampler {
    Uniform {
        range: u64,
    },
    /// The probability of a class is proportional to log((class + 2) / (class + 1)).
    LogUniform {
        range: u64,
        log_range: f64,
    },
    /// The probability of a class is proportional to its count so far, plus one.
    Learned(Mutex<Counts>),
    Fixed(Weights),
}

impl Sampler {
    fn sample(&self, words: &mut Singles) -> i64 {
        match self {
            Sampler::Uniform { range } => words.below_u64(*range) as i64,
            Sampler::LogUniform { range, log_range } => {
                let value = (words.next_f64() * log_range).exp() as i64 - 1;
                value % *range as i64
            }
            Sampler::Learned(counts) => counts.lock().pick(words) as i64,
            Sampler::Fixed(weights) => weights.pick(words) as i64,
        }
    }

    fn probability(&self, class: i64) -> f32 {
        match self {
            Sampler::Uniform { range } => (1.0 / *range as f64) as f32,
            Sampler::LogUniform { log_range, .. } => {
                (((class as f64 + 2.0) / (class as f64 + 1.0)).ln() / log_range) as f32
            }
            Sampler::Learned(counts) => counts.lock().probability(class as usize),
            Sampler::Fixed(weights) => weights.probability(class),
        }
    }

    fn range(&self) -> u64 {
        match self {
            Sampler::Uniform { range } | Sampler::LogUniform { range, .. } => *range,
            Sampler::Learned(counts) => counts.lock().range as u64,
            Sampler::Fixed(weights) => weights.weights.len() as u64,
        }
    }
}

/// How often each class was seen, as a binary tree of sums with the root at 1.
struct Counts {
    range: usize,
    leaves: usize,
    sums: Vec<i32>,
    _counted: Reservation,
}

impl Counts {
    fn new(range: usize) -> Result<Counts> {
        let leaves = range.next_power_of_two();
        let counted = Reservation::new(2 * leaves * size_of::<i32>())?;
        let mut sums = Vec::new();
        if sums.try_reserve_exact(2 * leaves).is_err() {
            bail!(ResourceExhausted, "OOM when allocating counts for {range} classes");
        }
        sums.resize(leaves, 0);
        sums.extend((0..leaves).map(|i| i32::from(i < range)));
        for i in (1..leaves).rev() {
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        }
        Ok(Counts { range, leaves, sums, _counted: counted })
    }

    fn pick(&self, words: &mut Singles) -> usize {
        let mut at = words.below_u32(self.sums[1] as u32) as i32;
        let mut i = 1;
        while i < self.leaves {
            i *= 2;
            if at >= self.sums[i] {
                at -= self.sums[i];
                i += 1;
            }
        }
        i - self.leaves
    }

    fn probability(&self, class: usize) -> f32 {
        self.sums[self.leaves + class] as f32 / self.sums[1] as f32
    }

    fn see(&mut self, classes: &[i64]) {
        let room = (i32::MAX - self.sums[1]) as usize;
        for &class in classes.iter().take(room) {
            let mut i = self.leaves + class as usize;
            while i > 0 {
                self.sums[i] += 1;
                i /= 2;
            }
        }
    }
}

/// Fixed weights, as an alias table: each slot gives itself or one other class.
struct Weights {
    weights: Vec<f32>,
    total: f32,
    slots: Vec<(f32, usize)>,
    _counted: Reservation,
}

impl Weights {
    /// Bytes for each class, those of the table under construction included.
    const BYTES: usize = size_of::<f32>() + size_of::<(f32, usize)>() + 2 * size_of::<usize>();

    fn new(weights: Vec<f32>, total: f32, counted: Reservation) -> Weights {
        let n = weights.len();
        let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let mut shares: Vec<f64> = weights.iter().map(|&w| f64::from(w * n as f32) / sum).collect();
        let (mut low, mut high): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| shares[i] < 1.0);
        let mut slots: Vec<(f32, usize)> = (0..n).map(|i| (1.0, i)).collect();
        while !low.is_empty()
            && let Some(h) = high.pop()
            && let Some(l) = low.pop()
        {
            slots[l] = (shares[l] as f32, h);
            shares[h] -= 1.0 - shares[l];
            if shares[h] < 1.0 { low.push(h) } else { high.push(h) }
        }
        Weights { weights, total, slots, _counted: counted }
    }

    fn pick(&self, words: &mut Singles) -> usize {
        let r = words.next_f32();
        let i = words.below_u32(self.slots.len() as u32) as usize;
        let (share, other) = self.slots[i];
        if r < share { i } else { other }
    }

    fn probability(&self, class: i64) -> f32 {
        let weight = usize::try_from(class).ok().and_then(|i| self.weights.get(i));
        weight.map_or(0.0, |w| w / self.total)
    }
}

/// The expected count of a class of probability `p` among `sampled` candidates drawn in `tries`
/// tries.
fn expected_count(p: f32, sampled: usize, tries: u32) -> f32 {
    if tries as usize == sampled {
        return p * sampled as f32;
    }
    -(tries as f32 * (-p).ln_1p()).exp_m1()
}

struct CandidateSampler {
    sampled: usize,
    num_true: usize,
    unique: bool,
    stream: SharedPhilox,
    source: Source,
}

/// Where the sampler of a kernel comes from.
enum Source {
    /// Every class is taken.
    All,
    Known(Sampler),
    /// The first step reads it from a file.
    File {
        file: String,
        weights: FixedWeights,
        sampler: OnceLock<Sampler>,
    },
}

impl CandidateSampler {
    fn kernel(init: &KernelInit<'_>, source: Source) -> Result<KernelBox> {
        Ok(KernelBox::new(CandidateSampler {
            sampled: size(init, "num_sampled")?,
            num_true: size(init, "num_true")?,
            unique: init.bool("unique")?,
            stream: SharedPhilox::from_attrs(init)?,
            source,
        }))
    }

    /// The sampler; `None` takes every class.
    fn sampler(&self) -> Result<Option<&Sampler>> {
        match &self.source {
            Source::All => Ok(None),
            Source::Known(sampler) => Ok(Some(sampler)),
            Source::File { file, weights, sampler } => {
                if let Some(sampler) = sampler.get() {
                    return Ok(Some(sampler));
                }
                let read = weights.sampler(&read_weights(file)?)?;
                Ok(Some(sampler.get_or_init(|| read)))
            }
        }
    }
}

/// Draws candidates. Returns them, and how many tries they took.
fn draw(
    sampler: &Sampler,
    (count, distinct): (usize, bool),
    words: &mut Singles,
    cancel: &CancelToken,
) -> Result<(Vec<i64>, u32)> {
    let (mut seen, mut drawn, mut tries) = (HashSet::new(), Vec::new(), 0);
    while drawn.len() < count {
        if tries % BETWEEN_CHECKS == 0 {
            cancel.check()?;
        }
        ensure!(
            !distinct || tries < MAX_TRIES,
            Internal,
            "the sampler did not give {count} distinct candidates"
        );
        tries += 1;
        let class = sampler.sample(words);
        if !distinct || seen.insert(class) {
            drawn.push(class);
        }
    }
    Ok((drawn, tries))
}

impl Kernel for CandidateSampler {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let classes = ctx.input(0)?;
        ensure!(classes.rank() == 2, InvalidArgument, "true_classes must be a matrix");
        ensure!(
            classes.shape()[1] == self.num_true,
            InvalidArgument,
            "true_classes must have num_true columns, expected: {} was: {}",
            classes.shape()[1],
            self.num_true
        );
        let (shape, classes) = (classes.shape().clone(), classes.as_slice::<i64>()?);
        let sampler = self.sampler()?;
        let range = sampler.map_or(self.sampled as u64, Sampler::range);
        ensure!(
            !self.unique || self.sampled as u64 <= range,
            InvalidArgument,
            "Sampler's range is too small."
        );
        for &class in classes {
            ensure!(
                u64::try_from(class).is_ok_and(|c| c < range),
                InvalidArgument,
                "`true_candidate` out of range [0, {range}), received {class}"
            );
        }
        // Candidates, the set of those that are distinct, and their expected counts.
        let each = size_of::<i64>() * if self.unique { 5 } else { 2 };
        let _counted = Reservation::new(self.sampled * each)?;
        let (drawn, of_true, of_drawn) = match sampler {
            None => {
                let all: Vec<i64> = (0..self.sampled as i64).collect();
                (all, vec![1.0; classes.len()], vec![1.0; self.sampled])
            }
            Some(sampler) => {
                let stream = self.stream.reserve_words((self.sampled as u64).wrapping_mul(2048));
                let (mut words, wanted) = (Singles::new(stream), (self.sampled, self.unique));
                let (drawn, tries) = draw(sampler, wanted, &mut words, &ctx.step().cancel)?;
                let expected = |classes: &[i64]| -> Vec<f32> {
                    let p = classes.iter().map(|&c| sampler.probability(c));
                    p.map(|p| expected_count(p, self.sampled, tries)).collect()
                };
                let (of_true, of_drawn) = (expected(classes), expected(&drawn));
                if let Sampler::Learned(counts) = sampler {
                    counts.lock().see(classes);
                }
                (drawn, of_true, of_drawn)
            }
        };
        let of_true = Tensor::from_slice(shape, &of_true)?;
        ctx.set(0, Tensor::vector(&drawn))?;
        ctx.set(1, of_true)?;
        ctx.set(2, Tensor::vector(&of_drawn))
    }
}

/// A count in an attribute, small enough to allocate for.
fn size(init: &KernelInit<'_>, name: &str) -> Result<usize> {
    let n = init.int(name)?;
    ensure!((0..1 << 31).contains(&n), InvalidArgument, "{name} is out of range: {n}");
    Ok(n as usize)
}

fn range_max(init: &KernelInit<'_>) -> Result<u64> {
    let range = init.int("range_max")?;
    ensure!(range > 0, InvalidArgument, "range_max must be positive");
    Ok(range as u64)
}

fn uniform(init: &KernelInit<'_>) -> Result<KernelBox> {
    let range = range_max(init)?;
    CandidateSampler::kernel(init, Source::Known(Sampler::Uniform { range }))
}

fn log_uniform(init: &KernelInit<'_>) -> Result<KernelBox> {
    let range = range_max(init)?;
    let log_range = (range as f64).ln_1p();
    CandidateSampler::kernel(init, Source::Known(Sampler::LogUniform { range, log_range }))
}

fn learned(init: &KernelInit<'_>) -> Result<KernelBox> {
    let range = range_max(init)?;
    ensure!(
        range < i32::MAX as u64,
        InvalidArgument,
        "range_max must be less than {} for unigram samplers, got {range}",
        i32::MAX
    );
    let counts = Counts::new(range as usize)?;
    CandidateSampler::kernel(init, Source::Known(Sampler::Learned(Mutex::new(counts))))
}

fn fixed(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (file, unigrams) = (init.string("vocab_file")?, init.floats("unigrams")?);
    ensure!(
        !file.is_empty() || !unigrams.is_empty(),
        InvalidArgument,
        "Must provide either vocab_file or unigrams."
    );
    ensure!(
        file.is_empty() || unigrams.is_empty(),
        InvalidArgument,
        "Must only provide one of vocab_file and unigrams."
    );
    let weights = FixedWeights {
        shards: init.int("num_shards")?,
        shard: init.int("shard")?,
        reserved: size(init, "num_reserved_ids")?,
        distortion: init.float("distortion")?,
        range: range_max(init)?,
    };
    let source = match file.is_empty() {
        true => Source::Known(weights.sampler(&unigrams)?),
        false => Source::File { file, weights, sampler: OnceLock::new() },
    };
    CandidateSampler::kernel(init, source)
}

/// How a fixed sampler weighs classes, beyond their unigrams.
struct FixedWeights {
    shards: i64,
    shard: i64,
    reserved: usize,
    distortion: f32,
    range: u64,
}

impl FixedWeights {
    fn sampler(&self, unigrams: &[f32]) -> Result<Sampler> {
        let FixedWeights { shards, shard, reserved, distortion, range } = *self;
        let is_ours = |id: usize| shards > 0 && id as i64 % shards == shard;
        let mut weights: Vec<f32> = Vec::new();
        // More than fit the range are an error below.
        let most = usize::try_from(range).unwrap_or(usize::MAX).saturating_add(1);
        let classes = most.min(reserved.saturating_add(unigrams.len()));
        let counted = Reservation::new(classes.saturating_mul(Weights::BYTES))?;
        weights.extend((0..reserved).filter(|&id| is_ours(id)).map(|_| 0.0).take(most));
        let (first, mut total) = (weights.len(), 0.0f32);
        for (i, w) in unigrams.iter().enumerate() {
            if is_ours(first + i) {
                let w = w.powf(distortion);
                total += w;
                weights.push(w);
            }
        }
        ensure!(
            range == weights.len() as u64,
            InvalidArgument,
            "range is {range} must be equal to weights size  {}",
            weights.len()
        );
        Ok(Sampler::Fixed(Weights::new(weights, total, counted)))
    }
}

/// The last field of each line of a comma-separated file.
fn read_weights(file: &str) -> Result<Vec<f32>> {
    let text = ferroflow_op_kit::file::read_file(file)?;
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .map(|line| {
            let field = line.rsplit(',').next().unwrap_or_default().trim();
            field
                .parse()
                .map_err(|_| err!(InvalidArgument, "Wrong vocabulary format at line: {line}"))
        })
        .collect()
}

/// The positions where true classes were sampled too.
fn accidental_hits(init: &KernelInit<'_>) -> Result<KernelBox> {
    let num_true = init.int("num_true")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (classes, sampled) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            classes.rank() == 2 && classes.shape()[1] as i64 == num_true,
            InvalidArgument,
            "true_candidates must be a batch_size * num_true matrix"
        );
        ensure!(
            sampled.rank() == 1,
            InvalidArgument,
            "sampled_candidates must be a vector, which is typically an output from \
             CandidateSampler"
        );
        let places: HashMap<i64, i64> =
            sampled.as_slice::<i64>()?.iter().copied().zip(0..).collect();
        let hits = classes.as_slice::<i64>()?.iter().enumerate();
        let (rows, ids): (Vec<i32>, Vec<i64>) =
            hits.filter_map(|(i, c)| Some(((i as i64 / num_true) as i32, *places.get(c)?))).unzip();
        let weights = vec![-f32::MAX; ids.len()];
        ctx.set(0, Tensor::vector(&rows))?;
        ctx.set(1, Tensor::vector(&ids))?;
        ctx.set(2, Tensor::vector(&weights))
    }))
}

fn shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let count = |name: &str| Ok::<_, Error>(usize::try_from(c.attrs.int(name)?).ok());
    let sampled = PartialShape::new([count("num_sampled")?]);
    let of_true = PartialShape::new([c.input(0).dim(0), count("num_true")?]);
    Ok(vec![sampled.clone(), of_true, sampled])
}

pub(crate) fn register(c: &mut Catalog) {
    type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;
    let table: [(&str, Make, &str); 6] = [
        ("UniformCandidateSampler", uniform, "uniformly"),
        ("LogUniformCandidateSampler", log_uniform, "log-uniformly, small ones more often"),
        ("LearnedUnigramCandidateSampler", learned, "as often as they came in earlier steps"),
        ("ThreadUnsafeUnigramCandidateSampler", learned, "as often as they came in earlier steps"),
        ("FixedUnigramCandidateSampler", fixed, "by given weights"),
        ("AllCandidateSampler", |init| CandidateSampler::kernel(init, Source::All), "all of them"),
    ];
    for (op, make, how) in table {
        let mut op_def = c
            .op(op)
            .doc(&format!("Candidate classes drawn {how}, and how often each was to be expected."))
            .input("true_classes: int64")
            .output("sampled_candidates: int64")
            .output("true_expected_count: float")
            .output("sampled_expected_count: float")
            .attr("num_true: int >= 1")
            .attr("num_sampled: int >= 1")
            .attr("unique: bool");
        if op != "AllCandidateSampler" {
            op_def = op_def.attr("range_max: int >= 1");
        }
        if op == "FixedUnigramCandidateSampler" {
            op_def = op_def
                .does_io()
                .attr("vocab_file: string = ''")
                .attr("distortion: float = 1.0")
                .attr("num_reserved_ids: int = 0")
                .attr("num_shards: int >= 1 = 1")
                .attr("shard: int >= 0 = 0")
                .attr("unigrams: list(float) = []");
        }
        op_def
            .attr("seed: int = 0")
            .attr("seed2: int = 0")
            .stateful()
            .expensive()
            .shape(shapes)
            .cpu(make);
    }
    c.op("ComputeAccidentalHits")
        .doc("Where true classes were sampled too, with weights that make them impossible.")
        .input("true_classes: int64")
        .input("sampled_candidates: int64")
        .output("indices: int32")
        .output("ids: int64")
        .output("weights: float")
        .attr("num_true: int")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .shape(shape::vector)
        .cpu(accidental_hits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};
    use ferroflow_op_kit::philox::Philox;

    fn sampler(op: &str, classes: [i64; 2], range: i64) -> Check<'static> {
        check(op)
            .attr("num_true", 2i64)
            .attr("num_sampled", 4i64)
            .attr("unique", true)
            .attr("range_max", range)
            .attr("seed", 5i64)
            .attr("seed2", 6i64)
            .input(Tensor::from_slice([1, 2], &classes).unwrap())
    }

    #[test]
    fn seeds_give_the_candidates_of_tensorflow() {
        for (op, want) in [
            ("UniformCandidateSampler", [15i64, 9, 3, 1]),
            ("LogUniformCandidateSampler", [6, 3, 10, 11]),
            ("LearnedUnigramCandidateSampler", [3, 7, 1, 17]),
        ] {
            sampler(op, [1, 2], 20).gives(Tensor::vector(&want));
        }
        let counts = sampler("LogUniformCandidateSampler", [1, 2], 20).run().unwrap();
        let expected = counts[2].as_slice::<f32>().unwrap();
        assert_eq!(expected, [0.17543821, 0.2931738, 0.11431859, 0.1051629]);
    }

    #[test]
    fn weights_decide() {
        let weights = ferroflow_graph::AttrList::Floats(vec![1., 2., 3., 4., 5.]);
        let got = sampler("FixedUnigramCandidateSampler", [1, 2], 5)
            .attr("unique", false)
            .attr("unigrams", weights)
            .run()
            .unwrap();
        assert_eq!(got[0], Tensor::vector(&[2i64, 3, 3, 2]));
        assert_eq!(got[2].as_slice::<f32>().unwrap(), [0.8, 1.0666667, 1.0666667, 0.8]);
    }

    /// Distinct candidates that take long, in a step that is cancelled before.
    #[test]
    fn a_cancelled_step_ends_drawing() {
        let cancel = CancelToken::new();
        cancel.cancel(err!(Cancelled, "enough"));
        let (sampler, mut words) =
            (Sampler::Uniform { range: 1 << 40 }, Singles::new(Philox::from_seeds(1, 2)));
        let drawn = draw(&sampler, (1 << 30, true), &mut words, &cancel);
        assert_eq!(drawn.unwrap_err().code(), Code::Cancelled);
    }

    #[test]
    fn ranges_are_respected() {
        let op = "UniformCandidateSampler";
        sampler(op, [1, 2], 3).fails(Code::InvalidArgument, "Sampler's range is too small.");
        sampler(op, [1, 10], 10).fails(Code::InvalidArgument, "out of range [0, 10), received 10");
    }

    #[test]
    fn accidental_hits_are_found() {
        let classes = Tensor::from_slice([2, 2], &[1i64, 2, 3, 4]).unwrap();
        let hits = check("ComputeAccidentalHits")
            .attr("num_true", 2i64)
            .input(classes)
            .input(Tensor::vector(&[4i64, 1, 9, 4]))
            .run()
            .unwrap();
        assert_eq!(hits[0], Tensor::vector(&[0i32, 1]));
        assert_eq!(hits[1], Tensor::vector(&[1i64, 3]));
        assert_eq!(hits[2], Tensor::vector(&[-f32::MAX; 2]));
    }
}
