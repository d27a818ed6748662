//! Compares Ferroflow with TensorFlow op by op. It runs the cases that `oracle/ask.py` made and
//! TensorFlow answered, and reports where the answers differ.
//!
//! `record` reads cases, `answer` runs one in Ferroflow, `compare` compares two answers,
//! `explained` knows the intended differences, and `report` counts. `gpu` runs the same cases on a
//! GPU, `models` trains there, and `ranks` reduces between the GPUs of ranks. `hostile` changes
//! cases into calls that mean harm.
#![forbid(unsafe_code)]

pub mod answer;
pub mod compare;
pub mod explained;
pub mod gpu;
pub mod hostile;
pub mod models;
pub mod null_gpu;
pub mod ranks;
pub mod record;
pub mod report;
pub mod sample;
pub mod tasks;
