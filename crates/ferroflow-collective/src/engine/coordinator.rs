//! The coordinator's bookkeeping, on rank 0: who has asked for what, what is agreed, what runs next.
//! It neither sends nor waits; time is handed to it.

use super::request::{Decision, KEPT, Piece, RankMessage, TensorRequest};
use crate::compress::WireCompression;
use crate::signature::OperationKind;
use ferroflow_core::{Error, Result, bail, ensure, err};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// What decides how work is cut and packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Packing {
    /// Bytes of small tensors that go in one collective.
    pub fusion: usize,
    /// How long a ready tensor waits for company.
    pub cycle: Duration,
    /// Bytes of the pieces that large tensors are cut into.
    pub piece: usize,
    /// Never fuse, so that what is added to what depends on nothing but the tensor.
    pub alone: bool,
}

struct Waiting {
    /// One request of each rank that has asked.
    asked: BTreeMap<u32, TensorRequest>,
    since: Instant,
    warned: bool,
}

/// An agreed tensor, or what is left of it.
struct Ready {
    id: u32,
    request: TensorRequest,
    priority: i32,
    order: u64,
    /// Elements already handed out.
    done: u64,
    since: Instant,
    /// Ranks of the set that had joined and not asked.
    absent: Vec<u32>,
}

/// A process set, and what its tensors of one group have in common: sets may use the same names.
type GroupKey = (u16, u64);

pub(crate) struct Coordinator {
    size: u32,
    sets: Vec<Vec<u32>>,
    waiting: HashMap<(u16, String), Waiting>,
    /// Requests by number, and the numbers by set and name.
    kept: HashMap<u32, TensorRequest>,
    next: u32,
    numbers: HashMap<(u16, String), u32>,
    ready: Vec<Ready>,
    order: u64,
    /// Ranks without data, in the order they joined.
    joined: Vec<u32>,
    left: Vec<u32>,
    /// Those of them with which nothing can run any more.
    gone: Vec<u32>,
    /// Agreed tensors of groups that are not complete yet.
    groups: HashMap<GroupKey, Vec<Ready>>,
    /// Groups of which a tensor has failed: why, and how many of the others are still to come.
    failed_groups: HashMap<GroupKey, (Error, u32)>,
    decisions: Vec<Decision>,
    pub hits: u64,
    pub misses: u64,
}

impl Coordinator {
    pub(crate) fn new(size: usize, sets: Vec<Vec<u32>>) -> Coordinator {
        Coordinator {
            size: size as u32,
            sets,
            waiting: HashMap::new(),
            kept: HashMap::new(),
            next: 0,
            numbers: HashMap::new(),
            ready: Vec::new(),
            order: 0,
            joined: Vec::new(),
            left: Vec::new(),
            gone: Vec::new(),
            groups: HashMap::new(),
            failed_groups: HashMap::new(),
            decisions: Vec::new(),
            hits: 0,
            misses: 0,
        }
    }

    /// Takes what `rank` said.
    pub(crate) fn message(&mut self, rank: u32, message: RankMessage, now: Instant) -> Result<()> {
        match message {
            RankMessage::Submit(request) => {
                self.misses += 1;
                self.ask(rank, request, now)?;
            }
            RankMessage::Resubmit(id) => {
                let Some(request) = self.kept.get(&id) else {
                    bail!(
                        DataLoss,
                        "rank {rank} asked again for number {id}, which stands for nothing"
                    );
                };
                self.hits += 1;
                self.ask(rank, request.clone(), now)?;
            }
            RankMessage::Sets(theirs) => {
                let ours = self.sets.get(1..).unwrap_or_default();
                ensure!(
                    theirs == ours,
                    InvalidArgument,
                    "rank {rank} has the process sets {theirs:?}, rank 0 has {ours:?}: all ranks make \
                     the same ones, in the same order"
                );
            }
            // Servers have nothing to join with, and stay until the ranks have left.
            RankMessage::Join | RankMessage::Leave if rank >= self.size => {}
            RankMessage::Join => {
                if !self.joined.contains(&rank) {
                    self.joined.push(rank);
                }
                // What waited for this rank only is complete now.
                self.settle_all(now);
                if self.joined.len() as u32 == self.size {
                    self.joined.clear();
                    self.decisions.push(Decision::AllJoined { last: rank });
                }
                self.give_up_joins();
            }
            RankMessage::Leave => {
                // Who says so and then closes its connection has left once.
                if self.has_left(rank) {
                    return Ok(());
                }
                self.left.push(rank);
                // Nobody need wait for what this rank has not asked for.
                self.settle_all(now);
                self.give_up_joins();
                if self.left.len() as u32 == self.size {
                    self.decisions.push(Decision::AllLeft);
                }
            }
        }
        Ok(())
    }

