"""Sentences made by templates: who "it" is, who got what, pairs and lists to copy, small stories."""

from __future__ import annotations

import random
from collections.abc import Callable

GIRLS = [
    "Anna",
    "Mary",
    "Lily",
    "Emma",
    "Sara",
    "Lucy",
    "Jane",
    "Alice",
    "Rosa",
    "Nora",
    "Kate",
    "Ella",
]
BOYS = [
    "Tom",
    "John",
    "Max",
    "Ben",
    "Sam",
    "Jack",
    "Paul",
    "Peter",
    "David",
    "Leo",
    "Henry",
    "Adam",
]
PRONOUN = dict.fromkeys(GIRLS, "she") | dict.fromkeys(BOYS, "he")
NAMES = list(PRONOUN)
OBJECT = {"he": "him", "she": "her"}
OWN = {"he": "his", "she": "her"}
ANIMALS = {  # what it does, where it lives
    "cat": ("purred/meowed/licked its paw", "house"),
    "dog": ("barked/growled/wagged its tail", "yard"),
    "bird": ("sang/flew away/built a nest", "tree"),
    "horse": ("neighed/galloped away/ate some hay", "stable"),
    "cow": ("mooed/gave milk/ate some grass", "field"),
    "duck": ("quacked/swam away/flew away", "pond"),
    "fish": ("swam away/jumped out of the water", "river"),
    "frog": ("jumped away/caught a fly", "pond"),
    "sheep": ("gave wool/ate some grass", "field"),
    "lion": ("roared/growled/shook its head", "cave"),
    "bear": ("growled/climbed a tree/ate some honey", "cave"),
    "mouse": ("ran into a hole/ate some cheese", "hole"),
    "rabbit": ("ran into a hole/ate a carrot/jumped away", "garden"),
    "hen": ("laid an egg/ate some corn", "yard"),
    "fox": ("ran away/ran into the forest", "forest"),
    "wolf": ("howled/growled/ran into the forest", "forest"),
    "monkey": ("climbed a tree/ate a banana", "tree"),
    "pig": ("rolled in the mud/ate an apple", "yard"),
    "goat": ("ate some grass/jumped over the wall", "field"),
    "elephant": ("drank some water/lifted a tree", "forest"),
}
PLURAL = {"mouse": "mice", "sheep": "sheep", "fish": "fish", "wolf": "wolves", "knife": "knives"}
LIVING = [
    "tired",
    "hungry",
    "sleepy",
    "scared",
    "happy",
    "sad",
    "angry",
    "thirsty",
    "sick",
    "lonely",
]
THINGS = {
    "mat": "soft warm clean flat",
    "chair": "soft comfortable wooden",
    "box": "empty open heavy",
    "bed": "soft warm comfortable",
    "table": "flat wooden clean",
    "rug": "soft warm clean",
    "sofa": "soft comfortable warm",
    "roof": "flat high dry",
    "wall": "high warm flat",
    "stone": "warm flat dry",
    "basket": "soft empty open",
    "bench": "wooden dry flat",
    "grass": "soft green warm",
    "bridge": "wooden high narrow",
    "road": "wide narrow busy",
}
BREAK = ["cup", "plate", "bottle", "egg", "window", "lamp", "toy", "pot", "glass", "vase"]
GIFTS = [
    "book",
    "ball",
    "cup",
    "letter",
    "flower",
    "hat",
    "coat",
    "key",
    "ring",
    "cake",
    "apple",
    "toy",
    "map",
    "pen",
    "box",
    "knife",
]
PLACES = [
    "park",
    "house",
    "school",
    "river",
    "garden",
    "market",
    "forest",
    "beach",
    "station",
    "church",
    "village",
    "town",
    "hill",
    "lake",
    "farm",
    "library",
]
PLAIN = [
    "big",
    "small",
    "old",
    "young",
    "little",
    "brown",
    "black",
    "white",
    "red",
    "good",
    "kind",
    "brave",
    "clever",
    "quiet",
    "lazy",
    "strange",
    "beautiful",
    "friendly",
    "enormous",
    "ugly",
]
OF_THINGS = [
    "big",
    "small",
    "old",
    "little",
    "new",
    "black",
    "white",
    "red",
    "good",
    "strange",
    "beautiful",
    "enormous",
    "ugly",
]
COLOURS = ["red", "blue", "green", "yellow", "black", "white", "brown", "grey", "orange"]
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin",
    "England": "London", "Russia": "Moscow", "Japan": "Tokyo", "China": "Beijing",
    "Greece": "Athens", "Egypt": "Cairo", "Austria": "Vienna", "Poland": "Warsaw",
    "Portugal": "Lisbon", "Ireland": "Dublin", "Norway": "Oslo", "Cuba": "Havana",
}  # fmt: skip
FACTS = (
    "The sky is blue.",
    "Snow is white and grass is green.",
    "Fish live in water and birds fly in the air.",
    "A week has seven days.",
    "A year has twelve months.",
    "The sun rises in the east and sets in the west.",
    "Water turns to ice in winter.",
    "Bees make honey.",
    "The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.",
    "The months are January, February, March, April, May, June, July, August, September, October, "
    "November and December.",
    "One, two, three, four, five, six, seven, eight, nine, ten.",
)
TIMES = [
    "Yesterday",
    "Last night",
    "In the morning",
    "One evening",
    "On Sunday",
    "In winter",
    "After the rain",
    "One day",
    "Long ago",
    "When the sun went down",
    "At noon",
    "Every day that summer",
    "Before dinner",
    "In the afternoon",
]
WORDS = sorted({*GIFTS, *PLACES, *PLAIN, *COLOURS, *ANIMALS, *THINGS, *LIVING})


