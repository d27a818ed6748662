//! The GPUs that this process offers or computes on.

use ferroflow::gpu::{CudaOptions, FoundGpus, Gpu, GpuChoice, find_gpus};
use ferroflow::{Code, Error, Result};
use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
use std::sync::{Arc, Mutex, PoisonError};

/// If set to a number, replaces real GPUs by this many that run on the processor, for tests.
const SIMULATE_VARIABLE: &str = "FERROFLOW_SIMULATE_GPUS";

/// The memory of a simulated GPU.
const SIMULATED_MEMORY: usize = 2 << 30;

/// Flags of commands that offer GPUs.
#[derive(clap::Args, Clone, Debug)]
pub struct GpuFlags {
    /// GPUs to offer at most [default: all]
    #[arg(long, value_name = "N")]
    gpus: Option<usize>,
    /// GPUs to offer, by the driver's numbers, such as 2,0 [default: all]
    #[arg(long, value_name = "LIST")]
    visible_gpus: Option<String>,
    /// Part of a GPU's memory that tensors may use, such as 0.5 [default: the free memory less a
    /// reserve of 5 %]
    #[arg(long, value_name = "PART")]
    gpu_memory_fraction: Option<f64>,
    /// Offers GPUs that run on the processor instead of real ones, for tests; needs g++
    #[arg(long, value_name = "N", hide = true)]
    simulate_gpus: Option<u32>,
}

impl GpuFlags {
    /// The GPUs to offer. The log has the reason if there is none.
    pub fn found(&self) -> Result<Vec<Arc<dyn Gpu>>> {
        let visible = self.visible_gpus.as_deref().unwrap_or_default();
        let choice = GpuChoice {
            most: self.gpus,
            visible: GpuChoice::parse_visible(visible)?,
            memory_fraction: self.gpu_memory_fraction,
        };
        // Checks the fraction even if there is no GPU.
        choice.memory_limit(SIMULATED_MEMORY, SIMULATED_MEMORY)?;
        let FoundGpus { gpus, why_not } = offered(&choice, self.simulate_gpus)?;
        if let Some(why) = why_not {
            tracing::info!("no {}GPU, because {why}", if gpus.is_empty() { "" } else { "other " });
        }
        gpus.iter().for_each(|gpu| tracing::info!("{}", gpu.description()));
        Ok(gpus)
    }
}

/// The chosen GPUs: real ones, or simulated ones if the caller or the environment asks for them.
pub fn offered(choice: &GpuChoice, simulated: Option<u32>) -> Result<FoundGpus> {
    if choice.most == Some(0) {
        return Ok(FoundGpus { gpus: Vec::new(), why_not: None });
    }
    let asked = std::env::var(SIMULATE_VARIABLE).ok().and_then(|n| n.parse().ok());
    match simulated.or(asked) {
        Some(n) => simulate(choice, n),
        None => Ok(find_gpus(&CudaOptions { choice: choice.clone(), ..CudaOptions::default() })),
    }
}

/// The GPUs of sessions in this process. The first call opens them, as in TensorFlow; later calls
/// may use fewer. A process that was forked after the first call has none.
pub fn of_process(choice: &GpuChoice) -> Result<Vec<Arc<dyn Gpu>>> {
    static OPENED: Mutex<Option<(u32, Vec<Arc<dyn Gpu>>)>> = Mutex::new(None);
    if choice.most == Some(0) {
        return Ok(Vec::new());
    }
    let process = std::process::id();
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = match &*opened {
        Some((by, gpus)) if *by == process => gpus.clone(),
        Some(_) => Vec::new(),
        None => {
            let all = GpuChoice { most: None, ..choice.clone() };
            let found = offered(&all, None)?.gpus;
            *opened = Some((process, found.clone()));
            found
        }
    };
    Ok(all.into_iter().take(choice.most.unwrap_or(usize::MAX)).collect())
}

/// GPUs that run on the processor. `CUDA_VISIBLE_DEVICES` hides some, as with real ones.
fn simulate(choice: &GpuChoice, n: u32) -> Result<FoundGpus> {
    let all: Vec<u32> = (0..n).collect();
    let listed = match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(list) => seen(&list, n),
        Err(_) => all,
    };
    let memory_limit = choice.memory_limit(SIMULATED_MEMORY, SIMULATED_MEMORY)?;
    let options = SimulatedGpuOptions { memory_limit, ..Default::default() };
    let chosen = choice.ordinals(listed.len())?;
    let gpus: Vec<Arc<dyn Gpu>> = (0..)
        .zip(&chosen)
        .map(|(index, _)| SimulatedGpu::new(index, options.clone()) as Arc<dyn Gpu>)
        .collect();
    let why_not = gpus.is_empty().then(|| "none is visible".to_string());
    Ok(FoundGpus { gpus, why_not })
}

/// The GPUs of `CUDA_VISIBLE_DEVICES`: the first number that names none ends the list.
fn seen(list: &str, n: u32) -> Vec<u32> {
    let numbers = list.split(',').map(|entry| entry.trim().parse::<u32>().ok());
    numbers.map_while(|number| number.filter(|number| *number < n)).collect()
}

/// The one GPU to train on, or the reason why there is none.
pub fn for_training(simulated: bool) -> Result<Vec<Arc<dyn Gpu>>> {
    let one = GpuChoice { most: Some(1), ..GpuChoice::default() };
    let FoundGpus { gpus, why_not } = offered(&one, simulated.then_some(1))?;
    if gpus.is_empty() {
        let why = why_not.unwrap_or_else(|| "the driver lists none".into());
        return Err(Error::new(Code::Unavailable, format!("no GPU, because {why}")));
    }
    Ok(gpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_names_no_gpu_ends_the_visible_ones() {
        assert_eq!(seen("1,0", 2), [1, 0]);
        assert_eq!(seen("0,-1,1", 2), [0]);
        assert_eq!(seen("", 2), [] as [u32; 0]);
        assert_eq!(seen("1,2,0", 2), [1]);
    }

    #[test]
    fn simulated_gpus_follow_the_choice() {
        let half = GpuChoice { memory_fraction: Some(0.5), most: Some(2), ..Default::default() };
        let found = simulate(&half, 3).unwrap();
        assert_eq!(found.gpus.len(), 2);
        assert_eq!(found.gpus[1].memory().limit, SIMULATED_MEMORY / 2);
        assert!(found.gpus[1].description().starts_with("device: 1, name: simulated, pci bus id:"));
        let absent = GpuChoice { visible: Some(vec![3]), ..Default::default() };
        assert!(simulate(&absent, 3).is_err());
    }
}
