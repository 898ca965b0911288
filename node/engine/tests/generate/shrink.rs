//! Makes a failing program and its history smaller while they still fail.

use super::history::Step;

/// Rounds of trying everything: each round that changes nothing is the last.
const ROUNDS_MAX: usize = 8;

/// `fails` says whether a source that may not even compile fails with a history.
pub fn shrunken(
    source: &str,
    history: &[Step],
    fails: &mut dyn FnMut(&str, &[Step]) -> bool,
) -> (String, Vec<Step>) {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    let mut history = history.to_vec();
    for _ in 0..ROUNDS_MAX {
        let before = (lines.len(), history.len());
        shrink_history(&lines, &mut history, fails);
        shrink_lines(&mut lines, &history, fails);
        if before == (lines.len(), history.len()) {
            break;
        }
    }
    (lines.join("\n") + "\n", history)
}

fn shrink_history(lines: &[String], history: &mut Vec<Step>, fails: &mut dyn FnMut(&str, &[Step]) -> bool) {
    let source = lines.join("\n") + "\n";
    let mut length = history.len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        while at < history.len() {
            let mut fewer = history.clone();
            fewer.drain(at..(at + length).min(history.len()));
            if fails(&source, &fewer) {
                *history = fewer;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
}

fn shrink_lines(lines: &mut Vec<String>, history: &[Step], fails: &mut dyn FnMut(&str, &[Step]) -> bool) {
    let mut at = lines.len();
    while at > 0 {
        at -= 1;
        if at >= lines.len() {
            continue;
        }
        for fewer in without(lines, at) {
            if fails(&(fewer.join("\n") + "\n"), history) {
                *lines = fewer;
                break;
            }
        }
    }
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// What is left without the line, or the block that it begins, or only the block's own two lines.
fn without(lines: &[String], at: usize) -> Vec<Vec<String>> {
    let line = &lines[at];
    let cut = |from: usize, upto: usize| [&lines[..from], &lines[upto..]].concat();
    if !line.ends_with('{') {
        return if line.trim() == "}" { Vec::new() } else { vec![cut(at, at + 1)] };
    }
    let end = (at + 1..lines.len())
        .find(|next| depth(&lines[*next]) == depth(line) && lines[*next].trim_start().starts_with('}'));
    let Some(end) = end else { return Vec::new() };
    if line.trim_start().starts_with('}') {
        return vec![cut(at, end)];
    }
    let last =
        (end..lines.len()).find(|next| depth(&lines[*next]) == depth(line) && lines[*next].trim() == "}");
    let mut found: Vec<Vec<String>> = last.map(|last| cut(at, last + 1)).into_iter().collect();
    let mut unwrapped = lines.to_vec();
    unwrapped.remove(end);
    unwrapped.remove(at);
    found.push(unwrapped);
    found
}
