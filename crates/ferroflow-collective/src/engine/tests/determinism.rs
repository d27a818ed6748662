//! Tests that the resulting bits depend only on the submitted values.

use super::*;

/// The results of each of three ranks for two dozen tensors. Each rank submits them in its own
/// order and yields in between.
fn bits(over: (TransportChoice, Option<Algorithm>), seed: u64) -> Vec<Vec<Vec<u32>>> {
    // Long enough for tensors to be fused, if that were allowed.
    let fusion = Some((1 << 20, Duration::from_millis(5)));
    let options =
        EngineOptions { deterministic: true, fusion, piece: 4000, ..EngineOptions::default() };
    on_engines_over(over, 3, options, |engine| {
        let rank = engine.rank() as u64;
        let values = |i: usize| -> Vec<f32> {
            let mut random = fastrand::Rng::with_seed(rank * 100 + i as u64);
            (0..[1, 700, 3001][i % 3]).map(|_| random.f32() - 0.5).collect()
        };
        let mut order: Vec<usize> = (0..24).collect();
        // Ranks synchronize between batches, so that all ranks submit the same tensors.
        let mut shared = fastrand::Rng::with_seed(seed);
        shared.shuffle(&mut order);
        let mut random = fastrand::Rng::with_seed(seed * 10 + rank);
        let mut results = vec![Vec::new(); 24];
        for batch in order.chunks_mut(12) {
            random.shuffle(batch);
            let mut handles = Vec::new();
            for &i in &*batch {
                (0..random.u32(0..20)).for_each(|_| std::thread::yield_now());
                let name = i.to_string();
                let priority = random.i32(0..3);
                let ask = |op| SubmitOptions { op, priority, ..SubmitOptions::default() };
                let lossy =
                    SubmitOptions { compression: WireCompression::Bf16, ..ask(ReduceOp::Mean) };
                let handle = match i {
                    0..12 => engine.all_reduce(&name, values(i), ask(ReduceOp::Sum)),
                    12..16 => engine.all_reduce(&name, values(i), lossy),
                    16..20 => engine.reduce_scatter(&name, values(i), ask(ReduceOp::Mean)),
                    _ => engine.adasum(&name, values(i), ask(ReduceOp::Sum)),
                };
                handles.push((i, handle.unwrap()));
            }
            for (i, handle) in handles {
                results[i] = handle.wait().unwrap().into_iter().map(f32::to_bits).collect();
            }
        }
        results
    })
}

#[test]
fn results_have_the_same_bits_for_any_order_of_submissions() {
    // In a ring, the position of a value determines which rank's value is added first.
    for over in [(TransportChoice::Auto, None), (TransportChoice::Tcp, Some(Algorithm::Ring))] {
        let first = bits(over, 0);
        for i in (0..24).filter(|i| !(16..20).contains(i)) {
            assert!(first.iter().all(|r| r[i] == first[0][i]), "tensor {i} on all ranks");
        }
        for seed in 1..4 {
            assert!(bits(over, seed) == first, "run {seed} over {over:?}");
        }
    }
}
