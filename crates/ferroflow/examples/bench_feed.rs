//! Feeds and fetches of a server: `bench_feed grpc://127.0.0.1:2222`. A server on the same host
//! shares memory with its client; start it with `--data-path grpc` to compare.

use ferroflow::prelude::*;
use std::time::Instant;

const SIZES: [usize; 4] = [256 << 10, 4 << 20, 32 << 20, 128 << 20];

fn main() -> ferroflow::Result<()> {
    let target = std::env::args().nth(1).unwrap_or_else(|| "grpc://127.0.0.1:2222".into());
    let g = Graph::new();
    let x = g.placeholder::<f32>("x", [None]);
    let (last, all) = (ferroflow::ops::size(&x), &x + 0.0);
    let session = Session::connect(&target, &g)?;
    println!("{:>12} {:>12} {:>12}", "bytes", "feed MB/s", "both MB/s");
    for size in SIZES {
        let value = Tensor::from_slice([size / 4], &vec![1f32; size / 4])?;
        let mut rates = Vec::new();
        for fetches_all in [false, true] {
            let step = || -> ferroflow::Result<()> {
                let feeds = (&x, value.clone());
                match fetches_all {
                    true => session.run_fed(feeds, &all).map(drop),
                    false => session.run_fed(feeds, &last).map(drop),
                }
            };
            (0..3).try_for_each(|_| step())?;
            let (mut best, begins) = (f64::INFINITY, Instant::now());
            while begins.elapsed().as_secs_f64() < 0.5 {
                let once = Instant::now();
                step()?;
                best = best.min(once.elapsed().as_secs_f64());
            }
            rates.push(size as f64 / best / 1e6);
        }
        println!("{size:>12} {:>12.0} {:>12.0}", rates[0], rates[1]);
    }
    session.close()
}
