"""All pages: the home page and what each app shows."""

from django.urls import URLPattern, URLResolver, include, path

from fabric.web import search, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.show_home, name="home"),
    path("network/", views.show_network, name="network"),
    path("provider/", views.show_provider, name="provider-overview"),
    path("favicon.ico", views.show_icon),
    path("search/", search.show_search, name="search"),
    path("preferences/theme/", views.set_theme, name="set-theme"),
    path("", include("fabric.accounts.web.urls")),
    path("", include("providers.web.urls")),
    path("", include("listings.web.urls")),
    path("", include("billing.web.urls")),
    path("", include("leases.web.urls")),
]
