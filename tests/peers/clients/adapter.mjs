// The conversation between the driver and a Node.js client: one case a line, one answer a line (see `adapter.py`).

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Loads a package from the environment made by the lock file, which lies outside of the checkout. */
export const load = createRequire(join(process.env.FOREWORD_PEERS_NODE, "package.json"));

/** Answers cases from standard input until it ends. */
export async function serve(connect) {
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      answer = await connect(JSON.parse(line));
    } catch (error) {
      answer = { error: `${error?.name}: ${error?.message}` };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}