def a(words: str) -> str:
    """`words` after the article that their sound wants."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def plural(noun: str) -> str:
    if noun in PLURAL:
        return PLURAL[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("x", "s", "sh", "ch")) else "s")


def upper(text: str) -> str:
    return text[0].upper() + text[1:]


class Draw:
    """Draws of one seeded generator, by what they are."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def one(self, of: str | list[str] | dict[str, str]) -> str:
        return self.rng.choice(of.split("/") if isinstance(of, str) else list(of))

    def some(self, of: list[str], count: int) -> list[str]:
        return self.rng.sample(of, count)

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def thing(self, noun: str, more: float = 0.35) -> str:
        """The noun with its article, at times an adjective and a place."""
        like = PLAIN if noun in ANIMALS else OF_THINGS
        out = f"{self.one(like)} {noun}" if self.maybe(more) else noun
        out = f"the {out}" if self.maybe(0.75) else a(out)
        if self.maybe(more / 2):
            out += f" {self.one('near/behind/from/in/by')} the {self.one(PLACES)}"
        return out

    def opened(self, text: str, share: float = 0.4) -> str:
        """The sentence, at times after a time or a speaker, so that its words move."""
        if not self.maybe(share):
            return upper(text)
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"{self.one(NAMES)} {self.one('said/thought/knew/told us/saw')} that {text}"
        if kind == 1:
            names = self.some(NAMES, 2)
            return f"{names[0]} and {names[1]} {self.one('knew/saw/remembered')} that {text}"
        return f"{self.one(list(TIMES))}{self.one([',', ''])} {text}"


def what_it_is(draw: Draw) -> str:
    """Because of "it": an animal and a thing, of which the last word tells one."""
    animal, thing = draw.one(list(ANIMALS)), draw.one(list(THINGS))
    living = draw.maybe(0.55)
    word = draw.one(LIVING) if living else draw.one(THINGS[thing].split())
    right = animal if living else thing
    first, second = draw.thing(animal), draw.thing(thing, 0.25)
    verb = draw.one(
        "sat on/lay on/slept on/stood on/jumped onto/rested on/looked at/waited near/stayed on"
    )
    link = draw.one(
        "because it was/because it was/because it was/because it looked/since it was/as it was very/because it was so/because it was too"
    )
    form = draw.rng.randrange(6)
    if form == 0:
        said = f"{first} did not {draw.one('leave/cross/climb/like/jump over')} {second} {link} {word}."
    elif form == 1:
        who = draw.one(NAMES)
        said = f"{who} saw that {first} {verb} {second} {link} {word}."
    elif form == 2:
        said = f"{second} was where {first} slept, {link} {word}."
    else:
        said = f"{first} {verb} {second} {link} {word}."
    said = draw.opened(said)
    if not draw.maybe(0.75):
        return said
    follow = draw.rng.randrange(5)
    if follow == 0:
        return f"{said} The {right} was {word}."
    if follow == 1:
        return f"{said} It was the {right} that was {word}."
    return f"{said} What was {word}? The {right}{draw.one(['.', f' was {word}.'])}"


