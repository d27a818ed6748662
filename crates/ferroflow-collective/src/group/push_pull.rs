//! All-reduce among ranks with the help of servers, as with parameter servers.

use super::{Group, Plan, SEGMENT, SetId, cached, count_of};
use crate::executor::{ScheduleJob, execute};
use crate::reduce::{ReduceOp, check_dtype};
use crate::schedule::{push_pull, push_pull_bounds};
use crate::signature::{OperationKind, Signature};
use ferroflow_core::{DType, Result, ensure};
use std::time::Instant;

impl Group {
    /// The number of servers: processes that sum for the ranks and have no values. They are not
    /// ranks, and their numbers follow those of the ranks.
    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Whether the servers sum everything, as parameter servers do. Otherwise the ranks sum a part.
    pub fn servers_only(&self) -> bool {
        self.servers_only
    }

    /// Whether this process is a server.
    pub fn is_server(&self) -> bool {
        self.rank >= self.size()
    }

    /// A server's part in an all-reduce among the ranks. All ranks call with this number of values.
    pub fn serve_all_reduce(&mut self, dtype: DType, count: usize, op: ReduceOp) -> Result<()> {
        ensure!(self.is_server(), FailedPrecondition, "process {} is not a server", self.rank);
        check_dtype(dtype)?;
        let width = dtype.size().unwrap_or(1);
        let bytes = count.checked_mul(width).filter(|&b| b < 1 << 46);
        let bytes = bytes.ok_or_else(|| {
            ferroflow_core::err!(
                ResourceExhausted,
                "cannot sum {count} {dtype} values: no machine has that much memory"
            )
        })?;
        let mut values = std::mem::take(&mut self.served);
        // The server touches only its own part of the buffer.
        if values.len() < bytes {
            values.resize(bytes, 0);
        }
        let result = self.push_pull(dtype, &mut values[..bytes], op);
        self.served = values;
        result
    }

    pub(super) fn push_pull(&mut self, dtype: DType, bytes: &mut [u8], op: ReduceOp) -> Result<()> {
        let count = count_of(dtype, bytes)?;
        let (n, k, me) = (self.size(), self.servers, self.rank);
        let segment = SEGMENT / dtype.size().unwrap_or(1);
        let signature = Signature {
            kind: OperationKind::PushPull,
            op,
            dtype,
            variant: u16::from(self.servers_only),
            set: SetId::WORLD.0,
            count: count as u64,
        };
        let bounds = push_pull_bounds(n, k, count, self.servers_only);
        let plan = Plan {
            kind: OperationKind::PushPull,
            set: 0,
            variant: signature.variant,
            segment,
            bounds: bounds.clone(),
        };
        let schedule = cached(&mut self.schedules, plan, || push_pull(n, k, me, &bounds, segment));
        self.alive()?;
        self.push_pulls = self.push_pulls.wrapping_add(1);
        let job = ScheduleJob {
            signature,
            sequence: self.push_pulls,
            schedule: &schedule,
            members: &self.everyone,
            me,
            dtype,
            op,
            ranks: n as u32,
            source: None,
            buffer: bytes,
            deadline: Instant::now() + self.options.timeout,
        };
        execute(&mut *self.mesh, &mut self.scratch, job).map_err(|e| self.fail(e))
    }
}
