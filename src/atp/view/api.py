"""What the view's server answers: the documented API that the page uses, too. docs/view.md describes it."""

import asyncio
import time
from typing import Any

from aiohttp import web

from atp.base.diagnostics import LoadError
from atp.base.json.text import encode
from atp.suite.result import TrialResult
from atp.view.compared import MOST_RUNS, Comparisons
from atp.view.events import Events
from atp.view.labelled import give, labels_of
from atp.view.past import Past
from atp.view.runs import NoRun, Runs
from atp.view.search import search
from atp.view.served_run import ServedRun, batches

SLICE = 0.03
"""Seconds that a journal is read before other requests get their turn."""
EVERY = 0.2
"""Seconds between two looks at a journal that grows."""
LIST_EVERY = 0.5
"""Seconds between two looks at the folder of runs."""
PART = 200_000
"""Bytes of rows in one event: the page shows the first while others are on their way."""


class Api:
    """The handlers of one server."""

    def __init__(self, runs: Runs, opened: str | None = None) -> None:
        """`opened` is the run that the page shows first."""
        self.runs = runs
        self.opened = opened
        self.comparisons = Comparisons(runs)
        self.past = Past(runs)
        self.watching = 0
        """Pages that are open."""
        self.asked_at = time.monotonic()
        """When the last request came or the last page was closed."""

    def routes(self) -> list[web.RouteDef]:
        """The addresses of the API."""
        run = "/api/runs/{run}"
        return [
            web.get("/api/runs", self.list_runs),
            web.get("/api/events", self.list_events),
            web.get(run, self.run),
            web.get(f"{run}/events", self.run_events),
            web.get(f"{run}/cases", self.cases),
            web.get(f"{run}/cases/{{number}}", self.case),
            web.get(f"{run}/cases/{{number}}/trials/{{place}}", self.trial),
            web.get(f"{run}/cases/{{number}}/trials/{{place}}/labels", self.labels),
            web.post(f"{run}/cases/{{number}}/trials/{{place}}/labels", self.give_label),
            web.get("/api/compare", self.compare),
            web.get("/api/history", self.history),
            web.get("/api/search", self.search),
        ]

    async def list_runs(self, _request: web.Request) -> web.StreamResponse:
        """All runs, newest first."""
        return _json({"runs": self.runs.listed(), "opened": self.opened})

    async def list_events(self, request: web.Request) -> web.StreamResponse:
        """The list of runs whenever it changes, as server-sent events."""

        async def changes(events: Events) -> None:
            sent = b""
            while events.is_open:
                now = encode({"runs": self.runs.listed()})
                if now != sent:
                    await events.send("runs", now)
                    sent = now
                await events.pause(LIST_EVERY)

        return await self._stream(request, changes)

    async def run(self, request: web.Request) -> web.StreamResponse:
        """A run with the rows of its cases."""
        run = await self._read(request)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        head = encode({**run.whole(), "progress": run.progress(), "generation": run.generation})
        await response.write(head[:-1] + b',"cases":[')
        for number, part in enumerate(batches(list(run.rows), 0, PART)):
            await response.write((b"," if number else b"") + b",".join(part))
        await response.write(b"]}")
        await response.write_eof()
        return response

    async def run_events(self, request: web.Request) -> web.StreamResponse:
        """What a run has by now and whatever comes, as server-sent events: `run`, `cases`, `progress`."""
        self._run(request)  # a run that isn't there is an error before the stream begins
        # A page that lost its connection goes on where it was.
        generation, sent = _whole(request, "generation", 0), _whole(request, "from", 0)

        async def changes(events: Events) -> None:
            nonlocal generation, sent
            version: object = None
            told: dict[str, Any] = {}
            due = 0.0
            while events.is_open:
                current = self._run(request)  # it may have been closed to save memory
                more = current.read(SLICE)
                if generation != current.generation:
                    generation, sent, version = current.generation, 0, None
                if version is None or (version != current.version and (time.monotonic() >= due or not more)):
                    version = current.version
                    began = time.monotonic()
                    await events.send("run", encode({**current.whole(), "generation": generation}))
                    due = time.monotonic() + max(0.5, 10 * (time.monotonic() - began))
                rows, begin = list(current.rows[sent:]), sent
                for part in batches(rows, 0, PART):
                    head = encode({"generation": generation, "from": begin})
                    await events.send("cases", head[:-1] + b',"cases":[' + b",".join(part) + b"]}")
                    begin += len(part)
                sent = begin
                progress = current.progress()
                if progress != told:
                    await events.send("progress", encode(progress))
                    told = progress
                await events.pause(0 if more else EVERY)

        return await self._stream(request, changes)

    async def cases(self, request: web.Request) -> web.StreamResponse:
        """The rows of the cases with an id, and with an agent and a file if these are given."""
        run = await self._read(request)
        wanted = {name: request.query[name] for name in ("agent", "file") if name in request.query}
        wanted["id"] = request.query.get("case", "")
        rows = run.rows_of(wanted["id"])
        found = [row for row in rows if all(row.get(name, "") == value for name, value in wanted.items())]
        return _json({"cases": found})

    async def case(self, request: web.Request) -> web.StreamResponse:
        """The details of a case."""
        run = await self._read(request, enough=_number(request, "number"))
        return _found(run.case(_number(request, "number")))

    async def trial(self, request: web.Request) -> web.StreamResponse:
        """The details of a trial of a case."""
        run = await self._read(request, enough=_number(request, "number"))
        return _found(run.trial(_number(request, "number"), _number(request, "place")))

    async def labels(self, request: web.Request) -> web.StreamResponse:
        """What people said of a trial and its checks."""
        run, trial = await self._trial(request)
        return _json(labels_of(run.folder, trial, run.hide))

    async def give_label(self, request: web.Request) -> web.StreamResponse:
        """Keep what somebody says of a trial or a check. Answers with all labels of the trial."""
        run, trial = await self._trial(request)
        if (wrong := give(run.folder, trial, await request.read())) is not None:
            return _json({"error": wrong}, 400)
        return _json(labels_of(run.folder, trial, run.hide))

    async def _trial(self, request: web.Request) -> tuple[ServedRun, TrialResult]:
        number, place = _number(request, "number"), _number(request, "place")
        run = await self._read(request, enough=number)
        found = run.place_of(number, place)
        if found is None:
            raise web.HTTPNotFound
        return run, found.result

    async def compare(self, request: web.Request) -> web.StreamResponse:
        """Each further run compared with the first, as `atp compare` does."""
        idents = list(dict.fromkeys(request.query.getall("run", [])))
        if not 2 <= len(idents) <= MOST_RUNS:
            raise web.HTTPBadRequest(reason=f"name 2 to {MOST_RUNS} runs")
        return _json(await self.comparisons.of(idents))

    async def history(self, request: web.Request) -> web.StreamResponse:
        """What a case came to in each run, newest first."""
        query = request.query
        return _json(await self.past.of(query.get("case", ""), query.get("agent"), query.get("file")))

    async def search(self, request: web.Request) -> web.StreamResponse:
        """The trials, of one run or of all, whose records have a text in them."""
        only = request.query.get("run")
        folders = [self.runs.folder_of(only)] if only else self.runs.folders()
        return _json(await asyncio.to_thread(search, folders, request.query.get("q", ""), self.runs.hide))

    def _run(self, request: web.Request) -> ServedRun:
        return self.runs.open(request.match_info["run"])

    async def _read(self, request: web.Request, enough: int | None = None) -> ServedRun:
        """The run of a request, read to its end, or until it has the row of number `enough`."""
        run = self._run(request)
        while not (enough is not None and enough < len(run.rows)) and run.read(SLICE):  # noqa: ASYNC110
            await asyncio.sleep(0)  # not to wait, but so that others get their turn
        return run

    async def _stream(self, request: web.Request, changes: Any) -> web.StreamResponse:
        events = Events(request)
        self.watching += 1
        try:
            await events.open()
            await changes(events)
        except (ConnectionError, NoRun):  # the page was closed, or the run was deleted
            pass
        except LoadError as error:
            await events.send("problem", encode({"error": str(error)}))
        finally:
            self.watching -= 1
            self.asked_at = time.monotonic()
        return events.response


@web.middleware
async def explain(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer what can't be answered with a JSON object that says why."""
    try:
        response: web.StreamResponse = await handler(request)
        return response
    except NoRun as error:
        return _json({"error": f"there is no run {error}"}, 404)
    except LoadError as error:
        return _json({"error": str(error)}, 422)
    except web.HTTPException as error:
        return _json({"error": error.reason}, error.status)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=encode(value), status=status, content_type="application/json")


def _found(value: Any) -> web.Response:
    return _json({"error": "there is no such case or trial"}, 404) if value is None else _json(value)


def _number(request: web.Request, name: str) -> int:
    """A number in the path. Raises `HTTPNotFound`."""
    text = request.match_info[name]
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise web.HTTPNotFound
    return int(text)


def _whole(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
