//! Who may connect to a task, and what belongs to whom.

mod clusters;
mod fixture;
mod hostile_clients;
mod owners;