    /// The connection of `rank` has ended in good order. Whatever it has asked for or joined, and has not been
    /// run, is not run with it any more.
    pub(crate) fn gone(&mut self, rank: u32, now: Instant) -> Result<()> {
        self.message(rank, RankMessage::Leave, now)?;
        if rank >= self.size || self.gone.contains(&rank) {
            return Ok(());
        }
        self.gone.push(rank);
        self.waiting.values_mut().for_each(|w| drop(w.asked.remove(&rank)));
        // Who asks for these later is told then.
        self.waiting.retain(|_, w| !w.asked.is_empty());
        let cause = |request: &TensorRequest| {
            let name = &request.name;
            err!(Unavailable, "tensor {name:?} was about to run, but ranks [{rank}] have left")
        };
        let (lost, ready) = std::mem::take(&mut self.ready)
            .into_iter()
            .partition::<Vec<_>, _>(|r| self.sets[usize::from(r.request.set)].contains(&rank));
        self.ready = ready;
        for Ready { id, request, absent, .. } in lost {
            if id >= KEPT {
                self.kept.remove(&id);
            }
            let cause = cause(&request);
            self.fail((request.set, request.name), absent, cause);
        }
        let groups: Vec<GroupKey> = self.groups.keys().copied().collect();
        for group in groups {
            if self.sets[usize::from(group.0)].contains(&rank)
                && let Some(Ready { request, absent, .. }) =
                    self.groups.get_mut(&group).and_then(Vec::pop)
            {
                let key = (request.set, request.name.clone());
                self.fail_group(key, &request, absent, cause(&request));
            }
        }
        self.settle_all(now);
        Ok(())
    }

    fn ask(&mut self, rank: u32, request: TensorRequest, now: Instant) -> Result<()> {
        let Some(members) = self.sets.get(usize::from(request.set)) else {
            bail!(InvalidArgument, "rank {rank} names process set {}, which is none", request.set);
        };
        if !members.contains(&rank) {
            bail!(InvalidArgument, "rank {rank} is not in process set {}", request.set);
        }
        let key = (request.set, request.name.clone());
        let waiting = self.waiting.entry(key.clone()).or_insert_with(|| Waiting {
            asked: BTreeMap::new(),
            since: now,
            warned: false,
        });
        waiting.asked.insert(rank, request);
        self.settle(key, now);
        Ok(())
    }

    fn settle_all(&mut self, now: Instant) {
        let names: Vec<_> = self.waiting.keys().cloned().collect();
        names.into_iter().for_each(|key| self.settle(key, now));
    }

    /// Tells ranks that have joined, if one has left that has not: it never will.
    fn give_up_joins(&mut self) {
        let gone: Vec<u32> =
            self.left.iter().filter(|r| !self.joined.contains(r)).copied().collect();
        if !self.joined.is_empty() && !gone.is_empty() {
            let joined = std::mem::take(&mut self.joined);
            let cause = err!(
                Unavailable,
                "ranks {joined:?} have joined, but ranks {gone:?} have left without joining"
            );
            self.decisions.push(Decision::NotJoined { cause });
        }
    }

