"""Edits that say the same cost nothing; what claims nothing is left out; blind spots stay shut."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import Generation, Score
from evals.evaluators import Groundedness
from evals.evaluators.groundedness.equivalents import PHRASES
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.language import is_foreign, why_unreadable
from evals.evaluators.groundedness.plain import plain
from evals.evaluators.groundedness.same_meaning import is_same, key
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness.tokens import tokens_of

MakeGeneration = Callable[..., Generation]
PASSAGE = (
    "The harbor museum in Bergen opened on March 5, 2014 in a large gray building. It is not open "
    "on Mondays. The center holds 10,100 objects and cost $6.2 million to build. About 312 "
    "visitors come every day, and children may enter if an adult is with them. "
    "A ticket costs $29.40."
)
ANSWER = (
    "The harbor museum opened in a large gray building. It is not open on Mondays. "
    "Children may enter if an adult is with them."
)


@pytest.fixture
def score(generation_of: MakeGeneration) -> Callable[..., Score]:
    """Give a function that scores an answer, beside another one if that is given."""

    def scored(answer: str, other: str | None = None, context: str = PASSAGE) -> Score:
        mine = generation_of(1, answer, context=(context,))
        if other is None:
            found = Groundedness().score(mine)
        else:
            found = Groundedness().score_beside(mine, generation_of(2, other, context=(context,)))
        assert found is not None
        return found

    return scored


@pytest.mark.parametrize(
    "edited",
    [
        ANSWER.replace("harbor", "harbour").replace("gray", "grey"),
        ANSWER.replace("building.", "building [1].").replace("Mondays.", "Mondays.[2]"),
        ANSWER.replace("building.", "building【1】.").replace("Mondays.", "Mondays (source 2)."),
        f"{ANSWER} Please let me know if you have any further questions!",
        f"Sure! Here is what I found:\n\n{ANSWER}\n\nHope that helps!",
        ANSWER.replace("large", "big"),
        ANSWER.replace("is not", "isn't"),
        "- " + ANSWER.replace(". ", ".\n- "),
        "1. " + ANSWER.replace(". It", ".\n2. It").replace(". Children", ".\n3. Children"),
        ANSWER.replace("large gray", "**large** gray"),
        ANSWER.replace("building.", "building (source)."),
        f"{ANSWER} Would you like to know more about the museum's objects?",
        f"Based on the passage provided, here is the answer: {ANSWER}",
        f"Absolutely! the{ANSWER[3:]}",
        f"**Answer:** {ANSWER}",
        f"TL;DR: {ANSWER}",
        f"From what I can see in the passage, the{ANSWER[3:]}",
        f"In summary, note that the{ANSWER[3:]}",
        f"{ANSWER[:-1]}, according to the passage.",
        f"{ANSWER.replace(' in a', '&nbsp;in a')} I hope that answers your question! \U0001f60a",
        f"<think>\nThe user asks when it opened. It says 1850.\n</think>\n{ANSWER}<|im_end|>",
        f"{ANSWER}</s>",
        f"{ANSWER}\n\n---\n*This answer is based on the passages provided.*",
        f"{ANSWER}\n\nNote: This information is based solely on the provided context.",
    ],
    ids=["spelling", "citations", "other citations", "closing", "courtesies", "synonym",
         "contraction", "bullets", "numbers", "emphasis", "citation without a number", "an offer",
         "an announcement", "an interjection", "a label", "a label for short", "an opening",
         "two openings", "an ending", "an entity and a smile", "thoughts and a special token",
         "an end of sequence", "a footer", "a note"],
)  # fmt: skip
def test_a_harmless_edit_costs_nothing(score, edited) -> None:
    """Beside the unedited answer both have one score."""
    assert abs(score(edited, ANSWER).value - score(ANSWER, edited).value) < 1e-9


@pytest.mark.parametrize(
    "marker",
    [
        "[1†L5-L9]", "[P1]", "[context 1]", "[ref. 2]", "(see [1])", "(ibid.)", "(source: 1)",
        r"\cite{smith2020}", "[1:2]", "{1}", "<ref>1</ref>", "[chunk 3]",
    ],
)  # fmt: skip
def test_a_citation_in_any_style_costs_nothing(score, marker) -> None:
    """Before or behind the full stop."""
    for edited in (ANSWER.replace(".", f" {marker}."), ANSWER.replace(".", f".{marker}")):
        assert abs(score(edited, ANSWER).value - score(ANSWER, edited).value) < 1e-9


@pytest.mark.parametrize(
    "mark",
    [
        "•",
        "1)",
        "a.",
        "→",
        "✅",
        "1\ufe0f\u20e3",
        "(1)",
        "1:",
        "Step 1:",
        "- [x]",
        "1/",
        "#1",
        "A)",
        ">",
    ],
)
def test_a_mark_of_a_list_costs_nothing(score, mark) -> None:
    """Of whatever kind."""
    edited = f"{mark} " + ANSWER.replace(". ", f".\n{mark} ")
    assert abs(score(edited, ANSWER).value - score(ANSWER, edited).value) < 1e-9


@pytest.mark.parametrize(
    "around",
    [
        '{{"answer": "{}"}}', '```json\n{{"answer": "{}"}}\n```', "<p>{}</p>", "> {}",
        "## Answer\n\n{}",
        "When did it open?\n\n{}", "Q: When did it open?\nA: {}", "{}\n\nShall I go on?",
        r"\text{{{}}}",
    ],
)  # fmt: skip
def test_what_is_around_an_answer_costs_nothing(score, around) -> None:
    """Nor does a question before or behind it."""
    edited = around.format(ANSWER)
    assert abs(score(edited, ANSWER).value - score(ANSWER, edited).value) < 1e-9


@pytest.mark.parametrize(
    "courtesy",
    [
        "I hope this gives you a good start!", "If there's anything else on your mind, go ahead.",
        "I can put this into a table if you'd like.", "Let me know how it goes!", "Stay safe!",
        "Good luck with your exam!", "Enjoy your meal!", "Happy gardening!", "That's it!",
        "There you have it!", "Keep me posted!", "Warm regards.", "Until next time!",
        "If anything is unclear, tell me and I'll rephrase it.", "😊 Have a good one!",
        "It was a pleasure helping you.", "Thanks for reading!", "Sincerely, your assistant",
    ],
)  # fmt: skip
def test_a_courtesy_is_not_read(courtesy) -> None:
    """Behind an answer, whatever its words."""
    assert [s.text for s in sentences_of(f"It is red. It is big.\n\n{courtesy}")] == [
        "It is red.",
        "It is big.",
    ]


@pytest.mark.parametrize(
    "claim",
    [
        "I think it was invented in Denmark.", "You should not use it.",
        "If you want more, use less.",
        "If you are pregnant, ask your doctor.", "Enjoy it within two days.", "Stay hydrated.",
        "Take care to remove the seeds.", "Cheers to Denmark was recorded in 1990.",
        "We recommend a temperature of 200 degrees.", "Hope is the capital of the county.",
        "Check the manual for further information.", "Good luck charms were sold in Denmark.",
    ],
)  # fmt: skip
def test_a_claim_in_polite_words_is_read(claim) -> None:
    """The last sentence is the claim."""
    assert sentences_of(f"It is red. It is big. {claim}")[-1].text == claim


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Open Monday through Friday.", "Open Monday to Friday."),
        ("Open Monday through Friday.", "Open Mon-Fri."),
        ("Open from Monday to Friday.", "Open Monday–Friday."),
        ("Open on Saturday.", "Open Saturday."),
        ("Cats and dogs are allowed.", "Cats and dogs are both allowed."),
        ("The price dropped by 5%.", "The price fell by 5 percent."),
        ("Do it every other day.", "Do it every second day."),
        ("Do it once a month.", "Do it monthly."),
        ("World War II ended.", "The Second World War ended."),
        ("It consists of wood.", "It is made up of wood."),
        ("On the other hand, it rains.", "In contrast, it rains."),
        ("A man who lives here left.", "A man that lives here left."),
        ("You will need to wait.", "You must wait."),
        ("It uses 10 kilowatt hours.", "It uses 10 kWh."),
        ("A ticket costs $29.40 a year.", "A ticket costs $29.40 per year."),
        ("Visitors come every day.", "Visitors come each day."),
        ("It is closed because it is Monday.", "It is closed since it is Monday."),
        ("Tours are offered at noon.", "Tours are given at noon."),
        ("Some rooms are closed.", "Certain rooms are closed."),
        ("Visitors must pass a check.", "Visitors must get through a check."),
        ("He discovered the door.", "He found out the door."),
        ("Tickets cost 5 euros.", "The tickets cost 5 euros."),
        ("It is open until noon.", "It is open till noon."),
        ("Children should stay near.", "Children ought to stay close to."),
        ("It might rain, but tours go on.", "It may rain; however, tours go on."),
        ("It has rooms for under 30 people.", "It possesses rooms for fewer than 30 people."),
        ("Each room was found at once.", "Every room was discovered immediately."),
        (
            "Children may enter if an adult comes.",
            "Children may enter provided that an adult comes.",
        ),
        ("It is called a salon.", "It is known as a salon."),
        ("The United States & the UK agreed.", "The U.S. and the United Kingdom agreed."),
        ("It's closed, and that's all.", "*It*'s closed, and that*'s* all."),
        ("Cook it for 6 to 9 minutes.", "Cook it for 6–9 minutes."),
        ("It costs from $5 to $10 a day.", "It costs $5-$10 a day."),
        ("Keep it at 350°F to 400°F.", "Keep it at 350 degrees F–400 degrees F."),
        ("It keeps at 350°F.", "It keeps at 350 degrees Fahrenheit."),
        ("It holds about 50 people.", "It holds ~50 people."),
        ("Use an oven or a grill.", "Use an oven/grill."),
        ("Add 0.5 mg of it.", "Add .5 mg of it."),
        ("Add 1 1/2 cups of it.", "Add 1½ cups of it."),
        ("It keeps at 40°C.", "It keeps at **40** °C."),
        ("A stamp costs $0.49.", "A stamp costs $.49."),
        ("Passage 2 says that it is open.", "Passage **2** says that it is open."),
        ("The website helps to find health care.", "The web site helps find healthcare."),
        ("Finally, it is closed.", "It is closed."),
        ("1. Mix the eggs.", "**Step 1:** Mix the eggs.<br>"),
        ("1. Mix the eggs.", "### 1. Mix the eggs."),
        ("A room that is open is warm.", "A room which is open is warm."),
        ("Swimming and running are allowed.", "Both swimming and running are allowed."),
        ("You should bring water.", "It is advisable to bring water."),
        ("Passage 2 says that it is open.", "Passage two says that it is open."),
        ("It's worth noting that it rains.", "It rains, as the provided passages state."),
        ("2. Overall, it rains.", "It has been noted in the given text that it rains."),
        ("It takes about 5 minutes.", "It takes approx. 5 minutes."),
        ("It takes at least 5 minutes.", "It takes 5+ minutes."),
        ("It takes at least 5 minutes.", "It takes 5 minutes or more."),
        ("It takes at least 5 minutes.", "It takes 5 or more minutes."),
        ("Cook it for 6 to 9 minutes.", "Cook it for between 6 and 9 minutes."),
        ("Use it twice a day.", "Use it two times a day."),
        ("It is the second largest room.", "It is the 2nd largest room."),
        ("The first room is large.", "The 1st room is large."),
        ("The two rooms are large.", "Both rooms are large."),
        ("It opened on June 3, 1990.", "It opened on 3 June 1990."),
        ("The rooms are large.", "These rooms are very large."),
        ("It may rain.", "It may potentially rain."),
        ("Stay because it rains.", "Stay due to the fact that it rains."),
        ("You can use salt.", "It is possible to use salt."),
        ("It rains.", "The short answer to your question is that it rains."),
        ("It rains.", "In fact,\u00a0it  rains."),
        ("It holds at least 500 million words.", "It holds 500+ million words."),
        ("Rain falls from 6 to 9 days.", "Rain falls between 6 and 9 days."),
        ("Call a guard, if necessary.", "Call a guard, if needed."),
        ("Make all necessary changes.", "Make all required changes."),
        ("It is recommended to wait.", "It's advised to wait."),
        ("Doctors recommend rest.", "Doctors advise rest."),
        ("It is always open.", "It is at all times open."),
        ("All dogs and all cats ran.", "All of the dogs and every one of the cats ran."),
        ("Then close it during the day.", "After that, close it in the course of the day."),
        ("Call when it rains in a room.", "Call whenever it rains inside a room."),
        ("It takes half a cup.", "It takes 0.5 cups."),
        ("It takes ½ cup.", "It takes .5 cup."),
        ("It takes 1.5 hours.", "It takes one and a half hours."),
        ("Two-thirds of it are open.", "2/3 of it are open."),
        ("A third of it is open.", "One third of it is open."),
        ("It runs at 60 mph.", "It runs at 60 miles per hour."),
        ("It runs at 60 km/h.", "It runs at 60 kilometers per hour."),
        ("It has 200 sq. ft.", "It has 200 square feet."),
        ("It is open three times a day.", "It is open 3x daily."),
        ("It has 5 x 7 rooms.", "It has 5 by 7 rooms."),
        ("It is open on January 5.", "It is open on the 5th of January."),
        ("It is open from 10 a.m. to 5 p.m.", "It is open 10am-5pm."),
        ("It is in room number 5.", "It is in room #5."),
        ("It is open 24/7.", "It is open 24 hours a day."),
        ("It costs $5 a month.", "It costs $5/month."),
        ("It is old, and it is open.", "It is old (it is open)."),
        ("Cats and dogs, and their owners, may enter.", "Cats, dogs and their owners may enter."),
        ("Use an oven and a grill.", "Use an oven/grill."),
        ("Cats, dogs and birds may enter.", "Cats/dogs/birds may enter."),
        ("Cats, dogs, or birds may enter.", "Cats/dogs/birds may enter."),
        ("However, it is open.", "But it is open."),
        ("It is open.", "On the other hand, it is open."),
        ("It was founded in 1990.", "It was established in 1990."),
        ("He found a house.", "He discovered a house."),
        ("A house was found.", "A house was discovered."),
        ("It is open from 9 a.m. to 5 p.m.", "It is open from 9 a.m. until 5 p.m."),
        ("Anna and her brother built it.", "Anna together with her brother built it."),
        ("Serve it with rice.", "Serve it along with rice."),
        ("However, it is open.", "It is, however, open."),
        ("It is open, however.", "It is open."),
        ("Because it is open, we go.", "As it is open, we go."),
        ("It is open, so we go.", "It is open, which is why we go."),
        ("It can take a day.", "It may take a day."),
        ("People with a card enter.", "Those with a card enter."),
        ("Avoid the cakes.", "Stay away from the cakes."),
        ("It is open on weekdays.", "It is open Monday through Friday."),
        ("It is open on weekdays from 9 to 5.", "It is open Mon-Fri from 9 to 5."),
        ("It is shut at weekends.", "It is shut at Saturdays and Sundays."),
        ("It was built in May 2012.", "It was built in 05/2012."),
        ("The café is open.", "The cafe is open."),
        ("It was shut from 2007 to 2008.", "It was shut 2007-08."),
    ],
)
def test_equal_phrases_are_equal(one, other) -> None:
    """Also those of words without content."""
    first, second = (key(sentences_of(text)[0]) for text in (one, other))
    assert is_same(first, second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A ticket costs 5 euros.", "A ticket cost 5 euros."),
        ("He fills in the form.", "He completed the form."),
        ("It is certain to end.", "It is some to end."),
        ("Turn left at the door.", "Turn leave at the door."),
        ("The hall has a door.", "The hall had a door."),
        ("It may rain.", "It must rain."),
        ("You cannot swim.", "You may not swim."),
        ("They live together.", "They live."),
        ("It was built in May 2012.", "It was built in 06/2012."),
        ("It was shut 2007-08.", "It was shut 2007-09."),
        ("It is open on weekdays.", "It is open Monday to Thursday."),
        ("It holds under 30 people.", "It holds over 30 people."),
        ("It is open until noon.", "It is open from noon."),
        ("Cook it for 6 to 9 minutes.", "Cook it for 6–8 minutes."),
        ("He went from 10 Main Street to Paris.", "He went 10 Main Street Paris."),
        ("Heat it to 350 degrees Fahrenheit.", "Heat it to 350 degrees Celsius."),
        ("Both rooms are open.", "Rooms are open."),
        ("It rains.", "According to passage 2, it rains."),
        ("The passages state that it rains.", "The passages do not state that it rains."),
        ("It rains.", "According to experts, it rains."),
        ("It is important to not swim.", "It is important to swim."),
        ("Swim here.", "It is worth not swimming here."),
        ("Passage two says that it is open.", "Passage three says that it is open."),
        ("The two rooms are large.", "The 2nd room is large."),
        ("It takes at least 5 minutes.", "It takes at most 5 minutes."),
        ("It takes 5+ minutes.", "It takes 5 minutes."),
        ("Cook it between 6 and 9.", "Cook it between 6 and 10."),
        ("It opened on June 3, 1990.", "It opened on June 5, 1990."),
        ("It is possibly closed.", "It is closed."),
        ("They need a ticket.", "They needed a ticket."),
        ("A ticket is needed.", "A ticket was needed."),
        ("Doctors advise rest.", "Doctors advised rest."),
        ("It holds 500+ million words.", "It holds 500 million words."),
        ("It is always open.", "It is at times open."),
        ("It takes half a cup.", "It takes a third of a cup."),
        ("It takes 1.5 hours.", "It takes 2.5 hours."),
        ("It is open daily.", "It is open weekly."),
        ("Cats and dogs may enter.", "Cats or dogs may enter."),
        ("It is old and open.", "It is old but open."),
        ("It has 200 sq. ft.", "It has 200 ft."),
        ("Open Monday to Friday.", "Open Monday and Friday."),
        ("Do it every other day.", "Do it every day."),
        ("The price rose by 5%.", "The price fell by 5%."),
        ("The price drops by 5%.", "The price dropped by 5%."),
        ("He founded a house.", "He found a house."),
        ("A house was founded.", "A house was discovered."),
        ("Cats/dogs may enter.", "Cats but dogs may enter."),
        ("Cats/dogs/birds may enter.", "Cats/dogs may enter."),
        ("But for him, it is open.", "For him, it is open."),
        ("It is open until 5 p.m.", "It is open 5 p.m."),
    ],
)
def test_another_tense_or_sense_is_not_equal(one, other) -> None:
    """A verb with one form for both tenses is told by its subject and object."""
    first, second = (key(sentences_of(text)[0]) for text in (one, other))
    assert not is_same(first, second)


@pytest.mark.parametrize(
    "edited",
    [
        ANSWER.replace("may", "must"),
        ANSWER.replace("It is not open", "It is open"),
        ANSWER.replace("opened in a large", "opened with royal support in a large"),
        ANSWER.replace(" is not", " used to be not"),
        ANSWER.replace("may enter", "may enter for families"),
        ANSWER.replace("opened in", "usually opened in"),
        ANSWER.replace("museum opened", "museum never opened"),
    ],
    ids=[
        "modality",
        "negation left out",
        "detail",
        "tense",
        "short detail",
        "qualifier",
        "verb denied",
    ],
)
def test_a_harmful_edit_is_seen(score, edited) -> None:
    """The edited answer falls below the other."""
    assert score(edited, ANSWER).value < score(ANSWER, edited).value - 0.3


def test_citations_change_nothing_alone(score) -> None:
    """Markers claim nothing, and the sentences' places stay those of the text."""
    cited = ANSWER.replace(".", " [1].")
    assert score(cited).value == score(ANSWER).value
    ends = [(span.start, span.end) for span in score(cited).spans or ()]
    assert [cited[start:end][-5:] for start, end in ends] == [" [1]."] * 3


