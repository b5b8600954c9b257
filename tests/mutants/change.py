"""Changes of functions, and the lists of them that `run` and `../models/run` read.

    mutant NAME in FUNCTION: the fault
    CHANGE, one or several
    +TEXT of a change that ends with a colon, in any number of lines
    and in FUNCTION
    CHANGE, one or several: a fault that two checks prevent, in functions of two files

FUNCTION is the end of a function's path in the framework: `ApplyQueue::push`, or with modules and
crate where another function has that name, too. So a mutant stays when a file moves. CHANGEs are

    without NODE                 takes a statement or an arm out
    NODE before NODE             moves a statement
    after NODE: TEXT             puts text behind a statement
    PLACE becomes: TEXT          replaces
    only PART of NODE            replaces the node by the part
    NEW for OLD [COUNT]          replaces a token of the body

and NODEs, with the PARTs of each, are

    if, for, let, assignment, arm, statement
    call of NAME                 by the last name of the callee: `call of lock` for `self.state.lock()`
    OPERATOR                     a binary operator: `||`
    body                         all of the function

    condition, then, else of if; pattern, value of let; value of assignment; pattern, body of arm
    receiver, arguments, argument 1, argument 2 ... of call; left, right of OPERATOR

each with a COUNT behind it. A PLACE is a NODE or `PART of NODE`.

COUNT is `2 of 3`: the second of the function's three nodes of that kind, in the order of the source and
also in blocks and closures; a node without a count is the only node. `statement` counts those of the
outermost block, and `assignment` also `|=`. So a renamed variable changes no name of a node, and one
more `if` is an error of `--check` and no other mutant. In a TEXT `$(PLACE)` stands for the source of
that place. Other names in a TEXT are those of the source: a change that renames them breaks the mutant,
and `--check` says so.
"""

import collections
import os
import re
import sys

from source import ASSIGNMENTS, BINARY, KEYWORDS, NotFound, Crates, Source, Span, one_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
Mutant = collections.namedtuple("Mutant", "name parts")
Part = collections.namedtuple("Part", "function changes")

OPERATORS = {operator for row in BINARY for operator in row}
COUNT = r"(?: (?P<number>\d+) of (?P<total>\d+))?"
NODE = re.compile(r"(?P<kind>if|for|let|assignment|arm|statement|body|call of (?P<name>\w+)|"
                  r"(?P<operator>[-+*/%^&|<>=!]+))" + COUNT)
PART = re.compile(r"(?P<part>condition|then|else|pattern|value|body|receiver|arguments|argument \d+|"
                  r"left|right) of (?P<node>.+)")


def parse(path):
    """The mutants of a list; the changes of a part are pairs of the change and the lines of the text."""
    mutants, lines = [], None  # Lines of the text that `+` continues.
    with open(path, encoding="utf-8") as file:
        numbered = list(enumerate(file.read().splitlines(), 1))
    for number, line in numbered:
        if not line.strip() or line.startswith("#"):
            continue
        begin = re.fullmatch(r"mutant (\w+) in (\w+(?:::\w+)*): .+", line)
        more = re.fullmatch(r"and in (\w+(?:::\w+)*)", line)
        if begin:
            mutants.append(Mutant(begin[1], [Part(begin[2], [])]))
            lines = None
        elif mutants and more:
            mutants[-1].parts.append(Part(more[1], []))
            lines = None
        elif line.startswith("+") and lines is not None:
            lines.append(line[1:])
        elif mutants and not line.startswith("+"):
            # The first colon: a text may have others.
            change, text = re.fullmatch(r"(.*?)(?:: ?(.*))?", line).groups()
            lines = None if text is None else [text] if text else []
            mutants[-1].parts[-1].changes.append((change, lines))
        else:
            raise NotFound(f"{os.path.basename(path)}, line {number}: {line!r}")
    for name, times in collections.Counter(mutant.name for mutant in mutants).items():
        if times > 1:
            raise NotFound(f"{os.path.basename(path)}: {times} mutants have the name {name}")
    return mutants