def what_it_did(draw: Draw) -> str:
    """Of "it": an animal that does something then."""
    animal = draw.one(list(ANIMALS))
    does, home = ANIMALS[animal]
    where = draw.one(
        [f"in the {home}", f"near the {draw.one(PLACES)}", f"on the {draw.one(list(THINGS))}"]
    )
    was = draw.one("sat/lay/slept/stood/waited/was/lived/hid")
    link = draw.one(
        [
            ", and then it",
            "until it",
            ", and it",
            "before it",
            ", and after a while it",
            ". Then it",
            ". Soon it",
            ", but it",
            " when it",
        ]
    )
    said = draw.opened(
        f"{draw.thing(animal)} {was} {where}{link if link[0] in ',. ' else ' ' + link} {draw.one(does)}."
    )
    return said + (
        f" {draw.one(NAMES)} {draw.one('saw/heard/liked/watched')} the {animal}."
        if draw.maybe(0.3)
        else ""
    )


def what_broke(draw: Draw) -> str:
    """Of "it": what hits and what breaks."""
    broke, thing = draw.one(BREAK), draw.one("stone/hammer/ball/chair/branch/box")
    if draw.maybe(0.5):
        word, right = draw.one("weak/old/thin/fragile"), broke
    else:
        word, right = draw.one("strong/heavy/hard/big"), thing
    said = draw.opened(
        f"{draw.thing(thing, 0)} {draw.one('hit/fell on/struck/broke')} {draw.thing(broke, 0.2)} because it was {word}."
    )
    return f"{said} {draw.one([f'What was {word}? The {right}.', f'The {right} was {word}.'])}"


def who_got_it(draw: Draw) -> str:
    """Two names and a gift: the one who gets it is the other one."""
    giver, taker = draw.some(NAMES, 2)
    first, second = draw.some([giver, taker], 2)
    gift, place = draw.one(GIFTS), draw.one(PLACES)
    what = draw.one(
        [
            a(gift),
            f"the {gift}",
            a(f"{draw.one(OF_THINGS)} {gift}"),
            f"{OWN[PRONOUN[giver]]} {gift}",
        ]
    )
    gave = draw.one("gave/gave/handed/showed/brought/passed/sent/sold/threw")
    act = f"{giver} {gave} {what} to {taker}"
    met = draw.one([
        f"{first} and {second} {draw.one('went to/were at/came to/met at/walked to/sat in/played in')} the {place}",
        f"{first} met {second} at the {place}",
        f"{first} {draw.one('saw/visited/found/waited for')} {second} near the {place}",
        f"{first} came to the {place} with {second}",
        f"{first} had {draw.one('a lot of work/a good time/a long talk')} with {second}",
    ])  # fmt: skip
    form = draw.rng.randrange(8)
    if form <= 2:
        said = f"{draw.one('When/After/While/As')} {met}, {act}."
    elif form == 3:
        said = f"{upper(met)}. {draw.one(['', 'Then ', 'There ', 'At last '])}{act}."
    elif form == 4:
        said = f"{met}, and {act}."
    elif form == 5:
        said = f"{draw.opened(met, 0.5)}, and then {act}."
    else:
        said = draw.opened(f"{act}.", 0.3)
    ask = draw.rng.randrange(8)
    if ask == 0:
        said += f" Who got the {gift}? {taker}."
    elif ask == 1:
        said += f" Who had the {gift} before? {giver}."
    elif ask == 2:
        said += f" Now {taker} has the {gift}."
    elif ask == 3:
        said += f" {taker} {draw.one('thanked/smiled at/looked at')} {giver}."
    elif ask == 4:
        said += f" Then {taker} gave the {gift} back to {giver}."
    return said


def who_was_it(draw: Draw) -> str:
    """He or she, of two names."""
    girl, boy = draw.one(GIRLS), draw.one(BOYS)
    first, second = draw.some([girl, boy], 2)
    word = draw.one("hungry/tired/lost/late/ill/cold/happy/sad/angry/proud")
    right = draw.one([first, second])
    he = PRONOUN[right]
    act = draw.one("called/thanked/helped/met/saw/visited/waited for/asked")
    said = draw.opened(f"{first} {act} {second} because {he} was {word}.")
    return said + draw.one(
        [
            f" Who was {word}? {right}.",
            f" {right} was {word}.",
            f" It was {right} who was {word}.",
            "",
        ]
    )


