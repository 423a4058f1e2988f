//! The fast path for well-formed tool calls, which bypasses the SDK. The SDK's transport needs four times the
//! CPU time of a REST call (docs/decisions/0038).

use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, JsonRpcRequest, JsonRpcResponse, JsonRpcVersion2_0,
    ProtocolVersion, RequestId, RequestMetaObject,
};

use crate::answer::{json, to_text};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

pub(super) struct PlainCall {
    pub(super) params: CallToolRequestParams,
    pub(super) reply: Reply,
}

pub(super) struct Reply {
    id: RequestId,
    /// True if the caller's protocol revision has a handshake. In such a revision a result has no `resultType`.
    handshake: bool,
}

impl PlainCall {
    /// Parses a request. Returns `None` for a request that the SDK must handle.
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Option<PlainCall> {
        let JsonRpcRequest { id, request, .. } =
            serde_json::from_slice::<JsonRpcRequest<CallToolRequest>>(body).ok()?;
        let CallToolRequest { params, extensions, .. } = request;
        let meta = extensions.get::<RequestMetaObject>();
        let handshake = match meta.and_then(|meta| Some((meta, meta.protocol_version()?))) {
            Some((meta, version)) => {
                let complete = version == ProtocolVersion::V_2026_07_28 && meta.client_capabilities().is_some();
                let headers_agree = sole(headers, &VERSION) == Some(version.as_str())
                    && sole(headers, &METHOD) == Some("tools/call")
                    && sole(headers, &NAME) == Some(&params.name);
                if !complete || !headers_agree {
                    return None;
                }
                false
            }
            None => {
                let is_spoken = |version: &ProtocolVersion| {
                    version.has_initialize() && sole(headers, &VERSION) == Some(version.as_str())
                };
                if headers.contains_key(VERSION) && !ProtocolVersion::KNOWN_VERSIONS.iter().any(is_spoken) {
                    return None;
                }
                true
            }
        };
        Some(PlainCall { params, reply: Reply { id, handshake } })
    }
}

impl Reply {
    pub(super) fn with(self, mut result: CallToolResult) -> Response {
        if self.handshake {
            result.result_type = None;
        }
        json(to_text(&JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id: self.id, result }))
    }
}

/// Returns the value of a header that occurs exactly once.
fn sole<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}
