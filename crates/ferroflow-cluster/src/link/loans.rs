//! Tensors in the memory of a GPU that both ends of a link use. The sender names the memory, the
//! receiver copies it within the GPU and returns the loan. The sender keeps the tensor until then.
//!
//! A receiver that cannot take a tensor returns it, and the sender sends it another way.

use crate::key::destination_of;
use ferroflow_core::{DType, DeviceName, Gpu, HashMap, Result, Shape, Tensor, err};
use parking_lot::Mutex;
use std::sync::Arc;

/// The most loans of a link. More tensors travel through host memory.
const MOST_LOANS: usize = 4096;

/// Called if the receiver has not taken a tensor: with `Ok` if the tensor must be sent another way,
/// with the error if the GPU could not compute it.
pub(crate) type Refused = Box<dyn FnOnce(Result<()>) + Send>;

/// The tensors that a task has lent over a link.
#[derive(Default)]
pub(super) struct Loans(Mutex<LentTensors>);

#[derive(Default)]
struct LentTensors {
    lent: HashMap<i64, (Tensor, Refused)>,
    next: i64,
    /// The link was lost, or the receiver has not taken a tensor. Nothing more is lent.
    has_ended: bool,
}

impl Loans {
    /// The GPU of `tensor`, if it is the one at which the value under `key` is wanted. `gpus`
    /// identifies the receiver's GPUs.
    pub fn shared_gpu<'t>(
        &self,
        gpus: &[String],
        key: &str,
        tensor: &'t Tensor,
    ) -> Option<&'t Arc<dyn Gpu>> {
        if gpus.is_empty() || tensor.elements() == 0 || tensor.dtype() == DType::Bool {
            return None;
        }
        let (gpu, identity) = (tensor.gpu()?, gpus.get(gpu_index(key)?)?);
        let takes = || {
            let loans = self.0.lock();
            !loans.has_ended && loans.lent.len() < MOST_LOANS
        };
        (!identity.is_empty() && *identity == gpu.identity() && takes()).then_some(gpu)
    }

    /// Keeps `tensor` until it is returned. Calls `refused` if nothing more is lent.
    pub fn lend(&self, tensor: Tensor, refused: Refused) -> Option<i64> {
        let mut loans = self.0.lock();
        if loans.has_ended {
            drop(loans);
            refused(Ok(()));
            return None;
        }
        let number = loans.next;
        loans.next += 1;
        loans.lent.insert(number, (tensor, refused));
        Some(number)
    }

    /// The receiver does not use a tensor any more.
    pub fn returned(&self, number: i64, is_taken: bool) {
        let loan = {
            let mut loans = self.0.lock();
            loans.has_ended |= !is_taken;
            loans.lent.remove(&number)
        };
        if let Some((tensor, refused)) = loan
            && !is_taken
        {
            drop(tensor);
            refused(Ok(()));
        }
    }

    /// Forgets all loans: the link was lost, and the steps that used it fail.
    pub fn end(&self) {
        let lent = {
            let mut loans = self.0.lock();
            loans.has_ended = true;
            std::mem::take(&mut loans.lent)
        };
        drop(lent);
    }
}

/// The number of the GPU at which the value under `key` is wanted.
fn gpu_index(key: &str) -> Option<usize> {
    let device = DeviceName::parse(destination_of(key)).ok()?;
    let is_gpu = device.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("GPU"));
    usize::try_from(device.id.filter(|_| is_gpu)?).ok()
}

/// A copy of a tensor that another task lends, in the memory of the GPU at which it is wanted. The
/// copy is enqueued; the loan can be returned once the GPU has made it.
pub(super) fn copied(
    gpus: &[Arc<dyn Gpu>],
    key: &str,
    dtype: DType,
    shape: Shape,
    memory: &[u8],
) -> Result<(Arc<dyn Gpu>, Tensor)> {
    let gpu = gpu_index(key).and_then(|i| gpus.get(i));
    let gpu = gpu.ok_or_else(|| err!(InvalidArgument, "{key} is not for a GPU of this task"))?;
    let copy = Tensor::on_device(gpu, dtype, shape)?;
    let from = gpu.import(memory, copy.byte_len())?;
    gpu.copy(from, copy.device_address()?, copy.byte_len())?;
    Ok((gpu.clone(), copy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
    use std::sync::mpsc::channel;

    #[test]
    fn a_lost_link_ends_its_loans() {
        let gpu: Arc<dyn Gpu> = SimulatedGpu::new(0, SimulatedGpuOptions::default());
        let (loans, (tell, refusals)) = (Loans::default(), channel());
        let lend = || {
            let tell = tell.clone();
            let tensor = Tensor::vector(&[1f32]).to_device(&gpu).unwrap();
            loans.lend(tensor, Box::new(move |ended| tell.send(ended).unwrap()))
        };
        let (first, second) = (lend().unwrap(), lend().unwrap());
        loans.returned(first, true);
        // A number is returned once, and unknown numbers are ignored.
        loans.returned(first, false);
        loans.end();
        loans.returned(second, false);
        assert!(refusals.try_recv().is_err(), "the steps fail by the loss of the link");
        assert_eq!(gpu.memory().in_use, 0);
        assert_eq!(lend(), None);
        assert_eq!(refusals.try_recv().unwrap(), Ok(()), "it is sent another way");
    }
}
