//! What TensorFlow's collective ops ask of the task they run on: the same group of devices calls with the same
//! keys, and each gets the values of all.

use crate::{DType, DeviceInfo, Result, Shape, StepCtx, Tensor, bail, bf16, ensure, f16};
use std::sync::Arc;
use std::time::Duration;

/// How two values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    Min,
    Max,
    Mul,
    Add,
}

/// What is done with the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// All are merged; the result may be divided by their number.
    Reduce {
        merge: Merge,
        is_mean: bool,
    },
    /// All below each other, in the order of the group.
    Gather,
    Broadcast {
        is_source: bool,
    },
    /// The parts of each, one for each device, go to those devices.
    AllToAll,
    /// All are there; each gets its own value back.
    Meet,
}

/// One device's part in a collective.
#[derive(Clone)]
pub struct CollectiveCall {
    pub kind: CollectiveKind,
    /// The node's name, for errors and for those who negotiate by it.
    pub name: String,
    pub group_key: i32,
    pub group_size: usize,
    pub instance_key: i32,
    /// The place in the group that a device asks for when it meets the others.
    pub rank: Option<i32>,
    /// Frame and iteration the node runs in.
    pub frame_iter: (u64, u64),
    pub device: Arc<DeviceInfo>,
    pub dtype: DType,
    /// The shape of what comes out.
    pub shape: Shape,
    /// What goes in; nothing for those that a broadcast reaches.
    pub tensor: Option<Tensor>,
    pub timeout: Option<Duration>,
}

/// Told what a collective gave, exactly once, by any thread.
pub type CollectiveDone = Box<dyn FnOnce(Result<Tensor>) + Send>;

/// Runs the collectives of a task's steps.
pub trait Collectives: Send + Sync {
    /// Starts one device's part. Ends with an error when the step is cancelled.
    fn start(&self, step: &Arc<StepCtx>, call: CollectiveCall, done: CollectiveDone);
}

/// The collectives of a task without a cluster: only those of a single device.
pub struct SingleDeviceCollectives;

impl Collectives for SingleDeviceCollectives {
    fn start(&self, _: &Arc<StepCtx>, call: CollectiveCall, done: CollectiveDone) {
        done(single_device_result(&call).unwrap_or_else(|| {
            let (name, n) = (&call.name, call.group_size);
            Err(crate::err!(
                Unimplemented,
                "{name} is a collective of {n} devices, which needs a server; this session has none"
            ))
        }));
    }
}

/// What a collective of one device gives; none if it has others.
pub fn single_device_result(call: &CollectiveCall) -> Option<Result<Tensor>> {
    if call.group_size != 1 {
        return None;
    }
    Some(match &call.tensor {
        Some(tensor) => tensor.reshape(call.shape.clone()),
        None => Err(crate::err!(
            InvalidArgument,
            "{}: nobody sends what is broadcast to a group of one",
            call.name
        )),
    })
}

/// `into = into MERGE from`, element by element. Both are as long, and whole numbers of `dtype`.
pub fn merge(by: Merge, dtype: DType, into: &mut [u8], from: &[u8]) -> Result<()> {
    macro_rules! each {
        ($t:ty, $size:literal, $add:expr, $mul:expr) => {{
            let (into, _) = into.as_chunks_mut::<$size>();
            let (from, _) = from.as_chunks::<$size>();
            let (add, mul): (fn($t, $t) -> $t, fn($t, $t) -> $t) = ($add, $mul);
            for (a, b) in into.iter_mut().zip(from) {
                let (x, y) = (<$t>::from_ne_bytes(*a), <$t>::from_ne_bytes(*b));
                let merged = match by {
                    Merge::Add => add(x, y),
                    Merge::Mul => mul(x, y),
                    Merge::Min => {
                        if y < x {
                            y
                        } else {
                            x
                        }
                    }
                    Merge::Max => {
                        if y > x {
                            y
                        } else {
                            x
                        }
                    }
                };
                *a = merged.to_ne_bytes();
            }
        }};
    }
    ensure!(into.len() == from.len(), Internal, "{} and {} bytes", into.len(), from.len());
    match dtype {
        DType::Float => each!(f32, 4, |a, b| a + b, |a, b| a * b),
        DType::Double => each!(f64, 8, |a, b| a + b, |a, b| a * b),
        DType::Half => each!(f16, 2, |a, b| a + b, |a, b| a * b),
        DType::BFloat16 => each!(bf16, 2, |a, b| a + b, |a, b| a * b),
        DType::Int32 => each!(i32, 4, i32::wrapping_add, i32::wrapping_mul),
        DType::Int64 => each!(i64, 8, i64::wrapping_add, i64::wrapping_mul),
        other => bail!(Unimplemented, "collectives do not reduce values of type {other}"),
    }
    Ok(())
}

/// Divides all values by `count`; integers are truncated.
pub fn divide(dtype: DType, values: &mut [u8], count: usize) -> Result<()> {
    macro_rules! each {
        ($t:ty, $size:literal, $by:expr) => {{
            let by: $t = $by;
            for v in values.as_chunks_mut::<$size>().0 {
                *v = (<$t>::from_ne_bytes(*v) / by).to_ne_bytes();
            }
        }};
    }
    match dtype {
        DType::Float => each!(f32, 4, count as f32),
        DType::Double => each!(f64, 8, count as f64),
        DType::Half => each!(f16, 2, f16::from_f64(count as f64)),
        DType::BFloat16 => each!(bf16, 2, bf16::from_f64(count as f64)),
        DType::Int32 => each!(i32, 4, count as i32),
        DType::Int64 => each!(i64, 8, count as i64),
        other => bail!(Unimplemented, "collectives do not divide values of type {other}"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_merged_and_divided() {
        let mut x = Tensor::vector(&[1i32, -5, 7]);
        let y = Tensor::vector(&[3i32, 2, 7]);
        let by = |m: Merge| {
            let mut x = x.clone();
            merge(m, DType::Int32, x.bytes_mut().unwrap(), y.bytes().unwrap()).unwrap();
            x.as_slice::<i32>().unwrap().to_vec()
        };
        assert_eq!(by(Merge::Add), [4, -3, 14]);
        assert_eq!(by(Merge::Mul), [3, -10, 49]);
        assert_eq!((by(Merge::Min), by(Merge::Max)), (vec![1, -5, 7], vec![3, 2, 7]));
        divide(DType::Int32, x.bytes_mut().unwrap(), 2).unwrap();
        assert_eq!(x.as_slice::<i32>().unwrap(), [0, -2, 3]);
        assert!(divide(DType::Bool, &mut [0], 2).is_err());
    }
}
