//! Which processors ranks may use, and whether there are enough of them. A waiting rank may spin if
//! each rank has its own processor, and must not spin otherwise.

use std::collections::{BTreeSet, HashMap};

/// The processors that this process may use. If a quota allows fewer, only as many as the quota.
pub(crate) fn usable() -> Vec<u32> {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    allowed().unwrap_or_else(|| (0..most as u32).collect()).into_iter().take(most).collect()
}

#[cfg(target_os = "linux")]
fn allowed() -> Option<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let all = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    Some(all.map(|cpu| cpu as u32).collect()).filter(|all: &Vec<u32>| !all.is_empty())
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Option<Vec<u32>> {
    None
}

/// Whether a host has more ranks than processors. `ranks` has the host and the usable processors of
/// each rank. Launchers may pin each rank to its own processors, so the processors of all ranks of
/// a host are counted together.
pub(crate) fn crowded<'a>(ranks: impl Iterator<Item = (&'a str, &'a [u32])>) -> bool {
    let mut hosts: HashMap<&str, (usize, BTreeSet<u32>)> = HashMap::new();
    for (host, processors) in ranks {
        let (count, all) = hosts.entry(host).or_default();
        *count += 1;
        all.extend(processors);
    }
    hosts.values().any(|(ranks, processors)| *ranks > processors.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_crowded_if_it_has_more_ranks_than_processors() {
        let crowded = |ranks: &[(&str, &[u32])]| crowded(ranks.iter().map(|&(h, p)| (h, p)));
        assert!(!crowded(&[("a", &[0]), ("a", &[1])]), "pinned to one each");
        assert!(crowded(&[("a", &[0]), ("a", &[0])]), "pinned to the same one");
        assert!(!crowded(&[("a", &[0, 1]), ("a", &[0, 1])]));
        assert!(crowded(&[("a", &[0, 1]), ("a", &[0, 1]), ("a", &[0, 1])]));
        assert!(!crowded(&[("a", &[0]), ("b", &[0])]), "on hosts of their own");
        assert!(crowded(&[("a", &[0, 1]), ("b", &[0]), ("b", &[0])]));
    }

    #[test]
    fn a_process_may_use_at_least_one_processor() {
        let usable = usable();
        assert!(!usable.is_empty() && usable.is_sorted());
    }
}
