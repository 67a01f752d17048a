"""Bundles: a verdict with all of its inputs in one zip, from which it can be derived again."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from collector.columns import ArrowError, Table
from collector.contract import (
    DocumentError,
    RolloutHistory,
    Verdict,
    from_document,
    to_document,
)
from evals import policy as policies
from evals.errors import BundleError
from evals.evidence.pairs_table import from_table
from evals.evidence.parts import parts_of
from evals.gate import decide
from evals.report.terminal import to_json
from evals.verdict_history import with_history

FORMAT_VERSION = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same inputs give the same file
_POLICY, _PAIRS, _CONTROL = "policy.yaml", "pairs.arrow", "control.arrow"
_MANIFEST, _HISTORY = "manifest.json", "history.json"
VERDICT = "verdict.json"
ENVELOPE = "attestation.dsse.json"
"""The signatures; the only file that the manifest does not list, and that they do not cover."""

Sign = Callable[[Verdict, Mapping[str, bytes]], bytes]
"""Returns the envelope for a verdict and a bundle's files by name."""


class Inputs(NamedTuple):
    """All inputs of a verdict."""

    rollout: str
    policy_text: str
    pairs: Table
    control: Table | None = None
    history: RolloutHistory | None = None
    """None if no collector's history was read."""
    strict: bool = False


def judge(inputs: Inputs, source: str) -> Verdict:
    """Decide on the inputs; `source` names the policy in messages."""
    control = None if inputs.control is None else from_table(inputs.control)
    rules = policies.parse(inputs.policy_text, source)
    verdict = decide(from_table(inputs.pairs), rules, rollout=inputs.rollout, control=control)
    parts = parts_of(inputs.pairs)
    if inputs.control is not None:
        parts += parts_of(inputs.control, control=True)
    verdict = replace(verdict, evidence=parts)
    if inputs.history is None:
        return verdict
    return with_history(verdict, inputs.history, rules, strict=inputs.strict)


def write(path: Path, inputs: Inputs, verdict: Verdict, sign: Sign | None = None) -> None:
    """Write the zip: policy, pairs (Arrow), control, history, verdict, a manifest, and signatures.

    The manifest has the SHA-256 of each file. There is no seed: the gate draws no random numbers.
    """
    files = {_POLICY: inputs.policy_text.encode(), _PAIRS: inputs.pairs.to_ipc()}
    if inputs.control is not None:
        files[_CONTROL] = inputs.control.to_ipc()
    if inputs.history is not None:
        files[_HISTORY] = json.dumps(to_document(inputs.history), sort_keys=True).encode()
    files[VERDICT] = to_json(verdict).encode()
    manifest = {
        "format_version": FORMAT_VERSION,
        "rollout": inputs.rollout,
        "strict": inputs.strict,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "versions": dict(verdict.versions),
    }
    files[_MANIFEST] = json.dumps(manifest, indent=2, sort_keys=True).encode()
    if sign is not None:
        files[ENVELOPE] = sign(verdict, files)
    _write(path, files)


def add_signature(
    path: Path, sign: Callable[[Verdict, Mapping[str, bytes], bytes | None], bytes]
) -> None:
    """Sign a bundle, beside those who have signed it; raises `BundleError` if it is damaged.

    `sign` is given the envelope that the bundle has, if any.
    """
    _read(path)
    files = files_of(path)
    existing = files.pop(ENVELOPE, None)
    files[ENVELOPE] = sign(_verdict(path, files), files, existing)
    _write(path, files)


def files_of(path: Path) -> dict[str, bytes]:
    """Return a bundle's files by name, unchecked; raises `BundleError` if it is no zip."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as exc:
        raise BundleError(f"{path}: wanted a bundle of `draftgate gate --bundle`: {exc}") from exc


def _write(path: Path, files: Mapping[str, bytes]) -> None:
    if path.exists() and not path.is_file():
        raise BundleError(f"{path}: cannot be written: it is a folder or a device; wanted a file")
    half = path.with_name(path.name + ".part")
    try:
        with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
        half.replace(path)
    except OSError as exc:
        raise BundleError(f"{path}: cannot be written ({exc.strerror or exc})") from exc


def verify(path: Path) -> tuple[str, ...]:
    """Judge a bundle's inputs again, and return the lines in which the verdict differs.

    Versions are not compared: the new verdict gets those of the stored one. Raises `BundleError`
    if the bundle cannot be used, or a file in it does not match the manifest.
    """
    files, manifest = _read(path)
    stored = _verdict(path, files)
    control = _from_ipc(path, _CONTROL, files[_CONTROL]) if _CONTROL in files else None
    pairs = _from_ipc(path, _PAIRS, files[_PAIRS])
    inputs = Inputs(
        str(manifest["rollout"]),
        files[_POLICY].decode(),
        pairs,
        control,
        _history(path, files),
        manifest.get("strict") is True,
    )
    again = replace(judge(inputs, f"{path}: {_POLICY}"), versions=stored.versions)
    old, new = files[VERDICT].decode().splitlines(), to_json(again).splitlines()
    differing = unified_diff(old, new, "stored", "again", lineterm="", n=0)
    return tuple(line for line in differing if not line.startswith("@@"))


def _verdict(path: Path, files: Mapping[str, bytes]) -> Verdict:
    try:
        return from_document(Verdict, json.loads(files[VERDICT]))
    except (ValueError, DocumentError) as exc:
        raise BundleError(f"{path}: {VERDICT}: wanted a verdict, got {exc}") from exc


def _history(path: Path, files: Mapping[str, bytes]) -> RolloutHistory | None:
    if _HISTORY not in files:
        return None
    try:
        return from_document(RolloutHistory, json.loads(files[_HISTORY]))
    except (ValueError, DocumentError) as exc:
        raise BundleError(f"{path}: {_HISTORY}: wanted a rollout's history, got {exc}") from exc


def _read(path: Path) -> tuple[dict[str, bytes], dict[str, Any]]:  # Any: a JSON document
    files = files_of(path)
    files.pop(ENVELOPE, None)
    missing = sorted({_POLICY, _PAIRS, VERDICT, _MANIFEST} - set(files))
    if missing:
        raise BundleError(f"{path}: wanted {', '.join(missing)} inside, found {sorted(files)}")
    try:
        manifest = json.loads(files.pop(_MANIFEST))
        version, hashes = manifest["format_version"], dict(manifest["sha256"])
        manifest["rollout"]
    except (ValueError, TypeError, KeyError) as exc:
        raise BundleError(f"{path}: {_MANIFEST}: wanted version, rollout and hashes") from exc
    if version != FORMAT_VERSION:
        raise BundleError(f"{path}: wanted format version {FORMAT_VERSION}, got {version!r}")
    found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    if changed := sorted(n for n in {*hashes, *found} if hashes.get(n) != found.get(n)):
        raise BundleError(f"{path}: {', '.join(changed)}: not what {_MANIFEST} says was written")
    return files, manifest


def _from_ipc(path: Path, name: str, data: bytes) -> Table:
    try:
        return Table.read(data)
    except (ArrowError, TypeError) as exc:
        raise BundleError(f"{path}: {name}: wanted an Arrow stream, got {exc}") from exc
