//! Tests of every collective against a naive reference, on all kinds of links, and of ranks that
//! disagree, die or stay away.

mod drawn;

use super::*;
use crate::mesh::{MeshFaults, in_process};
use crate::number::NUMBERS;
use crate::rendezvous::TransportChoice;
use ferroflow_core::{Code, bf16, f16};
use ferroflow_identity::{JobAuthority, Trust, rank_role};
use proptest::prelude::*;

/// All kinds of links between processes. Tests that loop over them hold for each.
const EVERY_TRANSPORT: [TransportChoice; 2] = [TransportChoice::Tcp, TransportChoice::Shared];

/// Runs `each` on every rank of an in-process group, with one thread per rank.
fn on_ranks<R: Send>(
    n: usize,
    faults: MeshFaults,
    options: &GroupOptions,
    each: impl Fn(&mut Group) -> R + Sync,
) -> Vec<R> {
    on_hosts(&vec![0; n], faults, options, each)
}

/// The same, with the ranks on these hosts.
fn on_hosts<R: Send>(
    hosts: &[u32],
    faults: MeshFaults,
    options: &GroupOptions,
    each: impl Fn(&mut Group) -> R + Sync,
) -> Vec<R> {
    let meshes = in_process(hosts.len(), faults);
    std::thread::scope(|scope| {
        let each = &each;
        let ranks: Vec<_> = meshes
            .into_iter()
            .enumerate()
            .map(|(rank, mesh)| {
                let group = Group::new(rank, hosts.to_vec(), mesh, options.clone(), 0);
                scope.spawn(move || each(&mut { group }))
            })
            .collect();
        ranks.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

/// The same over real links, between threads that connect as processes do.
fn on_links<R: Send>(
    n: usize,
    change: impl Fn(&mut Membership) + Sync,
    each: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = parking_lot::Mutex::new(Some(listener));
    // No rank is still joining when another fails the group on purpose.
    let joined = std::sync::Barrier::new(n);
    std::thread::scope(|scope| {
        let (each, change, address, listener) = (&each, &change, &address, &listener);
        let joined = &joined;
        let ranks: Vec<_> = (0..n)
            .map(|rank| {
                scope.spawn(move || {
                    let mut member = Membership::new(rank, n, address.clone());
                    change(&mut member);
                    let options = GroupOptions::default();
                    let group = match rank {
                        0 => Group::host(&member, options, listener.lock().take().unwrap()),
                        _ => Group::join(&member, options),
                    };
                    joined.wait();
                    each(group.unwrap())
                })
            })
            .collect();
        ranks.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

fn forced(algorithm: Algorithm) -> GroupOptions {
    GroupOptions { algorithm: Some(algorithm), ..GroupOptions::default() }
}

/// Small whole numbers, so that every order of summation gives the same bits in every type.
fn small(rank: usize, i: usize) -> i64 {
    ((rank * 7 + i * 3) % 5) as i64 - i64::from(rank.is_multiple_of(2))
}

fn encode(dtype: DType, x: i64) -> Vec<u8> {
    match dtype {
        DType::Float => (x as f32).to_ne_bytes().to_vec(),
        DType::Double => (x as f64).to_ne_bytes().to_vec(),
        DType::Half => f16::from_f32(x as f32).to_ne_bytes().to_vec(),
        DType::BFloat16 => bf16::from_f32(x as f32).to_ne_bytes().to_vec(),
        DType::Int8 | DType::UInt8 => vec![x as u8],
        DType::Int16 | DType::UInt16 => (x as u16).to_ne_bytes().to_vec(),
        DType::Int32 | DType::UInt32 => (x as u32).to_ne_bytes().to_vec(),
        _ => (x as u64).to_ne_bytes().to_vec(),
    }
}

fn unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64)
}

fn input(dtype: DType, rank: usize, i: usize) -> i64 {
    let x = small(rank, i);
    if unsigned(dtype) { x.abs() } else { x }
}

/// The reduction of all ranks' `i`-th values, computed directly.
fn expected(dtype: DType, op: ReduceOp, n: usize, i: usize) -> Vec<u8> {
    let values = (0..n).map(|r| input(dtype, r, i));
    let x = match op {
        ReduceOp::Sum => values.sum(),
        ReduceOp::Mean => {
            let sum: i64 = values.sum();
            return match dtype {
                DType::Float => (sum as f32 / n as f32).to_ne_bytes().to_vec(),
                DType::Double => (sum as f64 / n as f64).to_ne_bytes().to_vec(),
                DType::Half => f16::from_f32(sum as f32 / n as f32).to_ne_bytes().to_vec(),
                DType::BFloat16 => bf16::from_f32(sum as f32 / n as f32).to_ne_bytes().to_vec(),
                _ => encode(dtype, sum / n as i64),
            };
        }
        ReduceOp::Min => values.min().unwrap(),
        ReduceOp::Max => values.max().unwrap(),
        // Products of up to nine such values fit f16 and bf16 exactly, or overflow in the same way.
        ReduceOp::Product => values.map(|v| v.signum()).product(),
    };
    encode(dtype, x)
}

/// Inputs repeat after this many values.
const PERIOD: usize = 5;

/// This many values. The `i`-th is `value(i)`, and they repeat.
fn filled(dtype: DType, count: usize, value: impl Fn(usize) -> i64) -> Vec<u8> {
    let period: Vec<u8> = (0..PERIOD).flat_map(|i| encode(dtype, value(i))).collect();
    let mut bytes = period.repeat(count.div_ceil(PERIOD));
    bytes.truncate(count * dtype.size().unwrap());
    bytes
}

/// The input of rank `rank` to a reduction.
fn operand(dtype: DType, op: ReduceOp, rank: usize, count: usize) -> Vec<u8> {
    filled(dtype, count, |i| match op {
        ReduceOp::Product => input(dtype, rank, i).signum(),
        _ => input(dtype, rank, i),
    })
}

/// Asserts that `bytes` are the reduced values of `n` ranks, starting with the `first` one.
fn assert_reduced(dtype: DType, op: ReduceOp, n: usize, first: usize, bytes: &[u8]) {
    let width = dtype.size().unwrap();
    let want: Vec<u8> = (first..first + PERIOD).flat_map(|i| expected(dtype, op, n, i)).collect();
    for (at, got) in bytes.chunks(PERIOD * width).enumerate() {
        if got == &want[..got.len()] {
            continue;
        }
        for (i, (got, want)) in got.chunks(width).zip(want.chunks(width)).enumerate() {
            // The product of zero and a negative number is negative zero, so ignore the signs of
            // zeros.
            let zero =
                |b: &[u8]| b[..width - 1].iter().all(|&x| x == 0) && b[width - 1] & 0x7F == 0;
            let fits = got == want || (dtype.is_floating() && zero(got) && zero(want));
            let i = first + at * PERIOD + i;
            assert!(fits, "{dtype} {op} of {n} ranks at {i}: {got:?}, not {want:?}");
        }
    }
}

fn check_all_reduce(group: &mut Group, dtype: DType, op: ReduceOp, count: usize) -> Result<()> {
    let mut bytes = operand(dtype, op, group.rank(), count);
    group.all_reduce_in(SetId::WORLD, dtype, &mut bytes, op)?;
    assert_reduced(dtype, op, group.size(), 0, &bytes);
    Ok(())
}

#[test]
fn every_algorithm_reduces_every_type_and_op_among_one_to_nine_ranks() {
    const MESSAGES: [Algorithm; 5] = [
        Algorithm::Ring,
        Algorithm::Doubling,
        Algorithm::HalvingDoubling,
        Algorithm::DoubleTree,
        Algorithm::Hierarchical,
    ];
    // Test two counts of each op and type, and few numbers of ranks in shared memory.
    // `FERROFLOW_CASES` tests all of them.
    const COUNTS: [usize; 5] = [0, 1, 5, 64, 131];
    let all = std::env::var_os("FERROFLOW_CASES").is_some();
    let each = |group: &mut Group| {
        let calls = NUMBERS.into_iter().flat_map(|dtype| ReduceOp::ALL.map(|op| (dtype, op)));
        for (turn, (dtype, op)) in calls.enumerate() {
            let turn = turn + turn / ReduceOp::ALL.len() + group.size();
            for i in 0..if all { COUNTS.len() } else { 2 } {
                check_all_reduce(group, dtype, op, COUNTS[(turn + i) % COUNTS.len()]).unwrap();
            }
        }
    };
    for n in 1..=9 {
        for algorithm in MESSAGES {
            // On one host, and on hosts with two ranks each. With odd n, the last host has one
            // rank.
            let layouts: &[u32] = if algorithm == Algorithm::Hierarchical { &[9, 2] } else { &[9] };
            for per_host in layouts {
                let hosts: Vec<u32> = (0..n).map(|rank| rank / per_host).collect();
                on_hosts(&hosts, MeshFaults::default(), &forced(algorithm), each);
            }
        }
    }
    for n in (2..=9).filter(|n| all || [2, 3, 9].contains(n)) {
        on_links(
            n,
            |m| m.transport = TransportChoice::Shared,
            |mut group| {
                assert_eq!(group.algorithm_for(1), Algorithm::Shared);
                each(&mut group);
                group.barrier().unwrap();
            },
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn odd_transfers_and_delays_change_nothing(
        n in 1usize..=9,
        algorithm in 0usize..5,
        dtype in 0usize..12,
        op in 0usize..5,
        count in 0usize..3000,
        most_bytes in 1usize..5000,
        hosts in proptest::collection::vec(0u32..4, 9),
        seed: u64,
    ) {
        let faults = MeshFaults { seed, most_bytes, delays: 60, kill: None };
        on_hosts(&hosts[..n], faults, &forced(Algorithm::ALL[algorithm]), |group| {
            for _ in 0..2 {
                check_all_reduce(group, NUMBERS[dtype], ReduceOp::ALL[op], count).unwrap();
            }
        });
    }

    #[test]
    fn a_rank_that_dies_is_named_by_all_or_everyone_has_the_answer(
        n in 2usize..=6,
        algorithm in 0usize..5,
        victim in 0usize..6,
        after in 0u64..60_000,
        hosts in proptest::collection::vec(0u32..3, 6),
        seed: u64,
    ) {
        let victim = victim % n;
        let faults = MeshFaults { seed, most_bytes: 700, delays: 30, kill: Some((victim, after)) };
        let results = on_hosts(&hosts[..n], faults, &forced(Algorithm::ALL[algorithm]), |group| {
            for _ in 0..4 {
                check_all_reduce(group, DType::Float, ReduceOp::Sum, 900)?;
            }
            group.barrier()
        });
        for result in results {
            if let Err(e) = result {
                prop_assert_eq!(e.code(), Code::Unavailable);
                prop_assert!(e.message().contains("rank "), "{}", e);
            }
        }
    }
}

#[test]
fn the_other_collectives_give_the_expected_values() {
    for n in 1..=9 {
        on_ranks(n, MeshFaults::default(), &GroupOptions::default(), check_family);
    }
}

fn check_family(group: &mut Group) {
    let (rank, n) = (group.rank(), group.size());
    // Reduce-scatter with uneven parts.
    let counts: Vec<usize> = (0..n).map(|r| (r * 3) % 5).collect();
    let total: usize = counts.iter().sum();
    let mut values: Vec<i32> = (0..total).map(|i| (rank * 100 + i) as i32).collect();
    let part = group.reduce_scatter(&mut values, Some(&counts), ReduceOp::Sum).unwrap();
    assert_eq!(part.start, counts[..rank].iter().sum::<usize>());
    for i in part {
        assert_eq!(values[i], (0..n).map(|r| (r * 100 + i) as i32).sum::<i32>());
    }
    // All-gather with counts that only their owners know.
    let mine: Vec<u16> = (0..rank * 2).map(|i| (rank * 10 + i) as u16).collect();
    let (all, counts) = group.all_gather_uneven(&mine).unwrap();
    let want: Vec<u16> =
        (0..n).flat_map(|r| (0..r * 2).map(move |i| (r * 10 + i) as u16)).collect();
    assert_eq!((all, counts), (want, (0..n).map(|r| r * 2).collect()));
    // A long all-gather uses the ring.
    let mut long = vec![rank as f32; n * 5000];
    group.all_gather(&mut long, None).unwrap();
    assert!(long.chunks(5000).enumerate().all(|(r, part)| part.iter().all(|&x| x == r as f32)));
    // Broadcast, short and long.
    for count in [0, 3, 40_000] {
        let root = n / 2;
        let mut values = vec![rank as f64; count];
        group.broadcast(&mut values, root).unwrap();
        assert!(values.iter().all(|&x| x == root as f64));
    }
    // Rooted reduce, short and long, to every root.
    for algorithm in [ReduceAlgorithm::Serial, ReduceAlgorithm::Tree] {
        for (root, count) in (0..n).flat_map(|root| [(root, 0), (root, 3), (root, 40_000)]) {
            let mut values: Vec<f64> = (0..count).map(|i| (rank * 10 + i) as f64).collect();
            let bytes = bytes_of_mut(&mut values);
            let (set, op) = (SetId::WORLD, ReduceOp::Mean);
            group.reduce_in(set, DType::Double, bytes, root, op, algorithm).unwrap();
            if rank == root {
                let first = (n - 1) as f64 * 5.0;
                let is_right = |(i, x): (usize, &f64)| (*x - first - i as f64).abs() < 1e-9;
                assert!(values.iter().enumerate().all(is_right), "{algorithm:?}, root {root}");
            }
        }
    }
    let mut one = [rank as i64];
    group.reduce(&mut one, n - 1, ReduceOp::Max).unwrap();
    assert!(rank != n - 1 || one == [n as i64 - 1]);
    // All-to-all: rank a sends the value 100 a + b to rank b, b + 1 times.
    let send: Vec<i64> = (0..n).flat_map(|to| vec![(100 * rank + to) as i64; to + 1]).collect();
    let send_counts: Vec<usize> = (1..=n).collect();
    let (received, counts) = group.all_to_all_uneven(&send, &send_counts).unwrap();
    assert_eq!(counts, vec![rank + 1; n]);
    let want: Vec<i64> =
        (0..n).flat_map(|from| vec![(100 * from + rank) as i64; rank + 1]).collect();
    assert_eq!(received, want);
    group.barrier().unwrap();
}

#[test]
fn process_sets_work_at_the_same_time() {
    on_ranks(5, MeshFaults::default(), &GroupOptions::default(), |group| {
        let odd = group.add_set(&[1, 3]).unwrap();
        let even = group.add_set(&[4, 0, 2]).unwrap();
        let mine = if group.rank() % 2 == 1 { odd } else { even };
        for _ in 0..3 {
            let mut x = [group.rank() as f32; 3];
            group.all_reduce_in(mine, DType::Float, bytes_of_mut(&mut x), ReduceOp::Sum).unwrap();
            assert_eq!(x, if group.rank() % 2 == 1 { [4.0; 3] } else { [6.0; 3] });
        }
        let other = if mine == odd { even } else { odd };
        let e = group.barrier_in(other).unwrap_err();
        assert_eq!(e.code(), Code::FailedPrecondition);
        group.barrier().unwrap();
    });
}

#[test]
fn every_collective_works_on_every_kind_of_link() {
    for transport in EVERY_TRANSPORT {
        for n in [1, 2, 3, 4] {
            if n == 1 && transport == TransportChoice::Shared {
                continue;
            }
            on_links(
                n,
                |m| m.transport = transport,
                |mut group| {
                    for dtype in [DType::Float, DType::Half, DType::Int64] {
                        for count in [0, 1, 4097, 70_001] {
                            check_all_reduce(&mut group, dtype, ReduceOp::Sum, count).unwrap();
                            check_all_reduce(&mut group, dtype, ReduceOp::Mean, count).unwrap();
                        }
                    }
                    group.force(Some(Algorithm::HalvingDoubling));
                    check_all_reduce(&mut group, DType::Float, ReduceOp::Max, 70_000).unwrap();
                    group.force(None);
                    check_family(&mut group);
                },
            );
        }
    }
}

/// Uses odd numbers of bytes, so that chunks of connections and values never end at the same place.
#[test]
fn every_collective_works_over_several_connections() {
    for streams in 1..=3 {
        for n in [2, 3] {
            let links = |m: &mut Membership| {
                m.transport = TransportChoice::Tcp;
                // The value of rank 0 applies to all ranks.
                m.streams = [Some(streams), None, Some(7)][m.rank];
            };
            on_links(n, links, |mut group| {
                for algorithm in Algorithm::ALL {
                    group.force(Some(algorithm));
                    for (dtype, count) in
                        [(DType::Int8, 65_537), (DType::Half, 1), (DType::Float, 200_003)]
                    {
                        check_all_reduce(&mut group, dtype, ReduceOp::Sum, count).unwrap();
                    }
                }
                group.force(None);
                check_family(&mut group);
                check_all_reduce(&mut group, DType::Double, ReduceOp::Mean, 99_991).unwrap();
            });
        }
    }
}

#[test]
fn a_single_cut_connection_fails_the_group_on_all_ranks() {
    use crate::fault_proxy::{Fault, FaultProxy, ProxyFaults};
    // Cut after the probe, which moves 14 MB. The proxies are between ranks 1 and 2 only.
    let fault = Some((20_000_000, Fault::Cut, false));
    let delay = Duration::ZERO;
    let proxy = FaultProxy::new(ProxyFaults { seed: 1, most_bytes: 1 << 16, delay, fault });
    let links = |m: &mut Membership| {
        m.transport = TransportChoice::Tcp;
        m.streams = Some(3);
        m.proxy = Some(proxy.clone());
    };
    let errors = on_links(3, links, |mut group| {
        group.force(Some(Algorithm::Ring));
        let mut x = vec![1.0f32; 500_000];
        (0..1000).find_map(|_| group.all_reduce(&mut x, ReduceOp::Max).err()).unwrap()
    });
    for e in errors {
        assert_eq!(e.code(), Code::Unavailable, "{e}");
        let names = |rank| e.message().contains(&format!("rank {rank} is gone: "));
        assert!(names(1) || names(2), "{e}");
    }
    proxy.close();
}

#[test]
fn an_invalid_number_of_connections_is_refused() {
    for streams in [0, 17] {
        let member = Membership { streams: Some(streams), ..Membership::new(0, 1, "") };
        let e = Group::join(&member, GroupOptions::default()).err().unwrap();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(e.message().contains("1 to 16"), "{e}");
    }
}

#[test]
fn ranks_with_different_host_names_use_the_hierarchy() {
    on_links(
        4,
        |m| m.host = Some(format!("host{}", m.rank / 2)),
        |mut group| {
            assert_eq!(group.transport(), "tcp");
            assert_eq!(group.cross(), (group.rank() / 2, 2));
            assert_eq!(group.local(), (group.rank() % 2, 2));
            group.force(Some(Algorithm::Hierarchical));
            check_all_reduce(&mut group, DType::Float, ReduceOp::Sum, 10_001).unwrap();
            group.barrier().unwrap();
        },
    );
}

#[test]
fn a_rank_that_dies_is_named_on_all_others() {
    for transport in EVERY_TRANSPORT {
        let errors = on_links(
            4,
            |m| m.transport = transport,
            |mut group| {
                let met = group.barrier();
                if group.rank() == 2 {
                    met.unwrap();
                    // Closes the connections without leaving, like a killed process.
                    group.control().unwrap().cut();
                    return None;
                }
                // Rank 2 may be gone before this rank has left the barrier.
                let mut x = vec![1.0f32; 100_000];
                let mut reduce = || group.all_reduce(&mut x, ReduceOp::Sum).err();
                Some(met.err().or_else(|| (0..10).find_map(|_| reduce())).unwrap())
            },
        );
        for e in errors.into_iter().flatten() {
            assert_eq!(e.code(), Code::Unavailable, "{e}");
            assert!(e.message().contains("rank 2"), "{transport:?}: {e}");
        }
    }
}

#[test]
fn ranks_that_disagree_all_get_an_error() {
    for transport in EVERY_TRANSPORT {
        let errors = on_links(
            3,
            |m| m.transport = transport,
            |mut group| {
                let count = if group.rank() == 1 { 12 } else { 10 };
                let e = group.all_reduce(&mut vec![0f32; count], ReduceOp::Sum).unwrap_err();
                assert_eq!(group.barrier().unwrap_err(), e, "a failed group stays failed");
                e
            },
        );
        for e in errors {
            assert_eq!(e.code(), Code::InvalidArgument, "{e}");
            assert!(e.message().contains("rank 1") && e.message().contains("of 12 float"), "{e}");
        }
    }
}

#[test]
fn a_rank_that_never_connects_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut member = Membership::new(0, 3, listener.local_addr().unwrap().to_string());
    member.timeout = Duration::from_millis(50);
    let e = Group::host(&member, GroupOptions::default(), listener).err().unwrap();
    assert_eq!(e.code(), Code::DeadlineExceeded);
    assert!(e.message().contains("ranks [1, 2]"), "{e}");
}

#[test]
fn a_rank_that_does_not_call_a_collective_is_named() {
    for transport in EVERY_TRANSPORT {
        let barrier = std::sync::Barrier::new(2);
        on_links(
            2,
            |m| m.transport = transport,
            |mut group| {
                group.options.timeout = Duration::from_millis(50);
                if group.rank() == 0 {
                    let e = group.all_reduce(&mut [1.0f32], ReduceOp::Sum).unwrap_err();
                    assert_eq!(e.code(), Code::DeadlineExceeded);
                    assert!(e.message().contains("rank 1"), "{e}");
                }
                barrier.wait();
            },
        );
    }
}

#[test]
fn a_connection_with_a_wrong_token_is_refused_and_the_group_still_forms() {
    let groups = on_links(
        2,
        |m| {
            m.token = "secret".into();
            if m.rank == 1 {
                let mut wrong = m.clone();
                wrong.token = "guess".into();
                let e = Group::join(&wrong, GroupOptions::default()).err().unwrap();
                assert_eq!(e.code(), Code::PermissionDenied);
            }
        },
        |mut group| group.barrier(),
    );
    assert!(groups.iter().all(Result::is_ok));
}

/// Trust of rank `rank`, as a launcher hands it out.
fn certified(authority: &JobAuthority, rank: usize) -> Trust {
    let (role, host) = (vec![rank_role(rank)], vec!["127.0.0.1".to_string()]);
    Trust::with(authority.credentials(&role, &host, 1).unwrap())
}

#[test]
fn ranks_with_certificates_compute_the_same_over_tls() {
    let authority = JobAuthority::new().unwrap();
    for streams in [1, 3] {
        let sums = on_links(
            3,
            |m| {
                m.transport = TransportChoice::Tcp;
                m.streams = Some(streams);
                m.trust = certified(&authority, m.rank);
                m.token = authority.token().reveal().into();
            },
            |mut group| {
                let mut all = Vec::new();
                for len in [1, 1000, 300_001] {
                    let mut x: Vec<f32> = (0..len).map(|i| (i % 97) as f32).collect();
                    group.all_reduce(&mut x, ReduceOp::Sum).unwrap();
                    assert!(x.iter().enumerate().all(|(i, x)| *x == 3.0 * (i % 97) as f32));
                    all.push(x);
                }
                group.barrier().unwrap();
                all
            },
        );
        assert!(sums.iter().all(|sum| *sum == sums[0]));
    }
}

#[test]
fn a_rank_cannot_use_the_certificate_of_another() {
    let authority = JobAuthority::new().unwrap();
    let groups = on_links(
        2,
        |m| {
            m.trust = certified(&authority, m.rank);
            if m.rank == 1 {
                let mut wrong = m.clone();
                wrong.trust = certified(&authority, 7);
                let e = Group::join(&wrong, GroupOptions::default()).err().unwrap();
                assert_eq!(e.code(), Code::PermissionDenied);
                wrong.trust = Trust::default();
                wrong.timeout = Duration::from_millis(200);
                assert!(Group::join(&wrong, GroupOptions::default()).is_err(), "without TLS");
            }
        },
        |mut group| group.barrier(),
    );
    assert!(groups.iter().all(Result::is_ok));
}

#[test]
fn ranks_connect_only_to_those_that_their_schedules_need() {
    let open = on_links(
        16,
        |m| m.transport = TransportChoice::Tcp,
        |mut group| {
            let mut sum = vec![1f32; 5000];
            // The probe uses a ring and doubling distances.
            group.all_reduce(&mut sum, ReduceOp::Sum).unwrap();
            assert!(sum.iter().all(|x| *x == 16.0));
            let before = group.open_links().unwrap();
            // A broadcast from the last rank needs others.
            let mut from = [group.rank() as f32];
            group.broadcast(&mut from, 15).unwrap();
            group.barrier().unwrap();
            assert_eq!(from, [15.0]);
            before
        },
    );
    assert!(open.iter().all(|links| (2..=8).contains(links)), "{open:?}");
}

/// More of them than may greet at a time, before and between the ranks.
#[test]
fn silent_connections_at_rank_0_do_not_fail_a_job() {
    let silent = parking_lot::Mutex::new(Vec::new());
    let groups = on_links(
        3,
        |m| {
            // Rank 0 accepts meanwhile.
            let count = if m.rank == 0 { 0 } else { 100 };
            let connect = |_| std::net::TcpStream::connect(&m.addresses[0]).ok();
            let strangers: Vec<_> = (0..count).filter_map(connect).collect();
            silent.lock().extend(strangers);
        },
        |mut group| group.barrier(),
    );
    assert!(groups.iter().all(Result::is_ok));
    assert!(silent.lock().len() >= 100);
}

#[test]
fn rank_0_does_not_listen_for_other_hosts_without_credentials() {
    let member = Membership::new(0, 2, "0.0.0.0:0");
    let e = Group::join(&member, GroupOptions::default()).err().unwrap();
    assert_eq!(e.code(), Code::FailedPrecondition);
    assert!(e.message().contains("FERROFLOW_CREDENTIALS"), "{e}");
}

/// The same computed directly: pairs at doubling distances, ranks beyond a power of two first.
fn plain_adasum(mut all: Vec<Vec<f64>>) -> Vec<f64> {
    let pair = |a: &[f64], b: &[f64]| -> Vec<f64> {
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let (ab, aa, bb) = (dot(a, b), dot(a, a), dot(b, b));
        a.iter()
            .zip(b)
            .map(|(x, y)| (1.0 - ab / (2.0 * aa)) * x + (1.0 - ab / (2.0 * bb)) * y)
            .collect()
    };
    let power = 1 << all.len().ilog2();
    for extra in (power..all.len()).rev() {
        let last = all.pop().unwrap();
        all[extra - power] = pair(&all[extra - power], &last);
    }
    while all.len() > 1 {
        all = all.chunks(2).map(|c| pair(&c[0], &c[1])).collect();
    }
    all.remove(0)
}

#[test]
fn adasum_equals_the_reference_and_is_the_same_on_all_ranks() {
    for n in 1..=9 {
        let values = |rank: usize| -> Vec<f64> {
            (0..301).map(|i| ((rank * 31 + i * 17) % 23) as f64 / 7.0 - 1.0).collect()
        };
        let want = plain_adasum((0..n).map(values).collect());
        let faults = MeshFaults { seed: n as u64, most_bytes: 700, delays: 40, kill: None };
        let all = on_ranks(n, faults, &GroupOptions::default(), |group| {
            let mut mine = values(group.rank());
            group.adasum(&mut mine).unwrap();
            mine
        });
        for got in &all {
            assert_eq!(got, &all[0]);
            assert!(got.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-9), "{n} ranks");
        }
    }
    let equal = on_ranks(4, MeshFaults::default(), &GroupOptions::default(), |group| {
        let mut same = [3.0f32, -4.0];
        group.adasum(&mut same).unwrap();
        let mut apart = [0f32; 4];
        apart[group.rank()] = 2.0;
        group.adasum(&mut apart).unwrap();
        (same, apart)
    });
    assert!(equal.iter().all(|r| *r == ([3.0, -4.0], [2.0; 4])), "{equal:?}");
}
