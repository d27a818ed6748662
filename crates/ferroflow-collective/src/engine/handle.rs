//! Handles with which callers wait for results.

use super::mailbox::TensorOutcome;
use crate::group::SetId;
use crate::number::Number;
use ferroflow_core::{Result, err};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::mpsc::Receiver;

/// The future result of a submission.
pub struct CollectiveHandle<T> {
    pub(super) outcome: Receiver<TensorOutcome>,
    pub(super) values: PhantomData<T>,
}

impl<T: Number> CollectiveHandle<T> {
    /// Blocks until the result is there. The engine always completes it, with an error if
    /// necessary.
    pub fn wait(self) -> Result<Vec<T>> {
        self.wait_with_counts().map(|(values, _)| values)
    }

    /// The result and, for gathers and all-to-all, how many of its values came from each rank.
    pub fn wait_with_counts(self) -> Result<(Vec<T>, Vec<usize>)> {
        let (values, counts) =
            self.outcome.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")))?;
        Ok((unpacked(values)?, counts))
    }
}

pub(super) fn unpacked<P: 'static>(values: Box<dyn Any + Send>) -> Result<P> {
    let unpacked = values.downcast::<P>().map(|v| *v);
    unpacked.map_err(|_| err!(Internal, "the result has another type than the submission"))
}

/// A process set that the ranks are still agreeing on.
pub struct SetHandle(pub(super) CollectiveHandle<u8>);

impl SetHandle {
    /// Blocks until all ranks have agreed, and returns the id of the set.
    pub fn wait(self) -> Result<SetId> {
        let (_, number) = self.0.wait_with_counts()?;
        let number = number.first().and_then(|&n| u16::try_from(n).ok());
        number
            .map(SetId)
            .ok_or_else(|| err!(Internal, "the engine returned no number for a process set"))
    }
}

/// Waits for all ranks to join.
pub struct JoinHandle(pub(super) Receiver<Result<u32>>);

impl JoinHandle {
    /// Blocks until all ranks have joined, and returns the rank that joined last.
    pub fn wait(self) -> Result<usize> {
        let last = self.0.recv().unwrap_or_else(|_| Err(err!(Cancelled, "the engine has ended")));
        last.map(|rank| rank as usize)
    }
}