@pytest.mark.parametrize(
    "answer",
    [
        "The passages do not give the full answer, but experts say it was invented in Denmark.",
        "The passages do not mention it; however, it was invented by a Danish engineer in Aarhus.",
        "While the text does not say so, the museum was designed by Danish prisoners of war.",
        "The passages do not name the designer (it was built by Danish prisoners of war).",
        "The passages never mention who built it; Danish prisoners of war did it.",
        "Nothing in the passages says who built it, yet it was built by Danish prisoners of war.",
        "While the passages are silent on this, it is known that prisoners of war built it.",
        "Silent… Most people say that prisoners of war built it.",
        "Silent on this, but prisoners of war built it.",
        "Not stated. It was built by Danish prisoners of war.",
        "Most guests describe it as gloomy, but the passages do not say so.",
        "Danish prisoners of war built it, though this is not stated in the passages.",
        "Danish prisoners built it in 1911; the passages do not give the year.",
        "It was built by prisoners of war (the passages do not mention this).",
        "The museum was designed by Arne Holm, which is not mentioned in the passages.",
        "Most sources say a whaler paid for it and the passages do not say otherwise.",
        "It comes with a glass roof, which the documents don't mention.",
    ],
)
def test_what_stands_beside_a_refusal_is_judged(score, answer) -> None:
    """It is a sentence of its own, and no refusal."""
    found = score(answer)
    assert found.label != "refusal"
    assert len(found.spans or ()) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        "The year it was built, however, is not mentioned.",
        "When it was built, the passages do not say.",
        "The museum is mentioned, but the passages do not say who built it.",
        "It is unclear who built it, as the passages do not say.",
        "The designer is unknown, and the passages do not name anyone.",
        "You asked who built it, but the passages do not say.",
        "The passages describe the museum, but they do not say who built it.",
        "I looked through all of them, but the passages do not say.",
        "While I would like to help, the passages do not say who built it.",
        "The passages mention the opening, but not who designed it; this is not stated.",
    ],
)
def test_what_only_introduces_a_refusal_is_no_claim(score, refusal) -> None:
    """It stays one sentence, which declines."""
    assert score(refusal).label == "refusal"
    assert len(score(refusal).spans or ()) == 1


