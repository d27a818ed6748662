//! Which peers may connect to a task, and what an identity owns.

mod clusters;
mod fixture;
mod hostile_clients;
mod owners;
