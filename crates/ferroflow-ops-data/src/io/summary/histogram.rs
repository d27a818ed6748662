//! HistogramSummary.

use super::{scalar_tag, summary, tagged};
use crate::prelude::*;
use ferroflow_core::RealElement;
use ferroflow_op_kit::protobuf::Message;
use std::sync::LazyLock;

/// Upper limits of the buckets: growing by a tenth from 1e-12 to 1e20, and their negatives.
static LIMITS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let mut positive = Vec::new();
    let mut v = 1.0e-12;
    while v < 1.0e20 {
        positive.push(v);
        v *= 1.1;
    }
    positive.push(f64::MAX);
    let negative = positive.iter().rev().map(|v| -v);
    negative.chain([0.0]).chain(positive.iter().copied()).collect()
});

/// How finite values are distributed.
#[derive(Clone)]
pub(crate) struct Distribution {
    counts: Vec<f64>,
    min: f64,
    max: f64,
    num: f64,
    sum: f64,
    squares: f64,
}

impl Default for Distribution {
    fn default() -> Distribution {
        let counts = vec![0.0; LIMITS.len()];
        Distribution { counts, min: f64::MAX, max: -f64::MAX, num: 0.0, sum: 0.0, squares: 0.0 }
    }
}

impl Distribution {
    pub fn add(&mut self, x: f64) {
        let limits = &*LIMITS;
        let bucket = limits.partition_point(|&limit| limit <= x);
        self.counts[std::cmp::min(bucket, limits.len() - 1)] += 1.0;
        self.min = if x < self.min { x } else { self.min };
        self.max = if x > self.max { x } else { self.max };
        self.num += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    /// A value of a summary.
    pub fn value(&self, tag: &str) -> Message {
        let mut value = tagged(tag);
        value.message(5, &self.message());
        value
    }

    /// A HistogramProto; runs of empty buckets are one.
    fn message(&self) -> Message {
        let (limits, counts) = (&*LIMITS, &self.counts);
        let (mut ends, mut kept, mut i) = (Vec::new(), Vec::new(), 0);
        while i < counts.len() {
            let (mut end, count) = (limits[i], counts[i]);
            i += 1;
            while count == 0.0 && i < counts.len() && counts[i] == 0.0 {
                end = limits[i];
                i += 1;
            }
            ends.push(end);
            kept.push(count);
        }
        let mut m = Message::new();
        m.double_if(1, self.min)
            .double_if(2, self.max)
            .double_if(3, self.num)
            .double_if(4, self.sum)
            .double_if(5, self.squares)
            .doubles(6, &ends)
            .doubles(7, &kept);
        m
    }
}

/// A HistogramProto of finite values.
fn histogram(values: impl Iterator<Item = f64>) -> Message {
    let mut distribution = Distribution::default();
    values.for_each(|x| distribution.add(x));
    distribution.message()
}

/// A value of a summary: how the elements of a tensor are distributed. `node` appears in errors.
pub(super) fn histogram_value(tag: &str, t: &Tensor, node: &str) -> Result<Message> {
    fn of<T: RealElement>(t: &Tensor) -> Result<Vec<f64>> {
        Ok(t.as_slice::<T>()?.iter().map(|x| x.to_f64()).collect())
    }
    let values = match t.dtype() {
        DType::Float => of::<f32>(t)?,
        DType::Double => of::<f64>(t)?,
        DType::Half => of::<f16>(t)?,
        DType::BFloat16 => of::<bf16>(t)?,
        DType::UInt64 => of::<u64>(t)?,
        DType::Bool => t.as_slice::<bool>()?.iter().map(|&b| f64::from(u8::from(b))).collect(),
        _ => t.to_indices()?.into_iter().map(|x| x as f64).collect(),
    };
    for x in &values {
        ensure!(!x.is_nan(), InvalidArgument, "Nan in summary histogram for: {node}");
        ensure!(x.is_finite(), InvalidArgument, "Infinity in Histogram for: {node}");
    }
    let mut value = tagged(tag);
    value.message(5, &histogram(values.into_iter()));
    Ok(value)
}

fn compute(ctx: &mut Ctx<'_>) -> Result<()> {
    let tag = scalar_tag(ctx, "tags")?;
    let value = histogram_value(&tag, ctx.input(1)?, ctx.name())?;
    ctx.set(0, summary(&[value]))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("HistogramSummary")
        .doc("A summary of how values are distributed.")
        .input("tag: string")
        .input("values: T")
        .output("summary: string")
        .attr("T: realnumbertype = DT_FLOAT")
        .shape(shape::scalar)
        .cpu_fn(compute);
    c.no_gradient(&["HistogramSummary"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;
    use ferroflow_op_kit::protobuf::fields;

    #[test]
    fn values_are_counted() {
        let m = histogram([1.0, 2.0, -3.0, 0.0].into_iter());
        let doubles = |field: u32| {
            let mut all = Vec::new();
            for (f, v) in fields(m.as_bytes()).unwrap() {
                if f == field {
                    v.long_words(|w| all.push(f64::from_bits(w))).unwrap();
                }
            }
            all
        };
        assert_eq!([doubles(1), doubles(2), doubles(3)], [[-3.0], [2.0], [4.0]]);
        assert_eq!(doubles(5), [14.0]);
        let want = [
            -3.1665833053880363,
            -2.8787120958073054,
            0.0,
            1e-12,
            0.917246389039776,
            1.0089710279437536,
            1.9661990955585713,
            2.1628190051144287,
            f64::MAX,
        ];
        assert_eq!(doubles(6), want);
        assert_eq!(doubles(7), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn odd_values_are_refused() {
        let of = |x: f32| {
            check("HistogramSummary").input(Tensor::string("h")).input(Tensor::vector(&[1.0, x]))
        };
        of(f32::NAN).fails(Code::InvalidArgument, "Nan in summary histogram for: node_under_test");
        of(f32::INFINITY).fails(Code::InvalidArgument, "Infinity in Histogram for");
        let none = Tensor::zeros(DType::Float, [0]).unwrap();
        check("HistogramSummary").input(Tensor::string("h")).input(none).gives(Tensor::string(
            &b"\n+\n\x01h*&\t\xff\xff\xff\xff\xff\xff\xef\x7f\x11\xff\xff\xff\xff\xff\xff\xef\xff2\x08\
               \xff\xff\xff\xff\xff\xff\xef\x7f:\x08\x00\x00\x00\x00\x00\x00\x00\x00"[..],
        ));
    }
}