@pytest.mark.parametrize("refusal", ["Silent on this.", "The passages do not say.", "Not stated."])
@pytest.mark.parametrize(
    "claim",
    [
        "Most visitors describe the building as very old.",
        "Some say the museum is haunted.",
        "It is usually described as a lively place.",
        "Locals call it a great place.",
        "Many loyal customers complain about the lid.",
        "Reviewers rate it as noisy.",
        "It is commonly believed to be a church.",
    ],
)
def test_what_others_say_beside_a_refusal_is_unsupported(score, refusal, claim) -> None:
    """Nobody of whom the passages tell says it."""
    assert score(f"{refusal} {claim}").label == "unsupported"
    assert score(f"{refusal} {claim}", context=f"{PASSAGE} {claim}").label == "supported"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2014-03-05", "March 5, 2014"),
        ("3/5/2014", "March 5, 2014"),
        ("10 100", "10,100"),
        ("6.2M", "6.2 million"),
        ("two hundred and five thousand three hundred twelve", "205,312"),
        ("nineteen eighty-four", "1984"),
        ("three hundred and twelve", "312"),
        ("１２３", "123"),
        ("mus\u200beum", "museum"),
        ("10{,}100", "10,100"),
        ("€29.40", "29.40 euros"),
        ("twenty-nine dollars and forty cents", "$29.40"),
        ("£3 and five pence", "£3.05"),
        ("two dozen", "24"),
        ("ten thousand one hundred", "10,100"),
        (r"6.2 \times 10^6", "6.2 million"),
        ("6.2 × 10⁶", "6.2 million"),
        ("6.2·10⁶", "6.2 million"),
        ("6.2e6", "6.2 million"),
        ("3 × 10⁻³", "0.003"),
        ("six point two million", "6.2 million"),
        ("twenty-six point zero five", "26.05"),
        ("10,1\u200b00", "10,100"),
        ("1\u200b,100", "1,100"),
        ("US$6.2m", "US$6.2 million"),
        ("300 m", "300 meters"),
        ("12/31/2014", "December 31, 2014"),
        ("children's colours", "child's colors"),
        ('a 13" pan', "a 13 inch pan"),
        ('10" wide by 3.7" tall', "10 inches wide by 3.7 inches tall"),
        ('he "saw" a 5" and a 6" one', 'he "saw" a 5 inch and a 6 inch one'),
        ("5'6\" tall", "5 feet 6 inches tall"),
        ("5′ 6.5″ tall", "5 feet 6.5 inches tall"),
        ("6 in. wide", "6 inches wide"),
        ("the 1970's", "the 1970s"),
        ("350 degrees F", "350°F"),
        ("5 degrees Celsius", "5°C"),
        ("5 p.m.", "5pm"),
        ("5:00 P.M.", "17:00"),
        ("from 9:00 to 17:30", "from 9 to 5:30 pm"),
        ("12 pm", "noon"),
        ("0:15", "12:15 a.m."),
        ("≥ 5", "at least 5"),
        ("at <= $20", "at at most $20"),
        ("in the '90s", "in the 1990s"),
        ("in the nineties", "in the 1990’s"),
        ("World War II", "World War 2"),
        ("the twenty-first and the thirty-second room", "the 21st and the 32nd room"),
        ("5 ft 6 in, or more", "5 feet 6 inches, or more"),
        ("Sat. and Sun.", "Saturday and Sunday"),
        ("9 in the morning", "9 a.m."),
        ("09:00", "9 AM"),
        ("$127.1  million in  two  hundred  years", "$127.1 million in two hundred years"),
        ("a $1.5 M house", "a $1.5 million house"),
        ("2,000 sq. ft.", "2,000 square feet"),
        ("it was (-4°C)", "it was (minus 4 °C)"),
        ("Mon-Wed, Thurs & Fri-Sun", "Monday-Wednesday, Thursday & Friday-Sunday"),
        ("Anna &amp; her brother&#39;s dog", "Anna & her brother's dog"),
        ("Chanel No. 5", "Chanel number 5"),
        ("it was -2℃", "it was minus 2 °C"),
        ("350º F", "350 deg Fahrenheit"),
        ("2 l in 3 wks", "2 liters in 3 weeks"),
    ],
)
def test_one_value_has_one_form(one, other) -> None:
    """Dates, grouped and spelled numbers, wide digits, invisible characters."""
    assert [t.form.stem for t in tokens_of(one)] == [t.form.stem for t in tokens_of(other)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 pm", "5 am"),
        ("17:00", "18:00"),
        ("12 am", "12 pm"),
        ("≥ 5", "≤ 5"),
        ("it was -5", "it was 5"),
        ("the 1990s", "1990"),
        ("the Sun sat", "the Sunday Saturday"),
        ("World War II", "World War III"),
        ("World War II", "World War I"),
        ("5'6\"", "5'7\""),
        ("60 mph", "60 miles"),
        ("a 401(k)", "a 401,000"),
        ("twenty second walks", "22nd walks"),
    ],
)
def test_another_value_has_another_form(one, other) -> None:
    """However small the sign by which it differs."""
    assert [t.form.stem for t in tokens_of(one)] != [t.form.stem for t in tokens_of(other)]


