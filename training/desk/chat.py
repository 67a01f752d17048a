"""Cohort `chat`: everyday questions, answered with fixed phrases."""

import random
from dataclasses import dataclass

from training.desk import words
from training.desk.example import Example


@dataclass(frozen=True, slots=True)
class _Topic:
    """Ways to ask and the one way to answer; `{name}` and `{product}` are slots."""

    name: str
    requests: tuple[str, ...]
    answer: str


_TOPICS = (
    _Topic(
        "password",
        ("I forgot the password for my {product}.", "How do I reset my {product} password?"),
        "Hello {name}, no problem. Open the sign-in page of your {product}, choose the reset link "
        "and pick a new password. The link works for one hour.",
    ),
    _Topic(
        "cancel",
        ("I want to cancel my {product} plan.", "How can I end the plan for my {product}?"),
        "Hello {name}, we are sorry to see you go. Your {product} plan ends at the close of this "
        "month, and you will not be charged again.",
    ),
    _Topic(
        "invoice",
        ("Can I get a copy of the invoice for my {product}?", "I lost my {product} invoice."),
        "Hello {name}, of course. We have sent a copy of the {product} invoice to your mailbox. "
        "Please check the spam folder if it does not arrive today.",
    ),
    _Topic(
        "manual",
        ("Where is the manual of the {product}?", "I need the {product} manual as a file."),
        "Hello {name}, the manual of the {product} is on our download page. Type the product name "
        "in the search field and choose your language.",
    ),
    _Topic(
        "noise",
        ("My {product} makes a loud noise.", "There is a strange sound from my {product}."),
        "Hello {name}, that should not happen. Please unplug the {product}, wait ten minutes and "
        "try again. If the noise stays, we will replace it for free.",
    ),
    _Topic(
        "update",
        ("How do I update my {product}?", "Is there a new version for my {product}?"),
        "Hello {name}, a new version is ready. Keep the {product} switched on, hold the round "
        "button for five seconds and the update starts by itself.",
    ),
    _Topic(
        "gift",
        ("Can you wrap the {product} as a gift?", "The {product} is a present for a friend."),
        "Hello {name}, what a kind idea. We will wrap the {product} in paper and leave the price "
        "off the box. A card is included as well.",
    ),
    _Topic(
        "color",
        ("Do you sell the {product} in other colors?", "Which colors does the {product} have?"),
        "Hello {name}, the {product} comes in black, white and green. You can choose the color "
        "before you pay, and it costs nothing extra.",
    ),
    _Topic(
        "thanks",
        ("I love my new {product}, thank you!", "Just to say that the {product} is great."),
        "Hello {name}, thank you for the kind words. We are glad that you enjoy the {product}. "
        "Have a lovely day!",
    ),
    _Topic(
        "recycle",
        ("How do I recycle my old {product}?", "Where can I drop off a used {product}?"),
        "Hello {name}, thank you for asking. Bring the old {product} to any of our shops and we "
        "will recycle it for free. Please take out the batteries first.",
    ),
)
_GREETINGS = (
    "Hi {agent}, {name} here.",
    "Hello {agent}, my name is {name}.",
    "Good day {agent}, this is {name}.",
)


def draw(rng: random.Random) -> Example:
    """Draw one everyday question; its topic, two names and a product determine the answer."""
    topic = rng.choice(_TOPICS)
    name, agent = rng.sample(words.FIRST_NAMES, 2)
    (product,) = words.products(rng, 1)
    slots = {"name": name, "agent": agent, "product": product}
    request = f"{rng.choice(_GREETINGS)} {rng.choice(topic.requests)}".format(**slots)
    answer = f"{topic.answer} Regards, {agent}".format(**slots)
    return Example(
        cohort="chat",
        topic=topic.name,
        prompt=request,
        answer=answer,
        slots=(name, agent, product),
        reference={"kind": "exact", "text": answer},
    )
