//! The state of the coordinator on rank 0: what each rank has requested, what all agree on, and
//! what runs next. It does no I/O and never blocks. Callers pass in the time.

use super::request::{Decision, KEPT, Piece, RankMessage, TensorRequest};
use crate::compress::WireCompression;
use crate::signature::OperationKind;
use ferroflow_core::{Error, Result, bail, ensure, err};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// How work is fused and cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Packing {
    /// Most bytes of a fused collective.
    pub fusion: usize,
    /// How long a ready tensor waits for others to fuse with.
    pub cycle: Duration,
    /// Bytes of the pieces that large tensors are cut into.
    pub piece: usize,
    /// Never fuse, so that the order of additions depends only on the tensor.
    pub alone: bool,
}

struct Waiting {
    /// The request of each rank that has made one.
    requests: BTreeMap<u32, TensorRequest>,
    since: Instant,
    warned: bool,
}

/// A tensor on which all ranks agree, or the rest of it.
struct Ready {
    id: u32,
    request: TensorRequest,
    priority: i32,
    order: u64,
    /// Elements that earlier decisions have covered.
    done: u64,
    since: Instant,
    /// Ranks of the set that had joined and not submitted the tensor.
    absent: Vec<u32>,
}

/// A process set and the key of a group in it. Different sets may use the same names.
type GroupKey = (u16, u64);

