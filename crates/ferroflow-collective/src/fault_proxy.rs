//! A TCP proxy for tests that injects faults. It splits data into odd pieces, delays it, drops it,
//! or closes the connection.

use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The proxy closes it.
    Cut,
    /// The proxy drops all data and reports nothing.
    Swallow,
}

/// The faults of a proxy. They are reproducible except for the order in which its connections carry
/// bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxyFaults {
    pub seed: u64,
    /// Each transfer moves a random number of bytes, at most this many.
    pub most_bytes: usize,
    /// One transfer in eight is delayed, up to this long.
    pub delay: Duration,
    /// After this many bytes, the fault hits the connection that carries the next byte, or all
    /// connections if the flag is set.
    pub fault: Option<(u64, Fault, bool)>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultProxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    faults: ProxyFaults,
    moved: AtomicU64,
    triggered: AtomicBool,
    all: AtomicBool,
    connections: AtomicU64,
    listeners: Mutex<Vec<SocketAddr>>,
    over: AtomicBool,
}

impl FaultProxy {
    pub fn new(faults: ProxyFaults) -> FaultProxy {
        FaultProxy(Arc::new(Shared {
            faults,
            moved: AtomicU64::new(0),
            triggered: AtomicBool::new(false),
            all: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            listeners: Mutex::default(),
            over: AtomicBool::new(false),
        }))
    }

    /// The address that leads to `address` through this proxy.
    pub fn in_front_of(&self, address: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = listener.local_addr().unwrap();
        self.0.listeners.lock().push(front);
        let shared = self.0.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                // If the target is gone, close the connection, as the target would.
                if let Ok(to) = TcpStream::connect(address) {
                    shared.carry(stream, to);
                }
            }
        });
        front
    }

    /// Accepts no more connections. Existing ones end when their peers close them.
    pub fn close(&self) {
        self.0.over.store(true, Ordering::SeqCst);
        for address in self.0.listeners.lock().drain(..) {
            let _ = TcpStream::connect(address);
        }
    }
}

impl Shared {
    fn carry(self: &Arc<Self>, a: TcpStream, b: TcpStream) {
        let _ = (a.set_nodelay(true), b.set_nodelay(true));
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        // A dropped connection drops data in both directions.
        let swallowed = Arc::new(AtomicBool::new(false));
        for (way, from, to) in [(0, &a, &b), (1, &b, &a)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let (shared, swallowed) = (self.clone(), swallowed.clone());
            let seed = self.faults.seed ^ (number * 2 + way) << 32;
            let work = move || shared.pump(from, to, fastrand::Rng::with_seed(seed), &swallowed);
            std::thread::spawn(work);
        }
    }

    /// Copies bytes from one end to the other until one of them closes.
    fn pump(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        mut random: fastrand::Rng,
        swallowed: &AtomicBool,
    ) {
        let mut buffer = vec![0; self.faults.most_bytes];
        loop {
            let most = random.usize(1..=buffer.len());
            let Ok(count @ 1..) = from.read(&mut buffer[..most]) else { break };
            if random.u8(..8) == 0 && !self.faults.delay.is_zero() {
                let micros = random.u64(..=self.faults.delay.as_micros() as u64);
                std::thread::sleep(Duration::from_micros(micros));
            }
            let moved = self.moved.fetch_add(count as u64, Ordering::SeqCst) + count as u64;
            if let Some((after, fault, all)) = self.faults.fault
                && moved >= after
            {
                let first = !self.triggered.swap(true, Ordering::SeqCst);
                if first && all {
                    self.all.store(true, Ordering::SeqCst);
                }
                let hit = first || self.all.load(Ordering::SeqCst);
                match fault {
                    Fault::Cut if hit => break,
                    Fault::Swallow if hit => swallowed.store(true, Ordering::SeqCst),
                    _ => {}
                }
            }
            if swallowed.load(Ordering::SeqCst) {
                continue;
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        // A peer learns of the end only if no data to it was dropped.
        if !swallowed.load(Ordering::SeqCst) {
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}
