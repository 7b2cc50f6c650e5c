//! What must not compile does not, and the compiler's words stay readable.
//!
//! After a deliberate change, `TRYBUILD=overwrite cargo test -p stepwell-misuse` writes the
//! messages anew.

#[test]
fn misuse_does_not_compile_and_says_why() {
    // R19
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