@pytest.mark.parametrize("text", ["-5 eggs\n-6 eggs", "5 -6", "pages 5-6", "> 5 eggs"])
def test_a_dash_of_a_list_or_a_range_is_no_minus(text) -> None:
    """Nor is a quotation's mark a bound."""
    assert {"minus", "than"}.isdisjoint(token.form.stem for token in tokens_of(text))


def test_a_number_sign_denies_nothing() -> None:
    """`No. 5` is a name."""
    assert not any(token.form.is_negator for token in tokens_of("It is Chanel No. 5."))


def test_an_abbreviation_ends_no_sentence() -> None:
    """Of mountains and months neither."""
    assert len(sentences_of("Mt. Everest was climbed on Jan. 5 by Gen. J. Hunt.")) == 1
    assert len(sentences_of("It is 5 m. The door is 2 m. It is open.")) == 3


@pytest.mark.parametrize("text", ['"in 1990" he said', "at 5 in the morning", "it is 6 in."])
def test_a_quotation_mark_or_a_preposition_is_no_inch(text) -> None:
    """The mark closes a quotation, and the word stands before a noun or at the end."""
    assert "inch" not in [token.form.stem for token in tokens_of(text)]


def test_a_currency_is_part_of_a_price() -> None:
    """Dollars are no euros, also at the end of a text without a full stop."""
    (sentence,) = sentences_of("The price of it is $5")
    assert sentence.tokens[-1].form.stem == "dollar"
    dollars, euros = (tokens_of(text) for text in ("$29.40", "€29.40"))
    assert [t.form.stem for t in dollars] != [t.form.stem for t in euros]


