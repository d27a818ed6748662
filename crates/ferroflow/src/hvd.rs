//! Data-parallel training by all-reduce, with the calls that Horovod's users know.
//!
//! ```
//! use ferroflow::{hvd, local_session, train::{Optimizer, Sgd}};
//!
//! let hvd = hvd::init()?; // what `ferroflow run`, mpirun, srun or torchrun says; alone otherwise
//! let g = hvd.graph();
//! let w = g.variable("w", 0.0);
//! let loss = (&*w - 3.0).square();
//! let train = hvd.optimizer(Sgd::new(hvd.scaled_rate(0.1))).minimize(&loss);
//! let (init, same) = (g.global_initializer(), hvd.broadcast_variables(&g, 0));
//! let session = local_session(&g)?;
//! session.run(&init)?;
//! session.run(&same)?;
//! for _ in 0..20 {
//!     session.run(&train)?;
//! }
//! assert!(session.run(loss.scalar::<f32>())? < 0.01);
//! # Ok::<(), ferroflow::Error>(())
//! ```

pub use ferroflow_train::hvd::*;

use ferroflow_core::Result;

/// Meets the other processes of the job that the environment describes; without one, this process is
/// alone.
pub fn init() -> Result<World> {
    init_with(Config::from_env())
}

/// [`init`] with settings of one's own.
pub fn init_with(config: Config) -> Result<World> {
    World::meet(config, &crate::default_catalog())
}

/// Meets the other processes of the elastic job that the environment describes, as `ferroflow run` with
/// `--min-np` or `--max-np` sets it.
pub fn elastic_init() -> Result<elastic::Elastic> {
    elastic::Elastic::meet(elastic::seat_from_env()?, Config::from_env(), &crate::default_catalog())
}