def had(draw: Draw) -> str:
    """One name, a thing and a pronoun."""
    name, other = draw.some(NAMES, 2)
    he, gift = PRONOUN[name], draw.one(GIFTS)
    what = draw.one([a(gift), f"the {gift}", a(f"{draw.one(OF_THINGS)} {gift}")])
    said = draw.opened(
        f"{name} {draw.one('lost/found/wanted/bought/sold/broke')} {what}, {draw.one('and/so')} {he} was {draw.one('happy/sad/angry/tired/proud/poor')}.",
        0.3,
    )
    return f"{said} {draw.one([f'{other} asked {OBJECT[he]} why.', f'Then {he} went home.', f'{other} helped {OBJECT[he]}.', f'{upper(he)} showed {other} the {gift}.'])}"


def many(draw: Draw) -> str:
    """One or several: the verb agrees with what is not beside it."""
    animal, place, thing = draw.one(list(ANIMALS)), draw.one(PLACES), draw.one(list(THINGS))
    where = draw.one(
        [
            f"near the {place}",
            f"near the {plural(place)}",
            f"in the {place}",
            f"that {draw.one(NAMES)} saw",
        ]
    )
    if draw.maybe(0.5):
        said = f"the {plural(animal)} {where} {draw.one('are/were')} {draw.one(LIVING)}. They {draw.one('like/see/want')} the {thing}."
    else:
        said = f"the {animal} {where} {draw.one('is/was')} {draw.one(LIVING)}. It {draw.one('likes/sees/wants')} the {thing}."
    return draw.opened(said, 0.2)


def colours(draw: Draw) -> str:
    """Which thing has which colour: what was said first is asked at the end."""
    count = draw.rng.randint(2, 5)
    things, seen = draw.some(GIFTS, count), [draw.one(COLOURS) for _ in range(count)]
    n = draw.rng.randrange(count)
    name = draw.one(NAMES)
    form = draw.rng.randrange(3)
    if form == 0:
        said = " ".join(f"The {x} is {y}." for x, y in zip(things, seen, strict=True))
    elif form == 1:
        said = (
            f"{name} has "
            + " and ".join(a(f"{y} {x}") for x, y in zip(things, seen, strict=True))
            + "."
        )
    else:
        said = " ".join(
            f"{name} {draw.one('bought/saw/found')} {a(f'{y} {x}')}."
            for x, y in zip(things, seen, strict=True)
        )
    return f"{said} {draw.one(['So the', 'The', 'What colour is the'])} {things[n]}" + (
        f" is {seen[n]}." if said[-1] != "?" else ""
    )


def places(draw: Draw) -> str:
    """Where things and people are, and then the question."""
    count = draw.rng.randint(2, 4)
    who, where = draw.some(NAMES, count), draw.some(PLACES, count)
    n = draw.rng.randrange(count)
    if draw.maybe(0.5):
        said = " ".join(
            f"{x} {draw.one('is in/went to')} the {y}." for x, y in zip(who, where, strict=True)
        )
        return f"{said} Where is {who[n]}? In the {where[n]}."
    gifts = draw.some(GIFTS, count)
    said = " ".join(
        f"{x} {draw.one('has/took/likes')} the {y}." for x, y in zip(who, gifts, strict=True)
    )
    return f"{said} Who {draw.one('has/took/likes')} the {gifts[n]}? {who[n]}."


def talk(draw: Draw) -> str:
    first, second = draw.some(NAMES, 2)
    animal, gift = draw.one(list(ANIMALS)), draw.one(GIFTS)
    said = draw.one(
        [
            "Come here",
            "Where are you",
            f"Look at the {animal}",
            f"I am {draw.one(LIVING)}",
            f"Give me the {gift}",
            f"Where is the {gift}",
            f"Have you seen my {animal}",
        ]
    )
    end = "?" if said.startswith(("Where", "Have")) else draw.one(",/!")
    return f'"{said}{end}" {draw.one("said/asked/called") if end != "?" else "asked"} {first}. "{draw.one("Yes/No/I will/Not now/It is here")}," {draw.one("said/answered")} {second}. {draw.one([f"{first} was {draw.one(LIVING)}.", ""])}'.strip()


def chase(draw: Draw) -> str:
    first, second = draw.some(list(ANIMALS), 2)
    return draw.opened(
        f"the {first} {draw.one('chased/saw/followed/feared/heard')} the {second}. The {second} {draw.one('ran from/hid from/looked at')} the {first}.",
        0.3,
    )


