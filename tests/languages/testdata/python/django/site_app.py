"""An application in Django, without its ORM."""

import os

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="a secret of the tests" * 3,
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    USE_TZ=True,
    TIME_ZONE="Europe/Berlin",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    INSTALLED_APPS=["django.contrib.sessions", "django.contrib.messages"],
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    MESSAGE_STORAGE="django.contrib.messages.storage.cookie.CookieStorage",
    TEMPLATES=[{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [os.path.join(os.path.dirname(__file__), "site_templates")],
        "OPTIONS": {"context_processors": ["django.contrib.messages.context_processors.messages"]},
    }],
    FILE_UPLOAD_HANDLERS=["django.core.files.uploadhandler.MemoryFileUploadHandler"],
)
django.setup()

from django import forms
from django.contrib import messages
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from runner import wsgi


class Greeting(forms.Form):
    name = forms.CharField(max_length=5)


def index(request):
    request.session["n"] = request.session.get("n", 0) + 1
    return JsonResponse({"n": request.session["n"], "page": reverse("page"), "zone": str(timezone.localtime().tzinfo)})


@csrf_exempt
def greet(request):
    form = Greeting(request.POST)
    if not form.is_valid():
        return JsonResponse(form.errors, status=422)
    messages.info(request, "hi " + form.cleaned_data["name"])
    return redirect("page")


def page(request):
    return render(request, "page.html", {"items": range(3)})


@csrf_exempt
def upload(request):
    return JsonResponse({"size": request.FILES["file"].size})


def parts(request):
    return StreamingHttpResponse(iter(["a", "b"]))


def protected(request):
    return JsonResponse({})


urlpatterns = [
    path("", index), path("greet", greet), path("page", page, name="page"), path("upload", upload), path("protected", protected), path("parts", parts),
]
site = wsgi(get_wsgi_application(), warm="/page")
