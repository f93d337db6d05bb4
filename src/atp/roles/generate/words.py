"""The words that the rule-based generator of variations knows: phrasings around a request, and words for others.

Only phrasings that leave open what is asked for, when, and by whom. No numbers, no quotations, no code.
"""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


REQUESTS = (
    "please {}",
    "{}, please",
    "could you {}?",
    "can you {}?",
    "would you {}?",
    "will you {}?",
    "could you please {}?",
    "can you please {}?",
    "would you please {}?",
    "could you kindly {}?",
    "kindly {}",
    "I need you to {}",
    "I want you to {}",
    "I'd like you to {}",
    "I would like you to {}",
    "I'm asking you to {}",
    "I would ask you to {}",
    "I have to ask you to {}",
    "what I need is for you to {}",
    "what I want from you is to {}",
    "here is what I need: {}",
    "here's my request: {}",
    "my request: {}",
    "your task: {}",
    "your task is to {}",
    "your job is to {}",
    "the task is to {}",
    "the assignment: {}",
    "go ahead and {}",
    "please go ahead and {}",
    "do me a favour and {}",
    "a small favour: {}",
    "be so kind as to {}",
    "would you be so kind as to {}?",
    "I'd appreciate it if you could {}",
    "I would be grateful if you could {}",
    "it would be great if you could {}",
    "it would be nice if you could {}",
    "it would help me if you could {}",
    "would it be possible for you to {}?",
    "is it possible for you to {}?",
    "can I ask you to {}?",
    "may I ask you to {}?",
    "could I get you to {}?",
    "I was hoping you could {}",
    "I was wondering if you could {}",
    "do you think you could {}?",
    "make sure to {}",
    "be sure to {}",
    "you should {}",
    "you need to {}",
    "it is time for you to {}",
    "if you don't mind, {}",
    "{}, if you please",
    "{}, thanks",
    "{}, thank you",
    "{}, would you?",
    "{}, will you?",
    "so, {}",
    "okay, {}",
    "right, {}",
    "I have a request. Please {}",
    "there's something I need. Please {}",
)
"""Around what the agent is told to do. A closing question mark is left out where it would touch an address."""
PROHIBITIONS = (
    "please {}",
    "{}, please",
    "be careful: {}",
    "one rule: {}",
    "this is important: {}",
    "keep in mind: {}",
    "take care: {}",
    "note: {}",
    "a reminder: {}",
    "I ask you: {}",
    "just so you know: {}",
    "okay, {}",
)
"""Around what it is told not to do."""
QUESTIONS = (
    "a question: {}",
    "quick question: {}",
    "I have a question: {}",
    "here is my question: {}",
    "my question is: {}",
    "just a question: {}",
    "tell me: {}",
    "please tell me: {}",
    "can you tell me: {}",
    "could you tell me: {}",
    "could you please tell me: {}",
    "can you help me with this: {}",
    "help me with this: {}",
    "I'd like to know: {}",
    "I would like to know: {}",
    "I want to know: {}",
    "I need to know: {}",
    "I'm wondering: {}",
    "I was wondering: {}",
    "I'm curious: {}",
    "I'm trying to find out: {}",
    "can I ask you something? {}",
    "may I ask you something? {}",
    "do you know this: {}",
    "so, {}",
    "okay, {}",
    "please answer this: {}",
    "please answer this question: {}",
    "I need an answer to this: {}",
    "something I'd like to ask: {}",
)
"""Around a question, which itself stays as it is."""
STATEMENTS = (
    "well, {}",
    "so, {}",
    "okay, {}",
    "right, {}",
    "all right, {}",
    "you see, {}",
    "just so you know: {}",
    "for your information: {}",
    "let me say this: {}",
    "what I mean is: {}",
    "I mean: {}",
    "to be clear: {}",
    "to be precise: {}",
    "in short: {}",
    "that is to say: {}",
)
"""Around what is neither a request nor a question."""
OPENINGS = ("Hi. ", "Hello. ", "Hello there. ", "Hi there. ", "Hey. ", "Excuse me. ")
"""Before a whole prompt."""
CLOSINGS = ("Thanks.", "Thank you.", "Many thanks.", "Thanks a lot.", "Thank you very much.", "Thanks in advance.")
"""After a whole prompt."""
GREETINGS = {
    "hi": ("hello", "hey", "hi there", "hello there", "hey there", "greetings", "good day"),
    "good morning": (
        "morning",
        "good morning to you",
        "a very good morning",
        "hi, good morning",
        "hello, good morning",
    ),
    "good afternoon": ("good afternoon to you", "a very good afternoon", "hi, good afternoon", "hello, good afternoon"),
    "good evening": ("good evening to you", "a very good evening", "hi, good evening", "hello, good evening"),
    "thanks": ("thank you", "thanks a lot", "many thanks", "thank you very much", "thanks so much", "much appreciated"),
    "bye": ("goodbye", "bye bye", "see you", "see you later", "bye for now", "take care, bye"),
    "yes": ("yep", "yeah", "that's a yes", "my answer is yes", "I say yes"),
    "no": ("nope", "nah", "that's a no", "my answer is no", "I say no"),
}
"""Words that stand for themselves, and others for them."""
SAME_GREETING = {
    "hello": "hi",
    "hey": "hi",
    "hi there": "hi",
    "hello there": "hi",
    "greetings": "hi",
    "morning": "good morning",
    "thank you": "thanks",
    "goodbye": "bye",
}
"""Where to look up a greeting that is not the first of its kind."""
VERBS = {
    "add": ("include",),
    "analyse": ("examine", "look closely at"),
    "analyze": ("examine", "look closely at"),
    "answer": ("reply to", "respond to"),
    "build": ("put together", "construct"),
    "calculate": ("work out", "compute"),
    "change": ("alter", "modify"),
    "check": ("verify", "have a look at"),
    "choose": ("pick", "select"),
    "clean": ("tidy",),
    "compute": ("calculate", "work out"),
    "convert": ("change",),
    "cool": ("cool down", "chill"),
    "correct": ("fix",),
    "count": ("tally",),
    "create": ("make", "set up"),
    "delete": ("remove", "get rid of"),
    "describe": ("give a description of", "outline"),
    "determine": ("find out", "establish"),
    "display": ("show",),
    "draft": ("write up", "write a first version of"),
    "explain": ("clarify", "give an explanation of"),
    "extract": ("pull out", "take out"),
    "fetch": ("get", "retrieve"),
    "find": ("look for", "locate"),
    "fix": ("repair",),
    "generate": ("produce", "create"),
    "get": ("fetch", "obtain"),
    "give": ("provide",),
    "heat": ("warm", "heat up", "warm up"),
    "identify": ("pick out", "pinpoint"),
    "improve": ("enhance",),
    "increase": ("raise",),
    "install": ("set up",),
    "list": ("give a list of",),
    "lower": ("reduce", "bring down"),
    "make": ("create", "produce"),
    "merge": ("combine", "join"),
    "open": ("open up",),
    "organise": ("arrange", "sort out"),
    "organize": ("arrange", "sort out"),
    "prepare": ("put together",),
    "print": ("print out",),
    "raise": ("increase",),
    "reduce": ("lower", "bring down"),
    "remove": ("delete", "take out"),
    "repair": ("fix", "mend"),
    "review": ("go over", "look over"),
    "rewrite": ("reword",),
    "save": ("store",),
    "search": ("look through",),
    "select": ("choose", "pick"),
    "send": ("send off",),
    "show": ("display", "let me see"),
    "solve": ("work out", "find a solution to"),
    "sort": ("put in order",),
    "start": ("begin",),
    "summarise": ("sum up", "give a summary of"),
    "summarize": ("sum up", "give a summary of"),
    "translate": ("render",),
    "validate": ("verify", "check"),
    "verify": ("check", "make sure of"),
    "warm": ("heat", "warm up", "heat up"),
    "write": ("compose",),
}
"""What an order may begin with, and what may be said for it."""
OTHER_VERBS = _set(
    "accept apply approve arrange ask assign attach be begin book bring buy call cancel categorise categorize "
    "classify click close collect combine come compare complete configure connect consider continue copy cut debug "
    "decide deploy design detect develop disable discuss do download draw edit email enable end enter estimate "
    "evaluate examine execute expand export file fill filter finish follow format forget go greet group guess hand "
    "handle help highlight hold ignore imagine implement import include inform insert inspect introduce invent "
    "invite join keep learn leave let load locate log look mail mark measure mention modify monitor move name note "
    "notify offer order outline paraphrase parse pay perform pick plan play post predict present produce propose "
    "provide publish pull purchase push put quote rank read recommend record redo refactor refund register remember "
    "remind rename repeat replace reply report request research reserve reset resolve respond restart restore "
    "retrieve return rotate run say scan schedule see sell separate serve set share shorten sign simplify skip "
    "speak specify split stop store submit subscribe suggest switch take talk teach tell test think transfer "
    "transform try turn type undo uninstall update upload use visit wait wake walk warn watch wrap zip"
)
"""Further words that an order may begin with."""
CONTRACTIONS = {
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "cannot": "can't",
    "can not": "can't",
    "could not": "couldn't",
    "would not": "wouldn't",
    "should not": "shouldn't",
    "will not": "won't",
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "have not": "haven't",
    "has not": "hasn't",
    "I am": "I'm",
    "I have been": "I've been",
    "I will": "I'll",
    "I would": "I'd",
    "it is": "it's",
    "that is": "that's",
    "what is": "what's",
    "where is": "where's",
    "who is": "who's",
    "there is": "there's",
    "you are": "you're",
    "we are": "we're",
    "they are": "they're",
    "let us": "let's",
}
"""Long forms and short ones."""
QUESTION_WORDS = _set(
    "what what's when when's where where's who who's whom whose which why how how's is isn't are aren't was wasn't "
    "were do does doesn't did didn't can can't could couldn't would wouldn't will won't should shouldn't may might "
    "must shall have has had am"
)
"""What a question begins with."""
COMMON = _set(
    "a about after again all also an and any are as at be because been before both but by could did does each every "
    "everything for from good had has have he hello her here hey hi his how i i'm if in into is it it's its just me "
    "more morning much my need new next no not now of on one or other our out over please should so some than thank "
    "thanks that that's the their them then there these they thing things this those to today tomorrow under up us "
    "very want was we were what when where which who why will with would yes yesterday you your"
)
"""Words that English text is full of."""
FOREIGN = _set(
    "aber auf auch aus bitte das dem den der des die ein eine einen er es für haben ich ihr im ist kann mit nicht "
    "oder sich sie sind und uns von wie wir zu zum zur au aux avec ce cette dans de du elle en est et il je la le "
    "les leur mais ne nous ou par pas pour que qui sa se ses sont sur tu un une vous con como del el ella ellos "
    "esta este los las mi muy por pero qué su sus una y ya che con della di gli il io lo ma mi nel non per più sono "
    "ti da do dos em eu isso meu na não nos o os para sem seu uma um você een het ik je met niet op te van voor "
    "zijn wat och att det en inte jag med på som är"
)
"""Words that text in other languages with the same letters is full of."""
DETERMINERS = _set("the a an my our your this that these those it me us them all every each some")
"""What stands before the object of an order."""
NO_ORDERS = _set(
    "i you we they he she it there here in on at by for from with to of and but or so if when while after before "
    "as not well now then also just only maybe perhaps because since all every each some any the a an my our your this"
)
"""What no order begins with."""
