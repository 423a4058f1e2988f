//! A bucket of an S3-compatible object store.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::Uri;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStoreExt, PutPayload, RetryConfig};
use tokio::time::timeout;

use super::transport::Connector;

/// The time for reading or deleting an object, with all retries.
const PATIENCE: Duration = Duration::from_secs(15);

/// The time for writing an object, with all retries. A file can have a hundred megabytes.
const PATIENCE_TO_WRITE: Duration = Duration::from_secs(60);

/// The time after which a failed request isn't repeated.
const RETRIES_WITHIN: Duration = Duration::from_secs(4);

/// The maximum length of an answer in an error, in characters.
const MOST_TEXT: usize = 200;

/// The variables of the environment with credentials, or with the places from which temporary ones come.
const CREDENTIALS: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_METADATA_ENDPOINT",
];

/// Credentials for a bucket. Without any, those of the machine are used: the instance's role.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BucketCredentials(Vec<(AmazonS3ConfigKey, String)>);

impl BucketCredentials {
    /// Takes the credentials from variables of the environment. Other variables, and empty ones, are ignored.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> BucketCredentials {
        let set = CREDENTIALS.iter().filter_map(|name| {
            let key = name.to_ascii_lowercase().parse().ok()?;
            Some((key, variable(name).filter(|value| !value.is_empty())?))
        });
        BucketCredentials(set.collect())
    }
}

impl fmt::Debug for BucketCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BucketCredentials(..)")
    }
}

/// A bucket that can't exist or be reached with these settings.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The URL of the bucket is invalid.
    #[error(
        "retention.bucket: `{0}` isn't a bucket: expected s3://NAME or s3://NAME/PREFIX; a name has 3 to 63 lower-case letters, digits, `.` and `-`"
    )]
    Url(String),
    /// The endpoint is invalid.
    #[error(
        "retention.endpoint: expected https://HOST or http://HOST, with a port if needed, and without a user or a path"
    )]
    Endpoint,
    /// The region is invalid.
    #[error("retention.region: `{0}` isn't a region: expected letters, digits and `-`, such as eu-central-1")]
    Region(String),
    /// The credentials are incomplete.
    #[error("retention.bucket: {0}; the credentials are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")]
    Credentials(String),
}

/// A bucket of an S3-compatible object store, and a prefix of all keys.
pub struct Bucket {
    url: String,
    prefix: Path,
    store: AmazonS3,
}

impl Bucket {
    /// Prepares access to the bucket at `s3://NAME/PREFIX`, without a connection. Without an endpoint it is Amazon's.
    ///
    /// # Errors
    /// If an argument is invalid. The error names the setting.
    pub fn new(
        url: &str,
        endpoint: Option<&str>,
        region: Option<&str>,
        credentials: &BucketCredentials,
    ) -> Result<Bucket, BucketError> {
        let refuse = || BucketError::Url(url.to_owned());
        let path = url.strip_prefix("s3://").ok_or_else(refuse)?;
        let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
        if !is_name(name) {
            return Err(refuse());
        }
        let prefix = Path::parse(prefix).map_err(|_| refuse())?;
        let region = region.unwrap_or("us-east-1");
        if region.is_empty() || !region.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(BucketError::Region(region.to_owned()));
        }
        let mut builder = credentials
            .0
            .iter()
            .fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(*key, value.as_str()))
            .with_http_connector(Connector)
            .with_retry(retries())
            // A bulk deletion of one object would be a request to the bucket, with another permission.
            .with_disable_bulk_delete(true)
            .with_bucket_name(name)
            .with_region(region);
        if let Some(endpoint) = endpoint {
            let is_plain = is_plain(endpoint).ok_or(BucketError::Endpoint)?;
            let options = ClientOptions::new().with_allow_http(is_plain);
            builder = builder.with_client_options(options).with_endpoint(endpoint.trim_end_matches('/'));
        }
        let store = builder.build().map_err(|error| BucketError::Credentials(reason(&error)))?;
        Ok(Bucket { url: url.to_owned(), prefix, store })
    }

    /// Checks that objects can be written, read and deleted. `key` is the key of an object that doesn't exist.
    pub(super) async fn check(&self, key: &str) -> Result<(), String> {
        self.put(key, Bytes::from_static(b"check")).await?;
        let read = self.get(key).await;
        self.delete(key).await?;
        match read?.as_deref() {
            Some(b"check") => Ok(()),
            _ => Err(format!("{self} doesn't return objects as they were written")),
        }
    }

    /// Writes an object. Its key is new, so a repeated request changes nothing.
    pub(super) async fn put(&self, key: &str, content: Bytes) -> Result<(), String> {
        let path = self.path(key);
        let put = self.store.put(&path, PutPayload::from_bytes(content));
        self.within(PATIENCE_TO_WRITE, put).await.map(drop)
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        let path = self.path(key);
        let get = async {
            match self.store.get(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                found => found?.bytes().await.map(Some),
            }
        };
        self.within(PATIENCE, get).await
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), String> {
        let path = self.path(key);
        let delete = async {
            match self.store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                deleted => deleted,
            }
        };
        self.within(PATIENCE, delete).await
    }

    fn path(&self, key: &str) -> Path {
        self.prefix.parts().chain(Path::from(key).parts()).collect()
    }

    async fn within<T>(
        &self,
        patience: Duration,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, String> {
        match timeout(patience, request).await {
            Ok(answer) => answer.map_err(|error| format!("{self}: {}", reason(&error))),
            Err(_) => Err(format!("{self}: no answer within {} s", patience.as_secs())),
        }
    }
}