@given(st.text(alphabet=" a1.[](){}$\\\u200b（１【】¹", max_size=60))
def test_blanks_keep_every_place(text) -> None:
    """Whatever is taken out, each character keeps its place, and tokens stay in order."""
    assert len(plain(text)) == len(text)
    starts = [token.start for token in tokens_of(text)]
    assert starts == sorted(starts)
    assert all(0 <= s.start < s.end <= len(text) for s in sentences_of(text))


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("La torre mide 330 metros.", True),
        ("Le prix est de 30 euros.", True),
        ("Los Angeles Lakers won the title.", False),
        ("The Las Vegas casino opened in 1950.", False),
        ("Yes.", False),
        ("El Paso is in Texas.", False),
        ("It is in Las Vegas.", False),
        ("No hay información.", True),
        ("No se sabe.", True),
        ("Der Zoll beträgt 3 Dollar.", True),
        ("Fue Marta Lindqvist.", True),
        ("Oui, en 1987.", True),
        ("Die Brücke wurde 1987 eröffnet.", True),
        ("Rosie O'Donnell", False),
        ("Sinigang Na Baboy Recipe", False),
        ("π is about 3.14.", False),
        ("he was born in königsberg, prussia on april 2, 1867.", False),
    ],
)
def test_short_answers_in_other_languages_are_told(text, is_other) -> None:
    """By their function words, and by words that English lacks."""
    assert is_foreign(text) is is_other


