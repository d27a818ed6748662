//! A sample of calls with TensorFlow's recorded answers: `tests/data/recorded.bin.gz`, written by
//! `cargo xtask oracle --record` with TensorFlow 2.15.1.

use ferroflow::graph::default_catalog;
use ferroflow_core::{CountedHeap, set_memory_limit};
use ferroflow_oracle::answer::FerroflowTask;
use ferroflow_oracle::explained::Explained;
use ferroflow_oracle::hostile::hostile_calls;
use ferroflow_oracle::record::{RecordedAnswer, Records};
use ferroflow_oracle::report::Report;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn recorded() -> Records {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded.bin.gz");
    Records::open(&path).expect("the sample")
}

#[test]
fn recorded_calls_give_the_answers_of_tensorflow() {
    let ours = FerroflowTask::default();
    let mut report = Report::new(Explained::load().unwrap());
    let mut ops = BTreeSet::new();
    for case in recorded() {
        let case = case.unwrap();
        report.add(&case, &ours.answer(&case));
        ops.insert(case.op);
    }
    let registered = default_catalog();
    let gone: Vec<_> = ops.iter().filter(|op| registered.get(op).is_none()).collect();
    assert!(gone.is_empty(), "recorded but no longer there: {gone:?}");
    assert!(ops.len() >= 1100, "only {} ops are recorded", ops.len());
    assert!(report.is_clean(), "{}", report.text(&ops));
}

/// Counts the heap as a server does, and keeps its peak.
struct Meter(CountedHeap<System>);

#[global_allocator]
static HEAP: Meter = Meter(CountedHeap(System));

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to `CountedHeap` unchanged. Counting neither allocates nor panics.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        PEAK.fetch_max(before.saturating_add(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { self.0.dealloc(ptr, layout) }
    }
}

/// Panics of all threads, caught ones included.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Bytes that tensors may use.
const MEMORY: usize = 64 << 20;
/// Bytes of the heap that one call may take beside them.
const HEAP_ONLY: usize = 128 << 20;
/// A call is cancelled after the first of these, and must have ended after the second.
const TIMEOUT: Duration = Duration::from_millis(50);
const HANG: Duration = Duration::from_secs(20);

/// Tries one call of each op, with one change in eight. `FERROFLOW_HOSTILE=STEP,FIRST` tries one in
/// `STEP`, from number `FIRST` on, and names each before it runs; 1 tries all of all calls.
#[test]
#[ignore = "loops of millions of iterations take minutes"]
fn calls_with_extreme_numbers_fail_and_do_no_harm() {
    let wanted = std::env::var("FERROFLOW_HOSTILE").ok();
    let number = |text: &str| text.parse::<usize>().expect("FERROFLOW_HOSTILE=STEP,FIRST");
    let (step, from) = match wanted.as_deref().and_then(|text| text.split_once(',')) {
        Some((step, from)) => (number(step), number(from)),
        None => (8, 0),
    };
    set_memory_limit(MEMORY);
    let own = std::thread::current().id();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.lock().unwrap().push(info.to_string());
        // It may be one of the test itself.
        if std::thread::current().id() == own {
            usual(info);
        }
    }));
    let ours = FerroflowTask::default().with_timeout(TIMEOUT);
    let (mut seen, mut calls, mut findings) = (BTreeSet::new(), 0, Vec::new());
    for case in recorded() {
        let case = case.unwrap();
        let is_new = seen.insert(case.op.clone());
        if !(is_new || step == 1) || !matches!(case.theirs, RecordedAnswer::Values(_)) {
            continue;
        }
        // Other changes for each op.
        for call in hostile_calls(&case).iter().skip(seen.len() % step).step_by(step) {
            calls += 1;
            if calls <= from {
                continue;
            }
            let name = format!("{} {}: {}", case.op, case.types, call.change);
            if wanted.is_some() {
                eprintln!("{calls} {name}");
            }
            let (held, began) = (IN_USE.load(Ordering::Relaxed), Instant::now());
            PEAK.store(held, Ordering::Relaxed);
            // Any answer is fine, and so is any error.
            let _ = ours.answer(&call.case);
            let took = began.elapsed();
            let heap = PEAK.load(Ordering::Relaxed).saturating_sub(held);
            if heap > HEAP_ONLY {
                findings.push(format!("{name}: took {} MiB of the heap", heap >> 20));
            }
            if took > HANG || wanted.is_some() && took > HANG / 20 {
                findings.push(format!("{name}: ended after {took:?}"));
            }
            let panics = std::mem::take(&mut *PANICS.lock().unwrap());
            findings.extend(panics.into_iter().map(|text| format!("{name}: {text}")));
        }
    }
    let _ = std::panic::take_hook();
    println!("{calls} calls of {} ops", seen.len());
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    assert!(calls > 1000 || wanted.is_some(), "only {calls} calls");
}
