//! Places of a step's tensors in one piece of memory, so that tensors that are alive at different
//! times share bytes.

use crate::HashMap;

/// The allocations and frees of a step, in order.
#[derive(Default)]
pub(super) struct MemoryTrace {
    /// The number of events so far.
    now: usize,
    allocations: Vec<Allocation>,
    /// The allocation that is at an address.
    live: HashMap<u64, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Allocation {
    address: u64,
    size: usize,
    from: usize,
    /// `None` while it is alive.
    until: Option<usize>,
}

impl MemoryTrace {
    pub fn alloc(&mut self, address: u64, size: usize) {
        self.now += 1;
        self.live.insert(address, self.allocations.len());
        self.allocations.push(Allocation { address, size, from: self.now, until: None });
    }

    pub fn free(&mut self, address: u64) {
        self.now += 1;
        if let Some(i) = self.live.remove(&address) {
            self.allocations[i].until = Some(self.now);
        }
    }

    /// Plans places for all allocations. Fetched memory stays until the end. Other memory that is
    /// still alive outlives the step and gets no place.
    pub fn plan(mut self, fetches: &[u64]) -> MemoryPlan {
        for one in &mut self.allocations {
            if one.until.is_none() && fetches.contains(&one.address) {
                one.until = Some(usize::MAX);
            }
        }
        MemoryPlan::new(&self.allocations)
    }
}

/// Places of the allocations of a step, in their order.
#[derive(Debug)]
pub struct MemoryPlan {
    /// Size and offset of each. The offset is `None` if the memory outlives the step.
    places: Vec<(usize, Option<usize>)>,
    bytes: usize,
    least: usize,
}

impl MemoryPlan {
    /// Places large tensors first, each at the first offset that is free while it is alive.
    fn new(allocations: &[Allocation]) -> MemoryPlan {
        let mut places: Vec<(usize, Option<usize>)> =
            allocations.iter().map(|one| (one.size, None)).collect();
        let lives = |i: usize| {
            let one: &Allocation = &allocations[i];
            one.until.map(|until| (one.from, until))
        };
        let mut order: Vec<usize> =
            (0..allocations.len()).filter(|&i| lives(i).is_some()).collect();
        order.sort_by_key(|&i| (std::cmp::Reverse(allocations[i].size), i));
        // Sorted by offset.
        let mut placed: Vec<(usize, usize)> = Vec::with_capacity(order.len());
        let mut bytes = 0;
        for i in order {
            let Some((from, until)) = lives(i) else { continue };
            let mut offset = 0;
            for &(at, k) in &placed {
                let is_at_once = lives(k).is_some_and(|(f, u)| f < until && from < u);
                if !is_at_once {
                    continue;
                }
                if offset + allocations[i].size <= at {
                    break;
                }
                offset = offset.max(at + allocations[k].size);
            }
            places[i].1 = Some(offset);
            bytes = bytes.max(offset + allocations[i].size);
            let at = placed.partition_point(|other| *other < (offset, i));
            placed.insert(at, (offset, i));
        }
        MemoryPlan { places, bytes, least: most_alive(allocations) }
    }

    /// The place of allocation number `i`: its offset, or `None` within if it outlives the step.
    /// The outer `None` means that no allocation of this size was planned.
    pub(super) fn place(&self, i: usize, size: usize) -> Option<Option<usize>> {
        let (planned, offset) = *self.places.get(i)?;
        (planned == size).then_some(offset)
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most bytes that are alive at once: no plan takes less.
    pub fn least_bytes(&self) -> usize {
        self.least
    }
}

/// The most bytes of allocations that end with the step which are alive at once.
fn most_alive(allocations: &[Allocation]) -> usize {
    let mut events: Vec<(usize, bool, usize)> = Vec::with_capacity(2 * allocations.len());
    for one in allocations {
        if let Some(until) = one.until {
            events.push((one.from, true, one.size));
            events.push((until, false, one.size));
        }
    }
    events.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, begins, size) in events {
        now = if begins { now + size } else { now - size };
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_that_are_alive_at_once_have_places_of_their_own() {
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..if cfg!(miri) { 2 } else { 20 } {
            let mut trace = MemoryTrace::default();
            let mut live: Vec<u64> = Vec::new();
            for i in 0..200 {
                if next(2) == 0 && !live.is_empty() {
                    let at = next(live.len() as u64) as usize;
                    trace.free(live.swap_remove(at));
                } else {
                    live.push(i);
                    trace.alloc(i, 256 << next(6));
                }
            }
            let kept: Vec<u64> = live.split_off(live.len() / 2);
            let allocations = trace.allocations.clone();
            let plan = trace.plan(&live);
            let end = |one: &Allocation| match one.until {
                Some(until) => Some(until),
                None => live.contains(&one.address).then_some(usize::MAX),
            };
            for (i, a) in allocations.iter().enumerate() {
                let place = plan.place(i, a.size).unwrap();
                assert_eq!(place.is_none(), kept.contains(&a.address));
                for (k, b) in allocations.iter().enumerate().take(i) {
                    let (Some(x), Some(y)) = (place, plan.place(k, b.size).unwrap()) else {
                        continue;
                    };
                    let at_once = a.from < end(b).unwrap() && b.from < end(a).unwrap();
                    assert!(!at_once || x + a.size <= y || y + b.size <= x, "{i} and {k}");
                }
            }
            assert!(plan.least_bytes() <= plan.bytes());
            assert!(plan.bytes() as f64 <= 1.3 * plan.least_bytes() as f64, "{plan:?}");
        }
    }

    #[test]
    fn a_step_that_does_something_else_has_no_place() {
        let mut trace = MemoryTrace::default();
        trace.alloc(1, 512);
        trace.free(1);
        let plan = trace.plan(&[]);
        assert_eq!(plan.place(0, 512), Some(Some(0)));
        assert_eq!(plan.place(0, 256), None);
        assert_eq!(plan.place(1, 512), None);
        assert_eq!((plan.bytes(), plan.least_bytes()), (512, 512));
    }
}
