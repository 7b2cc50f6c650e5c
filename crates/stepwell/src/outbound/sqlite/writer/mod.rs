//! The threads that own the connections: one writes, one reads, one watches for other processes.

mod call;
mod group_commit;
mod reader;
mod transaction;
mod watch;

pub(crate) use call::Calls;
pub(crate) use group_commit::{WriterParts, start_writer};
pub(crate) use reader::start_reader;
pub(crate) use transaction::{Transaction, TransactionParts};
pub(crate) use watch::{Watch, start_watch};

#[expect(clippy::disallowed_methods, reason = "a SQLite connection blocks, so it has a thread")]
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}
