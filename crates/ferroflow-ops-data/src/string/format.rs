//! StringFormat.

use crate::io::summarize::in_full_or_ends;
use crate::prelude::*;

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (template, placeholder) = (init.string("template")?, init.string("placeholder")?);
    ensure!(!placeholder.is_empty(), InvalidArgument, "placeholder must not be empty");
    let parts: Vec<String> = template.split(&placeholder).map(str::to_string).collect();
    let (holes, inputs) = (parts.len() - 1, init.inputs.len());
    ensure!(
        holes == inputs,
        InvalidArgument,
        "num placeholders in template and num inputs must match: {holes} vs. {inputs}"
    );
    let summarize = init.int("summarize")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut out = parts[0].clone();
        for (i, part) in parts[1..].iter().enumerate() {
            out += &in_full_or_ends(ctx.input(i)?, summarize)?;
            out += part;
        }
        ctx.set(0, Tensor::string(out))
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringFormat")
        .doc("A template with its placeholders replaced by tensors.")
        .input("inputs: T")
        .output("output: string")
        .attr("T: list(type) >= 0")
        .attr("template: string = '%s'")
        .attr("placeholder: string = '%s'")
        .attr("summarize: int = 3")
        .shape(shape::scalar)
        .cpu(make);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn tensors_fill_placeholders() {
        check("StringFormat")
            .attr("template", "a %s b %s")
            .input(Tensor::scalar(1i32))
            .input(Tensor::vector(&[1.5f32, 2.5, 3., 4., 5., 6., 7., 8.]))
            .gives(Tensor::string("a 1 b [1.5 2.5 3 ... 6 7 8]"));
        check("StringFormat")
            .attr("template", "%s %s")
            .input(Tensor::scalar(1i32))
            .fails(Code::InvalidArgument, "inputs must match: 2 vs. 1");
    }
}
