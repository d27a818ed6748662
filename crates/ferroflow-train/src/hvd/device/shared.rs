//! Collectives of ranks that share one GPU: each reads the tensors of all others in its memory, and
//! reduces them in the order of ranks.

use super::{DeviceCall, DeviceDone, ensure_same, parts};
use crate::hvd::Link;
use ferroflow_collective::{Collective, SubmitOptions};
use ferroflow_core::{Gpu, GpuReduction, LaunchArg, Result, Tensor, bail, err};
use ferroflow_op_kit::gpu::{GpuKernel, address, c_type, length};
use std::sync::Arc;

/// The most ranks whose addresses fit into one launch.
const MOST: usize = 64;

const TEXT: &str = r#"
struct Ranks { i64 count; i64 at[64]; };
extern "C" __global__ void reduce(i64 n, Ranks ranks, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        typedef SumOf<T>::type S;
        S sum = (S)wide(((const T *)ranks.at[0])[i]);
        for (int r = 1; r < (int)ranks.count; r++) {
            S x = (S)wide(((const T *)ranks.at[r])[i]);
            sum = COMBINED;
        }
        out[i] = Narrow<T>::from(RESULT);
    }
}
"#;

/// Makes a call with all ranks. `done` gets the result when the GPU has it.
pub(super) fn call(
    link: &Arc<Link>,
    name: &str,
    call: DeviceCall,
    tensor: Tensor,
    ask: SubmitOptions,
    done: DeviceDone,
) {
    let Some(gpu) = tensor.gpu().cloned() else {
        return done(Err(err!(Internal, "a tensor in host memory")));
    };
    let address = match tensor.device_address() {
        Ok(address) => address,
        Err(e) => return done(Err(e)),
    };
    let (link, name, waits) = (link.clone(), name.to_string(), gpu.clone());
    // The other ranks read the tensor when it is complete.
    let complete = move |ended: Result<_>| {
        let announced = ended.and_then(|_| announcement(&gpu, call, &tensor));
        let (head, mine) = match announced {
            Ok(announced) => announced,
            Err(e) => return done(Err(e)),
        };
        let (text, later, again) = (name.clone(), link.clone(), ask.clone());
        let then = move |all: Result<(Tensor, Vec<usize>)>| {
            let rank = later.place.read().rank;
            let result = all.and_then(|(all, counts)| {
                reduced(&gpu, &text, call, rank, &tensor, head, &all, &counts)
            });
            finish(&later, &text, &gpu, tensor, again, result, done);
        };
        let gathered = format!("{name} on one GPU");
        link.submit(&gathered, mine, Collective::AllGather, ask, then);
    };
    waits.download(address, 0, Box::new(complete));
}

/// The message of this rank to the others: its call, then the name of its memory. Also returns the
/// length of the first part.
fn announcement(gpu: &Arc<dyn Gpu>, call: DeviceCall, tensor: &Tensor) -> Result<(usize, Tensor)> {
    let mut words = call.words(tensor);
    let head = words.len();
    let exported = gpu.export(tensor.device_address()?)?;
    words.extend(exported.iter().map(|&byte| i64::from(byte)));
    Ok((head, Tensor::vector(&words)))
}

/// Enqueues the reduction of the tensors of all ranks.
fn reduced(
    gpu: &Arc<dyn Gpu>,
    name: &str,
    call: DeviceCall,
    rank: usize,
    tensor: &Tensor,
    head: usize,
    all: &Tensor,
    counts: &[usize],
) -> Result<Tensor> {
    let parts = parts(all, counts)?;
    let heads: Vec<&[i64]> = parts.iter().map(|part| &part[..head.min(part.len())]).collect();
    ensure_same(name, &heads)?;
    // The driver does not let a process import its own exports.
    let import = |(of, part): (usize, &&[i64])| match of == rank {
        true => tensor.device_address(),
        false => {
            let bytes: Vec<u8> = part[head..].iter().map(|&byte| byte as u8).collect();
            gpu.import(&bytes, tensor.byte_len())
        }
    };
    let addresses = parts.iter().enumerate().map(import).collect::<Result<Vec<u64>>>()?;
    let out = Tensor::on_device(gpu, tensor.dtype(), tensor.shape().clone())?;
    match call {
        DeviceCall::Broadcast(root) => {
            let from = addresses.get(root);
            let from = *from.ok_or_else(|| err!(InvalidArgument, "there is no rank {root}"))?;
            gpu.copy(from, out.device_address()?, out.byte_len())?;
        }
        DeviceCall::Reduce(by) => reduce(gpu, by, &addresses, &out)?,
    }
    Ok(out)
}

fn reduce(gpu: &Arc<dyn Gpu>, by: GpuReduction, from: &[u64], out: &Tensor) -> Result<()> {
    if from.len() > MOST {
        bail!(Unimplemented, "{} ranks share a GPU; at most {MOST} can", from.len());
    }
    let (combined, result) = match by {
        GpuReduction::Sum => ("sum + x", "sum"),
        GpuReduction::Mean => ("sum + x", "sum / (S)ranks.count"),
        GpuReduction::Product => ("sum * x", "sum"),
        GpuReduction::Max => ("larger(sum, x)", "sum"),
        GpuReduction::Min => ("smaller(sum, x)", "sum"),
    };
    let text = TEXT.replace("COMBINED", combined).replace("RESULT", result);
    let text = format!("typedef {} T;\n{text}", c_type(out.dtype())?);
    let mut words = vec![from.len() as i64];
    words.extend(from.iter().map(|&at| at as i64));
    words.resize(MOST + 1, 0);
    let n = out.elements();
    let args = [length(n), LaunchArg::Words(words.into()), address(out)?];
    GpuKernel::new(text, "reduce").over(gpu.as_ref(), n, &args)
}

/// Waits until all ranks have read, since this rank's tensor must exist until then. Hands over the
/// result after that.
fn finish(
    link: &Arc<Link>,
    name: &str,
    gpu: &Arc<dyn Gpu>,
    tensor: Tensor,
    ask: SubmitOptions,
    result: Result<Tensor>,
    done: DeviceDone,
) {
    let (link, name, address) = (link.clone(), format!("{name} was read"), address_of(&result));
    let read = move |ended: Result<()>| {
        // A rank that failed takes part: the others wait for it.
        let none = Tensor::vector::<u8>(&[]);
        link.submit(&name, none, Collective::Barrier, ask, move |all| {
            drop(tensor);
            done(ended.and(all.map(drop)).and(result));
        });
    };
    match address {
        Some(address) => gpu.download(address, 0, Box::new(move |ended| read(ended.map(drop)))),
        None => read(Ok(())),
    }
}

fn address_of(result: &Result<Tensor>) -> Option<u64> {
    result.as_ref().ok()?.device_address().ok()
}
