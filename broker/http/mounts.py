"""The routes of all parts of the HTTP server: one line for each part."""

from __future__ import annotations

from starlette.routing import BaseRoute

from broker.http.paths import accept_line_ends_in_paths
from broker.http.probes import Probes
from broker.http.site import Site


def routes_of(site: Site) -> list[BaseRoute]:
    """Return the routes of the parts that are switched on.

    A part that can be switched off is imported only here, in its line.
    """
    accept_line_ends_in_paths()
    routes: list[BaseRoute] = []
    routes += Probes(site).routes()
    if site.settings.arrow:
        from broker.http.readings import Readings

        routes += Readings(site).routes()
    if site.settings.metrics:
        from broker.http.metrics import Metrics

        metrics = Metrics(site.container, site.store, site.streams, loop_lag=site.loop_lag)
        routes += metrics.routes(site.guarded)
    if site.settings.api or site.has_console():
        from broker.http.api.table import endpoints

        known = endpoints()
        if site.settings.api:
            from broker.http.api.application import api_routes

            routes += api_routes(site, known)
        if site.has_console():
            from broker.http.console.application import console_routes

            routes += console_routes(site, known)
    if site.settings.jms:
        from broker.http.jms import JmsRoutes

        routes += JmsRoutes(site.container, site.guarded).routes()
    return routes
