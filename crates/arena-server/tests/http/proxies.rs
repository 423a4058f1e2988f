//! Clients behind a trusted proxy: the limits and bans of addresses apply to the client that the proxy names.

use std::io::Write;

use arena_server::{ClientHeader, Settings, TrustedProxies};
use arena_store::AddressRange;
use arena_testkit::{Answer, Client, Host, known_admin_token};
use serde_json::json;

/// Settings in which this machine is a proxy.
fn behind_proxy(client_header: ClientHeader) -> impl FnOnce(&mut Settings) {
    move |settings| {
        let local = AddressRange::parse_any("127.0.0.0/8").expect("a range");
        settings.network.trusted_proxies = TrustedProxies::new(vec![local]);
        settings.network.client_header = client_header;
        settings.limits.requests_per_second = 1;
        settings.limits.requests_burst = 20;
        settings.admin_token = Some(known_admin_token());
    }
}

fn ask(client: &Client, header: &str, value: &str) -> Answer {
    client.request("GET", "/api/metadata", &[(header, value)], b"")
}

/// Returns the number of 40 requests that are admitted.
fn admitted(client: &Client, header: &str, value: &str) -> usize {
    (0..40).filter(|_| ask(client, header, value).status == 200).count()
}

#[test]
fn each_client_behind_a_proxy_has_its_own_rate_limit() {
    let cases = [
        (ClientHeader::XForwardedFor, "X-Forwarded-For", "198.51.100.1, 203.0.113.5", "203.0.113.5, 203.0.113.6"),
        (ClientHeader::Forwarded, "Forwarded", "for=198.51.100.1, for=203.0.113.5", "for=203.0.113.5, for=203.0.113.6"),
    ];
    for (client_header, header, greedy, other) in cases {
        let host = Host::start_with(behind_proxy(client_header));
        let client = host.client();
        let taken = admitted(&client, header, greedy);
        assert!((20..30).contains(&taken), "{header}: {taken}");
        assert_eq!(ask(&client, header, other).status, 200, "{header}");
        // An MCP tool call counts against the limit of the client as well.
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_metadata", "arguments": {}}});
        let headers =
            [(header, greedy), ("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let call = client.request("POST", "/api/arena/mcp", &headers, call.to_string().as_bytes());
        assert!(call.text().contains("RATE_LIMITED"), "{header}: {}", call.text());
        // The other header is the client's own, and has no effect.
        let ignored =
            if header == "Forwarded" { ("X-Forwarded-For", "203.0.113.5") } else { ("Forwarded", "for=203.0.113.5") };
        assert_eq!(admitted(&client, ignored.0, ignored.1), 40, "{header}");
    }
}

#[test]
fn a_client_that_is_no_trusted_proxy_cannot_name_another_address() {
    let host = Host::start_with(|settings| {
        behind_proxy(ClientHeader::XForwardedFor)(settings);
        settings.network.trusted_proxies = TrustedProxies::default();
        settings.limits.limit_loopback = true;
    });
    let client = host.client();
    let taken: usize = (1..=4).map(|last| admitted(&client, "X-Forwarded-For", &format!("203.0.113.{last}"))).sum();
    assert!((20..30).contains(&taken), "{taken}");
}

#[test]
fn bans_and_the_audit_log_have_the_address_of_the_client() {
    let host = Host::start_with(behind_proxy(ClientHeader::XForwardedFor));
    let client = host.client();
    let authorization = format!("Bearer {}", known_admin_token().reveal());
    let admin = |method: &str, path: &str, body: &[u8]| {
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("X-Forwarded-For", "198.51.100.7"),
        ];
        client.request(method, &format!("/api/admin{path}"), &headers, body).ok()
    };
    admin("POST", "/bans", br#"{"address": "203.0.113.0/28", "reason": "noise"}"#);
    let seen = |address: &str| ask(&client, "X-Forwarded-For", address).status;
    assert_eq!(["203.0.113.5", "203.0.113.16", "203.0.113.16, 203.0.113.5"].map(seen), [403, 200, 403]);
    assert_eq!(admin("GET", "/audit?limit=1", b"")["entries"][0]["address"], "198.51.100.7");
}

#[test]
fn requests_of_several_clients_on_one_connection_are_told_apart() {
    let host = Host::start_with(behind_proxy(ClientHeader::XForwardedFor));
    let mut request = String::new();
    for address in ["203.0.113.5"].iter().cycle().take(40).chain(["203.0.113.6"].iter()) {
        request += &format!("GET /api/metadata HTTP/1.1\r\nHost: arena\r\nX-Forwarded-For: {address}\r\n\r\n");
    }
    request += "GET /health HTTP/1.1\r\nHost: arena\r\nX-Forwarded-For: 203.0.113.7\r\nConnection: close\r\n\r\n";
    let mut stream = std::net::TcpStream::connect(host.address()).expect("a connection");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let answers = std::io::read_to_string(stream).expect("text");
    let statuses: Vec<&str> =
        answers.match_indices("HTTP/1.1 ").map(|(at, start)| &answers[at + start.len()..][..3]).collect();
    assert_eq!(statuses.len(), 42, "{answers}");
    assert!(statuses[..20].iter().all(|status| *status == "200"), "{statuses:?}");
    assert!(statuses[30..40].iter().all(|status| *status == "429"), "{statuses:?}");
    assert_eq!(statuses[40..], ["200", "200"]);
}

#[test]
fn a_malformed_header_of_a_proxy_is_refused() {
    let host = Host::start_with(behind_proxy(ClientHeader::Forwarded));
    let client = host.client();
    for value in [r#"for="203.0.113.5"#, "203.0.113.5", r#"for="x, for="[2001:db8::1]""#] {
        let answer = ask(&client, "Forwarded", value);
        assert_eq!(answer.refusal(), (400, "INVALID_FORWARDED".to_owned()), "{value}");
    }
    assert_eq!(ask(&client, "Forwarded", "for=unknown").status, 200);
}

/// Returns the header of the PROXY protocol, version 2, for a connection of a client with IPv4, followed by a request.
fn named(client: [u8; 4], request: &str) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    bytes.extend([client, [127, 0, 0, 1]].concat());
    bytes.extend([0x12, 0x34, 0, 80]);
    [bytes, request.as_bytes().to_vec()].concat()
}

#[test]
fn a_balancer_names_the_client_of_a_connection() {
    const METADATA: &str = "GET /api/metadata HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n";
    let host = Host::start_with(behind_proxy(ClientHeader::Proxy));
    let client = host.client();
    let admitted = |bytes: Vec<u8>| (0..40).filter(|_| client.raw(&bytes).expect("an answer").status == 200).count();
    let taken = admitted(named([203, 0, 113, 5], METADATA));
    assert!((20..30).contains(&taken), "{taken}");
    assert_eq!(client.raw(&named([203, 0, 113, 6], METADATA)).expect("an answer").status, 200);
    // The balancer's own connections, such as checks of health, aren't limited.
    let own = [&b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"[..], METADATA.as_bytes()].concat();
    assert_eq!(admitted(own), 40);
    // A request of the connection can't name another client.
    let forged =
        "GET /api/metadata HTTP/1.1\r\nHost: arena\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n";
    let refused = (0..40).map(|_| client.raw(&named([203, 0, 113, 7], forged)).expect("an answer").status);
    assert!(refused.filter(|status| *status == 429).count() >= 10);
    // A connection without the header, or with a malformed one, is closed without an answer.
    let too_long = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff".to_vec();
    for bytes in [METADATA.as_bytes().to_vec(), b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c            ".to_vec(), too_long] {
        assert!(client.raw(&bytes).is_err(), "{bytes:?}");
    }
    // A connection whose header doesn't arrive doesn't block others.
    let _slow = client.connect().expect("a connection");
    assert_eq!(client.raw(&named([203, 0, 113, 8], METADATA)).expect("an answer").status, 200);
}