    /// Agrees on the tensor if all ranks of its set have asked for it or joined. Gives it up if one has left
    /// instead.
    fn settle(&mut self, key: (u16, String), now: Instant) {
        let Some(waiting) = self.waiting.get(&key) else { return };
        let members = &self.sets[usize::from(key.0)];
        let absent = waiting.absent(members);
        // Who has joined takes part, with nothing, as long as it is there.
        let takes_part = |m: &u32| self.joined.contains(m) && !self.gone.contains(m);
        let missing: Vec<u32> = absent.iter().filter(|m| !takes_part(m)).copied().collect();
        if !missing.is_empty() {
            let gone: Vec<u32> = missing.into_iter().filter(|m| self.left.contains(m)).collect();
            if !gone.is_empty() {
                let present: Vec<u32> = waiting.asked.keys().copied().collect();
                let text = format!(
                    "tensor {:?} is asked for by ranks {present:?}, but ranks {gone:?} have left",
                    key.1
                );
                self.give_up(key, || err!(Unavailable, "{text}"));
            }
            return;
        }
        let Some(waiting) = self.waiting.remove(&key) else { return };
        let agreed = agreed(&key.1, &waiting.asked);
        let Some(request) = waiting.request().cloned() else { return };
        let failed = request.group_key().is_some_and(|g| self.failed_groups.contains_key(&g));
        if failed || agreed.is_err() {
            let cause = agreed.err().unwrap_or_else(|| err!(Aborted, "its group has failed"));
            return self.fail_group(key, &request, absent, cause);
        }
        let id = self.keep(&key, &request);
        self.order += 1;
        let priority = waiting.asked.values().map(|r| r.priority).max().unwrap_or(0);
        let order = self.order;
        let ready = Ready { id, request, priority, order, done: 0, since: now, absent };
        let Some(group) = ready.request.group_key() else {
            self.ready.push(ready);
            return;
        };
        let len = ready.request.group_len;
        let members = self.groups.entry(group).or_default();
        members.push(ready);
        if members.len() as u32 >= len
            && let Some(members) = self.groups.remove(&group)
        {
            self.ready.extend(members);
        }
    }

    fn fail(&mut self, (set, name): (u16, String), absent: Vec<u32>, cause: Error) {
        self.decisions.push(Decision::Fail { set, name, absent, cause });
    }

    /// Fails a tensor that not all have asked for: because of what those who have said, if they did.
    fn give_up(&mut self, key: (u16, String), cause: impl FnOnce() -> Error) {
        let Some(waiting) = self.waiting.remove(&key) else { return };
        let absent = waiting.absent(&self.sets[usize::from(key.0)]);
        if let Some(request) = waiting.request() {
            let cause = fault(&key.1, &waiting.asked).unwrap_or_else(cause);
            self.fail_group(key, request, absent, cause);
        }
    }

    /// Fails a tensor, and with it its group: those that are ready now, the others when they come. The
    /// first cause is told to all.
    fn fail_group(
        &mut self,
        key: (u16, String),
        request: &TensorRequest,
        absent: Vec<u32>,
        cause: Error,
    ) {
        let Some(group) = request.group_key() else { return self.fail(key, absent, cause) };
        let ready = self.groups.remove(&group).unwrap_or_default();
        let gone = 1 + ready.len() as u32;
        let (cause, left) = match self.failed_groups.remove(&group) {
            Some((first, left)) => (first, left.saturating_sub(gone)),
            None => (cause, request.group_len.saturating_sub(gone)),
        };
        if left > 0 {
            self.failed_groups.insert(group, (cause.clone(), left));
        }
        self.fail(key, absent, cause.clone());
        for Ready { request, absent, .. } in ready {
            self.fail((request.set, request.name), absent, cause.clone());
        }
    }

    /// The number of a request; a new one if it is new or has changed.
    fn keep(&mut self, key: &(u16, String), request: &TensorRequest) -> u32 {
        let known = self.numbers.get(key).and_then(|id| Some((*id, self.kept.get(id)?)));
        if let Some((id, kept)) = known
            && kept.agrees_with(request)
            && kept.priority == request.priority
        {
            return id;
        }
        let id = if self.next < KEPT { self.next } else { self.temporary_id() };
        self.next = id + 1;
        self.kept.insert(id, request.clone());
        if id < KEPT {
            self.numbers.insert(key.clone(), id);
        }
        self.decisions.push(Decision::Keep { id, request: request.clone() });
        id
    }

    /// A number for one run, that stands for nothing else now.
    fn temporary_id(&self) -> u32 {
        let mut id = self.next.max(KEPT);
        while id == u32::MAX || self.kept.contains_key(&id) {
            id = if id == u32::MAX { KEPT } else { id + 1 };
        }
        id
    }

