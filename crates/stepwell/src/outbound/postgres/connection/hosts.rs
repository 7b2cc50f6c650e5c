//! The hosts of a URL: a primary and those that may take over from it.
//!
//! Hosts are tried in order, as the URL names them. After a fail-over the first may be a machine
//! that is gone: it refuses nobody and answers nobody. So that it uses up no heartbeat's time, it
//! is not waited for alone.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts};

/// A host that has not answered by then has the next one tried beside it.
pub(super) const HEAD_START: Duration = Duration::from_secs(1);

/// The settings for each host alone. One host, or several in an order by chance, need no other
/// settings than those there are.
pub(super) fn each_host(config: &Config) -> Vec<Config> {
    let n_hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    let is_by_chance = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
    // What does not fit together is told by the driver.
    let fits = |n: usize| n <= 1 || n == n_hosts;
    let is_sound = fits(config.get_ports().len())
        && [config.get_hosts().len(), config.get_hostaddrs().len()]
            .iter()
            .all(|n| [0, n_hosts].contains(n));
    if n_hosts < 2 || is_by_chance || !is_sound {
        return vec![config.clone()];
    }
    (0..n_hosts).map(|place| only_host(config, place)).collect()
}

/// The same settings with one host only.
fn only_host(config: &Config, place: usize) -> Config {
    let mut only = Config::new();
    if let Some(host) = config.get_hosts().get(place) {
        set_host(&mut only, host);
    }
    if let Some(address) = config.get_hostaddrs().get(place) {
        only.hostaddr(*address);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(place).or_else(|| ports.first()) {
        only.port(*port);
    }
    copy_login(&mut only, config);
    copy_patience(&mut only, config);
    only.ssl_mode(config.get_ssl_mode());
    only.ssl_negotiation(config.get_ssl_negotiation());
    only.channel_binding(config.get_channel_binding());
    only.target_session_attrs(config.get_target_session_attrs());
    only
}

fn set_host(only: &mut Config, host: &Host) {
    match host {
        Host::Tcp(name) => only.host(name),
        #[cfg(unix)]
        Host::Unix(folder) => only.host_path(folder),
    };
}

fn copy_login(only: &mut Config, config: &Config) {
    if let Some(user) = config.get_user() {
        only.user(user);
    }
    if let Some(password) = config.get_password() {
        only.password(password);
    }
    if let Some(database) = config.get_dbname() {
        only.dbname(database);
    }
    if let Some(options) = config.get_options() {
        only.options(options);
    }
    if let Some(name) = config.get_application_name() {
        only.application_name(name);
    }
}

fn copy_patience(only: &mut Config, config: &Config) {
    if let Some(timeout) = config.get_connect_timeout() {
        only.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        only.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        only.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        only.keepalives_retries(retries);
    }
    only.keepalives(config.get_keepalives());
    only.keepalives_idle(config.get_keepalives_idle());
}

/// The first success of attempts that are begun in order: each when the one before has failed, or
/// has had its head start. If all fail, how the last did; `None` if there are none.
#[expect(clippy::disallowed_methods, reason = "servers answer in real time")]
pub(super) async fn first_success<T, E>(
    attempts: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>,
    head_start: Duration,
) -> Option<Result<T, E>> {
    let mut next: VecDeque<_> = attempts.into_iter().collect();
    let mut begun = FuturesUnordered::new();
    let mut failure = None;
    loop {
        begun.extend(next.pop_front());
        tokio::select! {
            ended = begun.next() => match ended {
                Some(Ok(success)) => return Some(Ok(success)),
                Some(Err(error)) => failure = Some(Err(error)),
                None => return failure,
            },
            () = tokio::time::sleep(head_start), if !next.is_empty() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, pending, ready};
    use std::str::FromStr;

    use futures_util::future::Either;

    use super::*;

    /// Everything that a URL can say of one host.
    const ALL: &str = "user=u password=p dbname=d options=o application_name=a sslmode=require \
        sslnegotiation=direct connect_timeout=3 tcp_user_timeout=4 keepalives=1 keepalives_idle=5 \
        keepalives_interval=6 keepalives_retries=7 target_session_attrs=read-write \
        channel_binding=disable";

    fn config(hosts: &str) -> Config {
        Config::from_str(&format!("{hosts} {ALL}")).expect("it is well formed")
    }

    #[test]
    fn each_host_is_connected_to_as_the_url_says() {
        let both = config("host=a,/run/b hostaddr=10.0.0.1,10.0.0.2 port=1,2");
        let each = [
            config("host=a hostaddr=10.0.0.1 port=1"),
            config("host=/run/b hostaddr=10.0.0.2 port=2"),
        ];
        assert_eq!(each_host(&both), each);
        let both = config("host=a,b port=7");
        assert_eq!(each_host(&both), [config("host=a port=7"), config("host=b port=7")]);
    }

    #[test]
    fn one_host_and_hosts_by_chance_are_left_to_the_driver() {
        let by_chance = config("host=a,b load_balance_hosts=random");
        let unsound = config("host=a,b,c port=1,2");
        for config in [config("host=a"), config("hostaddr=10.0.0.1"), by_chance, unsound] {
            assert_eq!(each_host(&config), [config]);
        }
    }

    type Attempt = Either<std::future::Pending<Result<u8, u8>>, Ready<Result<u8, u8>>>;

    async fn tried(attempts: Vec<Attempt>) -> Option<Result<u8, u8>> {
        first_success(attempts, Duration::ZERO).await
    }

    fn answers(answer: Result<u8, u8>) -> Attempt {
        Either::Right(ready(answer))
    }

    #[tokio::test]
    async fn hosts_are_tried_in_order_and_a_dark_one_keeps_nobody_from_the_next() {
        let dark = || Either::Left(pending());
        assert_eq!(tried(vec![answers(Ok(1)), answers(Ok(2))]).await, Some(Ok(1)));
        assert_eq!(tried(vec![answers(Err(1)), answers(Ok(2))]).await, Some(Ok(2)));
        assert_eq!(tried(vec![dark(), answers(Ok(2))]).await, Some(Ok(2)));
        assert_eq!(tried(vec![dark(), answers(Err(2)), answers(Ok(3))]).await, Some(Ok(3)));
        assert_eq!(tried(vec![answers(Err(1)), answers(Err(2))]).await, Some(Err(2)));
        assert_eq!(tried(Vec::new()).await, None);
    }
}
