//! Summaries: what of a step TensorBoard is to show, as tensors that are fetched.

use crate::graph::{Graph, keys};
use crate::output::Output;

#[track_caller]
fn collected(summary: Output) -> Output {
    summary.graph().add_to_collection(keys::SUMMARIES, &summary);
    summary
}

#[track_caller]
fn tag(g: &Graph, name: &str) -> Output {
    let scope = g.state().name_scope.clone();
    g.named_constant(&format!("{name}/tags"), crate::names::join(&scope, name))
}

/// A number over time.
#[track_caller]
pub fn scalar(name: &str, value: &Output) -> Output {
    let g = value.graph();
    let tag = tag(g, name);
    collected(g.op("ScalarSummary").name(name).input(&tag).input(value).output())
}

/// How the elements of a tensor are distributed, over time.
#[track_caller]
pub fn histogram(name: &str, values: &Output) -> Output {
    let g = values.graph();
    let tag = tag(g, &format!("{name}/tag"));
    collected(g.op("HistogramSummary").name(name).input(&tag).input(values).output())
}

/// Up to `max_outputs` images of a batch [batch, height, width, channels].
#[track_caller]
pub fn image(name: &str, images: &Output, max_outputs: i64) -> Output {
    let g = images.graph();
    let tag = tag(g, name);
    let op = g.op("ImageSummary").name(name).input(&tag).input(images);
    collected(op.attr("max_images", max_outputs).output())
}

/// All summaries of the graph as one; none if there are none.
#[track_caller]
pub fn merge_all(graph: &Graph) -> Option<Output> {
    let all = graph.collection(keys::SUMMARIES);
    if all.is_empty() {
        return None;
    }
    Some(graph.op("MergeSummary").name("Merge/MergeSummary").list(&all).output())
}
