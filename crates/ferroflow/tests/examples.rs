//! The examples run.

#[path = "../examples/hvd_mlp.rs"]
mod hvd_mlp;
#[path = "../examples/in_graph_towers.rs"]
mod in_graph_towers;
#[path = "../examples/linear.rs"]
mod linear;
#[path = "../examples/while_loop.rs"]
mod while_loop;

#[test]
fn a_line_is_found() {
    linear::main().unwrap();
}

#[test]
fn towers_share_their_variables() {
    in_graph_towers::main().unwrap();
}

#[test]
fn a_loop_is_run_and_differentiated() {
    while_loop::main().unwrap();
}

#[test]
fn a_perceptron_is_trained_by_all_reduce() {
    hvd_mlp::main().unwrap();
}
