"""Turn outcomes into changes: the state of the URL, its links and its document, added to the batch that is written next."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from msgspec import structs

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.admission import Admission, CandidateChecker, EndedUrls
from crawlspace.crawl.commits import Commits
from crawlspace.crawl.conditional import mark_after
from crawlspace.crawl.outcomes import OutcomePolicy, document_holder
from crawlspace.crawl.redirects import Redirects, Target, WaitingPage, sentence_of_shown, signature_of_text
from crawlspace.crawl.rule_changes.folding import FoldedDocuments
from crawlspace.crawl.timed.lastmod import LastModified
from crawlspace.model import Held, NewUrl, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.refused_links import packed
from crawlspace.state.store import Store
from crawlspace.status import SITEMAPS, Status

_LINKS_STAY = (OutcomeKind.GONE, OutcomeKind.FAILED, OutcomeKind.UNCHANGED)
"""Outcomes after which the links of the last fetch are not replaced."""


class OutcomeRecorder:
    """Turns outcomes into changes, one at a time, in order of arrival."""

    def __init__(
        self,
        collection: Collection,
        store: Store,
        *,
        admission: Admission,
        checker: CandidateChecker,
        outcomes: OutcomePolicy,
        folded: FoldedDocuments,
        commits: Commits,
        lastmod: LastModified,
        clock: Clock,
        deepest: int | None,
        run_ends: bool,
    ) -> None:
        """`deepest` is the limit of link depth; `run_ends`: the crawl is not continuous."""
        self._admission = admission
        self._checker = checker
        self._outcomes = outcomes
        self._folded = folded
        self._commits = commits
        self._lastmod = lastmod
        self._clock = clock
        self._deepest = deepest
        self._ended = EndedUrls(checker, run_ends=run_ends, starts=(start.url for start in collection.start_urls))
        self._leaving_texts: dict[int, str] = {}
        """What a page with the text of one that leaves by its redirect has as its detail, by the id of that one, until that is recorded."""
        self._redirects = Redirects(
            store,
            uncommitted=self._uncommitted,
            most=collection.max_redirects,
            keeps_cookies=collection.keeps_cookies,
            folding=collection.url_folding,
        )

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Forget a leased URL again if a link has inserted it after it was forgotten in this run; return whether it was."""
        return self._ended.drop(state, changes)

    def is_leaving(self, state: UrlState) -> bool:
        """Return whether the next batch deletes the document of a URL because of its redirect."""
        return state.id in self._redirects.leaving

    def recorded(self, ids: Iterable[int]) -> None:
        """Note that the outcomes of URLs are recorded."""
        ended = list(ids)
        self._redirects.recorded(ended)
        for id in ended if self._leaving_texts else ():
            self._leaving_texts.pop(id, None)

    def check_redirect(self, state: UrlState, outcome: Outcome) -> list[UrlState]:
        """Turn the outcome of a redirect loop into an error; return other URLs that are to be requested in this run."""
        return self._redirects.check(state, outcome)

    def request_again(self, urls: Iterable[UrlState], *, together_with: UrlState) -> None:
        """Queue URLs for this run because of a redirect; `together_with` is the URL that redirects."""
        for state in urls:
            due = structs.replace(state, next_fetch=at_once(int(self._clock.now()), state.fetched_at), lease_until=None)
            self._commits.batch.changes.append(Change(due, together_with=together_with.id))

    def add(
        self, state: UrlState, outcome: Outcome, *, policy: RecrawlPolicy, generation: int, in_flight: Container[int]
    ) -> None:
        """Add the change that an outcome makes, and those of other URLs that follow from it; `state` is that of the URL before.

        `generation` is the present one of the rules; `in_flight` are the ids of URLs with an outcome to come.
        """
        new, keys, refused, sample = self._admission.page_urls(state, outcome)
        canonical = self._admission.canonical_key(state, outcome)
        folded = self._folded.of(state)
        target = self._redirects.target(document_holder(state, folded), outcome, new[0] if new else None)
        transition = self._outcomes.follow(state, outcome, policy=policy, canonical=canonical, folded=folded, target=target)
        after = transition.state
        if state.status in SITEMAPS or outcome.named is not None:
            self._lastmod.note(state, outcome)
        self._lastmod.measure(state, outcome, generation=generation)
        if outcome.doubted:
            self._keep_page(after, outcome, target, new)
        if outcome.doubted or (outcome.status == Status.REDIRECT_LOOP and after.checksum is not None):
            for one in new:  # which the store does not learn here: a later link to it may have a smaller depth
                self._checker.forget(one.key)
            keys, new = self._links_of_kept(state, after, new if outcome.redirect_to is not None else [])
        elif outcome.kind not in _LINKS_STAY:
            after.rules = generation
            after.refused = packed(refused or {})
        elif after.state is State.GONE:
            after.refused = None
        wanted = transition.order is not None or (after.canonical, after.simhash) != (state.canonical, state.simhash)
        has_other_fields = False
        if not outcome.doubted:
            after.fields_mark, has_other_fields = mark_after(outcome, after, before=state.fields_mark)
        document = outcome.document if (wanted or has_other_fields) and after.checksum is not None else None
        change = Change(
            after,
            document=document,
            links=keys,
            discovered=new,
            forget=transition.forget or after.status == Status.NO_SITEMAP,
            keep_in_index=outcome.status == Status.EXCLUDED_HERE,
            refused_links=sample if after.refused and keys is not None else (),
        )
        batch = self._commits.batch
        self._commits.add(self._ended.follow(change, policy=policy, now=int(self._clock.now())), outcome, state)
        batch.changes += self._outcomes.replaced(folded, change, outcome, before=state, policy=policy, target=target)
        self._request_lost(state, after, target, in_flight)
        self._release_waiting(after, policy=policy, generation=generation, in_flight=in_flight)

    def _keep_page(self, after: UrlState, outcome: Outcome, target: Target | None, new: Sequence[NewUrl]) -> None:
        """Keep the data of a page whose outcome is not trusted yet; it may wait for the target of its redirect."""
        outcome.document = None
        if target is not None and new and not target.is_settled:
            self._redirects.wait(after, target, link=new[0])

    def _links_of_kept(
        self, state: UrlState, after: UrlState, new: Sequence[NewUrl]
    ) -> tuple[Sequence[int] | None, list[NewUrl]]:
        """Return the links of a page that is kept although it redirects, with the target; None: those of the last fetch."""
        if not new:
            return None, []
        keys, target = self._redirects.links_of_kept(state, new[0], deepest=self._deepest)
        after.etag = after.last_modified = None  # its links must be read again
        return keys, [target, *new[1:]]

    def _request_lost(self, state: UrlState, after: UrlState, target: Target | None, in_flight: Container[int]) -> None:
        """Queue a page for this run that was lost, beyond the deletion limit, to one that leaves by its redirect.

        Else the index would have its text at neither URL until it is due. It is the target of that redirect; or the page that `after` is of, if
        the other one has left before it, but is in the store still.
        """
        if target is not None and state.checksum is not None and after.checksum is None:
            self._leaving_texts[state.id] = sentence_of_shown(signature_of_text(state.checksum))
            self.request_again((one for one in _lost_to(state, target) if one.id not in in_flight), together_with=state)
        elif self._leaving_texts and after.held is Held.MANY and after.state is State.DONE:
            left = next((id for id, detail in self._leaving_texts.items() if detail == after.detail), None)
            if left is not None:
                del self._leaving_texts[left]  # one request for each
                self.request_again([after], together_with=after)

    def _release_waiting(self, after: UrlState, *, policy: RecrawlPolicy, generation: int, in_flight: Container[int]) -> None:
        """Delete the documents that waited for the outcome of a URL; `after` is its state."""
        if not self._redirects.is_awaited(after.url):
            return
        after = self._outcomes.as_indexed(after)
        lost: list[UrlState] = []

        def leave(one: WaitingPage) -> Change | None:
            change = self._outcomes.follow_waiting(one, after, policy=policy)
            if change is not None and change.state.checksum is None:
                lost.extend(_lost_to(one.page, one.target))
            return change

        leaving = self._redirects.settle(after, in_flight=in_flight, leave=leave)
        for change in leaving:
            change.state.rules, change.state.refused = generation, packed({})
        self._commits.batch.changes += leaving
        self.request_again(lost[:1], together_with=after)

    def _uncommitted(self, url: str) -> UrlState | None:
        """Return the state of a URL after an outcome that is not recorded yet; None without one."""
        state = self._commits.uncommitted(url)
        return None if state is None else self._outcomes.as_indexed(state)


def _lost_to(page: UrlState, target: Target | None) -> list[UrlState]:
    """Return the target of a page that leaves by its redirect if it must be requested again, since it was lost to the document of that page.

    Else the index would have the text of neither until the target is due.
    """
    return [target.state] if target is not None and target.state is not None and target.was_lost_to(page) else []
