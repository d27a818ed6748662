//! NonMaxSuppression in five versions, and with given overlaps: of boxes that overlap too much,
//! only the one with the best score is kept.

use crate::prelude::*;
use std::collections::BinaryHeap;

/// The intersection of two boxes divided by their union.
pub(super) fn overlap(a: &[f32], b: &[f32]) -> f32 {
    let sides = |x: &[f32]| (x[0].min(x[2]), x[1].min(x[3]), x[0].max(x[2]), x[1].max(x[3]));
    let ((top_a, left_a, bottom_a, right_a), (top_b, left_b, bottom_b, right_b)) =
        (sides(a), sides(b));
    let area_a = (bottom_a - top_a) * (right_a - left_a);
    let area_b = (bottom_b - top_b) * (right_b - left_b);
    if area_a <= 0.0 || area_b <= 0.0 {
        return 0.0;
    }
    let height = (bottom_a.min(bottom_b) - top_a.max(top_b)).max(0.0);
    let width = (right_a.min(right_b) - left_a.max(left_b)).max(0.0);
    height * width / (area_a + area_b - height * width)
}

/// A candidate box. Better scores come first, then lower indices.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    score: f32,
    index: usize,
    /// How many of the kept boxes it was compared with.
    compared: usize,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Score threshold, maximal number of boxes, and how scores decay with overlap.
struct Rules {
    keep: usize,
    max_overlap: f32,
    min_score: f32,
    /// The width of the Gaussian by which overlap lowers scores; 0 for none.
    sigma: f32,
    /// Rounds to the precision that scores are computed in.
    round: fn(f32) -> f32,
}

/// Indices and scores of the boxes that are kept, best first.
fn kept(
    scores: &[f32],
    rules: &Rules,
    similarity: impl Fn(usize, usize) -> f32,
) -> (Vec<i32>, Vec<f32>) {
    let round = rules.round;
    let mut queue: BinaryHeap<Candidate> = scores
        .iter()
        .enumerate()
        .filter(|(_, score)| **score > rules.min_score)
        // Zeros of either sign count as equal scores.
        .map(|(index, &score)| Candidate { score: score + 0.0, index, compared: 0 })
        .collect();
    let is_soft = rules.sigma > 0.0;
    let scale = if is_soft { round(-0.5 / rules.sigma) } else { 0.0 };
    let (mut selected, mut selected_scores) = (Vec::new(), Vec::new());
    while selected.len() < rules.keep {
        let Some(mut next) = queue.pop() else { break };
        let before = next.score;
        let mut suppressed = false;
        for &other in selected[next.compared..].iter().rev() {
            let alike = round(similarity(next.index, other));
            if !is_soft && alike > rules.max_overlap {
                suppressed = true;
                break;
            }
            if is_soft {
                let weight = round(round(round(scale * alike) * alike).exp());
                next.score = round(next.score * weight);
            }
            if next.score <= rules.min_score {
                break;
            }
        }
        next.compared = selected.len();
        if suppressed {
            continue;
        }
        if next.score == before {
            selected.push(next.index);
            selected_scores.push(next.score);
        } else if next.score > rules.min_score {
            queue.push(next);
        }
    }
    (selected.into_iter().map(|i| i as i32).collect(), selected_scores)
}

/// Input `i`, a scalar of type half or float.
fn scalar(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<f32> {
    let t = ctx.input(i)?;
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "{name} must be 0-D, got shape {} (Shape must be rank 0 but is rank {})",
        t.shape(),
        t.rank()
    );
    Ok(super::pixels::floats(t)?[0])
}

pub(super) fn output_size(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<i32> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be 0-D, got shape {}", t.shape());
    t.scalar_value::<i32>()
}

