//! Compiles kernels on several threads before a step needs them.

use ferroflow_core::{HashMap, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

/// The most threads that compile.
const MAX_THREADS: usize = 12;

type Binary = Result<Arc<[u8]>>;
type Compile = Box<dyn Fn(&str) -> Result<Vec<u8>> + Send + Sync>;

/// Binaries that are being compiled, or will be.
pub(crate) struct Preparations {
    shared: Arc<Shared>,
    hasher: RandomState,
    max_threads: usize,
}

struct Shared {
    compile: Compile,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The binary of each text, by its hash.
    known: HashMap<u64, Arc<OnceLock<Binary>>>,
    queue: VecDeque<(Arc<OnceLock<Binary>>, String)>,
    threads: usize,
}

impl Preparations {
    pub fn new(compile: impl Fn(&str) -> Result<Vec<u8>> + Send + Sync + 'static) -> Preparations {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Preparations {
            shared: Arc::new(Shared { compile: Box::new(compile), state: Mutex::default() }),
            hasher: RandomState::new(),
            max_threads: cores.min(MAX_THREADS),
        }
    }

    /// Begins to compile a text.
    pub fn begin(&self, text: &str) {
        let key = self.hasher.hash_one(text);
        let mut state = self.shared.state.lock();
        if state.known.contains_key(&key) {
            return;
        }
        let binary = Arc::<OnceLock<Binary>>::default();
        state.known.insert(key, binary.clone());
        state.queue.push_back((binary, text.to_string()));
        if state.threads < self.max_threads {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("gpu-compiler".into());
            // Without a thread the text is compiled when its kernel is loaded.
            state.threads += usize::from(thread.spawn(move || shared.run()).is_ok());
        }
    }

    /// The binary of a text. Waits if another thread compiles it.
    pub fn binary(&self, text: &str) -> Binary {
        let key = self.hasher.hash_one(text);
        let binary = self.shared.state.lock().known.entry(key).or_default().clone();
        let made = self.shared.binary(&binary, text);
        if made.is_err() {
            // Out of memory, perhaps: the next attempt may succeed.
            self.shared.state.lock().known.remove(&key);
        }
        made
    }
}

impl Shared {
    fn binary(&self, to: &OnceLock<Binary>, text: &str) -> Binary {
        to.get_or_init(|| (self.compile)(text).map(Arc::from)).clone()
    }

    fn run(&self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.queue.pop_front();
                state.threads -= usize::from(next.is_none());
                next
            };
            let Some((binary, text)) = next else { return };
            let _ = self.binary(&binary, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::err;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_text_is_compiled_once() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let prepared = Preparations::new(move |text| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(text.as_bytes().to_vec())
        });
        let texts: Vec<String> = (0..20).map(|i| format!("kernel {i}")).collect();
        texts.iter().chain(&texts).for_each(|text| prepared.begin(text));
        for text in texts.iter().chain(&texts) {
            assert_eq!(&*prepared.binary(text).unwrap(), text.as_bytes());
        }
        assert_eq!(count.load(Ordering::Relaxed), texts.len());
    }

    #[test]
    fn a_failure_is_tried_again() {
        let count = AtomicUsize::new(0);
        let prepared = Preparations::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => Err(err!(ResourceExhausted, "no memory")),
            _ => Ok(vec![1]),
        });
        assert!(prepared.binary("x").is_err());
        assert_eq!(&*prepared.binary("x").unwrap(), [1]);
    }
}
