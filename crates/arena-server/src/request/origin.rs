//! Checks of `Origin` and `Host`. Any web page can make a browser send requests, even to a server on loopback without
//! authentication. So only the arena's own pages and those of allowed origins may write.

use std::str::FromStr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Version, header};
use serde::{Deserialize, Deserializer};

use crate::error::{ApiError, ApiResult};
use crate::settings::Settings;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Maximum number of characters of an origin in an error message.
const SHOWN: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an origin: expected \"*\" or scheme, host and optional port, such as \"https://page.example\"")]
pub struct NoOrigin;

/// An entry of the allowed origins. Pages of an allowed origin may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigin {
    Any,
    /// A single origin, in the form in which browsers send it.
    Exactly(String),
}

impl FromStr for AllowedOrigin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<AllowedOrigin, NoOrigin> {
        match text {
            "*" => Ok(AllowedOrigin::Any),
            "null" => Ok(AllowedOrigin::Exactly(text.to_owned())),
            _ => {
                let Origin { scheme, host, port } = Origin::read(text).ok_or(NoOrigin)?;
                let port = if port == usual_port(&scheme) { String::new() } else { format!(":{port}") };
                Ok(AllowedOrigin::Exactly(format!("{scheme}://{host}{port}")))
            }
        }
    }
}

impl<'de> Deserialize<'de> for AllowedOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AllowedOrigin, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| serde::de::Error::custom(format!("{text:?} is {error}")))
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    fn read(text: &str) -> Option<Origin> {
        let (scheme, authority) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let authority = host_and_port(authority)?;
        let port = match authority.port() {
            Some(port) => port.as_str().parse().ok()?,
            None => usual_port(&scheme),
        };
        ["http", "https"].contains(&&*scheme).then(|| Origin {
            scheme,
            host: authority.host().to_ascii_lowercase(),
            port,
        })
    }
}

fn usual_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// Parses a host with an optional port, without user info.
fn host_and_port(text: &str) -> Option<Authority> {
    let authority = text.parse::<Authority>().ok().filter(|authority| !authority.host().is_empty())?;
    let rest = authority.as_str().strip_prefix(authority.host())?;
    (rest.is_empty() || authority.port_u16().is_some()).then_some(authority)
}

/// Refuses a request with a missing, repeated or malformed `Host` (RFC 9112, 3.2).
///
/// # Errors
/// 400 if `Host` is missing, repeated or malformed.
pub(crate) fn check_host(version: Version, headers: &HeaderMap) -> ApiResult<()> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let is_good = match (hosts.next(), hosts.next()) {
        (None, _) => version != Version::HTTP_11,
        // An empty `Host` is valid for targets without a host.
        (Some(host), None) => host.is_empty() || host.to_str().is_ok_and(|host| host_and_port(host).is_some()),
        (Some(_), Some(_)) => false,
    };
    let refuse = || {
        ApiError::bad_request(
            "INVALID_HOST",
            "a request must have exactly one Host header, with a host and optional port",
        )
    };
    if is_good { Ok(()) } else { Err(refuse()) }
}

/// Refuses a write from a web page of a foreign origin.
///
/// Requests without `Origin` and `Sec-Fetch-Site` pass, since they come from programs other than browsers. In
/// authentication mode all origins may write, since a page has no more rights than any other client. If `always` is
/// true, the check applies in that mode too.
///
/// # Errors
/// 403 if the origin is neither the arena's own nor allowed.
pub(crate) fn check_origin(settings: &Settings, method: &Method, headers: &HeaderMap, always: bool) -> ApiResult<()> {
    let writes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    if !writes || (settings.auth.enabled && !always) {
        return Ok(());
    }
    let text = |name: HeaderName| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let page = match (text(header::ORIGIN), text(SEC_FETCH_SITE)) {
        (Some(origin), _) => {
            let host = text(header::HOST).unwrap_or_default();
            if is_allowed(&settings.network.allowed_origins, &origin) || is_own(settings, &origin, &host) {
                return Ok(());
            }
            format!("a page of {}", origin.chars().take(SHOWN).collect::<String>())
        }
        (None, Some(site)) if site == "cross-site" || site == "same-site" => "a page of another origin".to_owned(),
        (None, _) => return Ok(()),
    };
    let sentence = format!(
        "{page} may not write to this server; to allow it, add its origin to allowed_origins in the section [network] of the settings"
    );
    Err(ApiError::new(StatusCode::FORBIDDEN, "ORIGIN_NOT_ALLOWED", sentence))
}

fn is_allowed(allowed: &[AllowedOrigin], origin: &str) -> bool {
    let names = |allowed: &AllowedOrigin| match allowed {
        AllowedOrigin::Any => true,
        AllowedOrigin::Exactly(one) => one == origin,
    };
    allowed.iter().any(names)
}

/// True if `Origin` and `Host` both name this server.
fn is_own(settings: &Settings, origin: &str, host: &str) -> bool {
    let (Some(origin), Some(host)) = (Origin::read(origin), host_and_port(host)) else { return false };
    let port = host.port().map_or(usual_port(&origin.scheme), |port| port.as_u16());
    // A browser reaches a server on loopback by a local name or an address. Any other host name means DNS rebinding.
    let is_for_this_machine = !settings.auth.enabled && settings.listen.ip().is_loopback();
    let name = host.host().to_ascii_lowercase();
    name == origin.host && port == origin.port && (!is_for_this_machine || is_this_machine(&name))
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.is_ok() || host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_as_browsers_write_them() {
        let read = |text: &str| text.parse::<AllowedOrigin>();
        let exactly = |text: &str| Ok(AllowedOrigin::Exactly(text.to_owned()));
        assert_eq!(read("*"), Ok(AllowedOrigin::Any));
        assert_eq!(read("null"), exactly("null"));
        assert_eq!(read("HTTPS://Page.Example:443"), exactly("https://page.example"));
        assert_eq!(read("http://[::1]:8080"), exactly("http://[::1]:8080"));
        for wrong in
            ["", "page.example", "https://", "https://a/b", "https://a@b", "ftp://a", "https://a:b", "https://a b"]
        {
            assert_eq!(read(wrong), Err(NoOrigin), "{wrong}");
        }
    }

    #[test]
    fn this_machine_goes_by_addresses_and_its_own_names() {
        for (host, own) in [
            ("127.0.0.1", true),
            ("[::1]", true),
            ("192.168.1.2", true),
            ("localhost", true),
            ("arena.localhost", true),
            ("page.example", false),
            ("localhost.page.example", false),
            ("127.0.0.1.page.example", false),
        ] {
            assert_eq!(is_this_machine(host), own, "{host}");
        }
    }
}
