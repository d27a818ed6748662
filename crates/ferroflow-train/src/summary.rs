//! Summaries for TensorBoard, as tensors that a step fetches.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::summary;
//! summary::scalar("loss", &g.constant(0.5));
//! summary::histogram("weights", &g.constant([1.0, 2.0]));
//! summary::text("note", &g.constant("*started*"));
//! let all = summary::merge_all(&g).unwrap(); // for hooks::SummarySaver, or EventWriter::summary
//! ```

use crate::graph::{Graph, keys};
use crate::node::NodeBuilder;
use crate::output::Output;
use ferroflow_core::{DType, Tensor};

/// A summary by `op`, with the inputs that `inputs` adds. Its tag is its name; a used name gets a
/// number.
#[track_caller]
fn summary(
    g: &Graph,
    op: &str,
    name: &str,
    inputs: impl FnOnce(NodeBuilder) -> NodeBuilder,
) -> Output {
    let name = {
        let mut state = g.state();
        let full = crate::names::join(&state.name_scope, name);
        let name = state.names.unique(&full);
        state.names.take(&format!("{name}/tags"));
        name
    };
    let tag = g.op("Const").exact_name(&format!("{name}/tags"));
    let tag = tag.attr("dtype", DType::String).attr("value", Tensor::string(name.clone())).output();
    let summary = inputs(g.op(op).exact_name(&name).input(&tag)).output();
    g.add_to_collection(keys::SUMMARIES, &summary);
    summary
}

/// A number over time.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::summary;
/// summary::scalar("loss", &g.constant(0.5));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn scalar(name: &str, value: &Output) -> Output {
    summary(value.graph(), "ScalarSummary", name, |op| op.input(value))
}

/// The distribution of the elements of a tensor over time.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::summary;
/// summary::histogram("weights", &g.constant([1.0, 2.0]));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn histogram(name: &str, values: &Output) -> Output {
    summary(values.graph(), "HistogramSummary", name, |op| op.input(values))
}

/// Up to `max_outputs` images of a batch [batch, height, width, channels].
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::summary;
/// let images = g.placeholder::<f32>("images", [None, Some(8), Some(8), Some(1)]);
/// summary::image("digits", &images, 3);
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn image(name: &str, images: &Output, max_outputs: i64) -> Output {
    summary(images.graph(), "ImageSummary", name, |op| {
        op.input(images).attr("max_images", max_outputs)
    })
}

/// A text, or a list or table of texts. TensorBoard shows it as Markdown.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::summary;
/// summary::text("note", &g.constant("*started*"));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn text(name: &str, texts: &Output) -> Output {
    let g = texts.graph();
    let metadata = g.constant(Tensor::string(crate::wire::text_metadata_bytes()));
    summary(g, "TensorSummaryV2", name, |op| op.input(texts).input(&metadata))
}

/// Merges all summaries of the graph; `None` if there are none.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::summary;
/// assert!(summary::merge_all(&g).is_none());
/// summary::scalar("loss", &g.constant(0.5));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn merge_all(graph: &Graph) -> Option<Output> {
    let all = graph.collection(keys::SUMMARIES);
    if all.is_empty() {
        return None;
    }
    Some(graph.op("MergeSummary").name("Merge/MergeSummary").list(&all).output())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, session, temporary};
    use crate::{EventKind, EventWriter, read_events};

    #[test]
    fn summaries_are_written_as_events() {
        let g = graph();
        scalar("loss", &g.constant(0.5));
        scalar("loss", &g.constant(0.6));
        image("digits", &g.constant([[0.0, 1.0], [1.0, 0.0]]).reshape([2, 2, 1, 1]), 3);
        histogram("weights", &g.constant([1.0, 2.0]));
        text("note", &g.constant(["*a*", "b"]));
        let merged = merge_all(&g).unwrap();
        let s = session(&g).unwrap();
        let dir = temporary("summaries");
        let mut events = EventWriter::create(&dir).unwrap();
        events.summary(&s.run(&merged).unwrap(), 3).unwrap();
        events.text("remark", "by hand", 3).unwrap();
        events.graph(&g).unwrap();
        events.flush().unwrap();
        let read = read_events(events.path()).unwrap();
        let kinds: Vec<(String, &str)> = read
            .iter()
            .filter_map(|e| match &e.what {
                EventKind::Summary(values) => Some(values),
                _ => None,
            })
            .flatten()
            .map(|v| (v.tag.clone(), v.kind))
            .collect();
        let expected = [
            ("loss", "scalar"),
            ("loss_1", "scalar"),
            ("digits/image/0", "image"),
            ("digits/image/1", "image"),
            ("weights", "histogram"),
            ("note", "tensor"),
            ("remark", "tensor"),
        ];
        let kinds: Vec<(&str, &str)> =
            kinds.iter().map(|(tag, kind)| (tag.as_str(), *kind)).collect();
        assert_eq!(kinds, expected);
        assert!(read.iter().any(|e| matches!(&e.what, EventKind::Graph(_))));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
