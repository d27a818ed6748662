//! Statistics of pipelines: aggregators, the datasets that record into them, and summaries of them.

use super::dataset::*;
use super::iterator::find;
use super::scope::Scope;
use super::task::before_io;
use crate::io::summary::{Distribution, Writer};
use crate::prelude::*;
use ferroflow_op_kit::handle::Anchor;
use ferroflow_op_kit::protobuf::Message;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Instant;

/// Collects numbers by name.
struct Aggregator {
    kept: Mutex<Kept>,
    /// Whether it writes events as numbers come, instead of giving a summary.
    writes_events: bool,
}

#[derive(Default)]
struct Kept {
    distributions: BTreeMap<String, Distribution>,
    writer: Option<Arc<Writer>>,
}

impl Resource for Aggregator {
    fn describe(&self) -> String {
        "a stats aggregator".into()
    }
}

impl Aggregator {
    /// Adds a number. Returns the event to write, if there is a writer for it.
    fn add(&self, name: &str, x: f64) -> Option<(Arc<Writer>, Message)> {
        let mut kept = self.kept.lock();
        let distribution = match kept.distributions.get_mut(name) {
            Some(found) => found,
            None => kept.distributions.entry(name.to_string()).or_default(),
        };
        distribution.add(x);
        let value = self.writes_events.then(|| distribution.value(name))?;
        Some((kept.writer.clone()?, value))
    }

    /// All distributions, as a serialized summary.
    fn summary(&self) -> Vec<u8> {
        let mut summary = Message::new();
        if !self.writes_events {
            for (name, distribution) in &self.kept.lock().distributions {
                summary.message(1, &distribution.value(name));
            }
        }
        summary.into_bytes()
    }
}

/// Where the datasets of an iterator record what they measure.
pub(super) struct Recorder {
    aggregator: Arc<Aggregator>,
    /// Comes before the names of the datasets.
    tag: String,
}

impl Recorder {
    async fn add(&self, name: &str, x: f64, step: i64) -> Result<()> {
        let name = match self.tag.as_str() {
            "" => name.to_string(),
            tag => format!("{tag}::{name}"),
        };
        if let Some((writer, value)) = self.aggregator.add(&name, x) {
            before_io().await;
            writer.write_values(step, &[value])?;
        }
        Ok(())
    }
}

/// Has the datasets behind it record into an aggregator.
struct Recorded {
    input: DatasetRef,
    recorder: Arc<Recorder>,
}

impl Dataset for Recorded {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        self.input.iterate(&scope.recording(self.recorder.clone()))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

#[derive(Clone, Copy)]
enum Measure {
    Microseconds,
    Bytes,
}

struct Measured {
    input: DatasetRef,
    tag: String,
    measure: Measure,
}

impl Dataset for Measured {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        let Some(recorder) = scope.recorder() else { return Ok(input) };
        let (recorder, tag) = (recorder.clone(), self.tag.clone());
        Ok(Elements::new(Measuring { input, recorder, tag, measure: self.measure, step: 0 }))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

struct Measuring {
    input: Elements,
    recorder: Arc<Recorder>,
    tag: String,
    measure: Measure,
    /// How many elements there were.
    step: i64,
}

impl Produce for Measuring {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let start = Instant::now();
            let Some(element) = self.input.next().await? else { return Ok(None) };
            let x = match self.measure {
                Measure::Microseconds => start.elapsed().as_micros() as f64,
                Measure::Bytes => element.iter().map(bytes_of).sum::<usize>() as f64,
            };
            self.recorder.add(&self.tag, x, self.step).await?;
            self.step += 1;
            Ok(Some(element))
        })
    }
}

/// The bytes of a tensor, as TensorFlow counts them: 24 for a string beside its contents.
fn bytes_of(t: &Tensor) -> usize {
    const STRING: usize = 24;
    match t.strings() {
        Ok(strings) => strings.iter().map(|s| STRING + s.len()).sum(),
        Err(_) => t.elements() * t.dtype().size().unwrap_or(0),
    }
}

