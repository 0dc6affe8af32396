"""The tables of a project file that several surfaces read: alerts, answers, judging, and language models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rankgauge.core.arguments import number
from rankgauge.core.http_client import Endpoint, EndpointError, call_with_retries
from rankgauge.core.project_file import ProjectFile
from rankgauge.core.text import many
from rankgauge.judging.events import Settings
from rankgauge.production.metrics import METRICS, Threshold
from rankgauge.production.monitor import Alerts

_JUDGING = {
    **dict.fromkeys(("title", "mode", "image", "link"), (str,)),
    **dict.fromkeys(("shown", "places", "judges", "budget"), (int,)),
    **dict.fromkeys(("grades", "fields"), (list,)),
}
_ANSWERS = dict.fromkeys(("file", "reference", "collection", "model"), (str,))
_MODEL = {
    **dict.fromkeys(("url", "model", "key_env", "cache"), (str,)),
    **dict.fromkeys(("input_price", "output_price", "max_cost"), (float,)),
}
_WEBHOOK = dict.fromkeys(("webhook", "webhook_key_env", "address"), (str,))
_LIMITS = dict.fromkeys(("max", "min"), (float,))
_ATTEMPTS, _TIMEOUT, _LONGEST_WAIT = 4, 10.0, 10.0  # of a webhook, in seconds


def alert_thresholds(file: ProjectFile) -> tuple[Threshold, ...]:
    """Return the thresholds of online metrics in ``[alerts]``.

    Raises:
        FormatError: If a value has the wrong type, or a table has no limit.
        InputError: If the metric cannot have the value of a limit.
        UnknownName: For an unknown metric or key.
    """
    table = file.inside("alerts")
    known = {**_WEBHOOK, **{metric.name: (dict,) for metric in METRICS.values()}}
    thresholds = []
    for name in table.checked("alerts", known):
        if name in _WEBHOOK:
            continue
        limits = table.inside(name).checked("a threshold", _LIMITS)
        if not limits:
            raise table.error("there is no limit", name, fix=f"write {name} = {{ max = NUMBER }} or {{ min = NUMBER }}")
        for side, limit in limits.items():
            low, high = METRICS[name].bounds
            with table.at(name, side):
                thresholds.append(Threshold(name, side == "max", number(side, limit, low=low, high=high)))
    return tuple(thresholds)


def send_alerts(alerts: Alerts | None, file: ProjectFile) -> None:
    """Send alerts as JSON to the address in ``[alerts] webhook`` or ``RANKGAUGE_WEBHOOK``, if there are any.

    What is sent contains no text of the log. A call that fails may be retried three times.

    Raises:
        FormatError: If there is no address.
        InputError: If the file belongs to another user, or the address or the key is missing.
        EndpointError: If the server does not accept the alerts.
    """
    file.check_owner()  # the key and the alerts are sent to the address
    table = file.inside("alerts")
    settings = table.checked("alerts", {**_WEBHOOK, **dict.fromkeys(METRICS, ())})
    url = os.environ.get("RANKGAUGE_WEBHOOK") or settings.get("webhook")
    if not url:
        raise table.error("there is no webhook", fix='write [alerts] webhook = "https://...", or set RANKGAUGE_WEBHOOK')
    with table.at("webhook"):
        endpoint = Endpoint(url, key_env=settings.get("webhook_key_env"), timeout=_TIMEOUT)
    if alerts is None or not alerts.alerts:
        return
    rows = [{name: row[name] for name in row if name != "explanation"} for row in alerts.to_dict()["alerts"]]
    base = settings.get("address", "").rstrip("/")
    if base:
        rows = [row | {"link": f"{base}/production/metrics/{row['metric']}"} for row in rows]
    body = {"project": file.folder.name, "alerts": rows}
    try:
        call_with_retries(lambda: endpoint.post("", body), attempts=_ATTEMPTS, longest=_LONGEST_WAIT)
    except EndpointError as error:
        if not 200 <= (error.status or 0) < 300:  # many servers reply with text
            what = f"{many(len(rows), 'alert')} not sent: {error.what}"
            raise EndpointError(
                what, where=error.where, status=error.status, fix="check [alerts] webhook, and its server"
            ) from None
    finally:
        endpoint.close()


def judging_settings(file: ProjectFile, given: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings with which judging begins: those given, those in ``[judging]``, or the defaults.

    Raises:
        InputError: If a value is invalid.
        UnknownName: For an unknown key.
    """
    judging = file.inside("judging")
    with judging.at():
        return Settings(**{**judging.checked("judging", _JUDGING), **(given or {})})


def answer_settings(file: ProjectFile) -> dict[str, str]:
    """Return defaults of the arguments of ``rankgauge answers``: those in ``[answers]``, with paths.

    Raises:
        FormatError: If a value is not text.
        UnknownName: For an unknown key.
    """
    answers = file.inside("answers").checked("answers", _ANSWERS)
    return {key: value if key == "model" else str(file.path.parent / value) for key, value in answers.items()}


def model_settings(file: ProjectFile, name: str) -> dict[str, Any]:
    """Return arguments of :class:`rankgauge.llm.ChatModel`: those in ``[models.NAME]``.

    Raises:
        FormatError: If the table is missing or incomplete, or a value has the wrong type.
        InputError: If the file belongs to another user.
        UnknownName: For an unknown key.
    """
    file.check_owner()  # the key is sent to the address
    entry = file.inside("models", name)
    model = entry.checked("a model", _MODEL)
    for key in ("url", "model"):
        if key not in model:
            raise entry.error(
                f"{key} is missing", fix=f'write [models.{name}] with url = "https://..." and model = "..."'
            )
    return model | ({"cache": str(file.folder / model["cache"])} if "cache" in model else {})
