//! What callers wait with.

use super::mailbox::TensorOutcome;
use crate::group::SetId;
use crate::number::Number;
use ferroflow_core::{Result, err};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::mpsc::Receiver;

/// The result of a submission, once it is there.
pub struct CollectiveHandle<T> {
    pub(super) outcome: Receiver<TensorOutcome>,
    pub(super) values: PhantomData<T>,
}

impl<T: Number> CollectiveHandle<T> {
    /// Waits for the result. The engine ends the wait, with an error if need be.
    pub fn wait(self) -> Result<Vec<T>> {
        self.wait_with_counts().map(|(values, _)| values)
    }

    /// The result, and how many of its values came from each rank (of gathers and all-to-all).
    pub fn wait_with_counts(self) -> Result<(Vec<T>, Vec<usize>)> {
        let (values, counts) =
            self.outcome.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")))?;
        Ok((unpacked(values)?, counts))
    }
}

pub(super) fn unpacked<P: 'static>(values: Box<dyn Any + Send>) -> Result<P> {
    let unpacked = values.downcast::<P>().map(|v| *v);
    unpacked.map_err(|_| err!(Internal, "a result of another type"))
}

/// A process set that is being made.
pub struct SetHandle(pub(super) CollectiveHandle<u8>);

impl SetHandle {
    /// What it is called from now on.
    pub fn wait(self) -> Result<SetId> {
        let (_, number) = self.0.wait_with_counts()?;
        let number = number.first().and_then(|&n| u16::try_from(n).ok());
        number.map(SetId).ok_or_else(|| err!(Internal, "a process set without a number"))
    }
}

/// Waits for all ranks to have joined.
pub struct JoinHandle(pub(super) Receiver<Result<u32>>);

impl JoinHandle {
    /// The rank that joined last.
    pub fn wait(self) -> Result<usize> {
        let last = self.0.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")));
        last.map(|rank| rank as usize)
    }
}
