//! Collectives that give ranks the values of other ranks: all-gather and all-to-all.

use super::{Group, Plan, SEGMENT, SetId, bounds_of, cached, count_of};
use crate::number::{Number, bytes_of, bytes_of_mut};
use crate::reduce::ReduceOp;
use crate::schedule::{self, Schedule};
use crate::signature::OperationKind;
use ferroflow_core::{DType, Reservation, Result, ensure, err};

impl Group {
    /// Copies the part of each rank to all ranks. Each rank has its own part of `values` in place.
    /// The parts have `counts` values, in order of ranks, or are nearly equal.
    pub fn all_gather<T: Number>(
        &mut self,
        values: &mut [T],
        counts: Option<&[usize]>,
    ) -> Result<()> {
        self.all_gather_in(SetId::WORLD, T::DTYPE, bytes_of_mut(values), counts)
    }

    /// [`Group::all_gather`] among the ranks of a set, on the bytes of any plain type.
    pub fn all_gather_in(
        &mut self,
        set: SetId,
        dtype: DType,
        bytes: &mut [u8],
        counts: Option<&[usize]>,
    ) -> Result<()> {
        const LITTLE: usize = 32 << 10;
        let count = count_of(dtype, bytes)?;
        let (me, n) = self.place(set)?;
        let bounds = bounds_of(counts, n, count)?;
        if n == 1 {
            return self.alive();
        }
        let segment = SEGMENT / dtype.size().unwrap_or(1);
        let signature =
            self.signature(OperationKind::AllGather, ReduceOp::Sum, dtype, 0, set, count);
        let direct = bytes.len() <= LITTLE;
        let plan = Plan {
            kind: OperationKind::AllGather,
            set: set.0,
            variant: u16::from(direct),
            segment,
            bounds: bounds.clone(),
        };
        let schedule = cached(&mut self.schedules, plan, || {
            if direct {
                return schedule::all_gather_direct(n, me, &bounds, segment);
            }
            let mut s = Schedule::default();
            let members: Vec<u32> = (0..n as u32).collect();
            schedule::all_gather_ring(&mut s, &members, me, &bounds, segment);
            s.built()
        });
        self.run(set, signature, &schedule, None, bytes)
    }

    /// The values of all ranks, one after the other, and how many each rank had. Ranks need not
    /// know the numbers before.
    pub fn all_gather_uneven<T: Number>(&mut self, mine: &[T]) -> Result<(Vec<T>, Vec<usize>)> {
        let (bytes, counts) = self.all_gather_uneven_in(SetId::WORLD, T::DTYPE, bytes_of(mine))?;
        Ok((values_of(&bytes), counts))
    }

    /// [`Group::all_gather_uneven`] among the ranks of a set, on the bytes of any plain type.
    pub fn all_gather_uneven_in(
        &mut self,
        set: SetId,
        dtype: DType,
        mine: &[u8],
    ) -> Result<(Vec<u8>, Vec<usize>)> {
        let count = count_of(dtype, mine)?;
        let (me, n) = self.place(set)?;
        let mut counts = vec![0u64; n];
        counts[me] = count as u64;
        self.all_gather_in(set, DType::UInt64, bytes_of_mut(&mut counts), None)?;
        let width = dtype.size().unwrap_or(1);
        let counts = sizes_of(&counts, width)?;
        let start = counts[..me].iter().sum::<usize>() * width;
        let mut all = zeroed(counts.iter().sum::<usize>() * width)?;
        all[start..start + mine.len()].copy_from_slice(mine);
        self.all_gather_in(set, dtype, &mut all, Some(&counts))?;
        Ok((all, counts))
    }

