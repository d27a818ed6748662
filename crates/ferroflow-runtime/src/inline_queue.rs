//! Turns of threads that have other things to do than to run nodes, such as serving the network.
//!
//! What async kernels finish during such a turn goes on at its end, on the same thread, and is given away as
//! soon as there is more to do than such a thread should. To wake another one takes longer than most of what
//! there is to do: a value that arrived, a token that somebody waited for in a queue.

use ferroflow_core::Spawn;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// What is left to do. It is told whether it is done within a turn.
type Rest = Box<dyn FnOnce(bool) + Send>;

/// As much is done at the end of one turn; the others of the thread have waited long enough then.
const MOST_RESTS: usize = 64;

thread_local! {
    /// None outside of turns.
    static RESTS: RefCell<Option<VecDeque<(Arc<dyn Spawn>, Rest)>>> = const { RefCell::new(None) };
}

/// Takes a turn. Within another one it is a part of that.
pub fn on_network_thread<R>(work: impl FnOnce() -> R) -> R {
    let is_part = RESTS.with_borrow_mut(|rests| match rests {
        Some(_) => true,
        none => {
            *none = Some(VecDeque::new());
            false
        }
    });
    let _turn = if is_part { None } else { Some(Turn) };
    work()
}

/// Leaves `rest` to the end of this thread's turn; outside of one, to `threads`.
pub(crate) fn go_on(threads: &Arc<dyn Spawn>, rest: Rest) {
    let left = RESTS.with_borrow_mut(|rests| match rests {
        Some(rests) => {
            rests.push_back((threads.clone(), rest));
            None
        }
        None => Some(rest),
    });
    if let Some(rest) = left {
        threads.spawn(Box::new(move || rest(false)));
    }
}

/// A turn, which ends when this is dropped.
struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        let next = || RESTS.with_borrow_mut(|rests| rests.as_mut().and_then(VecDeque::pop_front));
        // A thread that unwinds has enough to do.
        let most = if std::thread::panicking() { 0 } else { MOST_RESTS };
        for _ in 0..most {
            match next() {
                Some((_, rest)) => rest(true),
                None => break,
            }
        }
        let others = RESTS.with_borrow_mut(Option::take).unwrap_or_default();
        for (threads, rest) in others {
            threads.spawn(Box::new(move || rest(false)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// Keeps what it is given.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

    impl Spawn for Kept {
        fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
            self.0.lock().push(work);
        }
        fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
            self.spawn(work);
        }
    }

    /// Notes its number and whether it is within a turn, and leaves the numbers below to be done after it.
    fn countdown(threads: Arc<dyn Spawn>, seen: Arc<Mutex<Vec<(usize, bool)>>>, n: usize) {
        let to = threads.clone();
        go_on(
            &threads,
            Box::new(move |in_turn| {
                seen.lock().push((n, in_turn));
                if n > 0 {
                    countdown(to, seen, n - 1);
                }
            }),
        );
    }

    #[test]
    fn what_is_left_is_done_at_the_end_of_the_turn_in_order() {
        let kept = Arc::new(Kept::default());
        let threads: Arc<dyn Spawn> = kept.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        on_network_thread(|| {
            countdown(threads.clone(), seen.clone(), 2);
            on_network_thread(|| countdown(threads.clone(), seen.clone(), 0));
            assert!(seen.lock().is_empty(), "the turn is not over");
        });
        assert_eq!(*seen.lock(), [(2, true), (0, true), (1, true), (0, true)]);
        assert!(kept.0.lock().is_empty());
    }

    #[test]
    fn a_turn_does_not_last_for_ever_and_nothing_is_lost() {
        let kept = Arc::new(Kept::default());
        let threads: Arc<dyn Spawn> = kept.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        on_network_thread(|| countdown(threads.clone(), seen.clone(), 10 * MOST_RESTS));
        assert_eq!((seen.lock().len(), kept.0.lock().len()), (MOST_RESTS, 1));
        loop {
            // Outside of a turn, each is given to the threads.
            let Some(work) = kept.0.lock().pop() else { break };
            work();
        }
        let seen = seen.lock();
        assert_eq!(seen.len(), 10 * MOST_RESTS + 1);
        assert!(seen.iter().skip(MOST_RESTS).all(|(_, in_turn)| !in_turn));
    }

    #[test]
    fn what_a_panic_leaves_is_given_away() {
        let kept = Arc::new(Kept::default());
        let threads: Arc<dyn Spawn> = kept.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let turn = std::panic::AssertUnwindSafe(|| {
            on_network_thread(|| {
                countdown(threads.clone(), seen.clone(), 0);
                panic!("on purpose");
            })
        });
        assert!(std::panic::catch_unwind(turn).is_err());
        assert_eq!((seen.lock().len(), kept.0.lock().len()), (0, 1));
    }
}
