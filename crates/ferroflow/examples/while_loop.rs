//! A loop in the graph, and the gradient through it: Newton's iteration for a square root.
//!
//!     cargo run --release --example while_loop

use ferroflow::prelude::*;

pub fn main() -> Result<()> {
    let g = Graph::new();
    let a = g.placeholder::<f32>("a", ());
    // This call runs both closures once, to build the loop. They can use outer tensors.
    let end = g.while_loop(
        &[g.constant(0), g.constant(1.0)],
        |v| v[0].less(20),
        |v| vec![&v[0] + 1.0, (&v[1] + &a / &v[1]) * 0.5],
    );
    let root = &end[1];
    let slope = g.gradients(std::slice::from_ref(root), &[&a]);
    let slope = slope[0].as_ref().map(|s| s.dense().scalar::<f32>());

    let session = Session::local(&g)?;
    for value in [2.0f32, 9.0, 100.0] {
        let (root, slope) = session.run_fed((&a, value), (root.scalar::<f32>(), &slope))?;
        let slope = slope.unwrap_or(f32::NAN);
        println!("sqrt({value}) = {root:.5}, and its derivative is {slope:.5}");
        assert!((root - value.sqrt()).abs() < 1e-3);
        assert!((slope - 0.5 / value.sqrt()).abs() < 1e-3);
    }
    Ok(())
}
