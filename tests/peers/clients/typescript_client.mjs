// `@modelcontextprotocol/client` 2.x: both eras over HTTP.

import { load, serve } from "./adapter.mjs";

const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
const modes = { legacy: "legacy", modern: { pin: "2026-07-28" } };

await serve(async ({ url, headers, era }) => {
  const client = new Client(
    { name: "foreword-peers", version: "1" },
    { versionNegotiation: { mode: modes[era] } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  try {
    const { tools } = await client.listTools();
    const { content } = await client.callTool({ name: "read_me", arguments: {} });
    return {
      protocol: client.getNegotiatedProtocolVersion(),
      instructions: client.getInstructions(),
      tools: tools.map((tool) => tool.name),
      read_me: content[0].text,
    };
  } finally {
    await client.close();
  }
});
