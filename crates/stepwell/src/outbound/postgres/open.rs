//! Opening a store: what can be wrong with the way to a server is told here, once, with its
//! remedy. Later the same errors are outages: work waits until they are over.

use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use stepwell_core::code::Code;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Transaction};

use super::connection::connect::{CONNECT_MAX, Connector, Driver};
use super::connection::options::{Access, PostgresOptions};
use super::connection::patience::{BRIEF, Patience};
use super::connection::pool::{Pool, PoolParts, describe};
use super::connection::role::Role;
use super::connection::settings::{begin, session_settings};
use super::connection::tls::{self, Check, TlsParameters};
use super::schema::migrate::{self, Failed};
use super::wake::notify;
use super::{PostgresStore, Shared, rows};
use crate::ports::StoreError;

/// The oldest server whose SQL we speak.
const SERVER_VERSION_MIN: i32 = 140_000;

/// A migration that has not ended by then is given up; it may have to wait for others.
const MIGRATION_MAX: Duration = Duration::from_hours(1);

/// Silence on a connection after which the other side is asked, how often, and when what was
/// sent must have been received: a machine that vanished is noticed within half a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(25);

/// The driver's own idle time, which tells that the URL gives none.
const KEEPALIVE_IDLE_OF_DRIVER: Duration = Duration::from_hours(2);

impl PostgresStore {
    /// Connects to a server and brings its tables up to date.
    ///
    /// # Errors
    /// When the URL makes no sense, the server cannot be reached or refuses the user, or its
    /// schema is newer. Each has a code of its own.
    pub async fn connect(url: impl Into<String>) -> Result<Self, StoreError> {
        Self::connect_with(PostgresOptions::new(url)).await
    }

    /// Connects with other settings.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn connect_with(options: PostgresOptions) -> Result<Self, StoreError> {
        check_schema(&options.schema)?;
        check_connections(options.connections_max)?;
        let work = connector("url", &options.url, &options, options.is_pooled)?;
        let direct = match &options.direct_url {
            Some(url) => Some(connector("direct url", url, &options, false)?),
            None => None,
        };
        let driver = Driver::start().map_err(|error| StoreError::Unavailable {
            operation: "connect to postgres",
            why: error.to_string(),
        })?;
        let first = direct.as_ref().unwrap_or(&work).for_role(Role::Work);
        prepare(&driver, first, &options).await.map_err(|failed| match failed {
            Failed::Server(error) => explain(&error),
            Failed::Refused(error) => error,
        })?;
        let listener = if options.is_pooled { direct.clone() } else { Some(work.clone()) };
        let pool = Pool::new(PoolParts {
            driver,
            work,
            direct,
            connections_max: options.connections_max,
            begin: begin(&options),
            statement_timeout: options.statement_timeout,
            schema: options.schema,
            clock: options.clock,
            is_pooled: options.is_pooled,
        })
        .map_err(refuse)?;
        let shared = Arc::new(Shared::new(pool, options.steps_per_round));
        if let Some(listener) = listener.filter(|_| !options.poll_only) {
            let listener = listener.for_role(Role::Listen);
            notify::start(&shared.pool, &shared.plans, &shared.wakes, listener);
        }
        Ok(Self { shared })
    }

    /// The SQL that makes or updates a schema, for people who run it themselves, from a version
    /// on (0 for none).
    ///
    /// # Errors
    /// When the schema's name needs quotes.
    pub fn migration_script(schema: &str, from_version: usize) -> Result<String, StoreError> {
        check_schema(schema)?;
        Ok(format!("begin;\n\n{}commit;\n", migrate::script(schema, from_version)))
    }

    /// The version of the tables that this program works on.
    #[must_use]
    pub fn schema_version() -> usize {
        migrate::version_known()
    }
}

/// Looks at the server and its tables over one connection.
async fn prepare(
    driver: &Driver,
    connector: Connector,
    options: &PostgresOptions,
) -> Result<(), Failed> {
    let looked = async {
        let (mut client, driven) = driver.connect(connector).await?;
        // A pooler may give every transaction another connection, so what is asked is asked in one.
        let look = client.transaction().await?;
        check_server(&look, options.access).await?;
        let applied = migrate::version_applied(&look, &options.schema).await?;
        look.commit().await?;
        Ok::<_, Failed>((client, driven, applied))
    };
    let (mut client, driven, applied) = within(CONNECT_MAX + BRIEF, looked).await?;
    let migrate = migrate::migrate(&mut client, &options.schema, applied, options.access);
    within(MIGRATION_MAX, migrate).await?;
    drop(client);
    // The connection says goodbye before the next one is made.
    let _ = within(BRIEF, async { Ok(driven.await) }).await;
    Ok(())
}

/// What a server that goes dark keeps nobody from: waiting for it ends.
async fn within<T>(
    span: Duration,
    answer: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    Patience::Each(span).wait_for(answer).await.unwrap_or_else(|| {
        let why =
            format!("no answer within {span:?}; check host and port, and that the server runs");
        Err(StoreError::Unavailable { operation: "connect to postgres", why }.into())
    })
}

