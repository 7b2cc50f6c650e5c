//! Cells of a row, read by the names of its columns.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use stepwell_core::id::{DefinitionId, Node, RunKey, Token};
use stepwell_core::run::Resumed;
use stepwell_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::{Read, corrupt};

/// Columns in the order in which a statement selects them.
pub(super) trait Columns: Copy + 'static {
    /// All of them, in order.
    const ALL: &'static [Self];

    /// The place of this one.
    fn index(self) -> usize;
}

/// The columns of a table, listed once: each says whether it is a `key`, `kept` or `changed`, how
/// Rust and the database call it, and its type there.
macro_rules! columns {
    (
        $(#[$doc:meta])*
        $table:ident: $col:ident = $name:literal {
            $($role:ident $variant:ident $column:literal $kind:literal,)*
        }
    ) => {
        $(#[$doc])*
        pub(super) const $table: $crate::outbound::sql::Table = $crate::outbound::sql::Table {
            name: $name,
            columns: &[$($crate::outbound::sql::Column::$role($column, $kind),)*],
        };

        $crate::outbound::postgres::rows::cells::selected! { $col { $($variant,)* } }
    };
}

/// The columns that statements select beside those of a table.
macro_rules! selected {
    ($(#[$doc:meta])* $col:ident { $($variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        enum $col {
            $($variant,)*
        }

        impl $crate::outbound::postgres::rows::cells::Columns for $col {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

pub(super) use {columns, selected};

/// A row from one of its columns on.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r> {
    row: &'r Row,
    from: usize,
}

impl<'r> Cells<'r> {
    /// The row from its first column on.
    pub(super) fn of(row: &'r Row) -> Self {
        Self { row, from: 0 }
    }

    /// What stands behind these columns.
    pub(super) fn behind<C: Columns>(self) -> Self {
        Self { from: self.from + C::ALL.len(), ..self }
    }

    pub(super) fn get<T: FromSql<'r>>(self, column: impl Columns) -> Read<T> {
        Ok(self.row.try_get(self.from + column.index())?)
    }

    pub(super) fn unsigned(self, column: impl Columns) -> Read<u64> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| corrupt("a count is negative"))
    }

    pub(super) fn size(self, column: impl Columns) -> Read<usize> {
        Ok(usize::try_from(self.unsigned(column)?).unwrap_or(usize::MAX))
    }

    pub(super) fn count(self, column: impl Columns) -> Read<u32> {
        let number: i32 = self.get(column)?;
        u32::try_from(number).map_err(|_| corrupt("a count is negative"))
    }

    pub(super) fn node(self, column: impl Columns) -> Read<Node> {
        self.count(column).map(Node)
    }

    pub(super) fn optional_node(self, column: impl Columns) -> Read<Option<Node>> {
        let number: Option<i32> = self.get(column)?;
        let node = number.map(u32::try_from).transpose();
        Ok(node.map_err(|_| corrupt("a node is no number"))?.map(Node))
    }

    pub(super) fn definition_id(self, column: impl Columns) -> Read<DefinitionId> {
        self.count(column).map(DefinitionId)
    }

    pub(super) fn run_key(self, column: impl Columns) -> Read<RunKey> {
        let key: Uuid = self.get(column)?;
        Ok(RunKey(key.as_u128()))
    }

    pub(super) fn token(self, column: impl Columns) -> Read<Token> {
        let token: Uuid = self.get(column)?;
        Ok(Token(token.as_u128()))
    }

    pub(super) fn time(self, column: impl Columns) -> Read<Timestamp> {
        Ok(Timestamp::from_micros(self.get(column)?))
    }

    /// A moment of the server's clock, in microseconds.
    pub(super) fn moment(self, column: impl Columns) -> Read<i64> {
        let at: SystemTime = self.get(column)?;
        let since_epoch = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    pub(super) fn optional_time(self, column: impl Columns) -> Read<Option<Timestamp>> {
        let micros: Option<i64> = self.get(column)?;
        Ok(micros.map(Timestamp::from_micros))
    }

    /// What ended a task's last wait.
    pub(super) fn resumed(self, column: impl Columns) -> Read<Option<Resumed>> {
        let number: Option<i64> = self.get(column)?;
        let number = number.map(u64::try_from).transpose();
        Ok(number.map_err(|_| corrupt("a signal's number is negative"))?.map(Resumed::of_number))
    }

    /// A name that was checked when it was stored.
    pub(super) fn name<T: TryFrom<String>>(self, column: impl Columns) -> Read<T> {
        let text: String = self.get(column)?;
        T::try_from(text).map_err(|_| corrupt("a stored name is not well formed"))
    }

    /// A state by its number.
    pub(super) fn state<T: Copy>(
        self,
        column: impl Columns,
        all: &[T],
        number_of: impl Fn(T) -> i16,
    ) -> Read<T> {
        let number: i16 = self.get(column)?;
        let found = all.iter().copied().find(|state| number_of(*state) == number);
        found.ok_or_else(|| corrupt(format!("state {number} is unknown")))
    }

    pub(super) fn json<T: DeserializeOwned>(self, column: impl Columns, what: &str) -> Read<T> {
        from_json(what, self.get(column)?)
    }

    pub(super) fn optional_json<T: DeserializeOwned>(
        self,
        column: impl Columns,
        what: &str,
    ) -> Read<Option<T>> {
        let text: Option<&str> = self.get(column)?;
        text.map(|text| from_json(what, text)).transpose()
    }
}

fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Read<T> {
    serde_json::from_str(text).map_err(|error| corrupt(format!("{what}: {error}")))
}

selected! { Only { Value, } }

/// The one value of a row that has only one.
pub(super) fn only<'r, T: FromSql<'r>>(row: &'r Row) -> Read<T> {
    Cells::of(row).get(Only::Value)
}

/// As [`only`], for a count.
pub(super) fn only_unsigned(row: &Row) -> Read<u64> {
    Cells::of(row).unsigned(Only::Value)
}