fn aggregator(ctx: &Ctx<'_>, i: usize) -> Result<Arc<Aggregator>> {
    find(ctx.step(), ctx.handle(i)?)
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, writes_events) in [
        ("StatsAggregatorHandle", false),
        ("ExperimentalStatsAggregatorHandle", false),
        ("StatsAggregatorHandleV2", true),
    ] {
        c.op(op)
            .doc("A stats aggregator, which collects what datasets measure.")
            .output("handle: resource")
            .attr("container: string = ''")
            .attr("shared_name: string = ''")
            .stateful()
            .shape(shape::scalar)
            .cpu(move |init| {
                let type_name = "tensorflow::data::StatsAggregatorResource";
                let anchor = Anchor::<Aggregator>::new(init, true, type_name)?;
                Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                    let make = |_: &str| Ok(Aggregator { kept: Mutex::default(), writes_events });
                    anchor.output(ctx, make, |_| Ok(()))
                }))
            });
    }
    for op in ["StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary"] {
        c.op(op)
            .doc("A summary of what a stats aggregator has collected.")
            .input("iterator: resource")
            .output("summary: string")
            .stateful()
            .shape(shape::scalar)
            .cpu_fn(|ctx| {
                let summary = aggregator(ctx, 0)?.summary();
                ctx.set(0, Tensor::string(summary))
            });
    }
    c.op("StatsAggregatorSetSummaryWriter")
        .doc("Has a stats aggregator write events with a summary writer.")
        .input("stats_aggregator: resource")
        .input("summary: resource")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(|ctx| {
            let writer: Arc<Writer> = find(ctx.step(), ctx.handle(1)?)?;
            aggregator(ctx, 0)?.kept.lock().writer = Some(writer);
            Ok(())
        });
    for op in ["SetStatsAggregatorDataset", "ExperimentalSetStatsAggregatorDataset"] {
        c.op(op)
            .doc("The same dataset; what its parts measure goes to a stats aggregator.")
            .input("input_dataset: variant")
            .input("stats_aggregator: resource")
            .input("tag: string")
            .input("counter_prefix: string")
            .makes_dataset()
            .element_types()
            .stateful()
            .cpu(|init| {
                makes(init, |ctx| {
                    let (aggregator, tag) = (aggregator(ctx, 1)?, text(ctx, 2, "tag")?);
                    text(ctx, 3, "counter_prefix")?;
                    let recorder = Arc::new(Recorder { aggregator, tag });
                    Ok(Recorded { input: input(ctx, 0)?, recorder })
                })
            });
    }
    for (op, measure) in [
        ("BytesProducedStatsDataset", Measure::Bytes),
        ("ExperimentalBytesProducedStatsDataset", Measure::Bytes),
        ("LatencyStatsDataset", Measure::Microseconds),
        ("ExperimentalLatencyStatsDataset", Measure::Microseconds),
    ] {
        c.op(op)
            .doc(match measure {
                Measure::Bytes => "The same dataset, which records the bytes of its elements.",
                Measure::Microseconds => {
                    "The same dataset, which records how long an element takes."
                }
            })
            .input("input_dataset: variant")
            .input("tag: string")
            .makes_dataset()
            .element_types()
            .cpu(move |init| {
                makes(init, move |ctx| {
                    Ok(Measured { input: input(ctx, 0)?, tag: text(ctx, 1, "tag")?, measure })
                })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;
    use ferroflow_op_kit::protobuf::fields;

    #[test]
    fn an_aggregator_counts_the_bytes_of_elements() {
        let kept = Mutex::default();
        let aggregator = Arc::new(Aggregator { kept, writes_events: false });
        let measured = made(
            dataset("BytesProducedStatsDataset", &[DType::Int64])
                .input(range(3))
                .input(Tensor::string("bytes")),
        );
        let recorder = Arc::new(Recorder { aggregator: aggregator.clone(), tag: "train".into() });
        let input = DatasetRef::of(&measured).unwrap().clone();
        let recorded = Recorded { input, recorder };
        let types = ElementTypes::scalar(DType::Int64);
        let recorded = DatasetRef::new(recorded, types, &[]).unwrap().into_tensor();
        // Without an aggregator the dataset only passes elements on.
        assert_eq!(longs(&measured), [[0], [1], [2]]);
        assert!(aggregator.summary().is_empty());
        assert_eq!(longs(&recorded), [[0], [1], [2]]);
        let kept = aggregator.kept.lock();
        let names: Vec<&String> = kept.distributions.keys().collect();
        assert_eq!(names, ["train::bytes"]);
        drop(kept);
        let summary = aggregator.summary();
        assert_eq!(fields(&summary).unwrap().len(), 1);
    }
}