class Place:
    """A node, and the parts by name."""

    def __init__(self, function, text):
        self.text, self.parts, self.source = text, {}, function.source
        nodes, source = function.nodes, function.source
        match = NODE.fullmatch(text)
        if not match:
            raise NotFound(f"{text!r} names no node")
        kind, number, total = match["kind"], int(match["number"] or 1), int(match["total"] or 1)
        if match["operator"]:
            if kind not in OPERATORS:
                raise NotFound(f"{kind} is no binary operator")
            self.span, at = one_of(nodes.operators(kind), number, total, kind)
            self.parts = {"left": Span(self.span.start, at), "right": Span(at + 1, self.span.end)}
        elif match["name"]:
            self.span, name, paren = one_of(nodes.calls(match["name"]), number, total, kind)
            self.parts["arguments"] = Span(paren + 1, self.span.end - 1)
            if self.span.start < name:
                self.parts["receiver"] = Span(self.span.start, name - 1)
            for index, argument in enumerate(self.split(self.parts["arguments"]), 1):
                self.parts[f"argument {index}"] = argument
        elif kind == "if":
            self.span, condition, then, other = one_of(nodes.ifs, number, total, kind)
            self.parts = {"condition": condition, "then": then, "else": other}
        elif kind == "arm":
            self.span, pattern, body = one_of(nodes.arms, number, total, kind)
            self.parts = {"pattern": pattern, "body": body}
        elif kind == "body":
            self.span = function.body
        else:
            found = {"for": nodes.fors, "let": nodes.lets, "assignment": nodes.assignments,
                     "statement": nodes.top}
            self.span = one_of(found[kind], number, total, kind)
            if kind in ("let", "assignment"):
                sign = source.find(*self.span, *ASSIGNMENTS)
                self.parts["value"] = Span(sign + 1, self.span.end - 1)
                self.parts["pattern"] = Span(self.span.start + (kind == "let"), sign)

    def split(self, span):
        """The arguments in a pair of parentheses."""
        index = span.start
        while index < span.end:
            end = self.source.find(index, span.end, ",")
            yield Span(index, end)
            index = end + 1

    def part(self, name):
        found = self.parts.get(name)
        if found is None:
            raise NotFound(f"{self.text}: there is no {name} of it")
        return found

    def statement(self, nodes):
        """The node as a statement or an arm."""
        spans = [*nodes.statements, *(arm[0] for arm in nodes.arms)]
        for span in spans:
            end = span.end - (self.source.at(span.end - 1) in (";", ","))
            if span.start == self.span.start and self.span.end in (span.end, end):
                return span
        raise NotFound(f"{self.text}: it is no statement")


def place(function, text):
    """The span of a node or of a part of it."""
    part = PART.fullmatch(text)
    return Place(function, part["node"]).part(part["part"]) if part else Place(function, text).span


def filled(function, text):
    """A text, with the source in the places of `$(...)`."""
    def part(match):
        return function.source.slice(place(function, match[1]))

    return re.sub(r"\$\(([^()$]+)\)", part, text)


def inside(block, source):
    """The text of a block without braces, if the text is a block."""
    if source.at(block.start) == "{" and source.partner[block.start] == block.end - 1:
        block = Span(block.start + 1, block.end - 1)
    return source.slice(block)


def edits(function, change, text):
    """A change as replacements of text: begin, end, new text."""
    nodes, source = function.nodes, function.source

    def replaced(span, new):
        if span.start >= span.end:
            raise NotFound(f"{change!r} replaces nothing")
        return source.tokens[span.start].start, source.tokens[span.end - 1].end, new

    def statement(name):
        return Place(function, name).statement(nodes)

    if (text is not None) != (change.startswith("after ") or change.endswith(" becomes")):
        raise NotFound(f"{change!r} needs " + ("a text" if text is None else "no text"))
    text = filled(function, "\n".join(text or []))
    if change.startswith("without "):
        return [replaced(statement(change[len("without "):]), "")]
    if change.startswith("after "):
        _, end, _ = replaced(statement(change[len("after "):]), "")
        return [(end, end, "\n" + text)]
    if change.endswith(" becomes"):
        return [replaced(place(function, change[:-len(" becomes")]), text)]
    if change.startswith("only "):
        part = PART.fullmatch(change[len("only "):])
        if not part:
            raise NotFound(f"{change!r} names no part")
        node = Place(function, part["node"])
        return [replaced(node.span, inside(node.part(part["part"]), source))]
    if " before " in change:
        moved, there = map(statement, change.split(" before "))
        begin, _, _ = replaced(there, "")
        return [(begin, begin, source.slice(moved) + "\n"), replaced(moved, "")]
    swap = re.fullmatch(r"(?P<new>\S+) for (?P<old>\S+)" + COUNT, change)
    if swap:
        found = nodes.words(swap["old"])
        word = one_of(found, int(swap["number"] or 1), int(swap["total"] or 1), swap["old"])
        return [replaced(word, swap["new"])]
    raise NotFound(f"{change!r} is no change")


