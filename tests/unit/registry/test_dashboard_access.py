"""Codes and cookies, by a clock of the test's own."""

from __future__ import annotations

from agent_bridge.registry import dashboard_access
from agent_bridge.registry.dashboard_access import CODE_SECONDS, COOKIE_SECONDS, DashboardAccess, set_cookie


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_code_holds_once_within_its_minute() -> None:
    access = DashboardAccess(_Clock())
    code = access.new_code()
    cookie = access.login(code)
    assert cookie is not None
    assert access.holds(cookie)
    assert access.login(code) is None
    assert not access.holds(code)
    assert not access.holds("")


def test_a_code_and_a_cookie_grow_old() -> None:
    clock = _Clock()
    access = DashboardAccess(clock)
    first, second = access.new_code(), access.new_code()
    clock.now = CODE_SECONDS - 0.1
    cookie = access.login(first)
    assert cookie is not None
    clock.now = CODE_SECONDS
    assert access.login(second) is None
    clock.now += COOKIE_SECONDS
    assert not access.holds(cookie)


def test_the_oldest_code_makes_room() -> None:
    access = DashboardAccess(_Clock())
    codes = [access.new_code() for _ in range(dashboard_access._MOST + 1)]
    assert access.login(codes[0]) is None
    assert access.login(codes[1]) is not None


def test_the_cookie_is_kept_from_scripts_and_other_sites() -> None:
    header = set_cookie("value")
    assert header.startswith("agent_bridge_dashboard=value;")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in header.split(";")}