/// Shows the URL only, because the client has the credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({self})")
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: 3, retry_timeout: RETRIES_WITHIN }
}

fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.chars().all(|c| is_inner(c) || c == '.' || c == '-')
        && name.starts_with(is_inner)
        && name.ends_with(is_inner)
}

/// Returns true if the endpoint has no TLS, and `None` if it isn't one.
fn is_plain(endpoint: &str) -> Option<bool> {
    let uri: Uri = endpoint.parse().ok()?;
    let is_host = !uri.authority()?.as_str().contains('@') && matches!(uri.path(), "" | "/") && uri.query().is_none();
    match uri.scheme_str()? {
        "http" if is_host => Some(true),
        "https" if is_host => Some(false),
        _ => None,
    }
}

/// Returns the reason of an error. An answer of the store can repeat a request with its session token, so only the code
/// and the message of such an answer are in it.
fn reason(error: &object_store::Error) -> String {
    let mut first: &dyn Error = error;
    while let Some(source) = first.source() {
        first = source;
    }
    let text = first.to_string();
    let element = |name: &str| {
        let (_, after) = text.split_once(&format!("<{name}>"))?;
        Some(after.split_once(&format!("</{name}>"))?.0)
    };
    let text = match element("Code") {
        Some(code) => format!("{code}: {}", element("Message").unwrap_or("no message")),
        None => text,
    };
    text.chars().take(MOST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str, endpoint: Option<&str>, region: Option<&str>, key: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| key.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let bucket = Bucket::new(url, endpoint, region, &BucketCredentials::from_variables(variable));
        bucket.map(|bucket| bucket.path("ab/c.jsonl.gz").to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_begin_with_the_prefix() {
        for (url, key) in [
            ("s3://arena", "ab/c.jsonl.gz"),
            ("s3://arena/", "ab/c.jsonl.gz"),
            ("s3://my.arena-1/one/two/", "one/two/ab/c.jsonl.gz"),
        ] {
            assert_eq!(open(url, None, None, &[]).as_deref(), Ok(key), "{url}");
        }
    }

    #[test]
    fn a_mistake_names_its_setting() {
        for url in [
            "arena",
            "https://arena",
            "s3://",
            "s3://ab",
            "s3://Arena",
            "s3://-ab",
            "s3://user@arena",
            "s3://arena/a//b",
            "s3://arena/../b",
        ] {
            let error = open(url, None, None, &[]).expect_err("it is refused");
            assert!(error.starts_with(&format!("retention.bucket: `{url}` isn't a bucket")), "{error}");
        }
        for endpoint in
            ["", "minio:9000", "ftp://minio", "https://key:secret@minio", "https://minio/path", "https://minio/?a=b"]
        {
            let error = open("s3://arena", Some(endpoint), None, &[]).expect_err("it is refused");
            assert!(error.starts_with("retention.endpoint: expected") && !error.contains("secret@"), "{error}");
        }
        for endpoint in ["https://minio", "http://127.0.0.1:9000", "https://minio.example:9000/", "http://[::1]:9000"] {
            assert_eq!(open("s3://arena", Some(endpoint), Some("auto"), &[]).as_deref(), Ok("ab/c.jsonl.gz"));
        }
        for region in ["", "eu central", "eu/central"] {
            let error = open("s3://arena", None, Some(region), &[]).expect_err("it is refused");
            assert!(error.starts_with(&format!("retention.region: `{region}` isn't a region")), "{error}");
        }
    }

    #[test]
    fn credentials_are_whole_and_are_not_shown() {
        let error = open("s3://arena", None, None, &[("AWS_ACCESS_KEY_ID", "key")]).expect_err("half is missing");
        assert_eq!(
            error,
            "retention.bucket: Missing SecretAccessKey; the credentials are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        );
        let both = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "hush")];
        assert!(open("s3://arena", None, None, &both).is_ok());
        let credentials = BucketCredentials::from_variables(|_| Some("hush".to_owned()));
        assert_eq!(credentials.0.len(), CREDENTIALS.len());
        let bucket = Bucket::new("s3://arena", None, None, &credentials).expect("it is good");
        assert!(!format!("{credentials:?} {bucket:?}").contains("hush"));
        assert_eq!(BucketCredentials::from_variables(|_| Some(String::new())), BucketCredentials::default());
    }
}
