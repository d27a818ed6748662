//! The functions of fused formulas in CUDA C++: `stepI` for a formula, `FoldI` for a reduction.
//! Half types are computed in pairs where a kernel has neighbours: a GPU adds and multiplies, and
//! rounds, two of them at once.

use super::c_type;
use crate::prelude::*;
use ferroflow_graph::{FormulaOperand, FormulaStep, FormulaText, FusedFormulas};
use std::fmt::Write;

/// The names of operands in formulas.
const NAMES: [&str; 6] = ["x", "y", "z", "w", "u", "v"];
/// Bytes that a thread reads or writes at once.
pub(super) const PACK_BYTES: usize = 16;

/// Elements of a pack: 16 bytes of the narrowest type that has at least 2.
pub(super) fn pack_of(formulas: &FusedFormulas) -> Result<usize> {
    let types = formulas.inputs.iter().copied().chain([formulas.output()?]);
    let narrowest = types.filter_map(DType::size).min().unwrap_or(PACK_BYTES);
    Ok(PACK_BYTES / narrowest.clamp(2, PACK_BYTES))
}

/// A function for each formula and a struct for each reduction.
pub(super) fn functions(formulas: &FusedFormulas) -> Result<String> {
    let mut text = String::new();
    for (i, step) in formulas.steps.iter().enumerate() {
        let types = step.operands.iter().map(|operand| c_type(type_of(formulas, *operand)));
        let types = types.collect::<Result<Vec<_>>>()?;
        match &step.text {
            FormulaText::Each(formula) => {
                each(&mut text, i, step, formula, &types, has_pairs(formulas))?;
            }
            FormulaText::Fold(fold) => text.push_str(&reduction(i, step, fold, &types)?),
        }
    }
    Ok(text)
}

/// The type of an operand.
fn type_of(formulas: &FusedFormulas, operand: FormulaOperand) -> DType {
    match operand {
        FormulaOperand::Input(k) => formulas.inputs[k],
        FormulaOperand::Step(k) => formulas.steps[k].output,
    }
}

fn each(
    text: &mut String,
    i: usize,
    step: &FormulaStep,
    formula: &str,
    types: &[&str],
    in_pairs: bool,
) -> Result<()> {
    let (n, output) = (types.len(), c_type(step.output)?);
    ensure!((1..=NAMES.len()).contains(&n), Internal, "a formula of {n} operands");
    let named = || types.iter().zip(NAMES);
    let list = |part: &dyn Fn(&str, &str) -> String| {
        named().map(|(t, name)| part(t, name)).collect::<Vec<_>>().join(", ")
    };
    let _ = write!(
        text,
        "__device__ inline auto wide{i}({}) {{\n    \
         typedef {output} Out;\n    typedef WideOf<{}>::type W;\n    return {formula};\n}}\n\
         __device__ inline {output} step{i}({}) {{\n    \
         return Narrow<{output}>::from(wide{i}({}));\n}}\n",
        list(&|t, name| format!("WideOf<{t}>::type {name}")),
        types[0],
        list(&|t, name| format!("{t} {name}")),
        list(&|_, name| format!("wide({name})")),
    );
    if !in_pairs {
        return Ok(());
    }
    let is_alike = is_half(step.output) && types.iter().all(|t| *t == output);
    let both = match formula {
        "x + y" if is_alike => "sum_of(x, y)".to_string(),
        "x - y" if is_alike => "difference_of(x, y)".to_string(),
        "x * y" if is_alike => "product_of(x, y)".to_string(),
        _ => format!(
            "Both<{output}>::from(wide{i}({}), wide{i}({}))",
            list(&|_, name| format!("first_of({name})")),
            list(&|_, name| format!("second_of({name})"))
        ),
    };
    let _ = write!(
        text,
        "__device__ inline Two<{output}> step{i}({}) {{\n    return {both};\n}}\n",
        list(&|t, name| format!("Two<{t}> {name}"))
    );
    Ok(())
}

/// Whether the formulas are computed in pairs.
pub(super) fn has_pairs(formulas: &FusedFormulas) -> bool {
    formulas.rows.is_none() && formulas.steps.iter().any(|step| is_half(step.output))
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Half | DType::BFloat16)
}

fn reduction(i: usize, step: &FormulaStep, fold: &GpuFold, types: &[&str]) -> Result<String> {
    let &[t] = types else { bail!(Internal, "a reduction of {} operands", types.len()) };
    let GpuFold { acc, start, lift, join, finish } = fold;
    let output = c_type(step.output)?;
    Ok(format!(
        "struct Fold{i} {{\n    \
         typedef {t} T;\n    typedef {output} Out;\n    typedef {acc} Acc;\n    \
         static __device__ inline Acc start() {{ return {start}; }}\n    \
         static __device__ inline Acc lift(T x_) {{ Acc x = (Acc)wide(x_); return {lift}; }}\n    \
         static __device__ inline Acc join(Acc a, Acc b) {{ return {join}; }}\n    \
         static __device__ inline Out finish(Acc a, i64 count) {{ \
         return Narrow<Out>::from({finish}); }}\n}};\n"
    ))
}