    /// Sends `send_counts[r]` values to each rank `r`, taken from `send` in order. Receives
    /// `recv_counts[r]` values from each rank `r` into `recv`, in order.
    pub fn all_to_all<T: Number>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let (send, recv) = (bytes_of(send), bytes_of_mut(recv));
        self.all_to_all_in(SetId::WORLD, T::DTYPE, send, send_counts, recv, recv_counts)
    }

    /// [`Group::all_to_all`] among the ranks of a set, on the bytes of any plain type.
    pub fn all_to_all_in(
        &mut self,
        set: SetId,
        dtype: DType,
        send: &[u8],
        send_counts: &[usize],
        recv: &mut [u8],
        recv_counts: &[usize],
    ) -> Result<()> {
        let (me, n) = self.place(set)?;
        let out = bounds_of(Some(send_counts), n, count_of(dtype, send)?)?;
        let into = bounds_of(Some(recv_counts), n, count_of(dtype, recv)?)?;
        let (mine, theirs) = (out[me]..out[me + 1], into[me]..into[me + 1]);
        ensure!(
            mine.len() == theirs.len(),
            InvalidArgument,
            "rank {} sends itself {} values and receives {} from itself",
            self.rank,
            mine.len(),
            theirs.len()
        );
        let width = dtype.size().unwrap_or(1);
        recv[theirs.start * width..theirs.end * width]
            .copy_from_slice(&send[mine.start * width..mine.end * width]);
        if n == 1 {
            return self.alive();
        }
        // The count in the header is 0, because each pair of ranks has a different number of
        // values.
        let signature = self.signature(OperationKind::AllToAll, ReduceOp::Sum, dtype, 0, set, 0);
        let schedule = schedule::all_to_all(
            n,
            me,
            |r| out[r]..out[r + 1],
            |r| into[r]..into[r + 1],
            SEGMENT / width,
        );
        self.run(set, signature, &schedule, Some(send), recv)
    }

    /// [`Group::all_to_all`] without `recv_counts`: the senders announce how many values they send.
    pub fn all_to_all_uneven<T: Number>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
    ) -> Result<(Vec<T>, Vec<usize>)> {
        let (bytes, counts) =
            self.all_to_all_uneven_in(SetId::WORLD, T::DTYPE, bytes_of(send), send_counts)?;
        Ok((values_of(&bytes), counts))
    }

    /// [`Group::all_to_all_uneven`] among the ranks of a set, on the bytes of any plain type.
    pub fn all_to_all_uneven_in(
        &mut self,
        set: SetId,
        dtype: DType,
        send: &[u8],
        send_counts: &[usize],
    ) -> Result<(Vec<u8>, Vec<usize>)> {
        let (_, n) = self.place(set)?;
        let given = send_counts.len();
        ensure!(given == n, InvalidArgument, "{given} counts were given for {n} ranks");
        let ones = vec![1; n];
        let counts: Vec<u64> = send_counts.iter().map(|&c| c as u64).collect();
        let mut theirs = vec![0u64; n];
        let into = bytes_of_mut(&mut theirs);
        self.all_to_all_in(set, DType::UInt64, bytes_of(&counts), &ones, into, &ones)?;
        let width = dtype.size().unwrap_or(1);
        let counts = sizes_of(&theirs, width)?;
        let mut recv = zeroed(counts.iter().sum::<usize>() * width)?;
        self.all_to_all_in(set, dtype, send, send_counts, &mut recv, &counts)?;
        Ok((recv, counts))
    }
}

/// A zeroed buffer whose size another rank has announced. An error if there is no memory for it.
pub(crate) fn zeroed(bytes: usize) -> Result<Vec<u8>> {
    // The reservation is not kept: buffers of collectives do not count, but none may exceed the
    // limit of all.
    drop(Reservation::new(bytes)?);
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| {
        err!(
            ResourceExhausted,
            "there is no memory for the {bytes} bytes that other ranks announced"
        )
    })?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

/// Counts that other ranks sent. An error if no machine has memory for so many values.
fn sizes_of(counts: &[u64], width: usize) -> Result<Vec<usize>> {
    let total = counts.iter().try_fold(0u64, |sum, &c| sum.checked_add(c));
    let fits = total.and_then(|t| t.checked_mul(width as u64)).is_some_and(|b| b < 1 << 46);
    ensure!(
        fits,
        ResourceExhausted,
        "cannot gather {counts:?} values: no machine has that much memory"
    );
    Ok(counts.iter().map(|&c| c as usize).collect())
}

fn values_of<T: Number>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::default(); bytes.len() / size_of::<T>()];
    bytes_of_mut(&mut values).copy_from_slice(bytes);
    values
}
