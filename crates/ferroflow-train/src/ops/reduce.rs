//! Reductions.

use crate::output::Output;
use ferroflow_core::DType;

impl Output {
    #[track_caller]
    fn reduce(&self, op: &str, axes: Option<&[i32]>, keep_dims: bool) -> Output {
        let axes = match axes {
            Some(axes) => self.graph.constant(axes),
            None => self.all_axes(),
        };
        self.graph.op(op).input(self).input(&axes).attr("keep_dims", keep_dims).output()
    }

    /// All axes of this tensor: a constant where the rank is known.
    #[track_caller]
    fn all_axes(&self) -> Output {
        match self.shape().rank() {
            Some(rank) => {
                let axes: Vec<i32> = (0..rank as i32).collect();
                self.graph.named_constant("Const", axes)
            }
            None => {
                let rank = self.graph.op("Rank").input(self).output();
                self.graph.range(0, rank, 1)
            }
        }
    }
}

/// One row per reduction: over some axes, kept axes, and over everything.
macro_rules! reductions {
    ($($name:ident $keep:ident $all:ident $op:literal $doc:literal;)*) => {
        impl Output {$(
            #[doc = concat!($doc, " over `axes`, which are dropped.")]
            #[track_caller]
            pub fn $name(&self, axes: &[i32]) -> Output {
                self.reduce($op, Some(axes), false)
            }
            #[doc = concat!($doc, " over `axes`, which are kept with length 1.")]
            #[track_caller]
            pub fn $keep(&self, axes: &[i32]) -> Output {
                self.reduce($op, Some(axes), true)
            }
            #[doc = concat!($doc, " over all axes.")]
            #[track_caller]
            pub fn $all(&self) -> Output {
                self.reduce($op, None, false)
            }
        )*}
    };
}

reductions! {
    sum sum_keep sum_all "Sum" "Sum";
    mean mean_keep mean_all "Mean" "Mean";
    max max_keep max_all "Max" "Maximum";
    min min_keep min_all "Min" "Minimum";
    prod prod_keep prod_all "Prod" "Product";
    all all_keep all_all "All" "Conjunction";
    any any_keep any_all "Any" "Disjunction";
}

impl Output {
    /// The index of the largest element along `axis`.
    #[track_caller]
    pub fn argmax(&self, axis: i32) -> Output {
        let axis = self.graph.constant(axis);
        self.graph.op("ArgMax").input(self).input(&axis).attr("output_type", DType::Int64).output()
    }
}
