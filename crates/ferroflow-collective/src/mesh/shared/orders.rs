//! The memory orders of the protocols in shared memory. `model.rs` checks them: with a weaker one
//! it finds a run in which two processes use the same bytes, or in which a rank is not woken.

use std::sync::atomic::Ordering;

/// Of a store that hands bytes over: to a reader, or back to the writer.
pub(crate) const PUBLISH: Ordering = Ordering::Release;
/// Of a load that takes bytes over.
pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
/// Of the fences between one's own flag and the other's: of two ranks, one sees the other's.
pub(crate) const FENCE: Ordering = Ordering::SeqCst;
