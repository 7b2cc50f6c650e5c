//! What tidy understands of a Rust file: its names, its functions and which parts are tests.
//!
//! A scan over masked text, not a parser: rustfmt has already made the code regular, and a scan
//! needs no dependency. Where it cannot be sure it treats code as production code, so that a doubt
//! shows up as a finding and not as silence.

use std::ops::Range;

use super::mask::mask;

pub(super) struct RustSource {
    /// The file with comments and literals hidden; offsets are those of the text.
    pub(super) code: String,
    test_spans: Vec<Range<usize>>,
}

pub(super) struct Function<'code> {
    pub(super) name: &'code str,
    /// From the keyword `fn` to behind the closing brace.
    pub(super) span: Range<usize>,
}

/// A name or keyword and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Word<'code> {
    pub(super) text: &'code str,
    pub(super) offset: usize,
}

const ITEM_KEYWORDS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "impl", "mod", "pub", "static", "struct", "trait",
    "type", "use",
];

impl RustSource {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = mask(text);
        let is_all_test = is_test_path(path) || code.contains("#![cfg(test)]");
        let test_spans = if is_all_test {
            std::iter::once(0..code.len()).collect()
        } else {
            cfg_test_spans(&code)
        };
        Self { code, test_spans }
    }

    /// Whether the byte at this offset is compiled for tests only.
    pub(super) fn is_test(&self, offset: usize) -> bool {
        self.test_spans.iter().any(|span| span.contains(&offset))
    }

    pub(super) fn functions(&self) -> Vec<Function<'_>> {
        self.items_after("fn")
            .into_iter()
            .map(|name| {
                let end = body_end(&self.code, name.offset + name.text.len());
                Function { name: name.text, span: name.offset - "fn ".len()..end }
            })
            .collect()
    }

    /// The names of the modules written in braces around an offset, outermost first.
    pub(super) fn inline_modules(&self, offset: usize) -> Vec<&str> {
        self.items_after("mod")
            .into_iter()
            .filter(|name| (name.offset..body_end(&self.code, name.offset)).contains(&offset))
            .map(|name| name.text)
            .collect()
    }

    /// Every name that directly follows the keyword, as in `mod name` or `struct Name`.
    pub(super) fn items_after(&self, keyword: &str) -> Vec<Word<'_>> {
        let is_item = |first: Word<'_>, second: Word<'_>| {
            first.text == keyword && &self.code[first.offset + keyword.len()..second.offset] == " "
        };
        let words = words(&self.code);
        words.windows(2).filter(|pair| is_item(pair[0], pair[1])).map(|pair| pair[1]).collect()
    }
}

/// Integration tests, and unit tests that were moved out of their file.
pub(super) fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs") || part.ends_with("_tests.rs"))
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

pub(super) fn words(code: &str) -> Vec<Word<'_>> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_name_byte(**byte)).count();
        if length > 0 {
            found.push(Word { text: &code[at..at + length], offset: at });
        }
        at += length.max(1);
    }
    found
}

/// The items marked `#[cfg(test)]`. A part that a feature can also switch on is production code.
fn cfg_test_spans(code: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    for (start, _) in code.match_indices("#[cfg(") {
        let attribute_end = block_end(code, start + 1);
        let condition = words(&code[start..attribute_end]);
        let says = |text| condition.iter().any(|word| word.text == text);
        let item = skip_attributes(code, attribute_end);
        let is_item =
            words(&code[item..]).first().is_some_and(|word| ITEM_KEYWORDS.contains(&word.text));
        if says("test") && !says("not") && !says("any") && is_item {
            spans.push(start..body_end(code, item));
        }
    }
    spans
}

fn skip_attributes(code: &str, mut at: usize) -> usize {
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if !code[at..].starts_with("#[") {
            return at;
        }
        at = block_end(code, at + 1);
    }
}

/// Behind the item's closing brace, or behind the semicolon of an item without a body.
fn body_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => return block_end(code, at),
            b';' => return at + 1,
            b'(' | b'[' => at = block_end(code, at),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Behind the bracket that closes the one at `open`, of whatever kind.
fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (distance, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return open + distance + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_lines(path: &str, text: &str) -> Vec<String> {
        let source = RustSource::new(path, text);
        let mut offset = 0;
        let mut found = Vec::new();
        for line in text.lines() {
            if source.is_test(offset) {
                found.push(line.trim().to_owned());
            }
            offset += line.len() + 1;
        }
        found
    }

    #[test]
    fn functions_span_from_keyword_to_brace() {
        let text = "impl A {\n  pub fn f(x: [u8; 2]) -> B where C: D {\n  { }\n  }\n  fn g();\n}";
        let source = RustSource::new("src/a.rs", text);
        let spans: Vec<&str> = source.functions().iter().map(|f| &text[f.span.clone()]).collect();
        assert_eq!(spans, ["fn f(x: [u8; 2]) -> B where C: D {\n  { }\n  }", "fn g();"]);
    }

    #[test]
    fn function_pointers_are_no_functions() {
        let source = RustSource::new("src/a.rs", "type Check = fn(&Tree) -> bool;");
        assert!(source.functions().is_empty());
    }

    #[test]
    fn cfg_test_module_is_test_and_the_rest_is_not() {
        let text = "use a;\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\nuse b;\n}\nuse c;";
        let expected = ["#[cfg(test)]", "#[rustfmt::skip]", "mod tests {", "use b;", "}"];
        assert_eq!(test_lines("src/a.rs", text), expected);
    }

    #[test]
    fn conditions_that_production_can_meet_are_not_test() {
        assert!(test_lines("src/a.rs", "#[cfg(not(test))]\nmod a {\n}").is_empty());
        assert!(test_lines("src/a.rs", "#[cfg(any(test, windows))]\nmod a {\n}").is_empty());
        assert!(test_lines("src/a.rs", "struct A {\n#[cfg(test)]\nfield: B,\n}").is_empty());
    }

    #[test]
    fn test_folders_and_files_are_test_throughout() {
        assert_eq!(test_lines("crates/a/tests/b.rs", "use a;"), ["use a;"]);
        assert_eq!(test_lines("crates/a/src/b/tests.rs", "use a;"), ["use a;"]);
        assert!(test_lines("crates/a/src/testing/b.rs", "use a;").is_empty());
    }

    #[test]
    fn inline_modules_are_listed_outermost_first() {
        let text = "mod a { mod b { here } }";
        let source = RustSource::new("src/a.rs", text);
        assert_eq!(source.inline_modules(text.find("here").unwrap()), ["a", "b"]);
        assert!(source.inline_modules(0).is_empty());
    }
}
