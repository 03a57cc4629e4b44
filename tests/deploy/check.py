"""Looks whether what deploy/, .github/ and server.json name exists and fits together. No image is pulled or built.

It runs at the top of the repository, prints each check with what is wrong, and ends with 1 if anything is. With 77 it ends if nothing is but a
check could not be made here: such a check is printed with its reason, and the reason goes to the file that scripts/test names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import yaml

# Each Dockerfile, and the directory that it is built from.
DOCKERFILES = {"deploy/Dockerfile": ".", "deploy/sandbox/Dockerfile": "deploy/sandbox"}
COMPOSE, EXAMPLE = "deploy/compose.yaml", "deploy/.env.example"
MANIFEST, SECRET, SCRAPING = (f"deploy/kubernetes/{name}.yaml" for name in ("foreword", "secret.example", "prometheus"))
UNIT, HARDENING = "deploy/systemd/foreword.service", "deploy/systemd/hardening.conf"
RELEASE, CI, REGISTRY = ".github/workflows/release.yml", ".github/workflows/ci.yml", "server.json"
FILTER = "integrations/openwebui/foreword_filter.py"
NAMING_SETTINGS = [*DOCKERFILES, COMPOSE, EXAMPLE, "deploy/README.md", MANIFEST, UNIT, HARDENING, RELEASE, CI, REGISTRY]
# What else may name an image, with its version.
NAMING_IMAGES = ["README.md", "docs/**/*.md", "deploy/**/*", "examples/**/*", "integrations/**/*"]
# What jobs may do beyond reading the repository; those that are not named have no `permissions` of their own.
RIGHTS = {
    RELEASE: {
        "draft": {"contents": "write"},
        "build": {"contents": "write", "packages": "write"},
        "publish": {"contents": "write", "packages": "write"},
    },
    CI: {},
}
# How exposed systemd may call the unit, of 100: as it is, and with the drop-in.
EXPOSURE = {None: 40, HARDENING: 15}

# What is wrong, a sentence for each thing.
Problems = Iterator[str]


class LeftOut(Exception):
    """A check cannot be made on this machine."""


def main() -> int:
    passed, failed, left_out = 0, 0, []
    for name, check in checks():
        try:
            problems = list(check())
        except LeftOut as reason:
            left_out.append(f"{name}: {reason}")
            print(f"LEFT OUT {name}: {reason}")
            continue
        except Exception as error:  # noqa: BLE001 - what a check cannot read is wrong
            problems = [f"the check itself ended with {type(error).__name__}: {error}"]
        print(f"FAIL {name}" if problems else f"ok {name}")
        for problem in problems:
            print(f"     {problem}")
        passed, failed = passed + (not problems), failed + bool(problems)
    Path(os.environ.get("FOREWORD_TEST_REASON", os.devnull)).write_text("; ".join(left_out))
    print(f"deploy: {passed} passed, {failed} failed{f', {len(left_out)} skipped' if left_out else ''}")
    return 1 if failed or not passed else 77 if left_out else 0


def checks() -> Iterator[tuple[str, Callable[[], Problems]]]:
    for dockerfile, context in DOCKERFILES.items():
        yield f"{dockerfile}: what it copies is there, and the build sees it", partial(check_copies, dockerfile, context)
        if "apt-get install" in read(dockerfile):
            yield f"{dockerfile}: packages are sorted, one a line, named once", partial(check_package_list, dockerfile)
            yield f"{dockerfile}: Debian 12 has the packages, and they can be installed together", partial(check_packages, dockerfile)
    yield "the same versions everywhere", check_versions
    yield "each setting that is named is one", check_settings
    yield f"{COMPOSE}: images are pinned, and nothing is published beyond this machine", check_compose
    yield f"{EXAMPLE}: has what {COMPOSE} uses, and no more", check_compose_variables
    yield f"{MANIFEST}: names meet, and probes ask for routes", check_kubernetes
    yield f"{SCRAPING}: reads what the manifest says, and sends a key", check_scraping
    for workflow in (RELEASE, CI):
        yield f"{workflow}: actions are pinned, rights are few, time is bounded", partial(check_workflow, workflow)
    yield f"{RELEASE}: what is packed is there", check_packed
    yield f"{CI}: everything is run, where the suites can run", check_ci
    yield f"{UNIT}: keys reach their settings, and directories are those that systemd makes", check_unit
    yield f"{UNIT}: what sandboxes do not bear is left off, with the reason", check_left_off
    for drop_in, most in EXPOSURE.items():
        yield f"{drop_in or UNIT}: systemd takes it, and calls it no more exposed than {most / 10}", partial(check_systemd, drop_in, most)


def read(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def differs(name: str, what: str, found: object, expected: object) -> Problems:
    if found != expected:
        yield f"{name}: {what} is {found!r}, where {expected!r} belongs"


class Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, of which PyYAML would take the last."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"`{key}` is there twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def documents(name: str) -> list:
    try:
        return list(yaml.load_all(read(name), Loader))
    except yaml.YAMLError as error:
        raise ValueError(f"{name}: {error}") from error


def workspace() -> dict:
    return tomllib.loads(read("Cargo.toml"))["workspace"]["package"]


def toolchain() -> str:
    return tomllib.loads(read("rust-toolchain.toml"))["toolchain"]["channel"]


# Dockerfiles.


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Keyword and rest of each instruction, without comments, as one line."""
    lines = [line for line in read(dockerfile).splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            keyword, _, rest = line.strip().partition(" ")
            yield keyword, rest.strip()


def check_copies(dockerfile: str, context: str) -> Problems:
    ignore = Path(f"{dockerfile}.dockerignore")
    shown = {line[1:] for line in read(ignore).splitlines() if line.startswith("!")} if ignore.exists() else None
    sources = []
    for keyword, rest in instructions(dockerfile):
        if keyword in ("COPY", "ADD") and "--from=" not in rest:
            sources += [word for word in rest.split() if not word.startswith("--")][:-1]
    if not sources:
        yield "it copies nothing, so there was nothing to check"
    for source in sources:
        if not Path(context, source).exists():
            yield f"it copies `{source}`, which is not there"
        if shown is not None and source not in shown:
            yield f"it copies `{source}`, which {ignore} hides"


def package_groups(dockerfile: str) -> tuple[list[list[str]], list[str]]:
    """The packages that an image installs, those between two comments together, and what is wrong with how they are written."""
    groups, inside, problems = [[]], False, []
    for line in read(dockerfile).splitlines():
        words = line.removesuffix("\\").split()
        if "apt-get install" in line:
            inside = True
            if not words[-1].startswith("-"):
                problems.append(f"`{words[-1]}` is on the line of `apt-get install`")
        elif inside and line.lstrip().startswith("#"):
            groups.append([])
        elif inside:
            inside = words[0] != "&&"
            if inside and len(words) == 1:
                groups[-1].append(words[0])
            elif inside:
                problems.append(f"more than one package on the line `{line.strip()}`")
    return groups, problems


def check_package_list(dockerfile: str) -> Problems:
    groups, problems = package_groups(dockerfile)
    yield from problems
    for group in groups:
        if group != sorted(group):
            yield f"the packages {' '.join(group)} are not sorted"
    every = sum(groups, [])
    yield from (f"`{name}` is named twice" for name in sorted(set(every)) if every.count(name) > 1)
    if not every:
        yield "no package was found in it"


def check_packages(dockerfile: str) -> Problems:
    names = sum(package_groups(dockerfile)[0], [])
    if not re.search("^VERSION_CODENAME=bookworm$", read("/etc/os-release"), re.MULTILINE):
        raise LeftOut("only Debian 12 (bookworm) knows whether it has the packages")
    if not in_debian(["bash"]):
        raise LeftOut("the package index of Debian 12 is missing: run apt-get update")
    missing = sorted(set(names) - in_debian(names))
    yield from (f"it installs `{name}`, which Debian 12 does not have" for name in missing)
    if missing:
        return
    # It only lists what it would fetch. What is installed, pinned or to be had from elsewhere on this machine is left out of it.
    command = ["apt-get", "--print-uris", "--quiet", "--quiet", "--no-install-recommends", "install", *names]
    for option in (
        "Dir::State::status=/dev/null",
        "Dir::Etc::Preferences=/dev/null",
        "Dir::Etc::PreferencesParts=/dev/null",
        "APT::Default-Release=/^bookworm(-security|-updates)?$/",
    ):
        command[1:1] = ["-o", option]
    ended = run(*command)
    if ended.returncode:
        yield f"the packages cannot be installed together: {ended.stderr.strip()}"


def in_debian(names: list[str]) -> set[str]:
    """Those of the packages that Debian 12 has."""
    lines = [[field.strip() for field in line.split("|")] for line in run("apt-cache", "madison", *names).stdout.splitlines()]
    return {line[0] for line in lines if len(line) == 3 and re.search(r" bookworm(-security|-updates)?/main ", line[2])}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


# What is written in two places.


def check_versions() -> Problems:
    version = workspace()["version"]
    bases = [f"rust:{toolchain()}-slim-bookworm", "debian:bookworm-slim"]
    for dockerfile in DOCKERFILES:
        for keyword, rest in instructions(dockerfile):
            if keyword == "FROM" and rest.split()[0] not in bases:
                yield f"{dockerfile} is from `{rest.split()[0]}`, which is none of {', '.join(bases)}"
        if f'org.opencontainers.image.version="{version}"' not in read(dockerfile):
            yield f"{dockerfile}: the label has not version {version} of Cargo.toml"
    registry = json.loads(read(REGISTRY))
    yield from differs(REGISTRY, "the version", registry["version"], version)
    if registry.get("repository", {}).get("url") != workspace().get("repository"):
        yield f"{REGISTRY} and Cargo.toml do not name the same repository"
    yield from differs(FILTER, "the version", re.findall(r"^version: (.*)$", read(FILTER), re.MULTILINE), [version])
    found = {str(file) for pattern in NAMING_IMAGES for file in Path().glob(pattern) if file.is_file()}
    for name in sorted(found.union(NAMING_SETTINGS)):
        for image, tag in re.findall(r"\b(foreword(?:-sandbox)?):(\d+\.\d+[\w.-]*\w)", read(name)):
            if tag != version:
                yield f"{name} names `{image}:{tag}`, but Cargo.toml has version {version}"


def check_settings() -> Problems:
    known = set(re.findall(r"`(FOREWORD_[A-Z_]+)`", read("docs/configuration.md")))
    if "FOREWORD_API_KEY" not in known:
        yield "docs/configuration.md does not list settings as this suite expects it"
    for name in NAMING_SETTINGS:
        for setting in sorted(set(re.findall(r"\bFOREWORD_[A-Z_]*[A-Z]", read(name))) - known):
            yield f"{name} names `{setting}`, which is not in docs/configuration.md"


# Compose.


def check_compose() -> Problems:
    [composition] = documents(COMPOSE)
    services = composition["services"]
    for name, service in services.items():
        if not re.search(r":v?\d", service["image"]):
            yield f"`{service['image']}` is not pinned to a version"
        for port in service.get("ports", []):
            if not str(port).startswith("127.0.0.1:"):
                yield f"{name} publishes `{port}` beyond this machine"
    for name in ("DEFAULT_MODEL_METADATA", "TOOL_SERVER_CONNECTIONS"):
        try:
            json.loads(services["open-webui"]["environment"][name])
        except ValueError as error:
            yield f"{name} is no JSON: {error}"


def check_compose_variables() -> Problems:
    used = set(re.findall(r"\$\{([A-Z_]+)", read(COMPOSE)))
    offered = set(re.findall(r"^([A-Z_]+)=", read(EXAMPLE), re.MULTILINE))
    yield from (f"it lacks `{name}`, which {COMPOSE} uses" for name in sorted(used - offered))
    yield from (f"it has `{name}`, which {COMPOSE} does not use" for name in sorted(offered - used))


# Kubernetes.


def manifests() -> dict[str, dict]:
    return {document["kind"]: document for document in documents(MANIFEST) + documents(SECRET)}


def check_kubernetes() -> Problems:
    routes = json.loads(read("docs/openapi.json"))["paths"]
    kinds = manifests()
    yield from differs(MANIFEST, "what it makes", sorted(kinds), ["Secret", "Service", "StatefulSet"])
    state, service, secret = kinds["StatefulSet"]["spec"], kinds["Service"]["spec"], kinds["Secret"]
    template = state["template"]
    pod, [container] = template["spec"], template["spec"]["containers"]
    labels = template["metadata"]["labels"]
    yield from differs(MANIFEST, "replicas", state["replicas"], 1)
    yield from differs(MANIFEST, "the version label", labels.get("app.kubernetes.io/version"), workspace()["version"])
    for selector in (state["selector"]["matchLabels"], service["selector"]):
        yield from differs(MANIFEST, "that a selector meets the labels", selector.items() <= labels.items(), True)
    # The port is the one that the image listens on.
    [port] = container["ports"]
    yield from differs(MANIFEST, "the container's port", port["containerPort"], int(listened_on()))
    yield from differs(MANIFEST, "the service's port", service["ports"][0]["targetPort"], port["name"])
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        yield from differs(MANIFEST, f"the port of {probe}", asked["port"], port["name"])
        if asked["path"] not in routes:
            yield f"{MANIFEST}: {probe} asks for `{asked['path']}`, which is no route"
    # It starts a server that may write to its volumes only, as the user that the image has.
    [user] = re.findall(r"^USER (\d+):", read("deploy/Dockerfile"), re.MULTILINE)
    yield from differs(MANIFEST, "the user", pod["securityContext"]["runAsUser"], int(user))
    yield from differs(MANIFEST, "the root file system's being read-only", container["securityContext"]["readOnlyRootFilesystem"], True)
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in state["volumeClaimTemplates"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    yield from differs(MANIFEST, "what is mounted", set(mounts), volumes)
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    yield from differs(MANIFEST, "the number of variables", len(variables), len(container["env"]))
    yield from differs(MANIFEST, "that the data lies on its volume", variables["FOREWORD_DATA_DIR"].startswith(mounts["data"] + "/"), True)
    [name] = [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume]
    yield from differs(SECRET, "its name", secret["metadata"]["name"], name)
    files = sorted(value for name, value in variables.items() if name.endswith("_KEY_FILE"))
    yield from differs(MANIFEST, "the files with keys", files, sorted(f"{mounts['keys']}/{key}" for key in secret["stringData"]))
    if any(secret["stringData"].values()):
        yield f"{SECRET} has a key that somebody might use"
    annotations = template["metadata"]["annotations"]
    yield from differs(MANIFEST, "the port to scrape", annotations["prometheus.io/port"], listened_on())
    yield from differs(MANIFEST, "that the path to scrape is a route", annotations["prometheus.io/path"] in routes, True)


def listened_on() -> str:
    [port] = re.findall(r"FOREWORD_HTTP__LISTEN=\S*:(\d+)", read("deploy/Dockerfile"))
    return port


def check_scraping() -> Problems:
    annotations = manifests()["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]
    [[job]] = [document["scrape_configs"] for document in documents(SCRAPING)]
    asked = {label for rule in job["relabel_configs"] for label in rule["source_labels"]}
    for annotation in annotations:
        label = "__meta_kubernetes_pod_annotation_" + re.sub(r"\W", "_", annotation)
        yield from differs(SCRAPING, f"that it reads `{label}`", label in asked, True)
    if "credentials_file" not in job["authorization"]:
        yield "it sends no key, without which /metrics is refused"


# Workflows.


def steps(job: dict) -> list[dict]:
    """None where the job is another workflow."""
    return job.get("steps", [])


def check_workflow(name: str) -> Problems:
    [workflow] = documents(name)
    jobs = workflow["jobs"]
    yield from differs(name, "what every job may do", workflow.get("permissions"), {"contents": "read"})
    # No action is taken by a name that can move; the comment says which version the commit is.
    for action in re.findall(r"\buses: (.*)", read(name)):
        if action.startswith("./"):
            yield from differs(name, f"that `{action}` is there", Path(action).exists(), True)
        elif not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action):
            yield f"`{action}` is not one of GitHub's own, pinned to a commit, with its version as a comment"
    rights = {title: job["permissions"] for title, job in jobs.items() if "permissions" in job}
    yield from differs(name, "what single jobs may do", rights, RIGHTS[name])
    for title, job in jobs.items():
        needs = job.get("needs", [])
        for needed in [needs] if isinstance(needs, str) else needs:
            yield from differs(name, f"that `{title}` needs a job", needed in jobs, True)
        if steps(job) and "timeout-minutes" not in job:
            yield f"`{title}` has no `timeout-minutes`"
        for step in steps(job):
            if step.get("uses", "").startswith("actions/checkout@") and step.get("with", {}).get("persist-credentials") is not False:
                yield f"`{title}` leaves its token in the clone: it lacks `persist-credentials: false`"
            if "${{" in step.get("run", ""):
                yield f"`{title}` puts an expression into a script, where its value is run; hand it over in `env`"


def check_packed() -> Problems:
    [workflow] = documents(RELEASE)
    scripts = "\n".join(step.get("run", "") for job in workflow["jobs"].values() for step in steps(job))
    packed = [file for files in re.findall(r"^cp -r (.*) \S+$", scripts, re.MULTILINE) for file in files.split()]
    if not packed:
        yield "it packs nothing, so there was nothing to check"
    yield from (f"it packs `{file}`, which is not there" for file in packed if not Path(file).exists())


def check_ci() -> Problems:
    [workflow] = documents(CI)
    # YAML 1.1 reads `on` as a truth.
    events = workflow[True]
    yield from differs(CI, "what starts it", sorted(events), ["pull_request", "push", "workflow_call"])
    yield from differs(CI, "the branch of a push", events["push"], {"branches": ["main"]})
    [job] = workflow["jobs"].values()
    scripts = [step["run"].strip().splitlines() for step in steps(job) if "run" in step]
    yield from differs(CI, "the last line that is run", scripts[-1][-1], "exec .ci/run")
    yield from differs(CI, "where it runs", job["container"]["image"], f"rust:{toolchain()}-bookworm")
    budgets = [int(line.split()[1]) for line in run("scripts/test", "--list").stdout.splitlines()]
    if not 0 < sum(budgets) < job["timeout-minutes"] * 60:
        yield f"it may take {job['timeout-minutes']} minutes, and the suites {sum(budgets) / 60:.0f}"


# systemd.


def unit_values() -> dict[str, list[str]]:
    values = {}
    for line in read(UNIT).splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return values


def check_unit() -> Problems:
    values = unit_values()
    variables = dict(value.split("=", 1) for value in values["Environment"])
    credentials = {value.split(":")[0] for value in values["LoadCredential"]}
    handed = {value.removeprefix("%d/") for value in variables.values() if value.startswith("%d/")}
    yield from differs(UNIT, "the credentials that settings name", handed, credentials)
    yield from differs(UNIT, "the data directory", variables["FOREWORD_DATA_DIR"], f"/var/lib/{values['StateDirectory'][0]}")
    yield from differs(UNIT, "the working directory", values["WorkingDirectory"], [f"/etc/{values['ConfigurationDirectory'][0]}"])


def check_left_off() -> Problems:
    """The comment in the unit has them with their reasons."""
    for forbidden in ("RestrictNamespaces", "ProtectHostname", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups"):
        yield from differs(UNIT, f"the use of {forbidden}=", forbidden in unit_values(), False)
        yield from differs(UNIT, f"the reason against {forbidden}=", bool(re.search(f"^#.* {forbidden}=", read(UNIT), re.MULTILINE)), True)


def check_systemd(drop_in: str | None, most: int) -> Problems:
    if not shutil.which("systemd-analyze"):
        raise LeftOut("systemd-analyze is missing and could not be installed (Debian: systemd)")
    with tempfile.TemporaryDirectory(prefix="foreword-deploy-") as directory:
        unit = Path(directory, "foreword.service")
        # systemd asks for the program, which is not installed here.
        unit.write_text(read(UNIT).replace("\nExecStart=/usr/local/bin/foreword", "\nExecStart=/bin/true"))
        if drop_in:
            unit.with_suffix(".service.d").mkdir()
            shutil.copy(drop_in, unit.with_suffix(".service.d"))
        verified = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
        said = (verified.stdout + verified.stderr).strip()
        if verified.returncode or said:
            yield f"systemd-analyze verify ends with {verified.returncode}: {said}"
        exposed = run("systemd-analyze", "security", "--offline=true", f"--threshold={most}", "--no-pager", unit)
        if exposed.returncode:
            yield f"systemd-analyze security: {(exposed.stdout + exposed.stderr).strip().splitlines()[-1]}"


if __name__ == "__main__":
    sys.exit(main())