def again(draw: Draw) -> str:
    """A list of words, said again."""
    words = draw.some(WORDS, draw.rng.randint(3, 9))
    return f"{draw.one([', ', ' ', ', '])}".join(words * draw.rng.randint(2, 4)) + "."


def known(draw: Draw) -> str:
    if draw.maybe(0.5):
        return draw.one(list(FACTS))
    land = draw.one(list(CAPITALS))
    return draw.one(
        [
            f"{CAPITALS[land]} is the capital of {land}.",
            f"The capital of {land} is {CAPITALS[land]}.",
            f"{draw.one(NAMES)} went to {CAPITALS[land]}, the capital of {land}.",
        ]
    )


def story(draw: Draw) -> str:
    """Some sentences about one who has a name and an animal."""
    animal, thing = draw.one(list(ANIMALS)), draw.one(list(THINGS))
    name, friend = draw.some(NAMES, 2)
    he = PRONOUN[name]
    him, his, she = OBJECT[he], OWN[he], he == "she"
    here, there = draw.some(PLACES, 2)
    gift, colour = draw.one(GIFTS), draw.one(COLOURS)
    who = draw.one(
        [
            f"{draw.one(PLAIN)} {'girl' if she else 'boy'}",
            f"{draw.one(PLAIN)} {'woman' if she else 'man'}",
            f"{draw.one(PLAIN)} {draw.one(list(ANIMALS))}",
            "queen" if she else "king",
            "teacher",
            "farmer",
        ]
    )
    opening = draw.one(
        "Once upon a time there was/Long ago there lived/There was once/In a small town there lived"
    )
    said = [f"{opening} {a(who)} {draw.one('named/called')} {name}."]
    middle = [
        f"{name} lived in {a(draw.one('small/big/old/white/ugly'))} house near the {here}.",
        f"Every {draw.one('day/morning/evening/summer')} {name} went to the {there} with {his} {animal}.",
        f"One day {name} {draw.one('found/saw/lost')} {a(f'{colour} {gift}')} at the {there}.",
        draw.one([f'"Whose {gift} is this?" asked {name}.', f"{name} was very happy because {he} liked the {gift}.", f"{upper(he)} picked up the {gift} and took it home.", f'"I do not want it," said {friend}.']),
        draw.one([f"The {animal} looked at the {gift}, and then it {draw.one(ANIMALS[animal][0])}.", f"The {animal} was hungry, so {name} gave it some bread.", f"The {animal} ran to the {here}, and {name} ran after it.", f"The {animal} slept on the {thing} because it was {draw.one(THINGS[thing].split())}."]),
        draw.one([f"Then {name} put the {gift} {draw.one('in/under/behind')} the {thing}.", f"{friend} came and asked {him} for the {colour} {gift}.", f"{name} gave the {gift} to {friend}, and {friend} thanked {him}.", f"{name} told {friend} about the {animal}."]),
        draw.one([f"It rained all {draw.one('day/night/week')}, and nobody came to the {here}.", f"{friend} and {name} sat near the {thing} and talked.", f"They looked for the {gift} at the {there}, but it was not there."]),
    ]  # fmt: skip
    keep = sorted(draw.rng.sample(range(len(middle)), draw.rng.randint(3, len(middle))))
    said += [middle[n] for n in keep]
    said.append(
        draw.one(
            [
                f"{upper(he)} was tired, and {he} went to sleep.",
                f"After that {name} and the {animal} were good friends.",
                f"And {name} lived happily near the {here}.",
                f"Then {name} went home with {friend}.",
                f"Nobody saw the {gift} again.",
            ]
        )
    )
    return " ".join(said)


KINDS: dict[Callable[[Draw], str], int] = {
    what_it_is: 17,
    what_it_did: 10,
    what_broke: 4,
    who_got_it: 20,
    who_was_it: 7,
    had: 5,
    many: 5,
    colours: 6,
    places: 5,
    talk: 4,
    chase: 4,
    again: 4,
    known: 1,
    story: 8,
}
"""How often each kind comes."""


def documents(seed: int = 11, count: int = 12_000, size: int = 8) -> list[str]:
    """`count` documents of `size` lines, each line of one kind."""
    draw = Draw(seed)
    kinds, often = list(KINDS), list(KINDS.values())
    return [
        "\n".join(kind(draw) for kind in draw.rng.choices(kinds, often, k=size))
        for _ in range(count)
    ]


if __name__ == "__main__":
    print("\n\n".join(documents(count=8)))
