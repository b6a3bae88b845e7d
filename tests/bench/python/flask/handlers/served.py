from site_pages import app

from runner import handler, wsgi

pages = handler("pages")(wsgi(app, warm=("/hello", "/page")))
