//! A GraphDef built by hand: a client trains y = 2x + 10 on a server on the loopback interface.
//!
//!     cargo run --release --example first_graph

use ferroflow::cluster::{ClusterSpec, Server, ServerOptions};
use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef, default_catalog};
use ferroflow::{DType, PartialShape, Result, Tensor};

const STEPS: usize = 200;

fn main() -> Result<()> {
    let target = start_server()?;
    println!("server ready at {target}");

    let session = GraphDefSession::connect(&target, &linear_regression())?;
    session.run_with(&[], &[], &["w/init", "b/init"], None)?;
    let started = std::time::Instant::now();
    for step in 1..=STEPS {
        let xs: Vec<f32> =
            (0..32).map(|i| ((step * 31 + i * 17) % 97) as f32 / 48.5 - 1.0).collect();
        let ys: Vec<f32> = xs.iter().map(|x| 2.0 * x + 10.0).collect();
        let feeds = [("x:0", Tensor::vector(&xs)), ("y:0", Tensor::vector(&ys))];
        // Fetching the loss and both updates runs them together, in one step.
        let out = session.run(&feeds, &["loss:0", "w/update:0", "b/update:0"])?;
        if step % 40 == 0 {
            let at = |i: usize| out[i].scalar_value::<f32>();
            println!("step {step:3}  loss {:9.6}  w {:.4}  b {:.4}", at(0)?, at(1)?, at(2)?);
        }
    }
    let per_step = started.elapsed() / STEPS as u32;
    println!("{STEPS} steps over gRPC, {per_step:.0?} each");
    session.close()
}

/// Starts a server of one task in a thread; returns its address.
fn start_server() -> Result<String> {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let serve = async {
            let options =
                ServerOptions::new(ClusterSpec::parse("worker=127.0.0.1:0")?, "worker", 0);
            let server = Server::bind(options, default_catalog()).await?;
            let _ = tell.send(server.target().to_string());
            server.serve(std::future::pending()).await;
            Ok::<(), ferroflow::Error>(())
        };
        match runtime.map(|r| r.block_on(serve)) {
            Ok(Err(e)) => eprintln!("server: {e}"),
            Err(e) => eprintln!("server: {e}"),
            Ok(Ok(())) => {}
        }
    });
    told.recv().map_err(|_| ferroflow::Error::new(ferroflow::Code::Unavailable, "no server"))
}

/// loss = mean((w x + b - y)^2), and one step of gradient descent for w and b.
fn linear_regression() -> GraphDef {
    let mut g = GraphDef::default();
    let mut add = |name: &str, op: &str, inputs: &[&str], attrs: Attrs| {
        g.nodes.push(NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            attrs,
            ..NodeDef::default()
        });
    };
    let float = || Attrs::new().with("T", DType::Float);
    let of = |t: Tensor| Attrs::new().with("dtype", t.dtype()).with("value", t);
    let vector = PartialShape::new([None]);
    for name in ["x", "y"] {
        let attrs = Attrs::new().with("dtype", DType::Float).with("shape", vector.clone());
        add(name, "Placeholder", &[], attrs);
    }
    for name in ["w", "b"] {
        let shape = PartialShape::scalar();
        add(name, "VariableV2", &[], Attrs::new().with("dtype", DType::Float).with("shape", shape));
        add(&format!("{name}/zero"), "Const", &[], of(Tensor::scalar(0.0f32)));
        add(&format!("{name}/init"), "Assign", &[name, &format!("{name}/zero")], float());
    }
    add("axis", "Const", &[], of(Tensor::vector(&[0i32])));
    add("rate", "Const", &[], of(Tensor::scalar(0.2f32)));
    add("wx", "Mul", &["w", "x"], float());
    add("prediction", "AddV2", &["wx", "b"], float());
    add("error", "Sub", &["prediction", "y"], float());
    add("square", "Square", &["error"], float());
    add("loss", "Mean", &["square", "axis"], float());
    add("error_x", "Mul", &["error", "x"], float());
    for (name, gradient) in [("w", "error_x"), ("b", "error")] {
        let mean = format!("{name}/gradient");
        add(&mean, "Mean", &[gradient, "axis"], float());
        add(&format!("{name}/delta"), "Mul", &[&mean, "rate"], float());
        add(&format!("{name}/update"), "AssignSub", &[name, &format!("{name}/delta")], float());
    }
    g
}
