//! Links between threads of one process, for tests, with faults on request.

use super::Mesh;
use ferroflow_core::{Result, err};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// The faults on the links of [`in_process`] groups. They are reproducible.
#[derive(Clone, Copy, Debug)]
pub struct MeshFaults {
    /// The seed of the random numbers.
    pub seed: u64,
    /// Each transfer moves a random number of bytes, at most this many.
    pub most_bytes: usize,
    /// How many of 256 transfers find the stream full or empty although it is not.
    pub delays: u8,
    /// This rank dies after it has moved this many bytes.
    pub kill: Option<(usize, u64)>,
}

impl Default for MeshFaults {
    fn default() -> MeshFaults {
        MeshFaults { seed: 0, most_bytes: usize::MAX, delays: 0, kill: None }
    }
}

/// Bytes that a stream holds before it is full.
const ROOM: usize = 256 << 10;

struct Shared {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// `streams[from * size + to]`
    streams: Vec<VecDeque<u8>>,
    /// Ranks that are gone, in the order in which they left.
    gone: Vec<usize>,
}

struct InProcess {
    rank: usize,
    shared: Arc<Shared>,
    faults: MeshFaults,
    random: fastrand::Rng,
    moved: u64,
}

/// The meshes of `size` ranks in this process. Dropping a mesh means that its rank has died.
pub fn in_process(size: usize, faults: MeshFaults) -> Vec<Box<dyn Mesh>> {
    let streams = (0..size * size).map(|_| VecDeque::new()).collect();
    let state = Mutex::new(State { streams, gone: Vec::new() });
    let shared = Arc::new(Shared { size, state, changed: Condvar::new() });
    (0..size)
        .map(|rank| {
            let random = fastrand::Rng::with_seed(faults.seed ^ (rank as u64) << 32);
            let shared = shared.clone();
            Box::new(InProcess { rank, shared, faults, random, moved: 0 }) as Box<dyn Mesh>
        })
        .collect()
}

impl InProcess {
    /// How many of `wanted` bytes this transfer may move. An error if this rank dies now.
    fn allowed(&mut self, wanted: usize) -> Result<usize> {
        if let Some((rank, after)) = self.faults.kill
            && rank == self.rank
            && self.moved >= after
        {
            self.leave();
            return Err(err!(Unavailable, "rank {rank} died"));
        }
        if self.random.u8(..) < self.faults.delays {
            return Ok(0);
        }
        let most = wanted.min(self.faults.most_bytes);
        let few = self.faults.most_bytes == usize::MAX;
        Ok(if few || most == 0 { most } else { self.random.usize(1..=most) })
    }

    fn leave(&self) {
        let mut state = self.shared.state.lock();
        if !state.gone.contains(&self.rank) {
            state.gone.push(self.rank);
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl State {
    /// Fails if a rank is gone, and names the first one.
    fn check(&self, me: usize) -> Result<()> {
        match self.gone.first() {
            Some(&rank) if rank != me => Err(err!(Unavailable, "rank {rank} died")),
            _ => Ok(()),
        }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Mesh for InProcess {
    fn name(&self) -> &'static str {
        "in-process"
    }

    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize> {
        let allowed = self.allowed(head.len() + body.len())?;
        let mut state = self.shared.state.lock();
        // A rank that has left is an error only for ranks that still send to it.
        if state.gone.contains(&to) {
            state.check(self.rank)?;
        }
        let stream = &mut state.streams[self.rank * self.shared.size + to];
        let taken = allowed.min(ROOM.saturating_sub(stream.len()));
        stream.extend(head.iter().chain(body).take(taken));
        drop(state);
        self.moved += taken as u64;
        if taken > 0 {
            self.shared.changed.notify_all();
        }
        Ok(taken)
    }

    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize> {
        let allowed = self.allowed(into.len())?;
        let mut state = self.shared.state.lock();
        let stream = &mut state.streams[from * self.shared.size + self.rank];
        let taken = allowed.min(stream.len());
        into.iter_mut().zip(stream.drain(..taken)).for_each(|(i, b)| *i = b);
        let dry = taken == 0 && stream.is_empty();
        if dry && state.gone.contains(&from) {
            state.check(self.rank)?;
        }
        drop(state);
        self.moved += taken as u64;
        if taken > 0 {
            self.shared.changed.notify_all();
        }
        Ok(taken)
    }

    fn wait(&mut self, sending: &[usize], receiving: &[usize], until: Instant) -> Result<()> {
        let size = self.shared.size;
        let mut state = self.shared.state.lock();
        loop {
            let room = sending.iter().any(|&to| {
                state.streams[self.rank * size + to].len() < ROOM || state.gone.contains(&to)
            });
            let bytes = receiving.iter().any(|&from| {
                !state.streams[from * size + self.rank].is_empty() || state.gone.contains(&from)
            });
            if room || bytes || self.shared.changed.wait_until(&mut state, until).timed_out() {
                return Ok(());
            }
        }
    }

    fn pause(&self, _looks: u32) -> bool {
        false
    }
}
