//! Tests of random collectives against a reference: any kind, type, op, algorithm and size, any
//! number of ranks and hosts, and any links.

use super::*;

/// One collective, as all ranks know it.
#[derive(Clone, Debug)]
enum Call {
    AllReduce {
        dtype: DType,
        op: ReduceOp,
        algorithm: Algorithm,
        count: usize,
    },
    ReduceScatter {
        dtype: DType,
        op: ReduceOp,
        parts: Vec<usize>,
    },
    AllGather {
        dtype: DType,
        parts: Vec<usize>,
        known: bool,
    },
    /// `parts[a][b]` values go from rank `a` to rank `b`.
    AllToAll {
        dtype: DType,
        parts: Vec<Vec<usize>>,
        known: bool,
    },
    Broadcast {
        dtype: DType,
        root: usize,
        count: usize,
    },
}

/// Splits `count` values into `n` parts, some of which may be empty.
fn cut(random: &mut fastrand::Rng, count: usize, n: usize) -> Vec<usize> {
    let mut bounds: Vec<usize> = (1..n).map(|_| random.usize(..=count)).collect();
    bounds.extend([0, count]);
    bounds.sort_unstable();
    bounds.windows(2).map(|w| w[1] - w[0]).collect()
}

impl Call {
    fn draw(random: &mut fastrand::Rng, kind: usize, dtype: DType, n: usize, count: usize) -> Call {
        let op = ReduceOp::ALL[random.usize(..ReduceOp::ALL.len())];
        let known = random.bool();
        match kind {
            0 => {
                let algorithm = Algorithm::ALL[random.usize(..Algorithm::ALL.len())];
                Call::AllReduce { dtype, op, algorithm, count }
            }
            1 => Call::ReduceScatter { dtype, op, parts: cut(random, count, n) },
            2 => Call::AllGather { dtype, parts: cut(random, count, n), known },
            3 => {
                // As many values as the other collectives have in total.
                let each = cut(random, count, n);
                let parts = each.iter().map(|&count| cut(random, count, n)).collect();
                Call::AllToAll { dtype, parts, known }
            }
            _ => Call::Broadcast { dtype, root: random.usize(..n), count },
        }
    }

    fn check(&self, group: &mut Group) -> Result<()> {
        const ALL: SetId = SetId::WORLD;
        let (rank, n) = (group.rank(), group.size());
        match *self {
            Call::AllReduce { dtype, op, algorithm, count } => {
                group.force(Some(algorithm));
                check_all_reduce(group, dtype, op, count)?;
            }
            Call::ReduceScatter { dtype, op, ref parts } => {
                let width = dtype.size().unwrap();
                let mut bytes = operand(dtype, op, rank, parts.iter().sum());
                let part = group.reduce_scatter_in(ALL, dtype, &mut bytes, Some(parts), op)?;
                let before: usize = parts[..rank].iter().sum();
                assert_eq!(part, before..before + parts[rank]);
                let mine = &bytes[part.start * width..part.end * width];
                assert_reduced(dtype, op, n, part.start, mine);
            }
            Call::AllGather { dtype, ref parts, known } => {
                let of = |rank: usize| filled(dtype, parts[rank], |i| input(dtype, rank, i));
                let (mine, want) = (of(rank), (0..n).flat_map(of).collect::<Vec<u8>>());
                let got = if known {
                    let mut all = vec![0xAA; want.len()];
                    let start = parts[..rank].iter().sum::<usize>() * dtype.size().unwrap();
                    all[start..start + mine.len()].copy_from_slice(&mine);
                    group.all_gather_in(ALL, dtype, &mut all, Some(parts))?;
                    all
                } else {
                    let (all, counts) = group.all_gather_uneven_in(ALL, dtype, &mine)?;
                    assert_eq!(counts, *parts);
                    all
                };
                assert!(got == want, "{self:?} on rank {rank}");
            }
            Call::AllToAll { dtype, ref parts, known } => {
                let of = |from: usize, to: usize| {
                    filled(dtype, parts[from][to], |i| input(dtype, from, i + to))
                };
                let send: Vec<u8> = (0..n).flat_map(|to| of(rank, to)).collect();
                let want: Vec<u8> = (0..n).flat_map(|from| of(from, rank)).collect();
                let theirs: Vec<usize> = parts.iter().map(|from| from[rank]).collect();
                let got = if known {
                    let mut recv = vec![0xAA; want.len()];
                    group.all_to_all_in(ALL, dtype, &send, &parts[rank], &mut recv, &theirs)?;
                    recv
                } else {
                    let mine = &parts[rank];
                    let (recv, counts) = group.all_to_all_uneven_in(ALL, dtype, &send, mine)?;
                    assert_eq!(counts, theirs);
                    recv
                };
                assert!(got == want, "{self:?} on rank {rank}");
            }
            Call::Broadcast { dtype, root, count } => {
                let of = |rank| filled(dtype, count, |i| input(dtype, rank, i));
                let mut bytes = of(rank);
                group.broadcast_in(ALL, dtype, &mut bytes, root)?;
                assert!(bytes == of(root), "{self:?} on rank {rank}");
            }
        }
        Ok(())
    }
}

