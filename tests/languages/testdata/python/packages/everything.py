"""Uses many packages, each for its main job."""
import datetime

import attr
import bs4
import cachetools
import dateutil.parser
import dateutil.rrule
import html5lib
import jinja2
import jsonschema
import jwt
import mako.template
import markdown
import marshmallow
import pygments
import pygments.formatters
import pygments.lexers
import pyparsing
import pytz
import simplejson
import sqlparse
import tabulate
import toml
import wtforms
import yaml

from runner import Request, handler


@attr.s(auto_attribs=True)
class Point:
    x: int
    y: int = 2


class Schema(marshmallow.Schema):
    when = marshmallow.fields.DateTime(required=True)


class Form(wtforms.Form):
    name = wtforms.StringField("Name", [wtforms.validators.Length(max=3)])


def cached():
    cache = cachetools.LRUCache(2)
    for name in "abc":
        cache[name] = 1
    return list(cache)


def bad_schema():
    try:
        jsonschema.validate({"n": "x"}, {"properties": {"n": {"type": "number"}}})
    except jsonschema.ValidationError as error:
        return error.message


def form_errors():
    form = Form(data={"name": "long name"})
    form.validate()
    return form.errors


JOBS = {
    "attr": lambda: repr(Point(1)),
    "bs4": lambda: bs4.BeautifulSoup("<p>a<b>bold</b></p>", "html.parser").b.text,
    "cachetools": cached,
    "dateutil": lambda: dateutil.parser.parse("29 Nov 2026 10:00 UTC").isoformat(),
    "rrule": lambda: len(list(dateutil.rrule.rrule(dateutil.rrule.DAILY, count=5, dtstart=datetime.datetime(2026, 1, 1)))),
    "html5lib": lambda: html5lib.parse("<p>x", namespaceHTMLElements=False).find(".//p").text,
    "jinja2": lambda: jinja2.Template("{% for i in range(n) %}{{ i }},{% endfor %}").render(n=3),
    "jsonschema": bad_schema,
    "jwt": lambda: jwt.decode(jwt.encode({"sub": "ada"}, "k" * 32, algorithm="HS256"), "k" * 32, algorithms=["HS256"])["sub"],
    "mako": lambda: mako.template.Template("hello ${name}").render(name="ada"),
    "markdown": lambda: markdown.markdown("# Title\n\n*em*"),
    "marshmallow": lambda: Schema().load({"when": "2026-11-29T10:00:00+00:00"})["when"].isoformat(),
    "pygments": lambda: pygments.highlight("x = 1", pygments.lexers.PythonLexer(), pygments.formatters.NullFormatter()).strip(),
    "pyparsing": lambda: pyparsing.Word(pyparsing.nums).parse_string("42 x")[0],
    "pytz": lambda: str(datetime.datetime(2026, 7, 1, tzinfo=pytz.utc).astimezone(pytz.timezone("Europe/Berlin")).utcoffset()),
    "simplejson": lambda: simplejson.dumps({"a": [1]}),
    "sqlparse": lambda: sqlparse.format("select 1 from x", keyword_case="upper"),
    "tabulate": lambda: tabulate.tabulate([[1, 2]], headers=["a", "b"], tablefmt="plain"),
    "toml": lambda: toml.loads("a = 1")["a"],
    "wtforms": form_errors,
    "yaml": lambda: yaml.safe_load("a: [1, {b: c}]"),
}


@handler
def packages(req: Request):
    return {name: job() for name, job in JOBS.items()}
