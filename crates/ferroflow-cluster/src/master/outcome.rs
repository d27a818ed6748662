//! The outcome of a step that ran on several tasks: of all their errors, the one that caused the
//! others.

use crate::error::relayed_from;
use ferroflow_core::{Code, Error};
use std::time::Duration;

/// How long a step waits for other errors after one that cannot be the cause.
const GRACE: Duration = Duration::from_millis(1500);
/// The text in the error of a worker whose step was abandoned.
const ABORTED: &str = "Cancelling rendezvous.";

/// The most important error so far.
#[derive(Default)]
pub(super) struct StepOutcome {
    failure: Option<(Rank, String, Error)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The consequence of an error that has not arrived yet.
    Derived,
    /// The error of another task of the step, which will report it to the master itself.
    Relayed,
    Cause,
}

impl StepOutcome {
    /// Notes that `task` failed. `tasks` are all of the step.
    pub fn failed<'t>(
        &mut self,
        task: &str,
        error: Error,
        mut tasks: impl Iterator<Item = &'t str>,
    ) {
        let origin = relayed_from(error.message()).filter(|origin| *origin != task);
        let rank = if error.is_derived()
            || error.code() == Code::Cancelled
            || (error.code() == Code::Aborted && error.message().contains(ABORTED))
        {
            Rank::Derived
        } else if origin.is_some_and(|origin| tasks.any(|t| t == origin)) {
            Rank::Relayed
        } else {
            Rank::Cause
        };
        if self.failure.as_ref().is_none_or(|(known, _, _)| *known < rank) {
            self.failure = Some((rank, task.to_string(), error));
        }
    }

    /// How long to wait for the errors of other tasks, once one has failed.
    pub fn grace(&self) -> Option<Duration> {
        self.failure.as_ref().map(|(rank, _, _)| match rank {
            Rank::Cause => Duration::ZERO,
            _ => GRACE,
        })
    }

    /// The error for the client.
    pub fn into_error(self) -> Option<Error> {
        let (_, task, error) = self.failure?;
        Some(Error::new(error.code(), format!("From {task}:\n{}", error.message())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::said_by;
    use crate::rpc::RpcStatus;
    use ferroflow_core::err;

    const PS: &str = "/job:ps/replica:0/task:0";
    const WORKER: &str = "/job:worker/replica:0/task:0";

    fn of(failures: Vec<(&str, Error)>) -> Error {
        let mut outcome = StepOutcome::default();
        for (task, error) in failures {
            outcome.failed(task, error, [PS, WORKER].into_iter());
        }
        outcome.into_error().unwrap()
    }

    #[test]
    fn the_cause_wins_in_any_order() {
        let cause = err!(InvalidArgument, "bad\n\t [[{{{{node x}}}}]]");
        let status = RpcStatus::new(3, cause.message());
        let relayed = said_by(PS, "a:1", "RecvTensor", &status);
        let derived = err!(Aborted, "Step 7 cancelled.  Cancelling rendezvous.");
        let cancelled = err!(Cancelled, "Dequeue operation was cancelled");
        let says = "From /job:ps/replica:0/task:0:\nbad\n\t [[{{node x}}]]";
        for first in [relayed, derived, cancelled.clone()] {
            let e = of(vec![(WORKER, first.clone()), (PS, cause.clone())]);
            assert_eq!((e.code(), e.message()), (Code::InvalidArgument, says));
            let e = of(vec![(PS, cause.clone()), (WORKER, first)]);
            assert_eq!((e.code(), e.message()), (Code::InvalidArgument, says));
        }
        assert_eq!(of(vec![(PS, cancelled)]).code(), Code::Cancelled);
    }

    #[test]
    fn only_a_cause_ends_the_step_at_once() {
        let mut outcome = StepOutcome::default();
        assert_eq!(outcome.grace(), None);
        outcome.failed(PS, err!(Cancelled, "stop"), [PS].into_iter());
        assert_eq!(outcome.grace(), Some(GRACE));
        outcome.failed(PS, err!(Internal, "bug"), [PS].into_iter());
        assert_eq!(outcome.grace(), Some(Duration::ZERO));
    }
}