fn check_scores(count: usize, scores: &Tensor) -> Result<()> {
    ensure!(
        scores.rank() == 1,
        InvalidArgument,
        "scores must be 1-D{} (Shape must be rank 1 but is rank {})",
        scores.shape(),
        scores.rank()
    );
    ensure!(
        scores.elements() == count,
        InvalidArgument,
        "scores has incompatible shape (Dimensions must be equal, but are {count} and {})",
        scores.elements()
    );
    Ok(())
}

struct Suppression {
    version: u8,
    /// The largest overlap, when it is an attribute.
    max_overlap: Option<f32>,
    pad: bool,
    is_half: bool,
}

impl Suppression {
    fn new(init: &KernelInit<'_>, version: u8) -> Result<Suppression> {
        let max_overlap = if version == 1 { Some(init.float("iou_threshold")?) } else { None };
        let pad = version >= 4 && init.bool("pad_to_max_output_size")?;
        let is_half = version >= 2 && init.dtype("T")? == DType::Half;
        Ok(Suppression { version, max_overlap, pad, is_half })
    }
}

impl Kernel for Suppression {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let keep = output_size(ctx, 2, "max_output_size")?;
        let max_overlap = match self.max_overlap {
            Some(x) => x,
            None => scalar(ctx, 3, "iou_threshold")?,
        };
        ensure!(
            (0.0..=1.0).contains(&max_overlap),
            InvalidArgument,
            "iou_threshold must be in [0, 1]"
        );
        let lowest = if self.is_half { f16::MIN.to_f32() } else { f32::MIN };
        let min_score = if self.version >= 3 { scalar(ctx, 4, "score_threshold")? } else { lowest };
        let sigma = if self.version == 5 { scalar(ctx, 5, "soft_nms_sigma")? } else { 0.0 };
        ensure!(sigma >= 0.0, InvalidArgument, "soft_nms_sigma_val must be >= 0");
        let (boxes, scores) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            boxes.rank() == 2,
            InvalidArgument,
            "boxes must be 2-D{} (Shape must be rank 2 but is rank {})",
            boxes.shape(),
            boxes.rank()
        );
        ensure!(
            boxes.shape()[1] == 4,
            InvalidArgument,
            "boxes must have 4 columns (Dimension must be 4 but is {})",
            boxes.shape()[1]
        );
        check_scores(boxes.shape()[0], scores)?;
        ensure!(keep >= 0, InvalidArgument, "output size must be non-negative");
        let round = if self.is_half { |x| f16::from_f32(x).to_f32() } else { |x| x };
        let (max_overlap, min_score) = (round(max_overlap), round(min_score));
        let rules = Rules { keep: keep as usize, max_overlap, min_score, sigma, round };
        let boxes = super::pixels::floats(boxes)?;
        let (indices, scores) = kept(&super::pixels::floats(scores)?, &rules, |i, j| {
            overlap(&boxes[4 * i..][..4], &boxes[4 * j..][..4])
        });
        let valid = indices.len() as i32;
        let len = if self.pad { rules.keep } else { indices.len() };
        let mut out = Tensor::zeros(DType::Int32, [len])?;
        out.as_mut_slice::<i32>()?[..indices.len()].copy_from_slice(&indices);
        ctx.set(0, out)?;
        if self.version == 5 {
            let mut out =
                Tensor::zeros(if self.is_half { DType::Half } else { DType::Float }, [len])?;
            if self.is_half {
                let to = out.as_mut_slice::<f16>()?.iter_mut();
                to.zip(&scores).for_each(|(to, x)| *to = f16::from_f32(*x));
            } else {
                out.as_mut_slice::<f32>()?[..scores.len()].copy_from_slice(&scores);
            }
            ctx.set(1, out)?;
        }
        match self.version {
            4 => ctx.set(1, Tensor::scalar(valid)),
            5 => ctx.set(2, Tensor::scalar(valid)),
            _ => Ok(()),
        }
    }
}