    /// What there is to tell all ranks besides work.
    pub(crate) fn decisions(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.decisions)
    }

    /// When `next` will have something although nothing new arrives; none if it has nothing at all.
    pub(crate) fn due(&self, packing: &Packing, now: Instant) -> Option<Instant> {
        let oldest = self.ready.iter().map(|r| r.since).min()?;
        let bytes = self.ready.iter().fold(0usize, |sum, r| sum.saturating_add(r.bytes_left()));
        let alone = packing.alone || bytes >= packing.fusion;
        Some(if alone { now } else { oldest + packing.cycle })
    }

    /// The next collective: the most urgent piece, and as many that go with it as fit.
    pub(crate) fn next(&mut self, packing: &Packing, now: Instant) -> Option<Decision> {
        if self.due(packing, now)? > now {
            return None;
        }
        self.ready.sort_by_key(|r| (std::cmp::Reverse(r.priority), r.order));
        let (mut pieces, mut chosen, mut bytes) = (Vec::new(), Vec::new(), 0);
        let first = self.ready[0].fusion_key();
        let absent = self.ready[0].absent.clone();
        let fuses = self.ready[0].fuses() && !packing.alone;
        for ready in &mut self.ready {
            let alike = ready.fusion_key() == first && ready.absent == absent;
            let fits = pieces.is_empty() || (fuses && ready.fuses() && alike);
            if !fits {
                continue;
            }
            let width = ready.request.dtype.size().unwrap_or(1);
            let cut = ready.request.kind == OperationKind::AllReduce && ready.fuses();
            let left = ready.request.count() - ready.done;
            let most = if cut { (packing.piece / width).max(1) as u64 } else { u64::MAX };
            let len = left.min(most);
            let more = bytes_of(len, width).saturating_add(bytes);
            if !pieces.is_empty() && more > packing.fusion {
                continue;
            }
            pieces.push(Piece { id: ready.id, start: ready.done, len });
            chosen.push(ready.order);
            bytes = more;
            ready.done += len;
            if bytes >= packing.fusion {
                break;
            }
        }
        if let Some(Ready { request, .. }) =
            self.ready.first().filter(|r| r.request.kind == OperationKind::ProcessSet)
        {
            // All ranks hear of it before of anything that it is used in.
            self.sets.push(request.shape.iter().map(|&r| r as u32).collect());
        }
        // Not by their numbers: ranks that had joined may have asked for the same tensor again by now.
        let kept = &mut self.kept;
        self.ready.retain(|r| {
            let done = chosen.contains(&r.order) && r.done >= r.request.count();
            if done && r.id >= KEPT {
                kept.remove(&r.id);
            }
            !done
        });
        Some(Decision::Run { pieces, absent })
    }

    /// Gives up on what has waited longer than `deadline`; names, once, what has waited longer than
    /// `warning`. Returns the warnings.
    pub(crate) fn stalled(
        &mut self,
        now: Instant,
        warning: Duration,
        deadline: Duration,
    ) -> Vec<String> {
        let (mut warnings, mut lost) = (Vec::new(), Vec::new());
        for (key, waiting) in &mut self.waiting {
            let age = now.saturating_duration_since(waiting.since);
            if age < warning.min(deadline) || (waiting.warned && age < deadline) {
                continue;
            }
            let mut absent = waiting.absent(&self.sets[usize::from(key.0)]);
            absent.retain(|m| !self.joined.contains(m));
            let present: Vec<u32> = waiting.asked.keys().copied().collect();
            let text = format!(
                "tensor {:?} has waited {:.1} s for ranks {absent:?}; ranks {present:?} are ready",
                key.1,
                age.as_secs_f64()
            );
            if !waiting.warned {
                waiting.warned = true;
                warnings.push(text.clone());
            }
            if age >= deadline {
                lost.push((key.clone(), text));
            }
        }
        for (key, text) in lost {
            self.give_up(key, || err!(DeadlineExceeded, "{text}"));
        }
        // A group of which some tensor is submitted by nobody.
        let is_late = |members: &Vec<Ready>| {
            members.iter().any(|r| now.saturating_duration_since(r.since) >= deadline)
        };
        let late: Vec<GroupKey> =
            self.groups.iter().filter(|(_, m)| is_late(m)).map(|(&group, _)| group).collect();
        let late = late.iter().filter_map(|g| self.groups.remove(g)).flatten();
        for Ready { request, absent, .. } in late.collect::<Vec<_>>() {
            let cause = err!(
                DeadlineExceeded,
                "tensor {:?} is one of a group of {}, of which no rank has submitted the rest",
                request.name,
                request.group_len
            );
            self.fail((request.set, request.name), absent, cause);
        }
        warnings
    }

    pub(crate) fn has_left(&self, rank: u32) -> bool {
        self.left.contains(&rank)
    }

    /// Whether something waits for ranks.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.groups.is_empty()
    }
}

