//! The coordinator's thread on rank 0. It receives the messages of all ranks, sends decisions, and
//! keeps the ranks busy.

use super::coordinator::{Coordinator, Packing};
use super::mailbox::{Mailbox, panicked};
use super::options::{EngineOptions, EngineStats};
use super::request::{Decision, IN_A_FRAME, RankMessage};
use super::tuner::Tuner;
use crate::control::Control;
use crate::environment::{is_verbose, print_note};
use ferroflow_core::Result;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

pub(super) enum CoordinatorEvent {
    /// Messages of a rank, encoded.
    Messages(u32, Vec<u8>),
    /// A rank closed its connection properly.
    Gone(u32),
    /// Rank 0 has run a collective of this many bytes.
    Ran(u64),
    /// The runner of rank 0 has ended.
    Ended,
}

/// Most collectives that are decided but not yet run by rank 0. Two keep the ranks busy. With few,
/// an urgent tensor runs soon, and small tensors have time to be fused.
const AHEAD: usize = 2;

pub(super) fn coordinate(
    size: usize,
    sets: Vec<Vec<u32>>,
    options: EngineOptions,
    control: Arc<Control>,
    mailbox: Arc<Mailbox>,
    inbox: Receiver<CoordinatorEvent>,
    stats: Arc<Mutex<EngineStats>>,
) {
    let mut thread = Thread {
        gone: Vec::new(),
        coordinator: Coordinator::new(size, sets),
        tuner: Tuner::new(),
        ahead: 0,
        busy_since: Instant::now(),
        options,
        verbose: is_verbose(),
        control,
        mailbox,
        stats,
    };
    // Fail the group even after a panic, so that no rank waits for decisions.
    let work = AssertUnwindSafe(|| thread.work(&inbox));
    if let Err(e) = catch_unwind(work).unwrap_or_else(|p| Err(panicked("the coordinator", &*p))) {
        thread.control.fail(e);
    }
}

struct Thread {
    /// Ranks that closed their connections and receive nothing more.
    gone: Vec<u32>,
    coordinator: Coordinator,
    tuner: Tuner,
    ahead: usize,
    busy_since: Instant,
    options: EngineOptions,
    verbose: bool,
    control: Arc<Control>,
    mailbox: Arc<Mailbox>,
    stats: Arc<Mutex<EngineStats>>,
}

impl Thread {
    fn work(&mut self, inbox: &Receiver<CoordinatorEvent>) -> Result<()> {
        loop {
            let first = match inbox.recv_timeout(self.idle_time()) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            for event in first.into_iter().chain(inbox.try_iter()) {
                if let CoordinatorEvent::Ended = event {
                    return Ok(());
                }
                self.take(event)?;
            }
            for (rank, lag) in self.coordinator.last_ranks() {
                if let Some(metrics) = &self.options.metrics {
                    metrics.was_last(rank, lag);
                }
            }
            let now = Instant::now();
            let EngineOptions { stall_warning, stall_deadline, .. } = self.options;
            for text in self.coordinator.stalled(now, stall_warning, stall_deadline) {
                // Print it, because not every job has a log.
                print_note(&text);
            }
            let mut decisions = self.coordinator.decisions();
            let packing = self.packing();
            while self.ahead < AHEAD {
                let Some(run) = self.coordinator.next(&packing, now) else { break };
                if let Decision::Run { pieces, .. } = &run {
                    let mut stats = self.stats.lock();
                    stats.runs += 1;
                    stats.pieces += pieces.len() as u64;
                }
                if self.ahead == 0 {
                    self.busy_since = now;
                }
                self.ahead += 1;
                // Send new numbers before the decision that uses them.
                decisions.extend(self.coordinator.decisions());
                decisions.push(run);
            }
            self.send(decisions)?;
            let mut stats = self.stats.lock();
            (stats.cache_hits, stats.cache_misses) =
                (self.coordinator.hits, self.coordinator.misses);
            (stats.fusion, stats.cycle) = (packing.fusion, packing.cycle);
        }
    }

    fn take(&mut self, event: CoordinatorEvent) -> Result<()> {
        match event {
            CoordinatorEvent::Messages(rank, bytes) => {
                for message in RankMessage::decode_all(&bytes)? {
                    self.coordinator.message(rank, message, Instant::now())?;
                }
            }
            CoordinatorEvent::Gone(rank) => {
                self.gone.push(rank);
                self.coordinator.gone(rank, Instant::now())?;
            }
            CoordinatorEvent::Ran(bytes) => {
                self.ahead = self.ahead.saturating_sub(1);
                let now = Instant::now();
                let seconds = now.saturating_duration_since(self.busy_since).as_secs_f64();
                self.busy_since = now;
                if self.tunes() && self.tuner.ran(bytes, seconds) {
                    let settled = self.tuner.is_settled();
                    self.stats.lock().tuned = settled;
                    if self.verbose {
                        let (fusion, cycle) = self.tuner.choice();
                        let how = if settled { "keeps" } else { "tries" };
                        print_note(&format!(
                            "{how} a fusion of {fusion} bytes, cycle of {cycle:?}"
                        ));
                    }
                }
            }
            CoordinatorEvent::Ended => {}
        }
        Ok(())
    }

    fn tunes(&self) -> bool {
        self.options.fusion.is_none() && !self.options.deterministic
    }

    fn packing(&self) -> Packing {
        let (fusion, cycle) = self.options.fusion.unwrap_or_else(|| self.tuner.choice());
        Packing { fusion, cycle, piece: self.options.piece, alone: self.options.deterministic }
    }

    /// How long the thread may sleep if no event arrives.
    fn idle_time(&self) -> Duration {
        let now = Instant::now();
        let idle = match self.coordinator.is_waiting() {
            true => self.options.stall_warning.min(self.options.stall_deadline) / 4,
            false => Duration::from_secs(60),
        };
        let idle = idle.clamp(Duration::from_millis(1), Duration::from_secs(60));
        match self.coordinator.due(&self.packing(), now).filter(|_| self.ahead < AHEAD) {
            Some(due) => due.saturating_duration_since(now).min(idle),
            None => idle,
        }
    }

    fn send(&mut self, decisions: Vec<Decision>) -> Result<()> {
        if decisions.is_empty() {
            return Ok(());
        }
        for bytes in decisions.chunks(IN_A_FRAME).map(Decision::encode_all) {
            for (rank, e) in self.control.send_down(&bytes) {
                // A rank that has left may close its connection at any time.
                if !self.coordinator.has_left(rank as u32) && !self.gone.contains(&(rank as u32)) {
                    return Err(e);
                }
            }
        }
        self.mailbox.deliver(decisions);
        Ok(())
    }
}
