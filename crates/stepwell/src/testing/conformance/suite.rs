//! The macro that makes tests of the cases.

/// Makes one `#[tokio::test]` of every case, in one module per guarantee, for the store that
/// the given [`StoreFixture`](crate::testing::conformance::StoreFixture) opens.
///
/// The crate that calls it needs `tokio` with the features `macros` and `rt`.
#[macro_export]
macro_rules! conformance_suite {
    ($fixture:expr) => {
        fn conformance_fixture() -> impl $crate::testing::conformance::StoreFixture {
            $fixture
        }
        $crate::conformance_cases!($crate::conformance_tests);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($($guarantee:ident { $($name:ident,)* })*) => {
        $(mod $guarantee {
            $(#[tokio::test]
            async fn $name() {
                let (guarantee, name) = (stringify!($guarantee), stringify!($name));
                let fixture = super::conformance_fixture();
                $crate::testing::conformance::check(&fixture, guarantee, name).await;
            })*
        })*
    };
}
