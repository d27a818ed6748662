//! The limit of open files. Rank 0 has a connection to every other rank.

use crate::environment::print_note;
use rustix::process::{Resource, getrlimit, setrlimit};

/// What a rank needs besides its connection to rank 0: connections that schedules use, shared
/// memory, and the files of the program.
const OWN: u64 = 256;

/// The number of descriptors that this process may have.
pub(crate) fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Raises the limit if a group of this size needs it. Says so if the system does not allow that.
pub(crate) fn raise(rank: usize, size: usize) {
    let needed = OWN + if rank == 0 { 2 * size as u64 } else { 0 };
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= needed) {
        return;
    }
    let allowed = limit.maximum.map_or(needed, |most| most.min(needed));
    limit.current = Some(allowed);
    let raised = setrlimit(Resource::Nofile, limit).is_ok();
    if !raised || allowed < needed {
        print_note(&format!(
            "rank {rank} of {size} needs {needed} descriptors but may open only {allowed}: raise the hard \
             limit (ulimit -Hn, LimitNOFILE= of a service)"
        ));
    }
}
