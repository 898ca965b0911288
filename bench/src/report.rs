//! The table for people.

use crate::figure::{Better, Figure, Series, Spread};
use std::fmt::Write;

/// What a machine is and which build ran, in a line.
pub fn heading(provenance: &serde_json::Value) -> String {
    let word = |name: &str| provenance[name].as_str().unwrap_or("unknown").to_owned();
    format!(
        "commit {} ({} files differ), {} build {}, {}, {} processors",
        short(&word("commit")),
        provenance["differs"],
        word("built"),
        short(&word("binary_sha256")),
        word("processor"),
        provenance["processors"],
    )
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// A figure: its values, its bars, its growth.
pub fn lines(figure: &Figure) -> String {
    let declared = &figure.declared;
    let mut text = String::new();
    let judged = &figure.judged;
    let pairs = judged.pairs.len();
    let _ = writeln!(text, "{} ({}), {}", declared.name, declared.unit, judged.size);
    values(&mut text, judged);
    for bar in declared.bars {
        let Some(spread) = judged.compared(bar) else { continue };
        let of = if bar.of == "ours" { String::new() } else { format!("{} ", bar.of) };
        let against = bar.against.map_or_else(String::new, |peer| format!("to {peer} "));
        let most = if declared.better == Better::Higher { "at least" } else { "at most" };
        let _ = writeln!(
            text,
            "    {of}{against}{}   bar: {most} {}   {}",
            shown(spread),
            number(bar.limit),
            figure.verdict(bar).word()
        );
    }
    if !judged.counter {
        let worst = Spread::of(judged.pairs.iter().map(|pair| pair.other_work)).map_or(0.0, |s| s.highest);
        let adequate = judged.adequate();
        let _ = writeln!(
            text,
            "    {adequate} of {pairs} pairs adequate; others' work up to {:.0} %",
            worst * 100.0
        );
    }
    for series in &figure.growth {
        let _ = writeln!(text, "  {}", series.size);
        values(&mut text, series);
    }
    text
}

fn values(text: &mut String, series: &Series) {
    for (place, name) in series.names.iter().enumerate() {
        if let Some(spread) = Spread::of(series.values(place)) {
            let _ = writeln!(text, "    {name:<32} {}", shown(spread));
        }
    }
}

fn shown(spread: Spread) -> String {
    format!("{} ({} … {})", number(spread.median), number(spread.lowest), number(spread.highest))
}

/// Three digits that count; thousands apart.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_read_easily() {
        for (value, text) in
            [(1_234_567.8, "1,234,568"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.123")]
        {
            assert_eq!(number(value), text);
        }
    }
}
