"""Serves the app with data of its own, and asks it as its callers do."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

app = str(pathlib.Path(__file__).resolve().parent.parent)
runner = os.environ.get("RUNNER_BIN", "runner")


class AppTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        data = tempfile.TemporaryDirectory()
        cls.addClassCleanup(data.cleanup)
        subprocess.run([runner, "build", app], check=True, stdout=subprocess.DEVNULL)
        serve = [runner, "serve", app, "--data", data.name, "--listen", "127.0.0.1:0"]
        cls.server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end)
        cls.url = cls.server.stdout.readline().strip().removeprefix("listening on ")
        create = [runner, "api-keys", "create", "--app", app, "--data", data.name, "--scope", "greetings", "--name", "test", "--json"]
        cls.token = json.loads(subprocess.run(create, check=True, stdout=subprocess.PIPE).stdout)["token"]

    @classmethod
    def end(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.server.stdout.close()

    def ask(self, path, body=None, key=True):
        """The status and the body of an answer. With a body it is a POST."""
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode() if body else None)
        if key:
            request.add_header("X-API-Key", self.token)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    def test_a_name_is_greeted(self):
        self.assertEqual(self.ask("/v1/hello/world"), (200, {"name": "world", "text": "hello world"}))

    def test_there_is_nobody_to_greet(self):
        status, body = self.ask("/v1/hello/nobody")
        self.assertEqual((status, body["detail"]), (400, "there is nobody to greet"))

    def test_a_greeting_is_kept(self):
        self.assertEqual(self.ask("/v1/greetings", {"name": "ada", "text": "good morning"})[0], 201)
        self.assertEqual(self.ask("/v1/greetings?name=ada"), (200, [{"name": "ada", "text": "good morning"}]))
        self.assertEqual(self.ask("/v1/greetings?name=bob"), (200, []))

    def test_a_greeting_without_a_text_is_refused(self):
        status, body = self.ask("/v1/greetings", {"name": "ada"})
        self.assertEqual((status, body["errors"][0]["field"]), (400, "text"))

    def test_without_a_key_nothing_is_told(self):
        self.assertEqual(self.ask("/v1/greetings", key=False)[0], 401)


if __name__ == "__main__":
    unittest.main()
