//! The limit of open files of the launcher, which has pipes to every process.

use super::tell;
use rustix::process::{Resource, getrlimit, setrlimit};

/// The descriptors that the launcher needs for itself.
const OWN: u64 = 64;
/// The pipes of a process: its input, its output and its errors.
const EACH: u64 = 3;

/// Raises the limit for this many processes, which inherit it. Prints a warning if that fails.
pub fn raise(processes: usize) {
    let needed = OWN + EACH * processes as u64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= needed) {
        return;
    }
    let allowed = limit.maximum.map_or(needed, |most| most.min(needed));
    limit.current = Some(allowed);
    if setrlimit(Resource::Nofile, limit).is_err() || allowed < needed {
        tell(format_args!(
            "{processes} processes need {needed} descriptors here but only {allowed} are allowed: \
             raise the hard limit (ulimit -Hn, LimitNOFILE= of a service)"
        ));
    }
}
