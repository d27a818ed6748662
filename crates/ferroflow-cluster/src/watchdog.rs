//! Reports network threads that are stuck: a network thread must not block, since many connections
//! wait for it.
//!
//! Each network thread notes that it parks, wakes up, or goes on to another connection. A thread of
//! the watchdog looks for those that are awake and have not moved.

use parking_lot::Mutex;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// A thread that has not moved for this long is stuck.
const STUCK: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The state of a network thread.
struct ThreadBeat {
    id: i32,
    is_parked: AtomicBool,
    beats: AtomicU64,
    has_ended: AtomicBool,
}

static THREADS: Mutex<Vec<Arc<ThreadBeat>>> = Mutex::new(Vec::new());

thread_local! {
    static BEAT: OnceCell<Arc<ThreadBeat>> = const { OnceCell::new() };
}

/// A thread of a network runtime has started. Starts the watchdog with the first one.
pub(crate) fn started() {
    static WATCHDOG: Once = Once::new();
    WATCHDOG.call_once(|| {
        let watchdog = std::thread::Builder::new().name("ff-watchdog".into());
        if let Err(e) = watchdog.spawn(watch) {
            tracing::warn!("network threads are not watched: {e}");
        }
    });
    let beat = Arc::new(ThreadBeat {
        id: rustix::thread::gettid().as_raw_nonzero().get(),
        // Threads of the same runtime that may block never wake up from parking.
        is_parked: AtomicBool::new(true),
        beats: AtomicU64::new(0),
        has_ended: AtomicBool::new(false),
    });
    THREADS.lock().push(beat.clone());
    BEAT.with(|known| drop(known.set(beat)));
}

pub(crate) fn ended() {
    with_beat(|beat| beat.has_ended.store(true, Ordering::Relaxed));
}

/// This thread is about to wait for events.
pub(crate) fn parks() {
    with_beat(|beat| beat.is_parked.store(true, Ordering::Relaxed));
}

/// This thread has events.
pub(crate) fn wakes() {
    with_beat(|beat| {
        beat.beats.fetch_add(1, Ordering::Relaxed);
        beat.is_parked.store(false, Ordering::Relaxed);
    });
}

/// This thread goes on to another connection, or to the next bytes of one.
pub(crate) fn moves() {
    with_beat(|beat| {
        let beats = beat.beats.load(Ordering::Relaxed);
        // Only this thread writes it.
        beat.beats.store(beats.wrapping_add(1), Ordering::Relaxed);
    });
}

fn with_beat(note: impl FnOnce(&ThreadBeat)) {
    // Not available while a thread exits.
    let _ = BEAT.try_with(|beat| beat.get().map(|beat| note(beat)));
}

/// A thread, as the watchdog last saw it.
struct Watched {
    beat: Arc<ThreadBeat>,
    beats: u64,
    since: Instant,
    is_reported: bool,
}

impl Watched {
    fn new(beat: Arc<ThreadBeat>) -> Watched {
        Watched { beats: 0, since: Instant::now(), is_reported: false, beat }
    }

    /// Looks at the thread. Returns how long it has been stuck, if it is.
    fn look(&mut self, limit: Duration) -> Option<Duration> {
        let beats = self.beat.beats.load(Ordering::Relaxed);
        if beats != self.beats || self.beat.is_parked.load(Ordering::Relaxed) {
            (self.beats, self.since) = (beats, Instant::now());
            return None;
        }
        Some(self.since.elapsed()).filter(|stuck| *stuck >= limit)
    }

    fn report(&mut self) {
        let id = self.beat.id;
        match self.look(STUCK) {
            Some(_) if self.is_reported => {}
            Some(stuck) => {
                self.is_reported = true;
                let place = place_of(id);
                tracing::error!(
                    thread = id,
                    "a network thread has not moved for {stuck:?}: {place}"
                );
            }
            None if self.is_reported => {
                self.is_reported = false;
                tracing::error!(thread = id, "the network thread moves again");
            }
            None => {}
        }
    }
}

fn watch() {
    let mut watched: Vec<Watched> = Vec::new();
    loop {
        std::thread::sleep(LOOK_EVERY);
        watched.retain(|thread| !thread.beat.has_ended.load(Ordering::Relaxed));
        watched.extend(THREADS.lock().drain(..).map(Watched::new));
        watched.iter_mut().for_each(Watched::report);
    }
}

/// The activity of a thread, from the kernel: its system call, or that it runs.
fn place_of(id: i32) -> String {
    let read = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/self/task/{id}/{file}"));
        text.ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
    };
    match (read("syscall"), read("wchan")) {
        (Some(call), _) if call.starts_with("running") => "it computes".into(),
        (Some(call), place) => {
            let number = call.split(' ').next().unwrap_or_default();
            format!("in system call {number} at {}", place.unwrap_or_default())
        }
        (None, Some(place)) => format!("at {place}"),
        (None, None) => "its place is not known".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_network_thread_that_blocks_is_stuck_until_it_moves() {
        let (id_sender, id) = channel();
        let (go, blocked) = channel::<()>();
        let thread = std::thread::spawn(move || {
            started();
            let own = BEAT.with(|beat| beat.get().unwrap().clone());
            wakes();
            id_sender.send(own).unwrap();
            blocked.recv().unwrap();
            parks();
        });
        let mut watched = Watched::new(id.recv().unwrap());
        assert_eq!(watched.look(Duration::ZERO), None, "it has just woken up");
        assert!(watched.look(Duration::ZERO).is_some());
        assert!(watched.look(Duration::from_secs(3600)).is_none());
        assert_ne!(place_of(watched.beat.id), "");
        go.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(watched.look(Duration::ZERO), None, "it waits for events");
    }
}
