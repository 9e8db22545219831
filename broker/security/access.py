"""Decisions about rights: who may do what with which resource.

The order of evaluation: fixed rules of the broker, then deny rules, then allow rules; a request
that no rule matches is refused. For a name with wildcards a deny rule matches if it has one name
in common with it, and allow rules must match all its names. The order of rules in a file means
nothing. A set of rules never changes; a reload makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise, product
from typing import TYPE_CHECKING, Final, final

from broker.security.built_in import ADMIN, EVERYTHING, built_in_rules
from broker.security.conditions import NO_ENTRANCE
from broker.security.coverage import Budget
from broker.security.decision import COVER, FIXED, OVERLAP, Decision
from broker.security.entrance import Entrance
from broker.security.glob_index import GlobIndex, for_any_value
from broker.security.identity import Identity
from broker.security.limits import NO_LIMITS, Limit, UserLimits
from broker.security.patterns import WORDED, words_of
from broker.security.resources import (
    CLIENT_ID,
    DYNAMIC,
    EVERY,
    KEYED_VERBS,
    MANAGEMENT,
    NAMES,
    OWNED_VERBS,
    TEMPORARY,
    TOPIC,
    Resource,
    is_own_name,
    names_with,
)
from broker.security.rules import (
    ALLOW,
    ANONYMOUS,
    AUTHENTICATED,
    DENY,
    OF_ROLE,
    OF_USER,
    PLACES_MAX,
    RULES_MAX,
    Rule,
    RuleError,
)
from broker.security.scopes import ScopeRules, rules_of_scopes
from broker.security.variables import RuleEntry
from broker.security.wildcards import (
    REFUSED_AS_UNDECIDED,
    REFUSED_BY_DEFAULT,
    Judgement,
    Usable,
    WildcardRequest,
    has_wildcard,
    is_within_limits,
)
from broker.security.word_index import VISITS_MAX, AskedName, WordIndex

if TYPE_CHECKING:
    from broker.security.explanation import Explanation
    from broker.security.rules_check import RuleProblem

EXTERNAL: Final = "EXTERNAL"
OF_CERTIFICATE: Final = "cert:"
"""Begins a user in a role that the user has only after a login by certificate (EXTERNAL)."""

REFUSED_AS_FIXED: Final = Decision(allowed=False, rule="", because=FIXED)
ALLOWED_TO_CREATOR: Final = Decision(allowed=True, rule="", because=FIXED)
ALLOWED_TO_ADMINS: Final = Decision(allowed=True, rule=EVERYTHING, because=COVER)
ADMINS: Final = f"{OF_ROLE}{ADMIN}"

VERSIONS: Final = count(1)


@final
class AccessRequest:
    """One request for a right: by whom, for what, and how the client is connected.

    `principals` are the values of `who` that match the user, and `denied_as` those of deny rules,
    if these are more; `scopes` are the allow rules that its token has brought, None without any.
    """

    def __init__(
        self,
        principals: list[str],
        verb: str,
        resource: Resource,
        *,
        user: str,
        client_id: str,
        entrance: Entrance,
        scopes: ScopeRules | None = None,
        denied_as: list[str] | None = None,
    ) -> None:
        self.principals: Final = principals
        self.is_limited: Final = denied_as is not None
        self.denied_as: Final = principals if denied_as is None else denied_as
        self.verb: Final = verb
        self.resource: Final = resource
        self.user: Final = user
        self.client_id: Final = client_id
        self.entrance: Final = entrance
        self.scopes: Final = scopes

    def is_usable(self, entry: RuleEntry) -> bool:
        """Return whether an entry of an allow rule has the verb, and its conditions hold."""
        when = entry.when
        return self.verb in entry.verbs and (
            when is None or when.hold(self.entrance, if_unknown=False)
        )

    def is_usable_to_deny(self, entry: RuleEntry) -> bool:
        """Return whether an entry of a deny rule has the verb, and its conditions may hold."""
        when = entry.when
        return self.verb in entry.verbs and (
            when is None or when.hold(self.entrance, if_unknown=True)
        )

    def name(self) -> AskedName:
        """Return the name of a queue or topic as it is compared with patterns."""
        resource = self.resource
        is_keyed = resource.kind == TOPIC and self.verb in KEYED_VERBS
        is_any = not resource.key or (resource.key == "#" and self.is_pattern())
        return AskedName(
            words_of(resource.name),
            words_of(resource.key) if is_keyed else None,
            is_any_key=is_keyed and is_any,
        )

    def is_pattern(self) -> bool:
        """Return whether `*` and `#` are wildcards: for subscribers always (DST-06)."""
        return self.resource.is_pattern or self.verb == "subscribe"


@final
class AccessRules:
    """A set of rules, with those of the built-in roles, indexed for decisions.

    `roles` are users by role; other roles come with an `Identity`. `limits` are those of users, in
    the order of the file. `version` is higher than that of each set made before.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        roles: Mapping[str, Iterable[str]] | None = None,
        *,
        limits: Iterable[Limit] = (),
    ) -> None:
        """Index the rules. Raise RuleError if ids are not unique or there are too many rules."""
        own = sorted(rules, key=lambda rule: rule.id)
        if len(own) > RULES_MAX:
            raise RuleError(f"{len(own)} rules, at most {RULES_MAX} are allowed")
        self.rules: Final = (*own, *built_in_rules())
        self.limits: Final = tuple(limits)
        self.roles: Final = {role: frozenset(users) for role, users in (roles or {}).items()}
        self.version: Final = next(VERSIONS)
        self._by_id: Final = {rule.id: rule for rule in self.rules}
        if len(self._by_id) < len(self.rules):
            twice = next(a.id for a, b in pairwise(own) if a.id == b.id)
            raise RuleError(f"rule {twice}: the id is given twice; ids are unique")
        self._words: Final[dict[tuple[str, str, str], WordIndex]] = {}
        self._globs: Final[dict[tuple[str, str, str], GlobIndex]] = {}
        self._fill()
        self._only_built_in: Final = not own
        self._named_roles: Final = frozenset(
            who.removeprefix(OF_ROLE)
            for each in (*(rule.who for rule in self.rules), *(each.who for each in self.limits))
            for who in each
            if who.startswith(OF_ROLE)
        )
        self._roles_of: Final = _by_user(self.roles, self._named_roles)
        self._client_ids: Final = GlobIndex()
        for rule in own:
            for pattern in rule.on:
                if pattern.kind == CLIENT_ID:
                    self._client_ids.add(RuleEntry(rule, for_any_value(pattern)))

    def _fill(self) -> None:
        places = 0
        for rule in self.rules:
            places += len(rule.who) * len(rule.on)
            if places > PLACES_MAX:
                raise RuleError(
                    f"rule {rule.id}: all rules together have more than {PLACES_MAX} pairs of a"
                    " value of who and a pattern; put users into roles"
                )
            for who, pattern in product(rule.who, rule.on):
                place = (rule.effect, who, pattern.kind)
                if pattern.kind in WORDED:
                    index: WordIndex | GlobIndex = self._words.setdefault(place, WordIndex())
                else:
                    index = self._globs.setdefault(place, GlobIndex())
                index.add(RuleEntry(rule, pattern))

    def decide(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance = NO_ENTRANCE,
        client_id: str = "",
    ) -> Decision:
        """Return whether `identity` may do `verb` with `resource`, which must be canonical."""
        if self._only_built_in and ADMIN in identity.roles and resource.kind in WORDED:
            # every client of a broker without rules: what `judge` decides, without a request
            return REFUSED_AS_FIXED if is_own_name(resource.name) else ALLOWED_TO_ADMINS
        request = self._request(identity, verb, resource, entrance=entrance, client_id=client_id)
        return self.judge(request)[0]

    def judge(self, request: AccessRequest) -> Judgement:
        """Return the decision, and a name that shows why it is a refusal, if one was looked for.

        Every decision is made here; `decide` knows that on admins of a broker without rules.
        """
        resource = request.resource
        if resource.kind in WORDED:
            if is_own_name(resource.name):
                return REFUSED_AS_FIXED, ()
            if self._is_of_admin(request):
                return ALLOWED_TO_ADMINS, ()
            return self._judge_node(request)
        is_dynamic = resource.kind == TEMPORARY and resource.name == DYNAMIC
        if is_dynamic and self._is_of_creator(request):
            return ALLOWED_TO_CREATOR, ()
        if resource.kind == TEMPORARY and not is_dynamic and request.verb in OWNED_VERBS:
            part = "topics" if resource.name == TOPIC else "queues"
            edit = self._about(request, "edit", Resource(MANAGEMENT, part))
            allowed = self._judge_glob(edit).allowed
            return Decision(allowed=allowed, rule="", because=FIXED), ()
        if self._is_of_admin(request):
            return ALLOWED_TO_ADMINS, ()
        if resource.name == EVERY and resource.kind in NAMES:
            return self._judge_each(request), ()
        return self._judge_glob(request), ()

    def _is_of_admin(self, request: AccessRequest) -> bool:
        """Return whether the client is an admin of a broker that has only the built-in rules.

        These deny nothing, so the indexes need not be searched.
        """
        return self._only_built_in and ADMINS in request.principals

    def _is_of_creator(self, request: AccessRequest) -> bool:
        """Return whether a dynamic node is that of the client's user, and no rules were made."""
        is_own = request.resource.creator == request.user
        is_fit = self._only_built_in and not request.is_limited
        return is_own and is_fit and request.verb == "receive"

    def _request(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance,
        client_id: str = "",
    ) -> AccessRequest:
        return AccessRequest(
            self.principals(identity),
            verb,
            resource,
            user=identity.user,
            client_id=client_id,
            entrance=entrance,
            scopes=rules_of_scopes(identity.scopes),
            denied_as=None if identity.limited_to is None else self.all_principals(identity),
        )

    def _about(self, request: AccessRequest, verb: str, resource: Resource) -> AccessRequest:
        """Return a request of the same client for another right."""
        return AccessRequest(
            request.principals,
            verb,
            resource,
            user=request.user,
            client_id=request.client_id,
            entrance=request.entrance,
            scopes=request.scopes,
            denied_as=request.denied_as if request.is_limited else None,
        )

    def _judge_each(self, request: AccessRequest) -> Decision:
        """Decide about all names of a closed list at once."""
        rules: set[str] = set()
        for name in names_with(request.resource.kind, request.verb):
            each = self._about(request, request.verb, Resource(request.resource.kind, name))
            decision = self._judge_glob(each)
            if not decision.allowed:
                return decision
            rules.add(decision.rule)
        return Decision(allowed=True, rule=", ".join(sorted(rules)), because=COVER)

    def _judge_glob(self, request: AccessRequest) -> Decision:
        resource = request.resource
        for index in self._indexes_of_globs(DENY, request):
            for entry in index.matching(resource.name, resource.key):
                if request.is_usable_to_deny(entry):
                    return Decision(allowed=False, rule=entry.rule.id, because=OVERLAP)
        for index in self._indexes_of_globs(ALLOW, request):
            for entry in index.matching(resource.name, resource.key):
                if request.is_usable(entry):
                    return Decision(allowed=True, rule=entry.rule.id, because=COVER)
        return REFUSED_BY_DEFAULT

    def _judge_node(self, request: AccessRequest) -> Judgement:
        asked = request.name()
        visits = Budget(VISITS_MAX)
        deny = self._indexes_of_words(DENY, request)
        allow = self._indexes_of_words(ALLOW, request)
        if request.is_pattern() and _needs_comparison(asked):
            return self._judge_wildcards(request, asked, visits)
        for index in deny:
            for entry in index.touching(asked, visits):
                if request.is_usable_to_deny(entry):
                    return Decision(allowed=False, rule=entry.rule.id, because=OVERLAP), ()
        if not visits.take(0):  # a deny rule that was not reached may match
            return REFUSED_AS_UNDECIDED, ()
        for index in allow:
            for entry in index.matching(asked, visits):
                if request.is_usable(entry):
                    return Decision(allowed=True, rule=entry.rule.id, because=COVER), ()
        if asked.is_any_key and any(index.has_keys(asked, visits) for index in allow):
            # several rules with keys may allow all keys together
            return self._judge_wildcards(request, asked, visits)
        return REFUSED_BY_DEFAULT if visits.take(0) else REFUSED_AS_UNDECIDED, ()

    def _judge_wildcards(
        self, request: AccessRequest, asked: AskedName, visits: Budget
    ) -> Judgement:
        if not is_within_limits(asked):
            return REFUSED_AS_UNDECIDED, ()
        deny: tuple[list[WordIndex], Usable] = (
            self._indexes_of_words(DENY, request),
            request.is_usable_to_deny,
        )
        allow = (self._indexes_of_words(ALLOW, request), request.is_usable)
        return WildcardRequest(asked, visits).judge(deny, allow)

    def _indexes_of_words(self, effect: str, request: AccessRequest) -> list[WordIndex]:
        kind = request.resource.kind
        found: list[WordIndex] = []
        for who in request.principals if effect == ALLOW else request.denied_as:
            index = self._words.get((effect, who, kind))
            if index is not None:
                found += index.for_values(request.user, request.client_id)
        if request.scopes is not None and effect == ALLOW:
            found += request.scopes.of_words(kind, request.user, request.client_id)
        return found

    def _indexes_of_globs(self, effect: str, request: AccessRequest) -> list[GlobIndex]:
        kind = request.resource.kind
        found: list[GlobIndex] = []
        for who in request.principals if effect == ALLOW else request.denied_as:
            index = self._globs.get((effect, who, kind))
            if index is not None:
                found += index.for_values(request.user, request.client_id)
        if request.scopes is not None and effect == ALLOW:
            found += request.scopes.of_globs(kind, request.user, request.client_id)
        return found

    def principals(self, identity: Identity) -> list[str]:
        """Return the values of `who` by which allow rules match `identity`, as far as they exist.

        A login that is limited to some roles has those of them that its user has now, and what
        every login has.
        """
        found = self.all_principals(identity)
        limited_to = identity.limited_to
        if limited_to is None:
            return found
        kept = {AUTHENTICATED, ANONYMOUS, *(f"{OF_ROLE}{role}" for role in limited_to)}
        return [each for each in found if each in kept]

    def all_principals(self, identity: Identity) -> list[str]:
        """Return the values of `who` by which deny rules and limits match `identity`.

        They do so whatever roles a login is limited to. Roles that no rule names are left out,
        however many a token has.
        """
        user = identity.user
        roles = (identity.roles | identity.withheld) & self._named_roles
        if not user:
            found = [ANONYMOUS]
        else:
            found = [AUTHENTICATED, f"{OF_USER}{user}"]
            roles |= self._roles_of.get(user, frozenset())
            if identity.mechanism == EXTERNAL:
                roles |= self._roles_of.get(f"{OF_CERTIFICATE}{user}", frozenset())
        found += [f"{OF_ROLE}{role}" for role in sorted(roles)]
        return found

    def limits_of(self, identity: Identity) -> UserLimits:
        """Return the limits of a user: of each amount the strictest that matches `identity`."""
        if not self.limits:
            return NO_LIMITS
        principals = set(self.all_principals(identity))
        return UserLimits(limit for limit in self.limits if not principals.isdisjoint(limit.who))

    def may_any(
        self,
        identity: Identity,
        verb: str,
        kind: str,
        *,
        entrance: Entrance = NO_ENTRANCE,
    ) -> bool:
        """Return whether some allow rule gives `identity` the `verb` on a resource of `kind`.

        Deny rules do not count: each resource is decided by itself later.
        """
        request = self._request(identity, verb, Resource(kind, ""), entrance=entrance)
        indexes: Sequence[WordIndex | GlobIndex] = (
            self._indexes_of_words(ALLOW, request)
            if kind in WORDED
            else self._indexes_of_globs(ALLOW, request)
        )
        return any(request.is_usable(entry) for index in indexes for entry in index.entries)

    def names_client_id(self, client_id: str) -> bool:
        """Return whether a rule of the operator on client ids names `client_id` for some user."""
        return any(True for _ in self._client_ids.matching(client_id, ""))

    def file_roles_of(self, user: str) -> frozenset[str]:
        """Return the roles that the rules file gives to `user`, also those that no rule names."""
        return frozenset(role for role, users in self.roles.items() if user in users)

    def rule(self, id: str) -> Rule | None:  # noqa: A002 - the rules file's word
        """Return the rule with that id, None if there is none."""
        return self._by_id.get(id)

    def explain(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance = NO_ENTRANCE,
        client_id: str = "",
    ) -> Explanation:
        """Return the decision of `decide` with its reasons, for an operator."""
        from broker.security.explanation import explanation_of

        request = self._request(identity, verb, resource, entrance=entrance, client_id=client_id)
        return explanation_of(self, request)

    def check(
        self,
        *,
        known_roles: Iterable[str] = (),
        users: Mapping[str, Iterable[str]] | None = None,
        listeners: Iterable[str] | None = None,
    ) -> list[RuleProblem]:
        """Return the problems of the rules: rules that never decide, unknown roles.

        `known_roles` are roles that users have elsewhere, `users` the roles of each user there, and
        `listeners` the names of the listeners.
        """
        from broker.security.rules_check import problems_of

        return problems_of(self, known_roles=known_roles, users=users or {}, listeners=listeners)


def _needs_comparison(asked: AskedName) -> bool:
    """Return whether the name, or a key that is not simply any key, has wildcards."""
    if has_wildcard(asked.words):
        return True
    return asked.key is not None and not asked.is_any_key and has_wildcard(asked.key)


def _by_user(
    roles: Mapping[str, frozenset[str]], named: frozenset[str]
) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for role, users in roles.items():
        for user in users if role in named else ():
            found.setdefault(user, set()).add(role)
    return {user: frozenset(held) for user, held in found.items()}
