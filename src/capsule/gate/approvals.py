"""Step 3: a person, or whoever stands for one, says yes to exactly what was shown, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from capsule.approval import VALID_FOR_MS, Bound
from capsule.calls import (
    Answer,
    Approver,
    ConcreteCall,
    Decision,
    Effect,
    Question,
    ToolCall,
)
from capsule.errors import CapsuleError
from capsule.gate.foreign import attempt
from capsule.gate.masking import Mask
from capsule.gate.place import Place
from capsule.gate.recordable import recordable
from capsule.gate.records import call_record, decision_record, grant_record
from capsule.gate.run_clock import RunClock
from capsule.store import RunWriter


class Approvals:
    """Asks one question at a time; the question and its answer are records of the run."""

    def __init__(
        self, approver: Approver, writer: RunWriter, clock: RunClock, mask: Mask, policies: tuple[str, ...]
    ) -> None:
        self._approver = approver
        self._writer = writer
        self._clock = clock
        self._mask = mask
        self._policies = policies

    def ask(
        self,
        call: ToolCall,
        at: Place,
        concrete: ConcreteCall,
        decision: Decision,
        *,
        again: Callable[[], tuple[ConcreteCall | None, Decision]],
    ) -> tuple[ConcreteCall | None, Decision]:
        """The decision that holds after the answer: an approved ask becomes an allow with exactly its own grant.

        After a yes the world is looked at and the call decided once more; whatever is not what was shown is denied.
        """
        question = self._question(call, at, concrete, decision)
        asking = {**at.as_json(), **question.shown, "digest": question.digest, "at": self._clock.wall_ms()}
        self._writer.append("question", asking)
        asked = self._clock.monotonic()
        with self._clock.stopped():
            answer = self._answer(question)
        late = (self._clock.monotonic() - asked) * 1000 > VALID_FOR_MS
        yes = answer.approved
        said = self._mask.record({"by": answer.by, "reason": answer.reason}).value
        assert isinstance(said, Mapping)
        record = {"call": at.number, "digest": question.digest, "approved": yes, **said, "at": self._clock.wall_ms()}
        self._writer.append("answer", record)
        if late or not yes:
            return concrete, _refused(decision, answer, late=late)
        seen, decided = again()
        if seen is None or decided.effect is Effect.DENY:
            return seen, decided
        if self._question(call, at, seen, decided).digest != question.digest:
            return seen, _changed(decision)
        return seen, replace(decided, effect=Effect.ALLOW, reason=f"{decided.reason}; approved by {answer.by}")

    def _answer(self, question: Question) -> Answer:
        """An approver that fails has not said yes."""
        answer = attempt(lambda: _plain(self._approver(question)), who="the approver")
        if isinstance(answer, CapsuleError):
            return Answer(approved=False, by="the approver", reason=_words(answer.message))
        return answer

    def _question(self, call: ToolCall, at: Place, concrete: ConcreteCall, decision: Decision) -> Question:
        """The digest covers the raw values; what is shown is masked."""
        assert decision.grant is not None
        grant = grant_record(decision.grant, concrete.definition)
        bound = Bound(
            run_id=self._writer.run_id,
            definition=concrete.definition,
            source=concrete.source,
            args=concrete.args,
            executables=[list(command.program or ()) for command in concrete.commands],
            grant=grant,
            policies=self._policies,
        )
        said = {"step": at.step.id, **call_record(call), "decision": decision_record(decision), "grant": grant}
        shown = self._mask.record(said).value
        assert isinstance(shown, Mapping)
        return Question(
            call=call,
            call_id=at.call_id,
            side_effect=concrete.side_effect,
            decision=decision,
            shown=shown,
            digest=self._mask.bind(bound),
        )


def _plain(answer: object) -> Answer:
    """An approver's words, read once; only True is a yes, and nothing else that happens to be true."""
    if not isinstance(answer, Answer):
        return Answer(approved=False, by="the approver", reason="it gave no answer")
    return Answer(
        approved=answer.approved is True,
        by=str(recordable(answer.by)),
        reason=_words(answer.reason),
        hint=_words(answer.hint),
    )


def _words(said: object) -> str | None:
    return None if said is None else str(recordable(said))


def _refused(decision: Decision, answer: Answer, *, late: bool) -> Decision:
    if late:
        return _denied(decision, f"{decision.reason}, and the answer came after ten minutes", "call again")
    reason = answer.reason or f"{answer.by} said no"
    return _denied(decision, f"{decision.reason}, and it was not approved: {reason}", answer.hint)


def _changed(decision: Decision) -> Decision:
    return _denied(decision, "what was approved is not what would happen now", "call again")


def _denied(decision: Decision, reason: str, suggestion: str | None) -> Decision:
    return Decision(
        effect=Effect.DENY,
        code=1007,
        rule=decision.rule,
        reason=reason,
        suggestion=suggestion,
        resolved=decision.resolved,
        flags=decision.flags,
    )
