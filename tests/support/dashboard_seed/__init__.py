"""A collector with three rollouts of six cohorts in it, an agent's trace, engines, a watch."""

from made_verdicts import resting_on
from otlp_bodies import export_request

from collector.client import Client
from collector.contract import Arm, encode
from dashboard_seed import agent, live
from dashboard_seed.generations import (
    COHORTS,
    FATES,
    PROMPTS,
    REPEATS,
    feedback,
    generation,
    scores,
)
from dashboard_seed.verdicts import verdict


def seed(client: Client) -> None:
    """Post everything."""
    for fate in FATES:
        generations = [
            generation(fate, arm, cohort, number, repeat)
            for cohort in COHORTS
            for number in range(PROMPTS)
            for repeat in range(REPEATS)
            for arm in Arm
            if (arm, cohort, number, repeat) != (Arm.CANDIDATE, "code", 19, 1)
        ]
        body = export_request([encode(sent) for sent in generations])
        client.post_traces(body.SerializeToString())
        client.post_scores([score for sent in generations for score in scores(fate, sent)])
        client.post_feedback([given for sent in generations for given in feedback(sent)])
        client.post_verdict(resting_on(client, verdict(fate)))
    client.post_traces(export_request(agent.spans()).SerializeToString())
    client._connection.send(
        "POST",
        "/v1/metrics",
        content=live.metrics_body(),
        headers={"Content-Type": "application/x-protobuf"},
    )
    live.turn_switches(client)
    live.watch(client)