@pytest.mark.parametrize(
    ("answer", "is_read"),
    [
        ("Montags geschlossen", False),
        ("Puente abierto", False),
        ("Eintritt frei", False),
        ("Lundi fermé", False),
        ("Open daily", True),
        ("Closed on Mondays", True),
        ("Marta Lindqvist", True),
        ("rivaroxaban tablets", True),
        ("Nur mit Karte", False),
        ("Keine Karten", False),
        ("Voranmeldung erforderlich", False),
        ("Geöffnet ab 9 Uhr", False),
        ("Solo contanti", False),
        ("Espèces uniquement", False),
        ("Apenas dinheiro", False),
        ("Alleen contant", False),
        ("Zwei Jahre Garantie", False),
        ("Precio no indicado", False),
        ("Solo artist", True),
        ("Han Solo", True),
        ("Leonardo da Vinci", True),
        ("Van der Waals forces", True),
        ("Uma Thurman", True),
        ("Wolfgang Schmidt", True),
        ("Non-smoking area", True),
    ],
)
def test_a_few_words_of_another_language_stay_unscored(score, answer, is_read) -> None:
    """If none is English; as in the passages, they are read."""
    assert (score(answer).value is not None) is is_read
    assert score(answer, context=f"{answer}. {PASSAGE}").value is not None


