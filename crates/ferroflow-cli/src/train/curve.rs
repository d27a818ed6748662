//! A picture of the loss over the steps, as SVG.

const WIDTH: f32 = 640.0;
const HEIGHT: f32 = 360.0;
const MARGIN: f32 = 48.0;
const MOST_POINTS: usize = 320;

/// The curve on a logarithmic scale, which is what shows the end of training.
pub fn svg(title: &str, points: &[(i64, f32)]) -> String {
    let usable = points.iter().filter(|(_, loss)| loss.is_finite() && *loss > 0.0);
    let usable: Vec<(f32, f32)> = usable.map(|&(step, loss)| (step as f32, loss.log10())).collect();
    let range = |of: fn(&(f32, f32)) -> f32| {
        let values = usable.iter().map(of);
        let (low, high) =
            values.fold((f32::MAX, f32::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low < high { (low, high) } else { (low.min(0.0), low.min(0.0) + 1.0) }
    };
    let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
    let x = |v: f32| MARGIN + (v - x0) / (x1 - x0) * (WIDTH - 2.0 * MARGIN);
    let y = |v: f32| HEIGHT - MARGIN - (v - y0) / (y1 - y0) * (HEIGHT - 2.0 * MARGIN);
    // More points than pixels are of no use.
    let every = usable.len().div_ceil(MOST_POINTS).max(1);
    let line: Vec<String> = usable
        .iter()
        .step_by(every)
        .map(|&(px, py)| format!("{:.1},{:.1}", x(px), y(py)))
        .collect();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\">{title}: loss by global step</text>\n"
    );
    for i in 0..=4 {
        let at = i as f32 / 4.0;
        let (step, loss) = (x0 + at * (x1 - x0), y0 + at * (y1 - y0));
        text += &format!(
            "<line x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"4\" y=\"{:.1}\">{:.3}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{step:.0}</text>\n",
            WIDTH - MARGIN,
            y(loss),
            y(loss),
            y(loss) + 4.0,
            10f32.powf(loss),
            x(step),
            HEIGHT - MARGIN + 18.0,
        );
    }
    let points = line.join(" ");
    text += &format!(
        "<polyline fill=\"none\" stroke=\"#b7410e\" stroke-width=\"1.5\" points=\"{points}\"/>\n</svg>\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_drawn_whatever_the_points() {
        for points in [vec![], vec![(1, 1.0)], vec![(1, 1.0), (2, 0.1)], vec![(1, f32::NAN)]] {
            let svg = svg("x", &points);
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
