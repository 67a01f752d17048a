"""Run attacks against Draftgate, and compare the measured effects with their bounds.

    python -m benchmarks.attacks [NAME …]

Prints a table, then JSON. Exits with 1 if a bound does not hold.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.attacks import (  # noqa: E402
    attacked_collector,
    descheduled_client,
    grpc_attacks,
    http_attacks,
    router_requests,
)
from benchmarks.attacks.findings import Finding  # noqa: E402


def _name(attack: attacked_collector.Attack) -> str:
    return str(getattr(attack, "__name__", attack)).replace("_", "-")


ATTACKS: Mapping[str, Callable[[], Sequence[Finding]]] = {
    **{
        f"collector-{_name(attack)}": partial(attacked_collector.attack_http, attack, memory_mib)
        for attack, memory_mib in http_attacks.ATTACKS.items()
    },
    **{
        f"collector-{_name(attack)}": partial(
            attacked_collector.attack_grpc, attack, memory_mib, is_http=True
        )
        for attack, memory_mib in http_attacks.ATTACKS_ON_EXPORTS.items()
    },
    **{
        f"tls-{_name(attack)}": partial(
            attacked_collector.attack_http, attack, memory_mib, tls=True
        )
        for attack, memory_mib in http_attacks.TLS_ATTACKS.items()
    },
    **{
        f"grpc-{_name(attack)}": partial(attacked_collector.attack_grpc, attack, memory_mib)
        for attack, memory_mib in grpc_attacks.ATTACKS.items()
    },
    **{
        f"grpc-tls-{_name(attack)}": partial(
            attacked_collector.attack_grpc, attack, memory_mib, tls=True
        )
        for attack, memory_mib in grpc_attacks.TLS_ATTACKS.items()
    },
    "client-descheduled": descheduled_client.attack,
    "router-large-array": router_requests.large_array,
    "router-large-heads": router_requests.large_heads,
    "router-odd-numbers": router_requests.odd_numbers,
    "router-silent-connections": router_requests.silent_connections,
    "router-small-chunks": router_requests.small_chunks,
}


def main() -> int:
    """Run the named attacks, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ATTACKS))
    names = parser.parse_args().names or list(ATTACKS)
    if unknown := [name for name in names if name not in ATTACKS]:
        parser.error(f"no attack {unknown[0]}; there are {', '.join(ATTACKS)}")
    found = {name: ATTACKS[name]() for name in names}
    for name, findings in found.items():
        for one in findings:
            sign = "≥" if one.at_least else "≤"
            state = "holds" if one.holds else "BROKEN"
            print(f"{state:7} {name}: {one.name}: {one.measured:.4g} ({sign} {one.bound:g})")
    machine = {"cpus": os.cpu_count(), "platform": platform.platform()}
    attacks = {name: [one._asdict() for one in findings] for name, findings in found.items()}
    print(json.dumps({"machine": machine, "attacks": attacks}))
    return 0 if all(one.holds for findings in found.values() for one in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
