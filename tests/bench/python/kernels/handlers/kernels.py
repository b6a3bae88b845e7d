"""Tasks that compute. They know nothing of the runner."""

import json
import re

from jinja2 import Environment

NAMES = ["lamp", "chair", "table", "shelf", "carpet", "mirror", "curtain"]

ROWS = [
    {"id": f"o-{n:04}", "item": NAMES[n % 7], "qty": n % 13, "price": n * 37 % 1000 / 8, "paid": n % 3 == 0, "tags": ["home", None, "été"]}
    for n in range(1000)
]
JSON = json.dumps(ROWS)

LOG = "".join(
    f'10.0.{n % 7}.{n % 251} - - [12/Mar/2026:10:{n % 60:02}:{n * 7 % 60:02} +0000] "GET /{NAMES[n % 7]}/{n} HTTP/1.1" '
    f'{200 if n % 9 else 404} {n * 7919 % 50000} "Mozilla/5.0 (X11; Linux x86_64)"\n'
    for n in range(500)
)
LINE = re.compile(r'(\d+\.\d+\.\d+\.\d+) \S+ \S+ \[([^\]]+)\] "(\w+) (\S+) [^"]+" (\d{3}) (\d+) "([^"]*)"$')
NUMBERED = re.compile(r"/(\w+)/(\d+)")
ERROR = re.compile(r'(?i)"get [^"]+" (4|5)\d\d')

TEMPLATE = Environment(autoescape=True).from_string(
    "<table>{% for row in rows %}<tr class=\"{{ loop.cycle('odd', 'even') }}\"><td>{{ row.id }}</td><td>{{ row.item|upper }}</td>"
    '<td>{{ row.qty }}</td><td>{{ "%.2f"|format(row.price) }}</td>{% if row.paid %}<td>paid</td>{% endif %}</tr>{% endfor %}</table>'
)

NUMBERS = [n * 7919 % 100003 / 8 for n in range(10000)]


def encode():
    return len(json.dumps(ROWS))


def decode():
    return len(json.loads(JSON))


def match():
    found = [m for m in map(LINE.match, LOG.splitlines()) if m and NUMBERED.search(m[4])]
    return [len(found), len(ERROR.findall(LOG)), len(NUMBERED.sub(r"/\2/\1", LOG))]


def text():
    parts = []
    for n in range(5000):
        parts.append(f"{n}: {NAMES[n % 7].upper()} {n / 8:.2f}")
    whole = "\n".join(parts)
    return [len(whole), len(whole.replace("LAMP", "candle").split("\n")), sum(part.endswith("0") for part in parts)]


def template():
    return len(TEMPLATE.render(rows=ROWS[:200]))


def sort():
    by_item = sorted(ROWS, key=lambda row: (row["item"], -row["price"]))
    by_price = sorted(ROWS, key=lambda row: row["price"])
    return [by_item[0]["id"], by_price[-1]["id"], sorted(NUMBERS)[5000], sorted(map(str, NUMBERS))[5000]]


KERNELS = {f.__name__: f for f in (encode, decode, match, text, template, sort)}
