//! What a wait gave, as a deserializer: a signal's payload with the signal's name beside it, or
//! that its deadline passed.
//!
//! Stores never look into payloads, so nothing wraps one when a wait gets it. `Signalled<T>` and
//! the enums of `wait_any` come about here, when it is read.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};

/// What `Signalled` calls itself when it is read: no other enum has this name.
pub(crate) const SIGNALLED: &str = "stepwell::Signalled";

const RECEIVED: &str = "received";
const TIMED_OUT: &str = "timed_out";

/// A signal's payload. As `Signalled` it is what was received; as another enum its variant is the
/// signal's name, if that is how the wait was declared; else it is the payload itself.
pub(crate) struct Received<'n, D> {
    pub(crate) variant: Option<&'n str>,
    pub(crate) payload: D,
}

macro_rules! forward {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $($arg: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            self.payload.$method($($arg,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Received<'_, D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        match self.variant {
            _ if name == SIGNALLED => visitor.visit_enum(ReceivedAccess(self)),
            Some(variant) => visitor.visit_enum(NamedVariant { variant, payload: self.payload }),
            None => self.payload.deserialize_enum(name, variants, visitor),
        }
    }

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.payload.is_human_readable()
    }
}

/// `Signalled::Received` with the payload.
struct ReceivedAccess<'n, D>(Received<'n, D>);

impl<'de, 'n, D: Deserializer<'de>> EnumAccess<'de> for ReceivedAccess<'n, D> {
    type Error = D::Error;
    type Variant = Content<Received<'n, D>>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), D::Error> {
        Ok((seed.deserialize(StrDeserializer::new(RECEIVED))?, Content(self.0)))
    }
}

/// The variant that a signal's name says, with its payload.
struct NamedVariant<'n, D> {
    variant: &'n str,
    payload: D,
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for NamedVariant<'_, D> {
    type Error = D::Error;
    type Variant = Content<D>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<D>), D::Error> {
        Ok((seed.deserialize(StrDeserializer::new(self.variant))?, Content(self.payload)))
    }
}

/// A payload as the content of a variant.
struct Content<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for Content<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        serde::Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct("", fields, visitor)
    }
}

/// That the deadline of a wait passed. Only `Signalled` has room for that; whoever takes any value,
/// as a listing of outputs does, gets nothing.
pub(crate) struct TimedOut;

macro_rules! no_room {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* _: V) -> Result<V::Value, Self::Error> {
            no_room()
        }
    )*};
}

impl<'de> Deserializer<'de> for TimedOut {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        if name == SIGNALLED {
            visitor.visit_enum(StrDeserializer::new(TIMED_OUT))
        } else {
            no_room()
        }
    }

    no_room! {
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(_name: &'static str);
        deserialize_newtype_struct(_name: &'static str);
        deserialize_seq();
        deserialize_tuple(_len: usize);
        deserialize_tuple_struct(_name: &'static str, _len: usize);
        deserialize_map();
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

fn no_room<T>() -> Result<T, serde::de::value::Error> {
    Err(Error::custom("the wait timed out, which only `Signalled` has room for"))
}
