"""The policy as its users hold it: loaded, checked against its own examples, and asked on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from capsule.calls import BUILTIN, ConcreteCall, Decision, LayerState, RunState, ToolCall, ToolDefinition, World
from capsule.canon import Json
from capsule.documents import Document, load_file, load_text
from capsule.errors import PlanError
from capsule.policy.decide import resolve_and_decide
from capsule.policy.document import read_policy
from capsule.policy.layer import Layer
from capsule.policy.paper import PAPER_PLACES, OnPaper, lexical
from capsule.policy.resolve import definition_of, resolve
from capsule.policy.rules import PolicyRules
from capsule.policy.samples import Sample, samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`Policy.load(path)` or `Policy.parse(text)`; a file that is wrong anywhere is refused whole."""

    rules: PolicyRules
    document: Document
    definitions: Mapping[str, ToolDefinition]
    file: Path | None = None

    @classmethod
    def load(cls, path: Path | str, *, definitions: Mapping[str, ToolDefinition] = BUILTIN) -> Policy:
        return cls.unproven(path, definitions=definitions).proven()

    @classmethod
    def parse(cls, text: str, *, name: str = "<policy>", definitions: Mapping[str, ToolDefinition] = BUILTIN) -> Policy:
        document = load_text(text, name=name, kind="policy")
        return cls(rules=read_policy(document, definitions), document=document, definitions=definitions).proven()

    @classmethod
    def unproven(cls, path: Path | str, *, definitions: Mapping[str, ToolDefinition] = BUILTIN) -> Policy:
        """A policy whose examples and tests were not decided yet, for whoever wants to see all that do not hold."""
        document = load_file(Path(path), kind="policy")
        file = Path(path).absolute()  # wherever the process goes later, this very file is kept from its tools
        return cls(rules=read_policy(document, definitions), document=document, definitions=definitions, file=file)

    def proven(self) -> Policy:
        """PlanError 3001 at the first example or test that does not hold."""
        for sample in self.samples():
            if sample.problem is not None:
                raise self.document.error(sample.place, f"{sample.name}: {sample.problem}")
        return self

    def samples(self) -> list[Sample]:
        """The policy's examples and tests with how they came out; of a loaded policy all hold."""
        return samples(self.rules, self.definitions)

    @property
    def name(self) -> str:
        return self.rules.name

    @property
    def digest(self) -> str:
        return self.rules.digest

    @property
    def value(self) -> Json:
        """The document as it was written, for the record."""
        return self.document.value

    def bind(self, world: World) -> Layer:
        return Layer(self.rules, world)

    def decide(self, call: ToolCall, *, workdir: Path | str | None = None, tainted: bool = False) -> Decision:
        """The answer on paper for a first call of a run; nothing is looked up on the disk.

        `workdir` is absolute; left out, it is /workdir.
        """
        world = on_paper(workdir)
        state = RunState(tainted=tainted, layers=(LayerState(),))
        return resolve_and_decide((self.bind(world),), lambda: self.concrete(call, world), state)[1]

    def concrete(self, call: ToolCall, world: World) -> ConcreteCall:
        """ToolError 2001 or 2002 for what never reaches a policy."""
        return resolve(call, definition_of(call.tool, self.definitions), world, search=self.rules.search)


def on_paper(workdir: Path | str | None) -> OnPaper:
    if workdir is None:
        return OnPaper()
    if not Path(workdir).is_absolute():
        hint = "on paper nothing is looked up, not even where this process is; name it from the root"
        raise PlanError(3001, f"workdir {str(workdir)!r} is not absolute", hint=hint)
    return OnPaper(replace(PAPER_PLACES, workdir=lexical(str(workdir), PAPER_PLACES)))
