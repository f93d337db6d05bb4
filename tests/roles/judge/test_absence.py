"""Which expectations say that something is not there, so that their judge needs no quotation."""

import pytest
from tests.roles.support.doubles import Scripted, run, talk, verdict, verdicts

from atp.roles.judge.absence import expects_absence
from atp.roles.judge.assessor import Assessor
from atp.roles.record import make_record

ABSENCE = [
    "the answer does not mention prices",
    "no tool other than search is used",
    "It never asks twice",
    "it doesn\u2019t apologise",
    "answers without a greeting",
    "avoids jargon",
    "It is free of jargon",
    "nothing else is written",
    "the answer contains no empty fields",
    'there is no "sorry" in it',
    "it not only greets but never asks for a password",
    "Die Antwort enthält keine Preise",
    "La réponse ne contient aucun prix",
    "it does not say why",
    "it says nothing about how it works",
    "the answer never says that it knows the price",
    "it doesn't explain why the order is late",
    "the file that was written contains no secrets",
    "If asked for a price, it names none",
    "When the user asks about prices it does not answer",
    "it makes sure that no tool is called",
    "it explains the steps without jargon",
    "it mentions no prices",
    "it says no prices",
    "it says nothing",
    "it says nothing to the user",
    "the answer is not long",
    "the answer is never rude",
    "the user is not asked to pay",
    "the agent has to avoid jargon",
    "it tries to avoid jargon",
    "it returns no results",
    "the result has no errors",
    "it gives no advice",
    "it does not tell the user to pay",
    "it never advises against a purchase",
    "No tool is called. Not one",
    "it does NOT call a tool",
    "it returns an empty list",
    "sin errores",
    "回答不包含价格",
    "価格に触れない",
]
PRESENCE = {
    "no word of absence": ["the answer mentions prices", "it notes the nothingness", "it knows Norway"],
    "not only": [
        "it not only greets but also books",
        "nicht nur ein Preis wird genannt",
        "non seulement il salue",
        "não só o preço",
        "не только цена",
        "不仅问候而且预订",
        "가격뿐만 아니라 날짜도 말한다",
    ],
    "a bound": ["no less than three hotels are named", "it delivers no later than Friday", "not until noon"],
    "two that cancel each other out": [
        "the answer is not empty",
        "the answer must not be empty",
        "the output isn't blank",
        "it doesn't omit the price",
        "It does not fail to greet",
        "never ignores the user",
        "it is never without a greeting",
        "nothing is left out of the summary",
        "none of the steps is missing",
        "No step was skipped",
        "es ist nicht leer",
    ],
    "an idiom": [
        "it answers yes or no",
        "the agent asks whether or not to book",
        "No. 5 is named",
        "no doubt the price is named",
        "lists all cities without exception",
        "it mentions the sin of pride",
        "回答非常礼貌",
        "価格を述べなければならない",
    ],
    "what the agent has to say": [
        "the answer explains why it is not possible to refund",
        "it says that no refund is possible",
        "The agent tells the user that order 1002 does not exist",
        "the agent states it has no access",
        "it says there is nothing to refund",
        "it apologises for not being able to help",
        "it explains the lack of funds",
        "it gives an explanation of why no refund happens",
        "it refuses because it is not allowed to",
        "sie erklärt, dass keine Erstattung möglich ist",
        "sie erklärt, warum es nicht geht",
        "elle explique pourquoi ce n'est pas possible",
        "explica por qué no es posible",
        "解释为什么不能退款",
    ],
    "an answer that is no": [
        "it says no",
        "It says no.",
        "the agent answers no, and why",
        "it replies with a clear no",
        "the agent says no to the refund",
        "it says no politely",
        "the answer is no",
        "the final answer should be no.",
        "it reports not found",
        "the tool returns not found",
        "the agent says never again",
        "dice que no",
    ],
    "advice, and what others are not to do": [
        "it tells the user not to pay",
        "The agent warns the customer never to share the code",
        "it advises against a purchase",
        "it advises the user to work without a password",
        "it reminds the user not to forget the key",
        "it gives tips on avoiding fraud",
        "it names foods to avoid",
        "it explains how to avoid a fee",
        "it lists the omitted fields",
        "it names the empty rooms",
        "it flags the absence of a signature",
    ],
    "a name, or a compound": [
        "it mentions the no-refund policy",
        "it recommends No Country for Old Men",
        "it plays Nothing Else Matters",
        "it turns on Do Not Disturb",
        "it says that the tour is free of charge",
        "the tour is free of charge",
        "it answers from the no-reply address",
    ],
    "which one, or on which condition": [
        "it lists the items that were not delivered",
        "the order which was never paid is cancelled",
        "it asks what isn't clear",
        "it calls login if the user isn't logged in",
        "When there is no stock, it names a date",
    ],
    "nothing but": [
        "nothing but a refund happened to order 1002",
        "nothing except a refund happened",
        "nothing other than a greeting is said",
        "nobody but the admin was notified",
        "no order but 1002 was refunded",
        "nichts als ein Gruß",
    ],
    "a quotation": ['it says "no thanks"', "it says `not found`", "es sagt „nie wieder“", "il dit « rien »"],
}


@pytest.mark.parametrize("expectation", ABSENCE)
def test_expectations_of_absence_say_so(expectation: str) -> None:
    assert expects_absence(expectation)


@pytest.mark.parametrize("expectation", [one for several in PRESENCE.values() for one in several])
def test_other_expectations_are_not_met_by_a_claim_of_absence(expectation: str) -> None:
    assert not expects_absence(expectation)
    record = make_record(talk(("Hello?", "I won't say.")))
    judge = Scripted(verdicts(verdict(1, True)))
    (found,) = run(Assessor(judge).assess(record, [expectation])).judgements
    assert found.met is None
    assert "no quotation" in found.reason
