"""Customers who have tokens: they refresh and revoke them, in turn and out of turn."""

from collections.abc import Mapping
from typing import Any

from remuda.identity.oauth.clients import CLI
from tests.kit.asgi.contract import Reply
from tests.kit.identity.login import CONSOLE, CONSOLE_SECRET
from tests.kit.sim_identity.customer import Customer
from tests.kit.sim_identity.facts import Fact
from tests.kit.sim_identity.history import Session, Token, Verdict, claims_of, verdict_of

TOKEN = "/oauth2/v2/token"
CONSOLE_PROOF = {"client_id": CONSOLE, "client_secret": CONSOLE_SECRET}


class TokenHolder(Customer):
    """Whoever has sessions."""

    async def refresh(self) -> None:
        """Refresh a session with what should be good."""
        if shown := self._refreshable():
            session = self.one_of(shown)
            await self._refresh_with(session, self._shown(session))

    async def refresh_again(self) -> None:
        """Come with a refresh token that was used before, as a thief does."""
        used = [each for each in self.history.sessions if each.used]
        if used:
            session = self.one_of(used)
            await self._refresh_with(session, self.one_of(session.used))

    async def _refresh_with(self, session: Session, shown: str) -> None:
        fact = session.refresh
        is_good = fact.is_surely(shown) and not fact.is_disputed
        session.may_have_ended |= not is_good
        was_over, is_sure = session.has_ended, is_good and self.system.is_alive(session)
        number = fact.ask(f"unseen {self.history.now()}")
        reply, verdict = await self.token({"grant_type": "refresh_token", "refresh_token": shown, **_proof(session)})
        if verdict == "yes":
            assert not was_over, "an ended session was refreshed"
            assert is_good or shown not in session.used, "a refresh token was good twice"
            session.used.append(shown)
            fact.reveal(number, reply.json["refresh_token"])
            fact.granted(number)
            self._given(session, reply.json)
        elif verdict == "no":
            fact.refused(number)
            is_over = session.may_have_ended or fact.is_disputed
            assert not is_sure or is_over or not self.system.is_alive(session), f"refused: {reply.body!r}"
            session.has_ended |= "reuse" in reply.json["error_description"]

    async def revoke(self) -> None:
        """Revoke an access token."""
        tokens = [each for each in self.history.tokens if each.session is not None]
        if not tokens:
            return
        token = self.one_of(tokens)
        assert token.session is not None
        token.may_be_revoked = True
        is_validated = self.system.is_in_time(token.claims)
        reply = await self._show("/oauth2/v2/revoke", token.text, token.session)
        # What has expired is not good anyhow, and nobody writes that down.
        if reply.status == 200 and is_validated and self.system.is_in_time(token.claims):
            token.find_revocation = True

    async def revoke_session(self) -> None:
        """Revoke a refresh token, with which its session ends."""
        if (shown := self._refreshable()) and self.chance(0.5):
            session = self.one_of(shown)
            session.may_have_ended = True
            reply = await self._show("/oauth2/v2/revoke", self._shown(session), session)
            session.has_ended |= reply.status == 200

    def _refreshable(self) -> list[Session]:
        open_ = [each for each in self.history.sessions if not each.has_ended]
        return [each for each in open_ if any(map(_is_token, each.refresh.possible))]

    def _shown(self, session: Session) -> str:
        return self.one_of(sorted(str(value) for value in session.refresh.possible if _is_token(value)))

    async def _show(self, path: str, token: str, session: Session) -> Reply:
        return await self.send("POST", path, form={"token": token, **_proof(session)}, token="")

    async def token(self, form: Mapping[str, str]) -> tuple[Reply, Verdict]:
        reply = await self.send("POST", TOKEN, form=form, token="")
        return reply, verdict_of(reply)

    def begun(self, reply: Reply, login: str, since: int, *, is_public: bool = False) -> Session:
        """Note a session that somebody was given."""
        claims, told = claims_of(reply.json["access_token"]), reply.json
        refresh = Fact(self.history.moments)
        refresh.granted(refresh.ask(told["refresh_token"], since=since))
        session = Session(claims["sid"], claims["uid"], login, claims["iat"], refresh, is_public=is_public)
        guest = claims["sub"]
        session.may_have_ended = bool(self.history.choosing[guest]) or self.history.chosen[guest] > since
        session.may_have_ended |= login in self.history.leaving
        self.history.sessions.append(session)
        self._given(session, told)
        return session

    def _given(self, session: Session, told: Any) -> None:
        self.history.tokens.append(Token(told["access_token"], claims_of(told["access_token"]), session=session))
        self.history.secrets |= {told["access_token"], told["refresh_token"]}


def _proof(session: Session) -> Mapping[str, str]:
    return {"client_id": CLI} if session.is_public else CONSOLE_PROOF


def _is_token(value: object) -> bool:
    return str(value).count(".") == 2
