"""The parts of Rust source that a mutant may name: functions by their path, and the nodes of each.

A node is named by kind and number in the function, so renamed variables and moved files leave
the name unchanged. Only as much of the grammar is read as the framework's functions use: no macro with
braces as a statement, and no function that a macro defines.
"""

import collections
import functools
import glob
import os
import re

Token = collections.namedtuple("Token", "text start end")
Span = collections.namedtuple("Span", "start end")  # Indexes of tokens; `end` is not part of the range.

TOKENS = re.compile(r"""
    (?P<skipped> \s+ | //[^\n]* | /\*.*?\*/ )
  | [bc]?r(?P<hashes>\#*)".*?"(?P=hashes) | [bc]?"(?:\\.|[^"\\])*"
  | b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'])'
  | '\w+ | r\#\w+
  | \d\w*(?:\.\d\w*)? | \w+
  | <<= | >>= | \.\.= | \.\.\. | :: | -> | => | == | != | <= | >= | && | \|\| | [-+*/%^&|]=
  | << | \.\.
  | .
""", re.X | re.S)
OPENERS, CLOSERS = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
ITEMS = {"fn", "use", "const", "static", "struct", "enum", "impl", "trait", "mod", "type"}
BLOCKS = {"if", "match", "for", "while", "loop", "unsafe"}
KEYWORDS = ITEMS | BLOCKS | {
    "as", "async", "await", "break", "continue", "crate", "dyn", "else", "false", "in", "let",
    "move", "mut", "pub", "ref", "return", "self", "Self", "super", "true", "where"}
# Binary operators by precedence, the weakest first.
BINARY = (("||",), ("&&",), ("==", "!=", "<", ">", "<=", ">="), ("|",), ("^",), ("&",), ("<<",),
          ("+", "-"), ("*", "/", "%"))
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<<=", ">>="}


class NotFound(Exception):
    """A name that stands for nothing in the source, or for several things."""