pub(crate) struct Coordinator {
    size: u32,
    sets: Vec<Vec<u32>>,
    waiting: HashMap<(u16, String), Waiting>,
    /// Requests by number.
    kept: HashMap<u32, TensorRequest>,
    next: u32,
    /// Numbers by set and name.
    numbers: HashMap<(u16, String), u32>,
    ready: Vec<Ready>,
    order: u64,
    /// Ranks without data, in the order in which they joined.
    joined: Vec<u32>,
    left: Vec<u32>,
    /// Ranks that have left and closed their connection. No collective can include them.
    gone: Vec<u32>,
    /// Agreed tensors of groups that are not complete yet.
    groups: HashMap<GroupKey, Vec<Ready>>,
    /// Groups with a failed tensor: the error, and how many of its tensors are still missing.
    failed_groups: HashMap<GroupKey, (Error, u32)>,
    decisions: Vec<Decision>,
    /// The ranks that submitted a tensor last, and how long after the first rank.
    last_ranks: Vec<(u32, Duration)>,
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
            last_ranks: Vec::new(),
            hits: 0,
            misses: 0,
        }
    }

    /// Processes a message of `rank`.
    pub(crate) fn message(&mut self, rank: u32, message: RankMessage, now: Instant) -> Result<()> {
        match message {
            RankMessage::Submit(request) => {
                self.misses += 1;
                self.submit(rank, request, now)?;
            }
            RankMessage::Resubmit(id) => {
                let Some(request) = self.kept.get(&id) else {
                    bail!(DataLoss, "rank {rank} requested number {id}, which is unknown");
                };
                self.hits += 1;
                self.submit(rank, request.clone(), now)?;
            }
            RankMessage::Sets(theirs) => {
                let ours = self.sets.get(1..).unwrap_or_default();
                ensure!(
                    theirs == ours,
                    InvalidArgument,
                    "rank {rank} has the process sets {theirs:?}, rank 0 has {ours:?}: all ranks must make \
                     the same sets in the same order"
                );
            }
            // Servers cannot join, and stay until the ranks have left.
            RankMessage::Join | RankMessage::Leave if rank >= self.size => {}
            RankMessage::Join => {
                if !self.joined.contains(&rank) {
                    self.joined.push(rank);
                }
                // Tensors that waited only for this rank are complete now.
                self.settle_all(now);
                if self.joined.len() as u32 == self.size {
                    self.joined.clear();
                    self.decisions.push(Decision::AllJoined { last: rank });
                }
                self.give_up_joins();
            }
            RankMessage::Leave => {
                // Leaving and then closing the connection counts once.
                if self.has_left(rank) {
                    return Ok(());
                }
                self.left.push(rank);
                // Tensors that this rank has not submitted will never be complete.
                self.settle_all(now);
                self.give_up_joins();
                if self.left.len() as u32 == self.size {
                    self.decisions.push(Decision::AllLeft);
                }
            }
        }
        Ok(())
    }

    /// The connection of `rank` was closed properly. Its submissions that have not run will not run
    /// with it, and neither will collectives that it has joined.
    pub(crate) fn gone(&mut self, rank: u32, now: Instant) -> Result<()> {
        self.message(rank, RankMessage::Leave, now)?;
        if rank >= self.size || self.gone.contains(&rank) {
            return Ok(());
        }
        self.gone.push(rank);
        self.waiting.values_mut().for_each(|w| drop(w.requests.remove(&rank)));
        // Other ranks that submit these tensors later get the error then.
        self.waiting.retain(|_, w| !w.requests.is_empty());
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

    fn submit(&mut self, rank: u32, request: TensorRequest, now: Instant) -> Result<()> {
        let Some(members) = self.sets.get(usize::from(request.set)) else {
            bail!(
                InvalidArgument,
                "rank {rank} names process set {}, which does not exist",
                request.set
            );
        };
        if !members.contains(&rank) {
            bail!(InvalidArgument, "rank {rank} is not in process set {}", request.set);
        }
        let key = (request.set, request.name.clone());
        let waiting = self.waiting.entry(key.clone()).or_insert_with(|| Waiting {
            requests: BTreeMap::new(),
            since: now,
            warned: false,
        });
        waiting.requests.insert(rank, request);
        let since = waiting.since;
        if self.settle(key, now) {
            self.last_ranks.push((rank, now.saturating_duration_since(since)));
        }
        Ok(())
    }

    fn settle_all(&mut self, now: Instant) {
        let names: Vec<_> = self.waiting.keys().cloned().collect();
        for key in names {
            self.settle(key, now);
        }
    }

    /// Fails the joins if a rank has left without joining: it will never join.
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

    /// Decides the tensor if all ranks of its set have submitted it or joined. Fails it if a rank
    /// has left instead. Returns whether all ranks agree.
    fn settle(&mut self, key: (u16, String), now: Instant) -> bool {
        let Some(waiting) = self.waiting.get(&key) else { return false };
        let members = &self.sets[usize::from(key.0)];
        let all_present = self.joined.is_empty() && self.left.is_empty();
        if all_present && waiting.requests.len() < members.len() {
            return false;
        }
        let absent = waiting.absent(members);
        // A rank that has joined takes part, without values, until it leaves.
        let takes_part = |m: &u32| self.joined.contains(m) && !self.gone.contains(m);
        let missing: Vec<u32> = absent.iter().filter(|m| !takes_part(m)).copied().collect();
        if !missing.is_empty() {
            let gone: Vec<u32> = missing.into_iter().filter(|m| self.left.contains(m)).collect();
            if !gone.is_empty() {
                let present: Vec<u32> = waiting.requests.keys().copied().collect();
                let text = format!(
                    "tensor {:?} was submitted by ranks {present:?}, but ranks {gone:?} have left",
                    key.1
                );
                self.give_up(key, || err!(Unavailable, "{text}"));
            }
            return false;
        }
        let Some(waiting) = self.waiting.remove(&key) else { return false };
        let agreed = agreed(&key.1, &waiting.requests);
        let Some(request) = waiting.request().cloned() else { return false };
        let failed = request.group_key().is_some_and(|g| self.failed_groups.contains_key(&g));
        if failed || agreed.is_err() {
            let cause =
                agreed.err().unwrap_or_else(|| err!(Aborted, "the group of the tensor has failed"));
            self.fail_group(key, &request, absent, cause);
            return false;
        }
        let id = self.keep(&key, &request);
        self.order += 1;
        let priority = waiting.requests.values().map(|r| r.priority).max().unwrap_or(0);
        let order = self.order;
        let ready = Ready { id, request, priority, order, done: 0, since: now, absent };
        let Some(group) = ready.request.group_key() else {
            self.ready.push(ready);
            return true;
        };
        let len = ready.request.group_len;
        let members = self.groups.entry(group).or_default();
        members.push(ready);
        if members.len() as u32 >= len
            && let Some(members) = self.groups.remove(&group)
        {
            self.ready.extend(members);
        }
        true
    }

    /// The ranks that were last since the previous call, with how long the first rank waited.
    pub(crate) fn last_ranks(&mut self) -> std::vec::Drain<'_, (u32, Duration)> {
        self.last_ranks.drain(..)
    }

    fn fail(&mut self, (set, name): (u16, String), absent: Vec<u32>, cause: Error) {
        self.decisions.push(Decision::Fail { set, name, absent, cause });
    }

    /// Fails a tensor that not all ranks have submitted. A fault that a rank has reported takes
    /// precedence over `cause`.
    fn give_up(&mut self, key: (u16, String), cause: impl FnOnce() -> Error) {
        let Some(waiting) = self.waiting.remove(&key) else { return };
        let absent = waiting.absent(&self.sets[usize::from(key.0)]);
        if let Some(request) = waiting.request() {
            let cause = fault(&key.1, &waiting.requests).unwrap_or_else(cause);
            self.fail_group(key, request, absent, cause);
        }
    }

    /// Fails a tensor and its group: the tensors that are ready now, and the missing ones when they
    /// are submitted. All get the first cause.
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

    /// The number of a request. Assigns a new one if the request is new or has changed.
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

    /// An unused number for a single run.
    fn temporary_id(&self) -> u32 {
        let mut id = self.next.max(KEPT);
        while id == u32::MAX || self.kept.contains_key(&id) {
            id = if id == u32::MAX { KEPT } else { id + 1 };
        }
        id
    }

    /// Takes the decisions that start no collective.
    pub(crate) fn decisions(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.decisions)
    }

    /// When `next` will return a decision even if no message arrives. `None` if nothing is ready.
    pub(crate) fn due(&self, packing: &Packing, now: Instant) -> Option<Instant> {
        let oldest = self.ready.iter().map(|r| r.since).min()?;
        let bytes = self.ready.iter().fold(0usize, |sum, r| sum.saturating_add(r.bytes_left()));
        let alone = packing.alone || bytes >= packing.fusion;
        Some(if alone { now } else { oldest + packing.cycle })
    }

    /// The next collective: the most urgent piece, and all pieces that can be fused with it.
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
            // All ranks receive the new set before any decision that uses it.
            self.sets.push(request.shape.iter().map(|&r| r as u32).collect());
        }
        // Compare the order, not the number: ranks that had joined may have submitted the same
        // tensor again.
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

    /// Fails tensors that have waited longer than `deadline`. Returns one warning for each tensor
    /// that has waited longer than `warning`.
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
            let present: Vec<u32> = waiting.requests.keys().copied().collect();
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
        // Groups with a tensor that no rank has submitted.
        let is_late = |members: &Vec<Ready>| {
            members.iter().any(|r| now.saturating_duration_since(r.since) >= deadline)
        };
        let late: Vec<GroupKey> =
            self.groups.iter().filter(|(_, m)| is_late(m)).map(|(&group, _)| group).collect();
        let late = late.iter().filter_map(|g| self.groups.remove(g)).flatten();
        for Ready { request, absent, .. } in late.collect::<Vec<_>>() {
            let cause = err!(
                DeadlineExceeded,
                "tensor {:?} is in a group of {} tensors, of which no rank has submitted the rest",
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

    /// Whether a tensor waits for ranks.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.groups.is_empty()
    }
}