fn with_overlaps(ctx: &mut Ctx<'_>) -> Result<()> {
    let keep = output_size(ctx, 2, "max_output_size")?;
    let max_overlap = scalar(ctx, 3, "overlap_threshold")?;
    let min_score = scalar(ctx, 4, "score_threshold")?;
    let (overlaps, scores) = (ctx.input(0)?, ctx.input(1)?);
    let shape = overlaps.shape();
    ensure!(shape.rank() == 2, InvalidArgument, "overlaps must be 2-D{shape}");
    let count = shape[0];
    ensure!(shape[1] == count, InvalidArgument, "overlaps must be square{shape}");
    check_scores(count, scores)?;
    ensure!(keep >= 0, InvalidArgument, "output size must be non-negative");
    let rules = Rules { keep: keep as usize, max_overlap, min_score, sigma: 0.0, round: |x| x };
    let overlaps = overlaps.as_slice::<f32>()?;
    let (indices, _) = kept(scores.as_slice()?, &rules, |i, j| overlaps[i * count + j]);
    ctx.set(0, Tensor::vector(&indices))
}

fn padded_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let pad = c.attrs.bool("pad_to_max_output_size")?;
    let keep = c.constant_ints(2).filter(|_| pad);
    let len = keep.and_then(|n| usize::try_from(*n.first()?).ok());
    let mut shapes = vec![PartialShape::new([len]); c.outputs];
    shapes[c.outputs - 1] = PartialShape::scalar();
    Ok(shapes)
}

pub(crate) fn register(c: &mut Catalog) {
    const DOC: &str = "Indices of the boxes that are kept when of boxes that overlap too much only \
                       the best is.";
    c.op("NonMaxSuppression")
        .work(work::any)
        .doc(DOC)
        .input("boxes: float")
        .input("scores: float")
        .input("max_output_size: int32")
        .output("selected_indices: int32")
        .attr("iou_threshold: float = 0.5")
        .shape(shape::vector)
        .cpu(|init| Ok(KernelBox::new(Suppression::new(init, 1)?)));
    for version in [2, 3, 4] {
        let op = c.op(&format!("NonMaxSuppressionV{version}")).work(work::any).doc(DOC);
        let op = op.input("boxes: T").input("scores: T").input("max_output_size: int32");
        let op = op.input("iou_threshold: T_threshold");
        let op = if version > 2 { op.input("score_threshold: T_threshold") } else { op };
        let op = op.output("selected_indices: int32");
        let op = if version == 4 { op.output("valid_outputs: int32") } else { op };
        let op = op
            .attr("T: {half, float} = DT_FLOAT")
            .attr("T_threshold: {half, float} = DT_FLOAT")
            .cpu(move |init| Ok(KernelBox::new(Suppression::new(init, version)?)));
        match version {
            4 => op.attr("pad_to_max_output_size: bool = false").shape(padded_shapes),
            _ => op.shape(shape::vector),
        };
    }
    c.op("NonMaxSuppressionV5")
        .work(work::any)
        .doc("Like NonMaxSuppressionV4, but overlap may lower scores instead.")
        .input("boxes: T")
        .input("scores: T")
        .input("max_output_size: int32")
        .input("iou_threshold: T")
        .input("score_threshold: T")
        .input("soft_nms_sigma: T")
        .output("selected_indices: int32")
        .output("selected_scores: T")
        .output("valid_outputs: int32")
        .attr("T: {half, float} = DT_FLOAT")
        .attr("pad_to_max_output_size: bool = false")
        .shape(padded_shapes)
        .cpu(|init| Ok(KernelBox::new(Suppression::new(init, 5)?)));
    c.op("NonMaxSuppressionWithOverlaps")
        .work(work::any)
        .doc("Like NonMaxSuppressionV3, for overlaps that are given.")
        .input("overlaps: float")
        .input("scores: float")
        .input("max_output_size: int32")
        .input("overlap_threshold: float")
        .input("score_threshold: float")
        .output("selected_indices: int32")
        .shape(shape::vector)
        .cpu_fn(with_overlaps);
    c.no_gradient(&["NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionWithOverlaps"]);
}
