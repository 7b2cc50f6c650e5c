//! Parameters of statements, with their types.
//!
//! Behind a pooler no statement is prepared under a name, so there is none to ask for the types of
//! its parameters: each value says itself what it is at the server.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A parameter of a statement.
pub(crate) type Param<'a> = &'a dyn SqlValue;

/// A value that statements take.
pub(crate) trait SqlValue: ToSql + Sync {
    /// Its type at the server.
    fn sql_type(&self) -> Type;
}

impl<T: SqlType + ToSql + Sync> SqlValue for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

/// What values of a kind are at the server.
pub(crate) trait SqlType {
    const TYPE: Type;
}

/// What lists of such values are at the server.
pub(crate) trait SqlItem {
    const LIST: Type;
}

macro_rules! sql_types {
    ($($kind:ty: $scalar:ident, $list:ident;)*) => {
        $(
            impl SqlType for $kind {
                const TYPE: Type = Type::$scalar;
            }

            impl SqlItem for $kind {
                const LIST: Type = Type::$list;
            }
        )*
    };
}

sql_types! {
    bool: BOOL, BOOL_ARRAY;
    i16: INT2, INT2_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    &str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    &[u8]: BYTEA, BYTEA_ARRAY;
    Vec<u8>: BYTEA, BYTEA_ARRAY;
    Uuid: UUID, UUID_ARRAY;
}

impl<T: SqlType> SqlType for Option<T> {
    const TYPE: Type = T::TYPE;
}

impl<T: SqlItem> SqlItem for Option<T> {
    const LIST: Type = T::LIST;
}

impl<T: SqlItem> SqlType for Vec<T> {
    const TYPE: Type = T::LIST;
}

impl<T: SqlItem> SqlType for &[T] {
    const TYPE: Type = T::LIST;
}
