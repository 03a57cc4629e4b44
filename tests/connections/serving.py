"""The Foreword under test, and what it says of its servers."""

import server
from harness import SOON, until


class Foreword(server.Foreword):
    """A server with connections, in whose environment is something that no peer may see."""

    @property
    def environment(self) -> dict[str, str]:
        return {"SECRET_OF_FOREWORD": "not-for-peers"} | super().environment

    def status(self) -> dict:
        return self.ok("/api/prompts/mcp-tools").json()

    def tools_prompt(self) -> str:
        return self.status()["mcp_tools_prompt"]

    def servers(self) -> dict[str, dict]:
        return {entry["name"]: entry for entry in self.status()["servers"]}

    def in_state(self, name: str, state: str, within: float = SOON) -> dict:
        def probe() -> dict | None:
            entry = self.servers().get(name) or {}
            if entry.get("state") != state:
                raise AssertionError(f"{name} is {entry}")
            return entry

        return until(probe, f"{name} {state}", within)

    def ready(self, *names: str, within: float = SOON) -> None:
        for name in names:
            self.in_state(name, "ready", within)
