"""The plan of an arena: what a command asks for, and what earlier ones with the same seeds and rounds have left."""

import json
from typing import Any

from regretless import files
from regretless.studies import forms
from regretless.studies.forms import PlanFile
from regretless.studies.plan import Plan
from regretless.studies.store import Store


class ArenaPlan(Plan):
    """A plan that keeps earlier results in sight: a report shows policies beside those that were played before."""

    def write(self, store: Store) -> None:
        place = store.plans / f"{self.id}.json"
        earlier = forms.read(place, PlanFile)
        told = self.to_dict()
        if earlier is not None and earlier.code == told["code"]:
            _extend(told, earlier, store)
        files.write_text(place, json.dumps(told, indent=1))


def _extend(told: dict[str, Any], earlier: PlanFile, store: Store) -> None:
    """Adds the cells of an earlier plan that are stored and not asked for now, panel by panel."""
    panels = {panel["title"]: panel for panel in told["studies"][0]["panels"]}
    for panel in (panel for study in earlier.studies for panel in study.panels):
        kept = [[label, key] for label, key in panel.cells if store.has(key)]
        if not kept:
            continue
        if panel.title not in panels:
            panels[panel.title] = {**panel.model_dump(), "cells": []}
            told["studies"][0]["panels"].append(panels[panel.title])
        cells = panels[panel.title]["cells"]
        cells += [pair for pair in kept if pair not in cells]
        told["cells"] |= {key: earlier.cells[key] for _, key in kept}
