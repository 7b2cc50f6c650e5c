//! Values of single columns. One that makes no sense is refused, never guessed at.

use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::id::{Node, RunKey, Token};
use stepwell_core::time::Timestamp;

use crate::outbound::sqlite::file::corrupt;
use crate::ports::StoreError;

/// What reading or writing rows gives.
pub(crate) type Rows<T> = Result<T, StoreError>;

/// The columns that a statement selects beside those of a table, or instead of them.
macro_rules! selected {
    ($(#[$doc:meta])* $name:ident { $($column:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        enum $name {
            $($column,)*
        }

        impl From<$name> for usize {
            fn from(column: $name) -> Self {
                column as Self
            }
        }
    };
}

pub(super) use selected;

/// The column of a statement that selects one.
pub(super) const ONLY: usize = 0;

/// A part of a row that begins at some column: the columns of one of the tables that were joined.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r, 's> {
    row: &'r Row<'s>,
    from: usize,
}

impl<'r, 's> Cells<'r, 's> {
    /// All of a row.
    pub(super) fn of(row: &'r Row<'s>) -> Self {
        Self { row, from: 0 }
    }

    /// What follows after this many columns.
    pub(super) fn after(self, n_columns: usize) -> Self {
        Self { row: self.row, from: self.from + n_columns }
    }

    pub(super) fn get<T: FromSql>(self, column: impl Into<usize>) -> Rows<T> {
        Ok(self.row.get(self.from + column.into())?)
    }

    pub(super) fn unsigned(self, column: impl Into<usize>) -> Rows<u64> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| corrupt("a count is negative"))
    }

    pub(super) fn count(self, column: impl Into<usize>) -> Rows<u32> {
        u32::try_from(self.unsigned(column)?).map_err(|_| corrupt("a count is too large"))
    }

    pub(super) fn node(self, column: impl Into<usize>) -> Rows<Node> {
        self.count(column).map(Node)
    }

    pub(super) fn optional_unsigned(self, column: impl Into<usize>) -> Rows<Option<u64>> {
        let number: Option<i64> = self.get(column)?;
        number.map(u64::try_from).transpose().map_err(|_| corrupt("a count is negative"))
    }

    pub(super) fn optional_node(self, column: impl Into<usize>) -> Rows<Option<Node>> {
        let number = self.optional_unsigned(column)?.map(u32::try_from).transpose();
        Ok(number.map_err(|_| corrupt("a node is no number"))?.map(Node))
    }

    pub(super) fn run_key(self, column: impl Into<usize>) -> Rows<RunKey> {
        Ok(RunKey(u128::from_be_bytes(self.get(column)?)))
    }

    pub(super) fn token(self, column: impl Into<usize>) -> Rows<Token> {
        Ok(Token(u128::from_be_bytes(self.get(column)?)))
    }

    pub(super) fn time(self, column: impl Into<usize>) -> Rows<Timestamp> {
        Ok(Timestamp::from_micros(self.get(column)?))
    }

    pub(super) fn optional_time(self, column: impl Into<usize>) -> Rows<Option<Timestamp>> {
        let micros: Option<i64> = self.get(column)?;
        Ok(micros.map(Timestamp::from_micros))
    }

    /// A name that was checked when it was stored.
    pub(super) fn name<T: TryFrom<String>>(self, column: impl Into<usize>) -> Rows<T> {
        let text: String = self.get(column)?;
        T::try_from(text).map_err(|_| corrupt("a stored name is not well formed"))
    }

    pub(super) fn json<T: DeserializeOwned>(self, what: &str, column: impl Into<usize>) -> Rows<T> {
        let text: String = self.get(column)?;
        from_json(what, &text)
    }

    pub(super) fn optional_json<T: DeserializeOwned>(
        self,
        what: &str,
        column: impl Into<usize>,
    ) -> Rows<Option<T>> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| from_json(what, &text)).transpose()
    }

    /// A state by its number.
    pub(super) fn state<T: Copy>(
        self,
        column: impl Into<usize>,
        all: &[T],
        number_of: impl Fn(T) -> i64,
    ) -> Rows<T> {
        let number: i64 = self.get(column)?;
        let found = all.iter().copied().find(|state| number_of(*state) == number);
        found.ok_or_else(|| corrupt(format!("state {number} is unknown")))
    }
}

fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Rows<T> {
    serde_json::from_str(text).map_err(|error| corrupt(format!("{what}: {error}")))
}

pub(super) fn json(value: &impl Serialize) -> Rows<String> {
    serde_json::to_string(value).map_err(|error| corrupt(error.to_string()))
}

pub(super) fn key(run: RunKey) -> [u8; 16] {
    run.0.to_be_bytes()
}

pub(super) fn token(token: Token) -> [u8; 16] {
    token.0.to_be_bytes()
}

/// Unsigned numbers of the engine fit a signed column by construction.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
