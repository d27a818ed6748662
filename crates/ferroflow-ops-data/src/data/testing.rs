//! Datasets in tests: made by their kernels and iterated over without a session.

use super::dataset::{DatasetRef, Tuple};
use super::scope::Scope;
use super::task::polled_here;
use crate::prelude::*;
use crate::testing::{Check, check};
use ferroflow_testing::standalone_step;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Waits for a future on this thread.
pub(super) fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match polled_here(|| future.as_mut().poll(&mut Context::from_waker(&waker))) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// All elements of a dataset, up to the end or the first error.
pub(super) fn elements(dataset: &Tensor) -> Result<Vec<Tuple>> {
    let step = standalone_step(Arc::new(Resources::new()));
    let mut elements = DatasetRef::of(dataset)?.iterate(&Scope::within(&step))?;
    let mut all = Vec::new();
    while let Some(element) = wait_for(elements.next())? {
        all.push(element);
    }
    Ok(all)
}

/// Elements of one int64 each, flat.
pub(super) fn longs(dataset: &Tensor) -> Vec<Vec<i64>> {
    let all = elements(dataset).unwrap();
    all.iter().map(|e| e[0].as_slice::<i64>().unwrap().to_vec()).collect()
}

/// An op that makes a dataset of elements with these types, of any shape.
pub(super) fn dataset(op: &str, dtypes: &[DType]) -> Check<'static> {
    let shapes = vec![PartialShape::unknown(); dtypes.len()];
    check(op).attr("output_types", dtypes.to_vec()).attr("output_shapes", shapes)
}

pub(super) fn made(op: Check<'static>) -> Tensor {
    op.run().unwrap().remove(0)
}

/// 0, 1, … `n` - 1.
pub(super) fn range(n: i64) -> Tensor {
    let ends = [0, n, 1].map(Tensor::scalar);
    made(ends.into_iter().fold(dataset("RangeDataset", &[DType::Int64]), Check::input))
}

/// The rows of tensors.
pub(super) fn slices(components: &[Tensor]) -> Tensor {
    let op = check("TensorSliceDataset")
        .attr("output_shapes", vec![PartialShape::unknown(); components.len()]);
    made(components.iter().cloned().fold(op, Check::input))
}
