"""Contracts: what must hold for single queries, whatever the means say."""

from __future__ import annotations

from collections.abc import Iterator

from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.gates.checks import GateCheck
from rankgauge.gates.rules import Contract

__all__ = ["contract_checks"]


def contract_checks(contracts: tuple[Contract, ...], truth: Qrels, run: Run) -> list[GateCheck]:
    """One check for each contract.

    Args:
        contracts: From the rules.
        truth: The judgments; a contract may also be about a query that has none.
        run: The run, its documents in rank order.

    Raises:
        InputError: If a query is neither judged nor in the run: a contract that can never break.
    """
    found = []
    for contract in contracts:
        if contract.query not in truth and contract.query not in run:
            raise InputError(
                f"query {contract.query!r} is neither judged nor in the run", where="contracts",
                fix="check its id, or remove the contract",
            )  # fmt: skip
        ranks = {}
        if contract.query in run:
            ranks = {doc: rank for rank, doc in enumerate(run[contract.query], start=1)}
        broken = list(_broken(contract, ranks))
        held = f"query {contract.query!r} keeps its contract"
        found.append(
            GateCheck(
                kind="contract",
                name=contract.query,
                verdict="FAIL" if broken else "PASS",
                sentence=f"query {contract.query!r}: {'; '.join(broken)}" if broken else held,
            )
        )
    return found


def _broken(contract: Contract, ranks: dict[str, int]) -> Iterator[str]:
    if not ranks:
        yield "it has no ranking"
    for doc, most in contract.must_rank_at_most.items():
        if ranks.get(doc, most + 1) > most:
            yield f"document {doc!r} {_stands(ranks, doc)}, its contract says {most} or better"
    for doc in contract.must_include:
        if ranks.get(doc, contract.k + 1) > contract.k:
            yield f"document {doc!r} {_stands(ranks, doc)}, it must be in the first {contract.k}"
    for doc in contract.forbidden:
        if ranks.get(doc, contract.k + 1) <= contract.k:
            yield f"document {doc!r} {_stands(ranks, doc)}, where it is forbidden"


def _stands(ranks: dict[str, int], doc: str) -> str:
    return f"stands at rank {ranks[doc]}" if doc in ranks else "was not retrieved"
