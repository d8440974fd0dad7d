"""Decide each morning and report each evening, through the service.

python client.py http://127.0.0.1:8000 [DAYS] [FIRST]
"""

import sys

from plant import Workshop

from regretless.client import Client


def main(url, days=300, first=0):
    workshop, north = Workshop(), Client(url).learner("north")
    for day in range(first, first + days):
        choice = north.decide(workshop.conditions(day), key=f"day-{day}")
        if day % 10 != 9:  # one day in ten the total is forgotten
            north.learn(f"day-{day}", total=workshop.total(day, choice.w))
    print(north.health()["verdict"])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
