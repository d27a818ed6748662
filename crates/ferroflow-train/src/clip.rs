//! Gradient clipping.

use crate::gradient::Gradient;
use crate::graph::Graph;
use crate::optimizer::GradAndVar;
use crate::output::Output;

/// Scales `t` down to an L2 norm of at most `norm`.
#[track_caller]
pub fn clip_by_norm(t: &Output, norm: f32) -> Output {
    let g = t.graph();
    g.name_scope("clip_by_norm", |_| {
        let axes: Vec<i32> = (0..t.shape().rank().unwrap_or(0) as i32).collect();
        let square = if t.shape().rank().is_some() {
            t.square().sum_keep(&axes)
        } else {
            t.square().sum_all()
        };
        // The square root has no finite derivative at 0.
        let positive = square.greater(0.0);
        let safe = positive.select(&square, square.ones_like());
        let length = positive.select(safe.sqrt(), &square);
        t * norm / length.maximum(norm)
    })
}

/// The L2 norm of all gradients together.
#[track_caller]
pub fn global_norm(graph: &Graph, gradients: &[GradAndVar]) -> Output {
    graph.name_scope("global_norm", |_| {
        let halves: Vec<Output> =
            gradients.iter().flat_map(|(g, _)| g).map(|g| g.values().l2_loss()).collect();
        if halves.is_empty() {
            return graph.constant(0.0);
        }
        (graph.pack(&halves, 0).sum_all() * 2.0).sqrt()
    })
}

/// Scales all gradients by one factor, to a global norm of at most `norm`. Returns them and their
/// norm before. All become NaN if one of them is not finite.
#[track_caller]
pub fn clip_by_global_norm(
    graph: &Graph,
    gradients: &[GradAndVar],
    norm: f32,
) -> (Vec<GradAndVar>, Output) {
    graph.name_scope("clip_by_global_norm", |_| {
        let length = global_norm(graph, gradients);
        let scale = length.reciprocal().minimum(1.0 / norm) * norm;
        // NaN for a norm that is not finite, so that training fails.
        #[allow(clippy::eq_op)] // 0, or NaN where the norm is not finite
        let scale = scale + (&length - &length);
        let clip = |g: &Gradient| g.with_values(g.values() * &scale);
        let clipped = gradients.iter().map(|(g, v)| (g.as_ref().map(clip), v.clone())).collect();
        (clipped, length)
    })
}

/// Clips every element of the gradients to the range from `low` to `high`.
#[track_caller]
pub fn clip_gradients(gradients: &[GradAndVar], low: f32, high: f32) -> Vec<GradAndVar> {
    let clip = |g: &Gradient| g.with_values(g.values().clip(low, high));
    gradients.iter().map(|(g, v)| (g.as_ref().map(clip), v.clone())).collect()
}
