//! The file as one transaction sees it: statements go in, rows come out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use rusqlite::{Connection, Params, PrepFlags, Row, Statement};

use super::KeyHasher;
use crate::outbound::sql::{Table, fill_in};
use crate::ports::{StoreError, TrafficCounter};

/// The prepared statements of one connection. Each is found by the address of its text, which is
/// cheaper than by the text itself.
pub(crate) struct Statements<'c> {
    pub(crate) connection: &'c Connection,
    /// What the words in statements stand for.
    tables: &'static [Table],
    known: RefCell<HashMap<usize, Rc<RefCell<Statement<'c>>>, BuildHasherDefault<KeyHasher>>>,
}

impl<'c> Statements<'c> {
    pub(crate) fn of(connection: &'c Connection, tables: &'static [Table]) -> Self {
        Self { connection, tables, known: RefCell::default() }
    }

    /// Lends a statement out, and lets go of its parameters afterwards: a large payload must not
    /// stay in memory until it is used again.
    fn with<T>(
        &self,
        sql: &'static str,
        work: impl FnOnce(&mut Statement<'c>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_small(sql, |statement| {
            let done = work(statement);
            statement.clear_bindings();
            done
        })
    }

    /// Lends a statement out. One that is lent out already is prepared once more.
    fn with_small<T>(
        &self,
        sql: &'static str,
        work: impl FnOnce(&mut Statement<'c>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let address = sql.as_ptr() as usize;
        let known = self.known.borrow().get(&address).map(Rc::clone);
        if let Some(mut statement) = known.as_ref().and_then(|known| known.try_borrow_mut().ok()) {
            return work(&mut statement);
        }
        let (text, flags) = (fill_in(sql, self.tables), PrepFlags::SQLITE_PREPARE_PERSISTENT);
        let mut statement = self.connection.prepare_with_flags(&text, flags)?;
        let done = work(&mut statement);
        self.known.borrow_mut().insert(address, Rc::new(RefCell::new(statement)));
        done
    }

    /// Begins, ends or marks a transaction.
    pub(crate) fn control(&self, sql: &'static str) -> Result<(), StoreError> {
        self.with(sql, |statement| Ok(statement.execute([]).map(drop)?))
    }
}

/// A transaction that is rolled back unless it is committed.
pub(crate) struct Scope<'s, 'c> {
    statements: &'s Statements<'c>,
}

impl<'s, 'c> Scope<'s, 'c> {
    /// Begins to write: nobody else does until the end.
    pub(crate) fn write(statements: &'s Statements<'c>) -> Result<Self, StoreError> {
        statements.control("begin immediate")?;
        Ok(Self { statements })
    }

    /// Begins to read one snapshot.
    pub(crate) fn read(statements: &'s Statements<'c>) -> Result<Self, StoreError> {
        statements.control("begin")?;
        Ok(Self { statements })
    }

    pub(crate) fn commit(self) -> Result<(), StoreError> {
        self.statements.control("commit")
    }
}

impl Drop for Scope<'_, '_> {
    fn drop(&mut self) {
        // After a commit, or an error upon which SQLite has rolled back, there is nothing to do.
        if !self.statements.connection.is_autocommit() {
            let _ = self.statements.control("rollback");
        }
    }
}

/// A connection within a transaction.
#[derive(Clone, Copy)]
pub(crate) struct File<'s, 'c> {
    pub(crate) statements: &'s Statements<'c>,
    pub(crate) traffic: &'s TrafficCounter,
}

impl File<'_, '_> {
    /// Runs a statement that gives no rows and says how many it changed.
    pub(crate) fn run(self, sql: &'static str, params: impl Params) -> Result<usize, StoreError> {
        self.traffic.statement();
        self.statements.with(sql, |statement| Ok(statement.execute(params)?))
    }

    /// As [`run`](Self::run), for parameters so small that they may stay in memory.
    pub(crate) fn run_small(
        self,
        sql: &'static str,
        params: impl Params,
    ) -> Result<usize, StoreError> {
        self.traffic.statement();
        self.statements.with_small(sql, |statement| Ok(statement.execute(params)?))
    }

    /// The number of the row that was inserted last.
    pub(crate) fn last_inserted(self) -> i64 {
        self.statements.connection.last_insert_rowid()
    }

    /// The first row of a statement.
    pub(crate) fn first<T>(
        self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.traffic.statement();
        self.statements.with(sql, |statement| {
            let mut rows = statement.query(params)?;
            rows.next()?.map(read).transpose()
        })
    }

    /// The rows of a statement, until the reader has what it looks for.
    pub(crate) fn each(
        self,
        sql: &'static str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        self.traffic.statement();
        self.statements.with(sql, |statement| {
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                if !read(row)? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// All rows of a statement.
    pub(crate) fn all<T>(
        self,
        sql: &'static str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.each(sql, params, |row| {
            all.push(read(row)?);
            Ok(true)
        })?;
        Ok(all)
    }
}
