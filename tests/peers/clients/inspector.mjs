// The Inspector's command line, both eras over HTTP: a process for each method, as a person would type it.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { load, serve } from "./adapter.mjs";

const run = promisify(execFile);
const inspector = load.resolve("@modelcontextprotocol/inspector/clients/launcher/build/index.js");

// It keeps a catalogue in the home directory; the tests must not touch a person's own.
const home = mkdtempSync(join(tmpdir(), "foreword-inspector-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));

await serve(async ({ url, headers, era }) => {
  const [handshake, { tools }, { content }] = await Promise.all([
    inspect(url, headers, era, "initialize"),
    inspect(url, headers, era, "tools/list"),
    inspect(url, headers, era, "tools/call", "--tool-name", "read_me"),
  ]);
  return {
    protocol: handshake.protocolVersion,
    instructions: handshake.instructions,
    tools: tools.map((tool) => tool.name),
    read_me: content[0].text,
  };
});

async function inspect(url, headers, era, method, ...rest) {
  const named = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
  const { stdout } = await run(
    process.execPath,
    [inspector, "--cli", "--server-url", url, "--transport", "http", "--protocol-era", era,
      "--method", method, ...rest, ...named, "--format", "json", "--quiet", "--stored-auth-only"],
    { env: { ...process.env, HOME: home }, maxBuffer: 64 << 20 },
  );
  return JSON.parse(stdout).result;
}