async fn check_server(client: &Transaction<'_>, access: Access) -> Result<(), Failed> {
    let ask = "select current_setting('server_version_num')::int, pg_is_in_recovery(), \
               current_setting('transaction_read_only')::bool";
    let row = client.query_typed_one(ask, &[]).await?;
    let server = rows::server::read(&row)?;
    if server.version < SERVER_VERSION_MIN {
        let major = server.version / 10_000;
        let message = format!("the server has version {major}, 14 is needed");
        return Err(refuse(message).into());
    }
    if !server.takes_writes && access != Access::Read {
        return Err(read_only("the server takes no writes").into());
    }
    Ok(())
}

fn read_only(what: &str) -> StoreError {
    let message = format!(
        "{what}; connect to the primary, or name all hosts and target_session_attrs=read-write"
    );
    StoreError::Refused { code: Code::ReadOnlyStore, message }
}

/// How connections are made, as the URL says; it may hold a password and is never shown.
fn connector(
    field: &str,
    url: &str,
    options: &PostgresOptions,
    is_pooled: bool,
) -> Result<Connector, StoreError> {
    let bad = |why: String| {
        refuse(format!("{field}: {why}; it looks like postgres://user@host/database"))
    };
    let (rest, tls) = tls::take_parameters(url);
    let mut config = Config::from_str(&rest).map_err(|error| bad(describe(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(bad("it names no host".into()));
    }
    let roots = options.root_certificates.clone().or(tls.roots.clone());
    let (mode, check) = ssl_mode(&tls, roots.is_some()).map_err(bad)?;
    config.ssl_mode(mode);
    let tls = tls::make_connect(check, roots.as_deref())
        .map_err(|why| StoreError::Refused { code: Code::NoEncryption, message: why })?;
    notice_dead_peers(&mut config);
    let settings = (!is_pooled).then(|| session_settings(options).into());
    Ok(Connector::new(&config, tls, settings))
}

fn ssl_mode(tls: &TlsParameters, has_roots: bool) -> Result<(SslMode, Check), String> {
    Ok(match (tls.mode.as_deref(), has_roots) {
        (Some("disable"), _) => (SslMode::Disable, Check::Nothing),
        (Some("prefer") | None, false) => (SslMode::Prefer, Check::Nothing),
        (Some("require"), false) => (SslMode::Require, Check::Nothing),
        (Some("prefer" | "require" | "verify-ca"), _) => (SslMode::Require, Check::Authority),
        (Some("verify-full") | None, _) => (SslMode::Require, Check::AuthorityAndName),
        (Some(other), _) => {
            return Err(format!(
                "sslmode {other:?} is none of disable, prefer, require, verify-ca, verify-full"
            ));
        }
    })
}

/// What the URL does not say about dead peers, we do.
fn notice_dead_peers(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if config.get_keepalives_idle() == KEEPALIVE_IDLE_OF_DRIVER {
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
}

/// What is wrong, and what to do about it.
fn explain(error: &tokio_postgres::Error) -> StoreError {
    let why = describe(error);
    let refused = |code: Code, remedy: &str| StoreError::Refused {
        code,
        message: format!("postgres: {why}; {remedy}"),
    };
    let Some(state) = error.code() else { return explain_connection(error, refused) };
    if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(state) {
        return refused(
            Code::LoginRefused,
            "check user and password, and the server's pg_hba.conf",
        );
    }
    match *state {
        SqlState::INVALID_CATALOG_NAME => {
            refused(Code::NoSuchPlace, "create the database, or name another one")
        }
        SqlState::INSUFFICIENT_PRIVILEGE => refused(
            Code::MissingRights,
            "run `stepwell migrate` as the owner of the schema, and grant this user its use",
        ),
        SqlState::READ_ONLY_SQL_TRANSACTION => read_only(&why),
        // Nobody tries again: a schema that is not ours is told at once.
        _ if state.code().starts_with("42") => {
            StoreError::Corrupt { what: format!("postgres: {why}") }
        }
        _ => StoreError::from_server(error),
    }
}

/// A connection that did not come about.
fn explain_connection(
    error: &tokio_postgres::Error,
    refused: impl Fn(Code, &str) -> StoreError,
) -> StoreError {
    // The driver tells these apart by words only.
    let words = error.to_string();
    if words.contains("TLS") {
        return refused(
            Code::NoEncryption,
            "check sslmode, and that sslrootcert names the authority of the server's certificate",
        );
    }
    if words.contains("password") || words.contains("authentication") {
        return refused(Code::LoginRefused, "give the user's password in the URL");
    }
    let why = format!("{}; check host and port, and that the server runs", describe(error));
    StoreError::Unavailable { operation: "connect to postgres", why }
}

/// Without a connection every call would wait in vain.
fn check_connections(connections_max: usize) -> Result<(), StoreError> {
    if connections_max > 0 {
        return Ok(());
    }
    Err(refuse("connections_max is 0, it must be at least 1".to_owned()))
}

/// A schema name that needs no quotes anywhere.
fn check_schema(schema: &str) -> Result<(), StoreError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins_well = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    // The server keeps names that begin with `pg_` to itself.
    let begins_well = begins_well && !schema.starts_with("pg_");
    if !begins_well || schema.len() > 63 || !schema.chars().all(is_plain) {
        return Err(refuse(format!(
            "schema {schema:?}: use at most 63 lower-case letters, digits and underscores, and not \
             pg_ in front"
        )));
    }
    Ok(())
}

fn refuse(message: String) -> StoreError {
    StoreError::Refused { code: Code::BadConfig, message }
}
