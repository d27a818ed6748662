//! `ferroflow bench allreduce --explain`: draws the moves of each algorithm.

use crate::say::say;
use ferroflow::collective::explain::{ExplainedCollective, ExplainedMove, ExplainedMoves, explain};
use ferroflow::{Code, Error, Result};
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

/// Prints the moves of the named collective, or of all, and writes drawings to `folder`.
pub fn run(name: Option<&str>, n: usize, local: usize, folder: Option<&Path>) -> Result<()> {
    let all = ExplainedCollective::ALL;
    let chosen: Vec<ExplainedCollective> = match name {
        None => all.to_vec(),
        Some(name) => vec![all.into_iter().find(|what| what.name() == name).ok_or_else(|| {
            let known = all.map(ExplainedCollective::name).join(", ");
            let text = format!("--explain cannot draw {name:?}: use one of {known}");
            Error::new(Code::InvalidArgument, text)
        })?],
    };
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|e| unwritten(folder, &e))?;
    }
    for what in chosen {
        let moves = explain(what, n, local)?;
        say!("{}", table(what.name(), n, &moves));
        if let Some(folder) = folder {
            let file = folder.join(format!("{}.svg", what.name()));
            std::fs::write(&file, svg(what.name(), n, &moves)).map_err(|e| unwritten(&file, &e))?;
            say!("drawn in {}\n", file.display());
        }
    }
    Ok(())
}

fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::new(Code::PermissionDenied, format!("cannot write {}: {e}", path.display()))
}

/// The name of a chunk: `a` to `z`, then `c26`.
fn chunk_name(chunk: usize) -> String {
    match u8::try_from(chunk) {
        Ok(number) if number < 26 => char::from(b'a' + number).to_string(),
        _ => format!("c{chunk}"),
    }
}

fn chunks_name(chunks: &Range<usize>, all: usize) -> String {
    match chunks.len() {
        len if len == all => "all".into(),
        1 => chunk_name(chunks.start),
        _ => format!("{}-{}", chunk_name(chunks.start), chunk_name(chunks.end.saturating_sub(1))),
    }
}

/// A row for each round, a column for each rank.
fn table(name: &str, n: usize, moves: &ExplainedMoves) -> String {
    let ExplainedMoves { chunks, rounds, .. } = *moves;
    let mut out = format!("{name}: {n} ranks, {chunks} chunk(s), {rounds} rounds\n");
    let mut rows = vec![vec![String::new(); n]; rounds];
    for ExplainedMove { round, from, to, chunks: part, adds } in &moves.moves {
        let part = chunks_name(part, chunks);
        let mut put = |rank: u32, text: String| {
            let cell = &mut rows[*round][rank as usize];
            let space = if cell.is_empty() { "" } else { " " };
            *cell = format!("{cell}{space}{text}");
        };
        put(*from, format!("{part}→{to}"));
        put(*to, format!("{}{part}", if *adds { '+' } else { '=' }));
    }
    let width = rows.iter().flatten().map(|cell| cell.chars().count()).max().unwrap_or(0).max(8);
    let line = |out: &mut String, head: String, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!(" │ {cell:<width$}")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(out, "{head:>7}{cells}");
    };
    line(&mut out, "round".into(), (0..n).map(|rank| format!("rank {rank}")).collect());
    for (round, cells) in rows.into_iter().enumerate() {
        line(&mut out, (round + 1).to_string(), cells);
    }
    out.push_str("a→1: sends chunk a to rank 1; +a: adds what it receives; =a: copies it\n");
    out
}

const COLUMN: usize = 110;
const BAND: usize = 70;
const TOP: usize = 70;

/// Time runs downwards; a line is a rank, an arrow a message.
fn svg(name: &str, n: usize, moves: &ExplainedMoves) -> String {
    let (width, height) = (COLUMN * n + 60, TOP + BAND * moves.rounds + 50);
    let x = |rank: usize| 60 + COLUMN * rank + COLUMN / 4;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{name} among {n} ranks</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"22\" font-size=\"16\">{name}: {n} ranks, {} rounds. Solid: the receiver \
         adds. Dashed: it copies.</text>\n",
        moves.rounds
    );
    let bottom = TOP + BAND * moves.rounds;
    // Writing to a string does not fail.
    for rank in 0..n {
        let at = x(rank);
        let _ = writeln!(
            out,
            "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">rank {rank}</text>\n\
             <line x1=\"{at}\" y1=\"{TOP}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"#bbb\"/>",
            TOP - 12
        );
    }
    for round in 0..moves.rounds {
        let y = TOP + BAND * round;
        let _ = writeln!(
            out,
            "<text x=\"12\" y=\"{}\" fill=\"#777\">{}</text>",
            y + BAND / 2,
            round + 1
        );
    }
    for m in &moves.moves {
        let (from, to) = (x(m.from as usize), x(m.to as usize));
        let (begin, end) = (TOP + BAND * m.round + 8, TOP + BAND * (m.round + 1) - 10);
        let hue = 360 * m.chunks.start / moves.chunks.max(1);
        let dash = if m.adds { "" } else { " stroke-dasharray=\"5 4\"" };
        let colour = format!("hsl({hue} 65% 40%)");
        let _ = writeln!(
            out,
            "<line x1=\"{from}\" y1=\"{begin}\" x2=\"{to}\" y2=\"{end}\" stroke=\"{colour}\" \
             stroke-width=\"2\"{dash}/>\n<circle cx=\"{to}\" cy=\"{end}\" r=\"4\" \
             fill=\"{colour}\"/>\n<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            (from * 3 + to) / 4 + 4,
            (begin * 3 + end) / 4 - 3,
            chunks_name(&m.chunks, moves.chunks)
        );
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow::collective::Algorithm;

    #[test]
    fn a_ring_of_two_is_drawn() {
        let ring = ExplainedCollective::AllReduce(Algorithm::Ring);
        let moves = explain(ring, 2, 1).unwrap();
        let text = table("ring", 2, &moves);
        assert!(text.starts_with("ring: 2 ranks, 2 chunk(s), 2 rounds\n"), "{text}");
        assert_eq!(text.lines().count(), 5);
        let drawing = svg("ring", 2, &moves);
        assert_eq!(drawing.matches("<circle").count(), moves.moves.len());
        assert_eq!(drawing.matches("stroke-dasharray").count(), 2);
    }
}
