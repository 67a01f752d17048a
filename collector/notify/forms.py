"""Payloads of webhooks: Draftgate's JSON, or the formats of Slack, Teams and Alertmanager."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from collector.contract import Document, Notification, NotificationType, to_document


class PayloadForm(StrEnum):
    """The form of a target's payload."""

    JSON = "json"
    SLACK = "slack"
    TEAMS = "teams"
    ALERTMANAGER = "alertmanager"


_HELD: Final = timedelta(days=30)
_LASTS: Final = {
    **dict.fromkeys(("fail", "off", "fell", "stopped"), _HELD),
    "sent": timedelta(minutes=5),
}
"""Duration of an alert by the new state, because Alertmanager would end it after minutes; other
states end it at once."""
_SUBJECTS: Final = {
    NotificationType.VERDICT_CHANGED: "verdict",
    NotificationType.WATCH_DECIDED: "watch",
    NotificationType.SWITCH_TURNED: "switch",
    NotificationType.ACCEPTANCE_DRIFTED: "acceptance",
    NotificationType.EVIDENCE_STOPPED: "evidence",
    NotificationType.TEST: "test",
}


def payload(form: PayloadForm, notification: Notification) -> object:
    """Return the payload as JSON values."""
    return _FORMS[form](notification)


def _headline(notification: Notification) -> str:
    before = "" if notification.before is None else f" (was {notification.before})"
    return f"{notification.rollout}: {_SUBJECTS[notification.type]} {notification.after}{before}"


def _facts(notification: Notification) -> list[tuple[str, str]]:
    facts = (
        ("Cohort", notification.cohort),
        ("Policy", notification.policy_name),
        ("By", notification.who),
        ("Verdict", notification.verdict and notification.verdict[:12]),
        ("At", _time(notification).isoformat(timespec="seconds")),
    )
    return [(name, value) for name, value in facts if value]


def _time(notification: Notification) -> datetime:
    return datetime.fromtimestamp(notification.time_unix_ns / 1e9, UTC)


def _slack(notification: Notification) -> Document:
    """Return an incoming webhook's message, with its markup characters &, < and > escaped."""
    lines = [
        _headline(notification),
        notification.summary,
        *(f"{name}: {v}" for name, v in _facts(notification)),
    ]
    text = "\n".join(lines)
    for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, escaped)
    return {"text": text}


def _teams(notification: Notification) -> Document:
    """Return a message with an adaptive card for Teams' workflows."""
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {
                "type": "TextBlock",
                "text": _headline(notification),
                "weight": "bolder",
                "wrap": True,
            },
            {"type": "TextBlock", "text": notification.summary, "wrap": True},
            {
                "type": "FactSet",
                "facts": [{"title": name, "value": value} for name, value in _facts(notification)],
            },
        ],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _alertmanager(notification: Notification) -> list[Document]:
    """Return one alert for `POST /api/v2/alerts`; a later one with the same labels ends it."""
    start = _time(notification)
    labels = {
        "alertname": f"Draftgate{_SUBJECTS[notification.type].capitalize()}",
        "rollout": notification.rollout,
        "severity": "critical" if notification.type is not NotificationType.TEST else "none",
    }
    if notification.cohort is not None:
        labels["cohort"] = notification.cohort
    if notification.policy_name is not None:
        labels["policy"] = notification.policy_name
    lasts = _LASTS.get(notification.after, timedelta())
    return [
        {
            "labels": labels,
            "annotations": {
                "summary": _headline(notification),
                "description": notification.summary,
            },
            "startsAt": start.isoformat(),
            "endsAt": (start + lasts).isoformat(),
        }
    ]


_FORMS: Mapping[PayloadForm, Callable[[Notification], object]] = {
    PayloadForm.JSON: to_document,
    PayloadForm.SLACK: _slack,
    PayloadForm.TEAMS: _teams,
    PayloadForm.ALERTMANAGER: _alertmanager,
}
