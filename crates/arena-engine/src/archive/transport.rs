//! HTTP for the client of object stores: hyper with the TLS of all connections here. The client's own transport would
//! bring a second implementation of cryptography.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as SendError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector as Connect, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::{ClientConfig, RootCertStore};

/// The time for a connection, without TLS.
const CONNECT: Duration = Duration::from_secs(5);

/// The time after which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Makes HTTP clients for object stores and for the services with their credentials.
#[derive(Debug)]
pub(super) struct Connector;

impl Connect for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let fail = |error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        // The certificates of the machine allow for stores with an authority of their own.
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let https = HttpsConnectorBuilder::new().with_tls_config(tls);
        let https = match options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() {
            Some("true") => https.https_or_http(),
            _ => https.https_only(),
        };
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(https.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(Transport(http)))
    }
}

struct Transport(Client<HttpsConnector<HttpConnector>, HttpRequestBody>);

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport(..)")
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.request(request).await.map_err(|error| HttpError::new(kind_of(&error), error))?;
        Ok(response
            .map(|body| HttpResponseBody::new(body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error)))))
    }
}

/// Returns the kind of an error. The client repeats requests after errors of some kinds.
fn kind_of(error: &SendError) -> HttpErrorKind {
    if error.is_connect() {
        return HttpErrorKind::Connect;
    }
    match error.source().and_then(|source| source.downcast_ref::<hyper::Error>()) {
        Some(error) if error.is_closed() || error.is_incomplete_message() => HttpErrorKind::Request,
        _ => HttpErrorKind::Unknown,
    }
}
