//! The examples run.

#[path = "../examples/dataset.rs"]
mod dataset;
#[path = "../examples/estimator.rs"]
mod estimator;
#[path = "../examples/hvd_mlp.rs"]
mod hvd_mlp;
#[path = "../examples/in_graph_towers.rs"]
mod in_graph_towers;
#[path = "../examples/linear.rs"]
mod linear;
#[path = "../examples/mnist_ps.rs"]
mod mnist_ps;
#[path = "../examples/model_parallel.rs"]
mod model_parallel;
#[allow(dead_code)] // Its `main` reads the command line.
#[path = "../examples/tf_interop.rs"]
mod tf_interop;
#[path = "../examples/while_loop.rs"]
mod while_loop;

macro_rules! runs {
    ($($name:ident: $example:ident;)*) => {$(
        #[test]
        fn $name() {
            $example::main().unwrap();
        }
    )*};
}

runs! {
    a_line_is_found: linear;
    towers_share_their_variables: in_graph_towers;
    a_loop_is_run_and_differentiated: while_loop;
    files_are_read_by_the_graph: dataset;
    an_estimator_goes_its_way: estimator;
    a_perceptron_is_trained_by_all_reduce: hvd_mlp;
    layers_on_two_tasks_learn_together: model_parallel;
    two_workers_train_through_a_parameter_server: mnist_ps;
}

#[test]
fn everything_tensorflow_opens_is_written() {
    let dir = std::env::temp_dir().join(format!("ferroflow-examples-{}", std::process::id()));
    tf_interop::run(None, &dir).unwrap();
    for file in ["model.ckpt-200.index", "model.ckpt-200.meta", "saved_model/saved_model.pb"] {
        assert!(dir.join(file).exists(), "{file}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