/// The number of kinds that [`Call::draw`] knows.
const KINDS: usize = 5;

#[test]
fn every_collective_moves_every_type_in_one_or_several_messages() {
    for n in [1, 2, 3, 7] {
        let mut random = fastrand::Rng::with_seed(n as u64);
        let mut calls = Vec::new();
        for (i, dtype) in NUMBERS.into_iter().enumerate() {
            for kind in 0..KINDS {
                for count in [0, 1, 5, 131] {
                    calls.push(Call::draw(&mut random, kind, dtype, n, count));
                }
                if n == 3 && (i % KINDS == kind || dtype == DType::Float) {
                    // Parts of about two segments each.
                    let count = 2 * n * SEGMENT / dtype.size().unwrap() + 13;
                    calls.push(Call::draw(&mut random, kind, dtype, n, count));
                }
            }
        }
        on_ranks(n, MeshFaults::default(), &GroupOptions::default(), |group| {
            calls.iter().for_each(|call| call.check(group).unwrap());
        });
    }
}

/// Draws the collectives of each seed: up to 10 MB, odd sizes and none at all, in place and several
/// times in the same group. Ranks are on one host or on several, with any number of ranks each, and
/// have one connection or several.
///
///     FERROFLOW_CASES=5000 cargo test --release -p ferroflow-collective any_collective
#[test]
fn any_collective_of_any_size_is_right_over_any_links() {
    let cases = std::env::var("FERROFLOW_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    for seed in 0..cases {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.usize(1..=9);
        // None for an in-process group. One rank has no shared memory.
        let links = std::iter::once(None).chain(EVERY_TRANSPORT.map(Some));
        let links: Vec<_> =
            links.filter(|l| n > 1 || *l != Some(TransportChoice::Shared)).collect();
        let links = links[random.usize(..links.len())];
        let most = random.u32(1..=n as u32);
        let hosts: Vec<u32> = match links {
            Some(TransportChoice::Shared) => vec![0; n],
            _ => (0..n).map(|_| random.u32(..most)).collect(),
        };
        let streams = [None, Some(1), Some(2), Some(3)][random.usize(..4)];
        let draw = |_| {
            let dtype = NUMBERS[random.usize(..NUMBERS.len())];
            // As many short ones as long ones, of any width. Half of the calls are all-reduce.
            let bytes = 10u64.pow(random.u32(0..=6)) * random.u64(0..=10);
            let count = bytes as usize / dtype.size().unwrap() + random.usize(..3);
            let kind = random.usize(..2 * KINDS).saturating_sub(KINDS);
            Call::draw(&mut random, kind, dtype, n, count)
        };
        let calls: Vec<Call> = (0..5).map(draw).collect();
        let each = |group: &mut Group| {
            for call in &calls {
                call.check(group).unwrap_or_else(|e| panic!("seed {seed}: {call:?}: {e}"));
            }
            group.barrier().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        };
        let change = |m: &mut Membership| {
            m.transport = links.unwrap_or_default();
            m.streams = streams;
            m.host = Some(format!("host{}", hosts[m.rank]));
        };
        match links {
            None => drop(on_hosts(&hosts, MeshFaults::default(), &GroupOptions::default(), each)),
            Some(_) => drop(on_links(n, change, |mut group| each(&mut group))),
        }
    }
}
