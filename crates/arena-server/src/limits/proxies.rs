//! Addresses of clients behind proxies (docs/decisions/0085). A trusted proxy names its client in a header, and the
//! limits and bans of addresses then apply to that client.

use std::net::{IpAddr, SocketAddr};

use arena_store::AddressRange;
use axum::http::HeaderMap;
use serde::{Deserialize, Deserializer};

use crate::error::ApiError;

/// The addresses of the proxies whose headers the server believes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<AddressRange>);

impl TrustedProxies {
    pub fn new(ranges: Vec<AddressRange>) -> TrustedProxies {
        TrustedProxies(ranges)
    }

    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }
}

impl<'de> Deserialize<'de> for TrustedProxies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TrustedProxies, D::Error> {
        let range = |text: String| {
            let range = AddressRange::parse_any(&text);
            range.map_err(|error| serde::de::Error::custom(format!("{text:?} is {error}")))
        };
        let ranges = Vec::<String>::deserialize(deserializer)?;
        Ok(TrustedProxies(ranges.into_iter().map(range).collect::<Result<_, _>>()?))
    }
}

/// The way in which proxies name their clients. The server reads only one header, because a client could send the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum ClientHeader {
    /// A list of addresses.
    #[default]
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    /// The header of RFC 7239.
    #[serde(rename = "Forwarded")]
    Forwarded,
    /// A header before the first request: the PROXY protocol, version 2. The connection counts as the client's.
    #[serde(rename = "PROXY")]
    Proxy,
}

impl ClientHeader {
    /// Returns the name of the header of requests; `None` if connections have the header.
    fn name(self) -> Option<&'static str> {
        match self {
            ClientHeader::XForwardedFor => Some("x-forwarded-for"),
            ClientHeader::Forwarded => Some("forwarded"),
            ClientHeader::Proxy => None,
        }
    }

    /// Returns the clients that the header names, the nearest one last. A client is `None` if its proxy doesn't know or
    /// hides the address. Returns `None` if the header is malformed.
    fn clients(self, name: &str, headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
        let mut clients = Vec::new();
        for line in headers.get_all(name) {
            let line = line.to_str().ok()?;
            match self {
                ClientHeader::Forwarded => clients.extend(forwarded(line)?),
                _ => clients.extend(line.split(',').map(|node| address_of(node.trim()))),
            }
        }
        Some(clients)
    }
}

/// Returns the address of a request's client. `peer` is the address of the connection.
///
/// Each proxy adds its client at the end of the header. So the list is read from the end, as long as trusted proxies
/// wrote it. Earlier parts may be invented.
///
/// # Errors
/// 400 if a trusted proxy passes on a malformed header.
pub(crate) fn client_of(
    trusted_proxies: &TrustedProxies,
    client_header: ClientHeader,
    peer: IpAddr,
    headers: &HeaderMap,
) -> Result<IpAddr, ApiError> {
    let Some(name) = client_header.name().filter(|_| trusted_proxies.contain(peer)) else { return Ok(peer) };
    let Some(clients) = client_header.clients(name, headers) else {
        let text = format!("the header {name} is malformed (network.client_header)");
        return Err(ApiError::bad_request("INVALID_FORWARDED", text));
    };
    let mut client = peer;
    for named in clients.into_iter().rev() {
        match named {
            Some(named) if trusted_proxies.contain(client) => client = named,
            _ => break,
        }
    }
    Ok(client.to_canonical())
}

/// Parses an address with an optional port.
fn address_of(node: &str) -> Option<IpAddr> {
    let bare = node.strip_prefix('[').and_then(|node| node.strip_suffix(']')).unwrap_or(node);
    bare.parse().ok().or_else(|| Some(node.parse::<SocketAddr>().ok()?.ip()))
}

/// Parses a line of the header `Forwarded`: elements with the parameter `for`. Returns `None` if it is malformed.
fn forwarded(line: &str) -> Option<Vec<Option<IpAddr>>> {
    let mut clients = Vec::new();
    for element in split(line, ',')? {
        let mut client = None;
        for pair in split(element, ';')? {
            // The grammar permits empty elements and empty pairs.
            let pair = pair.trim();
            if pair.is_empty() {
                continue;
            }
            let (name, value) = pair.split_once('=')?;
            let value = match value.strip_prefix('"') {
                // A node contains no character that needs a backslash.
                Some(quoted) => quoted.strip_suffix('"').filter(|inner| !ends_quote(inner))?,
                None if value.contains('"') => return None,
                None => value,
            };
            if name.eq_ignore_ascii_case("for") {
                client = Some(address_of(value));
            }
        }
        clients.extend((!element.trim().is_empty()).then_some(client.flatten()));
    }
    Some(clients)
}

