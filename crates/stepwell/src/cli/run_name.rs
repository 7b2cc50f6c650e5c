//! How users name a run: by tenant and id, or by the engine's key.

use stepwell_core::code::Code;
use stepwell_core::id::{RunId, RunKey, Tenant};

use super::Failure;
use crate::error::Error;
use crate::ports::{DynStore, RunView};

/// Hexadecimal digits of a key.
const KEY_DIGITS: usize = 32;

/// The run that a command is about, as the user names it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RunArgs {
    /// The run: TENANT/ID, or ID with --tenant, or its key of 32 hexadecimal digits
    #[arg(value_name = "RUN")]
    run: String,

    /// Whose run it is; RUN is then its id, as it stands
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
}

/// A run's name, understood.
#[derive(Debug, PartialEq, Eq)]
enum RunName {
    Key(RunKey),
    Id(Tenant, RunId),
}

impl RunArgs {
    /// The run of this name.
    ///
    /// # Errors
    /// When the name makes no sense, and with `SW0013` when there is no such run.
    pub(super) async fn find(&self, store: &DynStore) -> Result<RunView, Failure> {
        let name = self.name()?;
        let found = match &name {
            RunName::Key(key) => store.run(*key).await?,
            RunName::Id(tenant, id) => store.find(tenant, id).await?,
        };
        found.ok_or_else(|| name.unknown().into())
    }

    fn name(&self) -> Result<RunName, Failure> {
        if let Some(tenant) = &self.tenant {
            return Ok(RunName::Id(tenant.clone(), run_id(&self.run)?));
        }
        if let Ok(key) = parse_key(&self.run) {
            return Ok(RunName::Key(key));
        }
        let Some((tenant, id)) = self.run.split_once('/') else {
            return Err(Failure::Usage {
                message: format!("{:?} names no run: whose is it?", self.run),
                hint: "give TENANT/ID, or ID with --tenant, or a key of 32 hexadecimal digits",
            });
        };
        let bad = |why| bad_name("tenant", tenant, why);
        Ok(RunName::Id(Tenant::new(tenant).map_err(bad)?, run_id(id)?))
    }
}

impl RunName {
    fn unknown(&self) -> Error {
        let message = match self {
            Self::Key(key) => format!("no run has the key {key}; `stepwell runs` lists the runs"),
            Self::Id(tenant, id) => {
                let (tenant, id) = (tenant.as_str(), id.as_str());
                format!(
                    "tenant {tenant:?} has no run {id:?}; `stepwell runs --tenant {tenant}` lists \
                     its runs"
                )
            }
        };
        Error::refused(Code::UnknownRun, message)
    }
}

/// Reads the engine's key of a run: 32 hexadecimal digits, with hyphens as PostgreSQL shows them
/// or without.
pub(super) fn parse_key(text: &str) -> Result<RunKey, String> {
    let is_uuid = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits = if is_uuid { text.replace('-', "") } else { text.to_owned() };
    let is_key = digits.len() == KEY_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let key = u128::from_str_radix(&digits, 16).ok().filter(|_| is_key);
    key.map(RunKey).ok_or_else(|| format!("a key has {KEY_DIGITS} hexadecimal digits"))
}

fn run_id(id: &str) -> Result<RunId, Failure> {
    RunId::new(id).map_err(|why| bad_name("run id", id, why))
}

fn bad_name(what: &str, name: &str, why: impl std::fmt::Display) -> Failure {
    Failure::Usage {
        message: format!("{what} {name:?} {why}"),
        hint: "give TENANT/ID, or ID with --tenant, or a key of 32 hexadecimal digits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(run: &str, tenant: Option<&str>) -> Result<RunName, Failure> {
        let tenant = tenant.map(|tenant| Tenant::new(tenant).expect("a good name"));
        RunArgs { run: run.to_owned(), tenant }.name()
    }

    fn id(tenant: &str, id: &str) -> RunName {
        RunName::Id(Tenant::new(tenant).expect("a good name"), RunId::new(id).expect("a good name"))
    }

    #[test]
    fn a_run_is_named_by_tenant_and_id_or_by_its_key() {
        let key = "0192f0c1d2e3f4a5b6c7d8e9fa0b1c2d";
        let hyphens = "0192f0c1-d2e3-f4a5-b6c7-d8e9fa0b1c2d";
        let number = RunKey(0x0192_f0c1_d2e3_f4a5_b6c7_d8e9_fa0b_1c2d);
        for (text, tenant, expected) in [
            ("bakery/order-1", None, id("bakery", "order-1")),
            ("bakery/a/b", None, id("bakery", "a/b")),
            ("order-1", Some("bakery"), id("bakery", "order-1")),
            ("a/b", Some("bakery"), id("bakery", "a/b")),
            (key, Some("bakery"), id("bakery", key)),
            (key, None, RunName::Key(number)),
            (hyphens, None, RunName::Key(number)),
            (&key.to_uppercase(), None, RunName::Key(number)),
        ] {
            assert_eq!(name(text, tenant).expect(text), expected);
        }
    }

    #[test]
    fn a_name_that_could_be_anybodys_is_refused() {
        for text in ["order-1", "", "/", "/order-1", "bakery/", "0192f0c1", &"+".repeat(32)] {
            assert!(matches!(name(text, None), Err(Failure::Usage { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_key_that_is_no_number_is_refused() {
        let signed = format!("+{}", "0".repeat(31));
        for text in ["", "12", &signed, "ä", "------------------------------------"] {
            assert!(parse_key(text).is_err(), "{text:?}");
        }
    }
}
