//! TLS: servers with a certificate, certificates of private authorities, and errors about untrusted certificates.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::Client;
use expect_test::expect;
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, Stream, StreamOwned};

use crate::program::{Running, eventually, file, folder, run, run_with};

/// Returns the path of a file of the tests' certificate authority.
fn pem(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name).to_str().unwrap().to_owned()
}

/// Starts a server with a certificate for 127.0.0.1, which answers each request with `[]`. Returns its port.
fn listen() -> u16 {
    let certificate = CertificateDer::from_pem_file(pem("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(pem("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The thread ends with the test process.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                request.push(byte[0]);
            }
            let answer =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]";
            // Clients that don't trust the certificate have disconnected.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_private_authority_is_trusted_if_it_is_configured() {
    let port = listen();
    let url = format!("https://127.0.0.1:{port}");
    let get = ["users", "get", "--url", &url];
    let refused = |args: &[&str]| {
        let run = run(args);
        assert_eq!((run.code, run.stdout.as_str()), (4, ""), "{run:#?}");
        run.stderr.replace(&port.to_string(), "PORT")
    };
    expect![[r#"
        error: cannot reach a server at https://127.0.0.1:PORT: its certificate is signed by an unknown authority; give the authority's certificate with --cacert FILE
    "#]].assert_eq(&refused(&get));
    for trusting in
        [run(&[&get[..], &["--cacert", &pem("ca.pem")]].concat()), run_with(&get, &[("ARENA_CACERT", &pem("ca.pem"))])]
    {
        assert_eq!((trusting.code, trusting.stdout.as_str()), (0, "[]\n"), "{trusting:#?}");
    }
    // The certificate isn't valid for `localhost`.
    let other = format!("https://localhost:{port}");
    expect![[r#"
        error: cannot reach a server at https://localhost:PORT: its certificate is for another host
    "#]]
    .assert_eq(&refused(&["users", "get", "--url", &other, "--cacert", &pem("ca.pem")]));
    // The file must contain a certificate.
    let folder = folder();
    let empty = file(folder.path(), "empty.pem", "nothing\n");
    let run = run(&[&get[..], &["--cacert", &empty]].concat());
    assert_eq!(run.code, 2, "{run:#?}");
    expect![[r#"
        error: --cacert FILE: contains no certificate; give a PEM file with a line BEGIN CERTIFICATE
    "#]]
    .assert_eq(&run.stderr.replace(&empty, "FILE"));
}

#[test]
fn a_server_without_tls_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // The client disconnects without a request.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let run = run(&["users", "get", "--url", &url]);
    assert_eq!(run.code, 4, "{run:#?}");
    expect![[r#"
        error: no arena server at URL (check --url): the response is something that isn't TLS (received corrupt message of type InvalidContentType)
    "#]].assert_eq(&run.stderr.replace(&url, "URL"));
}

/// Copies a certificate and its key into the folder of a server's settings.
fn install(folder: &Path, certificate: &str, key: &str) {
    for (name, from) in [("server.pem", certificate), ("server.key", key)] {
        fs::copy(from, folder.join(name)).unwrap();
    }
}

/// Writes settings with the certificate in the folder, and returns the arguments of a server.
fn serve(folder: &Path, more: &str) -> Vec<String> {
    let [certificate, key] = ["server.pem", "server.key"].map(|name| folder.join(name));
    let text = format!(
        "[network]\nprivate_listen = \"127.0.0.1:0\"\ntls = {{ certificate = {certificate:?}, key = {key:?} }}\n{more}"
    );
    let settings = file(folder, "arena.toml", &text);
    let data = folder.join("data").to_str().unwrap().to_owned();
    ["serve", "--listen", "127.0.0.1:0", "--data", &data, "--config", &settings].map(str::to_owned).to_vec()
}

/// Starts a server with TLS. Returns it with its address, and a client of its private address, which has no TLS.
fn start(folder: &Path, more: &str) -> (Running, SocketAddr, Client) {
    let args = serve(folder, more);
    let mut server = Running::start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let address = server.url.strip_prefix("https://").expect("a URL with TLS").parse().unwrap();
    let private = server.line_after("Administration and metrics are at http://");
    (server, address, Client::new(private.parse().unwrap()))
}

/// Sends a request with OpenSSL's client and returns its output.
fn ask_with_openssl(address: SocketAddr, more: &[&str], request: &str) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string(), "-CAfile", &pem("ca.pem"), "-ign_eof"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is installed");
    client.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    String::from_utf8_lossy(&client.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn a_server_with_a_certificate_is_played_over_https() {
    let folder = folder();
    install(folder.path(), &pem("server.pem"), &pem("server.key"));
    let (mut server, address, private) = start(folder.path(), "");
    // This connection never begins its handshake.
    let begun = Instant::now();
    let mut silent = TcpStream::connect(address).unwrap();

    let users = run(&["users", "get", "--url", &server.url, "--cacert", &pem("ca.pem")]);
    assert_eq!((users.code, users.stdout.as_str()), (0, "[]\n"), "{users:#?}");
    let request = format!("GET /skill.md HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    for version in ["-tls1_2", "-tls1_3"] {
        let answer = ask_with_openssl(address, &["-verify_return_error", "-alpn", "h2,http/1.1", version], &request);
        for part in ["ALPN protocol: http/1.1", "HTTP/1.1 200 OK", &format!("{}/api", server.url)] {
            assert!(answer.contains(part), "{version}: {part}\n{answer}");
        }
    }
    let plain = Client::new(address).get("/health");
    assert_eq!(plain.refusal(), (400, "TLS_REQUIRED".to_owned()));

    // House bots of a server with TLS play.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let seat = private.request("POST", "/challenges/ultimatum", &form, b"against=house&strength=normal");
    assert!(seat.header("location").is_some_and(|to| to.starts_with("/play/inv_")), "{}", seat.text());
    let status = || private.get("/api/challenges").ok()["challenges"][0]["state"]["status"].clone();
    eventually("the bot sits", || (status() == "active").then_some(()));

    silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert!(begun.elapsed() > Duration::from_secs(9), "{:?}", begun.elapsed());
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn a_client_with_tls_that_reads_nothing_is_disconnected() {
    let folder = folder();
    install(folder.path(), &pem("server.pem"), &pem("server.key"));
    let (_server, address, private) = start(folder.path(), "[limits]\nstalled_ms = 3000\nchat_bytes = 1000000000\n");
    let (session, invites) = private.create("psi");
    let text = "x".repeat(500_000);
    for invite in &invites {
        private.join(invite).ok();
    }
    for _ in 0..20 {
        private.chat(&session, &invites[0], &text).ok();
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let mut tls = ClientConnection::new(config, address.ip().into()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let path = format!("/api/chat/sync?channel={session}&from={}", invites[0]);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    Stream::new(&mut tls, &mut stream).write_all(request.as_bytes()).unwrap();
    let connections = || private.counter("arena_connections");
    eventually("the request is handled", || (private.counter("arena_waiting_bytes") > 0).then_some(()));
    eventually("the client is disconnected", || (private.counter("arena_waiting_bytes") == 0).then_some(()));
    // The other connection is that of the private client's request.
    eventually("the connection is closed", || (connections() == 1).then_some(()));
}

#[test]
fn a_new_certificate_is_used_without_a_restart() {
    let (folder, next) = (folder(), folder());
    install(folder.path(), &pem("server.pem"), &pem("server.key"));
    let (_server, address, private) = start(folder.path(), "");
    let shown = || ask_with_openssl(address, &["-showcerts"], "GET / HTTP/1.0\r\n\r\n");
    let is_shown = |certificate: &Path| shown().contains(fs::read_to_string(certificate).unwrap().trim());
    let expiry = || private.counter("arena_tls_certificate_expiry_seconds");
    assert!(is_shown(Path::new(&pem("server.pem"))));
    // 1 January 2120.
    assert_eq!(expiry(), 4_733_510_400);

    let [certificate, key] = ["next.pem", "next.key"].map(|name| next.path().join(name));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=127.0.0.1", "-keyout", key.to_str().unwrap(), "-out", certificate.to_str().unwrap()])
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{made:?}");

    // A certificate without its key changes nothing, and neither does a missing file.
    fs::copy(&certificate, folder.path().join("server.pem")).unwrap();
    thread::sleep(Duration::from_secs(6));
    fs::remove_file(folder.path().join("server.key")).unwrap();
    assert!(is_shown(Path::new(&pem("server.pem"))));
    install(folder.path(), certificate.to_str().unwrap(), key.to_str().unwrap());
    eventually("the new certificate is in use", || is_shown(&certificate).then_some(()));
    assert!(expiry() < 4_733_510_400);
}

#[test]
fn a_server_with_an_unusable_certificate_does_not_start() {
    let folder = folder();
    let start = |certificate: &str, key: &str| {
        for (name, text) in [("server.pem", certificate), ("server.key", key)] {
            file(folder.path(), name, text);
        }
        let args = serve(folder.path(), "");
        let run = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(run.code, 2, "{run:#?}");
        run.stderr.replace(folder.path().to_str().unwrap(), "FOLDER")
    };
    let [certificate, authority, key] =
        ["server.pem", "ca.pem", "server.key"].map(|name| fs::read_to_string(pem(name)).unwrap());
    expect![[r#"
        error: FOLDER/server.pem contains no certificate in PEM form (network.tls)
    "#]]
    .assert_eq(&start("", &key));
    expect![[r#"
        error: FOLDER/server.key contains no private key in PEM form (network.tls)
    "#]]
    .assert_eq(&start(&certificate, &certificate));
    expect![[r#"
        error: cannot use the certificate with its key (network.tls): keys may not be consistent: KeyMismatch
    "#]]
    .assert_eq(&start(&authority, &key));
    let args = serve(folder.path(), "");
    fs::remove_file(folder.path().join("server.key")).unwrap();
    let missing = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(missing.code == 2 && missing.stderr.contains("server.key"), "{missing:#?}");
}
