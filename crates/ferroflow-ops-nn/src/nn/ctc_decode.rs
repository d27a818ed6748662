//! CTCGreedyDecoder and CTCBeamSearchDecoder: decode class probabilities to label sequences.

use super::ctc_loss::log_add;
use crate::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Sizes of the inputs, and how long each sequence is.
struct Sequences {
    batch: usize,
    classes: usize,
    lengths: Vec<usize>,
}

impl Sequences {
    fn new(ctx: &Ctx<'_>) -> Result<Sequences> {
        let (inputs, lengths) = (ctx.input(0)?, ctx.input(1)?);
        let &[max_time, batch, classes] = inputs.shape().dims() else {
            bail!(InvalidArgument, "inputs is not a 3-Tensor");
        };
        ensure!(max_time != 0, InvalidArgument, "max_time is 0");
        ensure!(lengths.rank() == 1, InvalidArgument, "sequence_length is not a vector");
        ensure!(
            batch == lengths.elements(),
            FailedPrecondition,
            "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {batch}",
            lengths.elements()
        );
        ensure!(classes > 0, InvalidArgument, "num_classes must not be 0");
        let mut read = Vec::with_capacity(batch);
        for (b, n) in lengths.to_indices()?.into_iter().enumerate() {
            ensure!(n <= max_time as i64, FailedPrecondition, "sequence_length({b}) <= {max_time}");
            read.push(usize::try_from(n).unwrap_or(0));
        }
        Ok(Sequences { batch, classes, lengths: read })
    }

    /// The activations of a sequence at one time.
    fn at<'a, T>(&self, x: &'a [T], item: usize, time: usize) -> &'a [T] {
        &x[(time * self.batch + item) * self.classes..][..self.classes]
    }
}

/// Label sequences as the parts of a sparse tensor: indices, values, shape.
fn sparse(decoded: &[Vec<i64>]) -> Result<[Tensor; 3]> {
    let values: Vec<i64> = decoded.iter().flatten().copied().collect();
    let indices: Vec<i64> = decoded
        .iter()
        .enumerate()
        .flat_map(|(b, labels)| (0..labels.len()).flat_map(move |i| [b as i64, i as i64]))
        .collect();
    let longest = decoded.iter().map(Vec::len).max().unwrap_or(0);
    Ok([
        Tensor::from_slice([values.len(), 2], &indices)?,
        Tensor::vector(&values),
        Tensor::vector(&[decoded.len() as i64, longest as i64]),
    ])
}

fn greedy<T: Float>(merge_repeated: bool, blank: i64) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let sequences = Sequences::new(ctx)?;
        let classes = sequences.classes as i64;
        let blank = if blank < 0 { classes + blank } else { blank };
        ensure!(
            (0..classes).contains(&blank),
            InvalidArgument,
            "blank_index expected to be between {} and {}, got {blank}",
            -classes,
            classes - 1
        );
        let x = ctx.input(0)?.as_slice::<T>()?;
        let mut decoded = vec![Vec::new(); sequences.batch];
        let mut scores = Tensor::zeros(T::DTYPE, [sequences.batch, 1])?;
        for (b, labels) in decoded.iter_mut().enumerate() {
            let (mut before, mut score) = (-1, T::ZERO);
            for time in 0..sequences.lengths[b] {
                let row = sequences.at(x, b, time);
                let best = (1..row.len()).fold(0, |i, j| if row[j] > row[i] { j } else { i });
                score = score.add(row[best].neg());
                let best = best as i64;
                if best != blank && !(merge_repeated && best == before) {
                    labels.push(best);
                }
                before = best;
            }
            scores.as_mut_slice::<T>()?[b] = score;
        }
        for (i, t) in sparse(&decoded)?.into_iter().enumerate() {
            ctx.set(i, t)?;
        }
        ctx.set(3, scores)
    }
}

/// Log-probabilities of a label sequence: the total, and those of ending in a blank or in its last
/// label.
#[derive(Clone, Copy)]
struct Chance {
    total: f64,
    blank: f64,
    label: f64,
}

const NONE: Chance =
    Chance { total: f64::NEG_INFINITY, blank: f64::NEG_INFINITY, label: f64::NEG_INFINITY };

