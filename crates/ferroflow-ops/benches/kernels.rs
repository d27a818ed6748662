//! How fast kernels are by themselves, without a server: the cases of `bench/kernels.py` and more.
//! Prints the lines that `bench/README.md` defines.
//!
//!     cargo bench -p ferroflow-ops --bench kernels -- [--threads N] [--seconds S] [WORD...]
//!
//! Runs only cases whose op or name contains one of the words. With one thread, which is the
//! default, times calls by the processor time of that thread, so that other work on the machine
//! matters little. With more threads, uses the clock. The value is the best round, `extra.median`
//! the median.
#![allow(clippy::unwrap_used)]

use ferroflow_core::{
    Ctx, DType, DeviceInfo, InlineScope, KernelBox, NodeInfo, Outputs, PartialShape, Resources,
    StoredVariable, Tensor, Value, set_compute_threads,
};
use ferroflow_graph::{
    AttrList, AttrValue, Attrs, Catalog, FunctionInstantiator, KernelInit, NoFunctions,
};
use ferroflow_testing::standalone_step;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Batch, height and width, channels in, window, channels out.
const CONVOLUTIONS: [(&str, usize, usize, usize, usize, usize); 3] = [
    ("mnist_c1", 64, 28, 1, 5, 32),
    ("mnist_c2", 64, 14, 32, 5, 64),
    ("resnet_3x3", 16, 56, 64, 3, 64),
];

/// Rows, inner size, columns, which of the two are stored transposed.
const PRODUCTS: [(&str, usize, usize, usize, bool, bool); 9] = [
    ("sq256", 256, 256, 256, false, false),
    ("sq512", 512, 512, 512, false, false),
    ("sq1024", 1024, 1024, 1024, false, false),
    ("sq2048", 2048, 2048, 2048, false, false),
    ("mlp_fwd", 128, 784, 512, false, false),
    ("mlp_dw", 784, 128, 512, true, false),
    ("mlp_dx", 128, 512, 784, false, true),
    ("skinny", 128, 512, 10, false, false),
    ("cnn_fc", 64, 3136, 1024, false, false),
];

const SIZES: [(&str, usize); 3] = [("64MB", 16 << 20), ("256KB", 64 << 10), ("4B", 1)];

fn main() {
    let mut bench = Bench::from_args();
    for (name, m, k, n, ta, tb) in PRODUCTS {
        let a = if ta { floats(&[k, m]) } else { floats(&[m, k]) };
        let b = if tb { floats(&[n, k]) } else { floats(&[k, n]) };
        let attrs = Attrs::new().with("transpose_a", ta).with("transpose_b", tb);
        bench.flops("gemm", name, "MatMul", attrs, vec![a, b], 2.0 * (m * k * n) as f64);
    }
    for (name, n, h, cin, k, cout) in CONVOLUTIONS {
        let flops = 2.0 * (n * h * h * cin * cout * k * k) as f64;
        let attrs = || windows(&[1, 1, 1, 1]);
        let (x, w, y) = ([n, h, h, cin], [k, k, cin, cout], [n, h, h, cout]);
        let sizes = |dims: &[usize]| {
            Tensor::vector(&dims.iter().map(|&d| d as i32).collect::<Vec<i32>>()).into()
        };
        let inputs = vec![floats(&x), floats(&w)];
        bench.flops("conv_fwd", name, "Conv2D", attrs(), inputs, flops);
        let inputs = vec![sizes(&x), floats(&w), floats(&y)];
        bench.flops("conv_dx", name, "Conv2DBackpropInput", attrs(), inputs, flops);
        let inputs = vec![floats(&x), sizes(&w), floats(&y)];
        bench.flops("conv_dw", name, "Conv2DBackpropFilter", attrs(), inputs, flops);
    }
    for (name, n) in SIZES {
        elementwise(&mut bench, name, n);
    }
    for (name, rows, classes) in
        [("128x10", 128, 10), ("128x1000", 128, 1000), ("256x32000", 256, 32000)]
    {
        let labels: Vec<i32> = (0..rows).map(|i| (i * 7 % classes) as i32).collect();
        let op = "SparseSoftmaxCrossEntropyWithLogits";
        let inputs = vec![floats(&[rows, classes]), Tensor::vector(&labels).into()];
        bench.bytes("softmax_xent", name, op, Attrs::new(), inputs, rows * classes * 8);
        let inputs = vec![floats(&[rows, classes])];
        bench.bytes("softmax", name, "Softmax", Attrs::new(), inputs, rows * classes * 8);
    }
    images(&mut bench);
}

