//! Summaries: what of a step TensorBoard is to show, as tensors that are fetched.
//!
//! ```
//! # let mut catalog = ferroflow_graph::Catalog::new();
//! # ferroflow_ops::register(&mut catalog);
//! # let g = ferroflow_train::Graph::new(catalog.into());
//! use ferroflow_train::summary;
//! summary::scalar("loss", &g.constant(0.5));
//! summary::histogram("weights", &g.constant([1.0, 2.0]));
//! summary::text("note", &g.constant("*begun*"));
//! let all = summary::merge_all(&g).unwrap(); // for hooks::SummarySaver, or EventWriter::summary
//! ```

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
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
/// use ferroflow_train::summary;
/// summary::scalar("loss", &g.constant(0.5));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn scalar(name: &str, value: &Output) -> Output {
    let g = value.graph();
    let tag = tag(g, name);
    collected(g.op("ScalarSummary").name(name).input(&tag).input(value).output())
}

/// How the elements of a tensor are distributed, over time.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
/// use ferroflow_train::summary;
/// summary::histogram("weights", &g.constant([1.0, 2.0]));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn histogram(name: &str, values: &Output) -> Output {
    let g = values.graph();
    let tag = tag(g, name);
    collected(g.op("HistogramSummary").name(name).input(&tag).input(values).output())
}

/// Up to `max_outputs` images of a batch [batch, height, width, channels].
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
/// use ferroflow_train::summary;
/// let images = g.placeholder::<f32>("images", [-1, 8, 8, 1]);
/// summary::image("digits", &images, 3);
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn image(name: &str, images: &Output, max_outputs: i64) -> Output {
    let g = images.graph();
    let tag = tag(g, name);
    let op = g.op("ImageSummary").name(name).input(&tag).input(images);
    collected(op.attr("max_images", max_outputs).output())
}

/// Texts, a scalar or a list or table of them, which TensorBoard shows as Markdown.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
/// use ferroflow_train::summary;
/// summary::text("note", &g.constant("*begun*"));
/// assert!(summary::merge_all(&g).is_some());
/// ```
#[track_caller]
pub fn text(name: &str, texts: &Output) -> Output {
    let g = texts.graph();
    let tag = tag(g, name);
    let metadata = ferroflow_core::Tensor::string(crate::wire::text_metadata_bytes());
    let metadata = g.constant(metadata);
    let op = g.op("TensorSummaryV2").name(name).input(&tag).input(texts).input(&metadata);
    collected(op.output())
}

/// All summaries of the graph as one; none if there are none.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
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
    fn summaries_become_events_of_their_kind() {
        let g = graph();
        scalar("loss", &g.constant(0.5));
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
