//! Polls briefly before a thread blocks: a wake-up takes longer than most answers and short steps.

mod answers;
mod step;

pub(crate) use answers::{Answers, before_park};
pub use step::StepSpin;