class Source:
    """The tokens of a text, with the partner of each bracket."""

    def __init__(self, text):
        self.text = text
        found = [match for match in TOKENS.finditer(text) if not match["skipped"]]
        self.tokens = [Token(match[0], match.start(), match.end()) for match in found]
        self.partner, opened = {}, []
        for at, token in enumerate(self.tokens):
            if token.text in OPENERS:
                opened.append(at)
            elif token.text in CLOSERS:
                self.partner[at] = opened.pop()
                self.partner[self.partner[at]] = at

    def at(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def slice(self, span):
        if span.start >= span.end:
            return ""
        return self.text[self.tokens[span.start].start:self.tokens[span.end - 1].end]

    def after(self, index):
        """The token behind a token, or behind the group that the token opens."""
        return self.partner[index] + 1 if self.at(index) in OPENERS else index + 1

    def after_generics(self, index):
        """The token behind `<...>`."""
        depth = 0
        while index < len(self.tokens):
            depth += {"<": 1, "<<": 2, ">": -1}.get(self.at(index), 0)
            index = self.after(index)
            if depth == 0:
                return index
        raise NotFound("there are generics without an end")

    def find(self, index, end, *texts):
        """The first of these tokens outside of groups; `end` if there is none."""
        while index < end and self.at(index) not in texts:
            index = self.after(index)
        return min(index, end)


class Function:
    """A function: the path from the crate on, the first token, and the body without the braces."""

    def __init__(self, path, file, source, begin, body):
        self.path, self.file, self.source, self.begin, self.body = path, file, source, begin, body

    def __str__(self):
        return "::".join(self.path)

    @functools.cached_property
    def nodes(self):
        return Nodes(self.source, self.body)


def functions_of(source, scope, file):
    """The functions of a file that are not for tests; `scope` is the path of the module."""
    found = []

    def self_type(index, end):
        """The last name of the type of an `impl`, whose `for` may stand before that name."""
        index = source.after_generics(index) if source.at(index) == "<" else index
        depth, last = 0, ""
        while index < end and source.at(index) != "where":
            text = source.at(index)
            if text == "for" and depth == 0 and source.at(index + 1) != "<":
                last = ""
            elif depth == 0 and re.match(r"[^\W\d]", text) and text not in ("dyn", "mut"):
                last = text
            depth += {"<": 1, "<<": 2, ">": -1}.get(text, 0)
            index = source.after(index)
        return last

    def items(index, end, scope):
        is_test = False
        while index < end:
            text = source.at(index)
            if text == "#":
                bracket = index + 1 + (source.at(index + 1) == "!")
                attribute = re.sub(r"\s", "", source.slice(Span(bracket, source.after(bracket))))
                is_test = is_test or bool(re.search(r"^\[test\]|(cfg|all)\(test", attribute))
                index = source.after(bracket)
                continue
            if text in ("mod", "trait", "impl", "fn"):
                block = source.find(index + 1, end, "{", ";")
                name = self_type(index + 1, block) if text == "impl" else source.at(index + 1)
                if source.at(block) == "{" and not is_test:
                    inner = Span(block + 1, source.partner[block])
                    if text == "fn":
                        found.append(Function((*scope, name), file, source, index, inner))
                    else:
                        items(*inner, (*scope, name))
                index, is_test = source.after(block), False
                continue
            if text in (";", "{", "struct", "enum", "use", "static", "type", "macro_rules"):
                stop = index if text in (";", "{") else source.find(index + 1, end, "{", ";")
                index, is_test = source.after(stop), False
                continue
            index = source.after(index)

    items(0, len(source.tokens), tuple(scope))
    return found


class Nodes:
    """The nodes of a function's body by kind, each kind in the order of the source."""

    def __init__(self, source, body):
        self.source, self.body = source, body
        self.lets, self.assignments, self.statements = [], [], []
        self.ifs, self.fors, self.arms = [], [], []
        self.top = self.block(*body)

    # Contents of a block.

    def block(self, index, end):
        """The statements of a block."""
        source, found = self.source, []
        while index < end:
            while source.at(index) == "#":
                index = source.after(index + 1)
            if source.at(index) == ";":
                index += 1
                continue
            start, text = index, source.at(index)
            slot = len(self.statements)
            self.statements.append(None)
            let = len(self.lets)
            if text == "let":
                self.lets.append(None)
            if text in ITEMS and not (text == "const" and source.at(index + 1) == "{"):
                stop = source.find(index, end, "{", ";")
                index = source.after(stop)
            else:
                index = self.statement(index, end)
            span = Span(start, index)
            self.statements[slot] = span
            found.append(span)
            if text == "let":
                self.lets[let] = span
            elif text not in BLOCKS and text not in ITEMS:
                if any(source.at(at) in ASSIGNMENTS for at in self.outside(*span)):
                    self.assignments.append(span)
        return found

    def outside(self, index, end):
        """The tokens outside of groups."""
        while index < end:
            yield index
            index = self.source.after(index)

    def statement(self, index, end):
        """Reads a statement, and returns the next token."""
        source = self.source
        if source.at(index).startswith("'"):
            index += 2  # A label with the colon.
        if source.at(index) in BLOCKS or source.at(index) == "{":
            index = self.construct(index, end)
            if source.at(index) not in (".", "?"):
                return index + (index < end and source.at(index) == ";")
        stop = source.find(index, end, ";")
        self.expression(index, stop)
        return min(stop + 1, end)

    def construct(self, index, end):
        """Reads an expression that begins with a keyword or a block; returns the next token."""
        source, start, text = self.source, index, self.source.at(index)
        if text == "if":
            slot = len(self.ifs)
            self.ifs.append(None)
            brace = self.condition(index + 1, end)
            after = source.after(brace)
            self.block(brace + 1, after - 1)
            condition, then, other = Span(start + 1, brace), Span(brace, after), None
            if source.at(after) == "else":
                begin = after + 1
                after = self.construct(begin, end)
                other = Span(begin, after)
            self.ifs[slot] = (Span(start, after), condition, then, other)
            return after
        if text == "match":
            brace = source.find(index + 1, end, "{")
            self.expression(index + 1, brace)
            self.match_arms(brace + 1, source.partner[brace])
            return source.after(brace)
        if text == "for":
            within = source.find(index + 1, end, "in")
            brace = source.find(within, end, "{")
            self.fors.append(Span(start, source.after(brace)))
            self.expression(within + 1, brace)
        elif text == "while":
            brace = self.condition(index + 1, end)
        else:
            brace = source.find(index, end, "{")
        self.block(brace + 1, source.partner[brace])
        return source.after(brace)

    def condition(self, index, end):
        """Reads a condition, and returns the brace behind the condition."""
        source = self.source
        while source.at(index) != "{":
            if index >= end:
                raise NotFound("there is a condition without a block")
            if source.at(index) == "let":
                # A pattern may have braces, too.
                index = source.find(index, end, "=") + 1
                continue
            after = source.after(index)
            if after > index + 1:
                self.expression(index + 1, after - 1)
            index = after
        return index

    def match_arms(self, index, end):
        source = self.source
        while index < end:
            while source.at(index) == "#":
                index = source.after(index + 1)
            start, arrow = index, source.find(index, end, "=>")
            slot = len(self.arms)
            self.arms.append(None)
            guard = source.find(index, arrow, "if")
            self.expression(min(guard + 1, arrow), arrow)
            stop = arrow + 1
            if source.at(stop) == "{" and source.at(source.after(stop)) not in (".", "?"):
                stop = source.after(stop)
            else:
                while stop < end and source.at(stop) != ",":
                    is_turbofish = source.at(stop) == "::" and source.at(stop + 1) == "<"
                    stop = source.after_generics(stop + 1) if is_turbofish else source.after(stop)
            self.expression(arrow + 1, stop)
            after = stop + (source.at(stop) == ",")
            self.arms[slot] = (Span(start, after), Span(start, guard), Span(arrow + 1, stop))
            index = after

    def expression(self, index, end):
        """Reads the blocks, conditions and matches inside of an expression."""
        source = self.source
        while index < end:
            text, before = source.at(index), source.at(index - 1)
            # Lifetimes, and the guard in a `matches!`, which has no block.
            is_other = text == "for" and source.at(index + 1) == "<" or text == "if" and (
                source.find(index, end, "{") == end)
            if text in BLOCKS and not is_other:
                index = self.construct(index, end)
            elif text == "{":
                # Behind a name the brace begins the literal of a struct.
                is_literal = re.match(r"\w", before) and before not in KEYWORDS - {"Self"}
                read = self.expression if is_literal else self.block
                read(index + 1, source.partner[index])
                index = source.after(index)
            elif text in OPENERS:
                self.expression(index + 1, source.partner[index])
                index = source.after(index)
            else:
                index += 1

    # Nodes by their names.

    def calls(self, name):
        """Calls by the last part of their callee's path: spans, and the names' indexes."""
        source, found = self.source, []
        for index in range(*self.body):
            if source.at(index) != name or source.at(index - 1) == "fn":
                continue
            paren = index + 1
            if source.at(paren) == "::" and source.at(paren + 1) == "<":
                paren = source.after_generics(paren + 1)
            if source.at(paren) == "(":
                found.append((Span(self.chain(index), source.after(paren)), index, paren))
        return found

    def chain(self, index):
        """The begin of the chain of calls, fields and path segments that a name ends."""
        source = self.source
        while source.at(index - 1) in (".", "::"):
            index -= 2
            while not re.match(r"[\w\"]", source.at(index)):
                if source.at(index) in CLOSERS:
                    index = source.partner[index]
                    before = source.at(index - 1)
                    is_called = re.match(r"[\w?!)\]]", before) and before not in KEYWORDS
                    if not is_called:
                        return index  # An expression in parentheses.
                elif source.at(index) not in ("?", "!"):
                    raise NotFound(f"a chain with {source.at(index)} in it is not read")
                index -= 1
        return index

    def operators(self, operator):
        """Binary operators: spans of the operation, and the operators' indexes."""
        source, found = self.source, []
        rank = next(rank for rank, row in enumerate(BINARY) if operator in row)
        weaker = {text for row in BINARY[:rank] for text in row} | ASSIGNMENTS | {
            ",", ";", "=>", "(", "[", "{", "return", "if", "match", "while", "let", "in", "..",
            "..="}
        begins, index = {span.start for span in self.statements}, self.body.start
        while index < self.body.end:
            before = source.at(index - 1)
            is_operand = re.match(r"[\w\"'?)\]}]", before) and before not in (
                KEYWORDS - {"self", "Self", "true", "false", "await"})
            if source.at(index) == "|" and not is_operand:
                index = source.find(index + 1, self.body.end, "|")  # The parameters of a closure.
            elif source.at(index) == operator and is_operand:
                start, end = index, index + 1
                while start not in begins and source.at(start - 1) not in weaker:
                    start = source.partner.get(start - 1, start - 1)
                stops = weaker | CLOSERS | set(BINARY[rank])
                while end < self.body.end and source.at(end) not in stops - {"(", "["}:
                    end = source.after(end)
                found.append((Span(start, end), index))
            index += 1
        return found

    def words(self, text):
        """Tokens with a text."""
        return [Span(at, at + 1) for at in range(*self.body) if self.source.at(at) == text]


def one_of(found, number, total, name):
    """The node with a number; the number of such nodes must be the known number."""
    if len(found) != total:
        count = len(found) or "no"
        raise NotFound(f"{name}: the function has {count} of these, and not {total}")
    if not 1 <= number <= total:
        raise NotFound(f"{name}: {number} is no number from 1 to {total}")
    return found[number - 1]


class Crates:
    """The sources of the framework's crates: `root` is the folder of the workspace."""

    def __init__(self, root):
        self.root, self.files, self.parsed = root, {}, {}
        libs = os.path.join(root, "framework", "**", "src", "lib.rs")
        for lib in sorted(glob.glob(libs, recursive=True)):
            folder = os.path.dirname(lib)
            manifest = os.path.join(os.path.dirname(folder), "Cargo.toml")
            with open(manifest, encoding="utf-8") as manifest:
                crate = re.search(r'^name = "(.*)"', manifest.read(), re.M)[1].replace("-", "_")
            self.module(lib, folder, (crate,))

    def module(self, file, folder, scope):
        """Notes a file and the file's modules that are not for tests; `folder` has the modules' files."""
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        self.files[os.path.relpath(file, self.root)] = (scope, text)
        for line in re.finditer(r"^((?:#\[.*\]\s+)*)(?:pub(?:\(.*\))? )?mod (\w+);", text, re.M):
            if re.search(r"(cfg|all)\(test", line[1]):
                continue
            for path in (f"{line[2]}.rs", f"{line[2]}/mod.rs"):
                path = os.path.join(folder, path)
                if os.path.isfile(path):
                    self.module(path, os.path.join(folder, line[2]), (*scope, line[2]))

    def functions(self, name):
        """The functions whose path ends with a name; `*` is any last name."""
        wanted, found = name.split("::"), []
        for file, (scope, text) in self.files.items():
            # Only files that may have the function are read: all files would take seconds.
            around = [word for word in wanted[:-1] if word not in scope]
            last = "fn " + wanted[-1].rstrip("*")
            if not all(word in text for word in (last, *around)):
                continue
            if file not in self.parsed:
                self.parsed[file] = functions_of(Source(text), scope, file)
            found += self.parsed[file]
        if wanted[-1] == "*":
            return [function for function in found if list(function.path[-len(wanted):-1]) == wanted[:-1]]
        return [function for function in found if list(function.path[-len(wanted):]) == wanted]

    def function(self, name):
        """The function whose path ends with a name."""
        found = self.functions(name)
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(f"{name} is the name of several functions: {', '.join(map(str, found))}")
        around, _, last = name.rpartition("::")
        hints = [f"functions {other}: " + ", ".join(map(str, self.functions(other)[:9]))
                 for other in (f"{around}::*" if around else "", last) if other and self.functions(other)]
        raise NotFound("; ".join((f"there is no function {name}", *hints)))

    @functools.lru_cache(maxsize=None)
    def words(self, file=None):
        """The names in a file, or the words of all files."""
        if file:
            return {token.text for token in Source(self.files[file][1]).tokens}
        return {word for _, text in self.files.values() for word in re.findall(r"\w+", text)}


class Programs(Crates):
    """The sources of the examples, each of which is a program and has the names of its own."""

    def __init__(self, root):
        self.root, self.files, self.parsed = root, {}, {}
        folder = os.path.join(root, "examples", "src", "bin")
        for file in sorted(glob.glob(os.path.join(folder, "*.rs"))):
            name = os.path.basename(file)[:-len(".rs")]
            self.module(file, os.path.join(folder, name), (name,))
        for file in sorted(glob.glob(os.path.join(folder, "*", "main.rs"))):
            inside = os.path.dirname(file)
            self.module(file, inside, (os.path.basename(inside),))
