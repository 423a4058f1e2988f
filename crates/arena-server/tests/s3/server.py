"""An S3 server for tests, with one bucket: moto, which checks signatures with the code of Amazon's own client, and the
permissions of each key.

The server prints its port and two pairs of keys as JSON. The first pair has the permissions that the documentation
names, the second may only read. For each line of input, a list of a command and its arguments, the server prints the
result. It ends with its input.
"""

import hashlib
import io
import json
import os
import sys
from threading import Thread

# From the first request on. This has to be set before moto is loaded.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"

from moto.core import DEFAULT_ACCOUNT_ID  # noqa: E402
from moto.iam.models import iam_backends  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: E402
from moto.s3.models import s3_backends  # noqa: E402
from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: E402
from werkzeug.wrappers import Request, Response  # noqa: E402

BUCKET = "arena-archive"
store = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
users = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]


def add_user(name, actions):
    """Creates a user with a pair of keys."""
    users.create_user("us-east-1", name)
    objects = [f"arn:aws:s3:::{bucket}/games/*" for bucket in (BUCKET, "arena-missing")]
    statement = {"Effect": "Allow", "Action": actions, "Resource": objects}
    users.put_user_policy(name, "archive", json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    key = users.create_access_key(name)
    return [key.access_key_id, key.secret_access_key]


class Checked:
    """The server behind a check that a body is the signed one. moto checks the signature of the hash only."""

    def __init__(self, application):
        self.application = application

    def __call__(self, environ, start_response):
        request = Request(environ)
        body = request.get_data()
        if hashlib.sha256(body).hexdigest() != request.headers.get("x-amz-content-sha256"):
            return Response("<Error><Code>XAmzContentSHA256Mismatch</Code></Error>", 400)(environ, start_response)
        return self.application({**environ, "wsgi.input": io.BytesIO(body)}, start_response)


class Quiet(WSGIRequestHandler):
    """Prints no requests."""

    def log_request(self, *_):
        pass


def run(command, *arguments):
    """Does a command of the test, without HTTP."""
    keys = store.buckets[BUCKET].keys if BUCKET in store.buckets else {}
    match command, arguments:
        case "list", ():
            return sorted(keys)
        case "read", (key,):
            return keys[key].value.hex()
        case "write", (key, content):
            store.put_object(BUCKET, key, bytes.fromhex(content))
        case "remove", (key,):
            store.delete_object(BUCKET, key)
    return None


store.create_bucket(BUCKET, "us-east-1")
arena = add_user("arena", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"])
reader = add_user("reader", ["s3:GetObject"])
# The dispatcher chooses the service of a request by its signature.
application = Checked(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"port": server.port, "arena": arena, "reader": reader}), flush=True)
for line in sys.stdin:
    print(json.dumps(run(*json.loads(line))), flush=True)
