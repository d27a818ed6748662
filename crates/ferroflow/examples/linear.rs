//! Linear regression, y = 2x + 10, line by line: graph, gradients, session, checkpoint.
//!
//!     cargo run --release --example linear

use ferroflow::prelude::*;

pub fn main() -> Result<()> {
    // The graph. Nothing is computed yet; `x` and `y` are fed in each step.
    let g = Graph::new();
    let x = g.placeholder::<f32>("x", [None]);
    let y = g.placeholder::<f32>("y", [None]);
    let w = g.variable("w", 0.0);
    let b = g.variable("b", 0.0);
    let prediction = &x * &w + &b;
    let loss = losses::mean_squared_error(&y, &prediction);
    let train = Sgd::new(0.1).minimize(&loss);
    let init = g.global_initializer();
    let saver = Saver::new(&g);

    // The session runs it in this process; `Session::connect("grpc://…", &g)` runs it on a server.
    let session = Session::local(&g)?;
    session.run(&init)?;
    let xs: Vec<f32> = (0..100).map(|i| i as f32 / 50.0 - 1.0).collect();
    let ys: Vec<f32> = xs.iter().map(|x| 2.0 * x + 10.0).collect();
    for step in 1..=200 {
        let feeds = [(&x, xs.clone()), (&y, ys.clone())];
        let (loss, ()) = session.run_fed(feeds, (loss.scalar::<f32>(), &train))?;
        if step % 40 == 0 {
            println!("step {step:3}  loss {loss:.6}");
        }
    }
    let (w, b) = session.run((w.scalar::<f32>(), b.scalar::<f32>()))?;
    println!("w {w:.3}  b {b:.3}");
    assert!((w - 2.0).abs() < 0.01 && (b - 10.0).abs() < 0.01);

    // TensorFlow's `tf.train.load_checkpoint` reads this checkpoint.
    let dir = std::env::temp_dir().join(format!("ferroflow-linear-{}", std::process::id()));
    let path = saver.save(&session, dir.join("model"), Some(200))?;
    println!("checkpoint {path}");
    saver.restore(&session, &path)?;
    let _ = std::fs::remove_dir_all(&dir);
    session.close()
}
