"""Lighthouse scores and first loads of four pages, on an exchange with a lease running."""

import shutil

from deploy.local import agents
from deploy.local.deployment import Deployment, Progress
from deploy.local.processes import Supervisor
from deploy.local.servers import data_folder
from deploy.local.venv import ROOT
from simulator import lighthouse
from simulator.measure import Goal, Outcome
from simulator.story import Story

_VISITS = 5
_LEAST_SCORE = 95.0
_MOST_KB = 150.0


def run() -> Outcome:
    """Play the story up to a metered lease, and visit the pages as its buyer, in turn."""
    lighthouse.install(ROOT)
    browser = lighthouse.find_browser()
    folder = data_folder("bench-pages")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Supervisor(folder / "logs") as supervisor:
        deployment = Deployment(folder, supervisor, Progress(), collects_static=True)
        deployment.start(fresh=True)
        story = Story(deployment)
        try:
            story.play_to_metering()
            agents.publish_all(deployment)
            pages = {
                "catalogue": "/catalogue/",
                "listing": f"/listings/{story.listing}/",
                "lease": f"/leases/{story.lease}/",
                "dashboard": "/",
            }
            cookies = dict(story.people["buyer"].client.cookies)
            visits: dict[str, list[lighthouse.Visit]] = {name: [] for name in pages}
            for number in range(_VISITS):
                for name, path in pages.items():
                    deployment.progress.say(f"visit {number + 1} of {_VISITS}: {name}")
                    seen = lighthouse.visit(deployment.url + path, browser=browser, cookies=cookies)
                    visits[name].append(seen)
        finally:
            story.close()
    return _judge(visits)


def _judge(visits: dict[str, list[lighthouse.Visit]]) -> Outcome:
    figures: dict[str, float] = {}
    goals: list[Goal] = []
    for page, seen in visits.items():
        for finding in sorted({finding for visit in seen for finding in visit.findings}):
            print(f"{page}: {finding}")
        for url, size in seen[-1].heaviest:
            print(f"{page}: loads {size / 1000:5.1f} kB of {url}")
        for name, value in lighthouse.median_of(seen).items():
            figure = f"{page}_{name}"
            figures[figure] = round(value, 1)
            op, bound = ("<=", _MOST_KB) if name == "loaded_kb" else (">=", _LEAST_SCORE)
            goals.append(Goal(figure, figures[figure], op, bound))
    return Outcome(figures=figures, goals=tuple(goals))
