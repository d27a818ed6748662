//! CombinedNonMaxSuppression: suppression class by class, for a batch of images.

use super::suppression::{output_size, overlap};
use crate::prelude::*;

struct Combined {
    pad_per_class: bool,
    clip_boxes: bool,
}

/// A box that was kept.
struct Found<'a> {
    score: f32,
    class: usize,
    corners: &'a [f32],
}

/// Sizes of the inputs.
struct Sizes {
    batch: usize,
    boxes: usize,
    /// The number of sets of boxes: one for all classes, or one for each.
    sets: usize,
    classes: usize,
}

impl Sizes {
    fn new(boxes: &Shape, scores: &Shape) -> Result<Sizes> {
        ensure!(
            boxes.rank() == 4,
            InvalidArgument,
            "boxes must be 4-D [batch, num_boxes, q, 4], got shape {boxes}"
        );
        ensure!(
            scores.rank() == 3,
            InvalidArgument,
            "scores must be 3-D [batch, num_boxes, num_classes], got shape {scores}"
        );
        ensure!(
            boxes[2] == 1 || boxes[2] == scores[2],
            InvalidArgument,
            "third dimension of boxes must be either 1 or num classes"
        );
        ensure!(boxes[3] == 4, InvalidArgument, "boxes must have 4 columns");
        ensure!(scores[1] == boxes[1], InvalidArgument, "scores has incompatible shape");
        ensure!(
            boxes[0] == scores[0],
            InvalidArgument,
            "boxes and scores must have same batch size"
        );
        Ok(Sizes { batch: boxes[0], boxes: boxes[1], sets: boxes[2], classes: scores[2] })
    }

    /// The boxes of one class of one image that are kept, best first.
    fn class<'a>(
        &self,
        boxes: &'a [f32],
        scores: &[f32],
        class: usize,
        keep: usize,
        (max_overlap, min_score): (f32, f32),
    ) -> Vec<Found<'a>> {
        let mut order: Vec<usize> =
            (0..self.boxes).filter(|i| scores[i * self.classes + class] > min_score).collect();
        let score = |i: usize| scores[i * self.classes + class];
        order.sort_by(|&i, &j| score(j).total_cmp(&score(i)));
        let set = if self.sets > 1 { class } else { 0 };
        let mut found: Vec<Found<'a>> = Vec::new();
        for i in order {
            if found.len() >= keep {
                break;
            }
            let corners = &boxes[(i * self.sets + set) * 4..][..4];
            if found.iter().rev().all(|f| overlap(corners, f.corners) <= max_overlap) {
                found.push(Found { score: score(i), class, corners });
            }
        }
        found
    }
}

impl Kernel for Combined {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (boxes, scores) = (ctx.input(0)?, ctx.input(1)?);
        let sizes = Sizes::new(boxes.shape(), scores.shape())?;
        let per_class = output_size(ctx, 2, "max_size_per_class")?;
        ensure!(per_class > 0, InvalidArgument, "max_size_per_class must be positive");
        let total = output_size(ctx, 3, "max_total_size")?;
        ensure!(total > 0, InvalidArgument, "max_total_size must be > 0");
        let threshold = |i: usize, name: &str| -> Result<f32> {
            let t = ctx.input(i)?;
            ensure!(t.rank() == 0, InvalidArgument, "{name} must be 0-D, got shape {}", t.shape());
            t.scalar_value::<f32>()
        };
        let max_overlap = threshold(4, "iou_threshold")?;
        let min_score = threshold(5, "score_threshold")?;
        ensure!(
            (0.0..=1.0).contains(&max_overlap),
            InvalidArgument,
            "iou_threshold must be in [0, 1]"
        );
        let (per_class, total) = (per_class as usize, total as usize);
        let len = match self.pad_per_class {
            true => total.min(per_class.saturating_mul(sizes.classes)),
            false => total,
        };
        let shape = Shape::from_dims(&[sizes.batch as i64, len as i64])?;
        let mut out_boxes =
            Tensor::zeros(DType::Float, Shape::from_dims(&[sizes.batch as i64, len as i64, 4])?)?;
        let mut out_scores = Tensor::zeros(DType::Float, shape.clone())?;
        let mut out_classes = Tensor::zeros(DType::Float, shape)?;
        let mut valid = Tensor::zeros(DType::Int32, [sizes.batch])?;
        let (boxes, scores) = (boxes.as_slice::<f32>()?, scores.as_slice::<f32>()?);
        for image in 0..sizes.batch {
            let step = sizes.boxes * sizes.sets * 4;
            let boxes = &boxes[image * step..][..step];
            let step = sizes.boxes * sizes.classes;
            let scores = &scores[image * step..][..step];
            let mut found: Vec<Found<'_>> = (0..sizes.classes)
                .flat_map(|class| {
                    sizes.class(boxes, scores, class, per_class, (max_overlap, min_score))
                })
                .collect();
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            found.truncate(len);
            valid.as_mut_slice::<i32>()?[image] = found.len() as i32;
            let to = &mut out_boxes.as_mut_slice::<f32>()?[image * len * 4..];
            for (to, f) in to.chunks_exact_mut(4).zip(&found) {
                to.copy_from_slice(f.corners);
                if self.clip_boxes {
                    to.iter_mut().for_each(|x| *x = x.clamp(0.0, 1.0));
                }
            }
            let to = out_scores.as_mut_slice::<f32>()?[image * len..].iter_mut();
            to.zip(&found).for_each(|(to, f)| *to = f.score);
            let to = out_classes.as_mut_slice::<f32>()?[image * len..].iter_mut();
            to.zip(&found).for_each(|(to, f)| *to = f.class as f32);
        }
        for (i, t) in [out_boxes, out_scores, out_classes, valid].into_iter().enumerate() {
            ctx.set(i, t)?;
        }
        Ok(())
    }
}

fn combined_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let boxes = c.input(0).merge(&PartialShape::of_rank(4))?;
    let scores = c.input(1).merge(&PartialShape::of_rank(3))?;
    let one = |i: usize| c.constant_ints(i).and_then(|v| usize::try_from(*v.first()?).ok());
    let mut len = one(3);
    if c.attrs.bool("pad_per_class")? {
        let most = one(2).zip(scores.dim(2)).map(|(n, classes)| n.saturating_mul(classes));
        len = len.zip(most).map(|(len, most)| len.min(most));
    }
    let batch = boxes.dim(0);
    let flat = PartialShape::new([batch, len]);
    let corners = PartialShape::new([batch, len, Some(4)]);
    Ok(vec![corners, flat.clone(), flat, PartialShape::new([batch])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("CombinedNonMaxSuppression")
        .doc("The best boxes of each image, of which those of a class do not overlap too much.")
        .input("boxes: float")
        .input("scores: float")
        .input("max_output_size_per_class: int32")
        .input("max_total_size: int32")
        .input("iou_threshold: float")
        .input("score_threshold: float")
        .output("nmsed_boxes: float")
        .output("nmsed_scores: float")
        .output("nmsed_classes: float")
        .output("valid_detections: int32")
        .attr("pad_per_class: bool = false")
        .attr("clip_boxes: bool = true")
        .expensive()
        .shape(combined_shapes)
        .cpu(|init| {
            let (pad_per_class, clip_boxes) =
                (init.bool("pad_per_class")?, init.bool("clip_boxes")?);
            Ok(KernelBox::new(Combined { pad_per_class, clip_boxes }))
        });
}