/// True if a quoted text ends within `inner` or its last quote is escaped.
fn ends_quote(inner: &str) -> bool {
    let mut is_escaped = false;
    for character in inner.chars() {
        if character == '"' && !is_escaped {
            return true;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    is_escaped
}

/// Splits a text at a separator outside of quotes. Returns `None` if a quote isn't closed.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => {
                parts.push(&text[start..at]);
                start = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (!is_quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use axum::response::IntoResponse;

    /// Checks the client's address for a request from `peer` with these lines of the header, with proxies in 10.0.0.0/8
    /// and at 127.0.0.1. `expected` is an address, or `400`.
    #[track_caller]
    fn check(client_header: ClientHeader, peer: &str, lines: &[&str], expected: &str) {
        let proxies =
            ["10.0.0.0/8", "127.0.0.1", "fd00::/8"].map(|range| AddressRange::parse_any(range).expect("a range"));
        let trusted_proxies = TrustedProxies(proxies.to_vec());
        let mut headers = HeaderMap::new();
        for line in lines {
            let value = HeaderValue::from_bytes(line.as_bytes()).expect("a value");
            headers.append(HeaderName::from_static(client_header.name().expect("a header of requests")), value);
        }
        let client = match client_of(&trusted_proxies, client_header, peer.parse().expect("an address"), &headers) {
            Ok(client) => client.to_string(),
            Err(error) => error.into_response().status().as_str().to_owned(),
        };
        assert_eq!(client, expected, "{peer} {lines:?}");
    }

    #[test]
    fn x_forwarded_for_is_read_from_the_end_up_to_the_first_untrusted_address() {
        let check = |peer, lines: &[&str], expected| check(ClientHeader::XForwardedFor, peer, lines, expected);
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["203.0.113.5"], "203.0.113.5");
        check("::ffff:10.0.0.1", &["203.0.113.5"], "203.0.113.5");
        check("10.0.0.1", &["198.51.100.9, 203.0.113.5"], "203.0.113.5");
        check("10.0.0.1", &["127.0.0.1", "203.0.113.5,10.0.0.2"], "203.0.113.5");
        check("10.0.0.1", &["2001:db8::7"], "2001:db8::7");
        check("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7");
        check("127.0.0.1", &["203.0.113.5:4711"], "203.0.113.5");
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
        check("10.0.0.1", &["::ffff:203.0.113.5"], "203.0.113.5");
        // An unreadable entry is the client of the proxy before it, whose address counts.
        check("10.0.0.1", &["203.0.113.5, unknown"], "10.0.0.1");
        check("10.0.0.1", &["203.0.113.5, 1.2.3, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &["203.0.113.5\u{e9}"], "400");
        // Strangers can't name another address.
        check("203.0.113.5", &["198.51.100.9"], "203.0.113.5");
        check("203.0.113.5", &["\u{e9}"], "203.0.113.5");
    }

    #[test]
    fn forwarded_is_read_by_its_grammar() {
        let check = |lines: &[&str], expected| check(ClientHeader::Forwarded, "10.0.0.1", lines, expected);
        check(&["for=203.0.113.5"], "203.0.113.5");
        check(&["for=198.51.100.9, For=203.0.113.5;proto=https;by=10.0.0.1"], "203.0.113.5");
        check(&[r#"for="[2001:db8:cafe::17]:4711""#], "2001:db8:cafe::17");
        check(&["for=203.0.113.5", "for=10.0.0.2"], "203.0.113.5");
        check(&[r#"for=203.0.113.5;host="a, for=198.51.100.9""#], "203.0.113.5");
        check(&[r#"for=203.0.113.5;host="a\", for=198.51.100.9""#], "203.0.113.5");
        check(&["for=203.0.113.5, ,"], "203.0.113.5");
        check(&["for=203.0.113.5, proto=http"], "10.0.0.1");
        check(&["for=203.0.113.5, for=_hidden"], "10.0.0.1");
        check(&["for=203.0.113.5, for=unknown"], "10.0.0.1");
        // A client can't hide its address by an open quote in front of it.
        check(&[r#"for="x, for=203.0.113.5"#], "400");
        check(&[r#"for="x, for="[2001:db8::7]""#], "400");
        check(&[r#"for="203.0.113.5"x"#], "400");
        check(&["203.0.113.5"], "400");
    }
}