/// A label sequence: its parent and one more label.
struct Node {
    parent: Option<usize>,
    label: usize,
    children: BTreeMap<usize, usize>,
    old: Chance,
    new: Chance,
}

/// A float as a sort key.
#[derive(Clone, Copy, PartialEq)]
struct Key(f64);
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The most likely label sequences so far.
struct Beam {
    width: usize,
    nodes: Vec<Node>,
    leaves: Vec<usize>,
}

impl Beam {
    fn new(width: usize) -> Beam {
        let certain = Chance { total: 0.0, blank: 0.0, label: f64::NEG_INFINITY };
        let root = Node {
            parent: None,
            label: usize::MAX,
            children: BTreeMap::new(),
            old: NONE,
            new: certain,
        };
        Beam { width, nodes: vec![root], leaves: vec![0] }
    }

    /// The leaves, likeliest first.
    fn sorted(&self) -> Vec<usize> {
        let mut leaves = self.leaves.clone();
        leaves.sort_by(|&a, &b| self.nodes[b].new.total.total_cmp(&self.nodes[a].new.total));
        leaves
    }

    /// Processes the log-probabilities of one time; the last is that of the blank.
    fn step(&mut self, logs: &[f64]) {
        let Some((&blank, labels)) = logs.split_last() else { return };
        let branches = self.sorted();
        for &b in &branches {
            self.nodes[b].old = self.nodes[b].new;
        }
        // A heap with the least likely sequence on top.
        let mut kept: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::new();
        for &b in &branches {
            let node = &self.nodes[b];
            let mut new = node.new;
            if let Some(parent) = node.parent {
                let parent = &self.nodes[parent];
                if parent.new.total != f64::NEG_INFINITY {
                    let same = node.label == parent.label;
                    let before = if same { parent.old.blank } else { parent.old.total };
                    new.label = log_add(new.label, before);
                }
                new.label += labels[node.label];
            }
            new.blank = node.old.total + blank;
            new.total = log_add(new.blank, new.label);
            self.nodes[b].new = new;
            kept.push(Reverse((Key(new.total), b)));
        }
        let width = self.width;
        let hopeful = |kept: &BinaryHeap<Reverse<(Key, usize)>>, total: f64| {
            total > f64::NEG_INFINITY
                && (kept.len() < width || kept.peek().is_some_and(|Reverse((k, _))| total > k.0))
        };
        for &b in &branches {
            let (old, last) = (self.nodes[b].old, self.nodes[b].label);
            if !hopeful(&kept, old.total) {
                continue;
            }
            for (label, &log) in labels.iter().enumerate() {
                let before = if label == last { old.blank } else { old.total };
                let chance = log + before;
                let known = self.nodes[b].children.get(&label).copied();
                if known.is_some_and(|c| self.nodes[c].new.total != f64::NEG_INFINITY) {
                    continue;
                }
                if !hopeful(&kept, chance) {
                    // A sequence that was dropped is not extended in this step.
                    if let Some(child) = known {
                        (self.nodes[child].old, self.nodes[child].new) = (NONE, NONE);
                    }
                    continue;
                }
                let child = known.unwrap_or_else(|| {
                    let (id, children) = (self.nodes.len(), BTreeMap::new());
                    self.nodes.push(Node {
                        parent: Some(b),
                        label,
                        children,
                        old: NONE,
                        new: NONE,
                    });
                    self.nodes[b].children.insert(label, id);
                    id
                });
                self.nodes[child].new =
                    Chance { total: chance, blank: f64::NEG_INFINITY, label: chance };
                if kept.len() == width
                    && let Some(Reverse((_, bottom))) = kept.pop()
                {
                    self.nodes[bottom].new = NONE;
                }
                kept.push(Reverse((Key(chance), child)));
            }
        }
        self.leaves = kept.into_iter().map(|Reverse((_, node))| node).collect();
        self.leaves.sort_unstable();
    }

    fn labels(&self, leaf: usize, merge_repeated: bool) -> Vec<i64> {
        let (mut labels, mut at, mut before) = (Vec::new(), leaf, usize::MAX);
        while let Some(parent) = self.nodes[at].parent {
            let label = self.nodes[at].label;
            if !merge_repeated || label != before {
                labels.push(label as i64);
            }
            (before, at) = (label, parent);
        }
        labels.reverse();
        labels
    }
}

