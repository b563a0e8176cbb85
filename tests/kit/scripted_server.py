"""A server that answers what it is told to, for what no real one does when it is asked to."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec

Answer = tuple[int, dict[str, str], bytes] | None
"""Status, headers and body; None hangs up."""


class Server:
    """Answers one thing after the other, and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = [*answers], list[tuple[str, str, dict[str, str]]]()
        self.bodies = list[bytes]()
        self.url = ""

    def answer(self) -> Answer:
        """Return what to answer to what it was asked last."""
        return self.answers.pop(0)

    @contextmanager
    def running(self) -> Iterator["Server"]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                server.bodies.append(self.rfile.read(length))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.asked.append((self.command, self.path, headers))
                answer = server.answer()
                self.close_connection = True
                if answer is None:
                    return
                status, more, body = answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  how the library finds them

            def log_message(self, *_: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
            thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            self.url = f"http://127.0.0.1:{listening.server_port}"
            try:
                yield self
            finally:
                listening.shutdown()
                thread.join()


def rejection(status: int, code: str, sentence: str = "No.", **more: Any) -> Answer:
    return status, {}, msgspec.json.encode({"error": code, "error_description": sentence, "code": code, **more})


def told(value: Any, **headers: str) -> Answer:
    return 200, {name.replace("_", "-"): text for name, text in headers.items()}, msgspec.json.encode(value)


MADE = "2026-01-01T00:00:00Z"


def metadata_json(name: str, status: str = "provisioned", **more: Any) -> dict[str, Any]:
    """Return metadata of a resource of a project, as the API has it."""
    return {
        "id": f"{name}-id",
        "name": name,
        "creationTime": MADE,
        "provisioningStatus": status,
        "healthStatus": "unknown",
        "organizationId": "o-1",
        "projectId": "p-1",
        **more,
    }


PLAN: dict[str, Any] = {
    "hash": "0" * 32,
    "isDestructive": False,
    "message": "",
    "steps": [],
    "destroyed": [],
    "preserved": [],
    "downtime": {"extent": "none", "message": ""},
    "quota": [],
}
"""A plan that does nothing, as the API has it."""
