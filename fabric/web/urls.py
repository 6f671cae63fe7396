"""All pages: the home page and what each app shows."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("fabric.accounts.web.urls")),
    path("", include("providers.web.urls")),
    path("", include("listings.web.urls")),
    path("", include("billing.web.urls")),
    path("", include("leases.web.urls")),
]
