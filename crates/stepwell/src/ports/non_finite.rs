//! Where a value holds a float that JSON cannot: `serde_json` writes `null` for it, without a word.

use std::fmt::{self, Display};

use serde::ser::{self, Serialize, Serializer};

/// The place and the kind of the first float in a value that is no number or infinite.
pub(super) fn find(value: &(impl Serialize + ?Sized)) -> Option<String> {
    let mut search = Search { path: String::new() };
    match value.serialize(&mut search) {
        Err(Found::Float(what)) => Some(what),
        // What cannot be serialised at all was refused before.
        Ok(()) | Err(Found::Error(_)) => None,
    }
}

/// Looks through a value as a serializer that writes nothing.
struct Search {
    /// Where it is, such as `.lines[3].price`.
    path: String,
}

/// Why a search ended early.
#[derive(Debug)]
enum Found {
    Float(String),
    Error(String),
}

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Float(text) | Self::Error(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: Display>(error: T) -> Self {
        Self::Error(error.to_string())
    }
}

type Searched = Result<(), Found>;

impl Search {
    fn float(&self, is_finite: bool, number: impl Display) -> Searched {
        if is_finite {
            return Ok(());
        }
        let place = if self.path.is_empty() { "the value" } else { self.path.as_str() };
        Err(Found::Float(format!("{place} is {number}")))
    }

    fn inside(&mut self, place: impl Display, value: &(impl Serialize + ?Sized)) -> Searched {
        let outside = self.path.len();
        self.path.push_str(&place.to_string());
        value.serialize(&mut *self)?;
        self.path.truncate(outside);
        Ok(())
    }

    fn items(&mut self) -> Items<'_> {
        Items { search: self, n_seen: 0, key: String::new() }
    }
}

/// The items of a list, a map or a structure.
struct Items<'s> {
    search: &'s mut Search,
    n_seen: usize,
    /// The key of the map's value that follows.
    key: String,
}

impl Items<'_> {
    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Searched {
        self.n_seen += 1;
        self.search.inside(format_args!("[{}]", self.n_seen - 1), value)
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Searched {
        self.search.inside(format_args!(".{name}"), value)
    }
}

/// Values that hold no float.
macro_rules! no_floats {
    ($($name:ident($($kind:ty),*);)*) => {
        $(fn $name(self, $(_: $kind),*) -> Searched {
            Ok(())
        })*
    };
}

impl<'s> Serializer for &'s mut Search {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Items<'s>;
    type SerializeTuple = Items<'s>;
    type SerializeTupleStruct = Items<'s>;
    type SerializeTupleVariant = Items<'s>;
    type SerializeMap = Items<'s>;
    type SerializeStruct = Items<'s>;
    type SerializeStructVariant = Items<'s>;

    no_floats! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_f32(self, number: f32) -> Searched {
        self.float(number.is_finite(), number)
    }

    fn serialize_f64(self, number: f64) -> Searched {
        self.float(number.is_finite(), number)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Searched {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Searched {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Searched {
        self.inside(format_args!(".{variant}"), value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Items<'s>, Found> {
        Ok(self.items())
    }
}

/// Lists and their like: items without a name.
macro_rules! lists {
    ($($kind:ident $item:ident;)*) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Found;

            fn $item<T: Serialize + ?Sized>(&mut self, value: &T) -> Searched {
                self.item(value)
            }

            fn end(self) -> Searched {
                Ok(())
            }
        })*
    };
}

lists! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// Structures: items with a name.
macro_rules! structures {
    ($($kind:ident;)*) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Found;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Searched {
                self.field(name, value)
            }

            fn end(self) -> Searched {
                Ok(())
            }
        })*
    };
}

structures! {
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for Items<'_> {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Searched {
        let key = serde_json::to_string(key).map_err(ser::Error::custom)?;
        key.trim_matches('"').clone_into(&mut self.key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Searched {
        let key = std::mem::take(&mut self.key);
        self.field(&key, value)
    }

    fn end(self) -> Searched {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize)]
    struct Offer {
        name: Option<&'static str>,
        prices: Vec<(u8, f64)>,
        rates: BTreeMap<&'static str, Rate>,
    }

    #[derive(serde::Serialize)]
    enum Rate {
        Fixed(f32),
        Between { low: f64, high: f64 },
        Unknown,
    }

    fn offer(price: f64, rate: Rate) -> Offer {
        Offer { name: None, prices: vec![(1, 0.5), (2, price)], rates: [("eu", rate)].into() }
    }

    #[test]
    fn a_float_that_json_cannot_hold_is_found_with_its_place() {
        let found = |price, rate| find(&offer(price, rate));
        assert_eq!(found(1.0, Rate::Unknown), None);
        assert_eq!(found(f64::NAN, Rate::Unknown).as_deref(), Some(".prices[1][1] is NaN"));
        let fixed = found(1.0, Rate::Fixed(f32::INFINITY));
        assert_eq!(fixed.as_deref(), Some(".rates.eu.Fixed is inf"));
        let between = Rate::Between { low: 0.0, high: f64::NEG_INFINITY };
        assert_eq!(found(1.0, between).as_deref(), Some(".rates.eu.high is -inf"));
        assert_eq!(find(&f64::NAN).as_deref(), Some("the value is NaN"));
        assert_eq!(find(&Some(0.25_f32)), None);
    }
}
