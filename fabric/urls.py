"""The address space: pages, the API for programs, the API for agents, the back office."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
