//! Ferroflow beside TensorFlow, op by op: runs the cases that `oracle/ask.py` made and TensorFlow answered, and says
//! where the answers differ.
//!
//! `record` reads cases, `answer` runs one here, `compare` holds two answers against each other, `explained` knows the
//! differences that are meant to be, `report` counts.
#![forbid(unsafe_code)]

pub mod answer;
pub mod compare;
pub mod explained;
pub mod record;
pub mod report;
pub mod sample;
