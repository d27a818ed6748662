//! Which processors ranks may use, and whether there are enough: who waits spins a little where each rank has
//! one to itself, and must not where another rank needs it.

use std::collections::{BTreeSet, HashMap};

/// The processors that this process may use. Under a quota, as many as it amounts to.
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

/// Whether some host has more ranks than processors that any of them may use; of each rank, its host and its
/// processors. Launchers pin ranks to processors of their own, so that no rank sees them all.
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
    fn ranks_with_a_processor_each_are_not_crowded() {
        let crowded = |ranks: &[(&str, &[u32])]| crowded(ranks.iter().map(|&(h, p)| (h, p)));
        assert!(!crowded(&[("a", &[0]), ("a", &[1])]), "pinned to one each");
        assert!(crowded(&[("a", &[0]), ("a", &[0])]), "pinned to the same one");
        assert!(!crowded(&[("a", &[0, 1]), ("a", &[0, 1])]));
        assert!(crowded(&[("a", &[0, 1]), ("a", &[0, 1]), ("a", &[0, 1])]));
        assert!(!crowded(&[("a", &[0]), ("b", &[0])]), "on hosts of their own");
        assert!(crowded(&[("a", &[0, 1]), ("b", &[0]), ("b", &[0])]));
    }

    #[test]
    fn a_process_may_use_some_processor() {
        let usable = usable();
        assert!(!usable.is_empty() && usable.is_sorted());
    }
}
