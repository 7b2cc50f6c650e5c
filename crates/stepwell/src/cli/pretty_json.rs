//! JSON text with line breaks for people, and without them where a record takes one line. Values
//! stay as they were written: a number that went through a float would lose digits.

const INDENT: usize = 2;

/// The same JSON with a member or an element per line. Takes well-formed text.
pub(super) fn pretty(json: &str) -> String {
    let mut printer = Printer { text: String::with_capacity(2 * json.len()), depth: 0 };
    let mut chars = significant(json).peekable();
    while let Some((char, place)) = chars.next() {
        match (char, place) {
            (_, Place::String) => printer.text.push(char),
            ('{' | '[', _) => match chars.next_if(|(next, _)| matches!(next, '}' | ']')) {
                // What is empty stays on its line.
                Some((end, _)) => printer.text.extend([char, end]),
                None => printer.open(char),
            },
            ('}' | ']', _) => printer.close(char),
            (',', _) => {
                printer.text.push(char);
                printer.line_break();
            }
            (':', _) => printer.text.push_str(": "),
            _ => printer.text.push(char),
        }
    }
    printer.text
}

/// The same JSON on one line. Takes well-formed text.
pub(super) fn compact(json: &str) -> String {
    significant(json).map(|(char, _)| char).collect()
}

/// Where a character stands. Quotes belong to their string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    String,
    Structure,
}

/// All characters but for the space between values.
fn significant(json: &str) -> impl Iterator<Item = (char, Place)> {
    let (mut in_string, mut is_escaped) = (false, false);
    let placed = json.chars().map(move |char| {
        let began_before = in_string;
        in_string = if in_string { is_escaped || char != '"' } else { char == '"' };
        is_escaped = began_before && !is_escaped && char == '\\';
        (char, if began_before || in_string { Place::String } else { Place::Structure })
    });
    placed.filter(|(char, place)| *place == Place::String || !char.is_whitespace())
}

struct Printer {
    text: String,
    depth: usize,
}

impl Printer {
    fn open(&mut self, char: char) {
        self.text.push(char);
        self.depth += 1;
        self.line_break();
    }

    fn close(&mut self, char: char) {
        self.depth = self.depth.saturating_sub(1);
        self.line_break();
        self.text.push(char);
    }

    fn line_break(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', INDENT * self.depth));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_broken_into_lines_as_usual() {
        for value in [
            json!({}),
            json!([]),
            json!(null),
            json!("a, b: {c} [d] \"e\" \\"),
            json!({ "a": [1, { "b": [] }, "x"], "c": { "d": {} }, "e\\\"": -1.5e300 }),
        ] {
            assert_eq!(pretty(&value.to_string()), format!("{value:#}"));
            assert_eq!(compact(&format!("{value:#}")), value.to_string());
        }
    }

    #[test]
    fn numbers_and_order_stay_as_they_were_written() {
        let json = r#" { "b" : 340282366920938463463374607431768211455, "a" : 1.0 , "a":[ ] } "#;
        let expected = "{\n  \"b\": 340282366920938463463374607431768211455,\n  \"a\": 1.0,\n  \
                        \"a\": []\n}";
        assert_eq!(pretty(json), expected);
    }
}