def test_mixed_languages_are_judged_by_their_english() -> None:
    """Half of the words in English are enough."""
    mixed = "The tower is tall and stands in Paris. It is red. Der Turm ist hoch und steht dort."
    assert why_unreadable(mixed) is None


def test_every_flag_names_a_sentence(score) -> None:
    """An unsupported answer's explanation quotes one with its reason."""
    found = score("The museum sells whale oil. Its founder collected Peruvian stamps in Lima.")
    assert found.label == "unsupported"
    assert len((found.explanation or "").splitlines()) > 1


@pytest.mark.slow
def test_large_indexes_are_not_all_kept() -> None:
    """The memory of passages' indexes is bounded by their characters."""
    indexed.clear()
    texts = [("word " * 100_000 + str(n),) for n in range(5)]
    for one in texts:
        indexed(one)
    assert indexed.built == 5
    indexed(texts[-1])
    assert indexed.built == 5
    indexed(texts[0])
    assert indexed.built == 6
    indexed.clear()


def test_no_equivalent_is_replaced_again() -> None:
    """One look at a phrase is enough: what stands in its place is no phrase of the table."""
    for instead in PHRASES.values():
        parts = {instead[at:end] for at in range(len(instead)) for end in range(at + 1, 6)}
        assert parts.isdisjoint(PHRASES)
