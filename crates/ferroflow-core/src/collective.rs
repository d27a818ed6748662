//! The interface between TensorFlow's collective ops and the task that runs them. All devices of a
//! group call with the same keys, and each receives its part of the result.

use crate::{DType, DeviceInfo, Result, Shape, StepCtx, Tensor, bail, bf16, ensure, f16};
use std::sync::Arc;
use std::time::Duration;

/// How two values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The smaller value.
    Min,
    /// The larger value.
    Max,
    /// The product.
    Mul,
    /// The sum.
    Add,
}

/// The operation of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// Combines the values of all devices.
    Reduce {
        /// How two values are combined.
        merge: Merge,
        /// Whether to divide the result by the number of devices.
        is_mean: bool,
    },
    /// Concatenates all values, in the order of the group.
    Gather,
    /// Copies one device's value to all.
    Broadcast {
        /// Whether this device provides the value.
        is_source: bool,
    },
    /// Splits each value into one part per device and sends each part to its device.
    AllToAll,
    /// Waits until all devices have called. Each gets its own value back.
    Meet,
}

/// One device's call of a collective.
#[derive(Clone)]
pub struct CollectiveCall {
    /// The operation.
    pub kind: CollectiveKind,
    /// The node's name, for errors and for negotiation by name.
    pub name: String,
    /// The number of the group, the same on all its devices.
    pub group_key: i32,
    /// The number of devices in the group.
    pub group_size: usize,
    /// The number of this collective within the group.
    pub instance_key: i32,
    /// The rank that the device requests when the group forms.
    pub rank: Option<i32>,
    /// The frame and iteration in which the node runs.
    pub frame_iter: (u64, u64),
    /// The calling device.
    pub device: Arc<DeviceInfo>,
    /// The type of the values.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: Shape,
    /// The input. `None` on devices that receive a broadcast.
    pub tensor: Option<Tensor>,
    /// How long to wait for the other devices. `None` waits without limit.
    pub timeout: Option<Duration>,
}

/// Receives the result of a collective, exactly once, on any thread.
pub type CollectiveDone = Box<dyn FnOnce(Result<Tensor>) + Send>;

/// Runs the collectives of a task's steps.
pub trait Collectives: Send + Sync {
    /// Starts one device's call. It fails if the step is cancelled.
    fn start(&self, step: &Arc<StepCtx>, call: CollectiveCall, done: CollectiveDone);
}

/// Collectives without a cluster: only groups of a single device work.
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

/// The result of a collective over one device. `None` if the group has more devices.
pub fn single_device_result(call: &CollectiveCall) -> Option<Result<Tensor>> {
    if call.group_size != 1 {
        return None;
    }
    Some(match &call.tensor {
        Some(tensor) => tensor.reshape(call.shape.clone()),
        None => Err(crate::err!(
            InvalidArgument,
            "{}: no device provides the value that is broadcast to a group of one",
            call.name
        )),
    })
}

/// Computes `into = into MERGE from` for each element. Both have the same length, a multiple of the
/// size of `dtype`.
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
    fn merge_and_divide_work_element_by_element() {
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
