//! Rows that the database itself must refuse, for both dialects. Words in braces stand for what
//! the dialects write differently; each test puts its own in.

mod cases;
mod inbox;
mod lines;
mod names;

/// Columns with SQL expressions.
pub(crate) type Columns = &'static [(&'static str, &'static str)];

/// A table, a row it takes, and rows it refuses.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Where the table is, if not in both dialects.
    pub(crate) only: Option<&'static str>,
    /// A row that is stored.
    pub(crate) good: Columns,
    /// What makes it another row that could be stored beside it. Empty if there can be only one.
    pub(crate) other: Columns,
    /// What is refused instead, and why.
    pub(crate) bad: &'static [(&'static str, Columns)],
}

/// Every table of a dialect but the one of applied migrations.
pub(crate) fn tables(dialect: &str) -> impl Iterator<Item = &'static Table> {
    let tables = cases::TABLES.iter().chain(lines::LINES).chain(inbox::INBOX).chain(names::NAMES);
    tables.filter(move |table| table.is_in(dialect))
}

/// The values that only one dialect knows, by the words that stand for them.
pub(crate) type Dialect = &'static [(&'static str, &'static str)];

impl Table {
    /// The statement that inserts the good row with some columns changed.
    pub(crate) fn insert(&self, changes: &[Columns], dialect: Dialect) -> String {
        let mut columns: Vec<(&str, &str)> = self.good.to_vec();
        for (name, value) in changes.iter().flat_map(|columns| columns.iter()) {
            match columns.iter_mut().find(|(known, _)| known == name) {
                Some(column) => column.1 = value,
                None => columns.push((name, value)),
            }
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let values: Vec<&str> = columns.iter().map(|(_, value)| *value).collect();
        let sql = format!(
            "insert into {} ({}) values ({})",
            self.name,
            names.join(", "),
            values.join(", ")
        );
        dialect.iter().fold(sql, |sql, (word, value)| sql.replace(word, value))
    }

    pub(crate) fn is_in(&self, dialect: &str) -> bool {
        self.only.is_none_or(|only| only == dialect)
    }
}
