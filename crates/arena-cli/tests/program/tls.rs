//! Servers behind TLS: certificates of private authorities, and errors about untrusted certificates.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use expect_test::expect;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::program::{file, folder, run, run_with};

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