fn elementwise(bench: &mut Bench, name: &str, n: usize) {
    for (label, op) in [("add", "AddV2"), ("mul", "Mul"), ("relu_grad", "ReluGrad")] {
        let inputs = vec![floats(&[n]), floats(&[n])];
        bench.bytes(label, name, op, Attrs::new(), inputs, n * 12);
    }
    let inputs = vec![floats(&[n]), floats(&[])];
    bench.bytes("mul_scalar", name, "Mul", Attrs::new(), inputs, n * 8);
    for (label, op) in [
        ("relu", "Relu"),
        ("exp", "Exp"),
        ("log", "Log"),
        ("tanh", "Tanh"),
        ("sigmoid", "Sigmoid"),
        ("erf", "Erf"),
        ("rsqrt", "Rsqrt"),
        ("sqrt", "Sqrt"),
    ] {
        bench.bytes(label, name, op, Attrs::new(), vec![floats(&[n])], n * 8);
    }
    if n > 1 {
        let columns = 256;
        let shape = [n / columns, columns];
        for (label, axes) in
            [("reduce_sum", vec![0i32, 1]), ("rows", vec![1]), ("columns", vec![0])]
        {
            let label = if axes.len() == 2 { label.into() } else { format!("reduce_{label}") };
            let inputs = vec![floats(&shape), Tensor::vector(&axes).into()];
            bench.bytes(&label, name, "Sum", Attrs::new(), inputs, n * 4);
        }
        let inputs = vec![floats(&shape), floats(&[columns])];
        bench.bytes("bias_add", name, "BiasAdd", Attrs::new(), inputs, n * 8);
        bench.bytes("bias_grad", name, "BiasAddGrad", Attrs::new(), vec![floats(&shape)], n * 4);
    }
    let inputs = vec![variable(n), scalar(1e-6), floats(&[n])];
    bench.bytes("sgd_apply", name, "ApplyGradientDescent", Attrs::new(), inputs, n * 12);
    let mut inputs = vec![variable(n), variable(n), variable(n)];
    inputs.extend([0.9, 0.999, 1e-6, 0.9, 0.999, 1e-7].map(scalar));
    inputs.push(floats(&[n]));
    bench.bytes("adam_apply", name, "ApplyAdam", Attrs::new(), inputs, n * 28);
}

fn images(bench: &mut Bench) {
    let pool = || windows(&[1, 2, 2, 1]).with("ksize", ints(&[1, 2, 2, 1]));
    for (name, n, h, c) in [("mnist_p1", 64, 28, 32), ("mnist_p2", 64, 14, 64)] {
        let (x, y) = ([n, h, h, c], [n, h / 2, h / 2, c]);
        let bytes = 4 * n * h * h * c;
        bench.bytes("max_pool", name, "MaxPool", pool(), vec![floats(&x)], bytes);
        let inputs = vec![floats(&x), floats(&y), floats(&y)];
        bench.bytes("max_pool_grad", name, "MaxPoolGrad", pool(), inputs, 2 * bytes);
        bench.bytes("avg_pool", name, "AvgPool", pool(), vec![floats(&x)], bytes);
    }
    let (x, c) = ([16, 56, 56, 64], [64]);
    let bytes = 4 * x.iter().product::<usize>();
    let inputs = vec![floats(&x), floats(&c), floats(&c), floats(&[0]), floats(&[0])];
    let attrs = || Attrs::new().with("U", DType::Float);
    bench.bytes("batch_norm", "resnet", "FusedBatchNormV3", attrs(), inputs, 2 * bytes);
    let inputs = vec![floats(&x), floats(&x), floats(&c), floats(&c), floats(&c), floats(&[0])];
    bench.bytes("batch_norm_grad", "resnet", "FusedBatchNormGradV3", attrs(), inputs, 3 * bytes);
}

fn ints(values: &[i64]) -> AttrValue {
    AttrValue::List(AttrList::Ints(values.to_vec()))
}

fn windows(strides: &[i64]) -> Attrs {
    Attrs::new().with("strides", ints(strides)).with("padding", "SAME")
}

fn floats(shape: &[usize]) -> Value {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|i| (i * 7919 % 1009) as f32 / 1009.0 - 0.4995).collect();
    Value::Tensor(Tensor::from_slice(shape.to_vec(), &values).unwrap())
}

fn scalar(x: f32) -> Value {
    Value::Tensor(Tensor::scalar(x))
}

fn variable(n: usize) -> Value {
    let v = StoredVariable::new("v", DType::Float, PartialShape::unknown());
    v.assign(Tensor::from_slice([n], &vec![0.5f32; n]).unwrap());
    Value::Ref(Arc::new(v))
}

struct Bench {
    catalog: Catalog,
    words: Vec<String>,
    threads: usize,
    time: Duration,
}

