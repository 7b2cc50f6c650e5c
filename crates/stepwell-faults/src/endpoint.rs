//! Where clients come in, and where the server is: TCP or a Unix socket.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// A connection of either kind.
pub(crate) type Stream = Box<dyn Duplex>;

/// Reads and writes.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The port that names the file of a socket.
const PORT: u16 = 5432;

/// A server as its URL names it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    place: Place,
    /// Who connects, and to what, in the words of a URL.
    rest: String,
}

#[derive(Clone, Debug)]
enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

impl Server {
    /// The server of a URL.
    pub(crate) fn of(url: &str) -> Self {
        let config = Config::from_str(url).expect("the URL of the server makes sense");
        let port = config.get_ports().first().copied().unwrap_or(PORT);
        let place = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => Place::Tcp(host.clone(), port),
            Some(Host::Unix(folder)) => Place::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            None => Place::Tcp("127.0.0.1".into(), port),
        };
        let password = config.get_password().map(String::from_utf8_lossy);
        let words = [
            ("user", config.get_user()),
            ("dbname", config.get_dbname()),
            ("password", password.as_deref()),
            ("options", config.get_options()),
            ("application_name", config.get_application_name()),
        ];
        let quoted = |(key, value): (&str, Option<&str>)| {
            let value = value?.replace('\\', "\\\\").replace('\'', "\\'");
            Some(format!(" {key}='{value}'"))
        };
        Self { place, rest: words.into_iter().filter_map(quoted).collect() }
    }

    /// Who connects, and to what; begins with a space.
    pub(crate) fn rest(&self) -> &str {
        &self.rest
    }

    /// A URL of another database of the server.
    pub(crate) fn url_of(&self, database: &str) -> String {
        let host = match &self.place {
            Place::Tcp(host, port) => format!("host={host} port={port}"),
            Place::Unix(path) => {
                let folder = path.parent().unwrap_or(path).display();
                let port = path.extension().unwrap_or_default().display();
                format!("host={folder} port={port}")
            }
        };
        // Of words that are given twice, the last one counts.
        format!("{host}{} dbname='{database}'", self.rest)
    }

    pub(crate) async fn connect(&self) -> io::Result<Stream> {
        Ok(match &self.place {
            Place::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Place::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}

/// Where clients come in.
pub(crate) enum Door {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Door {
    /// A free port of this machine.
    pub(crate) async fn on_a_free_port() -> io::Result<Self> {
        Ok(Self::Tcp(TcpListener::bind(("127.0.0.1", 0)).await?))
    }

    /// A socket in a folder.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(folder.join(format!(".s.PGSQL.{PORT}")))?;
        Ok(Self::Unix(listener, folder.to_owned()))
    }

    /// What a URL says about it.
    pub(crate) fn host(&self) -> io::Result<String> {
        Ok(match self {
            Self::Tcp(listener) => {
                format!("host=127.0.0.1 port={}", listener.local_addr()?.port())
            }
            Self::Unix(_, folder) => format!("host={} port={PORT}", folder.display()),
        })
    }

    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Unix(listener, _) => Box::new(listener.accept().await?.0),
        })
    }
}
