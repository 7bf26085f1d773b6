#!/usr/bin/env python3
"""The walks in docs/walks: the functions that a reader passes who follows one operation, in the order of reading.

    scripts/walks.py                  checks that each function stands in its file, and counts
    scripts/walks.py trace [WALK…]    traces the bench `walks`, built without optimisation, with callgrind, and compares
    scripts/walks.py compare [WALK…]  compares with the last traces
    scripts/walks.py renew [WALK…]    adapts the lists to the last traces; order and marks of the lines that stay are kept

A line is `file function mark`; a file alone is a script of Lua, found by reading. Marks: F only forwards, or packs anew. A is an
accessor or a conversion, which a reader need not open: not counted. - belongs to another task: not counted. Functions
with a body of at most three lines may be left out. What stands in a walk that `# after:` names is neither asked for nor counted
again. `# below:` says where a partial walk and its tasks begin.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS, TRACES = ROOT / 'docs/walks', ROOT / 'target/walks'
PROJECT = re.compile(re.escape(f'{ROOT}/') + r'((?:crates/[^/]+/)?src/.+\.rs)')
OWNER = re.compile(r'(?:pub(?:\([^)]*\))? )?(?:impl|trait)\b')
FN = re.compile(r'(\s*)(?:pub(?:\([^)]*\))? )?(?:const |async )*fn (\w+)')
CALLGRIND = ['valgrind', '--tool=callgrind', '--compress-pos=no', '--compress-strings=no', '--demangle=no',
             '--collect-atstart=no', '--toggle-collect=*walked*']


def functions(file, known={}):
    """First and last line, name, and lines of the body, of each function of a file; its indentation is that of rustfmt."""
    if file not in known:
        lines, known[file], owner = (ROOT / file).read_text().split('\n'), [], ''
        for first, line in enumerate(lines):
            if OWNER.match(line):
                head = ' '.join(lines[first:first + 6]).split(' {')[0].split(' where ')[0]
                while head != (head := re.sub(r'<[^<>]*>', '', head)):
                    pass
                owner = re.findall(r'\w+', head.split(' for ')[-1].split(': ')[0])[-1] + '::'
            elif line == '}':
                owner = ''
            elif fn := FN.match(line):
                begin = next(at for at in range(first, len(lines)) if lines[at][-1:] in ('{', '}', ';'))
                end = lines.index(fn[1] + '}', begin) if lines[begin][-1] == '{' else begin
                body = [text for text in lines[begin + 1:end] if text.strip() and not text.strip().startswith('//')]
                known[file].append((first + 1, end + 1, (fn[1] and owner) + fn[2], len(body)))
    return known[file]


def traced(walk, below):
    """The longer functions of the project in a trace, in the order of a reader: a call is followed where it stands."""
    bodies, calls, order, node, file = defaultdict(dict), defaultdict(set), {}, {}, None
    lines = iter((TRACES / walk).read_text().split('\n'))
    for line in lines:
        key, _, value = line.partition('=')
        if key in ('fl', 'fi', 'fe'):
            file = PROJECT.fullmatch(value)
        elif key in ('fn', 'cfn'):
            node[key] = value
        elif key == 'calls' or line[:1].isdigit():
            at = int((next(lines) if key == 'calls' else line).split()[0])
            if key == 'calls':
                calls[node['fn']].add((at, node['cfn']))
            if file and (ROOT / file[1]).exists():
                inside = [function for function in functions(file[1]) if function[0] <= at <= function[1]]
                bodies[node['fn']].update({(file[1], *function[2:]): None for function in inside[-1:]})
    begin, seen = [node for name in below for node in bodies if any(body[1] == name for body in bodies[node])], set()

    def follow(node):
        # What a partial walk only wakes or spawns is another task, unless it begins there.
        if node not in seen and not (below and '5tokio7runtime' in node):
            seen.add(node)
            order.update(bodies[node])
            for _, callee in sorted(calls[node]):
                follow(callee)

    sys.setrecursionlimit(100_000)
    for node in begin if below else sorted(calls, key=lambda node: 'walked' not in node):
        follow(node)
    return [(file, name) for file, name, length in order if length > 3]


class Walk:
    def __init__(self, name):
        self.name, text = name, (LISTS / f'{name}.txt').read_text().splitlines()
        self.head = [line for line in text if line.startswith('#')]
        self.lines = [(line.split() + ['', ''])[:3] for line in text if line and line not in self.head]
        words = {line.split()[1]: line.split()[2:] for line in self.head}
        self.below, before = words.get('below:', []), [Walk(walk) for walk in words.get('after:', [])]
        self.known = {(file, name) for walk in before for file, name, mark in walk.lines if mark != '-'}

    def check(self):
        for file, name, _ in self.lines:
            if not (ROOT / file).exists() or name and name not in (function[2] for function in functions(file)):
                print(f'{self.name}: {file} has no {name}')
        new = [line for line in self.lines if line[2] not in ('A', '-') and (line[0], line[1]) not in self.known]
        files = [file for file, *_ in new]
        rust = {file for file, name, _ in new if name}
        returns = sum(file != files[at - 1] and file in files[:at] for at, file in enumerate(files))
        counts = sum(bool(line[1]) for line in new), sum(line[2] == 'F' for line in new), len(rust), len(set(files) - rust), returns
        print(f'{self.name:16}' + ''.join(f'{count:14}' for count in counts))

    def trace(self, program):
        TRACES.mkdir(exist_ok=True)
        command = [*CALLGRIND, f'--callgrind-out-file={TRACES / self.name}', program, self.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.compare()

    def compare(self):
        trace, names = traced(self.name, self.below), {(file, name): mark for file, name, mark in self.lines if name}
        for function in trace:
            if function not in self.known.union(names):
                print(f'{self.name}: not in the list:', *function)
        for function, mark in names.items():
            if function not in trace and mark != '-':
                print(f'{self.name}: not in the trace, or short:', *function)

    def renew(self):
        trace = traced(self.name, self.below)
        lines = [line for line in self.lines if not line[1] or line[2] == '-' or (line[0], line[1]) in trace]
        for at, function in enumerate(trace):
            names = [(file, name) for file, name, _ in lines]
            if function not in self.known.union(names):
                # Behind what a reader has passed last.
                place = next((names.index(passed) + 1 for passed in trace[at - 1::-1] if at and passed in names), 0)
                lines.insert(place, [*function, ''])
        text = self.head + [''] + [f'{file:54}{name:38}{mark}'.rstrip() for file, name, mark in lines]
        (LISTS / f'{self.name}.txt').write_text('\n'.join(text) + '\n')


def build():
    """Builds the project's crates without optimisation, so that nothing is inlined."""
    command = ['cargo', 'test', '--package', 'leasehold-benches', '--bench', 'walks', '--no-run']
    crates = [folder.name for folder in (ROOT / 'crates').iterdir()]
    command += [f'--config=profile.dev.package.leasehold-{name}.opt-level=0' for name in crates]
    built = subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.PIPE, text=True).stderr
    return ROOT / re.search(r'\((\S*/walks-\w+)\)', built)[1]


def main():
    command, *names = sys.argv[1:] or ['check']
    walks = [Walk(name) for name in names or sorted(path.stem for path in LISTS.glob('*.txt'))]
    if command == 'check':
        print(f'{"":16}' + ''.join(f'{title:>14}' for title in ('functions', 'only forward', 'files', 'scripts', 'returns')))
    program = build() if command == 'trace' else None
    for walk in walks:
        walk.trace(program) if program else {'check': walk.check, 'compare': walk.compare, 'renew': walk.renew}[command]()


main()
