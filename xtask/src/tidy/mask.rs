//! Hides what is not code: comments and literals become spaces, byte for byte.
//!
//! Checks can then search for names without being misled by a word in a string or a comment.
//! Offsets and lines stay those of the original text.

/// The text with the content of comments, strings and characters replaced by spaces.
pub(super) fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = hidden_until(bytes, at);
        for byte in &mut masked[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(masked).expect("hidden parts begin and end at ASCII characters")
}

/// The end of the comment or literal that begins at `at`, or `at` itself when none does.
fn hidden_until(bytes: &[u8], at: usize) -> usize {
    match &bytes[at..] {
        [b'/', b'/', ..] => find(bytes, at, b"\n").unwrap_or(bytes.len()),
        [b'/', b'*', ..] => block_comment_end(bytes, at),
        [b'"', ..] => string_end(bytes, at + 1),
        [b'\'', ..] => character_end(bytes, at),
        [b'r', b'"' | b'#', ..] if !follows_raw_name(bytes, at) => raw_string_end(bytes, at),
        _ => at,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Tells `'a'` from the lifetime `'a`: a literal is closed after one character.
fn character_end(bytes: &[u8], start: usize) -> usize {
    if bytes.get(start + 1) == Some(&b'\\') {
        return find(bytes, start + 3, b"'").map_or(bytes.len(), |quote| quote + 1);
    }
    let width = bytes.get(start + 1).map_or(1, |byte| match byte {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    });
    let close = start + 1 + width;
    if bytes.get(close) == Some(&b'\'') { close + 1 } else { start }
}

/// The end of `r"…"` or `r#"…"#`; a raw name such as `r#type` is code and ends where it began.
fn raw_string_end(bytes: &[u8], start: usize) -> usize {
    let n_hashes = bytes[start + 1..].iter().take_while(|byte| **byte == b'#').count();
    let quote = start + 1 + n_hashes;
    if bytes.get(quote) != Some(&b'"') {
        return start;
    }
    let close = [b"\"".as_slice(), &b"#".repeat(n_hashes)].concat();
    find(bytes, quote + 1, &close).map_or(bytes.len(), |at| at + close.len())
}

/// Whether the `r` at `at` is the last letter of a name; the prefixes `br` and `cr` are no names.
fn follows_raw_name(bytes: &[u8], at: usize) -> bool {
    let name_length = bytes[..at]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    match name_length {
        0 => false,
        1 => !matches!(bytes[at - 1], b'b' | b'c'),
        _ => true,
    }
}

fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|found| from + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let masked = mask(text);
        assert_eq!(masked.len(), text.len());
        let words: Vec<&str> = masked.split_whitespace().collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn comments_are_hidden() {
        check("a // b\nc /* d /* e */ f */ g", "a c g");
    }

    #[test]
    fn strings_are_hidden_with_their_escapes() {
        check(r#"a "b \" c" d"#, "a d");
        check("a r\"b\\\" c", "a c");
        check("a r#\"b \" c\"# d br#\"e\"# f", "a d b f");
    }

    #[test]
    fn raw_names_stay_code() {
        check("let r#type = for_r#x;", "let r#type = for_r#x;");
    }

    #[test]
    fn characters_are_hidden_and_lifetimes_stay() {
        check(
            "fn f<'a>(x: &'a str) { y == '\"' || y == '\\'' || y == 'é' }",
            "fn f<'a>(x: &'a str) { y == || y == || y == }",
        );
    }

    #[test]
    fn lines_stay_where_they_were() {
        assert_eq!(mask("\"a\nb\"\nc"), "  \n  \nc");
    }
}