def mutate(crates, mutant):
    """The functions that a mutant changes, each with the text of its file afterwards."""
    changed = [mutated(crates, part) for part in mutant.parts]
    if len({function.file for function, _ in changed}) < len(changed):
        raise NotFound("two of its functions are in one file")
    return changed


def mutated(crates, part):
    """The function that a part of a mutant changes, and the text of the file afterwards."""
    function = crates.function(part.function)
    if not part.changes:
        raise NotFound("it changes nothing")
    found = [edit for change, new in part.changes for edit in edits(function, change, new)]
    # From the end on, so that earlier offsets stay. Of several texts for a place the last goes
    # in first, so that they stand in the order of the list.
    order = sorted(range(len(found)), key=lambda at: (*found[at][:2], at), reverse=True)
    text = function.source.text
    for start, end, new in (found[at] for at in order):
        text = text[:start] + new + text[end:]
    if text == function.source.text:
        raise NotFound("it changes nothing")
    return function, text


def unknown_names(crates, function, text):
    """The names in the text of a change that the source does not have."""
    added = Source(re.sub(r"\$\([^()$]+\)", " ", text))
    own = {added.at(at) for at in range(len(added.tokens))
           if added.at(at - 1) in ("let", "mut") or added.at(at + 1) == "=>"}
    here = {function.source.at(at) for at in range(function.begin, function.body.end)}
    for at, token in enumerate(added.tokens):
        if not re.fullmatch(r"[^\W\d]\w*", token.text) or token.text in KEYWORDS | own | here:
            continue
        before, behind = added.at(at - 1), added.at(at + 1)
        is_variable = token.text.islower() and before not in (".", "::") and behind not in ("(", "::", "!")
        # Methods and parts of paths may come from anywhere; a field or a type that the function can use
        # may be new there, but stands elsewhere in the file.
        is_foreign = before == "::" or token.text.islower() and behind in ("(", "::", "!")
        if is_variable or token.text not in (crates.words() if is_foreign else crates.words(function.file)):
            yield token.text


def check(crates, path):
    """The mutants of a list that do not fit the source, each with the reason."""
    found = []
    try:
        mutants = parse(path)
    except NotFound as fault:
        return [str(fault)]
    for mutant in mutants:
        try:
            for part, (function, _) in zip(mutant.parts, mutate(crates, mutant)):
                names = [name for change, new in part.changes if new
                         for name in unknown_names(crates, function, "\n".join(new))]
                if not names:
                    continue
                names = ", ".join(names)
                raise NotFound(f"its text has names that {function} does not know: {names}")
        except NotFound as fault:
            found.append(f"{os.path.basename(path)}: {mutant.name}: {fault}")
    return found


def write(crates, path, name, folder):
    """Writes the files that a mutant changes below `folder`; returns each path with the text before."""
    mutant = next((mutant for mutant in parse(path) if mutant.name == name), None)
    if mutant is None:
        raise NotFound(f"{os.path.basename(path)} has no mutant {name}")
    try:
        changed = mutate(crates, mutant)
    except NotFound as fault:
        raise NotFound(f"{name}: {fault}") from fault
    before = []
    for function, text in changed:
        target = os.path.join(folder, function.file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        before.append((target, function.source.text))
    return before


def main(words):
    """`--check LIST ...` prints the mutants that do not fit; `LIST NAME FOLDER` writes a mutant."""
    crates = Crates(ROOT)
    try:
        if words[:1] == ["--check"]:
            sys.exit("\n".join(fault for path in words[1:] for fault in check(crates, path)) or 0)
        write(crates, *words)
    except NotFound as fault:
        sys.exit(str(fault))


if __name__ == "__main__":
    main(sys.argv[1:])
