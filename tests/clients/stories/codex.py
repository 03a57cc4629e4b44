"""The Codex CLI, without a terminal, with the configuration of its page."""

from bench import Bench, Setting
from harness import Report
from page import filled

# Where the model is; a user of Codex has it without saying so.
PROVIDER = """
model = "gpt-5"
model_provider = "test"

[model_providers.test]
name = "test"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"

"""


def run(setting: Setting, report: Report) -> None:
    with Bench(setting, report, "codex") as bench:
        config = bench.home / ".codex/config.toml"
        config.parent.mkdir()

        def ask(question: str) -> str:
            return bench.run([setting.node / "node_modules/.bin/codex", "exec", "--skip-git-repo-check", question])

        def configured(holds: str, values: dict[str, str] | None = None) -> None:
            config.write_text(PROVIDER.format(url=bench.model.url) + filled(bench.block("toml", holds), values or {}))

        forms = bench.foreword.forms("my-project")
        configured("url =")
        bench.count("HTTP", ask, forms, "full")
        configured("url =", {"/my-project": "/my-project?instructions=hint"})
        bench.tells("HTTP, hint", ask, forms["hint"])
        configured("command =")
        bench.count("stdio", ask, bench.forms_on_stdio(), "full")
