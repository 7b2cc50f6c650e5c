//! SQLite's errors, by who must act.

use rusqlite::ErrorCode;

use crate::ports::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        let code = match &error {
            rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
            error => error.sqlite_error_code(),
        };
        match code {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OperationInterrupted,
            ) => Self::Unavailable { operation: "sqlite", why },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(&why),
            // What is too large or contradicts what is stored, or a row that makes no sense.
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
            | None => Self::Corrupt { what: format!("sqlite: {why}") },
            // A statement that does not fit the tables: somebody has to mend that, and no task
            // fails for it.
            Some(_) => {
                tracing::error!(%why, "SQLite refuses a statement, which is tried again");
                Self::Unavailable { operation: "sqlite", why }
            }
        }
    }
}

/// Pages of the file are not what they should be.
pub(super) fn damaged(why: &str) -> StoreError {
    let rest = "SQLite's `.recover` saves what can be read";
    StoreError::Damaged { what: format!("the file is damaged: {why} ({rest})") }
}

/// A row that another row points at is missing, or one that makes no sense.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn told(sql: &str) -> StoreError {
        let file = Connection::open_in_memory().expect("there is room");
        file.execute_batch("create table a (x integer primary key) strict").expect("it is made");
        file.execute_batch(sql).expect_err("it is refused").into()
    }

    #[test]
    fn only_what_the_data_of_an_item_can_cause_is_taken_for_it() {
        let data = ["insert into a values (1), (1)", "insert into a values ('text')"];
        for sql in data {
            assert!(matches!(told(sql), StoreError::Corrupt { .. }), "{sql}");
        }
        for sql in ["insert into b values (1)", "insert into a (y) values (1)", "no sql", "commit"]
        {
            assert!(matches!(told(sql), StoreError::Unavailable { .. }), "{sql}");
        }
    }
}