impl Waiting {
    /// Who of the set has not asked.
    fn absent(&self, members: &[u32]) -> Vec<u32> {
        members.iter().filter(|m| !self.asked.contains_key(m)).copied().collect()
    }

    /// What is asked for, if all mean the same. Where they do not agree whether it is in a group, one
    /// that is, so that the group fails with it.
    fn request(&self) -> Option<&TensorRequest> {
        let grouped = self.asked.values().find(|r| r.group_key().is_some());
        grouped.or(self.asked.values().next())
    }
}

impl Ready {
    fn bytes_left(&self) -> usize {
        bytes_of(self.request.count() - self.done, self.request.dtype.size().unwrap_or(1))
    }

    /// Whether it may share a collective with others.
    fn fuses(&self) -> bool {
        let plain = matches!(
            self.request.compression,
            WireCompression::None | WireCompression::Fp16 | WireCompression::Bf16
        );
        self.request.kind == OperationKind::AllReduce && plain
    }

    /// What tensors of one collective have in common.
    fn fusion_key(&self) -> (u8, u8, u16, (u8, u64)) {
        let r = &self.request;
        (r.op as u8, r.dtype.number() as u8, r.set, r.compression.encode())
    }
}

/// Counts come from ranks that may be wrong about them.
fn bytes_of(count: u64, width: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(width)
}

/// What ranks that cannot do what they were asked for say, and which ranks they are.
fn fault(name: &str, asked: &BTreeMap<u32, TensorRequest>) -> Option<Error> {
    let mut faults: Vec<(&Error, Vec<u32>)> = Vec::new();
    for (&rank, fault) in asked.iter().filter_map(|(r, q)| Some((r, q.fault.as_ref()?))) {
        match faults.iter_mut().find(|(f, _)| *f == fault) {
            Some((_, ranks)) => ranks.push(rank),
            None => faults.push((fault, vec![rank])),
        }
    }
    let code = faults.first()?.0.code();
    let told: Vec<String> =
        faults.iter().map(|(f, ranks)| format!("{} on ranks {ranks:?}", f.message())).collect();
    Some(Error::new(code, format!("tensor {name:?}: {}", told.join(", "))))
}

/// Whether all ranks that have asked mean the same; if not, an error that names the fewest who do not.
fn agreed(name: &str, asked: &BTreeMap<u32, TensorRequest>) -> Result<()> {
    if let Some(fault) = fault(name, asked) {
        return Err(fault);
    }
    let mut opinions: Vec<(&TensorRequest, Vec<u32>)> = Vec::new();
    for (&rank, request) in asked {
        match opinions.iter_mut().find(|(r, _)| r.agrees_with(request)) {
            Some((_, ranks)) => ranks.push(rank),
            None => opinions.push((request, vec![rank])),
        }
    }
    if let [(request, _)] = opinions.as_slice() {
        // Who asked and then joined has left its values here.
        if request.kind == OperationKind::Broadcast && !asked.contains_key(&request.root) {
            bail!(
                FailedPrecondition,
                "tensor {name:?} is to be broadcast from rank {}, which has joined",
                request.root
            );
        }
        return Ok(());
    }
    opinions.sort_by_key(|(_, ranks)| ranks.len());
    let told: Vec<String> =
        opinions.iter().map(|(r, ranks)| format!("ranks {ranks:?} want {r}")).collect();
    bail!(InvalidArgument, "ranks do not agree on tensor {name:?}: {}", told.join(", "))
}

#[cfg(test)]
mod tests;
