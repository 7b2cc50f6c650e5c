//! What is said of a stored value that does not fit its type: what was expected, where, and what
//! kind of thing was found. Never the value: it may be a secret, and errors are stored and shown.

/// What a reader said, without values. The place is empty for the whole value.
pub(super) fn without_values(said: &str, place: String) -> String {
    let said = said.split(" at line ").next().unwrap_or_default();
    let place = match place.as_str() {
        "" | "." | "?" => String::new(),
        path if path.starts_with('[') => format!(" at {path}"),
        path => format!(" at .{path}"),
    };
    let wrong = said.strip_prefix("invalid type: ").or(said.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        return format!("expected {expected}{place}, found {}", kind(found));
    }
    let unknown =
        [("unknown variant", "an unknown variant"), ("unknown field", "an unknown field")];
    for (prefix, found) in unknown {
        if said.starts_with(prefix) {
            let expected = said.rsplit_once(", expected ").map_or("another", |(_, known)| known);
            return format!("expected {expected}{place}, found {found}");
        }
    }
    if OF_FORM.iter().any(|prefix| said.starts_with(prefix)) {
        return format!("{said}{place}");
    }
    format!("its type refuses what was found{place}")
}

/// What readers say of the form of a value, which tells nothing of its content.
const OF_FORM: [&str; 12] = [
    "missing field",
    "duplicate field",
    "invalid length",
    "EOF",
    "expected",
    "trailing",
    "key must be",
    "recursion limit",
    "number out of range",
    "control character",
    "invalid escape",
    "the wait timed out",
];

/// The kind of a found value: what serde says of it up to the value itself.
fn kind(found: &str) -> &str {
    let end = found.find(['"', '`']).unwrap_or(found.len());
    found[..end].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(said: &str, place: &str) -> String {
        without_values(said, place.to_owned())
    }

    #[test]
    fn kind_and_place_are_told_and_the_value_is_not() {
        let said = "invalid type: string \"s3cret\", expected u32 at line 1 column 9";
        assert_eq!(say(said, "amount"), "expected u32 at .amount, found string");
        assert_eq!(say(said, "[2].amount"), "expected u32 at [2].amount, found string");
        assert_eq!(say(said, "."), "expected u32, found string");
        let said = "invalid value: integer `300`, expected u8";
        assert_eq!(say(said, "age"), "expected u8 at .age, found integer");
        let said = "invalid type: string \"x, expected y\", expected u32";
        assert_eq!(say(said, ""), "expected u32, found string");
        assert_eq!(say("invalid type: null, expected u32", ""), "expected u32, found null");
    }

    #[test]
    fn names_in_the_value_are_not_told_either() {
        let said = "unknown variant `s3cret`, expected `a` or `b`";
        assert_eq!(say(said, "kind"), "expected `a` or `b` at .kind, found an unknown variant");
        assert_eq!(
            say("s3cret is no mail address", "to"),
            "its type refuses what was found at .to"
        );
        assert_eq!(say("missing field `name`", ""), "missing field `name`");
    }
}
