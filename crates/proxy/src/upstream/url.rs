//! Where a PostgreSQL server is: as `postgresql://...` says it.

use std::path::PathBuf;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::passage::Target;

const PORT_DEFAULT: u16 = 5432;

/// How much TLS is wanted, in libpq's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SslMode {
    /// None.
    Disable,
    /// Only where the server takes nothing else.
    Allow,
    /// Where the server has it.
    Prefer,
    /// TLS, whoever the server is.
    Require,
    /// TLS with a certificate of an authority that is known.
    VerifyCa,
    /// The same, and the certificate is for this host.
    VerifyFull,
}

impl SslMode {
    const ALL: [(&'static str, Self); 6] = [
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    /// As libpq calls it.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// A PostgreSQL server, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Server {
    /// Where it is.
    pub target: Target,
    /// How much TLS is wanted.
    pub ssl_mode: SslMode,
    /// The file of the authorities whose certificates are believed.
    pub root_certificate: Option<PathBuf>,
    /// The file of the certificate that is shown to the server.
    pub certificate: Option<PathBuf>,
    /// The file of that certificate's key.
    pub key: Option<PathBuf>,
}

/// Who an URL says to log in as.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlLogin {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Option<Zeroizing<String>>,
    /// The database.
    pub database: Option<String>,
}

impl std::fmt::Debug for UrlLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What is wrong with the URL of an upstream. The URL is not repeated: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is none of PostgreSQL's.
    #[error("the URL of the upstream does not begin with postgresql://")]
    Scheme,
    /// It names no host.
    #[error("the URL of the upstream names no host")]
    Host,
    /// The port is no port.
    #[error("the port in the URL of the upstream is no port")]
    Port,
    /// A percent sign without two hexadecimal digits.
    #[error("the URL of the upstream has a percent sign that stands for nothing")]
    Escape,
    /// A parameter that is not known here.
    #[error("the URL of the upstream has an unknown parameter \"{0}\"")]
    Parameter(String),
    /// A mode of TLS that there is not.
    #[error("sslmode \"{0}\" is none of disable, allow, prefer, require, verify-ca and verify-full")]
    SslMode(String),
}

impl Server {
    /// A server that is spoken to as libpq does by default.
    pub fn new(host: &str, port: u16) -> Self {
        let target = Target { host: host.to_owned(), port };
        Self { target, ssl_mode: SslMode::Prefer, root_certificate: None, certificate: None, key: None }
    }

    /// Reads `postgresql://[user[:password]@]host[:port][/database][?parameter=value&...]`.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_url(url: &str) -> Result<(Self, Option<UrlLogin>), UrlError> {
        let rest = ["postgresql://", "postgres://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or(UrlError::Scheme)?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').map_or(("", authority), |(login, place)| (login, place));
        let (host, port) = split_port(place)?;
        let mut server = Self::new(&unescaped(host)?, port);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            server.set(name, unescaped(value)?)?;
        }
        let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
        let (user, database) = (unescaped(user)?, Some(unescaped(database)?).filter(|name| !name.is_empty()));
        let password = password.map(unescaped).transpose()?.map(Zeroizing::new);
        let login = (!user.is_empty()).then_some(UrlLogin { user, password, database });
        Ok((server, login))
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), UrlError> {
        match name {
            "sslmode" => {
                let mode = SslMode::ALL.iter().find(|(mode, _)| *mode == value).map(|(_, mode)| *mode);
                self.ssl_mode = mode.ok_or(UrlError::SslMode(value))?;
            }
            "sslrootcert" => self.root_certificate = Some(value.into()),
            "sslcert" => self.certificate = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            // What psql's users write, and what is decided elsewhere here.
            "application_name" | "connect_timeout" => {}
            _ => return Err(UrlError::Parameter(name.to_owned())),
        }
        Ok(())
    }
}

fn split_port(place: &str) -> Result<(&str, u16), UrlError> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(UrlError::Host);
    }
    match port {
        None | Some("") => Ok((host, PORT_DEFAULT)),
        Some(port) => Ok((host, port.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?)),
    }
}

fn unescaped(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = digit().zip(digit()).ok_or(UrlError::Escape)?;
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| UrlError::Escape)?);
    }
    String::from_utf8(bytes).map_err(|_| UrlError::Escape)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    #[test]
    fn urls_are_read_as_libpq_does() {
        let (server, login) = Server::of_url("postgresql://10.0.0.14").unwrap();
        assert_eq!((server, login), (Server::new("10.0.0.14", 5432), None));
        let url = "postgres://mira%40x:p%3Aw@[::1]:6000/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem";
        let (server, login) = Server::of_url(url).unwrap();
        assert_eq!(server.target, Target { host: "::1".to_owned(), port: 6000 });
        assert_eq!((server.ssl_mode, server.root_certificate), (SslMode::VerifyFull, Some("/etc/ca.pem".into())));
        let login = login.unwrap();
        assert_eq!((login.user.as_str(), login.database.as_deref()), ("mira@x", Some("shop")));
        assert_eq!(login.password.unwrap().as_str(), "p:w");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for (url, error) in [
            ("mysql://x", UrlError::Scheme),
            ("postgresql://", UrlError::Host),
            ("postgresql://x:99999", UrlError::Port),
            ("postgresql://x:0", UrlError::Port),
            ("postgresql://%4@x", UrlError::Escape),
            ("postgresql://x?sslmod=require", UrlError::Parameter("sslmod".to_owned())),
            ("postgresql://x?sslmode=on", UrlError::SslMode("on".to_owned())),
        ] {
            assert_eq!(Server::of_url(url).unwrap_err(), error, "{url}");
        }
    }
}