struct BeamSearch<T> {
    width: usize,
    paths: usize,
    merge_repeated: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Float> Kernel for BeamSearch<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let sequences = Sequences::new(ctx)?;
        ensure!(
            self.paths <= self.width,
            InvalidArgument,
            "requested more paths than the beam width."
        );
        let x = ctx.input(0)?.as_slice::<T>()?;
        let mut decoded = vec![vec![Vec::new(); sequences.batch]; self.paths];
        let shape = Shape::from_dims(&[sequences.batch as i64, self.paths as i64])?;
        let mut scores = Tensor::zeros(T::DTYPE, shape)?;
        for b in 0..sequences.batch {
            let mut beam = Beam::new(self.width);
            for time in 0..sequences.lengths[b] {
                let row = sequences.at(x, b, time);
                let top = row.iter().map(|x| x.to_f64()).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = row.iter().map(|x| (x.to_f64() - top).exp()).sum();
                let norm = top + sum.ln();
                let logs: Vec<f64> = row.iter().map(|x| x.to_f64() - norm).collect();
                beam.step(&logs);
            }
            let leaves = beam.sorted();
            ensure!(
                leaves.len() >= self.paths,
                InvalidArgument,
                "Less leaves in the beam search than requested."
            );
            for (i, &leaf) in leaves[..self.paths].iter().enumerate() {
                decoded[i][b] = beam.labels(leaf, self.merge_repeated);
                let score = T::from_f64(beam.nodes[leaf].new.total);
                scores.as_mut_slice::<T>()?[b * self.paths + i] = score;
            }
        }
        for (i, decoded) in decoded.iter().enumerate() {
            for (k, t) in sparse(decoded)?.into_iter().enumerate() {
                ctx.set(k * self.paths + i, t)?;
            }
        }
        ctx.set(3 * self.paths, scores)
    }
}

fn decoded_shapes(c: &ShapeCtx<'_>, paths: usize) -> Result<Vec<PartialShape>> {
    let inputs = c.input(0).merge(&PartialShape::of_rank(3))?;
    let batch = inputs.dim(1).or(c.input(1).dim(0));
    let mut shapes = vec![PartialShape::new([None, Some(2)]); paths];
    shapes.extend(vec![PartialShape::of_rank(1); paths]);
    shapes.extend(vec![PartialShape::from([2]); paths]);
    shapes.push(PartialShape::new([batch, Some(paths)]));
    Ok(shapes)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("CTCGreedyDecoder")
        .work(work::any)
        .doc("The likeliest class at each time, without blanks and repetitions.")
        .input("inputs: T")
        .input("sequence_length: int32")
        .output("decoded_indices: int64")
        .output("decoded_values: int64")
        .output("decoded_shape: int64")
        .output("log_probability: T")
        .attr("merge_repeated: bool = false")
        .attr("blank_index: int = -1")
        .attr("T: {float, double} = DT_FLOAT")
        .shape(|c| decoded_shapes(c, 1))
        .cpu(per_dtype!([Float f32, Double f64], init, T => {
            greedy::<T>(init.bool("merge_repeated")?, init.int("blank_index")?)
        }));
    c.op("CTCBeamSearchDecoder")
        .work(work::any)
        .doc("The likeliest label sequences, found by a beam search.")
        .input("inputs: T")
        .input("sequence_length: int32")
        .output("decoded_indices: top_paths * int64")
        .output("decoded_values: top_paths * int64")
        .output("decoded_shape: top_paths * int64")
        .output("log_probability: T")
        .attr("beam_width: int >= 1")
        .attr("top_paths: int >= 1")
        .attr("merge_repeated: bool = true")
        .attr("T: {float, double} = DT_FLOAT")
        .expensive()
        .shape(|c| decoded_shapes(c, (c.outputs - 1) / 3))
        .cpu(per_dtype!([Float f32, Double f64], init, T => BeamSearch::<T> {
            width: init.int("beam_width")? as usize,
            paths: init.int("top_paths")? as usize,
            merge_repeated: init.bool("merge_repeated")?,
            marker: std::marker::PhantomData,
        }));
    c.no_gradient(&["CTCBeamSearchDecoder", "CTCGreedyDecoder"]);
}
