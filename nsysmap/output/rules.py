"""Lays out the output of `nsysmap rules`, and the pages of docs/rules/: every rule as text and as
Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import Spec
from nsysmap.rules.cases import CaseResult
from nsysmap.rules.message import Each
from nsysmap.rules.rule_file import GROUPS, Rule
from nsysmap.text.lines import Line, folded, rendered, styled, table
from nsysmap.text.terminal import escaped
from nsysmap.text.units import counted

WIDTH = 80  # columns
_ONE = Each()
"""The words for what runs where rules are shown without a trace: inferences."""
_SEVERITY = 7  # columns


def rules_list(rules: Sequence[Rule]) -> str:
    """One line per rule, by group."""
    wide = max(len(rule.name) for rule in rules)
    lines: list[Line] = []
    for group in (group for group in GROUPS if any(rule.group == group for rule in rules)):
        rows = [
            (rule.name.ljust(wide), rule.severity.ljust(_SEVERITY), escaped(rule.summary))
            for rule in rules
            if rule.group == group
        ]
        lines += [styled(group), *table(("", "", ""), rows, WIDTH, "kkw")]
    return rendered(lines, colour=False)


def rule_text(rule: Rule) -> str:
    """Everything about one rule."""
    parts = [
        f"{rule.name}: {escaped(rule.summary)}",
        f"group {rule.group}, severity {rule.severity}",
        _block("Why", rule.why),
        "What to do\n" + "\n".join(_filled(part) for part in _advice(rule)),
    ]
    if rule.supersedes:
        none = (
            f"; those of {', '.join(rule.takes_back)} are no problem then"
            if rule.takes_back
            else ""
        )
        parts.append(
            _block(
                "Supersedes", f"findings at the same place from {', '.join(rule.supersedes)}{none}"
            )
        )
    if rule.params:
        lines = (
            f"  {rule.name}.{name} = {escaped(_value(value))}"
            for name, value in rule.params.items()
        )
        parts.append("Parameters\n" + "\n".join(lines))
    parts.append("When it cannot tell\n" + "\n".join(_filled(reason) for reason in _skips(rule)))
    parts.append(_block("Message", _ONE.words_in(rule.message)))
    parts.append("SQL\n" + "\n".join(f"  {escaped(line)}" for line in rule.query.sql.splitlines()))
    parts.append(
        "Cases\n"
        + "\n".join(
            f"  {escaped(case.name)}: {_answer(case.skips, len(case.finds))}" for case in rule.cases
        )
    )
    return "\n\n".join(parts)


def cases_text(results: Sequence[CaseResult]) -> str:
    """The failures, and the number of cases."""
    wrong = [result for result in results if result.wrong is not None]
    lines = [
        f"{result.rule}: {escaped(result.case)}: {escaped(result.wrong or '')}" for result in wrong
    ]
    passed = len(results) - len(wrong)
    of = counted(len({result.rule for result in results}), "rule")
    return "\n".join(
        [*lines, f"{passed} of {counted(len(results), 'case')} of {of} gave the expected answer"]
    )


def pages(rules: Sequence[Rule]) -> dict[str, str]:
    """The files of docs/rules/: an index, a page per rule, and the tables that their SQL reads."""
    ordered = sorted(rules, key=lambda rule: (GROUPS.index(rule.group), rule.name))
    return {
        "README.md": _index(ordered),
        "tables.md": _tables(RULE_TABLES),
        **{f"{rule.name}.md": _page(rule) for rule in ordered},
    }


def _index(rules: Sequence[Rule]) -> str:
    lines = [_GENERATED, _INTRODUCTION]
    for group in (group for group in GROUPS if any(rule.group == group for rule in rules)):
        lines += [f"## {group}", "", "| rule | severity | what it finds |", "|---|---|---|"]
        lines += [
            f"| [{rule.name}]({rule.name}.md) | {rule.severity} | {_cell(rule.summary)} |"
            for rule in rules
            if rule.group == group
        ]
        lines.append("")
    return "\n".join([*lines, _WRITING])


def _page(rule: Rule) -> str:
    parts = [
        _GENERATED,
        f"# {rule.name}\n\n{rule.summary}",
        (
            f"Group [{rule.group}](README.md#{rule.group}), severity {rule.severity}. File:"
            f" `rules/{rule.group}/{rule.name}.yaml`."
        ),
        f"## Why\n\n{rule.why}",
        "## What to do\n\n" + "\n\n".join(_advice(rule)),
    ]
    if rule.supersedes:
        names = ", ".join(f"[{name}]({name}.md)" for name in rule.supersedes)
        told = (
            "Findings of these rules about the same problem at the same place are listed under"
            f" this rule: {names}."
        )
        none = (
            f" Those of {', '.join(rule.takes_back)} are no problem then: this finding is no more"
            " severe for them."
        )
        parts.append(f"## Supersedes\n\n{told}{none if rule.takes_back else ''}")
    if rule.params:
        rows = "\n".join(f"| `{name}` | {_value(value)} |" for name, value in rule.params.items())
        name, value = next(iter(rule.params.items()))
        parts.append(
            f"## Parameters\n\n| name | default |\n|---|---|\n{rows}\n\n`--param"
            f" {rule.name}.{name}={_value(value)}`, or `[tool.nsysmap.rules.{rule.name}]` in"
            " `pyproject.toml`."
        )
    parts.append("## When it cannot tell\n\n" + "\n".join(f"- {reason}" for reason in _skips(rule)))
    message = _ONE.words_in(rule.message)
    parts.append(f"## How it decides\n\n```sql\n{rule.query.sql}\n```\n\nMessage: {message}")
    parts.append(f"## Seen in\n\n{_seen(rule)}")
    parts.append(
        "## Cases\n\n"
        + "\n".join(f"- {case.name}: {_answer(case.skips, len(case.finds))}" for case in rule.cases)
    )
    return "\n\n".join(parts) + "\n"


def _seen(rule: Rule) -> str:
    if rule.seen is None:
        return "No trace or engine file of a real GPU yet: only its cases test it."
    return f"Found in {rule.seen}; its findings were checked against the trace or the file."


def _tables(specs: Iterable[Spec]) -> str:
    parts = [
        _GENERATED,
        (
            "# The tables that a rule's SQL can read\n\nTimes are nanoseconds since the start of"
            " the capture; NULL means no value."
        ),
    ]
    for spec in specs:
        rows = "\n".join(
            f"| `{column.name}` | {column.kind}{'?' if column.nullable else ''} | {column.unit} |"
            f" {_cell(column.comment)} |"
            for column in spec.columns
        )
        parts.append(
            f"## {spec.name}\n\n{spec.comment}\n\n| column | kind | unit | meaning"
            f" |\n|---|---|---|---|\n{rows}"
        )
    return "\n\n".join(parts) + "\n"


def _skips(rule: Rule) -> list[str]:
    needs = [
        f"there is no value in {need}" if "." in need else f"there are no rows in {need}"
        for need in rule.needs
    ]
    nothing = [
        f"it finds nothing, and {_ONE.words_in(requirement.reason)}"
        for requirement in rule.clean_if
    ]
    unmet = [_ONE.words_in(requirement.reason) for requirement in rule.requires]
    return [*needs, *unmet, *nothing] or ["never"]


def _advice(rule: Rule) -> list[str]:
    return [part.condition() + part.heading() + _ONE.words_in(part.text) for part in rule.advice]


def _answer(skips: str | None, found: int) -> str:
    if skips is not None:
        return f"skipped ({skips})"
    return "finds nothing" if found == 0 else "found" if found == 1 else f"found, {found} times"


def _block(title: str, text: str) -> str:
    return f"{title}\n" + _filled(text)


def _filled(text: str) -> str:
    return "\n".join(folded(escaped(" ".join(text.split())), WIDTH, first="  ", later="  "))


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_GENERATED = (
    "<!-- made by docs/make_rules.py out of rules/*/*.yaml and nsysmap/core/schema.py: change"
    " those -->"
)

_INTRODUCTION = """# Rules