impl Bench {
    fn from_args() -> Bench {
        let mut bench = Bench {
            catalog: Catalog::new(),
            words: Vec::new(),
            threads: 1,
            time: Duration::from_millis(300),
        };
        ferroflow_ops::register(&mut bench.catalog);
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--threads" => bench.threads = args.next().unwrap().parse().unwrap(),
                "--seconds" => {
                    bench.time = Duration::from_secs_f64(args.next().unwrap().parse().unwrap())
                }
                "--bench" => {}
                _ => bench.words.push(arg),
            }
        }
        set_compute_threads(bench.threads);
        bench
    }

    /// Arithmetic, in billions of operations a second.
    fn flops(&mut self, label: &str, case: &str, op: &str, attrs: Attrs, i: Vec<Value>, work: f64) {
        self.run(label, case, op, attrs, i, work, "GFLOP/s");
    }

    /// Memory traffic at least needed, in billions of bytes a second.
    fn bytes(&mut self, label: &str, case: &str, op: &str, a: Attrs, i: Vec<Value>, bytes: usize) {
        self.run(label, case, op, a, i, bytes as f64, "GB/s");
    }

    fn run(
        &mut self,
        label: &str,
        case: &str,
        op: &str,
        attrs: Attrs,
        inputs: Vec<Value>,
        work: f64,
        unit: &str,
    ) {
        let is_wanted = |w: &String| label.contains(w.as_str()) || case.contains(w.as_str());
        if !self.words.is_empty() && !self.words.iter().any(is_wanted) {
            return;
        }
        let mut times = self.times(op, attrs, inputs);
        times.sort_by(f64::total_cmp);
        let (best, median) = (times[0], times[times.len() / 2]);
        let threads = self.threads;
        println!(
            "{{\"name\": \"kernel\", \"metric\": \"{label}\", \"value\": {:.4}, \"unit\": \"{unit}\", \
             \"better\": \"higher\", \"impl\": \"ferroflow alone\", \"params\": {{\"case\": \
             \"{case}\", \"threads\": {threads}}}, \"extra\": {{\"median\": {:.4}, \"us\": {:.3}}}}}",
            work / best / 1e9,
            work / median / 1e9,
            best * 1e6
        );
    }

    /// Seconds of a call, by round.
    fn times(&self, op: &str, attrs: Attrs, inputs: Vec<Value>) -> Vec<f64> {
        let op = self.catalog.get(op).unwrap();
        let mut attrs = attrs;
        if op.attrs.iter().any(|a| a.name == "T") {
            attrs.set("T", DType::Float);
        }
        if op.attrs.iter().any(|a| a.name == "Tlabels") {
            attrs.set("Tlabels", DType::Int32);
        }
        let attrs = op.complete_attrs(attrs).unwrap();
        let (input_types, outputs) =
            (op.input_types(&attrs).unwrap(), op.output_types(&attrs).unwrap());
        let node = Arc::new(NodeInfo {
            name: "kernel".into(),
            op: op.name.clone(),
            device: Arc::new(DeviceInfo::cpu("localhost", 0, 0, 1)),
            default_container: "localhost".into(),
            outputs: outputs.len(),
        });
        let functions: Arc<dyn FunctionInstantiator> = Arc::new(NoFunctions);
        let init = KernelInit {
            node: &node,
            attrs: &attrs,
            inputs: &input_types,
            outputs: &outputs,
            functions: &functions,
            is_fallback: false,
        };
        let KernelBox::Sync(kernel) = op.kernel(&init).unwrap() else { panic!("waits") };
        let step = standalone_step(Arc::new(Resources::new()));
        let mut given = inputs.clone();
        let mut made = Outputs::new();
        let scope = InlineScope::unknown();
        let mut call = || {
            given.clone_from(&inputs);
            let mut ctx = Ctx::new(&mut given, &mut made, &step, &node, (0, 0), &scope);
            kernel.compute(&mut ctx).unwrap();
        };
        let begun = Instant::now();
        let clock = || if self.threads == 1 { thread_time() } else { begun.elapsed() };
        // Rounds of about two milliseconds.
        let mut calls = 1u32;
        let round = |calls: u32, call: &mut dyn FnMut()| {
            let before = clock();
            (0..calls).for_each(|_| call());
            (clock() - before).as_secs_f64() / f64::from(calls)
        };
        while round(calls, &mut call) * f64::from(calls) < 0.002 {
            calls *= 2;
        }
        let (start, mut times) = (clock(), Vec::new());
        while times.len() < 5 || clock() - start < self.time {
            times.push(round(calls, &mut call));
        }
        times
    }
}

fn thread_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}