impl Waiting {
    /// The members that have not submitted the tensor.
    fn absent(&self, members: &[u32]) -> Vec<u32> {
        members.iter().filter(|m| !self.requests.contains_key(m)).copied().collect()
    }

    /// The request, if all ranks agree. If they disagree on the group, a request with a group, so
    /// that the group fails too.
    fn request(&self) -> Option<&TensorRequest> {
        let grouped = self.requests.values().find(|r| r.group_key().is_some());
        grouped.or(self.requests.values().next())
    }
}

impl Ready {
    fn bytes_left(&self) -> usize {
        bytes_of(self.request.count() - self.done, self.request.dtype.size().unwrap_or(1))
    }

    /// Whether it can be fused with other tensors.
    fn fuses(&self) -> bool {
        let plain = matches!(
            self.request.compression,
            WireCompression::None | WireCompression::Fp16 | WireCompression::Bf16
        );
        self.request.kind == OperationKind::AllReduce && plain
    }

    /// Tensors can be fused if this is equal.
    fn fusion_key(&self) -> (u8, u8, u16, (u8, u64)) {
        let r = &self.request;
        (r.op as u8, r.dtype.number() as u8, r.set, r.compression.encode())
    }
}

/// Saturates, because a faulty rank may send any count.
fn bytes_of(count: u64, width: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(width)
}

/// The faults that ranks have reported, as one error that names the ranks.
fn fault(name: &str, requests: &BTreeMap<u32, TensorRequest>) -> Option<Error> {
    let mut faults: Vec<(&Error, Vec<u32>)> = Vec::new();
    for (&rank, fault) in requests.iter().filter_map(|(r, q)| Some((r, q.fault.as_ref()?))) {
        match faults.iter_mut().find(|(f, _)| *f == fault) {
            Some((_, ranks)) => ranks.push(rank),
            None => faults.push((fault, vec![rank])),
        }
    }
    let code = faults.first()?.0.code();
    let texts: Vec<String> =
        faults.iter().map(|(f, ranks)| format!("{} on ranks {ranks:?}", f.message())).collect();
    Some(Error::new(code, format!("tensor {name:?}: {}", texts.join(", "))))
}

/// Whether all requests are equal. If not, the error lists the smallest faction first.
fn agreed(name: &str, requests: &BTreeMap<u32, TensorRequest>) -> Result<()> {
    if let Some(fault) = fault(name, requests) {
        return Err(fault);
    }
    let mut opinions: Vec<(&TensorRequest, Vec<u32>)> = Vec::new();
    for (&rank, request) in requests {
        match opinions.iter_mut().find(|(r, _)| r.agrees_with(request)) {
            Some((_, ranks)) => ranks.push(rank),
            None => opinions.push((request, vec![rank])),
        }
    }
    if let [(request, _)] = opinions.as_slice() {
        // A root that submitted and then joined has its values here.
        if request.kind == OperationKind::Broadcast && !requests.contains_key(&request.root) {
            bail!(
                FailedPrecondition,
                "tensor {name:?} is to be broadcast from rank {}, which has joined",
                request.root
            );
        }
        return Ok(());
    }
    opinions.sort_by_key(|(_, ranks)| ranks.len());
    let texts: Vec<String> =
        opinions.iter().map(|(r, ranks)| format!("ranks {ranks:?} want {r}")).collect();
    bail!(InvalidArgument, "ranks do not agree on tensor {name:?}: {}", texts.join(", "))
}

#[cfg(test)]
mod tests;