A rule looks for one problem in the tables of an analysis and says where it is, what it costs and
what to do. Its answer is one of three:
findings, none, or *skipped* with the reason, so that "cannot tell" never looks like "clean".

- `cost_ns` is a total over the **steady-state inferences** of the trace, which are complete and
  after the warm-up (table
  [`steady_state`](tables.md#steady_state)): nanoseconds of GPU time or idle time, or of host time
  if the rule's page says so.
  `share_of_window` is that cost divided by the window from the start of the first steady-state
  inference to the end of the last, on the
  finding's device (for a finding about several devices, by the sum of their windows). Findings
  about the trace itself cost the time that
  they hide, or 0; an unknown cost is empty, never 0. Costs of different rules overlap and are never
  added up.
- **One problem, one finding, one cost.** If several rules report the same problem at the same
  place, one of them stands for the others
  (`supersedes`): their findings are listed under its finding (`also` in JSON), and their costs are
  not counted again. It is as severe as
  the most severe of them, but for those that it shows to be no problem (`takes_back`).
- Severity `error` means that the report as a whole is unreliable, `warning` that time can be saved,
  `info` everything else.
- Times are as traced, with the profiler's overhead; what-if figures are corrected for it.

`nsysmap rules list` and `nsysmap rules show NAME` print them. Thresholds can be set with `--param
RULE.NAME=VALUE`, in
`[tool.nsysmap.rules.RULE]` of `pyproject.toml`, or in `[rules.RULE]` of `nsysmap.toml` (which
overrides `pyproject.toml`; the command line
overrides both). `analyze`, `layers --findings` and `nsysmap.analyze()` read both files from the
current folder; in Python,
`nsysmap.rules.packs.chosen_rules()` loads packs and sets parameters.
"""

_WRITING = """## Writing a rule

A rule is one file, with the rule's name, in a folder given with `--rules DIR`. `nsysmap rules test
DIR` checks the
files and runs their cases.

```yaml
name: slow-softmax                 # the file is slow-softmax.yaml
group: hotspot                     # capture launch host copy fusion reformat precision mapping \
hotspot counters
severity: info                     # info warning error
summary: One line that says what the rule finds.
why: |
  What the problem is and why it costs time; what cost_ns means.
advice: |
  What to do, with the exact flag or call, and how to check that it helped.
seen: our BERT on an A100            # where it was found in real data, and checked; optional
supersedes: [hot-layer]            # findings of these rules at the same place are listed under \
this one's
takes_back: []                     # the same of rules whose findings this one shows to be no \
problem: it stays as severe as it is
needs: [kernels, layers.share_of_kernel_time]     # tables or columns that must have rows or \
values; otherwise the rule is skipped
requires:                          # further conditions: rows that must be there (written as in \
only_if), or SQL
  - rows: capture where cuda_graph_trace != graph
    reason: the kernels inside CUDA graphs are hidden
  - sql: SELECT 2 * count(share_of_kernel_time) >= count(*) AS ok, count(*) AS layers FROM \
layers   # the first column of the first row says whether the rule can tell
    reason: "the time of most of the {layers} layers is unknown"
clean_if:                          # must hold for "found nothing" to be an answer; otherwise \
finding nothing means "cannot tell"
  - rows: no layers where kind = foreign_node
    reason: there may be a softmax inside an opaque region
only_if:                           # rows that must be there for the SQL to find anything; \
optional, and never changes an answer: without them it is not run
  - layers where kind = softmax and share_of_kernel_time >= $min_share   # also: or, no, !=, not, \
known, unknown, a | b, >= 2 * column, for 0.05 of window_ns (how long the rows last in all)
params: {min_share: 0.1}           # written $min_share in the SQL
sql: |
  SELECT min(k.start_ns) AS start_ns, max(k.end_ns) AS end_ns, sum(k.end_ns - k.start_ns) AS \
cost_ns,
    l.layer_index, l.name AS layer, CAST(l.layer_id AS VARCHAR) AS about, l.share_of_kernel_time AS
    time_share
  FROM kernels k JOIN layers l ON l.layer_id = k.layer_id JOIN inferences i ON i.inference =
  k.inference
  WHERE l.kind = 'softmax' AND l.share_of_kernel_time >= $min_share AND i.complete AND NOT i.warmup
  GROUP BY l.layer_id, l.layer_index, l.name, l.share_of_kernel_time
message: "{layer} takes {time_share:.0%} of the engine's time ({cost_ns:ns} in total)."
cases:                             # at least one that finds something and one that does not
  - name: a slow softmax
    given:
      capture: [{cuda_graph_trace: none}]
      inferences: [{inference: 0, start_ns: 0, end_ns: 1000, complete: true}]
      layers: [{layer_id: 0, layer_index: 4, name: sm, kind: softmax, share_of_kernel_time: 0.5}]
      kernels: [{kernel_id: 0, inference: 0, layer_id: 0, start_ns: 0, end_ns: 500}]
    finds: [{layer: sm, cost_ns: 500}]
  - name: a quick one
    given:
      capture: [{cuda_graph_trace: none}]
      inferences: [{inference: 0, start_ns: 0, end_ns: 1000, complete: true}]
      layers: [{layer_id: 0, layer_index: 4, name: sm, kind: softmax, share_of_kernel_time: 0.01}]
      kernels: [{kernel_id: 0, inference: 0, layer_id: 0, start_ns: 0, end_ns: 10}]
    finds: []
```

- With both `rows` and `sql`, the SQL of a requirement is run where the rows are not there: the \
database takes longer to plan a statement than to look for a row.
- The SQL is one SELECT in DuckDB's dialect over the [tables](tables.md). It returns `start_ns`,
  `end_ns` (NULL: the whole trace) and
  `cost_ns` (NULL: unknown); `layer_index`, `layer` and `share_of_window` have a fixed meaning;
  every other column is evidence:
  a number, a boolean or a text. If the SQL does not return `share_of_window`, it is computed from
  the cost.
- `about` says what the finding is about, as words separated by spaces: ids of `layers`, or whatever
  names the place (functions, threads).
  A finding is listed under others if their rule `supersedes` its rule, they are on the same
  `device` (or one of them is about all devices),
  and together they are about everything that it is about; without `about`, a finding is about its
  whole device. Findings of one rule that
  share a place are counted once in the rule's total cost.
- `advice` is a text, or a list of parts: `- {to: pytorch, say: …}` for programs that run PyTorch
  (also `torch-tensorrt`, `onnxruntime`,
  `tensorrt-llm`, `tensorrt`: all that run engines, `trtexec`: trtexec itself, and programs of which
  it is not known whether they are,
  `tensorrt-api`: programs that call TensorRT's API themselves, `tensorrt-python` and
  `tensorrt-cpp`: those in Python and in others,
  `builder`: engines that TensorRT's builder makes for one of these, `tensorrt-rtx`: engines of
  TensorRT for RTX, `onnx`: engines built
  from ONNX models, `network`: engines or PyTorch, `cuda`: CUDA C++, neither), `- {to: "tensorrt <
  11", say: …}`,
  `- {to: "trtexec >= 8.4 < 11", say: …}` and `- {to: "onnx >= 8.6", say: …}` for those versions of
  TensorRT (if it is unknown, all are
  shown, each with its version), `- {say: …}` for everyone. `when: {cause: input}` keeps a part to
  findings with this evidence: a column
  with one of some texts (`[input, output]`), `true` (it has a value other than false) or `false`.
- `what_if` names the change of `nsysmap what-if` that predicts a finding's saving; the finding then
  has that command, for
  `drop-layers` and `join-kernels` with the layers that it is about.
- The message shows columns: `{name}`, `{name:ns}` (330.1 µs), `{name:bytes}` (1.5 MiB),
  `{name:.1%}`, `{name:,}`, `{name:.2f}`, and
  `{name:list}`, a text that may be longer (400 columns instead of 120). `{name:each}`,
  `{name:each.1f}` and `{name:each bytes}` show a
  time, number or size per inference in the unit of the answer, `per {unit}`: an inference, or a
  pass of several.
  A part in double square brackets is left out if one of its values is NULL.
- What repeats in a trace is not always an inference: where nothing shows that it is one, messages
  speak of repetitions. Write `{:inference}`, `{:an inference}`, `{:Inference}` or `{:An inference}`
  for that word, `{:inference}s` for the plural and `{name:inferences}` for a number of them, in the
  message, in the advice, in the `reason` of `requires` and `clean_if`, and in a column `unit` of
  the SQL. `{:per inference}` in a message about layers also names the engine where several ran, or
  says `per pass of 3 inferences` where the engine runs once in each pass. The word "inference"
  written as such stays as it is.
- Rules may come from strangers: their SQL may not use any statement but SELECT, nor files, network,
  settings, variables, clock or random
  numbers, nor functions that are not on the list in `nsysmap/rules/sandbox/limits.py`. They run in
  a separate process, which is killed at
  its time and memory limits (10 s for one statement, 120 s for all, 3 GiB;
  `nsysmap/rules/sandbox/strangers.py`), and each has its own
  connection.
- A case gives rows as mappings; a column left out is NULL, or 0, false or an empty text if the
  column cannot be NULL. A case's findings
  list only the columns that matter; for the message, part of it is enough. If the rule must be
  skipped, write `skips: part of the reason`
  instead of `finds`. Write a case for each false alarm that the rule must not raise.
"""
