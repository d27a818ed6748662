//! Which GPUs a process uses, and how much of their memory, by TensorFlow's rules.

use crate::{Result, bail, ensure};
use std::collections::HashSet;

/// The GPUs that a process may use. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuChoice {
    /// The most GPUs: `device_count` of TensorFlow's ConfigProto.
    pub most: Option<usize>,
    /// The GPUs by the driver's numbers, in this order: `visible_device_list`.
    pub visible: Option<Vec<usize>>,
    /// The part of a GPU's memory that tensors may use: `per_process_gpu_memory_fraction`.
    pub memory_fraction: Option<f64>,
}

/// The least memory to leave to the libraries and the driver.
const LEAST_RESERVE: usize = 300 << 20;

impl GpuChoice {
    /// The GPUs of a list such as `2,0`; `None` for an empty one, which means all.
    pub fn parse_visible(list: &str) -> Result<Option<Vec<usize>>> {
        if list.trim().is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for entry in list.split(',') {
            let Ok(number) = entry.trim().parse() else {
                bail!(
                    InvalidArgument,
                    "Could not parse entry in 'visible_device_list': '{entry}'. \
                     visible_device_list = {list}"
                );
            };
            found.push(number);
        }
        Ok(Some(found))
    }

    /// The driver's numbers of the GPUs to use, of `count` that it lists.
    pub fn ordinals(&self, count: usize) -> Result<Vec<usize>> {
        let mut chosen = self.visible.clone().unwrap_or_else(|| (0..count).collect());
        let mut seen = HashSet::new();
        for number in &chosen {
            ensure!(
                *number < count,
                InvalidArgument,
                "'visible_device_list' listed an invalid GPU id '{number}' but visible device \
                 count is {count}"
            );
            ensure!(
                seen.insert(*number),
                InvalidArgument,
                "visible_device_list contained a duplicate entry: '{number}'"
            );
        }
        chosen.truncate(self.most.unwrap_or(usize::MAX));
        Ok(chosen)
    }

    /// The bytes that tensors may use on a GPU with `total` bytes, `free` of them free: a fraction
    /// of all, or the free bytes less a reserve.
    pub fn memory_limit(&self, free: usize, total: usize) -> Result<usize> {
        let Some(part) = self.memory_fraction else {
            return Ok(free.saturating_sub(LEAST_RESERVE.max(free / 20)));
        };
        ensure!(
            part > 0.0 && part <= 1.0,
            InvalidArgument,
            "per_process_gpu_memory_fraction is {part}; it must be above 0 and at most 1"
        );
        Ok((total as f64 * part) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(list: &str) -> GpuChoice {
        GpuChoice { visible: GpuChoice::parse_visible(list).unwrap(), ..GpuChoice::default() }
    }

    #[test]
    fn gpus_are_used_in_the_order_of_the_list() {
        assert_eq!(visible("").ordinals(3).unwrap(), [0, 1, 2]);
        assert_eq!(visible("2, 0").ordinals(3).unwrap(), [2, 0]);
        let one = GpuChoice { most: Some(1), ..visible("2,0") };
        assert_eq!(one.ordinals(3).unwrap(), [2]);
        let none = GpuChoice { most: Some(0), ..GpuChoice::default() };
        assert!(none.ordinals(3).unwrap().is_empty());
    }

    #[test]
    fn a_wrong_list_is_refused_in_the_words_of_tensorflow() {
        let e = GpuChoice::parse_visible("0,x").unwrap_err();
        assert!(e.message().starts_with("Could not parse entry in 'visible_device_list': 'x'"));
        let e = visible("3").ordinals(2).unwrap_err();
        assert!(e.message().contains("invalid GPU id '3' but visible device count is 2"), "{e}");
        assert!(visible("1,1").ordinals(2).unwrap_err().message().contains("duplicate"));
    }

    #[test]
    fn the_memory_limit_is_a_part_of_all_or_all_but_a_reserve() {
        let part = |fraction| GpuChoice { memory_fraction: Some(fraction), ..Default::default() };
        let (free, total) = (60 << 30, 80 << 30);
        assert_eq!(part(0.25).memory_limit(free, total).unwrap(), 20 << 30);
        assert_eq!(GpuChoice::default().memory_limit(free, total).unwrap(), 57 << 30);
        let small = 1 << 30;
        assert_eq!(GpuChoice::default().memory_limit(small, small).unwrap(), small - LEAST_RESERVE);
        assert!(part(1.5).memory_limit(free, total).is_err());
    }
}
