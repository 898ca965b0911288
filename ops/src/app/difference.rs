//! What differs between two JSON texts, line by line, for people.

use serde_json::Value;
use similar::{Algorithm, ChangeTag, capture_diff_slices, group_diff_ops};

/// Lines of each side that are compared: comparing costs the lines times those that differ.
const LINES_MAX: usize = 2_000;
/// Lines of what differs that are shown: a screen or two.
const SHOWN_LINES_MAX: usize = 80;
/// Lines that are the same and shown around one that differs.
const CONTEXT_LINES: usize = 3;

/// A JSON text with a line for each of its parts; what is no JSON is shown as it is.
fn pretty(json: &str) -> Vec<String> {
    let parsed = serde_json::from_str::<Value>(json).ok();
    let text = parsed.and_then(|value| serde_json::to_string_pretty(&value).ok());
    text.unwrap_or_else(|| json.to_owned()).lines().take(LINES_MAX).map(str::to_owned).collect()
}

/// The sides of a comparison: beside each other where each is a line, else what differs, `-` the left, `+` the right.
pub fn of_sides(left: &str, right: &str) -> Vec<String> {
    let (left_lines, right_lines) = (pretty(left), pretty(right));
    if left_lines.len() > 1 || right_lines.len() > 1 {
        let mut lines = vec!["- left".to_owned(), "+ right".to_owned()];
        lines.extend(between(&left_lines, &right_lines, CONTEXT_LINES));
        return lines;
    }
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let mut lines = vec![format!("left:  {left}"), format!("right: {right}")];
    // Of short ones everybody sees it.
    if same > 1 {
        lines.push(format!("       {}^ differs from here", " ".repeat(same)));
    }
    lines
}

/// What was removed from a list's rows, `-`, and what was added, `+`, a row a line; none where one is no list.
pub fn of_rows(before: &str, after: &str) -> Option<Vec<String>> {
    let rows = |json: &str| match serde_json::from_str(json) {
        Ok(Value::Array(rows)) => Some(rows.iter().take(LINES_MAX).map(Value::to_string).collect::<Vec<_>>()),
        _ => None,
    };
    Some(between(&rows(before)?, &rows(after)?, 0))
}

fn between(left: &[String], right: &[String], context: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for group in group_diff_ops(capture_diff_slices(Algorithm::Myers, left, right), context) {
        if !lines.is_empty() && context > 0 {
            lines.push("  …".to_owned());
        }
        for change in group.iter().flat_map(|part| part.iter_changes(left, right)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(format!("{sign} {}", change.value()));
        }
    }
    let more = lines.len().saturating_sub(SHOWN_LINES_MAX);
    if more > 0 {
        lines.truncate(SHOWN_LINES_MAX);
        lines.push(format!("… and {more} more lines"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_differ_as_people_read_them() {
        let check = |left: &str, right: &str, expected: &[&str]| {
            assert_eq!(of_sides(left, right), expected, "{left} {right}");
        };
        check("3", "4", &["left:  3", "right: 4"]);
        check(
            r#""hello""#,
            r#""help""#,
            &[r#"left:  "hello""#, r#"right: "help""#, "           ^ differs from here"],
        );
        check("null", r#"{"a":1}"#, &["- left", "+ right", "- null", "+ {", "+   \"a\": 1", "+ }"]);
        check(
            r#"[{"a":1,"b":2}]"#,
            r#"[{"a":1,"b":3}]"#,
            &[
                "- left",
                "+ right",
                "  [",
                "    {",
                "      \"a\": 1,",
                "-     \"b\": 2",
                "+     \"b\": 3",
                "    }",
                "  ]",
            ],
        );
        check("[1,2", "[1]", &["- left", "+ right", "- [1,2", "+ [", "+   1", "+ ]"]);
        let long = |last: u32| format!("[{}1,2,3,4,5,6,7,8,9,{last}]", "0,".repeat(20));
        let lines = of_sides(&long(1), &long(2));
        assert!(lines.len() < 12 && !lines.contains(&"  0,".to_owned()), "{lines:?}");
    }

    #[test]
    fn rows_come_and_go() {
        let rows = of_rows(r#"[{"a":1},{"a":2}]"#, r#"[{"a":2},{"a":3}]"#);
        assert_eq!(rows, Some(vec![r#"- {"a":1}"#.to_owned(), r#"+ {"a":3}"#.to_owned()]));
        assert_eq!((of_rows("1", "[]"), of_rows("[]", "null")), (None, None));
        let many = format!("[{}0]", "0,".repeat(LINES_MAX * 2));
        let rows = of_rows(&many, "[]").expect("both are lists");
        assert_eq!(rows.len(), SHOWN_LINES_MAX + 1);
        assert_eq!(rows[SHOWN_LINES_MAX], format!("… and {} more lines", LINES_MAX - SHOWN_LINES_MAX));
    }
}
