//! LowerBound and UpperBound: insertion positions of values in sorted rows.

use super::args::index_tensor;
use crate::prelude::*;

fn bound<T: Real>(out_type: DType, before: fn(&T, &T) -> bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (sorted, values) = (ctx.input(0)?, ctx.input(1)?);
        for (t, name) in [(sorted, "sorted_inputs"), (values, "values")] {
            ensure!(
                t.rank() == 2,
                InvalidArgument,
                "Shape must be rank 2 but is rank {} for `{name}` argument",
                t.rank()
            );
        }
        ensure!(
            sorted.shape()[0] == values.shape()[0],
            InvalidArgument,
            "Leading dim_size of both tensors must match."
        );
        let (len, picks) = (sorted.shape()[1], values.shape()[1]);
        ensure!(
            out_type == DType::Int64 || len < i32::MAX as usize,
            InvalidArgument,
            "trailing dim_size must be less than the maximum of {out_type}"
        );
        let (rows, all) = (sorted.as_slice::<T>()?, values.as_slice::<T>()?);
        let mut out = Vec::with_capacity(all.len());
        for (i, value) in all.iter().enumerate() {
            let row = &rows[i / picks * len..][..len];
            out.push(row.partition_point(|e| before(e, value)) as i64);
        }
        let out = index_tensor(out_type, values.shape().clone(), &out)?;
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("LowerBound")
        .doc("How many elements of a sorted row are less than each value.")
        .input("sorted_inputs: T")
        .input("values: T")
        .output("output: out_type")
        .attr("T: type")
        .attr("out_type: {int32, int64} = DT_INT32")
        .shape(|c| Ok(vec![c.input(1)]))
        .cpu(per_dtype!(REAL, init, T => bound::<T>(init.dtype("out_type")?, |e, v| e < v)));
    c.op("UpperBound")
        .doc("How many elements of a sorted row are not greater than each value.")
        .input("sorted_inputs: T")
        .input("values: T")
        .output("output: out_type")
        .attr("T: type")
        .attr("out_type: {int32, int64} = DT_INT32")
        .shape(|c| Ok(vec![c.input(1)]))
        .cpu(per_dtype!(REAL, init, T => bound::<T>(init.dtype("out_type")?, not_less)));
}

/// Whether `value` is at least `e`. True if one of them is NaN.
fn not_less<T: Real>(e: &T, value: &T) -> bool {
    !matches!(value.partial_cmp(e), Some(std::cmp::Ordering::Less))
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn t(dims: [usize; 2], values: &[f32]) -> Tensor {
        Tensor::from_slice(dims, values).unwrap()
    }

    fn bound(op: &str, values: Tensor) -> Check<'static> {
        check(op).input(t([2, 3], &[1.0, 3.0, 4.0, 0.0, 0.0, 8.0])).input(values)
    }

    #[test]
    fn values_find_their_place() {
        let values = || t([2, 2], &[1.0, 4.0, 0.0, 9.0]);
        let want = |v: &[i32]| Tensor::from_slice([2, 2], v).unwrap();
        bound("LowerBound", values()).gives(want(&[0, 2, 0, 3]));
        bound("UpperBound", values()).gives(want(&[1, 3, 2, 3]));
        let nan = || t([2, 1], &[f32::NAN, 2.0]);
        let want = |v: &[i64]| Tensor::from_slice([2, 1], v).unwrap();
        bound("LowerBound", nan()).attr("out_type", DType::Int64).gives(want(&[0, 2]));
        bound("UpperBound", nan()).attr("out_type", DType::Int64).gives(want(&[3, 2]));
        check("UpperBound")
            .input(t([1, 0], &[]))
            .input(t([1, 1], &[1.0]))
            .gives(Tensor::from_slice([1, 1], &[0i32]).unwrap());
    }

    #[test]
    fn rows_must_match() {
        bound("LowerBound", t([1, 1], &[1.0]))
            .fails(Code::InvalidArgument, "Leading dim_size of both tensors must match.");
        bound("UpperBound", Tensor::vector(&[1.0f32])).fails(
            Code::InvalidArgument,
            "Shape must be rank 2 but is rank 1 for `values` argument",
        );
    }
}
