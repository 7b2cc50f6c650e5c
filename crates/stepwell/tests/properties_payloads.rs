//! Values that go through the default codec come back as they were, to the last bit (FD3).

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stepwell::erased_serde;
use stepwell::ports::{Codec, JsonCodec};

/// A value as it is read back.
fn through<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let bytes = JsonCodec.encode(value).expect("it can be written");
    let mut read = None;
    let mut reader = |deserializer: &mut dyn erased_serde::Deserializer<'_>| {
        read = Some(erased_serde::deserialize(deserializer)?);
        Ok(())
    };
    JsonCodec.decode(&bytes, &mut reader).expect("it can be read");
    read.expect("the codec has read it")
}

/// Numbers inside of structures, lists and maps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Nested {
    amount: f64,
    parts: Vec<f32>,
    count: Option<u128>,
    name: String,
}

fn doubles() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("JSON has no such number", |n| n.is_finite())
}

fn floats() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("JSON has no such number", |n| n.is_finite())
}

fn many_cases() -> ProptestConfig {
    ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(many_cases())]

    #[test]
    fn doubles_come_back_bit_for_bit(number in doubles()) {
        prop_assert_eq!(through(&number).to_bits(), number.to_bits());
    }

    #[test]
    fn floats_come_back_bit_for_bit(number in floats()) {
        prop_assert_eq!(through(&number).to_bits(), number.to_bits());
    }

    #[test]
    fn whole_numbers_come_back(numbers in any::<(i64, u64, u128, i128)>()) {
        prop_assert_eq!(through(&numbers), numbers);
    }

    #[test]
    fn texts_come_back(text in any::<String>(), letter in any::<char>()) {
        prop_assert_eq!(through(&(text.clone(), letter)), (text, letter));
    }

    #[test]
    fn what_is_nested_comes_back(
        amount in doubles(),
        parts in proptest::collection::vec(floats(), 0..4),
        count in any::<Option<u128>>(),
        name in any::<String>(),
    ) {
        let nested = Nested { amount, parts, count, name };
        prop_assert_eq!(through(&nested), nested);
    }
}
