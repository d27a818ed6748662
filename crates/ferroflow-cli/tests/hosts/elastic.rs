//! An elastic job whose ranks are this test program.

use crate::common::discovery::Discovery;
use ferroflow::hvd;
use ferroflow::prelude::{Optimizer, Session, Sgd, Tensor};
use ferroflow_testing::{child, this_test};

pub fn ranks_go_on_as_slots_come_and_go() {
    if child::role().as_deref() == Some("rank") {
        return rank();
    }
    let script = Discovery::new();
    script.find(2);
    let rank = child::words(this_test!());
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    let (mut job, lines, _errors) = script.job(&rank, &[(child::ROLE, "rank")]);
    lines.wait_for("[0] a rank among 2");
    script.find(3);
    lines.wait_for("[0] a rank among 3");
    script.find(1);
    lines.wait_for("[0] a rank among 1");
    script.stop();
    lines.wait_for("[0] all steps were made");
    assert_eq!(job.end().code(), Some(0));
}

/// Adds 1 to a variable in each step, until the file `STOP_FILE` exists.
pub fn rank() {
    let stop = std::env::var("STOP_FILE").unwrap();
    let job = hvd::elastic_init().unwrap();
    let g = job.world().graph();
    let x = g.variable("x", 0.0);
    let train = job.world().optimizer(Sgd::new(1.0)).minimize(&(&*x * -1.0));
    let init = g.global_initializer();
    let session = Session::local(&g).unwrap();
    session.run(&init).unwrap();
    let mut state = hvd::elastic::State::new(&g, &session).unwrap();
    let sum = job.run(&mut state, |world, state| {
        println!("\na rank among {}", world.size());
        loop {
            session.run(&train)?;
            state.step += 1;
            state.commit(world)?;
            let over = Tensor::scalar(u8::from(std::path::Path::new(&stop).exists()));
            let over = world.all_reduce_value("over", over, hvd::Reduction::Max)?;
            if over.scalar_value::<u8>()? == 1 {
                return session.run(x.scalar::<f32>());
            }
        }
    });
    // Every step ran once, in spite of all changes of ranks.
    assert_eq!(sum.unwrap(), state.step as f32);
    println!("\nall steps were made");
}
