//! Groups of many ranks, which are threads of this process, and links over UCX. Each group connects
//! as processes do.
#![allow(clippy::unwrap_used)]

use ferroflow_collective::ucx::{UcxPipe, UcxPort};
use ferroflow_collective::{
    Engine, EngineOptions, Group, GroupOptions, LinkCostModel, Membership, ReduceOp, SubmitOptions,
    TransportChoice,
};
use ferroflow_testing::needs::Need;
use ferroflow_testing::{trial, trials};
use std::net::TcpListener;
use std::sync::{Barrier, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Memory and descriptors for a thousand ranks.
const ROOM: Need = Need { missing: no_room };
/// The library of UCX.
const UCX: Need = Need { missing: no_ucx };

fn main() {
    trials::run(&[
        trial!(a_thousand_ranks_reduce_4_mb, ROOM),
        trial!(groups_of_any_size_share_memory),
        trial!(engines_agree_through_a_tree),
        trial!(a_rank_that_dies_below_another_is_named_on_all),
        trial!(ucx_carries_the_values_of_ranks, UCX),
        trial!(a_pipe_over_ucx_keeps_order_and_waits_for_its_reader, UCX),
        trial!(a_pipe_over_ucx_ends_with_either_end, UCX),
        trial!(ranks_without_ucx_use_tcp),
    ]);
}

/// The first number behind `name` in a file of /proc.
fn kilobytes(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn no_room() -> Option<String> {
    const GIGABYTES: u64 = 9;
    let free = kilobytes("/proc/meminfo", "MemAvailable:") >> 20;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let hard = files.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    match hard {
        Some(hard) if hard < 15_000 => Some(format!("only {hard} descriptors are allowed")),
        _ if free < GIGABYTES => Some(format!("{free} GB of memory are free, {GIGABYTES} needed")),
        _ => None,
    }
}

/// Whether a group over UCX is possible here: two ranks try.
fn no_ucx() -> Option<String> {
    let links = on_ranks(2, TransportChoice::Ucx, |group| group.transport());
    (links[0] != "ucx").then(|| "no UCX: install libucx0".into())
}

/// Runs `each` on every rank, after all have connected.
fn on_ranks<R: Send>(
    n: usize,
    transport: TransportChoice,
    each: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Mutex::new(Some(listener));
    let connected = Barrier::new(n);
    let rank = |rank: usize| {
        let mut member = Membership::new(rank, n, address.clone());
        member.transport = transport;
        member.timeout = Duration::from_secs(300);
        member.liveness_timeout = Duration::from_secs(120);
        let model = Some(LinkCostModel::default());
        let timeout = Duration::from_secs(300);
        let options = GroupOptions { model, timeout, ..GroupOptions::default() };
        let group = match rank {
            0 => Group::host(&member, options, listener.lock().unwrap().take().unwrap()),
            _ => Group::join(&member, options),
        };
        connected.wait();
        each(group.unwrap())
    };
    std::thread::scope(|scope| {
        let small = || std::thread::Builder::new().stack_size(512 << 10);
        let start = |number: usize| {
            let rank = &rank;
            small().spawn_scoped(scope, move || rank(number)).unwrap()
        };
        let ranks: Vec<_> = (0..n).map(start).collect();
        ranks.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn a_thousand_ranks_reduce_4_mb() {
    const RANKS: usize = 1000;
    const VALUES: usize = 1 << 20;
    let (before, started) = (descriptors(), Instant::now());
    let value = |i: usize| i as i32 % 1000;
    let want: Vec<i32> = (0..VALUES).map(|i| value(i) * RANKS as i32).collect();
    let own: Vec<i32> = (0..VALUES).map(value).collect();
    let (ready, measured) = (Barrier::new(RANKS), Barrier::new(RANKS));
    let figures = on_ranks(RANKS, TransportChoice::Auto, |mut group| {
        ready.wait();
        let used = (descriptors() - before).div_ceil(RANKS);
        let start_up = started.elapsed();
        measured.wait();
        let mut values = own.clone();
        let begun = Instant::now();
        group.all_reduce(&mut values, ReduceOp::Sum).unwrap();
        let reduced = begun.elapsed();
        assert!(values == want, "rank {} has a wrong sum", group.rank());
        let how = format!("{} over {}", group.algorithm_for(VALUES * 4), group.transport());
        (used, start_up, reduced, how)
    });
    let (used, start_up, reduced, how) = &figures[0];
    let resident = kilobytes("/proc/self/status", "VmHWM:") / RANKS as u64;
    println!(
        "{RANKS} ranks, {how}: start-up {start_up:.1?}, 4 MB in {reduced:.1?}; {used} descriptors \
         and {resident} KB of memory for each rank, with its 4 MB"
    );
    assert!(*used < 64, "{used} descriptors for each rank");
}

fn groups_of_any_size_share_memory() {
    for n in [24, 33, 41] {
        on_ranks(n, TransportChoice::Shared, |mut group| {
            let mut values: Vec<f32> = (0..70_001).map(|i| (i % 100) as f32).collect();
            group.all_reduce(&mut values, ReduceOp::Sum).unwrap();
            assert!((0..70_001).all(|i| values[i] == ((i % 100) * n) as f32), "{n} ranks");
            let mut few = [group.rank() as f32];
            group.all_reduce(&mut few, ReduceOp::Max).unwrap();
            assert_eq!(few[0], (n - 1) as f32);
            group.barrier().unwrap();
        });
    }
}

/// More ranks than one star of control connections has.
const IN_A_TREE: usize = 80;

fn engines_agree_through_a_tree() {
    let sums = on_ranks(IN_A_TREE, TransportChoice::Auto, |group| {
        let engine = Engine::start(group, EngineOptions::default()).unwrap();
        let submit = |i: usize| {
            let values = vec![(engine.rank() + i) as f32; 100 * i + 1];
            let sum = SubmitOptions::op(ReduceOp::Sum);
            engine.all_reduce(&i.to_string(), values, sum).unwrap()
        };
        // Ranks submit in different orders.
        let order = |i: usize| (i + engine.rank()) % 3;
        let mut handles: Vec<_> = (0..3).map(|i| (order(i), submit(order(i)))).collect();
        handles.sort_by_key(|(i, _)| *i);
        handles.into_iter().map(|(_, handle)| handle.wait().unwrap()[0]).collect::<Vec<_>>()
    });
    let ranks = (0..IN_A_TREE).sum::<usize>();
    let want: Vec<f32> = (0..3).map(|i| (ranks + i * IN_A_TREE) as f32).collect();
    assert!(sums.iter().all(|sum| *sum == want), "{sums:?}");
}

fn a_rank_that_dies_below_another_is_named_on_all() {
    for transport in [TransportChoice::Tcp, TransportChoice::Shared] {
        // Rank 70 reaches rank 0 through rank 8.
        let errors = on_ranks(IN_A_TREE, transport, |mut group| {
            if group.rank() == 70 {
                group.aborter().abort(ferroflow_core::err!(Aborted, "rank 70 gave up"));
                return "rank 70 gave up".to_string();
            }
            let mut values = vec![1.0f32; 10_000];
            let mut reduce = || group.all_reduce(&mut values, ReduceOp::Sum).err();
            (0..10).find_map(|_| reduce()).unwrap().message().to_string()
        });
        assert!(errors.iter().all(|e| e.contains("rank 70 gave up")), "{errors:?}");
    }
}

fn ucx_carries_the_values_of_ranks() {
    for n in [2, 5] {
        on_ranks(n, TransportChoice::Ucx, |mut group| {
            assert_eq!(group.transport(), "ucx");
            for count in [0, 1, 1000, 300_000, 3_000_001] {
                let mut values: Vec<f32> = (0..count).map(|i| (i % 1000) as f32).collect();
                group.all_reduce(&mut values, ReduceOp::Sum).unwrap();
                let is_right = |i: usize| values[i] == ((i % 1000) * n) as f32;
                assert!((0..count).all(is_right), "{count} values of {n} ranks");
            }
            let mut root = [group.rank() as u64; 3];
            group.broadcast(&mut root, n - 1).unwrap();
            assert_eq!(root, [n as u64 - 1; 3]);
            group.barrier().unwrap();
        });
    }
}

/// Two ends of a pipe, with their ports.
fn pipe() -> ([UcxPort; 2], [UcxPipe; 2]) {
    let [a, b] = [UcxPort::open().unwrap(), UcxPort::open().unwrap()];
    let one = a.pipe(1, 2, b.address()).unwrap();
    let other = b.pipe(2, 1, a.address()).unwrap();
    ([a, b], [one, other])
}

/// Polls until the result is there.
fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn a_pipe_over_ucx_keeps_order_and_waits_for_its_reader() {
    const TOTAL: usize = 40_000_000;
    let byte = |i: usize| (i ^ (i >> 8) ^ (i >> 16)) as u8;
    let (_ports, [writer, reader]) = pipe();
    // No more than a window is sent before anything was read.
    let waker = std::task::Waker::noop();
    let (mut context, mut sent) = (Context::from_waker(waker), 0);
    let some = |from: usize| -> Vec<u8> {
        (from..(from + 1 + from % 3_000_000).min(TOTAL)).map(byte).collect()
    };
    while let Poll::Ready(n) = writer.poll_write(&mut context, &some(sent)) {
        sent += n.unwrap();
    }
    assert!(sent > 0 && sent < TOTAL, "{sent}");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while sent < TOTAL {
                let bytes = some(sent);
                sent += block_on(|cx| writer.poll_write(cx, &bytes)).unwrap();
            }
        });
        let (mut read, mut into) = (0, vec![0; 777_777]);
        loop {
            let len = 1 + read % into.len();
            let n = block_on(|cx| reader.poll_read(cx, &mut into[..len])).unwrap();
            if n == 0 {
                break;
            }
            assert!(into[..n].iter().enumerate().all(|(i, b)| *b == byte(read + i)), "{read}");
            read += n;
        }
        assert_eq!(read, TOTAL);
    });
}

fn a_pipe_over_ucx_ends_with_either_end() {
    let (_ports, [one, other]) = pipe();
    assert_eq!(block_on(|cx| one.poll_write(cx, b"last words")).unwrap(), 10);
    drop(one);
    let mut into = [0; 100];
    assert_eq!(block_on(|cx| other.poll_read(cx, &mut into)).unwrap(), 10);
    assert_eq!(block_on(|cx| other.poll_read(cx, &mut into)).unwrap(), 0);
    assert!(block_on(|cx| other.poll_write(cx, b"x")).is_err());
}

fn ranks_without_ucx_use_tcp() {
    // One rank has another choice, as if its host had no UCX.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let join = |rank: usize, listener: Option<TcpListener>| {
        let mut member = Membership::new(rank, 2, address.clone());
        member.transport = if rank == 0 { TransportChoice::Ucx } else { TransportChoice::Tcp };
        let options =
            GroupOptions { model: Some(LinkCostModel::default()), ..GroupOptions::default() };
        let mut group = match listener {
            Some(listener) => Group::host(&member, options, listener).unwrap(),
            None => Group::join(&member, options).unwrap(),
        };
        let mut values = [1.0f32, 2.0];
        group.all_reduce(&mut values, ReduceOp::Sum).unwrap();
        assert_eq!((group.transport(), values), ("tcp", [2.0, 4.0]));
        group.barrier().unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| join(1, None));
        join(0, Some(listener));
    });
}
