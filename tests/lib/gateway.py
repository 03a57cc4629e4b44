"""A real LiteLLM proxy, which is ended again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import answers, free_port, running

# What its clients show.
KEY = "sk-key-of-the-gateway"
# It reads its own code for half a minute, on an idle machine.
READY_WITHIN = 200


@contextmanager
def litellm(
    packages: Path, config: str, directory: Path, environment: dict[str, str], port: int | None = None
) -> Iterator[str]:
    """Its address. The configuration lies in `directory`, and so does its log."""
    file = directory / "config.yaml"
    file.write_text(config)
    url = f"http://127.0.0.1:{port or free_port()}"
    # Nothing of its own is fetched from elsewhere.
    own = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "NO_DOCS": "True",
        "NO_PROXY": "127.0.0.1",
    }
    own |= {"PATH": f"{packages}/bin:{environment['PATH']}"}
    arguments = ["--config", file, "--host", "127.0.0.1", "--port", url.rpartition(":")[2], "--telemetry", "False"]
    command = [packages / "bin/litellm", *arguments]
    ready = answers(f"{url}/health/liveliness")
    with running(command, ready, directory / "litellm.log", READY_WITHIN, environment | own, directory):
        yield url
